# %% [markdown]
# # 6.1. Parallelism: what must fit
#
# You want to train a model of seventy billion parameters. Its weights fit into one node of eight
# GPUs with room to spare. You start the job, and it dies in its first step: out of memory. What was
# forgotten?
#
# This is the first of three lessons on one question: how do you split a job over GPUs? Here you
# count what each GPU must hold; then [what it must send](06_parallelism_2_sent.ipynb), and
# [who waits for whom](06_parallelism_3_waits.ipynb). Half an hour; you need chapters 2 and 3. The
# evidence is on the [proof page](06_parallelism_proof.ipynb).

# %% tags=["setup"]
from lightspeed.catalog import accelerator
from lightspeed.memory import *
from lightspeed_models.llm import decoder, model_activation_bytes, training_memory
from lightspeed_course import Axis, Bars, Boxes, Chart, Rule, Text
from lightspeed_course import ask, bench, beside, figure, job, predict, reveal, si

# %%
job.sheet(until="06.1")

# %% [markdown]
# **First, one from lesson 1.** To use a model is one thing; training comes after it.

# %%
ask("numbers.inference_memory", seed="again")

# %% [markdown]
# ## Guess first
#
# The backward pass needs things that the forward pass computed, so they have to stay somewhere in
# between. How much is that?

# %%
predict("parallelism.kept_of_sequence", ...)

# %% tags=["setup"]
llama, h100 = decoder(job.MODEL), accelerator(job.GPU)
node, states = job.node_memory(), training_state_bytes(llama.parameters)
spread = training_memory(llama, h100.hbm_capacity, job.SEQUENCE, data=job.GPUS, stage=3)
of_gpt = activation_bytes(1, 1, 1, 1, recompute="selective")
token = job.activations() / job.LONG

# %% [markdown]
# ## What do you keep for a weight?
#
# To use a weight, you keep the weight, in two bytes. But training also changes it, and that takes
# more than you'd think. Follow one weight through a step of Adam in mixed precision, and write down
# what has to be there for it:
#
# ```
# forward, backward   the weight              ■■
# backward            its gradient            ■■
# optimizer           a precise copy of it    ■■■■
#                     mean of its gradients   ■■■■
#                     mean of their squares   ■■■■       ■ one byte
# ```
#
# Count the squares: {{training_state_bytes(1).total:.0f}} bytes. Why a second copy of something you
# already have? Because one step changes a weight by so little that two bytes would often round the
# change away (chapter 5). The two means, by which Adam steps, are called its *moments*.
#
# **For each byte of weights, training keeps eight**, and that before a single token has come in.
# These are the *states*. Here they are for this job, beside the memory of a node of eight H100s:

# %% tags=["holds"]
assert training_state_bytes(1).total == 8 * training_state_bytes(1).weights, "each byte of weights"

# %% tags=["figure"]
kinds = {"weights": "blue", "gradients": "green", "optimizer": "purple"}
sizes = [getattr(states, kind) for kind in kinds]
begins = [sum(sizes[:k]) for k in range(len(sizes))]
figure(
    Chart(
        Axis("memory", "byte"),
        Axis(scale="category", categories=["to use it", "to train it"]),
        [
            Bars(["to use it"], sizes[:1], [0.0], color="blue"),
            *(
                Bars(["to train it"], [a + b], [a], kind, [si(b, "byte")], color)
                for a, b, (kind, color) in zip(begins, sizes, kinds.items())
            ),
            Rule(x=node, label="a node"),
        ],
        height=150,
    ),
    caption="Llama 3 70B. The weights fit several times, the states not once.",
    alt="Two bars against the memory of a node. The upper one, the weights, ends far before it. The"
    " lower one goes on with gradients and optimizer and ends far behind it.",
)

# %% tags=["holds"]
assert 2 * states.weights < node < states.total, "fit several times"
assert node > 2 * sizes[0] and begins[-1] + sizes[-1] > 1.5 * node, "ends far behind it"

# %% [markdown]
# They are {{si(states.total, "byte")}}, and the node has {{si(node, "byte")}}. (Recipes differ a
# little: Megatron keeps gradients in four bytes, for example.
# [Proof](06_parallelism_proof.ipynb#Recipes))

# %% [markdown]
# ## What if more GPUs join in?
#
# The plainest way to use many GPUs is **data parallelism** (PyTorch's DDP): each takes different
# samples, and a copy of
# the whole model. Each such GPU is a **rank**. But a thousand GPUs would keep a thousand copies of
# the optimizer, all identical, and each GPU would be exactly as full as one alone.
#
# **ZeRO**, *sharding*, stops the repetition. It gives each weight an owner, and each of its
# stages leaves one
# thing more to the owner alone: first the optimizer's bytes, then the gradient, then the weight.
# Move the lever, and watch the squares off the diagonal, which a GPU keeps for weights of
# others:

# %% tags=["holds"]
assert zero_bytes_per_device(1, 1000, 0) == 16, "full as one alone"

# %%
from lightspeed_course.explorers.states import explore_states

explore_states()

# %% [markdown]
# On four GPUs, stages 0 to 3 need {{", ".join(f"{zero_bytes_per_device(1, 4, s):g}" for s in range(4))}}
# bytes for each weight. The first stage saves the most, because the optimizer is three
# quarters of the sixteen bytes. In stages 1 and 2 something stays whole on each GPU, so there is a
# floor that no number of GPUs gets below, and in stage 3 there is none. In PyTorch, `DDP` is stage 0 and
# `fully_shard` (**FSDP**) stage 3. There is no switch called stage 1 or 2;
# [lesson 6.2](06_parallelism_2_sent.ipynb#Which-switch-is-that?) has those that make them.
#
# So is the job saved? Over its {{job.GPUS}} GPUs, stage 3 leaves
# {{si(job.states() / job.GPUS, "byte")}} of states for each, and an H100 has
# {{si(h100.hbm_capacity, "byte")}}. That looks comfortable. But the states are only what is there
# *before* the first token comes in.

# %% tags=["holds"]
assert (
    [zero_bytes_per_device(1, 4, s) for s in range(4)] == [16, 7, 5.5, 4]
    and zero_bytes_per_device(1, 10**9, 1) > 4
    and zero_bytes_per_device(1, 10**9, 2) > 2
    and zero_bytes_per_device(1, 10**9, 3) < 1e-6
), "3 there is none"
assert training_state_bytes(1).optimizer == 0.75 * training_state_bytes(1).total, (
    "three quarters of the sixteen"
)
assert zero_bytes_per_device(1, 4, 0) - zero_bytes_per_device(1, 4, 1) > (
    zero_bytes_per_device(1, 4, 1) - zero_bytes_per_device(1, 4, 3)
), "stage saves the most"

# %% [markdown]
# ## What does a token leave behind?
#
# Each layer computes in the forward pass what its backward pass will need: the input of each
# product, for instance, because the gradient of a matrix is made of it. These are the
# *activations*. They have to stay until the backward pass comes by, and they grow with the tokens,
# which is why a batch is worked through in parts, called *micro-batches*. Here is what one layer of
# a GPT keeps of a token, each tensor as wide as the bytes that it needs; add them up:

# %% tags=["figure"]
parts = {  # bytes of a unit of the model's width; whether tensor parallelism cuts them
    "norm in": (4, False), "norm out": (4, False), "q, k, v": (6, True),
    "heads": (2, True), "MLP, hidden": (16, True), "dropout": (2, False),
}  # fmt: skip
rows = {"on one GPU": 1, "on each of eight": 8}
marks, drawn = [], {False: [], True: []}
for row, (name, ways) in enumerate(rows.items()):
    x, y = 0.0, 3.2 - 1.7 * row
    for wide, cut in parts.values():
        drawn[cut].append(
            (x, x + wide, y, y + 0.9) if not cut else (x, x + wide / ways, y, y + 0.9)
        )
        x += wide
    marks.append(Text(0, y + 1.15, name, "grey", "start"))
x = 0.0
for name, (wide, _) in parts.items():
    marks.append(Text(x + wide / 2, 0.9 if wide > 3 else 0.4, f"{name}: {wide}"))
    x += wide
marks += [
    Boxes(*zip(*drawn[True]), "cut by tensor parallelism", color="blue"),
    Boxes(*zip(*drawn[False]), "whole on each GPU", color="orange"),
]
figure(
    Chart(Axis(domain=(-0.5, 35)), Axis(domain=(0, 4.8)), marks, height=230, bare=True),
    caption="What a layer keeps of a token, in bytes for each unit of the width: "
    f"{sum(wide for wide, _ in parts.values())} in all.",
    alt="Two rows of boxes, as wide as their bytes. The largest is the hidden vector of the MLP. "
    "In the second row the blue boxes have an eighth of their width, and the orange ones all of it.",
)

# %% tags=["holds"]
assert sum(wide for wide, _ in parts.values()) == of_gpt, "in all"
assert sum(wide for wide, cut in parts.values() if cut) == 2 * (
    of_gpt - activation_bytes(1, 1, 1, 1, tensor=2, recompute="selective")
), "eighth of their width"
assert max(parts, key=lambda name: parts[name][0]) == "MLP, hidden", "The largest is"

# %% [markdown]
# The upper row is {{of_gpt:.0f}} bytes for each unit of the model's width, and a gated MLP without
# dropout, such as Llama's, comes close to that. So a token that passes all {{llama.depth}} layers
# leaves {{si(token, "byte")}} behind. Now look at your guess again:

# %% tags=["holds"]
assert 0.9 < token / (llama.depth * llama.width) / of_gpt < 1, "comes close to that"

# %%
reveal("parallelism.kept_of_sequence")

# %% [markdown]
# A single sequence of {{job.LONG:,}} tokens needs {{si(job.activations(), "byte")}}: more than the
# weights, and more than two H100s have. And this already leaves out the attention scores, one for
# each pair of tokens in each head, which would need more than everything else together. Luckily
# nobody keeps those any more: FlashAttention works through them in blocks and computes them again
# in the backward pass.
#
# You have three ways out. **Compute again:** keep only the input of each layer and run the layer a
# second time before its backward pass (*full recomputation*), or repeat just the part with the
# scores (*selective*). **Split the layer:** *tensor parallelism* cuts its products, so each GPU
# keeps its share of the blue boxes, as in the lower row; *sequence parallelism* also shares out the
# orange ones, by tokens. Or **send fewer tokens at once**, as long as at least one sequence goes
# through.
#
# A *pipeline* gives each GPU some of the layers, and you'd think that this helps as well. It
# doesn't: the first of $p$ stages has $1/p$ of the layers, but in the usual schedule it holds $p$
# micro-batches at a time, and $p$ cancels ([lesson 6.3](06_parallelism_3_waits.ipynb) shows why). What
# a pipeline does split are the states.

# %% tags=["holds"]
assert job.activations() > 2 * h100.hbm_capacity > states.weights, "more than two H100s"
assert model_activation_bytes(llama, job.LONG, recompute="none") > 2 * job.activations(), (
    "more than everything else together"
)
gpt3 = decoder("gpt3_175b")
assert (
    model_activation_bytes(gpt3, 2048, tensor=8, split="tensor+sequence")
    == model_activation_bytes(gpt3, 2048) / 8
), "shares out the orange"
assert model_activation_bytes(gpt3, 2048, pipeline=8) == model_activation_bytes(
    gpt3, 2048
), "p$ cancels"

# %% [markdown]
# ## Does it fit, and what is the largest part?
#
# Beside states and activations there are three smaller things: the *logits*, a number for each
# word of the vocabulary at each token; *buffers* for what is sent and for products that aren't fused,
# with what CUDA and NCCL take for themselves; and the gaps that an allocator leaves. For all of these a
# tenth is a fair premise until you've measured your own. One function adds it up. Put your own model and
# GPU in place of the job's, and say how it is split:

# %%
use = training_memory(decoder("llama3_70b"), accelerator("h100_sxm").hbm_capacity, job.LONG, data=64, stage=3)
use.total, use.largest, use.fits

# %% [markdown]
# Your job's sequences have {{job.SEQUENCE:,}} tokens, but Llama 3 was trained on {{job.LONG:,}}, so that
# was one of those. Here it is beside other plans:

# %% tags=["figure"]
ranks = job.GPUS
both = dict(data=2, tensor=8, pipeline=4, split="tensor+sequence")
plans = {
    "one GPU": dict(data=1),
    "ZeRO-3, scores kept": dict(data=ranks, stage=3, recompute="none"),
    "ZeRO-3": dict(data=ranks, stage=3),
    "ZeRO-3, all recomputed": dict(data=ranks, stage=3, recompute="full"),
    "tensor 8, pipeline 4": both,
    "the same, ZeRO-1": both | dict(stage=1),
    "and all recomputed": both | dict(stage=1, recompute="full"),
}
uses = {n: training_memory(llama, h100.hbm_capacity, job.LONG, **plan) for n, plan in plans.items()}
colors = {
    "weights": "blue", "gradients": "green", "optimizer": "purple",
    "activations": "orange", "logits": "amber", "buffers": "grey",
}  # fmt: skip
shown = {name: use for name, use in uses.items() if use.total < 4 * h100.hbm_capacity}
beyond = {name: use for name, use in uses.items() if name not in shown}


def stacked(part):
    """Bars of one part, each starting where the parts before it end."""
    before = list(colors)[: list(colors).index(part)]
    start = [sum(getattr(u, p) for p in before) for u in shown.values()]
    end = [a + getattr(u, part) for a, u in zip(start, shown.values())]
    return Bars(list(shown), end, start, label=part, color=colors[part])


figure(
    Chart(
        Axis("memory of a GPU", "byte"),
        Axis(scale="category", categories=list(shown)),
        [stacked(p) for p in colors] + [Rule(x=h100.hbm_capacity, label="capacity")],
        height=300,
    ),
    caption=f"Llama 3 70B on {ranks} {h100.name}s, sequences of {si(job.LONG, 'token')}. "
    "Off the chart: " + "; ".join(f"{n}: {si(u.total, 'byte')}" for n, u in beyond.items()) + ".",
    alt=f"Stacked bars of memory for {len(shown)} plans against the capacity of a GPU. "
    + "; ".join(
        f"{n}: {si(u.total, 'byte')}, the largest part {u.largest}" for n, u in shown.items()
    ) + ".",
)  # fmt: skip

# %% [markdown]
# Each bar names its cause. ZeRO-3 alone doesn't fit, because it shares out the states and leaves
# the activations whole; each of the plans under it does. So name what is large first, and it tells
# you which split to think of:
#
# | what is too large | why | what is split |
# |---|---|---|
# | the batch | many samples | the batch: data parallelism |
# | optimizer, gradients, then weights | repeated on each rank | the states: ZeRO, FSDP |
# | a layer, or its activations | wide matrices, long sequences | the products: tensor and sequence parallelism; the sequence: context parallelism (lesson 6.3) |
# | the states, still | a deep model | the layers: pipeline parallelism |
# | the experts | a mixture of many | the experts: expert parallelism (lesson 6.3) |

# %% tags=["holds"]
assert not uses["ZeRO-3"].fits and uses["ZeRO-3"].largest == "activations", "ZeRO-3 alone"
assert all(
    u.fits for n, u in uses.items() if n not in ("one GPU", "ZeRO-3, scores kept", "ZeRO-3")
), "of the plans under"

# %% [markdown]
# ## The answer
#
# **What was forgotten?** Training's states. The weights need {{si(states.weights, "byte")}} of the
# node's {{si(node, "byte")}}, but weights, gradients and optimizer need
# {{si(states.total, "byte")}}, so not even the first step could end.
#
# **And is one node more enough?** For the states, yes. Yet then the activations come: with
# sequences of {{job.LONG:,}} tokens and ZeRO alone the job would die again, on any number of GPUs,
# because these stay whole.
#
# **Does our job fit?** It does, since its sequences are short. Shared out over all {{ranks}} GPUs the
# states are {{si(states.total / ranks, "byte")}} each, one sequence of {{job.SEQUENCE:,}} tokens keeps
# {{si(job.activations(job.SEQUENCE), "byte")}}, and with logits and buffers that makes
# {{si(spread.total, "byte")}} of {{si(h100.hbm_capacity, "byte")}}. You start it again, and this
# time it runs. But it is slow. [Why?](06_parallelism_2_sent.ipynb)

# %% tags=["holds"]
assert states.weights < node < states.total, "not even the first step"
assert (
    states.total < 2 * node
    and not training_memory(llama, h100.hbm_capacity, job.LONG, data=10**6, stage=3).fits
), "on any number of GPUs"
assert spread.fits, "this time it runs"

# %% [markdown]
# ## Decide

# %%
ask("parallelism.room_for_training")

# %%
ask("parallelism.zero_states", seed="other")

# %%
ask("parallelism.activations", seed="lesson")

# %%
ask("parallelism.which_split")

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - With Adam in mixed precision, training keeps at least eight bytes for each byte of weights, if its
#   moments are in fp32, and then the activations.
# - Name what is large; it tells you which split to think of.
# - Data parallelism repeats the states, ZeRO shares them out.

# %% [markdown] tags=["card"]
# | formula | meaning | unit | for the job |
# |---|---|---|---|
# | $(4 + K)\,P$ | states of $P$ parameters: weights and gradients in two bytes, $K$ = {{training_state_bytes(1).optimizer:.0f}} for Adam | byte | {{si(states.total, "byte")}} |
# | $4P + KP/n$ | of a GPU in stage 1 of ZeRO over $n$ | byte | {{si(zero_bytes_per_device(llama.parameters, ranks, 1), "byte")}} |
# | $2P + (2 + K)P/n$ | of a GPU in stage 2 | byte | {{si(zero_bytes_per_device(llama.parameters, ranks, 2), "byte")}} |
# | $(4 + K)P/n$ | of a GPU in stage 3 | byte | {{si(zero_bytes_per_device(llama.parameters, ranks, 3), "byte")}} |
# | about {{of_gpt:.0f}}$\,t\,D$ | what a layer of width $D$ keeps of $t$ tokens, without scores | byte | {{si(token / llama.depth * job.SEQUENCE, "byte")}} |
# | $2\,t\,D$ | the same, if the layer is run again (full recomputation) | byte | {{si(model_activation_bytes(llama, job.SEQUENCE, recompute="full") / llama.depth, "byte")}} |

# %% [markdown]
# ## In your own framework
#
# Sixteen bytes again, though divided otherwise: plain torch keeps the weights themselves in four. And
# autograd can be asked what it saves for the backward pass of an MLP, here in four bytes a number: what
# goes in, the hidden vector, and what comes out (one, four and one times the width).

# %% tags=["figure"]
beside("06_kept")

# %% [markdown]
# ## One reading
#
# A job misses its plan, and the profile shows that more time goes to products of matrices than the
# plan has for them. What could make a GPU multiply more, or the plan expect less? Judge by what
# stands out, not by how far.

# %%
bench("06.1")

# %% [markdown]
# ## Exercises, proof, next
#
# [The exercises](../exercises/06_parallelism.ipynb) have questions on all three lessons and a
# function to write. Next: [what must be sent](06_parallelism_2_sent.ipynb).
#
# ## Further reading
#
# - Rajbhandari et al., *ZeRO* (2020): the sixteen bytes, and who needs them.
# - Korthikanti et al., *Reducing Activation Recomputation* (2022): what a layer keeps, tensor by
#   tensor.
