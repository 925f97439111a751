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
5. With `alone`, as under SGLang, prompts come first: a step that reads one writes for nobody.
6. With `whole`, as TensorRT-LLM does by default, a request is admitted once all who are could be
   written to their ends beside it: nobody is put off.
7. With `patience`, a user who has waited longer than that when a step starts, and heads the queue,
   has left before it is planned.

Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with
PagedAttention" (2023); Agrawal et al., "Sarathi-Serve" (2024), for chunks. `cached` says what is
found of each prompt: `prefixes` finds it in a cache that evicts, and `pools` puts two servers in a
row, one that reads and one that writes. What can't be asked: priorities, swapping.
"""

from __future__ import annotations

import functools
import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isinf, sqrt

from lightspeed.errors import BadArgument
from lightspeed.law import check_fields, checked, count, nonnegative, positive
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.step import IDEAL, Engine, Replica, mixed_step
from lightspeed_models.served_law import Pace


@dataclass(frozen=True)
class Cost:
    """Seconds of a step: `base`, and for each token of a prompt, each request that decodes and each
    token that such a request holds. Where requests cost less the more there are, as those that
    share experts do, `empty` gives the seconds of so many that hold nothing. With a `pace` of
    `served_law`, a step that reads takes what that says, on `data` replicas of attention.
    """

    base: float
    token: float = 0.0
    row: float = 0.0
    held: float = 0.0
    pace: Pace | None = None
    data: int = 1
    empty: Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        check_fields(self, positive("s"), "base")
        check_fields(self, nonnegative("s"), "token", "row", "held")

    def writing(self, rows: int, cache: int) -> tuple[float, float]:
        """(seconds of a step of so many rows, which hold so many tokens; how much longer each next
        one takes).
        """
        return self._rows(rows) + self.held * cache, self.held * rows

    def _rows(self, rows: int) -> float:
        return self.empty(rows) if self.empty and rows else self.base + self.row * rows

    def reading(self, tokens: int, longest: int, rows: int, cache: int) -> float:
        """Seconds of a step that reads so many tokens of prompts, `longest` of one of them."""
        if self.pace is None:
            return self._rows(rows) + self.token * tokens + self.held * cache
        own = max(tokens / self.data, longest)
        time = float(self.pace.reading(own, tokens, rows / self.data))
        return max(time, self.writing(rows, cache)[0]) if rows else time


def cost_of(
    model: Decoder, replica: Replica, rows: int, context: float, chunk: int, engine: Engine = IDEAL,
    pace: Pace | None = None,
) -> Cost:  # fmt: skip
    """The `Cost` that `mixed_step` has near a load of `rows` that hold `context` tokens each: exact
    for any number of rows that hold none, for all that do, and for all beside a chunk. With a
    `pace`, chunks take what that says.
    """

    def time(tokens: int, many: int, each: float) -> float:
        return float(mixed_step(model, replica, tokens, many, each, chunk / 2, engine=engine).time)

    empty = functools.cache(lambda many: time(0, many, 0))
    row = max(0.0, (empty(rows) - empty(1)) / max(1, rows - 1))
    decoding = time(0, rows, context)
    beside = max(0.0, (decoding - empty(rows)) / (rows * context))
    token = 0.0 if pace else max(0.0, (time(chunk, rows, context) - decoding) / chunk)
    return Cost(empty(1) - row, token, row, beside, pace, replica.data, empty)


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
    alone: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        check_fields(self, count(), "budget", "slots", "block")
        check_fields(self, count(infinite=True), "blocks")
        if self.budget <= self.slots and not self.alone:
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
        expected = "`arrivals`: a closed loop never leaves"
        raise BadArgument("simulate", "patience", patience, expected)
    cached_tokens = cached if cached is not None else [0] * total
    came = [0.0] * total if arrivals is None else [float(t) for t in arrivals]
    fields = zip(range(total), came, prompts, outputs, cached_tokens, strict=True)
    requests = [Request(*each) for each in fields]
    coming = total if arrivals is not None else min(concurrency, total)
    return Server(requests, cost, scheduler, coming, arrivals is None, record, patience).serve()


class Request:
    """What becomes of one request: tokens to hold before the next one (`need`), to write (`left`),
    `read` so far, found in the cache (`known`); `blocks` that it has; the step at which it began to
    write and at which it ends (`end`, -1 while it does not write).
    """

    __slots__ = ("blocks", "came", "end", "first", "known", "last", "left", "need", "number",
                 "put_off", "read", "start")  # fmt: skip

    def __init__(self, number: int, came: float, prompt: int, output: int, cached: int) -> None:
        self.number = number
        self.came = came
        self.need = prompt
        self.left = output
        self.known = cached
        self.first = self.last = inf
        self.put_off = self.read = self.blocks = self.start = 0
        self.end = -1


class Blocks:
    """Free blocks of the cache, and of the requests that write, how many need a new one in which
    step of each `size`.
    """

    __slots__ = ("bounded", "free", "phases", "size")

    def __init__(self, free: float, size: int) -> None:
        self.free, self.size, self.bounded = free, size, not isinf(free)
        self.phases = [0] * size

    def due(self, step: int) -> int:
        """Blocks that those who write need in this step."""
        return self.phases[-step % self.size]

    def spare(self, step: int) -> float:
        """Blocks that those who write leave to prompts."""
        return self.free - self.phases[-step % self.size]

    def of(self, tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-tokens // self.size)

    def begin(self, need: int, step: int) -> None:
        """A request that holds `need` tokens begins to write."""
        self.phases[(need - step) % self.size] += 1

    def end(self, need: int, start: int) -> None:
        """One that began to write at that step ends, or is put off."""
        self.phases[(need - start) % self.size] -= 1

    def pass_by(self, steps: int, step: int, rows: int) -> None:
        """So many steps of writing go by: each takes the blocks that are due in it."""
        phases, size = self.phases, self.size
        if steps == 1:
            self.free -= phases[-step % size]
            return
        cycles, rest = divmod(steps, size)
        self.free -= cycles * rows + sum([phases[-(step + j) % size] for j in range(rest)])

    def last_for(self, step: int, rows: int) -> int:
        """Steps of writing that the free blocks last for."""
        cycles = int(self.free // rows)
        free, steps = self.free - cycles * rows, cycles * self.size
        phases = self.phases
        for j in range(self.size):
            free -= phases[-(step + j) % self.size]
            if free < 0:
                return steps + j
        return steps + self.size


class Server:
    """The state of the server between two steps, and the rules by which it takes one."""

    def __init__(
        self, requests: list[Request], cost: Cost, rules: Scheduler, coming: int, closed: bool,
        record: bool, patience: float,
    ) -> None:  # fmt: skip
        self.requests, self.cost, self.rules = requests, cost, rules
        self.coming, self.closed, self.record, self.patience = coming, closed, record, patience
        self.blocks = Blocks(rules.blocks, rules.block)
        self.queue: deque[Request] = deque()
        self.admitted: dict[Request, None] = {}  # in order; the last is put off first
        self.reading: list[Request] = []
        self.ends: list[tuple[int, int, Request]] = []
        self.rows = self.held = self.step = self.done = self.following = self.promised = 0
        self.clock = self.seen = 0.0
        self.steps: list[Step] = []
        self.events: list[Event] = []

    def serve(self) -> Served:
        """Take steps until all requests are done."""
        requests, total, alone = self.requests, len(self.requests), self.rules.alone
        bounded = self.blocks.bounded
        while self.done < total:
            if self.following < self.coming:
                self.arrive()
            if not (self.rows or self.reading or self.queue):
                self.clock = self.seen = max(self.clock, requests[self.following].came)
                continue
            calm = alone or not bounded or self.make_room()
            pieces = self.read_on([]) if self.reading else []
            if calm and self.queue:
                self.admit(pieces)
            if alone and bounded and not pieces and self.rows:
                calm = self.make_room()
            if pieces:
                self.read(pieces)
            elif self.rows:
                self.write(calm)
            elif self.reading:
                self.drop()
                continue
            else:  # those put off leave room for the first of the queue in the next step
                self.seen = self.clock
                continue
            if self.ends and self.ends[0][0] <= self.step:
                self.finish()
        return Served(
            [request.came for request in requests],
            [request.first for request in requests],
            [request.last for request in requests],
            [request.put_off for request in requests],
            self.steps,
            self.events,
        )

    def arrive(self) -> None:
        """Those who have come by now queue up."""
        requests = self.requests
        while self.following < self.coming and requests[self.following].came <= self.seen:
            self.queue.append(requests[self.following])
            self.following += 1

    def make_room(self) -> bool:
        """Put off requests until those who write have blocks for a step; whether none had to go."""
        blocks, calm = self.blocks, True
        while blocks.bounded and blocks.due(self.step) > blocks.free:
            self.drop()
            calm = False
        return calm

    def drop(self) -> None:
        """Put off the request admitted last."""
        who, _ = self.admitted.popitem()
        who.put_off += 1
        size = who.read
        if who.end < 0:
            self.reading.remove(who)
        else:
            tokens = self.step - who.start
            size = who.need + tokens
            self.rows -= 1
            self.held -= size
            who.blocks = self.blocks.of(size)
            self.blocks.end(who.need, who.start)
            who.need += tokens + 1
            who.left -= tokens + 1
            who.end = -1
        self.blocks.free += who.blocks
        who.blocks = who.read = who.known = 0
        self.queue.appendleft(who)
        if self.record:
            self.events.append(Event(self.clock, "put off", who.number, size))

    def room(self, pieces: list[tuple[Request, int]]) -> int:
        """Tokens of prompts that the budget of this step has left."""
        rows = 0 if self.rules.alone else self.rows
        return self.rules.budget - rows - sum([piece for _, piece in pieces])

    def read_on(self, pieces: list[tuple[Request, int]]) -> list[tuple[Request, int]]:
        """Pieces of the prompts that are being read, as far as budget and blocks go."""
        blocks, room = self.blocks, self.room(pieces)
        for who in self.reading:
            piece = min(who.need - who.read, room)
            if blocks.bounded:
                space = int((who.blocks + blocks.spare(self.step)) * blocks.size)
                piece = min(piece, space - who.read)
            if piece > 0:
                more = blocks.of(who.read + piece) - who.blocks
                who.blocks += more
                blocks.free -= more
                room -= piece
                pieces.append((who, piece))
        return pieces

    def admit(self, pieces: list[tuple[Request, int]]) -> None:
        """Admit those who wait, in order, and add the first piece of each."""
        rules, blocks, queue, room = self.rules, self.blocks, self.queue, self.room(pieces)
        while queue and len(self.reading) + self.rows < rules.slots and room > 0:
            who = queue[0]
            if self.clock - who.came > self.patience and isinf(who.first):
                queue.popleft()
                self.done += 1
                continue
            hit = min(who.known, who.need - 1)
            piece = who.need - hit
            if rules.chunked:
                piece = min(piece, room)
            elif piece > room and pieces:
                break
            more = blocks.of(hit + piece)
            if blocks.bounded and more > blocks.spare(self.step):
                break
            if rules.whole:
                whole = blocks.of(who.need + who.left)
                if self.promised + whole > rules.blocks:
                    break
                self.promised += whole
            queue.popleft()
            who.read, who.blocks = hit, more
            blocks.free -= more
            room -= piece
            self.admitted[who] = None
            self.reading.append(who)
            pieces.append((who, piece))

    def read(self, pieces: list[tuple[Request, int]]) -> None:
        """A step that reads these pieces: beside those who write, or alone."""
        rows = 0 if self.rules.alone else self.rows
        sizes = [piece for _, piece in pieces]
        tokens, longest = sum(sizes), max(sizes)
        time = self.cost.reading(tokens, longest, rows, self.held if rows else 0)
        if self.record:
            self.steps.append(Step(self.clock, self.clock + time, 1, tokens, rows))
            self.events += [Event(self.clock, "read", r.number, r.read + n) for r, n in pieces]
        self.seen = self.clock if self.rules.ahead else self.clock + time
        self.clock += time
        if rows:
            self.pass_by(1)
        for who, piece in pieces:
            who.read += piece
            if who.read == who.need:
                self.begin(who)

    def begin(self, who: Request) -> None:
        """A prompt is read: it gives the first token, and writes from the next step on."""
        self.reading.remove(who)
        who.first = min(who.first, self.clock)
        who.start, who.end = self.step, self.step + who.left - 1
        self.rows += 1
        self.held += who.need
        self.blocks.begin(who.need, self.step)
        heapq.heappush(self.ends, (who.end, who.number, who))

    def write(self, calm: bool) -> None:
        """Steps in which all only write, together until something may change."""
        first, growth = self.cost.writing(self.rows, self.held)
        many = self.steps_alike(first, growth) if calm and not self.reading else 1
        time = many * first + growth * many * (many - 1) / 2
        before = time - (first + growth * (many - 1))
        if self.record:
            self.steps.append(Step(self.clock, self.clock + time, many, 0, self.rows))
        self.seen = self.clock + (before if self.rules.ahead else time)
        self.clock += time
        self.pass_by(many)

    def steps_alike(self, first: float, growth: float) -> int:
        """Steps of writing until one ends, comes, leaves, or blocks run out."""
        ends, queue, coming = self.ends, self.queue, self.following < self.coming
        while ends[0][2].end != ends[0][0]:
            heapq.heappop(ends)
        many = ends[0][0] - self.step
        if self.blocks.bounded:
            many = min(many, self.blocks.last_for(self.step, self.rows))
        room = self.rules.alone or self.rules.budget > self.rows
        if coming and not queue and self.rows < self.rules.slots and room:
            wait = self.requests[self.following].came - self.clock
            many = min(many, _steps_until(wait, first, growth) + self.rules.ahead)
        if queue and not isinf(self.patience) and isinf(queue[0].first):
            # Whoever stands behind one who leaves may fit.
            wait = queue[0].came + self.patience - self.clock
            many = min(many, _steps_until(wait, first, growth))
        return max(1, many)

    def pass_by(self, many: int) -> None:
        """Those who write have so many tokens more."""
        if self.blocks.bounded:
            self.blocks.pass_by(many, self.step, self.rows)
        self.held += many * self.rows
        self.step += many

    def finish(self) -> None:
        """Those who have written all give their place back; a closed loop sends the next."""
        ends = self.ends
        while ends and ends[0][0] <= self.step:
            end, _, who = heapq.heappop(ends)
            if who.end != end:
                continue
            length = who.need + self.step - who.start
            self.rows -= 1
            self.held -= length
            self.blocks.end(who.need, who.start)
            self.blocks.free += self.blocks.of(length)
            if self.rules.whole:
                self.promised -= self.blocks.of(who.need + who.left)
            who.last, who.end = self.clock, -1
            del self.admitted[who]
            self.done += 1
            if self.closed and self.coming < len(self.requests):
                self.requests[self.coming].came = self.clock
                self.coming += 1


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
    last = 0 if scheduler.whole else 1  # the last token is written, not held
    longest = max(
        -(-(p + o - last) // scheduler.block) for p, o in zip(prompts, outputs, strict=True)
    )
    if longest > scheduler.blocks:
        expected = f"{longest} blocks for the longest request"
        raise BadArgument("simulate", "scheduler", scheduler.blocks, expected)
    return total
