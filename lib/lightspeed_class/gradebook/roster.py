"""The students of a gradebook, and who hands in together."""

import json

from lightspeed_class.gradebook.marks import Marks
from lightspeed_class.gradebook.records import Student


class Roster(Marks):
    """The students of a class. Nobody is ever removed."""

    def add_student(self, id, name="", seed=None, **details):
        """Add a student to the roster, or update the entry. The first seed stays."""
        with self._transaction():
            row = self._file.execute("SELECT details FROM students WHERE id = ?", (id,)).fetchone()
            before = json.loads(row[0]) if row else {}
            self._file.execute(
                "INSERT INTO students VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET name ="
                " excluded.name, seed = coalesce(seed, excluded.seed), details = excluded.details",
                (id, name, seed, json.dumps(details)),
            )
            if bool(before.get("left")) != bool(has_left := details.get("left")):
                self._decide("left", id, "", "yes" if has_left else None, "the roster")
            if row and before.get("group", "") != (group := details.get("group", "")):
                self._decide("group", id, "", group or None, "the roster")

    def set_left(self, student, has_left, reason="", by=""):
        """Record that a student left the class, or is back; nothing else changes."""
        with self._transaction():
            one = self.student(student)
            details = one.details | {"left": "yes" * has_left}
            self._file.execute(
                "UPDATE students SET details = ? WHERE id = ?", (json.dumps(details), student)
            )
            self._decide("left", student, "", "yes" if has_left else None, reason, by)

    def students(self):
        rows = self._file.execute(
            "SELECT id, name, seed, details FROM students ORDER BY id"
        ).fetchall()
        return [Student(id, name, seed, json.loads(details)) for id, name, seed, details in rows]

    def student(self, id):
        """Return the student with this id. Raises KeyError."""
        return {s.id: s for s in self.students()}[id]

    def teams(self, assignment):
        """Return student id -> the ids of all members of the student's group, or only the student
        if class.toml makes the assignment individual.
        """
        alone = assignment in json.loads(self.setting("alone") or "[]")
        groups = {}
        for one in self.students():
            together = not alone and one.group
            groups.setdefault((bool(together), together or one.id), []).append(one.id)
        return {id: tuple(ids) for ids in groups.values() for id in ids}
