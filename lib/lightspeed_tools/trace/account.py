"""Where the time of a device went: the union of its intervals, in whole nanoseconds.

Compute counts first, then communication, then copies: communication under compute is hidden, and
what sticks out is exposed. So compute, exposed communication, exposed copies and idle time are the
span, to the nanosecond.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from lightspeed_tools.trace.gaps import PAUSE, Pause
from lightspeed_tools.trace.reader import (
    ALLOCATE,
    COMMUNICATION,
    COMPUTE,
    COPY,
    LAUNCH,
    SYNCHRONIZE,
    Trace,
)  # fmt: skip

LAUNCH_NS = 20_000  # from a launch to its kernel's start, where nothing is in the way


@dataclass(eq=False)
class Account:
    """The parts of a device's span (ns), its gaps as (start, end, row that ends it), and the
    causes of them (name -> ns). `puzzle` is the longest piece of idle time that nothing in the file
    explains: its ns, the start of its gap, and the row that ended it.
    """

    device: int
    name: str
    start: int
    end: int
    compute: int
    communication: int
    exposed_communication: int
    copy: int
    exposed_copy: int
    idle: int
    kernels: int
    rows: list[int]
    gaps: list[tuple[int, int, int]]
    causes: dict[str, int] = field(default_factory=dict)
    puzzle: tuple[int, int, int] = (0, 0, -1)
    pauses: list[Pause] = field(default_factory=list)

    @property
    def span(self) -> int:
        """The time from the first start to the last end (ns)."""
        return self.end - self.start


@dataclass(frozen=True)
class Parts:
    """Lengths (ns) of unions of intervals, and the gaps between them all."""

    compute: int
    communication: int
    exposed_communication: int
    copy: int
    exposed_copy: int
    idle: int
    start: int
    end: int
    gaps: list[tuple[int, int, int]]


def parts(intervals: Iterable[tuple[int, int, int]]) -> Parts:
    """The `Parts` of (start, end, kind), sorted by start. A gap is told with the place, in that
    order, of the interval that ends it.

    >>> found = parts([(0, 4, 0), (2, 6, 1), (9, 10, 2)])
    >>> found.compute, found.exposed_communication, found.exposed_copy, found.idle
    (4, 2, 1, 3)
    """
    # Five unions at once: compute, communication, copies, the first two, all three. Each has the
    # end of what it covered so far, and how much that was.
    mine = {COMPUTE: (0, 3, 4), COMMUNICATION: (1, 3, 4), COPY: (2, 4)}
    ends: list[int] = []
    covered, gaps, first = [0] * 5, [], 0
    for place, (start, end, kind) in enumerate(intervals):
        if not ends:
            ends, first = [start] * 5, start
        if start > ends[4]:
            gaps.append((ends[4], start, place))
        for union in mine[kind]:
            reached = ends[union]
            if end > reached:
                covered[union] += end - (start if start > reached else reached)
                ends[union] = end
    compute, communication, copy, both, all_three = covered
    last = ends[4] if ends else 0
    return Parts(
        compute, communication, both - compute, copy, all_three - both,
        last - first - all_three, first, last, gaps,
    )  # fmt: skip


def accounts(trace: Trace) -> list[Account]:
    """Return the `Account` of each device of a trace."""
    device = trace.device
    rows: dict[int, list[int]] = {number: [] for number in trace.devices}
    of_lane = [number for number, _ in trace.lanes]
    for row in sorted(range(len(device)), key=device.start.__getitem__):
        rows[of_lane[device.place[row]]].append(row)
    result = []
    for number, mine in rows.items():
        p = parts(
            (device.start[r], device.start[r] + device.duration[r], device.kind[r]) for r in mine
        )
        account = Account(
            number, trace.device_name(number), p.start, p.end, p.compute, p.communication,
            p.exposed_communication, p.copy, p.exposed_copy, p.idle,
            sum(device.kind[r] != COPY for r in mine), mine,
            [(a, b, mine[place]) for a, b, place in p.gaps],
        )  # fmt: skip
        account.causes, account.puzzle, account.pauses = _causes(trace, account)
        result.append(account)
    return result


# What the host did while the device had nothing to do; the first that fits is the cause.
HOST = (
    "loader", "compile", "allocator", "a pause of the host", "after a synchronize", "launches late",
)  # fmt: skip


def _causes(
    trace: Trace, account: Account
) -> tuple[dict[str, int], tuple[int, int, int], list[Pause]]:
    """Idle time by cause, in ns, the puzzle, and the pauses of the host. A gap is cut at the launch
    that ends it: before it the host was late, then a launch takes its time, and what is left is
    not explained.
    """
    device = trace.device
    launch = launches(trace, {device.correlation[row] for _, _, row in account.gaps})
    marks = {
        "loader": _merged((m.start, m.end) for m in trace.marks if m.kind == "loader"),
        "compile": _merged((m.start, m.end) for m in trace.marks if m.kind == "compile"),
        "allocator": _merged(_calls_of(trace, ALLOCATE)),
        "after a synchronize": _merged(_calls_of(trace, SYNCHRONIZE)),
    }
    causes: dict[str, int] = {}
    puzzles, pauses = [(0, 0, -1)], []

    def add(cause: str, time: int) -> None:
        if time > 0:
            causes[cause] = causes.get(cause, 0) + time

    last_launch = -1
    for start, end, row in account.gaps:
        call = launch.get(device.correlation[row], -1)
        if call < 0:
            add("no launch in the trace", end - start)
            puzzles.append((end - start, start, row))
            continue
        if call == last_launch and trace.graph_rows:
            add("inside a graph", end - start)
            continue
        last_launch = call
        launched = min(max(trace.calls.start[call], start), end)
        rest = launched - start
        for cause in HOST[:3]:
            share = min(_overlap(marks[cause], start, launched), rest)
            add(cause, share)
            rest -= share
        # A synchronize that ended in the gap, or lasted into it, emptied the queue.
        synchronizes = marks["after a synchronize"]
        waited = _overlap(synchronizes, start - LAUNCH_NS, launched)
        own = rest - min(rest, _overlap(synchronizes, start, launched))
        if own >= PAUSE:
            pauses.append(Pause(launched, own, row))
            add("a pause of the host", own)
            rest -= own
        add("after a synchronize" if waited else "launches late", rest)
        add("launch to start", min(LAUNCH_NS, end - launched))
        add("unexplained", end - launched - LAUNCH_NS)
        puzzles.append((end - launched - LAUNCH_NS, start, row))
    return causes, max(puzzles), pauses


def launches(trace: Trace, correlations: Collection[int]) -> dict[int, int]:
    """Return correlation -> row of the launching call, for the requested correlations."""
    calls = trace.calls
    return {
        correlation: row
        for row, correlation in enumerate(calls.correlation)
        if correlation > 0
        and correlation in correlations
        and calls.kind[row] in (LAUNCH, SYNCHRONIZE)
    }


def _calls_of(trace: Trace, kind: int) -> Iterable[tuple[int, int]]:
    calls = trace.calls
    return (
        (calls.start[row], calls.start[row] + calls.duration[row])
        for row in range(len(calls))
        if calls.kind[row] == kind
    )


def _merged(intervals: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Starts and ends of the union of intervals, in order."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in sorted(intervals):
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


def _overlap(union: tuple[Sequence[int], Sequence[int]], start: int, end: int) -> int:
    """How much of [start, end) a union of intervals covers."""
    starts, ends = union
    return sum(
        max(0, min(ends[i], end) - max(starts[i], start))
        for i in range(bisect_right(ends, start), bisect_left(starts, end))
    )
