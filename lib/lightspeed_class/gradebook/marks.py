"""What people add to a gradebook: points and comments by hand, rubric items, decisions."""

import json
import time
from dataclasses import asdict, replace

from lightspeed_class.gradebook.file import GradebookFile
from lightspeed_class.gradebook.records import Decision, Item, Manual, standing
from lightspeed_class.gradebook.schema import Changed
from lightspeed_class.lateness import Rule


class Marks(GradebookFile):
    """Marks by people. Entries are only ever added; the latest one counts."""

    def set_manual(
        self, student, assignment, question, points=None, comment="", by="", items=(), base=0.0,
        expects=None, also=(),
    ):  # fmt: skip
        """Record a person's points or comment; the latest entry counts, and grading never changes
        it. Without points, comment and rubric items, it clears the mark. `expects`: number of the
        entry it follows (0: none), else raises Changed. `also`: students who get the same.
        """
        at = time.time()
        with self._transaction():
            self._follows(student, assignment, question, expects)
            for one in (student, *also):
                self._set_manual(one, assignment, question, points, comment, by, at, items, base)

    def undo_manual(self, student, assignment, question, by="", expects=None, also=()):
        """Take back the latest entry, so that the one before counts again, also for others who got
        it together. Raises Changed as set_manual does, KeyError if there is no entry.
        """
        now = time.time()
        with self._transaction():
            entries = self._follows(student, assignment, question, expects)
            last = standing(entries).get((student, question))
            if not last:
                raise KeyError(question)
            for one in (student, *also):
                their = standing(self.manual(assignment, one, question)).get((one, question))
                if their and (their.at, their.by) == (last.at, last.by):
                    self._set_manual(
                        one, assignment, question, None, "", by, now, undoes=their.number
                    )

    def _set_manual(
        self, student, assignment, question, points, comment, by, at, items=(), base=0.0,
        undoes=None,
    ):  # fmt: skip
        self._file.execute(
            "INSERT INTO manual (student, assignment, question, points, comment, by, at, items,"
            " base, undoes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(student, assignment, question, points, comment, by, at),
                *(json.dumps(list(items)), base, undoes),
            ),
        )

    def _scale(self, assignment, factors):
        """Add an entry of so many times the points for each that stands: question -> factor."""
        for (student, question), m in standing(self.manual(assignment)).items():
            factor = factors.get(question)
            if factor and (m.override is not None or m.items):
                points = None if m.override is None else factor * m.override
                self._set_manual(
                    student, assignment, question, points, m.comment, "release", time.time(),
                    m.items, factor * m.base,
                )  # fmt: skip

    def _follows(self, student, assignment, question, expects):
        """The entries so far. Raises Changed where the last one is not the expected one."""
        entries = self.manual(assignment, student, question)
        if expects is not None and expects != (entries[-1].number if entries else 0):
            raise Changed(question)
        return entries

    def manual(self, assignment, student=None, question=None):
        """Return all manual entries, oldest first."""
        rows = self._file.execute(
            "SELECT student, assignment, question, points, comment, by, at, number, items, base,"
            " undoes FROM manual WHERE assignment = ?1 AND ?2 IN (student, '') AND (?3 IS NULL OR"
            " question = ?3) ORDER BY number",
            (assignment, student or "", question),
        )
        return [
            replace(Manual(*row), items=tuple(json.loads(row[8])), override=row[3]) for row in rows
        ]

    def set_item(self, assignment, question, words, points, by="", item=None, expects=None):
        """Save a rubric item, or a new version of one, and return its id; points None withdraw it.
        Raises Changed if `expects` is not the number of its last version.
        """
        with self._transaction():
            items = {i.id: i for i in self.rubric_history(assignment)}
            if item is not None and (item not in items or expects != items[item].number):
                raise Changed(words)
            if item is None:
                newest = self._file.execute("SELECT coalesce(max(item), 0) FROM rubric").fetchone()
                item = newest[0] + 1
            self._file.execute(
                "INSERT INTO rubric (item, assignment, question, words, points, by, at) VALUES"
                " (?, ?, ?, ?, ?, ?, ?)",
                (item, assignment, question, words, points, by, time.time()),
            )
        return item

    def rubric_history(self, assignment):
        """Every version of every rubric item, oldest first."""
        rows = self._file.execute(
            "SELECT * FROM rubric WHERE assignment = ? ORDER BY number", (assignment,)
        )
        return [Item(*row) for row in rows]

    def rubric(self, assignment):
        """Return id -> the rubric item in its latest version, without withdrawn ones."""
        items = {item.id: item for item in self.rubric_history(assignment)}
        return {id: item for id, item in items.items() if item.points is not None}

    # What people decide

    def decide(self, what, student, assignment="", value=None, reason="", by=""):
        """Record a decision; the latest of its kind counts, and `value` None revokes it."""
        with self._transaction():
            self._decide(what, student, assignment, value, reason, by)

    def _decide(self, what, student, assignment, value, reason="", by=""):
        self._file.execute(
            "INSERT INTO decisions (what, student, assignment, value, reason, by, at) VALUES"
            " (?, ?, ?, ?, ?, ?, ?)",
            (what, student, assignment, value, reason, by, time.time()),
        )

    def decisions(self, what=None, assignment=None):
        """Return all decisions, or those of a kind and an assignment, oldest first."""
        rows = self._file.execute(
            "SELECT what, student, assignment, value, reason, by, at FROM decisions WHERE ?1 IN"
            " (what, '') AND ?2 IN (assignment, '') ORDER BY number",
            (what or "", assignment or ""),
        )
        return [Decision(*row) for row in rows]

    def standing(self, what, assignment):
        """Return student id -> the value of the decision that counts, if any."""
        latest = {d.student: d.value for d in self.decisions(what, assignment)}
        return {student: value for student, value in latest.items() if value is not None}

    @property
    def late_rule(self):
        """Return the cost of a late day, as last set in class.toml."""
        decisions = self.decisions("late rule")
        return Rule(**json.loads(decisions[-1].value)) if decisions else Rule()

    def set_late_rule(self, rule):
        """Save the rule of class.toml if it differs from the previous one."""
        if rule != self.late_rule:
            self.decide("late rule", None, value=json.dumps(asdict(rule)))

    def due(self, assignment, student=None):
        """Return (due time for all or for `student`, whether it is an extension)."""
        return self._dues(assignment)(student)

    def _dues(self, assignment):
        """A function student -> due(); an extension never makes anything due earlier."""
        setting, extended = self.setting(f"due {assignment}"), self.standing("extended", assignment)
        due = float(setting) if setting else None

        def of(student):
            own = float(extended.get(student, "-inf"))
            return (due, False) if due is None or own <= due else (own, True)

        return of
