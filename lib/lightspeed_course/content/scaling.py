"""What the formulas of scaling.md call."""

import math

from lightspeed import scaling as s
from lightspeed_course.practice.amounts import powers_of_two
from lightspeed_course.practice.derivation import step
from lightspeed_course.practice.questions import Parameter
from lightspeed_show.format import si

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
    """Return each change's effect on the whole step."""
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
    speedup = hours / deadline
    # 38 must not become 39 by rounding
    return math.ceil((1 - serial) / (1 / speedup - serial) - 1e-9)


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


def profile_step(setup, compute, finish):
    return step(
        "Add up the whole profile.", "setup + compute + finish", **times_of(setup, compute, finish)
    )


def profile_step2(setup, compute, finish, n):
    return step(
        "Add it up again for afterwards: one part becomes shorter, the others stay.",
        "setup + compute / n + finish",
        **times_of(setup, compute, finish),
        n=n,
    )


def profile_step3(setup, compute, finish, n):
    return step(
        "Before over afterwards.",
        "(setup + compute + finish) / (setup + compute / n + finish)",
        s.profile_speedup(parts(setup, compute, finish), {"compute": n}),
        **times_of(setup, compute, finish),
        n=n,
    )
