"""Requests of an open loop, one by one, by the simulator with the constants of other machines."""

from __future__ import annotations

import functools

import numpy as np

from lightspeed.catalog import find
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.llm.shipped import decoder
from lightspeed_models.llm.step import engine
from lightspeed_models.served import Served, pace_of, served_replica
from lightspeed_models.simulators.serving import Scheduler, cost_of, simulate

BLOCK = 16  # tokens, vLLM's
ROUNDS = 4  # of the cost of a step by those that decode, and these by that cost


@functools.lru_cache(maxsize=2)
def simulated(rows):
    """(seconds from its arrival to the first token of each request, and to its last)."""
    times = np.full((2, len(rows)), np.nan)
    names = rows["model"], rows["system"]
    for model in names[0].present():
        for system in names[1].present():
            own = (names[0] == model) & (names[1] == system)
            if own.any():
                times[:, own] = _run(rows.where(own), model, system)
    return times[0], times[1]


def _run(rows, model, system):
    tensor, data, budget, slots = (
        int(rows[name][0]) for name in ("tensor", "data", "budget", "slots")
    )
    vllm, gpus = engine("vllm"), served_replica(system, tensor, data, "bf16")
    prompts, outputs = (rows[f"{way}_tokens"].astype(np.intp) for way in ("input", "output"))
    here = Served(
        decoder(model), gpus, gpus, float(find(system).hbm_capacity), slots * data,
        int(prompts.mean()), int(outputs.mean()),
    )  # fmt: skip
    blocks = rows["blocks"][0]
    blocks = int(here.tokens() // BLOCK if np.isnan(blocks) else blocks)
    rules = Scheduler(budget * data, slots * data, blocks, BLOCK, ahead=True)
    writing = slots * data / 2
    for _ in range(ROUNDS):
        many = max(2, round(writing))
        pace = pace_of(here.decoding(many), here.reading, vllm)
        cost = cost_of(here.model, gpus, many, here.held, budget * data, vllm, pace)
        run = simulate(prompts.tolist(), outputs.tolist(), cost, rules, rows["arrival"].tolist())
        writing = np.subtract(run.last, run.first).sum() / max(run.last)
    return np.array([run.first, run.last]) - rows["arrival"] + vllm.front


def regimes(rows):
    """GPU and model of each run."""
    names = [
        f"{m.rpartition('/')[2]}, {s}" for m, s in zip(rows["model"], rows["system"], strict=True)
    ]
    return Words.of(names)


def first(rows):
    """Seconds to the first token."""
    return Judged(simulated(rows)[0], rows["first"] - rows["arrival"], regimes(rows), rows.name)


def tokens(rows):
    """Seconds between tokens, the mean of a request."""
    begin, end = simulated(rows)
    others = rows["output_tokens"] - 1
    measured = (rows["last"] - rows["first"]) / others
    return Judged((end - begin) / others, measured, regimes(rows), rows.name)


def last(rows):
    """Seconds to the last token."""
    return Judged(simulated(rows)[1], rows["last"] - rows["arrival"], regimes(rows), rows.name)


GIVEN = (
    "nothing on these runs: vLLM's constants of H100 to B300, rates of data sheets, and when each"
    " request came"
)
LESSON = (
    "On a new chip, ends of requests are right to a tenth for a small model, to a fifth with"
    " experts, and to a third for two GPUs without NVLink and for a gaming GPU. LLMServingSim, from"
    " profiles of kernels on these very GPUs, is within 2 % between tokens and 14 % to the first"
)
PAIRINGS = tuple(
    Pairing(
        key=f"open-{key}",
        title=f"{title}, request by request, at ten requests a second",
        law="lightspeed_models.simulators.serving.simulate",
        set="open_loop",
        chapter="09",
        judge=judge,
        fitted=GIVEN,
        lesson=LESSON,
    )
    for key, title, judge in (
        ("first", "The time to the first token", first),
        ("tokens", "The time between tokens", tokens),
        ("last", "The time to the last token", last),
    )
)
