"""The folder of a class: what it is called, how its assignments are given out, and where everything
lies.

    class.toml           the name and the choices of the instructor, explained in the file
    roster.csv           a template of the roster
    gradebook.sqlite     students, submissions, scores
    released/ collected/ feedback/ exports/ reports/     made when they are used
"""

import contextlib
import json
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from lightspeed.errors import meant
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.lateness import Rule
from lightspeed_class.notebooks import Assignment
from lightspeed_course.workspace import course_root

SETTINGS, BOOK, ROSTER = "class.toml", "gradebook.sqlite", "roster.csv"
FEEDBACK = ("full", "format")
TEMPLATE = """\
# A class of the course "Speed of Light". `lightspeed class --help` lists what can be done with it.
# Keep this folder to yourself: gradebook.sqlite holds the scores, and the secret that draws the
# hidden inputs.

name = {name}

# true: own numbers for each student, equally difficult. false: one notebook for all.
variants = true

# What `check` tells students in the notebooks that you release:
#   "full"     whether an answer is right and, if not, what may have happened, as in self-study
#   "format"   only that an answer was read, and as what
# Neither shows a worked solution. The library is open, though: a student who has it can compute
# any answer, and the seed in the notebook can be read. What a score rests on is here: your seeds,
# and functions tried on hidden inputs.
feedback = "full"

# What a late day costs; a day that has begun counts whole. Without this, late is only marked.
# Each student has `late_days` free ones in the whole class, spent in the order of the due times;
# every further one takes points off, never below 0.
# [late]
# points_per_day = 2
# late_days = 3

# Students with the same entry in a column `group` of the roster hand in together: one submission
# counts for all of them, the last of any that can be read. Not these assignments, though:
# alone = ["02_roofline"]

# Points of a question; those that are not named here have one.
# After a change: release, then regrade.
# [points.02_roofline]
# "roofline.budget_batch" = 3
"""


class ClassError(Exception):
    """A mistake and how to correct it, in one line for the instructor."""


@dataclass(frozen=True)
class ClassFolder:
    """A class folder and the settings of its class.toml."""

    root: Path
    name: str
    variants: bool
    feedback: str
    points: dict
    late: Rule = field(default_factory=Rule)
    alone: tuple = ()

    @classmethod
    def find(cls, folder=None):
        """Find the class in `folder`, the current folder or one above. Raises ClassError."""
        if folder is not None:
            root = Path(folder).resolve()
            if not (root / SETTINGS).is_file():
                raise ClassError(
                    f"{folder} is not a class: it has no {SETTINGS}. Make one: lightspeed class new"
                    f" {folder}"
                )
            return cls._load(root)
        here = Path.cwd()
        for root in (here, *here.parents):
            if (root / SETTINGS).is_file():
                return cls._load(root)
        raise ClassError(
            f"no {SETTINGS} here or in a folder above: go to the folder of the class, name it with"
            " --class DIR, or make one: lightspeed class new DIR"
        )

    @classmethod
    def _load(cls, root):
        path = root / SETTINGS
        try:
            table = tomllib.loads(path.read_text("utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            hint = (
                '; a text stands in quotation marks: name = "ML systems"'
                if "Invalid value" in str(error)
                else ""
            )
            raise ClassError(f"{path}: {error}{hint}") from None
        course = cls(
            root,
            table.get("name", root.name),
            table.get("variants", True),
            table.get("feedback", "full"),
            table.get("points", {}),
            _rule(path, table.get("late", {})),
            table.get("alone", ()),
        )
        for key, sound, expected in (
            ("name", isinstance(course.name, str), "a text"),
            ("variants", isinstance(course.variants, bool), "true or false"),
            ("feedback", course.feedback in FEEDBACK, '"full" or "format"'),
            (
                "points",
                _is_points(course.points),
                'tables such as [points.02_roofline] with lines such as "roofline.ridge" = 2',
            ),
            ("alone", _is_names(course.alone), 'a list of assignments, such as ["02_roofline"]'),
        ):
            if not sound:
                raise ClassError(f"{path}: {key} must be {expected}")
        keys = ("name", "variants", "feedback", "points", "late", "alone")
        # an older class.toml may have the table of an API that is no longer spoken
        if unknown := set(table) - {*keys, "canvas"}:
            raise ClassError(
                f"{path}: there is no setting {', '.join(sorted(unknown))}; there are"
                f" {', '.join(keys)}"
            )
        return course

    def book(self):
        """Return the gradebook, for use in a `with`. Raises ClassError if it has been lost."""
        path = self.root / BOOK
        used = [
            f"{folder}/"
            for folder in ("released", "collected")
            if any(p.is_file() for p in (self.root / folder).rglob("*"))
        ]
        # an empty one in its place would look as if nothing had been
        if used and not (path.exists() and path.stat().st_size):
            raise ClassError(
                f"{path} is missing or empty, but there are files in {' and '.join(used)}: it has"
                " the students, their seeds and all scores. Put it back from a backup; to begin"
                f" anew, move {' and '.join(used)} away"
            )
        if not os.access(self.root, os.W_OK):
            raise ClassError(
                f"{self.root} cannot be written, and a class keeps in it all that is done: is it"
                " mounted read-only, or somebody else's? Copy it to where you may write"
            )
        book = Gradebook(path)
        book.set_late_rule(self.late)
        if json.loads(book.setting("alone") or "[]") != (alone := list(self.alone)):
            book.setting("alone", json.dumps(alone))
        return book

    def released(self, name):
        return self.root / "released" / name

    def collected(self, name):
        return self.root / "collected" / name

    def assignment(self, path):
        """Return the assignment of a notebook, with class.toml's points. Raises ClassError."""
        try:
            assignment = Assignment.of(path, self.points.get(Path(path).stem))
        except SyntaxError as error:
            raise ClassError(f"{path}: a cell is not plain Python: {error}") from None
        except ValueError as error:
            raise ClassError(f"{path}: {error}") from None
        self._check_points(assignment.name, assignment.points)
        return assignment

    def check_points(self, book, releasing=""):
        """Check the points of class.toml for slips. Raises ClassError.

        `releasing`: name of the assignment being released, whose questions assignment() checks.
        """
        delivered, released = {path.stem: path for path in exercises()}, book.assignments()
        for name in self.points:
            points = {}
            if name in delivered:
                points |= Assignment.of(delivered[name]).points
            if name in released:
                points |= book.assignment(name).points
            if points and name != releasing:
                self._check_points(name, points)
            elif name != releasing:
                own = "a notebook of your own gets its points when it is released, not before"
                raise ClassError(
                    f"{SETTINGS} has [points.{name}], which is not an assignment;"
                    f" {meant(name, dict.fromkeys([*delivered, *released]))} ({own})"
                )

        for name in self.alone:
            if name not in {*delivered, *released, releasing}:
                raise ClassError(
                    f"{SETTINGS} says that {name} is handed in alone, which is not an assignment;"
                    f" {meant(name, dict.fromkeys([*delivered, *released]))}"
                )

    def _check_points(self, name, points):
        for unknown in sorted(set(self.points.get(name, {})) - set(points)):
            raise ClassError(
                f"{SETTINGS} gives points to {unknown}, which {name} does not ask;"
                f" {meant(unknown, points)}"
            )

    def changed_points(self, book, name):
        """Whether class.toml sets points that differ from the last release of an assignment."""
        released = book.assignment(name).points
        return released != {q: float(self.points.get(name, {}).get(q, 1)) for q in released}


def exercises():
    """Return the notebooks of the course that can be released."""
    return sorted((course_root() / "exercises").glob("[0-9]*.ipynb"))


def new(folder):
    """Create a class folder; an existing one stays. Raises ClassError if it holds other files."""
    root = Path(folder).resolve()
    if not (root / SETTINGS).is_file():
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise ClassError(
                f"{folder} is not empty and not a class; choose a folder that is new or empty"
            )
        try:
            root.mkdir(parents=True, exist_ok=True)
            root.chmod(0o700)
            write_whole(root / ROSTER, b"id,name,email\n")
            write_whole(
                root / SETTINGS,
                TEMPLATE.format(name=json.dumps(root.name, ensure_ascii=False)).encode(),
            )
        except OSError as error:
            raise ClassError(f"{folder} cannot be made: {error.strerror}") from None
    course = ClassFolder.find(root)
    with course.book():
        pass
    return course


def write_whole(path, content):
    """Write all of the bytes, or leave the old file unchanged."""
    with unfinished(path) as aside:
        aside.write_bytes(content)


@contextlib.contextmanager
def unfinished(path):
    """Yield a temporary path that replaces `path` on success and is removed on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{os.getpid()}.unfinished")
    try:
        yield aside
        with open(aside, "rb+") as file:  # whole on the disk before it is there by its name
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException as error:
        if isinstance(error, OSError):
            error.filename = error.filename or str(path)  # a full disk names none
        aside.unlink(missing_ok=True)
        raise


def sweep(folder):
    """Delete the unfinished files of killed processes anywhere in a folder."""
    for aside in folder.rglob(".*.unfinished"):
        pid = aside.name.split(".")[1]
        if pid.isdecimal() and not _runs(int(pid)):
            aside.unlink(missing_ok=True)


def _runs(pid):
    """Whether another process of this number is at work."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _rule(path, table):
    """The rule of the table [late]. Raises ClassError."""
    sound = {
        "points_per_day": lambda v: type(v) in (int, float) and 0 <= v < 1e6,
        "late_days": lambda v: type(v) is int and 0 <= v < 1e6,
    }
    if not isinstance(table, dict):
        raise ClassError(f"{path}: late must be a table [late] with {' and '.join(sound)}")
    for key, value in table.items():
        if key not in sound:
            raise ClassError(f"{path}: [late] has no {key}; {meant(key, sound)}")
        if not sound[key](value):
            whole = " whole" * (key == "late_days")
            raise ClassError(
                f"{path}: {key} in [late] is {value!r}; expected a{whole} number from 0"
            )
    return Rule(**table)


def _is_names(names):
    return isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)


def _is_points(points):
    tables = points.values() if isinstance(points, dict) else [None]
    return all(
        isinstance(t, dict) and all(type(v) in (int, float) and 0 <= v < 1e6 for v in t.values())
        for t in tables
    )
