"""Chapter 2 in motion: two clocks, tiles that read strips again, and a chain of passes.

Each moment is a state of `lightspeed_models.simulators.traffic`.
"""

import functools

from lightspeed import roofline
from lightspeed.catalog import accelerator
from lightspeed_course.explorers.measured_machines import hardware as hardware_of
from lightspeed_course.explorers.menus import machines
from lightspeed_models.simulators.traffic import chain, overlapped, reads_of_strips, tile_order
from lightspeed_show import (
    Axis,
    Bars,
    Boxes,
    Chart,
    Choice,
    Formula,
    Line,
    LogSlider,
    Play,
    Rule,
    Slider,
    Text,
    Toggle,
    View,
    explorer,
    si,
)

SIDE = 8192  # D and F of the matmul on two clocks
SLICES = 24  # moments of it
BLOCKS = 4  # of an array in the chain of passes
ROWS = ("bytes", "FLOPs")
HERE = "h100_sxm"  # whose ridge and bandwidth the other two pictures name


# ---------------------------------------------------------------- two clocks


@functools.lru_cache(maxsize=64)
def clocks(hardware, batch, pieces):
    """Return (bytes, FLOPs, `TimeBounds`, pieces) of a matmul of this batch."""
    machine = hardware_of(hardware)
    flops, size = (law(batch, SIDE, SIDE) for law in (roofline.matmul_flops, roofline.matmul_bytes))
    bounds = roofline.time_bounds(flops, size, machine.bf16, machine.hbm_bandwidth)
    return size, flops, bounds, overlapped(pieces, float(bounds.comms), float(bounds.math))


def clocks_view(hardware, batch, pieces, moment):
    """Show a matmul's progress at a moment: pieces transferred, and pieces computed."""
    size, flops, bounds, run = clocks(hardware, batch, pieces)
    time = run[-1].ends * moment / SLICES
    loads = [clipped(p.loads, p.loaded, time) for p in run]
    sums = [clipped(p.begins, p.ends, time) for p in run]
    shares = [
        sum(end - start for start, end in spans) / whole
        for spans, whole in ((loads, bounds.comms), (sums, bounds.math))
    ]
    idle = [1 - s * whole / time if time else 0.0
            for s, whole in zip(shares, (bounds.comms, bounds.math), strict=True)]  # fmt: skip
    values = {
        "time": f"{si(time, 's')} of {si(run[-1].ends, 's')}",
        "moved": f"{si(shares[0] * size, 'byte')} of {si(size, 'byte')}",
        "computed": f"{si(shares[1] * flops, 'FLOP')} of {si(flops, 'FLOP')}",
        "memory idle so far": si(max(idle[0], 0.0), "%", 2),
        "tensor cores idle so far": si(max(idle[1], 0.0), "%", 2),
    }
    words = clocks_verdict(bounds, pieces, run, time, idle)
    machine = hardware_of(hardware)
    law = Formula(
        "time if all overlaps",
        "max(bytes / bandwidth, FLOPs / peak)",
        {
            "bytes": (size, "byte"),
            "bandwidth": (machine.hbm_bandwidth, "byte/s"),
            "FLOPs": (flops, "FLOP"),
            "peak": (machine.bf16, "FLOP/s"),
        },
        (bounds.lower, "s"),
    )
    chart = clocks_chart(bounds, loads, sums, time)
    return View(chart, words, values, SLICES + 1, law, opens=SLICES // 2)


def clipped(start, end, time):
    return start, min(end, max(start, time))


def clocks_verdict(bounds, pieces, run, time, idle):
    slower, other = ("FLOPs", "memory") if bounds.compute_bound else ("bytes", "tensor cores")
    if time == 0:
        return (
            f"A matmul in {pieces} piece{'s' * (pieces > 1)}. A piece is computed when its bytes"
            " are there. Press play, or step."
        )
    if time < run[-1].ends:
        waits = idle[0] if bounds.compute_bound else idle[1]
        return f"So far the {other} stood idle {si(max(waits, 0.0), '%', 2)} of the time."
    over = si(run[-1].ends / bounds.lower - 1, "%", 2)
    return (
        f"Done. The clock of the {slower} decided: alone it takes {si(bounds.lower, 's')}. This"
        f" took {over} longer, since the first piece has to arrive and the last to be computed."
    )


def clocks_chart(bounds, loads, sums, time):
    marks = []
    for row, spans, label, color in (
        (ROWS[0], loads, "pieces that move", "blue"),
        (ROWS[1], sums, "pieces that are computed", "orange"),
    ):
        starts, ends = zip(*spans, strict=True)
        names = [str(i + 1) if end > start else "" for i, (start, end) in enumerate(spans)]
        keys = [f"{row}{i}" for i in range(len(spans))]
        marks.append(Bars([row] * len(spans), ends, starts, label, names, color, 0.5, keys))
    marks.append(Rule(x=bounds.lower, label="all overlaps"))
    if time > 0:
        marks.append(Rule(x=time, dash=False))
    return Chart(
        Axis("time; the right edge: nothing overlaps", "s", domain=(0, bounds.upper)),
        Axis(scale="category", categories=ROWS),
        marks,
        height=250,
    )


def explore_two_clocks():
    """Bytes and FLOPs of a matmul, on two clocks."""
    return explorer(
        clocks_view,
        [
            Choice("hardware", "hardware", machines("bf16", "hbm_bandwidth"), HERE),
            LogSlider("batch", "B", 1, 4096, 64, unit="token", base=2),
            LogSlider("pieces", "pieces", 1, 16, 8, base=2),
            Play("moment", "part", SLICES, text=lambda i: f"{i} of {SLICES}"),
        ],
        caption=(
            f"A matmul of B tokens with a weight matrix of {SIDE:,} by {SIDE:,} in bf16. Blank"
            " space is a part of the chip that waits."
        ),
        alt=(
            "Two rows over time. Above, the pieces of the operands arrive one after the other;"
            " below, each is computed when it is there. The row of the faster clock has gaps."
        ),
    )


# ---------------------------------------------------------------- tiles


LEFT, RIGHT, FOOT, MIDDLE, TOP = (0.6, 6.6), (9.2, 15.2), 0.3, 5.4, 6.2


def tiles_view(side, across, moment):
    """X, Y and their product after some tiles: what was read, and how often."""
    tile, all_tiles = side // across, tile_order(across, across)
    rows, columns = reads_of_strips(across, across, moment)
    strip = 2 * tile * side  # bytes in bf16, as all laws here count
    reads, writes = (sum(rows) + sum(columns)) * strip, moment * 2 * tile * tile
    once = roofline.matmul_bytes(side, side, side)
    values = {
        "tile": f"{moment} of {len(all_tiles)}",
        "side of a tile": f"{tile:,}",
        "bytes read": si(reads, "byte"),
        "bytes written": si(writes, "byte"),
        "if each matrix moved once": si(once, "byte"),
        "FLOP/byte so far": si(
            moment * 2 * tile * tile * side / (reads + writes) if moment else 0.0
        ),
    }
    words = tiles_verdict(side, across, moment, rows, columns, reads + writes, once)
    law = Formula(
        "bytes moved in all",
        "(2 * tiles_across + 1) * a_matrix",
        {"tiles_across": (across, ""), "a_matrix": (2 * side * side, "byte")},
        (roofline.tiled_matmul_bytes(side, side, side, tile, tile), "byte"),
    )
    chart = tiles_chart(across, moment, rows, columns)
    second = across + min(across, 2)  # the second tile of the second row
    return View(chart, words, values, len(all_tiles) + 1, law, opens=min(second, len(all_tiles)))


def tiles_verdict(side, across, moment, rows, columns, traffic, once):
    if moment == 0:
        return (
            f"The product is made in {across * across} tile{'s' * (across > 1)}. Each needs a strip"
            " of X and a strip of Y. Press play, or step."
        )
    row, column = tile_order(across, across)[moment - 1]
    if moment < across * across:
        return (
            f"This tile has read strip {row + 1} of X for the {ordinal(rows[row])} time, and strip"
            f" {column + 1} of Y for the {ordinal(columns[column])}."
        )
    chip = accelerator(HERE)
    intensity = roofline.matmul_flops(side, side, side) / traffic
    ridge = roofline.ridge_point(chip.bf16, chip.hbm_bandwidth)
    where = "above" if intensity >= ridge else "below"
    times = "once" if across == 1 else f"{across} times"
    return (
        f"Done: X and Y have crossed the bus {times}, {si(traffic, 'byte')} in all"
        f"{'' if across == 1 else ' in place of ' + si(once, 'byte')}. That is"
        f" {si(intensity, 'FLOP/byte')}, {where} the ridge of the {chip.name} without its cache."
    )


def ordinal(n):
    return f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n, 'th') }"


def tiles_chart(across, moment, rows, columns):
    now = tile_order(across, across)[moment - 1] if moment else (None, None)
    high, wide = (MIDDLE - FOOT) / across, (RIGHT[1] - RIGHT[0]) / across
    deep = 9.6 - TOP
    boxes = {"grey": [], "blue": [], "orange": [], "green": []}
    for i in range(across):
        y = MIDDLE - (i + 1) * high
        color = "orange" if i == now[0] else "blue" if rows[i] else "grey"
        boxes[color].append((*LEFT, y, y + high, f"read {rows[i]}×" if rows[i] else ""))
        x = RIGHT[0] + i * wide
        color = "orange" if i == now[1] else "blue" if columns[i] else "grey"
        boxes[color].append((x, x + wide, TOP, TOP + deep, f"{columns[i]}×" if columns[i] else ""))
    for k, (i, j) in enumerate(tile_order(across, across)):
        x, y = RIGHT[0] + j * wide, MIDDLE - (i + 1) * high
        color = "orange" if k == moment - 1 else "green" if k < moment else "grey"
        boxes[color].append((x, x + wide, y, y + high, ""))
    key = {"grey": "", "blue": "read before", "orange": "read now, for this tile", "green": "done"}
    marks = []
    for color, tiles in boxes.items():
        *sides, labels = zip(*(tiles or [(0, 0, 0, 0, "")]), strict=True)
        marks.append(Boxes(*sides, key[color], labels, color, soft=color == "grey"))
    x = RIGHT[0] - 0.3
    names = (LEFT[0], MIDDLE + 0.45, "X"), (x, TOP + deep - 0.3, "Y"), (x, FOOT + 0.3, "XY")
    marks += [Text(x, y, t, anchor="start" if t == "X" else "end") for x, y, t in names]
    return bare_chart(marks, 350)


def bare_chart(marks, height):
    return Chart(Axis(domain=(0, 16)), Axis(domain=(0, 10)), marks, height=height, bare=True)


def explore_tiles():
    """A matmul in tiles, each of which reads its strips."""
    return explorer(
        tiles_view,
        [
            LogSlider("side", "side of the matrices", 512, 4096, 1024, base=2),
            Choice("across", "tiles across", [1, 2, 4, 8], 4),
            Play("moment", "tile", 64),
        ],
        caption="X times Y, tile by tile, in bf16. Numbers say how often a strip has been read.",
        alt=(
            "Three matrices: X on the left, Y above, their product where rows of X and columns of Y"
            " meet. For each tile of the product a strip of X and a strip of Y light up; the count"
            " of reads grows on each strip."
        ),
    )


# ---------------------------------------------------------------- fusion


@functools.lru_cache(maxsize=16)
def events(passes, fused):
    return chain(passes, BLOCKS, fused)


def fusion_view(passes, fused, elements, moment):
    """An array of four blocks on its way through the units and back, after some events."""
    all_events = events(passes, fused)
    past = all_events[:moment]
    block = 2 * elements / BLOCKS  # bytes, in bf16
    traffic = sum(e.kind != "apply" for e in past) * block
    flops = sum(e.kind == "apply" for e in past) * elements / BLOCKS
    machine = accelerator(HERE)
    values = {
        "step": f"{moment} of {len(all_events)}",
        "moved": si(traffic, "byte"),
        "computed": si(flops, "FLOP"),
        "FLOP/byte so far": si(flops / traffic if traffic else 0.0),
        "time of the bytes": si(traffic / machine.hbm_bandwidth, "s"),
        "time of the FLOPs": si(flops / machine.fp32, "s"),
    }
    words = fusion_verdict(passes, fused, moment, traffic, flops)
    kernels, array = 1 if fused else passes, 2 * elements
    bounds = roofline.time_bounds(
        passes * elements, kernels * 2 * array, machine.fp32, machine.hbm_bandwidth
    )
    law = Formula(
        "time if all overlaps",
        "max(2 * kernels * array / bandwidth, passes * FLOPs_of_a_pass / peak)",
        {
            "kernels": (kernels, ""),
            "array": (array, "byte"),
            "bandwidth": (machine.hbm_bandwidth, "byte/s"),
            "passes": (passes, ""),
            "FLOPs_of_a_pass": (elements, "FLOP"),
            "peak": (machine.fp32, "FLOP/s"),
        },
        (bounds.lower, "s"),
    )
    chart, last = fusion_chart(passes, fused, moment), len(all_events)
    return View(chart, words, values, last + 1, law, opens=last // 2)


def fusion_verdict(passes, fused, moment, traffic, flops):
    all_events = events(passes, fused)
    if moment == 0:
        how = "one kernel for all of them" if fused else "a kernel for each"
        return f"{passes} passes over an array in memory: {how}. Press play, or step."
    if moment < len(all_events):
        event = all_events[moment - 1]
        name = f"block {event.block + 1}"
        if event.kind == "read":
            return f"Memory to units: {name} is read. The units wait for it."
        if event.kind == "apply":
            return f"Pass {event.array} is applied to {name}. One operation for each number."
        return f"Units to memory: {name} is written, after pass {event.array}."
    ways = 1 if fused else passes
    each = "once" if ways == 1 else f"{ways} times"
    return (
        f"Done. Every number was read {each} and written {each}: {si(traffic, 'byte')} for"
        f" {si(flops, 'FLOP')}, or {si(flops / traffic, 'FLOP/byte')}."
    )


def fusion_chart(passes, fused, moment):
    """Memory on the left with an array a row, units on the right, a block in them."""
    all_events = events(passes, fused)
    rows = passes + 1
    step = 8.4 / 5  # room for four passes, whatever their number

    def slot(array, block):
        top = 8.6 - array * step
        return 0.6 + 2.1 * block, 2.6 + 2.1 * block, top - 0.9, top

    rows_in_memory = {0} | ({passes} if fused else set(range(1, rows)))
    units = 12.2, 14.4, 4.2, 5.8
    marks = [
        Boxes([0.3], [9.2], [0.1], [9.7], labels=["memory"], color="grey", soft=True),
        Boxes([11.4], [15.2], [2.6], [7.4], labels=["units"], color="grey", soft=True),
        Line((9.4, 11.2), (5.6, 5.6), color="grey", arrow=True),
        Line((11.2, 9.4), (4.4, 4.4), color="grey", arrow=True),
    ]
    there = {(0, block) for block in range(BLOCKS)}
    there |= {(e.array, e.block) for e in all_events[: max(moment - 1, 0)] if e.kind == "write"}
    slots = [slot(a, b) for a in sorted(rows_in_memory) for b in range(BLOCKS)]
    marks.append(Boxes(*zip(*slots, strict=True), color="grey", soft=True))
    boxes = [(*slot(a, b), name_of(a), f"{a}-{b}") for a, b in sorted(there)]
    inside = []
    # The way of each event has a key: at its end once it is over, at its start, unseen, before.
    if moment:
        last = all_events[moment - 1]
        if last.kind == "write":
            boxes.append((*slot(last.array, last.block), name_of(last.array), f"way {moment}"))
        else:
            inside.append((*units, name_of(last.array), f"way {moment}"))
    if moment < len(all_events):
        following = all_events[moment]
        if following.kind == "read":
            at = slot(following.array, following.block)
            boxes.append((*at, "", f"way {moment + 1}"))
        else:
            inside.append((*units, "", f"way {moment + 1}"))
    *sides, labels, keys = zip(*boxes, strict=True)
    marks.append(Boxes(*sides, "in memory", labels, "blue", keys=keys))
    *sides, labels, keys = zip(*(inside or [(0, 0, 0, 0, "", "")]), strict=True)
    marks.append(Boxes(*sides, "in the units", labels, "orange", keys=keys))
    return bare_chart(marks, 360)


def name_of(array):
    return f"after {array}" if array else "input"


def explore_fusion():
    """A chain of passes over an array, one kernel a pass or one for all."""
    return explorer(
        fusion_view,
        [
            Slider("passes", "passes", 1, 4, 3),
            Toggle("fused", "fused into one kernel"),
            LogSlider("elements", "numbers in the array", 2**20, 2**32, 2**28, base=4, whole=True),
            Play("moment", "step", 3 * 4 * BLOCKS),
        ],
        caption=(
            "Blocks of an array in bf16 go to the units and back. Times are those of an"
            f" {accelerator(HERE).name}."
        ),
        alt=(
            "Memory on the left, with a row of blocks for each array, units on the right. Blocks"
            " move to the units, are changed, and move back; a fused kernel has no rows in between."
        ),
    )
