"""A plan as people write it: in a line of their own, or in the words of their framework."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from lightspeed.errors import BadArgument, nearest
from lightspeed_models.plan import Plan, plan_of_batch
from lightspeed_models.stack import KERNELS

# The planner's own short words -> fields of a plan.
SHORT = {
    "dp": "data", "tp": "tensor", "pp": "pipeline", "cp": "context", "ep": "expert",
    "mbs": "micro_size", "vp": "chunks", "zero": "stage", "hsdp": "shard",
}  # fmt: skip
DEGREES = tuple(name for name in SHORT.values() if name != "shard")
# Others, of one vocabulary with the other tools.
LONG = {
    **{name: name for name in SHORT.values()}, "micro": "micro_size", "micro_batch": "micro_size",
    "microbatch": "micro_size", "micro_batch_size": "micro_size", "virtual": "chunks",
    "vpp": "chunks", "interleave": "chunks", "sequence_parallel": "context", "ddp": "data",
    "tensor_parallel": "tensor", "pipeline_parallel": "pipeline", "context_parallel": "context",
    "expert_parallel": "expert", "zero_stage": "stage", "shard": "shard",
}  # fmt: skip
ALONE = {
    "fsdp": ("stage", 3), "fsdp2": ("stage", 3), "full_shard": ("stage", 3),
    "shard_grad_op": ("stage", 2), "ddp": ("stage", 0), "zb_h1": ("schedule", "zb_h1"),
    "1f1b": ("schedule", "1f1b"),
    "stages-near": ("placement", ("tensor", "context", "pipeline", "data")),
}  # fmt: skip
HOW = {"compiled": True, "compile": True, "torch.compile": True, "eager": False}
FILLERS = {"recompute", "recomputation", "checkpointing", "activation", "ac", "with", "and", "on",
           "way", "ways", "size", "of"}  # fmt: skip
# What "selective" does again: Megatron's only the scores, others' half of the layers' products.
SELECTIVE = {
    "torchtitan": 0.5,
    "titan": 0.5,
    "fms-fsdp": 0.5,
    "kempnerforge": 0.5,
    "olmo-core": 0.5,
}


@dataclass(frozen=True)
class Setup:
    """The setup in a line: `degrees` of the plan, how it is run; None or "" if unstated."""

    degrees: dict[str, Any] = field(default_factory=dict)
    compiled: bool | None = None
    kernel: str = ""
    data: int | None = None


def short(plan: Plan) -> str:
    """Return a plan in short notation, readable by `plan_of`.

    >>> short(Plan(data=4, tensor=8, micro_batches=16))
    'dp4 tp8 pp1 mbs1 zero0 selective'
    """
    words = [f"dp{plan.data}", f"tp{plan.tensor}", f"pp{plan.pipeline}"]
    words += [f"cp{plan.context}"] * (plan.context > 1) + [f"ep{plan.expert}"] * (plan.expert > 1)
    words += [f"vp{plan.chunks}"] * (plan.chunks > 1) + [f"mbs{plan.micro_size}"]
    words += [f"zero{plan.stage}", plan.recompute] + [f"{plan.part:g}"] * (plan.part < 1)
    words += [f"hsdp{plan.shard}"] * (plan.shard > 0)
    words += ["zb_h1"] * (plan.schedule == "zb_h1")
    words += ["stages-near"] * (plan.placement[2] == "pipeline")
    return " ".join(words)


def part_again(value: Any, framework: str = "") -> tuple[str, float]:
    """Return (recompute, part) from "none", "selective" (as the framework defines it), "full",
    true, or the share of layers recomputed, as 0.5, "1/2" or "50%".

    >>> part_again("selective"), part_again("selective", "torchtitan"), part_again("1/2")
    (('selective', 1.0), ('full', 0.5), ('full', 0.5))
    """
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("none", "no", "off", "false", "scores"):
            return "selective", 1.0
        if text in ("selective", "selective_op", "selective op", "selective layer", "op"):
            part = SELECTIVE.get(framework.lower(), 0.0)
            return ("full", part) if part else ("selective", 1.0)
        if text in ("full", "all", "true", "yes"):
            return "full", 1.0
        if match := re.fullmatch(r"([\d.]+)\s*(?:/\s*([\d.]+)|(%))?", text):
            part = float(match[1]) / (float(match[2]) if match[2] else 100 if match[3] else 1)
            return part_again(part)
    elif isinstance(value, bool) or value is None:
        return ("full" if value else "selective"), 1.0
    elif isinstance(value, (int, float)) and 0 <= value <= 1:
        return ("full", float(value)) if value else ("selective", 1.0)
    expected = "none, selective, full, or the part of the layers from 0 to 1"
    raise BadArgument("plan", "recompute", value, expected)


def setup_of(text: str, framework: str = "") -> Setup:
    """Parse a `Setup` such as "tp8 pp9", "zero3 micro2 recompute full", "ZeRO-3", "hsdp 8"."""
    line = re.sub(r"[,;:]+", " ", text.lower())
    line = re.sub(r"\bzero[\s_-]*(\d)", r"zero\1", line)
    line = re.sub(r"\b([a-z][a-z_-]*?)[\s_-]*=?\s*(\d+)(?=\s|$)(?!\s*/)", _joined, line)
    degrees: dict[str, Any] = {}
    compiled, kernel = None, ""
    for word in line.split():
        match = re.fullmatch(r"([a-z][a-z_-]*?)[=_-]?(\d+)", word)
        name = match[1].replace("-", "_") if match else ""
        if word in KERNELS or word in ("flash_attention_2", "flash_attention_3", "fa2", "fa3"):
            kernel = word if word in KERNELS else f"flash{word[-1]}"
        elif word in HOW:
            compiled = HOW[word]
        elif word in ALONE:
            degrees[ALONE[word][0]] = ALONE[word][1]
        elif match and (name in SHORT or name in LONG):
            degrees[SHORT.get(name) or LONG[name]] = int(match[2])
        elif word in ("full", "selective", "none", "no") or re.fullmatch(r"[\d.]+(/\d+|%)?", word):
            degrees["recompute"], degrees["part"] = part_again(word, framework)
        elif word not in FILLERS:
            names = (*SHORT, *ALONE, *HOW, "full", "selective")
            near = nearest(word.rstrip("0123456789"), names)
            hint = f"Did you mean {near}?" if near else ""
            raise BadArgument("plan", "--explain", word, f"{' '.join(SHORT)} or full", hint)
    if degrees.get("shard"):
        degrees.setdefault("stage", 3)
    return Setup(degrees, compiled, kernel, degrees.pop("data", None))


def _joined(match: re.Match[str]) -> str:
    """A word and the number behind it as one, where the word asks for one."""
    name = match[1].replace("-", "_")
    return f"{name}{match[2]}" if name in SHORT or name in LONG else match[0]


def plan_of(text: str | Setup, gpus: int, sequences: int) -> Plan:
    """Parse the `Plan` of a line; defaults are 1, ZeRO 1, selective, and data fills the GPUs.

    >>> plan_of("tp8 pp2", 32, 64).data
    2
    """
    setup = setup_of(text) if isinstance(text, str) else text
    plan = plan_of_batch(gpus, sequences, **{"stage": 1} | setup.degrees)
    if setup.data and setup.data != plan.data:
        expected = f"{plan.data}: {gpus} GPUs over {plan.gpus // plan.data} of a replica"
        raise BadArgument("plan", "data", setup.data, expected)
    return plan
