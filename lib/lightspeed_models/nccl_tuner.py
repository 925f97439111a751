"""NCCL's own tuning model: the latencies and caps on bandwidth by which it picks an algorithm. Used
in chapter 7.

time = latency + S / algbw for each algorithm (Ring, Tree, NVLS, NVLSTree, PAT) and protocol (LL,
LL128, Simple); NCCL runs the smallest. Its constants are tuned to choose, not to predict: chapter 7
plots where they fail, and `nccl_fit` beside it fits what measurements say. n counts ranks (GPUs),
`nodes` hosts. The table of a real job, as NCCL prints it, is read by
`lightspeed_tools.nccl.tuning_log`.

Source: NVIDIA/nccl, src/graph/tuning.cc, at the commit of each release in catalog/nccl_tuning.toml.
Left out: CollNet (SHARP), broadcast and reduce, and the search that finds channels and their rates.
"""

import functools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

from lightspeed.collectives import RANKS, RINGS, SIZE, ring_steps
from lightspeed.elementwise import Result, Value, any_of, floor_log2, is_array, maximum, minimum
from lightspeed.elementwise import where as pick
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import Argument, check_fields, checked, count, law, nonnegative
from lightspeed.roofline import BANDWIDTH

PROTOCOLS = ("LL", "LL128", "Simple")
LINKS = ("NVLINK", "PCI")
ARCHITECTURES = ("volta", "ampere", "hopper", "blackwell")
# What posting a message to the network costs NCCL's proxy (s), by the CPU of the hosts.
NET_OVERHEAD = {"intel": 1e-6, "amd": 2e-6, "mixed": 1e-6, "arm": 1e-6}
PLATEAU = 1.4  # a Simple ring across nodes, from 64 bytes a channel and rank on
PLATEAU_VOLTA = 1.9
OVERHEAD = nonnegative("s", hint="NCCL takes 1 µs on Intel hosts and 2 µs on AMD hosts.")
JOB = {"n": RANKS, "nodes": count()}
ONE_NUMBER = "one number: each size may choose differently"


@functools.cache
def _releases() -> dict[str, SimpleNamespace]:
    """Release -> its tables and rules, whole: the file states what each release changed."""
    text = files("lightspeed.catalog").joinpath("nccl_tuning.toml").read_text("utf-8")
    result: dict[str, SimpleNamespace] = {}
    now: dict[str, Any] = {}
    for changes in tomllib.loads(text)["release"]:
        now = _merged(now, changes)
        result[now["name"]] = SimpleNamespace(**now | {"rules": SimpleNamespace(**now["rules"])})
    return result


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    return dict(old) | {
        k: _merged(old.get(k, {}), v) if isinstance(v, dict) else v for k, v in new.items()
    }


RELEASES = tuple(_releases())
NEWEST = RELEASES[-1]


def tables(release: str = NEWEST) -> SimpleNamespace:
    """The constants of a release of NCCL: `base`, `step`, `ll_bus`, ... (µs and GB/s), its
    `commit` and `rules`.

    >>> tables().step["NVLINK"]["Ring"]
    [0.6, 1.9, 3.4]
    """
    return _releases()[one_of("tables", "release", release, RELEASES)]


def _at_least_a_rank_each(where: str, n: Value, nodes: Value) -> None:
    if any_of(n < nodes):
        raise BadArgument(where, "n", n, "at least one rank for each node", RANKS.hint)


def _between_nodes(
    algorithm: str, protocol: str, n: Value, nodes: Value, net_latency: Value, release: str
) -> Result:
    """µs of a step between nodes; Simple is followed by a flush, the network's latency again."""
    entry, which = tables(release), PROTOCOLS.index(protocol)
    step, tree = entry.step["NET"][algorithm][which], entry.step["NET"]["Tree"][which]
    if entry.rules.alone_as_tree:
        step = pick(n == nodes, tree, step)
    return step + net_latency * 1e6 * (2 if protocol == "Simple" else 1)


@law(
    "s",
    **JOB,
    collective=RINGS,
    protocol=PROTOCOLS,
    link=LINKS,
    net_overhead=OVERHEAD,
    net_latency=nonnegative(
        "s", hint="What the network's plugin declares: 0 for InfiniBand, 75 µs for EFA of a p5."
    ),
    plateau=Argument(low=1.0, above=False),
    release=RELEASES,
)
def ring_latency(
    n: Value,
    nodes: Value = 1,
    collective: str = "all_reduce",
    protocol: str = "Simple",
    link: str = "NVLINK",
    net_overhead: Value = NET_OVERHEAD["intel"],
    net_latency: Value = 0.0,
    plateau: Value = 1.0,
    release: str = NEWEST,
) -> Result:
    """Seconds that NCCL charges a ring before any byte: a base, and a step for each hop, dearer
    between nodes.

    A step inside a node costs at least the network's overhead once there are several nodes.
    `plateau` multiplies all (1.4 for a large Simple all-reduce across nodes).

    >>> round(ring_latency(8, 1, protocol="LL") * 1e6, 1)
    15.0
    >>> round(ring_latency(1000, 125, net_overhead=NET_OVERHEAD["amd"], plateau=1.4) * 1e3, 1)
    19.6
    """
    _at_least_a_rank_each("ring_latency", n, nodes)
    entry, which = tables(release), PROTOCOLS.index(protocol)
    overhead = net_overhead * 1e6 * (3 if protocol == "Simple" else 1) * minimum(nodes - 1, 1)
    inside = maximum(entry.step[link]["Ring"][which], overhead)
    across = _between_nodes("Ring", protocol, n, nodes, net_latency, release)
    closing = 2 if entry.rules.closes_the_ring and collective == "all_reduce" else 0
    between = ring_steps(collective, nodes) + closing * minimum(nodes - 1, 1)
    hops = (ring_steps(collective, n) - between) * inside + between * across
    return (entry.base["Ring"][which] + hops) * plateau * 1e-6


@law("s", **JOB, protocol=PROTOCOLS, link=LINKS, net_latency=nonnegative("s"), release=RELEASES)
def tree_latency(
    n: Value,
    nodes: Value = 1,
    protocol: str = "Simple",
    link: str = "NVLINK",
    net_latency: Value = 0.0,
    release: str = NEWEST,
) -> Result:
    """Seconds that NCCL charges an all-reduce on a tree: a chain inside each node, a tree of
    log2(nodes) across, twice.

    >>> round(tree_latency(1000, 125) * 1e6, 1)
    232.4
    """
    _at_least_a_rank_each("tree_latency", n, nodes)
    entry, which = tables(release), PROTOCOLS.index(protocol)
    across = _between_nodes("Tree", protocol, n, nodes, net_latency, release)
    chain = (n // nodes - 1) * entry.step[link]["Tree"][which]
    return (entry.base["Tree"][which] + 2 * (chain + floor_log2(nodes) * across)) * 1e-6


@law("s", nodes=count(), net_latency=nonnegative("s"), release=RELEASES)
def nvls_latency(nodes: Value = 1, net_latency: Value = 0.0, release: str = NEWEST) -> Result:
    """Seconds that NCCL charges an all-reduce in the NVSwitch, with a tree across nodes if there
    are several.

    >>> round(nvls_latency(4) * 1e6, 1)
    108.6
    """
    entry = tables(release)
    across = _between_nodes("NVLSTree", "Simple", 2 * nodes, nodes, net_latency, release)
    return (entry.step["NVLINK"]["NVLS"][2] + 2 * floor_log2(nodes) * across) * 1e-6


@dataclass(frozen=True)
class Cost:
    """What NCCL charges an algorithm: its `latency` (s) and `bandwidth` (algbw, byte/s)."""

    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Choice:
    """An algorithm and protocol with `latency` (s), `bandwidth` (algbw, byte/s), `time` (s)."""

    algorithm: str
    protocol: str
    latency: float
    bandwidth: float
    time: float


@dataclass(frozen=True)
class Job:
    """What NCCL's tuner knows: `inside` and `across`, all channels' byte/s one way inside and
    between nodes; `cpu` of hosts; `net_latency` by the network's plugin (s).
    """

    n: int
    nodes: int = 1
    collective: str = "all_reduce"
    architecture: str = "hopper"
    inside: float = 370.8e9
    across: float = 400e9
    channels: int = 16
    nvls: bool = True
    cpu: str = "intel"
    link: str = "NVLINK"
    net_latency: float = 0.0
    net_overhead: float = -1.0
    release: str = NEWEST

    def __post_init__(self) -> None:
        check_fields(self, RELEASES, "release")
        check_fields(self, RINGS, "collective")
        check_fields(self, tuple(tables(self.release).nvlink), "architecture")
        check_fields(self, tuple(NET_OVERHEAD), "cpu")
        check_fields(self, LINKS, "link")
        check_fields(self, count(), "n", "nodes", "channels")
        check_fields(self, BANDWIDTH, "inside", "across")
        _at_least_a_rank_each("Job", self.n, self.nodes)
        if self.collective != "all_reduce" and not tables(self.release).rules.nvls_measured:
            older = "all_reduce: the other collectives are modelled from release 2.28.3 on"
            raise BadArgument("Job", "collective", self.collective, older)

    @property
    def overhead(self) -> float:
        """Seconds to post a message: NCCL_NET_OVERHEAD if given, else by the CPU."""
        return self.net_overhead if self.net_overhead >= 0 else NET_OVERHEAD[self.cpu]

    @property
    def scale(self) -> int:
        """The column of NCCL's rates: one node, two nodes, more."""
        return min(self.nodes, 3) - 1


def tuning_table(job: Job) -> dict[tuple[str, str], Cost]:
    """(algorithm, protocol) -> `Cost` of a `Job`: what NCCL prints under NCCL_DEBUG_SUBSYS=TUNING,
    without what is disabled.

    >>> ring = tuning_table(Job(8))["Ring", "Simple"]
    >>> round(ring.latency * 1e6, 1), round(ring.bandwidth / 1e9, 1)
    (56.0, 211.9)
    """
    costs: dict[tuple[str, str], Cost] = {}
    for protocol in PROTOCOLS if job.link == "NVLINK" else ("LL", "Simple"):  # LL128 needs NVLink
        latency = ring_latency(
            job.n, job.nodes, job.collective, protocol, job.link, job.overhead, job.net_latency,
            release=job.release,
        )  # fmt: skip
        as_algbw = job.n / max(ring_steps(job.collective, job.n), 1)
        costs["Ring", protocol] = Cost(latency, _ring_bus(job, protocol) * as_algbw)
        if job.collective == "all_reduce":
            latency = tree_latency(
                job.n, job.nodes, protocol, job.link, job.net_latency, job.release
            )
            costs["Tree", protocol] = Cost(latency, _tree_bus(job, protocol) / 2)
    switch = _nvls_bandwidth(job)
    if switch > 0:
        algorithm = "NVLS" if job.nodes == 1 else "NVLSTree"
        latency = nvls_latency(job.nodes, job.net_latency, job.release)
        costs[algorithm, "Simple"] = Cost(latency, switch)
    if job.collective != "all_reduce" and job.n == job.nodes > 1:
        across = _between_nodes("Tree", "Simple", job.n, job.nodes, job.net_latency, job.release)
        base = tables(job.release).base["PAT"][2]
        latency = (base + floor_log2(job.nodes) * across / 3.5 + job.n * 2.8) * 1e-6
        costs["PAT", "Simple"] = Cost(latency, _bus(job) * tables(job.release).rules.pat)
    return costs


def choices(
    job: Job, size: float, table: Mapping[tuple[str, str], Cost] | None = None
) -> tuple[Choice, ...]:
    """NCCL's `Choice`s for `size` bytes, fastest first; `table`: one it printed, or its model's."""
    size = checked("choices", "size", size, SIZE)
    if is_array(size):
        raise BadArgument("choices", "size", size, ONE_NUMBER)
    rows = []
    for (algorithm, protocol), cost in (tuning_table(job) if table is None else table).items():
        latency, bandwidth = cost.latency, cost.bandwidth
        if job.collective == "all_reduce":
            bandwidth *= _kept(job, algorithm, protocol, size)
            latency *= _plateau(job, algorithm, protocol, size)
        rows.append(Choice(algorithm, protocol, latency, bandwidth, latency + size / bandwidth))
    return tuple(sorted(rows, key=lambda choice: choice.time))


def nccl_choices(
    size: float,
    n: int,
    nodes: int = 1,
    architecture: str = "hopper",
    links: int = 18,
    network: float = 400e9,
    channels: int = 16,
    nvls: bool = True,
    **more: Any,
) -> tuple[Choice, ...]:
    """The `Choice`s that NCCL weighs for S = `size` bytes, fastest first, on a machine given by its
    links.

    `links` are the NVLinks of a GPU, `network` what a node sends (byte/s, one direction, all its
    adapters). NCCL finds its channels by a search; here they carry all that the links do. More of
    `Job`: cpu, release, ...

    >>> [f"{c.algorithm} {c.protocol}" for c in nccl_choices(1e9, 8)[:2]]
    ['NVLS Simple', 'Ring Simple']
    """
    one_of("nccl_choices", "architecture", architecture, ARCHITECTURES)
    for name, value in (("size", size), ("n", n), ("nodes", nodes)):
        if is_array(value):
            raise BadArgument("nccl_choices", name, value, ONE_NUMBER)
    links = checked("nccl_choices", "links", links, count())
    network = checked("nccl_choices", "network", network, BANDWIDTH)
    speed = tables(more.get("release", NEWEST)).nvlink
    if architecture not in speed:
        expected = f"a release that knows {architecture}"
        raise BadArgument("nccl_choices", "release", more["release"], expected)
    inside = links * speed[architecture] * 1e9
    rates: dict[str, Any] = {"inside": inside, "across": min(inside, network)}
    job = Job(n, nodes, architecture=architecture, channels=channels, nvls=nvls, **rates, **more)
    return choices(job, size)


def nccl_time(size: float, n: int, nodes: int = 1, **machine: Any) -> float:
    """Seconds of an all-reduce as NCCL predicts it for the algorithm that it would pick; see
    `nccl_choices`.

    >>> round(nccl_time(16e9, 1000, 125, nvls=False) * 1e3, 1) > 80
    True
    """
    return nccl_choices(size, n, nodes, **machine)[0].time


def _bus(job: Job) -> float:
    """byte/s of all channels: inside a node on up to two nodes, as NCCL has it, else between."""
    return job.inside if job.nodes <= 2 else job.across


def _ll_cap(job: Job) -> float:
    """byte/s at most under LL: by the GPU on one node, by the vendor of the CPU on several."""
    entry = tables(job.release)
    amd = job.cpu == "amd" or (job.cpu == "mixed" and entry.rules.mixed_as_amd)
    row = job.architecture if job.nodes == 1 else ARCHITECTURES[1 if amd else 0]
    return float(entry.ll_bus[row][job.scale]) * 1e9


def _per_channel(job: Job, name: str) -> float:
    rates = getattr(tables(job.release), name)[job.architecture]
    return job.channels * float(rates[job.scale]) * 1e9


def _ring_bus(job: Job, protocol: str) -> float:
    if protocol == "LL":
        return min(_bus(job) / 2, _ll_cap(job))
    if protocol == "Simple":
        return _bus(job)
    share = tables(job.release).rules.alone_ll128 if job.n < 2 * job.nodes else 0.92
    return min(_bus(job) * share, _per_channel(job, "ring_ll128"))


def _tree_bus(job: Job, protocol: str) -> float:
    bus = min(_bus(job) * 0.92, _per_channel(job, "tree"))
    if protocol == "LL":
        bus = min(bus / 3.8, _ll_cap(job))
    if protocol == "LL128":
        bus = min(bus * (7 / 9 if job.nodes == 1 else 120 / 128), _per_channel(job, "tree_ll128"))
    return bus * (0.85 if job.n == job.nodes else 1)  # one GPU does all of a node's sending


def _nvls_bandwidth(job: Job) -> float:
    """algbw (byte/s) in the NVSwitch; 0 where it cannot add."""
    entry, n, nodes = tables(job.release), job.n, job.nodes
    adders = job.nvls and job.link == "NVLINK" and job.architecture in ("hopper", "blackwell")
    if not adders or job.channels < 2 or n == nodes:
        return 0.0
    if not entry.rules.nvls_measured:
        across = math.inf if nodes == 1 else job.across if nodes == 2 else job.across / 2
        return min(job.inside, across) * 5 / 6
    efficiency = float(entry.nvls_efficiency[job.architecture])
    inside = job.inside * efficiency * (job.channels - 1) / job.channels
    if job.collective != "all_reduce":
        return inside * (n / nodes - 1) / (n / nodes) if nodes == 1 else 0.0
    bus: float = 2 * inside
    if nodes > 1:
        bus = min(bus, job.across * (2 if nodes == 2 else 1), _per_channel(job, "nvls_tree"))
    return bus * n / (2 * (n - 1))


def _kept(job: Job, algorithm: str, protocol: str, size: float) -> float:
    """The share of bandwidth that a tree keeps at this size, up to 256 MiB for Tree."""
    entry = tables(job.release)
    shares: list[float] = entry.tree_keeps[protocol]
    power = math.frexp(max(size, 1) / 64)[1] - 1
    corrected = algorithm == "NVLSTree" and entry.rules.nvls_tree_keeps
    corrected = corrected and job.architecture == "blackwell" and job.cpu != "arm"
    powers = 23 if algorithm == "Tree" else 24 if corrected else 0
    return shares[power] if 0 <= power < powers else 1.0


def _plateau(job: Job, algorithm: str, protocol: str, size: float) -> float:
    """A large Simple ring across nodes costs more than its steps."""
    small = size < 64 * job.channels * job.n
    if (algorithm, protocol) != ("Ring", "Simple") or job.nodes == 1 or small:
        return 1
    return PLATEAU_VOLTA if job.architecture == "volta" else PLATEAU
