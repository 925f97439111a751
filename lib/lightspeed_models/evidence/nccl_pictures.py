"""Pictures of chapter 7: the fitted model of NCCL beside the rows that were measured."""

import numpy as np

from lightspeed.collectives import algbw, busbw
from lightspeed_models.nccl_fit import measurements, predict, residuals
from lightspeed_show.chart import Axis, Chart, Line, Points, Rule
from lightspeed_show.format import si

NODES = (3, 4, 6, 8, 12, 16, 24, 32, 64, 125)
SIZES = {2**25: "purple", 2**27: "orange", 2**30: "green", 2**33: "blue"}
SERIES = {
    "a100_sweep": ("A100", "blue"),
    "h200_sweep": ("H200", "orange"),
    "p6_four_nodes": ("B200", "green"),
    "p5_alltoall": ("all-to-all", "purple"),
}


def _rate(row):
    return busbw(row.collective, row.n, algbw(row.size, row.time))


def _marker(fitted):
    return "circle" if fitted else "cross"


def busbw_over_nodes(line, question):
    """All-reduces of p5 nodes: a curve of the model for each size, the rows on it, the line rate,
    and the (nodes, busbw) of the question.
    """
    rows = [r for r in measurements() if r.series == "p5_all_reduce" and r.nodes > 2]
    marks: list = [Rule(y=line, label="line rate")]
    for size, color in SIZES.items():
        model = [predict("all_reduce", size, 8 * k, k, "p5").busbw for k in NODES]
        marks.append(Line(NODES, model, si(float(size), "byte"), color))
        for fitted in (True, False):
            rates = {r.nodes: _rate(r) for r in rows if (r.size, r.fitted) == (size, fitted)}
            marks.append(
                Points(list(rates), list(rates.values()), color=color, marker=_marker(fitted))
            )
    where, star = question
    marks.append(
        Points([where], [star], labels=["the question"], color="black", marker="star", size=8)
    )
    return Chart(
        Axis("nodes of 8 H100", "", "log", ticks=(4, 8, 16, 32, 64, 125)),
        Axis("busbw", "byte/s", domain=(0, 420e9)),
        marks,
    )


def busbw_over_size():
    """Four machines: a curve of the model for each, and the rows on it."""
    marks: list = []
    for series, (name, color) in SERIES.items():
        nodes = (32,) if series == "p5_alltoall" else (1, 4, 32)
        rows = [r for r in measurements() if r.series == series and r.nodes in nodes]
        rows.sort(key=lambda r: r.size)
        model = [
            predict(r.collective, r.size, r.n, r.nodes, r.fabric, r.path * (r.nodes == 1)).busbw
            for r in rows
        ]
        sizes = [r.size for r in rows]
        marks.append(Line(sizes, model, name, color))
        marks.append(
            Points(sizes, [_rate(r) for r in rows], color=color, marker=_marker(rows[0].fitted))
        )
    return Chart(
        Axis("message", "byte", "log", domain=(2e4, 1e11)), Axis("busbw", "byte/s", "log"), marks
    )


def residual_rows(names, regime):
    """The error of each row, in a band for each of these regimes; `regime(row)` names a row's.
    Inside a band the height is drawn at random.
    """
    place = {name: i for i, name in enumerate(names)}
    rng = np.random.default_rng(1)
    marks: list = [Rule(x=0, label="model is right")]
    for fitted, label, color in ((True, "fitted", "grey"), (False, "tested", "orange")):
        cloud = [
            (error, place[regime(row)] + rng.uniform(-0.3, 0.3))
            for row, error in residuals()
            if row.fitted == fitted
        ]
        errors, places = zip(*cloud, strict=True)
        marks.append(
            Points(errors, places, label=label, color=color, marker=_marker(fitted), size=3)
        )
    return Chart(
        Axis("model over measured time, minus one", "%", domain=(-1, 1.3)),
        Axis(domain=(len(names) - 0.5, -0.5), ticks=[(i, name) for name, i in place.items()]),
        marks,
        height=330,
    )
