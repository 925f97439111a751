"""What the formulas of scaling.md call."""

from __future__ import annotations

import math

from lightspeed import scaling as s
from lightspeed_course.practice.amounts import powers_of_two
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question
from lightspeed_course.show.format import si

CHAPTER = "03_amdahl_gustafson"

SHARES = (0.01, 0.02, 0.04, 0.05, 0.08, 0.1, 0.2)


def share(canonical, *choices):
    """A share of the time, shown in per cent."""
    return Parameter(100 * canonical, tuple(100 * c for c in choices or SHARES), "%")


def machines(canonical, low=8, high=1024):
    return Parameter(canonical, powers_of_two(low, high))


def times(x):
    return f"{si(x, '', 4)} times"


def days_of(seconds):
    return seconds / 86400, "day"


def parts(setup, compute, finish):
    return {"setup": setup, "compute": compute, "finish": finish}


def times_of(*of):
    return {name: (time, "s") for name, time in parts(*of).items()}


def task_graph(load, longer, shorter, reduce):
    return s.work_span(
        {
            "load": (load, ()),
            "longer": (longer, ("load",)),
            "shorter": (shorter, ("load",)),
            "reduce": (reduce, ("longer", "shorter")),
        }
    )


STEP = {"load": 0.15, "forward": 0.25, "backward": 0.45, "optimizer": 0.15}


def gains(products, load):
    """What each change makes of the whole step."""
    changes = {
        "products": {"forward": products, "backward": products},
        "loader": {"load": load},
        "optimizer": {"optimizer": math.inf},
        "backward": {"backward": 2.0},
    }
    return {name: s.profile_speedup(STEP, factors) for name, factors in changes.items()}


def better(parallel, factor, n):
    """One processor `factor` times as fast, or n of the old ones."""
    return "fast" if factor > s.amdahl_speedup(n, parallel=parallel) else "many"


def needed(hours, deadline, serial):
    wanted = hours / deadline
    # 38 must not become 39 by rounding
    return math.ceil((1 - serial) / (1 / wanted - serial) - 1e-9)


deadline = Question(
    id="scaling.deadline",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "An evaluation takes {{hours}} on one GPU and must be done in {{deadline}}. {{serial}} of"
        " it is serial. How many GPUs does it take?"
    ),
    parameters={
        "hours": Parameter(100, (80, 100, 120), "h"),
        "deadline": Parameter(9, (8.5, 9, 9.5), "h"),
        "serial": share(0.05, 0.03, 0.05),
    },
    expected=needed,
    tolerance=0,
    solution=lambda hours, deadline, serial: derivation(
        step(
            "How many times faster must it be?",
            "time / deadline",
            time=(hours / 3600, "h"),
            deadline=(deadline / 3600, "h"),
        ),
        step(
            "Amdahl allows less than one over the serial share, so it can be done.",
            "1 / serial",
            serial=(serial, "%"),
        ),
        "Solve $1/S = s + (1 - s)/n$ for $n$, and round up.",
        step(
            "The number of GPUs.",
            "ceil((1 - serial) / (1 / speedup - serial))",
            needed(hours, deadline, serial),
            serial=(serial, "%"),
            speedup=hours / deadline,
        ),
        step(
            "On that many the job costs this many times what it costs on one.",
            "1 + serial * (n - 1)",
            serial=(serial, "%"),
            n=needed(hours, deadline, serial),
        ),
    ),
    misconceptions=(
        Misconception(
            "perfect scaling",
            lambda hours, deadline, serial: math.ceil(hours / deadline),
            "That many would do if nothing were serial.",
        ),
        Misconception(
            "the next power of two",
            lambda hours, deadline, serial: 2 ** math.ceil(math.log2(hours / deadline)),
            "That is the first power of two above perfect scaling. Does the serial part leave that"
            " much time to the rest?",
        ),
        Misconception(
            "rounded down",
            lambda hours, deadline, serial: needed(hours, deadline, serial) - 1,
            "Nearly. Is the job done in time on that many?",
        ),
        Misconception(
            "the parallel part alone",
            lambda hours, deadline, serial: math.ceil((1 - serial) * hours / deadline),
            "The serial part also needs its share of the deadline.",
        ),
        Misconception(
            "the limit",
            lambda hours, deadline, serial: math.ceil(1 / serial),
            "That is the highest speedup, not the number of GPUs.",
        ),
    ),
    holds={
        "That many would do": "algebra",
        "That is the first power of two": "definition",
        "That is the highest speedup": (
            lambda hours, deadline, serial: s.amdahl_speedup(1e12, serial=serial) < 1 / serial
        ),
        "Amdahl allows": lambda hours, deadline, serial: hours / deadline < 1 / serial,
        "On that many the job costs": lambda hours, deadline, serial: (
            s.amdahl_speedup(needed(hours, deadline, serial), serial=serial)
            >= hours / deadline - 1e-9
            > s.amdahl_speedup(needed(hours, deadline, serial) - 1, serial=serial)
        ),
    },
    smaller="scaling.limit",
)


def growth(small, large):
    """How many times larger the Karp-Flatt share is on 16 processors than on 4."""
    return s.karp_flatt(large, 16) / s.karp_flatt(small, 4)


def diagnosis(small, large):
    """From speedups on 4 and on 16 processors: is the Karp-Flatt share constant?"""
    first, second = s.karp_flatt(small, 4), s.karp_flatt(large, 16)
    if first < 0 or second < 0:
        return "superlinear"
    return "overhead" if second > 1.1 * first else "serial"


LINEAR = 0.9
