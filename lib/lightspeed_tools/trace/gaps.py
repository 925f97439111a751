"""Idle time by its gaps: many short ones, or a few long ones in which the host did something else;
and what it did.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lightspeed_tools.trace.reader import STEP, Trace

PAUSE = 1_000_000  # ns of the host's own time in one gap: no launch takes so long
MOST = 0.5  # of a gap: what covers less is not what the host did in it
ROUND = 10  # times a gap: what lasts longer was going on anyway, as a training loop is


@dataclass(frozen=True)
class Pause:
    """A long stop of the host: its end, its length (ns), and the device row that waited for it."""

    end: int
    length: int
    row: int


@dataclass(frozen=True)
class Stops:
    """A summary of one rank's pauses: their number, total and longest (ns), and what the host did
    in the longest ("" if unknown).
    """

    count: int
    total: int
    longest: int
    what: str


def stops_of(trace: Trace, pauses: Sequence[Pause]) -> Stops | None:
    """The `Stops` of a device; None without a pause."""
    if not pauses:
        return None
    worst = max(pauses, key=lambda pause: pause.length)
    total = sum(pause.length for pause in pauses)
    what = next(
        filter(None, (doing_in(trace, p.end - p.length, p.end)
                      for p in sorted(pauses, key=lambda pause: -pause.length)[:8])), ""
    )  # fmt: skip
    return Stops(len(pauses), total, worst.length, what)


def doing_in(trace: Trace, start: int, end: int) -> str:
    """Return what the host did for most of [start, end): the shortest function, annotation,
    operator or call that covers it; "" if unknown.
    """
    doings, best = trace.doings, None
    for row in range(len(doings)):
        begin, length = doings.start[row], doings.duration[row]
        covers = min(begin + length, end) - max(begin, start)
        name = trace.names[doings.name[row]]
        if covers < MOST * (end - start) or length > ROUND * (end - start) or STEP.search(name):
            continue
        if best is None or length < best[0]:
            best = length, name
    return re.sub(r"^.*/(?=[^/]*\.py)", "", best[1]) if best else ""
