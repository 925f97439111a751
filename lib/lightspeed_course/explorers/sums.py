"""Chapter 6: an all-reduce as its two halves, in the colours of who gave what."""

from lightspeed.collectives import busbw_factor
from lightspeed_show import Axis, Boxes, Chart, Play, Text, View, explorer, si

COLORS = ("blue", "orange", "green", "purple")  # one for each GPU's gradient
GPUS = len(COLORS)
LEFT, HIGH, GAP = 1.6, 2.1, 0.3  # the picture, in units of its own
MOMENTS = ("before", "after the reduce-scatter", "after the all-gather")
SAYS = (
    "Each GPU has a whole gradient, but of its own samples alone: one colour a row.",
    "A reduce-scatter: each GPU has collected one quarter from everybody and added it up. No two"
    " have the same quarter.",
    "An all-gather: the finished quarters have been handed round, and each row is the whole sum.",
)


def pieces(moment):
    """(holder, quarter, giver) of each part that a GPU holds of the sum."""
    every = [(k, g) for k in range(GPUS) for g in range(GPUS)]
    if moment == 0:
        return [(g, k, g) for k, g in every]
    holders = {1: lambda k: (k,), 2: lambda k: range(GPUS)}[moment]
    return [(holder, k, g) for k, g in every for holder in holders(k)]


def place(holder, quarter, giver, whole):
    """(x1, x2, y1, y2): a whole block before the sum, then one of its stripes."""
    wide = 2.0
    x, top = LEFT + quarter * wide, (GPUS - holder) * HIGH
    high = HIGH - GAP
    stripe = 0 if whole else giver
    size = high if whole else high / GPUS
    return x + 0.05, x + wide - 0.05, top - (stripe + 1) * size, top - stripe * size


def view(moment):
    """Show whose gradients each GPU holds, quarter by quarter."""
    boxes_of = {color: [] for color in COLORS}
    for holder, quarter, giver in pieces(moment):
        here = place(holder, quarter, giver, moment == 0)
        mine = boxes_of[COLORS[giver]]
        mine.append((*here, f"{quarter}-{giver}-{quarter if moment < 2 else holder}"))
        if moment == 1:  # what goes round next lies on it unseen
            others = [other for other in range(GPUS) if other != quarter]
            mine += [(*here, f"{quarter}-{giver}-{other}") for other in others]
    every = [(holder, quarter) for holder in range(GPUS) for quarter in range(GPUS)]
    frames = [place(holder, quarter, 0, True) for holder, quarter in every]
    marks = [Boxes(*zip(*frames, strict=True), color="grey", soft=True)]
    for giver, (hue, boxes) in enumerate(boxes_of.items()):
        *sides, keys = zip(*boxes, strict=True)
        marks.append(Boxes(*sides, f"gradient of GPU {giver}", color=hue, keys=keys))
    rows = [Text(0.1, (GPUS - g - 0.45) * HIGH, f"GPU {g}", "grey", "start") for g in range(GPUS)]
    chart = Chart(
        Axis(domain=(0, 10)), Axis(domain=(0, GPUS * HIGH + 0.1)), [*marks, *rows],
        height=300, bare=True,
    )  # fmt: skip
    traffic = busbw_factor("all_reduce", GPUS) * moment / 2
    facts = {
        "sent by each GPU so far": f"{si(traffic)} of the gradients",
        "held of the sum": ("nothing", "a quarter", "all of it")[moment],
    }
    return View(chart, SAYS[moment], facts, len(MOMENTS), opens=1)


def explore_sum():
    """A reduce-scatter and an all-gather, which together are an all-reduce."""
    return explorer(
        view,
        [Play("moment", "moment", len(MOMENTS) - 1, text=MOMENTS.__getitem__)],
        caption=(
            "A column is a quarter of the gradient, a colour is the GPU whose samples it comes"
            " from. Four stripes are a finished sum."
        ),
        alt=(
            "Four GPUs by four quarters of a gradient. First each row has one colour; then each GPU"
            " holds one quarter with the stripes of all four colours, on the diagonal; then each"
            " block has all four stripes."
        ),
    )
