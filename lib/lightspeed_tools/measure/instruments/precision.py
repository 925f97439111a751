"""Real sums and matrix products in each number format: how wrong, and how fast. Chapter 5.

numpy computes fp32 and fp64 in the units, fp16 by widening and rounding each number, and bf16
through ml_dtypes in the same way; so the errors are those of the formats and the speeds those of
the software. Products in bf16 and int8 come from torch where it is installed.
"""

import functools
import math

import numpy as np

from lightspeed.errors import one_of
from lightspeed.precision import FORMATS
from lightspeed.quantization import quantize_symmetric
from lightspeed_models.simulators.sums import accumulate
from lightspeed_tools.measure.environment import importable
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, seconds_of

SUMMED = 4096  # numbers in a sum
DRAWS = 128  # sums in one sample of the error
TIMED = 16  # sums in one call of the clock
SIDE = 256  # of the matrices
SAMPLES = 7
PRODUCTS = ("fp64", "fp32", "fp16", "bf16", "int8")
ORDERS = ("running", "library", "fp32")


def measure(quick=True, report=None):
    """Errors and speeds: `precision.sum`, `precision.sum_error`, `precision.matmul`,
    `precision.matmul_error`.

    An error is relative and root-mean-square: of DRAWS sums of SUMMED uniform numbers against
    `math.fsum`, and of a product of normal matrices against fp64 (fp64's own against exact sums).
    Speeds are in FLOP/s, OP/s for int8.
    """
    say = report or (lambda text: None)
    say("sums")
    quantities = sums()
    say("matrix products")
    return quantities + matmuls()


@functools.cache
def types():
    """Name -> numpy type of the formats that numpy can compute in here."""
    import ml_dtypes

    return {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}


def summed(values, order):
    """The sum over the last axis in the values' own type: "running", one after another; "library",
    `values.sum()`; "fp32", accumulated wide and rounded.
    """
    one_of("summed", "order", order, ORDERS)
    if order == "running":
        return np.add.accumulate(values, axis=-1)[..., -1]
    if order == "library":
        return values.sum(axis=-1)
    return values.sum(axis=-1, dtype=np.float32).astype(values.dtype)


def sums():
    """Error and speed of sums of SUMMED numbers, uniform from 0 to 1, in each format and order."""
    rng, quantities = np.random.default_rng(0), []
    draws = rng.random((SAMPLES, DRAWS, SUMMED))
    for dtype, kind in types().items():
        # rounded once: a cast by way of fp32 can round twice
        stored = FORMATS[dtype].round(draws).astype(kind)
        exact = np.array(
            [[math.fsum(row) for row in sample] for sample in stored.astype(np.float64)]
        )
        for order in ORDERS:
            if order == "fp32" and dtype in ("fp32", "fp64"):
                continue
            where = {"dtype": dtype, "order": order, "n": SUMMED}
            error = summed(stored, order).astype(np.float64) / exact - 1
            quantities.append(
                Quantity(
                    "precision.sum_error", "", np.sqrt((error**2).mean(axis=1)), where, "lower"
                )
            )
            timed = stored[0, :TIMED]
            seconds = seconds_of(lambda x=timed, order=order: summed(x, order), 21, least=0.0005)
            count = timed.size
            counted = {"flops": count, "bytes": timed.nbytes}
            quantities.append(
                Quantity(
                    "precision.sum", "FLOP/s", [count / t for t in seconds], where, counted=counted
                )
            )
    return quantities


def matmuls():
    """Error and speed of products of SIDE by SIDE normal matrices in each format."""
    pairs = np.random.default_rng(1).standard_normal((SAMPLES, 2, SIDE, SIDE))
    flops = 2 * SIDE**3
    quantities: list = []
    for dtype in PRODUCTS:
        errors = []
        for x, w in pairs:
            product = prepared(dtype, x, w)
            if isinstance(product, Missing):
                quantities.append(product)
                break
            library, multiply, finish = product
            got = finish(multiply())
            errors.append(exact_error(x, w, got) if dtype == "fp64" else relative_error(got, x @ w))
        else:
            where = {"dtype": dtype, "n": SIDE, "library": library}
            unit = "OP/s" if dtype == "int8" else "FLOP/s"
            seconds = seconds_of(multiply, 7, warmup=1, least=0.002)
            quantities.append(Quantity("precision.matmul_error", "", errors, where, "lower"))
            quantities.append(
                Quantity(
                    "precision.matmul",
                    unit,
                    [flops / t for t in seconds],
                    where,
                    counted={"flops": flops},
                )
            )
    return quantities


def prepared(dtype, x, w):
    """Two fp64 matrices in a format: (library, a call that multiplies them, what makes it fp64);
    int8 with scales by row and column. A `Missing` without torch.
    """
    torch = importable("torch")
    if dtype == "int8":
        qx, qw = quantize_symmetric(x, axis=0), quantize_symmetric(w, axis=1)
        a, b, scale = qx.codes.astype(np.int8), qw.codes.astype(np.int8), qx.scale * qw.scale
        if torch:
            a, b = torch.from_numpy(a), torch.from_numpy(b.T.copy()).t()
            return "torch", lambda: torch._int_mm(a, b), lambda c: c.numpy() * scale
        return "numpy", lambda: np.matmul(a, b, dtype=np.int32), lambda c: c * scale
    if dtype == "bf16":
        if not torch:
            return Missing(
                "precision.matmul",
                "bf16: torch is not installed, and numpy would widen it to fp32 first.",
                "Install it with: pip install torch",
            )
        a, b = (torch.from_numpy(m).to(torch.bfloat16) for m in (x, w))
        return "torch", lambda: a @ b, lambda c: c.double().numpy()
    a, b = x.astype(types()[dtype]), w.astype(types()[dtype])
    return "numpy", lambda: a @ b, lambda c: c.astype(np.float64)


def relative_error(got, exact):
    """Root-mean-square error over root-mean-square value."""
    return float(np.sqrt(np.mean((got - exact) ** 2) / np.mean(exact**2)))


def exact_error(x, w, got):
    """The same over the diagonal of `got`, with exact sums of split products (Dekker, 1971)."""
    left, values = [], []
    for k in range(len(got)):
        parts = np.concatenate(_exact_products(x[k], w[:, k])).tolist()
        left.append(math.fsum([*parts, -got[k, k]]))
        values.append(math.fsum(parts))
    return math.hypot(*left) / math.hypot(*values)


def _exact_products(a, b):
    """(p, e) with p + e = a b exactly."""
    p = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a):
    """An upper and a lower part of at most 26 bits each, whose sum is a (Veltkamp)."""
    scaled = (2.0**27 + 1) * a
    upper = scaled - (scaled - a)
    return upper, a - upper


# ---------------------------------------------------------------- what the laws of chapter 5 say


def sum_bound(dtype, n=SUMMED, accumulator=None):
    """The largest relative error of a sum of n numbers that are not negative, in whatever order;
    inf if it bounds nothing.

    Each of n - 1 additions is off by at most half a step u of the accumulator: (n - 1) u / (1 - (n
    - 1) u); storing the sum costs another half step of the format. Source: Higham, "Accuracy and
    Stability of Numerical Algorithms" (2002), chapter 4.
    """
    u = FORMATS[accumulator or dtype].eps / 2
    grown = (n - 1) * u
    if grown >= 1:
        return math.inf
    return grown / (1 - grown) + (FORMATS[dtype].eps / 2 if accumulator else 0)


@functools.cache
def predicted_sum_error(dtype):
    """The error of running `sums`, by the chapter's `accumulate`, without numpy's formats."""
    draws = np.random.default_rng(0).random((SAMPLES * DRAWS, SUMMED))
    got = accumulate(draws, FORMATS[dtype])
    exact = np.array([math.fsum(FORMATS[dtype].round(row)) for row in draws])
    off = (got / exact - 1).reshape(SAMPLES, DRAWS)
    return float(np.median(np.sqrt((off**2).mean(axis=1))))


@functools.cache
def predicted_matmul_error(dtype):
    """The noise of storing in a product: the root of the sum of squares over x, w and the result
    (whole in int8). The accumulator's own, which fp32 shows, is left out.
    """
    x, w = np.random.default_rng(1).standard_normal((2, SIDE, SIDE))
    if dtype == "int8":
        stored = [
            (quantize_symmetric(x, axis=0).values, x),
            (quantize_symmetric(w, axis=1).values, w),
        ]
    else:
        stored = [(FORMATS[dtype].round(m), m) for m in (x, w, x @ w)]
    return math.hypot(*(relative_error(kept, m) for kept, m in stored))
