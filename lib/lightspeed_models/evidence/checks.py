"""What no true row can say, set by set: reason -> the rows of which it holds.

A check takes columns in SI and gives a mask. The first reason that holds is the one a row is
refused for. A row that is merely far off stays: it is evidence.
"""

import numpy as np

from lightspeed_models.evidence.chips import (
    AT_MOST,
    FORMATS,
    KINDS_OF_MODEL,
    MOVED,
    cache_bytes,
    constant,
    known,
    peak,
    prefill_work,
    work,
)


def _positive(*names, reason="a size or a time is missing or not above zero"):
    """The check for rows in which one of these is missing, zero or negative."""
    return reason, lambda columns: np.any([~(columns[name] > 0) for name in names], axis=0)


def _whole(*names, reason="a size is no whole number"):
    """The check for rows in which one of these counts is no whole number."""
    return reason, lambda columns: np.any([columns[name] % 1 != 0 for name in names], axis=0)


def _faster_than_arithmetic(columns):
    job = work(columns)
    return job["flops"] / job["peak"] > columns["latency"] * AT_MOST


def _faster_than_memory(columns):
    """What is in the cache already need not come from memory, but no more than the cache holds."""
    job = work(columns)
    traffic = job["size"] - constant(columns["chip"], "l2_capacity")
    return traffic / job["bandwidth"] > columns["latency"] * AT_MOST


def _faster_than_links(columns):
    """Each rank sends or receives all but its own part, wherever the sums are made."""
    ranks, size = columns["ranks"], columns["elements"] * columns["format"].lookup(MOVED)
    traffic = size * (ranks - 1) / ranks
    return traffic / constant(columns["chip"], "link_bandwidth") > columns["latency"] * AT_MOST


def _twice_as_fast_as_memory(columns):
    """A cache of half the stated width would explain a factor of two; nothing explains more."""
    rest = cache_bytes(columns) / 2 - constant(columns["chip"], "l2_capacity")
    return rest / constant(columns["chip"], "hbm_bandwidth") > columns["latency"] * AT_MOST


def _twice_as_fast_as_arithmetic(columns):
    """A narrower format than the stated one would explain a factor of two."""
    job = prefill_work(columns)
    return job["flops"] / job["peak"] / 2 > columns["latency"] * AT_MOST


def _unknown_model(columns):
    """Layers of a model whose shape is not known; kernels alone name none."""
    is_named = np.array([name in ("", *KINDS_OF_MODEL) for name in columns["model"].names])
    layers = columns["kind"].isin(("latent layer", "sparse layer"))
    return layers & ~is_named[columns["model"].codes]


CHIP = ("the chip is not in the catalog", lambda columns: ~columns["chip"].isin(known()))
FORMAT = ("the format is not known", lambda columns: ~columns["format"].isin(FORMATS))
UNITS = ("the chip has no units for this format", lambda columns: np.isnan(peak(columns)))
SIZES = ("batch", "tokens", "heads", "kv_heads", "head_width")
ATTENTION = (
    _positive(*SIZES, "latency"),
    _whole(*SIZES, "step", "window"),
    ("more heads of keys than of queries", lambda columns: columns["kv_heads"] > columns["heads"]),
    CHIP,
    FORMAT,
    (
        "the format of the cache is not known",
        lambda columns: ~columns["cache_format"].isin(FORMATS),
    ),
)
CHECKS = {
    "expert_products": (
        _positive("tokens", "width", "hidden", "active", "experts", "latency"), CHIP, FORMAT,
    ),
    "expert_exchange": (_positive("tokens", "width", "active", "nodes", "latency"), CHIP),
    "attention_kinds": (
        _positive("batch", "heads", "latency"),
        CHIP,
        ("the shape of the model is not known", _unknown_model),
    ),
    "gemm": (
        _positive("m", "n", "k", "latency"),
        _whole("m", "n", "k"),
        CHIP,
        FORMAT,
        UNITS,
        ("faster than the peak of its format", _faster_than_arithmetic),
        ("faster than memory, even with a full cache", _faster_than_memory),
    ),
    "nccl": (
        _positive("ranks", "elements", "latency"),
        _whole("ranks", "elements"),
        CHIP,
        ("the format is not known", lambda columns: ~columns["format"].isin(MOVED)),
        ("fewer than two ranks exchange nothing", lambda columns: columns["ranks"] < 2),
        ("faster than every link of the chip", _faster_than_links),
    ),
    "decode_attention": (
        *ATTENTION,
        ("faster than memory by more than a factor of two", _twice_as_fast_as_memory),
    ),
    "prefill_attention": (
        *ATTENTION,
        UNITS,
        ("faster than twice the peak of its format", _twice_as_fast_as_arithmetic),
    ),
    "training_sweep": (
        (
            "the degrees do not make the GPUs of the nodes",
            lambda columns: (
                columns["data"] * columns["tensor"] * columns["pipeline"] != 8 * columns["nodes"]
            ),
        ),
    ),
    "fsdp": (
        ("a share above 1", lambda columns: (columns["mfu"] > 1) | (columns["hfu"] > 1)),
        _positive("devices", "rate", reason="a size or a rate is missing or not above zero"),
    ),
    "torch_training": (
        _positive("devices", "rate", reason="a size or a rate is missing or not above zero"),
    ),
    "megatron_bridge": (
        _positive(
            "rate", "model_rate", "devices", reason="a rate is missing, or the cell has two"
        ),
    ),
    "dgx_cloud": (
        _positive("time", "batch", reason="a time or a batch is missing or not above zero"),
    ),
    "ironwood": (
        _positive("time", "model_rate", reason="a time or a rate is missing or not above zero"),
    ),
    "megascale": (
        _positive(
            "devices", "batch", "time", reason="a count or a time is missing or not above zero"
        ),
        ("a share above 1", lambda columns: columns["mfu"] > 1),
    ),
    "mlperf_training": (
        _positive(
            "time", "accelerators", reason="a time or the number of accelerators is missing"
        ),
        ("a spread of equal runs above half of the mean", lambda columns: columns["spread"] > 0.5),
    ),
    "mlperf_inference": (
        (
            "a mean below half of its median, which half of the samples exceed: the sum of the "
            "nanoseconds overflowed 64 bits",
            lambda columns: columns["latency_mean"] < columns["latency_median"] / 2,
        ),
    ),
    "serving_energy": (
        _positive(
            "rate", "batch", "power", "energy", "latency_median",
            reason="a rate, a batch or a power is missing or not above zero",
        ),
        (
            "more in flight than the limit allows",
            lambda columns: columns["batch"] > columns["limit"] * columns["data"] * 1.01,
        ),
    ),
    "arrivals": (
        _positive("input_tokens", "output_tokens", reason="no tokens"),
        ("before the first of its trace", lambda columns: ~(columns["time"] >= 0)),
    ),
}  # fmt: skip
