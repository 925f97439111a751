"""Chapter 4: requests that wait, and a replica that decodes them together.

`view` is a queue with slots in memory; `serving_view` is a language model on hardware. Both are
pure: parameters in, a `View` out. `explore()` and `explore_serving()` put controls on them.
"""

import itertools
import math
import random
from bisect import bisect_right
from functools import cache, lru_cache

from lightspeed import queueing, serving
from lightspeed.catalog import entries
from lightspeed_course.explorers import published
from lightspeed_course.explorers.measured_machines import hardware as hardware_of
from lightspeed_course.explorers.menus import listed, machines
from lightspeed_models.llm.shipped import decoder, shape_of
from lightspeed_models.simulators.queue_simulation import serve
from lightspeed_show import (
    Axis,
    Chart,
    Choice,
    Formula,
    Line,
    LogSlider,
    Points,
    Rule,
    View,
    explorer,
    si,
)
from lightspeed_show.spaced import by_ratio, evenly

# Where memory is never what is short.
BUSY = {"service_time": 0.1, "kv_bytes": 1e9, "memory": 100e9}
WIDTH = {"bf16": 2, "int8": 1, "int4": 0.5}  # bytes of a weight; arithmetic and caches stay in bf16
HORIZON = 60  # service times that the live queue shows
TOP_INSIDE, TOP_SLOWDOWN = 8, 100  # where the charts end
LOADS = (*evenly(0.01, 0.94, 32), *(1 - gap for gap in by_ratio(0.05, 0.002, 16)))
# A wait (s) and a share of requests below which a number would only look exact.
SHORTEST, RAREST = 1e-9, 1e-6
# Slots of a serving queue: past peak / bandwidth, some hundreds, a further one changes no time,
# only the work of adding up.
QUEUED = 4096
# s and token/s: the axes of most replicas, and of a small model on many chips.
USUAL, SMALL = ((5e-4, 2), (10, 1e6)), ((1e-7, 2), (10, 1e8))
NEEDED = ("bf16", "hbm_bandwidth", "hbm_capacity")  # of a chip, to decode on it
CAPACITY = (
    "most it can finish", "most if it reads the prompts too",
    "time to decode a request", "replicas to read the prompts, at full load",
)  # fmt: skip


# --- a queue ----------------------------------------------------------------------------------


def view(arrival_rate, service_time, servers, kv_bytes, memory):
    """Requests that each hold `kv_bytes` of `memory` and a server for `service_time` on average."""
    fit = math.floor(memory / kv_bytes)
    slots = min(servers, fit)
    load = queueing.concurrency(arrival_rate, service_time)
    most = queueing.throughput(slots, service_time)
    facts = {
        "requests that fit": si(fit, digits=4),
        "slots in use at most": si(slots, digits=4),
        "most that can leave": f"{si(most)}/s",
        "busy on average, if there were room": si(load),
        "load": si(load / slots, "%"),
    }
    capacity = what_sets_it(servers, fit)
    if load < slots:
        queue = queueing.mmc(arrival_rate, 1 / service_time, slots)
        slow = queueing.sojourn_percentile(0.99, arrival_rate, 1 / service_time, slots)
        facts |= {
            "L": si(queue.L),
            "W": si(queue.W, "s"),
            "99th percentile": si(slow, "s"),
            "have to wait": rare(queue.wait_probability),
        }
        verdict = (
            f"Stable: at {si(load / slots, '%', 2)} of capacity a request takes "
            f"{si(queue.W, 's')}, of which {short(queue.Wq)} waiting. {capacity}"
        )
    else:
        facts |= dict.fromkeys(("L", "W", "99th percentile"), "grows")
        facts |= {"have to wait": si(1, "%")}
        excess = (
            f"{si(arrival_rate - most)} more arrive than leave each second"
            if load > slots
            else "as many arrive as can leave, with no room for chance"
        )
        verdict = (
            f"Overload: {excess}, and the queue grows without limit. "
            f"{capacity} {way_out(load, kv_bytes)}"
        )
    law = Formula(
        "load",
        "arrivals * service_time / slots",
        {
            "arrivals": (arrival_rate, "requests/s"),
            "service_time": (service_time, "s"),
            "slots": (slots, ""),
        },
        (load / slots, "%"),
    )
    charts = [slowdown(load / slots, slots), live(load / slots, slots)]
    return View(charts, verdict, facts, formula=law)


def what_sets_it(servers, fit):
    """What sets the capacity: the memory, the servers, or both."""
    if fit < servers:
        return f"Memory sets the capacity: it holds {fit} of {servers} slots."
    if fit > servers:
        return "The servers set the capacity, not memory."
    return f"Servers and memory set the same capacity, {si(fit, digits=4)} slots."


def short(wait):
    """A time, but no femtoseconds of a femtosecond."""
    return si(wait, "s") if wait >= SHORTEST else f"less than {si(SHORTEST, 's')}"


def rare(share):
    """A share of the requests, if any of them is ever to see it."""
    return si(share, "%", 2) if share >= RAREST else "practically none"


def way_out(load, kv_bytes):
    """Say what most requests would need so as not to wait."""
    enough = queueing.servers_for(load, 0.1)
    cache = si(enough * kv_bytes, "byte")
    return f"With {si(enough, digits=4)} slots, {cache} of cache, nine out of ten would not wait."


@lru_cache(maxsize=64)
def by_load(slots):
    """Mean and tail over LOADS: the same whatever the other controls say."""
    tail = queueing.sojourn_percentile.__wrapped__  # LOADS are right
    return (
        [queueing.mmc.__wrapped__(load * slots, 1.0, slots).W for load in LOADS],
        [tail(0.99, load * slots, 1.0, slots) for load in LOADS],
    )


def slowdown(rho, slots):
    """Mean and tail of the time in the system over the load, in service times; and where we are."""
    mean, tail = by_load(slots)
    end = 1.5  # where the chart does
    lines = [
        curve(mean, "mean", "blue"),
        curve(tail, "99th percentile", "purple"),
    ]
    if rho < 1:
        time = min(queueing.mmc(rho * slots, 1.0, slots).W, TOP_SLOWDOWN)
        pull = ("arrival_rate", None)
        here = Points((rho,), (time,), labels=("you",), drop=True, size=8, drag=pull)
    elif rho <= end:
        here = Rule(x=rho, label="you", color="orange")
    else:
        here = Rule(x=0.97 * end, label=f"you: {si(rho, '%')}, off the chart", color="orange")
    return Chart(
        Axis("load, share of what the slots can do", "%", domain=(0, end)),
        Axis("time in system / service time", scale="log", domain=(0.9, TOP_SLOWDOWN)),
        [*lines, Rule(x=1, label="full"), here],
        title="How long",
        height=255,
    )


def curve(slowdowns, label, color):
    """A line over the load, as far as the chart goes."""
    pairs = [pair for pair in zip(LOADS, slowdowns, strict=True) if pair[1] <= TOP_SLOWDOWN]
    return Line(*zip(*pairs, strict=True), label, color)


@cache
def luck(n):
    """Gaps and services of mean one, of `n` requests: the same at each call, whatever `n` is."""
    gaps, services = random.Random(1961), random.Random(1962)
    return tuple(tuple(rng.expovariate(1) for _ in range(n)) for rng in (gaps, services))


def live(rho, slots):
    """One run of this queue from an empty start, with the same luck whatever the controls say."""
    # An overloaded queue soon leaves the chart; what comes after is not drawn.
    end = min(HORIZON, 2 * TOP_INSIDE / (rho - 1)) if rho > 1 else HORIZON
    n = math.ceil(1.2 * rho * slots * end) + 50
    gaps, services = (part[:n] for part in luck(1 << n.bit_length()))
    arrivals = [time / (rho * slots) for time in itertools.accumulate(gaps)]
    rows, _ = serve(arrivals, services, slots)
    departures = sorted(departure for _, _, departure in rows)
    clock = evenly(0, HORIZON, 241)
    inside = [(bisect_right(arrivals, t) - bisect_right(departures, t)) / slots for t in clock]
    pairs = zip(clock, inside, strict=True)
    part = itertools.takewhile(lambda pair: pair[1] <= TOP_INSIDE, pairs)
    return Chart(
        Axis("time, in service times", domain=(0, HORIZON)),
        Axis("inside / slots", domain=(0, TOP_INSIDE)),
        [Line(*zip(*part, strict=True), "", "orange"), Rule(y=1, label="every slot busy")],
        title="One run from an empty start",
        height=220,
    )


def explore():
    """The first explorer of chapter 4."""
    return explorer(
        view,
        [
            LogSlider(
                "arrival_rate",
                "arrivals",
                1,
                1000,
                400,
                per_decade=30,
                text=a_second,
                include=(9, 576),
            ),
            LogSlider("service_time", "service time", 0.001, 1, 0.05, unit="s", include=(0.1,)),
            LogSlider("servers", "servers", 1, 512, 32, base=2),
            LogSlider(
                "kv_bytes", "KV cache of a request", 1e7, 8e9, 1e9, unit="byte", include=(2e9,)
            ),
            LogSlider(
                "memory", "memory for caches", 8e9, 2e12, 24e9, unit="byte", include=(100e9,)
            ),
        ],
        caption=(
            "Raise the arrivals slowly and watch both charts: nothing happens for a long time, "
            "and then everything at once."
        ),
        alt=(
            "Left, the time in the system over the load, flat at first and rising steeply towards "
            "full load, with a point for the settings. Right, the number of requests inside over "
            "time in one simulated run."
        ),
        presets={
            "one server, nine tenths busy": BUSY | {"arrival_rate": 9, "servers": 1},
            "many servers, as busy": BUSY | {"arrival_rate": 576, "servers": 64},
            "a quiet hour": BUSY | {"arrival_rate": 100, "servers": 64},
            "overload": BUSY | {"arrival_rate": 1000, "servers": 64},
        },
        guess="At which load will a request take twice its service time? Click there.",
        later=("service_time",),
    )


def a_second(rate):
    return f"{si(rate)}/s"


# --- a language model on hardware -------------------------------------------------------------


def models():
    """Dense models of the catalog with their KV heads known: name -> key."""
    return {
        entry.name: key
        for key, entry in entries("models").items()
        if shape_of(key) and not decoder(key).experts
    }


def replica(hardware, chips, model, weights, context):
    """Arguments of the laws of `serving`, the memory of all chips, and the bytes of the weights."""
    chip, shape = hardware_of(hardware), decoder(model)
    arguments = {
        "parameters": shape.parameters,
        "kv_bytes": context * shape.kv_cache_bytes_per_token(),
        "peak": chips * chip.bf16,
        "bandwidth": chips * chip.hbm_bandwidth,
        "parameter_bytes": WIDTH[weights],
    }
    return arguments, chips * chip.hbm_capacity, shape.parameters * WIDTH[weights]


def limits(hardware, chips, model, weights, context, budget):
    """(what the memory holds, what the budget allows), in requests; no weights, no request."""
    arguments, memory, weight_bytes = replica(hardware, chips, model, weights, context)
    fits = weight_bytes <= memory
    fit = serving.batch_that_fits(memory, weight_bytes, arguments["kv_bytes"]) if fits else 0
    return int(fit), int(serving.batch_within(budget, **arguments))


def decides(fit, limit):
    return "the budget" if limit <= fit else "memory"


def serving_view(
    hardware, chips, model, weights,
    context, output, budget, arrival_rate,
):  # fmt: skip
    """A replica of `chips` that act as one: what it can give, and what its requests get."""
    arguments, memory, weight_bytes = replica(hardware, chips, model, weights, context)
    fit, most_rows = limits(hardware, chips, model, weights, context, budget)
    slots, prompt = min(fit, most_rows), context - output // 2
    facts = {
        "weights": si(weight_bytes, "byte"),
        "memory": si(memory, "byte"),
        "KV cache of a request": si(arguments["kv_bytes"], "byte"),
        "batch that fits": si(fit, digits=4),
        "batch within the budget": si(most_rows, digits=4),
        "batch at the knee": si(serving.knee_batch(**arguments), digits=2),
    }
    dots, note = published.serving(hardware, chips, model, weights, *axes(arguments))
    charts = [pareto(arguments, fit, budget, dots)]
    if prompt < 1 or not slots:
        facts |= dict.fromkeys(CAPACITY, "none")
        if prompt < 1:
            return View(charts, no_prompt(context, output), facts, measured=note)
        words = no_batch(arguments, memory, weight_bytes, fit, budget)
        return View(charts, words, facts, measured=note)
    step = serving.decode_step(slots, **arguments).time
    most = serving.request_rate(slots, output, step)
    prefill = serving.prefill_time(prompt, arguments["parameters"], arguments["peak"])
    # A request costs the replica its part of the steps and, if it reads prompts too, a prefill.
    both = 1 / (1 / most + prefill)
    limit = decides(fit, most_rows)
    state = (
        f"A batch of {si(slots, digits=4)}, set by {limit}, gives {si(slots / step, 'token')}/s "
        f"or {si(most)} requests/s."
    )
    time = "grows"
    if arrival_rate < most:
        queue = serving.serving_queue(arrival_rate, output, min(slots, QUEUED), **arguments)
        time, verdict = si(queue.W, "s"), keeps_up(queue, output, arrival_rate, both)
    else:
        verdict = f"Overload: {si(arrival_rate)} requests/s are too many."
    feeders = serving.prefill_servers(prefill, slots, step, output)
    values = (f"{si(most)}/s", f"{si(both)}/s", time, si(feeders, digits=2))
    others = elsewhere(hardware, chips, model, weights, context, budget, limit)
    law = Formula(
        "time for a token",
        "caches / bandwidth + max(weights / bandwidth, FLOPs / peak)",
        {
            "caches": (slots * arguments["kv_bytes"], "byte"),
            "weights": (weight_bytes, "byte"),
            "FLOPs": (2 * arguments["parameters"] * slots, "FLOP"),
            "bandwidth": (arguments["bandwidth"], "byte/s"),
            "peak": (arguments["peak"], "FLOP/s"),
        },
        (step, "s"),
    )
    facts |= dict(zip(CAPACITY, values, strict=True))
    words = f"{verdict} {state} {others}"
    return View(charts, words, facts, formula=law, measured=note)


def keeps_up(queue, output, arrival_rate, both):
    """How a replica that is fast enough at decoding keeps up, and who has to read the prompts."""
    pace = si((queue.W - queue.Wq) / output, "s")
    wait = si(queue.Wq, "s") if queue.Wq > 1e-3 else "next to none"
    share = si(queue.rho, "%", 2)
    decoding = f"Decoding is at {share} of its throughput: {pace} a token; waiting: {wait}."
    if arrival_rate < both:
        return f"Keeps up, even if it reads the prompts itself. {decoding}"
    itself = f"If it read them itself, it would finish at most {si(both)} requests/s"
    return f"Keeps up only if other replicas read the prompts. {itself}. {decoding}"


def no_prompt(context, output):
    """Say that the cache is too short for the output."""
    return (
        f"Not possible: on the way to {si(output)} generated tokens a cache holds half of them, "
        f"{si(output // 2)}, on average, and {si(context)} tokens in the cache leave none for a "
        "prompt. More tokens in the cache, or fewer to generate?"
    )


def no_batch(arguments, memory, weight_bytes, fit, budget):
    """Why not even one request can be decoded."""
    one, most = serving.decode_step(1, **arguments), f"the budget is {si(budget, 's')}"
    if weight_bytes > memory:
        why = f"The weights take {si(weight_bytes, 'byte')} and the memory is {si(memory, 'byte')}"
    elif not fit:
        why = "No cache fits beside the weights"
    elif one.weights > budget:
        why = f"Reading the weights alone takes {si(one.weights, 's')} a token, and {most}"
    else:
        both = "Reading the weights and a single cache"
        why = f"{both} takes {si(one.time, 's')} a token, and {most}"
    return (
        f"No batch is possible. {why}. More chips, narrower weights, fewer tokens in the cache or "
        "another budget?"
    )


def elsewhere(here, chips, model, weights, context, budget, limit):
    """Which other chips of the menu, as many of them, would be limited by something else."""
    others = {
        name: limits(key, chips, model, weights, context, budget)
        for name, key in machines(*NEEDED).items()
        if key != here
    }
    able = {name: both for name, both in others.items() if min(both)}
    flips = [name for name, both in able.items() if decides(*both) != limit]
    if flips:
        return f"Something else would decide on {listed(flips, 2)}."
    if able:
        return f"On every chip here that can do it, {limit} decides."
    return "No other chip here can do it."


def knee_of(arguments):
    return max(1, round(serving.knee_batch(**arguments)))


def axes(arguments):
    """Ends of the axes of time per token and throughput: others where these miss the knee."""
    small = serving.decode_step(knee_of(arguments), **arguments).time < USUAL[0][0]
    return SMALL if small else USUAL


def pareto(arguments, fit, budget, dots=()):
    """Throughput over time per token for every batch, and those that matter, over measurements."""
    batches = sorted({round(batch) for batch in by_ratio(1, max(fit, 4096), 120)})
    times = {batch: serving.decode_step(batch, **arguments).time for batch in batches}
    knee, (x, y) = knee_of(arguments), axes(arguments)
    marks = [*dots, Rule(x=budget, label="budget")]
    here = [batch for batch in batches if batch <= max(fit, 1)]
    beyond = batches[len(here) :]
    for group, label, dash in ((here, "", False), (beyond, "does not fit", True)):
        if group:
            color = "grey" if dash else "blue"
            rates = [batch / times[batch] for batch in group]
            marks.append(Line([times[batch] for batch in group], rates, label, color, dash=dash))
    points = {"knee": (knee, "green", "diamond")}
    if fit:
        points["memory full"] = (fit, "orange", "circle")
    for name, (batch, color, marker) in points.items():
        time = serving.decode_step(batch, **arguments).time
        if x[0] <= time <= x[1] and y[0] <= batch / time <= y[1]:
            marks.append(
                Points((time,), (batch / time,), labels=(name,), color=color, marker=marker)
            )
    return Chart(
        Axis("time per token", "s", "log", domain=x),
        Axis("throughput of the replica, token/s", scale="log", domain=y),
        marks,
        title="Throughput and latency" + ", on the axes of a small model" * (x == SMALL[0]),
        height=320,
    )


def explore_serving():
    """The second explorer of chapter 4."""
    return explorer(
        serving_view,
        [
            Choice("hardware", "hardware", machines(*NEEDED), "h100_sxm"),
            LogSlider("chips", "chips in the replica", 1, 64, 8, base=2),
            Choice("model", "model", models(), "llama3_70b"),
            Choice("weights", "weights", list(WIDTH), "bf16"),
            LogSlider("context", "tokens in the cache", 512, 131072, 8192, base=2),
            LogSlider("output", "tokens to generate", 32, 4096, 512, base=2),
            LogSlider("budget", "budget for a token", 0.005, 0.5, 0.03, unit="s"),
            LogSlider("arrival_rate", "arrivals", 0.1, 100, 8, text=a_second),
        ],
        caption=(
            "Each point of the curve is a batch. Left of the knee a larger batch is nearly "
            "free; right of it you pay in latency."
        ),
        alt=(
            "Throughput of a replica over the time per token, both logarithmic: a curve that rises"
            " steeply and then flattens, with the knee, the batch that fills the memory, and a rule"
            " at the latency budget."
        ),
        presets={
            "a chat": {"context": 2048, "output": 512, "budget": 0.03},
            "a long document": {"context": 131072, "output": 512, "budget": 0.03},
            "four-bit weights": {"weights": "int4", "context": 2048, "budget": 0.03},
        },
        guess="With four times the tokens in the cache, where would the knee be? Click there.",
        later=("chips", "weights", "output", "arrival_rate"),
    )
