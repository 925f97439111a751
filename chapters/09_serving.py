# %% [markdown]
# # 9. Serving
#
# Chapter 4 sized your replica: eight GPUs, a token every fiftieth of a second, and more than a
# dozen answers a second. It went live on Monday. At two requests a second everyone waits longer
# than promised for each token. At three, the first token takes seconds, then a minute, and the wait
# goes on growing for as long as anyone looks.
#
# Nothing is broken. The plan took the data sheet at its word and assumed that the prompts had been
# read already. What is left of it once you put back what it left out, and what would you change
# first?
#
# Half an hour; you need chapters 2 and 4. The evidence is on the
# [proof page](09_serving_proof.ipynb).

# %% tags=["holds"]
from lightspeed_course import job
from lightspeed_course.explorers.serving_steps import middle, run, waits

assert job.replica().rate > 12, "more than a dozen answers"
assert middle(waits(run(2.0, 8000, 2048, 0.0))[1]) > job.BUDGET, "everyone waits longer"

# %% tags=["setup"]
from lightspeed.catalog import accelerator, find, fitted, measured
from lightspeed.inference import drafted_tokens, experts_read
from lightspeed_models.llm import IDEAL, mixed_step
from lightspeed.serving import request_rate
from lightspeed_course import ask, Axis, Bars, Chart, figure, job, predict, reveal, Rule, si, table
from lightspeed_course.explorers.serving_steps import explore_serving_steps, replica

# %%
job.sheet(until="09")

# %% [markdown]
# **First, one from lesson 4.** The law holds for an engine, too.

# %%
ask("queueing.in_flight", seed="again")

# %% [markdown]
# The load is chapter 4's: a prompt of {{job.LONG - job.ANSWER // 2:,}} tokens, an answer of
# {{job.ANSWER}}, and each of its tokens within {{si(job.BUDGET, "s")}}.
#
# **Guess.** An engine serves all its requests together, in *steps*: a step gives everybody who takes
# part in it and writes their next token, and who is done leaves (*continuous batching*). Now your request comes, with a prompt so short that there is next to nothing to read.

# %%
predict("inference.first_token_steps", ...)

# %% tags=["setup"]
from lightspeed_models.simulators.serving import Cost, Scheduler, simulate

budget, prompt, short, writers = 2048, 8000, 300, 3
engine = find("vllm")

# %% [markdown]
# ## What does an engine do all day?
#
# It goes round a loop: choose who takes part in the next step (the **scheduler**), run the model
# once over all their tokens,
# hand out what it wrote. To read a prompt is *prefill*, to write a token *decode*. A step has a *budget*
# of tokens, and the choice is how to spend it. Say that A, B and C write, D has just brought a prompt of
# {{prompt:,}} tokens and E one of {{short}}, and the budget is {{budget:,}}:

# %% tags=["figure"]
from lightspeed_course import Boxes, Text


def turns(apart):
    """(request, step, tokens) of what each step does, under one rule or the other."""
    left, step = {"D": prompt, "E": short}, 0
    while step < 7:
        reads = any(left.values())
        writes = [w for w in "ABCDE" if not left.get(w, 0) and not (apart and reads)]
        room = budget - len(writes)
        yield from ((who, step, 1) for who in writes)
        for who in left:
            took = min(room, left[who])
            left[who], room = left[who] - took, room - took
            if took:
                yield who, step, took
        step += 1


def loop(title, apart):
    high, every = dict(zip("EDCBA", range(5))), list(turns(apart))
    kinds = {"reads (prefill)": lambda t: t > 1, "writes (decode)": lambda t: t == 1}
    marks = [Text(-0.35, y + 0.45, who) for who, y in high.items()]
    for (label, is_one), color in zip(kinds.items(), ("orange", "blue")):
        some = [(n, n + 0.92, high[w], high[w] + 0.85, f"{t:,}") for w, n, t in every if is_one(t)]
        *sides, words = zip(*some)
        marks.append(Boxes(*sides, label, words, color))
    marks += [Text(n + 0.46, -0.5, f"step {n + 1}", "grey") for n in range(7)]
    return Chart(Axis(domain=(-0.7, 7)), Axis(domain=(-0.8, 5)), marks, title=title, height=210, bare=True)


figure(
    [loop("beside: who writes comes first, prompts get the rest", False),
     loop("apart: a waiting prompt runs alone", True)],
    caption="Tokens of each request in each step. Above, nobody ever stops writing; below, A, B and C get"
    " nothing until all prompts have been read.",
    alt="Two grids, a row for each of five requests, a column for each step. In the first A, B and C have a"
    " blue box in each column, and orange boxes of D fill four columns. In the second the orange boxes"
    " stand alone, and the blue ones begin behind them.",
)  # fmt: skip

# %% tags=["holds"]
told = {apart: {(w, n): t for w, n, t in turns(apart)} for apart in (False, True)}
assert all(told[False].get(("A", n)) == 1 for n in range(7)), "nobody ever stops writing"
reading = {n for (w, n), t in told[True].items() if t > 1}
assert not any(("A", n) in told[True] for n in reading) and ("A", max(reading) + 1) in told[True], (
    "get nothing until all prompts have been read"
)
assert sum(t > 1 for (w, _), t in told[False].items() if w == "D") == 4, "fill four columns"

# %% tags=["setup"]
sglang, trt = find("sglang"), find("tensorrt_llm")
first = {"beside": "who writes; prompts get the rest", "apart": "a waiting prompt, alone"}
full = {"evicts": "drops one, reads it again later", "reserves": "none: it admits whom it can end"}

# %% [markdown]
# D's prompt is cut into *chunks* (**chunked prefill**), and it takes four steps. Which picture is
# yours?
#
# | as it comes | vLLM | SGLang | TensorRT-LLM |
# |---|---|---|---|
# | release, read on {{engine.read}} | {{engine.release}} | {{sglang.release}} | {{trt.release}} |
# | who goes first | {{first[engine.prompts]}} | {{first[sglang.prompts]}} | {{first[trt.prompts]}} |
# | budget, on an H100 | {{engine.budget:,.0f}}, `max_num_batched_tokens` | {{sglang.budget:,.0f}}, `chunked_prefill_size` | not looked up |
# | when memory ends | {{full[engine.when_full]}} | {{full[sglang.when_full]}} | {{full[trt.when_full]}} |
# | prefixes kept | {{engine.prefix_caching}} | {{sglang.prefix_caching}} | {{trt.prefix_caching}} |
# | share of memory | {{engine.memory_share:.0%}} of all | set for each card | {{trt.memory_share:.0%}} of what weights leave |
#
# (Where each stands: [proof](09_serving_proof.ipynb#Where-the-engines-say-so).) Below we take a budget of
# {{budget:,}}, so that there is something to see. Four numbers are to be had now: what a step costs, how
# much of it D may take, who has memory, and how D might read less or A write more.
#
# ## What does a step cost?
#
# You know two items of its bill from chapter 4: it reads the weights, once for everybody, and it
# reads everyone's cache. Three more belong on it. Because the GPUs split each layer, they have to
# exchange results, twice a layer. Both they and their links reach only a share of what the data
# sheet promises. And the host has to launch each kernel (**launch overhead**), which takes its
# time even where there is
# little to compute.

# %% tags=["holds"]
assert simulate([prompt], [1], Cost(1.0), Scheduler(budget - writers), [0.0]).first == [4.0], (
    "and it takes four steps"
)

# %%
model, gpus, vllm = replica()
context, promise, plan = job.LONG, job.BUDGET, job.replica()
alone = mixed_step(model, gpus, rows=1, contexts=context, engine=vllm)
bound = mixed_step(model, gpus, rows=1, contexts=context)
unseen = fitted("engines")["vllm"]["left_out"]  # how far off it is on models it was not fitted to
{"a step": alone.time, "host": alone.host, "exchange": alone.exchange, "by data sheet": bound.time}

# %% [markdown]
# Take vLLM, with constants that were fitted to published runs. A lone user gets a token (the
# **time per output token**, TPOT) every
# {{si(alone.time, "s")}}, where the data sheet would allow one in {{si(bound.time, "s")}}, and the
# host and the exchange together take {{(alone.host + alone.exchange) / alone.time:.0%}} of the
# step. Now let others in.

# %% tags=["holds"]
assert alone.time > 1.5 * bound.time, "the data sheet would allow one"

# %% tags=["figure"]
parts = {"weights": "blue", "kv": "orange", "exchange": "green", "host": "grey"}
words = {"weights": "read weights", "kv": "read caches"}
loads = [1, 16, 44, round(plan.batch)]
steps = [mixed_step(model, gpus, rows=n, contexts=context, engine=vllm) for n in loads]
bars, foot, names = [], [0.0] * len(loads), [str(n) for n in loads]
for part, color in parts.items():
    top = [f + float(getattr(s, part)) for f, s in zip(foot, steps)]
    bars.append(Bars(names, top, foot, words.get(part, part), color=color))
    foot = top
figure(
    Chart(
        Axis("time of a step", "s", domain=(0, 0.04)),
        Axis("requests", scale="category", categories=names),
        [*bars, Rule(x=promise, label="the promise")],
        height=260,
    ),
    caption="One step of the replica, by what takes the time. The blue part is the same for one"
    " user and for many, the orange one is everybody's own.",
    alt=f"Four stacked bars for 1 to {loads[-1]} requests in flight. Weights are equally long in each; the"
    " caches grow until the last bar is nearly twice as long as the promise.",
)

# %% tags=["holds"]
assert len({float(s.weights) for s in steps}) == 1, "is the same for one"
assert all(a.kv < b.kv for a, b in zip(steps, steps[1:])), "is everybody's own"
assert 1.7 * promise < steps[-1].time < 2 * promise, "nearly twice as long as"

# %% [markdown]
# The batch of the plan would take {{si(steps[-1].time, "s")}} a step, so it is the engine's step
# that we have to plan with. How many requests does *it* allow within the promise? (What these bring a
# second is its **goodput**.)

# %% tags=["setup"]
def allowed(engine):
    most = 1
    while mixed_step(model, gpus, 0, most + 1, context, engine=engine).time <= promise:
        most += 1
    return most, request_rate(most, job.ANSWER, promise)


# %% [markdown]
# By the data sheet {{plan.batch:.0f}} requests could be in flight within the promise. With the exchange
# {{allowed(IDEAL)[0]}} can, and with the engine {{allowed(vllm)[0]}}. So the exchange costs a little: of the {{plan.rate:.1f}} answers a second that were planned,
# {{allowed(IDEAL)[1]:.1f}} are left. The engine costs far more and leaves
# **{{allowed(vllm)[1]:.1f}}**. Is that the engine, or is it our law of the engine? On publishers
# that set none of its constants, the law misses the measured time between tokens by
# {{unseen["per_token"]["error"]:.0%}} in the median
# ([proof](09_serving_proof.ipynb#How-well-does-a-step-hold?)), so a drop to a third is no artefact.
# And we haven't read a single prompt yet.

# %% tags=["holds"]
assert plan.rate > allowed(IDEAL)[1] > 0.85 * plan.rate, "costs a little"
assert allowed(vllm)[1] < 0.4 * allowed(IDEAL)[1], "far more"
assert 0.25 < allowed(vllm)[1] / allowed(IDEAL)[1] < 0.4, "a drop to a third"

# %% [markdown]
# ## What happens when somebody new comes?
#
# A prompt has to be read before it can be answered, and the replica reads it in the same steps in
# which the others write. Do a case on paper. A step takes one second, and may read as many tokens
# as you like. Request A comes at the start, B half a second later, and both want three tokens:
#
# ```
# seconds   0         1         2         3         4
# A         reads ····│ 2nd ····│ 3rd ····│
# B              waits│ reads ··│ 2nd ····│ 3rd ····│
# ```
#
# B waits for the step that is running, since nobody can join in the middle of one. The simulator of
# this lesson does the same:

# %% tags=["holds"]
assert simulate([100, 100], [3, 3], Cost(1.0), arrivals=[0.0, 0.5]).first[1] == 2.0, (
    "B waits for the step that is running"
)

# %%
two = simulate([100, 100], [3, 3], Cost(1.0), arrivals=[0.0, 0.5])
two.first, two.last

# %% [markdown]
# Real engines plan a step while the one before it runs. That keeps the GPUs busy, and it costs the
# newcomer one step more. On average there is half a step to go of the one that is running, then
# comes the one that has been planned already, and then their own. Add them up, and compare the
# **time to first token**, TTFT, with your guess.

# %% tags=["holds"]
late = [
    simulate([1, 1], [90, 1], Cost(1.0), Scheduler(ahead=True), [0.0, 20 + n / 100]).first[1]
    - (20 + n / 100)
    for n in range(100)
]
assert abs(sum(late) / len(late) - 2.5) < 0.02, "Add them up"

# %%
reveal("inference.first_token_steps")

# %%
launches = vllm.reading * model.depth
launches

# %% [markdown]
# In a real server {{si(vllm.front, "s")}} come on top for the way in and out, and your own step is
# no common one. A step in which all write is launched as one graph. One that reads a long prompt is
# larger than the graphs that were recorded, so its kernels are launched one by one (a short one may
# still fit a recorded size): in published runs of vLLM that takes {{si(launches, "s")}} for this model, whatever there is to read. The host launches while the GPU
# works. If neither ever waited for the other, a step would take the longer of the two times; if they took
# turns, it would take their sum. The truth lies between, and we take the simplest curve that does:
#
# $$R = \sqrt{\text{launches}^2 + \text{work}^2}$$
#
# Nothing derives it. It is nearly the longer of the two where they differ much, and four tenths more where
# they are equal, and [published steps](09_serving_proof.ipynb#How-well-does-a-step-hold?) say how far it
# holds. And the others? What happens to them is a rule of the engine. vLLM and TensorRT-LLM give them their
# token in the same step; SGLang runs a waiting prompt first, alone (**prefill priority**), and
# they get none until it is
# done. Either way a long prompt has thousands of tokens to multiply, so arithmetic decides how long
# it takes, and everyone who writes waits it out. That is what the budget is for. With a small one each
# step that reads is held up for less, but there are more such steps.

# %% tags=["holds"]
read = mixed_step(model, gpus, 2048, 16, context, context / 2, engine=vllm)
assert read.math > read.weights and alone.weights > alone.math, "arithmetic decides"
assert vllm.front > 0, "for the way in and out"
assert launches > 2 * alone.host, "launched one by one"
assert all(
    max(launches, work) < (launches**2 + work**2) ** 0.5 < launches + work
    for work in (launches / 10, launches, 10 * launches)
), "The truth lies between"
assert all(
    (launches**2 + work**2) ** 0.5 < (1.01 if work > launches else 1.42) * work
    for work in (launches, 10 * launches, 100 * launches)
), "nearly the longer of the two"

# %%
beside = {n: mixed_step(model, gpus, n, 16, context, context / 2, engine=vllm).time
          for n in (0, 512, 2048, 8192)}  # fmt: skip
beside

# %% [markdown]
# So sixteen people wait {{si(beside[0], "s")}} for a token while nobody new comes,
# {{si(beside[2048], "s")}} while two thousand tokens of somebody's prompt are read beside them, and
# {{si(beside[8192], "s")}} where prompts are read whole. With $\lambda$ requests a second, prompts
# of $s$ tokens and chunks of $c$, each in a step of $t(c)$, the share of time that goes to such
# steps is
#
# $$\lambda \cdot \frac{s}{c} \cdot t(c)$$
#
# The law is Little's again: how often, times how long. And it can't pass one: with sixteen who write and
# chunks of {{budget:,}} it gets there at {{1 / (prompt / budget * beside[budget]):.1f}} requests a second,
# and beyond that the line of prompts grows for as long as they come. Below, each bar is a request, at half a request
# a second. Before you touch anything, guess: at how many a second does the median user's token take
# longer than promised?

# %% tags=["holds"]
assert beside[0] < promise < beside[512] < beside[2048] < beside[8192], "two thousand tokens"

# %%
explore_serving_steps()

# %% [markdown]
# Did you find it near one a second? The median hides half of the story, so look at the lower
# picture too: with chunks of {{sorted(beside)[1]}} tokens its peaks are low and stand close
# together; with {{max(beside):,}} they are rare, and each is a third of a second in which nobody
# gets a token.

# %% tags=["holds"]
from lightspeed_course.explorers.serving_steps import middle, run, waits

between = {rate: middle(waits(run(rate, 8000, 2048, 0.0))[1]) for rate in (0.9, 1.1)}
assert between[0.9] < promise < between[1.1], "Did you find it near"
assert 0.3 < mixed_step(model, gpus, 8000, 16, 8000, 4000, engine=vllm).time < 0.36, "a third of a"

# %% [markdown]
# ## Why does a first token suddenly take ten times as long?
#
# A request holds memory for as long as it stays. Engines hand it out in *blocks*
# (**PagedAttention**) of a few tokens,
# as a sequence grows (*paged attention*), so that nothing is kept in reserve. That lets many in, and then
# each of them wants more. Here is a small pool:

# %%
from lightspeed_course.explorers.blocks import explore_blocks, states

explore_blocks()

# %% [markdown]
# A newcomer waits until there are blocks for its prompt, because those who write take theirs first.
# And when even these need more than there is, vLLM *preempts* the one that got its slot last: it drops
# its cache, and later reads again what is no longer found. (TensorRT-LLM reserves instead, unless you say otherwise:
# it lets a request in only when there is room for its last token.) Look for a request in colour at the foot, and
# follow it. By the end of this run {{states(16, 16)[-1].again}} tokens have been read after
# an eviction; with as many blocks as the slider gives there are {{states(28, 16)[-1].again}}. So
# there is a wall, and where it stands is a matter of room. Count it for a real GPU.

# %% tags=["holds"]
stop = states(16, 16)[explore_blocks().first.opens]
assert len(stop.evicted) > 0 and not stop.back >= set(stop.waiting), "A newcomer waits until there"
assert states(16, 16)[-1].again > 5 * states(28, 16)[-1].again, "a matter of room"
assert (engine.when_full, find("tensorrt_llm").when_full) == ("evicts", "reserves"), (
    "reserves instead, unless you say otherwise"
)

# %%
from lightspeed_models.served import Served, served_replica

one = served_replica("h200_sxm", 1, 1, "fp8")
memory = float(accelerator("h200_sxm").hbm_capacity)
on_one = Served(model, one, one, memory, 64, context, 1024)
si(on_one.room(), "byte"), round(on_one.places())

# %% [markdown]
# The same model in one byte a weight fits on a single H200. What is left of its memory, after the
# weights, the {{1 - engine.memory_share:.0%}} that vLLM {{engine.release}} leaves alone and what it
# needs beside, holds {{on_one.places():.0f}} requests of this
# length. So thirty-two at once are fine, and sixty-four are not. How long do those wait who have no
# place? It depends on who sends. A benchmark holds the number in flight fixed: whoever is answered asks
# again, and nobody else comes (a *closed loop*, `--max-concurrency`). With $N$ in flight and $p$ places,
# your turn to write comes once in $N/p$ answers. One of these is your own, and you wait for the others:
#
# $$\left(\frac{N}{p} - 1\right) \cdot \text{answer} \cdot \text{time between tokens}$$
#
# Here are published runs of exactly this:

# %% tags=["holds"]
assert 32 < on_one.places() < 64, "thirty-two at once are fine"
assert 0 < on_one.room() < memory / 2, "fits on a single H200"

# %% tags=["figure"]
from lightspeed_tools.serve.plan import published

runs = [
    row for row in published()
    if row.model.endswith("Llama-3.1-70B") and row.system == "h200_sxm" and row.engine == "vllm"
    and row.run.decode.gpus == 1 and row.run.prompt > 4096
]  # fmt: skip
waited = {int(row.run.requests): row.first_token for row in runs}
told = {int(row.run.requests): row.told(vllm)[1] for row in runs}
place = {int(row.run.requests): row.run.waiting * row.run.between(vllm) for row in runs}
off = max(abs(told[n] / waited[n] - 1) for n in waited if n < on_one.places())
table(
    [[n, si(place[n], "s"), si(told[n], "s"), si(waited[n], "s")] for n in sorted(waited)],
    ["requests in flight", "wait for a place", "first token, by the law", "measured"],
    caption=f"{runs[0].model} in {runs[0].number_format} on one H200 under vLLM, {runs[0].run.prompt:,} tokens"
    f" in and {runs[0].run.output:,} out on average. Look at the last row: up to the wall the law is off by"
    f" {off:.0%} at most; beyond it, the wait for a place is nearly all that there is.",
)

# %% tags=["holds"]
assert 0 < off < 0.1, "is off by"
assert place[64] > 0.8 * told[64] and abs(told[64] / waited[64] - 1) < 0.25, (
    "is nearly all that there"
)
assert all(place[n] == 0 for n in waited if n < on_one.places()), "up to the wall"

# %% [markdown]
# Twice the requests, {{waited[64] / waited[32]:.0f}} times the wait, and there it stops. Users are not
# like that. They come when they like (an *open loop*, `--request-rate`), and if more come than are
# answered, the line grows for as long as they do, as on your Monday. So a test in a closed loop can't
# show you the worst of it. If a first token suddenly takes ten times as long, don't look for a slow
# kernel: count the places.
#
# ## Why does a mixture of experts slow down sooner?
#
# A batch was a bargain because everybody shares the weights. In a mixture of experts each token
# picks a few experts for itself, so a lone user reads little of the model, and each newcomer makes
# the step read more of it, until all of it is read (chapter 4 counts how fast).

# %% tags=["holds"]
assert waited[64] > 10 * waited[32], "Twice the requests,"

# %% tags=["setup"]
both, rows = ("DeepSeek-R1", "Llama-3.1-70B"), published()
on_eight = [r for r in rows if r.system == "h200_sxm" and r.run.decode.gpus == 8]
alike = [r for r in on_eight if (r.run.prompt, r.run.output) == (922, 922)]
alike.sort(key=lambda r: -r.per_token)  # of two settings of one load the quicker comes last, and stays
runs_of = {(e, n): {int(r.run.requests): r for r in alike if r.engine == e and r.model.endswith(n)}
           for e in ("trtllm", "sglang", "vllm") for n in both}  # fmt: skip

# %% tags=["setup"]
sparse, dense = (runs_of["trtllm", name] for name in both)
mlp, crowds = sparse[4].run.model.layers[-1].mlp, sorted(sparse.keys() & dense.keys())
low, high = crowds[0], crowds[-1]
slower, reads = ([one[high].per_token / one[low].per_token for one in (sparse, dense)],
                 [one[high].run.bound() / one[low].run.bound() for one in (sparse, dense)])  # fmt: skip

# %% tags=["setup"]
others = [runs_of[key] for key in (("sglang", both[0]), ("vllm", both[1]))]
few, many = (experts_read(n, mlp.experts, mlp.active) for n in (low, high))
other = [one[high].per_token / one[low].per_token for one in others]

# %% [markdown]
# How much does that cost? On eight H200 there are published runs of DeepSeek-R1 and of our dense model
# under one engine, TensorRT-LLM. With {{low}} requests in flight a layer of the mixture reads {{few:.0f}} of
# its {{mlp.experts}} experts, with {{high}} nearly all, {{many:.0f}}. If reading were all, its tokens would
# take {{reads[0]:.1f}} times as long, those of the dense model {{reads[1]:.1f}} times. Measured, it is
# {{slower[0]:.1f}} and {{slower[1]:.1f}} times. So the mixture does slow down more, but by much less than
# its reading, since with four requests most of its step is something else: launches and exchanges, which
# don't grow.
#
# Be careful with whom you compare. The mixture under SGLang slows down {{other[0]:.1f}} times, the dense
# model under vLLM {{other[1]:.1f}} times. Who holds these two side by side takes a difference between engines
# for one between models. So measure a mixture at the load that it will have, not alone, and on your own engine.

# %% tags=["holds"]
assert many > 0.85 * mlp.experts, "nearly all"
assert slower[1] < slower[0] < reads[0] / 2 and reads[1] < reads[0] / 3, "by much less than"
assert sparse[low].run.bound() < sparse[low].per_token / 2, "most of its step is something else"
assert other[0] > slower[0] > slower[1] > other[1], "takes a difference between engines"

# %% [markdown]
# ## Must every prompt be read?
#
# Not if somebody has read its beginning before. A chat sends its whole history again with each
# message, an agent its instructions, so an engine keeps the caches of *prefixes* (**prefix
# caching**) for as long as it
# has blocks to spare. What it finds, it need not read: pull the last slider above to one half and
# see how many requests a second the promise allows then. In a cache that is too small the entry you
# need has just been thrown out. Here are forty chats, none of which is in a hurry, and pools of five sizes:

# %% tags=["figure"]
import random

from lightspeed_course import Line
from lightspeed_models.simulators.prefixes import found_tokens, shared

rng, chats, prompts = random.Random(9), [[] for _ in range(40)], []
for turn in range(2000):  # somebody says something, and the whole chat so far is sent
    chat = chats[rng.randrange(len(chats))]
    if len(chat) > 60:
        chat.clear()  # assumed: then a new one begins
    chat += [rng.random() for _ in range(rng.randint(2, 8))]
    prompts.append(list(chat))
lengths = [16 * len(keys) for keys in prompts]
found = {blocks: round(shared(found_tokens(prompts, lengths, blocks, 16), lengths), 3)
         for blocks in (100, 300, 900, 1200, 1800)}  # fmt: skip
figure(
    Chart(
        Axis("blocks to spare", "", domain=(0, 2000)),
        Axis("of all tokens of prompts, found", "%", domain=(0, 1)),
        [Line(list(found), list(found.values()), color="blue")],
        height=190,
    ),
    caption="The same chats, with more and more memory to remember them in.",
    alt="A line that rises from almost nothing with few blocks to nearly all with many.",
)

# %% [markdown]
# The same chats find {{found[300]:.0%}} of their prompts with few blocks to spare,
# {{found[1800]:.0%}} with many. Between two messages of one chat those of the others come, and
# where there is no room for theirs too, each finds its own gone. So the share found is a number to
# measure, not to assume.

# %% tags=["holds"]
assert found[300] < 0.25 and found[1800] > 0.8, "with few blocks to spare"
assert list(found.values()) == sorted(found.values()), "no room for theirs"

# %% [markdown]
# ## One pool, or two?
#
# Reading is arithmetic and writing is memory traffic (chapter 2), and in one replica each gets in
# the other's way. So give each its own GPUs (**disaggregated prefill**): some read prompts and
# send the caches over, the others
# write, and no chunk holds up their steps. The price is that neither helps out when the other is
# busy, and that each half holds the weights. `lightspeed serve` tries all such divisions:

# %%
from dataclasses import replace

from lightspeed_models.llm.checkpoint import Formats
from lightspeed_tools.serve.plan import Job, plans

asked = Job(
    model, accelerator("h100_sxm"), 8, Formats(), "vllm", context - job.ANSWER // 2, job.ANSWER,
    per_token=promise,
)  # fmt: skip
best = {kind: plans(replace(asked, formats=Formats().quantized(kind)))[0][:2]
        for kind in ("bf16", "fp8")}  # fmt: skip

# %% tags=["figure"]
table(
    [[kind, p.layout, f"{p.rate:.2f}", p.requests, si(p.first_token, "s"), p.binds]
     for kind, two in best.items() for p in two],
    ["weights", "layout of eight H100", "requests/s", "in flight", "first token", "longest part"],
    caption="The two best layouts for the job within the promise: all eight in one group, or four that"
    " read and four that write. Which is better depends on whether the halves still have room.",
)  # fmt: skip

# %% tags=["holds"]
assert best["bf16"][0].run.together and not best["bf16"][1].run.together, "Which is better depends"
assert not best["fp8"][0].run.together and best["fp8"][1].run.together, "halves still have room"

# %% tags=["setup"]
acceptance = measured("serving")["acceptance"]
curves, fading = list(acceptance["lengths"].values()), acceptance["fading"]
firsts = [curve[0] - 1 for curve in curves]

# %% [markdown]
# In bf16 the weights fill much of four GPUs and a lone step on four takes longer, so staying
# together wins. In fp8 there is room and time to spare, and the two pools come out
# {{best["fp8"][0].rate / best["fp8"][1].rate - 1:.0%}} ahead. That is less than the law is off by,
# so here only a load test can tell. "Disaggregate" is no advice; it is a question to compute, and
# sometimes to measure.
#
# ## Can a step give more than one token?
#
# A lone user's step reads all the weights for one token. If something cheap *drafts*
# (**speculative decoding**) the next few,
# the model can check these guesses in that same reading, and keep those that it would have written
# itself, up to the first wrong one. Kept with a chance of $a$ each, $k$ guesses make
#
# $$1 + a + a^2 + \dots + a^k = \frac{1 - a^{k+1} }{1 - a}$$
#
# tokens a step: the ones kept, and one of its own. In life each further guess is a little worse than
# the one before, since it builds on guesses. In eleven public curves of acceptance the first is kept
# {{min(firsts):.0%}} to {{max(firsts):.0%}} of the time, and each next one {{fading:.3g}} times as
# often as the one before it, in the middle of them. Is that free? Say that the guesses themselves
# cost nothing. Even then it is free only as long as the step is busy reading.

# %% tags=["holds"]
assert best["bf16"][0].run.together and best["bf16"][0].rate > best["bf16"][1].rate, (
    "so staying together"
)
assert 0 < best["fp8"][0].rate / best["fp8"][1].rate - 1 < unseen["per_token"]["error"], (
    "less than the law is off by"
)
assert best["bf16"][0].run.together != best["fp8"][0].run.together, "is no advice"
assert drafted_tokens(0.7, 3) < 1 + 3 * 0.7, "to the first wrong one"
assert len(curves) == 11 and drafted_tokens(0.8, 5, fading) < drafted_tokens(0.8, 5), (
    "a little worse than"
)

# %%
guesses, chance = 3, sorted(firsts)[len(firsts) // 2]
tokens = drafted_tokens(chance, guesses, fading)


def faster(rows, chance=chance):
    """How many times the tokens a second."""
    plain = mixed_step(model, gpus, 0, rows, 2048, engine=vllm).time
    checked = mixed_step(model, gpus, guesses * rows, rows, 2048, 2048, 0, engine=vllm).time
    return drafted_tokens(chance, guesses, fading) * plain / checked


gains = {rows: round(faster(rows), 2) for rows in (1, 16, 64, 256)}
tokens, gains

# %% [markdown]
# A lone user gets {{gains[1]:.1f}} times the tokens. {{max(gains)}} users with shorter texts get
# {{gains[256]:.1f}} times, because in a full batch each guess takes arithmetic that somebody else
# could have used. And if only three guesses in ten are kept, the full replica loses by it: it makes
# {{faster(256, 0.3):.2f}} times what it made without.
#
# ## The job

# %% tags=["setup"]
inside, rate = job.served()
load, chunk = job.loaded(inside), job.LONG - job.ANSWER // 2  # a prompt fits into a step
writes = mixed_step(model, gpus, 0, inside, context, engine=vllm).time
whole = mixed_step(model, gpus, chunk, inside - 1, context, chunk / 2, engine=vllm).time

# %% [markdown]
# Now let the job's own eight GPUs read its prompts, and put the pieces together. Say that {{inside}} requests
# are in flight. Where nobody new comes, a step takes $D$ = {{si(writes, "s")}}; a step that reads a whole
# prompt beside the others takes $R$ = {{si(whole, "s")}}. How often does that happen? While your answer gets
# its {{job.ANSWER}} tokens, as many newcomers come on average as are in flight (that is Little's law), and
# each brings a prompt. So {{inside}} in {{job.ANSWER}} steps read, and yours takes on average
#
# $$D + \frac{c}{o}\,(R - D), \qquad c \text{ in flight},\ o \text{ tokens of an answer}$$
#
# or {{si(writes + inside / job.ANSWER * (whole - writes), "s")}}. One more in flight would break the promise of
# {{si(promise, "s")}}. The first token comes after the step that is running, your own and perhaps somebody
# else's prompt before yours, {{si(load.first(job.engine()), "s")}} in all. And the rate is Little's, requests
# in flight over the time that each stays:

# %% tags=["holds"]
token = writes + inside / job.ANSWER * (whole - writes)
assert abs(token / load.between(job.engine()) - 1) < 0.01, "and yours takes on average"
more = job.loaded(inside + 1)
assert token < promise < more.between(job.engine()), "One more in flight would break the promise"
assert load.first(job.engine()) > whole, "perhaps somebody else's prompt before yours"
assert abs(inside / (load.first(job.engine()) + job.ANSWER * token) / rate - 1) < 0.01, "And the rate is Little's"

# %%
stay = load.first(job.engine()) + job.ANSWER * (writes + inside / job.ANSWER * (whole - writes))
round(inside / stay, 2)

# %% tags=["setup"]
loose = plans(replace(asked, per_token=2.5 * promise))[0][0].rate  # had we promised less
share = 1 * (context / 2048) * beside[2048]  # of the time that reads, at one request a second

# %% [markdown]
# The sheet promised {{plan.rate:.1f}} answers a second. {{allowed(IDEAL)[1]:.1f}} are left with the exchange,
# {{allowed(vllm)[1]:.1f}} with an engine, and **{{rate:.2f}}** once it reads its own prompts:
# {{inside}} requests in flight, not {{plan.batch:.0f}}. The law of the step is
# good to about a sixth and the first token to a quarter, so call it one a second, and let a load
# test decide whether it is a little less or a little more.
#
# ## Decide

# %%
ask("inference.first_suspect")

# %%
ask("inference.wall")

# %%
ask("inference.readers", seed="second")

# %%
ask("inference.drafts_at_night", seed="third")

# %% [markdown]
# ## The answer
#
# **What is left of the plan?** About one request a second in place of fifteen. An engine that does
# not reach its data sheet, its launches and its exchanges cost a factor of three; reading its own
# prompts cost another five.

# %% tags=["holds"]
assert plan.rate / 18 < rate < plan.rate / 14, "in place of fifteen"
assert 2.5 < allowed(IDEAL)[1] / allowed(vllm)[1] < 3.5, "a factor of three"
assert 4.5 < allowed(vllm)[1] / rate < 5.7, "cost another five"

# %% [markdown]
# **What would you change first?** Whatever costs least, from the top:


# %% tags=["figure"]
from lightspeed_course.explorers.serving_steps import middle, run, waits


def within(chunk, found=0.0):
    """The most requests a second, in tenths, whose median user waits a second for a first token, and
    the promise for each of the others, at most.
    """
    kept = (1.0, promise)
    rates = [n / 10 for n in range(4, 40)]
    served = {r: map(middle, waits(run(r, 8000, chunk, found))) for r in rates}
    return max(r for r, both in served.items() if all(a <= b for a, b in zip(both, kept)))


usual = within(2048)
times = {
    f"promise {si(2.5 * promise, 's')} a token": (loose / rate, "–", "patience"),
    "find half of each prompt": (
        within(2048, 0.5) / usual, f"prefix caching, {engine.prefix_caching} in {engine.release}",
        "prompts that begin alike"),
    "fp8 weights and arithmetic": (best["fp8"][1].rate / rate, "`--quantization fp8`", "a test of the answers"),
    "fp8, and prompts read elsewhere": (
        best["fp8"][0].rate / rate, "`--kv-transfer-config`", "two pools to balance"),
}  # fmt: skip
table(
    [[what, f"{gain:.1f}", flag, cost] for what, (gain, flag, cost) in times.items()],
    ["change", "times the requests", "in vLLM", "what it costs"],
    caption="The job's own levers, each pulled alone. The second is simulated, as above, with the median"
    " first token within a second.",
)

# %% tags=["holds"]
assert all(gain > 1 for gain, *_ in times.values()), "The job's own levers"

# %% [markdown]
# Smaller chunks are no lever here: each of them pays the launches of a step that reads again, so that
# they take longer over each prompt, and the line for first tokens grows sooner. Drafts aren't in the
# table: they help at night, when few are served, and can hurt at noon.

# %% tags=["holds"]
slow, quick = (middle(waits(run(0.8, 8000, c, 0.0))[0]) for c in (512, 8192))
assert slow > 1.1 * quick, "grows sooner"
assert context / 512 * beside[512] > 1.2 * context / 2048 * beside[2048], (
    "take longer over each prompt"
)
assert within(512) < usual, "no lever here"
assert gains[1] > 2 and faster(256, 0.3) < 1, "help at night"

# %% [markdown]
# **How far may you trust this?** Far enough to rank layouts whose rates lie apart and to refuse what
# can't work. On publishers that set none of its constants the law of vLLM is off by
# {{unseen["per_token"]["error"]:.0%}} between tokens and by {{unseen["first_token"]["error"]:.0%}} to
# the first, in the median, if you say how the requests come. One load test of your own does better
# than any law: it sets the level, and `--plan-by` plans from there.

# %% tags=["holds"]
assert 0.1 < unseen["per_token"]["error"] < unseen["first_token"]["error"] < 1 / 3, (
    "in the median, if you say how"
)

# %% [markdown] tags=["takeaway"]
# - *A step is paid by everyone in it, so whoever reads a prompt makes all the others wait.*
# - *Count the places before you look for a slow kernel: well beyond the wall of memory a first token is
#   mostly the wait for a place, and with arrivals that don't wait it grows for ever.*
# - *A plan from the data sheet is a bound; an engine and its prompts can leave a tenth of it.*

# %% tags=["holds"]
assert beside[2048] > 1.5 * beside[0], "makes all the others wait"
assert all(place[n] > 0.8 * told[n] for n in place if n > 1.3 * on_one.places()), (
    "a first token is mostly the wait for a place"
)
assert rate < 0.1 * plan.rate, "can leave a tenth of it"

# %% [markdown] tags=["card"]
# | symbol | meaning | unit | for the job |
# |---|---|---|---|
# | $t$ = caches + max(weights, arithmetic) + exchange + host | a step | s | {{si(alone.time, "s")}} alone |
# | $\lambda \, s / c \cdot t(c)$ | share of time in steps that read | – | {{share:.0%}} at one a second |
# | (share of memory − weights − other) / bytes held | places | requests | {{load.places():.0f}} |
# | $(1 - a^{k+1}) / (1 - a)$, less as guesses fade | tokens of a step with $k$ guesses | tokens | {{tokens:.1f}} |

# %% [markdown]
# ## One reading
#
# A service makes its users wait longer than planned, and somebody looks at how long each request
# takes once it is being served. Which of three suspects can go home?

# %%
from lightspeed_course import bench

bench("09")

# %% [markdown]
# ## In your own framework
#
# Your server counts all of this already. In vLLM's metrics, `num_requests_running` beside
# `kv_cache_usage_perc` tells how far the wall is, `num_preemptions_total` that you have hit it, and
# the histograms of time to first token and between tokens are the two promises.
#
# And the same sum for *your* model, GPUs, load and promise is one command. `config.json` is the
# model's own, from its hub or folder; the numbers are the job's, so replace them:
#
# ```sh
# lightspeed serve config.json --gpus 8 --hardware h100_sxm --format bf16 --in {{job.LONG - job.ANSWER // 2}} --out {{job.ANSWER}} --tpot {{1e3 * job.BUDGET:.0f}}ms
# ```
#
# Its first line is the most that the promise allows: {{best["bf16"][0].rate:.3g}} requests a second here. Below
# stand all layouts, how long the median and the last in a hundred wait, and the measured runs that
# are nearest to yours.
#
# [Exercises](../exercises/09_serving.ipynb) · [Proof](09_serving_proof.ipynb) · Next: [plan a
# run](10_plan_a_run.ipynb).
# Further: Kwon and others (2023) on blocks, Agrawal and others (2024) on chunks, Zhong and others
# (2024) on two pools.
