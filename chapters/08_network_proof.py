# %% [markdown]
# # 8. The network: the proof
#
# This page holds what [the lesson](08_network.ipynb) claims against simulators, published numbers and
# a bad cable of your own, and derives what the lesson only uses.
#
# ## What is claimed, and how well it holds

# %% tags=["setup"]
import matplotlib.pyplot as plt
import numpy as np
from random import Random
from ipywidgets import Output, SelectionSlider

from lightspeed.catalog import find, link
from lightspeed.collectives import hierarchical_time
from lightspeed.fabrics import *
from lightspeed.networks import *
from lightspeed_course import Axis, Chart, Line, Rule
from lightspeed_course import figure, shipped, si, table
from lightspeed_models.simulators.network_simulation import simulate_transport

# %%
ndr, roce, paper = link("infiniband_ndr"), find("roce"), find("dcqcn")
wire, packet, round_trip = ndr.bandwidth, roce.mtu, 16e-6  # assumed
window, losses = window_packets(wire, round_trip, packet), [1e-5, 1e-4, 1e-3, 1e-2]
runs = {
    loss: simulate_transport("go_back_n", 60_000, loss, round(window), Random(8))
    for loss in (1e-4, 1e-3, 1e-2)
}
switch = [paper.buffer, paper.ports, paper.priorities, paper.headroom]
fast, slow_line = (dcqcn_flows(line, paper.packet) for line in (paper.line, paper.line_10g))
hpcc, hpn, tail = find("hpcc"), find("hpn"), find("tail")
share = wire_share(hpcc.payload, hpcc.overhead)
asked_again = (1 / roce.improved_share - 1) * (1 - roce.loss_collapse) / roce.loss_collapse
ours = [
    ("DCQCN: pause from, bytes", pfc_threshold(*switch), paper.pfc_threshold),
    ("DCQCN: mark before, bytes", ecn_threshold(*switch, paper.beta), paper.ecn_threshold),
    ("DCQCN+: flows, fast line", fast, paper.fails_from),
    ("DCQCN+: flows, slow line", slow_line, paper.fails_from_10g),
    ("HPCC: load on the wire", hpcc.load / share, hpcc.load_on_wire),
    ("The tail at scale: requests hit", any_hit(tail.slow, tail.servers), tail.hit),
    ("HPN: GPUs of a segment", hpn.switch / hpn.port / 2 * hpn.rails, hpn.segment_gpus),
    ("HPN: segments of a pod", hpn.switch / (2 * hpn.port) / hpn.rails, hpn.segments),
]
errors = {what: abs(float(a) / float(b) - 1) for what, a, b in ours}
{what: round(error, 3) for what, error in errors.items()}

# %% tags=["figure"]
by_law = {
    "goodput of go back n, simulated": [
        abs(run.goodput / go_back_n(p, window) - 1) for p, run in runs.items()
    ],
    "thresholds of a switch": [e for what, e in errors.items() if what.startswith("DCQCN:")],
    "flows until DCQCN fails": [e for what, e in errors.items() if what.startswith("DCQCN+")],
    "any of many is late": [errors["The tail at scale: requests hit"]],
    "headers on the wire": [errors["HPCC: load on the wire"]],
    "size of a fabric": [e for what, e in errors.items() if what.startswith("HPN")],
}
fails = ["few packets", "–", "the fast line", "–", "–", "ports kept free"]
table(
    [
        [law, len(found), f"{np.median(found):.1%}", f"{max(found):.1%}", where]
        for (law, found), where in zip(by_law.items(), fails)
    ],
    ["law", "rows", "median error", "worst", "where it fails"],
    caption="Each row is a run of a simulator that knows no formula, or a number that a paper prints.",
)

# %% [markdown]
# The sections: [does the law hold](#Does-the-law-hold?), [pauses and marks](#Why-not-pause-and-be-done?),
# [a job on a fabric](#A-job-on-a-fabric), [published numbers](#Check-it-against-what-was-published),
# [a bad cable](#Measured-over-a-bad-cable), [wrong claims](#Gallery-of-wrong-claims) and the
# [checklist](#Before-a-large-run:-the-network's-part).
#
# ## What a lost packet costs
#
# The lesson's table, as curves: goodput over loss, for three windows.

# %% tags=["figure"]
p = np.geomspace(1e-6, 0.1, 80)
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(p, selective_repeat(p), label="selective repeat")
for w in (10, 100, 1000):
    ax.plot(p, go_back_n(p, w), label=f"go back n, {w} on the way")
ax.set(xscale="log", xlabel="share of packets lost", ylabel="goodput over line", ylim=(0, 1.05))
ax.legend()
plt.close(fig)
figure(
    fig,
    caption="Each curve of go back n falls to a half near a loss of one in a window.",
    alt="Goodput over loss on a logarithmic axis: a nearly flat line for selective repeat and "
    "three falling curves for go back n, further left the longer the window.",
)

# %% tags=["holds"]
assert all(abs(go_back_n(1 / w, w) - 0.5) < 0.05 for w in (10, 100, 1000)), "falls to a half"

# %% [markdown]
# Drag the loss:

# %%
options = [(si(10.0**k, "%"), 10.0**k) for k in range(-6, 0)]
slider, shown = SelectionSlider(options=options, value=10.0**-3, description="loss"), Output()


def on_the_line(_=None):
    shown.outputs = ()
    shown.append_stdout(f"goodput: {go_back_n(slider.value, window):.3f} of the line")


slider.observe(on_the_line, "value")
on_the_line()
display(slider, shown)

# %% [markdown]
# ### Lost again
#
# The lesson says that a packet lost twice waits for a timer. In packet times that is

# %%
timer = find("nccl").timeout * wire / packet  # in packet times
{p: round(go_back_n(p, window, timer), 3) for p in losses}

# %% [markdown]
# The first loss of a packet costs a window, each further one the timer $T$: goodput is
# $1/(1 + p\,W + \frac{p^2}{1-p}\,T)$. At a loss of {{losses[-1]:.0%}} one packet in
# {{1 / losses[-1] ** 2:,.0f}} is lost twice. It costs {{timer:,.0f}} packet times, so each packet
# pays {{timer * losses[-1] ** 2:.0f}} of them.

# %% [markdown]
# ### Does the law hold?
#
# The lesson says that a loss costs a window. A simulator sends one packet after another over a line
# with a seeded loss. It knows the rules of the adapters and nothing of the formulas.

# %%
table(
    [[si(loss, "%"), run.goodput, go_back_n(loss, window)] for loss, run in runs.items()],
    ["loss", "simulated", "the law"],
)

# %% [markdown]
# It does: the two differ by
# {{max(abs(run.goodput / go_back_n(p, window) - 1) for p, run in runs.items()):.1%}} at most.

# %% tags=["holds"]
assert max(abs(run.goodput / go_back_n(p, window) - 1) for p, run in runs.items()) < 0.03, "at most"

# %% [markdown]
# ### The Tuesday, with the timer
#
# An adapter that asks only once would wait for its timer after a second loss of the same packet, and
# the step of that Tuesday would be far longer than with a window each time:

# %%
compute, traffic, lossy = 0.3, 0.1, 0.01  # assumed
now = compute + traffic / go_back_n(lossy, window)
now, compute + traffic / go_back_n(lossy, window, timer)

# %% [markdown]
# More than a hundred times as long, and nobody's code has changed.

# %% tags=["holds"]
assert compute + traffic / go_back_n(lossy, window, timer) > 100 * now, (
    "More than a hundred times"
)

# %% [markdown]
# ## Jitter
#
# The lesson looks at quantiles. Here they are beside the share of steps that are late:

# %%
ranks = [1, 8, 128, 1024, 8192]
table(
    [[n, f"{any_hit(0.001, n):.2%}", f"{quantile_of_one(0.5, n):.5f}"] for n in ranks],
    ["ranks", "steps with somebody late", "median of the step: quantile of one rank"],
)

# %% [markdown]
# If delays are exponential, the mean of the largest of $n$ is
# $1 + 1/2 + \dots + 1/n$ times the mean of one: {{slowest_of(0, 1, 8):.3g}} times for eight ranks,
# {{slowest_of(0, 1, 8192):.3g}} times for eight thousand.

# %% tags=["holds"]
assert all(
    abs(slowest_of(0, 1, n) - sum(1 / k for k in range(1, n + 1))) < 1e-3 for n in (8, 8192)
), "mean of the largest"

# %% [markdown]
# ## Incast
#
# A burst more than the buffer holds is a loss, so a buffer takes $N \le \text{buffer}/\text{burst} + 1$
# senders at once:

# %% tags=["holds"]
assert (
    all(incast_queue(n, 1e6, wire, wire) == (n - 1) * 1e6 for n in (1, 4, 64))
    and incast_queue(incast_senders(64e6, 1e6), 1e6, wire, wire) == 64e6
), "A burst more than the buffer holds is a loss, so a buffer takes"

# %%
burst, buffer = 1e6, 64e6  # assumed
{n: incast_queue(n, burst, wire, wire) for n in (4, 16, 64)}, incast_senders(buffer, burst)

# %% [markdown]
# Every setting at once, with the bursts, links and timers that the lesson's tank keeps fixed:

# %%
from lightspeed_course.explorers.network import explore

explore()

# %% [markdown]
# With little room beside the headroom, the queue runs empty after each pause, and it takes longer. The
# rule by which a sender that was told of a mark slows down is the adapter's matter. The best known one
# for RoCE is DCQCN, which Microsoft and Mellanox published in 2015. Meta switched it off on links of
# {{wire * 8 / 1e9:.0f}} Gbit/s and let receivers hold senders back instead.
#
# ### Why not pause and be done?
#
# A single pause frame stops a link for the time in its field, up to

# %%
pause_time(65535, wire)  # sixteen bits; a unit is the time of sixty-four bytes

# %% [markdown]
# and a broken adapter repeats it: a *pause storm*. How long until a sender three switches away stands still? Three
# queues have to fill up to their thresholds, here {{si(paper.pfc_threshold, "byte")}} each, and
# three pauses travel for a microsecond each:

# %%
pause_spread(3, paper.pfc_threshold, wire, 1e-6)

# %% [markdown]
# No operator is that fast. What empties such a queue is called a **PFC watchdog**. And pauses can wait for each other in a ring: a *deadlock*.
#
# Headroom is not free either. The pause travels to the sender, and the last byte travels back: room
# for twice delay × rate. At either end a packet may just have begun: two packets more. Each port
# and each class needs it. For a cable of a hundred metres, and for one between two sites:

# %% tags=["holds"]
assert pause_spread(3, paper.pfc_threshold, wire, 1e-6) < 1e-3, "No operator is that fast"
assert (
    abs(pfc_headroom(wire, 2e-6, packet) - pfc_headroom(wire, 1e-6, packet) - 2 * 1e-6 * wire) < 1
), "twice delay × rate"
assert pfc_headroom(wire, 0, packet) == 2 * packet, "may just have begun"

# %%
pfc_headroom(wire, 0.5e-6, packet), pfc_headroom(wire, 50e-6, packet)

# %% [markdown]
# This is why long links are hard to make lossless.

# %% tags=["holds"]
assert pfc_headroom(wire, 50e-6, packet) > 40 * pfc_headroom(wire, 0.5e-6, packet), (
    "hard to make lossless"
)

# %% [markdown]
# ### Mark early, pause late
#
# The two are set up so that marks come first. Each port and class has a queue, and an equal part of
# the buffer. Of that part the headroom stays free, and a queue that fills the rest pauses:
#
# $$\text{pause from} = \frac{\text{buffer} }{\text{ports} \cdot \text{classes} } - \text{headroom}
# \qquad\qquad \text{mark before} = \frac{\beta}{\beta + 1} \cdot \text{pause from}$$
#
# A switch that shares its free buffer lets a queue take $\beta$ times its part of it. With all
# queues at $t$, it pauses none while $t < \beta\,(\text{pause from} - t)$: solve for $t$. The paper
# of DCQCN prints both thresholds for {{paper.ports:.0f}} ports, {{si(paper.buffer, "byte")}},
# {{paper.priorities:.0f}} classes, a headroom of {{si(paper.headroom, "byte")}} and $\beta$ =
# {{paper.beta:.0f}}:

# %% tags=["holds"]
assert (
    abs((t := ecn_threshold(12e6, 32, 8, 22e3, 8)) - 8 * (pfc_threshold(12e6, 32, 8, 22e3) - t))
    < 1e-6
), "it pauses none while"
assert pfc_threshold(12e6, 32, 8, 0) == 12e6 / (32 * 8), "and an equal part of the buffer"

# %%
table(
    [
        ["pause from", pfc_threshold(*switch), paper.pfc_threshold],
        ["mark before", ecn_threshold(*switch, paper.beta), paper.ecn_threshold],
    ],
    ["threshold", "computed", "printed"],
)

# %% [markdown]
# ### How DCQCN settles
#
# *For a second reading.* A sender that is told of a mark cuts its rate by up to a half. Without
# news it climbs back: each of five raises goes half of the way to where it was, each further one
# adds {{si(paper.increase, "byte/s")}}. A switch marks nothing while the queue is below Kmin
# ({{si(paper.kmin, "byte")}}), everything above Kmax ({{si(paper.kmax, "byte")}}), and in between a
# share that rises to Pmax ({{si(paper.pmax, "%")}}). Treat rates and queue as a fluid. They come to
# rest where the marks that the queue makes are just those that keep $N$ flows at a fair share. To
# first order the share that is marked is
#
# $$m \approx
# \sqrt[3]{\frac{R_{AI}\,N^2}{\tau'\,C^2}\left(\frac{1}{B} + \frac{N}{T\,C}\right)^2}$$
#
# with rates and bytes counted in packets. $N$ flows share a line of rate $C$. A flow is raised
# after each time $T$ and after each $B$ bytes that it has sent, and one raise adds the rate
# $R_{AI}$. How deep it cuts is revised after each time $\tau'$.

# %% tags=["holds"]
assert (
    marked_queue(0, paper.kmin, paper.kmax, paper.pmax) == paper.kmin
    and marked_queue(paper.pmax, paper.kmin, paper.kmax, paper.pmax) == paper.kmax
), "marks nothing while the queue is below"

# %%
from lightspeed_models.simulators.congestion import dcqcn_fluid, dcqcn_resting
from lightspeed_models.simulators.network_simulation import DCQCN, Port, Senders, simulate_incast

marks = (float(paper.kmin), float(paper.kmax), float(paper.pmax))
port = Port(float(paper.line), marks=marks, pause=4.9e6)
rest = dcqcn_resting(8, port)
first = dcqcn_marking(8, paper.line, paper.packet)
[round(x, 5) for x in (rest.marking, first)]

# %%
fluid = dcqcn_fluid(8, port, 0.04)
packets = simulate_incast(Senders(8, float("inf"), control=DCQCN()), port, Random(1), until=0.015)

# %% tags=["figure"]
t, q = zip(*[(t, min(q, 4e5)) for t, q in packets.samples])
figure(
    Chart(
        Axis("time", "s", domain=(0, 0.04)),
        Axis("queue", "byte", domain=(0, 4e5)),
        [
            Line(t, q, "packets", "grey"),
            Line(fluid.time, [min(q, 4e5) for q in fluid.queue], "fluid", "blue"),
            Rule(y=rest.queue, label="where it rests", color="orange"),
        ],
    ),
    caption="Eight flows at one port. The fluid comes within a tenth of where the equations rest; "
    "packets jump about, and leave a shorter queue on average. The first peak is cut off: it "
    f"reaches {si(max(fluid.queue), 'byte')}.",
    alt="Queue over time: a peak at the start, then a smooth curve that rises towards the line of "
    "the resting point, and a jagged one.",
)

# %% tags=["holds"]
assert abs(fluid.queue[-1] / rest.queue - 1) < 0.1, "comes within a tenth of where the equations rest"
assert (
    sum(q for t, q in packets.samples if t > 0.008)
    / sum(1 for t, q in packets.samples if t > 0.008)
    < rest.queue
), "leave a shorter queue"

# %% [markdown]
# The formula ({{first:.2%}}) is {{first / rest.marking - 1:.0%}} above the exact resting point.
#
# **Where it breaks.** A flow's rate goes up once in {{si(paper.timer, "s")}}. If its fair share is
# less than one packet in that time, it speeds up again before it could be told to slow down.

# %% tags=["holds"]
assert 0 < first / rest.marking - 1 < 0.33, "above the exact resting"
assert (
    abs(
        paper.line / dcqcn_flows(paper.line, paper.packet, paper.timer) * paper.timer - paper.packet
    )
    < 1e-6
), "less than one packet"

# %%
fast, slow_line

# %% [markdown]
# So many flows, on a fast line of {{paper.line * 8 / 1e9:.0f}} Gbit/s and on a slow one of
# {{paper.line_10g * 8 / 1e9:.0f}}. The authors of DCQCN+ simulated both: from about
# {{paper.fails_from:.0f}} and {{paper.fails_from_10g:.0f}} flows on, queues were no longer drained.
# In our packet simulator the mean queue passes Kmax sooner: between {{paper.fails_from / 2:.0f}}
# and {{paper.fails_from:.0f}} flows on the fast line, below {{paper.fails_from_10g / 2:.0f}} on the
# slow one. We have not found why.

# %% [markdown]
# ## A job on a fabric
#
# How many links do switches of $k$ ports join?
#
# Let each layer pass on what it gets: a *fat tree*. A leaf then turns half of its ports down and
# half up, and so does each layer but the top. The top needs no port up, and turns twice as many
# down. So $L$ layers join $2\,(k/2)^L$ links.

# %% tags=["holds"]
assert leaf_spine(512, 32).cables == 2 * 512, "half of its ports"
assert fat_tree_hosts(32, 1) == 32, "twice as many down"
assert all(
    fat_tree_hosts(32, layers + 1) == 32 / 2 * fat_tree_hosts(32, layers) for layers in range(1, 4)
), "layers join"

# %%
k = 32
fat_tree_hosts(k, 2), fat_tree_switches(k, 2)

# %% [markdown]
# With {{k}} ports, two layers join so many links with so many switches: {{k}} leaves, and half as
# many spines.

# %% tags=["holds"]
assert (
    leaf_spine(fat_tree_hosts(k, 2), k).leaves
    == k
    == 2 * leaf_spine(fat_tree_hosts(k, 2), k).spines
), "half as many spines"

# %% [markdown]
# ### Rails
#
# Of the $ng - 1$ other GPUs in $n$ nodes of $g$, $(n-1)(g-1)$ have another color *and* another node:
# without PXN their share of an all-to-all crosses a spine.

# %% tags=["holds"]
assert (
    abs(
        alltoall_places(8, 16, 16).spine
        - np.mean([to // 8 != 0 and to % 8 != 0 for to in range(1, 8 * 16)])
    )
    < 1e-12
), "crosses a spine"

# %%
# GPUs of a node, nodes of the job, nodes of a pod
sixteen = {route: alltoall_places(8, 16, 16, route) for route in ("direct", "pxn")}
table(
    [
        [name, *(f"{share:.1%}" for share in (p.inside, p.leaf, p.spine))]
        for name, p in sixteen.items()
    ],
    ["route", "inside the node", "through one leaf", "over a spine"],
    caption="An all-to-all of sixteen nodes of eight GPUs on rails. PXN takes the spine out.",
)

# %% tags=["holds"]
assert sixteen["pxn"].spine == 0 < 0.8 < sixteen["direct"].spine, "takes the spine out"

# %% [markdown]
# ### Hash and hope
#
# The chance that each of $F$ flows gets one of $L$ links to itself: the second flow misses the first
# with a chance of $1 - 1/L$, the third both with $1 - 2/L$, and so on: multiply.

# %% tags=["holds"]
assert (
    abs(
        ecmp_collisions(3, 4).none
        - np.mean([len({a, b, c}) == 3 for a in range(4) for b in range(4) for c in range(4)])
    )
    < 1e-12
    and abs(
        ecmp_collisions(3, 4).idle
        - np.mean([1 - len({a, b, c}) / 4 for a in range(4) for b in range(4) for c in range(4)])
    )
    < 1e-12
), "and so on"

# %%
eight = ecmp_collisions(8, 8)
eight.none, eight.idle, eight.fullest

# %% [markdown]
# ### Oversubscription
#
# If rings stay under their leaf, why pay for full bandwidth above it? A leaf that takes $r$ times
# what it can send up is *oversubscribed* $r$ to 1. A GPU's part of the uplinks is then its
# adapter's rate $b$ over $r$. If a share $s$ of what it sends leaves the leaf, that part is full
# when it sends $b / (r\,s)$ in all. So it sends $b / \max(r\,s, 1)$.

# %% tags=["holds"]
assert across_rate(wire, 4, 1) == wire / 4, "then its adapter's rate"
assert abs(0.5 * across_rate(wire, 4, 0.5) - wire / 4) < 1e-6 * wire, "in all"
assert across_rate(wire, 4, 0.1) == wire, "So it sends"
assert oversubscription(48, 16) == 3, "A leaf that takes $r$ times what it can send up is"

# %%
ratios, leaving = (1, 2, 4), (0.1, 0.5, 1.0)
table(
    [[f"{r} to 1", *(across_rate(wire, r, share) for share in leaving)] for r in ratios],
    ["oversubscription", *(f"{share:.0%} leaves" for share in leaving)],
    caption="What one GPU can send if the load is spread evenly.",
)

# %% [markdown]
# ### Larger domains, and switches that add
#
# Two other ways to need less network. In the two levels of chapter 7 a GPU of a domain of $d$ takes
# $S/d$ across, around a ring of the $m$ domains: $\frac{2(m-1)}{m} \cdot \frac{S}{d\,b}$. An NVLink
# domain of seventy-two GPUs in place of eight cuts $S/d$ to a ninth, and fewer domains are fewer
# peers: the time falls by more. And switches that add (SHARP) let each byte cross an adapter once
# in place of almost twice: $S/(d\,b)$.

# %% tags=["holds"]
assert (
    abs(hierarchical_time(8e9, 8, 144, 450e9, wire).across - 2 * (144 - 1) / 144 * 8e9 / 8 / wire)
    < 1e-9
), "GPU of a domain"
assert (
    hierarchical_time(8e9, 8, 144, 450e9, wire).across
    > 9 * hierarchical_time(8e9, 72, 16, 450e9, wire).across
), "time falls by more"
assert (
    abs(
        hierarchical_time(8e9, 8, 10**6, 450e9, wire).across
        / sharp_time(8e9, 8, 10**6, 450e9, wire).across
        - 2
    )
    < 1e-3
), "place of almost twice"

# %%
gpus, size, hopper, blackwell = 1152, 2e9, link("nvlink4"), link("nvlink5")  # assumed
levels = {
    "domains of eight": hierarchical_time(size, 8, gpus // 8, hopper.bandwidth, wire),
    "of seventy-two": hierarchical_time(size, 72, gpus // 72, blackwell.bandwidth, wire),
    "of eight, SHARP": sharp_time(size, 8, gpus // 8, hopper.bandwidth, wire),
}
table(
    [[n, t.inside, t.across, t.upper] for n, t in levels.items()],
    ["", "inside", "across", "one after the other"],
    caption=f"An all-reduce of {si(size, 'byte')} over {gpus:,} GPUs. The larger domain has"
    f" {blackwell.name}, {si(blackwell.bandwidth, 'byte/s')}, the others have {hopper.name},"
    f" {si(hopper.bandwidth, 'byte/s')}.",
)

# %% [markdown]
# ## Design: a fabric for two thousand GPUs
#
# Each GPU has a link, each switch so many ports, and you have a budget. A leaf turns a whole number
# of ports down, as many as the ratio allows, and the others up. Prices are premises; put in yours.

# %%
joined, radix, prices = 2048, 64, {"switch": 30_000, "cable": 600}  # assumed
parts = {ratio: leaf_spine(joined, radix, ratio) for ratio in (1, 2, 3)}
dollars = {
    ratio: (p.leaves + p.spines) * prices["switch"] + p.cables * prices["cable"]
    for ratio, p in parts.items()
}
table(
    [
        [f"{r} to 1", *(f"{n:,.0f}" for n in (p.leaves, p.spines, p.cables, dollars[r]))]
        for r, p in parts.items()
    ],
    ["oversubscription", "leaves", "spines", "cables", "dollars"],
    caption=f"{joined:,} links of {si(wire, 'byte/s')}, switches of {radix} ports, two layers. A "
    "cable counts with its optics at both ends.",
)

# %% [markdown]
# At 2 to 1 a leaf has {{parts[2].links:.2f}} cables to a spine, on average: the spines don't divide
# them, so some spines get one more than others, and a load that is spread evenly over spines leaves
# ports unused. Buy a few spines more, or leave a few ports of each leaf empty.
#
# Which ratio do you *need*? Go back to chapter 6 and list what the job sends, and to whom. Rings of
# data parallelism stay on their rail within a pod. Experts send each to each: with PXN that stays
# on the leaves of a pod, beyond the pod it does not. So choose pods as large as the leaf allows,
# keep expert groups within a pod, and buy full bandwidth above only if groups span pods.

# %% tags=["holds"]
assert parts[1].links % 1 == 0 < parts[2].links % 1, "the spines don't divide them, so some spines get one more than others"

# %% [markdown]
# ## Check it against what was published
#
# Each row is a number that a paper prints, beside what the laws of this chapter say, and the error.
# `wire_share` is payload over payload and headers.

# %% tags=["figure"]
table(
    [[what, *(f"{float(x):,.6g}" for x in (a, b)), f"{a / b - 1:+.1%}"] for what, a, b in ours],
    ["what", "the law", "printed", "error"],
)

# %% [markdown]
# **Where it breaks.** The rule of thumb for flows is the worst of them; it says when trouble
# starts, not when a queue stays full. HPN has one segment less than its spines have ports for; the
# notes that we could read do not say what the others do. And Wang and others (2019) print that go
# back n falls to "nearly zero" at a loss of {{roce.loss_collapse:.0%}}, and to
# {{roce.improved_share:.0%}} if the adapter asks again. They do not print the window. The second
# number makes it {{asked_again:.0f}} packets, and with those and a driver's own timer (bnxt_re's,
# {{si(roce.timeout, "s")}}) we get
# {{go_back_n(roce.loss_collapse, asked_again, roce.timeout * roce.line / 1000):.2%}} for the first.
#
# ## Measured over a bad cable
#
# Sender, cable and receiver were three sockets of one machine, and the cable a few lines of Python
# that hold each packet for a while and drop some. The law gets the share of packets that was really
# lost, and nothing is fitted to the times. What do you expect, if a packet takes a millisecond and
# a round trip thirty?

# %% tags=["holds"]
assert max(ours, key=lambda r: abs(float(r[1]) / float(r[2]) - 1))[0].startswith("DCQCN+"), (
    "flows is the worst"
)
assert hpn.segments == hpn.switch / (2 * hpn.port) / hpn.rails - 1, "less than its spines"
assert go_back_n(roce.loss_collapse, asked_again, roce.timeout * roce.line / 1000) < 0.01, (
    "those and a driver's own timer"
)

# %%
from lightspeed_course import shipped
from lightspeed_tools.measure.records.record import all_of

recorded = shipped()["lossy_2core"]
rows = []
for scheme, law in (("selective repeat", lambda p, w: selective_repeat(p)), ("go back n", go_back_n)):
    for q in all_of(recorded, f"lossy.{scheme.replace(' ', '_')}"):
        packets, window, slot = (q.parameters[n] for n in ("packets", "window", "slot"))
        lost = q.counted["lost"] / q.counted["sent"]
        # until the last packet is there, its delay goes by
        goodput = packets * slot / (q.value - (window - 1) / 2 * slot)
        off = f"{goodput / law(lost, window) - 1:+.1%}" if q.trusted else "too noisy to say"
        rows.append([scheme, si(lost, "%"), si(goodput, "%"), si(law(lost, window), "%"), off])
table(
    rows,
    ["scheme", "lost, by count", "goodput", "the law", "measured over law"],
    f"{packets} packets a message, {window} on the way. Recorded on {recorded['name']}.",
)
losses = {q.parameters["loss"] for q in all_of(recorded, "lossy.go_back_n")}

# %% [markdown]
# ### Explain the difference
#
# - **A few hundred packets are few.** Near the end of a message a loss costs a whole round trip
#   under selective repeat, too, because there is nothing else to send meanwhile. The law speaks of
#   long messages.
# - **A busy machine** wakes sender and cable late. The round trip gets longer, and go back n pays
#   for it with each loss.
# - **Losses are few.** A handful of them, and two that fall into one window cost one window. So go
#   back n may do better than the law, which speaks of the mean.

# %% tags=["holds"]
assert all(
    np.mean(
        [
            simulate_transport("selective_repeat", packets, p, window, Random(i)).goodput
            for i in range(50)
        ]
    )
    < selective_repeat(p) - 0.005
    for p in losses
    if p
), "nothing else to send"
assert all(
    abs(
        simulate_transport("selective_repeat", 100 * packets, p, window, Random(8)).goodput
        - selective_repeat(p)
    )
    < 0.005
    for p in losses
    if p
), "speaks of long messages"

# %% [markdown]
# The counters that the lesson names have company:
#
# | counter | where | what it says |
# |---|---|---|
# | `packet_seq_err` | adapter | gaps, as the sender was told of them |
# | port drops | switch | a queue was full |
# | `rp_cnp_handled` | adapter | senders that obey marks |
# | `link_downed`, bit errors before correction | port | a line that goes bad |

# %% [markdown]
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %%
from lightspeed_course import gallery

gallery("08")

# %% [markdown]
# ## Before a large run: the network's part
#
# The list of chapter 6, item by item, with what this chapter adds.
#
# | check | how |
# |---|---|
# | GPU topology | `nvidia-smi topo -m`: each GPU's adapter shows as PIX or PXB |
# | NVLink, NVSwitch | `nvidia-smi nvlink --status`: all up, at their rate |
# | versions of CUDA, NCCL, PyTorch | printed by the job, equal on all nodes |
# | PCIe and NIC locality | `NCCL_DEBUG=INFO`: which adapter each channel takes |
# | memory headroom | `training_memory` (chapter 6) |
# | data-parallel group | one rank of each node on each ring: rails straight |
# | tensor-parallel group | inside a node or an NVLink domain |
# | pipeline stages | neighbours in one pod |
# | sharding of FSDP or ZeRO | shards within a pod, copies across, if memory allows |
# | placement of experts | a group within a pod; PXN on (`NCCL_PXN_DISABLE=0`) |
# | batch, micro-batch, accumulation | `accumulation` (chapter 6) |
# | rate of the adapters | `ibstat`, `ethtool`: as bought, on each port |
# | RDMA, RoCE or InfiniBand | `ib_write_bw` between two hosts reaches `wire_share` of the line |
# | MTU | the same from end to end: {{roce.mtu:.0f}} bytes for RDMA, in jumbo frames |
# | PFC, ECN, DCQCN | one class from end to end; `pfc_threshold`, `ecn_threshold`; watchdog on |
# | interface binding | `NCCL_SOCKET_IFNAME`, `NCCL_IB_HCA`: in the order of the rails |
# | rails aligned | GPU i on leaf i, on each node: compare LLDP neighbours |
# | cross-rail traffic | bytes on uplinks while a ring runs: near zero within a pod |
# | collectives at their sizes | chapter 7, on two nodes, on eight, and on the whole |
# | egress congestion, drops | counters of switches before and after |
# | GPU utilization | of the compute between collectives, not of the whole step |
# | variance of the step | the quantile of *Many wait for the last*, over an hour |
# | overlap of communication and compute | a profile of one step (chapter 6) |
# | straggler | time of each rank in front of the first collective |
# | share of the bubble | `bubble_over_total` (chapter 6) |
# | time of the all-to-all | `alltoall_perf` at the job's size; PXN on, off |
# | interval of checkpoints | `young_interval` (chapter 6), and one restored |
#
# ## Terms
#
# Those of training are at the end of chapter 6.
#
# | term | meaning |
# |---|---|
# | model parallelism | a model cut up over GPUs, by layers or inside them |
# | pipeline parallelism | layers in stages, one behind the other |
# | tensor parallelism | matrix products cut up inside a layer |
# | expert parallelism | experts of a layer on different GPUs |
# | backend network | the network between GPUs, apart from the one of storage and users |
# | RDMA | access to another host's memory without its CPU |
# | RoCEv2 | RDMA in UDP packets over Ethernet |
# | rail | the GPUs of one place in each node, and their leaf |
# | DMA | copies without the CPU |
# | incast | many senders, one receiver |
# | PFC, ECN, DCQCN | pauses for a class; marks for losses; the rule by which senders obey marks |
# | go back n, selective repeat | sent again after a loss: also what followed, or the packet alone |
# | ECMP | one of several like ways, picked by a hash |
# | PXN | data handed to the GPU of the right rail first |
# | SHARP | switches that add |
#
# ## What the model leaves out
#
# Adaptive routing and packets sprayed over all ways, which take collisions away and need adapters
# that accept any order; congestion control by delay (Swift, TIMELY) or by telemetry (HPCC), which
# the simulator could run and does not; credits of InfiniBand, link by link; several jobs on one
# fabric; and the software of the switches. DCQCN stands for its kind, and a fluid of flows that are
# alike for flows that are not. Where a number depends on them, measure it.
#
# ## Further reading
#
# - Zhu et al., *Congestion Control for Large-Scale RDMA Deployments* (2015), and *ECN or Delay*
#   (2016): DCQCN, and where it rests.
# - Guo et al., *RDMA over Commodity Ethernet at Scale* (2016): pauses, storms, deadlocks, met in
#   production.
# - Mittal et al., *Revisiting Network Support for RDMA* (2018): selective repeat instead of pauses.
# - Li et al., *HPCC* (2019); Kumar et al., *Swift* (2020): two other ways to slow down in time.
# - Gangidi et al., *RDMA over Ethernet for Distributed AI Training at Meta Scale* (2024); Qian et
#   al., *Alibaba HPN* (2024): two fabrics as built.
# - Dean and Barroso, *The Tail at Scale* (2013): many wait for the last.
# - Pasanen, *Deep Learning for Network Engineers*: strategies of parallelism, as the network sees
#   them.
