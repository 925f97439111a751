"""A record, or two beside each other, as one page of HTML with everything inside: how far to
trust it first, then the numbers.
"""

from __future__ import annotations

import statistics
from html import escape

from lightspeed_course.measure import conditions
from lightspeed_course.measure.instruments.timing import LIMIT
from lightspeed_course.measure.pages import charts
from lightspeed_course.measure.pages.record_tables import amount, label, spread
from lightspeed_course.measure.records import compare, record, trust
from lightspeed_course.measure.records.compare import columns, title
from lightspeed_course.nccl_report.page import STYLE
from lightspeed_course.show import si
from lightspeed_course.show.page import draw

MORE = """
body { max-width: 78rem; } p, ul, .verdict, figure { max-width: 52rem; }
.ok, .better { color: var(--good); } .worse { color: var(--bad); }
.warn { color: var(--bad); font-weight: 600; } .unknown, .noisy, .same { color: var(--soft); }
td, th { text-align: left; vertical-align: top; } td { white-space: normal; max-width: 24rem; }
td.n { text-align: right; white-space: nowrap; } td svg { max-width: none; }
summary { margin: .6rem 0; cursor: pointer; } .wide.told > table { width: auto; }
@media (max-width: 48rem) {
  .wide td:first-child { max-width: 12rem; }
  .told { border: 0; }
  .told tr { display: block; border-bottom: 1px solid var(--edge); padding: .3rem 0; }
  .told tr:first-child { display: none; }
  .told td, .told td:first-child { display: block; max-width: none; padding: 0; }
  .told td:first-child { font-weight: 600; }
}
"""
DOTS = (
    "Each dot is a sample, by its ratio to the median, from half to twice as much; the band is"
    f" {si(LIMIT, '%')} to either side. The spread is the standard deviation over the mean of the"
    " middle 80 % of the samples."
)


def to_html(shown):
    """The page of one record: the same record gives the same bytes."""
    found = record.quantities(shown)
    first, *rest = verdict(shown, found)
    parts = [
        '<h2>How far to trust it</h2>\n<p class="verdict'
        f' {"normal" if _sound(shown, found) else "slow"}">{escape(first)}</p>'
    ]
    parts += [f"<p>{escape(sentence)}</p>" for sentence in rest]
    if shown["kind"] == "summary":
        parts.append(
            "<p>This record has no samples: medians and spreads are as its source states them."
            f" Source: {escape(shown['source'])}</p>"
        )
    if shown["environment"]:
        parts.append(
            _table(
                ("check", "", "what was seen", "what to do"),
                [
                    [c["check"], _state(c["state"]), _words(c["words"]), _words(c["remedy"])]
                    for c in shown["environment"]
                ],
                "told",
            )
        )
    if shown["missing"]:
        parts.append(
            "<h2>What is missing, and how to get it</h2>"
            + _list(str(m) for m in record.missing(shown))
        )
    facts = {
        **shown["machine"],
        **{f"version of {name}": v for name, v in shown["versions"].items()},
    }
    for chart, caption, alt in charts.available(shown):
        drawn = f'<div class="wide" tabindex="0">{draw(chart, caption, alt)}</div>'
        parts.append(f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>")
    if found:
        parts.append(f"<h2>Every quantity</h2>\n<p>{DOTS}</p>")
        doubted = trust.doubts(found)
        parts += [
            _part(name, [q for q in found if q.key.partition(".")[0] == name], doubted)
            for name in dict.fromkeys(q.key.partition(".")[0] for q in found)
        ]
    parts.append(
        "<h2>The machine, as it describes itself</h2>"
        + _table(
            ("", ""),
            [[escape(n.replace("_", " ")), _words(compare.said(n, v))] for n, v in facts.items()],
            "told",
        )
    )
    return _page(f"Measured on {title(shown)}", parts)


def comparison_html(comparison):
    """The page of two records side by side."""
    c = comparison
    parts = [
        f'<p class="verdict">{escape(compare.summary(c))}</p>',
        _list([f"A: {title(c.a)}", f"B: {title(c.b)}"]),
    ]
    trust = [
        f"{name}: {conditions.trust(shown['environment'])}"
        for shown, name in ((c.a, "A"), (c.b, "B"))
        if shown["environment"]
    ]
    parts.append("<h2>How far to trust each</h2>" + _list(trust) if trust else "")
    parts.append("<h2>How they differ beside what was measured</h2>")
    parts.append(
        _table(("", "A", "B"), [[escape(w), _words(a), _words(b)] for w, a, b in c.differences])
        if c.differences
        else "<p>Machine, versions and checks are the same.</p>"
    )
    rows = [
        [
            _words(label(p.a)),
            _right(amount(p.a)),
            _right(amount(p.b)),
            _right(f"{p.ratio:.3g}"),
            _right(compare.interval(p)),
            charts.dots(p.a, p.b),
            f'<span class="{p.verdict}">{_words(p.words)}</span>',
        ]
        for p in c.pairs
    ]
    if rows:
        parts.append(
            f"<h2>Every quantity of both</h2>\n<p>{DOTS} Above A, below B, both by their ratio to"
            " the median of A.</p>"
        )
        parts.append(
            _table(
                (
                    "quantity",
                    "A",
                    "B",
                    "B over A",
                    f"{si(compare.LEVEL, '%', 2)} interval",
                    "samples",
                    "",
                ),
                rows,
            )
        )
    parts += [_list(compare.lone(c))]
    return _page("Two measurements side by side", parts)


def verdict(shown, found=None):
    """How far to trust a record, in sentences: its quantities first, then its conditions."""
    found = record.quantities(shown) if found is None else found
    if not found:
        return ["Nothing was measured."]
    doubted = trust.doubts(found)
    spreads = [q.spread for q in found if q.spread == q.spread]
    middle = f" The median spread is {si(statistics.median(spreads), '%', 2)}." if spreads else ""
    # What makes the count itself doubtful stands beside it, in the headline.
    words = [
        " ".join(
            filter(
                None,
                (
                    f"{trust.in_short(found, doubted)}.{middle}",
                    conditions.crowded(shown["environment"]),
                ),
            )
        )
    ]
    words += trust.in_words(found, doubted)
    words += [] if shown.get("complete", True) else ["It was interrupted, and is not complete."]
    if shown["environment"]:
        words.append(conditions.trust(shown["environment"]))
        if not all(q.trusted for q in found):
            words.append(
                "Where the spread is wider nothing can be concluded; possible causes:"
                f" {'; '.join(conditions.why(shown['environment']))}."
            )
    return words


def in_words(shown):
    """A record as lines for the terminal: trust first, what is missing, then every quantity."""
    found = record.quantities(shown)
    lines = [title(shown), "", f"How far to trust it: {' '.join(verdict(shown, found))}", ""]
    if shown["kind"] == "summary":
        lines += [
            (
                "This record has no samples: medians and spreads are as its source states them."
                f" Source: {shown['source']}"
            ),
            "",
        ]
    lines += columns(
        [[c["check"], c["state"], c["words"], c["remedy"]] for c in shown["environment"]],
        ("check", "", "what was seen", "what to do"),
    )
    missing = record.missing(shown)
    if missing:
        lines += ["", "What is missing, and how to get it:", *(f"  {m}" for m in missing)]
    if found:
        doubted = trust.doubts(found)
        lines += [
            "",
            *columns(
                [
                    [
                        label(q),
                        amount(q),
                        doubted.get(q.label) or spread(q),
                        str(len(q.samples) or "–"),
                    ]
                    for q in found
                ],
                ("quantity", "median", "spread", "n"),
            ),
        ]
    return lines


def _sound(shown, found):
    return (
        bool(found)
        and trust.sound(found, trust.doubts(found))
        and all(c["state"] != "warn" for c in shown["environment"])
    )


def _part(name, found, doubted):
    """The quantities of one part, folded away under a line that sums them up."""
    rows = [
        [
            _words(label(q)),
            _right(amount(q)),
            _right(spread(q)),
            _right(str(len(q.samples) or "–")),
            charts.dots(q),
            _words(_conclusion(q, doubted)),
        ]
        for q in found
    ]
    summed = f"{name}: {trust.in_short(found, doubted)}"
    numbers = _table(("quantity", "median", "spread", "n", "samples", "verdict"), rows)
    return f"<details><summary>{escape(summed)}</summary>{numbers}</details>"


def _conclusion(quantity, doubted):
    good = "varies by nature" if quantity.varies else f"repeats within {si(LIMIT, '%')}"
    words = doubted.get(quantity.label) or (
        good if quantity.trusted else "nothing can be concluded"
    )
    return words + (f"; {quantity.note}" if quantity.note else "")


def _state(state):
    return f'<span class="{state}">{state}</span>'


def _words(text):
    return escape(str(text))


def _right(text):
    return Right(escape(text))


class Right(str):
    """A cell that is set right, as numbers are."""

    __slots__ = ()


def _list(sentences):
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def _table(heads, rows, kind=""):
    """A table of cells that are HTML already, in a box that scrolls; on a phone the rows of one
    of the kind "told" are paragraphs.
    """
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="n">{cell}</td>' if isinstance(cell, Right) else f"<td>{cell}</td>"
            for cell in row
        )
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="{f"wide {kind}".strip()}"'
        f' tabindex="0"><table><tr>{head}</tr>\n{body}</table></div>'
    )


def _page(name, parts):
    body = "\n".join(filter(None, parts))
    name = escape(name)
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{name}</title><style>{STYLE}{MORE}</style></head>\n"
        f"<body>\n<h1>{name}</h1>\n{body}\n"
        "<p>Made by <code>lightspeed measure</code>, of Speed of Light.</p>\n</body>\n</html>\n"
    )
