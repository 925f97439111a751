"""Chapter 3: one job on n processors, by both laws and with a cost that grows.

What it gives and what it costs. The slider sets the serial share of the time on one processor,
Amdahl's; Gustafson's is the share that the same run has on n, and there the two laws meet.
`view` is pure: parameters in, a `View` out. `explore()` puts controls on it.
"""

import math

from lightspeed import scaling
from lightspeed_show import (
    Axis,
    Chart,
    Formula,
    Line,
    LogSlider,
    Points,
    Rule,
    View,
    explorer,
    si,
)
from lightspeed_show.spaced import by_ratio

MOST = 10_000  # processors drawn
ROOM = 1.3  # beyond the last of them, so that a point there does not lie on the names of the lines
GRID = by_ratio(1, MOST, 81)


def view(n, serial, kappa):
    """Speedup, efficiency and cost of a job with this serial share and this growing cost."""
    speedup = scaling.usl_speedup(n, serial=serial, kappa=kappa)
    peak = scaling.usl_peak(serial=serial, kappa=kappa)
    limit = scaling.amdahl_speedup(math.inf, serial=serial)
    on_n = scaling.serial_on_n(n, serial_on_one=serial)
    facts = {
        "speedup": times(speedup),
        "without the growing cost (Amdahl)": times(scaling.amdahl_speedup(n, serial=serial)),
        "limit of Amdahl": times(limit),
        "highest, at n*": times(speedup_at(peak, serial, kappa)),
        "n*": si(peak, "", 3),
        "efficiency": si(scaling.efficiency(speedup, n), "%", 2),
        "cost of the job, one processor = 1": si(n / speedup, "", 2),
        "serial share of the time on n (Gustafson's)": si(on_n, "%"),
        "on 2 n, if the job grows (Gustafson)": times(
            scaling.gustafson_speedup(2 * n, serial=on_n)
        ),
    }
    charts = (
        speedups(n, serial, on_n, kappa, speedup, peak),
        costs(n, serial, on_n, kappa, speedup),
    )
    law = Formula(
        "speedup",
        "n / (1 + s * (n - 1) + κ * n * (n - 1))",
        {"n": (n, ""), "s": (serial, "%"), "κ": (kappa, "")},
        (speedup, ""),
    )
    return View(charts, in_words(n, serial, kappa, speedup), facts, formula=law)


def times(speedup):
    """A speedup as a reader says it; one that rounds to one is none."""
    text = si(speedup, "", 3)
    return "no limit" if math.isinf(speedup) else "none" if text == "1" else f"{text} times"


def speedup_at(n, serial, kappa):
    """The speedup with the growing cost; on infinitely many processors if there is no such cost."""
    if math.isinf(n):
        return scaling.amdahl_speedup(n, serial=serial)
    return scaling.usl_speedup(n, serial=serial, kappa=kappa)


def fastest(serial, kappa):
    """The whole number of processors on which the job is fastest."""
    peak = scaling.usl_peak(serial=serial, kappa=kappa)
    if math.isinf(peak):
        return peak
    low = max(1, math.floor(peak))
    return max(low, low + 1, key=lambda n: speedup_at(n, serial, kappa))


def in_words(n, serial, kappa, speedup):
    """What the time at n goes to, and whether more processors are worth their cost."""
    share = scaling.efficiency(speedup, n)
    parts = {
        "the divided work": (1 - serial) / n,
        "the serial part": serial,
        "the growing cost": kappa * (n - 1),
    }
    most = max(parts, key=parts.__getitem__)
    loss = f"{si(parts[most] / sum(parts.values()), '%', 2)} of the time goes to {most}"
    gives = "processor gives" if n == 1 else "processors give"
    head = (
        f"{si(n)} {gives} a speedup of {si(speedup, '', 3)}, "
        f"{si(share, '%', 2)} of perfect; {loss}."
    )
    peak = fastest(serial, kappa)
    if n > peak:
        return f"{head} Past the peak: {si(peak, '', 5)} processors would be faster, and cheaper."
    if n == peak:
        return f"{head} This is the peak: more or fewer would be slower."
    more = min(2 * n, peak)
    gain = scaling.usl_speedup(more, serial=serial, kappa=kappa) / speedup - 1
    if more < 2 * n:
        what = f"Going on to the peak at {si(peak, '', 5)}"
    else:
        what = "A second one" if n == 1 else "Doubling them"
    if gain < 0.005:
        return f"{head} {what} would gain next to nothing."
    dearer = si(more / n / (1 + gain) - 1, "%", 2)
    return f"{head} {what} would gain {si(gain, '%', 2)} and make the job {dearer} dearer."


def line(name, color, law, share=lambda speedup, n: speedup, **shares):
    """A law of the speedup over n, or what `share` makes of it."""
    return Line(GRID, [share(law.__wrapped__(n, **shares), n) for n in GRID], name, color)


def speedups(n, serial, on_n, kappa, speedup, peak):
    """The two laws and the third term, over n."""
    marks = [
        Line((1, MOST), (1, MOST), "perfect", "grey", dash=True, label_at="along"),
        line("Gustafson", "green", scaling.gustafson_speedup, serial=on_n),
        line("Amdahl", "blue", scaling.amdahl_speedup, serial=serial),
        line("with growing cost", "orange", scaling.usl_speedup, serial=serial, kappa=kappa),
        Points((n,), (speedup,), labels=("here",), size=8, drop=True, drag=("n", None)),
    ]
    if kappa and peak <= MOST:
        marks.append(Rule(x=peak, label=f"n* {si(peak, '', 3)}"))
    return Chart(
        Axis("processors n", "", "log", domain=(1, ROOM * MOST)),
        Axis("speedup", "", "log", domain=(0.01, MOST)),
        tuple(marks),
        title="What it gives",
        height=250,
    )


def costs(n, serial, on_n, kappa, speedup):
    """Efficiency over n; the price of a unit of speedup is one over it."""
    each = scaling.efficiency.__wrapped__
    here = each(speedup, n)
    return Chart(
        Axis("processors n", "", "log", domain=(1, ROOM * MOST)),
        Axis("efficiency", "%", domain=(0, 1.05)),
        (
            line("Gustafson", "green", scaling.gustafson_speedup, each, serial=on_n),
            line("Amdahl", "blue", scaling.amdahl_speedup, each, serial=serial),
            line(
                "with growing cost",
                "orange",
                scaling.usl_speedup,
                each,
                serial=serial,
                kappa=kappa,
            ),
            Points((n,), (here,), labels=("here",), size=8, drop=True, drag=("n", None)),
        ),
        title="What it costs: the price of the job is one over this",
        height=235,
    )


def explore():
    """The explorer of chapter 3."""
    return explorer(
        view,
        [
            LogSlider("n", "n", 1, MOST, 8, whole=True, per_decade=10),
            LogSlider(
                "serial",
                "serial share s, on one",
                0.0001,
                0.5,
                0.05,
                unit="%",
                per_decade=10,
                include=(0.01, 0.1),
            ),
            LogSlider("kappa", "growing cost κ", 1e-7, 0.001, 2e-4, per_decade=5),
        ],
        caption=(
            "s bends the curve, κ turns it down. Gustafson's line takes the serial share that the"
            " same job has on n processors, without κ, so it meets Amdahl's curve there."
        ),
        alt=(
            "Two charts over the number of processors: speedup for a perfect machine, by Gustafson,"
            " by Amdahl and with a growing cost; and efficiency for the same three. One point, the"
            " n of the slider, sits on the curve with the growing cost."
        ),
        guess="Where will the point go? Change n, then click where you expect it.",
    )
