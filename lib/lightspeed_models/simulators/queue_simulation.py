"""A queue, simulated request by request, to check the closed forms and to go where they end. Used
in chapter 4.

Times are plain arrays in s. Draw them with a seeded numpy generator, so that a run can be repeated:

    rng = numpy.random.default_rng(4)
    path = simulate(poisson_arrivals(9, 10**6, rng), rng.exponential(1 / 10, 10**6))
    batch_means(path.sojourn)

Sources: Lindley, "The theory of queues with a single server" (1952); Law and Kelton, "Simulation
Modeling and Analysis" for batch means.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lightspeed.elementwise import INF, is_array
from lightspeed.errors import BadArgument
from lightspeed.law import Argument, checked, count, nonnegative, positive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TIMES = nonnegative("s")


@dataclass(frozen=True)
class Path:
    """What happened to each request that was let in, in order of arrival: times in s."""

    arrival: np.ndarray
    start: np.ndarray
    departure: np.ndarray
    shed: int = 0

    @property
    def waiting(self) -> Any:
        return self.start - self.arrival

    @property
    def sojourn(self) -> Any:
        return self.departure - self.arrival


@dataclass(frozen=True)
class Interval:
    """A mean and the confidence interval round it."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Observed:
    """What a clock, a counter and a stopwatch see: mean inside, arrivals/s, mean stay (s)."""

    L: float
    arrival_rate: float
    W: float


def poisson_arrivals(rate: float, n: int, rng: np.random.Generator) -> Any:
    """The times (s) of `n` arrivals at random, `rate` a second on average.

    >>> import numpy as np
    >>> poisson_arrivals(1000, 3, np.random.default_rng(0)).shape
    (3,)
    """
    import numpy as np

    rate = checked("poisson_arrivals", "rate", rate, positive("request/s"))
    return np.cumsum(rng.exponential(1 / rate, checked("poisson_arrivals", "n", n, count())))


def simulate(
    arrivals: NDArray[Any], services: NDArray[Any], servers: int = 1, capacity: float = INF
) -> Path:
    """The `Path` of requests served first come, first served.

    `arrivals` are times in ascending order and `services` durations (s), one for each request. With
    one server and no limit this is a few array operations, for millions of requests a second; else
    an event loop. A request that finds `capacity` others inside is shed.

    >>> import numpy as np
    >>> simulate(np.array([0.0, 1.0, 2.0]), np.array([3.0, 1.0, 1.0])).waiting
    array([0., 2., 2.])
    """
    arrivals = checked("simulate", "arrivals", arrivals, TIMES)
    services = checked("simulate", "services", services, TIMES)
    servers = checked("simulate", "servers", servers, count())
    capacity = checked("simulate", "capacity", capacity, count(low=servers, infinite=True))
    _same_length("simulate", arrivals, "services", services)
    if servers == 1 and capacity == INF:
        return _one_server(arrivals, services)
    import numpy as np

    rows, shed = serve(arrivals.tolist(), services.tolist(), servers, capacity)
    arrival, start, departed = np.array(rows).T
    return Path(arrival, start, departed, shed)


def _same_length(law: str, arrivals: Any, name: str, values: Any) -> None:
    import numpy as np

    if not is_array(arrivals) or arrivals.ndim != 1 or (np.diff(arrivals) < 0).any():
        expected = "a one-dimensional array of times in ascending order"
        raise BadArgument(law, "arrivals", arrivals, expected)
    if not is_array(values) or values.shape != arrivals.shape:
        expected = f"an array of {arrivals.size} values, one for each arrival"
        raise BadArgument(law, name, values, expected)


def _one_server(arrivals: Any, services: Any) -> Path:
    """Lindley's recursion D[n] = max(A[n], D[n - 1]) + S[n], unrolled: less the running sum of
    services C, D[n] - C[n] is a running maximum of A[n] - C[n - 1].
    """
    import numpy as np

    before = np.cumsum(services) - services
    slack = arrivals - before
    latest = np.maximum.accumulate(slack)
    # Who finds the server idle starts on arrival, to the last bit: rounding must not make it wait.
    start = np.where(latest == slack, arrivals, np.maximum(latest + before, arrivals))
    return Path(arrivals, start, start + services)


def serve(
    arrivals: Sequence[float], services: Sequence[float], servers: int = 1, capacity: float = INF
) -> tuple[list[tuple[float, float, float]], int]:
    """The event loop of `simulate`, on plain numbers: (arrival, start, departure) of each request
    that was let in, and how many were shed.

    >>> serve([0.0, 1.0, 2.0], [3.0, 1.0, 1.0], servers=2)[0]
    [(0.0, 0.0, 3.0), (1.0, 1.0, 2.0), (2.0, 2.0, 3.0)]
    """
    free = [0.0] * servers  # when each server is free next
    inside: list[float] = []  # departure times of those inside
    rows, shed = [], 0
    limited = capacity < INF
    for arrival, service in zip(arrivals, services, strict=True):
        if limited:
            while inside and inside[0] <= arrival:
                heapq.heappop(inside)
            if len(inside) >= capacity:
                shed += 1
                continue
        start = arrival if arrival > free[0] else free[0]
        end = start + service
        heapq.heapreplace(free, end)
        if limited:
            heapq.heappush(inside, end)
        rows.append((arrival, start, end))
    return rows, shed


def simulate_decoding(
    arrivals: NDArray[Any],
    tokens: NDArray[Any],
    slots: int,
    step_time: Callable[[int], float],
    prefill: float = 0.0,
) -> Path:
    """The `Path` of requests of `tokens` each, decoded together by a replica with room for `slots`.

    Continuous batching: before every step those who wait move into free slots, at the cost of
    `prefill` (s) each; a step with n requests takes `step_time(n)` (s) and gives each one token.

    >>> import numpy as np
    >>> arrivals, tokens = np.array([0.0, 0.0, 0.0]), np.array([2, 1, 1])
    >>> simulate_decoding(arrivals, tokens, 2, lambda n: 1.0).departure
    array([2., 1., 2.])
    """
    import numpy as np

    arrivals = checked("simulate_decoding", "arrivals", arrivals, TIMES)
    tokens = checked("simulate_decoding", "tokens", tokens, count("token"))
    slots = checked("simulate_decoding", "slots", slots, count())
    prefill = checked("simulate_decoding", "prefill", prefill, TIMES)
    _same_length("simulate_decoding", arrivals, "tokens", tokens)
    start, departure = np.empty_like(arrivals), np.empty_like(arrivals)
    # Plain numbers: one by one, a loop reads a list several times as fast as an array.
    due, lengths, n = arrivals.tolist(), tokens.tolist(), len(arrivals)
    clock, steps, waiting = 0.0, 0, 0
    batch: list[tuple[float, int]] = []  # step after which it leaves, request
    while batch or waiting < n:
        if not batch:
            clock = max(clock, due[waiting])
        while len(batch) < slots and waiting < n and due[waiting] <= clock:
            start[waiting] = clock
            clock += prefill
            heapq.heappush(batch, (steps + lengths[waiting], waiting))
            waiting += 1
        clock, steps = clock + step_time(len(batch)), steps + 1
        while batch and batch[0][0] <= steps:
            departure[heapq.heappop(batch)[1]] = clock
    return Path(arrivals, start, departure)


def number_inside(path: Path) -> tuple[Any, Any]:
    """(times, counts): the number in the system from each of the times (s) to the next one.

    >>> import numpy as np
    >>> number_inside(simulate(np.array([0.0, 1.0]), np.array([3.0, 1.0])))[1].tolist()
    [1, 2, 1, 0]
    """
    import numpy as np

    times = np.concatenate([path.arrival, path.departure])
    steps = np.repeat([1, -1], path.arrival.size)
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(steps[order])


def observed(path: Path, until: float | None = None) -> Observed:
    """The `Observed` averages up to a time (s), by default until the last request has left.

    Each is measured on its own: L from the count of those inside over time, W from the stays of
    those who arrived. When the system is empty at both ends, L = arrival rate x W exactly.

    >>> import numpy as np
    >>> observed(simulate(np.array([0.0, 1.0]), np.array([3.0, 1.0])))
    Observed(L=1.5, arrival_rate=0.5, W=3.0)
    """
    import numpy as np

    last = path.departure.max()
    until = last if until is None else checked("observed", "until", until, positive("s"))
    times, counts = number_inside(path)
    # The last event may be later than `until`, and the count is zero before the first.
    edges = np.minimum(np.append(times, until), until)
    here = path.arrival <= until
    if not here.any():
        expected, hint = f"at least {path.arrival[0]:g}", "Nobody has arrived by then."
        raise BadArgument("observed", "until", until, expected, hint)
    return Observed(
        float(counts @ np.diff(edges) / until),
        float(here.sum() / until),
        float(path.sojourn[here].mean()),
    )


def batch_means(
    values: NDArray[Any], batches: int = 20, warmup: float = 0.1, confidence: float = 0.95
) -> Interval:
    """The mean of values in order of time, as an `Interval` that allows for their correlation.

    Neighbours in a queue wait alike, so n waits tell less than n independent numbers. The first
    `warmup` share is dropped; the means of `batches` long stretches are nearly independent.

    >>> import numpy as np
    >>> batch_means(np.array([1.0, 3.0] * 100), batches=2, warmup=0.0)
    Interval(mean=2.0, low=2.0, high=2.0)
    """
    values = checked("batch_means", "values", values, Argument(low=-INF))
    batches = checked("batch_means", "batches", batches, count(low=2))
    warmup = checked("batch_means", "warmup", warmup, Argument(above=False, high=0.9))
    confidence = checked("batch_means", "confidence", confidence, Argument(high=0.9999))
    if not is_array(values) or (1 - warmup) * values.size < batches:
        expected = f"an array that gives each of {batches} batches a value"
        raise BadArgument("batch_means", "values", values, expected)
    from scipy.special import stdtrit

    length = int((1 - warmup) * values.size) // batches
    means = values[values.size - length * batches :].reshape(batches, length).mean(axis=1)
    half = stdtrit(batches - 1, (1 + confidence) / 2) * means.std(ddof=1) / batches**0.5
    return Interval(float(means.mean()), float(means.mean() - half), float(means.mean() + half))
