"""Numbers on the chip: blocks of one or two dimensions, and the operations that a kernel counts.

Without values a block has a shape alone. A block knows from which array it was loaded, and how wide
its numbers were there.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import repeat
from math import prod
from typing import Any

from lightspeed_models.simulators.kernels.indices import (
    Index,
    Mask,
    Shape,
    axis_of,
    common_shape,
    spread,
)
from lightspeed_models.simulators.kernels.record import KernelError, running

Number = float | int
Act = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Padding:
    """Lanes that the load of an array left to its `mask`: what such a lane holds by now."""

    array: str
    mask: Mask
    other: float

    def through(self, act: Callable[[float], float]) -> "Padding":
        """After an operation on each lane."""
        return replace(self, other=act(self.other))


class Block:
    """A block of floating-point numbers, row by row, of the program that made it."""

    __slots__ = ("element_bytes", "padding", "program", "shape", "source", "values")

    def __init__(
        self,
        shape: Shape,
        values: list[float] | None,
        source: str | None = None,
        element_bytes: int = 4,
    ) -> None:
        self.shape, self.values, self.source = shape, values, source
        self.element_bytes = element_bytes
        self.padding: Padding | None = None
        launch = running("block")
        self.program = len(launch.programs)
        launch.widest = max(launch.widest, prod(shape))

    def own(self) -> "Block":
        """Itself; raises KernelError where another program made it."""
        launch = running("block")
        if self.program != len(launch.programs):
            raise KernelError(
                "a block of another program is used here: what is on the chip ends with its"
                " program. Load it again, or store it."
            )
        return self

    def __getitem__(self, key: tuple[slice | None, slice | None]) -> "Block":
        axis = axis_of(key)
        return Block((*self.shape[:axis], 1, *self.shape[axis:]), self.values)

    def combined(self, other: "Block | Index | Number", act: Act) -> "Block":
        """`act` of each of its numbers and the other's, with sides of one repeated."""
        self.own()
        if isinstance(other, Index):
            other = of_numbers(other)
        if not isinstance(other, Block):
            running("operation").vector += prod(self.shape)
            if self.values is None:
                return Block(self.shape, None)
            block = Block(self.shape, list(map(act, self.values, repeat(other))))
            block.padding = self.padding and self.padding.through(lambda lane: act(lane, other))
            return block
        shape = common_shape(self.shape, other.own().shape)
        running("operation").vector += prod(shape)
        if self.values is None or other.values is None:
            return Block(shape, None)
        ours = spread(self.values, self.shape, shape)
        return Block(shape, list(map(act, ours, spread(other.values, other.shape, shape))))

    def __add__(self, other: "Block | Index | Number") -> "Block":
        return self.combined(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: "Block | Index | Number") -> "Block":
        return self.combined(other, operator.sub)

    def __rsub__(self, other: "Index | Number") -> "Block":
        return self.combined(other, lambda a, b: b - a)

    def __mul__(self, other: "Block | Index | Number") -> "Block":
        return self.combined(other, operator.mul)

    __rmul__ = __mul__

    def __truediv__(self, other: "Block | Index | Number") -> "Block":
        return self.combined(other, operator.truediv)

    def __rtruediv__(self, other: "Index | Number") -> "Block":
        return self.combined(other, lambda a, b: b / a)

    def __neg__(self) -> "Block":
        return self.combined(-1.0, operator.mul)


def of_numbers(index: Index) -> Block:
    """A block of integers as numbers."""
    return Block(index.shape, [float(value) for value in index.all()])
