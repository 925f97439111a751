"""The clock of a rebuilt run, again: as it was, or without a cause. The two spans give the gain.

Shares of a profile can't give it: its parts overlap, and what is taken out of one may come back as
waiting in another. A wait that never held anything up leaves no mark in a profile, and with a cause
gone it may: so a gain is "at most".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from lightspeed_tools.trace.reader import ALLOCATE, COMMUNICATION, COMPUTE, COPY, SYNCHRONIZE
from lightspeed_tools.trace.rebuild import CLOSE, RETURNS, Call, Meeting, Operation, Run

CAUSES = (
    "loader", "compile", "allocator", "pause", "synchronize", "launches", "rank", "link", "overlap",
    "copies", "products",
)  # fmt: skip


def replay(run: Run, without: Collection[str] = ()) -> int:
    """Return the span (ns) of a run without some of the `CAUSES`."""
    gone = {name: name in without for name in CAUSES}
    stream_free: dict[tuple[int, int], Operation] = {}
    host = [0] * run.ranks  # how much later than recorded the host is
    anchor = list(run.first_calls)
    for meeting in run.meetings:
        meeting.began = -(2**62)
    for ops in run.operations:
        for op in ops:
            op.began, op.ended = op.start, op.end
    for _, order, rank, what in run.events:
        if isinstance(what, Operation):
            _run_operation(what, rank, host, stream_free, gone)
        elif isinstance(what, Call):
            (_return if order == RETURNS else _call)(what, rank, host, anchor, gone)
        else:
            cause, length = cast(tuple[str, int], what)
            if gone[cause]:
                host[rank] -= length
            else:
                anchor[rank] += length
    began = min(op.began for ops in run.operations for op in ops)
    span = max(op.ran[1] for ops in run.operations for op in ops) - began
    # What is hidden still takes its time on the links.
    return max(span, *_communicating(run, gone)) if gone["overlap"] else span


def _communicating(run: Run, gone: dict[str, bool]) -> list[int]:
    """ns of communication of each rank, were nothing waited for."""
    totals = []
    for ops in run.operations:
        total = 0
        for op in ops:
            if op.kind == COMMUNICATION:
                meeting = op.meeting
                total += _transfer(meeting, gone) if meeting else op.end - op.start
        totals.append(total)
    return totals


def _transfer(meeting: Meeting, gone: dict[str, bool]) -> int:
    law = gone["link"] and meeting.expected >= 0
    return min(meeting.transfer, meeting.expected) if law else meeting.transfer


def _call(call: Call, rank: int, host: list[int], anchor: list[int], gone: dict[str, bool]) -> None:
    """The host makes a call. Without the cost of launches it makes all calls up to the next wait
    at once.
    """
    if call.merged and gone["products"]:
        host[rank] -= call.before
    call.ran = anchor[rank] if gone["launches"] else call.start + host[rank]


def _return(
    call: Call, rank: int, host: list[int], anchor: list[int], gone: dict[str, bool]
) -> None:
    """A call that took its time, or waited for the device, is over."""
    if call.kind == ALLOCATE:
        took = 0 if gone["allocator"] else call.end - call.start
    elif gone["synchronize"] and not call.closes and call.kind == SYNCHRONIZE:
        took = 0
    else:
        took = max(0, (call.until.ran[1] if call.until else 0) - call.ran) + call.tail
    host[rank], anchor[rank] = call.ran + took - call.end, call.ran + took


def _run_operation(
    op: Operation, rank: int, host: list[int], stream_free: dict, gone: dict[str, bool]
) -> None:
    lane = (rank, op.stream)
    before = stream_free.get(lane)
    free = None if before is None else before.ran[1]
    if gone["products"] and op.merged == 0 and free is not None:
        op.began = op.ended = free
        return
    if op.call is not None:
        start = op.call.ran + op.lag
        if free is not None:
            start = max(start, free + op.gap)
    else:
        start = op.start + host[rank] if free is None else free + op.alone
    for other in op.after:
        start = max(start, other.ran[1] + max(0, min(op.gap, CLOSE)))
    duration = op.duration
    if op.kind == COMPUTE:
        if gone["products"] and op.merged >= 0:
            duration = op.merged
        if gone["rank"]:
            duration = round(duration * op.factor)
    elif op.kind == COPY and gone["copies"]:
        duration = 0
    op.began = start
    if op.meeting is None:
        if op.kind == COMMUNICATION and gone["overlap"]:
            duration = 0
        op.ended = start + duration
    else:
        meeting = op.meeting
        meeting.began = max(meeting.began, start)
        op.duration = 0 if gone["overlap"] else _transfer(meeting, gone)
    stream_free[lane] = op
