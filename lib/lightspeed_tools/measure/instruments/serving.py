"""A small engine that serves random weights on one core, beside the simulator of serving. Measured
for chapter 9.

It batches continuously and reads prompts in chunks, by the rules of `simulators.serving`; a numpy
decoder does the work. Its clock is processor time, which other programs on the machine hardly
disturb: a request comes when so much of it is spent. The simulator knows a step's cost alone, from
four steps that are timed before each run.
"""

import random
import statistics
import time
from dataclasses import dataclass

import numpy as np

from lightspeed_models.simulators.serving import Cost, Scheduler, simulate
from lightspeed_tools.measure.instruments import blas
from lightspeed_tools.measure.instruments.timing import Quantity, Unavailable
from lightspeed_tools.measure.records.record import all_of

WIDTH, LAYERS, HEADS, HIDDEN = 256, 4, 4, 1024
PROMPTS, OUTPUTS = (64, 256), (8, 48)  # tokens of a request, drawn between these
RULES = Scheduler(budget=128, slots=16)
LOADS = (0.3, 0.6, 0.8)  # of what the engine could do with all places taken
COARSE = 1e-4  # s; a clock that ticks less often sees no step
AT = {"median": 0.5, "p90": 0.9}


def measure(quick=True, report=None):
    """Times to the first token and between tokens by load: [Quantity]. Takes about 20 s, 40 s if
    not `quick`. Raises Unavailable without a fine clock or one thread for products.
    """
    if time.get_clock_info("process_time").resolution > COARSE:
        raise Unavailable("The clock of processor time is too coarse here.")
    requests, repeats = (24, 5) if quick else (40, 6)
    rng = random.Random(9)
    prompts, outputs = (
        [rng.randint(*ends) for _ in range(requests)] for ends in (PROMPTS, OUTPUTS)
    )
    gaps = [rng.expovariate(1) for _ in range(requests)]
    decoder, found = Decoder(), {}
    with blas.threads(1):
        calibrate(decoder)  # warm
        most = capacity(calibrate(decoder))
        for number in range(repeats):
            for load in LOADS:
                cost = calibrate(decoder)
                arrivals = np.cumsum(gaps) / (load * most)
                job = prompts, outputs, arrivals.tolist()
                real = serve(decoder, *job, RULES, processor)
                told = simulate(prompts, outputs, cost, RULES, job[2])
                for which, run in (("measured", real), ("simulated", (told.first, told.last))):
                    for key, value in _figures(*job[1:], *run).items():
                        found.setdefault((load, *key), {}).setdefault(which, []).append(value)
            if report:
                report(f"{number + 1} of {repeats} runs of {len(LOADS)} loads")
    return [
        Quantity(
            f"serving.{key}", "s", values["measured"], {"load": load, "at": at}, "lower",
            counted={"simulated": statistics.median(values["simulated"]), "requests": requests},
        )
        for (load, key, at), values in found.items()
    ]  # fmt: skip


def _figures(outputs, arrivals, first, last):
    waits = np.subtract(first, arrivals)
    between = np.subtract(last, first) / (np.array(outputs) - 1)
    return {
        (key, at): float(np.quantile(values, share))
        for key, values in (("first_token", waits), ("per_token", between))
        for at, share in AT.items()
    }


class Decoder:
    """A decoder with random weights and a cache for each of so many places."""

    def __init__(self, places=RULES.slots, longest=PROMPTS[1] + OUTPUTS[1], seed=9):
        rng = np.random.default_rng(seed)

        def matrix(rows, columns):
            return rng.standard_normal((rows, columns), np.float32) / np.float32(rows**0.5)

        self.layers = [
            (matrix(WIDTH, 3 * WIDTH), matrix(WIDTH, WIDTH), matrix(WIDTH, HIDDEN),
             matrix(HIDDEN, WIDTH))
            for _ in range(LAYERS)
        ]  # fmt: skip
        self.cache = np.zeros((LAYERS, 2, places, HEADS, longest, WIDTH // HEADS), np.float32)

    def step(self, pieces, X):
        """Take the vectors X through all layers; `pieces` says of each place in them how many of
        them are its own, and how many tokens it holds: [(place, tokens, held)].
        """
        for number, (qkv, out, up, down) in enumerate(self.layers):
            every = (_normed(X) @ qkv).reshape(len(X), 3, HEADS, -1)
            seen, at = np.empty_like(X), 0
            for place, tokens, held in pieces:
                q, k, v = every[at : at + tokens].transpose(1, 2, 0, 3)
                keys, values = self.cache[number, :, place, :, : held + tokens]
                keys[:, held:], values[:, held:] = k, v
                scores = q @ keys.transpose(0, 2, 1) / np.float32(q.shape[-1] ** 0.5)
                if tokens > 1:
                    places = np.arange(held + tokens, dtype=np.intp)
                    ahead = places > places[held:, None]
                    scores[:, ahead] = -np.inf
                weights = np.exp(scores - scores.max(-1, keepdims=True))
                mixed = weights @ values / weights.sum(-1, keepdims=True)
                seen[at : at + tokens] = mixed.transpose(1, 0, 2).reshape(tokens, WIDTH)
                at += tokens
            X = X + seen @ out
            X = X + np.maximum(_normed(X) @ up, 0) @ down
        return X


def _normed(X):
    return X / np.sqrt((X * X).mean(-1, keepdims=True) + np.float32(1e-6))


def processor(decoder, pieces):
    """Seconds of processor time of a step; what the tokens are makes no difference to it."""
    start = time.process_time()
    decoder.step(pieces, np.ones((sum(piece[1] for piece in pieces), WIDTH), np.float32))
    return time.process_time() - start


def calibrate(decoder, clock=processor, repeat=7):
    """The `Cost` of a step: of one row, of all, of all with long caches, and of a chunk beside."""
    rows, held, chunk = RULES.slots - 1, PROMPTS[1], RULES.budget - RULES.slots
    short, long = ([(place, 1, each) for place in range(rows)] for each in (1, held))
    shapes = short[:1], short, long, [*long, (rows, chunk, 0)]
    times = [[clock(decoder, pieces) for pieces in shapes] for _ in range(repeat)]
    one, full, late, beside = (statistics.median(column) for column in zip(*times, strict=True))
    row = max(0.0, (full - one) / (rows - 1))
    each = max(0.0, (late - full) / (rows * (held - 1)))
    return Cost(one - row, max(0.0, (beside - late) / chunk), max(0.0, row - each), each)


def capacity(cost):
    """Requests a second of an engine whose places are all taken."""
    prompt, output = statistics.mean(PROMPTS), statistics.mean(OUTPUTS)
    each = cost.base / RULES.slots + cost.row + cost.held * (prompt + output / 2)
    return 1 / (prompt * cost.token + output * each)


def serve(decoder, prompts, outputs, arrivals, rules, clock):
    """(times of the first tokens, of the last): requests in order, decoding first, then prompts
    with what is left of the budget. `clock(decoder, pieces)` runs a step and says its seconds.
    """
    total, now, following = len(prompts), 0.0, 0
    first, last = [0.0] * total, [0.0] * total
    read, written = [0] * total, [0] * total
    places, running = list(range(rules.slots)), {}  # request -> its place
    while following < total or running:
        if not running:
            now = max(now, arrivals[following])
        decoding = [who for who in running if read[who] == prompts[who]]
        room = rules.budget - len(decoding)
        parts = {who: 1 for who in decoding}
        for who in running:
            if who not in parts and room:
                parts[who] = min(room, prompts[who] - read[who])
                room -= parts[who]
        while following < total and arrivals[following] <= now and places and room:
            running[following] = places.pop()
            parts[following] = min(room, prompts[following])
            room -= parts[following]
            following += 1
        pieces = [(running[who], many, read[who] + written[who]) for who, many in parts.items()]
        # The first token written is no part of the cache until the step that takes it in.
        pieces = [
            (place, many, held - (written[who] > 0))
            for who, (place, many, held) in zip(parts, pieces, strict=True)
        ]
        now += clock(decoder, pieces)
        for who, many in parts.items():
            if who not in decoding:
                read[who] += many
                if read[who] < prompts[who]:
                    continue
                first[who] = now
            written[who] += 1
            if written[who] == outputs[who]:
                last[who] = now
                places.append(running.pop(who))
    return first, last


@dataclass(frozen=True)
class Beside:
    """One time at one load: seconds measured and simulated, and whether the runs agree."""

    load: float
    key: str
    at: str
    measured: float
    simulated: float
    trusted: bool


def beside(record):
    """The `Beside`s of a record, in the order measured."""
    return [
        Beside(
            part.parameters["load"], key, part.parameters["at"], part.value,
            part.counted["simulated"], part.trusted,
        )
        for key in ("first_token", "per_token")
        for part in all_of(record, f"serving.{key}")
    ]  # fmt: skip
