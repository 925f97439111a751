"""The gradebook: one SQLite file of students, submissions, gradings and what people added by hand.

Every change is one transaction, and nothing that was kept is changed: a submission, a grading or a
manual entry is only ever added, and the latest one counts. A submission has at most one grading for
each key, which names all that decides a score; so a run that was killed goes on where it was, and
nothing is graded twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import secrets
import sqlite3
import time
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lightspeed_class.gradebook_schema import MIGRATIONS, Newer
from lightspeed_class.grading.grade import Graded, Score
from lightspeed_class.intake.notebooks import Assignment
from lightspeed_course.practice.store_file import statements

BUSY_SECONDS = 30


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


@dataclass(frozen=True)
class Submission:
    """A notebook that was handed in; `refused` says why if it could not even be read."""

    id: int
    student: str
    assignment: str
    at: float
    source: str
    sha256: str
    refused: str


@dataclass(frozen=True)
class Grading:
    """What a submission earned when it was graded under a key."""

    id: int
    submission: int
    key: str
    at: float
    graded: Graded


@dataclass(frozen=True)
class Manual:
    """Points (None: a comment only) and words by a person; question "" stands for the whole
    assignment.
    """

    student: str
    assignment: str
    question: str
    points: float | None
    comment: str
    by: str
    at: float


@dataclass(frozen=True)
class Result:
    """Where a student stands. Manual points of a question stand in place of the automatic ones;
    those of "" are added.

    `now`: question -> its points in the latest version of the assignment.
    """

    student: Student
    submission: Submission | None
    grading: Grading | None
    now: dict[str, float]
    manual: dict[str, Manual] = field(default_factory=dict)

    @property
    def scores(self):
        return {s.question: s for s in self.grading.graded.scores} if self.grading else {}

    @property
    def points(self):
        """None while there is nothing to count."""
        given = {q: m.points for q, m in self.manual.items() if m.points is not None}
        if not self.grading and not given:
            return None
        return math.fsum(({q: s.points for q, s in self.scores.items()} | given).values())

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


class Gradebook:
    """The file at `path`, made if it is not there; use it in a `with`, in one thread."""

    def __init__(self, path):
        self.path = Path(path)
        self._file = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            self._file.execute("PRAGMA foreign_keys = ON")
            self._file.execute("PRAGMA synchronous = FULL")
            self._migrate()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._file.close()

    @property
    def secret(self):
        """What only the class knows; it draws the hidden inputs."""
        return self.setting("secret")

    def setting(self, name, value=None):
        """The setting of this name (None if there is none), after it got the value, if one is
        given.
        """
        with self._transaction():
            if value is not None:
                self._file.execute(
                    "INSERT INTO settings VALUES (?, ?) ON CONFLICT DO UPDATE SET value ="
                    " excluded.value",
                    (name, value),
                )
            row = self._file.execute(
                "SELECT value FROM settings WHERE name = ?", (name,)
            ).fetchone()
        return row and row[0]

    # The roster and the assignments

    def add_student(self, id, name="", seed=None, **details):
        """Put somebody on the roster, or bring the entry up to date. A seed stays as it was
        first given.
        """
        with self._transaction():
            self._file.execute(
                "INSERT INTO students VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET name ="
                " excluded.name, seed = coalesce(seed, excluded.seed), details = excluded.details",
                (id, name, seed, json.dumps(details)),
            )

    def students(self):
        rows = self._file.execute(
            "SELECT id, name, seed, details FROM students ORDER BY id"
        ).fetchall()
        return [Student(id, name, seed, json.loads(details)) for id, name, seed, details in rows]

    def student(self, id):
        """The student of this id. Raises KeyError."""
        return {s.id: s for s in self.students()}[id]

    def add_assignment(self, assignment, seeded=True):
        """Keep what is asked; with other content than before, a new version. `seeded`: each
        student has an own variant.
        """
        content = json.dumps({"cells": assignment.cells, "points": assignment.points})
        with self._transaction():
            now = self._file.execute(
                "SELECT content, seeded FROM assignments WHERE name = ? ORDER BY number DESC",
                (assignment.name,),
            )
            if now.fetchone() != (content, seeded):
                self._file.execute(
                    "INSERT INTO assignments (name, content, seeded, at) VALUES (?, ?, ?, ?)",
                    (assignment.name, content, seeded, time.time()),
                )

    def assignments(self):
        return [
            name
            for (name,) in self._file.execute(
                "SELECT name FROM assignments GROUP BY name ORDER BY min(number)"
            )
        ]

    def assignment(self, name):
        """The latest version. Raises KeyError."""
        return self.versions(name)[0]

    def versions(self, name):
        """All of its versions, the latest first. Raises KeyError."""
        kept = [json.loads(content) for content, _ in self._versions(name)]
        return [
            Assignment(
                name,
                {cell: tuple(map(tuple, pairs)) for cell, pairs in k["cells"].items()},
                k["points"],
            )
            for k in kept
        ]

    def kinds(self, name):
        """Which kinds of it were released, the latest first: True if each student has an own
        variant, False if all have the same values.
        """
        return list(dict.fromkeys(bool(seeded) for _, seeded in self._versions(name)))

    def seed(self, assignment, student):
        """The seed of a student's variants in the latest version of an assignment; None if all
        have the same values.
        """
        return self.student(student).seed if self.kinds(assignment)[0] else None

    def _versions(self, name):
        rows = self._file.execute(
            "SELECT content, seeded FROM assignments WHERE name = ? ORDER BY number DESC", (name,)
        ).fetchall()
        if not rows:
            raise KeyError(name)
        return rows

    # Submissions

    def add_submission(self, student, assignment, content, at, source="", refused=""):
        """Keep what was handed in and give its id; the same bytes again are the same submission."""
        sha256 = hashlib.sha256(refused.encode() if content is None else content).hexdigest()
        with self._transaction():
            self._file.execute(
                "INSERT INTO submissions (student, assignment, at, source, sha256, refused,"
                " content) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (
                    student,
                    assignment,
                    at,
                    source,
                    sha256,
                    refused,
                    None if content is None else zlib.compress(content),
                ),
            )
            same = "SELECT id FROM submissions WHERE student = ? AND assignment = ? AND sha256 = ?"
            return self._file.execute(same, (student, assignment, sha256)).fetchone()[0]

    def set_time(self, submission, at, source):
        """Keep when a submission was really handed in, and a source that says how that is known;
        the latest entry counts.
        """
        with self._transaction():
            self._file.execute(
                "INSERT INTO times (submission, at, source) VALUES (?, ?, ?)",
                (submission, at, source),
            )

    def submissions(self, assignment=None, student=None):
        """Those of an assignment and a student, or of all, oldest first."""
        rows = self._file.execute(
            "SELECT id, student, assignment, coalesce(t.at, s.at) AS since, coalesce(t.source,"
            " s.source), sha256, refused FROM submissions s LEFT JOIN times t ON t.number = (SELECT"
            " max(number) FROM times WHERE submission = s.id) WHERE ?1 IN (assignment, '') AND ?2"
            " IN (student, '') ORDER BY since, id",
            (assignment or "", student or ""),
        )
        return [Submission(*row) for row in rows]

    def content(self, submission):
        """The bytes that were handed in; None if they could not be read."""
        row = self._file.execute(
            "SELECT content FROM submissions WHERE id = ?", (submission,)
        ).fetchone()
        return zlib.decompress(row[0]) if row and row[0] is not None else None

    def choose(self, submission, none=False):
        """Let this one count, whichever came last; `none`: neither it nor any that its student
        had handed in before it was kept.
        """
        with self._transaction():
            self._file.execute(
                "INSERT INTO chosen (submission, at, none) VALUES (?, ?, ?)",
                (submission, time.time(), none),
            )

    def choices(self, assignment):
        """(student id -> id of the submission that was chosen, ids of those that were taken out
        of counting).
        """
        by_id = {s.id: s for s in self.submissions(assignment)}
        chosen, out = {}, set()
        for id, none in self._file.execute("SELECT submission, none FROM chosen ORDER BY number"):
            if id in by_id and none:
                chosen.pop(by_id[id].student, None)
                out |= {
                    s.id for s in by_id.values() if s.student == by_id[id].student and s.id <= id
                }
            elif id in by_id:
                chosen[by_id[id].student] = id
                out.discard(id)
        return chosen, out

    def counting(self, assignment):
        """Student id -> the submission that counts: the one chosen last, else the last that could
        be read, else the last.

        Those that were taken out do not.
        """
        chosen, out = self.choices(assignment)
        by_id = {s.id: s for s in self.submissions(assignment)}
        found = {
            s.student: s
            for s in sorted(by_id.values(), key=lambda s: not s.refused)
            if s.id not in out
        }
        return found | {student: by_id[id] for student, id in chosen.items()}

    # Gradings

    def pending(self, assignment, key=None):
        """Submissions that have no grading under this key, or none at all."""
        done = {
            id
            for (id,) in self._file.execute(
                "SELECT submission FROM gradings WHERE ?1 IN (key, '')", (key or "",)
            )
        }
        return [s for s in self.submissions(assignment) if s.id not in done]

    def add_grading(self, submission, key, graded):
        """Keep a grading; one under the same key that is there already stays."""
        with self._transaction():
            self._file.execute(
                "INSERT INTO gradings (submission, key, at, graded) VALUES (?, ?, ?, ?) ON CONFLICT"
                " DO NOTHING",
                (submission, key, time.time(), json.dumps(asdict(graded))),
            )

    def gradings(self, submission=None, id=None):
        """All gradings of a submission, the newest last; or the one of an id."""
        rows = self._file.execute(
            "SELECT id, submission, key, at, graded FROM gradings WHERE submission = ?1 OR id = ?2"
            " ORDER BY id",
            (submission, id),
        )
        return [Grading(*row, _graded(text)) for *row, text in rows]

    def latest(self, assignment):
        """Submission id -> id of its last grading."""
        rows = self._file.execute(
            "SELECT submission, max(gradings.id) FROM gradings JOIN submissions ON submission ="
            " submissions.id WHERE assignment = ? GROUP BY submission",
            (assignment,),
        )
        return dict(rows.fetchall())

    # What people add

    def set_manual(self, student, assignment, question, points=None, comment="", by=""):
        """Points or a comment by a person; the latest entry counts, no grading ever touches one.
        With neither: none any more.
        """
        with self._transaction():
            self._file.execute(
                "INSERT INTO manual (student, assignment, question, points, comment, by, at) VALUES"
                " (?, ?, ?, ?, ?, ?, ?)",
                (student, assignment, question, points, comment, by, time.time()),
            )

    def manual(self, assignment, student=None):
        """Every entry, oldest first."""
        rows = self._file.execute(
            "SELECT student, assignment, question, points, comment, by, at FROM manual "
            "WHERE assignment = ?1 AND ?2 IN (student, '') ORDER BY number",
            (assignment, student or ""),
        )
        return [Manual(*row) for row in rows]

    # The outcome

    def results(self, assignment, student=None):
        """One for each student of the roster, without those who have left and have nothing here;
        or that of one student.
        """
        now = self.assignment(assignment).points
        counting, manual = self.counting(assignment), {}
        for entry in self.manual(assignment):
            mine = manual.setdefault(entry.student, {})
            mine.pop(entry.question, None)
            if entry.points is not None or entry.comment.strip():
                mine[entry.question] = entry
        found = []
        for one in [self.student(student)] if student else self.students():
            submission = counting.get(one.id)
            if one.left and not submission and one.id not in manual and not student:
                continue
            history = self.gradings(submission.id) if submission else []
            found.append(
                Result(
                    one, submission, history[-1] if history else None, now, manual.get(one.id, {})
                )
            )
        return found

    def changes(self, assignment, before):
        """What is other now than `before`, which latest() gave then, in the submissions that
        count and have a grading since.
        """
        now, found = self.latest(assignment), []
        for student, submission in sorted(self.counting(assignment).items()):
            first, last = before.get(submission.id), now.get(submission.id)
            if first and first != last:
                old, new = (
                    {s.question: s for g in self.gradings(id=id) for s in g.graded.scores}
                    for id in (first, last)
                )
                found += [
                    Change(self.student(student), q, old[q], new[q])
                    for q in new
                    if q in old and old[q] != new[q]
                ]
        return found

    @contextlib.contextmanager
    def _transaction(self):
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    def _migrate(self):
        if self._version() > len(MIGRATIONS):
            raise Newer(
                f"{self.path} was written by a newer version of the course. Update it to go on."
            )
        if self._version() == len(MIGRATIONS):
            return
        self._file.execute("PRAGMA journal_mode = WAL")
        with self._transaction():
            # asked again: another process may have been first
            for step in MIGRATIONS[self._version() :]:
                for statement in statements(step):
                    self._file.execute(statement)
            self._file.execute(
                "INSERT INTO settings VALUES ('secret', ?) ON CONFLICT DO NOTHING",
                (secrets.token_hex(16),),
            )
            self._file.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self):
        return self._file.execute("PRAGMA user_version").fetchone()[0]


def _graded(text):
    kept = json.loads(text)
    scores = tuple(Score(**s) for s in kept["scores"])
    return Graded(kept["status"], scores, tuple(kept["notes"]), kept["record"])
