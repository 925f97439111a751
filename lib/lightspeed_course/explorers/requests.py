"""Chapter 4 in motion: a queue that fills, request by request, and slots that decode.

Each moment is a state of `lightspeed_models.simulators.requests`.
"""

import functools
import random

from lightspeed import queueing
from lightspeed_models.simulators.requests import decoded, drawn, served
from lightspeed_show import (
    Axis,
    Bars,
    Boxes,
    Chart,
    Choice,
    Formula,
    Line,
    Play,
    Points,
    Rule,
    Slider,
    Text,
    Toggle,
    View,
    explorer,
    si,
)

# ---------------------------------------------------------------- a queue that fills

LOADS = (0.5, 0.8, 0.9, 0.95, 1.1)
SERVERS = 4  # the most
RUNS = {"1": 25, "2": 3, "3": 28, "4": 13, "5": 1}  # seeds: some runs are lucky, some are not
HORIZON, STEP = 60, 0.5  # service times; a moment
MOMENTS = round(HORIZON / STEP) + 1
ROOM = 24  # requests that the picture can show waiting


@functools.lru_cache(maxsize=64)
def run(load, servers, seed):
    """The visits of the requests that arrive within the horizon."""
    arrivals, services = drawn(load, servers, round(3 * load * servers * HORIZON), seed)
    some = sum(at <= HORIZON for at in arrivals)
    return served(arrivals[:some], services[:some], servers)


@functools.lru_cache(maxsize=64)
def in_a_rush(load, servers, seed):
    """The first moment at which half of the longest line waits: the picture opens there."""
    visits = run(load, servers, seed)
    lines = [sum(v.arrives <= m * STEP < v.starts for v in visits) for m in range(MOMENTS)]
    return next(m for m, line in enumerate(lines) if 2 * line >= max(lines))


def inside_so_far(visits, time):
    """The mean number of requests inside from 0 to this time."""
    stays = sum(min(v.leaves, time) - v.arrives for v in visits if v.arrives < time)
    return stays / time if time else 0.0


def queue_view(load, servers, seed, moment):
    """Who waits, who is served and who has left after some time."""
    visits, time = run(load, servers, seed), moment * STEP
    waiting = [i for i, v in enumerate(visits) if v.arrives <= time < v.starts]
    busy = [i for i, v in enumerate(visits) if v.starts <= time < v.leaves]
    leavers = [v for v in visits if v.leaves <= time]
    stay = sum(v.leaves - v.arrives for v in leavers) / len(leavers) if leavers else 0.0
    work = sum(min(v.leaves, time) - v.starts for v in visits if v.starts < time)
    facts = {
        "time": f"{time:g} of {HORIZON} service times",
        "waiting now": si(len(waiting)),
        "inside, mean so far": si(inside_so_far(visits, time)),
        "served so far": si(len(leavers)),
        "their time inside": f"{si(stay)} service times",
        "servers idle so far": si(max(0.0, 1 - work / (servers * time)) if time else 1.0, "%", 2),
    }
    words = queue_verdict(load, servers, visits, time, waiting)
    charts = queue_chart(servers, visits, time, waiting, busy), staircase(visits, time)
    law = queue_law(load, servers, visits, time)
    return View(charts, words, facts, MOMENTS, law, opens=in_a_rush(load, servers, seed))


def queue_law(load, servers, visits, time):
    """What is sent in; once somebody came, Little's law over the time so far."""
    stays = [min(v.leaves, time) - v.arrives for v in visits if v.arrives < time]
    if not stays:
        return Formula(
            "load",
            "arrivals_per_service_time / servers",
            {"arrivals_per_service_time": (load * servers, ""), "servers": (servers, "")},
            (load, "%"),
        )
    return Formula(
        "inside, mean so far",
        "arrived / time * stay_so_far",
        {"arrived": (len(stays), ""), "time": (time, ""),
         "stay_so_far": (sum(stays) / len(stays), "")},
        (inside_so_far(visits, time), ""),
    )  # fmt: skip


def queue_verdict(load, servers, visits, time, waiting):
    if time == 0:
        many = f"{servers} servers are" if servers > 1 else "One server is"
        return (
            f"{many} idle. Requests will come at random, for {si(load, '%')} of what can be served."
            " Press play, or step."
        )
    if time < HORIZON:
        if not waiting:
            return "Nobody waits."
        longest = max(time - visits[i].arrives for i in waiting)
        who = "One request waits" if len(waiting) == 1 else f"{len(waiting)} requests wait"
        return f"{who}, the first of them for {si(longest, digits=2)} service times so far."
    inside = inside_so_far(visits, time)
    if load >= 1:
        return (
            f"On average {si(inside)} requests were inside, and no formula has a number for it:"
            " more arrive than can leave, so the longer you look, the more there are."
        )
    mean = queueing.mmc(load * servers, 1.0, servers).L
    return (
        f"On average {si(inside)} requests were inside in this run. The formula says {si(mean)} in"
        " the long run; so short a run can be far from that. Try another one."
    )


def queue_chart(servers, visits, time, waiting, busy):
    """The line on the left, the servers right of it; requests are dots that keep their key."""
    dots = {"waits": [], "served": [], "gone": []}
    for k, i in enumerate(waiting[:ROOM]):
        dots["waits"].append((10.2 - 0.8 * (k % 12), 5.6 - 2.0 * (k // 12), i))
    for i in busy:
        dots["served"].append((12.2, height_of(visits[i].place, servers), i))
    for i, v in enumerate(visits):
        if time - STEP < v.leaves <= time:
            dots["gone"].append((15.4, height_of(v.place, servers), i))
        elif time < v.arrives <= time + STEP:
            dots["gone"].append((0.0, 5.6, i))  # arrives next
    looks = {
        "waits": ("waits", "orange"),
        "served": ("is served", "blue"),
        "gone": ("comes, or has left", "grey"),
    }
    places = [height_of(place, servers) for place in range(servers)]
    marks = [
        Boxes([11.5] * servers, [12.9] * servers, [y - 0.9 for y in places],
              [y + 0.9 for y in places], color="blue", soft=True),
        Boxes([0.9], [10.8], [2.4], [7.0], color="grey", soft=True),
    ]  # fmt: skip
    for kind, spots in dots.items():
        label, color = looks[kind]
        # Off the picture, so that the key above it stays where it is.
        xs, ys, keys = zip(*(spots or [(-9, -9, "")]), strict=True)
        marks.append(Points(xs, ys, label, color=color, size=9, keys=keys))
    more = len(waiting) - ROOM
    marks.append(Text(0.9, 7.6, "the queue" + f", and {more} more" * (more > 0), "grey", "start"))
    marks.append(Text(12.2, 9.6, "servers" if servers > 1 else "server", "grey"))
    return Chart(Axis(domain=(-0.4, 16)), Axis(domain=(0, 10)), marks, height=230, bare=True)


def height_of(place, servers):
    return 4.6 + 2.2 * ((servers - 1) / 2 - place)


def staircase(visits, time):
    """How many were inside, up to now."""
    changes = sorted(
        [(v.arrives, 1) for v in visits if v.arrives <= time]
        + [(v.leaves, -1) for v in visits if v.leaves <= time]
    )
    xs, ys = [0.0], [0.0]
    for at, change in changes:
        xs += [at, at]
        ys += [ys[-1], ys[-1] + change]
    most = max(
        sum(v.arrives <= at < v.leaves for v in visits) for at in (v.arrives for v in visits)
    )
    return Chart(
        Axis("time, in service times", domain=(0, HORIZON)),
        Axis("inside", domain=(0, most + 1)),
        [Line([*xs, time], [*ys, ys[-1]], color="purple")],
        height=190,
    )


def explore_queue():
    """A queue, request by request."""
    return explorer(
        queue_view,
        [
            Choice("load", "load", {si(load, "%"): load for load in LOADS}, 0.9),
            Slider("servers", "servers", 1, SERVERS, 1),
            Choice("seed", "run", RUNS),
            Play("moment", "time", MOMENTS - 1, text=lambda i: f"{i * STEP:g}"),
        ],
        caption=(
            "Each dot is a request. A run draws the same requests at every load, only closer"
            " together or further apart."
        ),
        alt=(
            "Above, dots that arrive on the left, wait in a line, are served and leave on the"
            " right. Below, the number of requests inside over time, a staircase that grows as the"
            " picture plays."
        ),
    )


# ---------------------------------------------------------------- continuous batching

REQUESTS, LONGEST, SLOTS = 24, 16, 6


@functools.lru_cache(maxsize=16)
def lengths(seed, mixed):
    """Tokens of each answer: all alike, or anything from one to twice as many."""
    rng = random.Random(seed)
    return tuple(rng.randint(1, LONGEST) if mixed else LONGEST // 2 for _ in range(REQUESTS))


def batching_view(continuous, mixed, slots, seed, moment):
    """The slots of a replica after some steps: a bar for each answer, as far as it has come."""
    tokens = lengths(seed, mixed)
    visits = decoded(tokens, slots, continuous)
    steps = max(v.leaves for v in visits)
    tokens_out = sum(min(v.leaves, moment) - v.starts for v in visits if v.starts < moment)
    at_work = sum(v.starts < moment <= v.leaves for v in visits)
    other = max(v.leaves for v in decoded(tokens, slots, not continuous))
    facts = {
        "step": f"{moment} of {steps}",
        "slots at work": f"{at_work} of {slots}",
        "tokens so far": f"{tokens_out} of {sum(tokens)}",
        "slots idle so far": si(1 - tokens_out / (slots * moment) if moment else 0.0, "%", 2),
        "answers finished": f"{sum(v.leaves <= moment for v in visits)} of {REQUESTS}",
    }
    how = "continuous" if continuous else "static"
    if moment == 0:
        words = f"{REQUESTS} requests wait for {slots} slots. Press play, or step."
    elif moment < steps:
        idle = slots - at_work
        words = (
            f"{idle} of {slots} slots ha{'s' if idle == 1 else 've'} nothing to do."
            if idle
            else "Every slot makes a token in this step."
        )
    else:
        words = (
            f"Done in {steps} steps with {how} batching. With"
            f" {'static' if continuous else 'continuous'} batching the same answers take {other}."
        )
    # Neither way is faster: a slot makes a token a step, and so does an answer.
    law = Formula(
        "steps, at least",
        "max(tokens / slots, longest_answer)",
        {"tokens": (sum(tokens), ""), "slots": (slots, ""), "longest_answer": (max(tokens), "")},
        (max(sum(tokens) / slots, max(tokens)), ""),
    )
    chart = batching_chart(visits, slots, steps, moment)
    return View(chart, words, facts, steps + 1, law, opens=steps // 2)


def batching_chart(visits, slots, steps, moment):
    """A row a slot; answers alternate between two colours, so that neighbours can be told apart."""
    marks = []
    for parity, color in ((0, "blue"), (1, "sky")):
        mine = [(i, v) for i, v in enumerate(visits) if i // slots % 2 == parity]
        marks.append(
            Bars(
                [f"slot {v.place}" for _, v in mine],
                [min(v.leaves, max(v.starts, moment)) for _, v in mine],
                [v.starts for _, v in mine],
                labels=[str(i + 1) if v.starts < moment else "" for i, v in mine],
                color=color,
                width=0.8,
                keys=[f"answer {i}" for i, _ in mine],
            )
        )
    if 0 < moment < steps:
        marks.append(Rule(x=moment, dash=False))
    return Chart(
        Axis("steps", domain=(0, steps)),
        Axis(scale="category", categories=[f"slot {k}" for k in range(slots)]),
        marks,
        height=34 * slots + 80,
    )


def explore_batching():
    """Static and continuous batching, step by step."""
    most = max(
        max(v.leaves for v in decoded(lengths(seed, mixed), 2, False))
        for seed in (1, 2, 3)
        for mixed in (False, True)
    )
    return explorer(
        batching_view,
        [
            Toggle("continuous", "continuous batching"),
            Toggle("mixed", "answers of different length", True),
            Slider("slots", "slots", 2, SLOTS, 4),
            Choice("seed", "answers", [1, 2, 3]),
            Play("moment", "step", most),
        ],
        caption="A bar is an answer, a token a step. Blank space is a slot that waits.",
        alt=(
            "A row for each slot of a replica. Bars of different length, one for each answer, fill"
            " the rows from the left; with static batching the short ones leave gaps behind them."
        ),
    )
