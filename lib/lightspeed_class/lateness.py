"""How late a submission is and what that costs: the rule of class.toml, extensions, late days.

A day that has begun counts whole. Late days are spent in the order in which the assignments were
due, as long as there are any; each day that none is left for costs points. What nobody can tell
costs nothing: Canvas marks a file late and does not say by how much.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

CANVAS = re.compile(
    r"(?P<name>.*?)_(?P<late>LATE_)?(?P<user>\d+)_(?P<file>\d+)_(?P<rest>.+)", re.DOTALL
)
ANONYMOUS = re.compile(
    r"(?P<late>LATE_)?anon_(?P<user>[A-Za-z0-9]{5,})_(?P<file>\d+)_(?P<rest>.+)", re.DOTALL
)
FROM_WORKSHEET = " (time from the worksheet)"
FROM_CANVAS = " (time from Canvas)"  # asked by its API, which tells it
NOTED = re.compile(r"( \([^()]*\))+$")  # what is noted of a submission behind its file's name
DAY = 86_400.0


@dataclass(frozen=True)
class Rule:
    """The cost of a late day: points, once a student's free late days are spent."""

    points_per_day: float = 0.0
    late_days: int = 0


@dataclass(frozen=True)
class Lateness:
    """Lateness of a submission: `seconds` after it was due (0 if in time, None if late by an
    unknown time), late days spent on it, and points for the remaining days.
    """

    seconds: float | None = 0.0
    spent: int = 0
    charge: float = 0.0


def canvas_name(source: str) -> str:
    """Return a file's name as packed by Canvas, from a submission's source; "" for others."""
    name = source.rpartition("/")[2].rpartition(": ")[2]
    is_packed = CANVAS.fullmatch(name) or ANONYMOUS.fullmatch(name)
    return NOTED.sub("", name) if is_packed else ""


def late(source: str, at: float, due: float | None, extended: bool = False) -> bool:
    """Whether a submission is late: by Canvas's mark (ignoring our extensions, so not if packed
    before one ended), else by its time. Without a time it is not late.
    """
    name = canvas_name(source)
    match = CANVAS.fullmatch(name) or ANONYMOUS.fullmatch(name)
    if match and not source.endswith(FROM_CANVAS):
        return bool(match["late"]) and not (extended and due is not None and at <= due)
    if "_assignsubmission_" in source and not source.endswith(FROM_WORKSHEET):
        return False
    return due is not None and at > due


def how_late(submission: Any, due: float | None, extended: bool = False) -> float | None:
    """Return the seconds after it was due: 0.0 if in time, None if unknown."""
    if not late(submission.source, submission.at, due, extended):
        return 0.0
    # a mark of Canvas is all that there is: the times in its archives are those of the download
    return None if late(submission.source, 0.0, None) else submission.at - due


def settle(rule: Rule, seconds: Iterable[float | None]) -> list[Lateness]:
    """Return a student's [Lateness], from each submission's seconds in the order of due times.

    >>> settle(Rule(points_per_day=2.0, late_days=1), [0.0, 90_000.0])
    [Lateness(seconds=0.0, spent=0, charge=0.0), Lateness(seconds=90000.0, spent=1, charge=2.0)]
    """
    days_left, results = rule.late_days, []
    for late_by in seconds:
        days = math.ceil((late_by or 0.0) / DAY)
        free_days = min(days, days_left)
        days_left -= free_days
        results.append(Lateness(late_by, free_days, (days - free_days) * rule.points_per_day))
    return results
