"""Layouts of a model on some GPUs, each at the most load that a promise allows."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from lightspeed.catalog import Entry
from lightspeed.errors import BadArgument
from lightspeed.values import si
from lightspeed_models.evidence.pairings.served import printed
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.llm import IDEAL, Decoder, Engine, Experts
from lightspeed_models.llm.checkpoint import Formats
from lightspeed_models.llm.step import engine
from lightspeed_models.served import Served, served_replica
from lightspeed_models.served_law import BUSIEST, SPREAD
from lightspeed_models.served_ranges import KINDS, Kind, kind_of, unseen
from lightspeed_models.served_rows import Measured, measured_rows

PLAIN = Formats()
NODE = 8  # GPUs that split a layer at most
GROUPS = (16, 32)  # GPUs of one worker over several nodes, attention on replicas inside of each
NETWORK = 50e9  # byte/s of a GPU between nodes where nobody says: one port of 400 Gb/s each
SPLITS = 64  # divisions of many workers that are tried
MOST = 4096  # requests in flight on a worker; engines stop earlier by default
MEMORY = "memory for requests"  # what ends a load
PARTS = {
    "kv": "reading caches", "weights": "reading weights", "math": "arithmetic",
    "exchange": "exchange between GPUs", "host": "launches and the host",
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A serving task: a model in its formats on `gpus` of a card, its load in tokens, its latency
    targets in s; `layout` is (tensor, data) if fixed; `drafts` guesses per step yield `kept`
    tokens; `price` is dollars per GPU-hour. From a run of the user: `levels`, measured over
    predicted for both times.
    """

    model: Decoder
    card: Entry
    gpus: int
    formats: Formats = PLAIN
    engine: str = "vllm"
    prompt: int = 8192
    output: int = 1024
    per_token: float = inf
    first_token: float = inf
    layout: tuple[int, int] | None = None
    share: float | None = None
    levels: tuple[float, float] = (1.0, 1.0)
    own_run: bool = False
    drafts: int = 0
    kept: float = 1.0
    price: float | None = None

    @functools.cached_property
    def lacks(self) -> list[str]:
        """What no measured row has in common with this job."""
        kind = self.formats.products
        return unseen(published(), self.model, self.card.key, self.engine, kind)

    @functools.cached_property
    def kind(self) -> Kind:
        """How close the measured rows are to this job."""
        return kind_of(self.lacks, self.card, self.own_run)

    @property
    def constants(self) -> Engine:
        """The engine's overhead above the bound; none on a card where it does not run."""
        return IDEAL if self.kind == KINDS["bound"] else engine(self.engine)

    def served(self, tensor: int, data: int = 1, random: bool = True) -> Served:
        """Return one worker of a layout, with one request in flight; others arrive at random."""
        gpus = served_replica(self.card, tensor, data, self.formats.products, self.formats)
        if gpus.gpus > NODE:
            gpus = replace(gpus, network=min(NETWORK, gpus.link))
        capacity = float(self.card.hbm_capacity)
        return Served(
            self.model, gpus, gpus, capacity, 1, self.prompt, self.output, engine=self.engine,
            formats=self.formats, share=self.share, drafts=self.drafts, kept=self.kept,
            random=random,
        )  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A layout at the most load within the promise. `requests` are in flight on all workers,
    `rate` is requests a second that come at random, `low` and `high` the ends of its range;
    `reading` the share of time that reads prompts, `stop` what ends the load, `binds` the longest
    part.
    """

    run: Served
    workers: int
    requests: int
    per_token: float
    first_token: float
    rate: float
    low: float
    high: float
    reading: float
    stop: str
    binds: str

    @property
    def layout(self) -> str:
        """The layout in words."""
        return layout_words(self.run, self.workers)


def layout_words(run: Served, workers: int) -> str:
    """Describe a run's layout: tp is tensor parallelism, dp replicas of attention."""
    gpus = run.decode
    split = " ".join(
        f"{n}{ways}" for n, ways in (("tp", gpus.tensor), ("dp", gpus.data)) if ways > 1
    )
    each = split or "one GPU"
    if run.together:
        return f"{workers} × {each}"
    return f"{run.readers} read + {run.decoders} decode × {each}"


def layout_of(words: str) -> tuple[int, int]:
    """Parse (tensor, data) of a layout such as tp4, tp4dp2, dep8, "tensor 4"."""
    small = re.sub(r"[\s,+_·×x-]+", "", words.lower())
    small = small.replace("tensor", "tp").replace("attention", "dp")
    degrees: dict[str, str] = dict(re.findall(r"(tp|dp|dep|tep|ep)=?(\d+)", small))
    rest = re.sub(r"(tp|dp|dep|tep|ep)=?\d+", "", small)
    tensor = int(degrees.get("tp") or degrees.get("tep") or 1)
    data = int(degrees.get("dp") or degrees.get("dep") or 1)
    if rest or not degrees or min(tensor, data) < 1 or tensor > NODE or tensor * data > GROUPS[-1]:
        raise BadArgument(
            "serve", "layout", words, f"tensor ways up to {NODE}, and replicas of attention",
            "Such as tp4, or tp2dp4. Pipelines are not tried.",
        )  # fmt: skip
    return tensor, data


@functools.cache
def published() -> tuple[Measured, ...]:
    """Return the shipped measured rows."""
    sets = ("served_models", "served_cookbook")
    return tuple(r for s in sets for r in measured_rows(printed(dataset(s)))[0].values())


def plans(job: Job) -> tuple[list[Plan], list[tuple[str, str]]]:
    """(plans by requests a second, layouts that are refused with the figure: those nearest to the
    promise first, then those with the most room).
    """
    passing: list[Plan] = []
    refused: list[tuple[float, str, str]] = []
    broke: list[tuple[float, str, str]] = []
    constants = job.constants
    for run, workers in layouts(job):
        room, name = run.room() / run.decode.gpus, layout_words(run, workers)
        if room <= 0:
            if run.together:  # apart, the same weights lack the same room
                refused.append((room, name, no_room(run)))
        elif run.places() < 1:
            size = si(run.room() / run.places() if run.places() else run.weights(), "byte")
            refused.append((room, name, f"a request holds {size}, {si(run.room(), 'byte')} left"))
        elif plan := most(run, workers, job, constants):
            passing.append(plan)
        else:
            one = at(run, 1, job, constants)
            times = f"{si(one[0], 's')} a token, {si(one[1], 's')} to the first"
            over, which = broken(job, one)
            words = f"one request alone: {times}, {over:.2g} times the promise {which}"
            broke.append((over, name, words))
    refused.sort(key=lambda row: -row[0])
    rows = sorted(broke) + refused
    return sorted(passing, key=lambda plan: -plan.rate), [row[1:] for row in rows]


def no_room(run: Served) -> str:
    """Say why a layout does not start."""
    weights, room, gpus = run.weights(), run.room(), run.decode.gpus
    total = run.capacity * gpus
    return (
        f"weights take {si(weights, 'byte')} of {si(total, 'byte')}, and {run.engine} has"
        f" {si(weights + room, 'byte')} for them"
    )


def broken(job: Job, times: tuple[float, float]) -> tuple[float, str]:
    """Return (by what factor the worse time exceeds its target, which target)."""
    parts = (
        (times[0] / job.per_token, "between tokens"),
        (times[1] / job.first_token, "to the first"),
    )
    return max(parts)


def layouts(job: Job) -> Iterator[tuple[Served, int]]:
    """Each layout of a worker with the number of workers; a worker's GPUs divide them all. Over
    more than eight GPUs only replicas of attention; pipelines are not tried.
    """
    sparse = any(isinstance(layer.mlp, Experts) for layer in job.model.layers)
    ways = [n for n in range(1, min(job.gpus, NODE) + 1) if NODE % n == 0]
    ways = ways if "link_bandwidth" in job.card else [1]
    pairs = [(t, d) for t in ways for d in (ways if sparse else [1]) if t * d <= NODE]
    if sparse:
        pairs += [(t, n // t) for n in GROUPS if n <= job.gpus for t in ways]
    if job.layout:
        pairs = [job.layout]
    for tensor, data in pairs:
        workers, rest = divmod(job.gpus, tensor * data)
        if rest or not workers or heads_of(job.model) % tensor:
            continue
        run = job.served(tensor, data)
        yield run, workers
        if tensor * data > NODE or job.layout or job.own_run:
            continue
        for readers in range(1, workers, -(-workers // SPLITS)):
            yield replace(run, together=False, readers=readers, decoders=workers - readers), workers


def heads_of(model: Decoder) -> int:
    """Return the attention heads that tensor parallelism divides; 0 if none."""
    heads = [getattr(la.mixer, "heads", 0) for la in model.layers if la.mixer]
    return int(np.gcd.reduce(heads)) if heads else 0


def at(run: Served, requests: float, job: Job, constants: Engine) -> tuple[float, float]:
    """Return (time between tokens, to the first token) with `requests` on each decoder."""
    loaded = replace(run, requests=requests)
    return job.levels[0] * loaded.between(constants), job.levels[1] * loaded.first(constants)


def loads(run: Served) -> Any:
    """Return the numbers of requests in flight to try."""
    room = max(1.0, min(run.places(), MOST))
    few = np.arange(1.0, min(room, 256) + 1)
    return np.unique(np.append(few, np.floor(np.geomspace(1, room, 400))))


def placed(run: Served, rows: Any, slower: Any) -> Any:
    """Whether memory holds so many requests in flight on average and four standard deviations
    more. Those that come at random vary by the root of their number, more where lengths vary, and
    more still where each that is there keeps the others longer: `slower` times as long as alone.
    """
    most = rows + 4 * np.sqrt(rows * (1 + SPREAD) * slower)
    return (most <= run.places()) | (rows == 1)


def most(run: Served, workers: int, job: Job, constants: Engine) -> Plan | None:
    """Return the plan with the highest rate within the latency targets; None if there is none."""
    rows = loads(run)
    state = run.state(constants, rows)
    between: Any = job.levels[0] * state.between
    first: Any = job.levels[1] * state.first
    busy: Any = state.reading
    many = workers if run.together else 1
    fits = placed(run, rows, between / between[0])

    def rates(slower: tuple[float, float]) -> Any:
        """Requests a second of loads that keep the promise, -1 of others, if times are longer."""
        token, wait = between * slower[0], first * slower[1]
        good = (token <= job.per_token) & (wait <= job.first_token) & (busy <= BUSIEST) & fits
        served = run.decoders * rows / (wait + run.output * token)
        return np.where(good, many * served, -1.0)

    flow = rates((1.0, 1.0))
    best = int(np.argmax(flow))
    if flow[best] < 0:
        return None
    if best + 1 == len(rows) or not fits[best + 1]:
        stop = MEMORY if rows[best] < MOST else "slots"
    elif between[best + 1] > job.per_token:
        stop = "time between tokens"
    elif first[best + 1] > job.first_token:
        stop = "time to the first token"
    else:
        stop = "time that reads: no queue stands more"
    ends = job.kind.between, job.kind.first
    low, high = (max(0.0, float(rates((ends[0][i], ends[1][i])).max())) for i in (1, 0))
    one = replace(run, requests=float(rows[best]))
    step = one.decoding().step(constants)
    binds = max(PARTS, key=lambda part: float(getattr(step, part)))
    reading = float(busy[best])
    total = round(rows[best] * (workers if run.together else run.decoders))
    return Plan(
        one, workers, total, float(between[best]), float(first[best]), float(flow[best]), low, high,
        reading, stop, "reading prompts" if reading > 0.5 else PARTS[binds],
    )  # fmt: skip


def inside_at(run: Served, workers: int, rate: float, job: Job, constants: Engine) -> float | None:
    """Return the requests in flight per worker at `rate` a second; None if overloaded."""
    rows = loads(run)
    state = run.state(constants, rows)
    times = job.levels[1] * state.first + run.output * job.levels[0] * state.between
    between: Any = state.between
    good = (state.reading <= BUSIEST) & placed(run, rows, between / between[0])
    served = np.where(good, workers * rows / times, 0.0)
    last = int(np.argmax(served))
    if served[last] < rate:
        return None
    return float(
        np.interp(rate, np.append(0.0, served[: last + 1]), np.append(0.0, rows[: last + 1]))
    )


def fewest(job: Job, rate: float) -> list[tuple[int, Plan]]:
    """Return (GPUs that serve `rate` requests a second, plan of one worker), fewest first."""
    constants, sizes = job.constants, []
    earlier = set()
    for gpus in (1, 2, 4, 8, 16, 32):
        for run, workers in layouts(replace(job, gpus=gpus)):
            if workers == 1 and run.together and run.decode not in earlier and run.places() >= 1:
                earlier.add(run.decode)
                if plan := most(run, 1, job, constants):
                    replicas = -(-rate // plan.rate)
                    sizes.append((int(replicas) * gpus, plan))
    return sorted(sizes, key=lambda pair: (pair[0], -pair[1].rate))


def changes(job: Job, best: Plan | None) -> list[tuple[str, float]]:
    """Return (change, the best plan's requests a second with it), largest gain first."""
    variants = {
        f"{kind} weights": replace(job, formats=job.formats.quantized(name))
        for kind, name in (("fp8", "fp8"), ("fp4", "nvfp4"))
        if kind in job.card and job.formats.width("experts") > Formats(name).width("experts")
    }
    for name, words in (("per_token", "between tokens"), ("first_token", "to the first token")):
        if getattr(job, name) < inf:
            looser = replace(job, **{name: 1.5 * getattr(job, name)})
            variants[f"half as much time again {words}"] = looser
    now = best.rate if best else 0.0
    choices = [(words, plans(one)[0]) for words, one in variants.items()]
    rates = [
        (words, layouts[0].rate)
        for words, layouts in choices
        if layouts and layouts[0].rate > 1.02 * now
    ]
    return sorted(rates, key=lambda pair: -pair[1])
