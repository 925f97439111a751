"""The sentences of a text as a reader gets them, and whether words stand in one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from lightspeed_authoring.prose import MATH

_EXPRESSION = "\ufffc"  # stands for what a sentence shows of an expression, a formula or code


@dataclass(frozen=True)
class Sentence:
    """A sentence of a Markdown text as written, and where it begins (a line, from 0).

    `masked` is what a reader gets of it as words: a formula or an expression is one character.
    """

    text: str
    masked: str
    line: int


_MASKED = [
    re.compile(pattern, re.S | re.M)
    for pattern in (
        r"\{\{.+?\}\}(?!\})",
        MATH.pattern,
        r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)",
        r"(?<=\])\([^\s)]*(?:\s\"[^\"]*\")?\)",  # the target of a link
        r"</?[A-Za-z][^<>]*>",
        r"https?://[^\s)>\]]+",
    )
]
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|<!--.*?-->", re.S | re.M)
_QUOTED = re.compile(r"^[ \t]*>", re.M)
_BLOCK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+] |\d+[.)] |#+ |\|))|\|")
_HEADING = re.compile(r"^[ \t]*#+ [^\n]*\n?", re.M)
_END = re.compile(r"[.!?]+[\"'”’)\]*_]*(?=\s|\Z)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|al|cf|vs|etc|approx|resp|Figs?|Sec|Eqs?|Ch|Nos?|Vol|pp?|Dr|Mr|Ms|Inc|St|ca)"
    r"|(?<![\w'’])[A-Z])\.\Z"
)


def sentences(markdown: str) -> list[Sentence]:
    """The sentences of a text; a heading, an item of a list and a cell of a table end one."""
    markdown = _QUOTED.sub(lambda m: " " * len(m[0]), markdown)
    mask = _FENCE.sub(lambda m: "\n" * len(m[0]), markdown)
    for pattern in _MASKED:
        mask = pattern.sub(lambda m: _EXPRESSION * len(m[0]), mask)
    result = []
    for start, end in _pieces(mask):
        if not re.search(r"[A-Za-z]{2}", mask[start:end]):
            continue
        begins = start + len(mask[start:end]) - len(mask[start:end].lstrip())
        text = " ".join(markdown[start:end].strip().strip("|").lstrip("#|-+ ").split())
        words = mask[start:end].strip().lstrip("#|-+* ")
        masked = " ".join(re.sub(rf"{_EXPRESSION}+", _EXPRESSION, words).split())
        result.append(Sentence(text, masked, markdown[:begins].count("\n")))
    return result


def _pieces(mask: str) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end in a masked text."""
    breaks = {m.end() for m in _BLOCK.finditer(mask)} | {
        at for m in _HEADING.finditer(mask) for at in m.span()
    }
    edges = [0, *sorted(breaks - {0, len(mask)}), len(mask)]
    for start, end in pairwise(edges):
        for stop in _END.finditer(mask, start, end):
            if not _ABBREVIATION.search(mask[start : stop.end()]):
                yield start, stop.end()
                start = stop.end()
        if start < end:
            yield start, end


def occurs(words: str, text: str) -> bool:
    """Whether `words` occur in `text`, ignoring line breaks and the values of expressions."""
    return bool(words.strip()) and plain(words) in plain(text)


def plain(text: str) -> str:
    """Words as `occurs` compares them: an expression is one character, a line break a space."""
    text = re.sub(r"\{\{.+?\}\}(?!\})|\{[^{}]*\}", _EXPRESSION, text, flags=re.S)
    return " ".join(re.sub(rf"{_EXPRESSION}+", _EXPRESSION, text).split())
