"""Chapter 5 in motion: the values of a narrow format on a line, power of two by power of two."""

import functools
import math

from lightspeed.precision import FORMATS
from lightspeed_show import Axis, Chart, Choice, Formula, Play, Points, View, explorer, si

NAMES = ("fp4_e2m1", "fp6_e2m3", "fp6_e3m2", "fp8_e4m3", "fp8_e5m2")


@functools.lru_cache(maxsize=8)
def binades(name):
    """The values from 0 up: those below the smallest normal number, then those of each power."""
    format = FORMATS[name]
    codes = (format.decode(code) for code in range(2 ** (format.bits - 1)))
    by_step = {}
    for value in sorted({float(v) for v in codes if math.isfinite(v)}):
        low = value < format.smallest_normal
        step = 0 if low else 1 + math.floor(math.log2(value / format.smallest_normal))
        by_step.setdefault(step, []).append(value)
    return tuple(tuple(values) for _, values in sorted(by_step.items()))


def view(format, moment):
    """The values of a format up to some power of two, on a plain and on a logarithmic line."""
    groups, this = binades(format), FORMATS[format]
    now, before = groups[moment], [v for values in groups[:moment] for v in values]
    gap = float(this.spacing(now[-1]))
    normal = moment > 0
    facts = {
        "stretch": f"{moment + 1} of {len(groups)}",
        "values in it": si(len(now)),
        "step": si(gap),
        "largest relative error": si(gap / 2 / now[0], "%", 2) if normal else si(1, "%"),
        "values so far": f"{len(before) + len(now)} of {sum(map(len, groups))}",
    }
    return View(
        charts(groups, before, now),
        verdict(this, groups, moment, gap),
        facts,
        len(groups),
        opens=len(groups) // 2,
        formula=law(this, moment, gap),
    )


def law(format, moment, gap):
    """The step of a stretch; that of the subnormals is the step of the lowest power."""
    power = math.ldexp(format.smallest_normal, max(moment - 1, 0))
    parts = {"power_of_two": (power, ""), "mantissa_bits": (format.mantissa_bits, "")}
    return Formula("step", "power_of_two / 2 ** mantissa_bits", parts, (gap, ""))


def verdict(format, groups, moment, gap):
    now = groups[moment]
    if moment == 0:
        return (
            f"Zero and the subnormals, {si(len(now))} value{'s' * (len(now) > 1)}, a step of"
            f" {si(gap)} apart. Press play."
        )
    if moment < len(groups) - 1:
        return (
            f"From {si(now[0])} on: {si(len(now))} value{'s' * (len(now) > 1)}, a step of"
            f" {si(gap)} apart."
            + (" The subnormals had the same step." if moment == 1 else " The step has doubled.")
        )
    every = [v for values in groups for v in values]
    below = sum(v < 1 for v in every) / len(every)
    return (
        f"Done, up to {si(now[-1])}. On the plain line {si(below, '%', 2)} of all values are"
        " crowded below 1. On the logarithmic line every power of two before the last has as many"
        " of them."
    )


def charts(groups, before, now):
    """Both lines; zero has no place on the second one."""
    top, bottom = groups[-1][-1], next(v for values in groups for v in values if v)
    figures = []
    for scale, low, title in (
        ("linear", 0.0, "on a plain line"),
        ("log", bottom * 0.8, "on a logarithmic line"),
    ):
        marks = []
        for values, label, color in ((before, "before", "blue"), (now, "this stretch", "orange")):
            visible = [v for v in values if v >= low]
            # Off the picture, so that the key stays where it is.
            xs, keys = ([*visible], [*map(str, visible)]) if visible else ([top * 9], [""])
            marks.append(Points(xs, [0.5] * len(xs), label, color=color, size=4, keys=keys))
        figures.append(
            Chart(
                Axis(
                    "value", scale=scale, domain=(low, top * (1.02 if scale == "linear" else 1.2))
                ),
                Axis(domain=(0, 1), ticks=()),
                marks,
                title=title,
                height=150,
            )
        )
    return figures


def explore_number_line():
    """The values of a narrow format, power by power."""
    return explorer(
        view,
        [
            Choice("format", "format", list(NAMES), "fp4_e2m1"),
            Play("moment", "stretch", max(len(binades(name)) for name in NAMES) - 1,
                 text=lambda i: str(i + 1)),
        ],
        caption="The values that a format has, from zero up. Negative ones mirror them.",
        alt=(
            "Dots on two lines. On the plain one they stand close together near zero and further"
            " apart with every power of two; on the logarithmic one each power has as many."
        ),
    )  # fmt: skip
