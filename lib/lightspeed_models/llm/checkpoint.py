"""The number formats of a checkpoint, part by part, and the bytes of its weights.

Read from `quantization_config` of a config.json, `hf_quant_config.json` beside it (ModelOpt), the
name, and, to check them, `model.safetensors.index.json`. What no file says is bf16, as engines take
it: nothing is quantised silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lightspeed.errors import BadArgument, one_of
from lightspeed_models.llm.decoder import Decoder, Experts
from lightspeed_models.llm.shipped import load, shape_of, shipped

# Bytes of a weight, its scales included: MXFP4 has one of 8 bits for 32 weights, NVFP4 for 16, and
# groups of four-bit integers have 16 bits for what `group_size` says, 32 where nobody does.
WIDTHS = {
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0,
    "mxfp4": 0.5 + 1 / 32, "nvfp4": 0.5 + 1 / 16, "int4": 0.5 + 2 / 32,
}  # fmt: skip
# The rate of products: what a GPU multiplies such weights in.
PRODUCTS = {"mxfp4": "fp4", "nvfp4": "fp4", "fp16": "bf16", "fp32": "bf16"}
NAMES = (
    (r"nvfp4", "nvfp4"), (r"mxfp4", "mxfp4"), (r"fp8|w8a8-fp", "fp8"), (r"fp4", "nvfp4"),
    (r"awq|gptq|int4|w4a16|4bit", "int4"), (r"int8|w8a8|8bit", "int8"), (r"bf16", "bf16"),
)  # fmt: skip
PARTS = ("experts", "attention", "mlp", "tables")


@dataclass(frozen=True)
class Formats:
    """Names of number formats: of experts, attention, other layers and tables, and of caches;
    `group` weights share a scale; `source` says where they stand.
    """

    experts: str = "bf16"
    attention: str = "bf16"
    mlp: str = "bf16"
    tables: str = "bf16"
    cache: str = "bf16"
    group: int = 0
    zero: bool = False
    source: str = "nothing says otherwise"

    def width(self, part: str) -> float:
        """Bytes of a weight of this part."""
        name = getattr(self, part)
        if name == "int4" and self.group:
            return 0.5 + (2 + 0.5 * self.zero) / self.group
        return WIDTHS[name]

    @property
    def products(self) -> str:
        """The format in which most products are taken: that of experts, where there are some."""
        return PRODUCTS.get(self.experts, self.experts)

    def bytes(self, model: Decoder) -> float:
        """Bytes of all weights, towers and vectors in 16 bits."""
        parts = parts_of(model)
        rest = model.parameters - sum(parts.values()) + model.tower
        return sum(parts[part] * self.width(part) for part in PARTS) + 2.0 * rest

    def words(self) -> str:
        """The formats, the wide parts by name."""
        wide = [part for part in PARTS[1:] if getattr(self, part) != self.experts]
        others = f", {' and '.join(wide)} {getattr(self, wide[0])}" if wide else ""
        return f"weights {self.experts}{others}; caches {self.cache}"

    def quantized(self, weights: str = "", cache: str = "") -> Formats:
        """These with weights or caches as the user says; tables stay."""
        formats = self
        if weights:
            name = one_of("formats", "weights", weights, tuple(WIDTHS))
            tables = name if WIDTHS[name] >= 2 else self.tables
            formats = replace(
                formats, experts=name, attention=name, mlp=name, tables=tables, group=0,
                source="as you say",
            )  # fmt: skip
        if cache:
            formats = replace(formats, cache=one_of("formats", "cache", cache, ("bf16", "fp8")))
        return formats


def parts_of(model: Decoder) -> dict[str, int]:
    """Parameters of the matrices of each part of a model."""
    counts = dict.fromkeys(PARTS, 0)
    for layer in model.layers:
        if layer.mixer:
            counts["attention"] += layer.repeat * layer.mixer.matrices
        if isinstance(layer.mlp, Experts):
            routed = layer.mlp.experts * layer.mlp.expert.matrices
            counts["experts"] += layer.repeat * routed
            counts["mlp"] += layer.repeat * (layer.mlp.matrices - routed)
        elif layer.mlp:
            counts["mlp"] += layer.repeat * layer.mlp.matrices
    counts["tables"] = model.embeddings
    return counts


def _named(name: str) -> str | None:
    """The number format that a checkpoint's name tells, if it does."""
    small = name.lower()
    return next(
        (kind for pattern, kind in NAMES if re.search(rf"({pattern})(?![0-9])", small)), None
    )


def formats_of(config: Mapping[str, Any], folder: Path | None = None, name: str = "") -> Formats:
    """The `Formats` that a config.json, the files beside it or the name tell.

    Raises BadArgument for a method of quantisation that is not known here.
    """
    inner = config.get("text_config")
    inner = inner if isinstance(inner, Mapping) else {}
    own = config.get("quantization_config") or inner.get("quantization_config")
    if own is None and config.get("compression_config"):
        own = config["compression_config"]
    if isinstance(own, Mapping):
        return _quantized(own, "quantization_config")
    beside = folder / "hf_quant_config.json" if folder else None
    if beside is not None and beside.exists():
        settings = json.loads(beside.read_text("utf-8")).get("quantization", {})
        return _quantized({"quant_method": "modelopt", **settings}, beside.name)
    if kind := _named(name):
        return replace(Formats().quantized(kind), source=f"its name, {name.rpartition('/')[2]}")
    dtype = str(config.get("dtype") or config.get("torch_dtype") or inner.get("dtype") or "")
    if dtype == "float32":
        return replace(Formats(), source="dtype float32, which engines load in 16 bits")
    return Formats()


def _quantized(own: Mapping[str, Any], source: str) -> Formats:
    method = str(own.get("quant_method") or own.get("quant_algo") or "").lower()
    algorithm = str(own.get("quant_algo") or "").lower()
    group, zero = int(own.get("group_size") or 0), bool(own.get("zero_point", False))
    bits = own.get("bits") or own.get("w_bit")
    apart = own.get("modules_to_not_convert") or own.get("ignore") or own.get("ignored_layers")
    apart = apart or own.get("exclude_modules") or own.get("exclude") or ()
    kind = ""
    if method in ("fp8", "fbgemm_fp8", "ptpc_fp8") or algorithm.startswith("fp8"):
        kind = "fp8"
    elif method in ("mxfp4", "mxfp8"):
        kind = "mxfp4" if method == "mxfp4" else "fp8"
    elif method in ("awq", "gptq", "gptq_marlin", "auto-round", "hqq") or "awq" in algorithm:
        kind = "int8" if bits == 8 else "int4"
        zero = zero or (method == "gptq" and not own.get("sym", True))
    elif method == "bitsandbytes":
        kind, group = ("int8", 0) if own.get("load_in_8bit") else ("int4", 64)
    elif "fp4" in algorithm or algorithm.startswith("mixed"):
        kind = "mxfp4" if algorithm.startswith("mx") else "nvfp4"
    elif method in ("compressed-tensors", "modelopt"):
        groups = list((own.get("config_groups") or {}).values())
        weights: Mapping[str, Any] = next((g["weights"] for g in groups if g.get("weights")), {})
        kind = _by_bits(weights, str(own.get("format") or ""))
        group = int(weights.get("group_size") or 0)
        zero = weights.get("symmetric") is False
        aims = [str(target) for one in groups for target in one.get("targets") or ()]
        if aims and all("expert" in aim for aim in aims):
            apart = [*apart, "self_attn", "mlp.shared"]
    elif method == "quark":
        weights = ((own.get("global_quant_config") or {}).get("weight")) or {}
        weights = weights[0] if isinstance(weights, list) else weights
        kind = "mxfp4" if "fp4" in str(weights.get("dtype")) else "fp8"
    if not kind:
        names = "fp8, mxfp4, awq, gptq, compressed-tensors, modelopt, bitsandbytes, quark"
        hint = "Or say the formats: --weights int4 --cache bf16."
        raise BadArgument("formats", "quant_method", method, names, hint)
    scheme = own.get("kv_cache_scheme") or own.get("kv_cache_quant_algo")
    narrow = "8" in str(scheme.get("num_bits")) if isinstance(scheme, Mapping) else bool(scheme)
    wide = _wide(str(one) for one in apart)
    by_part = {part: "bf16" if part in wide else kind for part in ("attention", "mlp")}
    group = 0 if kind in ("nvfp4", "mxfp4", "fp8") else group
    return Formats(
        kind, **by_part, cache="fp8" if narrow else "bf16", group=group, zero=zero, source=source
    )


def _by_bits(weights: Mapping[str, Any], form: str) -> str:
    bits, floats = weights.get("num_bits"), weights.get("type") == "float"
    if bits == 8:
        return "fp8" if floats else "int8"
    if bits == 4:
        return ("mxfp4" if "mxfp4" in form else "nvfp4") if floats else "int4"
    return "nvfp4" if "nvfp4" in form else "mxfp4" if "mxfp4" in form else ""


def _wide(apart: Iterable[str]) -> set[str]:
    """Parts that patterns of modules leave in 16 bits, in most layers."""
    weights: dict[str, int] = {}
    for pattern in apart:
        # One layer's own pattern says little; a pattern for all, much.
        weight = 1 if re.search(r"layers\.\d+", pattern) else 1000
        if re.search(r"attn|attention|mixer|linear_attn", pattern):
            weights["attention"] = weights.get("attention", 0) + weight
        if re.search(r"shared_expert|mlp\.shared|\bmlp\b(?!\.(gate|router|experts))", pattern):
            weights["mlp"] = weights.get("mlp", 0) + weight
    return {part for part, weight in weights.items() if weight >= 10}


# Formats as makers publish a model, by the name of its shape, where its shipped config.json says
# nothing of them.
PUBLISHED = {
    "DeepSeek-V3": Formats("fp8", "fp8", "fp8"), "DeepSeek-V3.2": Formats("fp8", "fp8", "fp8"),
    "MiniMax-M2.5": Formats("fp8", "fp8", "fp8"), "gpt-oss-120b": Formats("mxfp4"),
    "Kimi-K2.5": Formats("int4", group=32), "gpt-oss-20b": Formats("mxfp4"),
}  # fmt: skip


@dataclass(frozen=True)
class Checkpoint:
    """A model as people have it: its layers, the formats of its files, the longest context that it
    allows, and bytes on disk where an index says them.
    """

    model: Decoder
    formats: Formats
    context: int | None = None
    stored: float | None = None


def read_checkpoint(word: str) -> Checkpoint:
    """The `Checkpoint` of a config.json, its folder, or a name as the hub has it.

    Raises what `load` and `formats_of` do.
    """
    model, path = load(word), Path(word)
    shape = "" if path.exists() or path.suffix == ".json" else shape_of(word)
    if shape:
        config, folder = shipped()[shape], None
    else:
        path = path / "config.json" if path.is_dir() else path
        config, folder = json.loads(path.read_text("utf-8")), path.parent
    inner = [config, config.get("text_config") or {}, config.get("llm_config") or {}]
    names = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
    lengths = [one[name] for one in inner for name in names if isinstance(one.get(name), int)]
    formats = formats_of(config, folder, word if shape else path.parent.name)
    if formats == Formats() and shape in PUBLISHED:
        formats = replace(PUBLISHED[shape], source="as its makers publish it")
    return Checkpoint(model, formats, lengths[0] if lengths else None, _stored(folder))


def _stored(folder: Path | None) -> float | None:
    """Bytes that the index of the weights beside a config.json says."""
    index = folder / "model.safetensors.index.json" if folder else None
    if index is None or not index.exists():
        return None
    try:
        return float(json.loads(index.read_text("utf-8"))["metadata"]["total_size"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
