"""Chapter 2: one matmul on one accelerator, and where it lands under the roof.

`view` is pure: parameters in, a `View` out. `explore()` puts controls on it.
"""

import math
from dataclasses import replace

from lightspeed import roofline
from lightspeed.roofline import WIDTH
from lightspeed_course.explorers import published
from lightspeed_course.explorers.measured_machines import hardware as hardware_of
from lightspeed_course.explorers.measured_machines import measured
from lightspeed_course.explorers.menus import listed, machines
from lightspeed_show import Choice, Formula, LogSlider, View, explorer, roof_chart, si

ARITHMETIC = ("bf16", "fp8", "int8", "fp32")
STORIES = {
    "decode for one user": {"batch": 1, "weights": "bf16", "contraction": 8192, "output": 8192},
    "decode, int4 weights": {"batch": 1, "weights": "int4", "contraction": 8192, "output": 8192},
    "prefill": {"batch": 8192, "weights": "bf16", "contraction": 8192, "output": 8192},
    "one expert of an MoE": {"batch": 64, "weights": "bf16", "contraction": 4096, "output": 2048},
}
INTENSITIES = (0.1, 1e5)  # FLOP/byte, the ends of the axis
FACTS = (
    "arithmetic alone", "bytes alone", "lower bound", "upper bound",
    "intensity", "ridge", "batch at the ridge", "the same, if D and F are far larger",
)  # fmt: skip


def choices():
    """Return the menu: accelerators with a bf16 peak; measured machines with any peak."""
    some = machines("hbm_bandwidth", one_of=ARITHMETIC)
    rates = measured()
    return machines("bf16", "hbm_bandwidth") | {n: key for n, key in some.items() if key in rates}


def shape(batch, contraction, output, weights, activations):
    """Return FLOPs and bytes of the product; the result has the width of the activations."""
    size = roofline.matmul_bytes(
        batch, contraction, output, WIDTH[weights], WIDTH[activations], WIDTH[activations]
    )
    return roofline.matmul_flops(batch, contraction, output), size


def view(
    hardware, weights, activations, compute,
    batch, contraction, output,
):  # fmt: skip
    """The point of a matmul X[batch, contraction] Y[contraction, output] under a machine's roof."""
    machine = hardware_of(hardware)
    flops, size = shape(batch, contraction, output, weights, activations)
    other = next((p for p in ARITHMETIC if p in machine), None)
    if compute not in machine and machine.key in measured() and other:
        # A measured machine has few formats: it shows one that it has, and says so.
        there = view(hardware, weights, activations, other, batch, contraction, output)
        why = f"{machine.name} was not measured with {compute} matmuls; this is {other}."
        return replace(there, verdict=f"{why} {there.verdict}")
    if compute not in machine:
        return no_peak(machine, compute, roofline.arithmetic_intensity(flops, size))
    peak, bandwidth = getattr(machine, compute), machine.hbm_bandwidth
    t = roofline.time_bounds(flops, size, peak, bandwidth)
    intensity = roofline.arithmetic_intensity(flops, size)
    ridge = roofline.ridge_point(peak, bandwidth)
    exact = roofline.critical_batch_exact(
        contraction, output, ridge, WIDTH[weights], WIDTH[activations], WIDTH[activations]
    )
    # The first whole batch, in the facts as in the verdict.
    goal = exact if math.isinf(exact) else math.ceil(exact)
    short = roofline.critical_batch(ridge, WIDTH[weights])
    times = (si(x, "s") for x in (t.math, t.comms, t.lower, t.upper))
    ratios = (si(x, "FLOP/byte") for x in (intensity, ridge))
    facts = zip(FACTS, (*times, *ratios, si(goal, "token"), si(short, "token")), strict=True)
    verdict = in_words(t, peak, goal, batch) + " " + elsewhere(t, flops, size, compute, machine)
    law = Formula(
        "time",
        "max(FLOPs / peak, bytes / bandwidth)",
        {
            "FLOPs": (flops, "FLOP"),
            "peak": (peak, "FLOP/s"),
            "bytes": (size, "byte"),
            "bandwidth": (bandwidth, "byte/s"),
        },
        (t.lower, "s"),
    )
    dots, note = published.products(
        machine.key, weights, activations, compute, INTENSITIES, rates(machine)
    )
    chart = roof(machine, compute, peak, intensity, dots)
    return View(chart, verdict, tuple(facts), formula=law, measured=note)


def no_peak(machine, compute, intensity):
    """The view where the vendor states no peak: the slope alone, never another precision's roof."""
    have = ", ".join(p for p in ARITHMETIC if p in machine)
    words = (
        f"{machine.name} states no dense peak for {compute} matmuls, "
        f"so there is no roof to draw. It has {have}."
    )
    unknown = dict.fromkeys(FACTS, "–") | {"intensity": si(intensity, "FLOP/byte")}
    return View(roof(machine, compute, None, intensity), words, unknown, measured=published.NONE)


def in_words(t, peak, goal, batch):
    """Say what limits the product, and the batch that would change it."""
    if t.compute_bound:
        head = f"Compute-bound: it can reach the peak, {si(peak, 'FLOP/s')}."
        times = si(t.math / t.comms, digits=2)
        return f"{head} The arithmetic takes {times} times as long as its bytes take to move."
    share = f"Memory-bound: at most {si(t.math / t.comms, '%', 2)} of peak."
    if math.isinf(goal):
        return f"{share} No batch reaches the ridge: the activations alone cost too many bytes."
    now = si(batch, "token")
    return f"{share} A batch of {si(goal, 'token')} would reach the ridge, from {now} now."


def elsewhere(t, flops, size, compute, here):
    """Which other machines of the menu with a peak for this format turn the verdict round."""
    flips = []
    for name, key in choices().items():
        there = hardware_of(key)
        if there.key == here.key or compute not in there:
            continue
        other = roofline.time_bounds(flops, size, getattr(there, compute), there.hbm_bandwidth)
        if other.compute_bound != t.compute_bound:
            flips.append(name)
    what = "memory-bound" if t.compute_bound else "compute-bound"
    flips.sort(key=lambda name: choices()[name] in measured())  # what one can buy comes first
    if not flips:
        return f"No other machine here with a peak for {compute} makes it {what}."
    return f"It would be {what} on {listed(flips, 3)}."


def rates(machine):
    """Return the ends of the FLOP/s axis: a laptop's roof is decades below an accelerator's."""
    return (5e8, 3e13) if machine.key in measured() else (5e10, 3e16)


def roof(machine, compute, peak, intensity, dots=()):
    """The machine's roof and the one point, on axes that stay, over what was measured."""
    return roof_chart(
        peak,
        {"memory": machine.hbm_bandwidth},
        {"this matmul": intensity} if peak else {},
        x=INTENSITIES,
        y=rates(machine),
        marks=dots,
        peak_name=f"{compute} peak",
        moving=True,
        title=machine.name,
        drag=("batch", None),
    )


def explore():
    """The explorer of chapter 2."""
    return explorer(
        view,
        [
            Choice("hardware", "hardware", choices(), "h100_sxm"),
            Choice("weights", "weights", list(WIDTH), "bf16"),
            Choice("activations", "activations", [f for f in WIDTH if f != "int4"], "bf16"),
            Choice("compute", "arithmetic", ARITHMETIC, "bf16"),
            LogSlider(
                "batch",
                "B",
                1,
                65536,
                128,
                unit="token",
                whole=True,
                per_decade=10,
                include=[64, 8192],
            ),
            LogSlider("contraction", "D", 128, 65536, 8192, base=2),
            LogSlider("output", "F", 128, 65536, 8192, base=2),
        ],
        caption=(
            "Drag B and the point climbs the slope until it meets the flat roof. "
            "Then change the hardware."
        ),
        alt=(
            "A roofline on two logarithmic axes: a slope set by the memory bandwidth meets a flat"
            " line set by the peak; one point, the matmul of the sliders, sits on the roof with"
            " dashed lines to both axes."
        ),
        presets=STORIES,
        guess="Where will the point go? Change B or the weights, then click where you expect it.",
        later=("activations", "contraction", "output"),
    )
