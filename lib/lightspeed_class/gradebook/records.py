"""What a gradebook gives out: people, submissions, gradings, what people added, and the outcome."""

import math
import re
from dataclasses import dataclass, field, replace

from lightspeed_class.lateness import Lateness
from lightspeed_class.score import BY_HAND, Graded, Score


@dataclass(frozen=True)
class Student:
    """One of the roster; `seed` draws the variants."""

    id: str
    name: str
    seed: str | None
    details: dict

    @property
    def left(self):
        """Whether they are no longer in the class."""
        return bool(self.details.get("left"))

    @property
    def group(self):
        """The group that they hand in with, in one way of writing it; "" for none."""
        return " ".join(self.details.get("group", "").casefold().split())

    @property
    def sections(self):
        """Their section, as it is written, and each of several that Canvas joined in one text."""
        whole = self.details.get("section", "").strip()
        parts = [whole, *re.split(r",? and |, ", whole)]
        return list(dict.fromkeys(part for part in parts if part))

    def is_in(self, section):
        """Whether they are of a section; everybody is of ""."""
        return not section or section in self.sections


@dataclass(frozen=True)
class Submission:
    """What was handed in; `refused`: why it could not be read, `version`: of which release;
    `again`: when the same bytes came after others of the same student, or 0.
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
        """What puts the last one last: when these bytes came last, lateness aside."""
        return max(self.at, self.again), self.id


@dataclass(frozen=True)
class Grading:
    """What a submission earned when it was graded under a key."""

    id: int
    submission: int
    key: str
    at: float
    graded: Graded


@dataclass(frozen=True)
class Item:
    """A version of a rubric item. Its points are added for all who have it; None: withdrawn."""

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
    """Points (None: a comment only) and words by a person; question "" stands for the whole
    assignment.

    `items`: ids of rubric items, whose points count from `base`, the automatic points of then;
    `override`: points that count in place of those. `undoes`: the entry that this one takes back.
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
        """The same with the points that count by the rubric of now: id -> Item."""
        items = tuple(rubric[id] for id in self.items if id in rubric)
        points = self.override
        if items and points is None:
            points = math.fsum([self.base, *(item.points for item in items)])
            points = min(max(points, 0.0), most)
        return replace(self, points=points, chosen=items)


def standing(entries):
    """(student, question) -> the manual entry that counts: the last one that is not taken back."""
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
    """What somebody decided: see the table in gradebook_schema. `value` None takes it back."""

    what: str
    student: str | None
    assignment: str
    value: str | None
    reason: str
    by: str
    at: float


@dataclass(frozen=True)
class Result:
    """Where a student stands. Manual points of a question stand in place of the automatic ones;
    what lateness costs is taken off these, never below 0; those of "" are added.

    `now`: question -> its points now, in the version of the assignment that was handed in. Who is
    excused has no points, whatever was handed in.
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
        """None while there is nothing to count; see `unmarked` for what is still to come."""
        by_hand = self._given
        if self.excused or (not self.grading and not by_hand):
            return None
        return math.fsum((self._earned, -self.off, by_hand.get("", 0.0)))

    @property
    def unmarked(self):
        """The questions that people mark, and nobody has marked yet: no points of theirs count."""
        return [
            q
            for q, s in self.scores.items()
            if s.kind == BY_HAND and self.now.get(q) and q not in self._given and not self.excused
        ]

    @property
    def off(self):
        """The points that lateness takes off."""
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
        """Question -> what its points are out of: as it was when they were given."""
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
        """Whether it was graded when other points were set than now."""
        return bool(self.grading) and {q: s.out_of for q, s in self.scores.items()} != self.now


@dataclass(frozen=True)
class Change:
    """A score that another grading made different."""

    student: Student
    question: str
    before: Score
    after: Score
