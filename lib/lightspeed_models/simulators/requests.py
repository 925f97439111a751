"""A few requests, one by one: which server or slot takes each of them, and when.

What chapter 4 animates. `queue_simulation` beside it runs millions and says when; these also say
where, in plain Python. Times are in service times or steps, whatever the caller counts.
"""

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass

from lightspeed.errors import BadArgument
from lightspeed.law import checked, count, nonnegative, positive

TIMES = nonnegative()


@dataclass(frozen=True)
class Visit:
    """A request: when it arrives, starts and leaves, and the server or slot that has it."""

    arrives: float
    starts: float
    leaves: float
    place: int


def drawn(load: float, servers: int, n: int, seed: int) -> tuple[list[float], list[float]]:
    """Arrivals and service times of n requests: Poisson arrivals, exponential service of mean 1.

    The same seed at another load gives the same requests, closer together or further apart.

    >>> times = [drawn(load, 1, 3, seed=1)[0][0] for load in (0.5, 1.0)]
    >>> round(times[0] / times[1], 9)
    2.0
    """
    load = checked("drawn", "load", load, positive())
    n = int(checked("drawn", "n", n, count()))
    rng = random.Random(seed)
    arrivals, services, now = [], [], 0.0
    for _ in range(n):
        now += rng.expovariate(1.0) / (load * servers)
        arrivals.append(now)
        services.append(rng.expovariate(1.0))
    return arrivals, services


def served(
    arrivals: Sequence[float], services: Sequence[float], servers: int = 1
) -> tuple[Visit, ...]:
    """The `Visit`s of requests that are served first come, first served.

    >>> [v.starts for v in served([0.0, 1.0, 2.0], [3.0, 1.0, 1.0])]
    [0.0, 3.0, 4.0]
    """
    servers = int(checked("served", "servers", servers, count()))
    _in_order("served", arrivals, "services", services)
    free = [(0.0, place) for place in range(servers)]
    visits = []
    for arrives, service in zip(arrivals, services, strict=True):
        # Of the servers that are free on arrival the first one, else the next to be free.
        idle = [(place, at) for at, place in free if at <= arrives]
        at, place = (min(idle)[1], min(idle)[0]) if idle else free[0]
        free.remove((at, place))
        starts = max(arrives, at)
        heapq.heapify(free)
        heapq.heappush(free, (starts + service, place))
        visits.append(Visit(arrives, starts, starts + service, place))
    return tuple(visits)


def decoded(tokens: Sequence[int], slots: int, continuous: bool = True) -> tuple[Visit, ...]:
    """The `Visit`s of requests that all wait at step 0, decoded a token a step in some slots.

    Continuous batching gives a free slot to the next request at once. Static batching waits until
    every request of the batch is done.

    >>> [v.leaves for v in decoded([4, 1, 1], 2)], [v.leaves for v in decoded([4, 1, 1], 2, False)]
    ([4, 1, 2], [4, 1, 5])
    """
    slots = int(checked("decoded", "slots", slots, count()))
    lengths = [int(checked("decoded", "tokens", t, count("token"))) for t in tokens]
    visits: list[Visit] = []
    if not continuous:
        start = 0
        for first in range(0, len(lengths), slots):
            batch = lengths[first : first + slots]
            visits += [Visit(0, start, start + t, place) for place, t in enumerate(batch)]
            start += max(batch)
        return tuple(visits)
    free = [(0, place) for place in range(slots)]
    for t in lengths:
        at, place = heapq.heappop(free)
        heapq.heappush(free, (at + t, place))
        visits.append(Visit(0, at, at + t, place))
    return tuple(visits)


def _in_order(law: str, arrivals: Sequence[float], name: str, values: Sequence[float]) -> None:
    for each in (*arrivals, *values):
        checked(law, "arrivals", each, TIMES)
    if sorted(arrivals) != list(arrivals):
        raise BadArgument(law, "arrivals", arrivals, "times in ascending order")
    if len(arrivals) != len(values):
        raise BadArgument(law, name, values, f"{len(arrivals)} values, one for each arrival")
