"""Chapter 6: an MLP on two GPUs, cut either way, and what the GPUs have to tell each other."""

from lightspeed.catalog import find
from lightspeed.parallel import tensor_parallel_bytes
from lightspeed_models.llm import decoder
from lightspeed_show import Axis, Boxes, Chart, Choice, Line, Play, Text, View, explorer, si

KEY, TOKENS, WAYS = "llama3_70b", 2048, 2
MODEL = decoder(KEY)
COLORS = ("blue", "orange")  # of a GPU
FIRST, OTHER = "columns, then rows", "rows, then columns"
WHOLE = (0.0, 1.0)
HALVES = ((0.0, 0.5), (0.5, 1.0))
# name: left edge, width, height, shape; t tokens, width D, hidden width F.
THINGS = {
    "X": (0.3, 1.5, 1.2, "t × D"),
    "up": (2.5, 2.6, 1.9, "D × F"),
    "hidden": (6.0, 2.6, 1.2, "t × F"),
    "down": (9.5, 1.5, 2.7, "F × D"),
    "result": (11.9, 1.5, 1.2, "t × D"),
    "sum": (15.2, 1.5, 1.2, "t × D"),
}
LANES = (6.6, 2.9)  # the middle of each GPU's row


def owned(cut, gpu):
    """Return thing: (columns, rows) that a GPU holds of it, as shares; rows count from the top."""
    mine, all_of_it = HALVES[gpu], (WHOLE, WHOLE)
    if cut == FIRST:
        return {
            "X": all_of_it, "up": (mine, WHOLE), "hidden": (mine, WHOLE), "down": (WHOLE, mine),
            "result": all_of_it, "sum": all_of_it,
        }  # fmt: skip
    return {
        "X": (mine, WHOLE), "up": (WHOLE, mine), "hidden": all_of_it, "down": (mine, WHOLE),
        "result": (mine, WHOLE), "sum": all_of_it,
    }  # fmt: skip


SAYS = {
    FIRST: (
        "Both GPUs have the input X. Each has half of the columns of up and half of the rows of"
        " down.",
        "Half of the columns of up make half of the hidden columns, and make them complete.",
        "ReLU works on each number by itself, so neither GPU needs the other.",
        "Half of the hidden columns meet half of the rows of down: out comes a part of every"
        " number.",
        "One all-reduce adds the two parts. It is the first and only time that they talk.",
    ),
    OTHER: (
        "Now each GPU has half of the rows of up and half of the columns of down.",
        "Half of X's columns meet half of the rows of up: a part of every hidden number, and a"
        " part is no use to ReLU.",
        "So they have to add the parts here already, on the widest tensor of the block.",
        "Half of the columns of down make half of the columns of the result, complete.",
        "And an all-gather puts the columns side by side. They have talked twice.",
    ),
}
ORDER = ("X", "up", "down", "hidden", "result", "sum")
SEEN = (3, 4, 4, 5, 6)  # of ORDER, at each moment


def exchanged(cut, moment):
    """(exchanges, bytes that a GPU sent) so far in the forward pass."""
    of_width, of_hidden = (
        tensor_parallel_bytes(TOKENS, wide, WAYS) / 4 for wide in (MODEL.width, MODEL.mlp.hidden)
    )
    if cut == FIRST:
        return int(moment >= 4), of_width * (moment >= 4)
    # A gather is the second half of an all-reduce.
    return (moment >= 2) + (moment >= 4), of_hidden * (moment >= 2) + of_width / 2 * (moment >= 4)


def part(thing, lane, columns, rows):
    left, wide, high, _ = THINGS[thing]
    top = lane + high / 2
    return (left + columns[0] * wide, left + columns[1] * wide,
            top - rows[1] * high, top - rows[0] * high)  # fmt: skip


def mixed(cut, thing, giver, moment):
    """Return (columns, rows) that both GPUs received of `giver`'s result."""
    if thing == "sum":
        return (WHOLE, HALVES[giver]) if cut == FIRST else (HALVES[giver], WHOLE)
    if cut == OTHER and thing == "hidden" and moment >= 2:
        return WHOLE, HALVES[giver]
    return None


def view(cut, moment):
    """Which part of each matrix each GPU has, as far as the pass has come."""
    things = ORDER[: SEEN[moment]]
    frames = [part(thing, lane, WHOLE, WHOLE) for lane in LANES for thing in things]
    marks = [Boxes(*zip(*frames, strict=True), color="grey", soft=True)]
    for giver, color in enumerate(COLORS):
        boxes = []
        for gpu, lane in enumerate(LANES):
            for thing in things:
                if share := mixed(cut, thing, giver, moment):
                    boxes.append(part(thing, lane, *share))
                elif gpu == giver:
                    boxes.append(part(thing, lane, *owned(cut, gpu)[thing]))
        marks.append(Boxes(*zip(*boxes, strict=True), f"from GPU {giver}", color=color))
    for thing in things:
        left, wide, _, shape = THINGS[thing]
        name = {"sum": "the result", "result": "a part"}.get(thing, thing)
        if thing == "result" and cut == OTHER:
            name = "its columns"
        marks += [Text(left + wide / 2, 0.75, name), Text(left + wide / 2, 0.15, shape, "grey")]
    signs = {2.15: ("×", "X"), 5.55: ("→", "hidden"), 9.05: ("×", "X"), 11.45: ("→", "result")}
    marks += [Text(x, lane, sign) for x, (sign, needs) in signs.items() for lane in LANES
              if needs in things]  # fmt: skip
    if cut == OTHER and moment >= 2:
        marks += exchange(7.3, "all-reduce", LANES[0] - 0.75, LANES[1] + 0.75)
    if moment >= 4:
        name = "all-reduce" if cut == FIRST else "all-gather"
        marks += exchange(14.3, name, *LANES)
    count, traffic = exchanged(cut, moment)
    facts = {
        "exchanges so far": si(count),
        "sent by each GPU": si(traffic, "byte") if traffic else "nothing",
    }
    chart = Chart(Axis(domain=(0, 17)), Axis(domain=(0, 8.6)), marks, height=300, bare=True)
    return View(chart, SAYS[cut][moment], facts, len(SEEN), opens=2)


def exchange(x, name, high, low):
    """A double arrow between the lanes."""
    middle = (high + low) / 2
    return [
        Line([x, x], [middle + 0.35, high], color="black", arrow=True),
        Line([x, x], [middle - 0.35, low], color="black", arrow=True),
        Text(x, middle, name),
    ]


def explore_split_mlp():
    """An MLP on two GPUs, from left to right."""
    return explorer(
        view,
        [Choice("cut", "cut by", [FIRST, OTHER], OTHER), Play("moment", "step", len(SEEN) - 1)],
        caption=(
            "An MLP on two GPUs, a row each; two colours in a box are what both made. Under each"
            " matrix stands its whole shape: t tokens, the model's width D, the hidden width F. The"
            f" bytes are for {si(TOKENS, 'token')} of {find(KEY).name}."
        ),
        alt=(
            "Two rows, one for each GPU. From left to right the input, a part of the first matrix,"
            " hidden columns, a part of the second matrix and a part of the result; an arrow"
            " between the rows where the parts are put together."
        ),
    )
