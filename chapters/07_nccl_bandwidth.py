# %% [markdown]
# # 7. NCCL bandwidth
#
# Somebody rented a hundred and twenty-five nodes of eight GPUs, ran the usual test, and asked about
# one line of what it printed: sixteen gigabytes, all-reduced at an *algbw* far below what the
# network is sold for. Is that normal, or is something broken?
#
# The answer that circulates says: normal, since it's two fifths of the link, and the rest is lost
# in the many steps. Is that so? To find out, you need to know what the number counts, what a link
# can carry, and how long the steps take. Thirty-five minutes; you need chapter 1, chapter 2's habit
# of asking what bounds a time and, for the job, chapter 6. The evidence is on the
# [proof page](07_nccl_bandwidth_proof.ipynb).

# %% tags=["setup"]
from lightspeed.catalog import find, link, number
from lightspeed.collectives import *
from lightspeed_course import ask, bench, beside, figure, job, predict, reveal, si, table
from lightspeed_course import Axis, Boxes, Chart, Line, Points, Text
from lightspeed_course.explorers.allreduce import explore_all_reduce, explore_switch, explore_tree

# %%
told, per_node, nodes = find("efa_note"), 8, 125
message, asked, n = float(told.message), float(told.algbw_125), per_node * nodes
efa, nvlink = link("efa_p5"), link("nvlink4")
smallest, factor, each = 1024, 2, 1  # assumed: bytes to begin with, growth, GPUs of a process

# %% [markdown]
# Here is what the line said: {{nodes}} nodes, {{n:,}} GPUs, {{si(message, "byte")}} in
# {{si(message / asked, "s")}}, algbw {{si(asked, "byte/s")}}. And here is what the sales page says:
# {{si(efa.bandwidth_per_node, "byte/s")}} a node. (Amazon calls these nodes p5, and their network
# EFA.)

# %%
job.sheet(until="07")

# %% [markdown]
# **First, one from lesson 1.** Here you'll compare a measured rate with such a port.

# %%
ask("numbers.infiniband_ndr", seed="again")

# %%
predict("nccl.share_of_line", ..., seed="said")

# %% [markdown]
# ## What must a GPU send?
#
# An *all-reduce* adds up what all GPUs hold and gives each of them the sum. It is one of the
# *collectives*, the messages that a group exchanges together, and NCCL is NVIDIA's library of them.
#
# Begin with two GPUs and a link between them. Each holds a buffer of $S$ bytes, say its gradients,
# and both need the sum. They could simply swap buffers, and both add. Or they share the work: each
# sends the half that the other will add, and then sends back the half that it has added itself.
# Either way each of them sends $S$ bytes, so for two GPUs the bytes don't say how to do it.
#
# With four it does. Put them in a circle, each with a link to its right neighbour. If whole buffers
# went round, each GPU would send three of them. So cut the buffer into four chunks, and share the
# adding again: in each step every GPU passes one chunk to the right, each a different one. At first
# the receiver adds what arrives to its own; later the finished sums go round. Pick one chunk, and
# follow it on its way.

# %% tags=["holds"]
assert busbw_factor("all_reduce", 2) == 1, "each of them sends"
assert busbw_factor("all_reduce", 4) < 4 - 1, "each GPU would send three"

# %%
explore_all_reduce()

# %% [markdown]
# After three steps of adding, each GPU has one finished chunk, and that half alone is called a
# *reduce-scatter*. Three steps of handing round give all chunks to all: an *all-gather*. With $n$
# GPUs each half takes $n - 1$ steps, and a step carries a chunk of $S/n$ bytes, so
#
# $$\text{sent by each} = 2\,(n - 1)\,\frac{S}{n} = \frac{2\,(n - 1)}{n}\,S$$
#
# For two GPUs that is $S$, as it should be. **The longer the ring, the more steps it takes, but the
# bytes that a GPU sends stay below twice its buffer.** Keep these two apart, because the whole
# chapter depends on it. [proof](07_nccl_bandwidth_proof.ipynb#The-ring-on-real-arrays)

# %% tags=["holds"]
assert busbw_factor("all_reduce", 2) == 1, "For two GPUs that is"
assert (
    ring_steps("all_reduce", 9) > ring_steps("all_reduce", 8)
    and busbw_factor("all_reduce", 10**6) < 2
), "sends stay below twice"
assert ring_steps("all_reduce", 4) == 2 * (4 - 1), "After three steps of adding"

# %% [markdown]
# ## What do the two columns count?
#
# The test is `all_reduce_perf` of NVIDIA's *nccl-tests*, a program in C that needs MPI and no PyTorch.
# One process a GPU (`-g`), sizes that double (`-f`) from a kilobyte to the one in question:
#
# ```sh
# mpirun -np {{n}} -N {{per_node}} ./build/all_reduce_perf -b {{smallest}} -e {{message:.0f}} -f {{factor}} -g {{each}}
# ```
#
# It times a call of NCCL and prints a line a size, such as this one, made up for the ring of four above.
# Sizes are in bytes and times in µs.

# %%
size, rate, ranks = 8e9, 200e9, 4  # assumed
time, bus = 1e6 * size / rate, busbw("all_reduce", ranks, rate) / 1e9
print("#   size  count  type  redop  root  time  algbw  busbw  #wrong")
print(f"{size:.0f} {size / 4:.0f} float sum -1 {time:.1f} {rate / 1e9:.2f} {bus:.2f} 0")

# %% [markdown]
# Two of the columns are rates in GB/s. **Algbw** is the buffer over the time, $S/t$: divide your
# gradients by it and you know how long you wait. But you can't compare it with any wire, because
# $S$ is not what crosses a wire.
#
# We have just counted what does, and the count holds for more than a ring. Take a single element.
# Its $n$ summands start on $n$ ranks (NCCL's word for its processes, one a GPU), and to bring them
# together takes $n - 1$ transfers, in whatever order. Then the sum is on one rank and the other
# $n - 1$ need it: as many transfers again. So each algorithm in which ranks do the adding must move
# at least $2\,(n - 1)\,S$ in all. Multiply algbw by each rank's part, $2\,(n - 1)/n$, and you have
# **busbw**: the rate at which a rank sends, and at the same time receives. *That* number you may
# compare with the wire. Other collectives have factors of their own: that of a gather, a scatter or
# an all-to-all is half of this one, because they make one pass in place of two, and a broadcast's
# is one.
#
# Here eight ranks share a node. A ring visits them one after another, and only the last sends out
# of it, so a node sends what one rank sends:

# %% tags=["holds"]
assert (
    all(
        abs(2 * busbw_factor(name, k) - busbw_factor("all_reduce", k)) < 1e-12
        for name in ("all_gather", "reduce_scatter", "alltoall")
        for k in (2, 8, 1000)
    )
    and busbw_factor("broadcast", 8) == busbw_factor("reduce", 8) == 1
), "that of a gather, a scatter or an all-to-all is half of this one"
assert all(abs(busbw_factor("all_reduce", k) * k - 2 * (k - 1)) < 1e-9 for k in (2, 8, 1000)), (
    "must move at least $2\\,(n - 1)\\,S$ in all"
)

# %%
busbw("all_reduce", n, asked)

# %%
reveal("nccl.share_of_line", seed="said")

# %% [markdown]
# So the nodes use {{busbw("all_reduce", n, asked) / efa.bandwidth_per_node:.0%}} of their line. The
# answer that circulates took the algbw instead, found {{asked / efa.bandwidth_per_node:.0%}}, and
# had to explain a gap that is mostly not there: nearly every byte of the caller's buffer crosses
# the wire twice. Here is the same transfer for the caller and for the wire.

# %% tags=["holds"]
assert (
    busbw("all_reduce", n, asked) - asked > (efa.bandwidth_per_node - asked) / 2
    and 1.99 < busbw_factor("all_reduce", n) < 2
), "mostly not there"

# %%
from lightspeed_course.explorers.wire import explore_wire

explore_wire()

# %% [markdown]
# ## Which wire?
#
# It is easy to compare with the wrong link, and each of these mistakes costs you a factor of two or
# eight.
#
# - **One direction or both.** A rank sends to one neighbour while it receives from the other, and
#   busbw counts one direction. Data sheets print NVLink with both:
#   {{si(nvlink.bandwidth_bidirectional, "byte/s")}}, of which {{si(nvlink.bandwidth, "byte/s")}} is
#   yours.
# - **A GPU or a node.** NVLink is a GPU's own, but a network is sold by the node or by the port.
#   NCCL cuts the buffer among many rings, each a **channel** through another adapter, so all
# adapters together
#   carry what *one* rank sends: compare with the *node's* rate.
# - **Bits or bytes.** Adapters are named in bits: a port of four hundred gigabits is
#   {{si(link("infiniband_ndr").bandwidth, "byte/s")}}.
#
# A rate can also really be low, because between a GPU and its adapter stands a computer. A server
# has two processors, each in a *socket*, a **NUMA** node, of its own with half of the GPUs and
# adapters around it,
# and one bridge between the two. If processes sit on the wrong socket and data passes through their
# memory, or if adapters were listed in the wrong order, every byte crosses that bridge on its way
# out, and all eight GPUs share it.

# %% tags=["holds"]
assert (
    nvlink.bandwidth_bidirectional == 2 * nvlink.bandwidth
    and efa.bandwidth_per_node == per_node * efa.bandwidth
    and link("infiniband_ndr").bandwidth * 8 == 400e9
), "two or eight"

# %% tags=["figure"]
sides, marks = (0.0, 5.2), []  # where each socket begins
for side, x in enumerate(sides):
    marks += [
        Boxes([x], [x + 4.2], [0.0], [3.9], color="grey", soft=True),
        Boxes([x + 1.2 - side], [x + 4.0 - side], [1.7], [2.3], "", [f"processor {side}"], "purple"),
        Boxes([x + 0.2 + k for k in range(4)], [x + 1.0 + k for k in range(4)], [3.0] * 4, [3.6] * 4,
              "", [f"GPU {4 * side + k}" for k in range(4)], "blue"),
        Boxes([x + 0.2 + k for k in range(4)], [x + 1.0 + k for k in range(4)], [0.4] * 4, [1.0] * 4,
              "", [f"port {4 * side + k}" for k in range(4)], "green"),
        Text(x + 2.1, 4.1, f"socket {side}", "grey"),
    ]  # fmt: skip
marks += [
    Boxes([4.2], [5.2], [1.8], [2.2], color="grey"),
    Text(4.7, 1.5, "bridge"),
    Line([0.4, 0.4], [3.0, 1.0], color="green", width=3, arrow=True),
    Line([3.6, 3.6, 5.6, 5.6], [3.0, 2.0, 2.0, 1.0], color="orange", width=3, arrow=True),
    Text(0.2, 0.12, "as it should be: PIX", "green", "start"),
    Text(5.4, 0.12, "over the bridge: SYS", "orange", "start"),
]
figure(
    Chart(Axis(domain=(-0.2, 9.6)), Axis(domain=(-0.2, 4.4)), marks, height=300, bare=True),
    caption="A server from above. GPU 0 sends through the port beside it, GPU 3 through one on the other"
    " socket. Were all eight to do as GPU 3 does, they'd share the bridge.",
    alt="Two grey fields, the sockets, each with four GPUs above, a processor in the middle and four ports"
    " below. A green arrow goes straight down from GPU 0, past the processor; an orange one from GPU 3 turns at the processor,"
    " crosses the bridge and ends at a port of the other socket.",
)

# %% [markdown]
# You'll recognise this fault by how even it is: every pair of
# nodes is slow by the same share, while the test inside a node is in perfect health, because NVLink
# never goes near the sockets. A bad cable would slow only the pairs of one node.
# `nvidia-smi topo -m` prints `SYS` for a GPU and an adapter on different sockets, and `PIX` or
# `PXB` where all is well and the adapter reads the GPU's memory itself (**GPUDirect RDMA**).

# %% tags=["holds"]
from random import Random

from lightspeed_course.incidents.training import read_inside, read_pairs, tell_pairs
from lightspeed_course.incidents.training_job import Job

sound_job = dict(model="llama3_70b", gpu="h100_sxm", network="infiniband_ndr", nodes=8)
sound_job |= dict(micro_batches=16, sequence=2048)
crossed, cable = Job(**sound_job, socket=0.5), Job(**sound_job, adapter=(3, 0.5))
assert tell_pairs(crossed, read_pairs(crossed, Random(1))) == "all pairs are slow", "every pair of nodes is slow by the same share"
assert read_inside(crossed, Random(1)) == read_inside(cable, Random(1)), "in perfect health"
assert tell_pairs(cable, read_pairs(cable, Random(1))) == "one node is slow", "A bad cable would slow only the pairs of one node"

# %% [markdown]
# ## How long must it take?
#
# So far we counted bytes. A message also costs a time that doesn't depend on its size, because
# something has to be launched, handed over and noticed. Call it $\alpha$, for each step, and $W$
# the rate at which a rank sends. Then a ring takes
#
# $$t_\text{ring} = 2\,(n - 1)\left(\alpha + \frac{S}{n\,W}\right)$$
#
# which is the **alpha-beta model**, *α–β*, with $1/W$ for β. For a long message the bytes decide,
# for a short one, which is **latency-bound**, the steps, and half of the best rate is reached
# where both are equal, at $S = n\,\alpha\,W$. So
# **the longer the ring, the larger the message that it needs.** If each step of the question's ring
# cost the {{si(number("infiniband_ndr.nccl_step_simple"), "s")}} that NCCL's tables charge over
# InfiniBand, half of the rate would need
# {{si(n * number("infiniband_ndr.nccl_step_simple") * efa.bandwidth_per_node, "byte")}}: a buffer
# of a few megabytes has no chance. Is there anything with fewer steps?
#
# ### A tree: few steps, whole buffers
#
# Let pairs add up first, then pairs of pairs, and send the sum back down the same way.

# %% tags=["holds"]
assert (
    abs(
        ring_time(8 * 5.0 * 3.0, 8, 3.0, 5.0)
        - 2 * bandwidth_bound("all_reduce", 8 * 5.0 * 3.0, 8, 3.0)
    )
    < 1e-9
), "where both are equal"
assert n * number("infiniband_ndr.nccl_step_simple") * efa.bandwidth_per_node > 100e6, "no chance"

# %%
explore_tree()

# %% [markdown]
# Eight GPUs are done in six rounds, where a ring needs fourteen. But each message is a whole
# buffer, and in each round at least half of the GPUs send nothing, so a tree takes
# $2 \log_2 n\,(\alpha + S/W)$: good for short messages, bad for long ones. Cut the buffer into
# chunks that follow each other, half of them along a second tree that puts the idle GPUs to work:
# that takes few steps *and* nearly the ring's bytes. No algorithm wins at every size, which is
# why NCCL has several, and protocols of its own for short messages (LL, LL128) and long ones
# (Simple). [proof](07_nccl_bandwidth_proof.ipynb#Between-ring-and-tree)
#
# ### Two levels
#
# Inside a node a GPU sends {{si(nvlink.bandwidth, "byte/s")}}, outside
# {{si(efa.bandwidth, "byte/s")}}. So do the work in three stages (a **hierarchical all-reduce**): a reduce-scatter inside the node
# leaves each of its eight GPUs with an eighth of the buffer, added up; an all-reduce adds that
# eighth to those of the GPUs in the same place of other nodes; and a gather inside brings the
# eighths together. The node now counts as *one* rank: of $k$ nodes each must send
# $2\,(k - 1)/k \cdot S$, and no algorithm gets below that while the network doesn't add. For few
# nodes that is less than busbw says, and for a hundred the two hardly differ. Here are public logs of the question's network, and one of another
# (Oracle's, with A100), by busbw and by the node's own count:

# %% tags=["holds"]
from lightspeed_models.simulators.allreduce import states

assert len(states("tree", 8)) - 1 == 6 and len(states("ring", 8)) - 1 == 14, "where a ring needs"
assert all(2 * len(s.arrived) <= 8 for s in states("tree", 8)), "half of the GPUs send"
assert tree_time(0.0, 8, 1.0, 1.0) == 6 and tree_time(1.0, 8, 1.0) == 6, "so a tree takes"
assert double_tree_time(0.0, 512, 1.0, 1.0) < 0.05 * ring_time(
    0.0, 512, 1.0, 1.0
) and double_tree_time(1.0, 512, 1.0) < 1.01 * ring_time(1.0, 512, 1.0), "half of them along a second tree that puts the idle GPUs to work: that takes few steps *and* nearly the ring's bytes"
laws = (ring_time, double_tree_time, recursive_doubling_time)
quickest = {min(laws, key=lambda law: law(s, 512, 50e9, 5e-6)) for s in (1e3, 16e9)}
assert len(quickest) > 1, "No algorithm wins"
few, many = (
    hierarchical_time(1.0, 8, k, nvlink.bandwidth, efa.bandwidth).across * efa.bandwidth_per_node
    for k in (2, 125)
)
assert abs(few - 1) < 1e-9 < busbw_factor("all_reduce", 16) - few, "nodes that is less than busbw says"
assert 0.99 < many / busbw_factor("all_reduce", n) < 1, "for a hundred the two hardly differ"

# %% tags=["figure"]
from lightspeed_models.nccl_fit import measurements
from lightspeed_tools.nccl.published import public_runs

fabric = 2 * 8 * link("ethernet_100g").bandwidth  # sixteen ports
(oracle,) = (r for r in public_runs() if r["source"].endswith("20_oci_a100_2nodes.log"))
logs = [("A100, Oracle", 2, oracle["size"] / oracle["us"] * 1e6, fabric)]
for k in (2, 4, 32):
    of_k = [r for r in measurements() if r.series == "p5_all_reduce" and r.nodes == k]
    row = max(of_k, key=lambda r: r.size)
    logs.append(("H100, EFA", k, row.size / row.time, efa.bandwidth_per_node))
node_own = [rate * busbw_factor("all_reduce", k) / line for _, k, rate, line in logs]
by_busbw = [busbw("all_reduce", 8 * k, rate) / line for _, k, rate, line in logs]
table(
    [[what, k, si(rate, "byte/s"), f"{bus:.0%}", f"{own:.0%}"]
     for (what, k, rate, _), bus, own in zip(logs, by_busbw, node_own)],
    ["log", "nodes", "algbw", "busbw, of the node's line", "node's own count, of it"],
    caption="With two nodes busbw is more than the line can carry, so it isn't what crosses it.",
)  # fmt: skip

# %% tags=["holds"]
assert all(bus > 1 > own for (_, k, *_), bus, own in zip(logs, by_busbw, node_own) if k == 2), (
    "With two nodes busbw is more than the line can carry"
)

# %% [markdown]
# So where busbw stands above the line, nothing is wrong and nothing is a record: multiply algbw by
# $2\,(k - 1)/k$ instead, which is exactly one for two nodes.
#
# ### What if the switch did the adding?
#
# So far the GPUs did it. Some InfiniBand switches (**SHARP**), and **NVSwitch** from the H100 on
# (**NVLS**),
# add up what passes through them. Here is SHARP's way:

# %%
explore_switch()

# %% [markdown]
# Two rounds, however many GPUs there are, and each rank sends its buffer once where a large ring
# would send it nearly twice. NVLink's way costs a little more. There each of $n$ GPUs reads the sum of
# *its* $n$th through the switch, and then stores it to all, so $S + S/n$ leave it:
# {{si(nvls_time(1.0, 8, 1.0), digits=3)}} buffers on eight. nccl-tests knows neither and multiplies by
# the usual factor, so with NVLS it may print a busbw of up to $2(n - 1)/(n + 1)$ times the link, on
# eight {{busbw("all_reduce", 8, algbw(1.0, nvls_time(1.0, 8, 1.0))):.2f}} times. A busbw
# *above* the link is neither an error nor a miracle: the unit
# is used outside its range. To read a rate of the wire, set `NCCL_ALGO=Ring`.
# [proof](07_nccl_bandwidth_proof.ipynb#A-switch-that-adds,-measured)
#
# None of this helps an *all-to-all*, which gives each rank the piece that every other one has for
# it. Each byte is meant for one receiver, so nothing can be combined and no algorithm saves a byte.
# Between nodes each GPU's bytes get one adapter's worth of the network, be it the GPU's own or, as NCCL
# does by default (*PXN*, chapter 8), that of the receiver's rail. Which is why it looks so slow beside
# an all-reduce on the same machine, and experts stay inside a node while they can.

# %% tags=["holds"]
from lightspeed_models.simulators.allreduce import states

assert all(
    len(states("switch", k)) == 3 and max(states("switch", k)[-1].sent) == 1 for k in (2, 8, 64)
), "sends its buffer once"
assert 1.99 < busbw_factor("all_reduce", 1000) < 2, "would send it nearly twice"
assert all(
    abs(busbw("all_reduce", k, algbw(1.0, nvls_time(1.0, k, 1.0))) - 2 * (k - 1) / (k + 1)) < 1e-12
    and in_network_time(1.0, 1.0) < nvls_time(1.0, k, 1.0) < ring_time(1.0, k, 1.0)
    for k in (4, 8, 72)
), "a busbw of up to $2(n - 1)/(n + 1)$ times the link"
assert (
    busbw("all_reduce", 8, algbw(1.0, nvls_time(1.0, 8, nvlink.bandwidth))) > nvlink.bandwidth
), "above"
assert (
    efa.bandwidth / (1 - 1 / nodes) < efa.bandwidth_per_node / busbw_factor("all_reduce", n) / 3
), "looks so slow beside"

# %% [markdown]
# ## The job: is its log normal, and what of the offer?
#
# The split that mended the week puts the same piece of the model on one GPU of every fourth node.
# On the {{job.OFFERED // job.PER_NODE}} nodes of the offered machine that makes
# {{job.gradients().ranks}} ranks, which add up their gradients together, each behind a port of its
# own. From there somebody sends you this line, with its last column cut off:

# %%
grads = job.gradients()
print("#   size  time (ms)  algbw (GB/s)")
print(f"{grads.size:.0f}  {1e3 * grads.time:.0f}  {grads.algbw / 1e9:.2f}")

# %% [markdown]
# An algbw of {{si(grads.algbw, "byte/s")}} on a port of
# {{si(link(job.NETWORK).bandwidth, "byte/s")}} looks like half. But {{grads.ranks}} ranks make a
# factor of {{busbw_factor("all_reduce", grads.ranks):.3f}}, so the missing busbw is
# {{si(grads.busbw, "byte/s")}}: the port is full, and nothing is broken. This time the wire is one
# *port*, since one rank stands behind it.
#
# Full is not the same as fast, though. On {{job.GPUS}} GPUs such a group had two ranks, and sent
# its gradients once, in a step of {{si(job.step("split").time, "s")}}. On {{job.OFFERED}} it sends
# them nearly twice, {{si(grads.time, "s")}} in a step of
# {{si(job.step("split", job.OFFERED).time, "s")}}. Beside the waiting of the pipeline, it's the
# only part of the step that doesn't shrink with more GPUs. Here is the share that chapter 3 asked
# for and couldn't know.

# %% tags=["holds"]
assert abs(grads.busbw / link(job.NETWORK).bandwidth - 1) < 1e-9, "nothing is broken"
assert 0.5 < grads.algbw / link(job.NETWORK).bandwidth < 0.55, "looks like half"
assert busbw_factor("all_reduce", job.GPUS // 32) == 1 < 1.8 < busbw_factor("all_reduce", 16), (
    "nearly twice"
)
now, then = job.step("split", job.OFFERED), job.step("split")
stays = {name for name, time in then.terms.items() if now.terms[name] > time / 2 > 0}
assert stays == {"data", "bubble", "pipeline"}, "only part of the step"

# %% tags=["figure"]
counts = [job.GPUS * 2**k for k in range(4)]
marks = [Line(counts, [c / job.GPUS for c in counts], "ideal", "grey", dash=True)]
for key, color in ((job.NETWORK, "orange"), (job.BETTER, "blue")):
    gains = [job.step("split", network=key).time / job.step("split", c, key).time for c in counts]
    marks += [
        Line(counts, gains, si(8 * link(key).bandwidth, "bit/s"), color),
        Points(counts, gains, color=color),
    ]
figure(
    Chart(
        Axis("GPUs", "", "log", ticks=[(c, str(c)) for c in counts]),
        Axis("times as fast as on the first", "", "log", ticks=(1, 2, 4, 8)),
        marks,
        height=300,
    ),
    caption="The picture of chapter 3 with its missing line: how much faster the job gets, with the "
    "ports that it has and with ports four times as fast.",
    alt="Speedup over GPUs on logarithmic axes. Both lines bend away from the ideal, that of the "
    "slow ports to about six at the end, that of the fast ones to about seven.",
)

# %% tags=["holds"]
assert all(a.y[-1] < 0.9 * marks[0].y[-1] for a in (marks[1], marks[3])), "bend away"
assert 5.5 < marks[1].y[-1] < 6.5 < marks[3].y[-1] < 7.5, "about seven"
assert link(job.BETTER).bandwidth == 4 * link(job.NETWORK).bandwidth, "four times as fast"

# %% [markdown]
# Eight times the GPUs make the job {{job.speedup():.2f}} times as fast, so {{job.share():.1%}} of
# it doesn't shrink, and a day would have allowed {{job.share_for_a_day():.1%}}. The offer isn't
# "tomorrow" but about {{job.run("split", job.OFFERED) / 86400:.1f}} days, for {{job.money():.2f}}
# times the money. With ports four times as fast the share would be {{job.share(job.BETTER):.2%}},
# and the job done in {{job.run("split", job.OFFERED, job.BETTER) / 86400:.1f}} days.
#
# Would you promise a day, then? The model of the step is off by a tenth in the median, and that is
# more than you'd have to spare. So do what chapter 3 did, and rent an hour on {{counts[0]}},
# {{counts[1]}} and {{counts[2]}} GPUs first. There's another way out, too: let the batch grow with
# the machine. Then nearly all of the speedup stays, as long as the model learns as much from a
# token of a larger batch.

# %% tags=["holds"]
from statistics import median

from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, machine
from lightspeed_models.training_runs import fit_share, predicted, training_runs
from lightspeed_models.training_step import step

from lightspeed.scaling import amdahl_speedup

assert abs(amdahl_speedup(8, serial=job.share()) - job.speedup()) < 1e-6, (
    "Eight times the GPUs make the job {{job.speedup():.2f}} times as fast, so {{job.share():.1%}} of it doesn't shrink"
)
assert job.share() > job.share_for_a_day() > job.share(job.BETTER), "a day would have allowed"
far = median(abs(predicted(r).time / r.time - 1) for r in training_runs().values())
fast, slow = (job.run("split", job.OFFERED, key) for key in (job.BETTER, job.NETWORK))
assert 0.08 < far < 0.13 and 86400 - fast < far * slow, "off by a tenth in the median, and that is more than you'd have to spare"
grown = Plan(job.OFFERED // 32, job.TENSOR, job.PIPELINE, micro_batches=256, stage=1)
cluster = machine(job.GPU, job.NETWORK, 8, fit_share())
assert (
    0.95
    < job.step("split").time / step(decoder(job.MODEL), job.SEQUENCE, grown, cluster).time
    < 1
), "nearly all of the speedup stays"

# %% [markdown]
# ## Try it
#
# The picture opens with the question of this chapter, at line rate, and takes the quickest of its
# algorithms, a pair of trees. Halve the nodes: what will change, the share of the steps or that of
# the bytes? Guess, then move. Then make the message a thousand times smaller, and guess again.

# %%
from lightspeed_course.explorers.nccl import explore

explore()

# %% [markdown]
# ## Decide

# %%
ask("nccl.one_direction", seed="chapter")

# %%
ask("nccl.ranks_from_ratio", seed="read")

# %%
ask("nccl.possible_algbw", seed="chapter")

# %%
ask("nccl.which_test", seed="page")

# %% [markdown]
# ## The answer
#
# First the time of the ring's steps, and the best share of the line in public runs:

# %%
from lightspeed_models.nccl_fit import measurements
from lightspeed_models.nccl_tuner import NET_OVERHEAD, PLATEAU, ring_latency

steps = ring_latency(n, nodes, net_overhead=NET_OVERHEAD["amd"], plateau=PLATEAU)
runs = [r for r in measurements() if r.series == "p5_all_reduce" and r.nodes > 2]
best = max(busbw("all_reduce", r.n, r.size / r.time) for r in runs) / efa.bandwidth_per_node
si(steps, "s"), round(best, 2)

# %% tags=["figure"]
from lightspeed_models.nccl_fit import predict as expected_by_model
from lightspeed_tools.nccl.published import spread

expected = expected_by_model("all_reduce", message, n, nodes, "p5").algbw
low = expected / spread("large", "several nodes")
rates = {
    "the line in question": asked,
    "a model that was fitted to public runs": expected,
    "nine public runs in ten stay above": low,
}
table(
    [
        [name, si(rate, "byte/s"), si(busbw("all_reduce", n, rate), "byte/s")]
        + [f"{busbw('all_reduce', n, rate) / efa.bandwidth_per_node:.0%}"]
        for name, rate in rates.items()
    ],
    ["", "algbw", "busbw", "of the line"],
)

# %% [markdown]
# **Is that normal?** Yes. The caller saw {{si(asked, "byte/s")}}, but each rank sent
# {{busbw_factor("all_reduce", n):.3f}} bytes for each byte of the buffer, so the nodes used
# {{busbw("all_reduce", n, asked) / efa.bandwidth_per_node:.0%}} of their line. That doesn't even
# depend on the ring: where the GPUs of a node add first, the node still has to send
# {{busbw_factor("all_reduce", nodes):.3f}} bytes for each. The best public run of this network on
# more than two nodes uses {{best:.0%}}, which is a little more.
# [proof](07_nccl_bandwidth_proof.ipynb#Beside-public-runs)
#
# **Are the many steps to blame?** In part, if the run was a ring. Then the tables in NCCL's source
# charge {{si(steps, "s")}} of the {{si(message / asked, "s")}} for them, about a fifth. In a tree
# they'd be next to nothing, and the run doesn't say which it was.
# [proof](07_nccl_bandwidth_proof.ipynb#What-NCCL-itself-believes)
#
# **What would not be normal?** A model fitted to public runs expects {{si(expected, "byte/s")}},
# and nine runs of ten stay above {{si(low, "byte/s")}}. Below that you'd look for a cause. For a
# small message far less is normal, with the same nodes, so never judge a rate without its size.
# [proof](07_nccl_bandwidth_proof.ipynb#Check:-models-against-measurements)
#
# You don't have to do this by hand: `lightspeed nccl report FILE` reads what nccl-tests printed,
# judges it by these laws, and says what to look at first.

# %% tags=["holds"]
from lightspeed_models.nccl_tuner import tree_latency

assert busbw("all_reduce", n, asked) < efa.bandwidth_per_node, "used"
assert busbw("all_reduce", n, asked) / efa.bandwidth_per_node < best < 1, "on more than two nodes uses {{best:.0%}}, which is a little more"
assert 0.17 < steps / (message / asked) < 0.21, "about a fifth"
assert tree_latency(n, nodes) < 0.01 * message / asked, "they'd be next to nothing"
assert low < expected < asked, "nine runs of ten stay above"
assert all(expected_by_model("all_reduce", 2.0**k, n, nodes, "p5").algbw < 0.5 * expected for k in (24, 27)), (
    "far less is normal, with the same nodes, so never judge a rate without its size"
)

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - Algbw is what the caller waits for; busbw is what each wire of a ring carries while the ranks do
#   the adding.
# - Each GPU of a ring sends at most twice the buffer, however long the ring, but its steps grow with
#   its length.
# - Compare busbw with one direction of the right link, in bytes, at a size like yours.

# %% tags=["holds"]
assert all(
    busbw_factor("all_reduce", k) < 2 and ring_steps("all_reduce", 4 * k) > 4 * ring_steps("all_reduce", k)
    for k in (2, 16, 1000)
), "Each GPU of a ring sends at most twice the buffer, however long the ring, but its steps grow with its length"

# %%
port, hop = link(job.NETWORK).bandwidth, number("infiniband_ndr.nccl_step_simple")
sent = busbw_factor("all_reduce", grads.ranks) * grads.size

# %% [markdown] tags=["card"]
# | symbol | meaning | unit | for the job |
# |---|---|---|---|
# | $2\,(n-1)/n \cdot S$ | what each rank sends, busbw over algbw times $S$ | byte | {{si(sent, "byte")}} |
# | $2\,(n-1)\,(\alpha + S/(n\,W))$ | a ring | s | {{si(ring_time(grads.size, grads.ranks, port, hop), "s")}} |
# | $2 \log_2 n\,(\alpha + S/W)$ | a tree | s | {{si(tree_time(grads.size, grads.ranks, port, hop), "s")}} |
# | $n\,\alpha\,W$ | message at which a ring has half of its rate | byte | {{si(grads.ranks * hop * port, "byte")}} |

# %% [markdown]
# ## In your own framework
#
# The two columns from ten lines of torch, over gloo where there is no GPU. Look at how the rate
# grows with the message: the first row is nothing but steps.

# %% tags=["figure"]
beside("07_busbw")

# %% [markdown]
# ## One reading
#
# A job misses its plan, and its gradients take longer than they should. You have the log of an
# all-reduce over all nodes. Whom does it clear?

# %%
bench("07")

# %% [markdown]
# ## Exercises
#
# [The exercises](../exercises/07_nccl_bandwidth.ipynb) have such questions with other numbers.
# [The proof page](07_nccl_bandwidth_proof.ipynb) holds the laws against public measurements,
# measures on your own machine, and rebuts what others claimed. Next: [chapter 8](08_network.ipynb),
# where the network misbehaves.
#
# - NVIDIA, *nccl-tests*, `doc/PERFORMANCE.md`: where the factors are defined.
# - Thakur, Rabenseifner and Gropp, *Optimization of Collective Communication Operations in MPICH*
#   (2005): the classic on which algorithm when.
# - Bekman, *Machine Learning Engineering*, the network chapter: many of the measurements that the
#   proof page uses.
