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


def residual_chart(residuals, dots=DOTS, height=360):
    """Predicted over measured, against what was measured, one mark a regime. Of each regime at most
    `dots` rows are drawn, at even steps.
    """
    verdict = residuals.judged
    ratio = verdict.predicted / verdict.measured
    marks: list = [Rule(y=1, label="the bound" if residuals.pairing.bound else "as predicted")]
    for i, name in enumerate(verdict.regime.present()):
        own = np.flatnonzero(verdict.regime == name)
        own = own[np.argsort(verdict.measured[own], kind="stable")]
        own = evenly(own, dots)
        x, y = verdict.measured[own].tolist(), ratio[own].tolist()
        color, marker = COLORS[i % len(COLORS)], MARKS[i % len(MARKS)]
        marks.append(Points(x, y, label=name, color=color, marker=marker, size=2.5))
    p = residuals.pairing
    return Chart(
        Axis(f"measured {p.quantity}", p.unit, "log"),
        Axis("predicted over measured", "", "log"),
        marks,
        height=height,
    )


def alt(residuals):
    """The plot in words: where the middle of each regime lies."""
    middles = "; ".join(f"{e.regime}: median {plain(e.ratios[1], 2)}" for e in residuals.by_regime)
    return f"Predicted over measured {residuals.pairing.quantity} by regime. {middles}."


def ranking(residuals):
    """The estimates among these `Residuals`, the least sure first: what can't be predicted."""
    estimates = [one for one in residuals if not one.pairing.bound]
    return sorted(estimates, key=lambda one: one.all.median, reverse=True)


def to_html(residuals):
    """One page for these `Residuals`: the same rows give the same bytes."""
    return page(
        "evidence",
        title="The laws against public measurements",
        ranking=[_ranked(one) for one in ranking(residuals)],
        parts=[_part(one) for one in residuals],
    )


def _ranked(residuals):
    whole, worst = residuals.all, max(residuals.by_regime, key=lambda error: error.median)
    regime = f"{worst.regime}: {si(worst.median, '%')}" if len(residuals.by_regime) > 1 else "–"
    errors = si(whole.median, "%"), si(whole.p90, "%")
    return [residuals.pairing.title, f"{whole.rows:,}", *errors, regime]


def _part(residuals):
    p, rows = residuals.pairing, residuals.rows
    words = alt(residuals)
    head, *table = table_rows(residuals)
    return {
        "title": p.title,
        "lesson": p.lesson,
        "facts": [
            ["law", f"{p.law}, {kind(p)}"],
            ["rows", rows_in_words(residuals)],
            ["a row is", rows.record.row],
            ["source", source(rows.record)],
            ["by", rows.record.attribution],
            ["sample", "all rows" if rows.full else rows.record.sample],
            ["fitted", p.fitted],
            ["note", rows.record.note or "–"],
        ],
        "chart": [
            (Markup(draw(residual_chart(residuals), p.title, words)), words)
            for _ in residuals.ratio[:1]  # rows that do not ship are in no plot
        ],
        "head": head,
        "table": table,
        "furthest": f"{furthest(residuals)} (predicted over measured)",
        "worst": [[plain(ratio), name] for name, ratio in residuals.worst],
        "left": [[f"{n:,}", reason] for reason, n in left_out_for(residuals)],
        "reasons": [[f"{n:,}", reason] for reason, n in rows.reasons().most_common()],
        "refused": [[one.name, one.reason] for one in rows.refused[:LISTED]],
        "more": max(len(rows.refused) - LISTED, 0),
    }
