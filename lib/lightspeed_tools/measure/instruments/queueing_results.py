"""What follows from a measured queue: Little's law, latencies beside the formulas, and whether the
load was sent in time. Nothing is timed here.

A short run is not the steady state of the formulas, least of all near full load. So each load is
also simulated many times over the same number of requests, which gives the band in which a run of
this length should fall; and once with the very arrivals and services that were sent, which takes
luck out of the comparison.
"""

import functools
import statistics
from dataclasses import dataclass

from lightspeed.queueing import Overload, md1, mmc, sojourn_percentile
from lightspeed_tools.measure.instruments.queueing_load import (
    CLOSED,
    SLICES,
    Load,
    load_of,
    schedule,
)
from lightspeed_tools.measure.instruments.timing import Quantity
from lightspeed_tools.measure.records.record import NotMeasured

SHARES = (0.5, 0.95, 0.99)
# sends later than this share of a service, on average: not the load asked for
LATE = 0.10


@dataclass(frozen=True)
class Little:
    """L counted (two standard errors), lambda and W clocked, and L over lambda W."""

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


def refusal(found):
    """Why these quantities conclude nothing: the load was sent too late. Empty if it was not."""
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
    """[Latency] of each open load, with measured overshoot of services and round trip."""
    return [_latency(q, *overheads(found)) for q in _latencies(found)]


def _latency(quantity, overshoot, trip):
    import numpy

    from lightspeed_models.simulators.queue_simulation import batch_means

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
    """The formulas' mean and percentiles (s) for a server that takes `overshoot` longer, over a
    `trip`; None without a formula, and in overload.
    """
    service_rate = 1 / (load.service + overshoot)
    try:
        if load.law == "M/D/1":
            return {"mean": md1(load.rate, service_rate).W + trip} | dict.fromkeys(SHARES)
        times = {"mean": mmc(load.rate, service_rate, load.servers).W + trip}
        return times | {
            s: sojourn_percentile(s, load.rate, service_rate, load.servers) + trip for s in SHARES
        }
    except Overload:
        return dict.fromkeys(("mean", *SHARES))


def replay(load, overshoot=0.0, trip=0.0):
    """The latencies (s) that these very arrivals and services would have in an ideal queue."""
    import numpy

    from lightspeed_models.simulators.queue_simulation import simulate

    due, services = map(numpy.array, schedule(load))
    return simulate(due, services + overshoot, load.servers).sojourn + trip


@functools.lru_cache(maxsize=64)
def simulated(load, overshoot=0.0, trip=0.0, runs=100):
    """`statistics_of` many runs of this load from an empty start: array (runs, 1 + SHARES)."""
    import numpy

    from lightspeed_models.simulators.queue_simulation import poisson_arrivals, simulate

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
    """The same requests, mean and p99 in s: open, closed from due time, closed from sending."""
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
