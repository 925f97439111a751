"""What a kernel is given: pointers into arrays, whose numbers it reaches by load and store only."""

from typing import Any

from lightspeed_models.simulators.kernels.indices import Index
from lightspeed_models.simulators.kernels.record import KernelError

ALIGNMENT = 256  # bytes: where CUDA's allocator puts an array


class Array:
    """Numbers in memory, flat: `values`, or a `size` alone where only addresses matter.

    `element_bytes` is the width of one in memory. Integers can be loaded as indices (`integer`),
    and then hold values in both modes.

    Raises KernelError if neither values nor a size of at least one element is given.
    """

    def __init__(
        self,
        name: str,
        values: list[Any] | None = None,
        *,
        size: int | None = None,
        element_bytes: int = 4,
        integer: bool = False,
    ) -> None:
        size = len(values) if values is not None else size
        if not size or size < 0:
            raise KernelError(f"Array {name} is empty: give its values, or a size of at least 1.")
        if integer and values is None:
            raise KernelError(f"Array {name} holds indices: give its values.")
        self.name, self.values, self.size = name, values, size
        self.element_bytes, self.integer = element_bytes, integer

    @property
    def extent(self) -> int:
        """Bytes that it takes in memory."""
        return -(-self.size * self.element_bytes // ALIGNMENT) * ALIGNMENT


class Pointer:
    """A place in an array, or a block of places: an array plus an index."""

    __slots__ = ("address", "element_bytes", "index", "integer", "name", "size")

    def __init__(
        self,
        name: str,
        address: int,
        size: int,
        element_bytes: int,
        integer: bool,
        index: Index | int = 0,
    ) -> None:
        self.name, self.address, self.size = name, address, size
        self.element_bytes, self.integer, self.index = element_bytes, integer, index

    def __add__(self, step: Index | int) -> "Pointer":
        return Pointer(
            self.name,
            self.address,
            self.size,
            self.element_bytes,
            self.integer,
            step + self.index if isinstance(step, Index) else self.index + step,
        )

    __radd__ = __add__

    def __sub__(self, step: Index | int) -> "Pointer":
        return self + step * -1
