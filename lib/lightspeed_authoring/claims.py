"""What a page claims stands as plain Python in a cell right behind it, which no reader sees:

    # %% [markdown]
    # The gaps close: in the first row they are largest, and the closer to full load, the longer
    # is the wait.

    # %% tags=["holds"]
    assert gaps[0] == max(gaps) and gaps[-1] < 1e-4, "in the first row"
    assert waits_at(8) < waits_at(9), "the closer to full load"

The string is the *anchor*: words of one sentence of the Markdown before it, or of a caption, an alt
text or another string of the code cell before it; what stands between braces there is skipped. Of a
sentence that compares, ranks or counts out, one anchor has the words that make it do so. The
condition is an ordinary expression that reads at least one name of the page, and comes to True or
False, nothing else. A cell of this kind may also import and assign what its conditions need: it
runs in the page's own kernel, where it stands, on a copy of the page's names.
"""

import ast
import builtins
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lightspeed_authoring.prose import strings
from lightspeed_authoring.sentences import occurs, sentences
from lightspeed_show.bound import held

# Names that know nothing of a page.
_NEUTRAL = {*dir(builtins), "math", "np", "itertools"}


class ClaimError(ValueError):
    """A claim that cannot be read; `line` is its line in the cell, from 0."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Claim:
    """The words of a page that a condition holds. `line` is where it stands in its cell, from 0."""

    anchor: str
    condition: str
    line: int

    @property
    def tree(self) -> ast.expr:
        return ast.parse(f"({self.condition}\n)", mode="eval").body


def claims(source: str) -> list[Claim]:
    """The claims of a `holds` cell; ClaimError for one that has no anchor or reads no name."""
    for line, text in enumerate(source.split("\n")):
        if re.match(r"#( #|\s*\Z)", text):
            raise ClaimError("a text that no reader would see: it needs a # %% [markdown]", line)
    result, own = [], {}
    for node in ast.parse(source).body:
        line = node.lineno - 1
        if not isinstance(node, ast.Assert):
            if any(isinstance(inner, ast.Assert) for inner in ast.walk(node)):
                raise ClaimError("a claim stands by itself: assert all(... for ...)", line)
            names = _names(node, ast.Load, own)
            own |= dict.fromkeys(_names(node, ast.Store), names)
            continue
        if not (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str)):
            raise ClaimError('a claim names the words it holds: assert CONDITION, "words"', line)
        condition = ast.get_source_segment(source, node.test) or ""
        if not _names(node.test, ast.Load, own) - _NEUTRAL:
            raise ClaimError(
                f"{_one_line(condition)} reads no name of the page: it says nothing about it", line
            )
        result.append(Claim(node.msg.value, condition, line))
    return result


def _names(node: ast.AST, context: type, own: Mapping[str, set[str]] = {}) -> set[str]:
    """The names that code reads or sets; one that the cell set itself stands for what that read."""
    every = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    bound = {n.id for n in every if isinstance(n.ctx, ast.Store)}
    if context is ast.Store:
        return bound
    names = {n.id for n in every if isinstance(n.ctx, ast.Load)} - bound
    return set().union(*(own.get(name, {name}) for name in names))


def check_anchors(claims: list[Claim], text: str, markdown: bool) -> None:
    """ClaimError unless each anchor stands in one sentence of the text, or a string of a cell."""
    texts = [s.text for s in sentences(text)] if markdown else [t for _, t in strings(text)]
    for claim in claims:
        places = sum(occurs(claim.anchor, each) for each in texts)
        if not places or (markdown and places > 1):
            where = "sentence of the text" if markdown else "string of the cell"
            many = "no" if not places else "more than one"
            raise ClaimError(f"{many} {where} before it has the words {claim.anchor!r}", claim.line)


# --- in the page's kernel -------------------------------------------------------------------------


def false_claims(source: str, names: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """The claims of a `holds` cell that do not hold: the line from 0, and which case failed."""
    names = dict(names)
    by_line = {claim.line: claim for claim in claims(source)}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assert):
            exec(compile(ast.Module([node], []), "<holds>", "exec"), names)
            continue
        claim = by_line[node.lineno - 1]
        try:
            true = held(_value(node.test, names))
            fault = "" if true else _failed(node.test, names)
        except Exception as error:
            fault = f"{_one_line(claim.condition)}: {type(error).__name__}: {error}"
        if fault:
            yield claim.line, f"does not hold: {claim.anchor}\n    {fault}"


def as_json(source: str) -> str:
    """An expression for the page's kernel, whose value is `false_claims` of a cell as JSON."""
    return f"__import__({__name__!r}, fromlist=['*'])._faults({source!r}, globals())"


def _faults(source: str, names: dict[str, Any]) -> str:
    return json.dumps(list(false_claims(source, names)))


def _failed(node: ast.expr, names: dict[str, Any]) -> str:
    """Which part of a false condition is false, and what its sides are."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return next(_failed(part, names) for part in node.values if not _value(part, names))
    match node:
        case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() as cases]):
            case = _false_case(cases, names)
            where = ", ".join(f"{name} = {value!r:.80}" for name, value in case.items())
            return f"for {where}: {_failed(cases.elt, {**names, **case})}"
        case ast.Compare():
            sides = [node.left, *node.comparators]
        case ast.BoolOp():
            sides = node.values
        case _:
            sides = []
    values = ", ".join(
        f"{ast.unparse(side)} = {_value(side, names)!r:.200}"
        for side in sides
        if _names(side, ast.Load)
    )
    return f"{ast.unparse(node)} is false{': ' if values else ''}{values}"


def _false_case(cases: ast.GeneratorExp, names: dict[str, Any]) -> dict[str, Any]:
    """What a generator's names stand for in the first case that is false."""
    of_case = sorted(set().union(*(_names(g.target, ast.Store) for g in cases.generators)))
    values = ast.Tuple([ast.Name(name, ast.Load()) for name in of_case], ast.Load())
    pairs = ast.GeneratorExp(ast.Tuple([cases.elt, values], ast.Load()), cases.generators)
    case = next(case for true, case in _value(pairs, names) if not true)
    return dict(zip(of_case, case, strict=True))


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    tree = ast.fix_missing_locations(ast.Expression(node))
    return eval(compile(tree, "<holds>", "eval"), names)


def _one_line(text: str) -> str:
    return " ".join(text.split())
