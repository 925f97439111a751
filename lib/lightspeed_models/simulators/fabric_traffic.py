"""A job on a fabric: which links carry how much, and which one it waits for. Used in chapter 8.

Two layers of switches. Every GPU has one link to a leaf. In the design `rail` GPU i of each node of
a pod hangs on leaf i; in the design `rack` all GPUs of neighbouring nodes hang on the same leaf.
Both have the same switches and cables. Loads are counted flow by flow, and nothing is assumed to be
even; `lightspeed.fabrics` has the closed forms.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from lightspeed.errors import BadArgument, one_of
from lightspeed.law import check_fields, checked, count, positive

DESIGNS = ("rail", "rack")
TRAFFIC = ("ring", "crossed ring", "alltoall", "alltoall, PXN")
ROUTING = ("hash", "spread")
Gpu = tuple[int, int]  # node, and its place in the node
Flow = tuple[Gpu, Gpu, float]  # from, to, bytes
Link = tuple[str, int, int]  # kind, and two numbers that name it


@dataclass(frozen=True)
class Fabric:
    """`pods` of `pod_nodes` nodes of `per_node` GPUs; each leaf has a link to each of `spines`."""

    pods: int = 4
    pod_nodes: int = 8
    per_node: int = 8
    spines: int = 8
    bandwidth: float = 50e9
    oversubscription: float = 1.0
    design: str = "rail"

    def __post_init__(self) -> None:
        check_fields(self, DESIGNS, "design")
        check_fields(self, count(), "pods", "pod_nodes", "per_node", "spines")
        check_fields(self, positive(), "bandwidth", "oversubscription")

    @property
    def nodes(self) -> int:
        return self.pods * self.pod_nodes

    @property
    def uplink(self) -> float:
        """byte/s of one of a leaf's links to a spine."""
        return self.bandwidth * self.pod_nodes / (self.oversubscription * self.spines)

    def leaf(self, gpu: Gpu) -> int:
        """The leaf on which a GPU hangs. A pod has as many leaves as a node has GPUs."""
        node, place = gpu
        pod, inside = divmod(node, self.pod_nodes)
        own = place if self.design == "rail" else inside * self.per_node // self.pod_nodes
        return pod * self.per_node + own

    def capacity(self, link: Link) -> float:
        return self.bandwidth if link[0] in ("out", "in") else self.uplink


@dataclass(frozen=True)
class Load:
    """Bytes on each link, and what follows: `time` (s) until the last byte has passed the fullest
    link, that link, and the bytes that stayed inside nodes, under a leaf, or crossed a spine.
    """

    fabric: Fabric
    bytes: dict[Link, float]
    inside: float
    leaf: float
    spine: float

    def seconds(self, link: Link) -> float:
        """How long a link is busy with its bytes."""
        return self.bytes[link] / self.fabric.capacity(link)

    @property
    def fullest(self) -> Link | None:
        return max(self.bytes, key=self.seconds, default=None)

    @property
    def time(self) -> float:
        return self.seconds(self.fullest) if self.fullest else 0.0


def flows_of(traffic: str, nodes: Sequence[int], per_node: int, size: float = 1e9) -> list[Flow]:
    """The flows of one collective on these nodes, in this order; each GPU sends `size` bytes in all
    to GPUs of other nodes.

    ring            GPU i sends to GPU i of the next node
    crossed ring    GPU i sends to GPU i + 1 of the next node, as with a wrong list of adapters
    alltoall        each GPU sends the same to each GPU of each other node
    alltoall, PXN   the same, but data goes to the GPU of the receiver's rail first, inside the node
    """
    one_of("flows_of", "traffic", traffic, TRAFFIC)
    if len(set(nodes)) != len(nodes):
        raise BadArgument("flows_of", "nodes", nodes, "nodes that differ from each other")
    n, places = len(nodes), range(per_node)
    if n < 2:
        return []
    if traffic in ("ring", "crossed ring"):
        step = 1 if traffic == "crossed ring" else 0
        return [
            ((nodes[k], i), (nodes[(k + 1) % n], (i + step) % per_node), size)
            for k in range(n)
            for i in places
        ]
    pairs = [(a, b) for a in nodes for b in nodes if a != b]
    each = size / ((n - 1) * per_node)
    if traffic == "alltoall":
        return [((a, i), (b, j), each) for a, b in pairs for i in places for j in places]
    # All that a node has for GPU j of another leaves through its own GPU j.
    return [((a, j), (b, j), each * per_node) for a, b in pairs for j in places]


def load(
    fabric: Fabric,
    flows: Iterable[Flow],
    routing: str = "hash",
    rng: Random | None = None,
    parts: int = 1,
) -> Load:
    """The `Load` of these flows. `hash` sends each whole flow over one spine that chance picks (one
    of its `parts`, if it is cut into several connections); `spread` cuts it evenly over all spines.

    >>> round(load(Fabric(), flows_of("ring", range(8), 8)).time * 1e3, 6)
    20.0
    """
    one_of("load", "routing", routing, ROUTING)
    parts = checked("load", "parts", parts, count())
    rng = rng or Random(0)
    loads: defaultdict[Link, float] = defaultdict(float)
    inside = leaf = spine = 0.0
    for source, target, size in flows:
        node, place = map(max, source, target)
        if node >= fabric.nodes or place >= fabric.per_node:
            raise BadArgument("load", "flows", (source, target), f"GPUs of {fabric.nodes} nodes")
        if source[0] == target[0]:
            inside += size
            continue
        loads["out", *source] += size
        loads["in", *target] += size
        up, down = fabric.leaf(source), fabric.leaf(target)
        if up == down:
            leaf += size
            continue
        spine += size
        if routing == "spread":
            shares = [(s, size / fabric.spines) for s in range(fabric.spines)]
        else:
            shares = [(rng.randrange(fabric.spines), size / parts) for _ in range(parts)]
        for s, share in shares:
            loads["up", up, s] += share
            loads["down", down, s] += share
    return Load(fabric, dict(loads), inside, leaf, spine)
