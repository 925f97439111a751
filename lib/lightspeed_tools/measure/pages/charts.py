"""A record drawn: its latency ladder, its roofline (by `roofline`), and every sample as a dot."""

import math

from markupsafe import Markup

from lightspeed_show import Axis, Chart, Line, Points, Rule, si
from lightspeed_show.html import page
from lightspeed_tools.measure.instruments import latency_levels, roofline
from lightspeed_tools.measure.instruments.timing import LIMIT
from lightspeed_tools.measure.records.record import NotMeasured, all_of


def ladder_chart(machine):
    """Draw load latency over working set, with measured levels and advertised caches. Raises
    NotMeasured without a ladder.
    """
    steps = all_of(machine, "host.latency")
    if len(steps) < 2:
        raise NotMeasured("this record has no latency ladder")
    sizes, latencies = latency_levels.of_quantities(steps)
    levels = latency_levels.levels(sizes, latencies)
    caches = [c for c in machine["machine"].get("caches", ()) if c["kind"] != "instruction"]
    marks = [
        Rule(x=c["size"], label=f"L{c['level']}, as advertised")
        for c in caches
        if sizes[0] < c["size"] < sizes[-1]
    ]
    for level in levels:
        if level.low < level.high:
            ends, words = ((level.low, level.high), (level.latency,) * 2), si(level.latency, "s", 2)
            marks.append(Line(*ends, words, "blue", width=4, label_at="above"))
    if all(q.samples for q in steps):  # the fastest and the slowest: what a median would hide
        pairs = [(q.parameters["size"], pick(q.samples)) for q in steps for pick in (min, max)]
        look = {"color": "grey", "marker": "cross", "size": 3}
        marks.append(Points(*zip(*pairs, strict=True), label="fastest and slowest sample", **look))
    marks += [Points(sizes, latencies, label="median", color="orange")]
    return Chart(
        Axis("working set", "byte", "log", ticks=_powers(sizes[0], sizes[-1])),
        Axis("time of a load", "s", "log"),
        marks,
        title=machine["name"],
        height=360,
    )


def _powers(low, high):
    """Ticks at every fourth power of two: working sets are powers of two, not of ten."""
    first = math.ceil(math.log2(low))
    return tuple(
        (2**p, latency_levels.binary(2**p))
        for p in range(first, math.floor(math.log2(high)) + 1, 3)
    )


STRIP = 2.0  # a strip of dots reaches from half to twice the median


def dots(*rows):
    """An SVG strip with a row for each of `rows` (quantities of one kind): each sample as a dot by
    its ratio to the first median.

    The axis is logarithmic, from half to twice that median, marked by a line; the band is the limit
    of the spread. Samples beyond are drawn at the edge as triangles. A quantity without samples is
    a bar as wide as its spread.
    """
    width, step, reference = 220, 14, rows[0].value

    def place(value):
        ratio = value / reference if reference else 1.0
        log = math.log(max(ratio, 1e-9)) / math.log(STRIP) if ratio > 0 else -1.0
        return round(width * (1 + log) / 2, 1)

    def placed(i, q):
        low, high = place(q.value / (1 + LIMIT)), place(q.value * (1 + LIMIT))
        stated = not q.samples and q.spread == q.spread
        return {
            "y": step * i + step // 2,
            "band": (low, round(high - low, 1)),
            "median": place(q.value),
            "stated": stated
            and [place(q.value * f) for f in (max(1 - q.spread, 1e-9), 1 + q.spread)],
            "samples": [place(value) for value in q.samples],
        }

    labels = "; ".join(
        f"{len(q.samples)} samples, {q.verdict}" if q.samples else q.verdict for q in rows
    )
    strips = [placed(i, q) for i, q in enumerate(rows)]
    drawn = page("strip", width=width, height=step * len(rows), said=labels, rows=strips)
    return Markup(drawn)


def available(machine):
    """Return (chart, caption, alt) for everything that this record can show."""
    have = {row["key"] for row in machine["quantities"]}
    fp32 = all_of(machine, "roofline.gemm", dtype="fp32")
    if fp32 and {"roofline.bandwidth", "roofline.kernel"} <= have:
        yield (
            roofline.machine_chart(machine, machine["name"]),
            (
                "The roofline of this machine, from what was reached: flat roofs are the fastest"
                " matrix products that repeat within 10 %, slopes the fastest streams, dots the"
                " kernels at their counted intensity. Crosses do not repeat: nothing is concluded"
                " from them, not even a roof."
            ),
            (
                "A log-log plot of FLOP per second over FLOP per byte: slopes that meet flat lines,"
                " and a dot for each kernel measured."
            ),
        )
    if len(all_of(machine, "host.latency")) > 1:
        yield (
            ladder_chart(machine),
            (
                "Time of one load after another over the size of what they are spread over. Bars"
                " are the levels that the data show; dashed lines the caches as advertised."
            ),
            (
                "Latency over working-set size, both logarithmic, rising in steps or in a slope,"
                " with the advertised cache sizes as vertical lines."
            ),
        )
