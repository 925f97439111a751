"""Collectives: what a collective must move, how long it takes, and what its bandwidths mean.
Derived in chapter 7.

`size` is the S of nccl-tests, in bytes: the buffer of one rank; for all_gather, reduce_scatter,
gather, scatter and alltoall the whole buffer, the shards of all ranks together. `n` counts ranks
(GPUs), never nodes. `bandwidth` (byte/s) is what one rank sends, and at the same time receives, in
one direction; `latency` (s) is the alpha of one step. For the kinds of number see
`lightspeed.law.law`.

Sources: nccl-tests, doc/PERFORMANCE.md; Thakur, Rabenseifner and Gropp (IJHPCA 19(1), 2005);
Sanders, Speck and Traeff, two-tree (Parallel Computing 35(12), 2009); Austin et al., "How to Scale
Your Model" (2025).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lightspeed.elementwise import Result, Value, floor_log2, is_array, maximum, minimum, where
from lightspeed.errors import BadArgument
from lightspeed.law import Argument, count, law, nonnegative, positive
from lightspeed.roofline import BANDWIDTH

__all__ = (
    "Levels", "algbw", "algbw_from_busbw", "alltoall_time", "bandwidth_bound", "busbw",
    "busbw_factor", "double_tree_time", "half_rate_size", "halving_doubling_time",
    "hierarchical_time", "in_network_time", "latency_bound", "level_bandwidth", "nvls_time",
    "overlapped_time", "recursive_doubling_time", "replicas", "ring_steps", "ring_time",
    "torus_gather_time", "tree_time",
)  # fmt: skip

TWICE, ONCE = ("all_reduce",), ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter")
WHOLE = ("broadcast", "reduce", "sendrecv", "hypercube")
COLLECTIVES = TWICE + ONCE + WHOLE
RINGS = ("all_reduce", "all_gather", "reduce_scatter")
RANKS = count(hint="n counts ranks (GPUs), not nodes.")
SIZE, LATENCY = nonnegative("byte"), nonnegative("s")
EXPONENT = Argument(
    low=0.5,
    above=False,
    high=1.0,
    hint="1 adds the two times, 1/2 is a pipeline with the best chunks.",
)
ALGORITHM = {"size": SIZE, "n": RANKS, "bandwidth": BANDWIDTH, "latency": LATENCY}


# ---------------------------------------------------------------- algbw, busbw


@law(collective=COLLECTIVES, n=RANKS)
def busbw_factor(collective: str, n: Value) -> Result:
    """busbw / algbw: the bytes each rank must send per byte of S, which makes busbw comparable to a
    link's rate.

    >>> busbw_factor("all_reduce", 2), busbw_factor("all_reduce", 8), busbw_factor("all_gather", 8)
    (1, 1.75, 0.875)
    """
    if collective in WHOLE:
        return n / n
    return (2 if collective in TWICE else 1) * (n - 1) / n


@law("byte/s", size=SIZE, time=positive("s"))
def algbw(size: Value, time: Value) -> Result:
    """Rate (byte/s) at which the caller's buffer is processed: S / t. It falls with n even when
    every link is full.

    >>> algbw(16e9, 0.1)
    160 GB/s
    """
    return size / time


@law("byte/s", collective=COLLECTIVES, n=RANKS, algbw=nonnegative("byte/s"))
def busbw(collective: str, n: Value, algbw: Value) -> Result:
    """Rate (byte/s) on the wire of each rank if only ranks do arithmetic: compare it with a link's
    rate.

    >>> round(busbw("all_reduce", 1000, 156e9) / 1e9, 1)
    311.7
    """
    return algbw * busbw_factor.__wrapped__(collective, n)


@law("byte/s", collective=COLLECTIVES, n=count(low=2, hint=RANKS.hint), busbw=nonnegative("byte/s"))
def algbw_from_busbw(collective: str, n: Value, busbw: Value) -> Result:
    """The algbw (byte/s) behind a busbw; undefined for a single rank.

    >>> algbw_from_busbw("all_reduce", 8, 350e9)
    200 GB/s
    """
    return busbw / busbw_factor.__wrapped__(collective, n)


# ---------------------------------------------------------------- bounds


@law("s", collective=COLLECTIVES, size=SIZE, n=RANKS, bandwidth=BANDWIDTH)
def bandwidth_bound(collective: str, size: Value, n: Value, bandwidth: Value) -> Result:
    """Lower bound (s) on an all-reduce, or another `collective`, for algorithms in which only ranks
    reduce: S x factor / bandwidth.

    Switches that add (`in_network_time`, `nvls_time`) do beat it: their busbw may exceed the link.

    >>> round(bandwidth_bound("all_reduce", 1e9, 8, 450e9) * 1e3, 3)
    3.889
    """
    return size * busbw_factor.__wrapped__(collective, n) / bandwidth


@law("s", n=RANKS, latency=LATENCY)
def latency_bound(n: Value, latency: Value) -> Result:
    """Lower bound (s) for any algorithm, however small S: each step can at most double the number
    of ranks that hold a piece of data.

    >>> latency_bound(1000, 0.5)
    5 s
    """
    return _ceil_log2(n) * latency


def _ceil_log2(n: Value) -> Result:
    return floor_log2(n) + where(2.0 ** floor_log2(n) < n, 1, 0)


# ---------------------------------------------------------------- algorithms: alpha-beta times


def ring_steps(collective: str, n: Value) -> Result:
    """Steps of a ring: n - 1, twice that for all_reduce (a reduce_scatter, then an all_gather)."""
    return (2 if collective == "all_reduce" else 1) * (n - 1)


@law("s", **ALGORITHM, collective=RINGS)
def ring_time(
    size: Value, n: Value, bandwidth: Value, latency: Value = 0.0, collective: str = "all_reduce"
) -> Result:
    """Seconds of an all-reduce, or of another `collective`, in a ring: each step costs alpha and
    moves S / n. Meets the bandwidth bound; alpha counts `ring_steps` times.

    >>> round(ring_time(10e9, 256, 50e9, 2e-6) * 1e3, 1)
    399.5
    """
    return ring_steps(collective, n) * (latency + size / (n * bandwidth))


@law("s", **ALGORITHM)
def tree_time(size: Value, n: Value, bandwidth: Value, latency: Value = 0.0) -> Result:
    """Seconds of an all-reduce that reduces the whole message up a tree and sends it back down,
    unpipelined.

    >>> tree_time(1e9, 8, 1e9)
    6 s
    """
    return 2 * _ceil_log2(n) * (latency + size / bandwidth)


@law("s", **ALGORITHM)
def double_tree_time(size: Value, n: Value, bandwidth: Value, latency: Value = 0.0) -> Result:
    """Seconds of a pipelined all-reduce on two trees, each with half of S, whose leaves are the
    other's nodes.

    The busiest rank then sends 2 S (S of two ranks, 1.5 S of three), so it has a tree's latency and
    almost a ring's bandwidth. The message is long: chunks that fill the trees cost nothing.

    >>> double_tree_time(1e9, 8, 1e9), double_tree_time(1e9, 2, 1e9)
    (2 s, 1 s)
    """
    busiest = where(n > 1, minimum(n / 2, 2.0), 0.0)
    return 2 * _ceil_log2(n) * latency + busiest * size / bandwidth


@law("s", **ALGORITHM)
def recursive_doubling_time(
    size: Value, n: Value, bandwidth: Value, latency: Value = 0.0
) -> Result:
    """Seconds of an all-reduce in which partners at distance 1, 2, 4, ... exchange all their data:
    best for small S.

    Ranks beyond the largest power of two hand in their data first and get the result last.

    >>> recursive_doubling_time(0.0, 8, 1e9, 1.0), recursive_doubling_time(0.0, 9, 1e9, 1.0)
    (3 s, 5 s)
    """
    return (floor_log2(n) + _leftover_steps(n)) * (latency + size / bandwidth)


@law("s", **ALGORITHM)
def halving_doubling_time(size: Value, n: Value, bandwidth: Value, latency: Value = 0.0) -> Result:
    """Seconds of Rabenseifner's all-reduce: recursive halving, then doubling.

    When n is a power of two it meets the bandwidth bound, in twice the steps of the latency bound.

    >>> halving_doubling_time(8e9, 8, 1e9, 1.0)
    20 s
    """
    rounds = floor_log2(n)
    core = 2 * rounds * latency + 2 * (1 - 0.5**rounds) * size / bandwidth
    return core + _leftover_steps(n) * (latency + size / bandwidth)


def _leftover_steps(n: Value) -> Result:
    """2 if n is no power of two: the ranks left over join before and leave after."""
    return where(2.0 ** floor_log2(n) < n, 2, 0)


@law("s", size=SIZE, bandwidth=BANDWIDTH, latency=LATENCY)
def in_network_time(size: Value, bandwidth: Value, latency: Value = 0.0) -> Result:
    """Seconds of an all-reduce in which the switch adds and sends the sum to all, as InfiniBand's
    SHARP does: S goes up once and comes down once. NVLink's is `nvls_time`.

    It does not depend on n, so its busbw, which counts 2 (n - 1) / n, rises with n past the link's
    rate.

    >>> round(busbw("all_reduce", 8, algbw(1e9, in_network_time(1e9, 270e9))) / 1e9, 1)
    472.5
    """
    return latency + size / bandwidth


@law("s", **ALGORITHM)
def nvls_time(size: Value, n: Value, bandwidth: Value, latency: Value = 0.0) -> Result:
    """Seconds of an all-reduce through NVLink's switch (NVLS): each rank reads the sum of its n-th
    of all buffers through the switch, and stores it as a multicast.

    So S + S / n leave a rank, and as much arrives: busbw is at most 2 (n - 1) / (n + 1) of the
    link, 1.56 on eight (NCCL 2.30.7, src/device/all_reduce.h, lines 441-456: headRank).

    >>> round(busbw("all_reduce", 8, algbw(1e9, nvls_time(1e9, 8, 450e9))) / 450e9, 2)
    1.56
    """
    return where(n > 1, latency + (1 + 1 / n) * size / bandwidth, 0.0)


@law("s", **ALGORITHM)
def alltoall_time(size: Value, n: Value, bandwidth: Value, latency: Value = 0.0) -> Result:
    """Seconds of an all-to-all in n - 1 exchanges of S / n with each other rank.

    >>> alltoall_time(8e9, 8, 1e9)
    7 s
    """
    return (n - 1) * (latency + size / (n * bandwidth))


@law("s", latency=LATENCY, transfer=LATENCY, exponent=EXPONENT)
def overlapped_time(latency: Value, transfer: Value, exponent: Value = 0.5) -> Result:
    """Seconds of a pipeline whose steps have a total `latency` (s) and whose data take `transfer`
    (s): (l^e + t^e)^(1/e).

    Cut into k chunks, a message passes d hops in (d - 1 + k) (alpha + t / k): a short pipeline
    fills fast, but each chunk pays alpha. The best k gives e = 1/2. With e = 1 nothing is hidden or
    lost: alpha-beta.

    >>> overlapped_time(1.0, 9.0), overlapped_time(1.0, 9.0, exponent=1)
    (16 s, 10 s)
    """
    # With e = 1 the general form would cost the last digits.
    general = is_array(exponent) or exponent != 1
    return (
        (latency**exponent + transfer**exponent) ** (1 / exponent)
        if general
        else latency + transfer
    )


@law("byte", latency=LATENCY, bandwidth=BANDWIDTH, exponent=EXPONENT)
def half_rate_size(latency: Value, bandwidth: Value, exponent: Value = 1.0) -> Result:
    """Bytes at which half of `bandwidth` is reached: alpha x beta, 5.8 times that in the best
    pipeline.

    >>> half_rate_size(10e-6, 1e9), round(half_rate_size(10e-6, 1e9, 0.5))
    (10 kB, 58284)
    """
    return latency * bandwidth / (2**exponent - 1) ** (1 / exponent)


@dataclass(frozen=True)
class Levels:
    """Seconds inside nodes and across; `lower` if both overlap perfectly, `upper` if not at all."""

    inside: float
    across: float
    lower: float
    upper: float


@law(
    {"inside": "s", "across": "s", "lower": "s", "upper": "s"},
    size=SIZE,
    per_node=count(hint="Ranks (GPUs) in a node."),
    nodes=count(),
    inside=BANDWIDTH,
    network=BANDWIDTH,
    inside_latency=LATENCY,
    network_latency=LATENCY,
    collective=(*RINGS, "alltoall"),
)
def hierarchical_time(
    size: Value,
    per_node: Value,
    nodes: Value,
    inside: Value,
    network: Value,
    inside_latency: Value = 0.0,
    network_latency: Value = 0.0,
    collective: str = "all_reduce",
) -> Levels:
    """The `Levels` (s) of a collective that runs inside nodes at `inside` and across nodes at
    `network` (byte/s per rank).

    all_reduce: reduce_scatter inside, all_reduce of S / per_node by each rank with its peers,
    all_gather inside.

    >>> levels = hierarchical_time(8e9, 8, 4, 450e9, 50e9)
    >>> round(levels.inside * 1e3, 2), round(levels.across * 1e3, 2)
    (31.11, 30.0)
    """
    if collective == "alltoall":
        near = (per_node - 1) * (inside_latency + size / (per_node * nodes * inside))
        far = (nodes - 1) * (network_latency + size / (nodes * network))
    else:
        near = ring_steps(collective, per_node) * (inside_latency + size / (per_node * inside))
        far = ring_steps(collective, nodes) * (
            network_latency + size / (per_node * nodes * network)
        )
    return Levels(near, far, maximum(near, far), near + far)


@law("byte/s", degree=count(low=2), bandwidth=BANDWIDTH)
def level_bandwidth(degree: Value, bandwidth: Value) -> Result:
    """algbw (byte/s) of an all_gather at a level of a fat tree that joins `degree` children at
    `bandwidth` each.

    The whole collective runs at the smallest value over its levels.

    >>> round(level_bandwidth(8, 450e9) / 1e9)
    514
    """
    return degree * bandwidth / (degree - 1)


@law("s", size=SIZE, n=RANKS, bandwidth=BANDWIDTH, hop_latency=LATENCY)
def torus_gather_time(size: Value, n: Value, bandwidth: Value, hop_latency: Value = 0.0) -> Result:
    """Seconds of an all_gather along n chips that form a closed ring, both ways at once: S /
    bandwidth or n / 2 hops.

    `bandwidth` (byte/s) counts both directions of the axis, as TPU texts do, and n is large: of few
    chips each sends (n - 1) / n of S.

    >>> torus_gather_time(256, 4, 90e9, 1e-6)
    2 µs
    """
    return maximum(n // 2 * hop_latency, size / bandwidth)


def replicas(mesh: Mapping[str, int], sharding: str) -> int:
    """Number of copies of an array on a mesh (axis name -> size) under a sharding such as "I_XY",
    which names the axes that split it.

    >>> replicas({"X": 4, "Y": 8, "Z": 2}, "I_X")
    16
    """
    _, _, axes = sharding.partition("_")
    for axis in axes:
        if axis not in mesh:
            raise BadArgument(
                "replicas", "sharding", sharding, "axes of the mesh: " + ", ".join(mesh)
            )
    return math.prod(size for axis, size in mesh.items() if axis not in axes)
