"""What a gradebook gives out: people, submissions, gradings, what people added, and the outcome."""

import math
import re
from dataclasses import dataclass, field, replace

from lightspeed_class.lateness import Lateness
from lightspeed_class.score import BY_HAND, Graded, Score


@dataclass(frozen=True)
class Student:
    """A student on the roster; `seed` draws the variants."""

    id: str
    name: str
    seed: str | None
    details: dict

    @property
    def left(self):
        """Whether the student has left the class."""
        return bool(self.details.get("left"))

    @property
    def group(self):
        """The student's group, normalized; "" if none."""
        return " ".join(self.details.get("group", "").casefold().split())

    @property
    def sections(self):
        """The section as written, and each section of a list that Canvas joined in one text."""
        whole = self.details.get("section", "").strip()
        parts = [whole, *re.split(r",? and |, ", whole)]
        return list(dict.fromkeys(part for part in parts if part))

    def is_in(self, section):
        """Whether the student is in `section`; "" includes everybody."""
        return not section or section in self.sections


@dataclass(frozen=True)
class Submission:
    """A submission; `refused`: why it could not be read, `version`: its release; `again`: when the
    same bytes were handed in again after others by the student, or 0.
    """

    id: int
    student: str
    assignment: str
    at: float
    source: str
    sha256: str
    refused: str
    version: str = ""
    again: float = 0.0

    @property
    def order(self):
        """The sort key of submissions: when the bytes were last received, whatever the lateness."""
        return max(self.at, self.again), self.id


@dataclass(frozen=True)
class Grading:
    """The points and verdicts of a submission graded under a key."""

    id: int
    submission: int
    key: str
    at: float
    graded: Graded


@dataclass(frozen=True)
class Item:
    """A version of a rubric item. Its points are added to all who have it; None: withdrawn."""

    number: int
    id: int
    assignment: str
    question: str
    words: str
    points: float | None
    by: str
    at: float


@dataclass(frozen=True)
class Manual:
    """A person's points (None: only a comment) and words; question "" means the assignment.

    `items`: ids of rubric items, whose points are added to `base`, the automatic points at that
    time; `override`: points that replace them. `undoes`: the entry that this one takes back.
    """

    student: str
    assignment: str
    question: str
    points: float | None
    comment: str
    by: str
    at: float
    number: int = 0
    items: tuple[int, ...] = ()
    base: float = 0.0
    undoes: int | None = None
    override: float | None = None
    chosen: tuple[Item, ...] = ()

    def counted(self, rubric, most):
        """Return this entry with the points of the current rubric: id -> Item."""
        items = tuple(rubric[id] for id in self.items if id in rubric)
        points = self.override
        if items and points is None:
            points = math.fsum([self.base, *(item.points for item in items)])
            points = min(max(points, 0.0), most)
        return replace(self, points=points, chosen=items)


def standing(entries):
    """Return (student, question) -> the manual entry that counts: the last not taken back."""
    stacks = {}
    for entry in entries:
        mine = stacks.setdefault((entry.student, entry.question), [])
        if entry.undoes:
            mine.pop()
        else:
            mine.append(entry)
    last = sorted((mine[-1] for mine in stacks.values() if mine), key=lambda entry: entry.number)
    return {(entry.student, entry.question): entry for entry in last}


@dataclass(frozen=True)
class Decision:
    """A person's decision: see the table in gradebook_schema. `value` None revokes it."""

    what: str
    student: str | None
    assignment: str
    value: str | None
    reason: str
    by: str
    at: float


@dataclass(frozen=True)
class Result:
    """A student's result. Manual points replace a question's automatic ones; the cost of lateness
    is deducted from them, never below 0; then points for "" are added.

    `now`: question -> its current points, in the submitted version of the assignment. Excused
    students have no points, whatever was handed in.
    """

    student: Student
    submission: Submission | None
    grading: Grading | None
    now: dict[str, float]
    manual: dict[str, Manual] = field(default_factory=dict)
    lateness: Lateness = field(default_factory=Lateness)
    extended: float | None = None
    excused: bool = False

    @property
    def scores(self):
        return {s.question: s for s in self.grading.graded.scores} if self.grading else {}

    @property
    def points(self):
        """The total, or None if nothing counts yet; see `unmarked` for what is still to come."""
        by_hand = self._given
        if self.excused or (not self.grading and not by_hand):
            return None
        return math.fsum((self._earned, -self.off, by_hand.get("", 0.0)))

    @property
    def unmarked(self):
        """Questions for people to mark that are still unmarked; they count no points yet."""
        return [
            q
            for q, s in self.scores.items()
            if s.kind == BY_HAND and self.now.get(q) and q not in self._given and not self.excused
        ]

    @property
    def off(self):
        """The points deducted for lateness."""
        return min(self.lateness.charge, max(self._earned, 0.0))

    @property
    def _given(self):
        return {q: m.points for q, m in self.manual.items() if m.points is not None}

    @property
    def _earned(self):
        """The points of the questions."""
        each = {q: s.points for q, s in self.scores.items()} | self._given
        return math.fsum(points for q, points in each.items() if q)

    @property
    def asked(self):
        """Question -> its maximum at the time when its points were given."""
        by_hand = {q for q, m in self.manual.items() if m.points is not None} & self.now.keys()
        return (
            {q: s.out_of for q, s in self.scores.items()} | {q: self.now[q] for q in by_hand}
            if self.grading
            else self.now
        )

    @property
    def out_of(self):
        return math.fsum(self.asked.values())

    @property
    def outdated(self):
        """Whether the work was graded under points that have changed since."""
        return bool(self.grading) and {q: s.out_of for q, s in self.scores.items()} != self.now


@dataclass(frozen=True)
class Change:
    """A score changed by another grading."""

    student: Student
    question: str
    before: Score
    after: Score
