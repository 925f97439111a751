"""No array of whole numbers has numpy's default type: in a browser and on any machine of 32 bits
it wraps at two thousand million, and says nothing.

`dtype=int` is that default by its other name. Bytes and FLOPs are floats; places are np.intp, the
type that numpy itself counts places in.
"""

import ast
import re
from pathlib import Path

import pytest

COURSE = Path(__file__).parents[2]
FILES = sorted(
    path
    for pattern in ("lib/**/*.py", "chapters/*.py", "solutions/*.py", "benchmarks/*.py")
    for path in COURSE.glob(pattern)
    if "node_modules" not in path.parts
)
# What makes an array -> how many arguments come before its dtype.
MAKERS = {
    "array": 1, "asarray": 1, "asanyarray": 1, "ascontiguousarray": 1, "full": 2, "arange": 3,
    "prod": 2, "cumsum": 2, "cumprod": 2, "sum": 2,
}  # fmt: skip
FRACTIONS = {"nan", "inf", "pi", "e"}


def parts_of(node):
    """The values that an expression's type comes from."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            return [leaf for part in parts for leaf in parts_of(part)]
        case ast.ListComp(elt=one) | ast.GeneratorExp(elt=one) | ast.Starred(value=one):
            return parts_of(one)
        case ast.UnaryOp(operand=one) if not isinstance(node.op, ast.Not):
            return parts_of(one)
        case ast.BinOp(left=one, op=ast.Pow()):
            return parts_of(one)
        case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.Div):
            return parts_of(left) + parts_of(right)
        case ast.IfExp(body=one, orelse=other):
            return parts_of(one) + parts_of(other)
    return [node]


def whole(node):
    """Whether one value is seen to be a whole number: a literal, a length, a rounded value."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int) and not isinstance(value, bool)
        case ast.Call(func=ast.Name(id="int" | "len" | "hash" | "ord" | "range")):
            return True
    return False


def fraction(node):
    """Whether one value is seen to be none: numpy then makes all of them floats, or texts."""
    match node:
        case ast.Constant():
            return not whole(node)
        case ast.BinOp(op=ast.Div()) | ast.JoinedStr() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Attribute(attr=name):
            return name in FRACTIONS
        case ast.Call(func=ast.Name(id="float" | "str" | "bool")):
            return True
    return False


def bare(tree):
    """(line, call) of the arrays whose type is numpy's default for whole numbers."""
    modules, makers, nodes = set(), {}, list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {a.asname or a.name for a in node.names if a.name == "numpy"}
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy":
            makers |= {a.asname or a.name: a.name for a in node.names}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="astype"), args=[ast.Name(id="int"), *_]):
                yield node.lineno, ast.unparse(node)
                continue
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                made = name if module in modules else None
            case ast.Call(func=ast.Name(id=name)):
                made = makers.get(name)
            case _:
                continue
        if made not in MAKERS:
            continue
        kinds = [k.value for k in node.keywords if k.arg == "dtype"] or node.args[MAKERS[made] :]
        data = node.args[: MAKERS[made]]
        # The shape says nothing of the type; of a range, each end and the step do.
        parts = [
            leaf for each in (data if made == "arange" else data[-1:]) for leaf in parts_of(each)
        ]
        if kinds:
            wrong = isinstance(kinds[0], ast.Name) and kinds[0].id == "int"
        else:  # a range is of whole numbers until it shows that it is not
            wrong = (made == "arange" or any(map(whole, parts))) and not any(map(fraction, parts))
        if wrong:
            yield node.lineno, ast.unparse(node)


def test_no_array_of_whole_numbers_has_the_machine_s_type():
    found = [
        f"{path.relative_to(COURSE)}:{line}: {call}"
        for path in FILES
        if re.search("numpy|astype", text := path.read_text("utf-8"))
        for line, call in bare(ast.parse(text))
    ]
    assert not found, "name the dtype, float for quantities and np.intp for places:\n" + "\n".join(
        found
    )


@pytest.mark.parametrize(
    "call",
    [
        "np.array([1, 2])", "np.array([2**20, n])", "np.arange(9)", "np.arange(n)", "np.full(3, 7)",
        "np.array([2 * row.bytes for row in rows])", "np.array(sizes, int)", "np.array([[1], [n]])",
        "np.array(sizes, dtype=int)", "np.asarray([1, 2])", "x.astype(int)", "np.prod((2, n))",
        "np.array([7 // 2, n])", "np.array([-1])", "np.cumsum([len(n) for n in x])", "arr([1])",
        "np.array([1 if n else 0 for n in x])", "np.arange(1, n, 2)", "np.array(range(9))",
    ],
)  # fmt: skip
def test_what_is_found(call):
    assert list(bare(ast.parse(f"import numpy as np\nfrom numpy import array as arr\n{call}")))


@pytest.mark.parametrize(
    "call",
    [
        "np.array([1, 2.5])", "np.array([1, 2], float)", "np.arange(9.0)", "np.arange(1, n + 1.0)",
        "np.array(['a', 'b'])", "np.array([n / 2 for n in x])", "np.full(3, np.nan)", "array([1])",
        "np.asarray(x)", "np.arange(9, dtype=np.intp)", "np.full(n, 3, np.int64)", "np.prod(sizes)",
        "np.array([n == 1 for n in x])", "np.array([f'{n}' for n in x])", "x.astype(np.intp)",
        "list.array([1])", "np.zeros(3)", "np.array([-1.0, 2])", "np.arange(0, 1e9, 100)",
        "np.full((3, 4), row.time)", "np.array([row.time for row in rows])",
    ],
)  # fmt: skip
def test_what_is_right(call):
    assert not list(bare(ast.parse(f"import numpy as np\n{call}")))
