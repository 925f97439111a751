"""Amdahl's law against this machine: a job with a serial part that is known by count, split over
real processes.

Three jobs, each of which does one fifth, or one twentieth, of its work in one process before the
rest is split:

    count    loops are counted; processes share the processors, so that beyond these there is
             nothing to gain
    wait     processes wait, as a host does for a device, so that any machine can have many of them
    message  the same, and each then sends an array, which one process receives and adds: a cost
             that grows with n

Every round runs each n once, so that whatever else the machine does falls on all of them alike, and
a speedup is a ratio of two times of one round.
"""

import statistics
import time
from dataclasses import dataclass

from lightspeed.scaling import amdahl_speedup, karp_flatt
from lightspeed_models.fits import UslFit, fit_usl
from lightspeed_tools.measure.environment import usable_cores
from lightspeed_tools.measure.instruments.timing import Missing, Quantity
from lightspeed_tools.measure.instruments.workers import crew, receive
from lightspeed_tools.measure.records.record import NotMeasured

# (serial, split), by count of equal pieces of work
PARTS = {"count": (1, 4), "wait": (1, 19), "message": (1, 19)}
JOBS = {"count": "counting loops", "wait": "waiting", "message": "waiting, then a message"}
MESSAGE = 4_000_000  # byte
WAITERS = (1, 2, 4, 8, 16)
MORE_WAITERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
ANSWER = 60  # s until a process that does not answer is given up


def measure(quick=True, report=None):
    """Seconds of the three jobs for every n, and of their serial parts: [Quantity | Missing], in 5
    to 10 s, 60 if not `quick`. Raises Unavailable without processes.
    """
    say, cpus, rounds = report or (lambda text: None), usable_cores(), 5 if quick else 10
    split = [n for n in STEPS if n <= max(2 * cpus if cpus <= 4 else cpus, 2)]
    waiters = WAITERS if quick else MORE_WAITERS
    say(f"starting {max(*split, *waiters)} processes on {cpus} processor{'s' * (cpus > 1)}")
    with crew(*[work] * max(*split, *waiters)) as pipes:
        loops = _loops(pipes, 0.08 if quick else 0.3)
        piece = {"count": ("count", loops), "wait": ("wait", 0.01 if quick else 0.025)}
        plan = {
            "count": (split, piece["count"], 0),
            "wait": (waiters, piece["wait"], 0),
            "message": (waiters, piece["wait"], MESSAGE),
        }
        found = []
        for name, (counts, (kind, amount), size) in plan.items():
            say(
                f"{JOBS[name]}: {rounds} rounds of {len(counts)} runs, up to {counts[-1]} processes"
            )
            serial, divided = ((kind, amount * part) for part in PARTS[name])
            found += quantities(
                name, counts, run(pipes, counts, serial, divided, size, rounds), cpus
            )
    if cpus == 1:
        why = "This process may use one processor, so counting loops cannot become faster."
        remedy = "The jobs that wait show the laws; for loops, a machine with more processors."
        found.append(Missing("scaling.count_speedup", why, remedy))
    return found


def quantities(name, counts, times, cpus):
    """What `run` gave, as `Quantity`s: one for each n and one for the serial part."""
    serial = sum(PARTS[name][:1]) / sum(PARTS[name])
    found = []
    for n in counts:
        note = (
            f"more processes than the {cpus} processor{'s' * (cpus > 1)}"
            if name == "count" and n > cpus
            else ""
        )
        samples, which = (
            tuple(round(t, 6) for _, t in times[n]),
            {"job": name, "n": n, "cpus": cpus},
        )
        counted = {"serial": serial}
        found.append(Quantity("scaling.time", "s", samples, which, "lower", note, counted))
    alone, note = (
        tuple(round(s, 6) for s, _ in times[counts[0]]),
        "the serial part of the job alone",
    )
    return [*found, Quantity("scaling.serial_time", "s", alone, {"job": name}, "lower", note)]


# ---------------------------------------------------------------- the processes


def count(loops):
    """Work that no processor can skip, `loops` of it."""
    total = 0
    for i in range(loops):
        total += i & 3
    return total


def work(pipe):
    """A worker: does what it is told, then sends so many bytes."""
    todo = {"count": count, "wait": time.sleep}
    message = b""
    while True:
        kind, amount, size = pipe.recv()
        todo[kind](amount)
        if len(message) != size:
            message = bytes(size)
        pipe.send(message)


def run(pipes, counts, serial, divided, size=0, rounds=5):
    """{n: [(seconds of the serial part, seconds of all), ...]}, one pair for each round.

    `serial` and `divided` are (kind, amount): ("count", loops) or ("wait", seconds). The first
    worker does the serial part; then `n` of them do an equal part of the divided one and answer
    with `size` bytes, which are added up here.
    """
    times = {n: [] for n in counts}
    # touches every process and its memory once
    _job(pipes, max(counts), (serial[0], 0), (divided[0], 0), size)
    for _ in range(rounds):
        for n in counts:
            times[n].append(_job(pipes, n, serial, divided, size))
    return times


def _job(pipes, n, serial, divided, size):
    import numpy

    total = numpy.zeros(size // 4, "float32")
    start = time.perf_counter()
    pipes[0].send((*serial, 0))
    receive(pipes[0], ANSWER)
    middle = time.perf_counter()
    kind, amount = divided
    for i, pipe in enumerate(pipes[:n]):
        part = amount / n if kind == "wait" else amount * (i + 1) // n - amount * i // n
        pipe.send((kind, part, size))
    for pipe in pipes[:n]:
        total += numpy.frombuffer(receive(pipe, ANSWER), "float32")
    return middle - start, time.perf_counter() - start


def _loops(pipes, seconds):
    """The loops of one piece: the whole counting job takes a process about so many seconds."""
    trial = 300_000
    best = min(_job(pipes, 1, ("count", trial), ("count", 0), 0)[0] for _ in range(3))
    return max(1000, round(trial / best * seconds / sum(PARTS["count"])))


# ---------------------------------------------------------------- what follows from the times (noth


@dataclass(frozen=True)
class Estimate:
    """A mean over the rounds and the interval of it, at 95 % confidence."""

    mean: float
    low: float
    high: float

    def holds(self, value):
        """Whether the interval holds this value."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Scaling:
    """What one job's times say. Lists go with `n`; `usl` is None where there are fewer than three n
    to fit.

    `counted` is the serial share by count of work, `timed` by the serial part's own time, `amdahl`
    the share in the straight line of time over 1 / n, and `shares` Karp and Flatt's of each n above
    1. `cpus` processors were there; for the job that counts, larger n are in `speedup` and `shares`
    but in neither fit.
    """

    job: str
    cpus: int
    n: list
    speedup: list
    shares: list
    counted: float
    timed: float
    amdahl: Estimate | None
    usl: UslFit | None
    doubt: str

    def predicted(self):
        """Amdahl's speedup for the counted share, on at most `cpus` processors if shared."""
        return [
            amdahl_speedup(min(n, self.cpus) if self.job == "count" else n, serial=self.counted)
            for n in self.n
        ]


def analyse(found, job):
    """The `Scaling` of one job ("count", "wait" or "message") from a list of `Quantity`s.

    Raises NotMeasured where the list does not have the job.
    """
    times = {
        q.parameters["n"]: q
        for q in found
        if q.key == "scaling.time" and q.parameters["job"] == job
    }
    if 1 not in times:
        raise NotMeasured(f"these quantities have no scaling.time for the job {job!r} at n = 1")
    n, cpus = sorted(times), times[1].parameters["cpus"]
    speedups = {
        k: [a / b for a, b in zip(times[1].samples, times[k].samples, strict=True)] for k in n
    }
    alone = [
        q.value for q in found if q.key == "scaling.serial_time" and q.parameters["job"] == job
    ]
    used = [k for k in n if job != "count" or k <= cpus]
    wide = [str(k) for k in n if not times[k].trusted]
    return Scaling(
        job,
        cpus,
        n,
        [statistics.median(speedups[k]) for k in n],
        [estimate([karp_flatt(s, k) for s in speedups[k]]) for k in n if k > 1],
        times[1].counted["serial"],
        alone[0] / times[1].value,
        (
            estimate(
                [
                    line_share(used, row)
                    for row in zip(*(times[k].samples for k in used), strict=True)
                ]
            )
            if len(used) > 1
            else None
        ),
        _usl({k: times[k].samples for k in used}) if len(used) > 2 else None,
        (
            f"The times for n = {', '.join(wide)} scatter too much to conclude from them."
            if wide
            else ""
        ),
    )


def _usl(times):
    """The fit to every sample over one common time of one process: its error is one factor for
    all, which the fit has, too.
    """
    import numpy

    alone = statistics.median(times[1])
    n, speedup = numpy.array([(float(n), alone / t) for n, row in times.items() for t in row]).T
    return fit_usl(n, speedup)


def line_share(n, times):
    """The serial share a / (a + b) of a + b / n through times, with proportional errors."""
    import numpy

    times = numpy.asarray(times, float)
    slope, level = numpy.polyfit(1 / numpy.asarray(n, float), times, 1, w=1 / times)
    return float(level / (level + slope))


def estimate(values, confidence=0.95):
    """The `Estimate` from independent values, by Student's t."""
    from scipy.special import stdtrit

    mean, count_ = statistics.fmean(values), len(values)
    half = float(stdtrit(count_ - 1, 0.5 + confidence / 2)) * statistics.stdev(values) / count_**0.5
    return Estimate(mean, mean - half, mean + half)


def findings(scaling):
    """What the measured times say about the laws; a single doubt where they scatter too much."""
    if scaling.doubt:
        return [scaling.doubt]
    sentences = []
    if scaling.job == "count" and scaling.cpus == 1:
        return [
            "With one processor the processes take turns: the counting job cannot become faster,"
            " and no share can be read off it."
        ]
    fits = [n for n in scaling.n if 1 < n <= scaling.cpus or (n > 1 and scaling.job != "count")]
    off = max(
        abs(s / p - 1)
        for n, s, p in zip(scaling.n, scaling.speedup, scaling.predicted(), strict=True)
        if n in fits
    )
    sentences.append(
        f"Amdahl's law with the counted share of {scaling.counted:.0%} is off by {off:.0%} at most,"
        f" up to {fits[-1]} processes."
    )
    if scaling.amdahl:
        sentences.append(
            f"The share that fits all of the times is {scaling.amdahl.mean:.1%}"
            f" ({scaling.amdahl.low:.1%} to {scaling.amdahl.high:.1%}); the serial part alone took"
            f" {scaling.timed:.1%}."
        )
    if scaling.usl is None:
        sentences.append(
            "A third term cannot be told from so few processors; the jobs that wait can show it."
        )
        return sentences
    low, high = scaling.usl.kappa_interval
    if low > 0:
        sentences.append(
            f"Something grows with n: κ is {scaling.usl.kappa:.2%} ({low:.2%} to {high:.2%}), so"
            f" that more than about {scaling.usl.peak:.0f} processes make it slower."
        )
    else:
        sentences.append(
            f"Nothing that grows with n can be seen: the interval of κ, {low:.2%} to {high:.2%},"
            " holds zero."
        )
    return sentences
