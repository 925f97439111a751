"""Fits of a law's constants to measured times: the serial share and kappa of the Universal
Scalability Law (chapter 3), the latency and bandwidth of a collective (chapter 7).

Source: Hockney, "The communication challenge for MPP" (Parallel Computing 20(3), 1994), for alpha
and beta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lightspeed.collectives import EXPONENT, overlapped_time
from lightspeed.elementwise import Result, Series, Value, divide, is_array, maximum
from lightspeed.errors import BadArgument
from lightspeed.law import Argument, checked, positive
from lightspeed.scaling import PROCESSORS

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class UslFit:
    """Serial share and kappa that fit measured speedups, their standard errors and intervals, and
    n*.

    `baseline` is the fitted speedup at n = 1: away from 1, the one-processor time is off. Values
    below 0 are kept: superlinear, or noise. `peak_interval` follows from kappa's; infinite where
    kappa may be 0.
    """

    serial: float
    kappa: float
    baseline: float
    serial_error: float
    kappa_error: float
    serial_interval: tuple[float, float]
    kappa_interval: tuple[float, float]
    peak: float
    peak_interval: tuple[float, float]


def fit_usl(n: NDArray[Any], speedup: NDArray[Any], confidence: float = 0.95) -> UslFit:
    """The `UslFit` to arrays of n and speedup, by least squares with errors relative to the
    speedup.

    n / speedup is linear in n - 1 and n (n - 1), so no first guess is needed. The baseline is
    fitted, too: held at 1, the error of the one-processor time would move both terms and be in
    neither interval.

    Raises BadArgument for fewer than four points or fewer than three values of n.
    """
    import numpy
    from scipy.special import stdtrit

    n = numpy.ravel(checked("fit_usl", "n", n, PROCESSORS))
    speedup = numpy.ravel(checked("fit_usl", "speedup", speedup, positive()))
    if n.shape != speedup.shape:
        expected = f"one value for each of the {n.size} values of n"
        raise BadArgument("fit_usl", "speedup", speedup, expected)
    if n.size < 4 or numpy.unique(n).size < 3:
        expected = "four points or more, at three or more n: three unknowns and one to judge by"
        raise BadArgument("fit_usl", "n", n, expected)
    terms = numpy.column_stack([numpy.ones_like(n), n - 1, n * (n - 1)]) * (speedup / n)[:, None]
    (unit, *rest), *_ = numpy.linalg.lstsq(terms, numpy.ones_like(n), rcond=None)
    serial, kappa = numpy.array(rest) / unit
    freedom = n.size - 3
    scatter = ((1 - terms @ (unit, *rest)) ** 2).sum() / freedom
    # serial and kappa are ratios of coefficients: carry the covariance through their slopes.
    slopes = numpy.array([[-serial, 1.0, 0.0], [-kappa, 0.0, 1.0]]) / unit
    covariance = slopes @ numpy.linalg.inv(terms.T @ terms) @ slopes.T * scatter
    errors = numpy.sqrt(numpy.diag(covariance))
    reach = stdtrit(freedom, 0.5 + confidence / 2) * errors
    intervals = [(float(v - r), float(v + r)) for v, r in zip((serial, kappa), reach, strict=True)]

    def peak(k: float) -> float:
        return float(maximum(divide(1 - serial, k) ** 0.5, 1.0))

    low, high = intervals[1]
    fitted = map(float, (serial, kappa, 1 / unit, *errors))
    return UslFit(*fitted, *intervals, peak(kappa), (peak(high), peak(low)))  # type: ignore[call-arg,arg-type]


@dataclass(frozen=True)
class AlphaBeta:
    """`latency` (s a step), `bandwidth` (byte/s) and `exponent` that fit measured times;
    `residuals`: model / measured - 1.
    """

    latency: float
    bandwidth: float
    exponent: float
    residuals: tuple[float, ...]

    def time(self, transfer: Value, steps: Value = 1.0) -> Result:
        """Seconds for `transfer` bytes on the busiest link in so many steps."""
        return overlapped_time.__wrapped__(
            self.latency * steps, transfer / self.bandwidth, self.exponent
        )


def fit_alpha_beta(
    transfer: Series, time: Series, steps: Series = 1.0, exponent: Value = 1.0
) -> AlphaBeta:
    """The `AlphaBeta` of measured times (s) of `transfer` bytes on the busiest link, by relative
    least squares.

    time^e is linear in the unknowns, so there is no first guess; neither can come out negative.
    `steps` multiplies alpha. Look at the residuals: a fit pinned to both ends says nothing of the
    middle.

    Raises BadArgument for fewer than two points or arrays of different lengths.
    """
    traffic = _floats("transfer", transfer, positive("byte"))
    times = _floats("time", time, positive("s"))
    counts = _floats("steps", steps, positive())
    if len(traffic) != len(times) or len(times) < 2:
        expected = f"one time for each of the {len(traffic)} transfers, and at least two"
        raise BadArgument("fit_alpha_beta", "time", times, expected)
    if len(counts) not in (1, len(times)):
        expected = f"one number, or one for each of the {len(times)} times"
        raise BadArgument("fit_alpha_beta", "steps", counts, expected)
    power = float(checked("fit_alpha_beta", "exponent", exponent, EXPONENT))
    counts = counts * len(times) if len(counts) == 1 else counts
    most, longest = max(counts), max(times)
    slow = max(b / t for b, t in zip(traffic, times, strict=True))  # both columns of order one
    waits = [(n / most * longest / t) ** power for n, t in zip(counts, times, strict=True)]
    moves = [(b / t / slow) ** power for b, t in zip(traffic, times, strict=True)]
    first, second = _least_squares(waits, moves)
    if not second > 0:
        expected, hint = "times that grow with the bytes", "The fit has no bandwidth."
        raise BadArgument("fit_alpha_beta", "transfer", traffic, expected, hint)
    latency, bandwidth = first ** (1 / power) * longest / most, slow / second ** (1 / power)
    fitted = AlphaBeta(float(latency), float(bandwidth), power, ())
    rows = zip(traffic, counts, times, strict=True)
    residuals = tuple(float(fitted.time(b, n) / t - 1) for b, n, t in rows)
    return replace(fitted, residuals=residuals)


def _floats(name: str, values: Series, spec: Argument) -> list[float]:
    """One number, or a list, tuple or array of them, as a list."""
    if isinstance(values, (list, tuple)):
        return [float(checked("fit_alpha_beta", name, value, spec)) for value in values]
    plain = checked("fit_alpha_beta", name, values, spec)
    return [float(value) for value in plain.ravel()] if is_array(plain) else [float(plain)]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(u * v for u, v in zip(a, b, strict=True))


def _least_squares(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The x and y of which neither is negative, with the least sum of (1 - x a - y b)^2."""
    aa, a1 = _dot(a, a), math.fsum(a)
    # What of b (and of one) no multiple of a explains, so that nothing is squared twice.
    along, mean = _dot(a, b) / aa, a1 / aa
    rest = [v - along * u for u, v in zip(a, b, strict=True)]
    residue = [1 - mean * u for u in a]
    square = _dot(rest, rest)
    y = _dot(rest, residue) / square if square else 0.0
    x = (a1 - y * _dot(a, b)) / aa
    if min(x, y) >= 0:
        return x, y
    # The better of the two fits that leave one term out: it explains more of the ones.
    bb, b1 = _dot(b, b), math.fsum(b)
    return (a1 / aa, 0.0) if a1 * a1 / aa > b1 * b1 / bb else (0.0, b1 / bb)
