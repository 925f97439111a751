"""Quantization: fewer bits for many numbers that share a scale. Derived in chapter 5.

A quantized number is code * scale; the scale is shared by a tensor, a channel or a block. Sources:
Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference" (2017); OCP Microscaling Formats (MX) v1.0 (2023); the block layouts of ggml.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lightspeed.elementwise import Result, Value, log10, maximum, minimum, rint, where
from lightspeed.errors import BadArgument
from lightspeed.law import checked, count, law, nonnegative, positive, real
from lightspeed.precision import FORMATS, Format

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = (
    "BLOCK_FORMATS", "GGML_BLOCKS", "BlockFormat", "Quantized", "asymmetric_scale",
    "bits_per_weight", "crest_factor", "quantize_asymmetric", "quantize_symmetric",
    "quantized_matmul", "questions_to_see", "score_error", "sqnr", "sqnr_law", "symmetric_code",
    "symmetric_scale", "weight_bytes",
)  # fmt: skip

BITS = count(low=2, high=16)
ELEMENT_BITS = positive("bit", high=64.0, hint="Bits, not bytes: bf16 is 16 bits.")


@dataclass(frozen=True)
class Quantized:
    """Integer codes and what they stand for: (codes - zero_point) * scale, element by element."""

    codes: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray | int = 0

    @property
    def values(self) -> Any:
        return (self.codes - self.zero_point) * self.scale


def quantize_symmetric(
    x: NDArray[Any],
    bits: int = 8,
    axis: int | None = None,
    block: int | None = None,
    amax: float | None = None,
) -> Quantized:
    """Codes from -(2^(bits-1) - 1) to 2^(bits-1) - 1, zero being zero: scale = amax / (2^(bits-1) -
    1).

    One scale for the tensor; or one for each index of `axis` (a channel); or one for each `block`
    elements along the last axis. `amax` is the largest magnitude to represent, and what lies
    beyond is clipped; left out, it is the largest there is.

    >>> import numpy as np
    >>> quantize_symmetric(np.array([0.5, -1.2, 3.0, -3.0])).codes.tolist()
    [21, -51, 127, -127]
    """
    import numpy as np

    this = "quantize_symmetric"
    x, top = _tensor(this, x), 2 ** (checked(this, "bits", bits, BITS) - 1) - 1
    if amax is None:
        amax = _by_group(this, np.max, np.abs(x), axis, block)
    else:
        amax = checked(this, "amax", amax, positive())
    scale = _nonzero(amax / top)
    return Quantized(np.asarray(symmetric_code(x, scale, top)).astype(np.int64), np.asarray(scale))


@law("", amax=nonnegative(), bits=BITS)
def symmetric_scale(amax: Value, bits: int = 8) -> Result:
    """The step between codes when the largest magnitude gets the last code: amax / (2^(bits-1) -
    1).

    >>> symmetric_scale(63.5)
    0.5
    """
    return _nonzero(amax / (2 ** (bits - 1) - 1))


def symmetric_code(x: Value, scale: Value, top: int) -> Result:
    """Return x / scale as the nearest whole number, clipped to -top ... top.

    >>> symmetric_code(-1.2, symmetric_scale(3.0), 127)
    -51.0
    """
    return maximum(minimum(rint(x / scale), top), -top)


def quantize_asymmetric(
    x: NDArray[Any], bits: int = 8, axis: int | None = None, block: int | None = None
) -> Quantized:
    """Codes from 0 to 2^bits - 1 over the range of `x`: scale = (high - low) / (2^bits - 1).

    The range is widened to hold zero, and the zero point is a whole number, so that zero (padding,
    a ReLU that is off) is exact. Groups as in `quantize_symmetric`.

    >>> import numpy as np
    >>> quantize_asymmetric(np.array([0.0, 1.0, 5.1])).codes.tolist()
    [0, 50, 255]
    """
    import numpy as np

    this = "quantize_asymmetric"
    x, top = _tensor(this, x), 2 ** checked(this, "bits", bits, BITS) - 1
    low, high = (_by_group(this, edge, x, axis, block) for edge in (np.min, np.max))
    scale, zero_point = asymmetric_scale(low, high, bits)
    codes = np.clip(np.rint(x / scale) + zero_point, 0, top).astype(np.int64)
    return Quantized(codes, np.asarray(scale), np.asarray(zero_point).astype(np.int64))


def asymmetric_scale(low: Value, high: Value, bits: int = 8) -> tuple[Result, Result]:
    """Return the step between codes over a range widened to hold zero, and the code of zero.

    >>> asymmetric_scale(-1.0, 4.1)[1]
    50.0
    """
    this = "asymmetric_scale"
    top = 2 ** checked(this, "bits", bits, BITS) - 1
    low = minimum(checked(this, "low", low, real()), 0.0)
    high = maximum(checked(this, "high", high, real()), 0.0)
    scale = _nonzero((high - low) / top)
    return scale, rint(-low / scale)


def quantized_matmul(x: Quantized, w: Quantized) -> Any:
    """X[B, D] W[D, F] of two `Quantized` matrices: whole-number products, one scale at the end.

    The scales leave the sum only if they do not vary along D: X may have one a row (axis=0) and W
    one a column (axis=1). Raises BadArgument if a sum could pass the 32 bits of an accumulator.
    """
    import numpy as np

    if np.shape(x.scale)[1:] not in ((), (1,)) or np.shape(w.scale)[:1] not in ((), (1,)):
        hint = "A scale that varies along the contraction cannot be taken out of the sum."
        raise BadArgument(
            "quantized_matmul",
            "scale",
            np.shape(w.scale),
            "scales of shape (B, 1) and (1, F), or single ones",
            hint,
        )
    a, b = x.codes - x.zero_point, w.codes - w.zero_point
    bound = int(np.abs(a).max()) * int(np.abs(b).max()) * a.shape[1]
    if bound >= 2**31:
        raise BadArgument(
            "quantized_matmul", "D", a.shape[1], "sums below 2^31", f"The sum may reach {bound}."
        )
    # Products of whole numbers this small are exact in float64, and its matmul is the fast one.
    return (a.astype(np.float64) @ b.astype(np.float64)) * x.scale * w.scale


@dataclass(frozen=True)
class BlockFormat:
    """A block of elements in a small format under one scale that is itself a small number.

    An MX scale is a power of two (E8M0). NVFP4's is an E4M3 number, and one fp32 number for the
    whole tensor brings the block scales into the range of E4M3.
    """

    name: str
    element: Format
    block: int
    scale: Format

    @property
    def bits_per_weight(self) -> Result:
        return bits_per_weight(self.element.bits, self.scale.bits, self.block)

    def round(self, x: Any) -> Any:
        """Return `x` as stored, in blocks along the last axis.

        >>> import numpy as np
        >>> float(BLOCK_FORMATS["mxfp4"].round(np.full(32, 7.0))[0])
        6.0
        """
        x = _tensor(self.name, x)
        scale = self.scales(x)
        return self.element.round(x / _nonzero(scale), saturate=True) * scale

    def scales(self, x: Any) -> Any:
        """The scale over each element of `x`."""
        import numpy as np

        amax = _by_group(self.name, np.max, np.abs(_tensor(self.name, x)), None, self.block)
        if self.scale.scale:
            # The exponent of amax less that of the element's largest value (OCP MX, section 6.3).
            shift = np.frexp(amax)[1] - np.frexp(self.element.max)[1]
            return self.scale.round(np.ldexp(1.0, np.where(amax > 0, shift, 0)), saturate=True)
        whole = FORMATS["fp32"].round(amax.max() / (self.element.max * self.scale.max))
        return self.scale.round(amax / self.element.max / _nonzero(whole), saturate=True) * whole


BLOCK_FORMATS = {
    f.name: f
    for f in (
        BlockFormat("mxfp8_e4m3", FORMATS["fp8_e4m3"], 32, FORMATS["e8m0"]),
        BlockFormat("mxfp8_e5m2", FORMATS["fp8_e5m2"], 32, FORMATS["e8m0"]),
        BlockFormat("mxfp6_e2m3", FORMATS["fp6_e2m3"], 32, FORMATS["e8m0"]),
        BlockFormat("mxfp6_e3m2", FORMATS["fp6_e3m2"], 32, FORMATS["e8m0"]),
        BlockFormat("mxfp4", FORMATS["fp4_e2m1"], 32, FORMATS["e8m0"]),
        BlockFormat("nvfp4", FORMATS["fp4_e2m1"], 16, FORMATS["fp8_e4m3"]),
    )
}

# ggml-common.h: elements in a block, bits of each, bits of all scales and minima.
GGML_BLOCKS = {
    "Q4_0": (32, 4, 16),
    "Q4_1": (32, 4, 2 * 16),
    "Q5_0": (32, 5, 16),
    "Q8_0": (32, 8, 16),
    "Q2_K": (256, 2, 16 * (4 + 4) + 2 * 16),
    "Q3_K": (256, 3, 16 * 6 + 16),
    "Q4_K": (256, 4, 8 * (6 + 6) + 2 * 16),
    "Q6_K": (256, 6, 16 * 8 + 16),
}


@law("bit", element_bits=ELEMENT_BITS, scale_bits=nonnegative("bit"), block=count())
def bits_per_weight(element_bits: Value, scale_bits: Value, block: Value) -> Result:
    """Bits per weight when a `block` of weights shares `scale_bits` of scales.

    >>> bits_per_weight(4, 8, 32), bits_per_weight(4, 16, 32)
    (4.25 bits, 4.5 bits)
    """
    return element_bits + scale_bits / block


@law("byte", parameters=positive(), bits=ELEMENT_BITS)
def weight_bytes(parameters: Value, bits: Value) -> Result:
    """Bytes of `parameters` parameters of `bits` bits each.

    >>> weight_bytes(70e9, 8)
    70 GB
    """
    return parameters * bits / 8


@law(
    "",
    bits=count(high=32),
    crest=positive(low=1.0, above=False, hint="The peak is never below the root mean square."),
)
def sqnr_law(bits: Value, crest: Value = 2**0.5) -> Result:
    """The signal-to-noise ratio in dB of an ideal `bits`-bit quantizer: 6.02 bits + 4.77 - 20
    log10(crest).

    `crest` is the signal's peak over its root mean square: sqrt(2) for a full-scale sine, which
    gives 6.02 bits + 1.76. The error is taken as uniform over a step, a step being 2 peak / 2^bits.

    >>> round(sqnr_law(8), 2)
    49.93
    """
    return 20 * bits * log10(2.0) + 10 * log10(3.0) - 20 * log10(crest)


SHARE = positive(high=1.0, hint="A share of the questions: 5 % is 0.05.")


@law("", changed=SHARE, questions=positive())
def score_error(changed: Value, questions: Value) -> Result:
    """The standard error of the difference of two scores: sqrt(changed / questions).

    `changed` is the share of questions that one side gets right and the other wrong: what you count
    if both answer the same questions, and 2 p (1 - p) for two draws that are right with chance p.

    >>> score_error(2 * 0.8 * 0.2, 1319)
    0.0156
    """
    return (changed / questions) ** 0.5


@law("", loss=SHARE, changed=SHARE, errors=positive())
def questions_to_see(loss: Value, changed: Value, errors: Value = 2.0) -> Result:
    """Questions that a test needs for `loss` to equal `errors` standard errors: changed (errors /
    loss)^2. `changed` as in `score_error`.

    >>> questions_to_see(0.01, 0.05)
    2,000
    """
    return changed * (errors / loss) ** 2


def crest_factor(x: NDArray[Any]) -> float:
    """The peak of `x` over its root mean square: 1 for a square wave, about 5 for a million
    Gaussians.

    >>> import numpy as np
    >>> crest_factor(np.array([1.0, -1.0]))
    1.0
    """
    import numpy as np

    x = _tensor("crest_factor", x)
    return float(np.abs(x).max() / np.sqrt(np.mean(x**2)))


def sqnr(x: NDArray[Any], stored: NDArray[Any]) -> float:
    """The signal-to-noise ratio in dB of `stored` as a stand-in for `x`; infinite if it is exact.

    >>> import numpy as np
    >>> round(sqnr(np.array([3.0, 4.0]), np.array([3.0, 4.5])), 1)
    20.0
    """
    import numpy as np

    x, stored = _tensor("sqnr", x), checked("sqnr", "stored", stored, real())
    noise = np.sum((x - stored) ** 2)
    return float(10 * np.log10(np.sum(x**2) / noise)) if noise > 0 else float("inf")


def _tensor(law: str, x: Any) -> Any:
    import numpy as np

    return np.asarray(checked(law, "x", x, real()))


def _nonzero(scale: Any) -> Any:
    """`scale` with 1 for 0: any scale stores a group of zeros."""
    return where(scale > 0, scale, 1.0)


def _by_group(
    law: str, reduce: Callable[..., Any], x: Any, axis: int | None, block: int | None
) -> Any:
    """`reduce` over each group of `x`, in a shape that broadcasts against `x`."""
    import numpy as np

    if axis is not None and block is not None:
        raise BadArgument(law, "block", block, "either axis or block, not both")
    if block is not None:
        block = checked(law, "block", block, count())
        if x.ndim == 0 or x.shape[-1] % block:
            raise BadArgument(law, "block", block, f"a divisor of the last axis of shape {x.shape}")
        return np.repeat(reduce(x.reshape(*x.shape[:-1], -1, block), axis=-1), block, axis=-1)
    if axis is None:
        return reduce(x)
    if isinstance(axis, bool) or not isinstance(axis, int) or not -x.ndim <= axis < x.ndim:
        raise BadArgument(law, "axis", axis, f"an axis of shape {x.shape}")
    return reduce(x, axis=tuple(i for i in range(x.ndim) if i != axis % x.ndim), keepdims=True)
