"""Statements in a page's source: held to a condition, or excused. No reader sees either.

In Markdown a gate stands behind its sentence and goes away with the white space before it:

    An H100 moves more bytes than an A100. {{holds h100.hbm_bandwidth > a100.hbm_bandwidth}}
    In 2009 nobody drew it so. {{because history}}

In a code cell it is a line that names words of a caption, an alt text or another string of that
cell. The line is taken out of the notebook; what stands between braces of an f-string is skipped.
A longer one goes on behind `#` and two spaces:

    # holds "bf16 spans what fp32 spans": bf16.exponent_bits == fp32.exponent_bits
    #   and bf16.max < fp32.max
    # because "Tables of formats often say": history

A condition is an expression that the page's own kernel evaluates: in Markdown where it stands, in
code after the cell has run. It must come to True (a bool, Python's or numpy's, and nothing else).
A reason begins with one of `REASONS`.
`lightspeed_authoring.statements` finds the sentences that have neither.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from lightspeed_authoring.prose import MATH, strings

REASONS = {
    "definition": "the sentence says what a word means",
    "history": "what was, or who said it; no law computes it",
    "quotation": "the words of a source",
    "algebra": "the derivation stands beside it",
    "measured elsewhere": "a test holds it; the reason names the test",
    "advice": "what to do, not what is",
    "design": "how the course, a format or a machine is made",
}
_GATE = re.compile(r"\s*\{\{(holds|because)\b(.+?)\}\}(?!\})", re.S)
_LINE = re.compile(
    r'^[ \t]*# (holds|because) "((?:[^"\\\n]|\\.)*)":[ \t]*(.*(?:\n[ \t]*#  .*)*)(?:\n|\Z)', re.M
)
_ALMOST = re.compile(r"^[ \t]*# (?:holds|because)\s*\"", re.M)
_EXPRESSION = "\ufffc"  # stands for what a sentence shows of an expression, a formula or code


class GateError(ValueError):
    """A gate that cannot be read; `line` is its line in the cell, from 0."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Gate:
    """What a sentence is held to. `line` is where it stands in the cell, from 0."""

    words: str
    line: int
    condition: str = ""
    reason: str = ""

    @property
    def python(self) -> str:
        """An expression that gives the type of the condition's value and the value, as text."""
        return f"(lambda held: f'{{type(held).__name__}} {{held!r:.80}}')({self.condition}\n)"

    def fault(self, found: str) -> str | None:
        """What is wrong if the kernel found this for `python`."""
        kind, _, value = found.partition(" ")
        if kind not in ("bool", "bool_"):
            what = f"is {value}, a {kind}; a condition is True or False"
        elif not value.endswith(("True", "True_")):
            what = "is false"
        else:
            return None
        return f"does not hold: {self.words}\n    {' '.join(self.condition.split())} {what}"


def held(value: object) -> bool:
    """Whether a condition came to True; TypeError for what is neither True nor False."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"a condition is True or False, not {value!r:.80}")
    return bool(value)


def refusal(reason: str) -> str | None:
    """What is wrong with a reason."""
    kind = next((kind for kind in REASONS if re.match(rf"{kind}(?![\w-])", reason)), None)
    if kind is None:
        return f"{reason!r} is not a reason; one begins with {', '.join(REASONS)}"
    if kind == "measured elsewhere" and "test" not in reason:
        return f"{reason!r}: which test measures it?"
    return None


def separate(source: str, markdown: bool, keep_lines: bool = False) -> tuple[str, list[Gate]]:
    """The source of a cell without its gates, and its gates.

    With `keep_lines` blanks take their place, and every line stays where it was.
    """
    gates = (
        [g for s in sentences(source) for g in s.gates]
        if markdown
        else list(_gates_of_code(source))
    )
    for gate in gates:
        if gate.reason and (wrong := refusal(gate.reason)):
            raise GateError(wrong, gate.line)
        if gate.condition:
            try:
                ast.parse(f"({gate.condition}\n)", mode="eval")
            except SyntaxError:
                raise GateError(
                    f"{gate.condition!r} is not a Python expression", gate.line
                ) from None
        elif not gate.reason:
            raise GateError("a gate without a condition or a reason", gate.line)
    gone = (lambda match: re.sub(r"[^\n]", " ", match[0])) if keep_lines else ""
    clean = (_GATE if markdown else _LINE).sub(gone, source)
    return (clean if keep_lines else clean.rstrip("\n") if gates and not markdown else clean), gates


def _gates_of_code(source: str) -> Iterator[Gate]:
    found = list(_LINE.finditer(source))
    for almost in _ALMOST.finditer(source):
        if not any(match.start() <= almost.start() < match.end() for match in found):
            line = source[: almost.start()].count("\n")
            raise GateError('a gate of a code cell is written # holds "words": EXPRESSION', line)
    texts = [text for _, text in strings(_LINE.sub("", source))] if found else []
    for match in found:
        kind, words, rest = match.groups()
        line = source[: match.start(1)].count("\n")
        rest = re.sub(r"\n[ \t]*#  +", "\n", rest).strip()
        if not any(occurs(words, text) for text in texts):
            raise GateError(f"no string of the cell has the words {words!r}", line)
        yield _gate(kind, rest, words, line)


def _gate(kind: str, rest: str, words: str, line: int) -> Gate:
    rest = rest.strip()
    return (
        Gate(words, line, condition=rest)
        if kind == "holds"
        else Gate(words, line, reason=" ".join(rest.split()))
    )


def occurs(words: str, text: str) -> bool:
    """Whether words stand in a text, however it breaks lines and whatever its expressions say."""
    return bool(words.strip()) and _plain(words) in _plain(text)


def _plain(text: str) -> str:
    text = re.sub(r"\{\{.+?\}\}(?!\})|\{[^{}]*\}", _EXPRESSION, text, flags=re.S)
    return " ".join(re.sub(rf"{_EXPRESSION}+", _EXPRESSION, text).split())


# --- sentences -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sentence:
    """A sentence of a Markdown text as written, where it begins (a line, from 0), and its gates.

    `masked` is what a reader gets of it as words: a formula or an expression is one character.
    """

    text: str
    masked: str
    line: int
    gates: tuple[Gate, ...] = field(default=())


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
_END = re.compile(r"[.!?]+[\"'”’)\]*_]*(?=[\s\0]|\Z)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|al|cf|vs|etc|approx|resp|Figs?|Sec|Eqs?|Ch|Nos?|Vol|pp?|Dr|Mr|Ms|Inc|St|ca)"
    r"|(?<![\w'’])[A-Z])\.\Z"
)


def sentences(markdown: str) -> list[Sentence]:
    """The sentences of a text, each with the gates that stand in it or right behind it.

    A heading, an item of a list and a cell of a table end a sentence. A gate that no words precede
    in its block belongs to the sentence before.
    """
    markdown = _QUOTED.sub(lambda m: " " * len(m[0]), markdown)
    mask = _FENCE.sub(lambda m: "\n" * len(m[0]), markdown)
    gates = {}
    for match in _GATE.finditer(mask):
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        gates[start] = _gate(match[1], match[2], "", markdown[:start].count("\n"))
        mask = mask[:start] + "\0" * (match.end() - start) + mask[match.end() :]
    for pattern in _MASKED:
        mask = pattern.sub(lambda m: _EXPRESSION * len(m[0]), mask)
    found: list[Sentence] = []
    for start, end in _pieces(mask):
        first = re.compile(r"[A-Za-z]{2}").search(mask, start, end)
        inside = [(at, gate) for at, gate in sorted(gates.items()) if start <= at < end]
        early = [gate for at, gate in inside if not first or at < first.start()]
        if early and not found:
            raise GateError("a gate stands behind its sentence", early[0].line)
        if early:
            found[-1] = _with(found[-1], early)
        if not first:
            continue
        words = mask[start:end].replace("\0", " ").strip().lstrip("#|-+* ")
        begins = start + len(mask[start:end]) - len(mask[start:end].lstrip())
        text = " ".join(
            _GATE.sub("", markdown[start:end]).strip().strip("|").lstrip("#|-+ ").split()
        )
        masked = " ".join(re.sub(rf"{_EXPRESSION}+", _EXPRESSION, words).split())
        found.append(
            _with(
                Sentence(text, masked, markdown[:begins].count("\n")),
                [g for _, g in inside if g not in early],
            )
        )
    return found


def _with(sentence: Sentence, gates: list[Gate]) -> Sentence:
    named = tuple(replace(gate, words=sentence.text) for gate in gates)
    return replace(sentence, gates=sentence.gates + named)


def _pieces(mask: str) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end in a masked text, the gates behind them included."""
    breaks = {m.end() for m in _BLOCK.finditer(mask)} | {
        at for m in _HEADING.finditer(mask) for at in m.span()
    }
    edges = [0, *sorted(breaks - {0, len(mask)}), len(mask)]
    for start, end in pairwise(edges):
        for stop in _END.finditer(mask, start, end):
            if not _ABBREVIATION.search(mask[start : stop.end()]):
                behind = re.compile(r"(?:\s*\0+)*").match(mask, stop.end(), end).end()
                yield start, behind
                start = behind
        if start < end:
            yield start, end
