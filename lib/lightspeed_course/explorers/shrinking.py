"""Chapter 3: a job of ten minutes, one of them serial, as processors join it one by one."""

from lightspeed.scaling import amdahl_speedup
from lightspeed_show import Axis, Bars, Chart, Play, Rule, View, explorer, si

WHOLE, SERIAL = 10, 1  # minutes
MOST = 12  # processors
OPENS = 9


def bill(n):
    """The same bars, near by, with what is paid for and does nothing: the area is the bill."""
    rest = [str(k + 1) for k in range(1, n)]
    idle = Bars(rest, [SERIAL] * len(rest), [0] * len(rest), "paid for, idle", color="orange")
    return lanes(n, (idle,), domain=(0, 2.2))


def lanes(n, more=(), domain=(0, WHOLE + 1)):
    """Who does what when, a bar a processor."""
    end = WHOLE / amdahl_speedup(n, serial=SERIAL / WHOLE)
    at = [str(k + 1) for k in range(n)]
    marks = [Bars(at[:1], [SERIAL], start=[0], label="serial", color="grey", keys=["serial"])]
    marks.append(Bars(at, [end] * n, start=[SERIAL] * n, label="divided", keys=at))
    if n > 1 and domain[1] > WHOLE:
        marks.append(Rule(x=WHOLE, label=f"one alone: {WHOLE} min"))
    marks.append(Rule(x=end, label=f"{si(end)} min", color="black"))
    return Chart(
        Axis("time", "min", domain=domain),
        Axis("processor", scale="category", categories=[str(k + 1) for k in range(MOST)]),
        [*marks, *more],
        height=330,
    )


def view(moment):
    """The job on one processor more than `moment`."""
    n = moment + 1
    gain = amdahl_speedup(n, serial=SERIAL / WHOLE)
    facts = {
        "processors": si(n),
        "the job takes": f"{si(WHOLE / gain)} min",
        "times as fast": si(gain),
        "you pay for": f"{si(n * WHOLE / gain)} processor-minutes",
    }
    return View(lanes(n), verdict(n, gain), facts, MOST, opens=OPENS - 1)


def verdict(n, gain):
    if n == 1:
        return "One processor does everything itself. Press play, or step: others join it."
    share = SERIAL / (WHOLE / gain)
    return (
        f"{si(n)} processors: {si(gain)} times as fast, for {si(n / gain)} times the price."
        f" The serial minute is {si(share, '%', 2)} of the time that is left."
    )


def explore_shrinking():
    """The job, played from one processor to a dozen."""
    return explorer(
        view,
        [Play("moment", "processors", MOST - 1, text=lambda moment: si(moment + 1))],
        caption=(
            "With each processor the blue work is cut into more pieces, and the grey minute stays."
        ),
        alt=(
            "One bar a processor over time. The first begins with a grey minute; after it all have"
            " a blue bar of the same length, which is the shorter the more processors there are."
        ),
    )
