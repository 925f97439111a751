"""Megatron-Bridge's large models on H100 to GB300: the FLOPs that it counts, and its steps."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from lightspeed.catalog import find
from lightspeed.errors import BadArgument
from lightspeed_models.evidence.pairing import Judged, Pairing, each_left_out
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.llm.shipped import decoder
from lightspeed_models.plan import machine, plan_of_batch
from lightspeed_models.stack import BOUND, Stack
from lightspeed_models.stack_fit import Timed, expected_times, fit_constants, rows_of, stacked

# How the names of models begin -> a shipped model: Kimi K2 has the shape of K2.5.
MODELS = {
    "LLAMA3_8B": decoder("llama3_8b"),
    "LLAMA3_70B": decoder("llama3_70b"),
    "LLAMA3.1_405B": decoder("llama3_405b"),
    "DeepSeekV3": decoder("deepseek_v3"),
    "Kimi_K2": decoder("kimi_k2_5"),
    "Qwen3_235B_a22B": decoder("qwen3_235b"),
    "Qwen3_30B_a3B": decoder("Qwen3-30B-A3B"),
    "GPT OSS 120B": decoder("gpt-oss-120b"),
}  # fmt: skip
# System -> chip, network of a GPU, and GPUs that one NVLink domain joins.
SYSTEMS = {
    "DGX-H100": ("h100_sxm", "infiniband_ndr", 8),
    "DGX-B200": ("b200", "infiniband_ndr", 8),
    "DGX-B300": ("b300", "infiniband_xdr", 8),
    "DGX-GB200": ("gb200", "infiniband_ndr", 72),
    "DGX-GB300": ("gb300", "infiniband_xdr", 72),
}
PEAKS = {
    "BF16": "bf16", "FP8": "fp8", "FP8-CS": "fp8", "FP8-MX": "fp8", "MXFP8": "fp8", "NVFP4": "fp4",
}  # fmt: skip
MEGATRON = Stack(passes=8, logits_passes=8, split="tensor+sequence")
CONSTANTS = ("share", "host")
NO_SHAPE = "the catalog does not have the shape of the model"
ADAPTERS = "LoRA: the large matrices get no gradient"
NO_FORMAT = "the table does not say the format"
NO_PLAN = "the degrees do not divide the GPUs, or the batch is none of whole micro-batches"


def shape(row, rows):
    """The model of a row, or None."""
    name = rows["model"][row]
    return next((one for start, one in MODELS.items() if name.startswith(start)), None)


def needed(name, model, sequence):
    """FLOPs to train on a token as Megatron counts: a causal mask halves the scores. DeepSeek's
    module that predicts one token more is a layer, a product that joins two vectors, and logits.
    """
    span = sequence // 2
    if not name.startswith("DeepSeekV3") or "w/o MTP" in name:
        return model.training_flops(1, span)
    *others, last = model.layers
    longer = replace(model, layers=(*others, replace(last, repeat=last.repeat + 1)))
    more = longer.training_flops(1, span)
    return more + 6 * model.width * (2 * model.width + model.vocabulary)


def split(rows, steps):
    """(row numbers that the law answers for, what the others say of themselves and why not)."""
    numbers, silent = [], []
    for row in range(len(rows)):
        why = (
            ADAPTERS if rows["task"][row] == "LoRA"
            else NO_SHAPE if shape(row, rows) is None
            else NO_FORMAT if steps and rows["precision"][row] not in PEAKS
            else ""
        )  # fmt: skip
        if why:
            silent.append((rows.name(row), why))
        else:
            numbers.append(row)
    return numbers, silent


def counted(rows):
    """The FLOP/s that the printed tokens/s take, beside the printed FLOP/s."""
    numbers, silent = split(rows, steps=False)
    predicted = [
        needed(rows["model"][i], shape(i, rows), int(rows["sequence"][i])) * rows["rate"][i]
        for i in numbers
    ]
    kinds = [
        "GPT OSS 120B" if rows["model"][i].startswith("GPT OSS")
        else "experts" if shape(i, rows).experts
        else "no experts"
        for i in numbers
    ]  # fmt: skip
    return Judged(
        np.array(predicted), rows["model_rate"][numbers], Words.of(kinds),
        lambda i: rows.name(numbers[i]), left=tuple(silent),
    )  # fmt: skip


def timed(row, rows):
    """A row as a `Timed` step. Its rate is tokens/s of a GPU; what a cell leaves out is one."""

    def cell(name):
        value = rows[name][row]
        return 1 if np.isnan(value) else max(1, int(value))

    chip, network, domain = SYSTEMS[rows["system"][row]]
    sheet = find(chip)
    peak = float(getattr(sheet, PEAKS[rows["precision"][row]]))
    cluster = replace(machine(chip, network, domain), peak=peak)
    model, sequence = shape(row, rows), cell("sequence")
    plan = plan_of_batch(
        cell("devices"), cell("batch"), cell("tensor"), cell("pipeline"), cell("context"),
        cell("micro_batch"), chunks=cell("interleave"),
        stage=3 if rows["sharded"][row] > 0 else 1,
    )  # fmt: skip
    if model.experts:
        plan = replace(plan, expert=cell("expert"))
    time = plan.sequences * sequence / (rows["rate"][row] * plan.gpus)
    return Timed(f"row {row}", model, sequence, plan, cluster, float(time))


@functools.lru_cache(maxsize=2)
def steps(rows):
    """(row numbers, their bounds, times expected from the other chips, measured, those left)."""
    numbers, silent = split(rows, steps=True)
    runs, places = [], []
    for row in numbers:
        try:
            runs.append(timed(row, rows))
        except BadArgument:
            silent.append((rows.name(row), NO_PLAN))
        else:
            places.append(row)
    times = np.array([run.time for run in runs])
    works, part = stacked(runs, MEGATRON), rows.where(np.array(places))
    kinds = regimes(part)
    expected = np.full(len(places), np.nan)
    for kind in kinds.present():
        own = kinds == kind

        def fit(others, own=own):
            by = own.copy()
            by[own] = others
            return fit_constants(rows_of(works, by), times[by], MEGATRON, CONSTANTS)

        def answer(stack, mine, own=own):
            at = own.copy()
            at[own] = mine
            return expected_times(rows_of(works, at), stack)

        expected[own] = each_left_out(part["system"][own], fit, answer)
    return places, expected_times(stacked(runs), BOUND), expected, times, tuple(silent)


def regimes(rows):
    """Models without experts and with, in the format of their products."""
    experts = ["experts" if shape(i, rows).experts else "no experts" for i in range(len(rows))]
    pairs = zip(experts, rows["precision"], strict=True)
    return Words.of([f"{which}, {PEAKS[kind]}" for which, kind in pairs])


def judge_steps(rows, which):
    """The bound (1) or the expectation (2) of every step."""
    answer = steps(rows)
    numbers, predicted = answer[0], answer[which]
    finite = ~np.isnan(predicted)
    places = np.array(numbers)[finite]
    return Judged(
        predicted[finite], answer[3][finite], regimes(rows.where(places)),
        lambda i: rows.name(places[i]), left=answer[4],
    )  # fmt: skip


_SHARED = {"set": "megatron_bridge", "chapter": "06"}
PAIRINGS = (
    Pairing(
        key="megatron-flops",
        title="Model FLOP/s by the shape of a model against those that Megatron-Bridge prints",
        law="lightspeed_models.llm.decoder.Decoder",
        quantity="model FLOP/s of a GPU",
        unit="FLOP/s",
        judge=counted,
        lesson="Megatron counts half of the scores, for the mask is causal; LLM Foundry counts "
        "all. The rate of GPT OSS is counted anew since 26.06: before, a sixth was missing.",
        **_SHARED,
    ),
    Pairing(
        key="step-megatron-bound",
        title="The bound of a training step against tuned runs on H100 to GB300",
        law="lightspeed_models.training_step.step",
        judge=functools.partial(judge_steps, which=1),
        bound="least",
        **_SHARED,
    ),
    Pairing(
        key="step-megatron",
        title="The expected time of a training step on a chip that was left out",
        law="lightspeed_models.training_step.step",
        judge=functools.partial(judge_steps, which=2),
        fitted="a share of the peak and a host time, for models with and without experts in each "
        "format, on the rows of the other chips",
        left_out="system",
        **_SHARED,
    ),
)
