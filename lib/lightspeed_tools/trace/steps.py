"""Steps of a profile that are unlike the others: warm-up, compilation, a checkpoint. What is said
of a step is said of those that are alike.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from lightspeed_tools.trace.gaps import doing_in
from lightspeed_tools.trace.reader import Columns, Mark, Trace

TRAINS = re.compile(
    r"^ProfilerStep|^iteration|^(train_?)?step[_#\s:]*\d", re.IGNORECASE
)  # a server's steps differ by nature
UNLIKE = 2.0  # times the usual length
FEWEST = 3  # steps of which two can outvote one


@dataclass(frozen=True)
class Aside:
    """Steps that were excluded: their places among `of` steps, how many times the usual time the
    longest took, and what the host mostly did in it ("" if unknown).
    """

    steps: tuple[int, ...]
    of: int
    times: float
    what: str

    @property
    def schedule(self) -> str:
        """A profiler schedule that skips them."""
        first = max(self.steps) + 1 if max(self.steps) < self.of / 2 else 0
        active = max(2, self.of - len(self.steps))
        return f"schedule(wait={first}, warmup=1, active={active}, repeat=1)"


def training_steps(trace: Trace) -> list[Mark]:
    """Return the marks of a training job's steps."""
    return [mark for mark in trace.step_marks() if TRAINS.match(mark.name)]


def lengths(trace: Trace, marks: Sequence[Mark]) -> list[int]:
    """ns of each step on the device: from the first kernel that it launched to that of the next;
    the host's own where a step launched none.
    """
    device, calls = trace.device, trace.calls
    launched = {c: calls.start[row] for row, c in enumerate(calls.correlation) if c > 0}
    firsts: list[int | None] = [None] * len(marks)
    latest = marks[-1].end
    begins = [mark.start for mark in marks]
    for row in range(len(device)):
        time = launched.get(device.correlation[row], device.start[row])
        at = bisect_right(begins, time) - 1
        latest = max(latest, device.start[row] + device.duration[row])
        if at >= 0 and (firsts[at] is None or device.start[row] < firsts[at]):
            firsts[at] = device.start[row]
    if None in firsts:
        return [mark.end - mark.start for mark in marks]
    ends = [*firsts[1:], latest]
    return [end - start for start, end in zip(firsts, ends, strict=True)]  # type: ignore[operator]


def alike(traces: Sequence[Trace]) -> tuple[list[Trace], Aside | None]:
    """Return the traces cut to the longest run of similar steps on all ranks, and the excluded
    steps; unchanged if no step stands out, or too few do not.
    """
    marks = [training_steps(trace) for trace in traces]
    count = len(marks[0])
    if count < FEWEST or {len(one) for one in marks} != {count}:
        return list(traces), None
    each = [lengths(trace, one) for trace, one in zip(traces, marks, strict=True)]
    longest = [max(one[step] for one in each) for step in range(count)]
    usual = max(1, median_low(longest))
    odd = tuple(step for step in range(count) if longest[step] > UNLIKE * usual)
    runs, begin = [], 0
    for step in [*odd, count]:
        runs.append((step - begin, begin, step))
        begin = step + 1
    size, first, after = max(runs)
    if not odd or size < 2:
        return list(traces), None
    worst = max(odd, key=longest.__getitem__)
    rank = max(range(len(traces)), key=lambda at: each[at][worst])
    mark = marks[rank][worst]
    what = doing_in(traces[rank], mark.start, mark.start + each[rank][worst])
    aside = Aside(odd, count, longest[worst] / usual, what)
    cut = [
        within(trace, one[first].start, one[after].start if after < count else 2**62)
        for trace, one in zip(traces, marks, strict=True)
    ]
    return cut, aside


def within(trace: Trace, begin: int, end: int) -> Trace:
    """Return a trace restricted to what the host launched in [begin, end) (ns)."""
    device, calls = trace.device, trace.calls
    launched = {c: calls.start[row] for row, c in enumerate(calls.correlation) if c > 0}
    rows = [
        row for row in range(len(device))
        if begin <= launched.get(device.correlation[row], device.start[row]) < end
    ]  # fmt: skip
    places = {row: at for at, row in enumerate(rows)}
    return replace(
        trace, device=_rows_of(device, rows),
        calls=_rows_of(calls, [r for r in range(len(calls)) if begin <= calls.start[r] < end]),
        operator=array("i", (trace.operator[row] for row in rows)),
        marks=[
            mark for mark in trace.marks
            if begin <= (mark.start + mark.end) // 2 < end
            or (mark.kind != "step" and mark.end > begin and mark.start < end)
        ],
        collectives={places[r]: label for r, label in trace.collectives.items() if r in places},
        groups={places[r]: label for r, label in trace.groups.items() if r in places},
    )  # fmt: skip


def _rows_of(columns: Columns, rows: Sequence[int]) -> Columns:
    return Columns(
        *(
            array(column.typecode, map(column.__getitem__, rows))
            for column in vars(columns).values()
        )
    )
