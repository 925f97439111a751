"""Chapter 1: a transfer over a path, and two machines beside each other.

`view` and `generations_view` are pure; `explore()` and `explore_generations()` put controls on them.
"""

from __future__ import annotations

import numpy as np

from lightspeed.catalog import accelerator, entries, link, memory
from lightspeed.roofline import crossover_size, ridge_point, transfer_time
from lightspeed_course.measure.machine import paths as measured_paths
from lightspeed_course.show import (
    Axis,
    Bars,
    Chart,
    Choice,
    Line,
    LogSlider,
    Points,
    Rule,
    View,
    explorer,
    si,
)

SMALLEST, LARGEST = 1, 1e12  # bytes
DECIDES = 0.9  # a term with this share of the time decides; to halve the other one saves a twentieth at most


def paths():
    """Every path with a latency and a bandwidth, near to far, and the memory of measured machines: key -> (name, latency, bandwidth)."""
    levels = ("cpu_l1", "gpu_shared", "cpu_l2", "cpu_dram", "gpu_l2", "gpu_hbm")
    near = {k: (memory(k).name, memory(k).latency, memory(k).bandwidth) for k in levels}
    wires = {k: (link(k).name, link(k).latency, link(k).bandwidth) for k in ("nvlink4", "pcie5_x16", "infiniband_ndr")}
    disk = {"nvme_ssd": (memory("nvme_ssd").name, memory("nvme_ssd").latency, memory("nvme_ssd").bandwidth)}
    wide = link("ethernet_100g")
    far = {
        k: (f"{memory(k).name}, {wide.name}", memory(k).latency, wide.bandwidth)
        for k in ("path_hall", "path_country", "path_atlantic", "path_pacific")
    }
    return near | wires | disk | far | measured_paths()


def view(path="pcie5_x16", size=65536):
    """How long `size` bytes take over a path, and which term of the sum decides."""
    name, latency, bandwidth = paths()[path]
    total, moving = transfer_time(size, bandwidth, latency), transfer_time(size, bandwidth)
    crossover = crossover_size(latency, bandwidth)
    sizes = np.geomspace(SMALLEST, LARGEST, 61)
    chart = Chart(
        Axis("size of the transfer", "byte", "log", domain=(SMALLEST, LARGEST)),
        Axis("time", "s", "log", domain=(1e-10, 1e3)),
        (
            Line(sizes, transfer_time(sizes, bandwidth, latency), "total", "black"),
            Line((SMALLEST, LARGEST), (latency, latency), f"latency, {si(latency, 's')}", "orange", dash=True),
            Line(
                (max(SMALLEST, 1e-10 * bandwidth), LARGEST),
                (max(SMALLEST / bandwidth, 1e-10), LARGEST / bandwidth),
                f"bandwidth, {si(bandwidth, 'byte/s')}",
                "blue",
                dash=True,
                label_at="along",
            ),
            Rule(x=crossover, label=f"crossover {si(crossover, 'byte')}"),
            Points((size,), (total,), labels=("this transfer",), color="orange", size=8, drop=True),
        ),
        title=name,
    )
    return View(chart, in_words(size, latency, moving, bandwidth, crossover), transfer_facts(latency, moving, total, size, crossover))


def transfer_facts(latency, moving, total, size, crossover):
    return {
        "latency term": si(latency, "s"),
        "bandwidth term": si(moving, "s"),
        "total": si(total, "s"),
        "rate reached": si(size / total, "byte/s"),
        "crossover size": si(crossover, "byte"),
    }


def in_words(size, latency, moving, bandwidth, crossover):
    """Which term decides, if one does, and what would help."""
    share = moving / (moving + latency)
    if share >= DECIDES:
        return f"Bandwidth decides: {si(share, '%', 2)} of the time the bytes are moving. A wider path helps; a shorter one hardly does."
    if 1 - share >= DECIDES:
        return (
            f"Latency decides: {si(1 - share, '%', 2)} of the time nothing arrives. A wider path hardly helps; "
            f"send more at once, up to about {si(crossover, 'byte')}."
        )
    return (
        f"Both matter: {si(share, '%', 2)} of the time the bytes are moving, {si(1 - share, '%', 2)} nothing arrives. "
        f"A path twice as wide saves {si(share / 2, '%', 2)}, half the latency {si((1 - share) / 2, '%', 2)}."
    )


def explore():
    """The transfer explorer of chapter 1."""
    return explorer(
        view,
        [
            Choice("path", "path", {name: key for key, (name, _, _) in paths().items()}, "pcie5_x16"),
            LogSlider("size", "size", SMALLEST, 2**39, 65536, unit="byte", base=4, text=lambda v: si(v, "byte")),
        ],
        caption="Time is a latency plus a size over a bandwidth. Drag the size through the crossover; then change the path.",
        alt="Time against size on two logarithmic axes: a flat line for latency, a rising line for bandwidth, their sum above both, "
        "and one point for the transfer of the slider.",
    )


def machines():
    """Accelerators that state all that the comparison needs: name -> key."""
    needed = ("bf16", "hbm_bandwidth", "hbm_capacity", "link_bandwidth", "power")
    return {e.name: k for k, e in entries("accelerators").items() if all(n in e for n in needed)}


def measures(machine):
    """Absolute numbers of a machine, and ratios between them: name -> (value, unit, is a ratio)."""
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


def generations_view(old="a100_80gb", new="b200"):
    """What changed from one machine to another, and which ratios kept their size."""
    before, after = measures(accelerator(old)), measures(accelerator(new))
    factors = {name: float(after[name][0] / before[name][0]) for name in before}
    ratios = [name for name in before if before[name][2]]
    kept = [n for n in ratios if 1 / SURVIVES < factors[n] < SURVIVES]
    lost = [n for n in ratios if n not in kept]
    words = f"Kept within a factor of {SURVIVES:g}: {', '.join(kept) or 'nothing'}. Changed more: {', '.join(lost) or 'nothing'}."
    chart = Chart(
        Axis(f"{accelerator(new).name} over {accelerator(old).name}; one is unchanged", "", "log", domain=(0.02, 50)),
        Axis(scale="category", categories=tuple(factors)),
        (
            *bars(factors, [n for n in factors if n not in ratios], "absolute numbers", "sky"),
            *bars(factors, ratios, "ratios", "orange"),
            Rule(x=1),
        ),
        height=400,
    )
    facts = {name: f"{si(before[name][0], unit)} → {si(after[name][0], unit)}" for name, (_, unit, _) in before.items()}
    return View(chart, words, facts)


def bars(factors, names, label, color):
    """Bars from one to the factor, to either side."""
    low, high = [min(1, factors[n]) for n in names], [max(1, factors[n]) for n in names]
    yield Bars(tuple(names), tuple(high), tuple(low), label=label, color=color)
    yield Points(tuple(factors[n] for n in names), tuple(names), labels=tuple(f"× {factors[n]:.2g}" for n in names), color=color)


def explore_generations():
    """The explorer of two machines of chapter 1."""
    names = machines()
    return explorer(
        generations_view,
        [Choice("old", "from", names, "a100_80gb"), Choice("new", "to", names, "b200")],
        caption="Absolute numbers grow with every generation. Look at which ratios stay where they were.",
        alt="Bars to the left and right of one for what grew and what shrank from one accelerator to another: absolute numbers above, ratios below.",
    )
