"""Who has read a sentence and its condition together: chapters/signed.json.

A true condition can hold another sentence than the one that stands there now. So each pair of a
page's sentence and the condition that holds it has a signature, a hash of both. If either changes,
`check` asks anew, and `lightspeed statements PAGE --sign NAME` says that NAME, a second reader and
not the author, has read both and finds that the condition implies the sentence. A pair that nobody
but its author has read stands with an empty name. What no condition holds is signed by itself: each
formula of a page, each line of its boxes and cards, and, on pages, in captions, explorers,
questions, docs and the README, each sentence that states, gives a cause or a number, in digits or
in words. That asks a reader; it proves nothing.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from lightspeed_authoring.build import sources
from lightspeed_authoring.claims import claims
from lightspeed_authoring.notebooks import label, read
from lightspeed_authoring.prose import MATH, strings
from lightspeed_authoring.sentences import Sentence, occurs, sentences
from lightspeed_authoring.statements import ROOT, trigger

SIGNED = ROOT / "chapters/signed.json"
WORDS = (
    "README.md", "docs/*.md", "chapters/gallery.toml", "lib/lightspeed_course/content/*.md",
    "lib/lightspeed_course/explorers/*.py",
)  # fmt: skip
_SAYS = re.compile(
    r"""\b(?:because|so|since|therefore|thus|hence|why|as\ long\ as|half|thirds?|quarters?|tenths?
        |fifths?|two|three|four|five|six|seven|eight|nine|ten|dozens?|hundreds?|thousands?
        |millions?|billions?|bytes?|bits?|seconds?|milliseconds?|microseconds?|FLOPs?)\b""",
    re.I | re.X,
)
LABEL = 6  # words; a shorter string of code is a label


def files(names: list[str] | None = None) -> list[Path]:
    """The files whose sentences are signed: pages, and what else a reader reads."""
    others = [path for pattern in WORDS for path in sorted(ROOT.glob(pattern))]
    if not names:
        return [*sources(None), *others]
    found = [path for path in others if any(name in name_of(path) for name in names)]
    rest = [name for name in names if not any(name in name_of(path) for path in found)]
    return [*(sources(rest) if rest else ()), *found]


def name_of(path: Path) -> str:
    """Return a file's path within the course."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else label(path)


def pairs(path: Path) -> Iterator[tuple[str, int, str]]:
    """What is signed of a file: its signature, the line, and the sentence."""
    if path.suffix == ".py" and path.parent.name != "explorers":
        yield from _of_page(path)
    elif path.suffix == ".py":
        for line, text in strings(path.read_text("utf-8"), docstrings=False):
            yield from _alone(text, line, code=True)
    else:
        yield from _alone(path.read_text("utf-8"), 1)


def _alone(
    text: str, line: int, code: bool = False, holds: tuple[str, ...] = ()
) -> Iterator[tuple[str, int, str]]:
    """The sentences of a text that say something and that none of the anchors is in."""
    for sentence in sentences(text):
        if _says(sentence, code) and not any(occurs(words, sentence.text) for words in holds):
            yield _signature(sentence.text), line + sentence.line, sentence.text


def _says(sentence: Sentence, code: bool) -> bool:
    if code:
        return len(sentence.masked.split()) >= LABEL
    return bool("{{" in sentence.text or trigger(sentence) or _SAYS.search(sentence.masked))


def _of_page(path: Path) -> Iterator[tuple[str, int, str]]:
    """Each pair of a page's script, and what it says without a condition."""
    for cell in read(path):
        alone = [] if cell.cell_type != "markdown" else [m[0] for m in MATH.finditer(cell.source)]
        if {"takeaway", "card"} & {*cell.metadata.tags}:
            alone += cell.source.splitlines()
        for text in alone:
            yield _signature(text), cell.metadata.line, text
        code = cell.cell_type != "markdown"
        anchors = tuple(claim.anchor for claim in claims(cell.metadata.holds or ""))
        for line, text in strings(cell.source) if code else [(1, cell.source)]:
            yield from _alone(text, cell.metadata.line + line - 1, code, anchors)
        if not cell.metadata.holds:
            continue
        texts = [cell.source]
        if cell.cell_type != "markdown":
            texts = [text for _, text in strings(cell.source)]
        every = [s.text for text in texts for s in sentences(text)] + texts
        work = [n for n in ast.parse(cell.metadata.holds).body if not isinstance(n, ast.Assert)]
        before = "\n".join(map(ast.unparse, work))
        for claim in claims(cell.metadata.holds):
            sentence = next(text for text in every if occurs(claim.anchor, text))
            signature = _signature(sentence, ast.unparse(claim.tree), before)
            yield signature, cell.metadata.holds_line + claim.line, sentence


def _signature(text: str, *conditions: str) -> str:
    both = "\0".join((" ".join(text.split()), *conditions))
    return hashlib.sha256(both.encode()).hexdigest()[:12]


def unsigned(paths: list[Path], signed: Path = SIGNED) -> list[str]:
    """The pairs of these scripts that changed since somebody read both, a text each."""
    signatures = json.loads(signed.read_text("utf-8"))
    return [
        f"{name_of(path)}:{line}: this or its condition is new: “{sentence}” Does what is asserted"
        f" imply it, or the law say it? Then `lightspeed statements {name_of(path)} --sign NAME`"
        for path in paths
        for signature, line, sentence in pairs(path)
        if signature not in signatures.get(name_of(path), {})
    ]


def sign(paths: list[Path], reader: str, signed: Path = SIGNED) -> int:
    """Sign new sentences of these scripts, drop removed ones; return the number of new ones."""
    signatures, new = json.loads(signed.read_text("utf-8")) if signed.exists() else {}, 0
    for path in paths:
        before = signatures.get(name_of(path), {})
        signatures[name_of(path)] = {key: before.get(key, reader) for key, *_ in pairs(path)}
        new += len(signatures[name_of(path)].keys() - before.keys())
    if signed == SIGNED:  # of files that are gone nothing is left to sign
        signatures = {name: signatures[name] for name in signatures if (ROOT / name).is_file()}
    signed.write_text(
        json.dumps(signatures, indent=0, sort_keys=True, ensure_ascii=False) + "\n", "utf-8"
    )
    return new


def read_by_two(signed: Path = SIGNED) -> tuple[int, int]:
    """How many pairs a second reader has signed, and how many pairs there are."""
    readers = [r for page in json.loads(signed.read_text("utf-8")).values() for r in page.values()]
    return sum(map(bool, readers)), len(readers)
