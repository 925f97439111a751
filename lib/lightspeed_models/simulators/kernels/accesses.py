"""One load or store of a block: which bytes it asks for, which lines and sectors it touches.

Inside one access the L1 cache is taken as ideal: a sector crosses once however many lanes ask for
it. Lanes run along the smallest stride, 32 to a warp, as a good compiler lays them out.
"""

from collections.abc import Iterable
from math import prod

from lightspeed_models.simulators.kernels.arrays import Pointer
from lightspeed_models.simulators.kernels.indices import Index, Mask
from lightspeed_models.simulators.kernels.record import LINE, SECTOR, WARP, Access, KernelError


def access(
    pointer: Pointer, index: Index, mask: Mask | None, store: bool, atomic: bool = False
) -> Access:
    """The `Access` of the lanes of `index` that `mask` leaves on.

    Raises KernelError where a lane that is on lies outside of the array.
    """
    if index.affine and (mask is None or mask.box is not None):
        lines, sectors, lanes_on = _affine(pointer, index, mask, store)
    else:
        lines, sectors, lanes_on = _scattered(pointer, index, mask, store)
    lanes = prod(index.shape)
    size = lanes_on * pointer.element_bytes
    masked = lanes - lanes_on
    return Access(pointer.name, pointer.address, store, atomic, size, lanes, masked, lines, sectors)


def _check(pointer: Pointer, low: int, high: int, store: bool, lanes: int) -> None:
    """Raise KernelError for places out of range: past the end some lanes want a mask, but where all
    lie there it is the offset that is wrong.
    """
    if low >= 0 and high < pointer.size:
        return
    fault = (
        f"{'store to' if store else 'load of'} {pointer.name}: index {low if low < 0 else high} is"
        f" out of range, it has {pointer.size:,} elements"
    )
    if lanes > 1 and (low >= pointer.size or high < 0):
        raise KernelError(
            f"{fault}, and all lanes lie outside. A mask would not help: look at the offset, what"
            " it counts (rows, heads, tokens) and how long each of them is in this array."
        )
    raise KernelError(f"{fault}; a mask is missing, or wrong.")


def _affine(
    pointer: Pointer, index: Index, mask: Mask | None, store: bool
) -> tuple[int, list[tuple[int, int]], int]:
    box = mask.box if mask is not None and mask.box else tuple((0, n) for n in index.shape)
    sides = [(end - first, s) for (first, end), s in zip(box, index.strides, strict=True)]
    if any(n <= 0 for n, _ in sides):
        return 0, [], 0
    base = index.base + sum(first * s for (first, _), s in zip(box, index.strides, strict=True))
    part = Index(tuple(n for n, _ in sides), base, tuple(s for _, s in sides))
    _check(pointer, *part.bounds(), store, prod(part.shape))
    width, start = pointer.element_bytes, pointer.address + base * pointer.element_bytes
    moving = sorted((abs(s), n, s) for n, s in sides if n > 1 and s)
    (_, n, stride), (_, rows, step) = [*moving, (0, 1, 0), (0, 1, 0)][:2]
    if stride == 1 and step == n:
        n, rows = n * rows, 1
    warp = {
        (start + (k // n * step + k % n * stride) * width) // LINE
        for k in range(min(WARP, n * rows))
    }
    if 0 < stride * width <= SECTOR or n == 1:
        span = ((n - 1) * stride + 1) * width
        sectors = _rows(start, span, rows, step * width)
    else:
        single = sorted(
            {
                (start + (i * step + j * stride) * width) // SECTOR
                for i in range(rows)
                for j in range(n)
            }
        )
        sectors = _joined((sector, sector + 1) for sector in single)
    return len(warp), sectors, prod(n for n, _ in sides)


def _scattered(
    pointer: Pointer, index: Index, mask: Mask | None, store: bool
) -> tuple[int, list[tuple[int, int]], int]:
    places = index.all()
    if mask is not None:
        places = [place for place, on in zip(places, mask.all(), strict=True) if on]
    if not places:
        return 0, [], 0
    _check(pointer, min(places), max(places), store, len(places))
    at = [pointer.address + place * pointer.element_bytes for place in places]
    warps = (at[i : i + WARP] for i in range(0, len(at), WARP))
    lines = max(len({byte // LINE for byte in warp}) for warp in warps)
    single = sorted({byte // SECTOR for byte in at})
    return lines, _joined((sector, sector + 1) for sector in single), len(places)


def _rows(start: int, span: int, rows: int, step: int) -> list[tuple[int, int]]:
    """Runs of sectors of so many rows of `span` bytes, `step` bytes apart."""
    first, end = start // SECTOR, (start + span - 1) // SECTOR + 1
    ahead, rest = divmod(step, SECTOR)
    if not rest and ahead > end - first:  # rows that look alike and don't meet
        return [(first + i, end + i) for i in range(0, rows * ahead, ahead)]
    starts = [start + i * step for i in range(rows)] if step else [start]
    return _joined((at // SECTOR, (at + span - 1) // SECTOR + 1) for at in starts)


def _joined(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of sectors, each sector once, in order."""
    spans: list[tuple[int, int]] = []
    for first, end in runs:
        if spans and spans[-1][0] <= first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((first, end))
    return spans
