"""Chapter 7: an all-reduce, round by round, as `lightspeed_models.simulators.allreduce` runs it."""

import functools
import math

from lightspeed.collectives import algbw, busbw, busbw_factor, in_network_time, tree_time
from lightspeed_models.simulators.allreduce import rounds, states
from lightspeed_show import (
    Axis,
    Boxes,
    Chart,
    Choice,
    Formula,
    Line,
    Play,
    Slider,
    Text,
    View,
    explorer,
    si,
)

NAMES = {"ring": "ring", "tree": "tree", "a switch that adds (SHARP)": "switch"}
MOST = 8  # GPUs
WIDE, HIGH = 12.0, 8.0  # the picture, in units of its own
BOX = (1.35, 1.25)  # a GPU in it


@functools.lru_cache(maxsize=64)
def run(algorithm, n):
    return states(algorithm, n)


def places(algorithm, n):
    """The middle of each node, the switch last."""
    if algorithm == "ring":
        turns = [2 * math.pi * rank / n for rank in range(n)]
        return [(WIDE / 2 - 5 * math.cos(t), HIGH / 2 - 0.2 + 2.9 * math.sin(t)) for t in turns]
    across = [(rank + 0.5) * WIDE / n for rank in range(n)]
    if algorithm == "switch":
        return [*((x, 1.2) for x in across), (WIDE / 2, 6.2)]
    # A GPU that hands over sooner is further down; nobody is above GPU 0.
    below = levels(n)
    depth = [below - (rank & -rank).bit_length() + 1 if rank else 0 for rank in range(n)]
    return [(x, 6.6 - 5.6 * d / below) for x, d in zip(across, depth, strict=True)]


def cell(algorithm, n, node, chunk, share):
    """(x1, x2, y1, y2) of the part of a chunk that is filled when a share of the GPUs is in it."""
    x, y = places(algorithm, n)[node]
    wide, high = BOX if node < n else (WIDE - 1, 1.25)
    chunks = n if algorithm == "ring" else 1
    left, low = x - wide / 2 + wide * chunk / chunks, y - high / 2
    return left, left + wide / chunks, low, low + high * share


def view(algorithm, ranks, moment):
    """Show how much of the sum each GPU holds after some rounds, and what has just arrived."""
    states, after = run(algorithm, ranks), rounds(algorithm, ranks)
    state, last = states[moment], len(states) - 1
    complete = sum(all(len(c) == ranks for c in row) for row in state.held[:ranks])
    facts = {
        "round": f"{moment} of {last}",
        "sent by the busiest GPU": f"{si(max(state.sent))} of its buffer",
        "received by the busiest GPU": f"{si(max(state.received))} of its buffer",
        "GPUs that just sent": si(len({s.source for s in state.arrived} - {ranks})),
        "GPUs with the whole sum": f"{complete} of {ranks}",
    }
    going = after[moment] if moment < last else ()
    before = states[max(moment - 1, 0)]
    chart = picture(algorithm, ranks, before, state, going)
    words = verdict(algorithm, ranks, moment, last, state)
    half = ranks - 1 if algorithm == "ring" else min(last, 2) if algorithm == "tree" else 1
    return View(chart, words, facts, last + 1, FORMULAS[algorithm](ranks), opens=half)


def share_sent(n):
    """What each GPU of a ring sends."""
    factor = busbw_factor("all_reduce", n)
    return Formula("sent, in buffers", "2 * (n - 1) / n", {"n": (n, "")}, (factor, ""))


def one_after_another(n):
    """How many whole buffers follow one another up a tree and down again."""
    return Formula(
        "buffers one after another",
        "2 * levels",
        {"levels": (levels(n), "")},
        (float(tree_time(1.0, n, 1.0)), ""),
    )


def printed_over_carried(n):
    """The busbw that nccl-tests prints for a switch that adds, over the rate of a link."""
    return Formula(
        "busbw over the rate of a link",
        "2 * (n - 1) / n / sent",
        {"n": (n, ""), "sent": (max(run("switch", n)[-1].sent), "")},
        (float(busbw("all_reduce", n, algbw(1.0, in_network_time(1.0, 1.0)))), ""),
    )


FORMULAS = {"ring": share_sent, "tree": one_after_another, "switch": printed_over_carried}


def levels(n):
    """Levels of a tree below its root GPU."""
    return (n - 1).bit_length()


def verdict(algorithm, n, moment, last, state):
    if moment == 0:
        how = f", cut into {n} chunks" if algorithm == "ring" else ""
        if algorithm == "tree":
            how = f". The tree has {'one level' if n == 2 else f'{levels(n)} levels'} below GPU 0"
        return f"Each GPU holds a buffer of its own numbers{how}. Press play, or step."
    if moment == last:
        outgoing, incoming = si(max(state.sent)), si(max(state.received))
        return (
            f"Done in {last} rounds: each GPU has the whole sum. The busiest GPU has sent"
            f" {outgoing} of a buffer and received {incoming}."
        )
    if algorithm == "switch":
        return "Up: every GPU has sent its whole buffer once, and the switch has added them all."
    adds = state.arrived[0].adds
    if algorithm == "tree":
        if not adds:
            return "Down: who has the sum passes it on, whole, and twice as many GPUs have it."
        idle = n - len({s.source for s in state.arrived})
        return (
            "Up: the GPUs below hand over their whole buffer, and those above add it to their own."
            f" {idle} of {n} GPUs sent nothing in this round."
        )
    if moment == n - 1:
        return (
            "Half of the rounds: each GPU has one finished chunk, and no two the same. A"
            " reduce-scatter ends here."
        )
    if adds:
        return "Each GPU sends one chunk to its neighbour, which adds its own. Every link is busy."
    return "An all-gather: the finished chunks go round, and nothing is added any more."


def picture(algorithm, n, before, state, going):
    """The nodes, each with its chunks as far as they are summed up."""
    at = places(algorithm, n)
    new = {(s.target, s.chunk): str(s) for s in state.arrived}
    boxes = {"part": [], "new": [], "sum": []}
    for node, row in enumerate(state.held):
        for chunk, inside in enumerate(row):
            here = (algorithm, n, node, chunk)
            kind = "sum" if len(inside) == n else "part"
            if (node, chunk) in new:
                # What was there stays to be seen until the new has arrived.
                boxes["part"].append((*cell(*here, len(before.held[node][chunk]) / n), ""))
                kind = "new"
            place, key = cell(*here, len(inside) / n), new.get((node, chunk), f"{node}-{chunk}")
            boxes[kind].append((*place, key))
            # What leaves next lies on it unseen: the next picture is drawn on its way from here.
            boxes[kind] += [(*place, str(s)) for s in going if (s.source, s.chunk) == here[2:]]
    looks = {
        "part": ("a part of the sum", "blue"),
        "new": ("just arrived", "orange"),
        "sum": ("the finished sum", "green"),
    }
    outlines = [outline(algorithm, n, node) for node in range(len(at))]
    marks = [Boxes(*zip(*outlines, strict=True), color="grey", soft=True)]
    marks += wires(algorithm, n, at)
    for kind, rows in boxes.items():
        label, color = looks[kind]
        *sides, keys = zip(*(rows or [(0, 0, 0, 0, "")]), strict=True)
        marks.append(Boxes(*sides, label=label, color=color, keys=keys))
    names = [f"GPU {rank}" for rank in range(n)] + ["switch"] * (len(at) - n)
    marks += [
        Text(x, y + BOX[1] / 2 + 0.32, name, "grey") for (x, y), name in zip(at, names, strict=True)
    ]
    return Chart(Axis(domain=(0, WIDE)), Axis(domain=(0, HIGH)), marks, height=380, bare=True)


def outline(algorithm, n, node):
    left, _, low, high = cell(algorithm, n, node, 0, 1)
    return left, 2 * places(algorithm, n)[node][0] - left, low, high


def wires(algorithm, n, at):
    """The links that an all-reduce uses, from edge to edge; in a tree and to a switch, upwards."""
    pairs = sorted({(s.source, s.target) for sends in rounds(algorithm, n) for s in sends})
    if algorithm == "ring":
        ends = [between(at[a], at[b], 0.03) for a, b in pairs]
        return [Line(*zip(*pair, strict=True), color="grey", arrow=True) for pair in ends]
    lines = []
    for a, b in pairs:
        (x, y), above = at[a], at[b]
        if y < above[1]:
            low = x, y + BOX[1] / 2 + 0.65  # over the name
            high = (x, above[1] - BOX[1] / 2) if b == n else between(low, above, 0.01)[1]
            lines.append(Line(*zip(low, high, strict=True), color="grey"))
    return lines


def between(a, b, gap):
    """Return the ends of the line between two GPUs' centres, excluding the GPUs themselves."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    share = gap + min(BOX[0] / 2 / (abs(dx) or 1e-9), BOX[1] / 2 / (abs(dy) or 1e-9))
    return (a[0] + share * dx, a[1] + share * dy), (b[0] - share * dx, b[1] - share * dy)


def explore_all_reduce():
    """Play an all-reduce of a few GPUs with three algorithms."""
    return played("ring", 4)


def explore_tree():
    """Explore the same picture, set to a tree."""
    return played("tree", 8)


def explore_switch():
    """Explore the same picture, set to a switch that adds."""
    return played("switch", 8)


def played(algorithm, ranks):
    """The explorer, opened at this algorithm and this number of GPUs."""
    return explorer(
        view,
        [
            Choice("algorithm", "algorithm", NAMES, algorithm),
            Slider("ranks", "GPUs", 2, MOST, ranks),
            Play("moment", "round", 2 * (MOST - 1)),
        ],
        caption=(
            "A box is the buffer of a GPU. It is filled as far as the numbers of all GPUs are"
            " added up in it."
        ),
        alt=(
            "Boxes for the buffers of GPUs, around a ring, in a tree or below a switch. Chunks move"
            " along the links and fill up until each of them is the finished sum."
        ),
    )
