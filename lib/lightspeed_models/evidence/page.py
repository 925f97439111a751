"""The evidence's page: residuals by regime, tables, worst rows, and what has no law here."""

import numpy as np
from markupsafe import Markup

from lightspeed_models.evidence.report import (
    furthest,
    kind,
    left_out_for,
    rows_in_words,
    source,
    table_rows,
)
from lightspeed_models.evidence.word_column import evenly
from lightspeed_show.chart import Axis, Chart, Points, Rule
from lightspeed_show.format import plain, si
from lightspeed_show.html import page
from lightspeed_show.page import draw

DOTS = 250  # of a regime in a plot: more would hide each other
COLORS = ("blue", "orange", "green", "purple", "amber", "sky")
MARKS = ("circle", "square", "triangle", "diamond", "cross", "star")
LISTED = 40  # refused rows that the page names


def residual_chart(found, dots=DOTS, height=360):
    """Predicted over measured, against what was measured, one mark a regime. Of each regime at most
    `dots` rows are drawn, at even steps.
    """
    judged = found.judged
    ratio = judged.predicted / judged.measured
    marks: list = [Rule(y=1, label="the bound" if found.pairing.bound else "as predicted")]
    for i, name in enumerate(judged.regime.present()):
        own = np.flatnonzero(judged.regime == name)
        own = own[np.argsort(judged.measured[own], kind="stable")]
        own = evenly(own, dots)
        x, y = judged.measured[own].tolist(), ratio[own].tolist()
        color, marker = COLORS[i % len(COLORS)], MARKS[i % len(MARKS)]
        marks.append(Points(x, y, label=name, color=color, marker=marker, size=2.5))
    p = found.pairing
    return Chart(
        Axis(f"measured {p.quantity}", p.unit, "log"),
        Axis("predicted over measured", "", "log"),
        marks,
        height=height,
    )


def alt(found):
    """The plot in words: where the middle of each regime lies."""
    middles = "; ".join(f"{e.regime}: median {plain(e.ratios[1], 2)}" for e in found.by_regime)
    return f"Predicted over measured {found.pairing.quantity} by regime. {middles}."


def ranking(found):
    """The estimates among these `Residuals`, the least sure first: what can't be predicted."""
    estimates = [one for one in found if not one.pairing.bound]
    return sorted(estimates, key=lambda one: one.all.median, reverse=True)


def to_html(found):
    """One page for these `Residuals`: the same rows give the same bytes."""
    return page(
        "evidence",
        title="The laws against public measurements",
        ranking=[_ranked(one) for one in ranking(found)],
        parts=[_part(one) for one in found],
    )


def _ranked(found):
    whole, worst = found.all, max(found.by_regime, key=lambda error: error.median)
    regime = f"{worst.regime}: {si(worst.median, '%')}" if len(found.by_regime) > 1 else "–"
    errors = si(whole.median, "%"), si(whole.p90, "%")
    return [found.pairing.title, f"{whole.rows:,}", *errors, regime]


def _part(found):
    p, rows = found.pairing, found.rows
    words = alt(found)
    head, *table = table_rows(found)
    return {
        "title": p.title,
        "lesson": p.lesson,
        "facts": [
            ["law", f"{p.law}, {kind(p)}"],
            ["rows", rows_in_words(found)],
            ["a row is", rows.record.row],
            ["source", source(rows.record)],
            ["by", rows.record.attribution],
            ["sample", "all rows" if rows.full else rows.record.sample],
            ["fitted", p.fitted],
            ["note", rows.record.note or "–"],
        ],
        "chart": [
            (Markup(draw(residual_chart(found), p.title, words)), words)
            for _ in found.ratio[:1]  # rows that do not ship are in no plot
        ],
        "head": head,
        "table": table,
        "furthest": f"{furthest(found)} (predicted over measured)",
        "worst": [[plain(ratio), name] for name, ratio in found.worst],
        "left": [[f"{n:,}", reason] for reason, n in left_out_for(found)],
        "reasons": [[f"{n:,}", reason] for reason, n in rows.reasons().most_common()],
        "refused": [[one.name, one.reason] for one in rows.refused[:LISTED]],
        "more": max(len(rows.refused) - LISTED, 0),
    }
