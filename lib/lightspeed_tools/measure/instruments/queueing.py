"""Little's law and the queues of chapter 4 against a real server on this machine's loopback.

`queue_server` holds the server and the sender, `queueing_load` what they are asked for;
`queueing_results` says what follows. Loads run side by side: they are waits, so that they need
little of a processor. Three instruments are kept apart: the server counts those inside at random
times (L), the sender counts requests (lambda) and stops the time of each (W).
"""

import statistics

from lightspeed_tools.measure.environment import usable_cores
from lightspeed_tools.measure.instruments.queue_server import send, serve
from lightspeed_tools.measure.instruments.queueing_load import LOADS, loads, schedule, slices
from lightspeed_tools.measure.instruments.queueing_results import refusal
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, Unavailable, middle
from lightspeed_tools.measure.instruments.workers import crew, receive

SERVICE = 0.010  # s, the mean of one server; each of four takes four times as long
FINE = 20  # services last at least so many times as long as timers are late
SECONDS, LONGER = 7.0, 30.0  # s of load
START = 30  # s until a server that does not begin is given up
KNOWN = ("servers", "service", "rate", "requests", "seed")  # of a load
NATURE = (
    "single values differ by nature; their mean has an interval from the means of long stretches"
)


def measure(quick=True, report=None):
    """Latencies, numbers inside, lateness: [Quantity | Missing], in about 10 s, 35 s if not
    `quick`. Raises Unavailable without loopback, or with coarse timers.
    """
    say = report or (lambda text: None)
    if usable_cores() == 1:
        say("one processor: the server and the sender take turns on it, which shows as lateness")
    results = quantities(*observe(SECONDS if quick else LONGER, say))
    if why := refusal(results):
        say(why)
    return results


def observe(seconds, say, levels=LOADS, slowest=10 * SERVICE):
    """(plan, seconds watched, [Sent] of the sender, [(looks, trace)] of the server, lateness of
    timers) of a real run. Raises Unavailable where services would have to last longer than
    `slowest`.
    """
    with crew(serve, send) as (server, sender):
        server.send([load.servers for load in loads(seconds, SERVICE, levels=levels)])
        port, late = receive(server, START)
        coarse, usual = statistics.median(late), statistics.fmean(middle(late))
        service = max(SERVICE, FINE * coarse)
        if service > slowest:
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


def quantities(plan, watched, sent, seen, late):
    """`Quantity`s from the sender (`watched` s, a `Sent` a load) and the server (looks, trace)."""
    late_by = "how late a sleep ends in an event loop"
    results: list = [_quantity("timer", "s", _rounded(late, 7), note=late_by)]
    lateness, trips, over = [], [], []
    for load, mine, (looks, trace) in zip(plan, sent, seen, strict=True):
        asked = schedule(load)[1]
        which = {"law": load.law, "load": load.load, "loop": load.loop}
        each = [s - d for s, d in zip(mine.sent, mine.due, strict=True)]
        known = {
            **{name: getattr(load, name) for name in KNOWN},
            "seconds": watched,
            "late": statistics.fmean(each),
        }
        starts = {"due": mine.due} if load.loop == "open" else {"due": mine.due, "send": mine.sent}
        for since, start in starts.items():
            stays = _rounded((d - s for s, d in zip(start, mine.done, strict=True)), 5)
            results.append(_quantity("latency", "s", stays, which | {"since": since}, known))
        means = [statistics.fmean(part) for part in slices(looks)]
        spread = {"looks": len(looks), "deviation": statistics.pstdev(looks)}
        results.append(_quantity("inside", "request", means, which, spread))
        inside = {number: departure - arrival for number, arrival, _, departure in trace}
        trips += [
            (d, d - s - inside[i])
            for i, (s, d) in enumerate(zip(mine.sent, mine.done, strict=True))
        ]
        over += [
            (departure, departure - start - asked[number]) for number, _, start, departure in trace
        ]
        if load.loop == "open":
            lateness += zip(mine.due, each, strict=True)
    for name, rows, note in (
        ("lateness", lateness, "how late the sender sent, a mean for each stretch of the run"),
        ("round_trip", trips, "latency less stay in the server"),
        ("overshoot", over, "by how much services lasted longer than asked"),
    ):
        means = _rounded((statistics.fmean(v for _, v in part) for part in slices(sorted(rows))), 7)
        results.append(_quantity(name, "s", means, note=note))
    p99 = [sorted(v for _, v in part)[int(0.99 * len(part))] for part in slices(sorted(lateness))]
    percentile = "the same, the ninety-ninth percentile"
    results.append(_quantity("lateness_p99", "s", _rounded(p99, 7), note=percentile))
    if usable_cores() == 1:
        results.append(
            Missing(
                "queueing.undisturbed",
                "This process may use one processor: the server and the sender take turns on it.",
                "What they take from each other is in the lateness and the round trip.",
            )
        )
    return results


def _quantity(name, unit, samples, parameters=None, counted=None, note=NATURE):
    key, parameters, counted = f"queueing.{name}", parameters or {}, counted or {}
    return Quantity(key, unit, samples, parameters, "lower", note, counted, varies=True)


def _rounded(values, digits):
    return tuple(round(v, digits) for v in values)
