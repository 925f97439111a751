"""Chapter 9 in motion: a pool of cache blocks that fills, newcomers that wait, and an eviction.

Each moment is a step of `lightspeed_models.simulators.serving`, rebuilt from its events.
"""

import functools
from dataclasses import dataclass

from lightspeed_models.simulators.serving import Cost, Scheduler, simulate
from lightspeed_show import Axis, Boxes, Chart, Formula, Play, Slider, Text, View, explorer, si

REQUESTS, PROMPT, BLOCK, SLOTS, BUDGET, EVERY = 10, 8, 4, 6, 24, 2
POOL, ANSWERS = (12, 28), (4, 20)  # fewest and most blocks; tokens of an answer
COLUMNS = 14
COLORS = ("blue", "orange", "green", "purple", "amber")


@dataclass(frozen=True)
class Moment:
    """A step: tokens in the cache of each running request at its end, which of them write, who
    waits, in order, what those evicted in it have to read then, who was ever evicted, and the cells
    of each request's blocks. `room` is what is left of the budget, `wants` the blocks that the
    first of the line would take, `again` the tokens read so far by those who were evicted.
    """

    tokens: dict
    writers: tuple
    waiting: tuple
    evicted: dict
    back: frozenset
    cells: dict
    room: int
    wants: int
    again: int


@functools.lru_cache(maxsize=64)
def run(blocks, answer):
    """The simulator's run: a step takes one second, and a request comes every `EVERY` of them."""
    rules = Scheduler(BUDGET, SLOTS, blocks, BLOCK)
    arrivals = [float(EVERY * n) for n in range(REQUESTS)]
    return simulate([PROMPT] * REQUESTS, [answer] * REQUESTS, Cost(1.0), rules, arrivals,
                    record=True)  # fmt: skip


@functools.lru_cache(maxsize=64)
def states(blocks, answer):
    """The `Moment` of each step."""
    path, moments, again = run(blocks, answer), [], 0
    tokens, cells, need, queue = {}, {}, dict.fromkeys(range(REQUESTS), PROMPT), []
    events, coming, back = list(path.events), list(range(REQUESTS)), set()
    for step in path.steps:
        for n in range(step.steps):
            now, evicted, pieces = step.start + n, {}, {}
            for who in [w for w in tokens if path.last[w] <= now]:
                del tokens[who], cells[who]
            while coming and path.arrivals[coming[0]] <= now:
                queue.append(coming.pop(0))
            while events and events[0].start <= now:
                event = events.pop(0)
                if event.kind == "read":
                    pieces[event.request] = event.tokens
                    continue
                who = event.request
                if tokens[who] >= need[who]:  # its last token was not in the cache yet
                    need[who] = tokens[who] + 1
                del tokens[who], cells[who]
                queue.insert(0, who)
                evicted[who] = need[who]
                back.add(who)
            writers = [who for who, many in tokens.items() if many >= need[who]]
            for who in writers:
                tokens[who] += 1
            room = BUDGET - len(writers)
            for who, total in pieces.items():
                if who in queue:
                    queue.remove(who)
                    cells[who] = []
                piece = total - tokens.get(who, 0)
                room -= piece
                again += piece * (who in back)
                tokens[who] = total
            for who, many in tokens.items():
                free = [c for c in range(blocks) if not any(c in own for own in cells.values())]
                cells[who] = cells[who] + free[: -(-many // BLOCK) - len(cells[who])]
            wants = -(-min(need[queue[0]], room) // BLOCK) if queue else 0
            moments.append(
                Moment(dict(tokens), tuple(writers), tuple(queue), evicted, frozenset(back),
                       dict(cells), room, wants, again)
            )  # fmt: skip
    return moments


def view(blocks, answer, moment):
    """The pool, the slots and the line in some step."""
    every = states(blocks, answer)
    now = every[moment]
    used = sum(map(len, now.cells.values()))
    facts = {
        "step": f"{moment + 1} of {len(every)}",
        "free blocks": f"{blocks - used} of {blocks}",
        "waiting": str(len(now.waiting)),
        "evictions so far": str(sum(len(m.evicted) for m in every[: moment + 1])),
        "read again so far": si(now.again, "token"),
    }
    places = blocks * BLOCK / (PROMPT + answer / 2)
    names = {"blocks": (blocks, ""), "tokens_of_a_block": (BLOCK, ""), "prompt": (PROMPT, ""),
             "answer": (answer, "")}  # fmt: skip
    law = Formula(
        "requests that fit, about",
        "blocks * tokens_of_a_block / (prompt + answer / 2)",
        names,
        (places, ""),
    )
    crowd = [m for m, state in enumerate(every) if len(state.waiting) > len(state.evicted) > 0]
    opens = crowd[0] if crowd else len(every) // 2
    words = verdict(every, moment, blocks - used)
    return View(chart(now, blocks, answer), words, facts, len(every), law, opens=opens)


def verdict(every, moment, free):
    now, before = every[moment], every[max(moment - 1, 0)]
    if now.evicted:
        who, owes = list(now.evicted.items())[-1]
        return (
            f"Those who write need more blocks than are free. Request {who + 1}, which got its slot"
            f" last, gives up {counted(len(before.cells[who]))} and goes back into the line, with"
            f" {owes} tokens to read before it can write on."
        )
    if moment == len(every) - 1:
        many = sum(len(m.evicted) for m in every)
        cost = f"{many} evictions, {now.again} tokens read again" if many else "no eviction"
        return f"The last answers are being written. In all: {len(every)} steps, {cost}."
    if now.waiting:
        first = f"Request {now.waiting[0] + 1}"
        if len(now.tokens) == SLOTS:
            return f"{first} waits for a slot."
        if not now.room:
            return f"{first} waits, since this step may read no more tokens."
        return (
            f"{first} waits: it needs {counted(now.wants)} to start, and {free or 'none'}"
            f" {'is' if free == 1 else 'are'} free."
        )
    return "Everyone who has come has a slot and blocks."


def counted(blocks):
    return f"{blocks} block" + "s" * (blocks != 1)


def chart(now, blocks, answer):
    """Cells of the pool above, slots below, the line at the foot; a request keeps its colour."""
    boxes = {color: [] for color in (*COLORS, "grey")}
    wide, rows = 15.6 / COLUMNS, POOL[1] // COLUMNS

    def cell(c):
        x, y = 0.2 + wide * (c % COLUMNS), 8.3 - 0.9 * (c // COLUMNS)
        return x + 0.05, x + wide - 0.05, y, y + 0.8

    for who, own in now.cells.items():
        for n, c in enumerate(own):
            boxes[COLORS[who % 5]].append((*cell(c), str(who + 1), f"block {who}-{n}"))
    words = [Text(0.2, 9.5, f"{blocks} blocks of {BLOCK} tokens", "grey", "start"),
             Text(0.2, 7.9 - 0.9 * (rows - 1), f"{SLOTS} slots", "grey", "start"),
             Text(0.2, 1.7, "waiting; those in colour were evicted", "grey",
                  "start")]  # fmt: skip
    slots = [(0.2 + 7.9 * (place // 3), 5.4 - 1.1 * (place % 3)) for place in range(SLOTS)]
    for (x, y), (who, tokens) in zip(slots, now.tokens.items(), strict=False):
        boxes[COLORS[who % 5]].append((x, x + wide, y, y + 0.8, str(who + 1), f"request {who}"))
        does = "writes" if who in now.writers else "reads" + " again" * (who in now.back)
        does += f", holds {tokens} tokens"
        words.append(Text(x + wide + 0.3, y + 0.4, does, "black", "start"))
    for place, who in enumerate(now.waiting):
        x = 0.2 + (wide + 0.4) * place
        color = COLORS[who % 5] if who in now.back else "grey"
        boxes[color].append((x, x + wide, 0.3, 1.1, str(who + 1), f"request {who}"))
    room = [*map(cell, range(blocks)), *((x, x + wide, y, y + 0.8) for x, y in slots)]
    marks = [Boxes(*zip(*room, strict=True), color="grey", soft=True)]
    for color, some in boxes.items():
        if some:
            *sides, labels, keys = zip(*some, strict=True)
            marks.append(Boxes(*sides, "", labels, color, keys=keys))
    return Chart(
        Axis(domain=(0, 16)), Axis(domain=(0, 10)), [*marks, *words], height=330, bare=True
    )


def explore_blocks():
    """A pool of blocks that runs out."""
    most = max(
        len(states(blocks, answer))
        for blocks in (POOL[0], POOL[1])
        for answer in range(ANSWERS[0], ANSWERS[1] + 1, 4)
    )
    return explorer(
        view,
        [
            Slider("blocks", "blocks", *POOL, 16, step=2),
            Slider("answer", "tokens of an answer", *ANSWERS, 16, step=4),
            Play("moment", "step", most - 1, text=lambda i: str(i + 1)),
        ],
        caption=(
            f"A request keeps its number. Each has a prompt of {PROMPT} tokens, and one"
            f" comes every {EVERY} steps."
        ),
        alt=(
            "A pool of blocks, most of them taken, each with the number of the request that holds"
            " it. Below it the requests in their slots, and at the foot those who wait."
        ),
    )
