"""A law with the numbers of a state in it, in words that any reader gets: screen, paper, ear.

    Formula("time", "max(FLOPs / peak, bytes / bandwidth)",
            {"FLOPs": (17.2e9, "FLOP"), ...}, result=(bounds.lower, "s"))

is "time = max(FLOPs ÷ peak, bytes ÷ bandwidth)" and "= max(17.2 GFLOP ÷ 990 TFLOP/s, …) = 41 µs".
The result is the law's. The expression only says how it is written, and one that does not give the
law's result is refused.
"""

import ast
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from lightspeed_show.format import prefixed, si

SIGNS = {ast.Add: " + ", ast.Sub: " − ", ast.Mult: " × ", ast.Div: " ÷ ", ast.Pow: "^"}
BINDS = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2, ast.USub: 3, ast.Pow: 4}
CALLS = {"max": max, "min": min}
# Digits of a result, and of what it is made of: as many as it takes for a reader who puts the shown
# numbers together to find the shown result.
SHOWN, MOST = 3, 7


@dataclass(frozen=True)
class Formula:
    """`name` = `expression` over `values` (name -> (number, unit)) = `result` (number, unit). An
    underscore in a name is read as a space. Raises ValueError if the numbers do not give the
    result.
    """

    name: str
    expression: str
    values: Mapping[str, tuple[float, str]]
    result: tuple[float, str]

    def __post_init__(self):
        missing = _names(self.expression) ^ set(self.values)
        if missing:
            raise ValueError(
                f"Formula {self.name!r}: {', '.join(sorted(missing))}: expected a value for each"
                f" name of {self.expression!r}, and no others"
            )
        value = self._found(lambda number, unit: number)
        if not math.isclose(value, self.result[0], rel_tol=1e-6, abs_tol=1e-30):
            raise ValueError(
                f"Formula {self.name!r}: {self.expression} = {value!r}, and the law says"
                f" {self.result[0]!r}"
            )

    def _found(self, rounded):
        numbers = {name: rounded(*value) for name, value in self.values.items()}
        return eval(_compiled(self.expression), {"__builtins__": CALLS}, numbers)

    @functools.cached_property
    def digits(self):
        """The digits to which the numbers are shown."""
        number = self.result[0]
        place = 10.0 ** (math.floor(math.log10(abs(number))) + 1 - SHOWN) if number else 0.0
        # The shown result is rounded itself, so it is then off by no more than one in that place.
        for digits in range(SHOWN, MOST):
            near = self._found(lambda value, unit, d=digits: _rounded(value, unit, d))
            if abs(near - number) <= place / 2:
                return digits
        return MOST

    def lines(self):
        """The law, and the law with its numbers, each a line of text."""
        numbers = {
            name: _inside(si(number, unit, self.digits))
            for name, (number, unit) in self.values.items()
        }
        names = {name: name.replace("_", " ") for name in self.values}
        number, unit = self.result
        return [
            f"{self.name} = {_written(self.expression, names)}",
            f"= {_written(self.expression, numbers)} = {si(number, unit, SHOWN)}",
        ]

    def __str__(self):
        return " ".join(self.lines())


@functools.lru_cache(maxsize=64)
def _parsed(expression):
    return ast.parse(expression, mode="eval")


@functools.lru_cache(maxsize=64)
def _compiled(expression):
    return compile(_parsed(expression), "<formula>", "eval")


@functools.lru_cache(maxsize=64)
def _names(expression):
    nodes = [n for n in ast.walk(_parsed(expression)) if isinstance(n, ast.Name)]
    return frozenset(n.id for n in nodes if n.id not in CALLS)


def _rounded(value, unit, digits):
    """The number as `si` shows it: a count below a million in full, a tie goes up."""
    if isinstance(value, int) and abs(value) < 1_000_000 and not prefixed(unit):
        return value
    exact = Decimal(repr(float(value)))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() + 1 - digits), ROUND_HALF_UP))


def _inside(text):
    """A number below zero stands in brackets among others."""
    return f"({text.replace('-', '−', 1)})" if text.startswith("-") else text


def _written(expression, words):
    return _text(_parsed(expression).body, words)


def _text(node, words, bound=0):
    """An expression as a reader writes it, bracketed where less binds than what is around it."""
    match node:
        case ast.Name(name):
            return words[name]
        case ast.Constant(float() | int() as value):
            return si(value)
        case ast.Call(ast.Name(name), arguments):
            return f"{name}({', '.join(_text(a, words) for a in arguments)})"
        case ast.UnaryOp(ast.USub(), inner):
            text, binds = f"−{_text(inner, words, BINDS[ast.USub])}", BINDS[ast.USub]
        case ast.BinOp(left, operator, right):
            kind = type(operator)
            binds = BINDS[kind]
            # What follows a minus or a ÷ binds more strongly: a − (b − c).
            after = binds + (kind in (ast.Sub, ast.Div))
            text = _text(left, words, binds) + SIGNS[kind] + _text(right, words, after)
        case _:
            raise ValueError(f"Formula: no sign for {ast.dump(node)}")
    return f"({text})" if binds < bound else text
