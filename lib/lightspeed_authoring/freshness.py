"""Whether what is committed is what a build makes, and whether what the library shows readers
binds its numbers: `lightspeed check`.
"""

from __future__ import annotations

import difflib
import json
import tempfile
from itertools import zip_longest
from pathlib import Path

import nbformat

from lightspeed_authoring.build import BIBLIOGRAPHY, ROOT, bibliography, build, sources
from lightspeed_authoring.notebooks import label
from lightspeed_authoring.prose import typed_in_code, typed_numbers
from lightspeed_authoring.statements import ungated


def check_course(names: list[str] | None = None, root: Path = ROOT) -> list[str]:
    """What a fresh build would change in the committed notebooks, one text a difference; empty
    when nothing.
    """
    scripts = sources(names, root)
    with tempfile.TemporaryDirectory(prefix="lightspeed-check-") as folder:
        fresh = Path(folder)
        found = build(scripts, fresh, kept=root)
        for made in sorted(fresh.glob("*/*.ipynb")):
            name = made.relative_to(fresh)
            if (root / name).exists():
                found += differences(root / name, made)
            else:
                found.append(f"{name}: missing; run `lightspeed build`")
    if root == ROOT and not names and BIBLIOGRAPHY.read_text("utf-8") != bibliography():
        found.append("BIBLIOGRAPHY.md: not what the catalog's sources make; run `lightspeed build`")
    if not names:
        found += unbound_in_library() + ungated()
        sourced = {label(path.with_suffix(".ipynb")) for path in scripts}
        sourced |= {name.replace("solutions/", "exercises/") for name in sourced}
        stray = sorted(
            path
            for folder in ("chapters", "solutions", "exercises")
            for path in (root / folder).glob("*.ipynb")
        )
        found += [
            f"{label(path)}: no source makes this notebook"
            for path in stray
            if label(path) not in sourced
        ]
    return found


def differences(committed: Path, fresh: Path) -> list[str]:
    """How a committed notebook differs from a fresh build of it, cell by cell."""
    if committed.read_bytes() == fresh.read_bytes():
        return []
    name, found = label(committed), []
    old, new = (nbformat.read(path, as_version=4).cells for path in (committed, fresh))
    matcher = difflib.SequenceMatcher(
        None, [cell.id for cell in old], [cell.id for cell in new], autojunk=False
    )
    for _, a, b, c, d in matcher.get_opcodes():
        for index, (left, right) in enumerate(zip_longest(old[a:b], new[c:d]), c):
            if left is None or right is None:
                cell, what = (
                    (right, "is missing") if left is None else (left, "is not in the source")
                )
                found.append(
                    f"{name}: cell {index} ({cell.id}) {what}: {cell.source.splitlines()[0]}"
                )
                continue
            for part in sorted({*left, *right}):
                if left.get(part) != right.get(part):
                    found.append(
                        f"{name}: cell {index} ({right.id}):"
                        f" {part}{_diff(left.get(part), right.get(part))}"
                    )
    return found or [f"{name}: the layout of the file; run `lightspeed build`"]


def _diff(committed, fresh) -> str:
    texts = [
        value if isinstance(value, str) else json.dumps(value, indent=1)
        for value in (committed, fresh)
    ]
    lines = list(difflib.unified_diff(*(text.splitlines() for text in texts), n=0, lineterm=""))[2:]
    return "".join(f"\n    {line[:160]}" for line in lines if not line.startswith("@@"))[:1200]


def unbound_in_library() -> list[str]:
    """Every number typed in what the library shows readers: questions, explorers and the
    rebuttals of the gallery.
    """
    from lightspeed_course.content.wrong_claims import claims
    from lightspeed_course.practice.question_files import texts
    from lightspeed_course.practice.questions import topics

    package = Path(__file__).parents[1]
    found = [
        f"{label(file)}:{line}: typed number: {text}"
        for file in sorted([*package.glob("content/*.py"), *package.glob("explorers/*.py")])
        for line, text in typed_in_code(
            file.read_text(encoding="utf-8"), comments=False, docstrings=False
        )
    ]
    for text in (text for topic in topics() for text in texts(topic)):
        words = [text.prompt, *text.options.values(), *(s[0] for s in text.steps), text.after]
        words += [*(m[3] for m in text.misconceptions), text.facts.get("why", ("",))[0]]
        for said in words:
            found += [
                f"content/{text.id.partition('.')[0]}.md: {text.id}: typed number: {typed}"
                for _, typed in typed_numbers(said.replace("}}}", "}} }"))
            ]
    for claim in claims():
        for text in (claim.because, claim.sound):
            found += [
                f"chapters/gallery.toml: {claim.id}: typed number: {typed}"
                for _, typed in typed_numbers(text)
            ]
    return found
