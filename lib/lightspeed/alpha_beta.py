"""Latency and bandwidth together: how the two terms of a transfer join, and a fit of both to
measured times.

`latency` is the alpha of a step or of all steps (s), `transfer` bytes on the busiest link or the
seconds they take. Used in chapter 7. For the kinds of number see `lightspeed.law.law`.

Source: Hockney, "The communication challenge for MPP" (Parallel Computing 20(3), 1994), for alpha
and beta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightspeed.elementwise import Value, is_array
from lightspeed.errors import BadArgument
from lightspeed.law import Argument, checked, law, nonnegative, positive
from lightspeed.roofline import BANDWIDTH

__all__ = ("AlphaBeta", "fit_alpha_beta", "half_rate_size", "overlapped_time")

LATENCY = nonnegative("s")
EXPONENT = Argument(
    low=0.5,
    above=False,
    high=1.0,
    hint="1 adds the two times, 1/2 is a pipeline with the best chunks.",
)


@law("s", latency=LATENCY, transfer=LATENCY, exponent=EXPONENT)
def overlapped_time(latency: Value, transfer: Value, exponent: Value = 0.5) -> Value:
    """Seconds of a pipeline with this `latency` (s) of all steps and this `transfer` time (s): (l^e
    + t^e)^(1/e).

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
def half_rate_size(latency: Value, bandwidth: Value, exponent: Value = 1.0) -> Value:
    """Bytes at which half of `bandwidth` is reached: alpha x beta, 5.8 times that in the best
    pipeline.

    >>> half_rate_size(10e-6, 1e9), round(half_rate_size(10e-6, 1e9, 0.5))
    (10 kB, 58284)
    """
    return latency * bandwidth / (2**exponent - 1) ** (1 / exponent)


@dataclass(frozen=True)
class AlphaBeta:
    """`latency` (s a step), `bandwidth` (byte/s) and `exponent` that fit measured times;
    `residuals`: model / measured - 1.
    """

    latency: float
    bandwidth: float
    exponent: float
    residuals: tuple[float, ...]

    def time(self, transfer: Value, steps: Value = 1.0) -> Value:
        """Seconds for `transfer` bytes on the busiest link in so many steps."""
        return overlapped_time.__wrapped__(
            self.latency * steps, transfer / self.bandwidth, self.exponent
        )


def fit_alpha_beta(
    transfer: Any, time: Value, steps: Value = 1.0, exponent: Value = 1.0
) -> AlphaBeta:
    """The `AlphaBeta` of measured times (s) of `transfer` bytes on the busiest link, by relative
    least squares.

    time^e is linear in the unknowns, so there is no first guess; neither can come out negative.
    `steps` multiplies alpha. Look at the residuals: a fit pinned to both ends says nothing of the
    middle.

    Raises BadArgument for fewer than two points or arrays of different lengths.
    """
    transfer = _floats("transfer", transfer, positive("byte"))
    time = _floats("time", time, positive("s"))
    steps = _floats("steps", steps, positive())
    if len(transfer) != len(time) or len(time) < 2:
        raise BadArgument(
            "fit_alpha_beta",
            "time",
            time,
            f"one time for each of the {len(transfer)} transfers, and at least two",
        )
    if len(steps) not in (1, len(time)):
        raise BadArgument(
            "fit_alpha_beta",
            "steps",
            steps,
            f"one number, or one for each of the {len(time)} times",
        )
    exponent = checked("fit_alpha_beta", "exponent", exponent, EXPONENT)
    steps = steps * len(time) if len(steps) == 1 else steps
    most, longest = max(steps), max(time)
    slow = max(b / t for b, t in zip(transfer, time, strict=True))  # both columns of order one
    waits = [(n / most * longest / t) ** exponent for n, t in zip(steps, time, strict=True)]
    moves = [(b / t / slow) ** exponent for b, t in zip(transfer, time, strict=True)]
    first, second = _least_squares(waits, moves)
    if not second > 0:
        raise BadArgument(
            "fit_alpha_beta",
            "transfer",
            transfer,
            "times that grow with the bytes",
            "The fit has no bandwidth.",
        )
    fitted = AlphaBeta(
        float(first ** (1 / exponent) * longest / most),
        float(slow / second ** (1 / exponent)),
        float(exponent),
        (),
    )
    rows = zip(transfer, steps, time, strict=True)
    residuals = tuple(float(fitted.time(b, n) / t - 1) for b, n, t in rows)
    return AlphaBeta(fitted.latency, fitted.bandwidth, fitted.exponent, residuals)


def _floats(name: str, values: Any, spec: Argument) -> list[float]:
    """One number, or a list, tuple or array of them, as a list."""
    if isinstance(values, (list, tuple)):
        return [float(checked("fit_alpha_beta", name, value, spec)) for value in values]
    values = checked("fit_alpha_beta", name, values, spec)
    return [float(value) for value in values.ravel()] if is_array(values) else [float(values)]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(u * v for u, v in zip(a, b, strict=True))


def _least_squares(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The x and y of which neither is negative, with the least sum of (1 - x a - y b)^2."""
    aa, a1 = _dot(a, a), math.fsum(a)
    # What of b (and of one) no multiple of a explains, so that nothing is squared twice.
    rest = [v - _dot(a, b) / aa * u for u, v in zip(a, b, strict=True)]
    left = [1 - a1 / aa * u for u in a]
    square = _dot(rest, rest)
    y = _dot(rest, left) / square if square else 0.0
    x = (a1 - y * _dot(a, b)) / aa
    if min(x, y) >= 0:
        return x, y
    # The better of the two fits that leave one term out: it explains more of the ones.
    bb, b1 = _dot(b, b), math.fsum(b)
    return (a1 / aa, 0.0) if a1 * a1 / aa > b1 * b1 / bb else (0.0, b1 / bb)
