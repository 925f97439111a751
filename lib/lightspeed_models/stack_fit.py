"""Fit a `Stack` to measured steps of one's own: constants, their intervals, and which of them the
rows can't tell. Used in chapter 6.

The fit is on the logarithm of time with Cauchy's loss, so it finds the main population: steps that
stalled for another reason don't pull it. Intervals come from rows drawn again with replacement.
Sources: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993) for the intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from lightspeed.errors import BadArgument, one_of
from lightspeed.law import check_fields, checked, count, positive
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.plan import Machine, Plan, checked_for
from lightspeed_models.stack import BOUND, Stack
from lightspeed_models.training_step import Work, seconds, work

# Constant -> (least, most, where a fit starts).
FITTED = {
    "share": (0.02, 1.0, 0.5),
    "inside": (0.02, 1.0, 0.8),
    "between": (0.02, 1.0, 0.4),
    "host": (1e-6, 1.0, 1e-3),
    "ring": (1e-7, 1.0, 1e-4),
    "latency": (1e-9, 1e-2, 1e-6),
    "fixed": (1e-4, 100.0, 0.05),
    "overlap": (0.01, 0.99, 0.3),
    "exposed": (0.01, 1.0, 0.5),
    "contention": (0.01, 1.0, 0.2),
    "sync": (1e-6, 1.0, 4e-3),
    "slow": (1e-6, 1.0, 2e-3),
    "far": (1e-6, 10.0, 2e-2),
}
HEALTHY = tuple(FITTED)[:7]  # without overlap: few stacks have it
LINKS = ("inside", "between")
STEPS, NUDGE = 100, 1e-6  # of a fit; in log of a constant, for slopes
WIDTH = 0.1  # of Cauchy's loss, in log time: errors of a tenth count in full, a stall hardly
NINE_TENTHS = 1.35  # of loss: the drop in log likelihood that leaves nine tenths, for one constant
KNOWN = 2.0  # a constant whose interval spans more than this factor is not told by the rows


@dataclass(frozen=True)
class Timed:
    """A measured step: what was trained, how split, on what, and its `time` (s), by `name`."""

    name: str
    model: Decoder
    sequence: int
    plan: Plan
    machine: Machine
    time: float

    def __post_init__(self) -> None:
        check_fields(self, positive("s"), "time")
        check_fields(self, count(), "sequence")
        checked_for(self.model, self.plan)


@dataclass(frozen=True)
class StackFit:
    """A fitted `Stack`; 5 to 95 % `intervals` of its fitted constants; of those that the rows can't
    tell, why; and `errors`, |predicted / measured - 1| of each row as fitted.
    """

    stack: Stack
    intervals: Mapping[str, tuple[float, float]]
    untold: Mapping[str, str]
    errors: tuple[float, ...]


def stacked(rows: Sequence[Timed], base: Stack = BOUND) -> Work:
    """One `Work` of arrays, an element a row."""
    import numpy

    works = [work(row.model, row.sequence, row.plan, row.machine, base) for row in rows]
    names = [f.name for f in fields(Work)]
    return Work(**{n: numpy.array([getattr(one, n) for one in works]) for n in names})


def expected_times(work: Work, stack: Stack) -> Any:
    """Seconds of the steps that a `Work` of arrays describes."""
    return sum(term for name, term in seconds(work, stack).items() if name != "hidden")


def impossible(rows: Sequence[Timed]) -> dict[str, str]:
    """Rows (by name) that are faster than their bound, which no machine is, and by how much."""
    bounds = expected_times(stacked(rows), BOUND)
    return {
        row.name: f"took {row.time:.4g} s, and its bound is {bound:.4g} s"
        for row, bound in zip(rows, bounds, strict=True)
        if row.time < bound
    }


def fit_stack(
    rows: Sequence[Timed],
    base: Stack = BOUND,
    names: Sequence[str] = HEALTHY,
    resamples: int = 40,
    seed: int = 0,
) -> StackFit:
    """The `StackFit` of measured steps; `base` holds what is not fitted. Raises BadArgument for
    fewer rows than twice the constants, or one beyond its bound.
    """
    import numpy

    for name in names:
        one_of("fit_stack", "names", name, tuple(FITTED))
    checked("fit_stack", "resamples", resamples, count())
    if len(rows) < 2 * len(names):
        expected = f"at least {2 * len(names)} rows to fit {len(names)} constants"
        raise BadArgument("fit_stack", "rows", len(rows), expected)
    if wrong := impossible(rows):
        name, why = next(iter(wrong.items()))
        hint = f"{name} {why}. Are times in s, and is the plan the one that ran?"
        raise BadArgument("fit_stack", "rows", f"{len(wrong)} of them", "rows above a bound", hint)
    works, times = stacked(rows, base), numpy.array([row.time for row in rows])
    first = fit_constants(works, times, base, names)
    unknown = _one_sided(works, times, first, names)
    free = [n for n in names if n not in unknown]
    # What the rows can't tell adds nothing, and the rest is fitted without it.
    neutral = {n: getattr(BOUND, n) for n in unknown}
    best = replace(first, **neutral)
    best = fit_constants(works, times, best, free, first) if unknown else first
    generator = numpy.random.default_rng(seed)
    again = [
        fit_constants(rows_of(works, sample), times[sample], best, free, best)
        for sample in generator.integers(len(rows), size=(resamples, len(rows)))
    ]
    intervals = {}
    for name in free:
        low, high = numpy.quantile([getattr(one, name) for one in again], (0.05, 0.95))
        intervals[name] = (float(low), float(high))
        if high > KNOWN * low:
            unknown[name] = f"rows drawn again give {low:.3g} to {high:.3g}"
    errors = abs(expected_times(works, best) / times - 1)
    return StackFit(best, intervals, unknown, tuple(map(float, errors)))


def fit_constants(
    works: Work, times: Any, fixed: Stack, names: Sequence[str], start: Stack | None = None
) -> Stack:
    """The `Stack` whose constants of these names fit best, the others as in `fixed`."""
    import numpy

    least, most, usual = (numpy.log([FITTED[n][k] for n in names]) for k in range(3))
    at = numpy.log([getattr(start, n) for n in names]) if start else usual

    def of(logs: Any) -> Stack:
        fitted: dict[str, Any] = dict(zip(names, map(float, numpy.exp(logs)), strict=True))
        return replace(fixed, **fitted)

    def residuals(logs: Any) -> Any:
        return numpy.log(expected_times(works, of(logs)) / times)

    return of(_least_cauchy(residuals, numpy.clip(at, least, most), least, most))


def _least_cauchy(residuals: Any, at: Any, least: Any, most: Any) -> Any:
    """Where in its bounds Cauchy's loss of the residuals is least, by damped Gauss-Newton steps
    (Levenberg and Marquardt) on residuals that are weighted anew in each step.
    """
    import numpy

    def loss(off: Any) -> float:
        return float(numpy.log1p((off / WIDTH) ** 2).sum())

    off, damping = residuals(at), 1e-3
    for _ in range(STEPS):
        nudged = at + numpy.diag(numpy.where(at + NUDGE < most, NUDGE, -NUDGE))
        slopes = numpy.array([(residuals(x) - off) / (x - at).sum() for x in nudged])
        weighted = slopes / (1 + (off / WIDTH) ** 2)
        gradient, curvature = weighted @ off, weighted @ slopes.T
        free = ~((at <= least) & (gradient > 0) | (at >= most) & (gradient < 0))
        free &= curvature.diagonal() > 0
        before = loss(off)
        while damping < 1e9:
            inner = curvature[free][:, free]
            step = numpy.zeros_like(at)
            step[free] = numpy.linalg.solve(
                inner + damping * numpy.diag(inner.diagonal()), -gradient[free]
            )
            moved = numpy.clip(at + step, least, most)
            if loss(there := residuals(moved)) < before:
                break
            damping *= 4
        else:
            return at
        at, off, damping = moved, there, damping / 10
        if before - loss(off) < 1e-9 * before:
            return at
    return at


def rows_of(works: Work, mask: Any) -> Work:
    """Some rows of a `Work` of arrays, by index or mask."""
    return Work(**{f.name: getattr(works, f.name)[mask] for f in fields(Work)})


def _one_sided(works: Work, times: Any, best: Stack, names: Sequence[str]) -> dict[str, str]:
    """Constants that may as well add nothing, for all that the rows say, and how much at most.

    A value stands as long as the others, fitted again beside it, explain the rows as well.
    """
    import numpy

    def errors(stack: Stack) -> Any:
        return numpy.log(expected_times(works, stack) / times)

    # What most rows scatter by, without stalls; a noiseless sweep by halves of a per cent.
    width = max(1.48 * float(numpy.median(abs(errors(best)))), 0.005)

    def loss(name: str, value: float) -> float:
        change: dict[str, Any] = {name: value}
        others = [n for n in names if n != name]
        stack = replace(best, **change)
        refitted = fit_constants(works, times, stack, others, best) if others else stack
        return float(numpy.log1p((errors(refitted) / width) ** 2).sum())

    limit, unknown = loss(names[0], getattr(best, names[0])) + NINE_TENTHS, {}
    for name in names:
        least, most, _ = FITTED[name]
        ends: list[dict[str, Any]] = [{name: least}, {name: most}]
        if numpy.array_equal(*(errors(replace(best, **end)) for end in ends)):
            unknown[name] = "no row depends on it"
        elif name != "share" and loss(name, getattr(BOUND, name)) <= limit:
            good, bad = getattr(best, name), least if name in LINKS else most
            for _ in range(8):  # halves of the logarithm, to a few per cent
                middle = (good * bad) ** 0.5
                good, bad = (middle, bad) if loss(name, middle) <= limit else (good, middle)
            side = "least" if name in LINKS else "most"
            unknown[name] = f"the rows only say that it is at {side} {good:.2g}"
    return unknown
