"""NCCL's own tuning model: the latency tables and bandwidth caps by which it picks an algorithm. Used in chapter 7.

time = latency + S / algbw for each algorithm (Ring, Tree, NVLS, NVLSTree) and protocol (LL, LL128,
Simple); NCCL runs the smallest. Its constants are tuned to choose, not to predict: chapter 7 plots where
they fail, and `lightspeed.models.nccl_fit` fits what measurements say. n counts ranks (GPUs), `nodes` hosts.

Source: NCCL, src/graph/tuning.cc (2026), through the course's field notes and its published cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lightspeed.collectives import RANKS, RINGS, SIZE, _floor_log2, ring_steps
from lightspeed.law import (
    Argument,
    BadArgument,
    checked,
    count,
    is_array,
    law,
    maximum,
    minimum,
    nonnegative,
    one_of,
)
from lightspeed.roofline import BANDWIDTH

PROTOCOLS = ("LL", "LL128", "Simple")
LINKS = ("NVLINK", "PCI")
ARCHITECTURES = ("volta", "ampere", "hopper", "blackwell")
# Microseconds, in the order of PROTOCOLS.
BASE = {"Ring": (6.6, 14.0, 8.4), "Tree": (6.8, 14.0, 8.4)}
STEP = {
    "NVLINK": {"Ring": (0.6, 1.9, 3.4), "Tree": (0.6, 1.25, 4.0)},
    "PCI": {"Ring": (1.0, 2.5, 5.7), "Tree": (1.0, 1.9, 4.0)},
    "NET": {"Ring": (2.7, 4.0, 14.0), "Tree": (5.0, 8.5, 14.0)},
}
NVLS, NVLS_TREE_STEP = 25.0, 20.9
# GB/s, by architecture, on 1 node, 2 nodes, 4 or more.
LL_BUS = {"volta": (39.0, 39.0, 20.4), "ampere": (87.7, 22.5, 19.0), "hopper": (141.0, 45.0, 35.0), "blackwell": (282.0, 90.0, 70.0)}
RING_LL128 = {"volta": (20.0,) * 3, "ampere": (20.0,) * 3, "hopper": (36.7,) * 3, "blackwell": (40.0,) * 3}
TREE_LL128 = {"volta": (20.0,) * 3, "ampere": (20.0,) * 3, "hopper": (36.7, 36.7, 29.0), "blackwell": (55.6, 31.67, 20.0)}
TREE_SIMPLE = {"volta": (26.5, 18.5, 10.0), "ampere": (24.0, 23.6, 17.8), "hopper": (38.7, 41.4, 36.0), "blackwell": (70.0, 42.8, 24.0)}
NVLS_TREE = {"hopper": (0.0, 57.7, 45.5), "blackwell": (0.0, 96.0, 43.8)}
NVLS_SHARE = {"hopper": 0.85, "blackwell": 0.74}
# One NVLink of one channel (GB/s): links x this is what a ring reaches inside a node.
CHANNEL = {"volta": 20.0, "ampere": 20.0, "hopper": 20.6, "blackwell": 40.1}
# What a tree keeps of its bandwidth, for S of 64 B, 128 B, ... 512 MiB.
TREE_KEEPS = {
    "LL": (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    "LL128": (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    "Simple": (0.9,) * 7 + (0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
}
PLATEAU = 1.4  # a Simple ring across nodes, from 64 bytes a channel and rank on
OVERHEAD = nonnegative("s", hint="NCCL takes 1 µs on Intel hosts and 2 µs on AMD hosts.")
JOB = {"n": RANKS, "nodes": count()}


def _at_least_a_rank_each(where, n, nodes):
    few = n < nodes
    if few.any() if is_array(few) else few:
        raise BadArgument(where, "n", n, "at least one rank for each node", RANKS.hint)


@law(
    "s",
    **JOB,
    collective=RINGS,
    protocol=PROTOCOLS,
    link=LINKS,
    net_overhead=OVERHEAD,
    switch_latency=nonnegative("s"),
    plateau=Argument(low=1.0, above=False),
)
def ring_latency(n, nodes=1, collective="all_reduce", protocol="Simple", link="NVLINK", net_overhead=1e-6, switch_latency=0.0, plateau=1.0):
    """Seconds that NCCL charges a ring before any byte: a base, and a step for each hop, dearer between nodes.

    A step inside a node costs at least the network's overhead once there are several nodes. `plateau`
    multiplies all (1.4 for a large Simple all-reduce across nodes).

    >>> round(ring_latency(8, 1, protocol="LL") * 1e6, 1), round(ring_latency(1000, 125, plateau=1.4) * 1e3, 1)
    (15.0, 13.2)
    """
    _at_least_a_rank_each("ring_latency", n, nodes)
    which = PROTOCOLS.index(protocol)
    inside, across = STEP[link]["Ring"][which] * 1e-6, STEP["NET"]["Ring"][which] * 1e-6 + switch_latency
    overhead = net_overhead * (3 if protocol == "Simple" else 1) * minimum(nodes - 1, 1)
    between = ring_steps(collective, nodes)
    steps = (ring_steps(collective, n) - between) * maximum(inside, overhead) + between * across
    return (BASE["Ring"][which] * 1e-6 + steps) * plateau


@law("s", **JOB, protocol=PROTOCOLS, link=LINKS)
def tree_latency(n, nodes=1, protocol="Simple", link="NVLINK"):
    """Seconds that NCCL charges an all-reduce on a tree: a chain inside each node, a tree of log2(nodes) across, twice.

    >>> round(tree_latency(1000, 125) * 1e6, 1)
    232.4
    """
    _at_least_a_rank_each("tree_latency", n, nodes)
    which = PROTOCOLS.index(protocol)
    inside, across = STEP[link]["Tree"][which], STEP["NET"]["Tree"][which]
    return (BASE["Tree"][which] + 2 * ((n / nodes - 1) * inside + _floor_log2(nodes) * across)) * 1e-6


@law("s", nodes=count())
def nvls_latency(nodes=1):
    """Seconds that NCCL charges an all-reduce in the NVSwitch, with a tree across nodes if there are several.

    >>> round(nvls_latency(4) * 1e6, 1)
    108.6
    """
    return (NVLS + 2 * _floor_log2(nodes) * NVLS_TREE_STEP) * 1e-6


@dataclass(frozen=True)
class Choice:
    """An algorithm and protocol with its `latency` (s), `bandwidth` (algbw, byte/s) and `time` (s)."""

    algorithm: str
    protocol: str
    latency: float
    bandwidth: float
    time: float


def nccl_choices(size, n, nodes=1, architecture="hopper", links=18, network=400e9, channels=16, nvls=True, net_overhead=1e-6):
    """The all-reduce `Choice`s that NCCL weighs for S = `size` bytes, fastest first.

    `links` are the NVLinks of a GPU, `network` what a node sends (byte/s, one direction, all its adapters).

    >>> [f"{c.algorithm} {c.protocol}" for c in nccl_choices(1e9, 8)[:2]]
    ['NVLS Simple', 'Ring Simple']
    """
    where = "nccl_choices"
    one_of(where, "architecture", architecture, ARCHITECTURES)
    size, network = checked(where, "size", size, SIZE), checked(where, "network", network, BANDWIDTH)
    n, nodes, links, channels = (checked(where, k, v, count()) for k, v in (("n", n), ("nodes", nodes), ("links", links), ("channels", channels)))
    for name, value in (("size", size), ("n", n), ("nodes", nodes)):
        if is_array(value):
            raise BadArgument(where, name, value, "one number: each size may choose differently")
    _at_least_a_rank_each(where, n, nodes)
    scale = min(nodes, 3) - 1
    inside = links * CHANNEL[architecture] * 1e9
    bus = inside if nodes <= 2 else min(inside, network)
    choices = []
    for protocol in PROTOCOLS:
        large = protocol == "Simple" and nodes > 1 and size >= 64 * channels * n
        latency = ring_latency(n, nodes, "all_reduce", protocol, "NVLINK", net_overhead, 0.0, PLATEAU if large else 1.0)
        ring = _ring_bus(protocol, bus, channels, architecture, scale) * n / max(ring_steps("all_reduce", n), 1)
        choices.append(_choice("Ring", protocol, latency, ring, size))
        tree = _tree_bus(protocol, bus, channels, architecture, scale) / 2 * _tree_keeps(size, protocol)
        choices.append(_choice("Tree", protocol, tree_latency(n, nodes, protocol), tree, size))
    if nvls and architecture in NVLS_SHARE:
        switch = inside * NVLS_SHARE[architecture] * (channels - 1) / channels
        if nodes > 1:  # a tree across: two nodes swap S, an inner node of a larger tree passes it on as well
            switch = min(switch, network / min(nodes - 1, 2), channels * NVLS_TREE[architecture][scale] * 1e9 / 2)
        choices.append(_choice("NVLS" if nodes == 1 else "NVLSTree", "Simple", nvls_latency(nodes), switch, size))
    return tuple(sorted(choices, key=lambda choice: choice.time))


def nccl_time(size, n, nodes=1, **machine):
    """Seconds of an all-reduce as NCCL predicts it for the algorithm that it would pick; see `nccl_choices`.

    >>> round(nccl_time(16e9, 1000, 125, nvls=False) * 1e3, 1) > 80
    True
    """
    return nccl_choices(size, n, nodes, **machine)[0].time


def _choice(algorithm, protocol, latency, bandwidth, size):
    return Choice(algorithm, protocol, latency, bandwidth, latency + size / bandwidth)


def _ring_bus(protocol, bus, channels, architecture, scale):
    if protocol == "LL":
        return min(bus / 2, LL_BUS[architecture][scale] * 1e9)
    return min(bus * 0.92, channels * RING_LL128[architecture][scale] * 1e9) if protocol == "LL128" else bus


def _tree_bus(protocol, bus, channels, architecture, scale):
    tree = min(bus * 0.92, channels * TREE_SIMPLE[architecture][scale] * 1e9)
    if protocol == "LL":
        return min(tree / 3.8, LL_BUS[architecture][scale] * 1e9)
    kept = tree * (7 / 9 if scale == 0 else 120 / 128)
    return min(kept, channels * TREE_LL128[architecture][scale] * 1e9) if protocol == "LL128" else tree


def _tree_keeps(size, protocol):
    power = math.frexp(max(size, 1) / 64)[1] - 1
    return TREE_KEEPS[protocol][power] if 0 <= power < 24 else 1
