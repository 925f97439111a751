"""The files that decide a grade: the grader, what it imports however far down, the questions, and
the laws. What else is in the packages, such as an explorer, has no say.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

GRADER = "lightspeed_class/grading/grade.py"
# What nothing imports by its name: questions are found in their folder, and a submission has an
# interpreter of its own, with all laws.
SCRIPTS = ("lightspeed_class/grading/student.py",)
FOLDERS = ("lightspeed", "lightspeed_course/content", "lightspeed_class/grading/inside")
DATA = {".toml", ".txt", ".md"}
# A parser would take a second, in each process that grades.
_IMPORT = re.compile(
    r"^[ \t]*(?:from (lightspeed[\w.]*) import (?:\(([^)]*)\)|(.*))|import (lightspeed[\w.]*))",
    re.MULTILINE,
)


def deciding(home: Path) -> list[Path]:
    """Return the files below `home` that affect scores. Raises FileNotFoundError."""
    waiting = [home / name for name in (GRADER, *SCRIPTS)]
    for folder in FOLDERS:
        inside = [path for path in (home / folder).rglob("*") if path.suffix in {".py", *DATA}]
        if not inside:
            raise FileNotFoundError(f"{home / folder}: expected files that decide a grade")
        waiting += inside
    files: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        files.add(path)
        if path.suffix == ".py":
            waiting += _imported(path.read_text("utf-8"), home)
            # What a module reads lies beside it.
            waiting += (beside for beside in path.parent.iterdir() if beside.suffix in DATA)
    return sorted(files)


@cache
def _imported(text: str, home: Path) -> tuple[Path, ...]:
    """The files of ours that a module imports, wherever in it, and the packages around them."""
    return tuple(_files(text, home))


def _files(text: str, home: Path) -> Iterator[Path]:
    for source, several, one, module in _IMPORT.findall(text):
        names = re.findall(r"\w+", several or one) if source else []
        for name in [source or module, *(f"{source}.{name}" for name in names)]:
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                path = home.joinpath(*parts[:end])
                files = (path.with_name(f"{path.name}.py"), path / "__init__.py")
                yield from (file for file in files if file.is_file())
