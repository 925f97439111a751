"""The gradebook: one SQLite file of students, submissions, gradings and what people added by hand.

Every change is one transaction, and nothing that was kept is changed: a submission, a grading or a manual entry is only
ever added, and the latest one counts. A submission has at most one grading for each key, which names all that decides
a score; so a run that was killed goes on where it was, and nothing is graded twice.
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

from lightspeed.classroom.grade import Graded, Score
from lightspeed.classroom.notebooks import Assignment

BUSY_SECONDS = 30
# One step per version of the schema; a step is never changed once it has been released.
MIGRATIONS = (
    """
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE students (id TEXT PRIMARY KEY, name TEXT NOT NULL, seed TEXT, details TEXT NOT NULL);
    CREATE TABLE assignments (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL, seeded INTEGER NOT NULL, at REAL NOT NULL
    );
    CREATE TABLE submissions (
        id INTEGER PRIMARY KEY, student TEXT NOT NULL REFERENCES students(id), assignment TEXT NOT NULL, at REAL NOT NULL,
        source TEXT NOT NULL, sha256 TEXT NOT NULL, refused TEXT NOT NULL, content BLOB,
        UNIQUE (student, assignment, sha256)
    );
    CREATE TABLE chosen (
        number INTEGER PRIMARY KEY, submission INTEGER NOT NULL REFERENCES submissions(id), at REAL NOT NULL
    );
    CREATE TABLE gradings (
        id INTEGER PRIMARY KEY, submission INTEGER NOT NULL REFERENCES submissions(id), key TEXT NOT NULL, at REAL NOT NULL,
        graded TEXT NOT NULL, UNIQUE (submission, key)
    );
    CREATE TABLE manual (
        number INTEGER PRIMARY KEY, student TEXT NOT NULL REFERENCES students(id), assignment TEXT NOT NULL,
        question TEXT NOT NULL, points REAL, comment TEXT NOT NULL, by TEXT NOT NULL, at REAL NOT NULL
    );
    CREATE INDEX manual_of ON manual (assignment, student);
    CREATE TRIGGER submissions_stay BEFORE UPDATE ON submissions BEGIN SELECT RAISE(ABORT, 'submissions are only added'); END;
    CREATE TRIGGER submissions_last BEFORE DELETE ON submissions BEGIN SELECT RAISE(ABORT, 'submissions are only added'); END;
    CREATE TRIGGER gradings_stay BEFORE UPDATE ON gradings BEGIN SELECT RAISE(ABORT, 'gradings are only added'); END;
    CREATE TRIGGER gradings_last BEFORE DELETE ON gradings BEGIN SELECT RAISE(ABORT, 'gradings are only added'); END;
    CREATE TRIGGER manual_stay BEFORE UPDATE ON manual BEGIN SELECT RAISE(ABORT, 'manual entries are only added'); END;
    CREATE TRIGGER manual_last BEFORE DELETE ON manual BEGIN SELECT RAISE(ABORT, 'manual entries are only added'); END;
    """,
)


class Newer(RuntimeError):
    """The file was written by a later version of the course."""


@dataclass(frozen=True)
class Student:
    """One of the roster; `seed` draws the variants."""

    id: str
    name: str
    seed: str | None
    details: dict


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
    """Points (None: a comment only) and words by a person; question "" stands for the whole assignment."""

    student: str
    assignment: str
    question: str
    points: float | None
    comment: str
    by: str
    at: float


@dataclass(frozen=True)
class Result:
    """Where a student stands. Manual points of a question stand in place of the automatic ones; those of "" are added."""

    student: Student
    submission: Submission | None
    grading: Grading | None
    out_of: float
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
        """The setting of this name (None if there is none), after it got the value, if one is given."""
        with self._transaction():
            if value is not None:
                self._file.execute("INSERT INTO settings VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (name, value))
            row = self._file.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return row and row[0]

    # The roster and the assignments

    def add_student(self, id, name="", seed=None, **details):
        """Put somebody on the roster, or bring the entry up to date. A seed stays as it was first given."""
        with self._transaction():
            self._file.execute(
                "INSERT INTO students VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET name = excluded.name, "
                "seed = coalesce(seed, excluded.seed), details = excluded.details",
                (id, name, seed, json.dumps(details)),
            )

    def students(self):
        rows = self._file.execute("SELECT id, name, seed, details FROM students ORDER BY id").fetchall()
        return [Student(id, name, seed, json.loads(details)) for id, name, seed, details in rows]

    def student(self, id):
        """The student of this id. Raises KeyError."""
        return {s.id: s for s in self.students()}[id]

    def add_assignment(self, assignment, seeded=True):
        """Keep what is asked; with other content than before, a new version. `seeded`: each student has an own variant."""
        content = json.dumps({"cells": assignment.cells, "points": assignment.points})
        with self._transaction():
            now = self._file.execute("SELECT content, seeded FROM assignments WHERE name = ? ORDER BY number DESC", (assignment.name,))
            if now.fetchone() != (content, seeded):
                self._file.execute(
                    "INSERT INTO assignments (name, content, seeded, at) VALUES (?, ?, ?, ?)",
                    (assignment.name, content, seeded, time.time()),
                )

    def assignments(self):
        return [name for (name,) in self._file.execute("SELECT name FROM assignments GROUP BY name ORDER BY min(number)")]

    def assignment(self, name):
        """The latest version. Raises KeyError."""
        content = json.loads(self._assignment(name)[0])
        cells = {cell: tuple(map(tuple, pairs)) for cell, pairs in content["cells"].items()}
        return Assignment(name, cells, content["points"])

    def seed(self, assignment, student):
        """The seed of a student's variants of an assignment; None if all have the same values."""
        return self.student(student).seed if self._assignment(assignment)[1] else None

    def _assignment(self, name):
        row = self._file.execute("SELECT content, seeded FROM assignments WHERE name = ? ORDER BY number DESC", (name,)).fetchone()
        if not row:
            raise KeyError(name)
        return row

    # Submissions

    def add_submission(self, student, assignment, content, at, source="", refused=""):
        """Keep what was handed in and give its id; the same bytes again are the same submission."""
        sha256 = hashlib.sha256(refused.encode() if content is None else content).hexdigest()
        with self._transaction():
            self._file.execute(
                "INSERT INTO submissions (student, assignment, at, source, sha256, refused, content) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (student, assignment, at, source, sha256, refused, None if content is None else zlib.compress(content)),
            )
            same = "SELECT id FROM submissions WHERE student = ? AND assignment = ? AND sha256 = ?"
            return self._file.execute(same, (student, assignment, sha256)).fetchone()[0]

    def submissions(self, assignment=None, student=None):
        """Those of an assignment and a student, or of all, oldest first."""
        rows = self._file.execute(
            "SELECT id, student, assignment, at, source, sha256, refused FROM submissions "
            "WHERE ?1 IN (assignment, '') AND ?2 IN (student, '') ORDER BY at, id",
            (assignment or "", student or ""),
        )
        return [Submission(*row) for row in rows]

    def content(self, submission):
        """The bytes that were handed in; None if they could not be read."""
        row = self._file.execute("SELECT content FROM submissions WHERE id = ?", (submission,)).fetchone()
        return zlib.decompress(row[0]) if row and row[0] is not None else None

    def choose(self, submission):
        """Let this one count, whichever came last."""
        with self._transaction():
            self._file.execute("INSERT INTO chosen (submission, at) VALUES (?, ?)", (submission, time.time()))

    def counting(self, assignment):
        """Student id -> the submission that counts: the one chosen last, else the last that could be read, else the last."""
        by_id = {s.id: s for s in self.submissions(assignment)}
        found = {s.student: s for s in sorted(by_id.values(), key=lambda s: not s.refused)}
        for (id,) in self._file.execute("SELECT submission FROM chosen ORDER BY number"):
            if id in by_id:
                found[by_id[id].student] = by_id[id]
        return found

    # Gradings

    def pending(self, assignment, key=None):
        """Submissions that have no grading under this key, or none at all."""
        done = {id for (id,) in self._file.execute("SELECT submission FROM gradings WHERE ?1 IN (key, '')", (key or "",))}
        return [s for s in self.submissions(assignment) if s.id not in done]

    def add_grading(self, submission, key, graded):
        """Keep a grading; one under the same key that is there already stays."""
        with self._transaction():
            self._file.execute(
                "INSERT INTO gradings (submission, key, at, graded) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (submission, key, time.time(), json.dumps(asdict(graded))),
            )

    def gradings(self, submission=None, id=None):
        """All gradings of a submission, the newest last; or the one of an id."""
        rows = self._file.execute(
            "SELECT id, submission, key, at, graded FROM gradings WHERE submission = ?1 OR id = ?2 ORDER BY id", (submission, id)
        )
        return [Grading(*row, _graded(text)) for *row, text in rows]

    def latest(self, assignment):
        """Submission id -> id of its last grading."""
        rows = self._file.execute(
            "SELECT submission, max(gradings.id) FROM gradings JOIN submissions ON submission = submissions.id "
            "WHERE assignment = ? GROUP BY submission",
            (assignment,),
        )
        return dict(rows.fetchall())

    # What people add

    def set_manual(self, student, assignment, question, points=None, comment="", by=""):
        """Points or a comment by a person; the latest entry counts, no grading ever touches one. With neither: none any more."""
        with self._transaction():
            self._file.execute(
                "INSERT INTO manual (student, assignment, question, points, comment, by, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
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

    def results(self, assignment):
        """One for each student of the roster, without those who have left and have nothing here."""
        out_of = math.fsum(self.assignment(assignment).points.values())
        counting, manual = self.counting(assignment), {}
        for entry in self.manual(assignment):
            mine = manual.setdefault(entry.student, {})
            mine.pop(entry.question, None)
            if entry.points is not None or entry.comment.strip():
                mine[entry.question] = entry
        found = []
        for student in self.students():
            submission = counting.get(student.id)
            if student.details.get("left") and not submission and student.id not in manual:
                continue
            history = self.gradings(submission.id) if submission else []
            found.append(Result(student, submission, history[-1] if history else None, out_of, manual.get(student.id, {})))
        return found

    def changes(self, assignment, before):
        """What is other now than `before`, which latest() gave then, in the submissions that count and have a grading since."""
        now, found = self.latest(assignment), []
        for student, submission in sorted(self.counting(assignment).items()):
            first, last = before.get(submission.id), now.get(submission.id)
            if first and first != last:
                old, new = ({s.question: s for g in self.gradings(id=id) for s in g.graded.scores} for id in (first, last))
                found += [Change(self.student(student), q, old[q], new[q]) for q in new if q in old and old[q] != new[q]]
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
            raise Newer(f"{self.path} was written by a newer version of the course. Update it to go on.")
        if self._version() == len(MIGRATIONS):
            return
        self._file.execute("PRAGMA journal_mode = WAL")
        with self._transaction():
            for step in MIGRATIONS[self._version() :]:  # asked again: another process may have been first
                for statement in _statements(step):
                    self._file.execute(statement)
            self._file.execute("INSERT INTO settings VALUES ('secret', ?) ON CONFLICT DO NOTHING", (secrets.token_hex(16),))
            self._file.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self):
        return self._file.execute("PRAGMA user_version").fetchone()[0]


def _graded(text):
    kept = json.loads(text)
    scores = tuple(Score(**s) for s in kept["scores"])
    return Graded(kept["status"], scores, tuple(kept["notes"]), kept["record"])


def _statements(script):
    """The statements of a script, one by one: executescript() would end our transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if statement.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
