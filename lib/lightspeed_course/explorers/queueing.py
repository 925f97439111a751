"""Chapter 4: requests that wait, and a replica that decodes them together.

`view` is a queue with slots in memory; `serving_view` is a language model on hardware. Both are
pure: parameters in, a `View` out. `explore()` and `explore_serving()` put controls on them.
"""

from __future__ import annotations

import math

import numpy as np

from lightspeed import queueing, serving
from lightspeed.catalog import entries, find
from lightspeed.models.queue_simulation import number_inside, simulate
from lightspeed_course.measure.machine import hardware as hardware_of
from lightspeed_course.measure.machine import own_choices
from lightspeed_course.show import (
    Axis,
    Chart,
    Choice,
    Line,
    LogSlider,
    Points,
    Rule,
    View,
    explorer,
    si,
)

WIDTH = {"bf16": 2, "int8": 1, "int4": 0.5}  # bytes of a weight; arithmetic and caches stay in bf16
HORIZON = 60  # service times that the live queue shows
TOP_INSIDE, TOP_SLOWDOWN = 8, 100  # where the charts end
SHORTEST, RAREST = 1e-9, 1e-6  # a wait (s) and a share of requests below which a number would only look exact
QUEUED = 4096  # slots of a serving queue: past peak / bandwidth, some hundreds, a further one changes no time, only the work of adding up
USUAL, SMALL = ((5e-4, 2), (10, 1e6)), ((1e-7, 2), (10, 1e8))  # s and token/s: the axes of most replicas, and of a small model on many chips


# --- a queue ----------------------------------------------------------------------------------


def view(arrival_rate=400, service_time=0.05, servers=32, kv_bytes=1e9, memory=24e9):
    """Requests that each hold `kv_bytes` of `memory` and one of `servers` for `service_time` on average."""
    fit = math.floor(memory / kv_bytes)
    slots = min(servers, fit)
    load, most = queueing.concurrency(arrival_rate, service_time), queueing.throughput(slots, service_time)
    facts = {
        "requests that fit": si(fit, digits=4),
        "slots in use at most": si(slots, digits=4),
        "most that can leave": f"{si(most)}/s",
        "busy on average, if there were room": si(load),
        "load": si(load / slots, "%"),
    }
    limit = f"Memory is the limit: it holds {fit} of {servers} slots." if fit < servers else "The servers are the limit, not memory."
    if load < slots:
        queue = queueing.mmc(arrival_rate, 1 / service_time, slots)
        slow = queueing.sojourn_percentile(0.99, arrival_rate, 1 / service_time, slots)
        facts |= {"L": si(queue.L), "W": si(queue.W, "s"), "99th percentile": si(slow, "s"), "have to wait": rare(queue.wait_probability)}
        verdict = f"Stable: at {si(load / slots, '%', 2)} of capacity a request takes {si(queue.W, 's')}, of which {short(queue.Wq)} waiting. {limit}"
    else:
        facts |= {"L": "grows", "W": "grows", "99th percentile": "grows", "have to wait": si(1, "%")}
        excess = f"{si(arrival_rate - most)} more arrive than leave each second" if load > slots else "as many arrive as can leave, with no room for chance"
        verdict = f"Overload: {excess}, and the queue grows without limit. {limit} {way_out(load, kv_bytes)}"
    return View([slowdown(load / slots, slots), live(load / slots, slots)], verdict, facts)


def short(wait):
    """A time, but no femtoseconds of a femtosecond."""
    return si(wait, "s") if wait >= SHORTEST else f"less than {si(SHORTEST, 's')}"


def rare(share):
    """A share of the requests, if any of them is ever to see it."""
    return si(share, "%", 2) if share >= RAREST else "practically none"


def way_out(load, kv_bytes):
    """What it would take for most requests not to wait."""
    enough = queueing.servers_for(load, 0.1)
    return f"With {si(enough, digits=4)} slots, {si(enough * kv_bytes, 'byte')} of cache, nine out of ten would not wait."


def slowdown(rho, slots):
    """Mean and tail of the time in the system, in service times, over the load; and where we are."""
    loads = np.append(np.linspace(0.01, 0.94, 48), 1 - np.geomspace(0.05, 0.002, 20))
    mean = queueing.mmc(loads * slots, 1.0, slots).W
    tail = queueing.sojourn_percentile(0.99, loads * slots, 1.0, slots)
    end = 1.5  # where the chart does
    lines = [curve(loads, y, name, color, TOP_SLOWDOWN) for y, name, color in ((mean, "mean", "blue"), (tail, "99th percentile", "purple"))]
    here = (
        Points((rho,), (min(queueing.mmc(rho * slots, 1.0, slots).W, TOP_SLOWDOWN),), labels=("you",), drop=True, size=8)
        if rho < 1
        else Rule(x=rho, label="you", color="orange")
        if rho <= end
        else Rule(x=0.97 * end, label=f"you: {si(rho, '%')}, off the chart", color="orange")
    )
    return Chart(
        Axis("load, share of what the slots can do", "%", domain=(0, end)),
        Axis("time in system / service time", scale="log", domain=(0.9, TOP_SLOWDOWN)),
        [*lines, Rule(x=1, label="full"), here],
        title="How long",
        height=300,
    )


def curve(x, y, label, color, top):
    """A line as far as the chart goes."""
    inside = y <= top
    return Line(x[inside], y[inside], label, color)


def live(rho, slots):
    """One run of this queue from an empty start, always with the same luck, so that only the controls change it."""
    n = math.ceil(1.2 * rho * slots * HORIZON) + 50
    rng = np.random.default_rng(1961)
    gaps, services = rng.exponential(1, (2, n))
    times, counts = number_inside(simulate(np.cumsum(gaps) / (rho * slots), services, slots))
    clock = np.linspace(0, HORIZON, 241)
    inside = np.append(0, counts)[np.searchsorted(times, clock, side="right")] / slots
    shown = np.maximum.accumulate(inside) <= TOP_INSIDE
    return Chart(
        Axis("time, in service times", domain=(0, HORIZON)),
        Axis("inside / slots", domain=(0, TOP_INSIDE)),
        [Line(clock[shown], inside[shown], "", "orange"), Rule(y=1, label="every slot busy")],
        title="One run from an empty start",
        height=300,
    )


def explore():
    """The first explorer of chapter 4."""
    return explorer(
        view,
        [
            LogSlider("arrival_rate", "arrivals", 1, 1000, 400, per_decade=30, text=lambda rate: f"{si(rate)}/s"),
            LogSlider("service_time", "service time", 0.001, 1, 0.05, unit="s", include=(0.1,)),
            LogSlider("servers", "servers", 1, 512, 32, base=2),
            LogSlider("kv_bytes", "KV cache of a request", 1e7, 8e9, 1e9, unit="byte", include=(2e9,)),
            LogSlider("memory", "memory for caches", 8e9, 2e12, 24e9, unit="byte", include=(100e9,)),
        ],
        caption="Raise the arrivals slowly and watch both charts: nothing happens for a long time, and then everything at once.",
        alt="Left, the time in the system over the load, flat at first and rising steeply towards full load, with a point for the "
        "settings. Right, the number of requests inside over time in one simulated run.",
    )


# --- a language model on hardware -------------------------------------------------------------


def machines():
    """Accelerators with a bf16 peak and a memory of known size and rate: name -> key."""
    return {e.name: k for k, e in entries("accelerators").items() if all(n in e for n in ("bf16", "hbm_bandwidth", "hbm_capacity"))}


def models():
    """Dense models of the catalog with their KV heads known: name -> key."""
    return {e.name: k for k, e in entries("models").items() if "parameters" in e and "kv_heads" in e.about and "experts" not in e.about}


def replica(hardware, chips, model, weights, context):
    """Arguments of the laws of `serving`, the memory of all chips, and the bytes of the weights."""
    chip, shape = hardware_of(hardware), find(model)
    arguments = {
        "parameters": shape.parameters,
        "kv_bytes": serving.kv_cache_bytes(shape.layers, shape.kv_heads, shape.head_width, context),
        "peak": chips * chip.bf16,
        "bandwidth": chips * chip.hbm_bandwidth,
        "param_bytes": WIDTH[weights],
    }
    return arguments, chips * chip.hbm_capacity, shape.parameters * WIDTH[weights]


def limits(hardware, chips, model, weights, context, budget):
    """(what the memory holds, what the budget allows), in requests; the first is zero if the weights do not fit."""
    arguments, memory, weight_bytes = replica(hardware, chips, model, weights, context)
    fit = serving.batch_that_fits(memory, weight_bytes, arguments["kv_bytes"]) if weight_bytes <= memory else 0
    return int(fit), int(serving.batch_within(budget, **arguments))


def serving_view(hardware="h100_sxm", chips=8, model="llama3_70b", weights="bf16", context=8192, output=512, budget=0.03, arrival_rate=8):
    """A replica of `chips` that act as one: what it can give, and what its requests get."""
    arguments, memory, weight_bytes = replica(hardware, chips, model, weights, context)
    fit, allowed = limits(hardware, chips, model, weights, context, budget)
    slots, prompt = min(fit, allowed), context - output // 2
    facts = {
        "weights": si(weight_bytes, "byte"),
        "memory": si(memory, "byte"),
        "KV cache of a request": si(arguments["kv_bytes"], "byte"),
        "batch that fits": si(fit, digits=4),
        "batch within the budget": si(allowed, digits=4),
        "batch at the knee": si(serving.knee_batch(**arguments), digits=2),
    }
    charts = [pareto(arguments, fit, budget)]
    if prompt < 1 or not slots:
        facts |= {"most it can finish": "none", "time for a request": "none", "replicas to read the prompts": "none"}
        words = no_prompt(context, output) if prompt < 1 else no_batch(arguments, memory, weight_bytes, fit, budget)
        return View(charts, words, facts)
    step = serving.decode_step(slots, **arguments).time
    most = serving.request_rate(slots, output, step)
    prefill = serving.prefill_time(prompt, arguments["parameters"], arguments["peak"])
    feeders = serving.prefill_servers(prefill, slots, step, output)
    limit = "the budget" if allowed <= fit else "memory"
    state = f"A batch of {si(slots, digits=4)}, set by {limit}, gives {si(slots / step, 'token')}/s or {si(most)} requests/s."
    if arrival_rate < most:
        queue = serving.serving_queue(arrival_rate, output, min(slots, QUEUED), **arguments)
        facts |= {"most it can finish": f"{si(most)}/s", "time for a request": si(queue.W, "s"), "replicas to read the prompts": si(feeders, digits=2)}
        pace, wait = (queue.W - queue.Wq) / output, si(queue.Wq, "s") if queue.Wq > 1e-3 else "next to none"
        verdict = f"Keeps up, at {si(queue.rho, '%', 2)} of its throughput: {si(pace, 's')} a token; waiting: {wait}. {state}"
    else:
        facts |= {"most it can finish": f"{si(most)}/s", "time for a request": "grows", "replicas to read the prompts": si(feeders, digits=2)}
        verdict = f"Overload: {si(arrival_rate)} requests/s are too many. {state}"
    return View(charts, f"{verdict} {flips(hardware, chips, model, weights, context, budget, limit)}", facts)


def no_prompt(context, output):
    """A cache that is too short for what is generated."""
    return (
        f"Not possible: on the way to {si(output)} generated tokens a cache holds half of them, {si(output // 2)}, on average, "
        f"and {si(context)} tokens in the cache leave none for a prompt. More tokens in the cache, or fewer to generate?"
    )


def no_batch(arguments, memory, weight_bytes, fit, budget):
    """Why not even one request can be decoded."""
    one = serving.decode_step(1, **arguments)
    if weight_bytes > memory:
        why = f"The weights take {si(weight_bytes, 'byte')} and the memory is {si(memory, 'byte')}"
    elif not fit:
        why = "No cache fits beside the weights"
    elif one.weights > budget:
        why = f"Reading the weights alone takes {si(one.weights, 's')} a token, and the budget is {si(budget, 's')}"
    else:
        why = f"Reading the weights and a single cache takes {si(one.time, 's')} a token, and the budget is {si(budget, 's')}"
    return f"No batch is possible. {why}. More chips, narrower weights, fewer tokens in the cache or another budget?"


def flips(here, chips, model, weights, context, budget, limit):
    """Which other chips, as many of them, would be limited by something else."""
    others = []
    for name, key in machines().items():
        fit, allowed = limits(key, chips, model, weights, context, budget)
        if key != here and min(fit, allowed) and ("the budget" if allowed <= fit else "memory") != limit:
            others.append(name)
    if not others:
        return f"On every chip here that can do it, {limit} decides."
    more = f" and {len(others) - 2} more" if len(others) > 2 else ""
    return f"Something else would decide on {', '.join(others[:2])}{more}."


def pareto(arguments, fit, budget):
    """Throughput over time per token for every batch, and the batches that matter; on other axes where the usual ones would miss the knee."""
    batches = np.unique(np.geomspace(1, max(fit, 4096), 120).round())
    times = serving.decode_step(batches, **arguments).time
    knee = max(1, round(serving.knee_batch(**arguments)))
    small = serving.decode_step(knee, **arguments).time < USUAL[0][0]
    x, y = SMALL if small else USUAL
    marks = [Rule(x=budget, label="budget")]
    here = batches <= max(fit, 1)
    for chosen, label, dash in ((here, "", False), (~here, "does not fit", True)):
        if chosen.any():
            marks.append(Line(times[chosen], batches[chosen] / times[chosen], label, "grey" if dash else "blue", dash=dash))
    points = {"knee": (knee, "green", "diamond")} | ({"memory full": (fit, "orange", "circle")} if fit else {})
    for name, (batch, color, marker) in points.items():
        time = serving.decode_step(batch, **arguments).time
        if x[0] <= time <= x[1] and y[0] <= batch / time <= y[1]:
            marks.append(Points((time,), (batch / time,), labels=(name,), color=color, marker=marker))
    return Chart(
        Axis("time per token", "s", "log", domain=x),
        Axis("throughput of the replica, token/s", scale="log", domain=y),
        marks,
        title="Throughput and latency" + ", on the axes of a small model" * small,
        height=320,
    )


def explore_serving():
    """The second explorer of chapter 4."""
    return explorer(
        serving_view,
        [
            Choice("hardware", "hardware", machines() | own_choices("bf16", "hbm_bandwidth", "hbm_capacity"), "h100_sxm"),
            LogSlider("chips", "chips in the replica", 1, 64, 8, base=2),
            Choice("model", "model", models(), "llama3_70b"),
            Choice("weights", "weights", list(WIDTH), "bf16"),
            LogSlider("context", "tokens in the cache", 512, 131072, 8192, base=2),
            LogSlider("output", "tokens to generate", 32, 4096, 512, base=2),
            LogSlider("budget", "budget for a token", 0.005, 0.5, 0.03, unit="s"),
            LogSlider("arrival_rate", "arrivals", 0.1, 100, 8, text=lambda rate: f"{si(rate)}/s"),
        ],
        caption="Each point of the curve is a batch. Left of the knee a larger batch is nearly free; right of it you pay in latency.",
        alt="Throughput of a replica over the time per token, both logarithmic: a curve that rises steeply and then flattens, "
        "with the knee, the batch that fills the memory, and a rule at the latency budget.",
    )
