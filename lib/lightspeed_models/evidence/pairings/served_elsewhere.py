"""The engine that other publishers' rows set, on the served models of ML.ENERGY."""

from __future__ import annotations

import numpy as np

from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.pairings.serving import CHIPS
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.llm.shipped import decoder
from lightspeed_models.llm.step import engine, mixed_step, replica

# How the names of ML.ENERGY's models begin -> a shipped model.
MODELS = {
    "Llama 3.1 8B": "Llama-3.1-8B", "Llama 3.1 70B": "Llama-3.1-70B",
    "Llama 3.3 70B": "Llama-3.1-70B", "Llama 3.1 405B": "Llama-3.1-405B",
    "Qwen 3 32B": "Qwen3-32B", "Qwen 3 235B": "Qwen3-235B-A22B", "DeepSeek": "DeepSeek-V3",
}  # fmt: skip
FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}
TEXT = ("lm-arena-chat", "gpqa")
KINDS = ("8 billion parameters", "other models without experts", "models with experts")


def shape(name):
    """The shipped model of a name of ML.ENERGY, or None."""
    return next((model for start, model in MODELS.items() if name.startswith(start)), None)


def steps(rows, constants):
    """(rows of shipped models, seconds of their steps). Prompts, of which the set does not say how
    long, are not counted. Experts lie over all GPUs, and so does attention.
    """
    rows = rows.where(
        np.array([shape(name) is not None for name in rows["model"]])
        & rows["task"].isin(TEXT)
        & rows["format"].isin(FORMATS)
        & (rows["data"] == 1)
    )
    times = []
    for i in range(len(rows)):
        kind = FORMATS[rows["format"][i]]
        gpus = replica(CHIPS[rows["chip"][i]], int(rows["devices"][i]), 1, kind)
        batch, context = max(1.0, float(rows["batch"][i])), float(rows["output_tokens"][i]) / 2
        model = decoder(shape(rows["model"][i]))
        times.append(mixed_step(model, gpus, 0, batch, context, engine=constants).time)
    return rows, np.array(times)


def judge(rows):
    """The engine of served_models, as shipped, on rows that had no part in it."""
    rows, times = steps(rows, engine("vllm"))
    models = [decoder(shape(name)) for name in rows["model"]]
    codes = [2 if one.experts else int(one.depth > 32) for one in models]
    return Judged(times, rows["latency_median"], Words(KINDS, np.array(codes, np.int32)), rows.name)


PAIRINGS = (
    Pairing(
        key="served-elsewhere",
        title="The same engine against the served models of ML.ENERGY",
        law="lightspeed_models.llm.step.mixed_step",
        set="serving_energy",
        chapter="09",
        judge=judge,
        fitted="nothing here: vLLM's constants, which another publisher's rows set",
        lesson="Steps are longer than expected: prompts that join are not counted, since the set "
        "does not say how long they are. The bound holds for each row.",
    ),
)
