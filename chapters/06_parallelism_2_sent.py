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

# %%
job.sheet(until="06.2")

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
# Each GPU has seen different samples, so it comes out of its backward pass with gradients of its own.
# If each stepped by those alone, the copies of the model would drift apart. So before each step of
# the optimizer the gradients are added up over all GPUs, and since no single GPU should do all the
# adding, everybody adds a share. Here are four of them, after the first half of that work:

# %%
from lightspeed_course.explorers.sums import explore_sum

explore_sum()

# %% [markdown]
# Step back once, and each row has one colour: a whole gradient, but only of that GPU's own samples.
# Then each GPU collects *one* quarter from the others, adds it up and drops the rest. That is a
# **reduce-scatter**. Step on, and the finished quarters are copied to everybody, an **all-gather**.
# The two together are an **all-reduce**, and plain data parallelism does one for each optimizer
# step. Each half sends three quarters of the gradients; with $n$ GPUs it's $(n - 1)/n$ of them.
#
# Why look at the halves? Because ZeRO takes them apart.
#
# ## What does ZeRO send?
#
# In stages 1 and 2 each GPU updates its quarter of the weights and nothing else, so the second half
# carries new weights instead of summed gradients. From stage 2 on it keeps no more than its quarter
# of the gradients, either, so it has to scatter them in each micro-batch. In stage 3 it even
# *stores* only its quarter of the weights, so before it can compute a layer it must gather the
# rest, and it drops that again afterwards, or the memory would be gone. It does so in every forward
# pass and in every backward pass. Follow one layer:

# %% tags=["holds"]
assert data_parallel_bytes(1, 4, gradient_bytes=1) / 2 == 3 / 4, (
    "sends three quarters of the gradients"
)
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
# These are the stages of ZeRO's paper, and of DeepSpeed. PyTorch's `FULL_SHARD` is stage 3, but its
# `SHARD_GRAD_OP` is not quite stage 2. After each backward pass it drops the weights, and before the
# next forward pass it gathers them again, so it sends $mG + mW$. (The end of this page counts it.)

# %% tags=["holds"]
assert [
    4 * hybrid_sharded_bytes(1, 4, 1, again, 2, 1, 1).inside / 3 for again in (4, 1)
] == [4 * data_parallel_bytes(1, 4, 3, 2, 1, 1) / 3, 4 * (2 + 2) * 3 / 4 / 3], "is not quite stage 2"
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
# them. (Stage 2 is in between: with three micro-batches it sends twice as much as plain.) You can
# trade that back for memory: frameworks can keep whole gradients, or whole weights, between
# micro-batches.
#
# Still, bytes aren't seconds. While a GPU sends, it also computes. When is that enough?

# %% tags=["holds"]
assert 2 * data_parallel_bytes(8e9, 64, 3) == 3 * data_parallel_bytes(8e9, 64), (
    "what plain data parallelism sends"
)
assert data_parallel_bytes(8e9, 64, 2, 3) == 2 * data_parallel_bytes(8e9, 64), "is in between"
assert all(data_parallel_bytes(1, 4, 3) > data_parallel_bytes(1, 4, s) for s in range(3)), (
    "what plain data parallelism sends"
)
assert data_parallel_bytes(8e9, 64, 0, 8) == data_parallel_bytes(8e9, 64), "gradients once a step"
assert data_parallel_bytes(8e9, 64, 3, 8) == 8 * data_parallel_bytes(8e9, 64, 3), (
    "gradients once a step"
)

# %% [markdown]
# ## Two chips, one product: when is it worth it?
#
# Take the smallest case: two chips share the product of a matrix of $B$ rows and $D$ columns with
# one of $D$ rows and $F$ columns. They cut along $D$, so each does half of the FLOPs, at its peak
# $C$, and ends up with a partial sum of the whole result. They exchange those over a link of $R$
# bytes a second. These are the two clocks of chapter 2 again, except that the second one is a link
# now:
#
# $$T_\text{math} = \frac{2BDF}{2 C} \qquad T_\text{comms} = \frac{2BF}{R}$$
#
# $$T_\text{math} > T_\text{comms} \iff \frac{D}{2} > \frac{C}{R}$$
#
# The batch has cancelled! In chapter 2 it was the batch that had to be large, and here it's $D$.
# Each link has a roofline of its own, and each time you have to ask what it is that must be large
# enough. ([Proof](02_roofline_proof.ipynb#A-roofline-with-a-link-in-it))

# %% tags=["holds"]
from lightspeed.roofline import compute_time, split_matmul_bounds

tpu = accelerator("tpu_v5e")
assert split_matmul_bounds(1024, 8192, 32768, tpu.bf16, 45e9).math == compute_time(
    2 * 1024 * 8192 * 32768 / 2, tpu.bf16
), "half of the FLOPs"

# %% [markdown]
# ## How many tokens pay for a weight's journey?
#
# Now put that question to ZeRO-3, which PyTorch calls FSDP, and ask it about a single weight. In
# the forward pass the weight takes part in two FLOPs for each token that passes it, and two bytes
# have to be gathered. In the backward pass both are doubled: four FLOPs, and four bytes, of which
# two bring the weight back and two send its gradient away. With $t$ tokens on the GPU, arithmetic
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

# %% [markdown]
# ## Whose rate is R?
#
# The picture has a second control, because "the network" could mean several things. Now let $R$ be
# the rate of *one* port, and ask how a weight gets into a node of eight GPUs.
#
# If the FSDP group has one GPU of each node, the whole weight comes in by that GPU's port, and the
# limit is $C/R$. If the group has whole nodes, each GPU needs the whole weight, but the *node* needs
# it only once. So its eight ports bring an eighth each, while NVLink hands the eighths round, and
# the limit falls to $C/8R$. That is our job, and
# where the {{job.tokens_to_hide():,.0f}} tokens came from. On
# NVLink alone {{data_parallel_tokens(peak, inside):,.0f}} would do.
#
# Could we bring in less? Split each layer over $Y$ GPUs, by tensor parallelism, and each needs just
# a $Y$th of a gathered weight, which comes in through its port. But then it also does just a $Y$th
# of the arithmetic on a token. So $C/R$ tokens are what the whole *group* needs, and for each of
# its GPUs that is
#
# $$t > \frac{C}{R\,Y}$$
#
# which for $Y = 8$ is the same limit as before. Tensor parallelism sends just as much between
# nodes. What it saves is memory, and it lets you get away with a smaller batch, since a micro-batch
# has at least one sequence. Take {{large:,}} GPUs, as Llama 3 had, and sequences of {{job.LONG:,}}
# tokens: one sequence for each GPU makes a step of {{si(large * job.LONG, "token")}}, one for each
# node {{si(large / 8 * job.LONG, "token")}}.
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
assert data_parallel_tokens(peak, 5e10, tensor=8) == data_parallel_tokens(peak, 8 * 5e10), (
    "the same limit as before"
)

# %% [markdown]
# ## Can two GPUs share one product?
#
# Take an MLP: a matrix `up`, ReLU, a matrix `down`. You may cut each of them by columns or by rows.
# Before you touch the picture, decide: which cut would you choose for which matrix, so that the two
# GPUs talk as little as possible?

# %%
from lightspeed_course.explorers.split_mlp import explore_split_mlp

explore_split_mlp()

# %% [markdown]
# Follow the blue row. The blue columns of `up` make the blue hidden columns, complete. ReLU works
# on each number by itself, so it needs nobody else, and the blue hidden columns need just the blue
# rows of `down`. What comes out is a part of every number of the result. **Columns first, rows
# second: nothing is sent between the two, and one all-reduce comes after.** Now set the picture to
# the other cut, and watch where the second exchange comes from.
#
# Attention is even friendlier, since it is already cut into heads: give each GPU some of them, with
# their columns of Q, K and V and their rows of the output matrix. No head reads another's K or V,
# so nothing is gathered, and the parts are added once, after the output matrix. (Where several
# heads share K and V, cut between such groups. With more GPUs than groups, some of them hold
# copies.) The backward pass walks the same picture from right to left and adds up the gradient of
# the *input*.
#
# Now count. A layer has two blocks, and each sums once forward and once backward. That makes four
# all-reduces, each over the $tD$ activations of $t$ tokens.
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
# What decides, then, is the *critical path*: the longest chain of things that each have to wait for
# the one before. Make something faster that isn't on it, and the step takes just as long. A profile
# that adds up the time of each kind of work can't show you the path, because it doesn't know what
# waits for what. ([An example](06_parallelism_proof.ipynb#The-critical-path-of-a-training-step), in
# which the network should be mended although the GPUs are busier.)
#
# Plain data parallelism, by contrast, hides well, as long as gradients leave layer by layer,
# while the backward pass goes on in the layers before. Sequence parallelism, which shares out norms
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
# Now we can place the groups. Here is a split of our {{job.GPUS}} GPUs that uses everything so far,
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
from lightspeed_models.training_runs import fit_share

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
assert spread.largest_loss == "data", "forward and each backward pass"
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
# - A larger batch doesn't make tensor parallelism cheaper, a faster link does: keep it inside the node.
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
# Count the collectives of FSDP yourself, without a second GPU: a *fake* process group takes part in
# them and sends nothing. Of four layers each gathers twice and scatters once if the weights are
# dropped after the forward pass (`FULL_SHARD`), and gathers once and scatters once if they stay until
# the backward pass is over (`SHARD_GRAD_OP`). All of it comes again with every micro-batch.

# %% tags=["figure"]
beside("06_gathers")

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
