"""Chapter 5 in motion: one bf16 weight and its small updates, rounded in three ways."""

import functools
import random
from itertools import accumulate, repeat
from statistics import NormalDist

from lightspeed.precision import FORMATS
from lightspeed_show import Axis, Chart, Choice, Formula, Line, Play, Points, View, explorer, si

BF16 = FORMATS["bf16"]
FIRST = BF16.round(0.02)  # as large as a weight usually is
UPDATES, EACH = 100, 5  # in all, and between two moments
RATES = (3e-4, 1e-4, 5e-5, 2e-5, 1e-5, 1e-6)  # Adam's update is about the learning rate
LOOKS = {
    "to nearest": ("orange", "square"),
    "at random": ("blue", "circle"),
    "with a copy in fp32": ("green", "diamond"),
}


@functools.lru_cache(maxsize=8)
def runs(rate):
    """The weight after each update, by how it is rounded."""
    coin = random.Random(5)
    exact = [FIRST + n * rate for n in range(UPDATES + 1)]
    added = {
        "to nearest": lambda weight, update: BF16.round(weight + update),
        "at random": lambda weight, update: BF16.round(weight + update, rng=coin),
    }
    narrow = {
        how: list(accumulate(repeat(rate, UPDATES), add, initial=FIRST))
        for how, add in added.items()
    }
    return exact, narrow | {"with a copy in fp32": [BF16.round(weight) for weight in exact]}


@functools.lru_cache(maxsize=8)
def standing_still(rate, spread=0.02, count=1000):
    """The share of normal weights of this spread that an update to nearest leaves as they are."""
    law = NormalDist(0, spread)
    weights = [BF16.round(law.inv_cdf((i + 0.5) / count)) for i in range(count)]
    return sum(BF16.round(w + rate) == w for w in weights) / count


def view(rate, moment):
    """The weight after so many updates, beside what it should be."""
    exact, weights = runs(rate)
    so_far = moment * EACH
    gap = float(BF16.spacing(FIRST))
    low, high = FIRST - gap, max(exact[-1], *(max(w) for w in weights.values())) + gap
    grid = [low + n * gap for n in range(round((high - low) / gap) + 1)]
    marks = [Line([0, UPDATES], [v, v], "", "grey", width=0.5) for v in grid if len(grid) < 40]
    marks += [Line([0, UPDATES], [exact[0], exact[-1]], "exact", "black", dash=True)]
    for how, (color, marker) in LOOKS.items():
        steps = range(0, so_far + 1, EACH)
        values = [weights[how][n] for n in steps]
        marks.append(
            Points([*steps], values, how, color=color, marker=marker, size=4,
                   keys=[f"{how} {n}" for n in steps])
        )  # fmt: skip
    chart = Chart(
        Axis("updates", domain=(0, UPDATES)), Axis("weight", domain=(low, high)), marks, height=320
    )
    changes = {how: values[so_far] - FIRST for how, values in weights.items()}
    facts = {
        "updates so far": si(so_far),
        "should have moved": si(so_far * rate),
        **{f"moved, {how}": si(far) for how, far in changes.items()},
        "weights that stand still at this rate": si(standing_still(rate), "%", 2),
    }
    least = Formula("least update", "step / 2", {"step": (gap, "")}, (gap / 2, ""))
    return View(chart, verdict(rate, so_far, gap), facts, UPDATES // EACH + 1, least, opens=12)


def verdict(rate, so_far, gap):
    if not so_far:
        return f"A weight of {si(FIRST)} in bf16, whose next number is {si(gap)} away. Press play."
    if rate < gap / 2:
        return (
            f"An update of {si(rate)} is less than half a step, so rounding to nearest takes all of"
            " it back, every time. A coin that goes up as often as the update is long gets there on"
            " average; a copy in fp32, read in bf16, is never more than half a step away."
        )
    return (
        f"An update of {si(rate)} is more than half a step, so rounding to nearest moves, but by"
        f" whole steps of {si(gap)}: not as far as it should, or further."
    )


def explore_roundings():
    """A weight that learns, or does not, in three roundings."""
    return explorer(
        view,
        [
            Choice("rate", "each update", {si(rate): rate for rate in RATES}, 2e-5),
            Play("moment", "updates", UPDATES // EACH, text=lambda i: str(i * EACH)),
        ],
        caption="One weight in bf16, the same update again and again, and three ways to round.",
        alt=(
            "A dashed line rises from a weight. Marks of two kinds climb with it, from one grey"
            " line, a number that bf16 has, to the next; those of a third kind stay on the first."
        ),
    )
