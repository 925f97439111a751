"""Lesson 2.2 in motion: attention's blocks on their way between memory and the chip, as the
counting machine records them; and three clocks of one attention by block size.
"""

import functools
from dataclasses import dataclass
from itertools import chain

from lightspeed import kernels
from lightspeed.catalog import accelerator
from lightspeed_course.explorers.menus import machines
from lightspeed_course.puzzles import references
from lightspeed_models.simulators.kernels import Array, launch, tl
from lightspeed_show import (
    Axis,
    Bars,
    Boxes,
    Chart,
    Choice,
    Formula,
    LogSlider,
    Play,
    Text,
    Toggle,
    View,
    explorer,
    si,
)

HEADS, KV_HEADS, WIDTH = 8, 1, 128  # one of eight GPUs' share of a Llama 3 70B layer
KEYS, THREADS, REGISTERS = 64, 128, 255  # keys of a tile; threads of a program, and theirs at most
NAIVE, ONLINE = "three launches", "one, in tiles"
ROWS = ("DRAM", "L2", "tensor cores")


# ---------------------------------------------------------------- three clocks


@dataclass(frozen=True)
class Clocks:
    """Bytes and FLOPs of one attention, and the times of DRAM, L2 and arithmetic (s)."""

    dram: float
    l2: float
    flops: float
    times: tuple
    together: int
    registers: float
    programs: int

    @property
    def bound(self):
        """The longest of the three times (s)."""
        return max(self.times)

    @property
    def slowest(self):
        """The name of the longest time."""
        return ROWS[self.times.index(self.bound)]


def clocks(hardware, way, tokens, block, causal):
    """The `Clocks` of the job's layer. Keys and values of a head fit in L2 at these lengths."""
    chip, square = accelerator(hardware), 4 * HEADS * tokens**2 * WIDTH
    once = kernels.naive_attention_bytes(HEADS, KV_HEADS, tokens, WIDTH, crossings=0)
    if way == NAIVE:
        dram = l2 = kernels.naive_attention_bytes(HEADS, KV_HEADS, tokens, WIDTH)
        flops = square
    else:
        law = kernels.causal_block_bytes if causal else kernels.query_block_bytes
        dram, l2 = once, law(HEADS, tokens, WIDTH, block)
        blocks = -(-tokens // block)
        flops = square * (blocks + 1) / (2 * blocks) if causal else square
    times = dram / chip.hbm_bandwidth, l2 / l2_rate(chip), flops / chip.bf16
    registers = block * (KEYS + WIDTH) / THREADS
    shared = 2 * WIDTH * (block + 2 * KEYS)
    together = kernels.programs_per_sm(shared, min(registers, REGISTERS), THREADS)
    programs = HEADS * -(-tokens // block)
    return Clocks(dram, l2, flops, times, int(together), registers, programs)


def l2_rate(chip):
    """Return the measured L2 rate of a chip if known, else width times clock."""
    return chip.l2_bandwidth_measured if "l2_bandwidth_measured" in chip else chip.l2_bandwidth


def clocks_view(hardware, way, tokens, block, causal):
    """The three clocks of one attention, and what the block of queries takes of an SM; a block that
    spills has neither bytes nor times that these laws know.
    """
    chip, now = accelerator(hardware), clocks(hardware, way, tokens, block, causal)
    online = way == ONLINE
    spills = online and now.registers > REGISTERS
    facts = {
        "from and to DRAM": si(now.dram, "byte"),
        "between L2 and the SMs": si(now.l2, "byte") + (" or more" if not online else ""),
        "FLOP per byte of DRAM": si(now.flops / now.dram),
        "at most": si(now.flops / now.bound, "FLOP/s"),
        "programs on an SM at once": f"{now.together}" if online else "of three kernels",
    }
    if spills:
        facts = dict.fromkeys(facts, "–")
    facts["registers a thread, at least"] = f"{now.registers:.0f}" if online else "of three kernels"
    law = Formula(
        "time at least",
        "max(DRAM_bytes / DRAM, L2_bytes / L2, FLOPs / peak)",
        {
            "DRAM_bytes": (now.dram, "byte"),
            "DRAM": (chip.hbm_bandwidth, "byte/s"),
            "L2_bytes": (now.l2, "byte"),
            "L2": (l2_rate(chip), "byte/s"),
            "FLOPs": (now.flops, "FLOP"),
            "peak": (chip.bf16, "FLOP/s"),
        },
        (now.bound, "s"),
    )
    times = (0, 0, 0) if spills else now.times
    chart = Chart(
        Axis("time at least", "s", domain=(0, 1.1 * now.bound)),
        Axis(scale="category", categories=ROWS),
        [
            Bars([row], [time], color=color, labels=["–" if spills else si(time, "s")])
            for row, time, color in zip(ROWS, times, ("blue", "orange", "green"), strict=True)
        ],
        height=230,
    )
    verdict = clocks_verdict(now, way, causal, spills)
    return View(chart, verdict, facts, formula=None if spills else law)


def clocks_verdict(now, way, causal, spills):
    if way == NAIVE:
        return (
            f"The square of scores crosses DRAM four times, so {now.slowest} decides. A block of"
            " queries changes nothing here"
            + (", and a mask hides scores that were computed." if causal else ".")
        )
    if spills:
        return (
            f"A thread would need at least {now.registers:.0f} registers and has {REGISTERS}: the"
            " rest spills to memory, and how often it crosses depends on the compiler, so no time"
            " is shown. Take a smaller block."
        )
    if now.slowest == "L2":
        return (
            "Nothing of the square crosses DRAM any more, but each block of queries asks L2 for all"
            " keys and values, and L2 is the slowest clock. A larger block asks less often."
        )
    if now.slowest == "DRAM":
        return "So short a text is read once and hardly used: DRAM decides, as for any short job."
    return "The tensor cores are the slowest clock: this is as fast as a matmul can be."


def explore_clocks():
    """Explore one attention's three times, by length, block of queries and chip."""
    return explorer(
        clocks_view,
        [
            Choice(
                "hardware", "chip", machines("bf16", "hbm_bandwidth", "l2_bandwidth"), "h100_sxm"
            ),
            Choice("way", "kernels", [NAIVE, ONLINE], NAIVE),
            LogSlider("tokens", "tokens", 512, 32768, 8192, base=2),
            LogSlider("block", "queries in a block", 16, 256, 64, base=2),
            Toggle("causal", "causal mask"),
        ],
        caption=(
            f"Attention of {HEADS} query heads and {KV_HEADS} key head of {WIDTH} numbers in bf16,"
            " the job's layer on one of eight GPUs. Rates are peaks, but of L2 what was measured"
            " where somebody measured it."
        ),
        alt=(
            "Three bars, the time that DRAM, L2 and the tensor cores need for their part; the"
            " longest is what the kernel takes at least."
        ),
    )


# ---------------------------------------------------------------- blocks that cross

SIDE, BLOCK, NARROW = 128, 32, 16  # tokens, rows of a block, numbers of a head, in the picture
PARTS = SIDE // BLOCK


def scores(q, k, s):
    """A block of the square: queries times keys."""
    i, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, NARROW)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    queries = tl.load(q + i[:, None] * NARROW + d[None, :])
    keys = tl.load(k + j[:, None] * NARROW + d[None, :])
    tl.store(s + i[:, None] * SIDE + j[None, :], tl.dot(queries, tl.trans(keys)))


def normalize(s):
    """The softmax of rows of the square, in place."""
    i, j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, SIDE)
    places = i[:, None] * SIDE + j[None, :]
    rows = tl.load(s + places)
    powers = tl.exp(rows - tl.max(rows, axis=1)[:, None])
    tl.store(s + places, powers / tl.sum(powers, axis=1)[:, None])


def weigh(s, v, o):
    """The square times values."""
    i, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, NARROW)
    total = tl.zeros((BLOCK, NARROW))
    for start in range(0, SIDE, BLOCK):
        j = start + tl.arange(0, BLOCK)
        part = tl.load(s + i[:, None] * SIDE + j[None, :])
        total = total + tl.dot(part, tl.load(v + j[:, None] * NARROW + d[None, :]))
    tl.store(o + i[:, None] * NARROW + d[None, :], total)


@functools.lru_cache(maxsize=4)
def record(way):
    """The launches of attention over a short text, shapes only."""
    q, k, v, o = (Array(name, size=SIDE * NARROW, element_bytes=2) for name in "qkvo")
    s = Array("s", size=SIDE * SIDE, element_bytes=2)
    if way == ONLINE:
        grid, options = (PARTS,), (SIDE, NARROW, 1, False)
        return [launch(references._attention, grid, q, k, v, o, *options, values=False)]
    return [
        launch(scores, (PARTS, PARTS), q, k, s, values=False),
        launch(normalize, (PARTS,), s, values=False),
        launch(weigh, (PARTS,), s, v, o, values=False),
    ]


@functools.lru_cache(maxsize=4)
def crossings(way):
    """(launch, access, blocks of the array that it touches) of each load and store in turn."""
    turns = []
    for number, run in enumerate(record(way)):
        for access in chain.from_iterable(run.programs):
            element = access.start // 2
            if access.array != "s":
                blocks = [(element // NARROW // BLOCK, 0)]
            else:
                across = PARTS if access.size == 2 * BLOCK * SIDE else 1
                row, column = element // SIDE // BLOCK, element % SIDE // BLOCK
                blocks = [(row, column + j) for j in range(across)]
            turns.append((number, access, blocks))
    return turns


def moves_view(way, moment):
    """Attention after some loads and stores: which blocks crossed, how often, and the bytes."""
    turns = crossings(way)
    past = turns[:moment]
    counts, bytes_in, bytes_out = {}, 0, 0
    for _, access, blocks in past:
        for block in blocks:
            key = (access.array, *block)
            counts[key] = counts.get(key, 0) + 1
        if access.store:
            bytes_out += access.crossing
        else:
            bytes_in += access.crossing
    square = sum(access.crossing for _, access, _ in past if access.array == "s")
    facts = {
        "load or store": f"{moment} of {len(turns)}",
        "asked for": si(bytes_in, "byte"),
        "stored": si(bytes_out, "byte"),
        "of these the square's": si(square, "byte"),
    }
    law = Formula(
        "bytes in all",
        "inputs_and_output + square",
        {
            "inputs_and_output": (crossing_total(way) - square_total(way), "byte"),
            "square": (square_total(way), "byte"),
        },
        (crossing_total(way), "byte"),
    )
    chart = moves_chart(way, counts, turns[moment - 1] if moment else None)
    opens = (5 * len(turns)) // 8
    return View(chart, moves_verdict(way, moment), facts, len(turns) + 1, law, opens=opens)


def crossing_total(way):
    return sum(run.traffic.crossing for run in record(way))


def square_total(way):
    return sum(run.traffic_of("s").crossing for run in record(way))


def moves_verdict(way, moment):
    turns = crossings(way)
    if not moment:
        return "Queries, keys and values lie in memory. Press play, or step."
    number, access, _ = turns[moment - 1]
    if moment == len(turns):
        if way == ONLINE:
            return "Done. The square was made a block at a time, and no block of it left the chip."
        return "Done. Each block of the square crossed four times: out, in, out, in."
    verb = "stores" if access.store else "loads"
    name = {"q": "queries", "k": "keys", "v": "values", "s": "scores", "o": "the result"}
    launch_name = f"Launch {number + 1}" if way == NAIVE else "The program"
    return f"{launch_name} {verb} a block of {name[access.array]}."


X0 = {"q": 0.4, "s": 3.4, "k": 3.4, "v": 10.0, "o": 13.0}
STEP, HIGH, TALL, WIDE = 1.4, 6.0, 1.1, 1.6


def place(array, i, j):
    """The rectangle of one block in the picture."""
    if array == "k":
        left = X0["s"] + i * STEP
        return left, left + STEP - 0.15, 6.7, 7.8
    top = HIGH - i * STEP
    left = X0[array] + j * STEP
    wide = STEP - 0.15 if array == "s" else WIDE
    return left, left + wide, top - TALL, top


def moves_chart(way, counts, last):
    now = {(last[1].array, *block) for block in last[2]} if last else set()
    boxes = {"grey": [], "blue": [], "orange": []}
    for array in "qksvo":
        for i in range(PARTS):
            for j in range(PARTS if array == "s" else 1):
                key = (array, i, j)
                color = "orange" if key in now else "blue" if key in counts else "grey"
                times = f"{counts[key]}×" if key in counts else ""
                boxes[color].append((*place(array, i, j), times))
    legend = {"grey": "", "blue": "crossed before", "orange": "crosses now"}
    marks = []
    for color, some in boxes.items():
        *sides, labels = zip(*(some or [(0, 0, 0, 0, "")]), strict=True)
        marks.append(Boxes(*sides, legend[color], labels, color, soft=color == "grey"))
    square = "S, in memory" if way == NAIVE else "S, never in memory"
    for x, y, text in (
        (X0["q"] + WIDE / 2, 6.5, "Q"),
        (X0["s"] - 0.3, 7.1, "K"),
        (X0["v"] + WIDE / 2, 6.5, "V"),
        (X0["o"] + WIDE / 2, 6.5, "O"),
    ):
        marks.append(Text(x, y, text))
    marks.append(Text(X0["s"] + 2 * STEP, 0.1, square))
    return Chart(Axis(domain=(0, 15)), Axis(domain=(-0.4, 8.2)), marks, height=360, bare=True)


def explore_moves():
    """Attention's blocks as they cross, in three launches or in one."""
    return explorer(
        moves_view,
        [
            Choice("way", "kernels", [NAIVE, ONLINE], NAIVE),
            Play("moment", "step", max(len(crossings(way)) for way in (NAIVE, ONLINE))),
        ],
        caption=(
            f"One head over {SIDE} tokens in blocks of {BLOCK}. Numbers say how often a block has"
            " crossed between memory and the chip."
        ),
        alt=(
            "Queries in a column on the left, keys in a row above, the square of scores between"
            " them, values and results in columns on the right. Blocks light up as they are loaded"
            " or stored, and each counts how often."
        ),
    )
