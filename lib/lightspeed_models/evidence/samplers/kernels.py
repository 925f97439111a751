"""Kernels of ai-dynamo/aiconfigurator whose tables differ by kind: brought under one head."""

import numpy as np

from lightspeed_models.evidence.samplers.aiconfigurator import found, joined
from lightspeed_models.evidence.word_column import Words

# Kind of attention -> the names of its tables.
LATENT = {
    "latent": "generation_mla_perf",
    "latent layer": "mla_generation_module_perf",
    "sparse layer": "dsa_generation_module_perf",
}
RECURRENT = {"gated delta": "gdn_perf", "Kimi delta": "kda_perf"}


def attention_kinds(folder):
    """One decoding step of each kind: a kernel alone, or a layer's attention with its matrices."""
    parts = [_latent(folder, kind, table) for kind, table in LATENT.items()]
    parts += [_recurrent(folder, kind, table) for kind, table in RECURRENT.items()]
    return _joined(parts)


def expert_products(folder):
    """The products of a layer's experts, all on one GPU, whose tokens are shared out evenly: of no
    others is it known which experts are read.
    """
    words = {"format": "moe_dtype", "distribution": "distribution"}
    values = {
        "tokens": "num_tokens",
        "width": "hidden_size",
        "hidden": "inter_size",
        "active": "topk",
        "experts": "num_experts",
        "tensor": "moe_tp_size",
        "ranks": "moe_ep_size",
    }
    parts = []
    for path in found(folder, "moe_perf"):
        rows = joined([path], words, values)
        own = (rows.pop("distribution") == "balanced") & (rows.pop("ranks") == 1)
        parts.append({name: column[own] for name, column in rows.items()})
    return _joined(parts)


def expert_exchange(folder):
    """DeepEP's two kernels on their way out and back: a row of its tables is two of these."""
    parts = [
        _one_way(folder, kernel, way, suffix)
        for kernel, suffix in (("normal", "transmit_us"), ("ll", "avg_t_us"))
        for way in ("dispatch", "combine")
    ]
    return _joined(parts)


def _one_way(folder, kernel, way, suffix):
    values = {
        "nodes": "node_num",
        "tokens": "num_token",
        "width": "hidden_size",
        "active": "num_topk",
        "experts": "num_experts",
    }
    if kernel == "normal":
        values["sms"] = f"{way}_sms"
    tables = found(folder, f"wideep_deepep_{kernel}_perf")
    rows = joined(tables, {}, values, f"{way}_{suffix}")
    length = len(rows["latency"])
    return {
        "chip": rows.pop("chip"),
        "kernel": Words(("low latency" if kernel == "ll" else kernel,), np.zeros(length, np.int32)),
        "way": Words((way,), np.zeros(length, np.int32)),
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
    blank = Words(("",), np.zeros(length, np.int32))
    words = ("chip", "library", "kernel", "model", "format", "cache_format")
    values = ("batch", "context", "heads", "key_width", "value_width", "latency")
    return {
        "kind": Words((kind,), np.zeros(length, np.int32)),
        **{name: rows.get(name, blank) for name in words},
        **{name: rows.get(name, np.full(length, np.nan)) for name in values},
    }
