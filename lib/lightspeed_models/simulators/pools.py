"""Two pools of servers, one that reads prompts and one that writes; and drafts of tokens ahead.

Both are `serving.simulate` twice, or on other lengths, so they are as exact as it is.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from lightspeed.law import checked, count, fraction, nonnegative
from lightspeed_models.simulators.serving import Cost, Scheduler, Served, simulate

ENGINE = Scheduler()


def apart(
    prompts: Sequence[int],
    outputs: Sequence[int],
    reading: Cost,
    writing: Cost,
    arrivals: Sequence[float],
    readers: int = 1,
    writers: int = 1,
    moved: float = 0.0,
    scheduler: Scheduler = ENGINE,
) -> Served:
    """What becomes of requests whose prompts are read on `readers` servers and whose tokens are
    written on `writers` others, in turn. The first token comes from the reader; then the cache is
    moved, `moved` s a token of the prompt, and the writer goes on as if it had read it.

    >>> found = apart([100], [3], Cost(2.0), Cost(1.0), [0.0], moved=0.01)
    >>> found.first, found.last
    ([2.0], [5.0])
    """
    for name, value in (("readers", readers), ("writers", writers)):
        checked("apart", name, value, count())
    checked("apart", "moved", moved, nonnegative("s"))
    total = len(prompts)
    first, put_off = _in_turn(prompts, [1] * total, reading, scheduler, arrivals, readers, None)
    here = [time + moved * length for time, length in zip(first, prompts, strict=True)]
    order = sorted((i for i in range(total) if outputs[i] > 1), key=here.__getitem__)
    last = list(first)
    if order:
        # What the reader wrote is there too: the writer's own first token is the second.
        lengths = [prompts[i] + 1 for i in order]
        ends, again = _in_turn(
            lengths, [outputs[i] - 1 for i in order], writing, replace(scheduler, alone=False),
            [here[i] for i in order], writers, lengths,
        )  # fmt: skip
        for i, end, many in zip(order, ends, again, strict=True):
            last[i] = end
            put_off[i] += many
    return Served(list(arrivals), first, last, put_off, [], [])


def _in_turn(
    prompts: Sequence[int], outputs: Sequence[int], cost: Cost, scheduler: Scheduler,
    arrivals: Sequence[float], servers: int, cached: Sequence[int] | None,
) -> tuple[list[float], list[int]]:  # fmt: skip
    """(when each request ends, how often it was put off) on servers that take turns."""
    last, put_off = [0.0] * len(prompts), [0] * len(prompts)
    for which in range(min(servers, len(prompts))):
        mine = slice(which, None, servers)
        run = simulate(
            list(prompts[mine]), list(outputs[mine]), cost, scheduler, arrivals[mine],
            cached=None if cached is None else list(cached[mine]),
        )  # fmt: skip
        last[mine], put_off[mine] = run.last, run.put_off
    return last, put_off


def drafted_steps(
    outputs: Sequence[int], acceptance: float, drafts: int, seed: int = 0
) -> list[int]:
    """Steps in which each answer is written if a step checks `drafts` guesses in a row, each kept
    with the chance `acceptance` while all before it were, and adds a token of its own. The first
    token comes from reading the prompt, without drafts.

    >>> drafted_steps([1, 5, 5], 1.0, 3), drafted_steps([5], 0.0, 3)
    ([1, 2, 2], [5])
    """
    checked("drafted_steps", "acceptance", acceptance, fraction())
    checked("drafted_steps", "drafts", drafts, count(low=0))
    chance = random.Random(seed).random
    result = []
    for output in outputs:
        tokens = steps = 1
        while tokens < output:
            hits = 0
            while hits < drafts and chance() < acceptance:
                hits += 1
            tokens += hits + 1
            steps += 1
        result.append(steps)
    return result
