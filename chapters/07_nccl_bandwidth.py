# %% [markdown]
# # 7. NCCL bandwidth
#
# Somebody rented a hundred and twenty-five nodes of eight GPUs, ran the usual test on them, and asked about the one line that it printed:
# sixteen gigabytes, all-reduced at an *algbw* far below what the network is sold for. Is that normal, or is
# something broken?
#
# The answer that circulates says: normal, for that is two fifths of the link, and the rest is lost in the many steps. The first word is right. Of the
# rest of that answer, this chapter leaves little standing.
#
# **You will be able to** read what nccl-tests prints and compare the right column with the right link; say how long any collective must
# take, and which algorithm comes near; tell a slow network from a small message; and have a log judged by one command.
#
# **You need** chapter 1 for rates and units, and the habit of chapter 2 of asking what bounds a time. **Time:** two hours, with the problems.

# %%
import numpy as np

from lightspeed.catalog import find, link, number
from lightspeed.collectives import *
from lightspeed_course import (
    Area, ask, Axis, Chart, figure, Line, Points, predict, reveal, Rule, si, table,
)

# %%
per_node, nodes, message, asked = 8, 125, 16e9, 156e9
n = per_node * nodes
efa, nvlink = link("efa_p5"), link("nvlink4")

# %% [markdown]
# The line said: {{nodes}} nodes, {{n:,}} GPUs, {{si(message, "byte")}} in {{si(message / asked, "s")}}, algbw {{si(asked, "byte/s")}}. The sales page says:
# {{si(efa.bandwidth_per_node, "byte/s")}} a node.
#
# ## Before you read on
#
# Commit yourself to two numbers.

# %%
predict("nccl.share_of_line", ...)

# %%
predict("nccl.latency_share", ...)

# %% [markdown]
# ## What is measured
#
# `all_reduce_perf` and its sisters are small C++ programs that call NCCL and nothing else. There is no PyTorch in them, no model and no arithmetic
# besides the sums. Under NCCL lies CUDA, and under that a plugin for the network: libfabric for EFA, verbs for InfiniBand. So the test shows
# what the network and NCCL can do together; a training job gets that at best.
#
# The program times a call on a buffer of $S$ bytes and prints
#
# $$\text{algbw} = \frac{S}{t}$$
#
# That is the rate that the *caller* sees: divide your gradient by it and you have the time you wait. It is a perfectly good
# number, and it cannot be compared with any wire, because $S$ is not what crosses a wire.
#
# ### Count the bytes
#
# Take an all-reduce over $n$ ranks (a rank is a GPU). Look at one element. The $n$ summands start on $n$ different ranks; to bring them together
# takes $n - 1$ transfers, in whatever order. The sum is now on one rank, and the other $n - 1$ need it: as many transfers again.
#
# $$\text{sent by all} = 2\,(n - 1)\,S \qquad \text{sent by each, if the load is even} = \frac{2\,(n - 1)}{n}\,S$$
#
# Nothing here speaks of a ring. Every algorithm in which only ranks do arithmetic must move that much. Multiply algbw by it and you have **busbw**: the
# rate at which each rank sends, and at the same time receives. *That* can be held against a link.

# %%
k = 8
pieces = {  # of S / k, that each rank sends
    "all_reduce": ("add up, then hand out", k - 1 + k - 1),
    "reduce_scatter": ("add up", k - 1),
    "all_gather": ("hand out", k - 1),
    "alltoall": ("give each its own, keep one", k - 1),
    "broadcast": ("pass all of it on", k),
    "reduce": ("add to all of it, pass it on", k),
}
table(
    [[name, work, f"{count} of S/{k}", f"{count / k:.3f}", f"{busbw_factor(name, k):.3f}"] for name, (work, count) in pieces.items()],
    ["collective", "work", "sent by each rank", "counted", "busbw_factor"],
    caption=f"Bytes that a rank sends for each byte of S, for {k} ranks. For gathers and scatters nccl-tests counts the whole buffer, all shards together.",
)

# %% tags=["figure"]
many = np.unique(np.round(np.geomspace(2, 1024, 60)))
marked = np.array([2, 4, 8, 16, 1000])
figure(
    Chart(
        Axis("ranks n", "", "log"),
        Axis("busbw over algbw", "", domain=(0, 2.2)),
        [
            Rule(y=2, label="twice: the limit"),
            Line(many, busbw_factor("all_reduce", many), "all-reduce", "blue"),
            Line(many, busbw_factor("all_gather", many), "gather", "green"),
            Line(many, busbw_factor("broadcast", many), "broadcast", "purple", dash=True),
            Points(marked, busbw_factor("all_reduce", marked), labels=[f"{f:.4g}" for f in busbw_factor("all_reduce", marked)], color="blue"),
        ],
        height=300,
    ),
    caption="Twice is where the factor of an all-reduce ends, not what it is. And it counts GPUs, not nodes.",
    alt="The factor of an all-reduce rises from one at two ranks towards two; that of a gather, a scatter or an all-to-all is half of it; that of a broadcast or a reduce is one.",
)

# %%
ask("nccl.busbw")

# %% [markdown]
# ## A ring, step by step
#
# Cut the buffer into $n$ chunks and put the GPUs in a circle. In each step every GPU sends one chunk to its right neighbour, each a different
# one. For $n - 1$ steps the receiver adds what arrives to its own: a reduce-scatter. For another $n - 1$ steps finished sums go round: an all-gather.

# %%
from lightspeed_course.explorers.nccl import explore_ring, ring_states
from lightspeed.models.ring import run_ring

explore_ring()

# %%
import matplotlib.pyplot as plt

fig, panels = plt.subplots(2, 4, figsize=(9.5, 4.2), layout="constrained")
for step, (axes, (held, arrived)) in enumerate(zip(panels.flat, ring_states(4))):
    for (rank, chunk), count in np.ndenumerate(held):
        color = "#c04e00" if (rank, chunk) in arrived else "#00775a" if count == 4 else "#666666"
        axes.add_patch(plt.Rectangle((chunk + 0.04, rank + 0.04), 0.92, 0.92, color=color))
        axes.text(chunk + 0.5, rank + 0.5, str(count), color="white", ha="center", va="center")
    title = "start" if not step else f"step {step}, {'add' if step < 4 else 'hand out'}"
    axes.set(xlim=(0, 4), ylim=(4, 0), xticks=[], yticks=[], title=title)
panels.flat[7].axis("off")
plt.close(fig)

# %%
figure(
    fig,
    caption="All steps of a ring of four. Rows are GPUs, columns chunks; the number counts the summands in a cell. Orange has just arrived, green is a finished sum.",
    alt="Seven squares of four by four cells. Diagonals of orange cells grow from two to four summands in three steps, then spread the finished sums in three more.",
)

# %% [markdown]
# Now on real arrays. The library runs the same schedule and counts what leaves each rank.

# %%
rng = np.random.default_rng(7)
rows = []
for ranks in (2, 3, 4, 8, 16):
    arrays = [rng.integers(0, 1000, 48_000) for _ in range(ranks)]
    run = run_ring(arrays)
    right = all(np.array_equal(result, np.sum(arrays, axis=0)) for result in run.results)
    rows.append([ranks, len(run.steps), f"{run.sent[0] / arrays[0].nbytes:.4f}", f"{busbw_factor('all_reduce', ranks):.4f}", "yes" if right else "no"])
table(rows, ["ranks", "steps", "sent by each, in buffers", "factor of busbw", "every rank has the sum"])

# %% [markdown]
# A picture that is often drawn compares this with a parcel that visits one city after the other, so that a hundred cities take a hundred days. That
# is one chunk. In a ring all trucks drive at once: each link is busy in each step, and a chunk gets smaller as the ring gets longer. What
# grows with the ring is the number of steps, not the number of bytes. Keep the two apart; the whole chapter hangs on it.
#
# ## The link it is compared with
#
# Three slips wait here, and each is worth a factor.
#
# - **One direction or both.** A rank sends to one neighbour while it receives from the other. Busbw counts one direction. NVLink is printed with both.
# - **A GPU or a node.** NVLink is a GPU's own. EFA and InfiniBand are sold by the node or by the port. A ring enters a node once and
#   leaves it once, and NCCL builds many rings so that all adapters are used: compare with the *node's* rate.
# - **Bits or bytes.** Adapters are named in bits.

# %%
ndr = link("infiniband_ndr")
table(
    [
        [nvlink.name, si(nvlink.bandwidth, "byte/s"), si(nvlink.bandwidth_bidirectional, "byte/s"), "–"],
        [efa.name, si(efa.bandwidth, "byte/s"), si(efa.bandwidth_bidirectional, "byte/s"), si(efa.bandwidth_per_node, "byte/s")],
        [f"{ndr.name}, one per GPU", si(ndr.bandwidth, "byte/s"), si(ndr.bandwidth_bidirectional, "byte/s"), si(ndr.bandwidth_per_node, "byte/s")],
    ],
    ["link", "a GPU, one direction", "a GPU, both", "a node of eight, one direction"],
    caption="The last column, or the first inside a node, is what a busbw is held against.",
)

# %% [markdown]
# So, to the question. With {{n:,}} ranks the factor is {{busbw_factor("all_reduce", n):.3f}}; the busbw is
# {{si(busbw("all_reduce", n, asked), "byte/s", 4)}}, and the nodes have a line of {{si(efa.bandwidth_per_node, "byte/s")}}.

# %%
reveal("nccl.share_of_line")

# %% [markdown]
# The answer that circulates divides the *algbw* by the line and finds {{asked / efa.bandwidth_per_node:.0%}}, then explains the missing part. Nothing is missing: the caller's
# bytes cross the wire nearly twice. The same slip makes its other rows impossible.

# %%
from lightspeed.models.nccl_fit import (
    calibrate,
    measurements,
    predict as expected_by_model,
    residuals,
)

published = {r.nodes: r.size / r.time for r in measurements() if r.series == "p5_all_reduce" and r.size == 2**33}
said = {2: 340e9, 8: 270e9, 125: asked}
table(
    [
        [k, si(v, "byte/s"), f"{v / efa.bandwidth_per_node:.0%}", si(busbw("all_reduce", per_node * k, v), "byte/s"), f"{busbw('all_reduce', per_node * k, v) / efa.bandwidth_per_node:.0%}"]
        + [si(published[k], "byte/s") if k in published else "–"]
        for k, v in said.items()
    ],
    ["nodes", "algbw as told", "its share as told", "busbw that it needs", "share of the line", f"algbw measured, {si(2.0**33, 'byte')}"],
    caption="The answer's three rows beside the best public measurement of the same machine.",
)

# %% [markdown]
# On eight nodes a busbw of {{busbw("all_reduce", 8 * per_node, said[8]) / efa.bandwidth_per_node:.0%}} of the network's line cannot be; on two, neither can one of
# {{si(busbw("all_reduce", 2 * per_node, said[2]), "byte/s")}} through NVLinks of {{si(nvlink.bandwidth, "byte/s")}} while GPUs do the adding. Two rows
# belong to other machines or to fewer GPUs. The third, the one that was measured, is sound.

# %%
ask("nccl.possible_algbw")

# %% [markdown]
# ## How long it must take
#
# No algorithm in which ranks add is faster than the count of bytes allows, nor than its chain of messages: what one rank knows can reach
# at most twice as many ranks with every step.
#
# $$t \ge \frac{2\,(n-1)}{n}\,\frac{S}{W} \qquad\qquad t \ge \lceil \log_2 n \rceil\,\alpha$$
#
# $W$ is what a rank sends in one direction, $\alpha$ the cost of one step: everything that does not depend on size, software included.
#
# ### The ring
#
# $$t_\text{ring} = 2\,(n - 1)\left(\alpha + \frac{S}{n\,W}\right)$$
#
# It meets the first bound exactly and is as far from the second as can be. Half of its best rate is reached where both terms are equal,
# at $S = n\,\alpha\,W$: the longer the ring, the larger the message that it needs.

# %%
ask("nccl.half_size")

# %% [markdown]
# ### The others
#
# A *tree* reduces upwards and hands out downwards in $2 \log_2 n$ steps, but sends the whole buffer in each. Cut the buffer in two and use *two
# trees*, the inner ranks of one being the leaves of the other, pipelined: a logarithm of steps, and almost the bytes of a ring. *Recursive doubling* lets
# partners at distance 1, 2, 4 … swap everything: the fewest steps of all. *Halving and doubling* swaps halves, then quarters, and
# meets both bounds when $n$ is a power of two, if every pair of ranks has a link of its own.

# %%
ranks, wire, alpha = 512, efa.bandwidth, number("infiniband_ndr.nccl_step_ll")
sizes = np.geomspace(1e3, 1e11, 120)
algorithms = {
    "ring": (ring_time, "blue"),
    "two trees": (double_tree_time, "green"),
    "doubling": (recursive_doubling_time, "amber"),
    "halving, doubling": (halving_doubling_time, "purple"),
    "one tree": (tree_time, "grey"),
}
bound = np.maximum(bandwidth_bound("all_reduce", sizes, ranks, wire), latency_bound(ranks, alpha))

# %% tags=["figure"]
figure(
    Chart(
        Axis("message", "byte", "log"),
        Axis("time", "s", "log"),
        [Area(sizes, np.full_like(sizes, 1e-6), bound, "below the bounds")]
        + [Line(sizes, law(sizes, ranks, wire, alpha), name, color) for name, (law, color) in algorithms.items()],
    ),
    caption=f"{ranks} ranks that send {si(wire, 'byte/s')} each, with {si(alpha, 's')} a step. Flat means steps, sloped means bytes.",
    alt="Times over message size on logarithmic axes. Doubling is lowest for small messages and worst for large ones; the ring is worst for small and at the bound for large ones; two trees are good at both.",
)

# %%
shown = (1e3, 1e6, 1e9, 16e9)
table(
    [[name, f"{law(0.0, ranks, 1.0, 1.0):.0f}", f"{law(1.0, ranks, 1.0):.3g}"] + [si(law(s, ranks, wire, alpha), "s") for s in shown] for name, (law, _) in algorithms.items()]
    + [["lower bound", f"{latency_bound(ranks, 1.0):.0f}", f"{bandwidth_bound('all_reduce', 1.0, ranks, 1.0):.3g}"] + [si(max(bandwidth_bound("all_reduce", s, ranks, wire), latency_bound(ranks, alpha)), "s") for s in shown]],
    ["algorithm", "steps", "buffers sent", *(si(s, "byte") for s in shown)],
    caption="The same, in numbers. No algorithm wins everywhere, so a library has several.",
)

# %%
ask("nccl.best_algorithm")

# %% [markdown]
# ### Two levels
#
# Inside a node a GPU sends {{si(nvlink.bandwidth, "byte/s")}}, outside {{si(efa.bandwidth, "byte/s")}}. So reduce-scatter inside, all-reduce each share with
# the peers in other nodes, through all adapters at once, and gather inside. For {{si(message, "byte")}}:

# %%
grid = (2, 4, 16, 32, 125)
levels = {k: hierarchical_time(message, per_node, k, nvlink.bandwidth, efa.bandwidth) for k in grid}
table(
    [[k, si(t.inside, "s"), si(t.across, "s"), si(t.lower, "s"), si(t.upper, "s"), si(busbw("all_reduce", per_node * k, message / t.lower), "byte/s")] for k, t in levels.items()],
    ["nodes", "inside", "across", "levels overlapped", "one after the other", "busbw at best"],
    caption="Two levels without latency. From two nodes to any number, the time across no more than doubles. A busbw above NVLink means no more than that each GPU has two links and uses both.",
)

# %%
ask("nccl.two_levels")

# %% [markdown]
# ### Switches that add
#
# The counting began with "only ranks do arithmetic". NVLink switches from the H100 on (NVLS), and some InfiniBand switches (SHARP), add up what passes through them. Then each
# rank sends its buffer once and receives the sum once, whatever $n$. nccl-tests does not know and multiplies by the usual factor.

# %% tags=["figure"]
pick = {name: sorted((r.n, r.size / r.time) for r in measurements() if r.series in series and r.size == 2**33) for name, series in
        {"switch adds": ("h200_nvls",), "GPUs add": ("h200_ring", "h200_ring_eight")}.items()}
looks = {"switch adds": ("orange", "circle"), "GPUs add": ("blue", "square")}


def points(column, of):
    return [Line([k for k, _ in of[name]], [column(k, v) for k, v in of[name]], name, color) for name, (color, _) in looks.items()] + [
        Points([k for k, _ in of[name]], [column(k, v) for k, v in of[name]], color=color, marker=marker) for name, (color, marker) in looks.items()
    ]


gpus = Axis("GPUs of a node", "", domain=(3.8, 8.2), ticks=(4, 5, 6, 7, 8))
figure(
    [
        Chart(gpus, Axis("algbw", "byte/s", domain=(180e9, 300e9)), points(lambda k, v: v, pick), height=200),
        Chart(gpus, Axis("busbw", "byte/s", domain=(330e9, 500e9)), [*points(lambda k, v: busbw("all_reduce", k, v), pick), Rule(y=nvlink.bandwidth, label="NVLink, one direction")], height=230),
    ],
    caption="H200, the same large all-reduce. With NVLS the algbw stays where it is, and the busbw climbs past the link. Only the factor has changed.",
    alt="Above, algbw: nearly flat with the switch, falling without. Below, busbw: rising past the line rate with the switch, flat below it without.",
)

# %% [markdown]
# A busbw above the link is no error and no miracle: it is a unit used outside its range. The same happens on two nodes, where a tree sends each
# byte across the network only once in each direction. To read a rate of the wire, ask for `NCCL_ALGO=Ring`.

# %%
ask("nccl.switch_busbw")

# %% [markdown]
# ### All-to-all
#
# Every byte is meant for one receiver, so nothing can be combined and no algorithm helps. With $k$ nodes the share $1/k$ of each buffer stays inside, and the rest leaves through the sender's
# own adapter: the line is a GPU's {{si(efa.bandwidth, "byte/s")}}, not the node's. That is why an all-to-all between nodes looks so slow beside an all-reduce on the same
# machine, and why expert parallelism is kept inside a node while it can be.

# %%
ask("nccl.alltoall_across")

# %% [markdown]
# ## What NCCL itself believes
#
# Before each call NCCL estimates a time for each algorithm and each *protocol* and takes the smallest. A protocol is how data is handed over: **LL** sends a flag with every
# few bytes, so nobody waits but half of the bandwidth is flags; **LL128** does so with longer lines, over NVLink; **Simple** sends large blocks and
# synchronises on each. The estimates are tables of base and step latencies and caps on bandwidth, and they are public.

# %%
from lightspeed.models.nccl_tuner import (
    PLATEAU,
    PROTOCOLS,
    nccl_choices,
    nccl_time,
    ring_latency,
    tree_latency,
)

rows = [[p, si(ring_latency(8, 1, protocol=p), "s"), si(tree_latency(8, 1, p), "s"), si(ring_latency(n, nodes, protocol=p), "s"), si(tree_latency(n, nodes, p), "s")] for p in PROTOCOLS]
table(rows, ["protocol", "ring, one node", "tree, one node", f"ring, {nodes} nodes", f"tree, {nodes} nodes"], caption="Latency that NCCL charges before the first byte, from its source.")

# %%
rows = []
for size in (2.0**13, 2.0**20, 2.0**24, 2.0**28, 2.0**34):
    one, several = nccl_choices(size, 8), nccl_choices(size, 128, 16)
    rows.append([si(size, "byte"), f"{one[0].algorithm} {one[0].protocol}", si(one[0].time, "s"), f"{several[0].algorithm} {several[0].protocol}", si(several[0].time, "s")])
table(rows, ["message", f"one node of {per_node} H100", "its estimate", "sixteen nodes", "its estimate"], caption="What the tables choose. The choice is usually right; the times need not be.")

# %% [markdown]
# Now the steps. A large ring of {{n:,}} GPUs takes {{ring_steps("all_reduce", n):,}} steps, not {{ring_steps("all_reduce", nodes)}}; those are the ones that leave a node. By NCCL's table all of
# them together take {{si(ring_latency(n, nodes, plateau=PLATEAU), "s")}}, with the factor of {{PLATEAU:.1f}} that it puts on large messages between nodes, beside {{si(bandwidth_bound("all_reduce", message, n, 370e9), "s")}} for the bytes at the best rate that was
# seen on such a network.

# %%
reveal("nccl.latency_share")

# %% [markdown]
# So the number of steps does not halve the rate at this size. For a small message it does, and worse.
#
# ## Try it
#
# It opens with the question of this chapter, at line rate, and takes whichever algorithm is fastest: two trees here, with far fewer steps than the ring
# above. Halve the nodes: what changes? Make the message a thousand times smaller and do it again. Then
# one node, and let the switch add.

# %%
from lightspeed_course.explorers.nccl import explore

explore()

# %% [markdown]
# ## Worked problems
#
# ### Problem 1: a log without its head

# %%
ask("nccl.ranks_from_ratio")

# %% [markdown]
# ### Problem 2: gathering the weights of a layer

# %%
ask("nccl.gather_time")

# %% [markdown]
# ### Problem 3: the sales page

# %%
ask("nccl.rate_per_gpu")

# %%
ask("nccl.one_direction")

# %% [markdown]
# ## Check: models against measurements
#
# Two models are on trial. One is NCCL's own, with nothing fitted. The other is ours: NCCL's latency for short messages times a factor, joined to the bytes on the
# busiest link over a bandwidth. The join is that of a pipeline, in which latency and transfer hide each other in part:
#
# $$t = \left(\ell^{\,e} + \left(\frac{\text{bytes} }{W}\right)^{e}\right)^{1/e}$$
#
# With $e = 1$ that is α–β, a sum. Cut a message into the best number of chunks and $e$ is one half. We fit $e$ once for all, and a factor and a $W$ for each
# kind of link and path. The parameters see some of the rows; the others are for testing.

# %%
rows_all = residuals()
fits = calibrate()
table(
    [[key.split(".")[0], path.replace("_", " "), f"{fit.latency:.2f}", si(fit.bandwidth, "byte/s"), len(fit.residuals)] for (key, path), fit in fits.items()],
    ["link that bounds it", "path", "factor on NCCL's latency", "W", "rows fitted"],
    caption=f"{len(fits)} fits with one exponent, {next(iter(fits.values())).exponent:g}, on {sum(r.fitted for r, _ in rows_all)} rows; {sum(not r.fitted for r, _ in rows_all)} rows are kept for testing.",
)

# %%
fitted_nodes = sorted({r.nodes for r, _ in rows_all if r.fitted and r.series == "p5_all_reduce"})
tested_nodes = sorted({r.nodes for r, _ in rows_all if not r.fitted and r.series == "p5_all_reduce"})
smaller, big = 2.0**27, 2.0**33
curves = {2**25: "purple", 2**27: "orange", 2**30: "green", 2**33: "blue"}
node_axis = np.array([3, 4, 6, 8, 12, 16, 24, 32, 64, 125])
marks = []
for size, color in curves.items():
    model = [expected_by_model("all_reduce", size, 8 * int(k), int(k), "p5").busbw for k in node_axis]
    marks.append(Line(node_axis, model, si(float(size), "byte"), color))
    for flag, marker in ((True, "circle"), (False, "cross")):
        seen = [(r.nodes, r.size / r.time * busbw_factor("all_reduce", r.n)) for r, _ in rows_all if r.series == "p5_all_reduce" and r.size == size and r.fitted == flag and r.nodes > 2]
        marks.append(Points([k for k, _ in seen], [v for _, v in seen], color=color, marker=marker))

# %% tags=["figure"]
figure(
    Chart(
        Axis(f"nodes of {per_node} H100", "", "log", ticks=(4, 8, 16, 32, 64, 125)),
        Axis("busbw", "byte/s", domain=(0, 420e9)),
        [Rule(y=efa.bandwidth_per_node, label="line rate"), *marks, Points([nodes], [busbw("all_reduce", n, asked)], labels=["the question"], color="black", marker="star", size=8)],
    ),
    caption=f"Busbw over nodes. Lines: our model. Circles: rows it was fitted to ({', '.join(map(str, fitted_nodes))} nodes); crosses: rows that it had not seen. Size decides how much the number of nodes matters.",
    alt="Four falling curves. The largest message keeps some nine tenths of its first value up to thirty-two nodes; the smallest falls to a third of its first value. A star at a hundred and twenty-five nodes lies slightly above the largest curve.",
)

# %% [markdown]
# This is the picture behind the question. From four to thirty-two nodes, {{si(big, "byte")}} keep
# {{published[32] * busbw_factor("all_reduce", 256) / (published[4] * busbw_factor("all_reduce", 32)):.0%}} of their busbw. A message of {{si(smaller, "byte")}} keeps half. "Slow because of many nodes" needs
# a size beside it, always.
#
# The same over size, on four machines. Small messages give small rates everywhere; that is what a latency looks like in a column of bandwidths.

# %%
pick = {"a100_sweep": ("A100", "blue"), "h200_sweep": ("H200", "orange"), "p6_four_nodes": ("B200", "green"), "p5_alltoall": ("all-to-all", "purple")}
marks = []
for series, (name, color) in pick.items():
    mine = sorted((r for r, _ in rows_all if r.series == series and r.nodes in (1, 4, 32) and (r.nodes == 32 or series != "p5_alltoall")), key=lambda r: r.size)
    model = [expected_by_model(r.collective, r.size, r.n, r.nodes, r.fabric, r.path if r.nodes == 1 else "").busbw for r in mine]
    marks.append(Line([r.size for r in mine], model, name, color))
    marks.append(Points([r.size for r in mine], [r.size / r.time * busbw_factor(r.collective, r.n) for r in mine], color=color, marker="circle" if mine[0].fitted else "cross"))

# %%
figure(
    Chart(Axis("message", "byte", "log", domain=(2e4, 1e11)), Axis("busbw", "byte/s", "log"), marks),
    caption="Busbw over message size: one node of A100, one of H200 whose switch adds, four of B200, and an all-to-all over many nodes of H100. Lines are the model; circles were fitted, crosses were not.",
    alt="Four rising curves on logarithmic axes that bend to plateaus; the all-to-all, between many nodes, ends lowest.",
)

# %% [markdown]
# ### Every row, by regime

# %%
large_from, small_below = 64e6, 1e6


def regime(row):
    where = "one node" if row.nodes == 1 else "two nodes" if row.nodes == 2 else "more nodes"
    return f"{'large' if row.size >= large_from else 'middle' if row.size >= small_below else 'small'}, {where}"


names = [f"{s}, {w}" for s in ("large", "middle", "small") for w in ("one node", "two nodes", "more nodes")]
errors = {(name, flag): [e for r, e in rows_all if regime(r) == name and r.fitted == flag] for name in names for flag in (True, False)}
kept = [name for name in names if errors[name, True] or errors[name, False]]


def spread(values):
    return [len(values), f"{np.median(np.abs(values)):.0%}", f"{max(values, key=abs):+.0%}"] if values else [0, "–", "–"]


table(
    [[name, *spread(errors[name, True]), *spread(errors[name, False])] for name in kept],
    ["message, where", "fitted rows", "median error", "worst", "test rows", "median error", "worst"],
    caption=f"Model over measured, minus one. Large is from {si(large_from, 'byte')} on, small below {si(small_below, 'byte')}.",
)

# %% tags=["figure"]
place = {name: i for i, name in enumerate(kept)}
rng = np.random.default_rng(1)
cloud = {flag: [(e, place[regime(r)] + rng.uniform(-0.3, 0.3)) for r, e in rows_all if r.fitted == flag] for flag in (True, False)}
figure(
    Chart(
        Axis("model over measured time, minus one", "%", domain=(-1, 1.3)),
        Axis(domain=(len(kept) - 0.5, -0.5), ticks=[(i, name) for name, i in place.items()]),
        [Rule(x=0, label="model is right")]
        + [Points([x for x, _ in cloud[flag]], [y for _, y in cloud[flag]], label=label, color=color, marker=marker, size=3) for flag, label, color, marker in ((True, "fitted", "grey", "circle"), (False, "tested", "orange", "cross"))],
        height=330,
    ),
    caption="Residuals of all measured rows. To the left the model is too fast, to the right too slow. The vertical scatter inside a row of the chart means nothing.",
    alt="Points in six bands. Large messages lie close to zero, the middle and small ones scatter widely.",
)

# %%
large_test = [abs(e) for r, e in rows_all if not r.fitted and r.size >= large_from]

# %% [markdown]
# For {{len(large_test)}} test rows from {{si(large_from, "byte")}} on, the median error is {{np.median(large_test):.1%}} and nine of ten lie within
# {{np.quantile(large_test, 0.9):.0%}}. That is good enough to call a number odd. Below, it is not.
#
# ### Where each model fails

# %%
p5 = [r for r, _ in rows_all if r.series == "p5_all_reduce"]
seen_sizes = sorted({r.size for r in p5})


def error_of(time_of):
    return {(r.size, r.nodes): time_of(r) / r.time - 1 for r in p5}


ours = error_of(lambda r: expected_by_model("all_reduce", r.size, r.n, r.nodes, "p5").time)
theirs = error_of(lambda r: nccl_time(r.size, r.n, r.nodes))
table(
    [[si(float(s), "byte")] + [f"{ours[s, k]:+.0%} / {theirs[s, k]:+.0%}" for k in (2, 4, 8, 16, 32)] for s in seen_sizes],
    ["message", *(f"{k} nodes" for k in (2, 4, 8, 16, 32))],
    caption=f"Error in time on p5, ours / NCCL's own tables. Ours was fitted on {fitted_nodes[0]} and {fitted_nodes[1]} nodes.",
)

# %%
worst = sorted(rows_all, key=lambda pair: -abs(np.log1p(pair[1])))[:6]
table(
    [[r.series.replace("_", " "), r.nodes, r.n, si(float(r.size), "byte"), si(r.time, "s"), f"{e:+.0%}", "fitted" if r.fitted else "test"] for r, e in worst],
    ["rows", "nodes", "GPUs", "message", "measured", "error", ""],
    caption="The six worst rows of all.",
)

# %% [markdown]
# - **Our model, small messages.** It knows one latency. The measurements know two harnesses: some time a loop in C++, others launch each call from Python, and below a megabyte
#   the launch is most of the time. Middle-sized messages across many nodes are where NCCL changes algorithm, and one curve goes through all of them.
# - **Our model, beyond {{max(tested_nodes)}} nodes.** Nothing there is public. For {{nodes}} nodes it extrapolates, and expects the question's number to be lower than it was.
# - **NCCL's tables** are for choosing. At {{si(float(seen_sizes[-1]), "byte")}} they are at most {{-min(theirs[seen_sizes[-1], k] for k in (2, 4, 8, 16, 32)):.0%}} too fast; on many nodes and below a gigabyte they are too fast by up to a factor of
#   {{1 / (1 + min(theirs.values())):.1f}}, because a tree looks better to them than it is.
# - **α–β, the textbook's.** Fitted to both ends of a curve it misses the middle by a third; that is what the exponent repairs.
# - **All of them** know an idle network. Congestion, a slow node, a throttled GPU and your neighbours' traffic are not in any formula.
#
# ## The answer
#
# Now there are two estimates beside the number, and neither was made for it.

# %%
ring_370 = ring_latency(n, nodes, plateau=PLATEAU) + bandwidth_bound("all_reduce", message, n, 370e9)
ours_125 = expected_by_model("all_reduce", message, n, nodes, "p5")
table(
    [
        ["measured", si(message / asked, "s"), si(asked, "byte/s"), si(busbw("all_reduce", n, asked), "byte/s"), "–"],
        ["NCCL's ring, its step costs, best rate seen", si(ring_370, "s"), si(message / ring_370, "byte/s"), si(busbw("all_reduce", n, message / ring_370), "byte/s"), f"{ring_370 * asked / message - 1:+.1%}"],
        ["fitted model, extrapolated", si(ours_125.time, "s"), si(ours_125.algbw, "byte/s"), si(ours_125.busbw, "byte/s"), f"{ours_125.time * asked / message - 1:+.1%}"],
    ],
    ["", "time", "algbw", "busbw", "error in time"],
)
best_share = max(r.size / r.time * busbw_factor(r.collective, r.n) for r in p5 if r.nodes > 2) / efa.bandwidth_per_node
within = np.exp(np.quantile([abs(np.log1p(e)) for r, e in rows_all if not r.fitted and r.size >= large_from and r.nodes > 1], 0.9))

# %% [markdown]
# The number is normal: {{busbw("all_reduce", n, asked) / efa.bandwidth_per_node:.0%}} of the line, where public runs of a quarter of the nodes reach
# {{published[32] * busbw_factor("all_reduce", 256) / efa.bandwidth_per_node:.0%}} and no public ring on this network more than
# {{best_share:.0%}}; what the rest of the line goes into, the runs do not say. The reason that was given is not. Nor is there a "normal range of this many nodes"
# without a message size: at {{si(message, "byte")}} it runs from {{si(ours_125.algbw / within, "byte/s")}} to {{si(ours_125.algbw * within, "byte/s")}} of algbw, if nine runs of ten are
# normal.
#
# ### Have a log judged
#
# `lightspeed nccl report FILE` does all this to what nccl-tests printed: it reads the file, checks that its columns agree with each other, compares each size with
# the line, with the model and with published rows nearby, and says what to look at first. The steps that it speaks of are NCCL's times the factor fitted
# above. The question again, and one that is not normal:

# %%
from lightspeed_course.nccl_report.verdict import judge

verdict = judge("all_reduce", message, message / asked, n, nodes, "p5")
table([[sentence] for sentence in (*verdict.words, *verdict.checks)], [f"verdict: {verdict.level}"])

# %%
broken = judge("all_reduce", 8e9, 8e9 / 4.5e9, 32, 4, "p5", hints=("sockets",))
table([[sentence] for sentence in (*broken.words, *broken.checks)], [f"verdict: {broken.level}"])

# %% [markdown]
# ## Which test to run
#
# The answer that circulates says that nine tenths of the traffic are all-reduce. That is plain data parallelism, and even there the reduction does not wait
# for the backward pass to end: gradients are reduced in buckets while earlier layers are still being computed. Other strategies send other things. For one layer of a {{find("llama2_7b").name}}:

# %%
model, tokens, group = find("llama2_7b"), 8192, 8
layer = model.parameters / model.layers * 2
states = tokens * model.width * 2
ar, ag, rs = (busbw_factor(name, group) for name in ("all_reduce", "all_gather", "reduce_scatter"))
experts, bucket = 2, 25 * 2.0**20
strategies = [
    ["DDP", "gradients, once a step", "all_reduce", ar * layer, 1.0],
    ["FSDP", "weights twice, gradients once", "all_gather, reduce_scatter", (2 * ag + rs) * layer, 0.0],
    ["tensor parallel", "activations, two forward and two backward", "all_reduce", 4 * ar * states, 1.0],
    ["tensor and sequence parallel", "the same, each cut into two", "all_gather, reduce_scatter", 4 * (ag + rs) * states, 0.0],
    [f"experts, {experts} a token", "tokens there and back, forward and backward", "alltoall", 4 * experts * busbw_factor("alltoall", group) * states, 0.0],
    ["pipeline", "activations at each border, forward and backward", "sendrecv", 2 * states, 0.0],
]
table(
    [[name, what, test, si(sent, "byte"), f"{share:.0%}"] for name, what, test, sent, share in strategies],
    ["strategy", "what it sends", "collective, and test", "each GPU sends, a layer and step", "all-reduce"],
    caption=f"bf16, {si(tokens, 'token')} on each GPU, groups of {group}. Run the test of your row, at your size.",
)

# %%
ask("nccl.fsdp_over_ddp")

# %%
ask("nccl.which_test")

# %% [markdown]
# Two things follow. `all_reduce_perf` with NVLS flatters a machine that will run FSDP, because gathers and scatters gain nothing from adders. And a number at
# {{si(message, "byte")}} says little about a job that sends buckets of {{si(bucket, "byte")}}.
#
# ## Measure it here
#
# Two experiments with real messages. Neither needs a GPU, and both take seconds.
#
# ### Processes of one machine
#
# Processes that MPI starts send to each other through memory. There is no NVLink and no network, but steps, bytes, α and $W$ mean what they meant. First comes
# a *shift*: every process sends to its right neighbour and receives from its left one, all at once, as in one step of a ring. A line through the times of the shift
# gives α and $W$ of your machine. From these two the ring's all-reduce is computed, and set beside the measured one; nothing is fitted to it.
#
# What do you expect? Will the measured all-reduce of a large message be faster than the computed ring, or slower? Remember who does the adding. And will busbw keep
# rising with the message, as on the curves above?

# %%
from lightspeed_course import measure_here, shipped
from lightspeed_course.measure.pages.network_figures import (
    collectives_figure,
    collectives_findings,
    collectives_table,
    network_figure,
    network_findings,
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
# - **Somebody must add.** A GPU adds at the rate of its memory, which is far above its links. Here a core adds, and to do so it reads two arrays and writes one through
#   the very memory that serves as the link. The line of the shift knows nothing of it.
# - **The link is a memory.** A message that fits into a cache never leaves it. So the curves have a hump instead of a plateau, and no single $W$ is right for all
#   sizes. MPI also changes its *protocol* with the size, from copying at once to asking first, as NCCL goes from LL to Simple.
# - **α is software.** The findings say what a call costs that sends nothing. From Python that is a good part of the smallest time; on GPUs the launch of
#   a kernel takes its place.
# - **How a process waits.** Started for a single thread, the MPI of this course took a multiple of these times for large messages on one of our machines, from C and from
#   Python alike; mpi4py asks for several threads unless it is told not to. Two benchmarks that start MPI in different ways have measured different things.
# - **Memory that comes anew.** A message in the middle of the table may take as long as a far larger one: MPI's scratch memory goes back to the system after each call, and returns page by
#   page. `MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_` in the environment make the C library keep it.
# - **Processes share.** More processes than cores take turns, and a message then waits until its receiver is on. Such a time is one of the scheduler.
#
# A call is timed alone, after a barrier, and the mean over processes is taken, as the OSU benchmarks do; each result is checked. In a terminal you choose the
# number of processes. On a cluster the same command runs under the launcher that is there, and prints the table of nccl-tests, which `lightspeed nccl report` reads:
#
# ```
# lightspeed measure collectives -n 4
# mpirun --hostfile hosts lightspeed measure collectives
# srun --mpi=pmi2 lightspeed measure collectives
# torchrun --nproc-per-node gpu -m lightspeed_cli measure collectives
# ```
#
# ### Nodes, and links of a known rate
#
# The other experiment needs Linux and the right to make network namespaces (root has it). It builds a network inside your machine: every node is a process with a network of its own and one link to
# a switch, and the kernel lets through only so many bytes a second in each direction. The ring and the tree are short programs on plain sockets. So this time $W$ is known
# beforehand, and the question is what the number of nodes does.
#
# The table has what the formulas of this chapter say. Before you measure, decide: how many times longer will the ring take on six nodes than on two, for a tiny message and for a large one? And the tree?

# %%
from lightspeed_course.measure.instruments.network import NODES, RATE, SIZES

table(
    [[k, f"{ring_time(0.0, k, 1.0, 1.0):.0f}", f"{ring_time(1.0, k, 1.0):.3g}", f"{tree_time(0.0, k, 1.0, 1.0):.0f}", f"{tree_time(1.0, k, 1.0):.0f}"] for k in NODES],
    ["nodes", "steps, ring", "buffers sent, ring", "steps, tree", "buffers sent, tree"],
    caption=f"Times α, and times S/W. The links: {si(RATE, 'byte/s')} a direction. The messages: {si(float(SIZES[0]), 'byte')} and {si(float(SIZES[1]), 'byte')}.",
)

# %% tags=["measured"]
network = measure_here("network")

# %% tags=["measured"]
network_figure(network)

# %% tags=["measured"]
network_findings(network)

# %% [markdown]
# ### Explain the difference, again
#
# - **The large message** shows the factor of busbw at work: the ring rises towards twice $S/W$ and stays below it, however many nodes. The tree sends whole buffers once more with every doubling.
# - **The small message** shows the steps: the ring's grow with every node, the tree's with every doubling. This is why a library has both.
# - **Below the rate.** The kernel counts headers, too, somewhat under a twentieth of a full packet. So the fitted $W$ can't reach the rate of the link, as busbw never reaches a line rate.
# - **Above the line.** All nodes share your cores. The more of them there are, the longer each waits to be woken, so here α itself grows with the nodes. A real node has cores of
#   its own, but it has its own reasons to be late, and the slowest one sets the step.
# - **Faster than the rate?** A shaper lets the first few packets pass at once. A message that fits into this burst has not met the link at all; clouds shape in the same way, and short tests there are as wrong.
#
# Distance is missing: no light travels here, and α is all software.
#
# ### The same on a recorded machine
#
# Recorded for this course, with every sample in the repository.

# %%
recorded = shipped()["amd_epyc_2core"]
collectives_figure(recorded)

# %%
collectives_table(recorded)

# %%
collectives_findings(recorded)

# %%
network_figure(recorded)

# %%
network_findings(recorded)

# %% [markdown]
# And from a machine of another maker, with neighbours who took a part of its time:

# %%
other = shipped()["intel_xeon_2core"]
collectives_findings(other)

# %%
network_findings(other)

# %% [markdown]
# Between its processes α is longer and $W$ smaller, since both are made of processor and memory. The emulated links carry what they carried before: their
# rate is set, not found. Short messages wait for processors that were away, so they scatter, and nothing is said about their α.
#
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %%
from lightspeed_course import gallery

gallery("07")

# %% [markdown]
# ## Exercises
#
# `exercises/07_nccl_bandwidth.ipynb` has the problems of this page and more: the factor of every collective as a function, the time of a ring, and steps to be
# counted. `check` tells you what went wrong, not only that it did.
#
# ## What the model leaves out
#
# Congestion and routing; rails, and what happens when a GPU's traffic takes another GPU's adapter; compute that runs at the same time and takes bandwidth from memory; start-up, which
# can take minutes on thousands of GPUs; and the slowest rank, whom everybody waits for. Chapter 6 has the last.
#
# ## Further reading
#
# - NVIDIA, *nccl-tests*, `doc/PERFORMANCE.md`: where the factors are defined.
# - Thakur, Rabenseifner and Gropp, *Optimization of Collective Communication Operations in MPICH* (2005): the classic on which algorithm when.
# - Sanders, Speck and Träff, *Two-tree algorithms for full bandwidth broadcast, reduction and scan* (2009).
# - Bekman, *Machine Learning Engineering*, the network chapter: many of the measurements on this page.
# - Austin et al., *How to Scale Your Model* (2025), on the collectives of TPUs.
