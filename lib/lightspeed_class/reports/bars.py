"""Bars of a report as HTML: they take the width and the colours of the page, on a phone and in
the dark too.
"""

from __future__ import annotations

import html

STYLE = """
:root { --bar: #0072b2; } @media (prefers-color-scheme: dark) { :root { --bar: #5ab0e6; } } @media print { :root { --bar: #0072b2; } }
.bars { display: grid; grid-template-columns: fit-content(45%) minmax(0, 1fr) max-content; gap: .35rem .7rem; align-items: center; font-variant-numeric: tabular-nums; }
.bars > div { display: contents; } .bars .ends { color: var(--soft); font-size: .9em; } .value { text-align: right; }
.track { position: relative; height: 1.1rem; background: var(--panel); print-color-adjust: exact; forced-color-adjust: none; }
.track * { position: absolute; top: 0; bottom: 0; } .track .bar { background: var(--bar); } .track .range { background: var(--bar); opacity: .45; top: .3rem; bottom: .3rem; }
.track .zero { border-left: 2px solid var(--soft); } .track .dot { width: .7rem; height: .7rem; top: .2rem; margin-left: -.35rem; border-radius: 50%; background: var(--bad); }
@media (max-width: 36rem) { .bars.long { grid-template-columns: minmax(0, 1fr) max-content; } .bars.long .name { grid-column: 1 / -1; margin-bottom: -.3rem; } .bars.long .name.ends { grid-column: auto; margin: 0; } .bars.long .ends:empty { display: none; } }
"""


def bar(name, share, value):
    """A bar of a share of the room, with what is written before and after it."""
    return _row(name, _span("bar", 0, share), value)


def interval(name, low, middle, high, value, domain):
    """A range with a dot in it, and a line at zero."""
    first, last = domain
    low, middle, high, zero = ((v - first) / (last - first) for v in (low, middle, high, 0))
    return _row(name, _span("range", low, high) + _span("zero", zero) + _span("dot", middle), value)


def bars(rows, head, alt, long=False):
    """Rows below one another. `head`: what the names and the values are; `alt` is for who cannot
    see them; `long`: names that need a line on a phone.
    """
    top = "".join(
        f'<span class="{kind} ends">{html.escape(text)}</span>'
        for kind, text in zip(("name", "", "value"), (head[0], "", head[1]), strict=True)
    )
    return (
        f'<div class="bars{" long" * long}" role="img"'
        f' aria-label="{html.escape(alt)}"><div>{top}</div>{"".join(rows)}</div>'
    )


def _row(name, marks, value):
    return (
        f"<div><span class=name>{html.escape(name)}</span><span class=track>{marks}</span><span"
        f" class=value>{html.escape(value)}</span></div>\n"
    )


def _span(kind, start, end=None):
    start, width = (
        min(max(start, 0), 1),
        (
            ""
            if end is None
            else f"; width: {100 * (min(max(end, 0), 1) - min(max(start, 0), 1)):.4g}%"
        ),
    )
    return f'<span class={kind} style="left: {100 * start:.4g}%{width}"></span>'
