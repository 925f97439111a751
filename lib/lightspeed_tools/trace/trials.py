"""What the reader of profiles says of made jobs, against their maker: chapter 11's proof."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from lightspeed_tools.trace import made
from lightspeed_tools.trace.account import Parts, accounts
from lightspeed_tools.trace.reader import COMMUNICATION, COMPUTE, COPY, of_events
from lightspeed_tools.trace.rebuild import Run, rebuild
from lightspeed_tools.trace.replay import replay
from lightspeed_tools.trace.work import expect
from lightspeed_tools.trace.writer import about

# The cause that a replay takes away for each fault, and a fault's usual size.
MENDS = dict(
    loader="loader", allocator="allocator", slow_rank="rank", slow_link="link",
    launch_bound="launches", small_products="products", synchronize="synchronize",
    no_overlap="overlap",
)  # fmt: skip
SIZES = dict(
    loader=(1, 10), allocator=(0.5, 4), slow_rank=(1.15, 1.6), slow_link=(3, 8),
    launch_bound=(15, 50), small_products=(8, 32), synchronize=(0.05, 0.2), no_overlap=(1, 1),
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """A job with one fault: the replay's closure (over the measured span - 1), the predicted gain,
    and the true gain.
    """

    fault: str
    closure: float
    told: float
    truth: float


def run_of(job: made.Job) -> Run:
    """Return the `Run` recovered from a made job's profiles."""
    ranks = made.run(job)
    traces = [of_events(rank.events, about(rank.number, job.ranks, "trial")) for rank in ranks]
    by_rank = [accounts(trace)[0] for trace in traces]
    run = rebuild(traces, by_rank)
    expect(run, traces, by_rank)
    return run


def trials(each: int, seed: int = 11, least: float = 1.05) -> Iterator[Trial]:
    """Draw `each` jobs of each fault in which removing it gains `least` or more."""
    rng = random.Random(seed)
    for fault, mend in MENDS.items():
        rest = each
        while rest:
            size = rng.uniform(*SIZES[fault])
            job = made.Job(
                ranks=2, layers=rng.randint(3, 5), hidden=rng.choice([1024, 2048]), tokens=4096,
                seed=rng.randrange(10**6),
                faults={fault: round(size) if fault == "small_products" else size},
            )  # fmt: skip
            truth = made.span(made.run(job)) / made.span(made.run(job.without(fault)))
            if truth < least:
                continue
            rest -= 1
            run = run_of(job)
            base = replay(run)
            yield Trial(fault, base / run.measured - 1, base / replay(run, [mend]), truth)


def counted(events: list[tuple[int, int, int]]) -> tuple[int, int, int, int]:
    """Compute, exposed communication, exposed copies and idle (ns) of (start, end, kind), one
    nanosecond after the other.
    """
    tally = {COMPUTE: 0, COMMUNICATION: 0, COPY: 0, None: 0}
    for at in range(min(e[0] for e in events), max(e[1] for e in events)):
        running = [kind for start, end, kind in events if start <= at < end]
        tally[min(running, default=None)] += 1
    return tuple(tally.values())  # type: ignore[return-value]


def drawn_events(rng: random.Random) -> list[tuple[int, int, int]]:
    """Return a few random kernels, by start."""
    starts = [rng.randrange(60) for _ in range(rng.randint(1, 8))]
    return sorted((s, s + rng.randint(1, 20), rng.randrange(3)) for s in starts)


def summed(p: Parts) -> tuple[int, int, int, int]:
    """Return the parts that add up."""
    return p.compute, p.exposed_communication, p.exposed_copy, p.idle
