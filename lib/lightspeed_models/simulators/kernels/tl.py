"""The words of a kernel, named and used as `triton.language` names and uses them.

    place     program_id, arange, cdiv; x[:, None], x[None, :]
    memory    load, store, atomic_add; an array plus an index is a block of places
    blocks    + - * /, exp, log, rsqrt, maximum, where, max, sum, dot, trans, zeros, full

Triton's limits hold: `arange` has a power of two of places, the sides of `dot` are at least 16. A
scalar and a block take the same words. Source: the documentation of Triton, `triton.language`.
"""

import builtins
import math
import operator
import sys
from collections.abc import Callable
from itertools import compress, repeat
from typing import Any

from lightspeed_models.simulators.kernels.accesses import access
from lightspeed_models.simulators.kernels.arrays import Pointer
from lightspeed_models.simulators.kernels.blocks import Block, Number, Padding, of_numbers
from lightspeed_models.simulators.kernels.indices import Index, Mask, Shape, common_shape, spread
from lightspeed_models.simulators.kernels.record import KernelError, Launch, Race, running

NARROWEST = 16  # sides of a product on tensor cores
Scalar = float | int


def program_id(axis: int) -> int:
    """Where in the grid this program stands, along axis 0, 1 or 2."""
    return running("program_id").places[-1][axis]


def arange(start: int, end: int) -> Index:
    """The integers from start up to end, end left out; a power of two of them."""
    n = end - start
    if n < 1 or n & (n - 1):
        raise KernelError(
            f"arange({start}, {end}) has {n} places: Triton wants a power of two. Take the next"
            " one and a mask."
        )
    return Index((n,), start, (1,))


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def load(pointer: Pointer, mask: Mask | None = None, other: float = 0.0) -> Any:
    """The numbers at a block of places, `other` where the mask is off; one number at one place.

    Raises KernelError where a lane that is on reads outside of the array.
    """
    launch = running("load")
    index, mask, scalar = _places(pointer, mask, "load")
    launch.note(access(pointer, index, mask, store=False))
    numbers = launch.memory.get(pointer.name)
    if numbers is None:
        return 1.0 if scalar else Block(index.shape, None, pointer.name, pointer.element_bytes)
    if scalar:
        return numbers[index.base]
    block = _gathered(numbers, index, mask, other)
    if pointer.integer:
        return Index(index.shape, values=[int(value) for value in block])
    loaded = Block(index.shape, block, pointer.name, pointer.element_bytes)
    loaded.padding = None if mask is None else Padding(pointer.name, mask, other)
    return loaded


def _gathered(numbers: list[float], index: Index, mask: Mask | None, other: float) -> list[float]:
    if mask is not None:
        lanes = zip(index.all(), mask.all(), strict=True)
        return [numbers[place] if on else other for place, on in lanes]
    if index.affine and index.strides[-1] > 0:
        *outer, n = index.shape
        *steps, stride = index.strides
        starts = [index.base + i * steps[0] for i in range(outer[0])] if outer else [index.base]
        return [x for at in starts for x in numbers[at : at + (n - 1) * stride + 1 : stride]]
    return list(map(numbers.__getitem__, index.all()))


def store(pointer: Pointer, value: Block | Scalar, mask: Mask | None = None) -> None:
    """Write a block, or one number, to a block of places.

    Raises KernelError where a lane that is on writes outside of the array, or shapes differ.
    """
    _write(pointer, value, mask, "store")


def atomic_add(pointer: Pointer, value: Block | Scalar, mask: Mask | None = None) -> None:
    """Add to what stands at a block of places, one program after the other.

    Raises KernelError as `store` does.
    """
    _write(pointer, value, mask, "atomic_add")


def _write(pointer: Pointer, value: Block | Scalar, mask: Mask | None, word: str) -> None:
    launch, atomic = running(word), word == "atomic_add"
    index, mask, _ = _places(pointer, mask, word)
    if isinstance(value, Block) and value.own().shape != index.shape:
        raise KernelError(f"{word}: a block of shape {value.shape} to places of {index.shape}.")
    launch.note(access(pointer, index, mask, store=True, atomic=atomic))
    numbers = launch.memory.get(pointer.name)
    if numbers is None:
        return
    source = value.values if isinstance(value, Block) else repeat(value)
    lanes = zip(index.all(), source or (), strict=False)
    if mask is not None:
        lanes = ((at, x) for (at, x), on in zip(lanes, mask.all(), strict=True) if on)  # type: ignore[assignment]
    if atomic:
        for place, number in lanes:
            numbers[place] += number
        return
    last = dict(lanes)
    _note_races(launch, pointer.name, last, index, mask)
    for place, number in last.items():
        numbers[place] = number


def _note_races(
    launch: Launch, name: str, stores: dict[int, float], index: Index, mask: Mask | None
) -> None:
    """Two programs, or two lanes of one, at one place: the last one wins, and none is promised."""
    here, writers = launch.places[-1], launch.writers.setdefault(name, {})
    lanes = builtins.sum(mask.all()) if mask is not None else math.prod(index.shape)
    if lanes > len(stores) and not launch.races:
        launch.races.append(Race(name, next(iter(stores)), here, here))
    if not launch.races:
        for place in writers.keys() & stores.keys():
            if writers[place] != here:
                launch.races.append(Race(name, place, writers[place], here))
                break
    writers.update(dict.fromkeys(stores, here))


def _places(pointer: Pointer, mask: Mask | None, word: str) -> tuple[Index, Mask | None, bool]:
    if not isinstance(pointer, Pointer):
        raise KernelError(f"{word} takes an array plus an index, such as x + tl.arange(0, 64).")
    index = pointer.index
    scalar = isinstance(index, int)
    block = Index((1,), index, (0,)) if isinstance(index, int) else index
    if mask is not None and mask.shape != block.shape:
        if common_shape(mask.shape, block.shape) != block.shape:
            raise KernelError(
                f"{word} of {pointer.name}: a mask of shape {mask.shape} does not cover places of"
                f" {block.shape}."
            )
        mask = mask.widened(block.shape)
    return block, None if mask is None or (mask.box and mask.whole) else mask, scalar


def _special(x: Any, act: Callable[[float], float]) -> Any:
    if isinstance(x, Index):
        x = of_numbers(x)
    if not isinstance(x, Block):
        return act(x)
    running("exp").special += math.prod(x.shape)
    block = Block(x.shape, None if x.values is None else list(map(act, x.values)))
    block.padding = x.padding and x.padding.through(act)
    return block


def exp(x: Any) -> Any:
    """e to the power of each number. Raises KernelError beyond what a number can hold."""
    try:
        return _special(x, math.exp)
    except OverflowError:
        block = of_numbers(x) if isinstance(x, Index) else x
        top = builtins.max(block.values or ()) if isinstance(block, Block) else block
        raise KernelError(
            f"exp of {top:.0f} overflows, as of any number above 709: subtract the row's maximum"
            " first. Lanes that a mask switches off count, too: they hold `other`, 0 unless you say"
            " tl.load(..., other=-float('inf'))."
        ) from None


def log(x: Any) -> Any:
    """The natural logarithm of each number."""
    return _special(x, math.log)


def rsqrt(x: Any) -> Any:
    """One over the square root of each number."""
    return _special(x, lambda number: 1 / math.sqrt(number))


def maximum(a: Any, b: Any) -> Any:
    """The greater of each two numbers."""
    if isinstance(a, Block):
        return a.combined(b, builtins.max)
    return b.combined(a, builtins.max) if isinstance(b, Block) else builtins.max(a, b)


def where(mask: Mask, a: Block | Number, b: Block | Number) -> Block:
    """Numbers of a where the mask is on, of b elsewhere."""
    shape = mask.shape
    for x in (a, b):
        shape = common_shape(shape, x.shape) if isinstance(x, Block) else shape
    launch = running("where")
    launch.vector += math.prod(shape)
    launch.masks += 1
    launch.hidden += mask.empty
    if not launch.values:
        return Block(shape, None)
    choices = zip(
        spread(mask.all(), mask.shape, shape), _lanes(a, shape), _lanes(b, shape), strict=False
    )
    return Block(shape, [x if on else y for on, x, y in choices])


def _lanes(x: Block | Number, shape: Shape) -> Any:
    return spread(x.values or [], x.shape, shape) if isinstance(x, Block) else repeat(x)


def _groups(lanes: list[Any], shape: Shape, axis: int | None) -> list[list[Any]]:
    """Lanes by what is reduced to one number: columns (axis 0), rows (axis 1), or all."""
    if len(shape) == 1 or axis is None:
        return [lanes]
    rows, columns = shape
    if axis == 1:
        return [lanes[i * columns : (i + 1) * columns] for i in range(rows)]
    return [lanes[j::columns] for j in range(columns)]


def _reduced(x: Block, axis: int | None, act: Callable[[list[float]], float]) -> Any:
    running("sum").vector += math.prod(x.shape)
    if len(x.shape) == 1 or axis is None:
        return 1.0 if x.values is None else act(x.values)
    if axis not in (0, 1):
        raise KernelError(f"axis = {axis}: a block of shape {x.shape} has axes 0 and 1.")
    numbers = None if x.values is None else list(map(act, _groups(x.values, x.shape, axis)))
    return Block((x.shape[1 - axis],), numbers)


def max(x: Block, axis: int | None = None) -> Any:
    """The greatest number of each column (axis 0) or row (axis 1), or of all."""
    if x.padding and x.values:
        lanes = (_groups(block, x.shape, axis) for block in (x.values, x.padding.mask.all()))
        for numbers, on in zip(*lanes, strict=True):
            loaded = list(compress(numbers, on))
            if loaded and builtins.max(loaded) < builtins.max(numbers):
                running("max").fillers.setdefault(x.padding.array, ("max", x.padding.other))
    return _reduced(x, axis, builtins.max)


def sum(x: Block, axis: int | None = None) -> Any:
    """The sum of each column (axis 0) or row (axis 1), or of all."""
    if x.padding and x.padding.other and not x.padding.mask.whole:
        running("sum").fillers.setdefault(x.padding.array, ("sum", x.padding.other))
    return _reduced(x, axis, builtins.sum)


def zeros(shape: Shape, dtype: object = None) -> Block:
    """A block of zeros; a `dtype` is taken, as Triton wants one, and changes nothing here."""
    return full(shape, 0.0, dtype)


def full(shape: Shape, value: float, dtype: object = None) -> Block:
    """A block of one number; `dtype` as in `zeros`."""
    values = [value] * math.prod(shape) if running("full").values else None
    return Block(tuple(shape), values)


def trans(x: Block) -> Block:
    """The block with rows and columns exchanged."""
    rows, columns = x.shape
    v = x.values
    turned = None if v is None else [number for j in range(columns) for number in v[j::columns]]
    return Block((columns, rows), turned, x.source, x.element_bytes)


if sys.version_info >= (3, 12):
    _inner = math.sumprod
else:

    def _inner(a: list[float], b: list[float]) -> float:
        return math.fsum(map(operator.mul, a, b))


def dot(a: Block, b: Block, acc: Block | None = None) -> Block:
    """The product of two blocks on tensor cores, added to `acc` where one is given.

    Raises KernelError if the inner sides differ or a side is below 16.
    """
    (m, k), (inner, n) = a.own().shape, b.own().shape
    if k != inner:
        raise KernelError(f"dot of blocks of {a.shape} and {b.shape}: the inner sides differ.")
    if min(m, n, k) < NARROWEST:
        raise KernelError(
            f"dot of blocks of {a.shape} and {b.shape}: Triton wants sides of at least {NARROWEST}."
        )
    launch = running("dot")
    launch.tensor += 2 * m * n * k
    frame = sys._getframe(1)
    launch.products[frame.f_code, frame.f_lasti] = m * n
    for block in (a, b):
        if block.source:
            launch.operands[block.source] = math.prod(block.shape) * block.element_bytes
    if a.values is None or b.values is None:
        return Block((m, n), None)
    columns = [b.values[j::n] for j in range(n)]
    rows = (a.values[i * k : (i + 1) * k] for i in range(m))
    product = Block((m, n), [_inner(row, column) for row in rows for column in columns])
    if acc is None:
        return product
    return Block((m, n), list(map(float.__add__, product.values or [], acc.values or [])))
