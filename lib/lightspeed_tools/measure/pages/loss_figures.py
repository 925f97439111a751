"""What chapter 8 shows of its own measurement: goodput over a line that loses packets, beside the
laws. Each function says in words what a record does not have (see `scaling_figures`).
"""

from typing import Any

import numpy as np

from lightspeed import networks
from lightspeed_show import Axis, Chart, Line, figure, si, table
from lightspeed_tools.measure.instruments import lossy
from lightspeed_tools.measure.pages.network_figures import NOISY, _marked
from lightspeed_tools.measure.pages.record_tables import about
from lightspeed_tools.measure.pages.scaling_figures import _or_words

LOOKS = {"selective_repeat": ("green", "circle"), "go_back_n": ("orange", "square")}


@_or_words
def loss_figure(shown, found):
    """Goodput over the loss that was counted: measured points and the laws as lines."""
    rows, marks = lossy.rows(shown), []
    most = 1.15 * max(max(r.counted for r in rows), 0.01)
    grid = np.linspace(0, most, 60)
    laws: dict[str, Any] = {
        "selective_repeat": networks.selective_repeat(grid),
        "go_back_n": networks.go_back_n(grid, lossy.WINDOW),
    }
    for scheme, (color, marker) in LOOKS.items():
        mine = [(r.counted, r.measured, r.steady) for r in rows if r.scheme == scheme]
        marks += [Line(grid, laws[scheme], scheme.replace("_", " "), color)]
        marks += _marked(mine, color, marker, "")
    off = {r.scheme: [] for r in rows}
    for r in rows:
        off[r.scheme].append(abs(r.measured / r.law - 1))
    figure(
        Chart(
            Axis("share of packets lost", "%", domain=(0, most)),
            Axis("goodput, share of the line", "%", domain=(0, 1.1)),
            marks,
            height=300,
        ),
        caption=f"Points are measured, lines are the laws. {NOISY} {about(shown)}",
        alt=(
            "Goodput over loss. The line of selective repeat falls to"
            f" {laws['selective_repeat'][-1]:.0%}, that of go back n to"
            f" {laws['go_back_n'][-1]:.0%}. Off their line are the points of "
            + " and of ".join(f"{s.replace('_', ' ')} by {max(x):.0%}" for s, x in off.items())
            + " at most."
        ),
    )


@_or_words
def loss_table(shown, found):
    """Goodput measured beside the law, for each scheme and loss."""
    rows = [
        [
            r.scheme.replace("_", " "),
            si(r.loss, "%"),
            si(r.counted, "%"),
            si(r.measured, "%"),
            si(r.law, "%"),
            f"{r.measured / r.law - 1:+.1%}" if r.steady else "too noisy to say",
        ]
        for r in lossy.rows(shown)
    ]
    heads = ["scheme", "loss asked for", "counted", "goodput", "the law", "measured over law"]
    table(rows, heads, f"{lossy.PACKETS} packets a message. {about(shown)}")
