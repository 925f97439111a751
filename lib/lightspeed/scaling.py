"""Scaling: how much do more processors give, and what stops it? Derived in chapter 3.

A serial and a parallel share look alike and are swapped easily, so they are keyword-only
everywhere; most laws take either one, under its name. `n` is the number of processors, or the
factor by which one part of a job is made faster. For the kinds of number see `lightspeed.law.law`.

Sources: Amdahl (AFIPS 1967); Gustafson (CACM 31(5), 1988); Karp and Flatt (CACM 33(5), 1990);
Gunther, "Guerrilla Capacity Planning" (2007); Brent (JACM 21(2), 1974).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from lightspeed.elementwise import Result, Value, any_of, divide, maximum, where
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import (
    Argument,
    checked,
    count,
    fraction,
    law,
    nonnegative,
    positive,
    with_unit,
)

__all__ = (
    "GreedyBounds", "WorkSpan", "amdahl_speedup", "communication_speedup", "efficiency",
    "greedy_bounds", "gustafson_speedup", "karp_flatt", "parallel_fraction",
    "processors_at_efficiency", "profile_speedup", "run_cost", "serial_on_n", "serial_on_one",
    "usl_peak", "usl_speedup", "work_span",
)  # fmt: skip

PROCESSORS = Argument(low=1.0, above=False, hint="One processor is the baseline: n starts at 1.")
UNLIMITED = Argument(low=1.0, above=False, infinite=True, hint=PROCESSORS.hint)
SHARE = fraction(hint="A share of the time is between 0 and 1: 5 % is 0.05.")


def _shares(law: str, serial: Value | None, parallel: Value | None) -> tuple[Result, Result]:
    """Both shares from either; given both, they must add up to 1."""
    if serial is None and parallel is None:
        raise BadArgument(law, "serial", serial, "serial=... or parallel=...")
    if serial is None:
        serial = 1 - parallel  # type: ignore[operator]  # one of the two is given
    parallel = 1 - serial if parallel is None else parallel
    if any_of(abs(serial + parallel - 1) > 1e-9):
        raise BadArgument(
            law, "parallel", parallel, "1 - serial", "The two shares are of the same time."
        )
    return serial, parallel


@law(n=UNLIMITED, serial=SHARE, parallel=SHARE)
def amdahl_speedup(
    n: Value, *, serial: Value | None = None, parallel: Value | None = None
) -> Result:
    """Speedup of a fixed job on n processors; the shares are those of the time on one.

    >>> round(amdahl_speedup(8, serial=0.05), 3), amdahl_speedup(float("inf"), serial=0.05)
    (5.926, 20)
    """
    serial, parallel = _shares("amdahl_speedup", serial, parallel)
    return divide(1, serial + parallel / n)


@law(n=PROCESSORS, serial=SHARE, parallel=SHARE)
def gustafson_speedup(
    n: Value, *, serial: Value | None = None, parallel: Value | None = None
) -> Result:
    """Speedup of a job that grows with n; the shares are those of the time on n processors.

    >>> gustafson_speedup(8, serial=0.05)
    7.65
    """
    serial, _ = _shares("gustafson_speedup", serial, parallel)
    return n - serial * (n - 1)


@law(n=PROCESSORS, serial_on_one=SHARE)
def serial_on_n(n: Value, *, serial_on_one: Value) -> Result:
    """The serial share of the time on n processors, from the share on one: it grows.

    >>> round(serial_on_n(100, serial_on_one=0.05), 3)
    0.84
    """
    return serial_on_one / (serial_on_one + (1 - serial_on_one) / n)


@law(n=PROCESSORS, serial_on_n=SHARE)
def serial_on_one(n: Value, *, serial_on_n: Value) -> Result:
    """The serial share of the time on one processor, from the share on n: it shrinks.

    >>> round(serial_on_one(1000, serial_on_n=0.05), 7)
    5.26e-05
    """
    return serial_on_n / (serial_on_n + (1 - serial_on_n) * n)


@law(speedup=positive(), n=PROCESSORS)
def efficiency(speedup: Value, n: Value) -> Result:
    """Speedup per processor: 1 is perfect, above 1 is superlinear.

    >>> efficiency(6, 8)
    0.75
    """
    return speedup / n


@law(efficiency=Argument(high=1.0), serial=SHARE, parallel=SHARE)
def processors_at_efficiency(
    efficiency: Value, *, serial: Value | None = None, parallel: Value | None = None
) -> Result:
    """The n at which Amdahl's efficiency has fallen to this value; infinite without a serial part.

    >>> processors_at_efficiency(0.5, serial=0.05)
    21
    """
    serial, _ = _shares("processors_at_efficiency", serial, parallel)
    return 1 + divide(1 / efficiency - 1, serial)


@law(speedup=positive(), n=Argument(low=1.0, hint="On one processor every job has a speedup of 1."))
def karp_flatt(speedup: Value, n: Value) -> Result:
    """The serial share that Amdahl's law would need to explain a measured speedup on n processors.

    Constant in n: the loss is serial work. Growing: so does an overhead. Negative: superlinear.

    >>> round(karp_flatt(amdahl_speedup(8, serial=0.05), 8), 12)
    0.05
    """
    return (1 / speedup - 1 / n) / (1 - 1 / n)


@law(n=PROCESSORS, serial=SHARE, overhead=nonnegative())
def communication_speedup(n: Value, *, serial: Value, overhead: Value) -> Result:
    """Amdahl's law with a third term: `overhead` is c(n), the cost at n as a share of the time on
    one.

    >>> communication_speedup(8, serial=0.0, overhead=0.125)
    4
    """
    return divide(1, serial + (1 - serial) / n + overhead)


@law(n=PROCESSORS, serial=SHARE, kappa=nonnegative())
def usl_speedup(n: Value, *, serial: Value, kappa: Value) -> Result:
    """Universal Scalability Law: Amdahl's with c(n) = kappa (n - 1), so speedup can fall.

    >>> usl_speedup(10, serial=0.0, kappa=0.01) < usl_speedup(9, serial=0.0, kappa=0.005)
    True
    """
    return n / (1 + serial * (n - 1) + kappa * n * (n - 1))


@law(serial=SHARE, kappa=nonnegative())
def usl_peak(*, serial: Value, kappa: Value) -> Result:
    """The n of the highest speedup, sqrt((1 - serial) / kappa); infinite if kappa is 0, and 1 if
    all is serial.

    >>> usl_peak(serial=0.19, kappa=0.01), usl_peak(serial=1, kappa=0)
    (9, 1)
    """
    return where(serial < 1, maximum(divide(1 - serial, kappa) ** 0.5, 1.0), 1.0)


def parallel_fraction(breakdown: Mapping[str, float], parallel: Iterable[str]) -> float:
    """The share of the time in the parts named by `parallel`, from a breakdown name -> seconds.

    >>> round(parallel_fraction({"setup": 0.1, "compute": 0.9, "finish": 0.1}, ["compute"]), 3)
    0.818
    """
    times = _times("parallel_fraction", breakdown)
    parts = {one_of("parallel_fraction", "parallel", name, tuple(times)) for name in parallel}
    share: float = with_unit(sum(times[name] for name in parts) / sum(times.values()), "")
    return share


def profile_speedup(breakdown: Mapping[str, float], factors: Mapping[str, float]) -> float:
    """Speedup of the whole when each part in `factors` becomes faster by its factor.

    >>> round(profile_speedup({"setup": 0.1, "compute": 0.9, "finish": 0.1}, {"compute": 100}), 3)
    5.263
    """
    times = _times("profile_speedup", breakdown)
    faster = dict.fromkeys(times, 1)
    for name, factor in factors.items():
        one_of("profile_speedup", "factors", name, tuple(times))
        faster[name] = checked(
            "profile_speedup", f"factors[{name!r}]", factor, Argument(infinite=True)
        )
    after = sum(t / faster[name] for name, t in times.items())
    speedup: float = with_unit(divide(sum(times.values()), after), "")
    return speedup


def _times(law: str, breakdown: Mapping[str, float]) -> dict[str, float]:
    times = {
        name: checked(law, f"breakdown[{name!r}]", t, nonnegative("s"))
        for name, t in breakdown.items()
    }
    if not sum(times.values()) > 0:
        raise BadArgument(law, "breakdown", breakdown, "parts that take some time")
    return times


@dataclass(frozen=True)
class WorkSpan:
    """Work: the total time; span: the longest chain, along `path`; parallelism: their ratio."""

    work: float
    span: float
    path: tuple[Any, ...]
    parallelism: float


def work_span(graph: Any) -> WorkSpan:
    """The `WorkSpan` of steps that wait for each other; no n is faster than the span.

    `graph` is a networkx DAG whose nodes carry `time` (s), or a dict: step -> (time, the steps that
    it waits for). Raises BadArgument for an empty or cyclic graph and for a step without a time.

    >>> work_span({"load": (2.0, ()), "left": (3.0, ["load"]), "right": (1.0, ["load"])}).path
    ('load', 'left')
    """
    expected = "a directed graph with nodes and without a cycle"
    if not graph or not (isinstance(graph, dict) or graph.is_directed()):
        raise BadArgument("work_span", "graph", graph, expected)
    if not isinstance(graph, dict):
        graph = {n: (graph.nodes[n].get("time"), list(graph.predecessors(n))) for n in graph}
    try:
        order = tuple(TopologicalSorter({n: row[1] for n, row in graph.items()}).static_order())
    except CycleError:
        raise BadArgument("work_span", "graph", graph, expected) from None
    finish: dict[Any, float] = {}
    before: dict[Any, Any] = {}
    for node in order:
        time, before_it = graph.get(node, (None, ()))
        time = checked("work_span", f"time of {node!r}", time, nonnegative("s"))
        before[node] = max(before_it, key=finish.__getitem__, default=None)
        finish[node] = time + finish.get(before[node], 0.0)
    path = [max(finish, key=finish.__getitem__)]
    while before[path[0]] is not None:
        path.insert(0, before[path[0]])
    work, span = sum(time for time, _ in graph.values()), finish[path[-1]]
    answer: WorkSpan = with_unit(
        WorkSpan(work, span, tuple(path), divide(work, span)),
        {"work": "s", "span": "s", "parallelism": ""},
    )
    return answer


@dataclass(frozen=True)
class GreedyBounds:
    """The shortest and the longest time of any schedule that leaves no processor idle by choice."""

    lower: float
    upper: float


@law({"lower": "s", "upper": "s"}, work=positive("s"), span=positive("s"), n=count())
def greedy_bounds(work: Value, span: Value, n: Value) -> GreedyBounds:
    """`GreedyBounds` (s) of a DAG on n processors: Brent's (work - span) / n + span from above.

    >>> greedy_bounds(12.0, 4.0, 4)
    GreedyBounds(lower=4 s, upper=6 s)
    """
    if any_of(span > work):
        raise BadArgument(
            "greedy_bounds",
            "span",
            span,
            "at most the work",
            "The longest chain is part of all the work.",
        )
    return GreedyBounds(maximum(work / n, span), (work - span) / n + span)


@law("dollar", n=PROCESSORS, speedup=positive(), time=positive("s"), price=nonnegative("dollar/s"))
def run_cost(n: Value, speedup: Value, time: Value, price: Value) -> Result:
    """Dollars of a job that takes `time` (s) on one processor, run on n at `price` (dollar/s) each.

    >>> run_cost(8, 4, 100.0, 0.5)
    $100
    """
    return n * price * time / speedup
