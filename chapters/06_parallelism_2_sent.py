# %% [markdown]
# # 6.2. Parallelism: what must be sent
#
# The job fits now. Its states are shared out over eight nodes, nothing runs out of memory, and
# nothing is broken. Yet each GPU does little more than a third of the work that it could do alone.
# What is it waiting for?
#
# To find out, we'll follow what a GPU has to send, when it has to be there, and what the GPU can
# compute meanwhile. Forty minutes; you need chapter 2 and [lesson 6.1](06_parallelism.ipynb). The
# evidence is on the [proof page](06_parallelism_proof.ipynb).

# %% tags=["holds"]
from lightspeed_course import job
from lightspeed_models.training_runs import fit_share

assert 1 / 3 < job.step().mfu / fit_share() < 0.4, "little more than a third of"

# %% tags=["setup"]
from lightspeed.catalog import accelerator, link
from lightspeed.parallel import *
from lightspeed.roofline import transfer_time
from lightspeed_models.llm import decoder, model_activation_bytes
from lightspeed_course import Axis, Bars, Chart, ask, bench, beside, figure, job, predict, reveal, si
from lightspeed_course import table

# %%
job.sheet(until="06.2")

# %% [markdown]
# **First, one from lesson 6.1.** What a GPU doesn't hold, it has to be sent.

# %%
ask("parallelism.zero_states", seed="again")

# %% [markdown]
# ## Guess first
#
# The first suspect is what you changed last. With ZeRO-3 the states fit, but a GPU no longer has the
# weights that it computes with, so it *gathers* them from the others each time, and *scatters* its
# gradients to those who own the weights.

# %%
predict("parallelism.zero3_accumulated", ..., seed="chapter")

# %% [markdown]
# ## How do GPUs add up what they found?
#
# Begin with the code that most people begin with, `DistributedDataParallel(model)`, *DDP* for short.
# Each GPU has a copy of the model and sees samples of its own, so it comes out of its backward pass
# with gradients of its own. If each stepped by those alone, the copies would drift apart. So before
# each step of the optimizer the gradients are added up over all GPUs, and since no single GPU should do
# all the adding, everybody adds a share. Here are four of them, after the first half of that work:

# %%
from lightspeed_course.explorers.sums import explore_sum

explore_sum()

# %% [markdown]
# Step back once, and each row has one colour: a whole gradient, but only of that GPU's own samples.
# Then each GPU collects *one* quarter from the others, adds it up and drops the rest. That is a
# **reduce-scatter**. Step on, and the finished quarters are copied to everybody, an **all-gather**.
# The two together are an **all-reduce**. Each half sends three quarters of the gradients; with $n$
# GPUs it's $(n - 1)/n$ of them.
#
# ## When do they leave?
#
# Not at the end. The backward pass begins at the last layer, whose gradients are finished while all
# other layers are still to come. So DDP collects them in *buckets* (`bucket_cap_mb`), and each bucket
# leaves as soon as it is full, while the GPU goes on with the layer before. Here is a backward pass of
# eight of our layers, with one bucket for each, over ports four times as fast as ours:

# %% tags=["holds"]
assert data_parallel_bytes(1, 4, gradient_bytes=1) / 2 == 3 / 4, (
    "sends three quarters of the gradients"
)

# %% tags=["figure"]
from lightspeed_models.training_runs import fit_share

back, late = 2 * job.layer(job.SEQUENCE).math / fit_share(), {}
layers = range(8)
ready = [(n + 1) * back for n in layers]
for key in (job.NETWORK, job.BETTER):
    each = transfer_time(data_parallel_bytes(job.layer_bytes() / 2, job.GPUS), 8 * link(key).bandwidth)
    leaves = [ready[0]]
    for done in ready[1:]:
        leaves.append(max(done, leaves[-1] + each))
    late[key] = each, leaves, leaves[-1] + each
each, leaves, end = late[job.BETTER]
tracks = ["backward pass", "sums, by buckets", "sums, at the end"]
names = [f"layer {8 - n}" for n in layers]
figure(
    Chart(
        Axis("time since the backward pass began", "s", domain=(0, 8 * (back + each))),
        Axis(scale="category", categories=tracks),
        [
            Bars([tracks[0]] * 8, ready, [r - back for r in ready], "computes", names, "blue", 0.6),
            Bars([tracks[1]] * 8, [t + each for t in leaves], leaves, "all-reduce", names, "orange", 0.6),
            Bars([tracks[2]], [8 * (back + each)], [8 * back], color="orange", width=0.6),
        ],
        height=200,
    ),
    caption=f"Buckets leave while the pass goes on, so only the last of them sticks out, {si(each, 's', 2)}."
    f" Sent in one piece, the sums would take {si(8 * each, 's', 2)} more.",
    alt="Three rows over time. Above, eight blue bars, from layer 8 to layer 1. Below it an orange bar"
    " for each, a layer late, the last of which ends shortly after the blue ones. In the third row one"
    " long orange bar begins only when the blue ones have ended.",
)  # fmt: skip

# %% tags=["holds"]
assert abs(end - 8 * back - each) < 1e-12, "only the last of them sticks out"

# %% [markdown]
# On our own ports a bucket takes longer than the layer behind which it should hide, so the sums pile up
# and the pass takes {{late[job.NETWORK][2] / (8 * back):.1f}} times as long. What can you do without
# buying anything? Send less often. A step may add up several *micro-batches* before it sums:
#
# $$\text{global batch} = \text{micro-batch} \times \text{accumulation} \times \text{replicas}$$
#
# Left alone, DDP sums after each of them; inside `with model.no_sync():` it doesn't, and you leave that
# for the last one only. But all of this needs a whole model on each GPU, and ours doesn't fit. So ZeRO
# takes the two halves apart.

# %% tags=["holds"]
assert late[job.NETWORK][0] > back and late[job.NETWORK][2] > 2 * 8 * back, (
    "a bucket takes longer than the layer behind which it should hide"
)
assert job.states() / job.GPUS < accelerator(job.GPU).hbm_capacity < job.states(), "needs a whole model on each GPU, and ours doesn't fit"

# %% [markdown]
# ## What does ZeRO send?
#
# In stages 1 and 2 each GPU updates its quarter of the weights and nothing else, so the second half
# carries new weights instead of summed gradients. From stage 2 on it keeps no more than its quarter
# of the gradients, either, so it has to scatter them in each micro-batch. In stage 3 it even
# *stores* only its quarter of the weights, so before it can compute a layer it must gather the
# rest, and it drops that again afterwards, or the memory would be gone. It does so in every forward
# pass and in every backward pass. Follow one layer:

# %% tags=["holds"]
assert data_parallel_bytes(1, 4, 3, 1, 1, 1) - data_parallel_bytes(1, 4, 1, 1, 1, 1) == 3 / 4, (
    "It does so in every forward pass"
)

# %%
from lightspeed_course.explorers.shards import explore_shards

explore_shards()

# %% [markdown]
# You can count it in quarters. A scatter sends three, and so does a gather, so plain data
# parallelism sends six. Stage 3 gathers twice and scatters once *for each micro-batch*: nine
# quarters for one micro-batch, eighteen for two. In general, with $G$ bytes of gradients, $W$ of
# weights and $m$ micro-batches, each of $n$ GPUs sends $(n - 1)/n$ times
#
# $$2G \;\text{(plain)} \qquad G + W \;\text{(stage 1)}$$
#
# $$mG + W \;\text{(stage 2)} \qquad mG + 2mW \;\text{(stage 3)}$$
#
# %% tags=["holds"]
assert [4 * data_parallel_bytes(1, 4, s, m, 1, 1) for s, m in ((0, 1), (3, 1), (3, 2))] == [
    6,
    9,
    18,
], "twice and scatters once"

# %%
reveal("parallelism.zero3_accumulated", seed="chapter")

# %% [markdown]
# With a single micro-batch, stage 3 sends one and a half times what plain data parallelism sends,
# which is why it's often called cheap. But your job adds up several, and while plain data
# parallelism still sends its gradients once a step, stage 3 sends everything again for each of
# them. That is also why stage 1, and not 3, is used beside a pipeline, which has many.
#
# ## Which switch is that?
#
# PyTorch has no stages, it has switches. Here is what each of them sends in a step of three
# micro-batches on {{job.GPUS}} ranks, in copies of the model, and what it keeps whole to save that:

# %% tags=["holds"]
assert 2 * data_parallel_bytes(8e9, 64, 3) == 3 * data_parallel_bytes(8e9, 64), (
    "what plain data parallelism sends"
)
assert all(data_parallel_bytes(1, 4, 3) > data_parallel_bytes(1, 4, s) for s in range(3)), (
    "what plain data parallelism sends"
)
assert data_parallel_bytes(8e9, 64, 0, 8) == data_parallel_bytes(8e9, 64), "gradients once a step"
assert data_parallel_bytes(8e9, 64, 3, 8) == 8 * data_parallel_bytes(8e9, 64, 3), (
    "gradients once a step"
)

# %% tags=["figure"]
from lightspeed.collectives import busbw_factor

m, n, node = 3, job.GPUS, job.PER_NODE
once, near = busbw_factor("all_gather", n), busbw_factor("all_gather", node)
sharded = {again: hybrid_sharded_bytes(1, n, 1, again, m, 1, 1).inside for again in (n, 1, node)}
hybrid = hybrid_sharded_bytes(1, node, n // node, node, m, 1, 1)
switches = [  # what is written, its law, bytes in copies of the model, what stays whole
    ["DDP(model)", "$2mG$", m * 2 * once, "weights, gradients"],
    ["… no_sync() but for the last", "$2G$: stage 0", data_parallel_bytes(1, n, 0, m, 1, 1), "weights, gradients"],
    ["fully_shard", "$mG + 2mW$: stage 3", sharded[n], "the layer at work"],
    ["… reshard_after_forward=False", "$mG + mW$", sharded[1], "weights, until the backward pass is over"],
    ["… reshard_after_forward=8", "the same as stage 3, one of two gathers inside the node", sharded[node], "an eighth of the weights"],
    ["… set_requires_gradient_sync(last)", "$G + 2mW$", sharded[n] - (m - 1) * once, "gradients"],
    ["… set_reshard_after_backward(last)", "$mG + W$: stage 2", data_parallel_bytes(1, n, 2, m, 1, 1), "weights"],
    ["… both of these", "$G + W$: stage 1", data_parallel_bytes(1, n, 1, m, 1, 1), "weights, gradients"],
    ["… on a mesh of 8 copies × 8 shards", "$mG + 2mW$ inside, $2mG/8$ across", hybrid.inside + m * hybrid.across, "an eighth of the states, always"],
    ["… set_requires_all_reduce(last)", "$mG + 2mW$ inside, $2G/8$ across", hybrid.inside + hybrid.across, "the same, and an eighth of the gradients"],
    ["… reduce_dtype=torch.float32", "$2mG + 2mW$", hybrid_sharded_bytes(1, n, 1, n, m, 1, 2).inside, "the layer at work"],
]  # fmt: skip
table(
    [[f"`{what}`", law, f"{sent:.2f}", kept] for what, law, sent, kept in switches],
    ["you write", "a rank sends, times (n − 1)/n", "copies sent", "stays whole on each GPU"],
    caption="Weights and gradients in two bytes. Three dots stand for the call above them, DDP or"
    " fully_shard, to which the line adds; `last` is true in the last micro-batch. Both set_reshard lines"
    " keep the weights after the forward pass, too. Each line was counted in torch itself.",
)

# %% tags=["holds"]
import re
from lightspeed_course.in_torch import records

recorded = re.findall(r"sends ([\d.]+), holds", records()["06_switches"]["output"])
assert len(recorded) == len(switches) and all(
    abs(float(count) - row[2]) < 0.001 for count, row in zip(recorded, switches)
), "Each line was counted in torch itself"

# %% [markdown]
# ([The script](06_parallelism_proof.ipynb#The-switches,-counted) runs without a second GPU.) Three
# lines are worth knowing by heart. `reshard_after_forward=False`, which the older FSDP calls
# `SHARD_GRAD_OP`, is not yet stage 2: it drops the weights after each backward pass and gathers them
# again. Summing in fp32 makes gradients twice as wide. And on a two-dimensional mesh, *hybrid sharding*
# (**HSDP**), each node has a copy of all states, so little of it has to cross the network: a
# shard of the
# gradients. What you pay is memory, since the states are shared by {{node}} GPUs and not by {{n}}.
#
# Still, bytes aren't seconds. While a GPU sends, it also computes. When is that enough?

# %% tags=["holds"]
assert switches[3][2] > switches[6][2] and switches[3][1] == "$mG + mW$", "is not yet stage 2"
assert hybrid.across < hybrid.inside / 10, "little of it has to cross the network"

# %% [markdown]
# ## How many tokens pay for a weight's journey?
#
# Ask it about ZeRO-3, which PyTorch calls FSDP, and about a single weight. In
# the forward pass the weight takes part in two FLOPs for each token that passes it, and two bytes
# have to be gathered. In the backward pass both are doubled: four FLOPs, and four bytes, of which
# two bring the weight back and two send its gradient away (four, if it is summed in fp32). Let $C$ be
# the peak of a GPU and $R$ the bytes a second that reach it. With $t$ tokens on the GPU, arithmetic
# takes longer than the journey if
#
# $$\frac{2t}{C} > \frac{2}{R} \qquad\text{so}\qquad t > \frac{C}{R}$$
#
# The size of the model has cancelled, and so has the number of GPUs. All that counts is how many
# tokens meet a weight while it is there.
#
# In chapter 2 you found that the {{job.SEQUENCE:,}} tokens of this job keep a GPU busy with one
# layer for {{si(job.layer(job.SEQUENCE).math, "s")}}. Here is that very layer, coming in over the
# network:

# %%
from lightspeed_course.explorers.layer_clock import explore_layer_clock

explore_layer_clock()

# %% [markdown]
# Look at the blank: four fifths of the time you paid for, if the GPU ran at its peak. (It doesn't,
# and we'll correct for that at the end.) The layer takes {{si(job.layer_arrives(), "s")}} to
# arrive, and no faster GPU shortens that. What can you do? Drag the dot to the right until the
# blank has gone, and read the number of tokens. You'll find {{job.tokens_to_hide():,.0f}}, just as
# the law says for the eight ports of a node together. (With $E$ experts, of which a token uses $k$,
# it takes $E/k$ times as many.)

# %% tags=["holds"]
clock = job.layer_arrives(), job.layer(job.SEQUENCE).math
assert 0.78 < 1 - clock[1] / clock[0] < 0.81, "four fifths of the time"
assert data_parallel_tokens(9e14, 5e10, experts_over_active=4) == 4 * data_parallel_tokens(
    9e14, 5e10
), "token uses"

# %% tags=["setup"]
llama, h100 = decoder(job.MODEL), accelerator(job.GPU)
peak, inside, large = h100.bf16, h100.link_bandwidth, 16384
ports = [8 * link(name).bandwidth for name in (job.NETWORK, job.BETTER)]
ways_in, *ways_out = (tensor_parallel_ways(llama.mlp.hidden, peak, w) for w in (inside, *ports))
alone_in = data_parallel_tokens(peak, ports[0] / 8)

# %% [markdown]
# ## Whose rate is R?
#
# The picture has a second control, because "the network" could mean several things. Let $R$ be the
# rate of *one* port. Then it depends on who is in the group that shares the weights:
#
# | the group | who brings a weight into the node | a GPU needs, each time |
# |---|---|---|
# | one GPU of each node | its own port, all of it | $C/R$ = {{alone_in:,.0f}} tokens |
# | whole nodes, as in our job | eight ports an eighth each, and NVLink hands them round | $C/8R$ = {{job.tokens_to_hide():,.0f}} |
# | one GPU of each node, beside tensor parallelism of eight | its own port, but just the eighth that it needs | $C/R$, of tokens that all eight share: $C/8R$ for each |
# | one node (hybrid) | nobody: NVLink alone | $C/L$ = {{data_parallel_tokens(peak, inside):,.0f}}, and once a step $C/8R$ |
#
# Look at the third line. Each GPU needs just an eighth of a gathered weight, so that comes in an eighth of
# the time. But it also does just an eighth of the arithmetic on a token, so the micro-batch needs $C/R$ tokens
# as before. Only now it is the micro-batch of eight GPUs together, which makes $C/8R$ for each of them, and
# tensor parallelism sends just as much between nodes as whole nodes do. What it
# saves is memory, and it lets you get away with a smaller batch, since a micro-batch has at least one
# sequence: on {{large:,}} GPUs, as Llama 3 had, one sequence of {{job.LONG:,}} tokens for each GPU makes
# a step of {{si(large * job.LONG, "token")}}, one for each node {{si(large / 8 * job.LONG, "token")}}.
#
# And the fourth: only gradients cross the network, once, behind the last micro-batch's backward pass,
# and our {{job.SEQUENCE:,}} tokens would nearly hide the rest behind NVLink. Why not do that? Because a
# node's eight GPUs would hold {{si(job.states() / 8, "byte")}} of states each. Lesson 6.1 forbids it
# here, and allows it for a model of a tenth of the size.
#
# So how do you split a layer?

# %% tags=["holds"]
assert data_parallel_tokens(peak, 5e10, tensor=8) == data_parallel_tokens(peak, 8 * 5e10), (
    "sends just as much between"
)
assert (
    abs(
        model_activation_bytes(llama, job.LONG, tensor=8, split="tensor+sequence")
        * 8
        / model_activation_bytes(llama, job.LONG)
        - 1
    )
    < 1e-9
), "saves is memory"
across = 2 * 2 * llama.parameters / 8 / (ports[0] / 8)  # gradients both ways, an eighth of them
last = 4 * job.tokens_to_hide() * llama.parameters / peak
assert abs(last / across - 1) < 0.01, "once a step"
assert 0.9 < job.SEQUENCE / data_parallel_tokens(peak, inside) < 1, "would nearly hide the rest"
assert job.states() / 8 > h100.hbm_capacity > job.states() / 80, "a model of a tenth of the size"

# %% [markdown]
# ## Can two GPUs share one product?
#
# Take an MLP: a matrix `up`, ReLU, a matrix `down`. You may cut each of them by columns or by rows.
# Here is one of the two ways, rows first, in the moment in which the GPUs have to talk. Before you set
# the picture to the other, decide: would they talk less, and where?

# %%
from lightspeed_course.explorers.split_mlp import explore_split_mlp

explore_split_mlp()

# %% [markdown]
# Follow the blue row. The blue columns of `up` make the blue hidden columns, complete. ReLU works
# on each number by itself, so it needs nobody else, and the blue hidden columns need just the blue
# rows of `down`. What comes out is a part of every number of the result. **Columns first, rows
# second: nothing is sent between the two, and one all-reduce comes after.** Rows first, ReLU
# needs whole sums, so they talk before it as well.
#
# Attention is even friendlier, since it is already cut into heads: give each GPU some of them, with
# their columns of Q, K and V and their rows of the output matrix. No head reads another's K or V,
# so nothing is gathered, and the parts are added once, after the output matrix. (Where several
# heads share K and V, cut between such groups. With more GPUs than groups, some of them hold
# copies.) The backward pass walks the same picture from right to left and adds up the gradient of
# the *input*.
#
# Now count. A layer has two blocks, and each sums once forward and once backward. That makes four
# all-reduces (six, if the forward pass is run again), each over the $tD$ activations of $t$ tokens.
# ([Proof](06_parallelism_proof.ipynb#The-parts-of-a-cut-product), to the last number)
#
# ## What does that cost?
#
# Let $L$ be the rate of NVLink, and take the MLP forward: a GPU of $Y$ does $4tDF/Y$ FLOPs, and its
# all-reduce sends the $2tD$ bytes of the result nearly twice. So arithmetic takes longer if
#
# $$\frac{4tDF}{Y\,C} > \frac{4tD}{L} \qquad\text{so}\qquad Y < \frac{F\,L}{C}$$
#
# This time the *tokens* have cancelled. A larger batch doesn't help; a wider model or a faster link
# does. For an MLP of two matrices as wide as Llama 3 70B's it allows {{ways_in:.0f}} ways on the
# NVLink of H100s (and half as many again for the three that Llama has), so the eight of a node are
# fine. But a group of sixteen spans two nodes. Even with all eight ports of a node, the limit would
# be {{ways_out[0]:.1f}} ways on our cheap network, and {{ways_out[1]:.0f}} on one four times as
# fast. Hugging Face tried it, on hundreds of plans: with sixteen ways in place of eight, the best
# that they found ran at about
# [half the speed](06_parallelism_proof.ipynb#Eight-ways-and-sixteen,-measured).
# ([Other chips](06_parallelism_proof.ipynb#Compute-bound-or-communication-bound?))

# %% tags=["holds"]
assert ways_in > 8, "the eight of a node"
assert max(ways_out) < 16 and ways_out[0] < 8, "the limit would be"
assert abs(ways_out[1] / ways_out[0] - 4) < 1e-9, "on one four times as fast"

# %% [markdown]
# ## What hides, and what stands in the way?
#
# There is a catch. All of these conditions compare two clocks as if they ran side by side. For FSDP
# they do, because the next layer can be fetched while this one is computed. But the all-reduce of a
# tensor group brings what the very next product needs, so everybody waits for it. Here is one layer
# forward, split over eight GPUs, in time:

# %% tags=["figure"]
tokens = job.SEQUENCE
part = job.layer(tokens).math / 8
sent = tensor_parallel_bytes(tokens, llama.width, 8) / 4
links = {"NVLink": inside, "a port each": link(job.NETWORK).bandwidth}
sums = {name: transfer_time(sent, rate) for name, rate in links.items()}
attention = llama.attention.matrices / (llama.matrices / llama.depth)
blocks = [part * attention, part * (1 - attention)]
at, starts, ends, added = [], [], [], []
for name, took in sums.items():
    now = 0.0
    for block in blocks:
        at.append(name), starts.append(now), ends.append(now + block)
        now += block + took
        added.append((name, now - took, now))
whole = {name: part + 2 * took for name, took in sums.items()}
figure(
    Chart(
        Axis("time of a layer's forward pass", "s", domain=(0, max(whole.values()))),
        Axis(scale="category", categories=list(sums)),
        [
            Bars(at, ends, starts, "its part of the products", color="blue", width=0.6),
            Bars(*zip(*((n, b, a) for n, a, b in added)), "all-reduce", color="orange", width=0.6),
        ],
        height=190,
    ),
    caption="Blue waits for orange, and orange for blue: nothing overlaps. On NVLink the sums take "
    f"{si(2 * sums['NVLink'] / whole['NVLink'], '%', 2)} of a layer, over a port for each GPU "
    f"{si(2 * sums['a port each'] / whole['a port each'], '%', 2)}.",
    alt="Two timelines of the same layer. On NVLink it is over almost at once; over a port for each"
    " GPU two long all-reduces fill the time, with slivers of arithmetic before each.",
)

# %% tags=["holds"]
assert whole["NVLink"] < whole["a port each"] / 10, "On NVLink it is over almost at once"
assert sums["a port each"] > 10 * part, "with slivers of arithmetic before each"

# %% [markdown]
# What decides, then, is the **critical path**: the longest chain of things that each have to wait
# for
# the one before. Make something faster that isn't on it, and the step takes just as long. A profile
# that adds up the time of each kind of work can't show you the path, because it doesn't know what
# waits for what. ([An example](06_parallelism_proof.ipynb#The-critical-path-of-a-training-step), in
# which the network should be mended although the GPUs are busier.)
#
# Sequence parallelism, which shares out norms
# and dropout too, replaces each all-reduce by a reduce-scatter and an all-gather. Those send the same
# bytes, but they don't come free: a GPU keeps only its share of what was gathered, and gathers it
# once more in the backward pass. That makes ten halves of an all-reduce in a layer where there were
# eight. The two new ones can hide behind a product. They are what the saved memory costs.

# %% tags=["holds"]
assert (
    8 * tensor_parallel_bytes(64, 64, 8, split="tensor+sequence")
    == 10 * tensor_parallel_bytes(64, 64, 8)
), "ten halves of an all-reduce"

# %% [markdown]
# ## Who should sit next to whom?
#
# Now we can place the groups, which frameworks call a **device mesh**. Here is a split of our {{job.GPUS}} GPUs that uses everything so far,
# and a *pipeline*, which gives each GPU some of the layers: a stage just hands its activations on
# to the next stage, once for each micro-batch. The black GPU has three groups to talk to:

# %%
from lightspeed_course.explorers.node_map import explore_map

explore_map()

# %% [markdown]
# Before you number the ranks pipeline first, with the second control, guess what happens to the
# seconds of the tensor group. The bytes stay what they were, but now the busiest talk goes over the
# slowest wires. That's why frameworks number ranks tensor first: **what is sent most often, and
# can't hide, goes on the nearest links.**

# %% tags=["holds"]
from lightspeed_course.explorers import node_map

sizes = {axis: size for axis, (size, _) in node_map.traffic("tensor first").items()}
assert max(sizes, key=sizes.get) == "tensor" and sizes["tensor"] > 100 * sizes["data"], (
    "nearest links"
)
assert all(
    node_map.traffic("tensor first")[axis][0] == node_map.traffic("pipeline first")[axis][0]
    for axis in sizes
), "stay what they were"
assert (
    node_map.traffic("tensor first")["tensor"][1] > node_map.traffic("pipeline first")["tensor"][1]
), "over the slowest wires"

# %% tags=["setup"]
spread = job.step()
alone = spread.mfu / fit_share()

# %% [markdown]
# ## The answer
#
# **What does it wait for?** Weights. They come in again for each forward and each backward pass of
# each micro-batch. To hide their journey on this network, a GPU at its full peak would need
# {{job.tokens_to_hide():,.0f}} tokens each time, and even at its real pace it would need more than
# the {{job.SEQUENCE:,}} that it has. So it does {{alone:.0%}} of what it can do alone, and
# {{spread.mfu:.1%}} of its peak. (From a step model that is
# [off by a tenth](06_parallelism_proof.ipynb#Check:-against-published-runs) in the median.)
#
# Why does the picture show a fifth, and not {{alone:.0%}}? It divides by the peak, and a GPU alone
# doesn't run at its peak, either: its products reach {{fit_share():.0%}} of it. So the arithmetic
# takes longer than drawn, and less of the time is blank.
#
# **What becomes of the week?** A step takes {{si(spread.time, "s")}}, so the
# {{job.TOKENS / 1e9:.0f}} billion tokens take {{job.run() / 86400:.1f}} days in place of the
# {{job.planned() / 86400:.1f}} that were planned.
#
# **Would more nodes help?** You'd be done sooner, but each new GPU would wait as long as the old
# ones, because it would gather as many weights for as few tokens. You need more tokens for each
# gather, or to leave the weights where they are. [Lesson 6.3](06_parallelism_3_waits.ipynb) does
# both, and looks at the price.

# %% tags=["holds"]
assert 1 / 3 < alone < 0.4, "of what it can do alone"
assert job.tokens_to_hide() * fit_share() > job.SEQUENCE, "it would need more than"
fifth = job.layer(job.SEQUENCE).math / job.layer_arrives()
assert abs(spread.mfu - fifth) < 0.02, "a fifth, and not"
assert abs(job.step("spread", 128).mfu / spread.mfu - 1) < 0.01, "as long as the old ones"
assert spread.largest_loss == "data" and all(
    data_parallel_bytes(1, 4, 3, m, 1, 1) - data_parallel_bytes(1, 4, 2, m, 1, 1) == (2 * m - 1) * 3 / 4
    for m in (1, 2, 8)
), "for each forward and each backward pass of each micro-batch"
assert job.run() > 1.5 * job.planned(), "were planned"

# %% [markdown]
# ## Decide

# %%
ask("parallelism.zero3_bytes", seed="chapter")

# %%
ask("parallelism.critical_tokens", seed="desk")

# %%
ask("parallelism.attention_forward", seed="chapter")

# %%
ask("parallelism.tensor_over_network", seed="chapter")

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - A gathered weight must meet enough tokens to pay for its journey.
# - Once messages are long, a larger batch doesn't make tensor parallelism cheaper, a faster link does:
#   keep it inside the node.
# - Send often over near links, seldom over far ones.

# %% [markdown] tags=["card"]
# | formula | meaning | unit | for the job |
# |---|---|---|---|
# | $2G$, $G + W$, $mG + W$, $mG + 2mW$ | sent in a step by stage 0 to 3 of ZeRO, times $(n - 1)/n$ | byte | {{si(data_parallel_bytes(llama.parameters, 64, 3, 8), "byte")}} |
# | $t > C/8R$ | tokens of a GPU that hide FSDP over whole nodes | token | {{job.tokens_to_hide():,.0f}}; it has {{job.SEQUENCE:,}} |
# | $Y < FL/C$ | ways of tensor parallelism on a link of rate $L$ | | {{ways_in:.0f}} on NVLink, {{ways_out[0]:.1f}} over the node's ports |
# | $4 \cdot 2tD \cdot 2(Y - 1)/Y$ | sent in a layer by a tensor group of $Y$ | byte | {{si(tensor_parallel_bytes(job.SEQUENCE, llama.width, 8), "byte")}} |

# %% [markdown]
# ## In your own framework
#
# Count tensor parallelism's collectives yourself, without a second GPU: a *fake* process group takes
# part in them and sends nothing. Cut by columns and then rows, an MLP sums once forward and once
# backward, so a layer with its attention makes four; cut the other way it gathers as well.

# %% tags=["figure"]
beside("06_tensor")

# %% [markdown]
# ## One reading
#
# A job misses its plan, and somebody runs nccl-tests over all nodes. It stops the job for an hour, so
# you want to know beforehand whom it can clear.

# %%
bench("06.2")

# %% [markdown]
# ## Exercises, proof, next
#
# [The exercises](../exercises/06_parallelism.ipynb) ask for the tokens, ways and seconds of other
# machines. Next: [who waits for whom](06_parallelism_3_waits.ipynb).
#
# ## Further reading
#
# - Rajbhandari et al., *ZeRO* (2020): the stages, and what they send.
# - Shoeybi et al., *Megatron-LM* (2019): columns first, rows second.
# - Austin et al., *How to Scale Your Model* (2025): the conditions of this lesson, for TPUs and
#   GPUs.
