"""Worked solutions: steps that are computed, each a sentence, a formula, its numbers, its result.

    derivation(
        step("The ridge: what the chip can do while one byte arrives.",
             "peak / bandwidth", ridge_point(chip.bf16, chip.hbm_bandwidth),
             peak=chip.bf16, bandwidth=chip.hbm_bandwidth),
    )

A formula is arithmetic on the names of its inputs and on constants, `2[FLOP] * B * D`. An input is
a law's result or a constant of the catalog, which know their unit, a (value, unit) pair in SI, or
a plain number. The result is what the library says: a formula that comes to another number, or to
another unit, is refused, so no line of a solution can disagree with the law beside it.
"""

import ast
import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lightspeed_show.format import plain, plural, si

# 38 must not become 39 by rounding
FUNCTIONS: dict[str, Any] = {
    "ceil": lambda x: math.ceil(x - 1e-9),
    "floor": math.floor,
    "ln": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}
SIGNS = {ast.Add: "+", ast.Sub: "−", ast.Mult: "×", ast.Div: "÷"}
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
RANK = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2, ast.Pow: 3}
PER = {"Hz": {"s": -1}, "W": {"J": 1, "s": -1}, "%": {}, "": {}}


@dataclass(frozen=True)
class Step:
    """One line: what is worked out and why, then the formula, if there is one."""

    words: str
    formula: str = ""
    gives: object = None
    inputs: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.formula:
            _ = self.result

    @cached_property
    def tree(self):
        return ast.parse(self.formula, mode="eval").body

    @cached_property
    def result(self):
        """(value, unit, names of cancelled units). Raises ValueError if the library disagrees."""
        value, units, cancelled = self._work_out(self.tree)
        result, unit = measured(self.gives) if self.gives is not None else (value, _written(units))
        if unit_of(unit) != units:
            raise ValueError(
                f"{self.formula}: comes out in {_written(units) or 'no unit'}, not in {unit!r}"
            )
        if not math.isclose(value, result, rel_tol=1e-6):
            raise ValueError(
                f"{self.formula}: is {value:.6g} {unit}, the library says {result:.6g}"
            )
        return result, unit, sorted(u for u in cancelled if not units[u])

    def _work_out(self, node):
        if isinstance(node, ast.Name | ast.Constant | ast.Subscript):
            value, unit = self._leaf(node)
            return value, unit_of(unit), set()
        if isinstance(node, ast.Call):
            parts = [self._work_out(argument) for argument in node.args]
            self._same(parts)
            name = ast.unparse(node.func)
            if name not in FUNCTIONS:
                raise self._no_arithmetic(node)
            value = FUNCTIONS[name](*(p[0] for p in parts))
            units = parts[0][1]
            if name == "sqrt":
                units = Counter({u: n // 2 for u, n in units.items()})
            return value, units, set().union(*(p[2] for p in parts))
        if not isinstance(node, ast.BinOp):
            raise self._no_arithmetic(node)
        (a, ua, ca), (b, ub, cb) = self._work_out(node.left), self._work_out(node.right)
        kind = type(node.op)
        if kind in (ast.Add, ast.Sub):
            self._same([(a, ua), (b, ub)])
            return a + b if kind is ast.Add else a - b, ua, ca | cb
        if kind is ast.Pow:
            return a**b, Counter({u: n * b for u, n in ua.items()}), ca
        sign = 1 if kind is ast.Mult else -1
        units = Counter(ua)
        for u, n in ub.items():
            units[u] += sign * n
        cancelling = {u for u in ub if ua[u] * sign * ub[u] < 0}
        return (a * b if sign > 0 else a / b), _whole(units), ca | cb | cancelling

    def _no_arithmetic(self, node):
        """What is said of a call or an attribute in a formula: it needs a name of its own."""
        part, verbs = ast.unparse(node), ", ".join(FUNCTIONS)
        expected = (
            f"arithmetic on names, constants and {verbs}; give it a name in a line of its own"
        )
        return ValueError(f"{self.formula}: {part}: expected {expected}, `name = {part}`")

    def _same(self, parts):
        if any(p[1] != parts[0][1] for p in parts[1:]):
            unlike = " and ".join(_written(p[1]) or "a plain number" for p in parts)
            raise ValueError(f"{self.formula}: {unlike} do not add up, and cannot be compared")

    def _leaf(self, node):
        if isinstance(node, ast.Subscript):
            return ast.literal_eval(node.value), ast.unparse(node.slice).replace(" ", "")
        if isinstance(node, ast.Constant):
            return node.value, ""
        return measured(self.inputs[node.id])

    @cached_property
    def symbols(self):
        """The formula in the names of its inputs: "peak ÷ bandwidth"."""

        def leaf(node):
            if isinstance(node, ast.Name):
                return node.id.replace("_", " ")
            return self._shown(node)

        return _spelled(self.tree, leaf)

    @cached_property
    def numbers(self):
        """The formula with its numbers and their units: "312 TFLOP/s ÷ 2.04 TB/s"."""
        return _spelled(self.tree, self._shown)

    def _shown(self, node):
        return shown(*self._leaf(node))

    def __str__(self):
        if not self.formula:
            return self.words
        value, unit, cancelled = self.result
        text = shown(value, unit)
        names = [plural(u) for u in cancelled]
        verb = "cancels" if names == cancelled and len(names) == 1 else "cancel"
        units = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
        note = f" ({units} {verb})" if names else ""
        line = [self.symbols] if self.inputs else []
        line += [self.numbers] if self.numbers not in (*line, text) else []
        return f"{self.words}  \n{' = '.join([*line, f'**{text}**'])}{note}"


@dataclass(frozen=True)
class Derivation:
    """Steps in their order, and what to say after the last one: a remark, or the code."""

    steps: tuple[Step, ...]
    after: str = ""

    @property
    def hints(self):
        """Return hints that reveal no number: each step in words and in symbols."""
        return [f"{s.words}  \n{s.symbols}" if s.inputs else s.words for s in self.steps]

    @property
    def words(self):
        """What is said, without the lines that are worked out: those are held to the library."""
        return "\n\n".join([*(s.words for s in self.steps), self.after])

    def __str__(self):
        lines = [f"{n}. " + str(s).replace("\n", "\n   ") for n, s in enumerate(self.steps, 1)]
        return "\n".join(lines) + f"\n\n{self.after}" * bool(self.after)


def derivation(*steps, after=""):
    """A worked solution of these steps; a text among them is a step without a formula."""
    return Derivation(tuple(s if isinstance(s, Step) else Step(s) for s in steps), after)


def step(words, formula="", gives=None, /, **inputs):
    """A line of a derivation. Without `gives` the result is the formula's own."""
    return Step(words, formula, gives, inputs)


def measured(value):
    """Return (number in SI, unit) of an input: a pair, a value with a unit, or a plain number."""
    return value if isinstance(value, tuple) else (value, getattr(value, "unit", ""))


def shown(value, unit=""):
    return si(value + 0, unit, 4) if unit else plain(value, 4)  # + 0: `unit` is what it comes in


def unit_of(unit):
    """The powers in a unit: FLOP/byte -> {FLOP: 1, byte: -1}."""
    powers = Counter()
    for place, part in enumerate(unit.split("/")):
        for name in part.split("*"):
            for base, n in PER.get(name, {} if name == "1" else {name: 1}).items():
                powers[base] += n if place == 0 else -n
    return _whole(powers)


def _whole(powers):
    return Counter({name: n for name, n in powers.items() if n})


def _written(powers):
    over = [name for name, n in powers.items() for _ in range(max(n, 0))]
    under = [name for name, n in powers.items() for _ in range(max(-n, 0))]
    return "/".join(["*".join(over) or "1", *under]) if powers else ""


def _spelled(node, leaf):
    """A formula in the signs of a book; parentheses where they are needed, and nowhere else."""
    if isinstance(node, ast.Call):
        inside = ", ".join(_spelled(argument, leaf) for argument in node.args)
        name = ast.unparse(node.func)
        return f"√({inside})" if name == "sqrt" else f"{name}({inside})"
    if not isinstance(node, ast.BinOp):
        return leaf(node)
    rank = RANK[type(node.op)]

    def side(part, right):
        text = _spelled(part, leaf)
        own = RANK[type(part.op)] if isinstance(part, ast.BinOp) else 9
        # a - (b + c), a / (b * c): the right side of these two does not do without
        strict = right and isinstance(node.op, ast.Sub | ast.Div)
        return f"({text})" if own < rank or (strict and own == rank) else text

    if isinstance(node.op, ast.Pow):
        return side(node.left, False) + ast.unparse(node.right).translate(RAISED)
    return f"{side(node.left, False)} {SIGNS[type(node.op)]} {side(node.right, True)}"
