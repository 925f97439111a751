"""Attention against its roof: a decoding step reads a cache, a prefill does arithmetic."""

from __future__ import annotations

import numpy as np

from lightspeed.roofline import time_bounds, transfer_time
from lightspeed_models.evidence.chips import cache_bytes, constant, prefill_work
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.pairings.roofline import SHORT
from lightspeed_models.evidence.word_column import Words


def decoding(rows):
    """The cache of every sequence, read once at the bandwidth of the data sheet."""
    size = cache_bytes(rows)
    cache = constant(rows["chip"], "l2_capacity")
    bandwidth = constant(rows["chip"], "hbm_bandwidth")
    return Judged(
        transfer_time(size, bandwidth),
        rows["latency"],
        _libraries(rows["library"], size > 2 * cache, "within two L2 caches"),
        rows.name,
        excused=size <= cache,
    )


def _libraries(libraries, long, short):
    """Rows that are not `long`, under the name `short`, and the others by library."""
    names = (short, "SGLang", "TensorRT-LLM before 1.3.0rc20", "TensorRT-LLM 1.3.0rc20", "vLLM")
    kinds = {"SGLang": 1, "TRTLLM": 2, "VLLM": 4}
    # What TensorRT-LLM's rows say changed with this release.
    codes = libraries.lookup(
        lambda name: 3 if name == "TRTLLM 1.3.0rc20" else kinds.get(name.split()[0], 4), np.int32
    )
    return Words(names, np.where(long, codes, 0))


def prefill(rows):
    """Scores and values of a causal mask, at the peak of the format; every operand moved once."""
    work = prefill_work(rows)
    bounds = time_bounds(**work)
    long = (bounds.lower >= SHORT) & bounds.compute_bound
    return Judged(
        bounds.lower,
        rows["latency"],
        _libraries(rows["library"], long, "under 0.1 ms, or memory-bound"),
        rows.name,
        excused=work["size"] <= constant(rows["chip"], "l2_capacity"),
    )


# ---------------------------------------------------------------- causal attention in training

# What takes less at the peak is launches, and a window is another kernel.
LEAST, WIDTHS = 5e-5, (64, 128)
CLASSES = {
    "all": ("a100_80gb", "h100_sxm", "h200_sxm", "b200", "gb200"),
    "hopper": ("h100_sxm", "h200_sxm"),
    "blackwell": ("b200", "gb200"),
}


def fit_scores(rows, chips):
    """(rows, share, ramp, narrow) of catalog/fitted_attention.toml for these chips."""
    from scipy.optimize import least_squares

    own = rows["chip"].isin(chips) & (rows["format"] == "bfloat16") & (rows["window"] == 0)
    rows = rows.where(own & np.isin(rows["head_width"], WIDTHS))
    flops = 2 * rows["batch"] * rows["heads"] * rows["tokens"] ** 2 * rows["head_width"]
    bound = flops / constant(rows["chip"], "bf16")
    long = bound > LEAST
    bound, times = bound[long], rows["latency"][long]
    tokens, wide = rows["tokens"][long], rows["head_width"][long] / max(WIDTHS)

    def residuals(constants):
        share, ramp, narrow = constants
        return np.log(bound / share * (1 + ramp / tokens) / wide**narrow / times)

    start, fit = (0.6, 800.0, 0.7), {"loss": "cauchy", "f_scale": 0.1}
    return (len(times), *least_squares(residuals, start, x_scale=(0.1, 100, 0.1), **fit).x)


PAIRINGS = (
    Pairing(
        key="kv-bandwidth",
        title="A decoding step's attention against the bandwidth of memory",
        law="lightspeed.serving.kv_cache_bytes",
        set="decode_attention",
        chapter="06",
        judge=decoding,
        bound="least",
        excuse="the cache of keys and values fits the L2 cache",
        lesson="the law exposes a collector: tables of one library beat memory until a release",
    ),
    Pairing(
        key="prefill-attention",
        title="A prefill's attention against the roofline",
        law="lightspeed.roofline.time_bounds",
        set="prefill_attention",
        chapter="02",
        judge=prefill,
        bound="least",
        excuse="the operands fit the L2 cache",
    ),
)
