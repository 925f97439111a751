"""The run of a profile, rebuilt: who launched what, which stream waited for which, which ranks met.

What is known of waits was taken from the events: a kernel after a
`StreamWaitEvent` waits for what was launched last on another stream, one that starts as a kernel of
another stream ends waited for that, and a collective ends on all ranks at once. A wait that never
held anything up leaves no mark.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median_low

from lightspeed_tools.trace.account import LAUNCH_NS, Account, launches
from lightspeed_tools.trace.reader import (
    ALLOCATE,
    COMMUNICATION,
    COMPUTE,
    LAUNCH,
    SYNCHRONIZE,
    WAIT,
    Trace,
)  # fmt: skip

CLOSE = 5_000  # ns: what starts so soon after an end waited for it
MARKED, RETURNS, BEGINS, RUNS = range(4)  # the order of what is at the same time
ANNOTATED = ("loader", "compile")  # causes that are known by annotations of the host
PAIR = re.compile("sendrecv|_p2p", re.IGNORECASE)
EDGES, FEWEST = 16, 4  # collectives that one rank has more than others; that all have
TOGETHER = 20_000  # ns within which a collective ends on all ranks
ROUNDED = 1_000  # ns by which times of two calls may overlap
LARGEST = 400_000  # rows of a device that a replay takes


@dataclass
class Operation:
    """An operation on the device: recorded times (ns), and what it waits for."""

    start: int
    end: int
    kind: int
    stream: int
    call: Call | None
    row: int
    lag: int = 0  # from its launch to its start, with nothing in the way
    gap: int = 0  # after what ran before it on its stream
    alone: int = 0  # ns after its predecessor, where no launch is known
    after: list[Operation] = field(default_factory=list)
    meeting: Meeting | None = None
    group: tuple[str, str] | None = None  # of a collective; None: of two ranks, or no collective
    duration: int = 0
    factor: float = 1.0  # of its duration on a rank that is as fast as the others
    merged: int = -1  # ns of it in one product with those like it; -1: it is none of many
    began: int = 0  # in the replay, as `ended`
    ended: int = 0

    @property
    def ran(self) -> tuple[int, int]:
        """Start and end in the last replay."""
        if self.meeting is None:
            return self.began, self.ended
        return self.began, max(self.began, self.meeting.began) + self.duration


@dataclass
class Call:
    """A call of the host that launches, awaits or allocates."""

    start: int
    end: int
    kind: int
    thread: int
    name: str = ""
    operation: Operation | None = None
    before: int = 0  # ns of the host since the call before it
    until: Operation | None = None  # it returned when this was done
    tail: int = 0
    closes: bool = False  # the last synchronize of a step
    merged: bool = False
    ran: int = 0


@dataclass
class Meeting:
    """A collective: its operations by rank, and its time once all ranks have arrived."""

    of: dict[int, Operation]
    transfer: int = 0
    expected: int = -1  # ns by the law, where bytes and fabric are known
    began: int = 0

    @property
    def members(self) -> list[Operation]:
        """Its operations."""
        return list(self.of.values())


@dataclass
class Run:
    """The ranks of a job, ready to be run again. `events` are (time, order, rank, what) by time:
    what is an `Operation`, a `Call` (order RETURNS: it is over) or (cause, ns) of the host.
    `measured` is the span (ns), `first_calls` when each host began.
    """

    ranks: int
    events: list[tuple[int, int, int, object]]
    meetings: list[Meeting]
    measured: int
    operations: list[list[Operation]]
    first_calls: list[int]


def rebuild(traces: Sequence[Trace], accounts: Sequence[Account]) -> Run:
    """Build the `Run` of one device per trace, aligning the ranks' clocks by their collectives."""
    ranks = [_operations(trace, account) for trace, account in zip(traces, accounts, strict=True)]
    operations = [ops for ops, _ in ranks]
    meetings = _meetings(operations)
    shifts = _clock_shifts(meetings, len(ranks))
    events: list[tuple[int, int, int, object]] = []
    for rank, ((ops, calls), trace, shift) in enumerate(zip(ranks, traces, shifts, strict=True)):
        for op in ops:
            op.start, op.end = op.start + shift, op.end + shift
        for call in calls:
            call.start, call.end = call.start + shift, call.end + shift
            events.append((call.start, BEGINS, rank, call))
            if call.until is not None or call.kind == ALLOCATE:
                events.append((call.end, RETURNS, rank, call))
        for op in ops:  # some clocks let a kernel start before its launch
            at = max(op.start, op.call.start) if op.call else op.start
            events.append((at, RUNS, rank, op))
        for cause in ANNOTATED:
            for start, end in _of_the_host(trace, cause):
                events.append((end + shift, MARKED, rank, (cause, end - start)))
        for pause in accounts[rank].pauses:
            events.append((pause.end + shift, MARKED, rank, ("pause", pause.length)))
    events.sort(key=lambda event: event[:3])
    for meeting in meetings:
        last = max(op.start for op in meeting.members)
        ends = sorted(op.end for op in meeting.members)
        meeting.transfer = max(1, ends[len(ends) // 2] - last)
    _rank_factors(operations)
    measured = max(op.end for ops in operations for op in ops) - min(
        op.start for ops in operations for op in ops
    )
    first_calls = [
        min(
            [call.start for call in calls]
            + [start + shift for cause in ANNOTATED for start, _ in _of_the_host(trace, cause)],
            default=0,
        )
        for (_, calls), trace, shift in zip(ranks, traces, shifts, strict=True)
    ]
    return Run(len(ranks), events, meetings, measured, operations, first_calls)


def _operations(trace: Trace, account: Account) -> tuple[list[Operation], list[Call]]:
    """What ran on a device in order of its start, and the host's calls that matter to it."""
    device, calls = trace.device, trace.calls
    by_correlation = launches(trace, set(device.correlation))
    called = [
        Call(
            calls.start[row], calls.start[row] + calls.duration[row], calls.kind[row],
            calls.place[row], trace.names[calls.name[row]],
        )
        for row in range(len(calls))
    ]  # fmt: skip
    result = []
    for row in account.rows[:LARGEST]:
        start, call = device.start[row], None
        at = by_correlation.get(device.correlation[row])
        if at is not None:
            call = called[at]
        op = Operation(
            start, start + device.duration[row], device.kind[row], device.place[row], call, row
        )
        op.duration = device.duration[row]
        if op.kind == COMMUNICATION and not of_a_pair(trace, row):
            op.group = trace.groups.get(row, ("", ""))
        if call is not None and call.operation is None:
            call.operation = op
        result.append(op)
    if result:
        horizon = result[-1].end
        called = [call for call in called if call.start <= horizon]
    called.sort(key=lambda call: call.start)
    called = sorted([*called, *_inferred(result, called)], key=lambda call: call.start)
    last: dict[int, Call] = {}
    for call in called:
        before = last.get(call.thread, call)
        # rounded times of a thread may overlap: a call that begins as another ends comes after it
        if call.start < before.end <= min(call.end, call.start + ROUNDED):
            before.end = call.start
        if call.kind != WAIT:
            call.before = max(0, call.start - before.start)
        last[call.thread] = call
    _lags(result)
    _waits(result, called)
    _blocked(result, called, trace)
    return result, [call for call in called if call.kind != WAIT]


def _inferred(operations: list[Operation], called: list[Call]) -> list[Call]:
    """Calls for operations whose launch is not in the file, between the launches of their stream's
    neighbours: as early as may be, so that gains stay bounds, and just before an operation that
    nothing but its launch can have held up. None where most launches are not in the file.
    """
    if not called or 2 * sum(op.call is not None for op in operations) < len(operations):
        return []
    following: dict[int, Call] = {}
    latest = []
    for op in reversed(operations):
        latest.append(following.get(op.stream))
        if op.call is not None:
            following[op.stream] = op.call
    waits = [call for call in called if call.kind == WAIT]
    starts, ends = [call.start for call in waits], sorted(op.end for op in operations)
    last: dict[int, Operation] = {}
    calls = []
    for op, next_call in zip(operations, reversed(latest), strict=True):
        before = last.get(op.stream)
        if op.call is None:
            call = before.call if before and before.call else called[0]
            at, thread = call.start, call.thread
            wait = bisect_right(starts, at)
            near = bisect_right(ends, op.start) - bisect_right(ends, op.start - 2 * CLOSE)
            if not near:
                at = op.start - CLOSE
            elif op.kind == COMMUNICATION and wait < len(waits):
                at, thread = waits[wait].end, waits[wait].thread
            at = min(max(at, call.start), next_call.start if next_call else op.start, op.start)
            if near or op.start - at <= LAUNCH_NS:  # else it waited for what is not in the file
                op.call = Call(at, at, LAUNCH, thread, operation=op)
                calls.append(op.call)
        last[op.stream] = op
    return calls


def of_a_pair(trace: Trace, row: int) -> bool:
    """Whether a communication kernel sends and receives between ranks that the file does not name;
    NCCL also uses these kernels for an all-to-all, if the file says so.
    """
    operation = trace.collectives.get(row, ("",))[0]
    return bool(PAIR.search(trace.names[trace.device.name[row]])) and "alltoall" not in operation


def _lags(operations: list[Operation]) -> None:
    """How long launches and the passing from kernel to kernel take, where nothing else held an
    operation up. Where something did, a launch takes the usual time, and the passing none: so
    gains stay bounds.
    """
    last: dict[int, Operation] = {}
    lags = []
    for op in operations:
        before = last.get(op.stream)
        if op.call is not None and (before is None or before.end + CLOSE < op.call.start):
            lag = op.start - op.call.start
            if 0 <= lag <= LAUNCH_NS:
                lags.append(lag)
        last[op.stream] = op
    usual = median_low(lags) if lags else CLOSE
    last = {}
    for op in operations:
        before = last.get(op.stream)
        if op.call is not None:
            own = op.start - op.call.start
            # what ran before a profile began may have held the first operation up
            op.lag = own if op is operations[0] or 0 <= own <= LAUNCH_NS else min(own, usual)
        if before is not None:
            passed = op.alone = op.start - before.end  # below 0 where kernels of a stream overlap
            queued = op.call is not None and op.call.start + LAUNCH_NS < before.end
            op.gap = passed if queued and passed <= LAUNCH_NS else min(0, passed)
        last[op.stream] = op


def _waits(operations: list[Operation], called: list[Call]) -> None:
    """Which operations waited for one of another stream."""
    waited, pending = set(), {}
    for call in called:
        if call.kind == WAIT:
            pending[call.thread] = True
        elif call.kind == LAUNCH and pending.pop(call.thread, False):
            waited.add(id(call))
    # In order of launch: what was launched last on each stream, as far as it was done in time.
    launched = sorted(
        (op for op in operations if op.call is not None),
        key=lambda op: op.call.start if op.call else 0,
    )
    newest: dict[int, Operation] = {}
    for op in launched:
        if id(op.call) in waited or op.kind == COMMUNICATION:
            op.after = [
                other
                for stream, other in newest.items()
                if stream != op.stream and other.end <= op.start + 1_000
                and (id(op.call) in waited or other.kind == COMPUTE)
            ]  # fmt: skip
        newest[op.stream] = op
    by_end = sorted(operations, key=lambda op: op.end)
    ends = [op.end for op in by_end]
    last: dict[int, Operation] = {}
    for op in operations:
        before = last.get(op.stream)
        reasons = [before.end if before else 0, *(other.end for other in op.after)]
        if op.call is not None:
            reasons.append(op.call.start + op.lag)
            if op.start - max(reasons) > CLOSE:
                for at in range(bisect_right(ends, op.start) - 1, -1, -1):
                    if ends[at] < op.start - 2 * CLOSE:
                        break
                    if by_end[at].stream != op.stream and by_end[at].start < op.start:
                        op.after.append(by_end[at])
                        break
        last[op.stream] = op


def _blocked(operations: list[Operation], called: list[Call], trace: Trace) -> None:
    """Which operation a synchronize of the host, or a copy that blocks it, waited for."""
    by_end = sorted((op for op in operations if op.call is not None), key=lambda op: op.end)
    ends = [op.end for op in by_end]
    for call in called:
        own = call.operation
        if call.kind == SYNCHRONIZE:
            for at in range(bisect_right(ends, call.end) - 1, -1, -1):
                launch = by_end[at].call
                if launch and launch.start < call.start:
                    call.until = by_end[at]
                    break
        elif own and own.end <= call.end and "emcpy" in call.name:
            call.until = own
        if call.until is not None:
            call.tail = max(0, call.end - max(call.start, call.until.end))
    waits = [call for call in called if call.kind == SYNCHRONIZE]
    for _, end in trace.steps():
        before = [call for call in waits if call.end <= end + CLOSE]
        if before:
            max(before, key=lambda call: call.end).closes = True


def _meetings(ranks: list[list[Operation]]) -> list[Meeting]:
    """Collectives of a process group, matched by the order of their launches; where the file names
    no groups, on streams in the order of first use. Where the counts differ between ranks, whose
    recordings began or ended at different ones, the order is that in which they end together;
    without one nothing is matched.
    """
    columns: dict[tuple, dict[int, list[Operation]]] = {}
    for rank, operations in enumerate(ranks):
        streams: dict[int, int] = {}
        ordered = [op for op in operations if op.group is not None]
        ordered.sort(key=lambda op: op.call.start if op.call else op.start)
        for op in ordered:
            key: tuple = op.group or ()
            if key == ("", ""):
                key = (streams.setdefault(op.stream, len(streams)),)
            columns.setdefault(key, {}).setdefault(rank, []).append(op)
    meetings = []
    for key, of_rank in columns.items():
        if len(key) == 1 and len(of_rank) < len(ranks):
            return []
        if len({len(ops) for ops in of_rank.values()}) > 1:
            of_rank = _aligned(of_rank)
            if not of_rank:
                return []
        for members in zip(*of_rank.values(), strict=True) if len(of_rank) > 1 else ():
            meetings.append(Meeting(dict(zip(of_rank, members, strict=True))))
    for meeting in meetings:
        for op in meeting.of.values():
            op.meeting = meeting
    return meetings


def _aligned(of_rank: dict[int, list[Operation]]) -> dict[int, list[Operation]]:
    """The operations of ranks of which some have more at their edges, cut to those that all have;
    none where no place is clearly the one at which ends are as far apart throughout.
    """
    shortest = min(of_rank.values(), key=len)
    count, aligned = len(shortest), {}
    for rank, ops in of_rank.items():
        if len(ops) - count > EDGES or count < FEWEST:
            return {}
        spreads = []
        for first in range(len(ops) - count + 1):
            apart = [a.end - b.end for a, b in zip(ops[first:], shortest, strict=False)]
            middle = median_low(apart)
            spreads.append((sum(abs(gap - middle) for gap in apart) / count, first))
        (best, first), *others = sorted(spreads)
        if best > TOGETHER or (others and others[0][0] < 4 * max(best, TOGETHER // 10)):
            return {}
        aligned[rank] = ops[first : first + count]
    return aligned


def _clock_shifts(meetings: list[Meeting], ranks: int) -> list[int]:
    """What to add to each rank's times so that collectives end together: from rank to rank, by
    the groups in which they meet.
    """
    apart: dict[tuple[int, int], list[int]] = {}
    for meeting in meetings:
        (first, anchor), *others = meeting.of.items()
        for rank, op in others:
            apart.setdefault((first, rank), []).append(anchor.end - op.end)
    beside: dict[int, list[tuple[int, int]]] = {}
    for (rank, other), differences in apart.items():
        beside.setdefault(rank, []).append((other, median_low(differences)))
        beside.setdefault(other, []).append((rank, -median_low(differences)))
    shifts: dict[int, int] = {}
    for start in range(ranks):
        waiting = deque([] if start in shifts else [(start, 0)])
        while waiting:
            rank, shift = waiting.popleft()
            if rank not in shifts:
                shifts[rank] = shift
                waiting += [(to, shift + by) for to, by in beside.get(rank, ())]
    return [shifts[rank] for rank in range(ranks)]


def _rank_factors(ranks: list[list[Operation]]) -> None:
    """How much shorter a slow rank's compute would be at the pace of the others."""
    if len(ranks) < 2:
        return
    compute = [sum(op.duration for op in ops if op.kind == COMPUTE) for ops in ranks]
    usual = median_low(compute)
    for ops, total in zip(ranks, compute, strict=True):
        if usual and total > 1.03 * usual:
            for op in ops:
                op.factor = usual / total


def _of_the_host(trace: Trace, cause: str) -> list[tuple[int, int]]:
    """When the threads that launch were busy with a cause: the outermost of its annotations."""
    threads = set(trace.calls.place)
    marked = [(m.start, m.end) for m in trace.marks if m.kind == cause and m.thread in threads]
    outer: list[tuple[int, int]] = []
    for start, end in sorted(marked, key=lambda pair: (pair[0], -pair[1])):
        if not outer or start >= outer[-1][1]:
            outer.append((start, end))
    return outer
