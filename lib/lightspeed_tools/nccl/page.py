"""The report of nccl-tests files: lines for the terminal, data, a page of HTML with plots."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from lightspeed_models.nccl_fit import FABRICS, predict
from lightspeed_show.chart import Area, Axis, Chart, Line, Points, Rule
from lightspeed_show.format import si
from lightspeed_show.html import page as html_page
from lightspeed_show.page import draw
from lightspeed_tools.nccl.advice import checks_of
from lightspeed_tools.nccl.as_data import as_data
from lightspeed_tools.nccl.compare import alike, compare, compared_in_words
from lightspeed_tools.nccl.data_log import looks_like_data, parse_data
from lightspeed_tools.nccl.judge import by_size, judge_report
from lightspeed_tools.nccl.log import ReportError, collective_named, parse
from lightspeed_tools.nccl.machine import described
from lightspeed_tools.nccl.published import kind, spread
from lightspeed_tools.nccl.sentences import contradictions, in_words, sentences
from lightspeed_tools.nccl.summary import busbw_of, headline, summary


@dataclass(frozen=True)
class Stated:
    """What the reader of a report states of its runs."""

    hardware: str | None = None
    nic: str | None = None
    domain: int | None = None
    machine: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    collective: str | None = None


def read_runs(path, options=Stated()):
    """The `Judged` runs of a file, or of standard input ("-"). Raises ReportError (with the line)
    for no nccl-tests output, OSError for no file.
    """
    collective = collective_named(options.collective) if options.collective else None
    machine = described(options.hardware, options.nic, options.domain, options.machine)
    if str(path) == "-":
        text = sys.stdin.read()
    else:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    reports = (parse_data if looks_like_data(text) else parse)(text, collective)
    return [judge_report(report, machine, options.ranks, options.nodes) for report in reports]


def compared(files):
    """The `Compared` runs: those alike in one file; of two files, the pairs of one collective on
    as many ranks and nodes, else the last run of each.
    """
    if len(files) == 1:
        return alike(files[0])
    first, second = files
    key = lambda run: (run.collective, run.n, run.nodes)  # noqa: E731
    theirs = {key(run): run for run in second}
    comparisons = [compare(run, theirs[key(run)]) for run in first if key(run) in theirs]
    comparisons = comparisons or [compare(first[-1], second[-1])]
    if not any(comparisons):
        raise ReportError(
            0, "the two files share no collective with a common size, so nothing can be compared"
        )
    return [pair for pair in comparisons if pair]


def report_lines(paths, files):
    """The lines to print for one file, or for two side by side."""
    lines = []
    for path, runs in zip(paths, files, strict=True):
        for run in runs:
            lines += [*([""] if lines else []), *([f"{path}:"] if len(paths) > 1 else [])]
            lines += in_words(run)
    names = (
        ("the first file", "the second file")
        if len(paths) > 1
        else ("the run before", "the run after")
    )
    for pair in compared(files):
        lines += ["", *compared_in_words(pair, names)]
    return lines


def to_json(paths, files):
    """One JSON document for the judged runs of files."""
    data = [
        {"file": str(path), "runs": [as_data(run) for run in runs]}
        for path, runs in zip(paths, files, strict=True)
    ]
    pairs = [
        {"collective": pair.first.collective, "time_second_over_first": dict(pair.ratios)}
        for pair in compared(files)
    ]
    return json.dumps({"files": data, "compared": pairs}, indent=1, allow_nan=False)


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
        "checks": checks_of(run),
        "contradictions": contradictions(run) if run.findings else (),
        "charts": [(Markup(draw(*chart)), chart[1]) for chart in charts(run)],
        "rows": [_row(v) for v in run.verdicts] or [_printed(r) for r in by_size(run.report.rows)],
        "versions": run.report.versions,
    }


def charts(run):
    """(chart, caption, alt) of busbw over size and, given a model, of measured over expected."""
    rows = {
        place: [r for r in run.report.rows if r.in_place == place and r.size and r.time]
        for place in (False, True)
    }
    marks: list = [
        Points(
            [r.size for r in rows[place]],
            [busbw_of(run, r) for r in rows[place]],
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
    if not marks:
        return []
    top = max(busbw_of(run, r) for part in rows.values() for r in part)
    sizes = sorted({r.size for part in rows.values() for r in part})
    line = run.main and run.main.line
    marks += [Rule(y=line, label="line rate, one direction")] if line else []
    if not run.main or not run.main.model or not top:
        pictures = [
            Chart(
                _sizes(sizes),
                Axis("busbw", "byte/s", domain=(0, 1.1 * max(top, line or 0) or 1)),
                marks,
                height=320,
            )
        ]
        return [(pictures[0], "Busbw over message size.", "Measured busbw over message size.")]
    curve = [predict(run.collective, s, run.n, run.nodes, run.fabric).busbw for s in sizes]
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


def _printed(row):
    """A size of a run that is not known well enough to be judged, as the file has it."""
    rates = (si(rate, "byte/s") for rate in (row.algbw, row.busbw))
    return [si(float(row.size), "byte"), si(row.time, "s"), *rates, "–", "–", "not judged"]


def _row(v):
    share = si(v.share, "%", 3) if v.line else "–"
    expected = si(v.model.busbw, "byte/s") if v.model else "–"
    word = "not judged" if v.level == "unknown" else v.level
    cells = [share, expected, f"{word}, {v.regime}" if v.model else word]
    return [
        si(float(v.size), "byte"),
        si(v.time, "s"),
        si(v.algbw, "byte/s"),
        si(v.busbw, "byte/s"),
        *cells,
    ]
