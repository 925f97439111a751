"""Communication that nothing hides, cut in two: waiting for a rank that comes late, and
transferring once all are there. It takes the profiles of all ranks; one alone can't tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from lightspeed_tools.trace.account import parts
from lightspeed_tools.trace.rebuild import Meeting, Run

OFTEN = 0.5  # of all waiting: a rank that causes less is one of several,
FAR = 2  # unless it causes so many times as much as any other


@dataclass(frozen=True)
class Waits:
    """By rank (its place among the files): ns of exposed communication spent waiting and
    transferring; `caused` is the total time that others waited for this rank.
    """

    waiting: tuple[int, ...]
    transferring: tuple[int, ...]
    caused: tuple[int, ...]

    @property
    def late(self) -> int | None:
        """The rank that caused most waiting, None if no single one did."""
        *_, second, most = 0, *sorted(self.caused)
        alone = most > min(OFTEN * sum(self.caused), FAR * second)
        return self.caused.index(most) if alone else None


def waits_of(run: Run) -> Waits | None:
    """Return the `Waits` of a run aligned by `rebuild`; None if no collectives met."""
    if not run.meetings:
        return None
    last = {id(meeting): max(op.start for op in meeting.members) for meeting in run.meetings}
    waiting, transferring = [], []
    for operations in run.operations:
        whole, without = [], []
        for op in operations:
            ready = op.start
            if op.meeting is not None:
                ready = min(op.end, max(op.start, last[id(op.meeting)]))
            whole.append((op.start, op.end, op.kind))
            without.append((ready, op.end, op.kind))
        exposed = parts(sorted(whole)).exposed_communication
        transfer = parts(sorted(without)).exposed_communication
        waiting.append(exposed - transfer)
        transferring.append(transfer)
    return Waits(tuple(waiting), tuple(transferring), _caused(run.meetings, run.ranks))


def _caused(meetings: Sequence[Meeting], ranks: int) -> tuple[int, ...]:
    """What the other ranks waited for each: of a meeting, from when half of them were there."""
    caused = [0] * ranks
    for meeting in meetings:
        starts = {rank: op.start for rank, op in meeting.of.items()}
        latest = max(starts, key=starts.__getitem__)
        usual = median_low(starts.values())
        caused[latest] += (starts[latest] - usual) * (len(starts) - 1)
    return tuple(caused)
