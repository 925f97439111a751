"""Chapter 9: requests that share the steps of a replica, as the simulator of serving runs them."""

import functools
import math
import random

from lightspeed_models.llm import decoder
from lightspeed_models.llm.step import engine, mixed_step, step_bill
from lightspeed_models.served import pace_of, served_replica
from lightspeed_models.simulators.serving import Scheduler, cost_of, simulate
from lightspeed_show import (
    Axis,
    Bars,
    Chart,
    Formula,
    Line,
    LogSlider,
    Rule,
    Slider,
    View,
    explorer,
    si,
)

MODEL, CHIP, WAYS, ENGINE = "Llama-3.1-70B", "h100_sxm", 8, "vllm"
OUTPUT, PROMISE = 500, 0.02  # tokens of an answer; seconds a token
SLOTS, BLOCKS = 202, 103_000  # of 16 tokens: chapter 4's room for caches
SHOWN, MANY = 14, 400  # requests in the picture, and in the figures beside it


@functools.cache
def replica():
    """(model, GPUs, constants of the engine) of the course's own job."""
    return decoder(MODEL), served_replica(CHIP, WAYS, 1, "bf16"), engine(ENGINE)


@functools.lru_cache(maxsize=64)
def run(rate, prompt, budget, hit):
    """What becomes of requests that come at random, `hit` of each prompt in the prefix cache."""
    model, gpus, constants = replica()
    context, piece = prompt + OUTPUT / 2, min(prompt, budget)
    pace = pace_of(step_bill(model, gpus, 0, 32, context), step_bill(model, gpus, piece), constants)
    cost = cost_of(model, gpus, 32, context, budget, constants, pace)
    draw, clock, arrivals = random.Random("requests"), 0.0, []
    for _ in range(MANY):
        clock += draw.expovariate(rate)
        arrivals.append(clock)
    return simulate(
        [prompt] * MANY, [OUTPUT] * MANY, cost, Scheduler(budget, SLOTS, BLOCKS, ahead=True),
        arrivals, cached=[int(prompt * hit)] * MANY, record=True,
    )  # fmt: skip


def middle(values, share=0.5):
    """The value that this share of them does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def waits(path):
    """Seconds to the first token, and between tokens on average, of each request."""
    first = [f - a for f, a in zip(path.first, path.arrivals, strict=True)]
    between = [(z - f) / (OUTPUT - 1) for f, z in zip(path.first, path.last, strict=True)]
    return first, between


def view(rate, prompt, budget, found):
    """The first requests as bars over time, and below them how long each step took."""
    path = run(rate, prompt, budget, found)
    first, between = waits(path)
    chunk = min(budget, prompt)
    step = chunk_time(prompt, chunk)
    reading = min(1.0, rate * prompt * (1 - found) / chunk * step)
    facts = {
        "first token, median": si(middle(first), "s"),
        "first token, one in a hundred": si(middle(first, 0.99), "s"),
        "between tokens, median": si(middle(between), "s"),
        "a step that reads a chunk": si(step, "s"),
        "time spent reading": "all of it" if reading == 1 else si(reading, "%", 2),
    }
    law = None  # where there is more to read than time
    if reading < 1:
        names = {
            "requests_per_second": (rate, ""), "prompt": (prompt, ""), "found": (found, ""),
            "chunk": (chunk, ""), "step": (step, "s"),
        }  # fmt: skip
        share = "requests_per_second * prompt * (1 - found) / chunk * step"
        law = Formula("time spent reading", share, names, (reading, "%"))
    return View(charts(path), verdict(first, between, reading), facts, formula=law)


def chunk_time(prompt, chunk):
    """Seconds of a step that reads a chunk beside sixteen answers."""
    model, gpus, constants = replica()
    return float(mixed_step(model, gpus, chunk, 16, prompt, prompt / 2, engine=constants).time)


def verdict(first, between, reading):
    late = sum(each > PROMISE for each in between) / len(between)
    if middle(first[-50:]) > 10 * middle(first[:50]) and middle(first[-50:]) > 5:
        return (
            "More prompts come than can be read, so the line grows for as long as you look: the"
            f" last of these requests waited {si(middle(first[-50:]), 's', 2)} for a first token."
        )
    who = "Everyone" if late == 0 else "Nobody" if late == 1 else f"{si(1 - late, '%', 2)} of them"
    more = f" A share of {si(reading, '%', 2)} of the time goes to prompts." if reading < 1 else ""
    return f"{who} got a token every {si(PROMISE, 's')} on average.{more}"


def charts(path):
    names = [str(n + 1) for n in range(SHOWN)]
    end = path.last[SHOWN - 1]
    time = Axis("time", "s", domain=(0, end))
    came, first, last = (list(x[:SHOWN]) for x in (path.arrivals, path.first, path.last))
    bars = [
        Bars(names, first, came, "waits for its first token", color="orange", keys=names),
        Bars(names, [min(z, end) for z in last], first, "writes", color="blue",
             keys=[f"w{n}" for n in names]),
    ]  # fmt: skip
    xs, ys = [], []
    for step in path.steps:
        if step.start >= end:
            break
        each = (step.end - step.start) / step.steps
        xs += [step.start, min(step.end, end)]
        ys += [each, each]
    gaps = [Line(xs, ys, color="orange"), Rule(y=PROMISE, label="the promise")]
    return (
        Chart(time, Axis("request", scale="category", categories=names), bars, height=330),
        Chart(time, Axis("time of a step", "s", domain=(0, max(0.03, 1.1 * max(ys)))), gaps,
              height=190),
    )  # fmt: skip


def explore_serving_steps():
    """The replica of chapter 9 under load."""
    return explorer(
        view,
        [
            Slider("rate", "requests a second", 0.25, 4.0, 0.5, step=0.25),
            LogSlider("prompt", "tokens of a prompt", 250, 8000, 8000, base=2, whole=True),
            LogSlider("budget", "tokens a step may read", 256, 8192, 2048, base=2, whole=True),
            Slider("found", "found in the prefix cache", 0.0, 0.9, 0.0, step=0.1, unit="%"),
        ],
        caption="Each bar is a request, from its arrival to its last token. Below: how long each"
        " step took. All who write wait out each step that reads.",
        alt="Bars of requests over time, each first waiting, then writing; below them the time of"
        " a step, low where all only write and high where a prompt is read.",
        presets={
            "short prompts": {"prompt": 250, "rate": 4.0},
            "smaller chunks": {"budget": 512},
            "a shared prefix": {"found": 0.9},
        },
    )
