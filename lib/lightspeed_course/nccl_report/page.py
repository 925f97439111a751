"""The report of a file of nccl-tests output: lines for the terminal, and one page of HTML with
its plots inside.
"""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from lightspeed.collectives import busbw_factor
from lightspeed.models.nccl_fit import FABRICS, predict
from lightspeed_course.html import page as html_page
from lightspeed_course.nccl_report.log import collective_named, read_report
from lightspeed_course.nccl_report.verdict import (
    contradictions,
    headline,
    in_words,
    judge_report,
    kind,
    sentences,
    spread,
    summary,
)
from lightspeed_course.show.chart import Area, Axis, Chart, Line, Points, Rule
from lightspeed_course.show.format import si
from lightspeed_course.show.page import draw


def report_file(path, hardware=None, ranks=None, nodes=None, collective=None, page=None):
    """The lines to print for a file, with its page written to `page` if that is given.

    Raises ReportError (with the line) for a file that cannot be read as nccl-tests output, OSError
    for one that cannot be opened and for a page that is there already.
    """
    collective = collective_named(collective) if collective else None
    runs = [
        judge_report(report, hardware, ranks, nodes) for report in read_report(path, collective)
    ]
    if page:
        with open(page, "x", encoding="utf-8") as new:  # never over a file that is there
            new.write(to_html(runs, Path(path).name))
    lines = []
    for run in runs:
        lines += [*([""] if lines else []), *in_words(run)]
    return lines


def to_html(runs, name):
    """One page for the judged runs of a file: the same input gives the same bytes."""
    return html_page(
        "nccl", title=f"NCCL bandwidth: {name}", runs=[_described(run) for run in runs]
    )


def _described(run):
    return {
        "headline": headline(run),
        "level": run.level.replace(" ", "-"),
        "summary": summary(run),
        "sentences": sentences(run),
        "checks": run.checks,
        "contradictions": contradictions(run) if run.findings else (),
        "charts": [(Markup(draw(*drawn)), drawn[1]) for drawn in charts(run)],
        "rows": [_row(v) for v in run.verdicts],
        "versions": run.report.versions,
    }


def charts(run):
    """(chart, caption, alt) of busbw over size and, if there is a model, of measured over
    expected time.
    """
    report = run.report
    factor = busbw_factor(report.collective, run.n)
    rows = {
        place: [r for r in report.rows if r.in_place == place and r.size and r.time]
        for place in (False, True)
    }
    marks = [
        Points(
            [r.size for r in rows[place]],
            [r.size / r.time * factor for r in rows[place]],
            label=label,
            color=color,
            marker=marker,
        )
        for place, label, color, marker in (
            (False, "out of place", "orange", "circle"),
            (True, "in place", "purple", "cross"),
        )
        if rows[place]
    ]
    top = max(r.size / r.time * factor for part in rows.values() for r in part)
    sizes = sorted({r.size for part in rows.values() for r in part})
    marks += [Rule(y=run.main.line, label="line rate, one direction")] if run.main.line else []
    if not run.main.model or not top:
        found = [
            Chart(
                _sizes(sizes),
                Axis("busbw", "byte/s", domain=(0, 1.1 * top or 1)),
                marks,
                height=320,
            )
        ]
        return [(found[0], "Busbw over message size.", "Measured busbw over message size.")]
    curve = [predict(report.collective, s, run.n, run.nodes, run.fabric).busbw for s in sizes]
    factors = [spread(*kind(s, run.nodes)) for s in sizes]
    band = Area(
        sizes,
        [b / f for b, f in zip(curve, factors, strict=True)],
        [b * f for b, f in zip(curve, factors, strict=True)],
        "normal",
    )
    several = len(sizes) > 1
    first = Chart(
        _sizes(sizes),
        Axis("busbw", "byte/s", domain=(0, 1.1 * max(top, run.main.line, *curve))),
        [*([band, Line(sizes, curve, "model", "blue")] if several else []), *marks],
        height=340,
    )
    ratios = {v.size: v.ratio for v in run.verdicts}
    low, high = min(0.4, *ratios.values()) / 1.2, max(2.5, *ratios.values()) * 1.2
    second = Chart(
        _sizes(sizes),
        Axis("measured over expected time", "", "log", domain=(low, high)),
        [
            *([Area(sizes, [1 / f for f in factors], factors, "normal")] if several else []),
            Rule(y=1, label="as expected"),
            Points(list(ratios), list(ratios.values()), color="orange"),
        ],
        height=260,
    )
    where = FABRICS[run.fabric].name
    return [
        (
            first,
            f"Busbw over message size, with what is normal on {where}.",
            (
                "Measured busbw over message size, with a band of what is normal and a rule at the"
                " line rate."
            ),
        ),
        (
            second,
            "Measured over expected time. Above the band a size is slower than it should be.",
            "The ratio of measured to expected time over message size, with a band around one.",
        ),
    ]


def _sizes(sizes):
    return Axis("message", "byte", "log", domain=(sizes[0] / 1.5, sizes[-1] * 1.5))


def _row(v):
    shown = (
        [si(v.share, "%", 3), si(v.model.busbw, "byte/s"), f"{v.level}, {v.regime}"]
        if v.model
        else ["–", "–", v.level]
    )
    return [
        si(float(v.size), "byte"),
        si(v.time, "s"),
        si(v.algbw, "byte/s"),
        si(v.busbw, "byte/s"),
        *shown,
    ]
