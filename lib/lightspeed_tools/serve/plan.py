"""Layouts of a model on some GPUs, each at the most load that a promise allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lightspeed.catalog import find, fitted
from lightspeed.values import si
from lightspeed_models.inference_step import engine
from lightspeed_models.llm.decoder import Decoder, Experts
from lightspeed_models.llm.step import Engine
from lightspeed_models.served import CHUNK, Served, served_replica

NODE = 8  # GPUs that split a layer at most
BUSY = 0.9  # of their time readers read: beyond, prompts that come at random wait and wait
SPLITS = 64  # divisions of many workers that are tried
MOST = 4096  # requests in flight on a worker; engines stop earlier by default
PARTS = {
    "kv": "reading caches", "weights": "reading weights", "math": "arithmetic",
    "exchange": "exchange between GPUs", "host": "launches and the host",
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """What is asked: a model on `gpus` of a chip, its load in tokens, and the promise in s."""

    model: Decoder
    hardware: str
    gpus: int
    number_format: str
    engine: str
    prompt: int
    output: int
    per_token: float = float("inf")
    first_token: float = float("inf")


@dataclass(frozen=True)
class Plan:
    """A layout at the most load within the promise. `requests` are in flight on all workers,
    `rate` is requests a second, `stop` what ends the load, `binds` the longest part of a step.
    """

    run: Served
    workers: int
    requests: int
    per_token: float
    first_token: float
    rate: float
    stop: str
    binds: str

    @property
    def layout(self) -> str:
        """The layout in words."""
        gpus = self.run.decode
        split = " · ".join(
            f"{word} {ways}"
            for word, ways in (("tensor", gpus.tensor), ("attention", gpus.data))
            if ways > 1
        )
        each = split or "one GPU each"
        if self.run.together:
            return f"{self.workers} × {each}"
        return f"{self.run.readers} read + {self.run.decoders} decode × {each}"


def plans(job: Job) -> tuple[list[Plan], list[tuple[str, str]]]:
    """(plans by requests a second, layouts that are refused with the figure: those nearest to the
    promise first, then those with the most room).
    """
    found: list[Plan] = []
    refused: list[tuple[float, str, str]] = []
    broke: list[tuple[float, str, str]] = []
    constants = engine(job.engine)
    for run, workers in layouts(job):
        room = run.room() / run.decode.gpus
        empty = Plan(run, workers, 0, 0.0, 0.0, 0.0, "", "")
        if room <= 0:
            if run.together:  # apart, the same weights lack the same room
                figures = si(run.weights(), "byte"), si(run.weights() + run.room(), "byte")
                words = "weights take {} of the {} that " + job.engine + " uses"
                refused.append((room, empty.layout, words.format(*figures)))
        elif run.places() < 1:
            held = si(run.model.request_bytes(int(run.held), run.decode.cache_bytes), "byte")
            refused.append(
                (room, empty.layout, f"a request holds {held}, {si(run.room(), 'byte')} left")
            )
        elif plan := most(run, workers, job, constants):
            found.append(plan)
        else:
            one = at(run, 1, constants)
            times = f"{si(one[0], 's')} a token, {si(one[1], 's')} to the first"
            over, which = broken(job, one)
            words = f"one request alone: {times}, {over:.2g} times the promise {which}"
            broke.append((over, empty.layout, words))
    refused.sort(key=lambda row: -row[0])
    rows = sorted(broke) + refused
    return sorted(found, key=lambda plan: -plan.rate), [row[1:] for row in rows]


def broken(job: Job, times: tuple[float, float]) -> tuple[float, str]:
    """(how many times a promise the worse of both times is, which promise)."""
    parts = (
        (times[0] / job.per_token, "between tokens"),
        (times[1] / job.first_token, "to the first"),
    )
    return max(parts)


def layouts(job: Job) -> Iterator[tuple[Served, int]]:
    """Each layout of a worker with the number of workers; a worker's GPUs divide them all."""
    sparse = any(isinstance(layer.mlp, Experts) for layer in job.model.layers)
    capacity = float(find(job.hardware).hbm_capacity)
    ways = [n for n in range(1, min(job.gpus, NODE) + 1) if NODE % n == 0]
    for tensor in ways:
        for data in ways if sparse else (1,):
            workers, rest = divmod(job.gpus, tensor * data)
            if rest or not workers or tensor * data > NODE:
                continue
            gpus = served_replica(job.hardware, tensor, data, job.number_format)
            run = Served(
                job.model, gpus, gpus, capacity, 1, job.prompt, job.output, engine=job.engine
            )
            yield run, workers
            for readers in range(1, workers, -(-workers // SPLITS)):
                apart = replace(run, together=False, readers=readers, decoders=workers - readers)
                yield apart, workers


def at(run: Served, requests: float, constants: Engine) -> tuple[float, float]:
    """(between tokens, to the first) with so many requests in flight on each worker that decodes.
    A cache that was read elsewhere comes over the links of its GPUs first.
    """
    loaded = replace(run, requests=requests)
    wait = loaded.first(constants)
    if not run.together:
        moved = run.model.request_bytes(run.prompt, run.decode.cache_bytes)
        wait += moved / (run.decode.link * run.decode.gpus)
    return loaded.between(constants), wait


def rate_of(run: Served, requests: int, times: tuple[float, float], constants: Engine) -> float:
    """Requests a second of all workers: by Little's law, and no more than the readers can read in
    `BUSY` of their time.
    """
    own = requests * run.decoders / (times[1] + run.output * times[0])
    if run.together:
        return own
    chunks = max(1, run.prompt / (run.prefill.data * min(run.prompt, CHUNK)))
    reading = run.own_chunk().step(constants).time * chunks
    return min(own, BUSY * run.readers / reading)


def most(run: Served, workers: int, job: Job, constants: Engine) -> Plan | None:
    """The plan with the most requests in flight that keeps the promise; None if one breaks it."""

    def late(requests: int) -> str:
        times = at(run, requests, constants)
        if times[0] > job.per_token:
            return "time between tokens"
        return "time to the first token" if times[1] > job.first_token else ""

    room = min(int(run.places()), MOST)
    if late(1):
        return None
    low, high = 1, room + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if late(middle) else (middle, high)
    stop = late(low + 1) if low < room else "memory for requests" if room < MOST else "slots"
    times = at(run, low, constants)
    rate = rate_of(run, low, times, constants) * (workers if run.together else 1)
    step = replace(run, requests=low).mixed().step(constants)
    binds = max(PARTS, key=lambda part: getattr(step, part))
    total = low * (workers if run.together else run.decoders)
    one = replace(run, requests=low)
    return Plan(one, workers, total, *times, rate, stop, PARTS[binds])


def changes(job: Job, best: Plan | None) -> list[tuple[str, float]]:
    """(what to change, requests a second of the best plan then), the largest first."""
    variants = {
        f"{kind} weights": replace(job, number_format=kind)
        for kind in ("fp8", "fp4")
        if kind != job.number_format and kind in find(job.hardware).numbers
    }
    for name, words in (("per_token", "between tokens"), ("first_token", "to the first token")):
        if getattr(job, name) < float("inf"):
            looser = replace(job, **{name: 1.5 * getattr(job, name)})
            variants[f"half as much time again {words}"] = looser
    now = best.rate if best else 0.0
    found = [(words, plans(one)[0]) for words, one in variants.items()]
    rates = [(words, kept[0].rate) for words, kept in found if kept and kept[0].rate > 1.02 * now]
    return sorted(rates, key=lambda pair: -pair[1])


def errors(key: str) -> dict[str, dict[str, float]]:
    """Of an engine on models that its constants have not seen: ends of an 80 % interval as parts of
    what is told, and the median error, for `per_token` and `first_token`.
    """
    found: dict[str, dict[str, float]] = fitted("engines")[key]["left_out"]
    return found
