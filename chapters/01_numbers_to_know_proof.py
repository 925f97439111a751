# %% [markdown]
# # 1. Numbers to know: the proof
#
# The [lesson](01_numbers_to_know.ipynb) gives you a few numbers and says which of them to divide.
# Here each is held against something else: a data sheet against its own arithmetic, a floor against
# what was measured, and the ladder against your own machine.

# %% tags=["setup"]
from math import log2
from statistics import median

from lightspeed import datasheet, roofline
from lightspeed.catalog import UNITS, accelerator, entries, find, link, memory, parse
from lightspeed.units import Q
from lightspeed_course import ask, Axis, Bars, Chart, compare_here, figure, measure_here, predict
from lightspeed_course import residual_chart, reveal, row, shipped, show_recorded, si, table, weigh

h100, light = accelerator("h100_sxm"), memory("light")
old, new = accelerator("a100_80gb"), accelerator("b200")
nvlink, infiniband = link("nvlink4"), link("infiniband_ndr")
peaks = []
for m in entries("accelerators").values():
    if all(n in m for n in ("clock", "flop_per_cycle", "tensor_core_count")):
        peak = datasheet.peak_from_clock(m.clock, m.flop_per_cycle, m.tensor_core_count)
        peaks.append((f"{m.name}, peak from its clock", peak, m.bf16 if "bf16" in m else m.fp16))
bundles = []
for one in map(link, ("nvlink3", "nvlink4", "nvlink5")):
    bundle = datasheet.bundle_bandwidth(one.links, one.bandwidth_per_link)
    bundles.append((f"{one.name}, from its links", bundle, one.bandwidth_bidirectional / 2))
atlantic = memory("path_atlantic")
floor = datasheet.round_trip(atlantic.distance, light.fibre)
cables = [("Atlantic, floor against the fastest cable", floor, atlantic.measured_round_trip)]
checks = [*peaks, *bundles, *cables]
joules = weigh("energy-token")


def held(what, ratios, fails, section):
    off = [abs(ratio - 1) for ratio in ratios]
    worst = si(max(off), "%", 2)
    return [what, len(off), si(median(off), "%", 2), worst, f"{fails} [↓](#{section})"]


# %% [markdown]
# ## What is claimed, and how well it holds

# %% tags=["figure"]
table(
    [
        held(
            "a peak is clock × FLOPs per cycle × units",
            [p / m for _, p, m in peaks],
            "where another clock is quoted",
            "Data-sheets-against-their-own-arithmetic",
        ),
        held(
            "a link is the sum of its lanes, one way",
            [p / m for _, p, m in bundles],
            "nowhere yet",
            "Data-sheets-against-their-own-arithmetic",
        ),
        held(
            "a cable's floor is length over the speed of light in glass",
            [p / m for _, p, m in cables],
            "detours",
            "Data-sheets-against-their-own-arithmetic",
        ),
        [
            "a token costs at most the rated power over the rate",
            joules.all.rows,
            f"{joules.all.ratios[1]:.2f} times",
            f"{si(joules.all.beaten, '%')} of the rows above it",
            "no row; it is loose where few requests run [↓](#Joules,-measured)",
        ],
    ],
    ["law", "rows", "median error", "worst", "where it fails, and where this is shown"],
    caption="Errors of predicted over printed or measured. The last row is a bound: how many times "
    "the energy that was drawn.",
)

# %% tags=["holds"]
assert max(abs(p / m - 1) for _, p, m in bundles) < 1e-6, "nowhere yet"
assert joules.all.beaten == 0, "no row; it is loose where few"


# %% [markdown]
# ## Data sheets against their own arithmetic
#
# A peak is clock times FLOPs per cycle times units, where a multiply-add counts as two FLOPs. An
# A100 has {{old.tensor_core_count:.0f}} tensor cores, each does {{old.flop_per_cycle:.0f}} FLOPs in
# a cycle, at {{si(old.clock, "Hz")}}: {{si(datasheet.peak_from_clock(old.clock, old.flop_per_cycle,
# old.tensor_core_count), "FLOP/s")}}. A cable's floor is length over speed. So each of these
# numbers can be predicted from others; the last column is the error of the prediction.


# %%
boost = parse(h100.clock.others[0]["printed"])[0]  # as it is often quoted

# %%
table(
    [[n, si(p, p.unit, 4), si(m, p.unit, 4), f"{p / m - 1:+z.1%}"] for n, p, m in checks],
    ["what", "predicted", "printed or measured", "error"],
    caption="The arithmetic of a data sheet agrees with what it prints to within a per cent, if "
    "the right clock is used. The cable loses a few per cent to its detours.",
)

# %% tags=["holds"]
assert all(abs(p / m - 1) < 0.01 for _, p, m in checks[:-1]), (
    "agrees with what it prints to within a per cent"
)

# %% [markdown]
# ## Where it breaks
#
# - **The clock on the web page may not be the one behind the peak.** With the boost clock that is
#   often quoted for an H100, {{si(boost, "Hz")}} instead of {{si(h100.clock, "Hz")}}, its peak
#   would come out {{datasheet.peak_from_clock(boost, h100.flop_per_cycle, h100.tensor_core_count) /
#   h100.bf16 - 1:.0%}} too high.
# - **Latency has layers.** Beside the {{si(infiniband.end_to_end, "s")}} of a message over
#   InfiniBand, NVIDIA's library NCCL (chapter 7) reckons with {{si(infiniband.nccl_step_simple,
#   "s")}} for a step of a joint operation. Say which one you mean.
#
# ## Joules, measured
#
# The energy of a token is power over rate, so rated power over measured rate bounds it. Hold the
# bound against what the ML.ENERGY Initiative measured on served language models.

# %%
table(
    [[e.regime, e.rows, e.ratios[1], si(e.beaten, "%")] for e in (joules.all, *joules.by_regime)],
    ["requests in flight", "rows", "rated over drawn, median", "rows above the rating"],
    caption=f"{joules.rows.record.attribution}: {len(joules.rows)} rows on H100 and B200.",
)

# %% tags=["figure"]
middles = [e.ratios[1] for e in joules.by_regime]
figure(
    residual_chart(joules, dots=90, height=300),
    caption="No row draws more than the rating. The more requests in flight, the nearer the draw "
    "comes to it, in the median.",
    alt="Rated over measured energy of a token. All dots lie on or above a rule at one, with "
    f"medians from {middles[-1]:.2f} with many requests in flight to {middles[0]:.2f} with few.",
)

# %% tags=["holds"]
assert joules.all.beaten == 0, "No row draws more than the rating"
assert middles == sorted(middles, reverse=True), "The more requests in flight"
assert min(joules.ratio) >= 1, "All dots lie on or above a rule at one"

# %%
ask("numbers.token_energy")


# %% [markdown]
# ## Like with like
#
# The lesson compares rungs of one lane only. These are such ratios.

# %%
shared, l1, l2, hbm = (memory(k) for k in ("gpu_shared", "gpu_l1", "gpu_l2", "gpu_hbm"))
cpu = [memory(k) for k in ("cpu_register", "cpu_l1", "cpu_l2", "cpu_l3", "cpu_dram")]
pcie = link("pcie5_x16")
like = [
    ["GPU: HBM over L1, latency", hbm.latency / l1.latency],
    ["GPU: HBM over L2, latency", hbm.latency / l2.latency],
    ["GPU: L1 over HBM, bandwidth", l1.bandwidth / hbm.bandwidth],
    ["CPU: DRAM over L1, latency", cpu[-1].latency / cpu[1].latency],
    ["GPU HBM over PCIe, bandwidth", hbm.bandwidth / pcie.bandwidth],
    ["NVLink over InfiniBand, bandwidth", nvlink.bandwidth / infiniband.bandwidth],
]
table(like, ["ratio", "value"])

# %% [markdown]
# Every ratio has one kind of latency, or one direction, on both sides. In one direction NVLink
# carries {{nvlink.bandwidth / infiniband.bandwidth:.2g}} times what InfiniBand carries.

# %% tags=["holds"]
assert nvlink.bandwidth == 9 * infiniband.bandwidth, "NVLink carries {{nvlink.bandwidth / infiniband.bandwidth:.2g}} times what InfiniBand carries"

# %% [markdown]
# ## Four distances
#
# The lesson tells the floor of the way across the country from what engineers can shorten. Here are
# four floors.

# %%
paths = [memory(k) for k in ("path_hall", "path_country", "path_atlantic", "path_pacific")]
follows = [
    "what you wait for is software", "one exchange, not a dozen", "serve from both sides",
    "keep data where it is used",
]  # fmt: skip
printed = [path.round_trip.others[0]["printed"] for path in paths]
[path.round_trip for path in paths]

# %% tags=["figure"]
table(
    [[p.name, p.distance.printed, p.round_trip, *x] for p, *x in zip(paths, printed, follows)],
    ["path", "distance", "round trip of light", "a textbook prints", "what follows"],
    caption="There and back at the speed of light in glass fibre. The textbook is Machine Learning "
    "Systems, of Reddi and others.",
)

# %% [markdown]
# Look at the first row. Light needs {{si(paths[0].round_trip, "s")}} for a kilometre and back, and
# the textbook prints {{printed[0]}}: what it counts is software.

# %% tags=["holds"]
assert abs(paths[0].round_trip - datasheet.round_trip(1e3, light.fibre)) < 1e-12, (
    "for a kilometre and back"
)


# %% [markdown]
# ## What it costs to move a word
#
# The lesson's two squares are from one table. Here is the older one that everybody quotes. Guess
# first: a chip multiplies two numbers of two bytes (*fp16*) and adds a third. Or it reads a word
# from memory. How much more energy does it take to fetch the word than to use it?

# %%
predict("numbers.dram_over_fma", ...)

# %%
reveal("numbers.dram_over_fma")

# %%
e = find("horowitz_45nm")
read_over_fma = e.dram / e.fp16_fma
e.dram, e.fp16_fma, si(read_over_fma)

# %% [markdown]
# Reading the word takes {{read_over_fma:.0f}} times the energy of the multiply-add, in numbers of two
# bytes. In the lesson's picture they have four, so its ratio is another one, of the same order.
#
# ### The energy ladder
#
# An *int8* is a whole number of one byte, an *fp32* a floating-point number of four. The *units* are
# what computes.

# %% tags=["holds"]
assert 400 < read_over_fma < 450, "takes {{read_over_fma:.0f}} times the energy of the multiply-add"
other = find("jouppi_7nm").gddr6_64b_least / find("jouppi_7nm").fp32_multiply
assert 1 < read_over_fma / other < 2, "of the same order"

# %%
rungs = {
    "int8 add": e.int8_add,
    "int8 multiply": e.int8_multiply,
    "fp16 multiply-add": e.fp16_fma,
    "fp32 multiply-add": e.fp32_fma,
    f"cache, {si(8e3, 'byte')}": e.cache_8kb,
    f"cache, {si(32e3, 'byte')}": e.cache_32kb,
    f"cache, {si(1e6, 'byte')}": e.cache_1mb,
    "DRAM": e.dram,
}

# %% tags=["figure"]
near, far = list(rungs)[:4], list(rungs)[4:]
lanes = [("arithmetic", near, "green"), ("reading a word of four bytes", far, "orange")]
figure(
    Chart(
        Axis("energy", "J", "log", domain=(1e-14, 1e-8)),
        Axis(scale="category", categories=list(rungs)),
        [
            Bars(
                names,
                [rungs[n] for n in names],
                label=label,
                labels=[repr(rungs[n]) for n in names],
                color=color,
            )
            for label, names, color in lanes
        ],
        height=300,
    ),
    caption=f"Arithmetic costs {e.int8_add!r} to {e.fp32_fma!r}. Every step away from the units "
    "costs more, and the step off the chip is the largest.",
    alt=f"Horizontal bars on a logarithmic axis from {e.int8_add!r} for an int8 addition to "
    f"{e.dram!r} for a word from DRAM.",
)

# %% tags=["holds"]
assert (
    lambda far: far == sorted(far) and far[-1] / far[-2] == max(b / a for a, b in zip(far, far[1:]))
)(list(rungs.values())[3:]), "Every step away from the units costs more"

# %% [markdown]
# And beyond the chip? GDDR6 is a memory made for accelerators. The sources are of three kinds, so
# each row names its layer.

# %%
chip, wires, devices = (find(f"byte_{k}") for k in ("on_chip", "on_link", "through_device"))
per_byte = [
    ["register", chip.register, f"access, {chip.process}, taken as {chip.word.printed}"],
    [f"cache, {si(8e3, 'byte')}", chip.sram_8kb, f"access, {chip.process}"],
    [f"cache, {si(1e6, 'byte')}", chip.l2, f"access, {e.process}"],
    ["memory (GDDR6)", chip.dram, f"access, {find('jouppi_7nm').process}, the least printed"],
    ["another die (NVLink-C2C)", wires.c2c, "link"],
    ["another GPU (NVLink)", wires.nvlink, "link, one hop"],
    ["the host (PCIe)", wires.pcie, "link, an upper end"],
    ["another host (fibre)", devices.optics, "optics at both ends, power over rate"],
    ["another host (adapter)", devices.adapter, "adapter, one end, power over rate"],
    ["a disk (SSD)", devices.ssd, "drive, power limit over rate"],
]
table(
    per_byte,
    ["a byte from", "energy", "layer"],
    caption="In each layer (access, link, device), the farther away, the dearer. Do not compare "
    "digits across layers: a device does more than move the byte.",
)

# %% tags=["holds"]
assert all(
    a < b
    for far in (
        (chip.register, chip.sram_8kb, chip.l2, chip.dram),
        (wires.c2c, wires.nvlink, wires.pcie),
        (devices.optics, devices.adapter, devices.ssd),
    )
    for a, b in zip(far, far[1:])
), "the farther away, the dearer"

# %%
now = find("jouppi_7nm")
then_ratio = [n / e.fp32_multiply for n in (e.dram_64b_least, e.dram_64b_most)]
now_ratio = [n / now.fp32_multiply for n in (now.gddr6_64b_least, now.gddr6_64b_most)]
table(
    [[e.process, *map(si, then_ratio)], [now.process, *map(si, now_ratio)]],
    ["process", "least", "most"],
    caption="Eight bytes from memory, over one fp32 multiplication.",
)

# %% [markdown]
# Engineers of Google have since printed Horowitz's table for {{now.process}} (Jouppi and others,
# *Ten lessons*). Both arithmetic and memory take less energy now: an fp32 multiplication fell from
# {{si(e.fp32_multiply, "J")}} to {{si(now.fp32_multiply, "J")}}, and eight bytes from memory from
# {{si(e.dram_64b_least, "J")}} at least to {{si(now.gddr6_64b_least, "J")}}. So the ratio is still
# in the hundreds. Keep the order of magnitude, and look the digits up.

# %% tags=["holds"]
assert now.fp32_multiply < e.fp32_multiply and now.gddr6_64b_least < e.dram_64b_least, "at least"
assert 200 < now_ratio[0] < then_ratio[1] < 1000, "still in the hundreds"


# %% [markdown]
# ## Which ratios survive a generation?
#
# How long do absolute numbers take to double?

# %%
growing = {
    "bf16 peak": "bf16", "memory bandwidth": "hbm_bandwidth", "memory": "hbm_capacity",
    "link": "link_bandwidth", "power": "power",
}  # fmt: skip
factors = {name: getattr(new, n) / getattr(old, n) for name, n in growing.items()}
doubling = {name: (new.year - old.year) / log2(factor) for name, factor in factors.items()}
table(
    [[name, si(years, digits=2)] for name, years in doubling.items()],
    ["", "years to double"],
    caption=f"From the {old.name} to the {new.name}.",
)

# %% [markdown]
# The peak doubled fastest, and the size of the memory slowest. So ratios between them change as
# well. Which have lasted?

# %% tags=["holds"]
assert (
    min(doubling, key=doubling.get) == "bf16 peak" and max(doubling, key=doubling.get) == "memory"
), "of the memory slowest"

# %%
from lightspeed_course.explorers.numbers import explore_generations

explore_generations()

# %%
ridges = [roofline.ridge_point(m.bf16, m.hbm_bandwidth) for m in (old, new)]
ridges, ridges[1] / ridges[0]

# %% [markdown]
# The peak grew by {{factors["bf16 peak"]:.2g}}, the ridge by {{ridges[1] / ridges[0]:.2g}}. So file
# a number by what it is made of:
#
# - **Physics and counting stay:** light in fibre, two FLOPs for a weight and a token.
# - **A ratio drifts.** Keep its order of magnitude: hundreds of FLOPs while a byte arrives,
#   hundreds of multiplications for the energy of a word.
# - **A rate of one product goes out of date.** The peak doubled in
#   {{si(doubling["bf16 peak"], digits=2)}} years. Look it up.

# %% tags=["holds"]
assert 1 < ridges[1] / ridges[0] < factors["bf16 peak"], "The peak grew"
assert all(100 < r < 1000 for r in ridges + now_ratio), "energy of a word"


# %% [markdown]
# ## Check an equation by its units
#
# The terms of a sum must have one dimension. Many wrong equations fail this test, so let a machine
# do it. Here is the *Iron Law*, the time of a step that moves its bytes, then computes at a share
# of the peak (*utilization*), then waits.
#
# $$T = \frac{\text{bytes} }{\text{bandwidth} }
# + \frac{\text{FLOPs} }{\text{peak} \times \text{utilization} } + \text{latency}$$

# %%
size, flops, utilization, overhead = Q(14, "GB"), Q(2, "TFLOP"), 0.5, Q(20, "us")
terms = {
    "data": size / h100.hbm_bandwidth.quantity,
    "compute": flops / (h100.bf16.quantity * utilization),
    "latency": overhead,
}
rows = [[n, f"{t.to('ms'):.3g~P}", str(t.dimensionality)] for n, t in terms.items()]
table(rows, ["term", "value", "dimension"])

# %%
rates = h100.bf16.quantity, h100.hbm_bandwidth.quantity
whole = roofline.iron_law(flops, size, *rates, utilization, overhead)
print(f"{whole.to('ms'):.4g~P}")

# %% [markdown]
# Each term is a time, and so is the sum. Now divide the bytes by the peak by mistake, and ask for
# the time.

# %% tags=["raises-exception"]
roofline.compute_time(size, h100.bf16.quantity)

# %% [markdown]
# Bits and bytes have the same dimension and convert. So the next line is right where hand
# arithmetic often is not.

# %%
print(roofline.transfer_time(Q(1, "GB"), Q(10, "Gbit/s"), Q(10, "ms")).to("ms"))

# %% [markdown]
# You cannot trade FLOPs for bytes directly, because their units differ. Such a trade goes through
# time. Its exchange rate is the number of FLOPs that the units can do while one byte arrives, peak
# over bandwidth, {{roofline.ridge_point(h100.bf16, h100.hbm_bandwidth):.0f}} for an H100. Chapter 2
# calls it the *ridge*.


# %% [markdown]
# ## The machines
#
# Peaks are for dense matrices on one chip; link rates are for one direction. Data sheets often
# print the *sparse* peak, which counts zeros that are skipped, or both directions of a link
# together.


# %%
def cell(entry, name, unit):
    """A number of an entry; a dash stands for one that its vendor does not state."""
    return si(getattr(entry, name), unit) if name in entry else "–"


phone = accelerator("apple_a17_pro")
keys = (
    "h100_sxm", "a100_80gb", "b200", "mi300x", "tpu_v5p", "tpu_v6e", "apple_a17_pro",
    "ryzen_9_7950x",
)  # fmt: skip
units = {"bf16": "FLOP/s", "int8": "OP/s", "hbm_bandwidth": "byte/s", "power": "W"}
shown = [accelerator(key) for key in keys]

# %% tags=["figure"]
table(
    [[m.name, *(cell(m, name, unit) for name, unit in units.items())] for m in shown],
    ["machine", "bf16", "int8", "memory bandwidth", "power"],
    caption="Peaks of the matrix units. A dash: its vendor does not state it.",
)

# %% [markdown]
# Compare one precision at a time. Apple gives the phone's rate in "trillion operations per second"
# and does not say of what width. If they are int8, the H100 does {{h100.int8 / phone.int8:.0f}}
# times as many.

# %% tags=["holds"]
assert h100.int8 > 50 * phone.int8, "If they are int8, the H100 does {{h100.int8 / phone.int8:.0f}} times as many"

# %%
gb, gib = UNITS["GB"][0], UNITS["GiB"][0]
h100.hbm_capacity.printed, h100.hbm_capacity

# %% [markdown]
# The H100 is sold with “{{h100.hbm_capacity.others[0]["printed"]}}”, and the card reports
# {{h100.hbm_capacity.printed}}. That is {{h100.hbm_capacity / gib:.1f}} GiB, or
# {{si(h100.hbm_capacity, "byte")}}: memory is counted in powers of two, and where the data sheet
# prints GB, read GiB. A GiB is {{gib / gb - 1:.0%}} larger than a GB.
#
# ### Links: which direction, whose bandwidth?
#
# A transfer goes one way, so one way is what it gets: {{si(nvlink.bandwidth, "byte/s")}} of the
# {{si(nvlink.bandwidth_bidirectional, "byte/s")}} that data sheets print for NVLink 4. And ask who
# shares a link. The {{si(link("efa_p5").bandwidth_per_node, "byte/s")}} of a P5 instance at Amazon
# are for the node: each of its {{link("efa_p5").gpus:.0f}} GPUs has {{si(link("efa_p5").bandwidth,
# "byte/s")}}.

# %% tags=["holds"]
assert gib > gb and 79 * gib < h100.hbm_capacity < 80 * gib, "larger than a GB"

# %%
keys = [
    "pcie5_x16", "pcie6_x16", "nvlink3", "nvlink4", "nvlink5", "infiniband_ndr", "infiniband_xdr",
    "ethernet_400g", "ici_v5e", "ici_v5p",
]  # fmt: skip
links = [link(key) for key in keys]
rows = [[one.name, one.bandwidth, one.bandwidth_bidirectional] for one in links]
table(rows, ["link", "one way", "both ways"], "NVLink and ICI: the links of a chip together.")


# %% [markdown]
# ## Measure it here
#
# The ladder above is a typical machine's. Ask yours. To measure latency, make each load depend on
# the one before it. Store numbers in random order, let each give the position of the next, and
# follow the chain. A short chain lies in a cache, and each step takes that cache's latency. Then
# make the chain longer, from a few KiB to far beyond the caches.
#
# Decide first: where will the first step of *your* ladder be, and how many are there? Then put your
# numbers in place of the catalog's below.

# %%
from lightspeed_tools.measure import find as find_quantity
from lightspeed_tools.measure.pages.machine_figures import (
    in_flight,
    ladder_figure,
    ladder_findings,
)

# %%
guess = {
    "a load that stays near": cpu[1].latency,  # s
    "a load from main memory": cpu[-1].latency,
    "a byte to another program and back": 2 * infiniband.end_to_end,
    "a small write, safely on disk": memory("nvme_ssd").latency,
    "copying in memory, all cores": cpu[-1].bandwidth,  # byte/s
}

# %% tags=["measured"]
here = measure_here("host")

# %% tags=["measured"]
ladder_figure(here)

# %% tags=["measured"]
ladder_findings(here)


# %%
def lines(threads):
    """What to look up in a record, beside the guess at it. Sizes are in bytes."""
    near, far, copy = dict(size=2**14), dict(size=2**26), dict(threads=threads)
    keys = [
        ("host.latency", near), ("host.latency", far), ("host.loopback_round_trip", {}),
        ("host.storage_flush", {}), ("host.copy_bandwidth", copy),
    ]  # fmt: skip
    pairs = zip(guess.items(), keys)
    told = [row(label, key, law=value, **which) for (label, value), (key, which) in pairs]
    one = row("the same on one core", "host.copy_bandwidth", threads=1)
    return [*told, one, row("triad on one core", "host.triad_bandwidth", threads=1)]


# %% tags=["measured"]
compare_here(here, lines(here["machine"]["usable_cores"]), caption="Here your guess stands in place of a law.")

# %% [markdown]
# ### Explain the difference
#
# - **A cache without a step.** The dashed lines are what the machine *says*. If others use the same
#   cache, you get a share of it, which comes and goes.
# - **A step without a cache, or a climb that does not end.** The address that a program uses has to
#   be translated for each page of memory. The translations have a cache of their own, the TLB, and
#   beyond its reach nearly every step pays for a second lookup.
# - **Copying counts what the program asked for**, one read and one write. Many processors first
#   fetch the line that they are about to overwrite, so the memory moves half as much again.
# - **A message to another program** travels hardly any distance. You measure the operating system:
#   calls to send and to receive, and waking a process.
# - **A safe write** waits until the drive, or what stands in for it, says that it is done. Else you
#   would measure how fast a program fills memory.
#
# ### The same on a recorded machine
#
# This one, a rented virtual machine, was measured for the course.

# %%
recorded = shipped()["amd_epyc_2core"]
ladder_figure(recorded)

# %%
ladder_findings(recorded)

# %%
show_recorded(recorded, lines(threads=2), caption="The catalog's numbers in place of a law.")
one_core = find_quantity(recorded, "host.triad_bandwidth", threads=1).value
far = find_quantity(recorded, "host.latency", size=2**26).value
line = 64  # bytes that come at once, however few are asked for
on_their_way = in_flight(recorded, 2**26, line)

# %% [markdown]
# A *triad* reads two vectors and writes a third, $a = b + s\,c$. One core moves
# {{si(one_core, "byte/s")}} in it, though each load from so large a working set takes
# {{si(far, "s")}}. So several cache lines must be on their way at once: bandwidth times latency,
# over the {{si(line, "byte")}} of a line, gives {{on_their_way:.0f}}. That is Little's law, the
# subject of chapter 4, and why one core often cannot use up the memory's bandwidth: it can wait for
# a limited number of loads at a time.
#
# ### And with neighbours
#
# Another rented machine. A record begins with what was wrong while it was taken:

# %%
neighbours = shipped()["intel_xeon_2core"]
checked = neighbours["environment"]
print(*(check["words"] for check in checked if check["state"] == "warn"), sep="\n")

# %%
ladder_findings(neighbours)
waits = [find_quantity(r, "host.latency", size=2**26).value for r in (recorded, neighbours)]

# %% [markdown]
# Others took processor time away, and the small caches still show up where they should. But on both
# machines the last cache, as advertised, does not: do not plan with what a rented machine says it
# has. Main memory is about as far away on both, {{si(waits[0], "s", 2)}} and
# {{si(waits[1], "s", 2)}}. But a core of this one keeps {{in_flight(neighbours, 2**26):.0f}} lines
# on their way instead of {{on_their_way:.0f}}, and so it gets
# {{si(find_quantity(neighbours, "host.triad_bandwidth", threads=1).value, "byte/s")}}.


# %% tags=["holds"]
assert 0.8 < waits[1] / waits[0] < 1.25, "far away on both"
assert in_flight(neighbours, 2**26) < on_their_way, "lines on their way"

# %% [markdown]
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %%
from lightspeed_course import gallery

gallery("01")

# %% [markdown]

# ## What these numbers leave out
#
# They leave out contention: each is for one user of an idle machine (chapter 4 is about the
# others). They leave out tails, of which an average says little, and prices, which change quickly.
#
# ## Further reading
#
# - Dean, *Numbers everyone should know* (2009), and Scott's interactive edition of it.
# - Horowitz, *Computing's energy problem* (2014), the table of energies, and Jouppi and others,
#   *Ten lessons from three generations shaped Google's TPUv4i* (2021), the same table for a later
#   process.
# - Zhao and others, *Insights into DeepSeek-V3* (2025), for the latencies of messages.
# - Grigorik, *High Performance Browser Networking* (2013), chapter 1, on latency and the speed of
#   light.
# - `lightspeed number h100_sxm.hbm_bandwidth` in a terminal prints any constant with its source.
