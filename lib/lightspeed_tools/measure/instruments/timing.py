"""What a measurement is: samples with their median and spread, and a clock that gives seconds per
call.

The spread is the coefficient of variation (sample standard deviation over mean) of the middle 80 %
of the samples: one in ten is set aside at either end, because a timer tick or another process makes
single samples slow without saying anything about the thing measured. Above `LIMIT` nothing is
concluded from a quantity.
"""

import functools
import gc
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

LIMIT = 0.10  # a spread above this, and nothing is concluded
FEWEST = 5  # samples below this, and the spread itself is not known
SET_ASIDE = 0.10  # of the samples, at either end


class Unavailable(Exception):
    """A part or quantity that this machine cannot measure: why, and how to fix it."""

    def __init__(self, why, remedy=""):
        super().__init__(f"{why} {remedy}".strip())
        self.why, self.remedy = why, remedy


@dataclass(frozen=True)
class Missing:
    """A quantity that could not be measured, with the reason."""

    key: str
    why: str
    remedy: str = ""

    def __str__(self):
        return f"{self.key}: {self.why} {self.remedy}".strip()


@dataclass(frozen=True)
class Quantity:
    """Samples of one quantity in the SI unit `unit`, with the parameters under which they were
    taken.

    `counted` holds what a call does by count, such as {"flops": ..., "bytes": ...}, for points on a
    roofline. `better` says which way is good. A quantity of which only a median and a spread were
    kept has no samples, and has them in `stated`: {"median": ..., "spread": ...}. `varies` is for
    samples that differ by nature and not by noise, such as the latencies of single requests: their
    spread says nothing of the clock and is not judged. Raises ValueError for samples that are not
    finite, and where there is neither a sample nor a stated median.
    """

    key: str
    unit: str
    samples: Sequence = ()
    parameters: dict = field(default_factory=dict)
    better: str = "higher"
    note: str = ""
    counted: dict = field(default_factory=dict)
    stated: dict = field(default_factory=dict)
    varies: bool = False

    def __post_init__(self):
        samples = tuple(float(x) for x in self.samples)
        object.__setattr__(self, "samples", samples)
        if not samples and "median" not in self.stated:
            raise ValueError(f"{self.key}: no samples: expected at least one, or a stated median")
        if not all(map(math.isfinite, (*samples, *self.stated.values()))):
            raise ValueError(f"{self.key}: a sample is not a finite number")
        if self.better not in ("higher", "lower"):
            raise ValueError(f"{self.key}: better = {self.better!r}: expected higher or lower")

    @property
    def value(self):
        """The median of the samples, in `unit`."""
        return statistics.median(self.samples) if self.samples else self.stated["median"]

    @functools.cached_property
    def spread(self):
        """The coefficient of variation of the middle 80 %; NaN if unknown or varying by nature."""
        if self.varies:
            return math.nan
        return spread(self.samples) if self.samples else self.stated.get("spread", math.nan)

    @property
    def trusted(self):
        """Whether there are enough samples and their spread is within LIMIT. It does not imply that
        the value is right.
        """
        return (not self.samples or len(self.samples) >= FEWEST) and (
            self.varies or self.spread <= LIMIT
        )

    @property
    def verdict(self):
        """The trust in this quantity, in words."""
        if not self.samples:
            known = f"spread {_percent(self.spread)}" if "spread" in self.stated else "no spread"
            return f"stated: {known}, samples not kept" + (
                "" if self.trusted else "; nothing can be concluded"
            )
        n = len(self.samples)
        if n < FEWEST:
            return (
                f"only {n} sample{'s' if n > 1 else ''}, so the spread is not known; nothing can be"
                " concluded"
            )
        if self.varies:
            return f"varies by nature: median of {n} values"
        if not self.trusted:
            return (
                f"spread {_percent(self.spread)}, above {_percent(LIMIT)}; nothing can be concluded"
            )
        return f"repeats: spread {_percent(self.spread)} over {n} samples"

    @property
    def label(self):
        """Key and parameters in one line, such as "host.copy_bandwidth, threads 2"."""
        return ", ".join(
            [self.key, *(f"{name} {value}" for name, value in self.parameters.items())]
        )


def middle(samples):
    """Return the samples in order, without the `SET_ASIDE` share at either end."""
    ordered = sorted(samples)
    aside = int(len(ordered) * SET_ASIDE)
    return ordered[aside : len(ordered) - aside]


def spread(samples):
    """Sample standard deviation over mean of the middle 80 %; NaN for fewer than two samples, inf
    around zero.

    >>> spread([1.0, 1.0, 1.0])
    0.0
    """
    central = middle(samples)
    if len(central) < 2:
        return math.nan
    deviation, mean = statistics.stdev(central), statistics.fmean(central)
    if not deviation:
        return 0.0
    return deviation / abs(mean) if mean else math.inf


def seconds_of(call, repeat=15, warmup=2, least=0.005):
    """Seconds per call of `call()`: `repeat` samples after `warmup` calls, each a loop of at least
    `least` seconds. Garbage collection waits meanwhile.
    """
    for _ in range(warmup):
        call()
    collects = gc.isenabled()
    gc.disable()
    try:
        loops = 1
        while (taken := _loop(call, loops)) < least:
            # Aim past `least`; a clock that saw nothing yet says only "more".
            loops = max(
                loops + 1,
                min(100 * loops, math.ceil(1.2 * loops * least / taken) if taken else 100 * loops),
            )
        return [_loop(call, loops) / loops for _ in range(repeat)]
    finally:
        if collects:
            gc.enable()


def _loop(call, loops):
    start = time.perf_counter()
    for _ in range(loops):
        call()
    return time.perf_counter() - start


def _percent(share):
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"
