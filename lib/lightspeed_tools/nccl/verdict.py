"""Is this bandwidth normal? What `lightspeed nccl report` thinks of one measured size.

A measured time is set beside `nccl_fit.predict` where a model was fitted to the hardware: "normal"
then means no further from it than nine of ten published rows that it was not fitted to. Where none
was, its share of the line is set beside the shares that published runs reached on other links.
Where no line is known, nothing is judged. Chapter 7 explains each number.
"""

import math
from dataclasses import dataclass

from lightspeed.collectives import algbw, busbw
from lightspeed_models.nccl_fit import Prediction, measurements, predict
from lightspeed_tools.nccl.published import (
    PER_NODE,
    kind,
    line_of,
    shares_near,
    spread,
)

BEYOND = 1.03  # a rate this far above what a link carries was not carried by it


@dataclass(frozen=True)
class Verdict:
    """The verdict on one measured size. `level`: normal, slow, very slow, fast, unknown. Rates in
    byte/s, times in s.
    """

    size: float
    time: float
    algbw: float
    busbw: float
    line: float | None
    model: Prediction | None
    spread: float | None
    shares: tuple
    level: str
    regime: str
    ring: bool = False  # normal for a ring, where the switches could have added

    @property
    def share(self):
        """busbw over the line rate, or None."""
        return self.busbw / self.line if self.line else None

    @property
    def ratio(self):
        """Measured over expected time, or None."""
        return self.time / self.model.time if self.model else None


def leaves_node(collective, rate, nodes, per_node):
    """Return the minimum byte/s that a node sends or receives, for any algorithm; `rate` is the
    algbw. Even a switch that adds needs every node's contribution once.

    >>> leaves_node("all_reduce", 118.87e9, 2, 8), leaves_node("alltoall", 100e9, 2, 8)
    (118870000000.0, 400000000000.0)
    """
    if nodes == 1:
        return 0.0
    if collective == "alltoall":
        return rate * per_node * (nodes - 1) / nodes
    if collective in ("all_gather", "reduce_scatter", "gather", "scatter"):
        return rate * (nodes - 1) / nodes
    return rate


def judge(collective, size, time, n, nodes=1, machine=None):
    """Return the `Verdict` on `size` bytes in `time` seconds over n ranks on `nodes` nodes.

    >>> from lightspeed_tools.nccl.machine import described
    >>> verdict = judge("all_reduce", 16e9, 16e9 / 156e9, 1000, 125, described("p5"))
    >>> verdict.level, round(verdict.busbw / 1e9, 1), round(verdict.share, 2)
    ('normal', 311.7, 0.78)
    """
    rate = algbw(size, time)
    bus = busbw(collective, n, rate)
    line, whole = _line(collective, n, nodes, machine)
    if not line:
        return Verdict(size, time, rate, bus, None, None, None, (), "unknown", "unknown")
    joined = 1 if machine.joins(n, nodes) else nodes
    message, where = kind(size, joined)
    if machine.fabric and whole:
        model = predict(collective, size, n, joined, machine.fabric)
        tested = any(row.collective == collective for row in measurements())
        factor = spread(message if tested else "middle", where)
        level = level_of(time / model.time, factor, fastest=factor)
        ring = level in ("slow", "very slow") and model.path == "in_network"
        if ring:  # NVLS may be off, or a ring forced
            other = predict(collective, size, n, joined, machine.fabric, "ring")
            ring = level_of(time / other.time, factor, fastest=factor) == "normal"
            model, level = (other, "normal") if ring else (model, level)
        if level == "fast" and _by_tree(collective, rate, joined, model, machine):
            level = "normal"
        regime = _regime(model)
        return Verdict(size, time, rate, bus, line, model, factor, (), level, regime, ring)
    shares = tuple(shares_near(collective, size, joined)) if whole else ()
    factor = spread(message, where)
    level = "unknown"
    slots = joined == 1 and "PCIe" in machine.name  # no published run went through them
    if shares and not slots and message == "large":
        level = level_of(shares[0] / (bus / line), factor, fastest=math.inf)
    return Verdict(size, time, rate, bus, line, None, factor, shares, level, "unknown")


def _by_tree(collective, rate, nodes, model, machine):
    """Whether two nodes may have added by a tree, which sends each buffer once, where the model
    takes a ring, which sends nearly two.
    """
    pair = collective == "all_reduce" and nodes == 2 and model.path == "ring"
    return pair and rate <= BEYOND * machine.network


def _line(collective, n, nodes, machine):
    """(the line of a run or None, whether all GPUs of its nodes take part)."""
    if machine is None:
        return None, False
    if machine.joins(n, nodes):
        return machine.inside, True
    if not machine.network:
        return None, False
    gpus = machine.gpus or PER_NODE
    used = min(1.0, n / nodes / gpus)
    whole = used == 1
    per_node = min(gpus, n / nodes) if whole else gpus
    line = line_of(collective, n, nodes, machine.inside, machine.network, per_node)
    shared = collective in ("alltoall", "gather", "scatter", "sendrecv")
    return line * (1 if shared else used), whole


def level_of(ratio, factor, fastest):
    """Return the level of a run `ratio` times as slow as expected; slow beyond `factor`."""
    if ratio > 2 * factor:
        return "very slow"
    return "slow" if ratio > factor else "fast" if ratio < 1 / fastest else "normal"


def _regime(model):
    if model.latency > model.transfer:
        return "latency-bound"
    return "bandwidth-bound" if model.transfer > 5 * model.latency else "in between"
