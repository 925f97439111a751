"""The roofline: how fast can this possibly run, and what stops it? Derived in chapter 2.

Every function takes plain numbers in SI (FLOP, byte, s, FLOP/s, byte/s), numpy arrays of
them, or quantities from `lightspeed.units`; see `lightspeed.law.law`. A multiply-add is
two FLOPs. B is the number of tokens in a batch, D the contracted and F the output dimension
of a matrix product X[B, D] Y[D, F] = Z[B, F].

Sources: Williams, Waterman and Patterson, "Roofline" (CACM 52(4), 2009); Austin et al.,
"How to Scale Your Model", chapter 1 (2025).
"""

from dataclasses import dataclass

from lightspeed.elementwise import Result, Value, divide, maximum, minimum
from lightspeed.law import ELEMENT_BYTES, Argument, count, law, nonnegative, positive

__all__ = (
    "TimeBounds", "achievable_time", "arithmetic_intensity", "attainable",
    "attention_crossover", "attention_intensity", "batched_matmul_bytes", "compute_time",
    "critical_batch", "critical_batch_exact", "critical_depth", "crossover_size", "dot_bytes",
    "dot_flops", "elementwise_intensity", "iron_law", "matmul_bytes", "matmul_flops",
    "matmul_intensity", "multi_hop_time", "ridge_point", "split_matmul_bounds",
    "tile_intensity", "tiled_matmul_bytes", "time_bounds", "transfer_time",
)  # fmt: skip

PEAK = positive(
    "FLOP/s",
    hint="Peaks are dense and per chip: a sparse peak on a data sheet is twice the dense one.",
)
BANDWIDTH = positive(
    "byte/s", hint="Link rates are per direction and in bytes: 400 Gbit/s is 50 GB/s."
)
SHARE = Argument(high=1.0, hint="A share is a fraction, not a percentage: 80 % is 0.8.")
INTENSITY = nonnegative("FLOP/byte")
# An operation on a chip, and the times that are said of it.
WORK = {
    "flops": nonnegative("FLOP"),
    "size": nonnegative("byte"),
    "peak": PEAK,
    "bandwidth": BANDWIDTH,
}
TIMES = dict.fromkeys(("math", "comms", "lower", "upper"), "s")
# The sides of the weights Y[D, F], and how wide an element of Y, X and Z is.
MATRICES = {
    "D": count(),
    "F": count(),
    "weight_bytes": ELEMENT_BYTES,
    "activation_bytes": ELEMENT_BYTES,
    "output_bytes": ELEMENT_BYTES,
}

# Bytes of one element in memory, by format.
WIDTH = {"fp32": 4, "bf16": 2, "fp8": 1, "int8": 1, "int4": 0.5}


@dataclass(frozen=True)
class TimeBounds:
    """The bounds on an operation's time (s) from arithmetic and from data movement, and which takes
    longer.

    `lower` is perfect overlap, `upper` none at all; `upper` is never above 2 * `lower`.
    """

    math: float
    comms: float
    lower: float
    upper: float
    compute_bound: bool


@law("s", flops=nonnegative("FLOP"), peak=PEAK)
def compute_time(flops: Value, peak: Value) -> Result:
    """Seconds of arithmetic for `flops` at the rate `peak` (FLOP/s).

    >>> compute_time(1e12, 1e15)
    1 ms
    """
    return flops / peak


@law("s", size=nonnegative("byte"), bandwidth=BANDWIDTH, latency=nonnegative("s"))
def transfer_time(size: Value, bandwidth: Value, latency: Value = 0.0) -> Result:
    """Seconds to move `size` bytes at `bandwidth` (byte/s), after a start-up `latency` (s).

    >>> transfer_time(1e9, 10e9 / 8, latency=0.01)
    810 ms
    """
    return latency + size / bandwidth


@law("byte", latency=nonnegative("s"), bandwidth=BANDWIDTH)
def crossover_size(latency: Value, bandwidth: Value) -> Result:
    """The size in bytes at which the latency term and the bandwidth term are equal.

    Smaller transfers wait on latency, larger ones on bandwidth; this one reaches half the rate.

    >>> crossover_size(0.01, 1.25e9)
    12.5 MB
    """
    return latency * bandwidth


@law("FLOP/byte", flops=nonnegative("FLOP"), size=positive("byte"))
def arithmetic_intensity(flops: Value, size: Value) -> Result:
    """FLOPs done per byte moved.

    >>> arithmetic_intensity(2e9, 1e9)
    2 FLOP/byte
    """
    return flops / size


@law("FLOP/byte", peak=PEAK, bandwidth=BANDWIDTH)
def ridge_point(peak: Value, bandwidth: Value) -> Result:
    """The intensity (FLOP/byte) at which `peak` (FLOP/s) and `bandwidth` (byte/s) meet.

    >>> ridge_point(312e12, 2e12)
    156 FLOP/byte
    """
    return peak / bandwidth


@law("FLOP/s", intensity=INTENSITY, peak=PEAK, bandwidth=BANDWIDTH)
def attainable(intensity: Value, peak: Value, bandwidth: Value) -> Result:
    """The height of the roof over `intensity` (FLOP/byte), in FLOP/s.

    >>> attainable(0.25, 312e12, 2e12)
    500 GFLOP/s
    """
    return minimum(peak, intensity * bandwidth)


@law(TIMES, **WORK)
def time_bounds(flops: Value, size: Value, peak: Value, bandwidth: Value) -> TimeBounds:
    """The `TimeBounds` (s) of an operation of `flops` FLOPs that moves `size` bytes.

    >>> time_bounds(1e12, 1e9, 1e15, 1e12).lower
    1 ms
    """
    t_math, t_comms = flops / peak, size / bandwidth
    return TimeBounds(
        t_math, t_comms, maximum(t_math, t_comms), t_math + t_comms, t_math >= t_comms
    )


@law("s", **WORK, math_share=SHARE, comms_share=SHARE)
def achievable_time(
    flops: Value,
    size: Value,
    peak: Value,
    bandwidth: Value,
    math_share: Value = 1.0,
    comms_share: Value = 1.0,
) -> Result:
    """Seconds on a roof lowered to measured shares (0 to 1] of peak and bandwidth.

    With both shares 1 this is `time_bounds(...).lower`.

    >>> achievable_time(1e12, 1e9, 1e15, 1e12, math_share=0.5)
    2 ms
    """
    return maximum(flops / (peak * math_share), size / (bandwidth * comms_share))


@law("s", **WORK, utilization=SHARE, latency=nonnegative("s"))
def iron_law(
    flops: Value,
    size: Value,
    peak: Value,
    bandwidth: Value,
    utilization: Value = 1.0,
    latency: Value = 0.0,
) -> Result:
    """Seconds when nothing overlaps: bytes / bandwidth + FLOPs / (peak * utilization) + latency.

    >>> iron_law(1e12, 1e9, 1e15, 1e12, utilization=0.5, latency=1e-3)
    4 ms
    """
    return size / bandwidth + flops / (peak * utilization) + latency


@law("FLOP", B=count(), D=count(), F=count())
def matmul_flops(B: Value, D: Value, F: Value) -> Result:
    """FLOPs of X[B, D] Y[D, F]: one multiply and one add per (b, d, f).

    The exact count is B F (2 D - 1); the course, like the field, counts the last add too.

    >>> matmul_flops(1, 4096, 4096)
    33.6 MFLOP
    """
    return 2 * B * D * F


@law("byte", B=count(), **MATRICES)
def matmul_bytes(
    B: Value,
    D: Value,
    F: Value,
    weight_bytes: Value = 2,
    activation_bytes: Value = 2,
    output_bytes: Value = 2,
) -> Result:
    """Bytes of X[B, D] Y[D, F]: X and Y are read once, Z is written once (element sizes in bytes).

    >>> matmul_bytes(1, 1024, 1024, 1, 1, 1)
    1.05 MB
    """
    return B * D * activation_bytes + D * F * weight_bytes + B * F * output_bytes


@law("FLOP/byte", B=count(), **MATRICES)
def matmul_intensity(
    B: Value,
    D: Value,
    F: Value,
    weight_bytes: Value = 2,
    activation_bytes: Value = 2,
    output_bytes: Value = 2,
) -> Result:
    """FLOP/byte of X[B, D] Y[D, F]; close to 2 B / weight_bytes while B is far below D and F.

    >>> matmul_intensity(1, 4096, 4096)
    1 FLOP/byte
    """
    size = matmul_bytes(B, D, F, weight_bytes, activation_bytes, output_bytes)
    return arithmetic_intensity(matmul_flops(B, D, F), size)


@law("byte", B=count(), **MATRICES)
def batched_matmul_bytes(
    B: Value,
    D: Value,
    F: Value,
    weight_bytes: Value = 2,
    activation_bytes: Value = 2,
    output_bytes: Value = 2,
) -> Result:
    """Bytes of X[B, D] Y[B, D, F]: every row has a matrix of its own, so no weight is reused.

    >>> batched_matmul_bytes(2, 4, 8, 1, 1, 1)
    88 bytes
    """
    return B * D * activation_bytes + B * D * F * weight_bytes + B * F * output_bytes


@law("", ridge=positive("FLOP/byte"), weight_bytes=ELEMENT_BYTES)
def critical_batch(ridge: Value, weight_bytes: Value = 2) -> Result:
    """Tokens above which a matmul is compute-bound, while B is far below D and F.

    The intensity is then 2 B / weight_bytes; it meets the ridge (FLOP/byte) here.

    >>> critical_batch(240.0), critical_batch(240.0, weight_bytes=1)
    (240, 120)
    """
    return ridge * weight_bytes / 2


@law("", ridge=positive("FLOP/byte"), **MATRICES)
def critical_batch_exact(
    D: Value,
    F: Value,
    ridge: Value,
    weight_bytes: Value = 2,
    activation_bytes: Value = 2,
    output_bytes: Value = 2,
) -> Result:
    """Tokens at which X[B, D] Y[D, F] reaches the ridge, counting every byte.

    Solves 2 B D F = ridge (B D a + D F w + B F o) for B. Infinity if no batch reaches it, because
    the activations alone keep the intensity below the ridge.

    >>> round(critical_batch_exact(1024, 1024, 240.0), 1)
    451.8
    """
    gained = 2 * D * F - ridge * (D * activation_bytes + F * output_bytes)
    return divide(ridge * D * F * weight_bytes, gained)


@law("FLOP", n=count())
def dot_flops(n: Value) -> Result:
    """FLOPs of a dot product of two vectors of n: n multiplies and n - 1 adds.

    >>> dot_flops(1024)
    2,047 FLOP
    """
    return 2 * n - 1


@law("byte", n=count(), element_bytes=ELEMENT_BYTES)
def dot_bytes(n: Value, element_bytes: Value = 2) -> Result:
    """Bytes of a dot product: two vectors read, one number written.

    >>> dot_bytes(1024)
    4,098 bytes
    """
    return (2 * n + 1) * element_bytes


@law(
    "FLOP/byte",
    flops_per_element=positive("FLOP"),
    reads=count(low=0),
    writes=count(low=0),
    element_bytes=ELEMENT_BYTES,
)
def elementwise_intensity(
    flops_per_element: Value = 1, reads: Value = 1, writes: Value = 1, element_bytes: Value = 2
) -> Result:
    """FLOP/byte of an elementwise kernel that reads `reads` and writes `writes` tensors.

    ReLU in bf16 does one operation for two bytes read and two written.

    >>> elementwise_intensity()
    0.25 FLOP/byte
    """
    return flops_per_element / ((reads + writes) * element_bytes)


@law("byte", m=count(), n=count(), k=count(), bm=count(), bn=count(), element_bytes=ELEMENT_BYTES)
def tiled_matmul_bytes(
    m: Value, n: Value, k: Value, bm: Value, bn: Value, element_bytes: Value = 2
) -> Result:
    """Bytes that an (m, k) x (k, n) matmul moves when its output is made in bm x bn tiles.

    Each output tile reads a full bm x k strip and a full k x bn strip, and is written once.
    Tiles that do not divide the matrix count as whole tiles, as the hardware runs them.

    >>> tiled_matmul_bytes(512, 512, 512, 512, 512) == matmul_bytes(512, 512, 512)
    True
    """
    tiles_m, tiles_n = -(-m // bm), -(-n // bn)
    return tiles_m * tiles_n * (bm * k + k * bn + bm * bn) * element_bytes


@law("FLOP/byte", bm=count(), bn=count(), element_bytes=ELEMENT_BYTES)
def tile_intensity(bm: Value, bn: Value, element_bytes: Value = 2) -> Result:
    """FLOP/byte of a tiled matmul with a long contraction: 2 bm bn / ((bm + bn) element_bytes).

    >>> tile_intensity(128, 128)
    64 FLOP/byte
    """
    return 2 * bm * bn / ((bm + bn) * element_bytes)


@law("FLOP/byte", T=count(), S=count(), G=count(), element_bytes=ELEMENT_BYTES)
def attention_intensity(T: Value, S: Value, G: Value = 1, element_bytes: Value = 2) -> Result:
    """FLOP/byte of attention: T query tokens over S cached tokens, G query heads per KV head.

    Counts Q K' and A V, reads Q, K, V and writes the output; scores stay on chip.
    In bf16 this is T S G / (T G + S): about G when decoding (T = 1), about T G / (G + 1) in a
    prefill (S = T).

    >>> attention_intensity(1, 10**6, G=8) < 8
    True
    """
    return 2 * T * S * G / ((T * G + S) * element_bytes)


@law(
    TIMES,
    B=count(),
    D=count(),
    F=count(),
    peak=PEAK,
    bandwidth=BANDWIDTH,
    element_bytes=ELEMENT_BYTES,
)
def split_matmul_bounds(
    B: Value, D: Value, F: Value, peak: Value, bandwidth: Value, element_bytes: Value = 2
) -> TimeBounds:
    """`TimeBounds` (s) of X[B, D] Y[D, F] with D split over two chips joined by a link.

    Each chip does half the FLOPs at `peak` (FLOP/s) and sends its partial sum, B F elements,
    to the other at `bandwidth` (byte/s, one direction; both directions run at once).

    >>> split_matmul_bounds(128, 8192, 8192, 197e12, 45e9).compute_bound
    False
    """
    return time_bounds(matmul_flops(B, D, F) / 2, B * F * element_bytes, peak, bandwidth)


@law("", D=count(), G=count())
def attention_crossover(D: Value, G: Value = 1) -> Result:
    """Tokens of context at which attention does as many FLOPs as its own four projections.

    Over T tokens, the projections of queries and of the output do 4 T D^2 FLOPs and those of keys
    and values a G-th of that, with G query heads to a KV head; scores and values do 4 T^2 D. So T =
    D (1 + 1 / G). Half of the scores are masked in a causal model; kernels that skip them double
    it.

    >>> attention_crossover(4096), attention_crossover(4096, G=8)
    (8,192, 4,608)
    """
    return D * (1 + 1 / G)


@law("", peak=PEAK, bandwidth=BANDWIDTH, element_bytes=ELEMENT_BYTES)
def critical_depth(peak: Value, bandwidth: Value, element_bytes: Value = 2) -> Result:
    """The contraction length D above which a matmul split over two chips is compute-bound.

    >>> round(critical_depth(1.97e14, 4.5e10))
    8756
    """
    return element_bytes * peak / bandwidth


@law(
    "s",
    size=nonnegative("byte"),
    bandwidth=BANDWIDTH,
    hops=count(low=0),
    hop_latency=nonnegative("s"),
)
def multi_hop_time(size: Value, bandwidth: Value, hops: Value, hop_latency: Value) -> Result:
    """Seconds for `size` bytes to arrive over `hops` links that forward as they receive.

    >>> round(multi_hop_time(16777216, 90e9, 6, 1e-6) * 1e6)
    192
    """
    return hops * hop_latency + size / bandwidth
