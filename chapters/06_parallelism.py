# %% [markdown]
# # 6. Parallelism
#
# The weights of the model fit into the node with room to spare. The job dies in its first step: out of memory. Split over
# more nodes it runs, and each GPU does a third of what it did alone. What was forgotten, and what is it waiting for now?
#
# Splitting a model is two questions. **What must each GPU hold?** And: **what must it send, when, and can it compute
# meanwhile?** Each strategy answers both, and the second answer is what the network sees.
#
# **You will be able to** say what takes the room on a GPU, to the byte where that is known; name the traffic of data, tensor,
# pipeline, expert and context parallelism and of ZeRO, and when it can hide; draw a pipeline schedule and state its bubble with
# its denominator; choose a checkpoint period; and tell which change of a plan to try first.
#
# **You need** chapters 2 and 3. Chapter 7 goes into the collectives that are only counted here. **Time:** three hours, with the
# problems.

# %%
import numpy as np

from lightspeed.catalog import accelerator, entries, link, number
from lightspeed.memory import *
from lightspeed.parallel import *
from lightspeed.pipeline import *
from lightspeed_course import (
    ask, Axis, Bars, Chart, figure, human_time, Line, Points, predict, reveal, Rule, si, table,
)
from lightspeed.reliability import *
from lightspeed.roofline import transfer_time
from lightspeed.models.training_step import Plan, fit_share, machine, predicted, training_runs
from lightspeed.transformer import transformer

# %% [markdown]
# ## Before you read on
#
# A training run of the largest kind kept a record of its interruptions. Take it to a larger cluster. How often will something
# stop the job? Commit yourself.

# %%
predict("parallelism.cluster_mtbf", ...)

# %% [markdown]
# ## What must fit
#
# "The parameters fit into the GPU" says little about training. A GPU holds weights, gradients, the optimizer's states,
# activations, the logits, buffers of the libraries, the code itself, and the gaps that the allocator leaves.
#
# ### Parameters, counted
#
# A decoder with $L$ layers of width $D$, $N$ heads and $K$ KV heads of width $H$, an MLP of hidden width $F$ with three
# matrices, and separate tables for input and output of $V$ words has
#
# $$P = L\,(2DNH + 2DKH + 3DF + 2D) + 2VD + D$$
#
# parameters. A GPT has two MLP matrices, biases, and one table for both ends. `transformer` counts any model of the catalog from its
# configuration; where the exact number is published, the count agrees to the last parameter.

# %%
keys = ("gpt2", "gpt3_175b", "llama2_70b", "llama3_8b", "llama3_70b", "llama3_405b", "mixtral_8x7b", "deepseek_v3")
models = {entries("models")[key].name: transformer(key) for key in keys}
published = {entries("models")[key].name: entries("models")[key].parameters for key in keys}
table(
    [[name, f"{m.parameters:,}", f"{published[name]:,.0f}", f"{m.active_parameters:,}"] for name, m in models.items()],
    ["model", "counted", "published", "used by a token"],
    caption="Parameters from configurations. The authors of GPT-3 round theirs.",
)

# %% [markdown]
# A mixture of experts holds far more than a token uses: the others must be held all the same, and each expert's gradient, too.
#
# ### States: sixteen bytes, or eighteen, or twenty
#
# Adam in mixed precision keeps weights and gradients in two bytes, and in four bytes each a master copy of the weights and two
# moments. That makes sixteen. Megatron keeps gradients in four bytes; others keep both. When someone says "bytes a parameter", ask which.

# %%
params = models["Llama 3 70B"].parameters
recipes = {r: training_state_bytes(params, recipe=r) for r in RECIPES}
table(
    [[f"{s.total / params:.0f}", si(s.weights, "byte"), si(s.gradients, "byte"), si(s.optimizer, "byte"), si(s.total, "byte")] for s in recipes.values()],
    ["bytes a parameter", "weights", "gradients", "optimizer", "all"],
    caption="The states of Llama 3 70B, before anything is computed.",
)

# %% [markdown]
# Data parallelism repeats all of this on each GPU. ZeRO stops repeating it: stage 1 gives each rank a share of the optimizer's
# states, stage 2 of the gradients, too, and stage 3, which PyTorch calls FSDP, of the weights as well.

# %%
ranks = 2 ** np.arange(0, 11)
zero = {f"stage {stage}": [zero_bytes_per_device(7.5e9, int(n), stage) for n in ranks] for stage in range(4)}
zero_params = 7.5e9

# %% tags=["figure"]
colors = ("blue", "orange", "green", "purple")
figure(
    Chart(
        Axis("data-parallel ranks", "", "log", domain=(1, 1024)),
        Axis("states a GPU", "byte", "log"),
        [Line(ranks, y, name, color) for (name, y), color in zip(zero.items(), colors)]
        + [Rule(y=accelerator("h100_sxm").hbm_capacity, label="an H100")],
        height=320,
    ),
    caption=f"{si(zero_params, 'parameter')}: each stage removes the floor that the one before it stands on.",
    alt="Four lines over the number of ranks on logarithmic axes. Stage 0 is flat, stages 1 and 2 fall to a floor, stage 3 falls without end.",
)

# %% [markdown]
# ### Activations

# %%
unit = dict(sequence=1, batch=1, width=1, heads=1, recompute="selective")
per_layer = activation_bytes(**unit)
by_tensor = 2 * (per_layer - activation_bytes(**unit, tensor=2))

# %% [markdown]
# The backward pass needs what the forward pass computed. Korthikanti and others counted it for a GPT's layer in bytes, with two-byte
# elements: $sbh\,({{per_layer:.0f}} + 5as/h)$ for micro-batches of $b$ sequences of $s$ tokens, width $h$ and $a$ heads. The second term are the scores of attention, which
# grow with the square of the sequence. Tensor parallelism over $t$ GPUs splits {{by_tensor:.0f}} of the {{per_layer:.0f}}; sequence parallelism the rest.
# *Selective* recomputation does the scores again, *full* recomputation the whole layer.

# %%
gpt3 = models["GPT-3 175B"]
options = [("tensor", "none"), ("tensor+sequence", "none"), ("tensor", "selective"), ("tensor+sequence", "selective"), ("tensor", "full")]
kept = {o: activation_bytes(2048, 1, gpt3.width, gpt3.heads, gpt3.layers, tensor=8, split=o[0], recompute=o[1]) for o in options}
alone = kept[options[0]]
table([[split, again, si(size, "byte"), f"{size / alone:.0%}"] for (split, again), size in kept.items()],
      ["split", "recomputed", "activations a GPU", "of the first"], caption="GPT-3 over eight GPUs, one sequence of its own length.")

# %% [markdown]
# A pipeline changes less than one hopes. Its first stage has a share $1/p$ of the layers but, in 1F1B, $p$ micro-batches in flight, so $p$
# cancels; with $v$ interleaved chunks the first stage even holds $1 + (p - 1)/(pv)$ times as much.
#
# ### Caches, logits, buffers, gaps
#
# Logits in four bytes are as long as the vocabulary for each token. Collectives, and products that are not fused, need buffers. And an
# allocator whose blocks come and go in different sizes leaves gaps: a tenth of the whole is a fair premise, and a watchful team measures
# its own. In serving there are no gradients and no optimizer, but a cache of keys and values, for each token that is remembered:

# %%
remembered = 8192
cache = {name: m.kv_cache_bytes_per_token() for name, m in models.items()}
table([[name, f"{m.heads}", f"{m.kv_heads or m.heads}", si(cache[name], "byte"), si(remembered * cache[name], "byte")] for name, m in models.items()],
      ["model", "heads", "KV heads", "cache a token", f"a sequence of {si(remembered, 'token')}"],
      caption="KV cache in two-byte elements. Fewer KV heads, or one compressed vector (DeepSeek), shrink it.")

# %% [markdown]
# ### Does it fit, and what takes the room?
#
# One function answers. It takes the shape, the machine and the split, and names the largest part.

# %%
llama, h100 = models["Llama 3 70B"], accelerator("h100_sxm")
ranks = 64
plans = {
    "one GPU": dict(data=1),
    "ZeRO-3": dict(data=ranks, stage=3),
    "ZeRO-3, all recomputed": dict(data=ranks, stage=3, recompute="full"),
    "tensor 8, pipeline 4": dict(data=2, tensor=8, pipeline=4, split="tensor+sequence"),
    "the same, selective": dict(data=2, tensor=8, pipeline=4, split="tensor+sequence", recompute="selective"),
    "the same, ZeRO-1": dict(data=2, tensor=8, pipeline=4, split="tensor+sequence", recompute="selective", stage=1),
}
uses = {name: training_memory(llama, h100.hbm_capacity, 8192, **plan) for name, plan in plans.items()}

# %%
parts = {"weights": "blue", "gradients": "sky", "optimizer": "purple", "activations": "orange", "logits": "amber", "buffers": "grey"}
fits = {name: use for name, use in uses.items() if use.total < 4 * h100.hbm_capacity}
beyond = "; ".join(f"{name}: {si(use.total, 'byte')}" for name, use in uses.items() if name not in fits)


def stacked(part):
    """Bars of one part, each starting where the parts before it end."""
    before = list(parts)[: list(parts).index(part)]
    start = [sum(getattr(u, p) for p in before) for u in fits.values()]
    end = [a + getattr(u, part) for a, u in zip(start, fits.values())]
    return Bars(list(fits), end, start, label=part, color=parts[part])


# %%
figure(
    Chart(Axis("memory of a GPU", "byte"), Axis(scale="category", categories=list(fits)), [stacked(p) for p in parts] + [Rule(x=h100.hbm_capacity, label="capacity")], height=300),
    caption=f"Llama 3 70B on {ranks} {h100.name}s, sequences of {si(8192, 'token')}. Off the chart: {beyond}.",
    alt=f"Stacked bars of memory for {len(fits)} plans against the capacity of a GPU. " + "; ".join(f"{n}: {si(u.total, 'byte')}, most of it {u.largest}" for n, u in fits.items()) + ".",
)

# %% [markdown]
# Read the bars as causes. What is large says which split to think of:
#
# | what is too large | why | what is split |
# |---|---|---|
# | the data set, the batch | many samples | the batch: data parallelism |
# | optimizer, gradients, then weights | repeated on each rank | the states: ZeRO, FSDP |
# | a layer, or its activations | wide matrices, long sequences | the products: tensor and sequence parallelism; the sequence: context parallelism |
# | the number of layers | a deep model | the layers: pipeline parallelism |
# | the experts | a mixture of many | the experts: expert parallelism |
#
# ## What must be sent
#
# ### Data parallelism
#
# Each GPU has the whole model and its own samples. So each has its own gradients, and if each stepped by them alone the
# replicas would drift apart. They are summed: one all-reduce, $2 (n - 1)/n$ times the gradients out of each GPU. The
# textbook shows a quiet network during the two passes and a burst after them. Frameworks do better: gradients of the last layers are ready first and travel, in buckets, behind the
# backward pass of the layers before. What remains visible is what does not fit behind it.
#
# ZeRO changes the collective, not much the bytes: a reduce-scatter and an all-gather are an all-reduce. Stage 3 gathers the
# weights before each forward and each backward pass: half as much again, and all of it once for each micro-batch.

# %%
ways, micro = 64, 8
rows = [[stage, si(data_parallel_bytes(8e9, ways, stage), "byte"), si(data_parallel_bytes(8e9, ways, stage, micro), "byte")] for stage in range(4)]
table(rows, ["stage", "one micro-batch", "with accumulation"], caption=f"Bytes out of a GPU in a step: {si(8e9, 'parameter')}, {ways} ranks, {micro} micro-batches in the last column.")

# %% [markdown]
# ### Tensor parallelism, run
#
# A product can be cut two ways. Cut the *columns* of the weight, and each GPU gets some columns of the result, complete. Cut the *rows*, and each GPU
# needs only those columns of the input, but gets a partial sum of the whole result. Megatron does the one after the other: columns
# first, rows second. Between them nothing is sent; behind them one all-reduce adds the parts. Here is an MLP on two "GPUs".

# %%
rng = np.random.default_rng(6)
X, up, down = (rng.standard_normal(shape) for shape in ((5, 8), (8, 32), (32, 8)))


def mlp(X, up, down):
    return np.maximum(X @ up, 0) @ down


halves = [mlp(X, up[:, :16], down[:16]), mlp(X, up[:, 16:], down[16:])]
np.allclose(halves[0] + halves[1], mlp(X, up, down))

# %% [markdown]
# Attention is cut between heads: a head is a set of columns of Q, K and V and a set of rows of the output matrix. No head reads
# another's K or V. So **nothing is gathered for Q and K**, although it is often written so; the parts are added behind the output
# matrix, as in the MLP.

# %%
heads, wide = 4, 8
Q, K, V, out = (rng.standard_normal((heads, *shape)) for shape in ((8, wide), (8, wide), (8, wide), (wide, 8)))


def attend(X, mine):
    """The part of the block's result that these heads make."""
    def one(h):
        scores = (X @ Q[h]) @ (X @ K[h]).T / wide**0.5
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return weights / weights.sum(1, keepdims=True) @ (X @ V[h]) @ out[h]
    return sum(one(h) for h in mine)


np.allclose(attend(X, (0, 1)) + attend(X, (2, 3)), attend(X, range(heads)))

# %% [markdown]
# (This softmax makes attention's weights. The softmax over the vocabulary, at the very end, is another one, and only that makes a prediction.)
#
# The backward pass mirrors it. The gradient of the *input* of each block is a sum over all GPUs: one all-reduce. The gradients of the *weights* are
# complete where the weights are. Nothing is summed over the tensor-parallel group for them; data parallelism sums them, over other GPUs. Check on the MLP:

# %%
G = rng.standard_normal((5, 8))
hidden = X @ up
whole = X.T @ ((G @ down.T) * (hidden > 0))
mine = X.T @ ((G @ down[:16].T) * (hidden[:, :16] > 0))
np.allclose(mine, whole[:, :16])

# %% [markdown]
# So a layer needs two all-reduces forward and two backward, of $bsh$ elements each. Sequence parallelism replaces each by a reduce-scatter
# and an all-gather, the same bytes, and splits the norms between them. Exceptions: with fewer KV heads than GPUs, K and V are computed or sent more
# than once, and *context parallelism*, which splits the sequence, does send K and V.
#
# Word embeddings are split by rows of the table: each GPU looks up the words it has, writes zeros for the others, and one all-reduce adds.
# One GPU that looks all up and broadcasts would hold the whole table with its states, while the others wait.

# %%
words = rng.integers(0, 100, 6)
E = rng.standard_normal((100, 8))
first = np.where((words < 50)[:, None], E[np.minimum(words, 49)], 0)
second = np.where((words >= 50)[:, None], E[np.maximum(words, 50)], 0)
np.allclose(first + second, E[words])

# %% [markdown]
# ### Pipeline, expert and context parallelism
#
# A **pipeline** sends the activations of a micro-batch on and their gradients back, once a stage: few bytes, between two GPUs. There is no
# global meeting; what costs is the schedule (next section), and one slow stage holds all.
#
# **Experts** on different GPUs need their tokens: an all-to-all out, one back, and both again for the gradients. The bytes are those
# of the tokens times the number of experts that each is sent to. The danger is not the mean. With a router that has a favourite,
# one GPU receives what the others send, works longest, and all wait:

# %%
experts, tokens, share_hot = 8, 1024, 0.5
fair, skew = (skewed_exchange(tokens, 4096, experts, s) for s in (1 / experts, share_hot))
table([[kind, si(s.hot_receives, "byte"), si(s.hot_sends, "byte"), si(s.other_receives, "byte"), si(s.other_sends, "byte")] for kind, s in (("fair", fair), ("one hot expert", skew))],
      ["router", "hot receives", "hot sends", "others receive", "others send"], caption=f"One exchange over {experts} GPUs with {si(tokens, 'token')} each; the hot expert gets {share_hot:.0%} of all.")

# %% [markdown]
# The hot GPU receives {{skew.hot_receives / fair.hot_receives:.1f}} times its fair share, and that is how much longer the exchange takes. So MoE training spends effort on
# balance (losses, biases, capacity limits), on where experts live, and on networks that take many senders to one receiver without loss.
#
# **Context parallelism** splits long sequences; K and V are gathered forward and their gradients scattered backward. Sharing KV heads makes it cheap.
#
# ### One plan, all its traffic
#
# Llama 3 70B on H100s in nodes of eight:

# %%
plan = Plan(data=16, tensor=8, pipeline=4, micro_batches=32, stage=1, recompute="selective")
cluster = machine("h100_sxm", "infiniband_ndr", share=fit_share())
sequence, layers = 8192, llama.layers // plan.pipeline
tokens = sequence * plan.micro_batches
held = llama.parameters / plan.tensor / plan.pipeline
sent = {
    "tensor: all-reduces in each layer": (tensor_parallel_bytes(tokens, llama.width, plan.tensor, layers), cluster.link, "no"),
    "pipeline: stage to stage": (pipeline_bytes(tokens, llama.width) / plan.tensor, cluster.network, "mostly"),
    "data: gradients and weights": (data_parallel_bytes(held, plan.data, plan.stage), cluster.network, "behind the last backward"),
    "data, were it ZeRO-3": (data_parallel_bytes(held, plan.data, 3, plan.micro_batches), cluster.network, "behind everything"),
}

# %%
messages = {"tensor: all-reduces in each layer": 4 * layers * plan.micro_batches, "pipeline: stage to stage": 2 * plan.micro_batches, "data: gradients and weights": 2, "data, were it ZeRO-3": 3 * plan.micro_batches}
table([[name, si(size, "byte"), f"{messages[name]:,}", si(size / rate, "s"), hides] for name, (size, rate, hides) in sent.items()],
      ["traffic of a GPU in a step", "bytes", "times", "on its link", "hides?"],
      caption=f"{plan.gpus} GPUs as data {plan.data}, tensor {plan.tensor}, pipeline {plan.pipeline}; tensor parallelism on NVLink, the rest on the network.")

# %% [markdown]
# That is why placement follows frequency. **What is sent most often, and can't hide, goes on the nearest links.**
#
# | strategy | what it splits | collective | when | first bottleneck | where it belongs |
# |---|---|---|---|---|---|
# | data (DDP) | the batch | all-reduce of gradients | once a step, behind the backward pass | bandwidth, stragglers | across nodes |
# | ZeRO-1, ZeRO-2 | and optimizer, gradients | reduce-scatter, all-gather | once a step; stage 2 each micro-batch | bandwidth | across nodes |
# | ZeRO-3, FSDP | and weights | all-gather twice, reduce-scatter | each layer and micro-batch, ahead of time | bandwidth | across nodes, if the batch is large |
# | tensor (+ sequence) | each product | all-reduce, or all-gather and reduce-scatter | in each layer, in the way | bandwidth and latency of the link inside | one node, one NVLink domain |
# | pipeline | the layers | send and receive | each micro-batch, beside work | the schedule | neighbouring nodes, one rail |
# | expert | the experts | all-to-all | in each expert layer, in the way | the hottest receiver | as near as there is room |
# | context | the sequence | all-gather, reduce-scatter of K, V | in each layer, behind attention | bandwidth | inside, then across |
#
# A *rail* joins the GPUs of the same place in every node to one switch. Stage-to-stage traffic from GPU to same GPU stays on its rail;
# traffic between rails climbs to the spine. Frameworks lay ranks out tensor-first for this reason.
#
# ### When it computes longer than it sends
#
# Compare the two clocks of chapter 2, with $C$ the peak of a chip and $W$ what it sends in one direction.
#
# **Data parallelism, FSDP.** The backward pass does four FLOPs for each parameter and token and must move four bytes for each parameter. The model cancels:
#
# $$\text{tokens per chip} > \frac{C}{W} \qquad \left(\times \tfrac{E}{k} \text{ with } k \text{ of } E \text{ experts used}\right)$$
#
# **Tensor parallelism** over $Y$ chips. Both clocks are proportional to the tokens, which cancel: $Y < F\,W/C$.
#
# **Both at once**, FSDP and tensor parallelism on a torus whose axes they share: best with $X = \sqrt{2BN/F}$ FSDP ways for $B$ tokens on $N$ chips, and compute-bound from $2(C/W)^2/F$ tokens
# per chip on, fewer than either alone.

# %%
places = {"A100, NVLink": ("a100_80gb", None), "H100, NVLink": ("h100_sxm", None), "H100, one NDR port": ("h100_sxm", "infiniband_ndr"), "B200, NVLink": ("b200", None), "B200, one XDR port": ("b200", "infiniband_xdr")}
limits = []
for name, (gpu, network) in places.items():
    chip = accelerator(gpu)
    W = link(network).bandwidth if network else chip.link_bandwidth
    limits.append([name, f"{data_parallel_tokens(chip.bf16, W):,.0f}", f"{tensor_parallel_ways(llama.hidden, chip.bf16, W):.1f}"])
table(limits, ["chip and link", "tokens a chip for FSDP", "ways of tensor parallelism"], caption=f"Compute-bound above the first and below the second number; an MLP of hidden width {llama.hidden:,}.")

# %% [markdown]
# On NVLink a node of eight is within the limit; on the network not even two ways are. Hence tensor parallelism inside, data parallelism outside. When all GPUs
# of a node send at once, they have its ports together, and the table's row for a port applies to each.
#
# ### What the network must be good at
#
# | property | whom it serves |
# |---|---|
# | bandwidth | gradients and shards: large messages, rarely |
# | latency | tensor and expert parallelism: messages that someone waits for; all of decoding |
# | low jitter | every collective: the last rank decides |
# | no loss | RDMA falls back or retries; a step stalls. PFC, ECN and DCQCN are how Ethernet gets there |
# | topology | frequent pairs near each other, rails aligned with NICs |
# | congestion control | many to one: experts, and the egress buffers they fill |
# | the collectives themselves | the algorithm, and switches that add (chapter 7) |
#
# ## Schedules that run
#
# ### The ten-step table
#
# The notes that this chapter reworks show a pipeline of four stages and four micro-batches, with the share of GPUs at work in each of ten time steps.

# %%
p = m = 4
shared = shared_slot_utilisation(p, m)
run = simulate("1f1b", p, m, forward=1, backward=1)
real = run.utilisation(1.0)
table([["one pass or two in a step (the notes)", len(shared), " ".join(f"{u:.0%}" for u in shared), f"{np.mean(shared):.1%}"], ["one pass in a step (a GPU)", len(real), " ".join(f"{u:.0%}" for u in real), f"{np.mean(real):.1%}"]],
      ["counted as", "steps", "busy in each step", "mean"])

# %% [markdown]
# The first row lets a GPU do a forward and a backward pass in the same step. There are {{len(run.passes)}} passes to do, and its
# {{len(shared)}} steps count only {{sum(shared) * p:.0f}} slots as busy: some hold two. No GPU can do that. One pass at a time, the step takes $2(m + p - 1)$ = {{len(real)}} slots.
#
# ### The bubble and its two denominators
#
# Fill and drain leave $p - 1$ slots idle on each GPU, each way. Compare that with the work, or with the whole:
#
# $$\frac{\text{bubble} }{\text{ideal time} } = \frac{p - 1}{m} \qquad\qquad \frac{\text{bubble} }{\text{total time} } = \frac{p - 1}{m + p - 1}$$
#
# For this pipeline: {{bubble_over_ideal(p, m):.0%}} and {{bubble_over_total(p, m):.1%}}. The papers use the first, utilisation needs the second, and readers mix them. A backward pass that takes twice as long stretches
# both slots and leaves both fractions as they are.
#
# ### Timelines
#
# `simulate` runs an order of passes on each GPU: a pass starts when its GPU is free and its input has come. The closed forms are tested against it, not the other way
# round. It also takes stages that are not equal, and transfers that take time.

# %%
looks = {"F": ("forward", "blue"), "B": ("backward", "orange"), "W": ("weight gradients", "green")}


def gantt(run, title):
    """The timeline of a run: a row a GPU, a bar a pass, the number of its micro-batch in it."""
    marks = []
    for kind, (label, color) in looks.items():
        passes = [q for q in run.passes if q.work.kind == kind]
        if passes:
            at, start, end = zip(*((f"GPU {q.work.stage}", q.start, q.end) for q in passes))
            marks.append(Bars(at, end, start, label=label, labels=[str(q.work.micro_batch + 1) for q in passes], color=color, width=0.85))
    rows = [f"GPU {i}" for i in range(run.stages)]
    return Chart(Axis("time, in forward passes of a stage", domain=(0, run.span)), Axis(scale="category", categories=rows), marks, title=title, height=45 * run.stages + 90)


# %%
p, m = 4, 8
times = dict(forward=1.0, backward=2.0)
runs = {s: simulate(s, p, m, **times) for s in ("gpipe", "1f1b", "zb_h1", "zb_h2")}
runs["interleaved"] = simulate("interleaved", p, m, **times, chunks=2)
titles = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B, two chunks a GPU", "zb_h1": "zero-bubble, memory of 1F1B", "zb_h2": "zero-bubble, twice the memory"}

# %%
figure(
    [gantt(runs[s], titles[s]) for s in ("gpipe", "1f1b")],
    caption="GPipe runs all forward passes, then all backward passes. 1F1B starts a backward pass as soon as there is one: the same bubble, fewer micro-batches in flight.",
    alt="Two timelines of four GPUs. Both fill and drain alike; in the second, forward and backward passes alternate after the fill.",
)

# %%
figure(
    [gantt(runs[s], titles[s]) for s in ("interleaved", "zb_h1")],
    caption="Above, each GPU holds two pieces of the model, and fill and drain shrink. Below, weight gradients, which nobody waits for, fill the gaps.",
    alt="Two timelines of four GPUs with smaller gaps at both ends than GPipe's. In the second, green passes for weight gradients fill the end.",
)

# %%
table([[titles[s], f"{r.span:g}", f"{r.bubble_over_ideal:.1%}", f"{r.bubble_over_total:.1%}", " ".join(f"{x:g}" for x in r.peak_activations)] for s, r in runs.items()],
      ["schedule", "time", "bubble over ideal", "bubble over total", "micro-batches held, by GPU"],
      caption=f"{p} stages, {m} micro-batches, backward twice as long as forward. A backward pass cut in two makes both halves as long as a forward pass.")

# %% [markdown]
# Each schedule buys time with something else. GPipe pays in activations, which grow with $m$. 1F1B holds $p$ on the first stage, whatever $m$. Interleaving
# divides the bubble by $v$ and sends $v$ times as often. Zero-bubble schedules need a backward pass cut in two; the last one leaves no GPU idle between its
# own first and last pass ({{runs["zb_h2"].window:g}} units, all of them work) if the next step may begin before all have finished this one.
#
# *More* micro-batches and *larger* ones are two things. At a given batch, fewer and larger ones fill each GPU better and make the bubble larger.
#
# ### One slow stage, slow transfers

# %%
slow = simulate("1f1b", p, m, forward=[1, 1, 1.5, 1], backward=[2, 2, 3, 2])
late = simulate("1f1b", p, m, **times, transfer=0.5)
figure([gantt(slow, "the third stage takes half as long again"), gantt(late, "each transfer takes half a forward pass")],
       caption=f"The slow stage sets the pace: {slow.span / runs['1f1b'].span:.2f} times the time, though three of four GPUs are as fast as before. Slow transfers cost {late.span / runs['1f1b'].span:.2f} times, though no link is ever full.",
       alt="Two timelines with gaps: beside a slow third stage the other GPUs wait in every round; with slow transfers the gaps follow each exchange.")

# %% [markdown]
# So: equal stages by *time*, not by count of layers. The first has the embedding, the last the logits, and the last layers wait for nobody.
#
# ## Stragglers, failures, money
#
# ### The slowest rank
#
# A synchronous step ends when its last rank ends. Let each rank be slow in a step with a small chance $q$, and then by a factor $f$:
#
# $$\frac{T}{T_0} = 1 + (f - 1)\left(1 - (1 - q)^n\right)$$

# %%
chance, factor = 0.001, 1.5
n = np.unique(np.geomspace(1, 20000, 120).round())
figure(
    Chart(Axis("ranks", "", "log", domain=(1, 20000)), Axis("mean step over a step without stragglers"), [Line(n, straggler_stretch(n, chance, factor), "", "orange"), Rule(y=factor, label="always one slow rank")], height=260),
    caption=f"Each rank is slow in one step of {1 / chance:.0f}, and then takes {factor} times as long. At a thousand ranks nearly two of three steps are slow ones.",
    alt=f"A curve over the number of ranks on a logarithmic axis that rises from one to {factor}, most of it between a hundred and several thousand ranks.",
)

# %% [markdown]
# Hence the checklist's items on variance: find the rank that is late *every time* (a GPU that throttles, a NIC at the wrong root) and what is late *at times* (garbage
# collection, data loading, a link that retransmits).
#
# ### Failures
#
# Failure rates add: $n$ devices fail $n$ times as often as one. The record of Llama 3's training gives the rate.

# %%
days, interruptions, gpus = 54, 419, 16384
mtbf = observed_mtbf(days * 86400, interruptions)
each = device_mtbf(mtbf, gpus)
sizes = (8, 1024, 16384, 50_000, 100_000)
rows = [[f"{k:,}", human_time(cluster_mtbf(each, k)), f"{survival(86400, cluster_mtbf(each, k)):.2%}"] for k in sizes]
table(rows, ["GPUs", "time between failures", "chance of a day without one"], caption=f"{interruptions} unexpected interruptions in {days} days on {gpus:,} GPUs: one every {mtbf / 3600:.2f} h, or {each / 3600:,.0f} h for a GPU.")

# %%
reveal("parallelism.cluster_mtbf")

# %% [markdown]
# ### How often to save
#
# A checkpoint that stops the job for $\delta$, every $\tau$ of work, costs $\delta/\tau$; a failure every $M$ destroys half an interval. The sum of both is
# least at Young's interval $\sqrt{2\delta M}$. Daly's series is closer to the exact optimum when $\delta$ is not small:
# $\tau = \sqrt{2\delta M}\,(1 + \tfrac13 x + \tfrac19 x^2) - \delta$ with $x = \sqrt{\delta/2M}$. Mind the minus; copies with a plus are about.

# %%
size, storage = checkpoint_bytes(models["Llama 3.1 405B"].parameters), 200e9
write = transfer_time(size, storage)
bloom_size, bloom_params, devices = 2.3e12, 176e9, 50_000
young, daly = young_interval(write, mtbf), daly_interval(write, mtbf)
intervals = np.geomspace(60, 6 * 3600, 200)

# %% tags=["figure"]
figure(
    Chart(
        Axis("work between checkpoints", "s", "log", domain=(60, 6 * 3600)),
        Axis("time lost, of the work done", "%", domain=(0, 1)),
        [Line(intervals, np.minimum(stretch(intervals, write, mtbf) - 1, 5), "to all orders", "blue"), Line(intervals, lost_share(intervals, write, mtbf), "first order", "orange", dash=True), Rule(x=daly, label=f"Daly {human_time(daly)}")],
        height=300,
    ),
    caption=f"A checkpoint of {si(size, 'byte')} at {si(storage, 'byte/s')} takes {si(write, 's')}; the job fails every {human_time(mtbf)}. Too often is as bad as too rarely, and the valley is flat.",
    alt=f"Two curves of lost time with a flat valley near {human_time(daly)}; they part for long intervals, where the first order is too low.",
)

# %% [markdown]
# Young says {{human_time(young)}}, Daly {{human_time(daly)}}; either loses {{lost_share(daly, write, mtbf):.1%}} of the time. A copy to host memory that is written out behind the
# job shortens $\delta$ to the copy: writing every few minutes becomes free, and what then counts is how fast a job finds the bad node and starts again. A
# checkpoint has weights, master weights and moments, fourteen bytes a parameter; BLOOM's {{si(bloom_size, "byte")}} for its {{si(bloom_params, "parameter")}} come to {{bloom_size / bloom_params:.1f}} bytes.
#
# ### Loss of packets, loss of money
#
# A lost packet stalls a collective; all ranks wait; the step takes longer; the bill goes on. The notes put a price on the bill: {{devices:,}} GPUs of
# {{si(accelerator("h100_pcie").power, "W")}} for sixty days. The arithmetic is right. The premise is not.

# %%
from lightspeed.energy import JOULES_PER_KWH, cost_of, energy_of

seconds, price, pue = 60 * 86400, number("data_centre.electricity_price"), number("data_centre.pue")
bills = {
    "the notes: the PCIe card, no building": energy_of(accelerator("h100_pcie").power, seconds, devices),
    "the module of such clusters": energy_of(h100.power, seconds, devices),
    "and the building": energy_of(h100.power, seconds, devices, pue),
}
table([[name, si(e / seconds, "W"), f"{e / JOULES_PER_KWH / 1e3:,.0f} MWh", f"{cost_of(e, price):,.0f} USD"] for name, e in bills.items()], ["premise", "power", "energy", "electricity"])

# %% [markdown]
# Hosts, switches and storage come on top, and the machines cost far more than their power. The use of the sum is as a price for waiting: at the last row's rate an idle hour of
# the cluster burns {{cost_of(bills["and the building"], price) / (seconds / 3600):,.0f}} USD of electricity alone.
#
# ## Try it
#
# Choose a model and a cluster, make it fit, then make it fast. Before each change say which bar will move. Then find a plan in which the bubble is the largest loss, one in which
# tensor parallelism is, and one in which gradients are.

# %%
from lightspeed_course.explorers.parallelism import explore

explore()

# %% [markdown]
# ## Worked problems
#
# Pencil first. The fourteen questions that the notes end with are here as numbers; the rest are in the exercises.
#
# ### Problem 1: what ZeRO saves, and what it costs

# %%
ask("parallelism.zero_states")

# %%
ask("parallelism.zero3_bytes")

# %% [markdown]
# ### Problem 2: the bubble
#
# State the denominator.

# %%
ask("parallelism.bubble_over_total")

# %%
ask("parallelism.pipeline_steps")

# %% [markdown]
# ### Problem 3: attention on several GPUs

# %%
ask("parallelism.attention_forward")

# %%
ask("parallelism.mlp_backward")

# %% [markdown]
# ### Problem 4: across nodes

# %%
ask("parallelism.critical_tokens")

# %%
ask("parallelism.tensor_over_network")

# %% [markdown]
# ### Problem 5: one slow GPU

# %%
ask("parallelism.straggler")

# %% [markdown]
# ### Problem 6: when to save

# %%
ask("parallelism.checkpoint_interval")

# %% [markdown]
# ## Check: against published runs
#
# `step` adds up bounds: arithmetic at a share of the peak, passes through HBM, the traffic of each split on its link, the bubble. It knows nothing of latency,
# congestion, hosts and jitter. So let one number stand for all that: the share of peak that the products reach. It is set by **one** published run, and the
# others are predicted. Runs that recompute print hardware FLOPs or model FLOPs; both are brought to the time of a step.

# %%
share = fit_share()
tested = {k: r for k, r in training_runs().items() if not k.startswith("llama3")}
steps = {k: predicted(r, share) for k, r in tested.items()}
error = {k: steps[k].time / r.time - 1 for k, r in tested.items()}
fitted = min(error, key=lambda k: abs(error[k]))
held_out = [abs(e) for k, e in error.items() if k != fitted]
table([[r.name, f"{r.plan.gpus:,}", accelerator(r.gpu).name, si(r.time, "s"), si(steps[k].time, "s"), f"{error[k]:+.0%}", steps[k].largest_loss] for k, r in tested.items()],
      ["run", "GPUs", "GPU", "published", "predicted", "error", "largest loss"], caption=f"Products at {share:.0%} of peak, a number set by one run ({tested[fitted].name}); the others set nothing.")

# %% tags=["figure"]
groups = {"Megatron, A100": "megatron_a100", "Korthikanti, A100": "korthikanti", "MT-NLG, A100": "mtnlg", "Megatron, H100": "megatron_h100"}
marks = [Points([tested[k].plan.gpus for k in tested if k.startswith(start)], [error[k] for k in tested if k.startswith(start)], label=name, color=color, marker=marker)
         for (name, start), color, marker in zip(groups.items(), ("blue", "orange", "green", "purple"), ("circle", "square", "triangle", "diamond"))]
figure(
    Chart(Axis("GPUs", "", "log", domain=(5, 10000)), Axis("predicted over published, less one", "%", domain=(-0.4, 0.4)), [Rule(y=0, label="as published"), *marks], height=320),
    caption="Within a series the prediction goes from too fast to too slow as models grow: wide products reach more of the peak than narrow ones, and one share cannot know.",
    alt=f"Residuals of {len(tested)} runs over the number of GPUs, all between {min(error.values()):.0%} and {max(error.values()):.0%}.",
)

# %% [markdown]
# Over {{len(held_out)}} runs that set nothing, the median error is {{np.median(held_out):.0%}} and the largest {{max(held_out):.0%}}. Good enough to rank plans, not to promise a date.
#
# ### Where it breaks
#
# - **One share of peak for all.** Wide matrices reach more of it than narrow ones, and kernels and overlap differ between the series: the runs of MT-NLG are slower than predicted, Korthikanti's large models and those on H100 faster.
# - **Schedules.** Chunks of the H100 runs are not published; the prediction takes one a GPU, which makes their bubble too large.
# - **What is not published.** Llama 3's table is left out: without the number of chunks of its pipeline, its bubble can be anything between a third of the step and next to nothing.
# - **Hardware or model FLOPs.** Megatron's A100 table counts the forward pass twice. Its "{{163e12 / accelerator("a100_80gb").bf16:.0%}} of peak" is an MFU of {{tested["megatron_a100_1008b"].model_flops_per_gpu() / accelerator("a100_80gb").bf16:.0%}}.
# - **Memory.** The counts of this chapter equal those recorded for Megatron's models, states and activations alike; what they can't give is fragmentation, which is measured.
#
# ## Measure it here
#
# The MLP of "Tensor parallelism, run" again, larger, in float32, and on two real processes that MPI joins. It is split both ways, in two different kinds of step:
#
# - **tensors**: the forward pass, half of the columns and rows on each process, and an all-reduce of the activations;
# - **data**: forward and backward pass, half of the tokens on each process, and an all-reduce of the gradients.
#
# The prediction needs two numbers of your machine, which are measured in the same run: what a process reaches in a large product, and how long an all-reduce of so many bytes takes. Then it
# is a sum, as in this chapter: FLOPs over peak, then bytes over the link, with no overlap. Which of the two gains by more tokens, and which does not care? From how many tokens on does
# data parallelism pay at all?

# %%
from lightspeed_course import measure_here, shipped
from lightspeed_course.measure.pages.network_figures import split_figure, split_table
from lightspeed_course.measure.instruments.split_mlp import FLOPS, HIDDEN, TOKENS, WIDTH

table(
    [[k, si(FLOPS["tensor"] / 2 * k * WIDTH * HIDDEN, "FLOP"), si(4 * k * WIDTH, "byte"), si(FLOPS["data"] / 2 * k * WIDTH * HIDDEN, "FLOP"), si(8 * WIDTH * HIDDEN, "byte")] for k in TOKENS],
    ["tokens", "tensors: each computes", "tensors: all-reduce", "data: each computes", "data: all-reduce"],
    caption=f"An MLP of width {WIDTH} with {HIDDEN} hidden. Before anything is timed, the two columns of bytes say what will happen.",
)

# %% tags=["measured"]
mine = measure_here("split")

# %% tags=["measured"]
split_figure(mine)

# %% tags=["measured"]
split_table(mine)

# %% [markdown]
# ### Explain the difference
#
# - **Tensors** send more when they compute more, so the ratio stays, and so does the predicted speedup. **Data** sends all gradients whatever the batch; few tokens cannot pay for that, and two processes
#   are then slower than one. That is the condition on tokens of this chapter, at the size of a laptop.
# - **Few tokens miss the prediction.** A product with a thin matrix reads the whole weight for a few rows: it is bound by memory and does not reach the peak of a large product (chapter 2). Halving the tokens
#   makes it thinner still, so data parallelism loses more than its messages cost.
# - **Halved matrices fit better.** Half of the weights may fit into a cache where the whole ones did not. A measured speedup can then lie above the predicted one.
# - **Two processes share** memory and cores with each other and with whatever else runs. The peak was measured with both at work, but the all-reduce runs alone.

# %%
split_figure(shipped()["amd_epyc_2core"])

# %%
split_table(shipped()["amd_epyc_2core"])

# %% [markdown]
# ## Before a large run
#
# The checklist of the notes, with the question that makes an item a number where there is one.
#
# | check | as a number, or how |
# |---|---|
# | topology, NVLink, PCIe and NIC locality, rails | `nvidia-smi topo -m`; each GPU's NIC at its own root. A wrong one shows as jitter |
# | versions of driver, CUDA, NCCL, PyTorch | the same on each node, printed by the job |
# | memory headroom | `training_memory`, exercises `activations`, `zero_stage` |
# | data, tensor, pipeline, expert groups | `data_ranks`, `stage_in_flight`, `hot_expert`; tensor groups inside a node |
# | batch, micro-batch, accumulation | `accumulation`, `fewest_micro_batches` |
# | NIC rate, RDMA, MTU, PFC, ECN, DCQCN, interface binding | `nic_time`; `NCCL_SOCKET_IFNAME`, `NCCL_IB_HCA`; no silent fallback to sockets |
# | a benchmark of each collective that the job uses | `which_benchmark`, and chapter 7 for what is normal |
# | drops, congestion, variance of the step | `straggler`; counters before and after |
# | overlap, bubble, all-to-all | `critical_tokens`, `bubble_over_total`, `expert_exchange`, `what_first` |
# | checkpoints | `checkpoint_write`, `checkpoint_interval`, `lost_share`; restore one before the run |
#
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %%
from lightspeed_course import gallery

gallery("06")

# %% [markdown]
# ## Exercises
#
# `exercises/06_parallelism.ipynb` has the fourteen questions, the checklist and a function to write. `check` tells you what went wrong, not only that it did.
#
# ## Terms
#
# | term | meaning |
# |---|---|
# | micro-batch | the part of a batch that goes through a pipeline, or is accumulated, at a time |
# | bubble | idle time of a pipeline in fill and drain |
# | all-reduce, all-gather, reduce-scatter, all-to-all | sum for all; shards to all; each a shard of the sum; each something else to each other |
# | ZeRO, FSDP | data parallelism without copies of states; PyTorch's name for all three stages |
# | straggler | the rank that the others wait for |
# | high-speed domain | GPUs joined by NVLink and NVSwitch |
# | rail | the GPUs of one place in each node and the switch that joins them |
# | RDMA, RoCE | memory of another host without its CPU; the same over Ethernet |
# | MFU, HFU | FLOPs that the model needs, or that the hardware did, over the peak |
#
# ## What the model leaves out
#
# Latency and congestion, which chapter 7 puts in; overlap that is partial; schedules with unequal chunks; the allocator; offload to the host; the loss curve, which does not care for your batch size
# up to a point and then does; and the week that a new plan takes to debug. A sum of bounds says what to change first, and how far off a plan is from its own limit.
#
# ## Further reading
#
# - Shoeybi et al., *Megatron-LM* (2019), and Narayanan et al. (2021): tensor and pipeline parallelism, and the schedule with chunks.
# - Huang et al., *GPipe* (2019); Qi et al., *Zero Bubble Pipeline Parallelism* (2023).
# - Rajbhandari et al., *ZeRO* (2020); Korthikanti et al., *Reducing Activation Recomputation* (2022).
# - Austin et al., *How to Scale Your Model* (2025): the conditions of this chapter, for TPUs and GPUs.
# - Daly, *A higher order estimate of the optimum checkpoint interval* (2006); Grattafiori et al., *The Llama 3 Herd of Models* (2024), on failures.
# - Pasanen, *Deep Learning for Network Engineers*, chapter 8: the notes' own source.
