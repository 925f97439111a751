"""The page of a report: three sentences first, then the marks, the questions, the mistakes and
who needs a hand.
"""

from __future__ import annotations

import html
import statistics as stdlib
from pathlib import Path

from lightspeed_class.class_folder import write_whole
from lightspeed_class.reports.bars import STYLE as BARS
from lightspeed_class.reports.bars import bar, bars, interval
from lightspeed_class.reports.class_report import FEWEST, histogram, opening, statistics, times
from lightspeed_class.reports.html_page import coded, ours, page, theirs
from lightspeed_class.reports.results import number, short
from lightspeed_course.show.format import plain, si

STYLE = """
.verdict p { margin: .5rem 0; } summary { cursor: pointer; white-space: nowrap; } td p { margin: 0; }
td code { white-space: nowrap; } figcaption { margin-top: .5rem; }
@media (min-width: 36.01rem) and (max-width: 58rem) { .cards { font-size: .88em; } td, th { padding-right: .6rem; } }
@media (max-width: 36rem) {
  table tr { border-top: 1px solid var(--line); padding: .5rem 0; }
  table.stack tr, table.stack td { display: block; } table.cards tr { display: grid; grid-template-columns: 1fr 1fr; } table.cards td:first-child { grid-column: 1 / -1; }
  table.cards td.number { text-align: left; white-space: normal; } table.cards td.number::before { content: attr(data-label) ": "; color: var(--soft); }
  table.stack tr:first-child, table.cards tr:first-child { display: none; }
}
"""
MOST = 25  # rows of a table of mistakes; what comes after them is rare
ENDS = {
    "late": "not known: marked late by the platform",
    "ok": "a cell stopped",
    "refused": "could not be read",
    "time": "out of time",
    "memory": "out of memory",
    "exit": "ended itself",
    "output": "told too much",
    "protocol": "wrote into the grader's channel",
}
KINDS = {
    "dimension": "another dimension",
    "sign": "below zero",
    "hidden": "right on the published inputs only",
    "error": "the function stops with an error",
    "type": "an answer of another kind: a text, nan, more numbers than asked",
    "misconception": "misconception",
    "slip": "slip",
}


def to_html(data):
    """The page for what `statistics` gathered: the same data give the same bytes."""
    title = f"Report: {data['name']}"
    parts = [
        f"<h1>{html.escape(title)}</h1>\n",
        (
            '<p class="soft">For the instructor: it names students, and says how far off they'
            " were.</p>\n"
        ),
    ]
    parts.append(
        '<div class="verdict">' + "".join(f"<p>{_said(s)}</p>" for s in opening(data)) + "</div>\n"
    )
    parts += [
        _look(data),
        _marks(data),
        _questions(data),
        _mistakes(data),
        _unexplained(data),
        _people(data),
        METHOD,
    ]
    return page(title, "".join(parts), BARS + STYLE)


def write_report(book, name, path):
    """Write the page for an assignment to `path`, and give that. Raises KeyError for an unknown
    assignment.
    """
    write_whole(Path(path), to_html(statistics(book, name)).encode())
    return Path(path)


def _said(sentence):
    return ours(sentence).strip().removeprefix("<p>").removesuffix("</p>")


def _marks(data):
    counts = (
        f"{data['students']} students on the roster, {data['graded']} graded, {data['read']} of"
        " them with a notebook that could be read."
    )
    if not data["points"] or not data["out of"]:
        return f"<h2>Marks</h2>\n<p>{counts}</p>\n"
    bins = histogram(data["points"], data["out of"])
    labels = [f"{plain(low, 3)}–{plain(high, 3)}" for low, high, _ in bins]
    top = max(count for _, _, count in bins)
    rows = [
        bar(label, count / top, str(count))
        for label, (_, _, count) in zip(labels, bins, strict=True)
    ]
    middle, full = stdlib.median(data["points"]), data["out of"]
    usual = [p for p in data["points"] if 0 <= p <= full]
    mean = f", the mean {plain(stdlib.fmean(usual), 3)}" if usual else ""
    words = (
        f"The median is {number(middle)} of {number(full)} points{mean}; they go from"
        f" {number(data['points'][0])} to {number(data['points'][-1])}."
    )
    if beyond := len(data["points"]) - len(usual):
        words += (
            f" Points by hand lead {beyond} of them below 0 or above {number(full)}; the mean"
            " leaves these out."
        )
    alt = (
        "Students by points: "
        + ", ".join(f"{label}: {count}" for label, (_, _, count) in zip(labels, bins, strict=True))
        + "."
    )
    return f"<h2>Marks</h2>\n<p>{counts} {words}</p>\n" + _figure(
        bars(rows, (f"points, of {number(full)}", "students"), alt),
        f"How the points of {len(data['points'])} notebooks are spread; full marks are in the"
        f" {'last bar' if data['points'][-1] <= full else 'bar before the last'}.",
    )


def _questions(data):
    asked = [q for q in data["questions"] if q["students"]]
    if not asked:
        return ""
    names = [f"{i}. {short(q['question'])}" for i, q in enumerate(asked, 1)]
    shares = [si(q["share"], "%", 2) for q in asked]
    rows = [
        bar(name, q["share"], share) for name, q, share in zip(names, asked, shares, strict=True)
    ]
    alt = (
        "Mean share of the points by question: "
        + ", ".join(map(": ".join, zip(names, shares, strict=True)))
        + "."
    )
    figures = _figure(
        bars(rows, ("question", "mean share"), alt, long=True),
        "How hard each question was: the mean share of its points. Short bars are hard questions.",
    )
    if told := [
        (name, q["discrimination"])
        for name, q in zip(names, asked, strict=True)
        if q["discrimination"]
    ]:
        domain = min(0, *(low for _, (_, low, *_) in told)) - 0.05, 1.02
        rows = [
            interval(name, low, r, high, f"{r:.2f}", domain) for name, (r, low, high, _) in told
        ]
        alt = (
            "Discrimination by question: "
            + ", ".join(
                f"{name}: {r:.2f}, from {low:.2f} to {high:.2f}" for name, (r, low, high, _) in told
            )
            + "."
        )
        caption = (
            "How well each question tells those who do well elsewhere from those who do not: the"
            " correlation with the points of all other questions, with 95 % intervals from"
            f" {told[0][1][3]} students. The line is zero; left of it: read the question again."
        )
        figures += _figure(bars(rows, ("question", "correlation"), alt, long=True), caption)
    else:
        figures += (
            f"<p>How well a question tells strong from weak is not shown: below {FEWEST} students,"
            " or where all did alike, nothing can be said.</p>\n"
        )
    head = ["question", "right", "wrong", "unanswered", "mean share", "discrimination"]
    cells = [
        [
            f"<code>{html.escape(q['question'])}</code>",
            q["right"],
            q["wrong"],
            q["unanswered"],
            si(q["share"], "%", 2),
            _interval(q["discrimination"]),
        ]
        for q in asked
    ]
    return f"<h2>Questions</h2>\n{figures}{_table(head, cells, numbers=range(1, 6))}"


def _interval(found):
    return f"{found[0]:.2f} ({found[1]:.2f} to {found[2]:.2f})" if found else "–"


def _mistakes(data):
    if not data["mistakes"]:
        return ""
    rows = [
        [
            f"<code>{html.escape(m['question'])}</code>",
            f"{html.escape(m['name'] or KINDS[m['kind']])}"
            + f"<br><span class=soft>{KINDS[m['kind']]}</span>" * bool(m["name"]),
            _students(m["students"], data),
            ours(m["message"]),
        ]
        for m in data["mistakes"][:MOST]
    ]
    more = len(data["mistakes"]) - len(rows)
    after = (
        f"<p>There are {more} more, none made by more than"
        f" {len(data['mistakes'][MOST]['students'])}.</p>\n"
        if more > 0
        else ""
    )
    return (
        "<h2>Mistakes with a"
        f" name</h2>\n{_table(['question', 'mistake', 'made by', 'what they read'], rows)}{after}"
    )


def _unexplained(data):
    if not data["unexplained"]:
        return ""
    rows = []
    for c in data["unexplained"][:MOST]:
        given = "; ".join(dict.fromkeys(c["given"]))
        what = f"{times(c['ratio'])} the right answer" if c["ratio"] else "the same answer"
        rows.append(
            [
                f"<code>{html.escape(c['question'])}</code>",
                _students(c["students"], data),
                what,
                theirs(given),
            ]
        )
    words = (
        "Equal wrong answers that no misconception and no slip explains, of two students or more."
        " Find out how they came to them: each may be a misconception that the question should"
        " know."
    )
    return (
        "<h2>Mistakes without a"
        f" name</h2>\n<p>{words}</p>\n{_table(['question', 'given by', 'they gave', 'as numbers'], rows)}"
    )


def _people(data):
    parts = []
    for heading, head, key in (
        (
            "Notebooks that stopped or could not be read",
            ["student", "how it ended", "what they were told"],
            "stopped",
        ),
        ("Late", ["student", "how late"], "late"),
        ("Not graded yet", ["student"], "waiting"),
        ("Nothing handed in", ["student"], "missing"),
    ):
        if data[key]:
            parts.append(f"<h2>{heading}</h2>\n{_named(head, data[key])}")
    return "".join(parts)


def _look(data):
    if not data["look"]:
        return ""
    words = (
        "Their points may not say what they know. <code>lightspeed class choose</code> lets an"
        " earlier notebook count, <code>points</code> gives points by hand."
    )
    return f"<h2>Look at these</h2>\n<p>{words}</p>\n{_named(['student', 'why'], data['look'])}"


def _named(head, people):
    rows = [
        [
            f"{theirs(name or id)} <span class=soft>{theirs(id)}</span>",
            *(coded(ENDS.get(r, r)) for r in rest),
        ]
        for id, name, *rest in people
    ]
    return _table(head, rows)


def _students(ids, data):
    names = ", ".join(theirs(data["names"].get(id) or id) for id in ids)
    return (
        f"<details><summary>{len(ids)}"
        f" {'student' if len(ids) == 1 else 'students'}</summary>{names}</details>"
    )


def _figure(drawn, caption):
    return f"<figure>{drawn}<figcaption>{html.escape(caption)}</figcaption></figure>\n"


def _table(head, rows, numbers=()):
    """A table of markup; the columns of these numbers are set right. On a phone each row is a
    block, numbers with their heading.
    """
    look = [
        f' class="number" data-label="{name}"' if i in numbers else ""
        for i, name in enumerate(head)
    ]
    top = "".join(f"<th{k} scope=col>{name}</th>" for name, k in zip(head, look, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{k}>{cell}</td>" for cell, k in zip(row, look, strict=True))
        + "</tr>\n"
        for row in rows
    )
    return (
        '<div class="wide"><table'
        f' class="{"cards" if numbers else "stack"}"><tr>{top}</tr>\n{body}</table></div>\n'
    )


METHOD = (
    "<h2>How this was worked out</h2>\n<p class=soft>Questions are judged from the notebooks that"
    " could be read, points by hand in place of automatic ones; an unanswered question counts as no"
    " points. Discrimination is the correlation of a question's points with the sum of all the"
    " others (the question itself is left out), with the interval of Fisher's transformation, which"
    " is rough for questions that are only right or wrong. Mistakes are those of the automatic"
    " diagnosis.</p>\n"
)
