"""Fabrics of many switches: how many parts, how full their links, what a job pays for its place.
Derived in chapter 8.

`radix` counts the ports of a switch, `levels` the layers of switches between hosts and the top.
`bandwidth` (byte/s) is one link's in one direction; `oversubscription` is what a leaf takes from
its hosts over what it can send up. `per_node` counts the GPUs of a node, and its rails: GPU i of
every node hangs on the leaf of rail i. Collectives on two levels are `lightspeed.collectives`; what
a job puts on each link is `lightspeed_models.simulators.fabric_traffic`.

Sources: Al-Fares, Loukissas and Vahdat, "A Scalable, Commodity Data Center Network Architecture"
(SIGCOMM 2008); Qian et al., "Alibaba HPN" (SIGCOMM 2024); NVIDIA, "Doubling all2all Performance
with NCCL 2.12" (2022) for PXN; Graham et al., "SHARP" (COMHPC 2016).
"""

import math
from dataclasses import dataclass

from lightspeed.collectives import Levels, bandwidth_bound, in_network_time
from lightspeed.elementwise import Result, Value, any_of, ceil, maximum, minimum
from lightspeed.errors import BadArgument
from lightspeed.law import checked, count, fraction, law, nonnegative, positive
from lightspeed.roofline import BANDWIDTH

__all__ = (
    "Collisions", "Parts", "Places", "across_rate", "alltoall_places", "ecmp_collisions",
    "fat_tree_hosts", "fat_tree_switches", "leaf_spine", "oversubscription",
    "sharp_time",
)  # fmt: skip

RADIX = count(low=2, high=4096, hint="Ports of one switch, each at full rate.")
LEVELS = count(high=8, hint="Layers of switches: two or three in what is built.")
GPUS = count(hint="GPUs of a node; each has a link of its own.")
RATIO = positive(hint="1 is full bandwidth: a leaf takes as much as it can send up. 2 is half.")
LATENCY = nonnegative("s")
ROUTES = ("direct", "pxn")


# ---------------------------------------------------------------- parts


@law(radix=RADIX, levels=LEVELS)
def fat_tree_hosts(radix: Value, levels: Value) -> Result:
    """Hosts that a fat tree of full bandwidth can join: 2 (radix / 2)^levels; an odd port is left
    over.

    >>> fat_tree_hosts(64, 2), fat_tree_hosts(64, 3)
    (2,048, 65,536)
    """
    return 2.0 * (radix // 2) ** levels


@law(radix=RADIX, levels=LEVELS)
def fat_tree_switches(radix: Value, levels: Value) -> Result:
    """Switches of a fat tree of full bandwidth: (2 levels - 1) (radix / 2)^(levels - 1).

    >>> fat_tree_switches(64, 2), fat_tree_switches(64, 3)
    (96, 5,120)
    """
    return (2.0 * levels - 1) * (radix // 2) ** (levels - 1)


@law(down=positive("byte/s"), up=positive("byte/s"))
def oversubscription(down: Value, up: Value) -> Result:
    """Ratio of what a switch's hosts can send together to what the switch can send up.

    >>> oversubscription(48 * 50e9, 16 * 50e9)
    3
    """
    return down / up


@dataclass(frozen=True)
class Parts:
    """The parts of a fabric; `cables` join hosts to leaves and leaves to spines, and each leaf has
    `links` to each spine on average.
    """

    leaves: float
    spines: float
    cables: float
    links: float


@law(
    {},
    hosts=count(hint="Links to join: one for each GPU, not one for each node."),
    radix=RADIX,
    oversubscription=RATIO,
)
def leaf_spine(hosts: Value, radix: Value, oversubscription: Value = 1.0) -> Parts:
    """The `Parts` of a two-layer fabric for `hosts`: each leaf gives hosts as many ports as
    `oversubscription` allows, and the others go up, spread over the fewest spines with enough
    ports. If `links` is not whole, some spines get one more cable from a leaf than others, and the
    full rate needs traffic weighted accordingly.

    >>> leaf_spine(1024, 64)
    Parts(leaves=32.0, spines=16.0, cables=2048.0, links=2.0)
    >>> round(leaf_spine(1025, 64).links, 2)
    1.88

    Raises BadArgument for more leaves than a spine has ports: two layers do not join them.
    """
    # The ports of a leaf for hosts, whole; what is left over goes up. A hair below whole is whole.
    up = ceil(radix / (1 + oversubscription) - 1e-9)
    down = maximum(radix - up, 1.0)
    leaves = ceil(hosts / down)
    if any_of(leaves > radix):  # a spine has a port for each leaf
        raise BadArgument(
            "leaf_spine", "hosts", hosts, f"at most {radix * down} links",
            "Two layers join no more at this ratio: take switches of more ports, or three layers.",
        )  # fmt: skip
    spines = ceil(leaves * up / radix)
    return Parts(leaves, spines, hosts + leaves * up, up / spines)


# ---------------------------------------------------------------- locality


@law("byte/s", bandwidth=BANDWIDTH, oversubscription=RATIO, leaving=fraction())
def across_rate(bandwidth: Value, oversubscription: Value, leaving: Value = 1.0) -> Result:
    """Rate (byte/s) of one host if the share `leaving` of its traffic leaves its leaf, with all
    hosts alike and the load spread evenly.

    >>> across_rate(50e9, 4, 0.5)
    25 GB/s
    """
    return bandwidth / maximum(oversubscription * leaving, 1.0)


@dataclass(frozen=True)
class Places:
    """Shares of a rank's traffic: inside its node, through one leaf, and over a spine."""

    inside: float
    leaf: float
    spine: float


@law(
    {},
    per_node=GPUS,
    nodes=count(),
    pod_nodes=count(hint="Nodes whose rails share leaves."),
    route=ROUTES,
)
def alltoall_places(
    per_node: Value, nodes: Value, pod_nodes: Value, route: str = "direct"
) -> Places:
    """The `Places` of an all-to-all on rails, on average over its ranks: pods are full, but for the
    last. `pxn` hands data to the GPU of the right rail over NVLink first, so that no spine is
    crossed within a pod; that part counts as `leaf`.

    >>> alltoall_places(8, 16, 16)
    Places(inside=0.05511811023622047, leaf=0.11811023622047244, spine=0.8267716535433071)
    >>> alltoall_places(8, 16, 16, "pxn").spine
    0.0
    """
    others = maximum(per_node * nodes - 1, 1.0)
    rest = nodes % pod_nodes  # nodes of the last pod
    near = ((nodes - rest) * (pod_nodes - 1) + rest * (rest - 1)) / nodes
    inside = (per_node - 1) / others
    leaf = near * (per_node if route == "pxn" else 1) / others
    beyond = (nodes - 1 - near) * per_node / others
    return Places(
        inside, leaf, beyond + (0.0 if route == "pxn" else near * (per_node - 1) / others)
    )


# ---------------------------------------------------------------- collisions


@dataclass(frozen=True)
class Collisions:
    """Hashing of flows to paths: mean number of flows on the fullest path, probability that no two
    flows share a path, and mean share of idle paths.
    """

    fullest: float
    none: float
    idle: float


def ecmp_collisions(flows: int, paths: int) -> Collisions:
    """The `Collisions` of `flows` equal flows, each hashed independently to one of `paths`; exact.

    A job ends with its last flow, so `fullest` is also its slowdown compared with one path per
    flow.

    >>> ecmp_collisions(8, 8).none, round(ecmp_collisions(8, 8).fullest, 2)
    (0.00240325927734375, 2.6)
    """
    flows = checked("ecmp_collisions", "flows", flows, count(high=512))
    paths = checked("ecmp_collisions", "paths", paths, count(high=4096))
    above, k = 0.0, 0
    while (over := 1 - _at_most(k, flows, paths)) > 1e-12:
        above, k = above + over, k + 1
    apart = math.prod(1 - i / paths for i in range(flows)) if flows <= paths else 0.0
    return Collisions(above, apart, (1 - 1 / paths) ** flows)


def _at_most(k: int, flows: int, paths: int) -> float:
    """The chance that no path has more than k flows: of as many paths, each with a Poisson number
    of flows up to k, the coefficient of all flows, over that without a limit.
    """
    if k * paths < flows:
        return 0.0
    mean = flows / paths
    one = [math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) for i in range(k + 1)]
    whole = math.exp(flows * math.log(flows) - flows - math.lgamma(flows + 1))
    return min(_power(one, paths, flows)[flows] / whole, 1.0)


def _power(polynomial: list[float], exponent: int, degree: int) -> list[float]:
    """A polynomial to a power, by squaring, up to a degree."""
    result = [1.0]
    while exponent:
        if exponent % 2:
            result = _product(result, polynomial, degree)
        polynomial, exponent = _product(polynomial, polynomial, degree), exponent // 2
    return result + [0.0] * (degree + 1 - len(result))


def _product(a: list[float], b: list[float], degree: int) -> list[float]:
    c = [0.0] * min(len(a) + len(b) - 1, degree + 1)
    for i, x in enumerate(a[: degree + 1]):
        for j, y in enumerate(b[: degree + 1 - i], i):
            c[j] += x * y
    return c


# ---------------------------------------------------------------- switches that add


@law(
    {"inside": "s", "across": "s", "lower": "s", "upper": "s"},
    size=nonnegative("byte"),
    per_node=GPUS,
    nodes=count(),
    inside=BANDWIDTH,
    network=BANDWIDTH,
    network_latency=LATENCY,
)
def sharp_time(
    size: Value,
    per_node: Value,
    nodes: Value,
    inside: Value,
    network: Value,
    network_latency: Value = 0.0,
) -> Levels:
    """The `Levels` (s) of an all-reduce whose part across nodes the switches add (SHARP): each GPU
    sends its share of S / per_node up once and gets it back once.

    >>> round(sharp_time(8e9, 8, 4, 450e9, 50e9).across * 1e3, 2)
    20.0
    """
    near = bandwidth_bound.__wrapped__("all_reduce", size, per_node, inside)
    alone = minimum(nodes - 1, 1)
    far = alone * in_network_time.__wrapped__(size / per_node, network, network_latency)
    return Levels(near, far, maximum(near, far), near + far)
