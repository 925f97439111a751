"""An all-reduce, round by round: along a ring, up and down a tree, through a switch that adds.

What chapter 7 animates. A node is a GPU or, with the number after the last GPU's, the switch. The
buffer is cut into chunks. What a node holds of a chunk is the set of GPUs whose numbers are added
up in it, so that a state shows whether each of them is counted, and none of them twice.

Sources: Thakur, Rabenseifner and Gropp (IJHPCA 19(1), 2005) for ring and binomial tree; Graham et
al., "SHARP" (COMHPC 2016) for the switch.
"""

from dataclasses import dataclass

from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count
from lightspeed_models.simulators.ring import ring_schedule

ALGORITHMS = ("ring", "tree", "switch")


@dataclass(frozen=True)
class Send:
    """One chunk on its way. The target adds it to its own, or else takes it in place of its own."""

    source: int
    target: int
    chunk: int
    adds: bool


@dataclass(frozen=True)
class State:
    """After a round: `held[node][chunk]`, whose numbers are in it, and the sends that `arrived`.

    `sent` and `received` count what went through each GPU so far, in buffers.
    """

    held: tuple[tuple[frozenset[int], ...], ...]
    arrived: tuple[Send, ...]
    sent: tuple[float, ...]
    received: tuple[float, ...]


def rounds(algorithm: str, n: int) -> tuple[tuple[Send, ...], ...]:
    """The sends of each round of an all-reduce of n GPUs; those of a round happen at once.

    A ring cuts the buffer into n chunks. A tree and a switch send it whole: chunk 0.

    >>> [len(sends) for sends in rounds("tree", 8)]
    [4, 2, 1, 1, 2, 4]
    """
    one_of("rounds", "algorithm", algorithm, ALGORITHMS)
    n = int(checked("rounds", "n", n, count(hint="n counts GPUs.")))
    if n < 2:
        raise BadArgument("rounds", "n", n, "at least 2 GPUs", "One GPU has nobody to add to.")
    if algorithm == "ring":
        return tuple(
            tuple(Send(r, (r + 1) % n, c, step.phase == "reduce_scatter") for r, c in step.sends)
            for step in ring_schedule(n)
        )
    if algorithm == "switch":
        up = tuple(Send(rank, n, 0, True) for rank in range(n))
        return up, tuple(Send(n, rank, 0, False) for rank in range(n))
    # Binomial: in round k those whose lowest set bit is bit k hand over to the rank without it.
    climb = tuple(
        tuple(Send(r, r - step, 0, True) for r in range(step, n, 2 * step))
        for step in (1 << k for k in range((n - 1).bit_length()))
    )
    down = tuple(tuple(Send(s.target, s.source, 0, False) for s in sends) for sends in climb)
    return climb + down[::-1]


def states(algorithm: str, n: int) -> tuple[State, ...]:
    """The `State` before the first round and after each.

    >>> [max(state.sent) for state in states("switch", 8)]
    [0.0, 1.0, 1.0]
    """
    chunks = n if algorithm == "ring" else 1
    own = [tuple(frozenset({rank}) for _ in range(chunks)) for rank in range(n)]
    data = [*own, (frozenset(),)] if algorithm == "switch" else own
    outgoing, received = [0.0] * n, [0.0] * n
    frames = [State(tuple(data), (), tuple(outgoing), tuple(received))]
    for sends in rounds(algorithm, n):
        before, now = data, [list(row) for row in data]  # all of a round leave at once
        for s in sends:
            arrives = before[s.source][s.chunk]
            now[s.target][s.chunk] = now[s.target][s.chunk] | arrives if s.adds else arrives
            if s.source < n:
                outgoing[s.source] += 1 / chunks
            if s.target < n:
                received[s.target] += 1 / chunks
        data = [tuple(row) for row in now]
        frames.append(State(tuple(data), sends, tuple(outgoing), tuple(received)))
    return tuple(frames)
