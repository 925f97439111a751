"""`lightspeed check`: `gates` look at the sources and take seconds; `check_course` looks whether
what is committed is what a build makes, and takes minutes.
"""

import difflib
import json
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

import nbformat

from lightspeed_authoring.build import (
    BIBLIOGRAPHY,
    BIND,
    ROOT,
    bibliography,
    build,
    sources,
    unbound,
)
from lightspeed_authoring.new import todos
from lightspeed_authoring.notebooks import BuildError, label
from lightspeed_authoring.outputs import moved
from lightspeed_authoring.prose import typed_in_code, typed_numbers
from lightspeed_authoring.statements import loose_anchors, unquantified

WIDTH, BEFORE = 160, 40  # characters of a line that are shown, and of them before a difference


def gates(root: Path = ROOT) -> list[str]:
    """What is wrong in the sources, a text a fault, without running them: unwritten, typed numbers,
    claims without an anchor, no source, a stale bibliography, format, lint.
    """
    scripts = sources(root=root)
    with ThreadPoolExecutor(1) as beside:  # mypy, a process of its own, takes as long as the rest
        by_tools = beside.submit(tools) if root == ROOT else None
        faults = _in_the_sources(scripts, root)
    return faults + by_tools.result() if by_tools else faults


def _in_the_sources(scripts: list[Path], root: Path) -> list[str]:
    sourced = {label(path.with_suffix(".ipynb")) for path in scripts}
    sourced |= {name.replace("solutions/", "exercises/") for name in sourced}
    faults = [*todos(root), *(fault for path in scripts for fault in unbound(path))]
    faults += unbound_in_library()
    faults += [
        f"{label(path)}: no source makes this notebook"
        for folder in ("chapters", "solutions", "exercises")
        for path in sorted((root / folder).glob("*.ipynb"))
        if label(path) not in sourced
    ]
    if root != ROOT:
        return faults
    for path in scripts:
        with suppress(BuildError):  # a page that can't be read has said so already
            faults += loose_anchors([path]) + unquantified([path])
    if BIBLIOGRAPHY.read_text("utf-8") != bibliography():
        faults.append(
            "BIBLIOGRAPHY.md: not what the catalog's sources make; run `lightspeed build 00`"
        )
    return faults + unrecorded(root)


def unrecorded(root: Path) -> list[str]:
    """Return the torch scripts that differ from chapters/beside.toml."""
    record = tomllib.loads((root / "chapters" / "beside.toml").read_text("utf-8"))
    code = {p.stem: p.read_text("utf-8") for p in (root / "benchmarks/beside").glob("[0-9]*.py")}
    return [
        f"benchmarks/beside/{name}.py: chapters/beside.toml has another text of it; run"
        f" `python benchmarks/beside/record.py {name}`, with a Python that has torch"
        for name in sorted({*record, *code})
        if record.get(name, {}).get("code") != code.get(name)
    ]


def tools() -> list[str]:
    """Return unformatted files, lint findings, and type errors."""
    faults = []
    options = ["--output-format", "concise", "--no-cache"]
    for words in (
        ["ruff", "format", "--check", *options],
        ["ruff", "check", *options],
        ["mypy", "--no-error-summary"],
    ):
        process = subprocess.run(
            [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True
        )
        if process.returncode:
            faults += [*process.stdout.splitlines(), *process.stderr.splitlines()]
    return faults


def check_course(names: list[str] | None = None, root: Path = ROOT) -> list[str]:
    """What a fresh build would change in the committed notebooks, a text each; nothing is timed."""
    with tempfile.TemporaryDirectory(prefix="lightspeed-check-") as folder:
        fresh = Path(folder)
        faults = build(sources(names, root), fresh, committed=root)
        for file in sorted(fresh.glob("*/*.ipynb")):
            name = file.relative_to(fresh)
            if (root / name).exists():
                faults += differences(root / name, file)
            else:
                faults.append(f"{name}: missing; run `lightspeed build`")
    return faults


def differences(committed: Path, fresh: Path) -> list[str]:
    """How a committed notebook differs from a fresh build of it, cell by cell."""
    if committed.read_bytes() == fresh.read_bytes():
        return []
    name, differences, identical = label(committed), [], True
    old, new = (nbformat.read(path, as_version=4).cells for path in (committed, fresh))
    matcher = difflib.SequenceMatcher(
        None, [cell.id for cell in old], [cell.id for cell in new], autojunk=False
    )
    for _, a, b, c, d in matcher.get_opcodes():
        for index, (before, right) in enumerate(zip_longest(old[a:b], new[c:d]), c):
            if before is None or right is None:
                cell, what = (
                    (right, "is missing") if before is None else (before, "is not in the source")
                )
                differences.append(
                    f"{name}: cell {index} ({cell.id}) {what}: {cell.source.splitlines()[0]}"
                )
                continue
            for part in sorted({*before, *right}):
                where = f"{name}: cell {index} ({right.id}): {part}"
                if part == "outputs":
                    identical &= before.outputs == right.outputs
                    is_timing = "timed" in right.metadata.get("tags", [])
                    faults = moved(before.outputs, right.outputs, is_timing)
                    differences += [f"{where}: {fault}" for fault in faults]
                elif before.get(part) != right.get(part):
                    differences.append(f"{where}{_diff(before.get(part), right.get(part))}")
    if differences or not identical:  # outputs may differ by what no reader can tell apart
        return differences
    return [f"{name}: the layout of the file; run `lightspeed build`"]


def _diff(committed, fresh) -> str:
    """The lines that differ, each from shortly before the place where it does."""
    old, new = (
        (value if isinstance(value, str) else json.dumps(value, indent=1)).splitlines()
        for value in (committed, fresh)
    )
    hunks = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        for pair in zip_longest(old[a:b], new[c:d]) if kind != "equal" else ():
            start = _start(*pair)
            hunks += [
                f"\n    {sign}{'…' * bool(start)}{line[start : start + WIDTH]}"
                for sign, line in zip("-+", pair, strict=True)
                if line is not None
            ]
    return "".join(hunks)[:1200]


def _start(old: str | None, new: str | None) -> int:
    """Where to begin to show two lines, so that what differs is seen."""
    if old is None or new is None or max(len(old), len(new)) <= WIDTH:
        return 0
    same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(old))
    return max(0, same - BEFORE)


def unbound_in_library() -> list[str]:
    """Every number typed in what the library shows readers: questions, explorers, rebuttals."""
    from lightspeed_course.content.wrong_claims import claims
    from lightspeed_course.practice.question_files import of_topic, texts
    from lightspeed_course.practice.question_text import QuestionError

    course = Path(__file__).parents[1] / "lightspeed_course"
    faults = [
        f"{label(file)}:{line}: typed number: {text}; {BIND}"
        for file in sorted([*course.glob("content/*.py"), *course.glob("explorers/*.py")])
        for line, text in typed_in_code(
            file.read_text(encoding="utf-8"), comments=False, docstrings=False
        )
    ]
    questions = []
    for file in sorted(course.glob("content/*.md")):
        try:
            of_topic(file.stem)
            questions += texts(file.stem)
        except QuestionError as error:
            faults.append(f"content/{error}")
    for text in questions:
        words = [(prose, text.line) for prose in (text.prompt, *text.options.values(), text.after)]
        words += [(prose, line) for prose, _, line in text.steps]
        words += [(prose, line) for _, _, _, prose, line in text.misconceptions]
        if "why" in text.facts:
            words.append(text.facts["why"])
        faults += [
            f"content/{text.id.partition('.')[0]}.md:{line}: {text.id}: typed number: {typed}; "
            "make it a parameter, as `n = given(12)`, or a name of the Python file beside"
            for prose, line in words
            for _, typed in typed_numbers(prose.replace("}}}", "}} }"))
        ]
    for claim in claims():
        for text in (claim.because, claim.sound):
            faults += [
                f"chapters/gallery.toml: {claim.id}: typed number: {typed}; {BIND}"
                for _, typed in typed_numbers(text)
            ]
    return faults
