"""Scores: what an answer earned, and all that became of a submission."""

import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any

BY_HAND = "by hand"  # the kind of a score that is none yet: people mark the question


def fingerprint(value: Any) -> str:
    """A hash that is equal for equal values; they are such as JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


@dataclass(frozen=True)
class Score:
    """What an answer earned, and its diagnosis; `found`: check, cell, name or nothing."""

    question: str
    points: float
    out_of: float
    kind: str
    name: str = ""
    message: str = ""
    given: str = ""
    found: str = ""
    share: float | None = None  # of the points, where it is not all or nothing


@dataclass(frozen=True)
class Graded:
    """All that became of a submission. `status` is ok, refused or why the program ended; `notes`
    are for the student; `late`: something ran out of time.
    """

    status: str
    scores: tuple[Score, ...]
    notes: tuple[str, ...]
    record: dict[str, Any]
    late: bool = field(default=False, compare=False)

    @property
    def points(self) -> float:
        return math.fsum(s.points for s in self.scores)

    @property
    def digest(self) -> str:
        """Equal for equal results."""
        return fingerprint([self.status, [vars(s) for s in self.scores]])


def number(value: float) -> str:
    """Points as people write them: 14, 14.5."""
    return f"{value:.10g}"


def short(question: str) -> str:
    """The name of a question without its topic, as a heading: "What shortens it"."""
    return question.partition(".")[2].replace("_", " ").capitalize()
