"""What a user gives the planner: a model, a cluster, a stack."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from statistics import StatisticsError, median
from typing import Any

from lightspeed.catalog import Entry, fitted, link
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count, nonnegative
from lightspeed_models.cards import card
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.keys import ConfigRefused
from lightspeed_models.llm.shipped import load, shape_of
from lightspeed_models.llm.training import checked_layers
from lightspeed_models.plan import Machine, Plan
from lightspeed_models.products import rates
from lightspeed_models.stack import BOUND, KERNELS, RunClass, Stack, fsdp_stack, run_class, stack
from lightspeed_models.step_memory import Footprint, footprint
from lightspeed_tools.nccl.log import ReportError
from lightspeed_tools.nccl.machine import adapters

NETWORKS = {  # of a chip whose cluster does not name one: what its vendor's own systems have
    "a100_40gb": "infiniband_hdr", "a100_80gb": "infiniband_hdr", "a100_64gb": "infiniband_hdr",
    "b300": "infiniband_xdr", "gb300": "infiniband_xdr",
}  # fmt: skip
# What a vendor's systems of several such cards join them with is InfiniBand; others have none.
JOINED = ("v100", "a100", "h100", "h200", "h20", "h800", "gh200", "b200", "gb200", "b300", "gb300",
          "mi3", "rubin")  # fmt: skip
INSIDE = {f"pcie{n}": f"pcie{n}_x16" for n in (3, 4, 5, 6)}
DOMAINS = {"gb200": 72, "gb300": 72}  # GPUs that one NVLink domain joins, where not 8
PRECISIONS = ("bf16", "fp16", "fp8", "fp4")
# What others write -> the format whose peak counts.
SPELT = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float8": "fp8", "fp8-cs": "fp8",
    "fp8-ds": "fp8", "fp8-mx": "fp8", "mxfp8": "fp8", "nvfp4": "fp4", "mxfp4": "fp4",
}  # fmt: skip
LIKE = {"fp8": "hopper", "fp4": "blackwell"}  # where no kernel of a chip's class was measured
OF_FILE = (
    "gpu", "gpus", "network", "nic", "inside", "gpus_per_node", "precision", "memory_bytes",
)  # fmt: skip
# What people call a framework -> the class of its runs.
CALLED = {
    "megatron_h100": "nvidia", "megatron-h100": "nvidia", "nemo": "nvidia",
    "megatron-bridge": "nvidia", "megatron-lm": "megatron", "megatron-core": "megatron",
    **dict.fromkeys(
        ("fsdp", "fsdp2", "pytorch", "torch", "torchtitan", "titan", "fms-fsdp", "kempnerforge",
         "llm-foundry", "composer", "olmo", "olmo-core", "lingua", "accelerate", "lightning",
         "zero3", "deepspeed"), "pytorch_fsdp",
    ),
}  # fmt: skip
OWN = RunClass("own", "the stack's own rows", "", 1.0, 0.85, 1.2, 0.1, "")
FOUR_OF_FIVE = 1.28 / 0.67  # of normal errors, their range over their median
LARGEST = 2**20  # GPUs: beyond, a slip is likelier than a cluster


@dataclass(frozen=True)
class Cluster:
    """GPUs of one kind. `power` (W) of one is 0 where the catalog does not say it; `joined` says
    whether the network between nodes was given, or is known of such systems.
    """

    gpu: str
    gpus: int
    network: str
    precision: str
    machine: Machine
    power: float
    assumed: tuple[str, ...] = ()
    joined: bool = True
    kind: str = "gpu"
    card: Entry | None = None

    def with_gpus(self, gpus: int) -> Cluster:
        return replace(self, gpus=gpus)


@dataclass(frozen=True)
class Setting:
    """A stack as the planner needs it: constants, what it holds, what it can do at most (`able`),
    the most that its rows had (`measured`), its median error on what it did not see, and the class
    of runs that says how far others are off. Where nobody names a framework, `sharded` speaks for
    plans of ZeRO-3 without a pipeline. `bound` says why no constant of a stack holds there.
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
    runs: RunClass = OWN
    sharded: Setting | None = None
    bound: str = ""

    def of(self, plan: Plan) -> Setting:
        """Return the setting that applies to one plan."""
        alone = self.sharded and plan.stage == 3 and plan.pipeline == 1
        return self.sharded if alone and self.sharded else self


def cluster_of(
    text: str, precision: str = "bf16", nic: str = "", inside: str = "", per_node: int | None = None
) -> Cluster:
    """The `Cluster` of "h100_sxm:16384", of a card of one's own (`lightspeed_models.cards`) and how
    many, or of a JSON file with `gpu`, `gpus` and, where they differ from the usual, `network` or
    `nic`, `inside`, `gpus_per_node`, `precision`, `memory_bytes`.

    >>> cluster_of("h100_sxm:16", nic="4x100G").machine.network
    6250000000.0
    """
    more = {"nic": nic, "inside": inside, "gpus_per_node": per_node}
    more = {name: value for name, value in more.items() if value}
    if Path(text).suffix == ".json" or Path(text).is_file():
        table = read_json(text)
        return cluster_from(table | more if isinstance(table, dict) else table, precision, text)
    gpu, colon, number = text.rpartition(":")
    if not colon and (many := re.match(r"(\d+) ?[x*×] ?(?=[A-Za-z])", text.strip())):
        gpu, colon, number = text.strip()[many.end() :], "x", many[1]
    digits = number.replace(",", "").replace("_", "")
    if not colon or not digits.isdecimal():
        expected = "a GPU of the catalog and how many, such as h100_sxm:16384, or a JSON file"
        raise BadArgument("plan", "cluster", text, expected)
    return cluster_from({"gpu": gpu, "gpus": int(digits)} | more, precision, "--cluster")


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
    called = str(table["gpu"]).strip()
    entry, _ = card("a100_80gb" if called.lower() == "a800" else called)
    if called.lower() == "a800":
        table = {"inside": "nvlink3_a800"} | table
    gpu, sheet = entry.key, entry.numbers
    gpus = int(checked("plan", "gpus", table["gpus"], count()))
    if gpus > LARGEST:
        raise BadArgument("plan", "gpus", gpus, f"at most {LARGEST:,} GPUs")
    precision = _format(table.get("precision") or precision)
    assumed = [f"{called.lower()} is {gpu}"] * (_plain(called) != gpu and "=" not in called)
    if precision == "bf16" and "bf16" not in sheet:
        precision, assumed = "fp16", [*assumed, f"{entry.name} has no bf16: fp16"]
    if precision not in sheet:
        expected = f"a format whose peak the catalog has for {gpu}"
        raise BadArgument("plan", "precision", precision, expected)
    per_node = table.get("gpus_per_node")
    if per_node is None:
        per_node = DOMAINS.get(gpu, 8)
        assumed.append(f"{per_node} GPUs a node")
    per_node = int(checked("plan", "gpus_per_node", per_node, count()))
    name, network, joined = _network(table, gpu, per_node, gpus, assumed)
    link_rate = _inside(table.get("inside"), sheet, called)
    capacity = float(sheet["hbm_capacity"])
    if table.get("memory_bytes") is not None:
        memory: Any = table["memory_bytes"]
        capacity = _memory(memory, capacity)
    machine = Machine(
        float(sheet[precision]), float(sheet["hbm_bandwidth"]), capacity, link_rate, network,
        per_node,
    )  # fmt: skip
    kind = str(getattr(entry, "kind", "gpu"))
    return Cluster(
        gpu, gpus, name, precision, machine, float(sheet.get("power", 0.0)), tuple(assumed), joined,
        kind, entry,
    )  # fmt: skip


def _network(
    table: dict[str, Any], gpu: str, per_node: int, gpus: int, assumed: list[str]
) -> tuple[str, float, bool]:
    """(name, byte/s of one GPU between nodes, whether it was given or is known)."""
    if nic := table.get("nic"):
        try:
            return str(nic), adapters(nic)[0] / per_node, True
        except ReportError as error:
            raise BadArgument("plan", "nic", nic, "adapters of a node", str(error)) from None
    joined = gpu.startswith(JOINED)
    name = _plain(table.get("network")) or NETWORKS.get(gpu, "infiniband_ndr")
    if not table.get("network"):
        port = name if joined else "ethernet_100g"
        name = port
        assumed.append(f"network: {name}, one port a GPU (or say --nic 4x100G, of a node)")
    sure = bool(table.get("network")) or joined or gpus <= per_node
    return name, float(link(name).bandwidth), sure


def _inside(value: Any, sheet: Any, called: str) -> float:
    """byte/s of the link between GPUs of a node, one way: as given, or as the chip has it."""
    if not value and "link_bandwidth" in sheet:
        return float(sheet["link_bandwidth"])
    if not value:
        hint = "Say it: --inside pcie4, nvlink3 or 25GB/s."
        raise BadArgument("plan", "gpu", called, "a card whose link is known", hint)
    text = _plain(value)
    if match := re.fullmatch(r"([\d.]+)\s*gb/s", text.replace("_", "")):
        return float(match[1]) * 1e9
    return float(link(INSIDE.get(text, text)).bandwidth)


def _plain(name: Any) -> Any:
    """A key of the catalog as it is spelt there."""
    return name.strip().lower().replace("-", "_") if isinstance(name, str) else name


def _format(name: Any) -> str:
    plain = name.strip().lower().replace("_", "-") if isinstance(name, str) else name
    return one_of("plan", "precision", SPELT.get(plain, plain), PRECISIONS)


def _memory(value: float, usual: float) -> float:
    value = checked("plan", "memory_bytes", value, nonnegative("byte"))
    if value < 2**30:
        hint = f"Bytes are meant: the catalog has {usual:.4g}; 80 GiB are {80 * 2**30}."
        raise BadArgument("plan", "memory_bytes", value, "bytes of one GPU", hint)
    return value


def model_of(text: str) -> tuple[str, Decoder, tuple[str, ...]]:
    """Return (name, model, assumptions) for a shipped model's name or a config.json. Raises
    BadArgument for a model whose training step has no law here.
    """
    try:
        model = load(text)
        checked_layers(model.layers, text)
    except ConfigRefused as error:
        expected = "a config.json that can be counted"
        raise BadArgument("plan", "model", text, expected, "; ".join(error.refused)) from None
    except BadArgument:
        raise
    except (OSError, ValueError) as error:
        raise BadArgument("plan", "model", text, "a model or its config.json", str(error)) from None
    name = text if shape_of(text) else model.name or text
    return name, model, model.assumed + _averaged(model)


def _averaged(model: Decoder) -> tuple[str, ...]:
    """What the law of a step takes to be alike although layers of the model differ."""
    mixers, mlps = (
        {(type(part), part.matrices) for part in parts if part}
        for parts in ([x.mixer for x in model.layers], [x.mlp for x in model.layers])
    )
    differ = len(mixers) > 1 or len(mlps) > len({kind for kind, _ in mlps})
    return ("layers differ in size: every stage is taken to hold its share of all",) * differ


def given_stack(
    key: str, cluster: Cluster, model: Decoder, state: str = "", compiled: bool | None = None,
    kernel: str = "",
) -> tuple[Setting, Machine]:  # fmt: skip
    """The `Setting` of a stack, in good health or in a named state, and the machine as that stack
    counts on it. The key is that of a class of runs or what people call a framework of it ("" where
    nobody says), of a stack of the catalog, or a file of `lightspeed fit-stack --json`. A stack
    that was fitted for models with experts too has a table of its own for them. What no stack runs
    on gets the bound.
    """
    if key.endswith(".json"):
        return _own_stack(key, cluster), cluster.machine
    tables, classes = fitted("stacks"), fitted("classes")
    plain = str(key).strip().lower().replace(" ", "-")
    name = CALLED.get(plain, _plain(plain) or "unnamed")
    if name not in classes:
        one_of("plan", "stack", name, (*classes, *(k for k in tables if k[-8:] != "_experts")))
    runs = run_class(name) if name in classes else OWN
    if model.experts and name in ("nvidia", "megatron", "unnamed"):
        runs = run_class("nvidia_experts" if name == "nvidia" else "experts")
    key = runs.stack or name
    if model.experts and f"{key}_experts" in tables:
        key = f"{key}_experts"
    table = tables[key]
    constants = stack(key, state)
    if key == "pytorch_fsdp":
        constants = fsdp_stack(cluster.gpu, model.mlp.matrices_each == 3, compiled, kernel)
    holds = footprint(key) if "memory" in table else Footprint(logits_bytes=10)
    setting = Setting(
        key, constants, holds, dict(table.get("able", {})), dict(table.get("measured", {})),
        table.get("error", 0.1), table["gpu"], table.get("products", False), runs=runs,
    )  # fmt: skip
    if key == "pytorch_fsdp":
        notes = ["half of the passes of eager mode: say compiled or eager"] * (compiled is None)
        notes += [f"attention in {kernel or KERNELS[0]}"] * (not kernel)
        setting = replace(setting, assumed=tuple(notes))
    if runs is OWN:
        width = exp(FOUR_OF_FIVE * setting.error)
        setting = replace(setting, runs=replace(OWN, low=1 / width, high=width))
    if why := _no_stack(cluster, key):
        bound = replace(BOUND, split=constants.split)
        unlimited = replace(cluster.machine, network=cluster.machine.link)
        return replace(setting, stack=bound, bound=why, runs=OWN), unlimited
    machine = cluster.machine
    if setting.products:
        setting, machine = _with_products(setting, cluster)
    if name == "unnamed" and not model.experts:
        sharded, _ = given_stack("pytorch_fsdp", cluster, model, "", compiled, kernel)
        setting = replace(setting, sharded=sharded)
    return setting, machine


def _no_stack(cluster: Cluster, key: str) -> str:
    """Why no constant of a stack holds on these machines; "" where it may."""
    if cluster.kind not in ("gpu",):
        return f"no stack of {key.partition('_')[0]} was measured on {cluster.gpu}, nor runs there"
    if not cluster.joined:
        return f"nothing is known of the network of {cluster.gpus:,} {cluster.gpu}: say --nic"
    return ""


def _with_products(setting: Setting, cluster: Cluster) -> tuple[Setting, Machine]:
    """The setting, and the machine with the products of its chip."""
    chip = cluster.card or cluster.gpu
    reached = rates(chip, cluster.precision)
    if reached is None and cluster.precision in LIKE:
        like = LIKE[cluster.precision]
        reached = rates(chip, cluster.precision, like)
        note = f"products in {cluster.precision} as on {like}: none measured on {cluster.gpu}"
        setting = replace(setting, assumed=(*setting.assumed, note))
    if reached is None:
        expected = "a chip of which products were measured, or another --stack"
        raise BadArgument("plan", "gpu", cluster.gpu, expected)
    return setting, replace(cluster.machine, products=reached)


def _own_stack(path: str, cluster: Cluster) -> Setting:
    """The `Setting` of constants that a user fitted. Memory is only counted: no run says more."""
    table = read_json(path)
    try:
        fit, error = Stack(**table["stack"]), median(table["errors"])
    except (TypeError, KeyError, StatisticsError) as slip:
        expected = "a file that lightspeed fit-stack --json wrote"
        raise BadArgument("plan", "stack", path, expected, f"It has no {slip}.") from None
    holds = Footprint(gradient_bytes=fit.gradient_bytes, logits_bytes=10)
    width = exp(FOUR_OF_FIVE * float(error))
    own = replace(OWN, low=1 / width, high=width)
    return Setting(path, fit, holds, {}, {}, float(error), cluster.gpu, False, runs=own)
