"""Texts whose numbers are bound: an expression in double braces, with an optional format.

    The ridge of the {{gpu.name}} is {{ridge_point(gpu.bf16, gpu.hbm_bandwidth):.0f}} FLOP/byte.

`expressions` finds them, `fill` puts the values in; whoever shows the text evaluates them.
"""

import ast
import re
from dataclasses import dataclass

BRACES = re.compile(r"\{\{(.+?)\}\}(?!\})", re.S)


@dataclass(frozen=True)
class Expression:
    """One `{{code:spec}}` of a Markdown text."""

    text: str
    code: str
    spec: str

    @property
    def python(self) -> str:
        """An expression whose value is the text to print."""
        return f"format(({self.code}), {self.spec!r})"


def expressions(markdown: str) -> list[Expression]:
    """The expressions of a text; ValueError if one is no Python or braces do not pair."""
    rest = BRACES.sub("", markdown)
    for brace in ("{{", "}}"):
        if brace in rest:
            raise ValueError(f"{brace} without its partner (LaTeX: put a space between two braces)")
    return [split(match[1]) for match in BRACES.finditer(markdown)]


def fill(markdown: str, values: list[str]) -> str:
    """The text with each expression replaced by its value."""
    rest = iter(values)
    return BRACES.sub(lambda match: next(rest), markdown)


def split(text: str) -> Expression:
    """`code:format` of a text; ValueError if it is not that."""
    # The format begins at the first colon behind a whole expression: d["a:b"][1:2]:.1f
    text = text.strip()
    ends = [len(text), *(i for i, char in enumerate(text) if char == ":")]
    for end in ends:
        code = text[:end].strip()
        if not code:
            continue
        try:
            ast.parse(f"({code}\n)", mode="eval")
        except SyntaxError:
            continue
        return Expression(text, code, text[end + 1 :].strip())
    raise ValueError(f"{{{{{text}}}}} is not a Python expression with an optional :format")


def held(value: object) -> bool:
    """Return whether a condition is True; raises TypeError if it is neither True nor False."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"a condition is True or False, not {value!r:.80}")
    return bool(value)
