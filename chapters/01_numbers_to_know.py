# %% [markdown]
# # 1. Numbers to know
#
# A colleague wants to fetch a feature vector from a server across the country for every request. Another wants to compute
# it again on the GPU. The review starts in a minute. Who is right?
#
# You can answer without a benchmark if you carry about ten numbers in your head, and know which of them to divide. This
# chapter gives you the numbers, where each comes from, and which will still hold in ten years.
#
# **You will be able to** place any access or transfer on a scale of twelve decades; tell latency from bandwidth; check an
# equation by its units; and notice when somebody's number is sparse, two-way, in bits, or on the wrong processor.
#
# **You need** nothing but arithmetic. **Time:** an hour and a half, with the cards.

# %%
from lightspeed import datasheet, roofline
from lightspeed.catalog import accelerator, entries, find, link, memory
from lightspeed_course import (
    ask, Axis, Bars, calibration, cards, Chart, figure, human_axis, human_time, Points, predict,
    reveal, Rule, si, table,
)
from lightspeed.units import Q

# %% [markdown]
# ## Before you read on
#
# The chip multiplies two numbers and adds a third. Or it reads one of them from memory. Commit yourself: how many times the
# energy does the reading take?

# %%
predict("numbers.dram_over_fma", ...)

# %%
predict("numbers.fibre_kilometre", ...)

# %%
predict("numbers.hbm_latency", ...)

# %% [markdown]
# ## Three numbers that matter most
#
# ### Moving beats computing, in energy

# %%
e = find("horowitz_45nm")
multiply_only = e.dram / e.fp16_multiply
honest = e.dram / e.fp16_fma

# %%
reveal("numbers.dram_over_fma")

# %% [markdown]
# A widely used text prints about {{multiply_only:.0f}}, and rounds it to six hundred. It compares with "an FP16 multiply-add"
# but divides by {{si(e.fp16_multiply, "J")}}, the multiply alone. The add costs {{si(e.fp16_add, "J")}} more, and the ratio is
# {{honest:.0f}}. The order of magnitude stands; the lesson is to ask what is in the denominator.
#
# ### Training keeps sixteen bytes for every parameter
#
# Mixed precision with Adam keeps the following, for every parameter, before the first activation is stored.

# %%
adam, params = find("adam_mixed_precision"), 7e9
parts = {
    "weights, two bytes wide": adam.weights,
    "gradients": adam.gradients,
    "master weights, fp32": adam.master_weights,
    "first moment, fp32": adam.momentum,
    "second moment, fp32": adam.variance,
}
table([[name, f"{n:.0f}"] for name, n in parts.items()] + [["sum", f"{sum(parts.values()):.0f}"]], ["what", "bytes a parameter"])

# %% [markdown]
# The same text lists weights, master weights and both moments, and calls the sum {{adam.total:.0f}}. Its list adds up to
# {{adam.total - adam.gradients:.0f}}: the gradients are missing. A wrong list with a right total is how errors survive.
# A model of {{si(params, "parameter")}} needs {{si(params * adam.total, "byte")}} before it sees a token.
#
# ### A kilometre of fibre takes its time
#
# It is a third slower than in vacuum, and nothing that you buy changes it.

# %%
reveal("numbers.fibre_kilometre")

# %% [markdown]
# ## What will not change
#
# ### The speed-of-light tax

# %%
paths = [memory(k) for k in ("path_hall", "path_country", "path_atlantic", "path_pacific")]
meaning = ["training across machines is feasible", "no per-token round trips", "serve from both sides", "keep data where it is used"]
table(
    [[p.name, p.distance.printed, si(p.round_trip, "s"), p.round_trip.others[0]["printed"], m] for p, m in zip(paths, meaning)],
    ["path", "distance", "least round trip", "often printed", "what follows"],
    caption="There and back at the speed of light in fibre, for the distances of the catalog.",
)

# %% [markdown]
# The first row is the interesting one. A round trip in a data centre is often quoted as a millisecond, with the remark that
# no optimisation can reduce it. Light needs {{si(memory("path_hall").round_trip, "s")}} for a kilometre and back. The rest is
# network cards, switches, kernels and queues, and people do optimise those.
#
# ### The energy ladder

# %%
rungs = {
    "int8 add": e.int8_add,
    "int8 multiply": e.int8_multiply,
    "fp16 multiply-add": e.fp16_fma,
    "fp32 multiply-add": e.fp32_fma,
    "small cache": e.cache_8kb,
    "larger cache": e.cache_32kb,
    "large cache": e.cache_1mb,
    "DRAM": e.dram,
}
names = list(rungs)

# %% tags=["figure"]
figure(
    Chart(
        Axis("energy", "J", "log", domain=(1e-14, 1e-8)),
        Axis(scale="category", categories=names),
        [
            Bars(names[:4], list(rungs.values())[:4], label="arithmetic", labels=[si(v, "J") for v in list(rungs.values())[:4]], color="green"),
            Bars(names[4:], list(rungs.values())[4:], label="reading a word of four bytes", labels=[si(v, "J") for v in list(rungs.values())[4:]], color="orange"),
        ],
        height=340,
    ),
    caption="Arithmetic costs a picojoule or so. Every step away from the units costs more, and the step off the chip is the largest.",
    alt=f"Horizontal bars on a logarithmic axis from {si(e.int8_add, 'J')} for an int8 addition to {si(e.dram, 'J')} for a word from DRAM.",
)

# %%
ratios = {
    "DRAM read over fp16 multiply-add": (honest, "wires, whose capacitance grows with their length"),
    "DRAM read over fp16 multiply": (multiply_only, "the figure usually quoted"),
    "fp32 add over int8 add": (e.fp32_add / e.int8_add, "bits that switch"),
    "fp32 over fp16 multiply-add": (e.fp32_fma / e.fp16_fma, "bits that switch"),
    "fp32 over fp16 multiply": (e.fp32_multiply / e.fp16_multiply, "bits that switch"),
    "large over small cache": (e.cache_1mb / e.cache_8kb, "distance to the units"),
}
table([[n, f"{v:.3g}", why] for n, (v, why) in ratios.items()], ["ratio", "value", "what keeps it so"], caption=f"Computed from Horowitz's table for a process of {e.process}.")

# %% [markdown]
# The absolute values belong to an old process and have shrunk. The ratios have not: arithmetic shrinks with transistors, movement
# is a matter of wires, and those gain less. So the order of magnitude is what to keep, and time is on its side. That is why
# *arithmetic intensity*, the subject of chapter 2, decides so much.
#
# ### Rules of arithmetic
#
# These involve no hardware. They are counting, and they hold for any dense transformer.

# %%
tokens = 1e12
rules = [
    ["weights, bf16", "two bytes a parameter", si(2 * params, "byte")],
    ["weights, int8", "one byte a parameter", si(params, "byte")],
    ["training state, Adam", "sixteen bytes a parameter", si(adam.total * params, "byte")],
    ["inference", "two FLOPs a parameter and token", si(2 * params, "FLOP") + " a token"],
    ["training", "six FLOPs a parameter and token", f"{6 * params * tokens:.1e} FLOP"],
]
table(rules, ["what", "rule", f"for {si(params, 'parameter')}"], caption=f"Training on {si(tokens, 'token')}. What attention adds comes in chapter 6.")

# %% [markdown]
# ## The latency ladder
#
# If a register were a pencil on your desk, where would main memory be? Keep the two kinds of processor apart: a CPU's
# caches and a GPU's caches are different animals, and comparing one's L1 with the other's memory means nothing.

# %%
cpu = [memory(k) for k in ("cpu_register", "cpu_l1", "cpu_l2", "cpu_l3", "cpu_dram")]
gpu = [memory(k) for k in ("gpu_shared", "gpu_l1", "gpu_l2", "gpu_hbm")]
wires = [link(k) for k in ("nvlink4", "pcie5_x16", "infiniband_ndr")]
rest = sorted([*wires, memory("nvme_ssd"), memory("hard_disk"), *paths], key=lambda x: x.latency)
groups = {"CPU": (cpu, "blue"), "GPU": (gpu, "green"), "links, storage, distance": (rest, "orange")}
stretch = find("human_scale").stretch

# %% tags=["figure"]
ladder = [x for group, _ in groups.values() for x in group]
figure(
    Chart(
        Axis("latency", "s", "log", domain=(1e-10, 10)),
        Axis(scale="category", categories=[x.name for x in ladder]),
        [
            Bars([x.name for x in group], [x.latency for x in group], label=name, labels=[si(x.latency, "s", 2) for x in group], color=color)
            for name, (group, color) in groups.items()
        ],
        x_top=human_axis(stretch, f"if {si(find('human_scale').tick, 's')} lasted {human_time(find('human_scale').feels_like)}"),
        height=560,
    ),
    caption="The ladder, with each latency as a person would feel it on the upper axis. Distances are one way.",
    alt=f"Horizontal bars on a logarithmic axis, from {si(cpu[0].latency, 's')} for a register to {si(paths[-1].latency, 's')} across the Pacific, in three groups: CPU, GPU, and everything outside the chip.",
)

# %%
table(
    [[x.name, si(x.latency, "s"), human_time(datasheet.human_scale(x.latency, find("human_scale").tick, find("human_scale").feels_like))] for x in ladder],
    ["level", "latency", "felt as"],
    caption=f"One factor for every row: {si(find('human_scale').tick, 's')} lasts {human_time(find('human_scale').feels_like)}.",
)

# %% [markdown]
# Such tables are printed everywhere with the right idea and wrong entries; one of them has its rows about twice too long, and
# InfiniBand almost four times. An analogy is a multiplication. Do it once.

# %%
reveal("numbers.hbm_latency")

# %% [markdown]
# ### Like with like

# %%
shared, l1, l2, hbm = gpu
like = [
    ["GPU: HBM over L1, latency", hbm.latency / l1.latency],
    ["GPU: HBM over L2, latency", hbm.latency / l2.latency],
    ["GPU: L1 over HBM, bandwidth", l1.bandwidth / hbm.bandwidth],
    ["CPU: DRAM over L1, latency", cpu[-1].latency / cpu[1].latency],
    ["SSD over GPU HBM, latency", memory("nvme_ssd").latency / hbm.latency],
    ["GPU HBM over PCIe, bandwidth", hbm.bandwidth / link("pcie5_x16").bandwidth],
    ["NVLink over InfiniBand, bandwidth", link("nvlink4").bandwidth / link("infiniband_ndr").bandwidth],
]
table([[n, f"{v:.3g}"] for n, v in like], ["ratio", "value"])

# %% [markdown]
# You will read that HBM is three hundred times slower than L1. That divides a GPU's memory by a *CPU's* cache. On one GPU it is
# {{hbm.latency / l1.latency:.2g}} times. You will also read that NVLink is eighteen times InfiniBand: that divides both
# directions of one by one direction of the other. It is {{link("nvlink4").bandwidth / link("infiniband_ndr").bandwidth:.2g}}.
#
# ### The pyramid
#
# No technology is both large and near. So machines stack several, and software tries to stay near the top.

# %%
pyramid = [
    ["GPU shared memory and L1", si(shared.latency, "s"), si(shared.bandwidth, "byte/s"), "on chip"],
    ["GPU L2", si(l2.latency, "s"), si(l2.bandwidth, "byte/s"), si(l2.capacity, "byte")],
    ["GPU HBM", si(hbm.latency, "s"), si(hbm.bandwidth, "byte/s"), si(hbm.capacity, "byte")],
    ["another GPU, NVLink", si(wires[0].latency, "s"), si(wires[0].bandwidth, "byte/s"), "the node"],
    ["CPU DRAM", si(cpu[-1].latency, "s"), si(cpu[-1].bandwidth, "byte/s"), "the host"],
    ["host, PCIe", si(wires[1].latency, "s"), si(wires[1].bandwidth, "byte/s"), "the host"],
    ["another node, InfiniBand", si(wires[2].latency, "s"), si(wires[2].bandwidth, "byte/s"), "the cluster"],
    ["SSD", si(memory("nvme_ssd").latency, "s"), si(memory("nvme_ssd").bandwidth, "byte/s"), "the drive"],
]
table(pyramid, ["level", "latency", "bandwidth, one way", "holds"], caption="An H100 and what is around it.")

# %% tags=["figure"]
levels = [("shared, L1", shared), ("L2", l2), ("HBM", hbm), ("PCIe to the host", wires[1]), ("InfiniBand", wires[2]), ("SSD", memory("nvme_ssd"))]
figure(
    Chart(
        Axis("bandwidth, one way (width of the pyramid's pipe)", "byte/s", "log", domain=(1e9, 1e14)),
        Axis(scale="category", categories=[n for n, _ in levels]),
        [Bars([n for n, _ in levels], [x.bandwidth for _, x in levels], labels=[f"{si(x.bandwidth, 'byte/s')}, {si(x.latency, 's', 2)} away" for _, x in levels], color="sky")],
        height=300,
    ),
    caption="The memory pyramid of one GPU, top down: every level is larger and narrower than the one above it.",
    alt=f"Bars that shorten from {si(shared.bandwidth, 'byte/s')} at the top, on the chip, to {si(memory('nvme_ssd').bandwidth, 'byte/s')} at the bottom, the SSD.",
)

# %% [markdown]
# ## Latency budgets
#
# These are requirements, not specifications. The next chip does not move them.

# %%
budgets = entries("budgets")
rows = [b for k, b in budgets.items() if "latency" in b and k != "batch_training"]
table([[b.name, si(b.latency, "s"), b.reason, b.latency.source.author or b.latency.source.title] for b in rows], ["application", "budget", "because", "who says so"])

# %% [markdown]
# At {{budgets["braking"].speed.printed}} a car moves {{100 * budgets["braking"].distance:.0f}} cm in
# {{si(budgets["braking"].latency, "s")}}. Batch training has no such row: it lasts hours to days, and throughput is what counts.
#
# Where a budget is the course's own premise or a textbook's, the last column says so. Do not quote it as psychology.
#
# ## The machines
#
# Dense, per chip, one direction. Three words that most spec tables leave out.

# %%
def cell(entry, name, unit):
    """A number of an entry, or a dash where the vendor states none."""
    return si(getattr(entry, name), unit) if name in entry else "–"


shown = [accelerator(k) for k in ("h100_sxm", "a100_80gb", "b200", "mi300x", "tpu_v5p", "tpu_v6e", "apple_a17_pro", "ryzen_9_7950x")]
table(
    [[m.name, cell(m, "bf16", "FLOP/s"), cell(m, "int8", "FLOP/s"), cell(m, "hbm_bandwidth", "byte/s"), cell(m, "power", "W")] for m in shown],
    ["machine", "bf16", "int8", "memory bandwidth", "power"],
    caption="Peaks of the matrix units; the last two rows are a phone and a desktop CPU.",
)

# %% [markdown]
# "A data centre GPU is twenty-eight times a phone": that ratio divides a bf16 rate by an int8 rate. In int8 on both sides it is
# {{accelerator("h100_sxm").int8 / accelerator("apple_a17_pro").int8:.0f}}.

# %%
h100, v5p = accelerator("h100_sxm"), accelerator("tpu_v5p")
sheet = [("bf16 peak", "bf16", "FLOP/s"), ("memory bandwidth", "hbm_bandwidth", "byte/s"), ("memory", "hbm_capacity", "byte"), ("on-chip", "l2_capacity", "byte"), ("link, one way", "link_bandwidth", "byte/s"), ("link, both ways", "link_bandwidth_bidirectional", "byte/s")]
table(
    [[label, cell(h100, n, u), cell(v5p, n if n in v5p or n != "l2_capacity" else "vmem_capacity", u)] for label, n, u in sheet]
    + [["ridge", *(f"{roofline.ridge_point(m.bf16, m.hbm_bandwidth):.0f} FLOP/byte" for m in (h100, v5p))]],
    ["", h100.name, v5p.name],
    caption="Two machines for back-of-the-envelope work. On-chip is the L2 of one and the VMEM of the other.",
)

# %% [markdown]
# ### Links: which direction, whose bandwidth?

# %%
keys = ["pcie3_x16", "pcie4_x16", "pcie5_x16", "pcie6_x16", "nvlink3", "nvlink4", "nvlink5", "infiniband_ndr", "infiniband_xdr", "efa_p5", "ethernet_100g", "ethernet_400g", "ethernet_800g", "ici_v5e", "ici_v5p"]
table([[link(k).name, si(link(k).bandwidth, "byte/s"), si(link(k).bandwidth_bidirectional, "byte/s")] for k in keys], ["link", "one way", "both ways"])

# %% [markdown]
# The {{si(link("nvlink4").bandwidth_bidirectional, "byte/s")}} of NVLink 4 on data sheets are both ways. A transfer in one
# direction gets {{si(link("nvlink4").bandwidth, "byte/s")}}. The {{si(link("efa_p5").bandwidth_per_node, "byte/s")}} of a
# P5 instance are for the node: each of its {{link("efa_p5").gpus:.0f}} GPUs has {{si(link("efa_p5").bandwidth, "byte/s")}}.
#
# ## Latency and bandwidth are two things
#
# $$T = \text{latency} + \frac{\text{size} }{\text{bandwidth} }$$
#
# The first term is about distance, the second about width. Take one link and two sizes.

# %%
wire, ping = link("ethernet_10g"), 10e-3
small, large = 1e3, 1e9
table(
    [
        [si(s, "byte"), si(roofline.transfer_time(s, wire.bandwidth), "s"), si(roofline.transfer_time(s, wire.bandwidth, ping), "s"), f"{ping / roofline.transfer_time(s, wire.bandwidth, ping):.1%}"]
        for s in (small, large)
    ],
    ["size", "moving the bytes", "in all", "share of latency"],
    caption=f"{wire.name} with {si(ping, 's')} of latency.",
)

# %% [markdown]
# For the small message the width of the link is irrelevant; for the large one the distance is. In between lies the size at
# which both terms are equal, latency times bandwidth: here {{si(roofline.crossover_size(ping, wire.bandwidth), "byte")}}. It is
# the number to compute before you buy a faster link.
#
# ## Try it
#
# Choose a path, from the nearest cache to the far side of an ocean. Before you move the slider, say which term decides, or whether both do.

# %%
from lightspeed_course.explorers.numbers import explore, explore_generations

explore()

# %% [markdown]
# ## Check an equation by its units
#
# Every term of a sum must have the same dimension. Most wrong performance equations fail this test, so it is worth
# having a machine do it. Here is the *Iron Law*, the time of a step in which nothing overlaps.
#
# $$T = \frac{\text{bytes} }{\text{bandwidth} } + \frac{\text{FLOPs} }{\text{peak} \times \text{utilisation} } + \text{latency}$$

# %%
size, flops, utilisation, overhead = Q(14, "GB"), Q(2, "TFLOP"), 0.5, Q(20, "us")
terms = {
    "data": size / h100.hbm_bandwidth.quantity,
    "compute": flops / (h100.bf16.quantity * utilisation),
    "latency": overhead,
}
table([[n, f"{t.to('ms'):.3g~P}", str(t.dimensionality)] for n, t in terms.items()], ["term", "value", "dimension"])

# %%
whole = roofline.iron_law(flops, size, h100.bf16.quantity, h100.hbm_bandwidth.quantity, utilisation, overhead)
print(f"{whole.to('ms'):.4g~P}")

# %% [markdown]
# Each term is a time, and so is the sum. Now divide the bytes by the peak by mistake, and ask for the time.

# %% tags=["raises-exception"]
roofline.compute_time(size, h100.bf16.quantity)

# %% [markdown]
# Bits and bytes have the same dimension and convert. That is why the next line is right and hand arithmetic so often is not.

# %%
print(roofline.transfer_time(Q(1, "GB"), Q(10, "Gbit/s"), Q(10, "ms")).to("ms"))

# %% [markdown]
# You cannot trade FLOPs for bytes directly; their units differ. Every such trade goes through time, and the exchange rate is the
# ridge of chapter 2.
#
# ## Which ratios survive a generation?
#
# Absolute numbers double every two or three years. Rules of thumb that are ratios last longer, but not all of them.

# %%
explore_generations()

# %% [markdown]
# ## Check: data sheets against their own arithmetic
#
# A peak is clock times operations a cycle times units. A cable's floor is length over speed. So each of these printed or
# measured numbers can be predicted from others; the last column is the error of the prediction.

# %%
checks = []
for m in entries("accelerators").values():
    if all(n in m for n in ("clock", "flop_per_cycle", "tensor_core_count")):
        peak = m.bf16 if "bf16" in m else m.fp16
        checks.append((f"{m.name}, peak from its clock", datasheet.peak_from_clock(m.clock, m.flop_per_cycle, m.tensor_core_count), peak, "FLOP/s"))
for k in ("nvlink3", "nvlink4", "nvlink5"):
    checks.append((f"{link(k).name}, from its links", datasheet.bundle_bandwidth(link(k).links, link(k).bandwidth_per_link), link(k).bandwidth_bidirectional / 2, "byte/s"))
atlantic = memory("path_atlantic")
checks.append(("Atlantic, floor against the fastest cable", datasheet.round_trip(atlantic.distance, memory("light").fibre), atlantic.measured_round_trip, "s"))

# %%
table([[n, si(p, u, 4), si(m, u, 4), f"{p / m - 1:+.1%}"] for n, p, m, u in checks], ["what", "predicted", "printed or measured", "error"])

# %% tags=["figure"]
short = [n for n, _, _, _ in checks]
figure(
    Chart(
        Axis("predicted over printed or measured", "", domain=(0.9, 1.1)),
        Axis(scale="category", categories=short),
        [Points([p / m for _, p, m, _ in checks], short, color="blue"), Rule(x=1, label="prediction is right")],
        height=360,
    ),
    caption="The arithmetic of a data sheet is exact when the right clock is used. The cable loses a few per cent to its detours.",
    alt="Points close to a vertical rule at one; the largest deviation is that of the Atlantic cable.",
)

# %% [markdown]
# ### Where it breaks
#
# - **The clock on the web page may not be the one behind the peak.** With the boost clock that is often quoted for an
#   H100 its peak would come out {{datasheet.peak_from_clock(1.98e9, h100.flop_per_cycle, h100.tensor_core_count) / h100.bf16 - 1:.0%}} too high.
# - **A floor is not a forecast.** Real paths add equipment, detours and queues; real memories add page misses and refresh.
# - **Latency has layers.** InfiniBand hardware takes {{si(link("infiniband_ndr").latency, "s")}}; one step of a collective over
#   it, software included, is calibrated at {{si(link("infiniband_ndr").nccl_step_simple, "s")}} in NCCL. Say which one you mean.
#
# ## Measure it here
#
# The ladder of this chapter is that of a typical machine. Yours is at hand, so ask it. To see a latency, let every load wait for the one
# before: numbers lie in memory in random order, each says where the next one is, and a compiled loop follows them. While the walk fits into a
# cache, each step takes that cache's latency. Then make the walk longer, from a few KiB to far more than any cache holds.
#
# Decide before you measure. Where will the first step of *your* ladder be, and how many steps are there? Then put your numbers in place of those
# that stand below, which are the catalog's.

# %%
from lightspeed_course import compare_here, measure_here, row, shipped, show_recorded
from lightspeed_course.measure import find as find_quantity
from lightspeed_course.measure.environment import usable_cores
from lightspeed_course.measure.pages.machine_figures import (
    in_flight,
    ladder_figure,
    ladder_findings,
)

# %%
guess = {
    "a load that stays near": cpu[1].latency,  # s
    "a load from main memory": cpu[-1].latency,
    "a byte to another program and back": link("infiniband_ndr").latency,
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
    keys = [("host.latency", near), ("host.latency", far), ("host.loopback_round_trip", {}), ("host.storage_flush", {}), ("host.copy_bandwidth", copy)]
    told = [row(label, key, law=value, **which) for (label, value), (key, which) in zip(guess.items(), keys)]
    return [*told, row("the same on one core", "host.copy_bandwidth", threads=1), row("triad on one core", "host.triad_bandwidth", threads=1)]


# %% tags=["measured"]
compare_here(here, lines(usable_cores()), caption="The guess stands where other chapters have a law.")

# %% [markdown]
# ### Explain the difference
#
# - **A cache without a step.** The dashed lines are what the machine *says*. A virtual machine passes on what it was told; if others use the same
#   cache, your share of it is smaller, and comes and goes.
# - **A step without a cache, or a climb that does not end.** Each page of memory has to be translated from the address that the program uses. The
#   translations have a cache of their own, the TLB. A walk over more pages than it holds pays for a second lookup in nearly every step.
# - **Copying counts what the program asked for**, one read and one write. Many processors first fetch the line that they are about to overwrite, so
#   the memory moves half as much again, and part of its bandwidth never shows in the result.
# - **The way to another program** has next to no length. What you see is the operating system: two calls to send, two to receive, and the time until
#   somebody who sleeps is woken. It is the millisecond of the data centre once more, in small.
# - **A safe write** waits until the drive, or whatever plays a drive in a virtual machine, says that it is done. Without that word, writing looks
#   a thousand times faster, because it only fills memory.
#
# ### The same on a recorded machine
#
# This one was measured for the course. It is a rented virtual machine, and every sample is in the repository.

# %%
recorded = shipped()["amd_epyc_2core"]
ladder_figure(recorded)

# %%
ladder_findings(recorded)

# %%
show_recorded(recorded, lines(threads=2), caption="The catalog's numbers in place of a law.")
one_core = find_quantity(recorded, "host.triad_bandwidth", threads=1).value
far = find_quantity(recorded, "host.latency", size=2**26).value
on_their_way = in_flight(recorded, 2**26)

# %% [markdown]
# One more number can be had from two that are there. A core gets {{si(one_core, "byte/s")}} through a
# triad, though each load takes {{si(far, "s")}} where the working set is far beyond the caches. So many lines of a cache must be on their way at once:
# latency times bandwidth, over the size of a line, gives {{on_their_way:.0f}}. That is Little's law, the subject of chapter 4. It is also why one
# core alone often cannot use up a memory: it has only so many places to note what it waits for.
#
# ### And with neighbours
#
# Another rented machine, by another maker. A record begins with what was wrong while it was taken, and here something was:

# %%
neighbours = shipped()["intel_xeon_2core"]
print(*(check["words"] for check in neighbours["environment"] if check["state"] == "warn"), sep="\n")
ladder_figure(neighbours)

# %%
ladder_findings(neighbours)

# %%
show_recorded(neighbours, lines(threads=2), caption="The catalog's numbers in place of a law.")
waits = [find_quantity(r, "host.latency", size=2**26).value for r in (recorded, neighbours)]

# %% [markdown]
# Whoever shares the hardware took processor time away. Medians bear that, and the small caches stand where they should. But neither of the
# two machines shows the last cache that it advertises: do not plan with what a rented machine says it has. Main memory is about as far away on both,
# {{si(waits[0], "s", 2)}} and {{si(waits[1], "s", 2)}}. A core of this one keeps only {{in_flight(neighbours, 2**26):.0f}} lines on their way,
# and so it gets {{si(find_quantity(neighbours, "host.triad_bandwidth", threads=1).value, "byte/s")}} from a memory with nearly the same latency.
#
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %%
from lightspeed_course import gallery

gallery("01")

# %% [markdown]
# ## Cards
#
# Ten numbers to carry in your head. A card comes back the next day if you were off, and after weeks if you were not. Scored
# in decades: within a quarter is known, a factor of ten is one decade off.

# %%
cards("numbers")

# %%
calibration()

# %% [markdown]
# ## Worked problems

# %%
ask("numbers.transfer_time")

# %%
ask("numbers.recompute_or_fetch")

# %%
ask("numbers.country_requests")

# %% [markdown]
# Back to the review. A round trip across the country costs {{si(memory("path_country").round_trip, "s")}}. In that time an H100
# does {{si(h100.bf16 * memory("path_country").round_trip, "FLOP")}}. Unless the feature vector takes more than that to compute, or
# can be fetched ahead of time, compute it.
#
# ## Exercises
#
# `exercises/01_numbers_to_know.ipynb` has these problems and more, from recall to design.
#
# ## What these numbers leave out
#
# Contention: every number here is for one user of an idle machine. Chapter 4 is about the others. Tails: an average latency says
# little about the slowest request in a hundred. Prices: they change faster than anything on this page.
#
# ## Further reading
#
# - Dean, *Numbers everyone should know* (2009), and Scott's interactive edition of it.
# - Horowitz, *Computing's energy problem* (2014), the table behind every energy number here.
# - Grigorik, *High Performance Browser Networking* (2013), chapter 1, on latency and the speed of light.
# - `lightspeed number h100_sxm.hbm_bandwidth` in a terminal prints any constant with its source.
