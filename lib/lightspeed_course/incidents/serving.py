"""A service whose requests wait longer than its plan said.

The plan is an M/M/c queue (`lightspeed.queueing`); the job is `serve`, request by request, with one
of the plan's assumptions broken.
"""

import functools
import random
from dataclasses import dataclass, replace

from lightspeed.queueing import waiting_percentile
from lightspeed_course.incidents.setting import Cause, Measurement, Setting, grid, noisy
from lightspeed_models.simulators.queue_simulation import serve
from lightspeed_show.format import si

REQUESTS = 4000
PROMISE = 0.95
BURST = 20  # requests' worth of time for which a burst, and the quiet between two, lasts
WINDOW = 8  # requests a window of the trace holds on average


@dataclass(frozen=True)
class Job:
    """A service as planned, with possible faults; factors are relative to the plan."""

    number: int  # of the draw that makes its requests
    replicas: int
    service: float  # mean seconds of a request
    load: float  # planned share of the replicas that is busy
    traffic: float = 1.0
    length: float = 1.0
    heavy: float = 1.0  # long answers over the mean one; 1 is the exponential of the plan
    burst: float = 1.0  # the rate in a burst over the mean
    down: int = 0

    @property
    def planned_rate(self):
        return self.load * self.replicas / self.service


def _length(rng, heavy):
    """A service time of mean 1: exponential, or a mixture in which one in 4 heavy is long."""
    if heavy == 1:
        return rng.expovariate(1)
    share = 1 / (4 * heavy)
    return rng.expovariate(1 / heavy if rng.random() < share else (1 - share) / 0.75)


@functools.lru_cache(maxsize=256)
def rows(job):
    """Return (arrival, start, departure) of each request."""
    rng = random.Random(f"requests\n{job.number}")
    mean_gap = 1 / (job.planned_rate * job.traffic)
    arrivals, services, clock = [], [], 0.0
    for _ in range(REQUESTS):
        # Bursts and quiet take turns of one length; between them the rates keep the mean.
        loud = int(clock / (BURST * mean_gap)) % 2 == 0
        pace = job.burst if loud else 2 - job.burst
        clock += rng.expovariate(1) * mean_gap / pace
        arrivals.append(clock)
        services.append(job.service * job.length * _length(rng, job.heavy))
    return serve(arrivals, services, job.replicas - job.down)[0]


@functools.lru_cache(maxsize=256)
def late(job):
    """The wait (s) that 95% of the requests stay below."""
    waits = sorted(start - arrival for arrival, start, _ in rows(job))
    return waits[int(PROMISE * len(waits))]


def promised(job):
    return float(waiting_percentile(PROMISE, job.planned_rate, 1 / job.service, job.replicas))


def rate(job):
    """The target wait over the actual one."""
    return promised(job) / max(late(job), 1e-9)


def brief(job):
    return (
        f"**Serving.** {job.replicas} replicas share one queue. The plan says:"
        f" {job.planned_rate:.3g} requests a second at random, {si(job.service, 's')} each on"
        f" average, so {100 * job.load:.0f} % busy, and 95 % of requests wait less than"
        f" {si(promised(job), 's')}. They wait longer. Why?"
    )


def draw_plan(rng):
    return Job(
        rng.randrange(10**9),
        rng.choice((6, 8, 12)),
        rng.choice((0.5, 1.0, 2.0)),
        rng.choice((0.7, 0.75, 0.8)),
    )


# --- what can be wrong --------------------------------------------------------------------------


def _to_load(rng, job):
    """A factor that brings the replicas close to full."""
    return rng.uniform(0.91, 0.96) / job.load


CAUSES = (
    Cause(
        "bursty_arrivals",
        "Requests come in bursts, at the planned rate on average.",
        "Even the bursts out at the client, or size for their rate.",
        lambda rng, job: replace(job, burst=rng.uniform(1.55, 1.8)),
        lambda job: replace(job, burst=1.0),
    ),
    Cause(
        "more_traffic",
        "More requests come than were planned for.",
        "Add replicas for the traffic that there is.",
        lambda rng, job: replace(job, traffic=_to_load(rng, job)),
        lambda job: replace(job, traffic=1.0),
    ),
    Cause(
        "longer_answers",
        "Every request takes longer than was planned for.",
        "Limit the length of answers to what was planned.",
        lambda rng, job: replace(job, length=_to_load(rng, job)),
        lambda job: replace(job, length=1.0),
    ),
    Cause(
        "mixed_lengths",
        "A few requests are very long; the mean is as planned.",
        "Give long requests replicas of their own.",
        lambda rng, job: replace(job, heavy=rng.uniform(8, 12)),
        lambda job: replace(job, heavy=1.0),
    ),
    Cause(
        "replica_down",
        "A replica is registered, but serves nothing.",
        "Restart the replica, and let a health check take it out next time.",
        lambda rng, job: replace(job, down=1),
        lambda job: replace(job, down=0),
    ),
)


# --- what can be measured -----------------------------------------------------------------------


def read_busy(job, rng):
    """Measure the busy share of each replica. They share a line, so those up are alike."""
    visits = rows(job)
    work = sum(end - start for _, start, end in visits)
    up = job.replicas - job.down
    return [noisy(rng, min(1.0, work / (visits[-1][0] * up)), 0.02)] * up + [0.0] * job.down


def show_busy(job, reading):
    mean = sum(reading) / len(reading)
    return grid(("busy", "plan", "seen"), [("mean of the service", *_percents(job.load, mean))])


def _percents(*shares):
    return [f"{100 * share:.0f} %" for share in shares]


def tell_busy(job, reading):
    mean = sum(reading) / len(reading)
    return "busier than planned" if mean > 1.1 * job.load else "as busy as planned"


def read_counter(job, rng):
    visits = rows(job)
    return noisy(rng, len(visits) / visits[-1][0])


def show_counter(job, reading):
    return grid(("requests a second", "plan", "seen"), [("", f"{job.planned_rate:.3g}",
                                                         f"{reading:.3g}")])  # fmt: skip


def tell_counter(job, reading):
    return "more than planned" if reading > 1.08 * job.planned_rate else "as many as planned"


def read_trace(job, rng):
    """Count arrivals in windows of one length, over the run."""
    width = WINDOW / (job.planned_rate * job.traffic)
    counts: dict[int, int] = {}
    for arrival, _, _ in rows(job):
        counts[int(arrival / width)] = counts.get(int(arrival / width), 0) + 1
    return [counts.get(n, 0) for n in range(max(counts))]


def _dispersion(counts):
    mean = sum(counts) / len(counts)
    return sum((n - mean) ** 2 for n in counts) / len(counts) / mean


def show_trace(job, reading):
    width = WINDOW / (job.planned_rate * job.traffic)
    windows = " ".join(map(str, reading[:60]))
    return (
        f"Arrivals in windows of {si(width, 's')}, the first 60:\n\n```\n{windows}\n```\n\nOver all"
        f" {len(reading)} windows the variance is {_dispersion(reading):.2f} of the mean."
    )


def tell_trace(job, reading):
    return "arrivals in bursts" if _dispersion(reading) > 1.5 else "arrivals at random"


def read_lengths(job, rng):
    """Measure the mean service time and its squared coefficient of variation."""
    times = [end - start for _, start, end in rows(job)]
    mean = sum(times) / len(times)
    return mean, sum((t / mean - 1) ** 2 for t in times) / len(times)


def show_lengths(job, reading):
    table = [
        ("mean", si(job.service, "s"), si(reading[0], "s")),
        ("variance over mean squared", "1.00", f"{reading[1]:.2f}"),
    ]
    return grid(("service time", "plan", "seen"), table)


def tell_lengths(job, reading):
    return (
        "a few very long"
        if reading[1] > 1.8
        else "all longer"
        if reading[0] > 1.1 * job.service
        else "lengths as planned"
    )


def read_replicas(job, rng):
    shares = read_busy(job, rng)
    rng.shuffle(shares)
    return shares


def show_replicas(job, reading):
    return grid(("replica", "busy"), [(n, *_percents(s)) for n, s in enumerate(reading)])


def tell_replicas(job, reading):
    return "one does nothing" if min(reading) < 0.5 * max(reading) else "all work"


MEASUREMENTS = (
    Measurement("busy", "how busy the service is", 5, read_busy, show_busy, tell_busy),
    Measurement("counter", "how many requests come", 10, read_counter, show_counter, tell_counter),
    Measurement("trace", "when requests come", 20, read_trace, show_trace, tell_trace),
    Measurement("lengths", "how long requests take", 20, read_lengths, show_lengths, tell_lengths),
    Measurement(
        "replicas", "each replica by itself", 15, read_replicas, show_replicas, tell_replicas
    ),
)

SERVING = Setting(
    "serving", draw_plan, rate, brief, CAUSES, MEASUREMENTS,
    pace=lambda job: 1 / max(late(job), 1e-9), paced="as short a wait of 95 %",
    pairs=(("bursty_arrivals", "mixed_lengths"), ("more_traffic", "replica_down")),
)  # fmt: skip
