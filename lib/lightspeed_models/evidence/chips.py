"""The chips and number formats that public tables name, in the words of the catalog, and the times
that a chip's peaks allow for a product.
"""

import functools
from dataclasses import dataclass

import numpy as np

from lightspeed.catalog import find
from lightspeed.collectives import busbw_factor
from lightspeed.roofline import matmul_bytes, matmul_flops
from lightspeed.serving import kv_cache_bytes
from lightspeed_models.products import narrowing_bytes

# What a device calls itself -> its key in the catalog.
DEVICES = {
    "NVIDIA A100-SXM4-80GB": "a100_80gb",
    "NVIDIA H100 80GB HBM3": "h100_sxm",
    "NVIDIA H100": "h100_sxm",
    "NVIDIA H200": "h200_sxm",
    "NVIDIA B200": "b200",
    "NVIDIA GB200": "gb200",
    "NVIDIA B300 SXM6 AC": "b300",
    "NVIDIA GB300": "gb300",
    "NVIDIA L40S": "l40s",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx_pro_6000",
    "Intel(R) Graphics [0xe211]": "arc_b60",
    "Intel(R) Arc(TM) Pro B60 Graphics": "arc_b60",
}
# A chip's clock may exceed the one of its data sheet by this before a row is called impossible.
AT_MOST = 1.05


@dataclass(frozen=True)
class Format:
    """Bytes of an element of weights, of activations and of the output, and whose peak counts.
    `reads`: how often bf16 activations are read to make them narrow.
    """

    peak: str
    weight_bytes: float
    activation_bytes: float
    output_bytes: float = 2
    reads: int = 0


# nvfp4 has an fp8 scale for 16 elements. "wo" is weights only: they are widened to bf16 before the
# product. "sq" is SmoothQuant: int8 on both sides. The collectors start from bf16 activations and
# time the pass that makes them narrow too; with one scale for a row or a tensor, found as they run
# ("fp8"), its largest value has to be found first.
FORMATS = {
    "bfloat16": Format("bf16", 2, 2),
    "fp8": Format("fp8", 1, 1, reads=2),
    "fp8_static": Format("fp8", 1, 1, reads=1),
    "fp8_block": Format("fp8", 1, 1, reads=1),
    "nvfp4": Format("fp4", 0.5 + 1 / 16, 0.5 + 1 / 16, reads=1),
    "int8_wo": Format("bf16", 1, 2),
    "int4_wo": Format("bf16", 0.5, 2),
    "sq": Format("int8", 1, 1, reads=1),
}

# What a table calls a model -> one of its shape, as `lightspeed_models.served` has it.
KINDS_OF_MODEL = {
    "deepseek-ai/DeepSeek-V3": "DeepSeek-V3",
    "deepseek-ai/DeepSeek-R1": "DeepSeek-V3",
    "nvidia/DeepSeek-V3.1-NVFP4": "DeepSeek-V3",
    "deepseek-ai/DeepSeek-V3.2": "DeepSeek-V3.2",
    "zai-org/GLM-5": "GLM-5",
    "zai-org/GLM-5-FP8": "GLM-5",
    "nvidia/GLM-5-NVFP4": "GLM-5",
}

# Bytes of an element that a collective moves.
MOVED = {"half": 2, "int8": 1}


@functools.cache
def known():
    """Keys of the catalog that a row may name as its chip."""
    return frozenset(DEVICES.values())


def constant(chips, name):
    """A number of the catalog for the chip of each row (`Words`); NaN where it has none."""
    return chips.lookup(lambda key: getattr(find(key), name) if name in find(key) else np.nan)


def trait(formats, name):
    """What `FORMATS` says of the format of each row (`Words`)."""
    return formats.lookup(lambda key: getattr(FORMATS[key], name))


def of_buffers(rows):
    """Bytes of the buffer of each collective, and its busbw over its algbw."""
    factor = np.zeros(len(rows["elements"]))
    for operation in rows["operation"].present():
        own = rows["operation"] == operation
        factor[own] = busbw_factor(operation, rows["ranks"][own])
    return rows["elements"] * rows["format"].lookup(MOVED), factor


def peak(rows):
    """FLOP/s of the chip of each row in the row's format; NaN where it has no such units."""
    peaks = np.full(len(rows["latency"]), np.nan)
    for name in {f.peak for f in FORMATS.values()}:
        own = rows["format"].isin([f for f, of in FORMATS.items() if of.peak == name])
        peaks[own] = constant(rows["chip"][own], name)
    return peaks


def work(rows):
    """FLOPs and bytes of the product of each row, with its peak and its bandwidth."""
    m, n, k = rows["m"], rows["n"], rows["k"]
    names = ("weight_bytes", "activation_bytes", "output_bytes")
    widths = {name: trait(rows["format"], name) for name in names}
    # Bare: the sizes were checked when the rows were read, and there are millions.
    return {
        "flops": matmul_flops.__wrapped__(m, k, n),
        "size": matmul_bytes.__wrapped__(m, k, n, **widths),
        "peak": peak(rows),
        "bandwidth": constant(rows["chip"], "hbm_bandwidth"),
    }


def narrowed(rows):
    """Bytes of the pass that makes the activations of each product narrow; 0 without one."""
    width, reads = (trait(rows["format"], name) for name in ("activation_bytes", "reads"))
    size = narrowing_bytes.__wrapped__(rows["m"], rows["k"], width, 2, reads)
    return np.where(reads > 0, size, 0.0)


def context(rows):
    """Positions that one new token sees in a decoding step."""
    span = rows["tokens"] + rows["step"]
    return np.where(rows["window"] > 0, np.minimum(rows["window"], span), span)


def cache_bytes(rows):
    """Bytes of keys and values that a decoding step reads, of all its sequences in one layer."""
    width = trait(rows["cache_format"], "activation_bytes")
    return rows["batch"] * kv_cache_bytes.__wrapped__(
        1, rows["kv_heads"], rows["head_width"], context(rows), width
    )


def prefill_work(rows):
    """FLOPs and bytes of causal attention over whole prompts, with peak and bandwidth."""
    tokens, width, batch = rows["tokens"], rows["head_width"], rows["batch"]
    span = np.where(rows["window"] > 0, np.minimum(rows["window"], tokens), tokens)
    # Query i sees min(i, window) keys: a triangle, then a band.
    pairs = span * (span + 1) / 2 + (tokens - span) * span
    element = trait(rows["format"], "activation_bytes")
    return {
        "flops": 4 * batch * rows["heads"] * width * pairs,
        "size": batch * tokens * width * 2 * (rows["heads"] + rows["kv_heads"]) * element,
        "peak": peak(rows),
        "bandwidth": constant(rows["chip"], "hbm_bandwidth"),
    }
