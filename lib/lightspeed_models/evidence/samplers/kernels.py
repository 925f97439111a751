"""Kernels of ai-dynamo/aiconfigurator whose tables differ by kind: brought under one head."""

import numpy as np

from lightspeed_models.evidence.samplers.aiconfigurator import found, joined, named
from lightspeed_models.evidence.word_column import Words

# Kind of attention -> the names of its tables.
LATENT = {
    "latent": "generation_mla_perf",
    "latent layer": "mla_generation_module_perf",
    "sparse layer": "dsa_generation_module_perf",
}
RECURRENT = {"gated delta": "gdn_perf", "Kimi delta": "kda_perf"}


def attention_kinds(folder, _):
    """One decoding step of each kind: a kernel alone, or a layer's attention with its matrices."""
    parts = [_latent(folder, kind, table) for kind, table in LATENT.items()]
    parts += [_recurrent(folder, kind, table) for kind, table in RECURRENT.items()]
    return _joined(parts)


def expert_products(folder, record):
    """The products of a layer's experts, all on one GPU, whose tokens are shared out evenly: of no
    others is it known which experts are read.
    """
    words, values = named(record)
    words |= {"distribution": "distribution"}
    parts = []
    for path in found(folder, "moe_perf"):
        rows = joined([path], words, values | {"ranks": "moe_ep_size"})
        own = (rows.pop("distribution") == "balanced") & (rows.pop("ranks") == 1)
        parts.append({name: column[own] for name, column in rows.items()})
    return _joined(parts)


def expert_exchange(folder, record):
    """DeepEP's two kernels on their way out and back: a row of its tables is two of these."""
    _, values = named(record)
    del values["sms"]
    parts = [
        _one_way(folder, kernel, way, values)
        for kernel in ("normal", "ll")
        for way in ("dispatch", "combine")
    ]
    return _joined(parts)


def _one_way(folder, kernel, way, values):
    latency = f"{way}_{'transmit_us' if kernel == 'normal' else 'avg_t_us'}"
    values = values | ({"sms": f"{way}_sms"} if kernel == "normal" else {})
    rows = joined(found(folder, f"wideep_deepep_{kernel}_perf"), {}, values, latency)
    length = len(rows["latency"])
    return {
        "chip": rows.pop("chip"),
        "kernel": Words.of_all("low latency" if kernel == "ll" else kernel, length),
        "way": Words.of_all(way, length),
        "sms": rows.pop("sms", np.full(length, np.nan)),
        **{name: column for name, column in rows.items() if name != "library"},
    }


def _joined(parts):
    return {
        name: Words.joined([part[name] for part in parts])
        if isinstance(column, Words)
        else np.concatenate([part[name] for part in parts])
        for name, column in parts[0].items()
    }


def _latent(folder, kind, table):
    words = {"cache_format": "kv_cache_dtype", "kernel": "kernel_source"}
    if kind != "latent":
        words |= {"model": "model", "format": "gemm_type"}
    values = {"batch": "batch_size", "heads": "num_heads", "isl": "isl", "step": "step"}
    rows = joined(found(folder, table), words, values)
    rows["context"] = rows.pop("isl") + rows.pop("step")
    return _whole(rows, kind)


def _recurrent(folder, kind, table):
    """The kernels that update a state in a decoding step; others run its convolution."""
    values = {
        "batch": "batch_size",
        "heads": "num_v_heads",
        "key_width": "head_k_dim",
        "value_width": "head_v_dim",
    }
    words = {"phase": "phase", "kernel": "kernel_source", "model": "model_name"}
    rows = joined(found(folder, table), words, values)
    kernels = [name for name in rows["kernel"].names if not name.startswith("causal_conv1d")]
    own = (rows.pop("phase") == "generation") & rows["kernel"].isin(kernels)
    return _whole({name: column[own] for name, column in rows.items()}, kind)


def _whole(rows, kind):
    """All columns of the set; what a kind does not have is empty."""
    length = len(rows["latency"])
    words = ("chip", "library", "kernel", "model", "format", "cache_format")
    values = ("batch", "context", "heads", "key_width", "value_width", "latency")
    return {
        "kind": Words.of_all(kind, length),
        **{name: rows.get(name, Words.of_all("", length)) for name in words},
        **{name: rows.get(name, np.full(length, np.nan)) for name in values},
    }
