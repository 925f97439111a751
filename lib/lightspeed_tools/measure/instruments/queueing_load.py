"""What is sent to the queues of chapter 4: stations, rates, and requests drawn from a seed."""

import itertools
import math
import random
from dataclasses import dataclass, replace

SERVERS = {"M/M/1": 1, "M/D/1": 1, "M/M/4": 4}
LOADS = (0.3, 0.5, 0.7, 0.8, 0.9)
CLOSED = 0.8  # the load that is also sent by a closed loop, request by request the same
SLICES = 20  # stretches of a run whose means are compared


@dataclass(frozen=True)
class Load:
    """What one station gets: `rate` requests/s to `servers`, which take `service` s each."""

    law: str
    load: float
    servers: int
    service: float
    rate: float
    requests: int
    seed: int
    loop: str = "open"

    def at(self, level):
        """The same kind of load at another level."""
        return replace(self, load=level, rate=self.rate * level / self.load)


def loads(seconds, service, late=0.0, levels=LOADS):
    """One measurement's `Load`s, at rates that make servers as busy as `load` says."""
    found = []
    for law, servers in SERVERS.items():
        for seed, level in enumerate(levels):
            each = service * servers
            rate = level * servers / (each + late)
            found.append(
                Load(law, level, servers, each, rate, max(SLICES, round(rate * seconds)), seed)
            )
    return [
        *found,
        *(replace(x, loop="closed") for x in found if x.law == "M/M/1" and x.load == CLOSED),
    ]


def schedule(load):
    """(due times, services) in s: drawn, but the same on any machine, and of one level with one
    pattern of arrivals, so that machines and laws compare.
    """
    gaps, sizes = random.Random(f"gaps {load.seed}"), random.Random(f"sizes {load.seed}")
    due = itertools.accumulate(
        -math.log(1 - gaps.random()) / load.rate for _ in range(load.requests)
    )
    fixed = load.law == "M/D/1"
    return list(due), [
        load.service * (1.0 if fixed else -math.log(1 - sizes.random()))
        for _ in range(load.requests)
    ]


def load_of(quantity):
    """The `Load` under which a latency was measured."""
    named = {n: quantity.parameters[n] for n in ("law", "load", "loop")}
    return Load(
        **named,
        **{n: quantity.counted[n] for n in ("servers", "service", "rate", "requests", "seed")},
    )


def slices(values):
    """`SLICES` stretches of nearly equal length, in order."""
    edges = [round(i * len(values) / SLICES) for i in range(SLICES + 1)]
    return [values[a:b] for a, b in itertools.pairwise(edges) if b > a]
