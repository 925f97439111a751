"""Is mine normal? A measured busbw among the same collective on the same links elsewhere.

    percentile(150e9, "h100_sxm", 8, "all_reduce", 1e9)

Peers are the NCCL rows of the evidence: one node, 2 to 8 GPUs. A *sweep* over sizes, by one version
of NCCL on one kind of chip, gives one peer, read off at the size that is asked for. Chips with
links of one rate are peers (H100 and H200, B200 to GB300: their medians agree to 4 %), but integers
are no peers of floats where something is added: the switch does not add them.
"""

import functools
from collections import Counter
from dataclasses import dataclass

import numpy as np

from lightspeed.catalog import find
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count, positive
from lightspeed_models.evidence.chips import of_buffers
from lightspeed_models.evidence.sets import dataset

# As nccl-tests spells them, and as the set does.
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
ADDS = ("all_reduce", "reduce_scatter")


@dataclass(frozen=True)
class Standing:
    """A busbw among its peers: the share of them that is slower (a tie counts half), how many there
    are and on which chips, their busbw (byte/s, slowest first), and the size (bytes) at which they
    were read: the largest measured one where the size asked for is larger.
    """

    percentile: float
    peers: int
    chips: tuple[str, ...]
    busbw: tuple[float, ...]
    size: float

    @property
    def median(self):
        """The busbw (byte/s) of the peer in the middle."""
        return float(np.median(self.busbw))


def percentile(busbw, chip, ranks, operation, size, integer=False):
    """The `Standing` of a busbw (byte/s) of `operation` with `size` bytes over `ranks` GPUs of this
    chip (a key of the catalog) in one node; None where nothing comparable was measured: another
    rate of links or number of ranks, a size below the smallest. `integer`: of whole numbers.

    Raises BadArgument for a value that is no rate, count or size, for an unknown chip or operation.
    """
    checked("percentile", "busbw", busbw, positive("byte/s"))
    checked("percentile", "ranks", ranks, count(hint="ranks counts GPUs, not nodes."))
    checked("percentile", "size", size, positive("byte"))
    one_of("percentile", "operation", operation, OPERATIONS)
    entry = find(chip)
    if "link_bandwidth" not in entry:
        raise BadArgument("percentile", "chip", chip, "an accelerator with links to others")
    kind = "int8" if integer else "half"
    sweeps = [
        (sweep, points)
        for sweep, points in _sweeps().items()
        if (sweep.link, sweep.ranks, sweep.operation) == (entry.link_bandwidth, ranks, operation)
        and (sweep.format == kind or operation not in ADDS)
    ]
    at = min(float(size), max((float(sizes[-1]) for _, (sizes, _) in sweeps), default=0.0))
    # Between two measured sizes, on logarithmic scales.
    same = {
        sweep: float(np.exp(np.interp(np.log(at), np.log(sizes), np.log(rates))))
        for sweep, (sizes, rates) in sweeps
        if sizes[0] <= at <= sizes[-1]
    }
    if not same:
        return None
    rates = sorted(same.values())
    below = sum(one < busbw for one in rates) + sum(one == busbw for one in rates) / 2
    chips = tuple(sorted({sweep.chip for sweep in same}))
    return Standing(below / len(rates), len(rates), chips, tuple(rates), at)


@dataclass(frozen=True)
class Sweep:
    """One run over sizes; `link`: byte/s of the chip's links, `again`: which of equal runs."""

    chip: str
    link: float
    ranks: int
    operation: str
    library: str
    format: str
    again: int


@functools.cache
def _sweeps():
    """`Sweep` -> (sizes, busbw), sizes rising."""
    rows = dataset("nccl")
    size, factor = of_buffers(rows)
    rate = size / rows["latency"] * factor
    names = ("chip", "operation", "library", "format")
    words = zip(*(rows[name] for name in names), strict=True)
    counts, points_of = Counter(), {}
    for (chip, operation, library, kind), ranks, s, b in zip(
        words, rows["ranks"].tolist(), size.tolist(), rate.tolist(), strict=True
    ):
        # The second row of one size belongs to the second run.
        counts[chip, ranks, operation, library, kind, s] += 1
        again = counts[chip, ranks, operation, library, kind, s]
        link = float(find(chip).link_bandwidth)
        sweep = Sweep(chip, link, int(ranks), operation, library, kind, again)
        points_of.setdefault(sweep, []).append((s, b))
    return {
        sweep: tuple(map(np.array, zip(*sorted(points), strict=True)))
        for sweep, points in points_of.items()
    }
