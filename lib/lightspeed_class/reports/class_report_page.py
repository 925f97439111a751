"""A report's page: three sentences, the marks, the questions, the mistakes, who needs a hand."""

import statistics as stdlib
from pathlib import Path

from lightspeed_class.class_folder import write_whole
from lightspeed_class.reports.class_report import FEWEST, histogram, opening, statistics, times
from lightspeed_class.score import number, short
from lightspeed_show.format import plain, si
from lightspeed_show.html import page

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
    "library": "calls the law that it should be",
    "error": "the function stops with an error",
    "type": "an answer of another kind: a text, nan, more numbers than asked",
    "misconception": "misconception",
    "slip": "slip",
}


def to_html(data):
    """Render the data of `statistics` as HTML: the same data give the same bytes."""
    questions = [q for q in data["questions"] if q["students"]]
    names = [f"{i}. {short(q['question'])}" for i, q in enumerate(questions, 1)]
    intervals = [
        _interval(name, q) for name, q in zip(names, questions, strict=True) if q["discrimination"]
    ]
    zero = min([0, *(row["low"] for row in intervals)]) - 0.05  # the left end of their axis
    return page(
        "class_report",
        title=f"Report: {data['name']}",
        data=data,
        opening=opening(data),
        counts=f"{data['students']} students on the roster, {data['graded']} graded,"
        + (
            f" in {data['read']} notebooks that could be read; what is said of questions counts"
            " each once."
            if data["together"]
            else f" {data['read']} of them with a notebook that could be read."
        ),
        marks=_marks(data["points"], data["out of"]),
        shares=[
            {"name": name, "share": q["share"], "value": si(q["share"], "%", 2)}
            for name, q in zip(names, questions, strict=True)
        ],
        told=[row | _placed(row, zero, 1.02) for row in intervals],
        told_of=next((q["discrimination"][3] for q in questions if q["discrimination"]), 0),
        asked=[_cells(q) for q in questions],
        by_hand=[(*q[:3], "–" if q[3] is None else si(q[3], "%", 2)) for q in data["by hand"]],
        fewest=FEWEST,
        most=MOST,
        kinds=KINDS,
        ends=ENDS,
        times=times,
    )


def write_report(book, name, path, section=""):
    """Write an assignment's page to `path` and return it. Raises KeyError for an unknown name."""
    write_whole(Path(path), to_html(statistics(book, name, section)).encode())
    return Path(path)


def _marks(points, full):
    if not points or not full:
        return None
    bins = histogram(points, full)
    top = max(count for _, _, count in bins)
    usual = [p for p in points if 0 <= p <= full]
    mean = f", the mean {plain(stdlib.fmean(usual), 3)}" if usual else ""
    words = (
        f"The median is {number(stdlib.median(points))} of {number(full)} points{mean}; they go"
        f" from {number(points[0])} to {number(points[-1])}."
    )
    if beyond := len(points) - len(usual):
        words += (
            f" Points by hand lead {beyond} of them below 0 or above {number(full)}; the mean"
            " leaves these out."
        )
    last = "last bar" if points[-1] <= full else "bar before the last"
    return {
        "words": words,
        "out_of": number(full),
        "rows": [
            {"name": f"{plain(low, 3)}–{plain(high, 3)}", "share": n / top, "value": str(n)}
            for low, high, n in bins
        ],
        "caption": f"How the points of {len(points)} notebooks are spread; full marks are in the"
        f" {last}.",
    }


def _interval(name, q):
    r, low, high, _ = q["discrimination"]
    span = f"{r:.2f}, from {low:.2f} to {high:.2f}"
    return {"name": name, "value": f"{r:.2f}", "said": span, "low": low, "middle": r, "high": high}


def _placed(row, first, last):
    """Where the ends of an interval, its middle and zero lie on an axis, as shares of it."""
    values = {"zero": 0, **{name: row[name] for name in ("low", "middle", "high")}}
    return {name: (value - first) / (last - first) for name, value in values.items()}


def _cells(q):
    r = q["discrimination"]
    return [
        *(q[name] for name in ("question", "right", "wrong", "unanswered")),
        si(q["share"], "%", 2),
        f"{r[0]:.2f} ({r[1]:.2f} to {r[2]:.2f})" if r else "–",
    ]
