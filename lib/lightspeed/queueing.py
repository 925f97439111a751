"""Little's law and the queues behind it: how many are inside, how long they wait. Derived in
chapter 4.

Rates are in request/s, times in s; arrivals are Poisson (the M of M/M/1) unless a function is
given its own. Every result obeys L = arrival rate x W, and Lq = arrival rate x Wq.

Sources: Little, "A proof for the queuing formula L = lambda W" (Operations Research 9(3), 1961);
Kleinrock, "Queueing Systems", volume 1 (1975).
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from lightspeed.elementwise import INF, Result, Value, any_of, exp, expm1, is_array, log, where
from lightspeed.errors import BadArgument
from lightspeed.law import Argument, Law, P, R, count, is_quantity, law, nonnegative, positive

__all__ = (
    "Overload", "Queue", "SheddingQueue", "concurrency", "drain_time", "erlang_b", "erlang_c",
    "latency", "md1", "mg1", "mm1", "mmc", "mmck", "servers_for", "service_level",
    "sojourn_percentile", "throughput", "waiting_percentile",
)  # fmt: skip

ARRIVALS = nonnegative("request/s")
SERVICE = positive(
    "request/s",
    high=1e12,
    hint="A server that takes 50 ms a request has a service rate of 20 request/s.",
)
SERVERS = count(high=1e5)
SHARE = Argument(
    low=0.01,
    above=False,
    high=1 - 2**-40,
    hint="A percentile is a share below 1 (p99 is 0.99): the longest possible wait has no bound.",
)
MEANS = {"rho": "", "L": "request", "Lq": "request", "W": "s", "Wq": "s"}
QUEUE = {**MEANS, "wait_probability": ""}


class Overload(BadArgument):
    """Arrivals exceed the servers' capacity, so that no steady state exists."""


@dataclass(frozen=True)
class Queue:
    """The steady state of a queue, means over all requests.

    `rho` is the busy share of each server, `L` the requests in the system and `Lq` those that wait,
    `W` the time in the system and `Wq` the wait (s), `wait_probability` the share that has to wait.
    """

    rho: float
    L: float
    Lq: float
    W: float
    Wq: float
    wait_probability: float


@dataclass(frozen=True)
class SheddingQueue:
    """The steady state of a queue that turns requests away when it is full.

    `shed` is the share turned away and `throughput` the rate of the others (request/s), to whom
    all of `L`, `Lq`, `W`, `Wq` refer; `rho` is the busy share of each server.
    """

    rho: float
    L: float
    Lq: float
    W: float
    Wq: float
    shed: float
    throughput: float


def _of_any_thing(returns: str, **arguments: Argument) -> Callable[[Callable[P, R]], Law[P, R]]:
    """A `law` that holds for whatever is counted: {} in a unit is request, token or byte."""
    things = {"[request]": "request", "[token]": "token", "[information]": "byte"}

    def decorate(body: Callable[P, R]) -> Law[P, R]:
        laws = {
            dimension: law(
                returns.format(thing),
                **{n: replace(a, unit=a.unit.format(thing)) for n, a in arguments.items()},
            )(body)
            for dimension, thing in things.items()
        }

        @functools.wraps(laws["[request]"])
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            quantities: list[Any] = [
                value for value in (*args, *kwargs.values()) if is_quantity(value)
            ]
            unit = next(
                (d for d in laws for value in quantities if d in value.dimensionality), "[request]"
            )
            return laws[unit](*args, **kwargs)

        return cast("Law[P, R]", wrapper)

    return decorate


@_of_any_thing(
    "{}", arrival_rate=nonnegative("{}/s"), latency=nonnegative("s", hint="50 ms is 0.05 s.")
)
def concurrency(arrival_rate: Value, latency: Value) -> Result:
    """L = lambda W, Little's law: mean number of requests or users inside when they arrive at
    `arrival_rate` and each stays `latency` (s).

    Holds for requests, tokens or bytes, for any distribution and any order of service.

    >>> concurrency(1000, 0.05)
    50 requests
    """
    return arrival_rate * latency


@_of_any_thing("{}/s", inside=nonnegative("{}"), latency=positive("s", hint="50 ms is 0.05 s."))
def throughput(inside: Value, latency: Value) -> Result:
    """lambda = L / W: the rate of requests when `inside` fit at once and each stays `latency` (s).

    >>> throughput(24, 0.05)
    480 request/s
    """
    return inside / latency


@_of_any_thing("s", inside=nonnegative("{}"), arrival_rate=positive("{}/s"))
def latency(inside: Value, arrival_rate: Value) -> Result:
    """W = L / lambda: how long each request stays (s), from the number inside and the arrival rate.

    >>> latency(24, 480)
    50 ms
    """
    return inside / arrival_rate


@law("", load=nonnegative(), servers=SERVERS)
def erlang_b(load: Value, servers: Value) -> Result:
    """The share of requests turned away when all servers are busy and nobody may wait.

    `load` is arrival rate x service time, by Little's law the servers that would be busy if there
    were enough. Holds for any distribution of service times.

    >>> erlang_b(2.0, 2)
    0.4
    """
    return fill(lambda k: load / k, servers)[0]


@law("", load=nonnegative(), servers=SERVERS)
def erlang_c(load: Value, servers: Value) -> Result:
    """The share of requests or users that wait when all servers are busy and everyone may wait.

    `load` is arrival rate x service time, and below `servers`; else Overload.

    >>> round(erlang_c(10.0, 15), 3)
    0.102
    """
    rho = stable("erlang_c", load, 1, servers, argument="load")
    return _wait_probability(rho, fill(lambda k: load / k, servers)[0])


@law(
    "",
    load=nonnegative(high=2e3, hint="For more, take the load plus a few of its square roots."),
    share=Argument(high=1.0),
)
def servers_for(load: Value, share: Value) -> Result:
    """The fewest servers with which at most this share of requests has to wait, in M/M/c.

    >>> servers_for(100.0, 0.1), servers_for(100.0, 0.01)
    (115, 125)
    """
    servers, full, answer = 0, 1.0, 0 * load
    while any_of(answer == 0):
        servers += 1
        full = load / servers * full / (1 + load / servers * full)
        waits = where(servers > load, _wait_probability(load / servers, full), INF)
        answer = where((answer == 0) & (waits <= share), servers, answer)
    return answer


@law(QUEUE, arrival_rate=ARRIVALS, service_rate=SERVICE)
def mm1(arrival_rate: Value, service_rate: Value) -> Queue:
    """The `Queue` of one server with exponential service times. Raises Overload if rho >= 1.

    >>> mm1(9, 10).W, mm1(5, 10).W
    (1 s, 200 ms)
    """
    rho = stable("mm1", arrival_rate, service_rate, 1)
    return _queue(rho, arrival_rate, service_rate, rho / (service_rate - arrival_rate), rho)


@law(QUEUE, arrival_rate=ARRIVALS, service_rate=SERVICE, servers=SERVERS)
def mmc(arrival_rate: Value, service_rate: Value, servers: Value) -> Queue:
    """The `Queue` of `servers` equal servers that share one line, each with `service_rate`.

    Exponential service times; raises Overload if rho >= 1.

    >>> round(mmc(18, 10, servers=2).W, 3)
    0.526
    """
    rho = stable("mmc", arrival_rate, service_rate, servers)
    waits = _wait_probability(rho, fill(lambda k: arrival_rate / service_rate / k, servers)[0])
    return _queue(
        rho, arrival_rate, service_rate, waits / (servers * service_rate - arrival_rate), waits
    )


@law(QUEUE, arrival_rate=ARRIVALS, service_rate=SERVICE)
def md1(arrival_rate: Value, service_rate: Value) -> Queue:
    """The `Queue` of one server with a constant service time: half the wait of `mm1`.

    >>> md1(5, 10).Wq, mm1(5, 10).Wq
    (50 ms, 100 ms)
    """
    rho = stable("md1", arrival_rate, service_rate, 1)
    return _queue(rho, arrival_rate, service_rate, rho / (service_rate - arrival_rate) / 2, rho)


@law(QUEUE, arrival_rate=ARRIVALS, service_rate=SERVICE, service_variance=nonnegative("s**2"))
def mg1(arrival_rate: Value, service_rate: Value, service_variance: Value) -> Queue:
    """The `Queue` of one server with any service times of this mean rate and variance (s^2).

    Pollaczek-Khinchine: Lq = (rho^2 + lambda^2 variance) / (2 (1 - rho)); raises Overload if rho >=
    1.

    >>> round(mg1(2, 3, service_variance=1).L, 3)
    7.333
    """
    rho = stable("mg1", arrival_rate, service_rate, 1)
    return _queue(
        rho,
        arrival_rate,
        service_rate,
        arrival_rate * (service_variance + service_rate**-2.0) / (2 * (1 - rho)),
        rho,
    )


@law(
    {**MEANS, "shed": "", "throughput": "request/s"},
    arrival_rate=positive("request/s"),
    service_rate=SERVICE,
    servers=SERVERS,
    capacity=SERVERS,
)
def mmck(
    arrival_rate: Value, service_rate: Value, servers: Value, capacity: Value
) -> SheddingQueue:
    """The `SheddingQueue` that holds `capacity` requests, those in service included, and sheds the
    rest.

    Any arrival rate is allowed: shedding is what keeps a queue finite under overload.

    >>> round(mmck(20, 10, servers=1, capacity=3).shed, 3)
    0.533
    """
    if any_of(capacity < servers):
        expected, hint = f"at least servers = {servers}", "It counts those in service too."
        raise BadArgument("mmck", "capacity", capacity, expected, hint)
    load = arrival_rate / service_rate
    shed, inside = fill(lambda k: load / where(k < servers, k, servers), capacity)
    throughput = arrival_rate * (1 - shed)
    busy = throughput / service_rate
    waiting = inside - busy
    times = inside / throughput, waiting / throughput
    return SheddingQueue(busy / servers, inside, waiting, *times, shed, throughput)


@law("", wait=nonnegative("s"), arrival_rate=ARRIVALS, service_rate=SERVICE, servers=SERVERS)
def service_level(
    wait: Value, arrival_rate: Value, service_rate: Value, servers: Value = 1
) -> Result:
    """The share of requests that wait at most `wait` (s) before service, in M/M/c.

    >>> round(service_level(0.33, 10 / 3, 1 / 3, servers=15), 3)
    0.941
    """
    queue = mmc.__wrapped__(arrival_rate, service_rate, servers)
    return 1 - queue.wait_probability * exp(-(servers * service_rate - arrival_rate) * wait)


@law("s", share=SHARE, arrival_rate=ARRIVALS, service_rate=SERVICE, servers=SERVERS)
def waiting_percentile(
    share: Value, arrival_rate: Value, service_rate: Value, servers: Value = 1
) -> Result:
    """The wait (s) that this share of requests does not exceed, in M/M/c; 0 for those who never
    wait.

    >>> waiting_percentile(0.5, 5, 10), round(waiting_percentile(0.99, 5, 10), 3)
    (0 s, 0.782)
    """
    queue = mmc.__wrapped__(arrival_rate, service_rate, servers)
    ratio = where(queue.wait_probability > 1 - share, queue.wait_probability / (1 - share), 1.0)
    return log(ratio) / (servers * service_rate - arrival_rate)


@law("s", share=SHARE, arrival_rate=ARRIVALS, service_rate=SERVICE, servers=SERVERS)
def sojourn_percentile(
    share: Value, arrival_rate: Value, service_rate: Value, servers: Value = 1
) -> Result:
    """The time in the system (s), wait and service, that this share of requests does not exceed, in
    M/M/c.

    With one server it is -ln(1 - share) / (service_rate - arrival_rate).

    >>> round(sojourn_percentile(0.99, 9, 10), 3)
    4.605
    """
    queue = mmc.__wrapped__(arrival_rate, service_rate, servers)
    spare = servers * service_rate - arrival_rate
    slower, gap = where(spare < service_rate, spare, service_rate), abs(service_rate - spare)
    # Halving an interval that holds the answer: wait and service are each below their share.
    low, high = 0 * spare, log(2 / (1 - share)) * (1 / spare + 1 / service_rate)
    for _ in range(64):
        t = (low + high) / 2
        both = (
            where(gap > 0, -expm1(-gap * t) / where(gap > 0, gap, 1.0), t)
            * spare
            * exp(-slower * t)
        )
        longer = exp(-service_rate * t) * (1 - queue.wait_probability) + queue.wait_probability * (
            exp(-spare * t) + both
        )
        low, high = where(longer > 1 - share, t, low), where(longer > 1 - share, high, t)
    return (low + high) / 2


@law("s", burst_rate=ARRIVALS, burst_time=nonnegative("s"), arrival_rate=ARRIVALS, capacity=SERVICE)
def drain_time(
    burst_rate: Value, burst_time: Value, arrival_rate: Value, capacity: Value
) -> Result:
    """Seconds after a burst until the backlog that it left is gone, all rates taken as steady
    flows.

    Raises Overload if the normal `arrival_rate` alone is too much for the `capacity` (request/s).

    >>> drain_time(burst_rate=120, burst_time=300, arrival_rate=90, capacity=100)
    600 s
    """
    stable("drain_time", arrival_rate, capacity, 1)
    excess = where(burst_rate > capacity, burst_rate - capacity, 0.0)
    return excess * burst_time / (capacity - arrival_rate)


def stable(
    name: str,
    arrival_rate: Any,
    service_rate: Any,
    servers: Any,
    argument: str = "arrival_rate",
) -> Result:
    """Return each server's busy share; raise Overload in the law's name if it is 1 or more."""
    rho = arrival_rate / (servers * service_rate)
    if not any_of(rho >= 1):
        return rho
    if is_array(rho):
        worst = rho.argmax()
        arrival_rate, service_rate, servers = (
            float((x + 0 * rho).flat[worst]) for x in (arrival_rate, service_rate, servers)
        )
    what, unit = ("A load", "") if argument == "load" else ("An arrival rate", "/s")
    can = servers * service_rate
    verb = "equals" if arrival_rate == servers * service_rate else "exceeds"
    who = f"{servers:g} server{'s' if servers > 1 else ''} can do, {can:g}{unit}"
    text = f"{what} of {arrival_rate:g}{unit} {verb} what {who}: the queue grows without limit."
    raise Overload(name, argument, arrival_rate, f"less than {can:g}{unit}", text)


def _queue(
    rho: Result, arrival_rate: Value, service_rate: Value, wait: Result, wait_probability: Result
) -> Queue:
    return Queue(
        rho,
        arrival_rate * (wait + 1 / service_rate),
        arrival_rate * wait,
        wait + 1 / service_rate,
        wait,
        wait_probability,
    )


def _wait_probability(rho: Value, full: Value) -> Result:
    """Erlang C from Erlang B: beyond `servers`, each further state is rho times as likely."""
    return full / (1 - rho * (1 - full))


def fill(ratio: Callable[[int], Result], capacity: Any) -> tuple[Result, Result]:
    """(P(full), mean number inside) of a system that holds up to `capacity`, built up one place at
    a time.

    `ratio(k)` is arrival rate / completion rate with k inside. Each step is a weighted mean of
    numbers that are all in range, so it neither overflows nor cancels, however large the system.
    """
    sizes = {int(c) for c in (capacity.flat if is_array(capacity) else (capacity,))}
    full, inside = answer = 1.0, 0.0
    for k in range(1, max(sizes) + 1):
        odds = ratio(k) * full
        full = odds / (1 + odds)
        inside += full * (k - inside)
        if k in sizes:
            answer = where(capacity == k, full, answer[0]), where(capacity == k, inside, answer[1])
    return answer
