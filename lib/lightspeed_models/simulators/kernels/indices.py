"""Blocks of integers: places in an array, and masks over them.

An index stays *affine* (a base and a stride for each dimension) as long as it is a sum of ranges
and multiples of them: its sectors are then arithmetic. Anything else is a list of its values.
"""

import operator
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

from lightspeed_models.simulators.kernels.record import KernelError

Shape = tuple[int, ...]
Key = tuple[slice | None, slice | None]


def common_shape(a: Shape, b: Shape) -> Shape:
    """The shape of an operation on blocks of shapes a and b, where 1 is repeated."""
    if a == b:
        return a
    if len(a) != len(b):
        raise KernelError(
            f"Blocks of shapes {a} and {b} don't fit: widen one with [:, None] or [None, :]."
        )
    if any(x != y and x != 1 and y != 1 for x, y in zip(a, b, strict=True)):
        raise KernelError(f"Blocks of shapes {a} and {b} don't fit: the sides differ.")
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


def spread(values: list[Any], shape: Shape, to: Shape) -> list[Any]:
    """The values of a block of one shape, row by row, repeated to a larger one."""
    if shape == to:
        return values
    if len(shape) == 1:
        return values * to[0]
    (rows, columns), (m, n) = shape, to
    if rows == columns == 1:
        return values * (m * n)
    if rows == 1:
        return values * m
    return list(chain.from_iterable(map(repeat, values, repeat(n))))


def axis_of(key: object) -> int:
    """Where [:, None] or [None, :] puts the new dimension."""
    if key == (slice(None), None):
        return 1
    if key == (None, slice(None)):
        return 0
    raise KernelError(
        f"A block gets a new axis by [:, None] or [None, :]; [{key!r}] is not supported."
    )


class Index:
    """A block of integers: base + strides · place, or `values` row by row."""

    __slots__ = ("base", "shape", "strides", "values")

    def __init__(
        self,
        shape: Shape,
        base: int = 0,
        strides: Shape | None = None,
        values: list[int] | None = None,
    ) -> None:
        self.shape, self.base, self.strides, self.values = shape, base, strides or (), values

    @property
    def affine(self) -> bool:
        """Whether base and strides say all."""
        return self.values is None

    def all(self) -> list[int]:
        """Its integers, row by row."""
        if self.values is not None:
            return self.values
        *outer, n = self.shape
        *steps, stride = self.strides
        rows = [self.base + i * steps[0] for i in range(outer[0])] if outer else [self.base]
        if not stride:
            return [start for start in rows for _ in range(n)]
        return list(chain.from_iterable(range(start, start + n * stride, stride) for start in rows))

    def bounds(self) -> tuple[int, int]:
        """The least and the greatest of its integers."""
        if self.values is not None:
            return min(self.values), max(self.values)
        ends = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        return self.base + sum(min(e, 0) for e in ends), self.base + sum(max(e, 0) for e in ends)

    def __getitem__(self, key: Key) -> "Index":
        axis = axis_of(key)
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        strides = (*self.strides[:axis], 0, *self.strides[axis:]) if self.affine else None
        return Index(shape, self.base, strides, self.values)

    def _each(self, other: "Index | int", act: Callable[[int, int], int]) -> "Index":
        if not isinstance(other, Index):
            return Index(self.shape, values=[act(value, other) for value in self.all()])
        shape = common_shape(self.shape, other.shape)
        pairs = (spread(block.all(), block.shape, shape) for block in (self, other))
        return Index(shape, values=list(map(act, *pairs)))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            if self.values is not None:
                return Index(self.shape, values=[value + other for value in self.values])
            return Index(self.shape, self.base + other, self.strides)
        if not isinstance(other, Index):
            return NotImplemented
        if not (self.affine and other.affine):
            return self._each(other, operator.add)
        shape = common_shape(self.shape, other.shape)
        strides = tuple(
            (a if m > 1 else 0) + (b if n > 1 else 0)
            for a, m, b, n in zip(self.strides, self.shape, other.strides, other.shape, strict=True)
        )
        return Index(shape, self.base + other.base, strides)

    __radd__ = __add__

    def __mul__(self, other: "Index | int") -> "Index":
        if isinstance(other, int) and self.affine:
            return Index(self.shape, self.base * other, tuple(s * other for s in self.strides))
        return self._each(other, operator.mul)

    __rmul__ = __mul__

    def __sub__(self, other: "Index | int") -> "Index":
        difference: Index = self + other * -1
        return difference

    def __rsub__(self, other: int) -> "Index":
        difference: Index = self * -1 + other
        return difference

    def __floordiv__(self, other: "Index | int") -> "Index":
        return self._each(other, operator.floordiv)

    def __mod__(self, other: "Index | int") -> "Index":
        return self._each(other, operator.mod)

    def _side(self, d: int, other: int, act: Callable[[int, int], bool]) -> tuple[int, int]:
        """Where along one dimension a comparison holds, which changes once at most."""
        n, stride = self.shape[d], self.strides[d]
        first, last = act(self.base, other), act(self.base + (n - 1) * stride, other)
        if first == last:
            return (0, n) if first else (0, 0)
        ends = range(self.base, self.base + n * stride, stride)
        change = bisect_left(ends, True, key=lambda value: act(value, other) == last)
        return (0, change) if first else (change, n)

    def _compare(self, other: "Index | int", act: Callable[[int, int], bool]) -> "Mask":
        if isinstance(other, Index):
            return (self - other)._compare(0, act)
        if self.affine and act is not operator.eq:
            moving = [d for d, n in enumerate(self.shape) if n > 1 and self.strides[d]]
            if len(moving) <= 1:
                box = [(0, n) for n in self.shape]
                d = moving[0] if moving else 0
                box[d] = self._side(d, other, act)
                return Mask(self.shape, tuple(box))
            ends = [act(end, other) for end in self.bounds()]
            if all(ends) or not any(ends):
                return Mask(self.shape, tuple((0, n if all(ends) else 0) for n in self.shape))
        return Mask(self.shape, values=[act(value, other) for value in self.all()])

    def __lt__(self, other: "Index | int") -> "Mask":
        return self._compare(other, operator.lt)

    def __le__(self, other: "Index | int") -> "Mask":
        return self._compare(other, operator.le)

    def __gt__(self, other: "Index | int") -> "Mask":
        return self._compare(other, operator.gt)

    def __ge__(self, other: "Index | int") -> "Mask":
        return self._compare(other, operator.ge)

    def __eq__(self, other: object) -> Any:
        return self._compare(other, operator.eq) if isinstance(other, Index | int) else False

    __hash__ = None  # type: ignore[assignment]


class Mask:
    """A block of truths: a `box` (first, end) in each dimension, or `values` row by row."""

    __slots__ = ("box", "shape", "values")

    def __init__(
        self,
        shape: Shape,
        box: tuple[tuple[int, int], ...] | None = None,
        values: list[bool] | None = None,
    ) -> None:
        self.shape, self.box, self.values = shape, box, values

    @property
    def whole(self) -> bool:
        """Whether all lanes are on."""
        if self.box is None:
            return all(self.all())
        return all(side == (0, n) for side, n in zip(self.box, self.shape, strict=True))

    @property
    def empty(self) -> bool:
        """Whether no lane is on."""
        if self.box is None:
            return not any(self.all())
        return any(first >= end for first, end in self.box)

    def all(self) -> list[bool]:
        """Its truths, row by row."""
        if self.box is None:
            return self.values or []
        sides = [
            [first <= i < end for i in range(n)]
            for (first, end), n in zip(self.box, self.shape, strict=True)
        ]
        if len(sides) == 1:
            return sides[0]
        dark = [False] * len(sides[1])
        return list(chain.from_iterable(sides[1] if on else dark for on in sides[0]))

    def widened(self, shape: Shape) -> "Mask":
        """The same mask over a larger block."""
        return self & Mask(shape, tuple((0, n) for n in shape))

    def _with(self, other: "Mask", act: Callable[[bool, bool], bool]) -> "Mask":
        shape = common_shape(self.shape, other.shape)
        pairs = (spread(mask.all(), mask.shape, shape) for mask in (self, other))
        return Mask(shape, values=list(map(act, *pairs)))

    def __and__(self, other: "Mask") -> "Mask":
        if self.box is None or other.box is None:
            return self._with(other, operator.and_)
        shape = common_shape(self.shape, other.shape)
        sides = [_stretched(mask.box or (), mask.shape, shape) for mask in (self, other)]
        box = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(*sides, strict=True))
        return Mask(shape, box)

    def __or__(self, other: "Mask") -> "Mask":
        return self._with(other, operator.or_)

    def __invert__(self) -> "Mask":
        return Mask(self.shape, values=[not on for on in self.all()])

    def __getitem__(self, key: Key) -> "Mask":
        axis = axis_of(key)
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        if self.box is None:
            return Mask(shape, values=self.values)
        return Mask(shape, (*self.box[:axis], (0, 1), *self.box[axis:]))


def _stretched(box: Sequence[tuple[int, int]], shape: Shape, to: Shape) -> list[tuple[int, int]]:
    return [
        (first * n, end * n) if side == 1 else (first, end)
        for (first, end), side, n in zip(box, shape, to, strict=True)
    ]
