"""What crosses the bus, piece by piece: overlap of two clocks, tiles, and chains of passes.

What chapter 2 animates, and a check of its formulas.
"""

from dataclasses import dataclass
from typing import Any

from lightspeed.law import checked, count, nonnegative

SECONDS = nonnegative("s")


@dataclass(frozen=True)
class Piece:
    """One piece of the work: when its bytes move, and when its arithmetic is done, in s."""

    loads: float
    loaded: float
    begins: float
    ends: float


def overlapped(pieces: int, load: float, compute: float) -> tuple[Piece, ...]:
    """The `Piece`s of work that moves bytes for `load` s and computes for `compute` s.

    Each piece is worked on when its bytes are there, while those of the next ones move. One piece
    overlaps nothing; with n of them the time is the longer clock and 1 / n of the shorter one.

    >>> overlapped(4, 8.0, 4.0)[-1].ends
    9.0
    """
    n = _count("overlapped", "pieces", pieces)
    load = checked("overlapped", "load", load, SECONDS) / n
    compute = checked("overlapped", "compute", compute, SECONDS) / n
    timeline: list[Piece] = []
    free = 0.0
    for i in range(n):
        begins = max((i + 1) * load, free)
        free = begins + compute
        timeline.append(Piece(i * load, (i + 1) * load, begins, free))
    return tuple(timeline)


def tile_order(rows: int, columns: int) -> tuple[tuple[int, int], ...]:
    """(row, column) of the output tiles of a matmul, in the order in which they are made.

    Each needs a whole strip of rows of the first matrix and of columns of the second.

    >>> tile_order(2, 2)
    ((0, 0), (0, 1), (1, 0), (1, 1))
    """
    m, n = _count("tile_order", "rows", rows), _count("tile_order", "columns", columns)
    return tuple((i, j) for i in range(m) for j in range(n))


def reads_of_strips(rows: int, columns: int, count: int) -> tuple[list[int], list[int]]:
    """How often each strip of rows, and each of columns, has been read for the first `count` tiles.

    >>> reads_of_strips(2, 2, 3)
    ([2, 1], [2, 1])
    """
    tiles = tile_order(rows, columns)[:count]
    return (
        [sum(i == row for i, _ in tiles) for row in range(rows)],
        [sum(j == column for _, j in tiles) for column in range(columns)],
    )


@dataclass(frozen=True)
class Event:
    """A block of an array is read, a pass is applied to it in the units, or it is written.

    Array 0 is the input, array k what pass k makes.
    """

    kind: str
    array: int
    block: int


def chain(passes: int, blocks: int, fused: bool) -> tuple[Event, ...]:
    """The `Event`s of a chain of elementwise passes over an array of blocks.

    A kernel a pass reads and writes every block each time; a fused kernel keeps a block in the
    units until all passes are through.

    >>> [sum(e.kind != "apply" for e in chain(3, 4, fused)) for fused in (False, True)]
    [24, 8]
    """
    p, n = _count("chain", "passes", passes), _count("chain", "blocks", blocks)
    kernels = [range(1, p + 1)] if fused else [range(k, k + 1) for k in range(1, p + 1)]
    events: list[Event] = []
    for kernel in kernels:
        for block in range(n):
            events.append(Event("read", kernel[0] - 1, block))
            events += [Event("apply", k, block) for k in kernel]
            events.append(Event("write", kernel[-1], block))
    return tuple(events)


def _count(law: str, name: str, value: Any) -> int:
    return int(checked(law, name, value, count()))
