"""Which operator launched which kernel: by External id; where a file has none of use (ROCm of old,
graphs), by time: the innermost operator round the launch.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

COMMUNICATION = 1  # of reader's kinds


def link(trace: Any) -> None:
    """Fill `trace.operator`, and the names of collectives that are recorded only at their launch.

    Old ROCm versions write no correlation: launch and kernel share an External id.
    """
    _tie(trace)
    _name_collectives(trace)
    if len(trace.device):  # a name and a shape are all that is asked of them from here on
        operators = trace.operators
        operators.start, operators.duration = array("d"), array("d")
        operators.place, operators.outer = array("i"), array("q")


def _name_collectives(trace: Any) -> None:
    """PyTorch before 2.2 names a collective by the operator and the annotation round its launch."""
    device, spans = trace.device, None
    launch: dict[int, int] = {}
    for row in range(len(device)):
        if device.kind[row] != COMMUNICATION or row in trace.collectives:
            continue
        if spans is None:
            marks = (m for m in trace.marks if m.kind == "collective" and ":" in m.name)
            spans = spans_of(marks)
            launch = {c: at for at, c in enumerate(trace.calls.correlation) if c > 0}
        name = trace.collective_operators.get(device.outer[row], "")
        call = launch.get(device.correlation[row])
        if ":" not in name and call is not None:
            name = name_round(spans[trace.calls.place[call]], trace.calls.start[call])
        if plain := re.sub(r"^(c10d::|nccl:)|[^a-z]", "", name.lower()):
            trace.collectives[row] = plain, 0.0, 0


def _tie(trace: Any) -> None:
    """Kernels to their operators."""
    device, calls, operators = trace.device, trace.calls, trace.operators
    untied = max(device.correlation, default=0) <= 0
    if untied and len(calls):
        device.correlation, calls.correlation = device.outer[:], calls.outer[:]
    trace.operator = array("i", [-1]) * len(device)
    if not len(device) or not len(operators):
        return
    ids = {one for one in device.outer if one > 0}
    first: dict[int, int] = {}
    for row, one in enumerate(operators.outer):
        if one in ids:
            first.setdefault(one, row)
    if first and not untied:
        trace.operator = array("i", (first.get(one, -1) for one in device.outer))
        return
    launches = {
        correlation: row for row, correlation in enumerate(calls.correlation) if correlation > 0
    }
    by_thread = defaultdict(list)
    for row, correlation in enumerate(device.correlation):
        call = launches.get(correlation)
        if call is not None:
            by_thread[calls.place[call]].append((calls.start[call], row))
    for thread, rows in by_thread.items():
        _around(trace, thread, sorted(rows))


def _around(trace: Any, thread: int, launches: list[tuple[int, int]]) -> None:
    """Link launches of a thread, in order, to the innermost operator that was running then."""
    operators = trace.operators
    mine = [row for row in range(len(operators)) if operators.place[row] == thread]
    mine.sort(key=lambda row: (operators.start[row], -operators.duration[row]))
    open_ones: list[int] = []
    at = 0
    for time, row in launches:
        now = time / 1000
        while at < len(mine) and operators.start[mine[at]] <= now:
            open_ones.append(mine[at])
            at += 1
        while open_ones and (
            operators.start[open_ones[-1]] + operators.duration[open_ones[-1]] < now
        ):
            open_ones.pop()
        if open_ones:
            trace.operator[row] = open_ones[-1]


def spans_of(marks: Iterable[Any]) -> defaultdict[int, list[Any]]:
    """Marks by thread, in order of their starts."""
    by_thread = defaultdict(list)
    for mark in sorted(marks, key=lambda mark: mark.start):
        by_thread[mark.thread].append(mark)
    return by_thread


def name_round(spans: list, time: int) -> str:
    """Return the name of a thread's innermost mark at a time, "" if there is none."""
    at = bisect_right(spans, time, key=lambda mark: mark.start)
    near = (mark for mark in reversed(spans[max(0, at - 4) : at]) if mark.end >= time)
    return next((mark.name for mark in near), "")
