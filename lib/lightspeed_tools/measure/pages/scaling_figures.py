"""What chapters 3 and 4 show of their own measurements: a record's scaling runs and its loaded
server beside the laws.

Each function takes a record and shows one table or figure. Where the record does not have what it
needs, or where nothing may be concluded from it, it says so in words instead: a reader's machine
may be anything.
"""

import functools

from lightspeed.scaling import amdahl_speedup, usl_speedup
from lightspeed_show import Area, Axis, Chart, Line, Points, figure, si, table
from lightspeed_tools.measure.instruments import queueing_load, queueing_results, scaling
from lightspeed_tools.measure.pages.record_tables import about
from lightspeed_tools.measure.records import record

LOOKS = {
    "count": ("green", "triangle"),
    "wait": ("blue", "circle"),
    "message": ("orange", "square"),
}


def _or_words(show):
    """Let `show(record, quantities)` take a record, and say what the record lacks."""

    @functools.wraps(show)
    def wrapper(shown):
        try:
            show(shown, record.quantities(shown))
        except record.NotMeasured:
            part = show.__name__.partition("_")[0]
            reasons = [str(m) for m in record.missing(shown) if m.key.startswith(part)]
            print(
                f"{about(shown)} It has no measurement of {part}."
                f" {' '.join(reasons) or f'In a terminal: lightspeed measure {part}'}"
            )

    return wrapper


@_or_words
def scaling_figure(shown, found):
    """Speedups of the three jobs over n, with Amdahl's law for counted shares and the fit."""
    jobs = {name: scaling.analyse(found, name) for name in LOOKS}
    message = jobs["message"]
    grid = [1 + i * (message.n[-1] - 1) / 60 for i in range(61)]
    top = 1.1 * max(
        amdahl_speedup(grid[-1], serial=message.counted),
        *(max(job.speedup) for job in jobs.values()),
    )
    marks = [
        Line([1, top], [1, top], "perfect", "grey", dash=True, label_at="along"),
        Line(
            grid,
            [amdahl_speedup(n, serial=message.counted) for n in grid],
            f"Amdahl, {message.counted:.0%} serial",
            "blue",
        ),
        Line(
            jobs["count"].n,
            jobs["count"].predicted(),
            f"Amdahl, {jobs['count'].counted:.0%}, {jobs['count'].cpus} cores",
            "green",
        ),
    ]
    if message.usl and not message.doubt:
        fitted = [
            message.usl.baseline
            * usl_speedup(n, serial=max(message.usl.serial, 0), kappa=max(message.usl.kappa, 0))
            for n in grid
        ]
        marks.append(Line(grid, fitted, "fit with κ", "orange", dash=True))
    marks += [
        Points(job.n, job.speedup, scaling.JOBS[name], color=LOOKS[name][0], marker=LOOKS[name][1])
        for name, job in jobs.items()
    ]
    figure(
        Chart(
            Axis("processes n", "", "log", ticks=message.n),
            Axis("speedup", "", "log", domain=(0.8, top)),
            marks,
        ),
        caption=(
            "Medians of the rounds. The lines of Amdahl's law are not fitted: their shares are"
            f" known by count. {about(shown)}"
        ),
        alt=(
            "Measured speedups of three jobs. The one that waits reaches"
            f" {jobs['wait'].speedup[-1]:.1f} with {jobs['wait'].n[-1]} processes, where its law"
            f" says {jobs['wait'].predicted()[-1]:.1f}; the one with messages at most"
            f" {max(message.speedup):.1f}; the one that counts at most"
            f" {max(jobs['count'].speedup):.1f}."
        ),
    )


@_or_words
def scaling_table(shown, found):
    """For each job and n: speedup measured and predicted, Karp and Flatt's share."""
    rows = []
    for name in LOOKS:
        job = scaling.analyse(found, name)
        shares = ["", *(f"{s.mean:.1%} ({s.low:.1%} to {s.high:.1%})" for s in job.shares)]
        for n, speedup, law, share in zip(job.n, job.speedup, job.predicted(), shares, strict=True):
            beyond = (
                f", on {job.cpus} core{'s' * (job.cpus > 1)}"
                if name == "count" and n > job.cpus
                else ""
            )
            rows.append([scaling.JOBS[name], f"{n}{beyond}", f"{speedup:.2f}", f"{law:.2f}", share])
    columns = [
        "job",
        "processes",
        "speedup",
        "Amdahl, share by count",
        "Karp–Flatt share (95 %)",
    ]
    serial = ", ".join(
        f"{scaling.PARTS[n][0]} of {sum(scaling.PARTS[n])} pieces of {scaling.JOBS[n]}"
        for n in ("count", "wait")
    )
    table(rows, columns, f"Serial by count: {serial}. {about(shown)}")


@_or_words
def scaling_findings(shown, found):
    """What the times say about the laws, in sentences."""
    for name in LOOKS:
        print(
            f"{scaling.JOBS[name].capitalize()}:"
            f" {' '.join(scaling.findings(scaling.analyse(found, name)))}"
        )


@_or_words
def queueing_little(shown, found):
    """L, lambda and W of each load, each by its own instrument."""
    rows = [
        [
            row.load.law,
            si(row.load.load, "%"),
            f"{row.L:.2f} ± {row.error:.2f}",
            f"{row.rate:.1f}/s",
            si(row.W, "s"),
            f"{row.rate * row.W:.2f}",
            f"{row.ratio:.2f}",
        ]
        for row in queueing_results.little(found)
    ]
    columns = [
        "server",
        "load",
        "L, counted in the server",
        "λ, by the sender",
        "W, by the sender",
        "λ × W",
        "L over λ × W",
    ]
    trip = queueing_results.overheads(found)[1]
    table(
        rows,
        columns,
        f"W has the way there and back in it, {si(trip, 's', 2)}, which L does not see."
        f" {about(shown)}",
    )


@_or_words
def queueing_latency(shown, found):
    """Mean latency over load by kind of server: measured, formula, band of so short a run."""
    if late := queueing_results.refusal(found):
        print(late)
        return
    rows, charts = queueing_results.latencies(found), []
    for law in queueing_load.SERVERS:
        own = [row for row in rows if row.load.law == law]
        at, unit, most = (
            [row.load.load for row in own],
            own[0].load.service,
            1.2 * max(max(row.band["mean"][1], row.measured["mean"]) for row in own),
        )
        means = {
            level: queueing_results.steady(
                own[0].load.at(level), *queueing_results.overheads(found)
            )["mean"]
            for level in (at[0] + (at[-1] - at[0]) * i / 40 for i in range(41))
        }
        curve = {level: mean / unit for level, mean in means.items() if mean}
        marks = [
            Area(
                at,
                [r.band["mean"][0] / unit for r in own],
                [r.band["mean"][1] / unit for r in own],
                "runs as short as this",
            ),
            Line(list(curve), list(curve.values()), "formula", "blue"),
            Points(
                at, [r.measured["mean"] / unit for r in own], "measured", color="orange", size=6
            ),
            Points(
                at,
                [r.replay / unit for r in own],
                "the same requests in an ideal queue",
                color="black",
                marker="cross",
                size=3,
            ),
        ]
        x, y = (
            Axis("load", "%", domain=(0.25, 0.95)),
            Axis("latency over service time", "", "log", domain=(0.8, most / unit)),
        )
        charts.append(Chart(x, y, marks, title=f"{law}, services of {si(unit, 's')}", height=240))
    inside = sum(row.falls_within() for row in rows)
    figure(
        charts,
        caption=(
            f"Mean latency of {sum(r.load.requests for r in rows):,} requests. Of {len(rows)} means"
            f" {inside} lie in the band that nine of ten such short runs fall into. {about(shown)}"
        ),
        alt=(
            "Three charts of mean latency over load. Each has a rising curve from the formula, a"
            " shaded band round it that widens towards full load, and measured points beside those"
            " of an ideal queue."
        ),
    )


@_or_words
def queueing_tail(shown, found):
    """Percentiles of one server with random services: measured, band of such runs, formula."""
    if late := queueing_results.refusal(found):
        print(late)
        return
    rows = []
    for row in queueing_results.latencies(found):
        if row.load.law == "M/M/1":
            for share in queueing_results.SHARES:
                low, high = row.band[share]
                rows.append(
                    [
                        si(row.load.load, "%"),
                        f"p{share * 100:.0f}",
                        si(row.measured[share], "s"),
                        f"{si(low, 's')} to {si(high, 's')}",
                        si(row.steady[share], "s") if row.steady[share] else "none: overload",
                    ]
                )
    table(
        rows,
        ["load", "percentile", "measured", "nine of ten such runs", "formula, for ever"],
        f"M/M/1. {about(shown)}",
    )


@_or_words
def queueing_omission(shown, found):
    """The same requests to the same server, by an open and by a closed loop."""
    ways = queueing_results.closed_loop(found)
    table(
        [[name, si(mean, "s"), si(p99, "s")] for name, (mean, p99) in ways.items()],
        ["loop, and latency counted", "mean", "p99"],
        about(shown),
    )
