"""Chapter 6: layer after layer arrives and is computed, and the slower of the two sets the pace."""

import math

from lightspeed.catalog import accelerator, link
from lightspeed.parallel import data_parallel_tokens
from lightspeed.roofline import time_bounds
from lightspeed_models.llm import decoder
from lightspeed_show import (
    Axis,
    Bars,
    Chart,
    Choice,
    Formula,
    LogSlider,
    Play,
    Points,
    Text,
    View,
    explorer,
    si,
)

GPU, MODEL = accelerator("h100_sxm"), decoder("llama3_70b")
LAYER = MODEL.matrices / MODEL.depth  # parameters; weights in two bytes
CHEAP, BETTER = (link(key).bandwidth for key in ("ethernet_100g", "infiniband_ndr"))
WAYS_IN = {  # name: how many links bring a part of each weight, and the rate of one
    f"eight ports of {CHEAP.printed}": (8, CHEAP),
    f"one port of {CHEAP.printed}": (1, CHEAP),
    f"eight ports of {BETTER.printed}": (8, BETTER),
    "NVLink alone": (1, GPU.link_bandwidth),
}
PLANNED = 2048  # tokens: the job's micro-batch, one sequence
WINDOW, SLICES = 5, 50  # arrivals in sight; moments of the play
ROWS = ("arriving", "computing")
LEGIBLE = 0.12  # of the window: a gap that has room for a word on a phone


def enough(way):
    """Tokens a GPU with which arithmetic lasts as long as the journey."""
    links, rate = WAYS_IN[way]
    return data_parallel_tokens(GPU.bf16, rate, links)


def clocks(tokens, way):
    """Seconds of arithmetic and of arrival of a layer in the forward pass, and their bounds."""
    links, rate = WAYS_IN[way]
    return time_bounds(2 * tokens * LAYER, 2 * LAYER, GPU.bf16, links * rate)


def spans(period, length, until):
    """(start, end) of what begins with each period and takes this long, as far as time has come."""
    starts = [k * period for k in range(math.ceil(until / period - 1e-9))]
    return [(start, min(start + length, until)) for start in starts]


def view(tokens, way, moment):
    """Layer after layer: the next one's weights arrive while this one is computed."""
    bounds, window = clocks(tokens, way), WINDOW * clocks(1, way).comms
    until = window * moment / SLICES
    rows = [spans(bounds.lower, length, until) for length in (bounds.comms, bounds.math)]
    share = bounds.math / bounds.lower
    facts = {
        "weights arrive in": si(bounds.comms, "s"),
        "arithmetic takes": si(bounds.math, "s"),
        "the GPU computes": f"{si(share, '%')} of the time",
        "tokens that would hide the journey": si(math.ceil(enough(way))),
    }
    links, rate = WAYS_IN[way]
    values = {
        "FLOPs": (2 * tokens * LAYER, "FLOP"),
        "peak": (GPU.bf16, "FLOP/s"),
        "bytes": (2 * LAYER, "byte"),
        "ports": (links, ""),
        "rate": (rate, "byte/s"),
    }
    paces = "max(FLOPs / peak, bytes / (ports * rate))"
    law = Formula("time of a layer", paces, values, (bounds.lower, "s"))
    chart = picture(rows, bounds, window)
    return View(chart, verdict(bounds, share, tokens, way), facts, SLICES + 1, law, opens=SLICES)


def verdict(bounds, share, tokens, way):
    if bounds.math < bounds.comms:
        return (
            f"The GPU computes a layer in {si(bounds.math, 's')}, then waits"
            f" {si(bounds.comms - bounds.math, 's')}, because the next one's weights take"
            f" {si(bounds.comms, 's')} to arrive. It rests {si(1 - share, '%', 2)} of the time."
        )
    spare = bounds.math - bounds.comms
    return (
        f"The GPU never waits: {si(tokens)} tokens keep it busy for {si(bounds.math, 's')}, and the"
        f" next layer has arrived after {si(bounds.comms, 's')}."
        + (
            f" Now the network rests {si(spare, 's')} a layer."
            if spare > 0.01 * bounds.math
            else ""
        )
    )


def picture(rows, bounds, window):
    """Two rows over time, a bar a layer. The dot at the end of the first arithmetic is pulled."""
    marks = []
    looks = (("weights of the next layer arrive", "amber"), ("this layer is computed", "blue"))
    for row, spans, (label, color), first in zip(ROWS, rows, looks, (2, 1), strict=True):
        starts, ends = zip(*(spans or [(0.0, 0.0)]), strict=True)
        names = [f"layer {first + k}" for k in range(len(starts))]
        keys = [f"{row} {name}" for name in names]
        marks.append(Bars([row] * len(starts), ends, starts, label, names, color, 0.6, keys))
        waits = [(end, start) for end, start in zip(ends, starts[1:], strict=False)
                 if start - end > LEGIBLE * window]  # fmt: skip
        marks += [Text((end + start) / 2, row, "waits", "grey") for end, start in waits]
    if bounds.math <= window:
        dot = Points([bounds.math], [ROWS[1]], size=7, color="black", drag=("tokens", None))
        marks.append(dot)
    time = Axis("time since layer 1 had arrived", "s", domain=(0, window))
    return Chart(time, Axis(scale="category", categories=ROWS), marks, height=210)


def explore_layer_clock():
    """Arithmetic and arrival of a layer, over time."""
    exact = [math.ceil(enough(way)) for way in WAYS_IN]
    return explorer(
        view,
        [
            LogSlider("tokens", "tokens a GPU", 256, 131072, PLANNED, base=2**0.25, whole=True,
                      include=exact),
            Choice("way", "weights come in by", list(WAYS_IN)),
            Play("moment", "time", SLICES, text=lambda m: f"{m} of {SLICES}"),
        ],
        caption=(
            f"{MODEL.depth} layers of {si(2 * LAYER, 'byte')} follow one another, here in the"
            " forward pass. Drag the dot: more tokens make the blue bars longer, and the amber ones"
            " stay."
        ),
        alt=(
            "Two rows over time. Above, bars for the weights of each layer as they arrive, one"
            " after another. Below, a bar for the arithmetic of each layer and a blank until the"
            " next layer is there."
        ),
    )  # fmt: skip
