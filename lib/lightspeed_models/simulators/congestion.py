"""DCQCN as a fluid: rates, alpha and one queue as differential equations with a delay. Used in
chapter 8.

All flows are alike, so one stands for all. The equations are those of "ECN or Delay" (11), with the
start of a flow at line rate. To first order they rest at `lightspeed.networks.dcqcn_marking`; here
the resting point is solved without approximation, and the way there is followed in time.

Sources: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015); Zhu,
Ghobadi, Misra and Padhye, "ECN or Delay" (CoNEXT 2016).
"""

import math
from dataclasses import dataclass

from lightspeed.errors import BadArgument
from lightspeed.law import checked, count, positive
from lightspeed.networks import marked_queue
from lightspeed_models.simulators.network_simulation import DCQCN, Port

STEP = 1e-6  # s: a fiftieth of the shortest time in the equations


@dataclass(frozen=True)
class Fluid:
    """Times (s), and at each of them the queue (byte) and the rate of a flow (byte/s)."""

    time: tuple[float, ...]
    queue: tuple[float, ...]
    rate: tuple[float, ...]


@dataclass(frozen=True)
class Resting:
    """Where the equations rest: the share of packets marked, and the queue (byte) that marks it."""

    marking: float
    queue: float


def dcqcn_resting(flows: int, port: Port, control: DCQCN = DCQCN()) -> Resting:  # noqa: B008
    """The `Resting` point of `flows` equal flows at this port, each with its fair share.

    >>> round(dcqcn_resting(10, Port(5e9, marks=(5e3, 200e3, 0.01))).marking, 4)
    0.006
    """
    flows = checked("dcqcn_resting", "flows", flows, count())
    low, high, most = _marks(port)
    rate = port.bandwidth / flows / port.packet
    below, above = 1e-12, 1 - 1e-12
    for _ in range(200):
        middle = math.sqrt(below * above)
        rises = _drift(middle, rate, port, control) > 0
        below, above = (middle, above) if rises else (below, middle)
    return Resting(middle, float(marked_queue(middle, low, high, most)))


def _marks(port: Port) -> tuple[float, float, float]:
    if port.marks is None:
        raise BadArgument("dcqcn", "port", port, "a port with marks=(Kmin, Kmax, Pmax)")
    return port.marks


def _terms(p: float, rate: float, port: Port, control: DCQCN) -> tuple[float, float, float]:
    """(cuts, increases, increases past fast recovery), each a second, of a flow at `rate` packets
    a second whose packets are marked with probability p.

    An increase comes when so many packets in a row were not marked as the counter, or as the timer
    at this rate, asks for.
    """
    if p <= 0:
        often = rate * port.packet / control.counter + 1 / control.timer
        return 0.0, often, often
    survival = math.log1p(-min(p, 1 - 1e-12))
    cuts = -math.expm1(survival * control.between * rate) / control.between
    halves = raises = 0.0
    for run in (control.counter / port.packet, control.timer * rate):
        if -survival * run < 700:
            one = rate * p / math.expm1(-survival * run)
            halves += one
            raises += one * math.exp(survival * control.rounds * run)
    return cuts, halves, raises


def _drift(p: float, rate: float, port: Port, control: DCQCN) -> float:
    """What a flow gains over what it loses (byte/s^2) at a fair rate if p stays: zero at rest.

    At rest the target is above the rate by what increases past fast recovery add between two cuts,
    and alpha is the chance of a mark in the time between its updates.
    """
    cuts, halves, raises = _terms(p, rate, port, control)
    alpha = -math.expm1(math.log1p(-p) * control.update * rate)
    gap = control.increase * raises / cuts
    return gap * halves / 2 - rate * port.packet * alpha * cuts / 2


def dcqcn_fluid(
    flows: int,
    port: Port,
    until: float,
    control: DCQCN = DCQCN(),  # noqa: B008
    samples: int = 400,
) -> Fluid:
    """The `Fluid` of `flows` that all begin at line rate at time 0, by small steps (Euler).

    The queue stops at the port's buffer; pauses are not in it.

    >>> dcqcn_fluid(4, Port(5e9, marks=(5e3, 200e3, 0.01)), 1e-4).queue[0]
    0.0
    """
    flows = checked("dcqcn_fluid", "flows", flows, count())
    until = checked("dcqcn_fluid", "until", until, positive("s"))
    low, high, most = _marks(port)
    line, packet = port.bandwidth, port.packet
    back = max(1, round(2 * port.delay / STEP))
    rate = target = line
    alpha, queue = 1.0, 0.0
    past = [(0.0, line)] * back  # (marking, rate) a round trip ago: what notices speak of
    steps = max(1, round(until / STEP))
    every = max(1, steps // samples)
    history: list[tuple[float, float, float]] = []
    for step in range(steps):
        if step % every == 0:
            history.append((step * STEP, queue, rate))
        marking, then = past[step % back]
        cuts, halves, raises = _terms(marking, then / packet, port, control)
        chance = -math.expm1(math.log1p(-min(marking, 1 - 1e-12)) * control.update * then / packet)
        marks = 1.0 if queue > high else max(queue - low, 0.0) / (high - low) * most
        past[step % back] = (marks, rate)
        gap = target - rate
        rate += STEP * (gap * halves / 2 - rate * alpha * cuts / 2)
        target += STEP * (control.increase * raises - gap * cuts)
        alpha += STEP * control.gain / control.update * (chance - alpha)
        rate, target = min(max(rate, control.least), line), min(max(target, control.least), line)
        queue = min(max(queue + STEP * (flows * rate - line), 0.0), port.buffer)
    return Fluid(*(tuple(column) for column in zip(*history, strict=True)))
