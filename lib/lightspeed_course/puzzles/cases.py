"""What each puzzle is given and what it must leave, in plain Python: sizes that break tails, scores
that overflow without the maximum, grids of one program.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import mul

from lightspeed_models.simulators.kernels import Array, Limits

# A small chip, so that small arrays have to be cut: a program gets 8 KiB for operands of products,
# and 64 registers a thread for its blocks.
TOY = Limits(shared=8 * 1024, registers=64, accesses=20_000)
SMS = 4  # processors of that chip


@dataclass
class Case:
    """The arguments of a solution after `launch`, and what its arrays must hold afterwards."""

    arguments: tuple[object, ...]
    expected: dict[str, list[float]]

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays by their names."""
        return {array.name: array for array in self.arguments if isinstance(array, Array)}

    def again(self) -> "Case":
        """Return the same case with fresh arrays."""
        copies = [
            Array(a.name, list(a.values or ()), element_bytes=a.element_bytes, integer=a.integer)
            if isinstance(a, Array)
            else a
            for a in self.arguments
        ]
        return Case(tuple(copies), self.expected)

    def values(self) -> dict[str, list[float]]:
        """The numbers of each array, by its name."""
        return {name: list(array.values or ()) for name, array in self.arrays.items()}


@dataclass(frozen=True, repr=False)
class Puzzle:
    """One puzzle: its title and text, how its cases are drawn, and the sizes that are tried."""

    name: str
    title: str
    text: str
    draw: Callable[..., Case]
    sizes: tuple[dict[str, int], ...] = field(default=())

    def __repr__(self) -> str:
        return f"{self.title}. {self.text}"

    def _repr_markdown_(self) -> str:
        return f"**{self.title}.** {self.text}"

    def cases(self, seed: int) -> list[Case]:
        """Return one case of each size, with numbers drawn from the seed."""
        numbers = random.Random(f"{self.name} {seed}")
        return [self.draw(numbers, **size) for size in self.sizes]


def _array(name: str, values: list[float], element_bytes: int = 4) -> Array:
    return Array(name, values, element_bytes=element_bytes)


def _empty(name: str, size: int, element_bytes: int = 4) -> Array:
    return Array(name, [0.0] * size, element_bytes=element_bytes)


def _draw(numbers: random.Random, size: int, wide: float = 1.0) -> list[float]:
    return [numbers.gauss(0, wide) for _ in range(size)]


def _rows(values: list[float], width: int) -> list[list[float]]:
    return [values[at : at + width] for at in range(0, len(values), width)]


def _product(a: list[list[float]], b: list[list[float]]) -> list[list[float]]:
    columns = list(zip(*b, strict=True))
    return [[sum(map(mul, row, column)) for column in columns] for row in a]


def _flat(rows: list[list[float]]) -> list[float]:
    return [number for row in rows for number in row]


def _softmax_row(row: list[float]) -> list[float]:
    top = max(row)
    powers = [math.exp(x - top) for x in row]
    total = math.fsum(powers)
    return [power / total for power in powers]


def strided_copy(numbers: random.Random, n: int, stride: int) -> Case:
    x = _draw(numbers, n * stride)
    arguments = (_array("x", x), _empty("y", n), n, stride)
    return Case(arguments, {"y": x[::stride]})


def transpose(numbers: random.Random, M: int, N: int) -> Case:
    x = _draw(numbers, M * N)
    return Case(
        (_array("x", x), _empty("y", M * N), M, N),
        {"y": [number for j in range(N) for number in x[j::N]]},
    )


def bias_relu(numbers: random.Random, M: int, N: int) -> Case:
    x, b = _draw(numbers, M * N), _draw(numbers, N)
    expected = [max(v + bias, 0.0) for row in _rows(x, N) for v, bias in zip(row, b, strict=True)]
    return Case((_array("x", x), _array("b", b), _empty("y", M * N), M, N), {"y": expected})


def row_sum(numbers: random.Random, M: int, N: int) -> Case:
    x = _draw(numbers, M * N)
    return Case((_array("x", x), _empty("y", M), M, N), {"y": list(map(math.fsum, _rows(x, N)))})


def softmax(numbers: random.Random, M: int, N: int) -> Case:
    # exp of the first row overflows alone, and in the second a lane of 0 would be the greatest
    x = [v + (800.0, -300.0)[k // N % 2] for k, v in enumerate(_draw(numbers, M * N, 3.0))]
    expected = _flat(list(map(_softmax_row, _rows(x, N))))
    return Case((_array("x", x), _empty("y", M * N), M, N), {"y": expected})


def matmul(numbers: random.Random, M: int, N: int, K: int) -> Case:
    a, b = _draw(numbers, M * K), _draw(numbers, K * N)
    arguments = (_array("a", a, 2), _array("b", b, 2), _empty("c", M * N, 2), M, N, K)
    return Case(arguments, {"c": _flat(_product(_rows(a, K), _rows(b, N)))})


def split_k(numbers: random.Random, K: int) -> Case:
    a, b = _draw(numbers, 16 * K), _draw(numbers, K * 16)
    arguments = (_array("a", a, 2), _array("b", b, 2), _empty("c", 256), K)
    return Case(arguments, {"c": _flat(_product(_rows(a, K), _rows(b, 16)))})


def rms_norm(numbers: random.Random, M: int, N: int) -> Case:
    x, w = _draw(numbers, M * N), _draw(numbers, N)
    expected = []
    for row in _rows(x, N):
        scale = 1 / math.sqrt(math.fsum(v * v for v in row) / N + 1e-5)
        expected += [v * scale * weight for v, weight in zip(row, w, strict=True)]
    return Case((_array("x", x), _array("w", w), _empty("y", M * N), M, N), {"y": expected})


def rope(numbers: random.Random, T: int, H: int, D: int) -> Case:
    x, half = _draw(numbers, T * H * D), D // 2
    angles = [[t * 10000 ** (-i / half) for i in range(half)] for t in range(T)]
    cos, sin = ([[f(a) for a in row] for row in angles] for f in (math.cos, math.sin))
    expected: list[float] = []
    for place, head in enumerate(_rows(x, D)):
        turns = list(zip(head[:half], head[half:], cos[place // H], sin[place // H], strict=True))
        expected += [a * c - b * s for a, b, c, s in turns]
        expected += [b * c + a * s for a, b, c, s in turns]
    tables = (_array("cos", _flat(cos)), _array("sin", _flat(sin)))
    return Case((_array("x", x, 2), *tables, T, H, D), {"x": expected})


def paged_gather(numbers: random.Random, L: int, D: int) -> Case:
    count = -(-L // 16)
    pages = _draw(numbers, 2 * count * 16 * D)
    table = numbers.sample(range(2 * count), count)
    rows = _rows(pages, D)
    expected = _flat([rows[table[t // 16] * 16 + t % 16] for t in range(L)])
    arguments = (
        _array("pages", pages, 2),
        Array("table", table, integer=True),
        _empty("out", L * D, 2),
        L,
        D,
    )
    return Case(arguments, {"out": expected})


def attention(numbers: random.Random, N: int, D: int) -> Case:
    case = _heads(numbers, 1, 1, N, D, causal=False)
    return Case((*case.arguments[:4], N, D), case.expected)


def gqa_causal(numbers: random.Random, H: int, G: int, N: int, D: int) -> Case:
    return _heads(numbers, H, G, N, D, causal=True)


def _heads(numbers: random.Random, H: int, G: int, N: int, D: int, causal: bool) -> Case:
    q = _draw(numbers, H * N * D, 3.0)
    k, v = (_draw(numbers, H // G * N * D, 3.0) for _ in range(2))
    expected = []
    for head in range(H):
        queries = _rows(q, D)[head * N : (head + 1) * N]
        keys, values = (_rows(x, D)[head // G * N : (head // G + 1) * N] for x in (k, v))
        for i, query in enumerate(queries):
            length = i + 1 if causal else N
            scores = [sum(map(mul, query, key)) for key in keys[:length]]
            weights = _softmax_row([score * D**-0.5 for score in scores])
            expected += _product([weights], values[:length])[0]
    arrays = (_array("q", q, 2), _array("k", k, 2), _array("v", v, 2), _empty("o", H * N * D, 2))
    return Case((*arrays, H, G, N, D), {"o": expected})


_ALL = (
    Puzzle(
        "strided_copy",
        "Copy every s-th element",
        (
            "Copy every `stride`-th element of `x` into `y`, n of them, a block of 64 to a "
            "program. `n` is not a multiple of 64: which lanes have nothing to do?"
        ),
        strided_copy,
        ({"n": 250, "stride": 1}, {"n": 500, "stride": 8}, {"n": 10, "stride": 32}),
    ),
    Puzzle(
        "transpose",
        "Transpose",
        (
            "`y[j, i] = x[i, j]`, for `x` of M by N. A program that reads rows and writes columns "
            "moves eight times what it must. Cut tiles instead. `tl.trans` turns a tile; to store "
            "it as it is, at turned places, is as good: Triton then turns it on the chip for you."
        ),
        transpose,
        ({"M": 64, "N": 64}, {"M": 48, "N": 80}),
    ),
    Puzzle(
        "bias_relu",
        "Bias and ReLU",
        (
            "`y = max(x + b, 0)`, where `b` has N numbers and is added to each row of `x`. One "
            "launch: what a second one would read, it has to find in memory. N need not be a power "
            "of two: `(i < M)[:, None] & (j < N)[None, :]` masks rows and columns."
        ),
        bias_relu,
        ({"M": 48, "N": 64}, {"M": 20, "N": 100}),
    ),
    Puzzle(
        "row_sum",
        "Sum each row",
        (
            "The sum of each row of `x`, M by N. A row is longer than a block of 128, and not a "
            "multiple of it."
        ),
        row_sum,
        ({"M": 24, "N": 500}, {"M": 1, "N": 40}),
    ),
    Puzzle(
        "softmax",
        "Softmax of each row",
        (
            "The softmax of each row of `x`. Some scores are so large that `exp` of them alone "
            "overflows, and others far below zero. How often is each read?"
        ),
        softmax,
        ({"M": 24, "N": 500}, {"M": 1, "N": 33}),
    ),
    Puzzle(
        "matmul",
        "Matmul in tiles",
        (
            "`c = a b`, in bf16, for sides that are multiples of 32 (K of 16). One program for all "
            "of it leaves the chip's other processors idle; tiles of 16 are right, but read twice "
            "what tiles of 32 do."
        ),
        matmul,
        ({"M": 32, "N": 32, "K": 16}, {"M": 64, "N": 64, "K": 32}),
    ),
    Puzzle(
        "split_k",
        "Matmul with a long side",
        (
            "The same for 16 by K and K by 16: one tile of the result, so one program, and three "
            "of the chip's four processors idle. Let eight programs share the long side. `c` is "
            "full of zeros."
        ),
        split_k,
        ({"K": 512}, {"K": 128}),
    ),
    Puzzle(
        "rms_norm",
        "RMSNorm",
        (
            "Each row of `x` over the root of its mean square, times `w`: `y = x / sqrt(mean(x²) "
            "+ 1e-5) · w`. Read the row once; `w` may be read again for each row."
        ),
        rms_norm,
        ({"M": 24, "N": 500}, {"M": 1, "N": 64}),
    ),
    Puzzle(
        "rope",
        "RoPE in place",
        (
            "In place: turn each pair `(i, i + D/2)` of each head of each token by its angle, "
            "whose cosine and sine stand in tables of T by D/2. `x` is T by H by D. All heads of a "
            "token turn alike: read its part of the tables once."
        ),
        rope,
        ({"T": 12, "H": 4, "D": 64}, {"T": 3, "H": 1, "D": 32}),
    ),
    Puzzle(
        "paged_gather",
        "Gather a paged cache",
        (
            "A cache lies in pages of 16 tokens, in the order of `table`. Copy the L tokens of a "
            "request, D numbers each, to `out`."
        ),
        paged_gather,
        ({"L": 250, "D": 64}, {"L": 5, "D": 32}),
    ),
    Puzzle(
        "attention",
        "Online attention",
        (
            "`o = softmax(q kᵀ / √D) v` for one head of N tokens, N a multiple of 32. The square "
            "stays on the chip."
        ),
        attention,
        ({"N": 96, "D": 16}, {"N": 32, "D": 32}),
    ),
    Puzzle(
        "gqa_causal",
        "Grouped and causal attention",
        (
            "The same for H heads of queries, of which each G share a head of keys and values, "
            "and a token sees itself and what came before. What is hidden whole need not be read."
        ),
        gqa_causal,
        ({"H": 2, "G": 2, "N": 64, "D": 16}, {"H": 4, "G": 2, "N": 32, "D": 16}),
    ),
)
PUZZLES = {puzzle.name: puzzle for puzzle in _ALL}
