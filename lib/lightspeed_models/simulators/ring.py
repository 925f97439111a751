"""A ring all-reduce run step by step on real arrays: what chapter 7 animates, and a check of its
formulas.

Every rank sends to its right neighbour only. In n - 1 steps of reduce_scatter the sums grow as they
travel; in n - 1 steps of all_gather the finished sums go round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightspeed.errors import BadArgument


@dataclass(frozen=True)
class Step:
    """One step: its phase, and (rank, chunk) of what each rank sends to rank + 1, all at once."""

    phase: str
    sends: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RingRun:
    """`results`: what each rank ends with; `sent`: bytes that left it; `steps`: the order."""

    results: tuple[Any, ...]
    sent: tuple[int, ...]
    steps: tuple[Step, ...]


def ring_schedule(n: int) -> tuple[Step, ...]:
    """The `Step`s of a ring all-reduce of n ranks and n chunks.

    >>> [step.sends for step in ring_schedule(2)]
    [((0, 0), (1, 1)), ((0, 1), (1, 0))]
    """
    phases = [("reduce_scatter", 0), ("all_gather", 1)]
    return tuple(
        Step(phase, tuple((rank, (rank + ahead - step) % n) for rank in range(n)))
        for phase, ahead in phases
        for step in range(n - 1)
    )


def run_ring(arrays: Sequence[Any]) -> RingRun:
    """The `RingRun` of an all-reduce (sum) over one array a rank; chunks may differ by one element.

    Raises BadArgument unless the arrays have one shape and are at least one.

    >>> import numpy
    >>> run = run_ring([numpy.array([1, 2]), numpy.array([10, 20])])
    >>> run.results[0].tolist(), run.sent
    ([11, 22], (16, 16))
    """
    import numpy

    arrays = [numpy.asarray(a) for a in arrays]
    if not arrays or any(a.shape != arrays[0].shape for a in arrays):
        shapes = [a.shape for a in arrays]
        raise BadArgument("run_ring", "arrays", shapes, "one array for each rank, all of one shape")
    n, steps = len(arrays), ring_schedule(len(arrays))
    chunks = [[c.copy() for c in numpy.array_split(a.ravel(), n)] for a in arrays]
    traffic = [0] * n
    for step in steps:
        # All ranks send at once: take what leaves before anything arrives.
        leaving = [(rank, chunk, chunks[rank][chunk].copy()) for rank, chunk in step.sends]
        for rank, chunk, data in leaving:
            right = chunks[(rank + 1) % n]
            right[chunk] = right[chunk] + data if step.phase == "reduce_scatter" else data
            traffic[rank] += data.nbytes
    results = tuple(numpy.concatenate(mine).reshape(arrays[0].shape) for mine in chunks)
    return RingRun(results, tuple(traffic), steps)
