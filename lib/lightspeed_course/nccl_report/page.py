"""The report of a file of nccl-tests output: lines for the terminal, and one page of HTML with
its plots inside.
"""

from __future__ import annotations

import html
from pathlib import Path

from lightspeed.collectives import busbw_factor
from lightspeed.models.nccl_fit import FABRICS, predict
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

STYLE = """
:root { color-scheme: light dark; --ink: #222; --soft: #555; --ground: #fff; --panel: #f5f7f8; --edge: #b8c0c6; --good: #00775a; --bad: #a33f00; --mid: #8a6100; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 56rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
.verdict { border-left: 6px solid #666; background: var(--panel); padding: .6rem 1rem; font-weight: 600; }
.normal { border-color: var(--good); } .slow, .mixed { border-color: var(--mid); } .very-slow, .fast { border-color: var(--bad); }
figure { margin: 1.5rem 0; } svg { max-width: 100%; height: auto; } figcaption { font-style: italic; }
.wide { overflow-x: auto; } .wide > table { width: max-content; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .15rem .7rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid var(--edge); } td:last-child, th:last-child { text-align: left; }
@media (max-width: 48rem) { .wide { border: 1px solid var(--edge); border-radius: 4px; } figure svg { min-width: 42rem; } }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #aab2b8; --ground: #16191c; --panel: #23282c; --edge: #59636b; --good: #4cc7a2; --bad: #ff9a5c; --mid: #dcb04a; }
  svg { filter: invert(.91) hue-rotate(180deg); }
}
"""


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
    title = f"NCCL bandwidth: {name}"
    body = "".join(_run(run) for run in runs)
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><meta name="viewport"'
        f' content="width=device-width"><title>{html.escape(title)}</title><style>{STYLE}</style></head>\n<body>\n<h1>{html.escape(title)}</h1>\n{body}<p>Made'
        " by <code>lightspeed nccl report</code>. Chapter 7 of Speed of Light explains each"
        " number.</p>\n</body>\n</html>\n"
    )


def _run(run):
    parts = [
        f"<h2>{html.escape(headline(run))}</h2>",
        f'<p class="verdict {run.level.replace(" ", "-")}">{html.escape(summary(run))}</p>',
    ]
    parts.append(_list("ul", sentences(run)))
    if run.checks:
        parts += ["<h3>Check first</h3>", _list("ol", run.checks)]
    if run.findings:
        parts += ["<h3>The file contradicts itself</h3>", _list("ul", contradictions(run))]
    parts += [_figure(chart, caption, alt) for chart, caption, alt in charts(run)]
    parts += ["<h3>Every size</h3>", _table(run)]
    if run.report.versions:
        parts.append(f"<p>{html.escape('; '.join(run.report.versions))}</p>")
    return "\n".join(parts) + "\n"


def _list(tag, sentences):
    return (
        f"<{tag}>"
        + "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
        + f"</{tag}>"
    )


def _figure(chart, caption, alt):
    return (
        '<figure><div class="wide"'
        f' tabindex="0">{draw(chart, caption, alt)}</div><figcaption>{html.escape(caption)}</figcaption></figure>'
    )


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


def _table(run):
    head = ["message", "time", "algbw", "busbw", "of the line", "expected busbw", "verdict"]
    rows = [
        [si(float(v.size), "byte"), si(v.time, "s"), si(v.algbw, "byte/s"), si(v.busbw, "byte/s")]
        + (
            [si(v.share, "%", 3), si(v.model.busbw, "byte/s"), f"{v.level}, {v.regime}"]
            if v.model
            else ["–", "–", v.level]
        )
        for v in run.verdicts
    ]
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in rows
    )
    heads = "".join(f"<th>{name}</th>" for name in head)
    return f'<div class="wide" tabindex="0"><table><tr>{heads}</tr>\n{cells}</table></div>'
