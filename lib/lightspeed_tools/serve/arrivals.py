"""Layouts of a model under requests as they came, by the simulator of serving: tails included."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from lightspeed.inference import Engine
from lightspeed_models.inference_step import engine
from lightspeed_models.served import CHUNK, Measured, Served
from lightspeed_models.simulators.serving import Cost, Scheduler, cost_of, simulate
from lightspeed_models.simulators.serving import Served as Simulated
from lightspeed_tools.serve.check import nearest
from lightspeed_tools.serve.plan import Job, Plan, layouts

SLOTS = 256  # requests in a step at most: max_num_seqs of vLLM in published configurations
BLOCK = 16  # tokens of a block of the cache


def _seconds(value: Any) -> float:
    found = float(value)
    if not isfinite(found):
        raise ValueError
    return found


def _milliseconds(value: Any) -> float:
    return _seconds(value) / 1e3


def _date(value: Any) -> float:
    # Azure writes seven digits of a second, and no zone.
    found = datetime.fromisoformat(str(value))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _tokens(value: Any) -> int:
    found = float(value)
    if found < 1 or found % 1:
        raise ValueError
    return int(found)


@dataclass(frozen=True)
class Columns:
    """What the fields of a trace are called, and how its times are read."""

    time: str
    prompt: str
    output: str
    read: Callable[[Any], float]
    unit: str


# In this order: qwen-bailian has Mooncake's names and a chat_id, and counts seconds.
KNOWN = (
    Columns("seconds", "prompt", "output", _seconds, "seconds"),
    Columns("TIMESTAMP", "ContextTokens", "GeneratedTokens", _date, "a date and time"),
    Columns("timestamp", "input_length", "output_length", _milliseconds, "milliseconds"),
)
BAILIAN = replace(KNOWN[2], read=_seconds, unit="seconds")


@dataclass(frozen=True)
class Load:
    """Requests in the order in which they came: seconds since the first, tokens in and out."""

    arrivals: list[float]
    prompts: list[int]
    outputs: list[int]

    def part(self, which: int, parts: int) -> Load:
        """What one of so many workers gets where they take turns."""
        mine = slice(which, None, parts)
        return Load(self.arrivals[mine], self.prompts[mine], self.outputs[mine])


def read_load(path: Path) -> Load:
    """The `Load` of a file: a CSV or a JSON object a line, with the columns of `KNOWN`.

    Raises ValueError that names the line and the field.
    """
    rows = list(_rows(path))
    if not rows:
        raise ValueError(f"{path} has no request")
    have = rows[0][1]
    known = (names for names in KNOWN if {names.time, names.prompt, names.output} <= have.keys())
    names = next(known, None)
    if names is None:
        options = "; ".join(f"{one.time}, {one.prompt}, {one.output}" for one in KNOWN)
        raise ValueError(f"{path} has the fields {', '.join(have)}; expected {options}")
    if "chat_id" in have:
        names = BAILIAN
    wanted = (
        (names.time, names.read, names.unit),
        (names.prompt, _tokens, "a whole number of at least 1"),
        (names.output, _tokens, "a whole number of at least 1"),
    )
    found = []
    for line, row in rows:
        values = []
        for name, read, expected in wanted:
            try:
                values.append(read(row.get(name)))
            except (TypeError, ValueError, OverflowError):
                told = f"{path}, line {line}, {name}: {row.get(name)!r}"
                raise ValueError(f"{told}, expected {expected}") from None
        found.append(values)
    found.sort(key=lambda values: values[0])
    times, prompts, outputs = (list(column) for column in zip(*found, strict=True))
    return Load([time - times[0] for time in times], prompts, outputs)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(number of the line, fields) of each request."""
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} can't be read: {error}") from error
    if text.lstrip()[:1] != "{":
        table = csv.DictReader(io.StringIO(text))
        for row in table:
            yield table.line_num, row
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                one = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number}: no JSON ({error.msg})") from error
            if not isinstance(one, dict):
                raise ValueError(f"{path}, line {number}: expected an object")
            yield number, one


@dataclass(frozen=True)
class Replayed:
    """What a layout made of a load, of each request: seconds to the first token, and between
    tokens on average (not of answers with one token); `kept` is the share within the promise,
    `put_off` of those that lost their blocks to others. `run` has the requests that decode at
    once, on average.
    """

    layout: str
    run: Served
    first_token: Any
    per_token: Any
    kept: float
    put_off: float


def replays(job: Job, load: Load) -> tuple[list[Replayed], list[tuple[str, str]]]:
    """(layouts by the share of requests within the promise, then by the p99 of the first token;
    layouts that are refused with the figure). Workers take turns; those that read apart from those
    that decode are not simulated.
    """
    constants = engine(job.engine)
    found, refused = [], []
    longest = max(p + o for p, o in zip(load.prompts, load.outputs, strict=True))
    for run, workers in layouts(job):
        if not run.together:
            continue
        name = Plan(run, workers, 0, 0.0, 0.0, 0.0, "", "").layout
        room = blocks(run) * BLOCK
        if room < BLOCK * ceil(longest / BLOCK):
            refused.append(
                (name, f"the longest request holds {longest:,} tokens, room for {room:,}")
            )
        else:
            found.append(_replay(name, run, workers, job, load, constants))
    found.sort(key=lambda one: (-one.kept, np.quantile(one.first_token, 0.99)))
    return found, refused


def _replay(
    name: str, run: Served, workers: int, job: Job, load: Load, constants: Engine
) -> Replayed:
    first, between, seen, off, again = [], [], [], 0, 0
    for which in range(min(workers, len(load.arrivals))):
        mine = load.part(which, workers)
        rows = 1.0
        for _ in range(2):  # a step's cost by the requests in flight, and these by that cost
            here = replace(run, requests=rows)
            waits, each, served = times(here, mine, constants)
            writing = np.subtract(served.last, served.first).sum()
            rows = float(writing / (max(served.last) - mine.arrivals[0]))
            rows = min(SLOTS, max(1.0, rows))
        several = np.array(mine.outputs) > 1
        late = waits > job.first_token
        late |= several & (each > job.per_token)
        off += int(late.sum())
        again += sum(many > 0 for many in served.put_off)
        first.append(waits)
        between.append(each[several])
        seen.append(rows)
    total, loaded = len(load.arrivals), replace(run, requests=float(np.mean(seen)))
    one, two = np.concatenate(first), np.concatenate(between)
    return Replayed(name, loaded, one, two, 1 - off / total, again / total)


def times(
    run: Served, load: Load, constants: Engine, concurrency: int = 0
) -> tuple[Any, Any, Simulated]:
    """(seconds to the first token, between tokens) of each request on one worker, and what the
    simulator says. With `concurrency` the loop is closed, and arrivals count for nothing.

    A request alone gets its first token when `lightspeed_models.served.first` says; what others
    add is simulated, so that the law's own term for them is left out.
    """
    cost = cost_at(run, constants)
    rules = Scheduler(CHUNK * run.decode.data, SLOTS, blocks(run), BLOCK)
    arrivals = None if concurrency else load.arrivals
    served = simulate(load.prompts, load.outputs, cost, rules, arrivals, concurrency)
    came, start, last = (np.array(x) for x in (served.arrivals, served.first, served.last))
    prompts, outputs = np.array(load.prompts), np.array(load.outputs)
    chunks = np.ceil(prompts / rules.budget)
    reading = chunks * cost.base + cost.token * prompts
    step = cost.base + cost.row * run.requests + cost.held * run.requests * run.held
    extra = constants.front + constants.ahead * step + (constants.reading - 1) * reading
    return start - came + extra, (last - start) / np.maximum(1, outputs - 1), served


def blocks(run: Served) -> int:
    """Blocks of caches that fit beside the weights."""
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
    """The nearest measured rows that this simulator can run, with what it says of them."""
    rows = nearest(best.run, job, 50)[0]
    kept = [row for row in rows if row.run.together and fits(row.run)]
    return [(row, closed_loop(row)) for row in kept[:3]]


def fits(run: Served) -> bool:
    """Whether one worker holds one request."""
    return blocks(run) * BLOCK >= run.prompt + run.output + BLOCK


def cost_at(run: Served, constants: Engine) -> Cost:
    """The `Cost` of a step of this layout around its requests and mean lengths."""
    many = max(2, round(run.requests))
    chunk = min(CHUNK * run.decode.data, run.prompt)
    return cost_of(run.model, run.decode, many, run.held, chunk, constants)


def shares(values: Any) -> dict[str, float]:
    """Median and p99; empty without a value."""
    if not len(values):
        return {}
    median, worst = np.quantile(values, (0.5, 0.99))
    return {"median": float(median), "p99": float(worst)}


def mean_job(job: Job, load: Load) -> Job:
    """The job with the mean lengths of a load."""
    prompt, output = (max(1, round(float(np.mean(x)))) for x in (load.prompts, load.outputs))
    return replace(job, prompt=prompt, output=output)
