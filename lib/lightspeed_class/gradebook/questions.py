"""What was asked, version by version: the cells and points of each release, and what each seed drew
(lightspeed_class/asked.py). Both are only added; of a seed in a version, the last one counts.
"""

import hashlib
import json
import re
import time
import zlib
from dataclasses import asdict

from lightspeed_class.gradebook.roster import Roster
from lightspeed_class.notebooks import Assignment
from lightspeed_class.prose import Prose

# in the bytes of a notebook, whose quotation marks may be escaped
VERSION = re.compile(rb"""LIGHTSPEED_VERSION\\?["']?\]? ?= ?\\?["'](\d{1,6})\\?["']""")
UNVERSIONED = ""  # what was released by a course that named none


class Questions(Roster):
    """Assignments and their questions."""

    def add_assignment(self, assignment, seeded=True, version=UNVERSIONED):
        """Save an assignment's questions, as a release and as the latest. `seeded`: each student
        has their own variant. If points have changed, manual marks keep their share of them.
        """
        record = {"cells": assignment.cells, "points": assignment.points}
        if assignment.prose:
            record["prose"] = {q: asdict(prose) for q, prose in assignment.prose.items()}
        content = json.dumps(record)
        with self._transaction():
            now = self._file.execute(
                "SELECT content, seeded FROM assignments WHERE name = ? ORDER BY number DESC",
                (assignment.name,),
            )
            if (before := now.fetchone()) != (content, seeded):
                old_points = json.loads(before[0])["points"] if before else {}
                now_of = {q: p for q, p in assignment.points.items() if p != old_points.get(q, p)}
                if factors := {q: p / old_points[q] for q, p in now_of.items() if old_points[q]}:
                    self._scale(assignment.name, factors)
                self._file.execute(
                    "INSERT INTO assignments (name, content, seeded, at) VALUES (?, ?, ?, ?)",
                    (assignment.name, content, seeded, time.time()),
                )
            if version and self._released(assignment.name)[-1:] != [(version, content)]:
                self._file.execute(
                    "INSERT INTO released (assignment, version, content, at) VALUES (?, ?, ?, ?)",
                    (assignment.name, version, content, time.time()),
                )

    def assignments(self):
        return [
            name
            for (name,) in self._file.execute(
                "SELECT name FROM assignments GROUP BY name ORDER BY min(number)"
            )
        ]

    def assignment(self, name, version=None):
        """Return the latest version, or `version` with today's points. Raises KeyError."""
        latest = self.versions(name)[0]
        contents = dict(self._released(name))
        if version not in contents or version == self.version(name):
            return latest
        then = _assignment(name, contents[version])
        points = {q: latest.points.get(q, p) for q, p in then.points.items()}
        return Assignment(name, then.cells, points, then.prose)

    def versions(self, name):
        """Return all versions ever saved, latest first. Raises KeyError."""
        return [_assignment(name, content) for content, _ in self._versions(name)]

    def kinds(self, name):
        """Return the kinds released, latest first: True for own variants, False for one."""
        return list(dict.fromkeys(bool(seeded) for _, seeded in self._versions(name)))

    def seed(self, assignment, student):
        """Return the seed of a student's variants in the latest version; None if all share one."""
        return self.student(student).seed if self.kinds(assignment)[0] else None

    def version(self, name, label=None):
        """Return the version of a notebook labelled `label`; the latest if empty or unknown."""
        versions = [version for version, _ in self._released(name)]
        if label in versions or (label == UNVERSIONED and self.asked_seeds(name, UNVERSIONED)):
            return label
        return versions[-1] if versions else UNVERSIONED

    def given(self, name):
        """Return student id -> the versions given to the student's group."""
        released = json.loads(self.setting(f"release {name}") or "{}").get("students", {})
        return {
            student: list(map(str, (v for one in team for v in released.get(one, ()))))
            for student, team in self.teams(name).items()
        }

    def versions_of(self, name):
        """Return a function that gives the version a submission is graded by: the version it names,
        if its student received it, else the latest that they received.
        """
        releases, unversioned = self.given(name), bool(self.asked_seeds(name, UNVERSIONED))

        def version_of(submission):
            release, mine = submission.version, releases.get(submission.student) or ()
            if mine and release not in mine and not (release == UNVERSIONED and unversioned):
                release = mine[-1]
            return self.version(name, release)

        return version_of

    def keep_asked(self, name, version, draws):
        """Save the draws of each seed: seed (None: shared by all) -> question -> data."""
        with self._transaction():
            self._file.executemany(
                "INSERT INTO asked (assignment, version, seed, content, at) VALUES (?, ?, ?, ?, ?)",
                [
                    (name, version, seed or "", zlib.compress(json.dumps(d).encode()), time.time())
                    for seed, d in draws.items()
                ],
            )

    def asked(self, name, version, seed, at=None):
        """Return question -> data drawn by a seed in a version at a time; None if not saved."""
        rows = self._file.execute(
            "SELECT content FROM asked WHERE assignment = ?1 AND version = ?2 AND seed = ?3"
            " ORDER BY at > coalesce(?4, at), CASE WHEN at > ?4 THEN number ELSE -number END",
            (name, version, seed or "", at),
        )
        row = rows.fetchone()
        return json.loads(zlib.decompress(row[0])) if row else None

    def asked_seeds(self, name, version):
        """Return the seeds whose draws are saved; None stands for a variant shared by all."""
        rows = self._file.execute(
            "SELECT DISTINCT seed FROM asked WHERE assignment = ? AND version = ?", (name, version)
        )
        return {seed or None for (seed,) in rows}

    def keep_library(self, name, version, libraries, exercise=b""):
        """Save the libraries that run a version's answers from now on, in order of priority, and
        the notebook that the version was made from.
        """
        contents = {hashlib.sha256(c).hexdigest(): c for c in (*libraries, exercise) if c}
        *digests, source = contents if exercise else (*contents, "")
        with self._transaction():
            self._file.executemany(
                "INSERT INTO contents VALUES (?, ?) ON CONFLICT DO NOTHING", contents.items()
            )
            self._file.execute(
                "INSERT INTO imported (assignment, version, digests, exercise, at) VALUES (?, ?, ?,"
                " ?, ?)",
                (name, version, " ".join(digests), source, time.time()),
            )

    def libraries(self, name, version, at=None):
        """Return the packed libraries that run a version's answers at a time; () if none."""
        rows = self._file.execute(
            "SELECT digests FROM imported WHERE assignment = ?1 AND version = ?2 ORDER BY"
            " at > coalesce(?3, at), CASE WHEN at > ?3 THEN number ELSE -number END",
            (name, version, at),
        )
        row = rows.fetchone()
        return tuple(map(self._content, row[0].split())) if row else ()

    def exercise(self, name, version):
        """Return the bytes of the notebook a version was made from; b"" if not saved."""
        row = self._file.execute(
            "SELECT exercise FROM imported WHERE assignment = ? AND version = ? AND exercise != ''",
            (name, version),
        ).fetchone()
        return self._content(row[0]) if row else b""

    def _content(self, digest):
        row = self._file.execute("SELECT content FROM contents WHERE digest = ?", (digest,))
        return row.fetchone()[0]

    def _released(self, name):
        """[(version, content)], the latest last."""
        return self._file.execute(
            "SELECT version, content FROM released WHERE assignment = ? ORDER BY number", (name,)
        ).fetchall()

    def _versions(self, name):
        rows = self._file.execute(
            "SELECT content, seeded FROM assignments WHERE name = ? ORDER BY number DESC", (name,)
        ).fetchall()
        if not rows:
            raise KeyError(name)
        return rows


def named_version(content):
    """Return the first version named in a notebook's bytes; "" if none is named."""
    return next(iter(named_versions(content)), UNVERSIONED)


def named_versions(content):
    """Return all versions named in a notebook's cells, in order."""
    return [version.decode() for version in VERSION.findall(content or b"")]


def _assignment(name, content):
    record = json.loads(content)
    return Assignment(
        name,
        {cell: tuple(map(tuple, pairs)) for cell, pairs in record["cells"].items()},
        record["points"],
        {q: Prose(**prose) for q, prose in record.get("prose", {}).items()},
    )
