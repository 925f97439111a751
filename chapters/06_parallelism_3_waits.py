# %% [markdown]
# # 6.3. Parallelism: who waits for whom
#
# You know what holds the job up: weights that come over the network again and again, for too few
# tokens. So leave the weights where they are! Cut the model into stages, and hand only the tokens
# on. Now almost nothing is sent, and still your GPUs stand idle. Whom are they waiting for this
# time, and does the week come out in the end?
#
# Thirty-five minutes; you need [lesson 6.2](06_parallelism_2_sent.ipynb). The evidence is on the
# [proof page](06_parallelism_proof.ipynb).

# %% tags=["setup"]
from lightspeed.parallel import *
from lightspeed.pipeline import *
from lightspeed.reliability import *
from lightspeed_models.simulators.schedules import simulate
from lightspeed_course import Axis, Bars, Boxes, Chart, Line, Rule, Text, ask, figure, human_time
from lightspeed_course import bench, beside, job, predict, reveal, si, table

# %%
job.sheet(until="06.3")

# %% [markdown]
# **First, one from lesson 3.** This lesson is about nothing else.

# %%
ask("scaling.wait_for_both", seed="again")

# %% [markdown]
# ## Guess first
#
# The longest wait of all is for something that is broken. A training run on thousands of GPUs kept
# a record of its interruptions. Take its failure rate to a larger cluster.

# %%
predict("parallelism.cluster_mtbf", ..., seed="run")

# %% tags=["setup"]
from lightspeed_models.training_runs import fit_share

fewest = next(m for m in range(1, 99) if bubble_over_total(4, m) <= 0.1)
chance, factor = 0.001, 1.5  # assumed

# %% tags=["setup"]
from lightspeed.catalog import find

record = find("llama3_record")
days, interruptions, gpus = round(record.length / 86400), int(record.unexpected), int(record.gpus)
mtbf = observed_mtbf(record.length, record.unexpected)

# %% [markdown]
# ## Why is a GPU idle in a pipeline?
#
# A pipeline gives each GPU some of the layers. A stage sends the activations of a micro-batch on to
# the next one, and gets their gradients back from it, which is less than tensor parallelism sends
# in a single layer. So the price of a pipeline isn't its traffic. What is it, then?
#
# Cut a model into four stages with a GPU each, and the batch into micro-batches that follow one
# another down the line, first forward and then back. Watch who has nothing to do, and when:

# %% tags=["holds"]
assert all(pipeline_bytes(1024, 8192) < tensor_parallel_bytes(1024, 8192, t) for t in (2, 4, 8)), (
    "in a single layer"
)

# %%
from lightspeed_course.explorers.schedules import explore_schedules

explore_schedules()

# %% [markdown]
# Go back to the moment in which three GPUs have been at work: the last one still waits for the first
# micro-batch to come down the line. The first GPU has to wait until it comes back. Every row has the same amount of blank, and you pay for it. It's
# called the **bubble**. Do the smallest case on paper, with two stages and two micro-batches whose
# passes take one slot each:
#
# ```
# GPU 0   F  F  .  .  B  B
# GPU 1   .  F  F  B  B  .
# ```
#
# Four of the twelve slots are blank. That's a third of the step, or half of the work, and since
# people use both fractions you should always say which one you mean. With $p$ stages and $m$
# micro-batches, each GPU works for $2m$ slots and waits for $2(p - 1)$:
#
# $$\frac{\text{idle} }{\text{work} } = \frac{p - 1}{m}
# \qquad\qquad \frac{\text{idle} }{\text{step} } = \frac{p - 1}{m + p - 1}$$
#
# If a backward pass takes twice as long as a forward pass, both fractions stay as they are. So the
# remedy is more micro-batches. How many bring the idle share of four stages down to a tenth? By the
# second formula it takes {{fewest}}. But at a given batch, more of them means smaller ones, which
# fill a GPU less well. And how many must a GPU hold at a time? That depends on their order:

# %% tags=["holds"]
runs = {name: simulate(name, 4, 8, 1.0, 2.0) for name in ("gpipe", "1f1b")}
assert len(set(runs["1f1b"].busy)) == 1, "Every row has the same"
assert abs(bubble_over_total(2, 2) - 1 / 3) < 1e-12 and bubble_over_ideal(2, 2) == 1 / 2, (
    "a third of the step"
)
assert bubble_over_total(4, fewest) <= 0.1 < bubble_over_total(4, fewest - 1), (
    "By the second formula"
)
assert abs(runs["gpipe"].bubble_over_total - bubble_over_total(4, 8)) < 1e-12, (
    "takes twice as long as a forward"
)
plain = simulate("gpipe", 4, 4, 1, 1)
assert plain.span == 2 * (4 + 4 - 1) and plain.bubble_over_total > 0, "works for"
assert bubble_over_total(8, 16) > bubble_over_total(8, 32), "remedy is more micro-batches"

# %% tags=["figure"]
looks = {"F": ("forward", "blue"), "B": ("backward", "orange")}


def bars(passes, label, color):
    at, start, end = zip(*((f"GPU {q.work.stage}", q.start, q.end) for q in passes))
    numbers = [str(q.work.micro_batch + 1) for q in passes]
    return Bars(at, end, start, label=label, labels=numbers, color=color, width=0.85)


def gantt(run, title):
    """The timeline of a run: a row a GPU, a bar a pass, the number of its micro-batch in it."""
    kinds = {kind: [q for q in run.passes if q.work.kind == kind] for kind in looks}
    marks = [bars(passes, *looks[kind]) for kind, passes in kinds.items() if passes]
    time = Axis("time, in forward passes of a stage", domain=(0, run.span))
    rows = Axis(scale="category", categories=[f"GPU {i}" for i in range(run.stages)])
    return Chart(time, rows, marks, title=title, height=45 * run.stages + 90)


runs = {name: simulate(name, 4, 8, 1.0, 2.0) for name in ("gpipe", "1f1b")}
figure(
    [gantt(runs["gpipe"], "GPipe"), gantt(runs["1f1b"], "1F1B")],
    caption="GPipe runs all forward passes, then all backward passes. 1F1B, one forward and one "
    "backward, starts a backward pass as soon as it can. It has the same bubble, with fewer "
    "micro-batches in flight.",
    alt="Two timelines of four GPUs. Both fill and drain alike; in the second, forward and "
    "backward passes alternate after the fill.",
)

# %% tags=["holds"]
assert runs["gpipe"].span == runs["1f1b"].span, "the same bubble"
assert max(runs["1f1b"].peak_activations) < min(runs["gpipe"].peak_activations), (
    "fewer micro-batches in flight"
)

# %% [markdown]
# In **GPipe** a GPU holds the activations of all $m$ micro-batches at once. **1F1B**, which nearly
# everybody uses, has the same bubble and holds only as many as there are stages, however many more
# there are in the batch. **Interleaving** (virtual stages) gives each GPU several smaller pieces
# of the model, $v$ of
# them, and divides idle over work by $v$, but sends $v$ times as often. (Idle over step falls by less:
# of eight stages and sixteen micro-batches, two pieces bring it from {{bubble_over_total(8, 16):.0%}}
# to {{bubble_over_total(8, 16, 2):.0%}}.) **Zero-bubble** schedules fill the gaps with gradients of
# weights, which no other GPU waits for. DeepSeek's **DualPipe** sends micro-batches in from both
# ends.
# ([Their timelines and their price](06_parallelism_proof.ipynb#Schedules,-side-by-side))
#
# All of this assumes that the stages need the same time. If they don't,
# [the slowest sets the pace](06_parallelism_proof.ipynb#One-slow-stage,-slow-transfers).

# %% tags=["holds"]
from lightspeed_models.simulators.schedules import order

assert [w.kind for w in order("1f1b", 4, 8)[0]][:5] == 4 * ["F"] + ["B"], "as there are stages"
assert all(
    simulate("1f1b", 4, k).peak_activations[0] == 4
    and simulate("1f1b", 4, k).span == simulate("gpipe", 4, k).span
    and simulate("gpipe", 4, k).peak_activations[0] == k
    for k in (8, 16, 32)
), "in the batch"
assert bubble_over_ideal(4, 8, 2) == bubble_over_ideal(4, 8) / 2, "divides idle over work"
assert all(
    bubble_over_total(p, g * p, 2) > bubble_over_total(p, g * p) / 2
    for p in (2, 4, 8) for g in (1, 2, 8)
), "Idle over step falls by less"

# %% [markdown]
# ## Who waits for the popular expert?
#
# In a mixture of experts a router picks, for each token, the experts that it passes. With the
# experts on different GPUs the tokens have to travel, each GPU sending something else to each of
# the others. That's an **all-to-all**, and the split **expert parallelism**. What if half of all
# tokens want the same expert?

# %%
from lightspeed_course.explorers.experts import explore_experts

explore_experts()

# %% [markdown]
# With a fair router each expert gets twelve tokens, nine of them from other GPUs. Now GPU 0
# receives eighteen, so the exchange takes twice as long; then its expert has the most to compute,
# while all others wait for it; and on the way back it has the most to send. **The fullest column is
# the clock.** A layer has four such exchanges, there and back, forward and backward, which is why
# so much effort goes into balance: extra losses, biases, and limits to what an expert takes (its
# *capacity factor*).

# %% tags=["holds"]
assert [
    skewed_exchange(12, 1, 4, 1 / 4, 1).hot_receives,
    skewed_exchange(12, 1, 4, 1 / 2, 1).hot_receives,
] == [9, 18], "takes twice as long"

# %% [markdown]
# ## Who waits for the long end of a sequence?
#
# What if a single sequence is too long for a GPU? **Context parallelism** (ring attention) cuts
# the sequence: four
# GPUs take the first tokens, the next ones, and so on. Norms, projections and the MLP don't notice,
# as they treat each token by itself. Attention does, because a query meets the keys and values of
# all tokens before it:

# %% tags=["figure"]
pieces = 8


def triangle(title, owner):
    found = {gpu: [] for gpu in range(4)}
    for q in range(pieces):
        for k in range(q + 1):
            found[owner(q)].append((k, k + 0.92, pieces - q - 0.92, pieces - q))
    marks = [
        Boxes(*zip(*boxes), f"GPU {gpu}: {len(boxes)} blocks", color=color)
        for (gpu, boxes), color in zip(found.items(), ("blue", "orange", "green", "purple"))
    ]
    marks += [Text(pieces / 2, -0.8, "keys and values, from the first token to the last", "grey")]
    return Chart(
        Axis(domain=(-0.2, 17)), Axis(domain=(-1.2, 8.2)), marks, title=title, height=300, bare=True
    ), {gpu: len(boxes) for gpu, boxes in found.items()}


cut_once, plain_work = triangle("cut once: two pieces in a row for each GPU", lambda q: q // 2)
zigzag, fair_work = triangle(
    "zigzag: a piece from the front, one from the back", lambda q: min(q, pieces - 1 - q)
)
figure(
    [cut_once, zigzag],
    caption="A row is a piece of the queries, a block the work that it has with a piece of keys. "
    "Cut once, the last GPU has the most to do; in zigzag all have the same.",
    alt="Two triangles of blocks, in the colours of four GPUs. In the first the rows of the last GPU"
    " are the longest; in the second each GPU has a short row and a long one.",
)

# %% tags=["holds"]
assert max(plain_work, key=plain_work.get) == 3 and len(set(fair_work.values())) == 1, (
    "Cut once, the last GPU"
)

# %% [markdown]
# Cut once, GPU 3 has {{plain_work[3]}} blocks of work and GPU 0 has {{plain_work[0]}}, so everybody
# waits for GPU 3. In zigzag each GPU takes one piece from the front and the matching one from the
# back, and they all finish together. The keys and values still travel: if each of $c$ GPUs has $t$
# tokens, with $k$ elements of K for a token and as many of V, Megatron sends
# $3 \cdot (c - 1) \cdot 4\,t\,k$ bytes a layer. Keys and values go round in the forward pass, and
# again in the backward pass, since nobody keeps those of all the others; and their gradients come
# back. ([PyTorch's](06_parallelism_proof.ipynb#A-cheap-gather-of-keys-and-values) are twice as wide,
# and go one step further.) Since that grows with the length of the sequence, and attention with its
# square, long sequences hide it easily.

# %% tags=["holds"]
assert context_parallel_bytes(1024, 8 * 128, 4) == 3 * 3 * 4 * 1024 * 8 * 128, "Megatron sends"

# %% [markdown]
# ## Who waits for the last rank?
#
# Everybody does, so what counts is not how slow a GPU is on average, but how likely *any* of them
# is slow, the **straggler**. If a rank is slow with a chance $q$ in a step, and then takes $f$
# times as long,
#
# $$\frac{\text{mean step} }{\text{usual step} } = 1 + (f - 1)\left(1 - (1 - q)^n\right)$$
#
# If that chance is one in a thousand, and a slow step takes half as long again, a thousand ranks
# take {{straggler_stretch(1000, chance, factor):.2f}} times as long: nearly two steps of three are
# slow ones. Chapter 8 says who is late, and why. ([Proof](06_parallelism_proof.ipynb#The-last-rank,-over-the-number-of-ranks))

# %% tags=["holds"]
assert 0.6 < 1 - (1 - chance) ** 1000 < 2 / 3, "steps of three are slow"

# %% [markdown]
# ## How often does everybody wait for a repair?
#
# Failure rates add up, so $n$ devices fail $n$ times as often as one. In {{days}} days on
# {{gpus:,}} GPUs, Llama 3's training was interrupted unexpectedly {{interruptions}} times, once in
# {{mtbf / 3600:.1f}} hours. By that rate a single GPU would have run for
# {{device_mtbf(mtbf, gpus) / 3600 / 24 / 365:.1f}} years. (On a few dozen GPUs your own software fails
# first.)

# %% tags=["holds"]
assert all(cluster_mtbf(1e8, k) * k == 1e8 for k in (2, 8, 100)), "times as often as"

# %%
reveal("parallelism.cluster_mtbf", seed="run")

# %% [markdown]
# So something will stop the job, and what you lose then is the work since it was last saved. How
# often should you save? Say that a save takes two minutes, and that the job fails once in a hundred
# minutes. If you save every twenty minutes, saving costs a tenth of the time. A failure destroys ten
# minutes on average, which is another tenth, so you lose a fifth. If you save every ten minutes, you
# lose a quarter, most of it to saving. If you save every forty, you lose a quarter again, most of it
# to failures.
#
# Now in letters. A save takes $\delta$ and follows each stretch $\tau$ of work, so saving costs a share
# $\delta/\tau$. A failure comes once in a time $M$ and destroys half of a stretch on average, a share
# $\tau/2M$. Their sum is least where both are equal, at Young's interval (**Young-Daly**), which is twenty minutes here:
#
# $$\tau = \sqrt{2\,\delta\,M}$$
#
# For the largest Llama 3 on that cluster, it looks like this:

# %% tags=["holds"]
assert abs(lost_share(20, 2, 100) - 2 / 20 - 20 / (2 * 100)) < 1e-12, "destroys half of a stretch"
assert abs(lost_share(20, 2, 100) - 0.2) < 1e-12, "so you lose a fifth"
assert abs(young_interval(2, 100) - 20) < 1e-12, "which is twenty minutes here"
assert abs(lost_share(10, 2, 100) - 0.25) < 1e-9 and 2 / 10 > lost_share(10, 2, 100) / 2, (
    "lose a quarter, most of it to saving"
)
assert abs(lost_share(40, 2, 100) - 0.25) < 1e-9 and 2 / 40 < lost_share(40, 2, 100) / 2, (
    "lose a quarter again, most of it to failures"
)
assert (
    min(
        (0.5, 0.9, 1.0, 1.1, 2.0),
        key=lambda f: lost_share(f * young_interval(50.0, 1e4), 50.0, 1e4),
    )
    == 1.0
    and abs(lost_share(20, 2, 100) - 2 * 2 / young_interval(2, 100)) < 1e-12
), "is least where both are equal, at Young's interval"

# %% tags=["figure"]
from lightspeed.roofline import transfer_time

size, storage = checkpoint_bytes(find("llama3_405b").parameters), 200e9  # assumed
write = transfer_time(size, storage)
young = young_interval(write, mtbf)
intervals = [60 * 1.04**k for k in range(152)]
first_order = [lost_share(t, write, mtbf) for t in intervals]
exactly = [stretch(t, write, mtbf) - 1 for t in intervals]
figure(
    Chart(
        Axis("work between checkpoints", "s", "log", domain=(60, 6 * 3600)),
        Axis("time lost, of the work done", "%", domain=(0, 1)),
        [
            Line(intervals, [min(lost, 5) for lost in exactly], "exactly", "blue"),
            Line(intervals, first_order, "by the two terms", "orange", dash=True),
            Rule(x=young, label=f"Young {human_time(young)}"),
        ],
        height=300,
    ),
    caption=f"A checkpoint of {si(size, 'byte')} at {si(storage, 'byte/s')} takes {si(write, 's')}"
    f"; the job fails every {human_time(mtbf)}. Half or twice the best interval "
    f"loses {max(stretch(f * young, write, mtbf) - 1 for f in (0.5, 2)):.1%} instead of "
    f"{stretch(young, write, mtbf) - 1:.1%}.",
    alt=f"Two curves of lost time with a flat valley near {human_time(young)}; they part for long "
    "intervals, where the two terms are too low.",
)

# %% tags=["holds"]
assert stretch(6 * 3600, write, mtbf) - 1 > lost_share(6 * 3600, write, mtbf), (
    "where the two terms are too low"
)

# %% [markdown]
# Near the bottom the curve is so flat that the simple formula will do, though there are finer ones,
# such as [Daly's](06_parallelism_proof.ipynb#How-often-to-save,-to-all-orders). A copy to host
# memory that is written out while the job goes on (**asynchronous checkpointing**) makes $\delta$
# the time of that copy. Then saving
# every few minutes costs little, and what counts is how fast you find the bad node and start again.

# %% tags=["holds"]
flat = [stretch(f * young, write, mtbf) - 1 for f in (0.5, 1, 2)]
assert (
    max(flat) < 1.3 * flat[1]
    and min(stretch(t, write, mtbf) - 1 for t in (60, 6 * 3600)) > 5 * flat[1]
), "so flat that"

# %% [markdown]
# ## The answer
#
# Back to the job, on its {{job.GPUS}} GPUs and its cheap network, with three ways to mend it.
# Alone, a GPU would do its products at {{fit_share():.0%}} of the peak. *MFU* is the share of the
# peak (in bf16) that the model's own FLOPs fill, the whole square of attention's scores included:
# some frameworks count half of it, and scripts none. *Memory, between products*, is what passes
# through HBM between kernels:

# %% tags=["figure"]
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, machine
from lightspeed_models.training_step import memory_use, step

cheap, better = (machine(job.GPU, name, share=fit_share()) for name in (job.NETWORK, job.BETTER))
as_it_was, recomputed = "ZeRO-3 over all GPUs", "four times the micro-batch, all recomputed"
placed, bought = "tensor 8 inside, pipeline 4, ZeRO-1", "ZeRO-3, four times the network"
spread = Plan(data=job.GPUS, stage=3, micro_batches=8)
larger = Plan(data=job.GPUS, stage=3, micro_batches=2, micro_size=4, recompute="full")
split = Plan(data=2, tensor=8, pipeline=4, micro_batches=256, stage=1)
plans = {
    as_it_was: (spread, cheap), recomputed: (larger, cheap),
    placed: (split, cheap), bought: (spread, better),
}  # fmt: skip
llama = decoder(job.MODEL)
steps = {name: step(llama, job.SEQUENCE, *plan) for name, plan in plans.items()}
memory = {name: memory_use(llama, job.SEQUENCE, *plan) for name, plan in plans.items()}
tokens = job.SEQUENCES * job.SEQUENCE
days_of = {name: one.time * job.TOKENS / tokens / 86400 for name, one in steps.items()}
waits = dict(data="weights, gradients", memory="memory, between products", tensor="sums in each layer")
table(
    [
        [
            name,
            si(memory[name].total, "byte"),
            si(one.time, "s"),
            si(one.mfu, "%"),
            f"{days_of[name]:.1f}",
            waits[one.largest_loss],
        ]
        for name, one in steps.items()
    ],
    ["plan", "memory a GPU", "step", "MFU", "days", "waits most for"],
    caption="The same batch, four ways.",
)

# %% [markdown]
# **What helps?** Larger micro-batches, first of all: they use each gathered weight for more tokens.
# They need memory for activations, so these are thrown away and the forward pass runs twice. That
# alone brings the run down to {{days_of[recomputed]:.1f}} days.
#
# Or leave the weights where they are: tensor parallelism on the fast links inside a node, a pipeline
# of four between nodes, and gradients that cross the network once a step. That takes
# {{days_of[placed]:.1f}} days on the same machines, with less than half of the memory of the first
# plan. **The week is kept.** Between these two ways a model that is
# [off by a tenth](06_parallelism_proof.ipynb#Check:-against-published-runs) can't decide, but an
# hour on the machines will. A faster network would do more, for more money.
#
# **Whom do the GPUs wait for now?** In the split plan mostly for tensor parallelism, which no
# network between nodes will mend. Its pipeline waits little:
# {{steps[placed].bubble / steps[placed].time:.1%}} of the step, since {{split.micro_batches}}
# micro-batches follow one another. On eight times as many GPUs only an eighth of them would be left
# to each pipeline, and the bubble would grow: a step then takes
# {{si(job.step("split", job.OFFERED).time, "s")}} where an eighth would be
# {{si(steps[placed].time / 8, "s")}}, and chapter 7 asks if that is good.
#
# Would narrower numbers do more? If all products ran twice as fast, the step would be
# {{job.narrower(2):.2f}} times as fast, because only arithmetic gets shorter, and no wait does.

# %% tags=["holds"]
from lightspeed.training import training_flops

assert training_flops(1, 1, 1) - training_flops(1, 1) == training_flops(1, 1) / 3, (
    "forward pass runs twice"
)
assert days_of[as_it_was] > days_of[recomputed] > days_of[placed], "on the same machines"
assert days_of[recomputed] < 7 and days_of[placed] < 7 < days_of[as_it_was], "is kept"
assert steps[placed].largest_loss == "tensor", "no network between nodes"
assert days_of[bought] < days_of[placed], "network would do more"
assert memory[placed].total < memory[as_it_was].total / 2, "half of the memory"
assert 1 < job.narrower(2) < 2, "only arithmetic gets shorter"
grown = job.step("split", job.OFFERED)
assert grown.bubble / grown.time > 2 * steps[placed].bubble / steps[placed].time, (
    "bubble would grow"
)

# %% [markdown]
# ## Which two plans would you measure?
#
# Now do it for a model and a cluster of your own. Three numbers are given: parameters, GPUs with their
# links, and the global batch that the learning wants. Each way of splitting makes one thing smaller, and
# sends something for it:
#
# | strategy | splits | sends | waits first for | belongs |
# |---|---|---|---|---|
# | data: DDP, ZeRO-1 | the batch | all-reduce, or scatter and gather, once a step | the network, stragglers | across nodes |
# | ZeRO-3, FSDP | also weights and gradients | two gathers and a scatter a layer and micro-batch | the network | across nodes, if a GPU has tokens enough |
# | hybrid FSDP | the same, over some of the ranks | the same inside, a sum of shards across | memory | inside a node, copies across |
# | tensor (+ sequence) | each product | four all-reduces a layer, in the way | the link inside | one node, one NVLink domain |
# | pipeline | the layers | activations, once a micro-batch and stage | its bubble | neighbouring nodes |
# | context | the sequence | keys and values in each layer | the link | inside, then across |
# | expert | the experts | all-to-all, in the way | the fullest expert | near one another |
#
# **First, does it fit with data parallelism alone?** Sixteen bytes a parameter over all GPUs, plus the
# activations of one sequence (lesson 6.1), must stay under the card. If so, FSDP is plan one, and you
# ask whether its tokens pay for the journey (lesson 6.2): a GPU's tokens in a micro-batch against
# $C/8R$. If they don't, you take a larger micro-batch and recompute, or hybrid groups if memory allows.
#
# **Second, take the GPUs apart.** Tensor ways up to a node, as few as fit; then as many stages as memory
# asks for; data parallelism with ZeRO-1 gets what is left. That is plan two. The global batch over
# replicas and micro-batch ([lesson 6.2](06_parallelism_2_sent.ipynb)) gives the micro-batches of a
# pipeline: with {{job.SEQUENCES}} sequences and {{split.data}} replicas
# each has {{job.SEQUENCES // split.data}}, so a bubble of four stages is nothing; were there as many
# replicas as sequences, each would have one, and three quarters of the step would be bubble.
#
# Then measure both for an hour. They lose most to different things, so what slows one of them
# may well spare the other. [Chapter 10](10_plan_a_run.ipynb) tries the ways in between, thousands of them.

# %% tags=["holds"]
assert bubble_over_total(4, job.SEQUENCES // split.data) < 0.02 and bubble_over_total(4, 1) == 3 / 4, (
    "three quarters of the step would be bubble"
)
assert split.data * split.micro_batches * split.micro_size == job.SEQUENCES, "each has"
assert {steps[recomputed].largest_loss, steps[placed].largest_loss} == {"memory", "tensor"}, (
    "They lose most to different things"
)

# %% [markdown]
# ## Try it
#
# Choose *the job of the lessons*, or a model and a cluster of your own, make it fit, then make it fast.
# Before each change say which bar will move. Then spread it by ZeRO-3 and share over groups of eight:
# what falls, and what no longer fits? And find a plan in which the bubble is the largest loss.

# %%
from lightspeed_course.explorers.parallelism import explore

explore()

# %% [markdown]
# ## Decide

# %%
ask("parallelism.bubble_over_total", seed="chapter")

# %%
ask("parallelism.what_first", seed="plan")

# %%
ask("parallelism.straggler", seed="chapter")

# %%
ask("parallelism.checkpoint_interval", seed="chapter")

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - A pipeline pays in waiting, hardly in bytes.
# - A step ends with its last rank.
# - Save every √(2δM), and find the bad node fast.

# %% [markdown] tags=["card"]
# | formula | meaning | unit | for the job |
# |---|---|---|---|
# | $(p - 1)/(m + p - 1)$ | idle share of a step in a pipeline of $p$ stages with $m$ micro-batches | | {{bubble_over_total(4, 256):.1%}} |
# | $1 - (1 - q)^n$ | chance that any of $n$ ranks is slow | | {{1 - (1 - chance) ** job.GPUS:.1%}}, if each is in one step of a thousand |
# | $M = M_1/n$ | time between failures on $n$ GPUs, each of which fails once in $M_1$ | s | {{human_time(cluster_mtbf(device_mtbf(mtbf, gpus), job.GPUS))}} |
# | $\sqrt{2\,\delta\,M}$ | work between two checkpoints | s | {{human_time(young_interval(30, cluster_mtbf(device_mtbf(mtbf, gpus), job.GPUS)))}}, if a save takes half a minute |

# %% [markdown]
# ## In your own framework
#
# PyTorch has both orders. Four processes take a layer each and write down what they do with eight
# micro-batches, F for a forward pass and B for a backward one. Count how many
# more F than B a row has at any moment: that's how many micro-batches it has to keep.

# %% tags=["figure"]
beside("06_orders")

# %% [markdown]
# ## One reading
#
# A job misses its plan, and its profile shows waiting in a collective, as it would if the network were
# slow, or a rank. Before anybody stops the job, somebody reads the clocks of all GPUs for an hour.

# %%
bench("06.3")

# %% [markdown]
# ## Exercises, proof, next
#
# [The exercises](../exercises/06_parallelism.ipynb) have the questions of all three lessons. Next:
# [chapter 7](07_nccl_bandwidth.ipynb) asks whether the network carries what it should.
#
# ## Further reading
#
# - Narayanan et al., *Efficient Large-Scale Language Model Training* (2021): pipelines with chunks.
# - Qi et al., *Zero Bubble Pipeline Parallelism* (2023).
# - Grattafiori et al., *The Llama 3 Herd of Models* (2024): what failed, and how often.
