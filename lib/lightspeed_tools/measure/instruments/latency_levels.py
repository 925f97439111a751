"""Latency over working-set size, and the levels of memory that the data show. Chapter 1.

The working set is walked along a random cycle, one load at a time. While it fits into a cache every
load takes that cache's latency; beyond, most loads take that of the next level. So levels are the
flat stretches of the ladder, and where one ends a cache is full. How many there are is not assumed:
a virtual machine may share a cache, or hide it.
"""

import itertools
import math
import statistics
from dataclasses import dataclass

from lightspeed_show import si
from lightspeed_tools.measure.records import record

JUMP = 1.35  # the next level begins slower by this factor or more, else it is the same one
FLAT = 1.2  # a level grows by at most this factor over a doubling of the working set
FEWEST = 3  # points that make a level
PENALTY = math.log(1.5)  # what a further segment must save in summed |log latency| to be worth it
NEAR = 1.5  # a step this close to an advertised size is taken for it


@dataclass(frozen=True)
class Level:
    """A flat stretch of the ladder: working sets `low` to `high` (byte), median `latency` (s)."""

    low: int
    high: int
    latency: float


def sizes(largest, smallest=4096, per_octave=2):
    """Working sets in bytes from `smallest` to `largest`, whole lines, even in logarithm."""
    count = round(math.log2(largest / smallest) * per_octave)
    return [round(smallest * 2 ** (k / per_octave) / 64) * 64 for k in range(count + 1)]


def levels(sizes, latencies):
    """The levels of a ladder, fastest first; none where the latency climbs all the way.

    `sizes` (byte) rise; `latencies` (s, or anything that takes longer the farther away) belong to
    them.

    A larger working set is never faster, so a point that lies above a later one was disturbed and
    counts as that one. The points are then cut into segments by the least sum of absolute
    deviations of the logarithm from each segment's median, with a price on every segment. Segments
    that are flat and long enough are levels; neighbours of which one begins less than JUMP above
    the end of the other are one.
    """
    least = list(itertools.accumulate(reversed(list(latencies)), min))[::-1]
    octave, height = [math.log2(size) for size in sizes], [math.log(time) for time in least]
    plateaus = []
    for first, last in _segments(height):
        if last - first + 1 < FEWEST or _slope(
            octave[first : last + 1], height[first : last + 1]
        ) > math.log(FLAT):
            continue
        if plateaus:
            before, begin = plateaus[-1][1], height[first : first + FEWEST]
            end = height[before + 1 - FEWEST : before + 1]
            if statistics.median(begin) - statistics.median(end) < math.log(JUMP):
                first = plateaus.pop()[0]
        plateaus.append((first, last))
    return [
        Level(int(sizes[a]), int(sizes[b]), float(statistics.median(latencies[a : b + 1])))
        for a, b in plateaus
    ]


def _segments(height):
    """The cheapest cut of the points into segments, (first, last) pairs, of all cuts."""
    n = len(height)
    best, cut = [0.0] * (n + 1), [0] * (n + 1)
    for end in range(1, n + 1):
        costs = [best[k] + PENALTY + _spread(height[k:end]) for k in range(end)]
        cut[end] = min(range(end), key=costs.__getitem__)
        best[end] = costs[cut[end]]
    pairs, end = [], n
    while end:
        pairs.append((cut[end], end - 1))
        end = cut[end]
    return pairs[::-1]


def _spread(values):
    middle = statistics.median(values)
    return math.fsum(abs(value - middle) for value in values)


def _slope(x, y):
    """Median slope between all pairs of points (Theil and Sen): no wild point moves it."""
    return statistics.median(
        (y[j] - y[i]) / (x[j] - x[i]) for i in range(len(x)) for j in range(i + 1, len(x))
    )


def steps(found):
    """Return where caches end: for each pair of levels, the working sets (byte) between them."""
    return [(lower.high, upper.low) for lower, upper in itertools.pairwise(found)]


def binary(size):
    """A size in bytes as caches are labelled: 48 KiB, 1.5 MiB.

    >>> binary(49152), binary(2**30)
    ('48 KiB', '1 GiB')
    """
    power = min(3, max(0, int(math.log2(size) // 10)))
    return f"{size / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def of_quantities(quantities):
    """Sizes and latencies from a ladder's quantities (`all_of(record, "host.latency")`)."""
    pairs = sorted((q.parameters["size"], q.value) for q in quantities)
    return [size for size, _ in pairs], [latency for _, latency in pairs]


def advertised(machine):
    """Return name -> bytes of a core's data caches, from `environment.describe()`."""
    data = [c for c in machine.get("caches", ()) if c["kind"] != "instruction"]
    return {f"L{c['level']}": c["size"] for c in sorted(data, key=lambda c: c["level"])}


def conclude(machine):
    """Return what a record's ladder shows about the caches, in sentences, or why nothing."""
    quantities = record.all_of(machine, "host.latency")
    if not quantities:
        return ["This record has no latency ladder."]
    wide = [q for q in quantities if q.samples and not q.trusted]
    if len(wide) > len(quantities) / 2:
        return [
            f"{len(wide)} of {len(quantities)} steps have too wide a spread, so nothing is"
            " concluded. Measure again on a quiet machine."
        ]
    sizes, latencies = of_quantities(quantities)
    if len(sizes) <= math.log2(sizes[-1] / sizes[0]):
        return [
            f"{len(sizes)} steps between {binary(sizes[0])} and {binary(sizes[-1])} are too few to"
            " find levels."
        ]
    plateaus = levels(sizes, latencies)
    if not plateaus:
        return ["Latency climbs all the way: no level can be told from the next."]
    sentences = [
        f"From {binary(level.low)} to {binary(level.high)} a load takes"
        f" {si(level.latency, 's', 2)}."
        for level in plateaus
    ]
    return sentences + beside_advertised(plateaus, advertised(machine["machine"]))


def beside_advertised(found, advertised):
    """Compare the steps with the advertised caches (`advertised`: "L2" -> bytes): return a sentence
    for each cache and unmatched step.
    """
    seen, sentences = steps(found), []
    claimed = {}
    for name, size in advertised.items():
        near = [s for s in seen if s[0] / NEAR <= size <= s[1] * NEAR]
        if near:
            nearest = min(near, key=lambda s: abs(math.log(size * size / (s[0] * s[1]))))
            claimed.setdefault(nearest, []).append(name)
            low, high = (binary(b) for b in nearest)
            sentences.append(
                f"{name}: advertised {binary(size)}, and a step between {low} and {high} agrees"
                " with that."
            )
        elif found and size > found[-1].high:
            sentences.append(
                f"{name}: advertised {binary(size)}, more than the largest working set measured."
            )
        else:
            sentences.append(
                f"{name}: advertised {binary(size)}, but no step is near. It may be shared, hidden"
                " by a virtual machine, or blurred."
            )
    for names in claimed.values():
        if len(names) > 1:
            sentences.append(
                f"{' and '.join(names)} share one step: the ladder does not tell them apart."
            )
    for low, high in (s for s in seen if s not in claimed):
        sentences.append(
            f"A step between {binary(low)} and {binary(high)} is no advertised cache. A part of a"
            " shared cache can make one, or the reach of the address translation (TLB)."
        )
    return sentences
