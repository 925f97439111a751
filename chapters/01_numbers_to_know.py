# %% [markdown]
# # 1. Numbers to know
#
# For each request, a colleague wants to fetch a feature vector from a server across the country.
# Another wants to compute it again on the GPU. The review starts in a minute. Who is right?
#
# You can answer without a benchmark if you carry about ten numbers in your head, and know which of
# them to divide. This chapter gives you the numbers, where each comes from, and which will still
# hold in ten years.
#
# **You will be able to** place an access or a transfer on one scale, from a register to the far
# side of an ocean; tell latency from bandwidth; check an equation by its units; and notice when
# somebody's number is sparse, two-way, in bits, or from the wrong processor.
#
# **You need** arithmetic. **Time:** an hour and a half, with the cards. **In twenty minutes:** the
# sections marked with ◆, among them the last one, which answers the question.

# %%
from math import log2

from lightspeed import datasheet, roofline
from lightspeed.catalog import UNITS, accelerator, entries, find, link, memory, parse
from lightspeed_course import (
    ask, Axis, Bars, calibration, cards, Chart, figure, human_axis, human_time, predict,
    residual_chart, reveal, si, table, weigh,
)
from lightspeed.transformer import transformer
from lightspeed.units import Q

# %% [markdown]
# ## ◆ Before you read on
#
# Commit yourself to three numbers. First, energy: a chip multiplies two numbers of two bytes
# (*fp16*) and adds a third. Or it reads a word from memory. How many times the energy does the
# reading take?

# %%
predict("numbers.dram_over_fma", ...)

# %% [markdown]
# Second, distance: how long does light need for a kilometre of glass fibre?

# %%
predict("numbers.fibre_kilometre", ...)

# %% [markdown]
# Third, waiting: a GPU asks its own memory (*HBM*), a few centimetres away, for one word.

# %%
predict("numbers.hbm_latency", ...)

# %% [markdown]
# ## ◆ Two ways to wait
#
# A lorry full of disks takes a day across the country and arrives with a petabyte. A ping takes a
# moment and arrives with a byte. Which one is faster? You cannot say before you know how much you
# want to move, because there are two ways to wait: for the first byte, and then for the rest.
# **Latency is the wait for the first byte; bandwidth says how quickly the rest follows.**

# %%
wire, ping = link("ethernet_10g"), 10e-3
wire.bandwidth

# %% [markdown]
# Take a link of ten gigabits a second, with ten milliseconds on the way. A byte has eight bits, so
# it carries {{si(wire.bandwidth, "byte/s")}}.
#
# - A kilobyte needs less than a microsecond to enter the link, and then ten milliseconds to arrive.
#   You wait for the latency.
# - A gigabyte needs eight tenths of a second to enter it. Ten milliseconds more hardly matter.
#
# In general
#
# $$T = \text{latency} + \frac{\text{size} }{\text{bandwidth} }$$

# %% tags=["holds"]
assert roofline.transfer_time(1e3, wire.bandwidth) < 1e-6, "less than a microsecond"
assert abs(roofline.transfer_time(1e9, wire.bandwidth) - 0.8) < 0.01, "eight tenths of a second"

# %%
small, large = 1e3, 1e9
[roofline.transfer_time(size, wire.bandwidth, ping) for size in (small, large)]

# %%
turn = roofline.crossover_size(ping, wire.bandwidth)
turn

# %% [markdown]
# The two terms are equal at {{si(turn, "byte")}}, latency times bandwidth. For a smaller message a
# wider link hardly helps, and for a larger one a nearer server hardly does. So compute that size
# before you buy either. Try some sizes, in Jupyter; the slider is made with ipywidgets alone.

# %% tags=["holds"]
assert abs(roofline.transfer_time(turn, wire.bandwidth) - ping) < 1e-12, "two terms are equal"
assert abs(roofline.transfer_time(turn / 100, wire.bandwidth, ping) / ping - 1) < 0.02, (
    "For a smaller message a wider link hardly helps"
)

# %%
from IPython.display import display
from ipywidgets import Output, SelectionSlider

sizes = [(si(10.0**k, "byte"), 10.0**k) for k in range(2, 13)]
size, answer = SelectionSlider(options=sizes, value=1e6, description="size"), Output()


def show(change=None):
    takes = roofline.transfer_time(size.value, wire.bandwidth, ping)
    answer.outputs = ()
    answer.append_stdout(f"{human_time(takes)}, of which latency is {ping / takes:.0%}")


size.observe(show, "value")
show()
display(size, answer)

# %% [markdown]
# ## ◆ The latency ladder
#
# If a register were a pencil on your desk, where would main memory be, and where the server across
# the country? Multiply each latency by one factor, so that the quickest takes as long as picking up
# the pencil. One rung you have guessed.

# %%
reveal("numbers.hbm_latency")

# %%
cpu = [memory(k) for k in ("cpu_register", "cpu_l1", "cpu_l2", "cpu_l3", "cpu_dram")]
gpu = [memory(k) for k in ("gpu_shared", "gpu_l1", "gpu_l2", "gpu_hbm")]
paths = [memory(k) for k in ("path_hall", "path_country", "path_atlantic", "path_pacific")]
nvlink, pcie = link("nvlink4"), link("pcie5_x16")
infiniband, ethernet = link("infiniband_ndr"), link("ethernet_400g")
cpu[0].latency, paths[-1].latency

# %%
messages = {
    "NVLink, message": nvlink.end_to_end,
    "InfiniBand, message": infiniband.end_to_end,
    "InfiniBand, message, two leaf switches": infiniband.end_to_end_across,
    "Ethernet (RoCE), message": ethernet.end_to_end,
    "Ethernet (RoCE), message, two leaf switches": ethernet.end_to_end_across,
}
drives = {
    "NVMe SSD, a random read": memory("nvme_ssd").latency,
    "Hard disk, a seek": memory("hard_disk").latency,
}
light = {f"{p.name}, light": p.latency for p in paths}
outside = dict(sorted({**messages, **drives, **light}.items(), key=lambda row: row[1]))
groups = {
    "CPU, one load": ({x.name: x.latency for x in cpu}, "blue"),
    "GPU, one load": ({x.name: x.latency for x in gpu}, "green"),
    "links, storage, distance": (outside, "orange"),
}
ladder = {name: latency for group, _ in groups.values() for name, latency in group.items()}
scale = find("human_scale")
scale.tick, scale.feels_like, scale.stretch

# %% tags=["figure"]
texts = {n: [si(value, "s", 2) for value in g.values()] for n, (g, _) in groups.items()}
bars = [
    Bars(list(g), list(g.values()), label=name, labels=texts[name], color=color)
    for name, (g, color) in groups.items()
]
slow = human_axis(scale.stretch, f"if {si(scale.tick, 's')} lasted {human_time(scale.feels_like)}")
rungs = Axis(scale="category", categories=list(ladder))
figure(
    Chart(Axis("latency", "s", "log", domain=(1e-10, 10)), rungs, bars, x_top=slow, height=600),
    caption="The ladder, with each latency as a person would feel it on the upper axis. Messages "
    "and distances are one way.",
    alt=f"Horizontal bars on a logarithmic axis, from {si(cpu[0].latency, 's')} for a register to "
    f"{si(paths[-1].latency, 's')} across the Pacific, in three groups: CPU, GPU, and what lies "
    "outside the chip.",
)

# %%
ways = cpu[-1].latency, paths[1].latency
felt = [human_time(datasheet.human_scale(t, scale.tick, scale.feels_like)) for t in ways]
felt

# %% [markdown]
# So if you have the pencil after {{human_time(scale.feels_like)}}, main memory is {{felt[0]}} away,
# a walk across town. Light alone takes {{felt[1]}} to cross the country, one way.
#
# Read the ladder in two steps. First, latency is of several kinds, and the orange bars mix them. In
# a memory it is the wait of one *load*, a read that the program needs before it goes on. For a
# drive it is one read or one seek. On a link it is the time of a small message from program to
# program, software included. *NVLink* joins the GPUs of a host, *InfiniBand* and Ethernet join
# hosts, and *PCIe* joins a GPU to its CPU. A *leaf switch* is the one that a host is plugged into,
# and *RoCE* is remote memory access, as on InfiniBand, over Ethernet. For a distance it is the time
# of light, alone.
#
# Second, compare latencies of one kind, and loads on one chip. A CPU's caches are built to answer
# quickly, a GPU's to serve thousands of threads, so a latency of one divided by a latency of the
# other says little about either.
#
# Now look at the messages. From program to program, a GPU in the next host is about as far as the
# next GPU of the same host. Wires do not take the time: InfiniBand hardware alone needs
# {{si(infiniband.latency, "s")}} of the {{si(infiniband.end_to_end, "s")}}.
#
# ### Like with like

# %% tags=["holds"]
assert 0.7 < infiniband.end_to_end / nvlink.end_to_end < 1.3, "GPU of the same"

# %%
shared, l1, l2, hbm = gpu
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
# Every ratio has one kind of latency, or one direction, on both sides. On one GPU, HBM is
# {{hbm.latency / l1.latency:.2g}} times as far away as the L1 cache. Divided by the L1 of a *CPU*,
# the same latency gives {{hbm.latency / cpu[1].latency:.0f}}, a mixture of two chips. In one
# direction NVLink carries {{nvlink.bandwidth / infiniband.bandwidth:.2g}} times what InfiniBand
# carries.
#
# ## ◆ What money does not buy
#
# The lower rungs are light in glass, and the speed of light is not for sale.

# %% tags=["holds"]
assert 10 < hbm.latency / l1.latency < 20, "away as the L1"
assert nvlink.bandwidth == 9 * infiniband.bandwidth, "times what InfiniBand carries"

# %%
reveal("numbers.fibre_kilometre")

# %% [markdown]
# Light in glass is a third slower than in vacuum. A faster switch or network card does not change
# that. A straighter path does, and so does one without glass: traders pay for microwave links, and
# for fibres with a hollow core.

# %% tags=["holds"]
assert abs(memory("light").fibre / memory("light").vacuum - 2 / 3) < 0.005, "slower than in vacuum"

# %%
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

# %%
printed_by = {o["source"].key: parse(o["printed"])[0] for o in paths[0].round_trip.others}
dean = printed_by["dean_2012"]
si(dean, "s")

# %% [markdown]
# Look at the first row. Light needs {{si(paths[0].round_trip, "s")}} for a kilometre and back, the
# textbook prints {{printed[0]}}, and the list that Jeff Dean made famous has {{si(dean, "s")}} for
# two programs in one data centre. The rest is network cards, switches, kernels and queues, and
# engineers do shorten that part: a small message over InfiniBand takes
# {{si(link("infiniband_ndr").end_to_end, "s")}} one way.
#
# ## ◆ What it costs to move a word
#
# You guessed this ratio.

# %% tags=["holds"]
assert dean > 10 * paths[0].round_trip, "programs in one data"
assert 2 * link("infiniband_ndr").end_to_end < dean / 10, "message over InfiniBand takes"
assert abs(paths[0].round_trip - datasheet.round_trip(1e3, memory("light").fibre)) < 1e-12, (
    "for a kilometre and back"
)

# %%
reveal("numbers.dram_over_fma")

# %%
e = find("horowitz_45nm")
read_over_fma = e.dram / e.fp16_fma
e.dram, e.fp16_fma, si(read_over_fma)

# %% [markdown]
# Reading the word takes {{read_over_fma:.0f}} times the energy of the multiply-add. The reason is
# distance. A wire has to be charged along its whole length. The memory is centimetres away from the
# arithmetic units (the *units*, from here on), while the parts of a multiplier are micrometres
# apart. **So when you compare two ways to do something, count what each of them moves.**
#
# ### The energy ladder
#
# An *int8* is a whole number of one byte, an *fp32* a floating-point number of four.

# %% tags=["holds"]
assert 400 < read_over_fma < 450, "energy of the multiply-add"

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

# %%
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
colors = ["tab:green"] * 4 + ["tab:orange"] * 4
bars = ax.barh(list(rungs), [float(energy) for energy in rungs.values()], color=colors)
ax.bar_label(bars, [repr(energy) for energy in rungs.values()], padding=3)
ax.set(xscale="log", xlim=(1e-14, 1e-8), xlabel="energy in joules")
ax.invert_yaxis()
plt.close(fig)
figure(
    fig,
    caption=f"Arithmetic (green) costs {e.int8_add!r} to {e.fp32_fma!r}; orange bars read a word "
    "of four bytes. Every step away from the units costs more, and the step off the chip is the "
    "largest.",
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
# ## Numbers that come from counting
#
# ### Training keeps sixteen bytes for each parameter
#
# Mixed precision computes with numbers of two bytes, but keeps a *master* copy of each weight in
# four. Adam, the usual optimizer, keeps two running means of its gradient, the *moments*.

# %%
adam, params = find("adam_mixed_precision"), 7e9  # assumed
parts = {
    "weights, two bytes wide": adam.weights,
    "gradients, two bytes wide": adam.gradients,
    "master weights, fp32": adam.master_weights,
    "first moment, fp32": adam.momentum,
    "second moment, fp32": adam.variance,
}
total = sum(float(width) for width in parts.values())
table([*parts.items(), ["sum", total]], ["what", "bytes per parameter"])

# %% [markdown]
# Recipes differ. With gradients in fp32 the sum is {{adam.total + adam.gradients:.0f}}. With
# gradients of two bytes and an fp32 copy in which they are added up, it is
# {{adam.total + 2 * adam.gradients:.0f}}. So say what you count. With the {{adam.total:.0f}} bytes
# of the table, a model of {{si(params, "parameter")}} needs {{si(params * adam.total, "byte")}}
# before it sees a token, which is more than one H100 holds.
#
# ### Rules of arithmetic
#
# In a dense transformer, a token that passes through meets each weight of its matrices once: one
# multiplication and one addition, which is two FLOPs. (Its row of the embedding table is looked up,
# not multiplied.) Training also goes back, with two such steps for each weight. The output's
# gradient times the weight is added to the input's gradient. The output's gradient times the input
# is added to the weight's. So training takes six. Both counts leave attention out (chapter 6),
# which is small as long as the context is short beside the length of a token's vector.

# %% tags=["holds"]
assert params * adam.total > accelerator("h100_sxm").hbm_capacity, "more than one H100"
assert (
    lambda m: (
        0 < m.parameters - m.width * m.vocabulary - m.flops_per_token() / 2 < 1e-4 * m.parameters
    )
)(transformer("llama3_8b")), "through meets each weight"
from lightspeed.training import training_flops

assert training_flops(1, 1) == 6, "So training takes six"

# %%
tokens = 1e12
si(2 * params, "FLOP"), si(6 * params * tokens, "FLOP")

# %% tags=["figure"]
rules = [
    ["weights, bf16", "two bytes per parameter", si(2 * params, "byte")],
    ["weights, int8", "one byte per parameter", si(params, "byte")],
    ["training state, Adam", "sixteen bytes per parameter", si(adam.total * params, "byte")],
    ["inference", "two FLOPs per parameter and token", si(2 * params, "FLOP") + " per token"],
    ["training", "six FLOPs per parameter and token", si(6 * params * tokens, "FLOP")],
]
table(
    rules,
    ["what", "rule", f"for {si(params, 'parameter')}"],
    caption=f"Training on {si(tokens, 'token')}.",
)

# %% tags=["holds"]
assert adam.total == 16 and total == adam.total, "sixteen bytes per parameter"

# %% [markdown]
# ## The pyramid
#
# A memory can be large, or near the units, but not both. So machines stack several, and software
# tries to stay near the top.

# %%
h100, host, ssd = accelerator("h100_sxm"), memory("dgx_h100_dram"), memory("nvme_ssd")
# a second program counted these cycles, on the PCIe board
least = h100.hbm_cycles_least / accelerator("h100_pcie").clock
si(least, "s"), hbm.latency, pcie.latency

# %% tags=["figure"]
levels = {
    "shared memory, L1": shared.bandwidth, "L2, measured": h100.l2_bandwidth_measured,
    "HBM": hbm.bandwidth, "NVLink": nvlink.bandwidth, "PCIe to the host": pcie.bandwidth,
    "InfiniBand": infiniband.bandwidth, "SSD": ssd.bandwidth,
}  # fmt: skip
texts = [si(rate, "byte/s") for rate in levels.values()]
figure(
    Chart(
        Axis("bandwidth, one way (width of the pipe)", "byte/s", "log", domain=(1e9, 1e14)),
        Axis(scale="category", categories=list(levels)),
        [Bars(list(levels), list(levels.values()), labels=texts, color="sky")],
        height=320,
    ),
    caption="The memory pyramid of one GPU, top down: each level is narrower than the one above "
    "it.",
    alt=f"Bars that shorten from {si(shared.bandwidth, 'byte/s')} at the top, on the chip, to "
    f"{si(ssd.bandwidth, 'byte/s')} at the bottom, the SSD.",
)

# %% tags=["holds"]
assert list(levels.values()) == sorted(levels.values(), reverse=True), (
    "each level is narrower than the one above it"
)

# %% tags=["figure"]
both = f"{si(h100.l2_bandwidth_measured, 'byte/s')} to {si(l2.bandwidth, 'byte/s')}"
two = f"{si(least, 's')} to {si(hbm.latency, 's')}"
on_chip = si(h100.sm_count * shared.capacity, "byte")
pyramid = [
    ["GPU shared memory and L1", shared.latency, "a load", shared.bandwidth, on_chip],
    ["GPU L2", l2.latency, "a load", both, l2.capacity],
    ["GPU HBM", two, "a load", hbm.bandwidth, hbm.capacity],
    ["another GPU, NVLink", nvlink.end_to_end, "a message", nvlink.bandwidth, "the node"],
    ["host DRAM, from its CPU", cpu[-1].latency, "a load", host.bandwidth, "the host"],
    ["host DRAM, over PCIe", pcie.latency, "hardware, roughly", pcie.bandwidth, "the host"],
    [
        "another node, InfiniBand", infiniband.end_to_end, "a message", infiniband.bandwidth,
        "the cluster",
    ],
    ["SSD", ssd.latency, "a random read", ssd.bandwidth, "the drive"],
]  # fmt: skip
table(
    pyramid,
    ["level", "latency", "the latency of", "bandwidth, one way", "holds, or leads to"],
    caption="An H100 in a server, and what is around it. The rate and the size of the first row "
    f"are of its {h100.sm_count:.0f} processors (SMs) together. Two programs measured the latency "
    "of HBM; the bandwidth of the L2 was measured, and computed from its width.",
)

# %% [markdown]
# ## Latency budgets
#
# These are requirements, not specifications. The next chip does not move them.

# %%
budgets = entries("budgets")
rows = [b for k, b in budgets.items() if "latency" in b and k != "batch_training"]
said_by = [b.latency.source.author or b.latency.source.title for b in rows]
table(
    [[b.name, b.latency, b.reason, who] for b, who in zip(rows, said_by)],
    ["application", "budget", "because", "who says so"],
)

# %% [markdown]
# At {{budgets["braking"].speed.printed}} a car moves {{100 * budgets["braking"].distance:.0f}} cm
# in {{si(budgets["braking"].latency, "s")}}.
#
# Nielsen's limits are of any answer; the applications are our choice. The other two budgets are
# premises of a textbook.
#
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
assert h100.int8 > 50 * phone.int8, "If they are int8"

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
# ## ◆ Try it
#
# Choose a path, from a cache to the far side of an ocean. Before you move the slider, say which
# term decides, or whether both do.

# %%
from lightspeed_course.explorers.numbers import explore, explore_generations

explore()

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
#
# ## Which ratios survive a generation?
#
# How long do absolute numbers take to double?

# %%
old, new = accelerator("a100_80gb"), accelerator("b200")
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
# ## Check: data sheets against their own arithmetic
#
# A peak is clock times FLOPs per cycle times units, where a multiply-add counts as two FLOPs. An
# A100 has {{old.tensor_core_count:.0f}} tensor cores, each does {{old.flop_per_cycle:.0f}} FLOPs in
# a cycle, at {{si(old.clock, "Hz")}}: {{si(datasheet.peak_from_clock(old.clock, old.flop_per_cycle,
# old.tensor_core_count), "FLOP/s")}}. A cable's floor is length over speed. So each of these
# numbers can be predicted from others; the last column is the error of the prediction.

# %%
checks = []
for m in entries("accelerators").values():
    if all(n in m for n in ("clock", "flop_per_cycle", "tensor_core_count")):
        peak = datasheet.peak_from_clock(m.clock, m.flop_per_cycle, m.tensor_core_count)
        checks.append((f"{m.name}, peak from its clock", peak, m.bf16 if "bf16" in m else m.fp16))
for one in map(link, ("nvlink3", "nvlink4", "nvlink5")):
    bundle = datasheet.bundle_bandwidth(one.links, one.bandwidth_per_link)
    checks.append((f"{one.name}, from its links", bundle, one.bandwidth_bidirectional / 2))
atlantic = memory("path_atlantic")
floor = datasheet.round_trip(atlantic.distance, memory("light").fibre)
checks.append(("Atlantic, floor against the fastest cable", floor, atlantic.measured_round_trip))
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
# ### Where it breaks
#
# - **The clock on the web page may not be the one behind the peak.** With the boost clock that is
#   often quoted for an H100, {{si(boost, "Hz")}} instead of {{si(h100.clock, "Hz")}}, its peak
#   would come out {{datasheet.peak_from_clock(boost, h100.flop_per_cycle, h100.tensor_core_count) /
#   h100.bf16 - 1:.0%}} too high.
# - **Latency has layers.** Beside the {{si(infiniband.end_to_end, "s")}} of a message over
#   InfiniBand, NVIDIA's library NCCL (chapter 7) reckons with {{si(infiniband.nccl_step_simple,
#   "s")}} for a step of a joint operation. Say which one you mean.
#
# ### Joules, measured
#
# The energy of a token is power over rate, so rated power over measured rate bounds it. Hold the
# bound against what the ML.ENERGY Initiative measured on served language models.

# %%
tokens = weigh("energy-token")
table(
    [[e.regime, e.rows, e.ratios[1], si(e.beaten, "%")] for e in (tokens.all, *tokens.by_regime)],
    ["requests in flight", "rows", "rated over drawn, median", "rows above the rating"],
    caption=f"{tokens.rows.record.attribution}: {len(tokens.rows)} rows on H100 and B200.",
)

# %% tags=["figure"]
middles = [e.ratios[1] for e in tokens.by_regime]
figure(
    residual_chart(tokens, dots=90, height=300),
    caption="No row draws more than the rating. The more requests in flight, the nearer the draw "
    "comes to it, in the median.",
    alt="Rated over measured energy of a token. All dots lie on or above a rule at one, with "
    f"medians from {middles[-1]:.2f} with many requests in flight to {middles[0]:.2f} with few.",
)

# %% tags=["holds"]
assert tokens.all.beaten == 0, "No row draws more than the rating"
assert middles == sorted(middles, reverse=True), "The more requests in flight"
assert min(tokens.ratio) >= 1, "All dots lie on or above a rule at one"

# %%
ask("numbers.token_energy")

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
from lightspeed_course import compare_here, measure_here, row, shipped, show_recorded
from lightspeed_tools.measure import find as find_quantity
from lightspeed_tools.measure.environment import usable_cores
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
compare_here(here, lines(usable_cores()), caption="Here your guess stands in place of a law.")

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
#
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %% tags=["holds"]
assert 0.8 < waits[1] / waits[0] < 1.25, "far away on both"
assert in_flight(neighbours, 2**26) < on_their_way, "lines on their way"

# %%
from lightspeed_course import gallery

gallery("01")

# %% [markdown]
# ## Cards
#
# Ten numbers to carry in your head. A card comes back the next day if you were off, and after weeks
# if not. A guess is scored in decades, factors of ten.

# %%
cards("numbers")

# %%
calibration()

# %% [markdown]
# ## Worked problems

# %%
ask("numbers.transfer_time", seed="chapter")

# %%
ask("numbers.recompute_or_fetch", seed="chapter")

# %%
ask("numbers.country_requests", seed="chapter")

# %% [markdown]
# ## ◆ Back to the review

# %%
away, nearby = memory("path_country").round_trip, dean
once = 2 * params / h100.hbm_bandwidth  # one pass over the weights of a model, in bf16
whole = h100.hbm_capacity / h100.hbm_bandwidth
si(away, "s"), si(once, "s"), si(whole, "s"), si(nearby, "s")

# %% tags=["figure"]
table(
    [
        ["light, across the country and back", si(away, "s")],
        [f"an H100 reads the weights of {si(params, 'parameter')}", si(once, "s")],
        ["an H100 reads all its memory", si(whole, "s")],
        ["a round trip in one data centre, software included", si(nearby, "s")],
    ],
    ["", "time"],
)

# %% [markdown]
# To compute one vector for one request, the GPU takes each weight of a model from its memory once,
# multiplies and adds. {{si(params, "parameter")}} of two bytes are {{si(2 * params, "byte")}}, and
# an H100 reads {{si(h100.hbm_bandwidth, "byte")}} in a second. Its units would do
# {{2 * h100.bf16 / h100.hbm_bandwidth:.0f}} FLOPs (additions and multiplications) while one weight
# arrives, and a weight takes two, so the time is that of reading. Even a model that fills the whole
# memory is read before the light is back. **If the question is latency, compute it again.**
#
# But latency is not cost. While a request waits for the network, the GPU works for others. A
# request that computes its vector alone occupies the GPU for {{si(once, "s")}}, so one GPU serves
# at most {{1 / once:.0f}} of them a second, for this model. **If the question is what it costs, and
# the answer may take {{si(away, "s", 2)}} or can be asked for early, fetch it.**
#
# A third colleague would move the server. In the same data centre the answer is there in
# {{si(nearby, "s")}}, before the GPU has read the model.
#
# ## Exercises
#
# `exercises/01_numbers_to_know.ipynb` has more problems, from recall to design, and these with
# other numbers.
#
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

# %% tags=["holds"]
assert h100.bf16 / h100.hbm_bandwidth > 200, "while one weight arrives"
assert once < whole < away, "read before the light"
assert nearby < once, "data centre the answer"
