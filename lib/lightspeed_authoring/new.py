"""Skeletons for authors: a chip, a question, a law or a chapter, with a TODO for
all that is missing.

Nothing is written over: a chip, a question and a law are added at the end of the file where
their like stands, a chapter makes files of its own. `todos` lists what is left; `lightspeed check`
fails on it.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from string import Template

from lightspeed.errors import did_you_mean
from lightspeed_authoring.notebooks import BuildError

ROOT = Path(__file__).parents[2]
KINDS = ("chip", "question", "law", "chapter")
SHAPES = {
    "chip": (r"[a-z]\w*", "a key such as mychip"),
    "question": (r"[a-z]\w*\.[a-z]\w*", "topic.name, such as roofline.my_question"),
    "law": (r"[a-z]\w*\.[a-z]\w*", "module.function, such as roofline.my_law"),
    "chapter": (r"\d\d_[a-z]\w*", "number_name, such as 13_mychapter"),
}


def new(kind: str, name: str, root: Path = ROOT) -> list[Path]:
    """Write the skeleton and return its files. Raises BuildError for a malformed or existing name,
    or a missing file.
    """
    shape, such_as = SHAPES[kind]
    if not re.fullmatch(shape, name):
        raise BuildError(f"'{name}' is not the name of a {kind}: expected {such_as}")
    return {"chip": _chip, "question": _question, "law": _law, "chapter": _chapter}[kind](
        name, root
    )


def todos(root: Path = ROOT) -> Iterator[str]:
    """Every TODO in catalog, laws, questions and pages: "file:line: what is missing"."""
    files = [
        *root.glob("lib/lightspeed/**/*.py"),
        *root.glob("lib/lightspeed/catalog/*.toml"),
        *root.glob("lib/lightspeed_course/content/*.[mp][dy]"),
        *root.glob("chapters/*.py"),
        *root.glob("solutions/*.py"),
    ]
    for path in sorted(files):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if match := re.search(r"\bTODO\b:?.*", line):
                yield f"{path.relative_to(root)}:{number}: {match[0].strip()}"


def _chip(name: str, root: Path) -> list[Path]:
    # A key is one of the whole catalog: a second entry would hide the first without a word.
    for file in sorted((root / "lib/lightspeed/catalog").glob("*.toml")):
        _free(file, rf"^\[{name}\]", name)
    return [_add(root / "lib/lightspeed/catalog/accelerators.toml", "chip.toml", name=name)]


def _question(name: str, root: Path) -> list[Path]:
    topic, _, _ = name.partition(".")
    file = _there(root / "lib/lightspeed_course/content", topic, "topic", ".md")
    _free(file, rf"^## {re.escape(name)}$", name)
    chapter = re.search(r"^- chapter: (\w+)$", file.read_text("utf-8"), re.MULTILINE)
    if not chapter:
        raise BuildError(f"{file.relative_to(root)} does not state its chapter")
    page = root / "solutions" / f"{chapter[1]}.py"
    return [_add(file, "question.md", name=name), _add(page, "question_page.py", name=name)]


def _law(name: str, root: Path) -> list[Path]:
    module, _, function = name.partition(".")
    file = _there(root / "lib/lightspeed", module, "module")
    _free(file, rf"^def {function}\(", name)
    _import(file, "lightspeed.elementwise", "Result", "Value")
    _import(file, "lightspeed.law", "law", "nonnegative", "positive")
    _export(file, function)
    return [_add(file, "law.py", name=function)]


def _chapter(name: str, root: Path) -> list[Path]:
    names = (f"chapters/{name}.py", f"chapters/{name}_proof.py", f"solutions/{name}.py")
    files = [root / one for one in names]
    for file in files:
        if file.exists():
            raise BuildError(f"{file.relative_to(root)} already exists and is not overwritten")
    for file, skeleton in zip(files, ("lesson.py", "proof.py", "solutions.py"), strict=True):
        values = {"number": name[:2], "name": name, "n": str(int(name[:2]))}
        file.write_text(_skeleton(skeleton, **values), encoding="utf-8")
    return files


def _there(folder: Path, name: str, what: str, suffix: str = ".py") -> Path:
    file = folder / f"{name}{suffix}"
    if not file.exists():
        names = sorted(path.stem for path in folder.glob(f"[a-z]*{suffix}"))
        hint = did_you_mean(name, names) or f"There are {', '.join(names)}."
        raise BuildError(f"there is no {what} '{name}'. {hint}")
    return file


def _free(file: Path, pattern: str, name: str) -> None:
    if re.search(pattern, file.read_text("utf-8"), re.MULTILINE):
        more = (
            ", as a chip that only a table of measurements names: fill it up there, or move it to"
            " accelerators.toml, where the explorers and the chapters see it"
        )
        hint = more if file.name == "tested.toml" else ""
        raise BuildError(f"{file.name} has {name} already{hint}")


def _add(file: Path, skeleton: str, /, **values: str) -> Path:
    text = file.read_text("utf-8").rstrip("\n") + "\n" + _skeleton(skeleton, **values)
    file.write_text(text, encoding="utf-8")
    return file


def _import(file: Path, module: str, *names: str) -> None:
    """Import what a skeleton uses and the file does not."""
    text = file.read_text("utf-8")
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
    there = {alias.asname or alias.name for node in imports for alias in node.names}
    if lacks := [name for name in names if name not in there]:
        lines = text.splitlines(keepends=True)
        first = next(node.lineno for node in imports if node.module != "__future__")
        lines.insert(first - 1, f"from {module} import {', '.join(lacks)}\n")
        file.write_text("".join(lines), encoding="utf-8")


def _export(file: Path, name: str) -> None:
    """Put a name at its place in the module's `__all__`, laid out as the library's are."""
    text = file.read_text("utf-8")
    there = re.search(r"^__all__ = (\(.*?\))(  # fmt: skip)?$", text, re.MULTILINE | re.DOTALL)
    if not there:
        raise BuildError(f"{file.name} has no line that begins with __all__ = (")
    names = [*ast.literal_eval(there[1])]
    names.insert(sum(not (other.islower() and other > name) for other in names), name)
    inside = ", ".join(f'"{one}"' for one in names)
    line = f"__all__ = ({inside})"
    if len(line) > 100:
        lines = textwrap.wrap(f"{inside},", 90, break_on_hyphens=False)
        line = "\n".join(("__all__ = (", *(f"    {row}" for row in lines), ")  # fmt: skip"))
    file.write_text(text.replace(there[0], line, 1), encoding="utf-8")


def _skeleton(file: str, /, **values: str) -> str:
    text = (Path(__file__).parent / "skeletons" / f"{file}.txt").read_text("utf-8")
    return Template(text).safe_substitute(values)
