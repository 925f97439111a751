"""What chapter 7 shows of its own measurement: collectives beside the laws.

Each function takes a record and shows one table or figure, or says in words what the record does
not have or what cannot be concluded from it (see `drawn`).
"""

import functools
import statistics

from lightspeed.collectives import busbw, ring_time
from lightspeed_show import Axis, Chart, Line, Points, figure, si, table
from lightspeed_tools.measure.instruments import collectives
from lightspeed_tools.measure.instruments.ranks import turns
from lightspeed_tools.measure.instruments.timing import LIMIT, spread
from lightspeed_tools.measure.pages.record_tables import about
from lightspeed_tools.measure.records import record

LOOKS = {
    "all_reduce": ("blue", "circle"),
    "all_gather": ("green", "square"),
    "reduce_scatter": ("purple", "triangle"),
    "alltoall": ("orange", "diamond"),
    "sendrecv": ("grey", "circle"),
}
NOISY = f"Crosses scatter by more than {LIMIT:.0%} and prove nothing."


def _or_words(show):
    """Let `show(record)` say what the record lacks, where it has no such measurement."""

    @functools.wraps(show)
    def wrapper(machine):
        try:
            show(machine)
        except record.NotMeasured:
            part = show.__name__.partition("_")[0]
            reasons = [str(m) for m in record.missing(machine) if m.key.startswith(part)]
            print(
                f"{about(machine)} It has no measurement of {part}."
                f" {' '.join(reasons) or f'In a terminal: lightspeed measure {part}'}"
            )

    return wrapper


def _marked(rows, color, marker, label):
    """Points of (x, y, steady) rows: those that are not steady as crosses."""
    groups = [
        ([(x, y) for x, y, steady in rows if steady is kind], look, text)
        for kind, look, text in ((True, marker, label), (False, "cross", ""))
    ]
    return [
        Points([x for x, _ in points], [y for _, y in points], text, color=color, marker=look)
        for points, look, text in groups
        if points
    ]


@_or_words
def collectives_figure(machine):
    """Draw the busbw of every measured collective over message size."""
    run, charts = collectives.run_in(machine), []
    for names in (("sendrecv", "all_reduce"), ("all_gather", "reduce_scatter", "alltoall")):
        marks = []
        for name in names:
            rows = [
                (
                    r["size"],
                    busbw(name, run.ranks, r["size"] / statistics.median(r["samples"])),
                    spread(r["samples"]) <= LIMIT,
                )
                for r in run.rows
                if r["collective"] == name
            ]
            if rows:
                color, marker = LOOKS[name]
                sizes, rates, _ = zip(*rows, strict=True)
                marks.append(Line(sizes, rates, name.replace("_", "-"), color))
                marks += _marked(rows, color, marker, "")
        if marks:
            message = Axis("message", "byte", "log", domain=(4, 5e8))
            charts.append(Chart(message, Axis("busbw", "byte/s", "log"), marks, height=230))
    wait = turns(run.ranks, machine["machine"].get("cores"))
    notes = (f"{run.ranks} processes.", wait, NOISY, about(machine))
    figure(
        charts,
        caption=" ".join(filter(None, notes)),
        alt=(
            f"Busbw of {len(LOOKS)} collectives over message size on logarithmic axes, rising with"
            " the size at first."
        ),
    )


@_or_words
def collectives_table(machine):
    """Show all-reduce by size beside a ring predicted from the neighbour shift alone."""
    run = collectives.run_in(machine)
    times = {
        name: [
            (r["size"], statistics.median(r["samples"]))
            for r in run.rows
            if r["collective"] == name and spread(r["samples"]) <= LIMIT
        ]
        for name in ("sendrecv", "all_reduce")
    }
    if len(times["sendrecv"]) < 3:
        print(
            f"{about(machine)} The shift to the neighbour scatters too much to compute anything"
            " from it."
        )
        return
    if not times["all_reduce"]:
        print(
            f"{about(machine)} The all-reduce scatters too much at each size to stand in a table."
        )
        return
    fit = collectives.neighbour_fit(times["sendrecv"])
    rows = []
    for size, time in times["all_reduce"]:
        law = ring_time(float(size), run.ranks, fit.bandwidth, fit.latency)
        rates = size / time, busbw("all_reduce", run.ranks, size / time)
        cells = [si(float(size), "byte"), si(time, "s"), *(si(rate, "byte/s") for rate in rates)]
        rows.append([*cells, si(law, "s"), f"{time / law:.2f}"])
    columns = ["message", "all-reduce", "algbw", "busbw", "ring, computed"]
    columns.append("measured over computed")
    table(
        rows,
        columns,
        f"{run.ranks} processes. The ring has α {si(fit.latency, 's', 2)} and W"
        f" {si(fit.bandwidth, 'byte/s', 2)}, from the shift to the neighbour. {about(machine)}",
    )


@_or_words
def collectives_findings(machine):
    """Return what the times show about alpha, bandwidth and algorithm, in sentences."""
    print(" ".join(collectives.conclusions(collectives.run_in(machine))))
