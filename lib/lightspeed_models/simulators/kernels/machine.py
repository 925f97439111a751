"""Run a kernel: one program for each place of a grid."""

import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from lightspeed_models.simulators.kernels.arrays import Array, Pointer
from lightspeed_models.simulators.kernels.record import KernelError, Launch, Limits, _current


def launch(
    kernel: Callable[..., None],
    grid: Sequence[int],
    *arguments: Any,
    values: bool = True,
    threads: int = 128,
    limits: Limits | None = None,
    seed: float | None = None,
    **keywords: Any,
) -> Launch:
    """Run `kernel` once for each place of a grid of one to three sides, the first fastest.

    Arrays among the arguments reach the kernel as pointers, and are changed in place by its stores.
    Without `values` floating-point arrays need a size only. `threads` of a program set the share of
    each in the registers. With a `seed` the programs run in a random order: what a right kernel
    leaves does not depend on it. `limits` are what a program may take of an SM.

    Raises KernelError for what a GPU would refuse or read out of range, with the program's place.
    """
    sides = tuple(grid) + (1,) * (3 - len(grid))
    if len(sides) != 3 or any(not isinstance(n, int) or n < 1 for n in sides):
        raise KernelError(f"grid = {tuple(grid)}: give one to three whole numbers of at least 1.")
    record = Launch(getattr(kernel, "__name__", "kernel"), sides, threads, values, limits)
    pointers = _pointers(arguments, keywords, record, values)
    handles = [pointers.get(id(x), x) for x in arguments]
    options = {name: pointers.get(id(x), x) for name, x in keywords.items()}
    places = [(x, y, z) for z, y, x in product(*map(range, reversed(sides)))]
    if seed is not None:
        random.Random(seed).shuffle(places)
    _current.append(record)
    try:
        for place in places:
            record.places.append(place)
            record.programs.append([])
            try:
                kernel(*handles, **options)
                record.check_limits()
            except KernelError as fault:
                raise KernelError(f"Program {place[: len(grid)]}: {fault}") from None
    finally:
        _current.pop()
    return record


def _pointers(
    arguments: Sequence[Any], keywords: dict[str, Any], record: Launch, values: bool
) -> dict[int, Pointer]:
    """A pointer for each array, one array after the other in memory."""
    pointers: dict[int, Pointer] = {}
    address = 0
    for array in (*arguments, *keywords.values()):
        if not isinstance(array, Array) or id(array) in pointers:
            continue
        if values and array.values is None:
            raise KernelError(
                f"Array {array.name} has no values: give them, or launch with values=False."
            )
        if any(array.name == other.name for other in pointers.values()):
            raise KernelError(f"Two arrays are called {array.name}: give each its own name.")
        pointers[id(array)] = Pointer(
            array.name, address, array.size, array.element_bytes, array.integer
        )
        address += array.extent
        if (values or array.integer) and array.values is not None:
            record.memory[array.name] = array.values
    return pointers
