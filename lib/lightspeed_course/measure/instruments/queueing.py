"""Little's law and the queues of chapter 4 against a real server on this machine's loopback.

`queue_server` holds the server and the sender; here is what they are asked for, and what follows.
Loads run side by side: they are waits, so that they need little of a processor. Three instruments
are kept apart: the server counts those inside at random times (L), the sender counts requests
(lambda) and stops the time of each (W).

A short run is not the steady state of the formulas, least of all near full load. So each load is
also simulated many times over the same number of requests, which gives the band in which a run of
this length should fall; and once with the very arrivals and services that were sent, which takes
luck out of the comparison.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import statistics
from dataclasses import dataclass, replace

from lightspeed.queueing import Overload, md1, mmc, sojourn_percentile
from lightspeed_course.measure.environment import usable_cores
from lightspeed_course.measure.instruments.queue_server import send, serve
from lightspeed_course.measure.instruments.timing import Missing, Quantity, Unavailable, middle
from lightspeed_course.measure.instruments.workers import crew, receive
from lightspeed_course.measure.records.record import NotMeasured

SERVERS = {"M/M/1": 1, "M/D/1": 1, "M/M/4": 4}
LOADS = (0.3, 0.5, 0.7, 0.8, 0.9)
CLOSED = 0.8  # the load that is also sent by a closed loop, request by request the same
SERVICE = 0.010  # s, the mean of one server; each of four takes four times as long
FINE = 20  # services last at least so many times as long as timers are late
SECONDS, LONGER = 7.0, 30.0  # s of load
SHARES = (0.5, 0.95, 0.99)
SLICES = 20
# sends later than this share of a service, on average, and the load was not the one that was asked
# for
LATE = 0.10
START = 30  # s until a server that does not begin is given up
NATURE = (
    "single values differ by nature; their mean has an interval from the means of long stretches"
)


@dataclass(frozen=True)
class Load:
    """What is sent to one station: `rate` requests/s on average to `servers`, each of which
    takes `service` s on average.
    """

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
    """The `Load`s of one measurement; rates are such that the servers, late timers included, are
    as busy as `load` says.
    """
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
    """(due times, services) in s: drawn, but the same for the same load on any machine, so that
    machines can be compared.

    Loads of one level have the same pattern of arrivals, whatever the law, so that laws can be
    compared, too.
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


def measure(quick=True, report=None):
    """Latencies, numbers inside, lateness and the rest of it: [Quantity | Missing]. Takes about 10
    s, 35 s if not `quick`.

    Raises Unavailable without loopback, or where timers are too coarse.
    """
    say = report or (lambda text: None)
    if usable_cores() == 1:
        say("one processor: the server and the sender take turns on it, which shows as lateness")
    found = quantities(*observe(SECONDS if quick else LONGER, say))
    if why := refusal(found):
        say(why)
    return found


def observe(seconds, say, levels=LOADS):
    """(plan, seconds watched, [Sent] of the sender, [(looks, trace)] of the server, lateness of
    timers) of a real run.
    """
    with crew(serve, send) as (server, sender):
        server.send([load.servers for load in loads(seconds, SERVICE, levels=levels)])
        port, late = receive(server, START)
        coarse, usual = statistics.median(late), statistics.fmean(middle(late))
        service = max(SERVICE, FINE * coarse)
        if service > 10 * SERVICE:
            raise Unavailable(
                f"Timers of this machine are {coarse * 1e3:.0f} ms late, too much for waits that"
                " stand for a device.",
                "Measure again when the machine is less busy.",
            )
        plan = loads(seconds, service, usual, levels)
        say(
            f"{len(plan)} loads side by side for {seconds:g} s, services of {service * 1e3:.0f} ms"
            " and more"
        )
        sender.send((port, [(*schedule(load), load.loop == "closed") for load in plan]))
        watched, sent = receive(sender, 3 * seconds + START)
        server.send("stop")
        return plan, watched, sent, receive(server, START), late


# ---------------------------------------------------------------- from what was seen to quantities


def quantities(plan, watched, sent, seen, late):
    """`Quantity`s from what the sender (`watched` s, a `Sent` for each load) and the server
    (looks, trace) saw.
    """
    found = [
        Quantity(
            "queueing.timer",
            "s",
            _rounded(late, 7),
            {},
            "lower",
            "how late a sleep ends in an event loop",
            varies=True,
        )
    ]
    lateness, trips, over = [], [], []
    for load, mine, (looks, trace) in zip(plan, sent, seen, strict=True):
        asked = schedule(load)[1]
        which = {"law": load.law, "load": load.load, "loop": load.loop}
        each = [s - d for s, d in zip(mine.sent, mine.due, strict=True)]
        known = {
            "servers": load.servers,
            "service": load.service,
            "rate": load.rate,
            "requests": load.requests,
            "seed": load.seed,
            "seconds": watched,
        }
        starts = {"due": mine.due} if load.loop == "open" else {"due": mine.due, "send": mine.sent}
        for since, start in starts.items():
            stays = [d - s for d, s in zip(mine.done, start, strict=True)]
            found.append(
                Quantity(
                    "queueing.latency",
                    "s",
                    _rounded(stays, 5),
                    {**which, "since": since},
                    "lower",
                    NATURE,
                    {**known, "late": statistics.fmean(each)},
                    varies=True,
                )
            )
        spread = {"looks": len(looks), "deviation": statistics.pstdev(looks)}
        found.append(
            Quantity(
                "queueing.inside",
                "request",
                [statistics.fmean(part) for part in slices(looks)],
                which,
                "lower",
                NATURE,
                spread,
                varies=True,
            )
        )
        stays = {number: departure - arrival for number, arrival, _, departure in trace}
        trips += [
            (d, d - s - stays[i]) for i, (s, d) in enumerate(zip(mine.sent, mine.done, strict=True))
        ]
        over += [
            (departure, departure - start - asked[number]) for number, _, start, departure in trace
        ]
        if load.loop == "open":
            lateness += zip(mine.due, each, strict=True)
    for key, rows, note in (
        (
            "queueing.lateness",
            lateness,
            "how late the sender sent, a mean for each stretch of the run",
        ),
        ("queueing.round_trip", trips, "latency less stay in the server"),
        ("queueing.overshoot", over, "by how much services lasted longer than asked"),
    ):
        found.append(
            Quantity(
                key,
                "s",
                _rounded(
                    (statistics.fmean(v for _, v in part) for part in slices(sorted(rows))), 7
                ),
                {},
                "lower",
                note,
                varies=True,
            )
        )
    p99 = [sorted(v for _, v in part)[int(0.99 * len(part))] for part in slices(sorted(lateness))]
    found.append(
        Quantity(
            "queueing.lateness_p99",
            "s",
            _rounded(p99, 7),
            {},
            "lower",
            "the same, the ninety-ninth percentile",
            varies=True,
        )
    )
    if usable_cores() == 1:
        why = "This process may use one processor, on which the server and the sender take turns."
        found.append(
            Missing(
                "queueing.undisturbed",
                why,
                "What they take from each other is in the lateness and the round trip.",
            )
        )
    return found


def slices(values):
    """`SLICES` stretches of nearly equal length, in order."""
    edges = [round(i * len(values) / SLICES) for i in range(SLICES + 1)]
    return [values[a:b] for a, b in itertools.pairwise(edges) if b > a]


def _rounded(values, digits):
    return tuple(round(v, digits) for v in values)


# ---------------------------------------------------------------- what follows (nothing here is tim


@dataclass(frozen=True)
class Little:
    """L as counted (and two standard errors of looking at random times), lambda and W as
    clocked, and L over lambda W.
    """

    load: Load
    L: float
    error: float
    rate: float
    W: float

    @property
    def ratio(self):
        return self.L / (self.rate * self.W)


@dataclass(frozen=True)
class Latency:
    """One load's latencies in s: what was measured, what the formula says of the steady state, what
    a short run may give.

    `measured`, `steady` and `band` go by "mean" and the shares of `SHARES`; a formula that there is
    not is None. `band` is where nine of ten simulated runs of this length fall; `replay` the mean
    of this very run, simulated; `interval` that of the measured mean, from the means of long
    stretches.
    """

    load: Load
    measured: dict
    steady: dict
    band: dict
    replay: float
    interval: tuple

    def falls_within(self, share="mean"):
        """Whether the measured value is in the band of such short runs."""
        return self.band[share][0] <= self.measured[share] <= self.band[share][1]


def load_of(quantity):
    """The `Load` under which a latency was measured."""
    named = {n: quantity.parameters[n] for n in ("law", "load", "loop")}
    return Load(
        **named,
        **{n: quantity.counted[n] for n in ("servers", "service", "rate", "requests", "seed")},
    )


def refusal(found):
    """Why nothing may be concluded from these quantities: the load was sent too late. Empty if
    it was not.
    """
    late = _one(found, "queueing.lateness")
    service = min(load_of(q).service for q in _latencies(found))
    share = statistics.fmean(late.samples) / service
    if share <= LATE:
        return ""
    return (
        f"Requests were sent late, by {share:.0%} of a service on average (allowed: {LATE:.0%}):"
        " the sender did not keep up, so that the load was not the one asked for. Nothing is"
        " concluded. Measure again when the machine is less busy."
    )


def little(found):
    """[Little] for each open load: three instruments that know nothing of each other."""
    rows = []
    for q in _latencies(found):
        inside = _one(
            found, "queueing.inside", **{n: q.parameters[n] for n in ("law", "load", "loop")}
        )
        error = 2 * inside.counted["deviation"] / inside.counted["looks"] ** 0.5
        # From the moment of sending: before it, nothing was inside the server.
        stay = statistics.fmean(q.samples) - q.counted["late"]
        rows.append(
            Little(
                load_of(q),
                statistics.fmean(inside.samples),
                error,
                len(q.samples) / q.counted["seconds"],
                stay,
            )
        )
    return rows


def latencies(found):
    """[Latency] for each open load, with the overshoot of services and the round trip as they
    were measured.
    """
    return [_latency(q, *overheads(found)) for q in _latencies(found)]


def _latency(quantity, overshoot, trip):
    import numpy

    from lightspeed_course.simulators.queue_simulation import batch_means

    load, stays = load_of(quantity), numpy.array(quantity.samples)
    mean = batch_means(stays, SLICES, warmup=0.0)
    low, high = numpy.quantile(simulated(load, overshoot, trip), (0.05, 0.95), axis=0)
    names = ("mean", *SHARES)
    return Latency(
        load,
        dict(zip(names, statistics_of(stays), strict=True)),
        steady(load, overshoot, trip),
        {n: (float(a), float(b)) for n, a, b in zip(names, low, high, strict=True)},
        float(replay(load, overshoot, trip).mean()),
        (mean.low, mean.high),
    )


def statistics_of(stays):
    """(mean, then the percentiles of `SHARES`) of an array of latencies."""
    import numpy

    return [float(stays.mean()), *map(float, numpy.quantile(stays, SHARES))]


def steady(load, overshoot=0.0, trip=0.0):
    """The formulas' mean and percentiles (s), for a server that takes `overshoot` longer, seen over
    a `trip`.

    None where there is no formula, and everywhere if the overshoot makes it an overload, which has
    no steady state.
    """
    service_rate = 1 / (load.service + overshoot)
    try:
        if load.law == "M/D/1":
            return {"mean": md1(load.rate, service_rate).W + trip} | dict.fromkeys(SHARES)
        found = {"mean": mmc(load.rate, service_rate, load.servers).W + trip}
        return found | {
            s: sojourn_percentile(s, load.rate, service_rate, load.servers) + trip for s in SHARES
        }
    except Overload:
        return dict.fromkeys(("mean", *SHARES))


def replay(load, overshoot=0.0, trip=0.0):
    """The latencies (s) that these very arrivals and services would have in an ideal queue."""
    import numpy

    from lightspeed_course.simulators.queue_simulation import simulate

    due, services = map(numpy.array, schedule(load))
    return simulate(due, services + overshoot, load.servers).sojourn + trip


@functools.lru_cache(maxsize=64)
def simulated(load, overshoot=0.0, trip=0.0, runs=100):
    """`statistics_of` many runs of this load, each of its length and from an empty start: array
    (runs, 1 + SHARES).
    """
    import numpy

    from lightspeed_course.simulators.queue_simulation import poisson_arrivals, simulate

    rng = numpy.random.default_rng(load.seed)
    rows = []
    for _ in range(runs):
        services = (
            numpy.full(load.requests, load.service)
            if load.law == "M/D/1"
            else rng.exponential(load.service, load.requests)
        )
        path = simulate(
            poisson_arrivals(load.rate, load.requests, rng), services + overshoot, load.servers
        )
        rows.append(statistics_of(path.sojourn + trip))
    return numpy.array(rows)


def closed_loop(found):
    """The same requests three ways, mean and p99 in s: open, closed from the due time, closed
    from the sending.
    """
    which = {"law": "M/M/1", "load": CLOSED}
    rows = {
        "open, from the due time": _one(found, "queueing.latency", **which, loop="open"),
        "closed, from the due time": _one(
            found, "queueing.latency", **which, loop="closed", since="due"
        ),
        "closed, from the sending": _one(
            found, "queueing.latency", **which, loop="closed", since="send"
        ),
    }
    import numpy

    return {
        name: (statistics.fmean(q.samples), float(numpy.quantile(q.samples, 0.99)))
        for name, q in rows.items()
    }


def _latencies(found):
    return [
        q
        for q in found
        if getattr(q, "samples", ())
        and q.key == "queueing.latency"
        and q.parameters["loop"] == "open"
    ]


def overheads(found):
    """(overshoot of services, round trip), means in s."""
    return tuple(
        statistics.fmean(_one(found, f"queueing.{name}").samples)
        for name in ("overshoot", "round_trip")
    )


def _one(found, key, **parameters):
    rows = [
        q
        for q in found
        if isinstance(q, Quantity) and q.key == key and parameters.items() <= q.parameters.items()
    ]
    if not rows:
        raise NotMeasured(
            f"these quantities have no {key}" + "".join(f", {n} {v}" for n, v in parameters.items())
        )
    return rows[0]
