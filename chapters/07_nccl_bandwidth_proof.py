# %% [markdown]
# # 7. NCCL bandwidth: the proof
#
# This page holds what [the lesson](07_nccl_bandwidth.ipynb) claims against what others measured, lets
# you measure it yourself, and derives what the lesson only uses.
#
# ## What is claimed, and how well it holds

# %% tags=["setup"]
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from ipywidgets import Output, SelectionSlider

from lightspeed.catalog import find, fitted, link, number
from lightspeed.collectives import *
from lightspeed_course import Area, Axis, Chart, Line, Points, Rule
from lightspeed_course import figure, predict, residual_chart, reveal, si, sweep, table, weigh
from lightspeed_models.evidence.nccl_pictures import busbw_over_nodes, busbw_over_size
from lightspeed_models.evidence.nccl_pictures import residual_rows
from lightspeed_models.evidence.peers import percentile
from lightspeed_tools.nccl.published import spread as nine_of_ten
from lightspeed_models.llm import decoder
from lightspeed_models.nccl_fit import fits as fits_of_nccl, measurements, residuals
from lightspeed_models.nccl_fit import predict as expected_by_model
from lightspeed_models.nccl_tuner import NET_OVERHEAD, NEWEST, PLATEAU, PROTOCOLS
from lightspeed_models.nccl_tuner import nccl_choices, nccl_time, ring_latency, tree_latency
from lightspeed_models.simulators.allreduce import states
from lightspeed_models.simulators.ring import run_ring

# %%
told, per_node, nodes = find("efa_note"), 8, 125
message, asked = float(told.message), float(told.algbw_125)
n = per_node * nodes
efa, nvlink = link("efa_p5"), link("nvlink4")
line = efa.bandwidth_per_node
rows_all, fits = residuals(), fits_of_nccl()
wires, plain_sum = weigh("nccl-bound"), weigh("nccl-alpha-beta")
p5 = [row for row in measurements() if row.series == "p5_all_reduce"]


def error_of(time_of):
    return {(r.size, r.nodes): time_of(r) / r.time - 1 for r in p5}


ours = error_of(lambda r: expected_by_model("all_reduce", r.size, r.n, r.nodes, "p5").time)
theirs = error_of(lambda r: nccl_time(r.size, r.n, r.nodes, cpu="amd"))
len(rows_all), len(fits), len(p5)

# %% tags=["figure"]
large_from, small_below = 64e6, 1e6  # assumed
tested = [(abs(e), r.size) for r, e in rows_all if not r.fitted]
large_test = [e for e, size in tested if size >= large_from]
small_test = [e for e, size in tested if size < large_from]
beaten = sum(wires.ratio > 1.02)


def errors_in(values):
    return [len(values), f"{np.median(values):.0%}", f"{max(values):.0%}"]


claims = [
    ["nobody sends less than counted", wires.all.rows, "–", f"beaten {beaten} times", "NVLS"],
    ["α–β, from other chips", *errors_in(abs(plain_sum.ratio - 1)), "middle sizes"],
    ["fitted model, large messages", *errors_in(large_test), "more nodes than it saw"],
    ["fitted model, below that", *errors_in(small_test), "small messages"],
    ["NCCL's own tables, p5", *errors_in([abs(e) for e in theirs.values()]), "many nodes"],
]
table(
    claims,
    ["claim", "rows tested", "median error in time", "worst", "where it fails"],
    caption=f"Rows that no fit has seen. Large is from {si(large_from, 'byte')} on.",
)

# %% [markdown]
# The sections: [the ring on real arrays](#The-ring-on-real-arrays),
# [beside public runs](#Beside-public-runs), [between ring and tree](#Between-ring-and-tree),
# [what NCCL believes](#What-NCCL-itself-believes),
# [models against measurements](#Check:-models-against-measurements),
# [measure it here](#Measure-it-here), [wrong claims](#Gallery-of-wrong-claims).
#
# ## The ring on real arrays
#
# The lesson says that each GPU of a ring sends $2\,(n-1)/n$ of its buffer. All steps of a ring of
# four:

# %% tags=["figure"]
fig, panels = plt.subplots(1, 7, figsize=(9.5, 1.8), layout="constrained")
for step, (ax, state) in enumerate(zip(panels, states("ring", 4))):
    held = [[len(summands) for summands in row] for row in state.held]
    arrived = {(send.target, send.chunk) for send in state.arrived}
    ax.pcolormesh(held, cmap="Blues", vmin=0, vmax=8, edgecolors="white")
    for (rank, chunk), count in np.ndenumerate(held):
        weight = "bold" if (rank, chunk) in arrived else "normal"
        ax.text(chunk + 0.5, rank + 0.5, count, ha="center", va="center", weight=weight)
    ax.set(xticks=[], yticks=[], aspect="equal", xlabel=f"step {step}" if step else "start")
    ax.invert_yaxis()
plt.close(fig)
figure(
    fig,
    caption="All steps of a ring of four. Rows are GPUs, columns chunks; the number, and the "
    "shade, count the summands in a cell. Bold has just arrived.",
    alt="Seven squares of four by four cells. Diagonals of bold cells grow from two to four "
    "summands in three steps, then spread the finished sums in three more.",
)

# %% tags=["holds"]
assert len(states("ring", 4)) == ring_steps("all_reduce", 4) + 1, "All steps"
assert len(states("ring", 4)) == 7 and all(
    len(state.held) == len(state.held[0]) == 4 for state in states("ring", 4)
), "Seven squares"

# %% [markdown]
# Now on real arrays, with the same schedule. Does every GPU (in NCCL's words, every *rank*) hold the
# sum at the end, and how much has each of them sent?

# %%
rng = np.random.default_rng(7)
arrays = {k: [rng.integers(0, 1000, 48_000) for _ in range(k)] for k in (2, 3, 4, 8, 16)}
runs = {ranks: run_ring(mine) for ranks, mine in arrays.items()}
{ranks: len(run.steps) for ranks, run in runs.items()}

# %%
sums = {ranks: np.sum(mine, axis=0) for ranks, mine in arrays.items()}
all(np.array_equal(got, sums[ranks]) for ranks, run in runs.items() for got in run.results)

# %%
sent = {ranks: run.sent[0] / arrays[ranks][0].nbytes for ranks, run in runs.items()}
rows = [[ranks, sent[ranks], 2 * (ranks - 1) / ranks] for ranks in runs]
table(rows, ["ranks", "sent by each, in buffers", "2 (n − 1)/n"])

# %% [markdown]
# ### Count the bytes
#
# For other collectives, count the pieces that a rank sends:

# %%
k = 8
sent = {  # by each rank, in pieces of S / k
    "all_reduce": (k - 1) + (k - 1),  # add up, then hand out
    "reduce_scatter": k - 1,  # add up
    "all_gather": k - 1,  # hand out
    "alltoall": k - 1,  # give each its own, keep one
    "broadcast": k,  # pass all of it on
    "reduce": k,  # add to all of it, pass it on
}
rows = [[name, pieces, pieces / k, busbw_factor(name, k)] for name, pieces in sent.items()]
table(
    rows,
    ["collective", f"pieces of S/{k} sent", "counted", "busbw_factor"],
    caption=f"Bytes that a rank sends for each byte of S, for {k} ranks. For gathers and scatters "
    "nccl-tests counts the whole buffer, all shards together.",
)

# %% tags=["holds"]
assert all(abs(pieces / k - busbw_factor(name, k)) < 1e-12 for name, pieces in sent.items()), (
    "Bytes that a rank sends"
)

# %%
many = np.unique(np.geomspace(2, 1024, 40).round())
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for name in ("all_reduce", "all_gather", "broadcast"):
    ax.plot(many, busbw_factor(name, many), label=name)
ax.axhline(2, color="grey", linestyle="dotted")
ax.set(xscale="log", xlabel="ranks n", ylabel="busbw over algbw", ylim=(0, 2.2))
ax.legend()
plt.close(fig)
figure(
    fig,
    caption="Twice is where the factor of an all-reduce ends, not what it is. And it counts GPUs, "
    "not nodes.",
    alt="The factor of an all-reduce rises from one at two ranks towards two; that of a gather, a "
    "scatter or an all-to-all is half of it; that of a broadcast or a reduce is one.",
)

# %% tags=["holds"]
assert (
    busbw_factor("all_reduce", 1000) < busbw_factor("all_reduce", 10**9)
    and 2 - 1e-8 < busbw_factor("all_reduce", 10**9) < 2
), "Twice is where"
assert (
    busbw_factor("all_reduce", 2) == 1
    and busbw_factor("broadcast", 8) == busbw_factor("reduce", 8) == 1
    and all(
        np.allclose(2 * busbw_factor(name, many), busbw_factor("all_reduce", many))
        for name in ("all_gather", "reduce_scatter", "alltoall")
    )
), (
    "that of a gather, a scatter or an all-to-all is half of it; that of a broadcast or a reduce is one"
)

# %% [markdown]
# In Jupyter, drag the number of ranks: the algbw of the question stays.

# %%
choices = [2, 4, 8, 16, 32, 64]
slider, shown = SelectionSlider(options=choices, value=8, description="ranks"), Output()


def on_the_wire(_=None):
    shown.outputs = ()
    shown.append_stdout(f"busbw: {busbw('all_reduce', slider.value, asked)!r}")


slider.observe(on_the_wire, "value")
on_the_wire()
display(slider, shown)

# %% [markdown]
# ### Rates of links
#
# What the lesson's four slips are about, in numbers:

# %% tags=["figure"]
ndr = link("infiniband_ndr")
rows = [[each.name, each.bandwidth, each.bandwidth_bidirectional] for each in (nvlink, efa, ndr)]
by_node = ["–", efa.bandwidth_per_node, ndr.bandwidth_per_node]
table(
    [[*row, rate] for row, rate in zip(rows, by_node)],
    ["link", "a GPU, one direction", "a GPU, both", "a node of eight, one direction"],
    caption="The last column, or the first inside a node, is what the busbw of a ring is held "
    "against. InfiniBand: one adapter for each GPU.",
)

# %% [markdown]
# ## Beside public runs
#
# The answer that circulates gives an algbw for two nodes and one for eight, too. Can those be? The
# busbw says what a GPU has to send, and does not bound what a *node* sends, because its GPUs can add
# up their numbers first. Here are both counts beside a public run:

# %%
published = {row.nodes: algbw(row.size, row.time) for row in p5 if row.size == 2**33}
published

# %%
said = {2: float(told.algbw_2), 8: float(told.algbw_8), 125: asked}
leaves = {k: busbw("all_reduce", k, rate) for k, rate in said.items()}
leaves

# %% tags=["figure"]
rows = [
    [k, si(v, "byte/s"), busbw("all_reduce", per_node * k, v), leaves[k]]
    + [f"{leaves[k] / line:.0%}", published.get(k, "–")]
    for k, v in said.items()
]
heads = ["nodes", "algbw as told", "a GPU sends (busbw)", "a node sends, at least"]
table(
    rows,
    [*heads, "of its line", f"algbw measured, {si(2.0**33, 'byte')}"],
    caption="The answer's three rows beside a public measurement of the same machine.",
)

# %% [markdown]
# On eight nodes a node would have to send {{leaves[8] / line:.0%}} of its line. Two nodes would fit
# their line, but each GPU would have to send
# {{si(busbw("all_reduce", 2 * per_node, said[2]), "byte/s")}}, and its NVLinks and adapter together
# carry {{si(nvlink.bandwidth + efa.bandwidth, "byte/s")}}. So neither can be, as long as GPUs do
# the adding. Switches that add would lift the second limit, but the public run had such
# switches and stays far below that row. The third row, the one that was measured, is sound. For so
# many nodes the two counts are nearly the same, and the node's line is what bounds the busbw. For
# few it does not: the public run on two nodes has a busbw of
# {{si(busbw("all_reduce", 2 * per_node, published[2]), "byte/s")}}.

# %% tags=["holds"]
assert leaves[8] > line, "eight nodes a node"
assert leaves[2] < line, "nodes would fit their"
assert busbw("all_reduce", 2 * per_node, said[2]) > nvlink.bandwidth + efa.bandwidth, (
    "Two nodes would fit"
)
assert published[2] < 0.8 * said[2], "far below that row"
assert 0.99 < busbw_factor("all_reduce", nodes) / busbw_factor("all_reduce", n) < 1, (
    "what bounds the busbw"
)
assert busbw("all_reduce", 2 * per_node, published[2]) > line > published[2], "nodes has a busbw"

# %% [markdown]
# ## How long any algorithm must take
#
# The lesson says that half of the best rate is reached at $S = n\,\alpha\,W$.

# %% [markdown]
# ### Two bounds
#
# How fast could any algorithm be? One bound is the count of bytes. The other is a chain of
# messages: what one rank knows can reach at most twice as many ranks with each step.
#
# $$t \ge \frac{2\,(n-1)}{n}\,\frac{S}{W} \qquad\qquad t \ge \lceil \log_2 n \rceil\,\alpha$$
#
# The ring meets the first bound exactly and misses the second by a wide margin, which grows with
# $n$. Is there anything with fewer steps?
#

# %% tags=["holds"]
assert abs(
    ring_time(1.0, n, 1.0) / bandwidth_bound("all_reduce", 1.0, n, 1.0) - 1
) < 1e-12 and 5 < ring_time(0.0, 64, 1.0, 1.0) / latency_bound(64, 1.0) < ring_time(
    0.0, n, 1.0, 1.0
) / latency_bound(n, 1.0), "meets the first bound"

# %% [markdown]
# ### Between ring and tree
#
# Three more algorithms put the idle links to use.
#
# - **Two trees.** Each has half of the buffer, and the inner ranks of one are the leaves of the
#   other, so that all ranks send. They pass it on in small pieces. That has a logarithm of steps,
#   and almost the bytes of a ring.
# - **Recursive doubling.** Partners swap all that they have added up: first neighbours, then ranks
#   two apart, then four apart. Eight GPUs are done in three swaps, the fewest steps of these. But
#   in each swap the whole buffer travels.
# - **Halving and doubling.** Partners swap halves, then quarters of that, and so on; the sums come
#   back the same way. For a power of two it meets the bound on bytes, in twice the steps that the
#   other bound allows, as long as pairs that swap at the same time do not share a link.

# %% tags=["holds"]
assert double_tree_time(0.0, 512, 1.0, 1.0) < 0.05 * ring_time(
    0.0, 512, 1.0, 1.0
) and double_tree_time(1.0, 512, 1.0) < 1.01 * ring_time(1.0, 512, 1.0), "bytes of a ring"
assert recursive_doubling_time(0.0, 8, 1.0, 1.0) == 3 and all(
    recursive_doubling_time(0.0, k, 1.0, 1.0) <= law(0.0, k, 1.0, 1.0)
    for k in range(2, 600)
    for law in (ring_time, tree_time, double_tree_time, halving_doubling_time)
), "fewest steps of these"
assert all(
    abs(halving_doubling_time(1.0, 2**k, 1.0) / bandwidth_bound("all_reduce", 1.0, 2**k, 1.0) - 1)
    < 1e-12
    and halving_doubling_time(0.0, 2**k, 1.0, 1.0) == 2 * latency_bound(2**k, 1.0)
    for k in range(1, 11)
), "in twice the steps"

# %%
# alpha: what NCCL charges for a step over InfiniBand, in its quickest protocol
ranks, wire, alpha = 512, efa.bandwidth, number("infiniband_ndr.nccl_step_ll")
algorithms = {
    "ring": ring_time,
    "two trees": double_tree_time,
    "doubling": recursive_doubling_time,
    "halving, doubling": halving_doubling_time,
    "one tree": tree_time,
}
steps = {name: float(law(0.0, ranks, 1.0, 1.0)) for name, law in algorithms.items()}
buffers = {name: float(law(1.0, ranks, 1.0)) for name, law in algorithms.items()}
table([[name, steps[name], buffers[name]] for name in steps], ["", "steps", "buffers sent"])

# %% tags=["figure"]
sizes = np.geomspace(1e3, 1e11, 120)
transfer = bandwidth_bound("all_reduce", sizes, ranks, wire)
bound = np.maximum(transfer, latency_bound(ranks, alpha))
colors = dict(zip(algorithms, ("blue", "green", "amber", "purple", "grey")))
marks = [Area(sizes, np.full_like(sizes, 1e-6), bound, "below the bounds")]
for name, law in algorithms.items():
    marks.append(Line(sizes, law(sizes, ranks, wire, alpha), name, colors[name]))
figure(
    Chart(Axis("message", "byte", "log"), Axis("time", "s", "log"), marks),
    caption=f"{ranks} ranks that send {si(wire, 'byte/s')} each, with {si(alpha, 's')} a step. "
    "Flat means steps, sloped means bytes. Two trees lie under halving and doubling.",
    alt="Times over message size on logarithmic axes. Doubling is lowest for small messages and "
    "far above the bound for large ones; the ring is highest for small ones and at the bound for "
    "large ones; two trees come within a factor of two of the bound for small ones and meet it "
    "for large ones.",
)

# %% tags=["holds"]
assert (
    min(algorithms, key=lambda name: algorithms[name](1e3, ranks, wire, alpha)) == "doubling"
    and recursive_doubling_time(1e11, ranks, wire, alpha) > 4 * bound[-1]
    and max(algorithms, key=lambda name: algorithms[name](1e3, ranks, wire, alpha)) == "ring"
    and ring_time(1e11, ranks, wire, alpha) < 1.01 * bound[-1]
    and double_tree_time(1e11, ranks, wire, alpha) < 1.01 * bound[-1]
    and double_tree_time(1e3, ranks, wire, alpha) < 2.01 * bound[0]
), "Doubling is lowest"
assert np.allclose(
    double_tree_time(sizes, ranks, wire, alpha),
    halving_doubling_time(sizes, ranks, wire, alpha),
    rtol=0.02,
), "Two trees lie under halving and doubling"

# %%
shown = (1e3, 1e6, 1e9, message)
rows = [[name, *(law(s, ranks, wire, alpha) for s in shown)] for name, law in algorithms.items()]
floors = [bandwidth_bound("all_reduce", s, ranks, wire) for s in shown]
slowest = [max(floor, latency_bound(ranks, alpha)) for floor in floors]
table(
    [*rows, ["lower bound", *slowest]],
    ["algorithm", *(si(s, "byte") for s in shown)],
    caption="The same, in numbers. No algorithm wins everywhere, so a library has several.",
)

# %% tags=["holds"]
assert (
    len({min(algorithms, key=lambda name: algorithms[name](s, ranks, wire, alpha)) for s in shown})
    > 1
), "No algorithm wins"

# %% [markdown]
# ### Two levels in numbers
#
# The lesson does the work in three stages, for links that are not alike. For
# {{si(message, "byte")}}:

# %%
grid = [2, 4, 16, 32, 125]
speeds = {"inside": nvlink.bandwidth, "network": efa.bandwidth}
sweep(hierarchical_time, size=message, per_node=per_node, nodes=grid, **speeds)

# %%
levels = {k: hierarchical_time(message, per_node, k, **speeds) for k in grid}
{k: busbw("all_reduce", per_node * k, message / t.lower) for k, t in levels.items()}

# %% [markdown]
# Latency is left out. In the table `lower` is with the levels overlapped, `upper` one after the
# other. From two nodes to any number, the time across no more than doubles. The second cell shows
# the busbw. It can exceed NVLink's rate, since each GPU uses NVLink and its adapter at once.

# %% tags=["holds"]
assert (
    all(t.across <= 2 * levels[2].across for t in levels.values())
    and hierarchical_time(message, per_node, 10**6, **speeds).across <= 2 * levels[2].across
), "no more than doubles"
assert (
    nvlink.bandwidth
    < max(busbw("all_reduce", per_node * k, message / t.lower) for k, t in levels.items())
    <= nvlink.bandwidth + efa.bandwidth
), "can exceed NVLink's rate"

# %% [markdown]
# ### A switch that adds, measured
#
# What will the two columns show when GPUs are added to a node, with a switch that adds and without?

# %%
series = {"switch adds": ("h200_nvls",), "GPUs add": ("h200_ring", "h200_ring_eight")}
large = [row for row in measurements() if row.size == 2**33]
pick = {
    name: sorted((row.n, algbw(row.size, row.time)) for row in large if row.series in some)
    for name, some in series.items()
}
pick

# %% tags=["figure"]
looks = {"switch adds": ("orange", "circle"), "GPUs add": ("blue", "square")}


def points(column, of):
    marks = []
    for name, (color, marker) in looks.items():
        xs, ys = [k for k, _ in of[name]], [column(k, v) for k, v in of[name]]
        marks += [Line(xs, ys, name, color), Points(xs, ys, color=color, marker=marker)]
    return marks


gpus = Axis("GPUs of a node", "", domain=(3.8, 8.2), ticks=(4, 5, 6, 7, 8))
above, below = points(lambda k, v: v, pick), points(partial(busbw, "all_reduce"), pick)
below.append(Rule(y=nvlink.bandwidth, label="NVLink, one direction"))
figure(
    [
        Chart(gpus, Axis("algbw", "byte/s", domain=(180e9, 300e9)), above, height=200),
        Chart(gpus, Axis("busbw", "byte/s", domain=(330e9, 500e9)), below, height=230),
    ],
    caption="H200, the same large all-reduce. With NVLS the algbw rises a little, as the own part "
    "of each GPU becomes smaller, and the busbw climbs past the link.",
    alt="Above, algbw: rising a little with the switch, falling without. Below, busbw: rising past "
    "the line rate with the switch, flat below it without.",
)

# %% tags=["holds"]
rates = [v for _, v in pick["switch adds"]]
carried = [v * nvls_time(1.0, k, 1.0) for k, v in pick["switch adds"]]
assert (
    rates == sorted(rates)
    and max(carried) / min(carried) < 1.03 < max(rates) / min(rates)
    and busbw("all_reduce", *pick["switch adds"][-1]) > nvlink.bandwidth
), "With NVLS the algbw rises a little, as the own part of each GPU becomes smaller"
assert pick["GPUs add"][-1][1] < 0.9 * pick["GPUs add"][0][1], "Above, algbw"
assert all(
    0.98 < busbw("all_reduce", *row) / busbw("all_reduce", *pick["GPUs add"][0]) < 1.02
    for row in pick["GPUs add"]
) and busbw("all_reduce", *pick["GPUs add"][0]) < nvlink.bandwidth < busbw(
    "all_reduce", *pick["switch adds"][-1]
), "Below, busbw"

# %% [markdown]
# ### `alltoall`
#
# With $k$ nodes the share $1/k$ of a buffer stays inside, and the rest leaves: the line is a GPU's own
# {{si(efa.bandwidth, "byte/s")}}, not the node's. That takes a switch between the nodes. Where ranks
# have links to neighbours alone, as in a torus, a byte takes several links, and all of them count.

# %% [markdown]
# ## What NCCL itself believes
#
# One algorithm is for short messages, another for long ones. Who chooses? Before each call NCCL
# estimates a time for each algorithm and each *protocol*, and takes the smallest. A protocol is how
# data is handed over:
#
# - **LL** sends a flag with every few bytes, so the receiver sees by itself when data is complete.
#   That is quick, but half of the bandwidth is flags.
# - **LL128** does so with longer lines and loses little. It needs NVLink inside the nodes.
# - **Simple** sends large blocks and synchronises on each.
#
# The estimates are tables in NCCL's source: latencies of a start and of a step, and caps on
# bandwidth. They change from release to release; the next table names the one that this page uses.

# %%
overhead, steady = NET_OVERHEAD["amd"], efa.nccl_busbw
reached = [busbw("all_reduce", r.n, algbw(r.size, r.time)) for r in p5 if r.nodes > 2]
one_node = [[ring_latency(8, 1, protocol=p), tree_latency(8, 1, p)] for p in PROTOCOLS]
rings = [ring_latency(n, nodes, protocol=p, net_overhead=overhead) for p in PROTOCOLS]
trees = [tree_latency(n, nodes, p) for p in PROTOCOLS]
table(
    [[p, *one, *more] for p, one, *more in zip(PROTOCOLS, one_node, rings, trees)],
    [
        "protocol",
        "ring, one node",
        "tree, one node",
        f"ring, {nodes} nodes",
        f"tree, {nodes} nodes",
    ],
    caption=f"Latency that NCCL {NEWEST} charges before the first byte, from its source, for hosts "
    "with AMD processors.",
)

# %%
sixteen = {"n": 128, "nodes": 16, "cpu": "amd"}
best = nccl_choices(2.0**34, **sixteen)[0]
best.algorithm, best.protocol, algbw(2.0**34, best.time)

# %% tags=["figure"]
rows = []
for size in (2.0**13, 2.0**20, 2.0**24, 2.0**28, 2.0**34):
    both = nccl_choices(size, 8)[0], nccl_choices(size, **sixteen)[0]
    texts = [(f"{best.algorithm} {best.protocol}", si(best.time, "s")) for best in both]
    rows.append([si(size, "byte"), *texts[0], *texts[1]])
table(
    rows,
    ["message", f"one node of {per_node} H100", "its estimate", "sixteen nodes", "its estimate"],
    caption="What the tables choose, and the time that they expect. NVLSTree: switches add inside "
    "the nodes, and a tree across them.",
)

# %% [markdown]
# Now the steps of a ring. NCCL adds up the way of one chunk, first around the ring to be summed up
# and then once more. With {{n:,}} GPUs that is {{ring_steps("all_reduce", n):,}} steps, and in
# {{ring_steps("all_reduce", nodes)}} of them, by its count, the chunk changes nodes. (Others do so
# meanwhile.) For every message that NCCL posts to the network it charges {{si(overhead, "s")}} on
# hosts with AMD processors, as here, and half of that on Intel's. A step of Simple posts three, and
# NCCL takes no step to be shorter than its posts. So one inside a node costs
# {{si(3 * overhead, "s")}}, too. What share of the time is that?

# %% tags=["holds"]
assert overhead == efa.nccl_overhead == 2 * NET_OVERHEAD["intel"], "every message that NCCL"

# %%
predict("nccl.latency_share", ..., seed="opening")

# %% [markdown]
# The steps take {{si(ring_latency(n, nodes, net_overhead=overhead, plateau=PLATEAU), "s")}}, and
# the bytes {{si(bandwidth_bound("all_reduce", message, n, steady), "s")}}. The
# {{si(steady, "byte/s")}} are what NVIDIA showed for large messages between nodes with as good a
# line. The public rows of this network on more than two nodes end at
# {{si(max(reached), "byte/s")}}, a little below; a later section fits where larger messages would.

# %% tags=["holds"]
assert steady < efa.bandwidth_per_node, "nodes with as good"
assert 0.9 * steady < max(reached) < steady, "more than two nodes"

# %%
reveal("nccl.latency_share", seed="opening")

# %% [markdown]
# So the steps take about a fifth of the time at this size, and do not halve the rate. For a message
# of a gigabyte they do that, and worse.

# %% tags=["holds"]
assert (
    0.17
    < ring_latency(n, nodes, net_overhead=overhead, plateau=PLATEAU)
    / (
        ring_latency(n, nodes, net_overhead=overhead, plateau=PLATEAU)
        + bandwidth_bound("all_reduce", message, n, steady)
    )
    < 0.21
), "not halve the rate"
assert ring_latency(n, nodes, net_overhead=overhead, plateau=PLATEAU) > bandwidth_bound(
    "all_reduce", 1e9, n, steady
), "message of a gigabyte"

# %%
hosts = {"net_overhead": overhead, "plateau": PLATEAU}
declared = ring_latency(n, nodes, net_latency=efa.nccl_latency, **hosts)
ring_latency(n, nodes, **hosts), declared

# %% [markdown]
# ### Tuned to choose, not to predict
#
# The *plugin* of a network, the library through which NCCL sends, may declare that steps take
# longer. EFA's says {{si(efa.nccl_latency, "s")}} for a step between nodes, and for a large message
# NCCL counts it twice. With that, it expects {{si(declared, "s")}} for the steps alone, and for the
# whole ring half as much time again as the run took. Its authors write why: with this value NCCL
# chose better. So a constant of these tables may be far from any latency that you can measure.
#
# NCCL prints what it charged your own job with `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING`;
# `lightspeed_tools.nccl.tuning_log` reads that.

# %% tags=["holds"]
assert (
    abs(ring_latency(16, 2, net_latency=1.0) - ring_latency(16, 2) - 4) < 1e-9
    and abs(
        ring_latency(16, 2, protocol="LL", net_latency=1.0) - ring_latency(16, 2, protocol="LL") - 2
    )
    < 1e-9
), "NCCL counts it twice"
assert (
    1.4
    < (
        ring_latency(n, nodes, net_overhead=overhead, net_latency=efa.nccl_latency, plateau=PLATEAU)
        + bandwidth_bound("all_reduce", message, n, steady)
    )
    / (message / asked)
    < 1.6
), "half as much time"

# %% [markdown]
# ## Check: models against measurements
#
# Two models are on trial. One is NCCL's own, with nothing fitted. The other is ours: NCCL's latency
# for short messages times a factor, joined to the bytes on the busiest link over a bandwidth. The
# join is that of a pipeline, in which latency and transfer hide each other in part:
#
# $$t = \left(\ell^{\,e} + \left(\frac{\text{bytes} }{W}\right)^{e}\right)^{1/e}$$
#
# With $e = 1$ that is α–β, a sum. With $e = 1/2$ it is a pipeline: $k$ chunks over $d$ steps take
# $(d + k)(\alpha + S/(k\,W))$, and the best $k$ makes that $(\sqrt{d\,\alpha} + \sqrt{S/W})^2$. We
# fit a single $e$, and a factor and a $W$ for each kind of link and path. The parameters see some
# of the rows; the others are for testing.

# %% tags=["figure"]
rows = [
    [key.split(".")[0], path.replace("_", " "), f"{fit.latency:.2f}", si(fit.bandwidth, "byte/s")]
    + [fitted("nccl")[key][path]["rows"]]
    for (key, path), fit in fits.items()
]
seen = sum(row.fitted for row, _ in rows_all)
table(
    rows,
    ["link that bounds it", "path", "factor on NCCL's latency", "W", "rows fitted"],
    caption=f"{len(fits)} fits with one exponent, {next(iter(fits.values())).exponent:g}, on "
    f"{seen} rows; {len(rows_all) - seen} rows are kept for testing.",
)

# %% [markdown]
# On EFA the factor is {{fits["efa_p5.bandwidth_per_node", "ring"].latency:.2f}}: with the overhead
# of the right processor, NCCL's latency for short messages needs no correction there. And its $W$
# is {{si(fits["efa_p5.bandwidth_per_node", "ring"].bandwidth, "byte/s")}}, close to what NVIDIA
# showed for large messages.

# %% tags=["holds"]
assert all(
    abs(fit.latency - 1) < 0.05 for (key, _), fit in fits.items() if key.startswith("efa")
), "needs no correction there"
assert abs(fits["efa_p5.bandwidth_per_node", "ring"].bandwidth / steady - 1) < 0.05, (
    "showed for large messages"
)

# %%
at_question = expected_by_model("all_reduce", message, n, nodes, "p5")
algbw(message, at_question.time), busbw("all_reduce", n, at_question.algbw)

# %% tags=["figure"]
smaller, big = 2.0**27, 2.0**33
fitted_nodes, tested_nodes = (
    sorted({row.nodes for row in p5 if row.fitted == seen}) for seen in (True, False)
)
star = busbw("all_reduce", n, asked)
chart = busbw_over_nodes(line, (nodes, star))
curves = [mark for mark in chart.marks if isinstance(mark, Line)]
figure(
    chart,
    caption="Busbw over nodes. Lines: our model. Circles: rows it was fitted to "
    f"({', '.join(map(str, fitted_nodes))} nodes); crosses: rows that it had not seen. Size "
    "decides how much the number of nodes matters.",
    alt="Four falling curves. The largest message keeps more than seven tenths of its first value "
    "to the end; the smallest falls to less than a tenth of its own. A star at a hundred and "
    "twenty-five nodes lies a fifth above the curve of the largest message.",
)

# %% tags=["holds"]
assert (
    curves[-1].y[-1] / curves[-1].y[0] > 0.7
    and curves[0].y[-1] / curves[0].y[0] < 0.1
    and all(curve.y[-1] < curve.y[0] for curve in curves)
    and len(curves) == 4
), "The largest message keeps"
assert 1.17 < star / curves[-1].y[-1] < 1.23, "A star at a hundred and twenty-five nodes lies a fifth above the curve of the largest message"

# %% [markdown]
# From four to thirty-two nodes, {{si(big, "byte")}} keep
# {{busbw("all_reduce", 256, published[32]) / busbw("all_reduce", 32, published[4]):.0%}} of their
# busbw. A message of {{si(smaller, "byte")}} keeps half. "Slow because of many nodes" needs a size
# beside it.
#
# The same over size, on four machines. Small rates of small messages: that is what a latency looks
# like in a column of bandwidths.

# %% tags=["holds"]
assert (
    0.45
    < np.divide(
        *[
            next(
                r.size / r.time * busbw_factor("all_reduce", r.n)
                for r, _ in rows_all
                if (r.series, r.nodes, r.size) == ("p5_all_reduce", k, smaller)
            )
            for k in (32, 4)
        ]
    )
    < 0.55
), "keeps half"

# %% tags=["figure"]
chart = busbw_over_size()
curves = [mark for mark in chart.marks if isinstance(mark, Line)]
figure(
    chart,
    caption="Busbw over message size: one node of A100, one of H200 whose switch adds, four of "
    "B200, and an all-to-all over many nodes of H100. Lines are the model; circles were fitted, "
    "crosses were not.",
    alt="Four rising curves on logarithmic axes that bend to plateaus; the all-to-all, between "
    "many nodes, ends lowest.",
)

# %% tags=["holds"]
assert (
    len(curves) == 4
    and all(curve.y[0] < curve.y[-1] for curve in curves)
    and curves[-1].y[-1] == min(curve.y[-1] for curve in curves)
), "Four rising curves on logarithmic axes that bend to plateaus; the all-to-all, between many nodes, ends lowest"

# %% [markdown]
# ### Errors by regime

# %%
round(float(np.median(large_test)), 3), round(float(np.quantile(large_test, 0.9)), 3)


# %% tags=["figure"]
def regime(row):
    where = {1: "one node", 2: "two nodes"}.get(row.nodes, "more nodes")
    size = "large" if row.size >= large_from else "middle" if row.size >= small_below else "small"
    return f"{size}, {where}"


def spread(values):
    if not values:
        return [0, "–", "–"]
    return [len(values), f"{np.median(np.abs(values)):.0%}", f"{max(values, key=abs):+.0%}"]


def errors(name, fitted):
    return [e for r, e in rows_all if regime(r) == name and r.fitted == fitted]


wheres = ("one node", "two nodes", "more nodes")
names = [f"{size}, {where}" for size in ("large", "middle", "small") for where in wheres]
kept = [name for name in names if errors(name, True) or errors(name, False)]
table(
    [[name, *spread(errors(name, True)), *spread(errors(name, False))] for name in kept],
    ["message, where", "fitted rows", "median error", "worst"]
    + ["test rows", "median error", "worst"],
    caption=f"Model over measured, minus one. Large is from {si(large_from, 'byte')} on, small "
    f"below {si(small_below, 'byte')}.",
)

# %% tags=["figure"]
chart = residual_rows(kept, regime)
figure(
    chart,
    caption="Residuals of all measured rows. To the left the model is too fast, to the right too "
    "slow. The vertical scatter inside a row of the chart means nothing.",
    alt=f"Points in {len(kept)} bands. Large messages lie close to zero, the middle and small "
    "ones scatter widely.",
)

# %% tags=["holds"]
assert sum(len(mark.x) for mark in chart.marks[1:]) == len(measurements()), "Residuals of all"
assert max(abs(e) for r, e in rows_all if r.size >= large_from) < 0.45 and np.std(
    [e for r, e in rows_all if r.size < large_from]
) > 3 * np.std([e for r, e in rows_all if r.size >= large_from]), "Large messages lie"

# %% [markdown]
# For {{len(large_test)}} test rows from {{si(large_from, "byte")}} on, the median error is
# {{np.median(large_test):.1%}} and nine of ten lie within {{np.quantile(large_test, 0.9):.0%}}.
# That is good enough to call a number odd. For smaller messages it is not.
#
# ### Where each model fails

# %% tags=["holds"]
assert np.mean(np.array(large_test, dtype=float) <= np.quantile(large_test, 0.9)) >= 0.89, (
    "nine of ten lie within {{np.quantile(large_test, 0.9):.0%}}"
)


# %% tags=["figure"]
seen_sizes = sorted({r.size for r in p5})
grid = (2, 4, 8, 16, 32)
table(
    [
        [si(float(s), "byte"), *(f"{ours[s, k]:+.0%} / {theirs[s, k]:+.0%}" for k in grid)]
        for s in seen_sizes[::2]
    ],
    ["message", *(f"{k} nodes" for k in grid)],
    caption="Error in time on p5, ours / NCCL's own tables. NCCL's own are too fast in every row. "
    f"Ours was fitted on {fitted_nodes[0]} and {fitted_nodes[1]} nodes.",
)

# %% tags=["holds"]
assert all(theirs[s, k] < 0 for s in seen_sizes for k in grid), "NCCL's own are too fast in every row"

# %% [markdown]
# - **Our model, small messages.** It has a single latency, but some of the measurements time a loop
#   in C++ and others launch each call from Python. For middle-sized messages across many nodes NCCL
#   changes its algorithm, and one curve goes through the times of several.
# - **Our model, beyond {{max(tested_nodes)}} nodes.** We found no public row there. For {{nodes}}
#   nodes the model extrapolates, and expects a lower number than the question reports.
# - **NCCL's tables** are for choosing. At {{si(float(seen_sizes[-1]), "byte")}} they are at most
#   {{max(abs(theirs[seen_sizes[-1], k]) for k in (2, 4, 8, 16, 32)):.0%}} off. On many nodes and
#   for less than a gigabyte they are too fast by up to a factor of
#   {{1 / (1 + min(theirs.values())):.1f}}. There they would choose a tree, and expect more of it
#   than the runs, whatever those chose, delivered.
# - **α–β**, a plain sum. Fitted to both ends of a curve it misses the middle by a third; the
#   exponent repairs that.
# - **Both** know an idle network.
#
# ### One node, nine kinds of GPU
#
# Inside a node one program measured nine kinds of GPU. First a forecast for a chip that is left
# out.

# %% tags=["holds"]
assert max(r.nodes for r in measurements()) == max(tested_nodes), "no public row there"
assert expected_by_model("all_reduce", message, n, nodes, "p5").algbw < asked, (
    "number than the question"
)
assert max(abs(theirs[seen_sizes[-1], k]) for k in (2, 4, 8, 16, 32)) < 0.25, "they are at most"
assert min(theirs, key=theirs.get)[0] < 1e9 and min(theirs, key=theirs.get)[1] >= 8, (
    "less than a gigabyte"
)
assert (
    "Tree"
    in nccl_choices(
        min(theirs, key=theirs.get)[0],
        8 * min(theirs, key=theirs.get)[1],
        min(theirs, key=theirs.get)[1],
        cpu="amd",
    )[0].algorithm
), "it than the runs"

# %%
predict("nccl.left_out_chip", ...)

# %%
table(
    [
        [b.regime, b.rows, si(b.ratios[1], "%"), si(b.beaten, "%"), si(m.median, "%")]
        for b, m in zip(wires.by_regime, plain_sum.by_regime)
    ],
    ["message", "rows", "bound over measured", "rows that beat it", "α–β, error"],
    caption="The bound at the rate of the data sheet, and α–β fitted on other chips with the same "
    "links.",
)

# %% tags=["figure"]
figure(
    residual_chart(plain_sum, dots=90, height=300),
    caption="α–β on a chip that it has not seen: worst in the middle of the sizes.",
    alt="Predicted over measured time by size of the message, around one; medians "
    + ", ".join(f"{e.ratios[1]:.2f}" for e in plain_sum.by_regime)
    + " from small to large.",
)

# %% tags=["holds"]
assert max(plain_sum.by_regime, key=lambda e: e.median).regime == plain_sum.by_regime[1].regime, (
    "worst in the middle"
)

# %%
reveal("nccl.left_out_chip")

# %%
mine = 350e9  # assumed
standing = percentile(mine, "h100_sxm", 8, "all_reduce", 2**29)
fastest = float(np.max(wires.rows["ranks"][wires.ratio > 1.02]))
si(mine, "byte/s"), standing.peers, si(standing.median, "byte/s")

# %% [markdown]
# - **A link carries over.** α–β with both constants from other chips is off by
#   {{plain_sum.all.median:.0%}} in the median of {{plain_sum.all.rows:,}} rows.
# - **The bound in which ranks add is beaten** in {{sum(wires.ratio > 1.02)}} of
#   {{wires.all.rows:,}} rows, each an all-reduce of floats over {{fastest:.0f}} GPUs, in which the
#   switch adds.
# - **Is mine normal?** Ask where a busbw stands among its peers: the same collective over links of
#   the same rate. For {{si(mine, "byte/s")}} on eight H100, all {{standing.peers}} peers are
#   faster, and their median is {{si(standing.median, "byte/s")}}.

# %% tags=["holds"]
assert plain_sum.all.median < 0.13, "other chips is off"
assert 0 < sum(wires.ratio > 1.02) < 10 and wires.all.excused == 1, "which the switch adds"
assert standing.percentile == 0, "peers are faster"

# %% [markdown]
# ### The number of the question, three ways
#
# Now put two estimates beside it; neither was fitted to it. The first takes what NCCL charges for the
# steps of a ring and adds the bytes at the {{si(steady, "byte/s")}} that NVIDIA showed. The second is
# the fitted model.

# %% tags=["holds"]
assert all(r.nodes != nodes for r, _ in rows_all), "neither was fitted to it"

# %%
steps = ring_latency(n, nodes, net_overhead=overhead, plateau=PLATEAU)
transfer = bandwidth_bound("all_reduce", message, n, steady)
steps, transfer

# %%
answers = {
    "measured": message / asked,
    f"NCCL's steps, then bytes at {si(steady, 'byte/s')}": steps + transfer,
    "fitted model, extrapolated": at_question.time,
}
rates = {name: algbw(message, time) for name, time in answers.items()}
rates

# %% tags=["figure"]
table(
    [
        [name, si(time, "s"), rates[name], busbw("all_reduce", n, rates[name])]
        + ["–" if name == "measured" else f"{time * asked / message - 1:+.1%}"]
        for name, time in answers.items()
    ],
    ["", "time", "algbw", "busbw", "error in time"],
)

# %%
best_share = max(reached) / line
within = nine_of_ten("large", "several nodes")  # as a factor, of rows that were not fitted
round(best_share, 2), round(within, 2)

# %% [markdown]
# A share of a line is at most one, and the question's is. Public runs of a quarter of the nodes reach
# {{published[32] * busbw_factor("all_reduce", 256) / efa.bandwidth_per_node:.0%}}, and none of our
# rows of this network, on more than two nodes, exceeds {{best_share:.0%}}. Where the GPUs of a node
# add first, the node sends {{leaves[nodes] / line:.0%}} of its line. Below
# {{si(at_question.algbw / within, "byte/s")}}, the fitted model over {{within:.2f}}, a run would be
# odd, if nine runs of ten are normal.
#
# ## Have a log judged
#
# `lightspeed nccl report FILE` counts the steps at what NCCL charges for short messages, which is less
# than above. The question again, and a run that is not normal:

# %% tags=["holds"]
assert busbw("all_reduce", n, asked) / efa.bandwidth_per_node <= 1, "share of a line is at most"
assert busbw("all_reduce", n, asked) / efa.bandwidth_per_node < best_share < 1, "exceeds"
assert leaves[nodes] == busbw_factor("all_reduce", nodes) * asked, "add first"
assert ring_latency(n, nodes, protocol="LL", net_overhead=overhead) < steps / 4, "which is less than above"

# %%
HEAD = """# Collective test starting: all_reduce_perf
#   size  count  type  redop  root  time  algbw  busbw  #wrong
"""


def row(size, rate, n):
    """What all_reduce_perf prints for `size` bytes at this algbw (byte/s) over n ranks."""
    time, bus = 1e6 * size / rate, rate * 2 * (n - 1) / n / 1e9
    return f"{size:.0f} {size / 4:.0f} float sum -1 {time:.1f} {rate / 1e9:.2f} {bus:.2f} 0"


print(HEAD + row(8e9, 200e9, 4))

# %%
from lightspeed_tools.nccl.judge import judge_report
from lightspeed_tools.nccl.log import parse
from lightspeed_tools.nccl.machine import described
from lightspeed_tools.nccl.sentences import in_words

(run,) = parse(HEAD + row(message, asked, n))
judged = judge_report(run, described("p5"), ranks=n, nodes=nodes)
table([[line] for line in in_words(judged)], [f"verdict: {judged.level}"])

# %%
process, thread, gpu = 1, 2, 0
fallback = f"node:{process}:{thread} [{gpu}] NCCL INFO Using network Socket\n"
(run,) = parse(fallback + HEAD + row(8e9, 4.5e9, 32))
broken = judge_report(run, described("p5"), ranks=32, nodes=4)
table([[line] for line in in_words(broken)], [f"verdict: {broken.level}"])

# %% [markdown]
# ## Which test to run
#
# Each strategy of chapter 6 sends something else.

# %% [markdown]
# For one layer of a {{find("llama2_7b").name}}, and one micro-batch:

# %%
model, tokens, group = decoder("llama2_7b"), 8192, 8
layer = model.parameters / model.depth * 2
states = tokens * model.width * 2
si(layer, "byte"), si(states, "byte")

# %%
ar, ag, rs = (busbw_factor(name, group) for name in ("all_reduce", "all_gather", "reduce_scatter"))
experts, bucket = 2, 25 * 2.0**20
swaps = 4 * experts * busbw_factor("alltoall", group)
gathers = "all_gather, reduce_scatter"
strategies = [
    ["DDP", "gradients, once a step", "all_reduce", ar * layer],
    ["FSDP", "weights twice, gradients once", gathers, (2 * ag + rs) * layer],
    ["tensor parallel", "activations, twice forward, twice back", "all_reduce", 4 * ar * states],
    ["tensor and sequence parallel", "each of these cut in two", gathers, 4 * (ag + rs) * states],
    [f"experts, {experts} a token", "tokens there and back, twice", "alltoall", swaps * states],
    ["pipeline, for a stage", "activations forward and back", "sendrecv", 2 * states],
]
strategies[1][-1] / strategies[0][-1]  # FSDP over DDP

# %% tags=["figure"]
table(
    [[name, what, test, si(sent, "byte")] for name, what, test, sent in strategies],
    ["strategy", "what it sends", "collective, and test", "each GPU sends, a layer and step"],
    caption=f"bf16, {si(tokens, 'token')} on each GPU, groups of {group}. Run the test of your "
    "row, at your size.",
)

# %% [markdown]
# So `all_reduce_perf` with NVLS flatters a machine that will run FSDP: switches that add do not
# shorten a gather or a scatter. And a number at {{si(message, "byte")}} says little about a job
# that sends buckets of {{si(bucket, "byte")}}.
#
# ## Measure it here
#
# An experiment with real messages, in seconds and without a GPU: processes that MPI starts send to each other through memory, in steps as before. First comes a
# *shift*: every process sends to its right neighbour and receives from its left one, all at once,
# as in one step of a ring. A line through the times of the shift gives α and $W$ of your machine.
# From these two the ring's all-reduce is computed, and set beside the measured one; nothing is
# fitted to it.
#
# Will the measured all-reduce of a large message be faster than the computed ring, or slower?
# Remember who does the adding. And will busbw keep rising with the message, as on the curves above?

# %%
from lightspeed_course import measure_here, shipped
from lightspeed_tools.measure.pages.network_figures import (
    collectives_figure,
    collectives_findings,
    collectives_table,
)

# %% tags=["measured"]
mine = measure_here("collectives")

# %% tags=["measured"]
collectives_figure(mine)

# %% tags=["measured"]
collectives_table(mine)

# %% tags=["measured"]
collectives_findings(mine)

# %% [markdown]
# ### Explain the difference
#
# - **Somebody must add.** A GPU adds at the rate of its memory, which is far above its links. Here
#   a core adds, and to do so it reads two arrays and writes one through the very memory that serves
#   as the link. The line of the shift does not contain that.
# - **The link is a memory.** A small message stays in a cache. So the curves have a hump instead of
#   a plateau, and no single $W$ is right for all sizes.
# - **α is software.** The findings say what an empty call costs. On GPUs a kernel is launched. And
#   two processes may swap whole buffers in one step, where the ring takes two: a tiny message can
#   beat it.
# - **Memory that comes anew.** MPI's scratch memory may go back to the system after each call, and
#   return page by page. Then a middle-sized message takes as long as a far larger one.
# - **Processes share.** If there are more processes than cores, a message waits until its receiver
#   runs again.
#
# A call is timed alone, after a barrier, and the mean over processes is taken; each result is
# checked. On a cluster use what everybody does, the OSU benchmarks or nccl-tests:
# `lightspeed nccl report` reads what the latter print.
#
# ### The same on a recorded machine
#
# This record was made for the course.

# %% tags=["holds"]
assert number("h100_sxm.hbm_bandwidth") > 5 * nvlink.bandwidth, "far above its links"
assert recursive_doubling_time(0.0, 2, 1.0, 1.0) == 1 and ring_time(0.0, 2, 1.0, 1.0) == 2, (
    "tiny message can beat"
)

# %%
recorded = shipped()["amd_epyc_2core"]
collectives_figure(recorded)

# %%
collectives_findings(recorded)

# %% [markdown]
# ### Nodes, and links of a known rate
#
# On the same machine Linux made a network: every node a process in a namespace of its own, with one
# link to a switch, and the kernel let through only so many bytes a second in each direction. The
# ring and the tree were short programs on plain sockets. So this time $W$ is known beforehand, and
# the question is what the number of nodes does.
#
# How many times longer did the ring take on six nodes than on two, for a tiny message and for a
# large one? And the tree? Only α is taken from the measurement, of the tiny ring over two nodes.

# %%
from lightspeed_tools.measure.records.record import all_of, find as measured

tiny, large = 1024.0, 4.0 * 2**20
two = measured(recorded, "network.ring", nodes=2, size=1024)
rate = two.parameters["rate"]
step = (two.value - ring_time(tiny, 2, rate)) / 2
laws = {"ring": ring_time, "tree": tree_time}
rows = []
for way, law in laws.items():
    for size in (tiny, large):
        for q in all_of(recorded, f"network.{way}", size=int(size)):
            k, time = q.parameters["nodes"], q.value
            ratio = f"{time / law(size, k, rate, step):.2f}" if q.trusted else "too noisy to say"
            rows.append([way, si(size, "byte"), k, si(time, "s"), ratio])
table(rows, ["", "message", "nodes", "measured", "over the law"], f"Links: {si(rate, 'byte/s')}.")

# %% [markdown]
# - **The large message** shows the factor of busbw at work: the ring rises towards twice $S/W$ and
#   stays below it, however many nodes. The tree takes two whole buffers longer with every doubling,
#   one up and one down.
# - **The small message** is for the steps: by the law the ring's grow with every node, the tree's
#   with every doubling.
# - **A rate not reached.** The kernel counts headers, too, nearly a twentieth of a full packet. So
#   even the large message takes longer than its bytes over the rate of the link.
# - **A time off the line.** The nodes share the cores. The more of them there are, the longer each
#   waits to be woken, so here α itself grows with the nodes. In a ring all of them send in each
#   step, in a tree at most half.

# %% tags=["holds"]
assert all(ring_time(1.0, k, 1.0) < ring_time(1.0, k + 1, 1.0) < 2 for k in range(2, 100)), (
    "ring rises towards twice"
)
assert all(tree_time(1.0, 2 * k, 1.0) == tree_time(1.0, k, 1.0) + 2 for k in range(2, 100)), (
    "longer with every doubling"
)
assert (
    ring_time(0.0, 9, 1.0, 1.0) - ring_time(0.0, 8, 1.0, 1.0)
    == 2
    == tree_time(0.0, 16, 1.0, 1.0) - tree_time(0.0, 8, 1.0, 1.0)
), "tree's with every doubling"

# %% [markdown]
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %%
from lightspeed_course import gallery

gallery("07")

# %% [markdown]
# ## What the model leaves out
#
# Congestion and routing; rails, and what happens when a GPU's traffic takes another GPU's adapter;
# compute that runs at the same time and takes bandwidth from memory; start-up, which can take
# minutes on thousands of GPUs; and ranks that are late and delay the others. Chapter 6 has the
# last.
#
# ## Further reading
#
# - NVIDIA, *nccl-tests*, `doc/PERFORMANCE.md`: where the factors are defined.
# - Thakur, Rabenseifner and Gropp, *Optimization of Collective Communication Operations in MPICH*
#   (2005): the classic on which algorithm when.
# - Sanders, Speck and Träff, *Two-tree algorithms for full bandwidth broadcast, reduction and scan*
#   (2009).
# - Bekman, *Machine Learning Engineering*, the network chapter: many of the measurements on this
#   page.
# - Austin et al., *How to Scale Your Model* (2025), on the collectives of TPUs.
