"""What a run's own rows show: where busbw falls, sizes that stall, and the curve's two ends."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lightspeed.collectives import busbw_factor
from lightspeed.errors import BadArgument
from lightspeed_models.fits import fit_alpha_beta
from lightspeed_tools.nccl.published import SMALL
from lightspeed_tools.nccl.rows import Measured

FALL = 0.08  # a larger message this much slower is no noise of two sizes
STALL = 2.0  # times as long as the same bytes in the other half, or as a larger message
ALIKE = 1.5  # times of retransmission timers are alike within this factor, whatever the size
TIMER = 1e-3  # s: no adapter's timer for retransmission is shorter


@dataclass(frozen=True)
class Fall:
    """A fall of busbw (byte/s) from its highest, at `size` bytes, to its lowest after that, at
    `end`; `returns` if a larger message is as fast again as the fastest.
    """

    size: float
    before: float
    after: float
    end: float
    returns: bool = False

    @property
    def share(self):
        """The share of busbw that is lost."""
        return 1 - self.after / self.before


def fall_of(verdicts):
    """The deepest `Fall` below what a smaller message reached; None if there is none of more than
    noise. Sizes nearer than a factor of two differ by chance.
    """
    deepest, top = None, None
    for verdict in verdicts if len(verdicts) >= 3 else ():
        if top is None or verdict.busbw > top.busbw:
            top = verdict
        elif (
            verdict.busbw <= (1 - FALL) * top.busbw
            and verdict.size >= 2 * top.size
            and (deepest is None or verdict.busbw / top.busbw < deepest.after / deepest.before)
        ):
            deepest = Fall(top.size, top.busbw, verdict.busbw, verdict.size)
    if deepest is None:
        return None
    larger = [v.busbw for v in verdicts if v.size > deepest.end]
    returns = max(larger, default=0.0) > (1 - FALL) * deepest.before
    return replace(deepest, returns=returns)


@dataclass(frozen=True)
class Stall:
    """A message that took `factor` times as long as the same bytes in the other half of the table,
    or as a larger message: no law of latency and bandwidth does that.
    """

    size: int
    in_place: bool
    time: float
    factor: float


def stalls_of(rows: Sequence[Measured]) -> tuple[Stall, ...]:
    """The `Stall`s of a run by its own rows, whatever its machine, out of place first. Messages
    below 1 MB are left out: there the host's noise is as long.
    """
    times = {(row.in_place, row.size): row.time for row in reversed(rows) if row.size and row.time}
    stalls = []
    for (in_place, size), time in sorted(times.items()):
        larger = [t for (place, s), t in times.items() if place == in_place and s > size]
        least = min([times.get((not in_place, size), time), *larger])
        if size >= SMALL and time > STALL * least:
            stalls.append(Stall(size, in_place, time, time / least))
    return tuple(stalls)


def retransmits(stalls: Sequence[Stall]) -> bool:
    """Whether stalls look like a timer's: milliseconds, similar over a fourfold range of sizes."""
    for in_place in (False, True):
        times = sorted(s.time for s in stalls if s.in_place == in_place)
        middle = times[len(times) // 2] if times else 0.0
        near = [s for s in stalls if s.in_place == in_place
                and middle / ALIKE <= s.time <= middle * ALIKE]  # fmt: skip
        if middle >= TIMER and len(near) >= 3 and near[-1].size >= 4 * near[0].size:
            return True
    return False


def ends_of(collective, n, verdicts):
    """(seconds of the smallest message, busbw in byte/s that no size exceeds) by a fit of latency
    and bandwidth to the run's own rows; None for fewer than five sizes over two decades, or times
    that do not grow.
    """
    if len(verdicts) < 5 or verdicts[-1].size < 100 * verdicts[0].size:
        return None
    factor = busbw_factor(collective, n)
    import numpy

    try:
        fit = fit_alpha_beta(
            numpy.array([v.size * factor for v in verdicts]),
            numpy.array([v.time for v in verdicts]),
        )
    except BadArgument:  # times that do not grow with the bytes: all steps
        return None
    if not fit.latency > 0 or not fit.bandwidth > 0:
        return None
    return fit.latency, fit.bandwidth
