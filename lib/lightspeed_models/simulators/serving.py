"""A server of a language model, step by step: prompts read in chunks beside requests that decode,
caches in blocks, and those that are put off when blocks run out.

Steps in which all requests only decode are taken together, since nothing about them is a choice:
an event is a prompt's step, an end, an arrival or blocks that run out. Rules of a step, in order:

1. Each request that decodes gets its token. Where the free blocks are too few for all of them, the
   request admitted last gives up its blocks, goes back to the front of the queue, and will read
   again its prompt and what it had written.
2. Prompts that are being read go on, in order, with what is left of the budget of tokens and of the
   blocks; without `chunked` a prompt is read whole, one longer than the budget as its only prompt.
3. If nobody was put off, those who wait are admitted in order: one needs a slot, budget, and blocks
   for its first chunk. With `ahead`, a step is planned while the one before runs, so that a request
   must have come by the start of that one, unless the server was idle.
4. A prompt that is read gives the first token at the end of the step.
5. With `patience`, a user who has waited longer than that when a step starts, and heads the queue,
   has left before it is planned.

Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with
PagedAttention" (2023); Agrawal et al., "Sarathi-Serve" (2024), for chunks. `cached` says what is
found of each prompt: `prefixes` finds it in a cache that evicts, and `pools` puts two servers in a
row, one that reads and one that writes. What can't be asked: priorities, swapping.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isinf, sqrt

from lightspeed.errors import BadArgument
from lightspeed.law import check_fields, checked, count, nonnegative, positive
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.step import IDEAL, Engine, Replica, mixed_step

__all__ = ("Cost", "Event", "Scheduler", "Served", "Step", "cost_of", "simulate")


@dataclass(frozen=True)
class Cost:
    """Seconds of a step: `base`, and for each token of a prompt, each request that decodes and each
    token that such a request holds.
    """

    base: float
    token: float = 0.0
    row: float = 0.0
    held: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, positive("s"), "base")
        check_fields(self, nonnegative("s"), "token", "row", "held")


def cost_of(
    model: Decoder, replica: Replica, rows: int, held: float, chunk: int, engine: Engine = IDEAL
) -> Cost:
    """The `Cost` that `mixed_step` has around a load of `rows` that hold `held` tokens each: exact
    for one row, all of them, and all beside a chunk.
    """

    def time(tokens: int, many: int, each: float) -> float:
        return float(mixed_step(model, replica, tokens, many, each, chunk / 2, engine=engine).time)

    one, full = time(0, 1, 0), time(0, rows, 0)
    row = max(0.0, (full - one) / max(1, rows - 1))
    beside = max(0.0, (time(0, rows, held) - full) / (rows * held))
    token = max(0.0, (time(chunk, rows, held) - time(0, rows, held)) / chunk)
    return Cost(one - row, token, row, beside)


@dataclass(frozen=True)
class Scheduler:
    """What a server may do in a step: `budget` tokens, `slots` requests at once, `blocks` of
    `block` tokens for all caches.
    """

    budget: int = 8192
    slots: int = 256
    blocks: float = inf
    block: int = 16
    chunked: bool = True
    ahead: bool = False

    def __post_init__(self) -> None:
        check_fields(self, count(), "budget", "slots", "block")
        check_fields(self, count(infinite=True), "blocks")
        if self.budget <= self.slots:
            raise BadArgument(
                "Scheduler", "budget", self.budget, f"more than the {self.slots} slots",
                "Else requests that decode leave no token for a prompt.",
            )  # fmt: skip


@dataclass(frozen=True)
class Step:
    """`steps` alike from `start` to `end` (s): tokens of prompts in them, rows that decode."""

    start: float
    end: float
    steps: int
    tokens: int
    rows: int


@dataclass(frozen=True)
class Event:
    """In the step that starts then (s) a request has read so many `tokens` ("read"), or gives up
    the cache of so many ("put off").
    """

    start: float
    kind: str
    request: int
    tokens: int


@dataclass(frozen=True)
class Served:
    """Of each request when it came, its first token and its last (s), both infinite if its user
    left; how often it was put off; and the steps and events, where they were asked for.
    """

    arrivals: list[float]
    first: list[float]
    last: list[float]
    put_off: list[int]
    steps: list[Step]
    events: list[Event]


def simulate(
    prompts: Sequence[int],
    outputs: Sequence[int],
    cost: Cost,
    scheduler: Scheduler = Scheduler(),
    arrivals: Sequence[float] | None = None,
    concurrency: int = 0,
    cached: Sequence[int] | None = None,
    record: bool = False,
    patience: float = inf,
) -> Served:
    """What becomes of requests with so many tokens in and out.

    An open loop has `arrivals` (s, in order); a closed one keeps `concurrency` requests in flight.
    `cached`: tokens of each prompt that need not be read again; at least one always is. `patience`:
    seconds that a user of an open loop waits for a place.

    >>> found = simulate([100, 100], [3, 3], Cost(1.0), arrivals=[0.0, 0.5])
    >>> found.first, found.last
    ([1.0, 2.0], [3.0, 4.0])
    """
    total = _checked(prompts, outputs, scheduler, arrivals, concurrency, cached)
    checked("simulate", "patience", patience, positive("s", infinite=True))
    if arrivals is None and not isinf(patience):
        wanted = "`arrivals`: a closed loop never leaves"
        raise BadArgument("simulate", "patience", patience, wanted)
    known = list(cached) if cached is not None else [0] * total
    came = [0.0] * total if arrivals is None else [float(t) for t in arrivals]
    queue: deque[int] = deque()
    coming = total if arrivals is not None else min(concurrency, total)
    following = 0  # the next that comes
    need, left = list(prompts), list(outputs)  # tokens to hold before the next one; to write
    read = [0] * total
    first, last, put_off = [inf] * total, [inf] * total, [0] * total
    starts, ticket, taken = [0] * total, [0] * total, [0] * total
    order: list[tuple[int, int]] = []  # admitted, with tickets; the last is put off first
    reading: list[int] = []
    ends: list[tuple[int, int, int]] = []  # (counter, request, ticket) of those that decode
    block, free = scheduler.block, scheduler.blocks
    bounded = not isinf(scheduler.blocks)
    phases = [0] * block
    rows = held = counter = done = 0
    clock = seen = 0.0
    steps: list[Step] = []
    events: list[Event] = []
    base, each_token, each_row, each_held = cost.base, cost.token, cost.row, cost.held

    def drop() -> None:
        """Put off the request admitted last."""
        nonlocal rows, held, free
        while True:
            who, its = order.pop()
            if ticket[who] == its:
                break
        ticket[who] += 1
        put_off[who] += 1
        had = read[who]
        if who in reading:
            reading.remove(who)
        else:
            written = counter - starts[who]
            had = need[who] + written
            rows -= 1
            held -= had
            taken[who] = -(-had // block)
            phases[(need[who] - starts[who]) % block] -= 1
            need[who] += written + 1
            left[who] -= written + 1
        free += taken[who]
        taken[who] = read[who] = 0
        known[who] = 0
        queue.appendleft(who)
        if record:
            events.append(Event(clock, "put off", who, had))

    while done < total:
        while following < coming and came[following] <= seen:
            queue.append(following)
            following += 1
        if not (rows or reading or queue):
            clock = seen = max(clock, came[following])
            continue
        calm = True
        if bounded:
            while phases[-counter % block] > free:
                drop()
                calm = False
        room = scheduler.budget - rows
        pieces: list[tuple[int, int]] = []
        for who in reading:
            piece = min(need[who] - read[who], room)
            if bounded:
                spare = free - phases[-counter % block]
                piece = min(piece, int((taken[who] + spare) * block) - read[who])
            if piece > 0:
                more = -(-(read[who] + piece) // block) - taken[who]
                taken[who] += more
                free -= more
                room -= piece
                pieces.append((who, piece))
        while calm and queue and len(reading) + rows < scheduler.slots and room > 0:
            who = queue[0]
            if clock - came[who] > patience and isinf(first[who]):
                queue.popleft()
                done += 1
                continue
            found = min(known[who], need[who] - 1)
            piece = need[who] - found
            if scheduler.chunked:
                piece = min(piece, room)
            elif piece > room and pieces:
                break
            more = -(-(found + piece) // block)
            if bounded and more > free - phases[-counter % block]:
                break
            queue.popleft()
            read[who], taken[who] = found, more
            free -= more
            room -= piece
            order.append((who, ticket[who]))
            reading.append(who)
            pieces.append((who, piece))
        if not pieces and not rows:
            if not reading:  # those put off leave room for the first of the queue in the next step
                seen = clock
                continue
            drop()
            continue
        many = 1
        if not reading:  # all decode: together until something may change
            many = ends[0][0] - counter
            while ticket[ends[0][1]] != ends[0][2]:
                heapq.heappop(ends)
                many = ends[0][0] - counter
            if bounded:
                many = min(many, _steps_within(phases, counter, free, rows))
            a, c = base + each_row * rows + each_held * held, each_held * rows
            open_slot = not queue and rows < scheduler.slots and room > 0
            if open_slot and following < coming:
                many = min(many, _steps_until(came[following] - clock, a, c) + scheduler.ahead)
            if queue and not isinf(patience) and isinf(first[queue[0]]):
                # Whoever stands behind one who leaves may fit.
                many = min(many, _steps_until(came[queue[0]] + patience - clock, a, c))
            if not calm:
                many = 1
            many = max(1, many)
            spent = many * a + c * many * (many - 1) / 2
            before = spent - (a + c * (many - 1))
        else:
            tokens = sum(piece for _, piece in pieces)
            spent = base + each_token * tokens + each_row * rows + each_held * held
            before = 0.0
        if record:
            size = sum(piece for _, piece in pieces)
            steps.append(Step(clock, clock + spent, many, size, rows))
            events += [Event(clock, "read", who, read[who] + piece) for who, piece in pieces]
        seen = clock + before if scheduler.ahead else clock + spent
        clock += spent
        if bounded:
            cycles, rest = divmod(many, block)
            free -= cycles * rows + sum(phases[-(counter + j) % block] for j in range(rest))
        held += many * rows
        counter += many
        for who, piece in pieces:
            read[who] += piece
            if read[who] == need[who]:
                reading.remove(who)
                first[who] = min(first[who], clock)
                starts[who] = counter
                rows += 1
                held += need[who]
                phases[(need[who] - counter) % block] += 1
                heapq.heappush(ends, (counter + left[who] - 1, who, ticket[who]))
        while ends and (ends[0][0] <= counter or ticket[ends[0][1]] != ends[0][2]):
            _, who, its = heapq.heappop(ends)
            if ticket[who] != its:
                continue
            ticket[who] += 1
            length = need[who] + counter - starts[who]
            rows -= 1
            held -= length
            phases[(need[who] - starts[who]) % block] -= 1
            free += -(-length // block)
            last[who] = clock
            done += 1
            if arrivals is None and coming < total:
                came[coming] = clock
                coming += 1
    return Served(came, first, last, put_off, steps, events)


def _steps_within(phases: list[int], counter: int, free: float, rows: int) -> int:
    """Steps of decoding that the free blocks last for."""
    block = len(phases)
    cycles = int(free // rows)
    free, found = free - cycles * rows, cycles * block
    for j in range(block):
        free -= phases[-(counter + j) % block]
        if free < 0:
            return found + j
    return found + block


def _steps_until(wait: float, first: float, growth: float) -> int:
    """The fewest steps that take as long as `wait`, the first `first` s, each `growth` longer."""

    def spent(many: int) -> float:
        return many * first + growth * many * (many - 1) / 2

    half = first - growth / 2
    guess = wait / first if growth == 0 else (sqrt(half**2 + 2 * growth * wait) - half) / growth
    many = max(0, int(guess) - 1)
    while spent(many) < wait:
        many += 1
    return many


def _checked(
    prompts: Sequence[int], outputs: Sequence[int], scheduler: Scheduler,
    arrivals: Sequence[float] | None, concurrency: int, cached: Sequence[int] | None,
) -> int:  # fmt: skip
    """How many requests there are; BadArgument for what can't be served."""
    total = len(prompts)
    if not total:
        raise BadArgument("simulate", "prompts", prompts, "at least one request")
    for name, values in (("outputs", outputs), ("arrivals", arrivals), ("cached", cached)):
        if values is not None and len(values) != total:
            raise BadArgument("simulate", name, len(values), f"one for each of {total} prompts")
    lowest = (("prompts", prompts, 1), ("outputs", outputs, 1), ("cached", cached, 0))
    for name, values, low in lowest:
        for value in values or ():
            if type(value) is not int or value < low:
                raise BadArgument(
                    "simulate", name, value, f"whole numbers of at least {low}",
                    "Give a list: array.tolist().",
                )  # fmt: skip
    if (arrivals is None) == (concurrency == 0):
        raise BadArgument("simulate", "concurrency", concurrency, "this or `arrivals`, not both")
    checked("simulate", "concurrency", concurrency, count(low=0))
    before = 0.0
    for time in arrivals or ():
        if not before <= time < inf:
            raise BadArgument("simulate", "arrivals", time, "times in order, from 0 on")
        before = time
    longest = max(-(-(p + o - 1) // scheduler.block) for p, o in zip(prompts, outputs, strict=True))
    if longest > scheduler.blocks:
        wanted = f"{longest} blocks for the longest request"
        raise BadArgument("simulate", "scheduler", scheduler.blocks, wanted)
    return total
