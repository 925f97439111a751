# %% [markdown]
# # 8. The network
#
# On a Tuesday a training job of a thousand GPUs loses a third of its speed. The code is the same,
# no GPU is throttled, and the collectives still finish, only later. Somebody asks the network team,
# and the network team finds nothing: no port is down, and of the packets of the last hour all but a
# tiny part arrived. On Thursday somebody swaps one cable, and the speed is back.
#
# How can one cable of thousands, which loses one packet in a hundred, take a third of everybody's
# speed?
#
# Chapter 7 took each link to run at its rate, and whatever is sent to arrive. This chapter takes
# the network as it is.
#
# **You will be able to** say what a lost packet costs, and why it depends on what the adapter does
# about it; tell incast, pauses and marks apart in a counter; place a job on a fabric, and design
# one within a budget; and say what to check before a run goes from eight GPUs to sixty-four, or to
# thousands.
#
# **You need** chapter 7, and of chapter 6 what a step sends. **Time:** two hours, with the
# problems. **In twenty minutes:** the parts marked with ◆, among them the answer.

# %%
import matplotlib.pyplot as plt
import numpy as np
from ipywidgets import Output, SelectionSlider

from lightspeed.catalog import find, link
from lightspeed.collectives import hierarchical_time
from lightspeed.fabrics import *
from lightspeed.networks import *
from lightspeed_course import Axis, Boxes, Chart, Line, Rule, Text
from lightspeed_course import ask, figure, predict, reveal, si, table

# %%
ndr, roce, paper = link("infiniband_ndr"), find("roce"), find("dcqcn")
wire, packet, round_trip = ndr.bandwidth, roce.mtu, 16e-6  # assumed
window = window_packets(wire, round_trip, packet)
wire, round(window)

# %% [markdown]
# An adapter of {{si(wire, "byte/s")}} sends packets of {{packet:.0f}} bytes. Across a few switches
# a round trip takes some {{si(round_trip, "s")}}. In that time the adapter sends rate × round trip
# ÷ packet = {{window:.0f}} packets, before the answer to the first of them is back: its *window*.
# That number is the price of a loss.
#
# ## ◆ Before you read on
#
# Write down two guesses.

# %%
predict("network.cable", ..., seed="cable")

# %%
predict("network.any_hit", ..., seed="chapter")

# %% [markdown]
# ## ◆ What a lost packet costs
#
# Packets get lost because a transceiver is dirty, a cable is bent, or a queue is full. Somebody has
# to notice, and something has to be sent again. What exactly? Adapters know three answers.
#
# - **Selective repeat:** the lost packet, and that is it. The receiver keeps what came after it.
# - **Go back n:** the lost packet and what was sent after it. The receiver takes packets in order,
#   so it throws away what came early. Most RDMA adapters, which write into another host's memory
#   without its CPU, have worked like this: memory for early packets is dear on a chip.
# - **Go back zero:** the whole message again. Early RDMA adapters did this.
#
# Draw it for ten packets, the third of which is lost, with five packets in a round trip:
#
# ```
# selective repeat   0 1 X 3 4 5 6 2 7 8 9
# go back n          0 1 X 3 4 5 6 2 3 4 5 6 7 8 9
# ```
#
# The first line loses one packet time, the second five: the lost packet and what was on its way.
# That is a window. How long the message is plays no part.
#
# ### ◆ The law
#
# A packet that gets through has cost itself, and a window of $W$ packets for each try that failed.
# With a loss of $p$, there are $p$ tries that fail for $1-p$ that work: $p/(1-p)$ for each packet.
#
# $$\text{goodput, selective} = 1 - p \qquad\qquad
# \text{goodput, go back n} = \frac{1}{1 + \frac{p}{1-p}\,W}$$
#
# Goodput is the share of the line that carries new packets. In the second law the loss is
# multiplied by $W$: **at a loss of one in $W$, half of the line is gone.**

# %% tags=["holds"]
assert abs(go_back_n(1 / window, window) - 0.5) < 0.01, "half of the line"

# %%
losses = [1e-5, 1e-4, 1e-3, 1e-2]
table(
    [[si(p, "%"), selective_repeat(p), go_back_n(p, window)] for p in losses],
    ["loss", "selective repeat", "go back n"],
    caption=f"Goodput as a share of the line, with {window:.0f} packets in a round trip.",
)

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

# %%
ask("network.goodput", seed="first")

# %%
ask("network.loss_budget", seed="chapter")

# %% [markdown]
# ### Lost again
#
# When a packet is missing, the receiver asks for it, but only once. If the packet is lost again,
# nobody tells the sender, and it waits until its own timer rings. A driver's default for that timer
# is {{si(roce.timeout, "s")}}, the time of millions of packets at {{si(wire, "byte/s")}}.

# %% tags=["holds"]
assert roce.timeout * wire / packet > 2e6, "default for that timer"

# %%
timer = roce.timeout * wire / packet  # in packet times
{p: round(go_back_n(p, window, timer), 3) for p in losses}

# %% [markdown]
# The first loss of a packet costs a window, each further one the timer $T$: goodput is
# $1/(1 + p\,W + \frac{p^2}{1-p}\,T)$. At a loss of {{losses[-1]:.0%}} one packet in
# {{1 / losses[-1] ** 2:,.0f}} is lost twice. It costs {{timer:,.0f}} packet times, so each packet
# pays {{timer * losses[-1] ** 2:.0f}} of them.
#
# So a network must be almost free of loss, or an adapter must be clever. Engineers took the first
# way with InfiniBand, whose links send nothing that the next one has no room for, and copied it to
# Ethernet with *pauses*. Mittal and others showed in 2018 that the second way works as well, and
# today's adapters repeat selectively if they are told to.
#
# ### Does the law hold?
#
# A simulator sends one packet after another over a line with a seeded loss. It knows the rules of
# the adapters and nothing of the formulas.

# %%
from random import Random

from lightspeed_models.simulators.network_simulation import simulate_transport

runs = {
    loss: simulate_transport("go_back_n", 60_000, loss, round(window), Random(8))
    for loss in (1e-4, 1e-3, 1e-2)
}
table(
    [[si(loss, "%"), run.goodput, go_back_n(loss, window)] for loss, run in runs.items()],
    ["loss", "simulated", "the law"],
)

# %% [markdown]
# It does: the two differ by
# {{max(abs(run.goodput / go_back_n(p, window) - 1) for p, run in runs.items()):.1%}} at most.
#
# ## ◆ One slow link and a thousand who wait
#
# A collective ends when its last rank has its data. So the loss of one link is a loss of all. Give
# the job of that Tuesday numbers: seconds of computing and of traffic in a step, and the loss. All
# of the traffic waits for the one link. Its adapter asks again after each loss, so nobody waits for
# the timer.

# %% tags=["holds"]
assert max(abs(run.goodput / go_back_n(p, window) - 1) for p, run in runs.items()) < 0.03, "at most"

# %%
compute, traffic, lossy = 0.3, 0.1, 0.01
slow = traffic / go_back_n(lossy, window)
before, now = compute + traffic, compute + slow
before, now, round(before / now, 2)

# %%
reveal("network.cable", seed="cable")

# %% [markdown]
# One cable lost one packet in a hundred, so one link kept {{go_back_n(lossy, window):.0%}} of its
# rate. A step of {{si(before, "s")}} takes {{si(now, "s")}} now, and {{1 - before / now:.0%}} of
# everybody's speed has gone. An adapter that asks only once would wait for its timer, and the step
# would take {{si(compute + traffic / go_back_n(lossy, window, timer), "s")}}.
#
# ### ◆ Many wait for the last
#
# It happens in a sound network, too. If each rank is late in one step of a thousand, by itself, how
# often is a step of a thousand ranks late? All are in time with a chance of $(1 - p)^n$, and
# somebody is late in the other steps.
#
# And the median of the step? A step is shorter than a time if all its ranks are. If a share $q$ of
# the times of one rank is, so is a share $q^n$ of the steps. So the median of the step is the
# quantile $q = (1/2)^{1/n}$ of one rank.

# %% tags=["holds"]
assert 0.25 < 1 - before / now < 0.4 and go_back_n(lossy, window) < 0.5, (
    "everybody's speed has gone"
)
assert compute + traffic / go_back_n(lossy, window, timer) > 10 * now, "only once would wait"
assert abs(any_hit(1 - 0.9, 2) - (1 - 0.9 * 0.9)) < 1e-12, "shorter than a time"
assert all(abs(1 - any_hit(1 - q, n) - q**n) < 1e-9 for q in (0.5, 0.99) for n in (1, 8, 128)), (
    "times of one rank"
)
assert all(abs(any_hit(1 - quantile_of_one(0.5, n), n) - 0.5) < 1e-9 for n in (1, 8, 1024)), (
    "step is the quantile"
)
assert abs(any_hit(0.001, 1000) - (1 - (1 - 0.001) ** 1000)) < 1e-12, (
    "somebody is late in the other steps"
)

# %%
ranks = [1, 8, 128, 1024, 8192]
table(
    [[n, f"{any_hit(0.001, n):.2%}", f"{quantile_of_one(0.5, n):.5f}"] for n in ranks],
    ["ranks", "steps with somebody late", "median of the step: quantile of one rank"],
)

# %%
reveal("network.any_hit", seed="chapter")

# %% [markdown]
# So *jitter* is a matter of scale. If delays are exponential, the mean of the largest of $n$ is
# $1 + 1/2 + \dots + 1/n$ times the mean of one: {{slowest_of(0, 1, 8):.3g}} times for eight ranks,
# {{slowest_of(0, 1, 8192):.3g}} times for eight thousand. Look at the quantile of a rank, not at
# its mean.

# %% tags=["holds"]
assert all(
    abs(slowest_of(0, 1, n) - sum(1 / k for k in range(1, n + 1))) < 1e-3 for n in (8, 8192)
), "mean of the largest"

# %%
ask("network.quantile", seed="first")

# %% [markdown]
# ## ◆ Incast
#
# Now let many senders have something for one receiver: shards of a checkpoint, tokens for a popular
# expert, the root of a gather. Each of $N$ sends a burst at the full rate of its link, and the
# receiver's port can pass on the rate of one. While the bursts come in, one leaves, and $N - 1$
# wait in the switch:
#
# $$\text{queue} = (N - 1) \cdot \text{burst} \qquad\qquad
# N \le \frac{\text{buffer} }{\text{burst} } + 1$$

# %% tags=["holds"]
assert (
    all(incast_queue(n, 1e6, wire, wire) == (n - 1) * 1e6 for n in (1, 4, 64))
    and incast_queue(incast_senders(64e6, 1e6), 1e6, wire, wire) == 64e6
), "While the bursts come in"

# %%
burst, buffer = 1e6, 64e6  # assumed
{n: incast_queue(n, burst, wire, wire) for n in (4, 16, 64)}, incast_senders(buffer, burst)

# %%
ask("network.incast_queue", seed="chapter")

# %% [markdown]
# What happens when the buffer is full, or about to be? Ethernet knows three answers. RoCE is RDMA
# over Ethernet, and its fabrics can run the last two together.
#
# 1. **Drop.** The packets are lost, and the adapters send them again.
# 2. **Pause** (PFC, *priority flow control*). A port whose queue gets long stops whoever sends to
#    it, until the queue is short again. Packets carry a *class*, each class has its own queue at a
#    port, and pauses stop a class. Nothing is lost, as long as there is room for what is on the way
#    when the pause is sent: the *headroom*.
# 3. **Mark** (ECN, *explicit congestion notification*). A switch marks packets when a queue grows;
#    the receiver tells the sender, and the sender slows down. By which rule is the adapter's
#    matter. The best known one for RoCE is DCQCN, which Microsoft and Mellanox published in 2015.
#    Meta switched it off on links of {{wire * 8 / 1e9:.0f}} Gbit/s and let receivers hold senders
#    back instead.
#
# Try them, and look at the time that it takes.

# %%
from lightspeed_course.explorers.network import explore, explore_fabric

explore()

# %% [markdown]
# Did you expect the timer? If the *last* packet of a burst is lost, no packet after it can show the
# gap. The sender waits for its clock, and the receiver's port stands idle meanwhile. With pauses
# nothing is lost while the headroom fits into the buffer. With the settings that the explorer
# starts with, it then takes as long as the link takes, and the senders stand still for most of it.
# With little room beside the headroom, the queue runs empty after each pause, and it takes longer.
# And marks alone? A burst is out in {{si(262144 / wire, "s")}}, and hardly a packet of it was
# marked by then: here they are as late as nothing.

# %%
ask("network.incast_senders", seed="chapter")

# %% [markdown]
# ### Why not pause and be done?
#
# Because a pause stops a *class* and asks for nobody's address: in that class wait packets for
# others, too. A receiver that is slow stops its switch, this one stops the next, and in the end
# senders stand still that had nothing to do with it. Guo and others (2016) met adapters that sent
# pauses without an end, and stopped a whole network: a *pause storm*. A single frame stops a link
# for the time in its field, up to

# %%
pause_time(65535, wire)  # sixteen bits; a unit is the time of sixty-four bytes

# %% [markdown]
# and a broken adapter repeats it. How long until a sender three switches away stands still? Three
# queues have to fill up to their thresholds, here {{si(paper.pfc_threshold, "byte")}} each, and
# three pauses travel for a microsecond each:

# %%
pause_spread(3, paper.pfc_threshold, wire, 1e-6)

# %% [markdown]
# No operator is that fast. So switches have a **PFC watchdog**: a queue that was paused for too
# long is emptied, losses and all. And pauses can wait for each other in a ring: a *deadlock*.
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

# %%
ask("network.headroom", seed="chapter")

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
switch = [paper.buffer, paper.ports, paper.priorities, paper.headroom]
table(
    [
        ["pause from", pfc_threshold(*switch), paper.pfc_threshold],
        ["mark before", ecn_threshold(*switch, paper.beta), paper.ecn_threshold],
    ],
    ["threshold", "computed", "printed"],
)

# %%
ask("network.pause_threshold", seed="chapter")

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
assert abs(fluid.queue[-1] / rest.queue - 1) < 0.1, "comes within a tenth"
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
fast, slow_line = (dcqcn_flows(line, paper.packet) for line in (paper.line, paper.line_10g))
fast, slow_line

# %% [markdown]
# So many flows, on a fast line of {{paper.line * 8 / 1e9:.0f}} Gbit/s and on a slow one of
# {{paper.line_10g * 8 / 1e9:.0f}}. The authors of DCQCN+ simulated both: from about
# {{paper.fails_from:.0f}} and {{paper.fails_from_10g:.0f}} flows on, queues were no longer drained.
# In our packet simulator the mean queue passes Kmax sooner: between {{paper.fails_from / 2:.0f}}
# and {{paper.fails_from:.0f}} flows on the fast line, below {{paper.fails_from_10g / 2:.0f}} on the
# slow one. We have not found why.

# %%
ask("network.flows_in_step", seed="first")

# %% [markdown]
# ## ◆ A job on a fabric
#
# A node's adapters hang on *leaf* switches, leaves hang on *spines*. The nodes that share leaves
# are a *pod*. How many links do switches of $k$ ports join?
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

# %%
ask("network.fat_tree", seed="chapter")

# %% [markdown]
# ### ◆ Rails
#
# Which GPUs should share a leaf? The obvious answer is: those of one rack. The better one for GPUs
# is: those that talk to each other. In a ring between nodes, and in the all-reduce of two levels of
# chapter 7, GPU 3 of a node talks to GPU 3 of the next. So let GPU 3 of *every* node hang on leaf
# 3: a **rail**. Now rings stay under their leaf, however many nodes the leaf joins.

# %% tags=["figure"]
colors, at = ("blue", "orange", "green", "purple"), (1.7, 5.1, 8.5, 11.9)
marks = [
    Boxes(
        [x - 1.4 for x in at], [x + 1.4 for x in at], [0.1] * 4, [1.6] * 4, color="grey", soft=True
    )
]
marks += [
    Line([leaf, spine], [4.7, 6.5], color="grey", width=1) for leaf in at for spine in (4.3, 9.3)
]
for rail, color in enumerate(colors):
    gpus = [x - 1.05 + 0.7 * rail for x in at]
    marks += [Line([gpu, at[rail]], [1.4, 4.0], color=color, width=1.5) for gpu in gpus]
    marks.append(
        Boxes(
            [x - 0.28 for x in gpus], [x + 0.28 for x in gpus], [0.85] * 4, [1.4] * 4, color=color
        )
    )
    marks.append(Boxes([at[rail] - 0.9], [at[rail] + 0.9], [4], [4.7], f"rail {rail}", color=color))
marks.append(Boxes([3.4, 8.4], [5.2, 10.2], [6.5] * 2, [7.2] * 2, color="grey"))
marks += [Text(x, 0.35, f"node {i}") for i, x in enumerate(at)]
marks += [Text(10.5, 6.7, "spines", anchor="start"), Text(13.1, 4.2, "leaves", anchor="start")]
figure(
    Chart(Axis(domain=(0, 14.5)), Axis(domain=(0, 7.5)), marks, height=300, bare=True),
    caption="Four nodes of four GPUs on rails: one pod. GPUs of one color share a leaf.",
    alt="Four nodes below, each with four GPUs in four colors. GPUs of the same color hang on the "
    "leaf of that color. Each of the four leaves has a line to each of two spines.",
)

# %% [markdown]
# An all-to-all doesn't stay there. A token of a blue GPU may want an orange one of another node. Of
# the $ng - 1$ other GPUs in $n$ nodes of $g$, $(n-1)(g-1)$ have another color *and* another node:
# their share crosses a spine. NCCL's *PXN* (PCIe × NVLink) helps: the blue GPU hands the token over
# NVLink to the orange one of its own node, which sends it along its rail.

# %% tags=["holds"]
assert (
    abs(
        alltoall_places(8, 16, 16).spine
        - np.mean([to // 8 != 0 and to % 8 != 0 for to in range(1, 8 * 16)])
    )
    < 1e-12
), "share crosses a spine"
assert alltoall_places(8, 16, 16).spine > 0.5, "all-to-all doesn't stay there"

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

# %%
ask("network.rail_spine", seed="page")

# %% [markdown]
# ### ◆ Hash and hope
#
# Between two leaves there are many ways, all alike. Switches pick one by a hash of addresses and
# ports, so that the packets of a flow stay in order (ECMP, *equal-cost multipath*). A web server
# has thousands of small flows, and a hash spreads them well. A GPU has a few, each as fast as a
# link, and two that share one get half.
#
# Hash $F$ flows to $L$ links. The second flow misses the first with a chance of $1 - 1/L$, the
# third both with $1 - 2/L$, and so on: multiply, and you have the chance that each gets its own. A
# given link is missed by one flow with $1 - 1/L$, by all with $(1 - 1/L)^F$: that share stays idle.

# %% tags=["holds"]
assert ecmp_collisions(512, 8).fullest < 1.25 * 512 / 8, "hash spreads them well"
assert ecmp_collisions(2, 1).fullest == 2, "as fast as a link"
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
), "by all"

# %%
eight = ecmp_collisions(8, 8)
eight.none, eight.idle, eight.fullest

# %% [markdown]
# Eight flows on eight links: with a chance of {{eight.none:.2%}} each gets its own. On average
# {{eight.idle:.0%}} of the links stay idle, and the fullest has {{eight.fullest:.2f}} flows, so the
# job takes {{eight.fullest:.2f}} times as long as with a link for each. More flows than links help:
# cut each into four connections, and the fullest link carries
# {{ecmp_collisions(32, 8).fullest / 4:.2f}} times the mean. Meta reports up to
# {{number("meta_roce.ecmp_gain"):.0%}} more for an all-reduce, with more connections whose numbers
# go into the hash.

# %% tags=["holds"]
assert eight.none < 0.003 and eight.fullest > 2.5, "a link for each"
assert ecmp_collisions(32, 8).fullest / 4 < 0.75 * eight.fullest, "flows than links help"

# %%
ask("network.ecmp_none", seed="pod")

# %%
ask("network.ecmp_idle", seed="page")

# %% [markdown]
# ### Which links carry what
#
# The ring of this job is crossed: a wrong list of adapters in `NCCL_IB_HCA` has each GPU send to
# another rail. Mend it, and a quarter still crosses a spine, for eight nodes are two pods here.
# Then scatter the job over pods, take uplinks away, and give each flow more connections, or
# *spread* it evenly over all uplinks.

# %%
explore_fabric()

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
assert oversubscription(48, 16) == 3, "times what it can send up is"

# %%
ratios, leaving = (1, 2, 4), (0.1, 0.5, 1.0)
table(
    [[f"{r} to 1", *(across_rate(wire, r, share) for share in leaving)] for r in ratios],
    ["oversubscription", *(f"{share:.0%} leaves" for share in leaving)],
    caption="What one GPU can send if the load is spread evenly.",
)

# %%
ask("network.across_rate", seed="read")

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

# %%
ask("network.domain", seed="taught")

# %%
ask("network.sharp", seed="page")

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

# %%
ask("network.budget", seed="bill")

# %% [markdown]
# Which ratio do you *need*? Go back to chapter 6 and list what the job sends, and to whom. Rings of
# data parallelism stay on their rail within a pod. Experts send each to each: with PXN that stays
# on the leaves of a pod, beyond the pod it does not. So choose pods as large as the leaf allows,
# keep expert groups within a pod, and buy full bandwidth above only if groups span pods.
#
# ### Questions that a design has to answer
#
# - **What does the strategy of parallelism do to the network?** It decides who talks to whom, how
#   often, and how much at a time: bursts of a gradient's size for data parallelism, a message after
#   each layer for tensor parallelism, each to each for experts.
# - **Why NVLink for tensor parallelism?** Its messages are in the way of the next product, so they
#   can hide behind nothing, and NVLink has {{link("nvlink4").bandwidth / wire:.0f}} times the rate
#   of an adapter.
# - **Why does one slow GPU slow the job?** A collective ends with its last rank; see *Many wait for
#   the last*.
# - **What do we check before we go from eight GPUs to sixty-four?** At eight there was no network.
#   So check the topology and which adapter each GPU takes; the collectives that the job runs, at
#   its sizes, on two nodes and then on eight; counters before and after; groups of tensor
#   parallelism still inside a node; the batch and its accumulation; a checkpoint written and read
#   back; and the spread of the step over an hour.
# - **What does a loss cost?** The cable of the Tuesday takes {{1 - before / now:.0%}} of the speed
#   of {{gpus:,}} GPUs. In two days that is {{gpus * 48 * (1 - before / now):,.0f}} GPU hours: those
#   that the missing steps would have taken.
#
# ## Check it against what was published
#
# Each row is a number that a paper prints, beside what the laws of this chapter say, and the error.
# `wire_share` is payload over payload and headers.

# %% tags=["holds"]
assert link("nvlink4").bandwidth > 8 * wire, "can hide behind nothing"
assert (
    abs(
        (48 * 3600 / before - 48 * 3600 / now) * before * gpus / 3600
        - gpus * 48 * (1 - before / now)
    )
    < 1e-6
), "steps would have taken"

# %%
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
# number makes it {{asked_again:.0f}} packets, and with those and the timer of *Lost again* we get
# {{go_back_n(roce.loss_collapse, asked_again, roce.timeout * roce.line / 1000):.2%}} for the first.
#
# ## Measure it here
#
# This experiment brings its own bad cable: sender, cable and receiver are three sockets of your
# machine, and the cable is a few lines of Python that hold each packet for a while and drop some.
# The law gets the share of packets that was really lost, and nothing is fitted to the times.
#
# What do you expect?

# %% tags=["holds"]
assert max(ours, key=lambda r: abs(float(r[1]) / float(r[2]) - 1))[0].startswith("DCQCN+"), (
    "flows is the worst"
)
assert hpn.segments == hpn.switch / (2 * hpn.port) / hpn.rails - 1, "less than its spines"
assert go_back_n(roce.loss_collapse, asked_again, roce.timeout * roce.line / 1000) < 0.01, (
    "those and the timer"
)

# %%
from lightspeed_course import measure_here, shipped
from lightspeed_tools.measure.instruments.lossy import DELAY, LOSSES, PACKETS, SLOT, WINDOW
from lightspeed_tools.measure.pages.loss_figures import loss_figure, loss_table

# %% tags=["figure"]
table(
    [[si(p, "%"), selective_repeat(p), go_back_n(p, WINDOW)] for p in LOSSES],
    ["loss", "selective repeat", "go back n"],
    caption=f"What the laws say for {WINDOW} packets on the way: {si(DELAY, 's')} each way, "
    f"{si(SLOT, 's')} a packet.",
)

# %% tags=["measured"]
mine = measure_here("lossy")

# %% tags=["measured"]
loss_figure(mine)

# %% tags=["measured"]
loss_table(mine)

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
#
# ### The same on a recorded machine

# %% tags=["holds"]
assert all(
    np.mean(
        [
            simulate_transport("selective_repeat", PACKETS, p, WINDOW, Random(i)).goodput
            for i in range(50)
        ]
    )
    < selective_repeat(p) - 0.005
    for p in LOSSES
    if p
), "nothing else to send"
assert all(
    abs(
        simulate_transport("selective_repeat", 100 * PACKETS, p, WINDOW, Random(8)).goodput
        - selective_repeat(p)
    )
    < 0.005
    for p in LOSSES
    if p
), "speaks of long messages"

# %%
recorded = shipped()["lossy_2core"]
loss_figure(recorded)

# %% [markdown]
# In a data centre you cannot ask a cable for its loss, but you can read counters. Five to begin
# with:
#
# | counter | where | what it says |
# |---|---|---|
# | `out_of_sequence`, `packet_seq_err` | adapter | gaps: a loss, or a route that reorders |
# | `rx_discards_phy`, port drops | adapter, switch | a queue was full |
# | `rx_prio3_pause`, `tx_prio3_pause` | adapter, switch | who is stopped, and who stops |
# | `np_ecn_marked_roce_packets`, `rp_cnp_handled` | adapter | marks, and senders that obey |
# | `symbol_error`, `link_downed`, bit errors before correction | port | a line that goes bad |

# %%
ask("network.first_counter", seed="page")

# %% [markdown]
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %%
from lightspeed_course import gallery

gallery("08")

# %% [markdown]
# ## ◆ The answer
#
# So, to the Tuesday. The job computes for {{si(compute, "s")}} a step and communicates for
# {{si(traffic, "s")}}. One link of one ring began to lose {{lossy:.0%}} of its packets. Its adapter
# goes back n with {{window:.0f}} packets on the way, so the link kept
# {{go_back_n(lossy, window):.0%}} of its rate. All rings that pass it, and all ranks that wait for
# them, got slower with it. The step went from {{si(before, "s")}} to {{si(now, "s")}}.
#
# Why did the network team find nothing? They looked for ports that are down and for queues that
# overflow. The cable was up, and the losses were bit errors. They show at the end of the cable that
# receives, in its port's count of bits that came in wrong (`symbol_error`), and in the adapters
# behind it, which count gaps in the numbers of packets (`out_of_sequence`); no queue notices them.
# How would one find it on Tuesday? Run the collective that is slow on halves of the hosts, then on
# halves of the slow half. Eight runs find one of the {{gpus // 8}} hosts of {{gpus:,}} GPUs. What
# would have made it harmless? Selective repeat: the step would have taken
# {{si(compute + traffic / selective_repeat(lossy), "s")}}.
#
# ## Exercises
#
# `exercises/08_network.ipynb` has the problems of this page and more: goodput as a function, a
# threshold, a fabric within a budget. `check` tells you what went wrong, not only that it did.
#
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

# %% tags=["holds"]
assert gpus // 8 <= 2**8, "Eight runs find"
assert compute + traffic / selective_repeat(lossy) < 1.01 * before, "step would have taken"
