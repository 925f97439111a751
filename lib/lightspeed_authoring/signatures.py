"""Who has read a sentence and its condition together: chapters/signed.json.

A true condition can hold another sentence than the one that stands there now. So each pair of a
page's sentence and the condition that holds it has a signature, a hash of both. If either changes,
`check` asks anew, and `lightspeed statements PAGE --sign NAME` says that NAME, a second reader and
not the author, has read both and finds that the condition implies the sentence. A pair that nobody
but its author has read stands with an empty name. What no condition can hold is signed by itself:
each formula of a page, and each line of its boxes and cards.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from lightspeed_authoring.claims import claims
from lightspeed_authoring.notebooks import label, read
from lightspeed_authoring.prose import MATH, strings
from lightspeed_authoring.sentences import occurs, sentences

SIGNED = Path(__file__).parents[2] / "chapters/signed.json"


def pairs(path: Path) -> Iterator[tuple[str, int, str]]:
    """Each pair of a page's script: its signature, the line of the claim, and the sentence."""
    for cell in read(path):
        alone = [] if cell.cell_type != "markdown" else [m[0] for m in MATH.finditer(cell.source)]
        if {"takeaway", "card"} & {*cell.metadata.tags}:
            alone += cell.source.splitlines()
        for text in alone:
            yield _signature(text), cell.metadata.line, text
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
        f"{label(path)}:{line}: this or its condition is new: “{sentence}” Does what is asserted"
        f" imply it, or the law say it? Then `lightspeed statements {label(path)} --sign NAME`"
        for path in paths
        for signature, line, sentence in pairs(path)
        if signature not in signatures.get(label(path), {})
    ]


def sign(paths: list[Path], reader: str, signed: Path = SIGNED) -> int:
    """Sign what is new in these scripts, forget what is gone; how many pairs were new."""
    signatures, new = json.loads(signed.read_text("utf-8")) if signed.exists() else {}, 0
    for path in paths:
        before = signatures.get(label(path), {})
        signatures[label(path)] = {key: before.get(key, reader) for key, *_ in pairs(path)}
        new += len(signatures[label(path)].keys() - before.keys())
    signed.write_text(
        json.dumps(signatures, indent=0, sort_keys=True, ensure_ascii=False) + "\n", "utf-8"
    )
    return new


def read_by_two(signed: Path = SIGNED) -> tuple[int, int]:
    """How many pairs a second reader has signed, and how many pairs there are."""
    readers = [r for page in json.loads(signed.read_text("utf-8")).values() for r in page.values()]
    return sum(map(bool, readers)), len(readers)
