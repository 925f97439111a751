"""What the curve of busbw over size shows by itself: where it falls, and what its two ends are."""

from dataclasses import dataclass

from lightspeed.collectives import busbw_factor
from lightspeed.errors import BadArgument
from lightspeed_models.fits import fit_alpha_beta

FALL = 0.08  # a larger message this much slower is no noise of two sizes


@dataclass(frozen=True)
class Fall:
    """busbw (byte/s) that larger messages do not reach again: from `size` (bytes) on."""

    size: float
    before: float
    after: float
    end: float

    @property
    def share(self):
        """What is lost, of what was there."""
        return 1 - self.after / self.before


def fall_of(verdicts):
    """The `Fall` from the highest busbw to the lowest after it, if every larger message stays
    below; else None. Sizes nearer than a factor of two differ by chance.
    """
    if len(verdicts) < 3:
        return None
    top = max(range(len(verdicts)), key=lambda i: verdicts[i].busbw)
    after = verdicts[top + 1 :]
    if not after:
        return None
    low = min(after, key=lambda verdict: verdict.busbw)
    lasting = max(after[-2:], key=lambda verdict: verdict.busbw)
    if lasting.busbw > (1 - FALL) * verdicts[top].busbw or low.size < 2 * verdicts[top].size:
        return None
    return Fall(verdicts[top].size, verdicts[top].busbw, low.busbw, low.size)


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
