"""Models served on several GPUs: time between tokens, and time to the first."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from lightspeed.inference import burst_time, interrupted_step
from lightspeed.transformer import Transformer, transformer
from lightspeed_models.evidence.pairing import Judged, Pairing, each_left_out
from lightspeed_models.evidence.pairings.serving import CHIPS as ENERGY_CHIPS
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.inference_step import engine, inference_step, replica
from lightspeed_models.llm.step import IDEAL, Engine, Replica

MODELS = {
    "DeepSeek-R1": "deepseek_v3",
    "DeepSeek-V3": "deepseek_v3",
    "Kimi-K2.5": "kimi_k2_5",
    "MiniMax-M2.5": "minimax_m2_5",
    "Qwen3-32B": "qwen3_32b",
    "Qwen3-235B-A22B-FP8": "qwen3_235b",
}
CHIPS = {
    "h100_sxm": "h100_sxm", "h200_sxm": "h200_sxm", "b200_sxm": "b200", "b300_sxm": "b300",
    "gb200": "gb200", "gb300": "gb300",
}  # fmt: skip
REGIMES = (
    "same GPUs for prompts",
    "own GPUs for prompts, up to 16 requests a replica",
    "own GPUs for prompts, more requests",
)
QUEUED = 15  # seconds to the first token: requests waited for a place, and the source doesn't say
# Tokens of prompts that one replica of attention reads in a pass: max_num_tokens of TensorRT-LLM's
# published configurations. The rows do not say theirs.
CHUNK = 8192
START = (0.6, 5e-5, 1e-6)


@dataclass(frozen=True)
class Served:
    """One row: a model, the replicas that decode and those that read prompts, and its requests."""

    model: Transformer
    decode: Replica
    prefill: Replica
    readers: float
    requests: float
    all_requests: float
    prompt: float
    output: float
    together: bool

    def reading(self, engine):
        """Seconds a prompt takes, in a pass as full as its requests and `CHUNK` allow; each of its
        tokens sees half of it on average.
        """
        most = max(1, CHUNK * self.prefill.data // self.prompt)
        many = min(most, max(1, self.all_requests // self.readers))
        args = many, self.prompt, self.prompt / 2, engine
        return inference_step(self.model, self.prefill, *args).time / many

    def step(self, engine):
        """Seconds of a pass that gives each request its next token, half of them written."""
        seen = self.prompt + self.output / 2
        return inference_step(self.model, self.decode, self.requests, 1, seen, engine).time

    def between(self, engine):
        """Seconds between the tokens of a request."""
        if not self.together:
            return self.step(engine)
        return interrupted_step(self.step(engine), self.reading(engine), self.requests, self.output)

    def first(self, engine):
        """Seconds to the first token, when all requests come at once."""
        prompts = max(1, self.all_requests / self.readers)
        return engine.front + burst_time(prompts, self.reading(engine))

    def alone(self, engine):
        """Seconds to the first token, when each request comes as another leaves."""
        args = 1, self.prompt, self.prompt / 2, engine
        return engine.front + inference_step(self.model, self.prefill, *args).time


def known(rows):
    """The rows of models whose shape the catalog has, each measurement once."""
    times = list(zip(rows["system"], rows["first_token"], rows["per_token"], strict=True))
    once = [times.index(time) == i for i, time in enumerate(times)]
    shapes = [shape in MODELS for shape in short(rows)]
    return rows.where(np.array(once) & np.array(shapes))


def short(rows):
    """The model of each row, without who published it."""
    return [name.rpartition("/")[2] for name in rows["model"]]


def served(rows):
    """Each row as a `Served`; what a source leaves out is one."""

    def cell(name, i):
        value = rows[name][i]
        return 1 if np.isnan(value) else int(value)

    runs, models = [], [transformer(MODELS[name]) for name in short(rows)]
    for i in range(len(rows)):
        together = rows["mode"][i] == "agg"
        chip, kind = CHIPS[rows["system"][i]], rows["precision"][i] or "bf16"
        own = "" if together else "decode_"
        decode = replica(chip, cell(f"{own}tensor", i), cell(f"{own}attention_data", i), kind)
        prefill, readers = decode, 1
        if not together:
            ways = cell("prefill_tensor", i), cell("prefill_attention_data", i)
            prefill, readers = replica(chip, *ways, kind), cell("prefill_workers", i)
        requests = cell(f"{own}batch", i) * decode.data
        every = requests * cell("decode_workers", i)
        lengths = cell("input_tokens", i), cell("output_tokens", i)
        runs.append(
            Served(models[i], decode, prefill, readers, requests, every, *lengths, together)
        )
    return runs


def fit(runs, times):
    """The `Engine` whose times between tokens fit these; a row that is far off counts less."""
    from scipy.optimize import least_squares

    def off(logs):
        engine = Engine(*np.exp(logs))
        return np.log([run.between(engine) for run in runs] / times)

    low, high = np.log((0.05, 1e-7, 1e-9)), np.log((1, 1e-3, 1e-4))
    found = least_squares(off, np.log(START), bounds=(low, high), loss="soft_l1", f_scale=0.2)
    return Engine(*(float(value) for value in np.exp(found.x)))


def front(runs, times, engine, law=Served.first):
    """That engine, with the seconds before a prompt is read that fit times to the first token."""
    rest = np.array([law(run, replace(engine, front=0.0)) for run in runs])
    tried = np.geomspace(1e-3, 3, 60)
    best = min(tried, key=lambda wait: np.abs(np.log((wait + rest) / times)).mean())
    return replace(engine, front=float(best))


@functools.lru_cache(maxsize=2)
def judged(rows):
    """(rows, runs, between tokens, to the first token), each model from the others' rows."""
    rows = known(rows)
    runs = np.array(served(rows))
    tokens, first = rows["per_token"], rows["first_token"]
    kinds = Words.of([MODELS[name] for name in short(rows)])

    def learn(others):
        prompt = others & (first < QUEUED)
        return front(runs[prompt], first[prompt], fit(runs[others], tokens[others]))

    engines = {}

    def answer(engine, own, what):
        engines[tuple(own)] = engine
        return [getattr(run, what)(engine) for run in runs[own]]

    between = each_left_out(kinds, learn, lambda e, own: answer(e, own, "between"))
    start = each_left_out(
        kinds, lambda others: engines[tuple(~others)], lambda e, own: answer(e, own, "first")
    )
    return rows, runs, between, start


def regimes(runs):
    """In which of `REGIMES` each run lies."""
    codes = [0 if run.together else 1 + (run.requests > 16) for run in runs]
    return Words(REGIMES, np.array(codes, np.int32))


def tokens(rows):
    """Time between tokens of a model whose rows no constant has seen."""
    rows, runs, between, _ = judged(rows)
    return Judged(between, rows["per_token"], regimes(runs), rows.name)


def bound(rows):
    """The same from data sheets alone."""
    rows = known(rows)
    runs = served(rows)
    ideal = np.array([run.step(IDEAL) for run in runs])
    return Judged(ideal, rows["per_token"], regimes(runs), rows.name)


def first(rows):
    """Time to the first token of a model whose rows no constant has seen."""
    rows, runs, _, start = judged(rows)
    told = np.flatnonzero(rows["first_token"] < QUEUED)
    return Judged(
        start[told], rows["first_token"][told], regimes(runs[told]), lambda i: rows.name(told[i])
    )


def first_alone(rows):
    """The same, of requests that come one by one into a server that is busy."""
    rows = known(rows)
    rows = rows.where(rows["first_token"] < QUEUED)
    runs, times = np.array(served(rows)), rows["first_token"]
    kinds = Words.of([MODELS[name] for name in short(rows)])

    def learn(others):
        engine = fit(runs[others], rows["per_token"][others])
        return front(runs[others], times[others], engine, Served.alone)

    found = each_left_out(kinds, learn, lambda e, own: [run.alone(e) for run in runs[own]])
    return Judged(found, times, regimes(runs), rows.name)


def read_alone(rows):
    """What reading the prompt takes by data sheets alone, with nobody before it."""
    rows = known(rows)
    runs = served(rows)
    ideal = np.array([run.alone(IDEAL) for run in runs])
    return Judged(ideal, rows["first_token"], regimes(runs), rows.name)


# ---------------------------------------------------------------- another set, another engine

# How the names of ML.ENERGY's models begin.
ELSEWHERE = {
    "Llama 3.1 8B": "llama3_8b",
    "Llama 3.1 70B": "llama3_70b",
    "Llama 3.3 70B": "llama3_70b",
    "Llama 3.1 405B": "llama3_405b",
    "Qwen 3 32B": "qwen3_32b",
    "Qwen 3 235B": "qwen3_235b",
    "DeepSeek": "deepseek_v3",
}
FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}
TEXT = ("lm-arena-chat", "gpqa")
KINDS = ("8 billion parameters", "other models without experts", "models with experts")


def shape(name):
    """The catalog's key for a model of ML.ENERGY, or None."""
    return next((key for start, key in ELSEWHERE.items() if name.startswith(start)), None)


def steps_elsewhere(rows, engine):
    """(rows of ML.ENERGY whose model the catalog has, their steps). Prompts, of which the set does
    not say how long, are not counted. Its experts lie over all GPUs, and so does attention.
    """
    rows = rows.where(
        np.array([shape(name) is not None for name in rows["model"]])
        & rows["task"].isin(TEXT)
        & rows["format"].isin(FORMATS)
        & (rows["data"] == 1)
    )
    steps = []
    for i in range(len(rows)):
        chip, kind = ENERGY_CHIPS[rows["chip"][i]], FORMATS[rows["format"][i]]
        gpus = replica(chip, int(rows["devices"][i]), 1, kind)
        model = transformer(shape(rows["model"][i]))
        batch, seen = max(1.0, float(rows["batch"][i])), float(rows["output_tokens"][i]) / 2
        steps.append(inference_step(model, gpus, batch, 1, seen, engine).time)
    return rows, np.array(steps)


def elsewhere(rows):
    """The engine of the other set, as shipped, on rows that had no part in it."""
    rows, steps = steps_elsewhere(rows, engine("served"))
    keys = [shape(name) for name in rows["model"]]
    codes = [0 if key == "llama3_8b" else 2 if transformer(key).experts else 1 for key in keys]
    return Judged(steps, rows["latency_median"], Words(KINDS, np.array(codes, np.int32)), rows.name)


_SHARED = {
    "law": "lightspeed_models.inference_step.inference_step", "set": "serving_refs",
    "chapter": "04",
}  # fmt: skip
PAIRINGS = (
    Pairing(
        key="inference-bound",
        title="The bound of a decoding step against served models",
        judge=bound,
        bound="least",
        **_SHARED,
    ),
    Pairing(
        key="inference-tokens",
        title="The expected time between tokens on several GPUs",
        judge=tokens,
        fitted="a share, a cost a layer and the alpha of an exchange, on the rows of other models",
        left_out="model",
        lesson="Reading weights is not all: launches and the latency of exchanges, which no batch"
        " shares, take a third of the step. Rows whose requests wait for a place are furthest off.",
        **_SHARED,
    ),
    Pairing(
        key="inference-first",
        title="The expected time to the first token on several GPUs",
        judge=first,
        fitted="the engine of the time between tokens, and a wait, on the rows of other models",
        left_out="model",
        lesson="Taken for a burst, which suits servers with many requests and GPUs of their own for"
        " prompts. How requests arrived, how many each place served in turn and the tokens of a"
        " pass would settle it, and the rows don't say them.",
        **_SHARED | {"law": "lightspeed.inference.burst_time"},
    ),
    Pairing(
        key="inference-first-alone",
        title="The expected time to the first token, of requests that come one by one",
        judge=first_alone,
        fitted="the engine of the time between tokens, and a wait, on the rows of other models",
        left_out="model",
        lesson="Right in the middle where prompts are read by the GPUs that decode, and still far"
        " off: the wait before a prompt is read differs from server to server, least in vLLM and"
        " most in SGLang, and no model or chip tells it.",
        **_SHARED,
    ),
    Pairing(
        key="inference-first-bound",
        title="The bound of reading a prompt against the time to the first token",
        judge=read_alone,
        bound="least",
        lesson="Reading is the smallest part of the wait, a sixteenth in the median.",
        **_SHARED,
    ),
    Pairing(
        key="inference-elsewhere",
        title="The same engine against the served models of ML.ENERGY",
        judge=elsewhere,
        fitted="nothing here: the engine of another set, as shipped",
        lesson="Steps are longer than expected: prompts that join, and work for each request beside"
        " the GPU, are not in the law. The bound holds for each row.",
        **_SHARED | {"set": "serving_energy"},
    ),
)
