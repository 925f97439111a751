"""Chapter 1: a transfer over a path, and two machines beside each other.

`view` and `generations_view` are pure; `explore()` and `explore_generations()` put controls on
them.
"""

import math
from typing import NamedTuple

from lightspeed.catalog import accelerator, link, memory
from lightspeed.roofline import crossover_size, ridge_point, transfer_time
from lightspeed_course.explorers.measured_machines import measured
from lightspeed_course.explorers.measured_machines import paths as measured_paths
from lightspeed_course.explorers.menus import machines
from lightspeed_show import (
    Axis,
    Bars,
    Chart,
    Choice,
    Formula,
    Line,
    LogSlider,
    Points,
    Rule,
    View,
    explorer,
    human_time,
    si,
)
from lightspeed_show.spaced import by_ratio

SMALLEST, LARGEST = 1, 1e12  # bytes
# A term with this share of the time decides; to halve the other one saves a twentieth at most.
DECIDES = 0.9


class Path(NamedTuple):
    """A level of memory or a way to another machine; `holds` is how many bytes it can serve."""

    name: str
    latency: float
    bandwidth: float
    holds: float = math.inf


def paths():
    """Every `Path`, near to far, then measured machines' memory: by key. A latency is that of a
    load, or of a message between programs; rate and latency are of one part.
    """
    levels = ("cpu_l1", "gpu_shared", "cpu_l2", "cpu_dram", "gpu_l2", "gpu_hbm")
    near = {key: level(key) for key in levels}
    wires = {key: wire(link(key)) for key in ("nvlink4", "pcie5_x16", "infiniband_ndr")}
    disk = {"nvme_ssd": level("nvme_ssd")}
    wide = link("ethernet_100g")
    far = {
        key: Path(f"{memory(key).name}, {wide.name}", memory(key).latency, wide.bandwidth)
        for key in ("path_hall", "path_country", "path_atlantic", "path_pacific")
    }
    own = {
        key: Path(name, latency, bandwidth, capacity_of(key))
        for key, (name, latency, bandwidth) in measured_paths().items()
    }
    return near | wires | disk | far | own


def wire(entry):
    if "end_to_end" in entry:
        return Path(f"{entry.name}, software included", entry.end_to_end, entry.bandwidth)
    return Path(entry.name, entry.latency, entry.bandwidth)


def level(key):
    """A level of memory; of one that each core or SM has for itself, one core's or SM's part."""
    entry = memory(key)
    parts, of = 1, ""
    if key == "gpu_shared":
        parts, of = accelerator("h100_sxm").sm_count, " of one SM"
    elif "cores" in entry:
        parts, of = entry.cores, " of one core"
    holds = entry.numbers.get("capacity", math.inf)
    return Path(f"{entry.name}{of}", entry.latency, entry.bandwidth / parts, holds)


def capacity_of(path):
    """The memory of a measured machine, whose path is its key and ".memory"."""
    return measured()[path.removesuffix(".memory")].numbers.get("hbm_capacity", math.inf)


def view(path, size):
    """How long `size` bytes take over a path, and which term of the sum decides."""
    name, latency, bandwidth, holds = paths()[path]
    crossover = crossover_size(latency, bandwidth)
    end = min(holds, LARGEST)
    sizes = by_ratio(SMALLEST, end, 61)
    marks = [
        Line(sizes, [transfer_time(s, bandwidth, latency) for s in sizes], "total", "black"),
        Line(
            (SMALLEST, end), (latency, latency), f"latency, {si(latency, 's')}", "orange", dash=True
        ),
        Line(
            (max(SMALLEST, 1e-10 * bandwidth), end),
            (max(SMALLEST / bandwidth, 1e-10), end / bandwidth),
            f"bandwidth, {si(bandwidth, 'byte/s')}",
            "blue",
            dash=True,
            label_at="along",
        ),
        Rule(x=crossover, label=f"crossover {si(crossover, 'byte')}"),
    ]
    law = None
    if size > holds:
        words, facts = too_large(size, holds), dict.fromkeys(FACTS, "–")
        facts["crossover size"] = si(crossover, "byte")
    else:
        total, moving = transfer_time(size, bandwidth, latency), transfer_time(size, bandwidth)
        here = {"labels": ("this transfer",), "size": 8, "drop": True, "drag": ("size", None)}
        marks.append(Points((size,), (total,), **here))
        words = in_words(size, latency, moving, bandwidth, crossover)
        facts = transfer_facts(latency, moving, total, size, crossover)
        law = Formula(
            "time",
            "latency + size / bandwidth",
            {
                "latency": (latency, "s"),
                "size": (size, "byte"),
                "bandwidth": (bandwidth, "byte/s"),
            },
            (total, "s"),
        )
    chart = Chart(
        Axis("size of the transfer", "byte", "log", domain=(SMALLEST, LARGEST)),
        Axis("time", "s", "log", domain=(1e-10, 1e3)),
        tuple(marks),
        title=name,
    )
    return View(chart, words, facts, formula=law)


def too_large(size, holds):
    """A transfer that cannot be one from here."""
    return (
        f"Not from here: it holds {si(holds, 'byte')}, and {si(size, 'byte')} must come from "
        "farther away. Choose another path or a smaller size."
    )


FACTS = ("latency term", "bandwidth term", "total", "rate reached", "crossover size")


def transfer_facts(latency, moving, total, size, crossover):
    times = (si(x, "s") for x in (latency, moving, total))
    facts = (*times, si(size / total, "byte/s"), si(crossover, "byte"))
    return dict(zip(FACTS, facts, strict=True))


def in_words(size, latency, moving, bandwidth, crossover):
    """Which term decides, if one does, and what would help."""
    share = moving / (moving + latency)
    if share >= DECIDES:
        return (
            f"Bandwidth decides: {si(share, '%', 2)} of the time the bytes are moving. "
            "A wider path helps; a shorter one hardly does."
        )
    if 1 - share >= DECIDES:
        return (
            f"Latency decides: {si(1 - share, '%', 2)} of the time nothing arrives. "
            f"A wider path hardly helps; send more at once, up to about {si(crossover, 'byte')}."
        )
    return (
        f"Both matter: {si(share, '%', 2)} of the time the bytes are moving, "
        f"{si(1 - share, '%', 2)} nothing arrives. A path twice as wide saves "
        f"{si(share / 2, '%', 2)}, half the latency {si((1 - share) / 2, '%', 2)}."
    )


def explore():
    """The transfer explorer of chapter 1."""
    return explorer(
        view,
        [
            Choice("path", "path", {path.name: key for key, path in paths().items()}, "pcie5_x16"),
            LogSlider("size", "size", SMALLEST, 2**39, 65536, unit="byte", base=4),
        ],
        caption=(
            "Time is a latency plus a size over a bandwidth. Drag the size through the "
            "crossover; then change the path. A line ends where its memory is full."
        ),
        alt=(
            "Time against size on two logarithmic axes: a flat line for latency, a rising line for "
            "bandwidth, their sum above both, and one point for the transfer of the slider."
        ),
        guess="Where will the point go? Change the size, then click where you expect it.",
    )


PING = 10e-3  # seconds to the other side of the link
LORRY = 86400  # seconds, with a petabyte of disks


def two_waits_view(size):
    """The time of one transfer over ten gigabits a second, split into both waits."""
    bandwidth = link("ethernet_10g").bandwidth
    moving, total = transfer_time(size, bandwidth), transfer_time(size, bandwidth, PING)
    wait = PING / total
    parts = (
        ("wait for the first byte", 0.0, wait, "orange"),
        ("the rest follows", wait, 1, "blue"),
    )
    marks = []
    for name, start, end, color in parts:
        share = [si(end - start, "%", 2)]
        marks.append(Bars(["link"], [end], start=[start], label=name, color=color, labels=share))
    chart = Chart(
        Axis("share of the time", "%", domain=(0, 1)),
        Axis(scale="category", categories=["link"]),
        marks,
        height=120,
    )
    facts = {
        "latency": si(PING, "s"),
        "size over bandwidth": si(moving, "s"),
        "together": human_time(total),
    }
    law = Formula(
        "time",
        "latency + size / bandwidth",
        {"latency": (PING, "s"), "size": (size, "byte"), "bandwidth": (bandwidth, "byte/s")},
        (total, "s"),
    )
    return View(chart, which_wait(wait, total), facts, formula=law)


def which_wait(wait, total):
    """Say what to buy, if anything."""
    if total > LORRY:
        return "The lorry, which needs a day, is there first."
    if wait > DECIDES:
        return "You wait for the first byte: a nearer server helps, a wider link hardly does."
    if wait < 1 - DECIDES:
        return "You wait for the rest: a wider link helps, a nearer server hardly does."
    return "Both waits count: a wider link helps, and so does a nearer server."


def explore_two_waits():
    """One transfer as a bar, drawn at the size where both waits are equal."""
    equal = crossover_size(PING, link("ethernet_10g").bandwidth)
    return explorer(
        two_waits_view,
        [LogSlider("size", "size", 100, 1e15, equal, unit="byte", per_decade=4)],
        caption="All of the bar is the time that you wait. Make the transfer smaller, then larger.",
        alt="One bar in two parts: the wait for the first byte, and the time in which the rest"
        " follows. The first fills it for a small transfer, the second for a large one.",
    )


NEEDED = ("bf16", "hbm_bandwidth", "hbm_capacity", "link_bandwidth", "power")


def measures(machine):
    """Return a machine's numbers and their ratios: name -> (value, unit, is a ratio)."""
    m = machine
    return {
        "bf16 peak": (m.bf16, "FLOP/s", False),
        "memory bandwidth": (m.hbm_bandwidth, "byte/s", False),
        "memory capacity": (m.hbm_capacity, "byte", False),
        "link, one way": (m.link_bandwidth, "byte/s", False),
        "power": (m.power, "W", False),
        "ridge: peak over memory": (ridge_point(m.bf16, m.hbm_bandwidth), "FLOP/byte", True),
        "peak over link": (ridge_point(m.bf16, m.link_bandwidth), "FLOP/byte", True),
        "memory over link": (m.hbm_bandwidth / m.link_bandwidth, "", True),
        "time to read all memory": (m.hbm_capacity / m.hbm_bandwidth, "s", True),
        "peak per watt": (m.bf16 / m.power, "FLOP/J", True),
    }


SURVIVES = 1.5  # a ratio that changed by less than this factor kept its size


def generations_view(old, new):
    """What changed from one machine to another, and which ratios kept their size."""
    before, after = measures(accelerator(old)), measures(accelerator(new))
    factors = {name: float(after[name][0] / before[name][0]) for name in before}
    ratios = [name for name in before if before[name][2]]
    safe = [n for n in ratios if 1 / SURVIVES < factors[n] < SURVIVES]
    others = [n for n in ratios if n not in safe]
    words = (
        f"Kept within a factor of {SURVIVES:g}: {', '.join(safe) or 'nothing'}. "
        f"Changed more: {', '.join(others) or 'nothing'}."
    )
    names = f"{accelerator(new).name} over {accelerator(old).name}"
    chart = Chart(
        Axis(f"{names}; one is unchanged", "", "log", domain=(0.02, 50)),
        Axis(scale="category", categories=tuple(factors)),
        (
            *bars(factors, [n for n in factors if n not in ratios], "absolute numbers", "sky"),
            *bars(factors, ratios, "ratios", "orange"),
            Rule(x=1),
        ),
        height=360,
    )
    facts = {
        name: f"{si(was, unit)} → {si(after[name][0], unit)}"
        for name, (was, unit, _) in before.items()
    }
    law = Formula(
        "growth of the ridge",
        "growth_of_the_peak / growth_of_the_memory_bandwidth",
        {
            "growth_of_the_peak": (factors["bf16 peak"], ""),
            "growth_of_the_memory_bandwidth": (factors["memory bandwidth"], ""),
        },
        (factors["ridge: peak over memory"], ""),
    )
    return View(chart, words, facts, formula=law)


def bars(factors, names, label, color):
    """Draw bars of factors to either side of one."""
    low, high = [min(1, factors[n]) for n in names], [max(1, factors[n]) for n in names]
    yield Bars(tuple(names), tuple(high), tuple(low), label=label, color=color)
    texts = tuple(f"× {factors[n]:.2g}" for n in names)
    yield Points(tuple(factors[n] for n in names), tuple(names), labels=texts, color=color)


def explore_generations():
    """Compare two machines, in chapter 1."""
    names = machines(*NEEDED)
    return explorer(
        generations_view,
        [Choice("old", "from", names, "a100_80gb"), Choice("new", "to", names, "b200")],
        caption=(
            "Absolute numbers grow with every generation. Look at which ratios stay where they "
            "were."
        ),
        alt=(
            "Bars to the left and right of one for what grew and what shrank from one accelerator "
            "to another: absolute numbers above, ratios below."
        ),
    )
