"""The gradebook: one SQLite file of students, submissions, gradings and what people added by hand.

Every change is one transaction, and nothing that was kept is changed: a submission, a grading or a
manual entry is only ever added, and the latest one counts. A submission has at most one grading for
each key, which names all that decides a score; so a run that was killed goes on where it was, and
nothing is graded twice.
"""

import hashlib
import json
import math
import time
import zlib
from dataclasses import replace

from lightspeed_class.gradebook.questions import Questions, named_version
from lightspeed_class.gradebook.records import (
    Change,
    Grading,
    Result,
    Submission,
    standing,
)
from lightspeed_class.lateness import Lateness, how_late, settle
from lightspeed_class.score import Graded, Score


class Gradebook(Questions):
    """A gradebook file at `path`, created if missing; use it in a `with`, in one thread."""

    # Submissions

    def add_submission(self, student, assignment, content, at, source="", reason=""):
        """Add a submission and return its id; identical bytes are the same submission."""
        sha256 = hashlib.sha256(reason.encode() if content is None else content).hexdigest()
        with self._transaction():
            self._file.execute(
                "INSERT INTO submissions (student, assignment, at, source, sha256, refused,"
                " content, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (
                    student,
                    assignment,
                    at,
                    source,
                    sha256,
                    reason,
                    None if content is None else zlib.compress(content),
                    named_version(content),
                ),
            )
            same = "SELECT id FROM submissions WHERE student = ? AND assignment = ? AND sha256 = ?"
            return self._file.execute(same, (student, assignment, sha256)).fetchone()[0]

    def set_time(self, submission, at, source):
        """Record when a submission was handed in and how that is known; the latest entry counts."""
        with self._transaction():
            self._file.execute(
                "INSERT INTO times (submission, at, source) VALUES (?, ?, ?)",
                (submission, at, source),
            )

    def hand_in_again(self, submission, at):
        """Record that the same bytes were handed in again, which makes them the latest."""
        with self._transaction():
            self._file.execute("INSERT INTO again (submission, at) VALUES (?, ?)", (submission, at))

    def keep_beside(self, submission, files):
        """Save the files that accompany a notebook, name -> bytes, for its cells to open."""
        with self._transaction():
            for name, content in files.items():
                digest = hashlib.sha256(content).hexdigest()
                self._file.execute(
                    "INSERT INTO contents VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, content)
                )
                self._file.execute(
                    "INSERT INTO beside (submission, name, digest) VALUES (?, ?, ?) ON CONFLICT DO"
                    " NOTHING",
                    (submission, name, digest),
                )

    def beside(self, submission):
        """Return name -> bytes of a notebook's files; for duplicate names, the last file."""
        rows = self._file.execute(
            "SELECT name, content FROM beside JOIN contents USING (digest) WHERE submission = ?"
            " ORDER BY number",
            (submission,),
        )
        return dict(rows.fetchall())

    def submissions(self, assignment=None, student=None):
        """Return submissions, oldest first, of one assignment or student if given."""
        rows = self._file.execute(
            "SELECT id, student, assignment, coalesce(t.at, s.at) AS since, coalesce(t.source,"
            " s.source), sha256, refused, version, coalesce((SELECT max(at) FROM again WHERE"
            " submission = s.id), 0) FROM submissions s LEFT JOIN times t ON t.number"
            " = (SELECT max(number) FROM times WHERE submission = s.id) WHERE ?1 IN (assignment,"
            " '') AND ?2 IN (student, '') ORDER BY since, id",
            (assignment or "", student or ""),
        )
        return [Submission(*row) for row in rows]

    def content(self, submission):
        """Return the submitted bytes; None if they could not be read."""
        row = self._file.execute(
            "SELECT content FROM submissions WHERE id = ?", (submission,)
        ).fetchone()
        return zlib.decompress(row[0]) if row and row[0] is not None else None

    def choose(self, submission, none=False):
        """Make this submission count; with `none`, neither it nor any earlier one."""
        with self._transaction():
            self._file.execute(
                "INSERT INTO chosen (submission, at, none) VALUES (?, ?, ?)",
                (submission, time.time(), none),
            )

    def choices(self, assignment):
        """Return (student id -> chosen submission's id, groups included; ids that don't count)."""
        by_id, teams = {s.id: s for s in self.submissions(assignment)}, self.teams(assignment)
        choice, out = {}, set()
        for id, none in self._file.execute("SELECT submission, none FROM chosen ORDER BY number"):
            whose = by_id[id].student if id in by_id else None
            if whose and none:
                choice = {s: other for s, other in choice.items() if by_id[other].student != whose}
                out |= {s.id for s in by_id.values() if s.student == whose and s.id <= id}
            elif whose:
                choice |= dict.fromkeys(teams[whose], id)
                out.discard(id)
        return choice, out

    def chosen(self, assignment):
        """Return [(time, student, choice)], oldest first."""
        rows = self._file.execute(
            "SELECT chosen.at, student, submission, none FROM chosen JOIN submissions ON submission"
            " = submissions.id WHERE assignment = ? ORDER BY number",
            (assignment,),
        )
        return [
            (at, student, f"{'none up to ' * none}submission {id} counts")
            for at, student, id, none in rows
        ]

    def counting(self, assignment):
        """Return student id -> the submission that counts: the last chosen, else the last readable
        one, else the last, among all in the group; excluded submissions are ignored.
        """
        (choice, out), teams = self.choices(assignment), self.teams(assignment)
        by_id, by_student = {s.id: s for s in self.submissions(assignment)}, {}
        for s in sorted(by_id.values(), key=lambda s: (not s.refused, s.order)):
            if s.id not in out:
                by_student |= dict.fromkeys(teams[s.student], s)
        return by_student | {student: by_id[id] for student, id in choice.items()}

    # Gradings

    def pending(self, assignment, key=None):
        """Return submissions without a grading under this key, or without any."""
        graded_ids = {
            id
            for (id,) in self._file.execute(
                "SELECT submission FROM gradings WHERE ?1 IN (key, '')", (key or "",)
            )
        }
        return [s for s in self.submissions(assignment) if s.id not in graded_ids]

    def add_grading(self, submission, key, grading):
        """Save a grading; an existing one under the same key stays."""
        with self._transaction():
            self._file.execute(
                "INSERT INTO gradings (submission, key, at, graded) VALUES (?, ?, ?, ?) ON CONFLICT"
                " DO NOTHING",
                (submission, key, time.time(), json.dumps(vars(grading), default=vars)),
            )

    def gradings(self, submission=None, id=None):
        """Return all gradings of a submission, newest last; or the one with `id`."""
        rows = self._file.execute(
            "SELECT id, submission, key, at, graded FROM gradings WHERE submission = ?1 OR id = ?2"
            " ORDER BY id",
            (submission, id),
        )
        return [replace(Grading(*row), graded=_graded(row[4])) for row in rows]

    def latest(self, assignment):
        """Submission id -> id of its last grading."""
        rows = self._file.execute(
            "SELECT submission, max(gradings.id) FROM gradings JOIN submissions ON submission ="
            " submissions.id WHERE assignment = ? GROUP BY submission",
            (assignment,),
        )
        return dict(rows.fetchall())

    # The outcome

    def lateness(self, assignment):
        """Return student id -> Lateness of what counts; unreadable or excused work is free."""
        delays, costs = {}, {}  # student -> {assignment: (due, seconds)}
        for name in self.assignments():
            excused, dues = self.standing("excused", name), self._dues(name)
            for student, submission in self.counting(name).items():
                due, extended = dues(student)
                late_by = how_late(submission, due, extended)
                if not (submission.refused or student in excused):
                    delays.setdefault(student, {})[name] = (due or 0.0, late_by)
                elif name == assignment:
                    costs[student] = Lateness(late_by)
        rule = self.late_rule
        for student, mine in delays.items():
            names = sorted(mine, key=lambda name: (mine[name][0], name))
            results = settle(rule, [mine[name][1] for name in names])
            if assignment in names:
                costs[student] = results[names.index(assignment)]
        return costs

    def results(self, assignment, student=None, section=""):
        """Return a result for each student of the roster, or of a section, or for one student.
        Students who left are included only if they have work here.
        """
        now, priced = self.assignment(assignment).points, {}
        counting, manual = self.counting(assignment), {}
        lateness, dues = self.lateness(assignment), self._dues(assignment)
        excused, rubric = self.standing("excused", assignment), self.rubric(assignment)
        for (whose, question), entry in standing(self.manual(assignment, student)).items():
            entry = entry.counted(rubric, now.get(question, math.inf))
            if entry.points is not None or entry.comment.strip():
                manual.setdefault(whose, {})[question] = entry
        results, version_of = [], self.versions_of(assignment)
        for one in [self.student(student)] if student else self.students():
            submission = counting.get(one.id)
            if not one.is_in(section):
                continue
            if one.left and not submission and one.id not in manual and not student:
                continue
            history = self.gradings(submission.id) if submission else []
            due, extended = dues(one.id)
            version = version_of(submission) if submission else ""
            if version not in priced:
                priced[version] = self.assignment(assignment, version).points
            results.append(
                Result(
                    one,
                    submission,
                    history[-1] if history else None,
                    priced[version] if submission else now,
                    manual.get(one.id, {}),
                    lateness.get(one.id, Lateness()),
                    due if extended else None,
                    one.id in excused,
                )
            )
        return results

    def changes(self, assignment, before):
        """Return what differs from `before`, an earlier latest(), in graded work that counts."""
        now, changes = self.latest(assignment), []
        for student, submission in sorted(self.counting(assignment).items()):
            first, last = before.get(submission.id), now.get(submission.id)
            if first and first != last:
                old, new = (
                    {s.question: s for g in self.gradings(id=id) for s in g.graded.scores}
                    for id in (first, last)
                )
                changes += [
                    Change(self.student(student), q, old[q], new[q])
                    for q in new
                    if q in old and old[q] != new[q]
                ]
        return changes


def _graded(text):
    row = json.loads(text)
    scores = tuple(Score(**s) for s in row["scores"])
    return Graded(row["status"], scores, tuple(row["notes"]), row["record"])
