# %% [markdown]
# # 8. The network
#
# On a Tuesday a training job of a thousand GPUs loses a third of its speed. The code is the same,
# no GPU is throttled, and the collectives still finish, only later. Somebody asks the network team,
# which finds nothing: no port is down, and of the packets of the last hour all but a tiny part
# arrived. On Thursday somebody swaps one cable, and the speed is back.
#
# How can one cable of thousands, which loses one packet in a hundred, take a third of everybody's
# speed? Chapter 7 assumed that each link runs at its rate, and that whatever is sent arrives. Here
# we take the network as it is. Forty minutes; you need chapter 7, and of chapter 6 what a step
# sends. The evidence is on the [proof page](08_network_proof.ipynb).

# %% tags=["setup"]
from lightspeed.catalog import find, link, number
from lightspeed.fabrics import *
from lightspeed.networks import *
from lightspeed_course import ask, bench, figure, job, predict, reveal, si, table
from lightspeed_course import Boxes, Axis, Chart, Line, Text
from lightspeed_course.explorers.packets import explore_bins, explore_incast, explore_lost

# %%
job.sheet(until="08")

# %% [markdown]
# **First, one from lesson 7.** In each of these steps a ring waits for its slowest link.

# %%
ask("nccl.ring_steps", seed="again")

# %%
predict("network.cable", ..., seed="cable")

# %%
predict("network.any_hit", ..., seed="chapter")

# %% [markdown]
# ## What does one lost packet cost?
#
# A transceiver is dirty, a cable is bent, or a queue is full, and a packet is gone. Somebody has to
# notice, and something has to be sent again. What exactly? Adapters know three answers.
#
# - **Selective repeat** sends the lost packet, and that is it. The receiver keeps what came after.
# - **Go back n** sends the lost packet and all that followed it, because the receiver takes packets
#   in order only and throws away what came early. Most RDMA adapters, which write into another
#   host's memory without its CPU, have worked like this: memory for early packets is expensive on a
#   chip.
# - **Go back zero** sends the whole message again. Early RDMA adapters did.
#
# Play each of them, and watch what is repeated:

# %%
explore_lost()

# %% [markdown]
# The sender can't know before a round trip is over, and whatever it has put on the wire by then was
# sent in vain. So with go back n a loss costs one *window*: all packets that fit into a round trip,
# the lost one included. The length of the message doesn't matter.

# %%
ndr, roce, nccl = link("infiniband_ndr"), find("roce"), find("nccl")
wire, packet, round_trip = ndr.bandwidth, roce.mtu, 16e-6  # assumed
window = window_packets(wire, round_trip, packet)
window

# %% [markdown]
# An adapter of {{si(wire, "byte/s")}} sends packets of {{packet:.0f}} bytes, and across a few
# switches a round trip is some {{si(round_trip, "s")}}. Rate × round trip (the **bandwidth-delay product**) ÷ packet makes a window
# of {{window:.0f}} packets. On a line four times as fast it would be four times as many.
#
# What's that as a share of the line? A packet that gets through costs itself, and a window of $W$
# packets for each try that failed. With a loss of $p$, there are $p/(1-p)$ failures for each
# success, so the **goodput**, the share of the line that carries new packets, is
#
# $$\text{selective repeat: } 1 - p \qquad\qquad
# \text{go back n: } \frac{1}{1 + \frac{p}{1-p}\,W}$$
#
# In the second law the loss is multiplied by $W$: **at a loss of one in $W$, half of the line is
# gone.** [proof](08_network_proof.ipynb#Does-the-law-hold?)

# %% tags=["holds"]
assert abs(window_packets(4 * wire, round_trip, packet) / window - 4) < 1e-9, "four times as many"
assert abs(go_back_n(1 / window, window) - 0.5) < 0.01, "half of the line is"

# %% tags=["figure"]
losses = [1e-5, 1e-4, 1e-3, 1e-2]
table(
    [[si(p, "%"), selective_repeat(p), go_back_n(p, window)] for p in losses],
    ["loss", "selective repeat", "go back n"],
    caption=f"Goodput as a share of the line, with {window:.0f} packets in a round trip.",
)

# %% [markdown]
# And it can be worse. The receiver asks for a missing packet once only, so if that one is lost
# again, nobody tells the sender, and it waits for a timer of its own (a **retransmission timeout**). As NCCL {{nccl.release}} sets it,
# that is {{si(nccl.timeout, "s")}}: tens of millions of packets.
# [proof](08_network_proof.ipynb#Lost-again)
#
# So either a network is almost free of loss, or its adapters are clever. InfiniBand went the first
# way: no link sends what the next one has no room for. Ethernet copied that with pauses.
# Many adapters can repeat selectively, if they are told to.

# %% tags=["holds"]
assert 2e7 < nccl.timeout * wire / packet < 1e8, "tens of millions of packets"

# %% [markdown]
# ## Why does everybody wait?
#
# Because a collective ends when its last rank has its data, and a ring has no way round a slow
# link. Here is that Tuesday's job in numbers: seconds of computing and of traffic, and the loss.

# %%
compute, traffic, lossy, many = 0.3, 0.1, 0.01, 8192  # assumed
slow = traffic / go_back_n(lossy, window)
before, now = compute + traffic, compute + slow
before, now, round(before / now, 2)

# %% tags=["figure"]
ranks, bad = range(32), 11
ends = [compute + (slow if rank == bad else traffic) for rank in ranks]


def rows(starts, stops, label, color, soft=False):
    pairs = [(y, a, b) for y, a, b in zip(ranks, starts, stops) if b > a]
    ys, lefts, rights = zip(*pairs)
    return Boxes(lefts, rights, ys, [y + 0.8 for y in ys], label=label, color=color, soft=soft)


marks = [
    rows([0] * 32, [compute] * 32, "computes", "blue"),
    rows([compute] * 32, ends, "sends", "orange"),
    rows(ends, [now] * 32, "waits", "grey", soft=True),
    Line([before, before], [0, 32], color="black", dash=True),
    Text(before, 33.2, "was the end"),
]
figure(
    Chart(Axis(domain=(0, 1.02 * now)), Axis(domain=(34, -0.5)), marks, height=300, bare=True),
    caption="A step of thirty-two ranks. One of them has the bad cable, and all others wait for it.",
    alt="Thirty-two rows. In each a long bar of computing and a short one of sending; in one row "
    "the second bar reaches to the end, and in all others a grey bar of waiting fills the gap.",
)

# %% tags=["holds"]
assert sum(end == now for end in ends) == 1 and max(ends) == now, "all others wait for it"
assert 2 * traffic < compute and all(end < now for end in sorted(ends)[:-1]) and max(ends) == now, (
    "in one row the second bar reaches to the end, and in all others a grey bar of waiting fills the gap"
)

# %%
reveal("network.cable", seed="cable")

# %% [markdown]
# One link kept {{go_back_n(lossy, window):.0%}} of its rate, so a step of {{si(before, "s")}} needs
# {{si(now, "s")}}, and {{1 - before / now:.0%}} of everybody's speed is gone.
#
# ### Many wait for the last
#
# You don't even need a bad cable for this. Say each rank is late in one step of a thousand, for no
# reason you could find. How often is a step of a thousand ranks late? All are in time with a chance
# of $(1-p)^n$, and in the other steps you wait for somebody.

# %% tags=["holds"]
assert 0.25 < 1 - before / now < 0.4 and go_back_n(lossy, window) < 0.5, "{{1 - before / now:.0%}} of everybody's speed is gone"
assert all(
    abs(1 - any_hit(p, n) - (1 - p) ** n) < 1e-12 for p in (0.001, 0.5) for n in (1, 8, 1000)
), "All are in time with a chance of $(1-p)^n$"

# %%
reveal("network.any_hit", seed="chapter")

# %% [markdown]
# So *jitter*, harmless in eight ranks, is the normal case in eight thousand:
# {{any_hit(0.001, 8):.1%}} of the steps are late with eight, and {{any_hit(0.001, many):.2%}} with
# {{many:,}}.
#
# That also tells you what to watch. Look at the time that half of all steps exceed. A step is shorter than
# that only if each of its $n$ ranks is, so each rank must be shorter in a share $q$ of its steps for which
# $q^n$ is a half. With {{many:,}} ranks that makes a single one longer only once in
# {{1 / (1 - quantile_of_one(0.5, many)):,.0f}} steps: a rank looks perfect, and yet half of all steps wait. So watch
# a rank's tail, and not its mean. [proof](08_network_proof.ipynb#Jitter)

# %% tags=["holds"]
assert any_hit(0.001, 8) < 0.01 and any_hit(0.001, 8192) > 0.99, "the normal case"
assert all(abs(1 - any_hit(1 - q, n) - q**n) < 1e-9 for q in (0.5, 0.99) for n in (1, 8, 128)), (
    "only if each of its $n$ ranks is"
)
assert all(abs(any_hit(1 - quantile_of_one(0.5, n), n) - 0.5) < 1e-9 for n in (1, 8, many)), (
    "and yet half of all steps wait"
)

# %% [markdown]
# ## What if many send to one?
#
# Shards of a checkpoint, tokens for a popular expert, the root of a gather: now many senders have
# something for one receiver, at the same moment. Each of $N$ sends a burst at the full rate of its
# link, and the receiver's port passes on what one of them sends. While the bursts come in, one of
# them leaves, and $N - 1$ wait in the switch, in a buffer that has to hold them:
#
# $$\text{queue} = (N - 1) \cdot \text{burst}$$
#
# This is **incast**. What does the port do when its buffer is full, or about to be? Ethernet knows
# three answers, and RoCE, RDMA over Ethernet, can use the last two together.
#
# - **Drop.** The packets are lost, and the adapters send them again.
# - **Pause** (PFC, *priority flow control*). A port whose queue gets long stops whoever sends to
#   it, until the queue is short again. Nothing is lost, as long as there is room for what is on the
#   way when the pause is sent: the *headroom*.
# - **Mark** (ECN, *explicit congestion notification*). A switch marks packets when a queue grows,
#   the receiver tells the sender, and the sender slows down: **congestion control**, by DCQCN's
# rule on RoCE.
#
# Before you play them: which of the four settings will finish first? And who will stand still
# meanwhile?

# %% tags=["holds"]
assert all(incast_queue(n, 1e6, wire, wire) == (n - 1) * 1e6 for n in (1, 4, 64)), (
    "While the bursts come in"
)

# %%
explore_incast()

# %% [markdown]
# Did the drops surprise you? When the *last* packet of a burst is lost, no packet comes after it to
# show the gap, so its sender waits for its timer while the receiver's port stands idle. With pauses
# nothing is lost, and it is done as soon as the link can be, though the senders stand still for
# most of that time. And marks alone? Here marking comes too late to help: a burst is out in
# {{si(262144 / wire, "s")}}, gone before its sender hears of the first mark.
#
# ### Why not pause and be done?
#
# The headroom is one price. A pause takes the cable's delay $d$ to reach the sender, what was sent just
# before it arrives takes another $d$, and at either end a packet that has begun is finished first:
# $2\,d \cdot \text{rate} + 2$ packets. Each lossless class of each port keeps that free, so in a switch of
# $P$ ports and $C$ classes a queue pauses at its part of the buffer, one in $P \cdot C$, less its headroom.
#
# The other price is that a pause doesn't ask where a packet is going. It stops a whole *class* of them, and in that
# class wait packets for other receivers, too. A receiver that is slow stops its switch, which stops
# the next, and so on: three switches away, senders to somebody else stand still
# {{si(pause_spread(3, find("dcqcn").pfc_threshold, wire, 1e-6), "s")}} later. A broken adapter that pauses without end has stopped a whole network (Guo and
# others, 2016), so switches empty a queue that was paused for too long, losses and all. That's why
# both are used: marks for long flows, and pauses for what comes too fast for a mark.
# [proof](08_network_proof.ipynb#Mark-early,-pause-late)

# %% tags=["holds"]
from lightspeed_course.explorers.packets import BURST
from lightspeed_course.explorers.network import CONTROLS, DELAY, TIMERS, run

ran = {c: run(16, BURST, "ethernet_400g", 2e6, c, TIMERS[1]) for c in CONTROLS}
ideal = incast_time(16, BURST, wire) + 2 * DELAY
assert abs(pfc_headroom(wire, 1e-6, packet) - (2 * 1e-6 * wire + 2 * packet)) < 1e-6, "is finished first"
assert abs(pfc_threshold(12e6, 32, 8, 20e3) - (12e6 / (32 * 8) - 20e3)) < 1e-6, (
    "at its part of the buffer, one in $P \\cdot C$, less its headroom"
)
assert ran["nothing"].timeouts > 0 and ran["nothing"].end > 2 * ideal, "no packet comes after it"
assert (
    ran["pauses"].lost == 0 and ran["pauses"].end < 1.02 * ideal and ran["pauses"].paused > 0.5
), "With pauses nothing"
assert BURST == 262144 and ran["marks"].end > 0.99 * ran["nothing"].end, "comes too late to help"
assert pause_spread(3, find("dcqcn").pfc_threshold, wire, 1e-6) < 1e-3, "three switches away, senders to somebody else stand still"

# %% [markdown]
# ## Where should a job sit?
#
# Packets also wait where too many take the same way, so it matters which GPUs are neighbours. A
# node's adapters hang on *leaf* switches, and leaves hang on *spines* (a **leaf-spine** fabric,
# or **fat tree**); nodes that share leaves are
# a *pod*. Which GPUs should share a leaf? The obvious answer is: those of one rack. The better one
# is: those that talk to each other. In a ring between nodes, and in the all-reduce of two levels,
# GPU 3 of a node talks to GPU 3 of the next. So let GPU 3 of *every* node hang on leaf 3: a
# **rail**. Now rings stay under their leaf, however many nodes the leaf joins.

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
# An all-to-all doesn't stay there, because a token on a blue GPU may want an expert on an orange
# one of another node. Of all pairs in sixteen nodes of eight,
# {{alltoall_places(8, 16, 16).spine:.0%}} would cross a spine if each GPU sent through its own adapter.
# NCCL's *PXN*, which is {{nccl.pxn}} unless you switch it, helps: the blue GPU hands the token over NVLink
# to the orange one of its own node, which sends it along its rail, and inside a pod nothing crosses a
# spine any more. [proof](08_network_proof.ipynb#A-job-on-a-fabric)
#
# ### How large is a fabric, and what may it save?
#
# Count ports. A leaf of $k$ ports turns half of them down and half up, so that all who hang on it may send
# up at once. Each spine has $k$ ports too, so it joins $k$ leaves of $k/2$ links each: two layers join
# $k^2/2$ GPUs, {{fat_tree_hosts(64, 2):,.0f}} with sixty-four ports. In three layers a
# group of $k/2$ leaves, with $k^2/4$ GPUs, turns as many ports up, and the top joins $k$ such groups:
# $k^3/4$. If that is too dear, turn more ports down than up, $r$ to one. Such
# a leaf is **oversubscribed**: it needs fewer spines and cables, and what crosses the fabric's middle at once,
# its **bisection bandwidth**, falls to one in $r$. Who sends a share $x$ of its bytes beyond the leaf gets
# at most $\text{port}/(r\,x)$, as long as that is less than the port.
# [proof](08_network_proof.ipynb#Oversubscription)
#
# ### Hash and hope
#
# Between two leaves there are many ways, all alike. A switch picks one by a hash of addresses and
# ports (**ECMP**), so that the packets of a flow stay in order. A web server has thousands of small
# flows, and a hash spreads them well. A GPU has a few, each as fast as a link, and two that share
# one get half. Throw eight flows on eight links:

# %% tags=["holds"]
assert alltoall_places(8, 16, 16).spine > 0.5, "An all-to-all doesn't stay there"
assert alltoall_places(8, 16, 16, "pxn").spine == 0 and nccl.pxn == "on", (
    "along its rail, and inside a pod nothing crosses a spine"
)
assert [fat_tree_hosts(64, n) for n in (2, 3)] == [64**2 / 2, 64**3 / 4], "two layers join"
assert oversubscription(48, 16) == 3, "turn more ports down than up, $r$ to one"
assert abs(across_rate(50e9, 4, 0.75) - 50e9 / (4 * 0.75)) < 1, "gets at most $\\text{port}/(r\\,x)$"
assert ecmp_collisions(512, 8).fullest < 1.25 * 512 / 8, "and a hash spreads them well"
assert ecmp_collisions(2, 1).fullest == 2, "each as fast as a link, and two that share one get half"

# %%
explore_bins()

# %%
eight, cut, gain = ecmp_collisions(8, 8), ecmp_collisions(32, 8), number("meta_roce.ecmp_gain")
eight.none, eight.idle, eight.fullest

# %% [markdown]
# Of $L$ links, a given one is missed by one flow with a chance of $1 - 1/L$, and by all $F$ flows
# with $(1 - 1/L)^F$, so {{eight.idle:.0%}} of the links stay idle. The fullest has
# {{eight.fullest:.2f}} flows on average, and the job waits for that one. May every flow have a link of its
# own? The first one takes any, the next finds $L - 1$ of $L$ free, then $L - 2$, and so on; multiply these
# shares, and it happens in {{eight.none:.2%}} of throws. What helps is **adaptive routing**, where a switch chooses by how full a way is, or more flows than links: with
# each cut into four connections the fullest carries {{cut.fullest / 4:.2f}} times the mean, and
# Meta reports up to {{gain:.0%}} more performance for an all-reduce.

# %% tags=["holds"]
from math import factorial

assert abs(eight.none - factorial(8) / 8**8) < 1e-12 and eight.fullest > 2.5, "multiply these shares, and it happens in {{eight.none:.2%}} of throws"
assert cut.fullest / 4 < 0.75 * eight.fullest, "more flows than links"

# %% [markdown]
# ## The job: its own Tuesday
#
# On the offered machine of chapter 7, a cable begins to lose one packet in a hundred, too. A third
# of the speed gone? Work it out before you read on. Its port has
# {{si(link(job.NETWORK).bandwidth, "byte/s")}}, and the gradients take
# {{si(job.gradients().time, "s")}} of a step of {{si(job.step("split", job.OFFERED).time, "s")}};
# packets and round trip are as before.

# %%
port = link(job.NETWORK).bandwidth
step, spoilt = job.step("split", job.OFFERED).time, job.tuesday()
fast = job.step("split", job.OFFERED, job.BETTER).time
sums = job.gradients().time * port / link(job.BETTER).bandwidth
slowed = fast + sums * (1 / job.kept(job.BETTER) - 1)
hours = (spoilt / step - 1) * job.run("split", job.OFFERED) / 3600 * job.OFFERED
window_packets(port, job.WINDOW, job.PACKET), *(round(x, 3) for x in (job.kept(), step, spoilt))

# %% [markdown]
# Such a port has only {{window_packets(port, job.WINDOW, job.PACKET):.0f}} packets on the way, so
# the link keeps {{job.kept():.0%}} of its rate. The gradients need
# {{si(job.gradients().time / job.kept(), "s")}} now and the step {{si(spoilt, "s")}}:
# {{1 - step / spoilt:.0%}} of {{job.OFFERED}} GPUs, or {{hours:,.0f}} GPU-hours over the run, for
# one cable. With ports four times as fast the link would keep {{job.kept(job.BETTER):.0%}}, and the
# step still lose only {{1 - fast / slowed:.0%}}.
#
# So why a third on that Tuesday and a tenth here? A slow port has a small window, so it loses less.
# And behind a fast one the gradients are a small part of the step, so losing most of the line costs
# little. The job of the story had the worst of both: a fast line, and a quarter of its step on it.

# %% tags=["holds"]
assert 3 < job.kept() / job.kept(job.BETTER) * 2 < 6, "so it loses less"
assert 0.25 < 1 - before / now < 0.4 and 0.08 < 1 - step / spoilt < 0.13, "a tenth here"
assert abs(traffic / before - 0.25) < 1e-9, "a quarter of its step"

# %% [markdown]
# ## Try it
#
# In this picture a job fills two pods of four nodes, and its ring is crossed: a wrong list of
# adapters in `NCCL_IB_HCA` has each GPU send to another rail. Mend it, and guess first how much
# still crosses a spine. Then scatter the job over pods, take uplinks away, and give each flow more
# connections. The purple link is the one that everybody waits for.

# %%
from lightspeed_course.explorers.network import explore_fabric

explore_fabric()

# %% [markdown]
# ## Which counter would have told?
#
# You can't ask a cable for its loss, but you can read counters twice, and see which grew.
#
# | counter | where | what it says |
# |---|---|---|
# | `out_of_sequence` | adapter | gaps: a loss, or a route that reorders |
# | `rx_discards_phy` | adapter, switch | a queue was full |
# | `rx_prio3_pause`, `tx_prio3_pause` | adapter, switch | who is stopped, and who stops |
# | `np_ecn_marked_roce_packets` | adapter | marks |
# | `symbol_error` | port | a line that goes bad |
#
# ## Decide

# %%
ask("network.goodput", seed="first")

# %%
ask("network.rail_spine", seed="page")

# %%
ask("network.ecmp_idle", seed="page")

# %%
ask("network.first_counter", seed="page")

# %% tags=["setup"]
from lightspeed_course.explorers.network import SIZE, carried, named

rings = [carried("rail", "ring", "scattered", k, 1, "one connection") for k in (2, 8)]
pair, whole = (one.time * one.fabric.bandwidth / SIZE for one in rings)
where = named(rings[1])

# %% [markdown]
# ## The answer
#
# **How can one cable do that?** The job computes for {{si(compute, "s")}} a step and communicates
# for {{si(traffic, "s")}}. One link of one ring began to lose {{lossy:.0%}} of its packets, and its
# adapter goes back n with {{window:.0f}} packets on the way, so the link kept
# {{go_back_n(lossy, window):.0%}} of its rate. All rings that pass it and all ranks that wait got
# slower with it.
#
# **Why did the network team find nothing?** They looked for ports that are down and for queues that
# overflow. The cable was up, and its losses were bit errors, which no queue notices. They show at
# the end of the cable that receives, as `symbol_error`, and in the adapters behind it, which count
# gaps.
#
# **How would you find it on Tuesday?** Run the collective that is slow on halves of the hosts, then
# on halves of the slow half: six runs find one of {{job.OFFERED // job.PER_NODE}} hosts. Then
# compare pairs: if one node's are low, it is its adapter or its cable, and if all are, it is the
# socket of chapter 7. And if all pairs are sound and the whole is slow? Then the fault lies where pairs
# don't meet: flows that a hash put on one uplink, or uplinks that are missing. In the last picture a
# scattered ring shows it. Over two nodes it is as fast as its adapters, and over eight it takes
# {{whole:.0f}} times as long, because {{where}} has to carry more than one flow. So run it on more and
# more nodes, pod by pod, and read the counters of the leaves' uplinks.
#
# **What would have made it harmless?** Selective repeat: the step would have taken
# {{si(compute + traffic / selective_repeat(lossy), "s")}}.

# %% tags=["holds"]
from random import Random

from lightspeed_course.incidents.training import read_pairs, tell_pairs
from lightspeed_course.incidents.training_job import Job

assert job.OFFERED // job.PER_NODE <= 2**6, "six runs find"
assert compute + traffic / selective_repeat(lossy) < 1.01 * before, "step would have taken"
sound_job = dict(model="llama3_70b", gpu="h100_sxm", network="infiniband_ndr", nodes=8)
sound_job |= dict(micro_batches=16, sequence=2048)
crossed, cable = Job(**sound_job, socket=0.5), Job(**sound_job, adapter=(3, 0.5))
told = [tell_pairs(each, read_pairs(each, Random(1))) for each in (crossed, cable)]
assert told == ["all pairs are slow", "one node is slow"], "if one node's are low, it is its adapter or its cable, and if all are"
assert abs(pair - 1) < 1e-9 and whole > 1.9 and where.startswith("a link"), (
    "Over two nodes it is as fast as its adapters, and over eight it takes {{whole:.0f}} times as long"
)

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - With go back n, a lost packet costs a window, so the faster the line, the more a loss costs.
# - Everybody waits for the last.
# - A collective is as fast as its fullest link: keep rings on rails, and flows many.

# %% tags=["holds"]
assert go_back_n(0.01, window_packets(2 * wire, round_trip, packet)) < go_back_n(0.01, window), (
    "the faster the line"
)

# %% [markdown] tags=["card"]
# | symbol | meaning | unit | for the job |
# |---|---|---|---|
# | $W$ = rate × round trip ÷ packet | window: packets on the way | packets | {{window_packets(port, job.WINDOW, job.PACKET):.0f}} |
# | $1/(1 + \frac{p}{1-p} W)$ | goodput of go back n | – | {{job.kept():.0%}} |
# | $(N-1) \cdot$ burst | queue of an incast | byte | {{si(incast_queue(job.gradients().ranks, job.gradients().size, port, port), "byte")}}, if a group sent its gradients to one switch port at once |
# | $1 - (1-p)^n$ | any of $n$ is late | – | {{any_hit(0.001, job.OFFERED):.0%}}, if each is in one step of a thousand |
# | $(1 - 1/L)^F$ | links that a hash leaves idle | – | {{ecmp_collisions(8, 8).idle:.0%}} of a node's eight |

# %% [markdown]
# ## In your own framework
#
# PyTorch can keep a record of each rank's last collectives, its *flight recorder*, and write it
# down when one of them times out. Then the rank that is missing from the last one is the rank that
# everybody waits for:
#
# ```sh
# TORCH_FR_BUFFER_SIZE=$ENTRIES TORCH_FR_DUMP_ON_TIMEOUT=true torchrun ... train.py
# torchfrtrace FOLDER    # one file a rank; which collective is it that not all have joined?
# ```

# %% [markdown]
# ## One reading
#
# A job misses its plan. Somebody takes nodes two at a time and has each pair add up four gigabytes.
# You know what a bad cable would do to this table, and what a wrong socket would.

# %%
bench("08")

# %% [markdown]
# ## Exercises
#
# [The exercises](../exercises/08_network.ipynb) have more: goodput as a function, a threshold, a
# fabric within a budget. [The proof page](08_network_proof.ipynb) holds the laws against what was
# published, brings a bad cable to your own machine, and has a checklist for large runs. Next:
# [serving](09_serving.ipynb).
#
# - Guo et al., *RDMA over Commodity Ethernet at Scale* (2016): pauses, storms, deadlocks, met in
#   production.
# - Mittal et al., *Revisiting Network Support for RDMA* (2018): selective repeat instead of pauses.
# - Dean and Barroso, *The Tail at Scale* (2013): many wait for the last.
