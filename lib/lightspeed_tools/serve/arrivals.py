"""Layouts of a model under requests as they came, by the simulator of serving: tails included."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil, isfinite, log2
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from lightspeed_models.llm import Engine
from lightspeed_models.llm.step import engine
from lightspeed_models.served import Served, pace_of
from lightspeed_models.served_law import CHUNK
from lightspeed_models.served_rows import Measured
from lightspeed_models.simulators.pools import apart
from lightspeed_models.simulators.prefixes import found_tokens
from lightspeed_models.simulators.serving import Cost, Scheduler, cost_of, simulate
from lightspeed_models.simulators.serving import Served as Simulated
from lightspeed_tools.serve.check import nearest
from lightspeed_tools.serve.files import objects_of, table_of, text_of
from lightspeed_tools.serve.plan import Job, Plan, layout_words, layouts

SLOTS = 1024  # requests in a step at most: max_num_seqs of vLLM on large GPUs, by default
BLOCK = 16  # tokens of a block of the cache


def _seconds(value: Any) -> float:
    number = float(value)
    if not isfinite(number):
        raise ValueError
    return number


def _scaled(unit: float) -> Callable[[Any], float]:
    return lambda value: _seconds(value) * unit


def _moment(value: Any) -> float:
    """Seconds of a date and time, or of an epoch in s, ms, µs or ns, told apart by its size."""
    try:
        number = _seconds(value)
    except ValueError:
        # Azure writes seven digits of a second, and no zone.
        moment = datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    for size, unit in ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3)):
        if number > size:
            return number * unit
    return number


def _tokens(value: Any) -> int:
    number = float(value)
    if number < 1 or number % 1:
        raise ValueError
    return int(number)


# Names of a column in small letters without punctuation, as gateways and traces write them, in
# order; of times with how they are read, and what is expected.
TIMES = {
    "seconds": (_seconds, "seconds"), "arrivaltimens": (_scaled(1e-9), "nanoseconds"),
    "arrivaltimes": (_seconds, "seconds"), "timestampms": (_scaled(1e-3), "milliseconds"),
    "timestamp": (_moment, "a time"), "ts": (_moment, "a time"), "time": (_moment, "a time"),
}  # fmt: skip
TIMES |= dict.fromkeys(
    ("startedat", "createdat", "created", "starttime", "requesttime", "date", "arrivedat",
     "arrivaltime"), (_moment, "a time"),
)  # fmt: skip
PROMPTS = ("prompt", "contexttokens", "inputlength", "inputtoks", "prompttokens", "inputtokens",
           "promptlen", "inputlen", "numprefilltokens", "requesttokens", "tokensin")  # fmt: skip
OUTPUTS = ("output", "generatedtokens", "outputlength", "outputtoks", "completiontokens",
           "outputtokens", "outputlen", "responsetokens", "numdecodetokens",
           "tokensout")  # fmt: skip
MOONCAKE = (_scaled(1e-3), "milliseconds")


def _columns(have: Iterable[str]) -> tuple[tuple[str, Any, str], ...] | None:
    """(name, reader, what is expected) of time, prompt and answer among these columns."""
    plain = {re.sub(r"[^a-z]", "", name.lower()): name for name in have}
    time, prompt, output = (
        next((name for name in names if name in plain), None) for names in (TIMES, PROMPTS, OUTPUTS)
    )
    if time is None or prompt is None or output is None:
        return None
    reader, unit = TIMES[time]
    # Mooncake counts milliseconds; qwen-bailian has its names and a chat_id, and counts seconds.
    if time == "timestamp" and prompt == "inputlength":
        reader, unit = (_seconds, "seconds") if "chatid" in plain else MOONCAKE
    whole = "a whole number of at least 1"
    return (
        (plain[time], reader, unit),
        (plain[prompt], _tokens, whole),
        (plain[output], _tokens, whole),
    )


@dataclass(frozen=True)
class Load:
    """Requests in the order in which they came: seconds since the first, tokens in and out, and,
    where they are told, keys of the blocks of a prompt, each of `block` tokens and all before it.
    """

    arrivals: list[float]
    prompts: list[int]
    outputs: list[int]
    keys: list[list[Any]] | None = None
    block: int = BLOCK

    def part(self, which: int, parts: int) -> Load:
        """Return the requests of one of `parts` workers that take turns."""
        mine = slice(which, None, parts)
        keys = self.keys and self.keys[mine]
        return Load(self.arrivals[mine], self.prompts[mine], self.outputs[mine], keys, self.block)

    def found(self, tokens: float) -> list[int] | None:
        """Return the tokens of each prompt that a cache of `tokens` finds; None without keys."""
        if self.keys is None:
            return None
        return found_tokens(self.keys, self.prompts, max(1, int(tokens) // self.block), self.block)


def read_load(path: Path) -> Load:
    """The `Load` of a file: a CSV or a JSON object a line, with columns for a time and tokens.

    Raises ValueError that names the line and the field.
    """
    rows = list(_rows(path))
    if not rows:
        raise ValueError(f"{path} has no request")
    have = rows[0][1]
    columns = _columns(have)
    if columns is None:
        raise ValueError(
            f"{path} has the fields {', '.join(have)}; expected a time and tokens in and out, such"
            " as timestamp, prompt_tokens, completion_tokens"
        )
    requests: list[tuple[Any, ...]] = []
    for line, row in rows:
        values = []
        for name, reader, expected in columns:
            try:
                values.append(reader(row.get(name)))
            except (TypeError, ValueError, OverflowError):
                where = f"{path}, line {line}, {name}: {row.get(name)!r}"
                raise ValueError(f"{where}, expected {expected}") from None
        keys = row.get("hash_ids")
        good = isinstance(keys, list) and keys and all(isinstance(k, (int, str)) for k in keys)
        requests.append((*values, keys if good else None))
    requests.sort(key=itemgetter(0))
    times, prompts, outputs, chains = (list(column) for column in zip(*requests, strict=True))
    if not isfinite(times[-1] - times[0]):
        raise ValueError(f"{path}: the times span more than a number holds")
    came = [time - times[0] for time in times]
    if None in chains:
        return Load(came, prompts, outputs)
    # A chain has a key for each block of its prompt, whose size is a power of two.
    least = max(length / len(keys) for length, keys in zip(prompts, chains, strict=True))
    return Load(came, prompts, outputs, chains, 2 ** ceil(log2(least)))


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(number of the line, fields) of each request."""
    text = text_of(path)
    if text.lstrip()[:1] == "[":
        for number, one in enumerate(objects_of(path, text), 1):
            yield number, one
        return
    if text.lstrip()[:1] != "{":
        table = table_of(text)
        try:
            for row in table:
                yield table.line_num, row
        except csv.Error as error:
            raise ValueError(f"{path} is not a table: {error}") from error
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                one = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number}: not JSON ({error.msg})") from error
            if not isinstance(one, dict):
                raise ValueError(f"{path}, line {number}: expected an object")
            yield number, one


@dataclass(frozen=True)
class Replayed:
    """What a layout made of a load, of each request: seconds to the first token, and between
    tokens on average (not of answers with one token); `kept` is the share within the promise,
    `put_off` of those that lost their blocks to others, `found` of tokens of prompts that the cache
    of prefixes had, where the load tells them. `run` has the requests that decode at once, on
    average.
    """

    layout: str
    run: Served
    first_token: Any
    per_token: Any
    kept: float
    put_off: float
    found: float | None = None


def replays(job: Job, load: Load) -> tuple[list[Replayed], list[tuple[str, str]]]:
    """(layouts by the share of requests within the promise, then by the p99 of the first token;
    layouts that are refused with the figure). Workers take turns; those that read apart from those
    that decode are not simulated.
    """
    constants = job.constants
    replays, refused = [], []
    longest = max(p + o for p, o in zip(load.prompts, load.outputs, strict=True))
    for run, workers in layouts(job):
        if not run.together:
            continue
        name = layout_words(run, workers)
        room = blocks(run) * BLOCK
        if room < BLOCK * ceil(longest / BLOCK):
            refused.append(
                (name, f"the longest request holds {longest:,} tokens, room for {room:,}")
            )
        else:
            replays.append(_replay(name, run, workers, job, load, constants))
    replays.sort(key=lambda one: (-one.kept, np.quantile(one.first_token, 0.99)))
    return replays, refused


def _replay(
    name: str, run: Served, workers: int, job: Job, load: Load, constants: Engine
) -> Replayed:
    first, between, loads, off, again, cached_tokens = [], [], [], 0, 0, 0
    for which in range(min(workers, len(load.arrivals))):
        mine = load.part(which, workers)
        rows = 1.0
        for _ in range(2):  # a step's cost by the requests in flight, and these by that cost
            here = replace(run, requests=rows)
            cached = mine.found(run.tokens() - rows * run.held)
            waits, each, served = times(here, mine, constants, cached=cached)
            writing = np.subtract(served.last, served.first).sum()
            rows = float(writing / (max(served.last) - mine.arrivals[0]))
            rows = min(SLOTS * run.decode.data, max(1.0, rows))
        several = np.array(mine.outputs) > 1
        late = waits > job.first_token
        late |= several & (each > job.per_token)
        off += int(late.sum())
        cached_tokens += sum(cached or ())
        again += sum(many > 0 for many in served.put_off)
        first.append(waits)
        between.append(each[several])
        loads.append(rows)
    total, loaded = len(load.arrivals), replace(run, requests=float(np.mean(loads)))
    one, two = np.concatenate(first), np.concatenate(between)
    share = None if load.keys is None else cached_tokens / sum(load.prompts)
    return Replayed(name, loaded, one, two, 1 - off / total, again / total, share)


def times(
    run: Served,
    load: Load,
    constants: Engine,
    concurrency: int = 0,
    cached: list[int] | None = None,
) -> tuple[Any, Any, Simulated]:
    """(seconds to the first token, between tokens) of each request on one worker, and what the
    simulator says. With `concurrency` the loop is closed, and arrivals count for nothing.

    Steps are those of the closed form, one by one; `front` is added to each first token.
    """
    cost, rules = cost_at(run, constants), rules_of(run)
    arrivals = None if concurrency else load.arrivals
    served = simulate(load.prompts, load.outputs, cost, rules, arrivals, concurrency, cached)
    came, start, last = (np.array(x) for x in (served.arrivals, served.first, served.last))
    tokens = np.maximum(1, np.array(load.outputs) - 1)
    return start - came + constants.front, (last - start) / tokens, served


def at_random(plan: Plan, job: Job) -> tuple[Any, Any]:
    """(seconds to the first token, between tokens) of requests that come at random at the rate of a
    plan, of random lengths up to twice the mean, simulated, without the first that find it empty.
    """
    constants, run = job.constants, plan.run
    shares = plan.workers if run.together else 1
    inside = plan.requests // shares
    requests, draw = 1200 + min(16 * inside, 20_000), np.random.default_rng(4)
    # A server whose steps take twice as long stands half the rate, in twice the time.
    gaps = draw.exponential(shares / (plan.rate * job.levels[0]), requests)
    prompts, outputs = (
        draw.integers(1, 2 * mean, requests).tolist() for mean in (job.prompt, job.output)
    )
    load = Load(gaps.cumsum().tolist(), prompts, outputs)
    if run.together:
        first, between, _ = times(run, load, constants)
        return _later(job, first, between, outputs)
    moved = run.model.kv_cache_bytes_per_token(run.decode.cache_bytes)
    # The caches that come to those who write need no step of their own.
    cost = cost_at(run, constants), replace(cost_at(run, constants), pace=None)
    seconds = float(moved) / (run.decode.link * run.decode.gpus)
    served = apart(
        load.prompts, load.outputs, *cost, load.arrivals, run.readers, run.decoders, seconds,
        rules_of(run),
    )  # fmt: skip
    first, last = np.array(served.first), np.array(served.last)
    between = (last - first) / np.maximum(1, np.array(outputs) - 1)
    waits = first - load.arrivals + constants.front + seconds * np.array(prompts)
    return _later(job, waits, between, outputs)


def _later(job: Job, first: Any, between: Any, outputs: list[int]) -> tuple[Any, Any]:
    """Both times of the later half, at the level of one's own run."""
    several = np.array(outputs) > 1
    several[: len(outputs) // 2] = False
    return job.levels[1] * first[len(first) // 2 :], job.levels[0] * between[several]


def rules_of(run: Served) -> Scheduler:
    """Return a worker's limits per step: a budget and slots for each replica of attention."""
    data = run.decode.data
    return Scheduler(
        CHUNK * data, SLOTS * data, blocks(run), BLOCK,
        alone=run.engine == "sglang", whole=run.engine == "trtllm",
    )  # fmt: skip


def blocks(run: Served) -> int:
    """Return the cache blocks that fit beside the weights."""
    return int(run.tokens()) // BLOCK


def closed_loop(row: Measured) -> tuple[float, float]:
    """(between tokens, to the first) of a measured row, simulated: ten times as many requests as
    are in flight, medians.
    """
    many = max(1, round(row.run.requests))
    total = 10 * many
    load = Load([0.0] * total, [row.run.prompt] * total, [row.run.output] * total)
    first, between, _ = times(row.run, load, engine(row.engine), many)
    return float(np.median(between)), float(np.median(first))


def beside(best: Replayed, job: Job) -> list[tuple[Measured, tuple[float, float]]]:
    """Compare the nearest measured rows that can be simulated with their simulation."""
    rows = nearest(best.run, job, 50)
    near = [row for row in rows if row.run.together and fits(row.run)]
    return [(row, closed_loop(row)) for row in near[:3]]


def fits(run: Served) -> bool:
    """Whether one worker can hold one request."""
    return blocks(run) * BLOCK >= run.prompt + run.output + BLOCK


def cost_at(run: Served, constants: Engine) -> Cost:
    """Return the `Cost` of a step of this layout around its requests and mean lengths."""
    many = max(2, round(run.inside))
    pace = pace_of(run.decoding(many), run.reading, constants)
    return cost_of(run.model, run.decode, many, run.held, CHUNK, constants, pace)


def shares(values: Any) -> dict[str, float]:
    """Return median and p99; empty without a value."""
    if not len(values):
        return {}
    median, worst = np.quantile(values, (0.5, 0.99))
    return {"median": float(median), "p99": float(worst)}


def mean_job(job: Job, load: Load) -> Job:
    """Return the job with the mean lengths of a load."""
    prompt, output = (max(1, round(float(np.mean(x)))) for x in (load.prompts, load.outputs))
    return replace(job, prompt=prompt, output=output)
