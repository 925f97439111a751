"""What a user gives the planner: a model, a cluster, a stack."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lightspeed.catalog import entries, find, fitted, link
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count, nonnegative
from lightspeed.transformer import Transformer, transformer
from lightspeed_models.llm.config import read_config
from lightspeed_models.llm.decoder import Decoder, Experts, Mlp
from lightspeed_models.llm.keys import ConfigRefused
from lightspeed_models.llm.mixers import Attention, LatentAttention
from lightspeed_models.plan import Machine, machine
from lightspeed_models.products import rates
from lightspeed_models.stack import Stack, stack
from lightspeed_models.step_memory import Footprint, footprint

__all__ = (
    "Cluster",
    "Setting",
    "cluster_from",
    "cluster_of",
    "given_stack",
    "model_of",
    "transformer_of",
)

NETWORKS = {  # of a chip whose cluster does not name one: what its vendor's own systems have
    "a100_40gb": "infiniband_hdr", "a100_80gb": "infiniband_hdr", "b300": "infiniband_xdr",
    "gb300": "infiniband_xdr",
}  # fmt: skip
# What people call a chip -> the catalog's, and the link of its export variant.
CALLED = {
    "h100": ("h100_sxm", ""), "h200": ("h200_sxm", ""), "a100": ("a100_80gb", ""),
    "h800": ("h100_sxm", "nvlink4_h800"), "a800": ("a100_80gb", "nvlink3_a800"),
}  # fmt: skip
DOMAINS = {"gb200": 72, "gb300": 72}  # GPUs that one NVLink domain joins, where not 8
PRECISIONS = ("bf16", "fp8", "fp4")
# What others write -> the format whose peak counts.
SPELT = {
    "bfloat16": "bf16", "fp16": "bf16", "float16": "bf16", "float8": "fp8", "fp8-cs": "fp8",
    "fp8-ds": "fp8", "fp8-mx": "fp8", "mxfp8": "fp8", "nvfp4": "fp4", "mxfp4": "fp4",
}  # fmt: skip
LIKE = {"fp8": "hopper", "fp4": "blackwell"}  # where no kernel of a chip's class was measured
OF_FILE = ("gpu", "gpus", "network", "gpus_per_node", "precision", "memory_bytes")
LARGEST = 2**20  # GPUs: beyond, a slip is likelier than a cluster
NEAR = 0.01  # of the parameters, how far a shape may be from the config that it stands for


@dataclass(frozen=True)
class Cluster:
    """GPUs of one kind. `power` (W) of one is 0 where the catalog does not say it."""

    gpu: str
    gpus: int
    network: str
    precision: str
    machine: Machine
    power: float
    assumed: tuple[str, ...] = ()

    def with_gpus(self, gpus: int) -> Cluster:
        return replace(self, gpus=gpus)


@dataclass(frozen=True)
class Setting:
    """A stack as the planner needs it: constants, what it holds, what it can do at most (`able`),
    the most that its rows had (`measured`), and its median error on what it did not see.
    """

    key: str
    stack: Stack
    holds: Footprint
    able: dict[str, Any]
    measured: dict[str, Any]
    error: float
    gpu: str
    products: bool
    assumed: tuple[str, ...] = ()


def cluster_of(text: str, precision: str = "bf16") -> Cluster:
    """The `Cluster` of "h100_sxm:16384" or of a JSON file with `gpu`, `gpus` and, where they
    differ from the usual, `network`, `gpus_per_node`, `precision`, `memory_bytes`.

    >>> cluster_of("h100_sxm:16").machine.per_node
    8
    """
    if Path(text).suffix == ".json" or Path(text).is_file():
        return cluster_from(read_json(text), precision, text)
    gpu, colon, number = text.partition(":")
    digits = number.replace(",", "").replace("_", "")
    if not colon or not digits.isdecimal():
        wanted = "a GPU of the catalog and how many, such as h100_sxm:16384, or a JSON file"
        raise BadArgument("plan", "cluster", text, wanted)
    return cluster_from({"gpu": gpu, "gpus": int(digits)}, precision, "--cluster")


def read_json(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise BadArgument("plan", "file", str(path), "a JSON file", str(error.strerror)) from None
    except ValueError as error:
        raise BadArgument("plan", "file", str(path), "a JSON file", str(error)) from None


def cluster_from(table: dict[str, Any], precision: str, where: str) -> Cluster:
    if not isinstance(table, dict):
        raise BadArgument("plan", "cluster", where, "an object with gpu and gpus")
    for name in table:
        one_of("plan", f"field of {where}", name, OF_FILE)
    for name in ("gpu", "gpus"):
        if name not in table:
            raise BadArgument("plan", "cluster", where, f"an object with {name!r}")
    called = _plain(table["gpu"])
    gpu, linked = CALLED.get(called, (called, "")) if isinstance(called, str) else (called, "")
    gpu = one_of("plan", "gpu", gpu, tuple(dict.fromkeys((*entries("accelerators"), *NETWORKS))))
    gpus = int(checked("plan", "gpus", table["gpus"], count()))
    if gpus > LARGEST:
        raise BadArgument("plan", "gpus", gpus, f"at most {LARGEST:,} GPUs")
    precision = _format(table.get("precision") or precision)
    assumed = [f"{called} is {gpu}{f' with links of {linked}' * bool(linked)}"] * (called != gpu)
    network = _plain(table.get("network") or NETWORKS.get(gpu, "infiniband_ndr"))
    if not table.get("network"):
        assumed.append(f"network: {network}, one port a GPU")
    per_node = table.get("gpus_per_node")
    if per_node is None:
        per_node = DOMAINS.get(gpu, 8)
        assumed.append(f"{per_node} GPUs a node")
    per_node = int(checked("plan", "gpus_per_node", per_node, count()))
    found, sheet = machine(gpu, network, per_node), find(gpu).numbers
    if precision not in sheet:
        wanted = f"a format whose peak the catalog has for {gpu}"
        raise BadArgument("plan", "precision", precision, wanted)
    found = replace(found, peak=float(sheet[precision]))
    if linked:
        found = replace(found, link=link(linked).bandwidth)
    if table.get("memory_bytes") is not None:
        found = replace(found, capacity=_memory(table["memory_bytes"], found.capacity))
    return Cluster(
        gpu, gpus, network, precision, found, float(sheet.get("power", 0.0)), tuple(assumed)
    )


def _plain(name: Any) -> Any:
    """A key of the catalog as it is spelt there."""
    return name.strip().lower().replace("-", "_") if isinstance(name, str) else name


def _format(name: Any) -> str:
    plain = name.strip().lower().replace("_", "-") if isinstance(name, str) else name
    return one_of("plan", "precision", SPELT.get(plain, plain), PRECISIONS)


def _memory(given: float, known: float) -> float:
    given = checked("plan", "memory_bytes", given, nonnegative("byte"))
    if given < 2**30:
        hint = f"Bytes are meant: the catalog has {known:.4g}; 80 GiB are {80 * 2**30}."
        raise BadArgument("plan", "memory_bytes", given, "bytes of one GPU", hint)
    return given


def model_of(text: str) -> tuple[str, Transformer, tuple[str, ...]]:
    """(name, shape, what was assumed) of a key of the catalog or a config.json."""
    if Path(text).exists() or text.endswith(".json"):
        try:
            decoder = read_config(text)
        except ConfigRefused as error:
            wanted = "a config.json that can be counted"
            raise BadArgument("plan", "model", text, wanted, "; ".join(error.refused)) from None
        except (OSError, ValueError) as error:
            raise BadArgument("plan", "model", text, "a config.json", str(error)) from None
        return decoder.name or text, transformer_of(decoder), decoder.assumed + _in_full(decoder)
    return text, transformer(text), ()


def transformer_of(decoder: Decoder) -> Transformer:
    """The `Transformer` of a `Decoder` whose layers the law of a training step knows.

    Raises BadArgument for layers that it does not know (recurrences, mixed widths), by name, and
    where the parameters of the two counts differ.
    """
    # Which kind each part is, is looked at below.
    layers: list[Any] = [*decoder.layers]
    mixers = {layer.mixer for layer in layers}
    strange = sorted(
        {
            type(m).__name__ if m else "no attention"
            for m in mixers
            if not isinstance(m, Attention | LatentAttention)
        }
    )
    if strange:
        raise _unknown(decoder, f"layers of {', '.join(strange)}")
    first = layers[0].mixer
    shapes = {_shape(m) for m in mixers}
    if len(shapes) > 1:
        raise _unknown(decoder, f"{len(shapes)} shapes of attention")
    dense = [x for x in layers if isinstance(x.mlp, Mlp)]
    sparse = [x for x in layers if isinstance(x.mlp, Experts)]
    if len({x.mlp for x in dense}) > 1 or len({_experts(x.mlp) for x in sparse}) > 1:
        raise _unknown(decoder, "MLPs of several widths")
    if any(x.mlp is None for x in layers):
        raise _unknown(decoder, "layers without an MLP")
    mlp = dense[0].mlp if dense else None
    shape: dict[str, Any] = {
        "layers": decoder.depth, "width": decoder.width, "heads": first.heads,
        "vocabulary": decoder.vocabulary, "tied_embeddings": decoder.tied_embeddings,
    }  # fmt: skip
    if isinstance(first, LatentAttention):
        shape |= {
            "head_width": first.plain, "query_rank": first.query_rank, "kv_rank": first.kv_rank,
            "head_width_plain": first.plain, "head_width_rotary": first.rotary,
            "head_width_value": first.value_width,
        }  # fmt: skip
    else:
        shape |= {"head_width": first.head_width, "kv_heads": first.kv_heads}
    if sparse:
        experts = sparse[0].mlp
        shared = experts.shared.hidden / experts.hidden if experts.shared else 0
        if shared % 1 or experts.latent:
            raise _unknown(decoder, "experts of another width beside the shared one")
        shape |= {
            "experts": experts.experts, "active_experts": experts.active,
            "expert_hidden": experts.hidden, "shared_experts": int(shared),
            "dense_layers": sum(x.repeat for x in dense),
        }  # fmt: skip
    matrices = {m.matrices_each for m in ([mlp] if mlp else [sparse[0].mlp])}
    shape |= {"hidden": mlp.hidden if mlp else sparse[0].mlp.hidden, "mlp_matrices": matrices.pop()}
    found = Transformer(**shape)
    if abs(found.parameters / decoder.parameters - 1) > NEAR:
        parameters = f"{decoder.parameters:,} parameters, {found.parameters:,} in that shape"
        raise _unknown(decoder, parameters)
    return found


def _in_full(decoder: Decoder) -> tuple[str, ...]:
    """What the law counts although some layers of the decoder look at less."""
    narrow = any(
        getattr(layer.mixer, "window", 0) or getattr(layer.mixer, "index_top", 0)
        for layer in decoder.layers
    )
    return ("all layers attend to the whole sequence",) * narrow


def _shape(mixer: Attention | LatentAttention) -> Any:
    """What of a mixer the law of a step sees: a window or an index changes scores alone."""
    kept: dict[str, Any] = {"window": 0, "vectors": 0} if isinstance(mixer, Attention) else {}
    index = ("index_heads", "index_width", "index_top", "borrowed_index")
    if isinstance(mixer, LatentAttention):
        kept = {n: type(getattr(mixer, n))() for n in index}
    return replace(mixer, **kept)


def _experts(mlp: Experts) -> Any:
    return tuple(getattr(mlp, f.name) for f in fields(mlp) if f.name != "router_vectors")


def _unknown(decoder: Decoder, what: str) -> BadArgument:
    hint = f"{decoder.name or 'The model'} has {what}, which the law of a step does not know."
    return BadArgument("plan", "model", decoder.name, "layers of one kind of attention", hint)


def given_stack(
    key: str, cluster: Cluster, model: Transformer, state: str = ""
) -> tuple[Setting, Machine]:
    """The `Setting` of a stack, in good health or in a named state, and the machine as that stack
    counts on it. A stack is one of the catalog or a file of `lightspeed fit-stack --json`. One that
    was fitted for models with experts too has a table of its own for them.
    """
    if key.endswith(".json"):
        return _own_stack(key, cluster), cluster.machine
    tables = fitted("stacks")
    one_of("plan", "stack", key, tuple(k for k in tables if not k.endswith("_experts")))
    if model.experts and f"{key}_experts" in tables:
        key = f"{key}_experts"
    table = tables[key]
    holds = footprint(key) if "memory" in table else Footprint(logits_bytes=10)
    setting = Setting(
        key, stack(key, state), holds, dict(table.get("able", {})), dict(table.get("measured", {})),
        table.get("error", 0.1), table["gpu"], table.get("products", False),
    )  # fmt: skip
    found = cluster.machine
    if setting.products:
        reached = rates(cluster.gpu, cluster.precision)
        if reached is None and cluster.precision in LIKE:
            like = LIKE[cluster.precision]
            reached = rates(cluster.gpu, cluster.precision, like)
            said = f"products in {cluster.precision} as on {like}: none measured on {cluster.gpu}"
            setting = replace(setting, assumed=(said,))
        if reached is None:
            wanted = "a chip of which products were measured, or another --stack"
            raise BadArgument("plan", "gpu", cluster.gpu, wanted)
        found = replace(found, products=reached)
    return setting, found


def _own_stack(path: str, cluster: Cluster) -> Setting:
    """The `Setting` of constants that a user fitted. Memory is only counted: no run says more."""
    table = read_json(path)
    try:
        fit, errors = Stack(**table["stack"]), sorted(table["errors"])
        error = errors[len(errors) // 2]
    except (TypeError, KeyError, IndexError) as slip:
        wanted = "a file that lightspeed fit-stack --json wrote"
        raise BadArgument("plan", "stack", path, wanted, f"It has no {slip}.") from None
    holds = Footprint(gradient_bytes=fit.gradient_bytes, logits_bytes=10)
    return Setting(path, fit, holds, {}, {}, float(error), cluster.gpu, False)
