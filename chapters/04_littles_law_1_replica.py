# %% [markdown]
# # 4.1. A replica: how many users share a step
#
# The model is trained, eight GPUs are to serve it, and somebody has to sign a promise: how many users
# at the same time, if each is to get a token every twenty milliseconds? Two engineers answer at
# once. “Three,” says the first, who has timed a user alone: a token takes more than five
# milliseconds, and three of them fit into twenty. “Two hundred,” says the second, who has
# looked at the memory. Neither has miscalculated. Whom do you believe?
#
# A replica is a pool of servers, as in the last lesson, but they slow one another down. One formula
# says by how much, and with it you can answer. Twenty-five minutes; you need chapter 2 and
# [lesson 4](04_littles_law.ipynb). The evidence is on the
# [proof page](04_littles_law_proof.ipynb#A-replica,-batch-by-batch).

# %% tags=["setup"]
from lightspeed.catalog import accelerator
from lightspeed.queueing import concurrency
from lightspeed.serving import *
from lightspeed_course import ask, Axis, Bars, Chart, figure, job, Line, Points, predict
from lightspeed_course import reveal, Rule, si
from lightspeed_models.llm import decoder

# %%
job.sheet(until="04.1")

# %% [markdown]
# **First, one from lesson 2.** What do the users of a batch share?

# %%
ask("roofline.claim_more_users", seed="again")

# %% [markdown]
# ## Guess first
#
# You know both answers. Commit yourself to a number of your own.

# %%
predict("serving.users_at_once", ...)

# %% [markdown]
# ## Who is served together?
#
# A replica decodes a batch of requests: each *step* gives each of them one token. So it has slots, as
# a pool has servers. On paper: two slots, and answers A of three tokens, B of one and C of two. A
# letter is a token.
#
# ```text
#          the whole batch first     a slot as soon as it is free
# slot 0   A A A C C                 A A A
# slot 1   B . . . .                 B C C
# ```
#
# If C waits until the batch of A and B is done, that takes five steps, and B's slot is idle for
# four of them. **Continuous batching** gives C the slot as soon as it is free: three steps, and no
# way takes fewer, because two slots make two tokens a step. In the picture the slots still wait for
# the longest answer of their batch. Switch continuous batching on.

# %% tags=["holds"]
import numpy as np

from lightspeed_models.simulators.queue_simulation import simulate_decoding

pair, last = (
    simulate_decoding(np.zeros(len(n)), np.array(n, float), 2, lambda n: 1.0)
    for n in ((3, 1), (2,))
)
assert pair.departure.max() + last.departure.max() == 5 and 5 - pair.departure[1] == 4, (
    "B's slot is idle"
)
assert (
    simulate_decoding(np.zeros(3), np.array([3, 1, 2], float), 2, lambda n: 1.0).departure.max()
    == (3 + 1 + 2) / 2
), "no way takes fewer"

# %%
from lightspeed_course.explorers.requests import explore_batching

explore_batching()

# %% [markdown]
# So the batch is the number of servers that are busy, and the time of a step sets the time of a
# service. In a pool each server works at its own pace. Here one more user makes the step longer for
# all of them. By how much?
#
# ## What does a step read?
#
# Assume for now that prompts are read (*prefilled*) somewhere else, and that requests arrive here with
# their caches ready: {{job.LONG:,}} tokens each, as long as they are halfway through their answers.

# %%
model, chip, context, answer = decoder(job.MODEL), accelerator(job.GPU), job.LONG, job.ANSWER
heads = model.attention
per_token = kv_cache_bytes(model.depth, heads.kv_heads, heads.head_width, 1)
kv, memory = per_token * context, job.PER_NODE * chip.hbm_capacity
replica = {
    "parameters": model.parameters,
    "kv_bytes": kv,
    "peak": job.PER_NODE * chip.bf16,
    "bandwidth": job.PER_NODE * chip.hbm_bandwidth,
}
si(per_token, "byte"), si(kv, "byte"), si(decode_step(1, **replica).time, "s")

# %% [markdown]
# A token leaves a key and a value for each layer and KV head, each as long as the head is wide, at
# two bytes a number: {{si(per_token, "byte")}}. So the cache of a request with {{context:,}} tokens is
# {{si(kv, "byte")}}. The eight GPUs together read it in {{si(kv / replica["bandwidth"], "s")}}, and
# the weights, {{si(job.weights(), "byte")}}, in {{si(job.weights() / replica["bandwidth"], "s")}}. A
# step reads the weights *once for the whole batch*, and the cache of *each* request. So draw it:

# %% tags=["holds"]
assert per_token == 2 * model.depth * heads.kv_heads * heads.head_width * 2, "two bytes a number"

# %% tags=["figure"]
users = [1, 10, 50, 100]
names = [f"{n} user{'s' * (n > 1)}" for n in users]
each = [decode_step(n, **replica) for n in users]
shared = [float(one.time - one.kv) for one in each]
whole = [float(one.time) for one in each]
own = [si(one.kv, "s", 2) for one in each]
figure(
    Chart(
        Axis("time of a step", "s", domain=(0, 0.018)),
        Axis(scale="category", categories=names),
        [
            Bars(names, shared, [0] * 4, "the weights, once", [si(s, "s", 2) for s in shared], "blue"),
            Bars(names, whole, shared, "a cache for each", own, "orange"),
        ],
        height=260,
    ),
    caption="What a step reads, and so how long each of its users waits for a token. The blue part is"
    " the same for one user as for a hundred.",
    alt="Four bars of time. Their blue parts are equally long. The orange ones grow with the users, from"
    " hardly visible for one to longer than the blue part for a hundred.",
)

# %% tags=["holds"]
assert max(shared) - min(shared) < 1e-9, "The blue part is the same for one user as for a hundred"
assert whole[0] - shared[0] < 0.03 * shared[0] and whole[3] - shared[3] > shared[3], (
    "hardly visible for one to longer than the blue part for a hundred"
)

# %% [markdown]
# A user alone gets a token after {{si(decode_step(1, **replica).time, "s")}}, nearly all of it for
# weights. With ten, each gets one after {{si(decode_step(10, **replica).time, "s")}}: **ten times the
# tokens, and each user waits {{decode_step(10, **replica).time / decode_step(1, **replica).time:.1f}}
# times as long.** That is where the first engineer went wrong: she let the users take turns.
#
# Arithmetic takes {{si(2 * model.parameters / replica["peak"], "s")}} for each request, but in the
# shadow of the weights, because the tensor cores work on one piece while the next is read. So it shows
# only in a batch so large that its arithmetic takes longer than the reading. Attention is a kernel of its
# own, and memory-bound (chapter 2), so its time adds. With $P$ parameters and a batch of $B$ the
# **step time** of serving is
#
# $$t(B) = \underbrace{\frac{B \times \text{cache} }{\text{bandwidth} } }_\text{attention}
# + \underbrace{\max\left(\frac{\text{weights} }{\text{bandwidth} },\ \frac{2\,P\,B}{\text{peak} }\right) }_\text{all else}$$
#
# If you keep one formula of serving, keep this one.

# %% tags=["holds"]
assert decode_step(10, **replica).time < 1.25 * decode_step(1, **replica).time, (
    "times the tokens, and each user waits"
)
assert job.BUDGET // decode_step(1, **replica).time == 3, "she let the users take turns"
assert (few := decode_step(10, **replica)).time == few.kv + few.weights > few.kv + few.math and (
    many := decode_step(400, **replica)
).time == many.kv + many.math > many.kv + many.weights, "only in a batch so large"

# %% [markdown]
# ## How many keep the pace, and how many fit?
#
# Now count twice: how many requests fit into the memory that the weights leave, and how many can each
# get a token every {{si(job.BUDGET, "s")}}.

# %%
slots = batch_that_fits(memory, job.weights(), kv)
allowed = int(batch_within(job.BUDGET, **replica))
slots, allowed

# %%
reveal("serving.users_at_once")

# %% [markdown]
# The eight GPUs have {{si(memory, "byte")}}, and what the weights leave of it holds {{slots:.0f}}
# caches. That is the second engineer's answer, and all of them would fit. But a step of so many would
# take {{si(decode_step(slots, **replica).time, "s")}}. So the promise limits the batch to {{allowed}},
# long before memory does. (Newer models keep less, or read less of what they keep:
# [lesson 4.2](04_littles_law_2_attention.ipynb) draws both.)
#
# At first a larger batch is nearly free. In the end a step grows as fast as its batch, so one more
# request brings no throughput, and everybody waits for it. In between lies the **knee**, where
# throughput divided by latency is largest: there all caches together take as long to read as the
# weights.

# %% tags=["holds"]
from dataclasses import replace

one = decode_step(round(knee_batch(**replica)), **replica)
pays = [b / decode_step(b, **replica).time ** 2 for b in range(1, 400)]
assert abs(one.kv / one.weights - 1) < 0.02 and (
    abs(1 + pays.index(max(pays)) - knee_batch(**replica)) <= 1
), "as long to read as the weights"
late = [b / decode_step(b, **replica | {"kv_bytes": per_token * 2048}).time for b in (300, 399)]
assert abs(late[1] / late[0] - 1) < 1e-6, "step grows as fast as its batch"
assert decode_step(slots, **replica).time > job.BUDGET and 200 <= slots < 210, "all of them would fit"
near = replace(heads, window=1024)
assert near.read_bytes(context, 2) < heads.read_bytes(context, 2), "Newer models keep less"

# %% tags=["figure"]
knee = round(knee_batch(**replica))
marks = {"knee": knee, "budget": allowed, "memory full": int(slots)}
every = [float(b) for b in range(1, 400)]
curves = {
    c: [float(decode_step(b, **replica | {"kv_bytes": per_token * c}).time) for b in every]
    for c in (2048, context, 32768)
}
colors = dict(zip(curves, ("green", "blue", "amber")))
each = [float(decode_step(b, **replica).time) for b in marks.values()]
drawn = {c: [(t, b / t) for b, t in zip(every, of) if t < 0.05] for c, of in curves.items()}
figure(
    Chart(
        Axis("time per token", "s", domain=(0, 0.05)),
        Axis("throughput of the replica, token/s", domain=(0, 27_000)),
        [
            *(Line(*zip(*drawn[c]), f"{c:,} tokens", colors[c]) for c in curves),
            Points(
                each,
                [b / t for b, t in zip(marks.values(), each)],
                labels=[f"{n}, {b}" for n, b in marks.items()],
            ),
            Rule(x=job.BUDGET, label=f"{si(job.BUDGET, 's')} a token"),
        ],
    ),
    caption="Every point of a curve is a batch; the curves differ in the tokens that each cache"
    f" holds. Marked for {context:,} tokens: the knee, the largest batch within the budget, and"
    " the largest that fits.",
    alt="Throughput over time per token: curves that rise steeply and then flatten, lower for"
    " longer contexts. On the middle one, three marked batches from the knee to the one that"
    " fills the memory.",
)

# %% tags=["holds"]
assert all(a < b < c for a, b, c in zip(*curves.values())), "lower for longer contexts"
assert knee < allowed < slots, "three marked batches"
# %% [markdown]
# ## From tokens back to requests
#
# An answer has {{answer}} tokens, so its request stays for {{answer}} steps. Little's law, with the
# largest allowed batch as $L$ and that stay as $W$, gives the most requests a second.

# %% tags=["holds"]
assert abs(
    concurrency(request_rate(allowed, answer, job.BUDGET), answer * job.BUDGET) - allowed
) < (1e-9), "most requests a second"

# %%
step = decode_step(allowed, **replica).time
most = request_rate(allowed, answer, step)
si(answer * step, "s"), most

# %% [markdown]
# **At most {{most:.1f}} requests a second, if a step gives each user one token: on these terms nobody may
# promise more.** (An engine keeps less, and drafts give more than a token a step: lesson 9 has both.)
# That would need all slots busy all the time, and at random arrivals they aren't. But the
# {{job.ASKED}} a second that were asked for need {{job.at_once()[1]}} slots, so one replica will do.
# Don't wait for a queue to warn you: the latency grows long before anybody has to wait, because the
# steps get longer. So watch the batch. [proof](04_littles_law_proof.ipynb#How-close-to-full-may-it-run?)
#
# ## Who reads the prompts?
#
# We left something out: every answer needs its prompt read first, at two FLOPs per parameter and
# token, plus attention.

# %% tags=["holds"]
assert prefill_time(1, 1, 1) == 2, "every answer needs its prompt read first"
assert decode_step(allowed + 1, **replica).time > job.BUDGET >= step and all(
    request_rate(n, answer, decode_step(n, **replica).time) <= most for n in range(1, allowed + 1)
), "At most {{most:.1f}} requests a second, if a step gives each user one token: on these terms nobody"
assert job.served()[1] < most, "An engine keeps less"
assert job.at_once()[1] < allowed and job.ASKED < most, "were asked for need {} slots, so one replica"
busy = serving_queue(0.9 * most, answer, allowed, **replica)
assert 2 * answer * decode_step(1, **replica).time < busy.W and busy.wait_probability < 0.05, (
    "long before anybody has to wait"
)

# %%
prompt = context - answer // 2
prefill = prefill_time(prompt, model.parameters, replica["peak"])
feeders = prefill_servers(prefill, allowed, step, answer)
both = 1 / (prefill + answer * step / allowed)
si(prefill, "s"), round(feeders, 2), round(both, 2)

# %% [markdown]
# The {{context:,}} tokens are those of a request halfway through its answer, so its prompt has
# {{prompt:,}}. Reading it takes at least {{si(prefill, "s")}}. If the replica reads it, its
# {{allowed:.0f}} answers stand still for as long as {{prefill / step:.0f}} steps. If others read
# it, Little's law counts them: the rate of requests, times how long each takes, is {{feeders:.1f}}
# replicas that do nothing else. And if one replica did both? Then each request would take its prefill
# for itself, and of its {{answer}} steps one part in {{allowed}}, because it shares them with the
# others. If it reads and writes by turns, one over the sum of the two is the new ceiling: {{both:.1f}}
# requests a second in place of {{most:.1f}}. (An engine that reads a piece beside those who write gains
# a little, since the arithmetic covers the reading of the weights.)
#
# All of this is a bound. A single GPU reached more than half of it in public runs, and several
# together less than half, because chips that act as one have to exchange what they computed.
# [proof](04_littles_law_proof.ipynb#Check:-against-measured-serving)

# %% tags=["holds"]
assert prompt + answer / 2 == context, "halfway through its answer"
assert abs(prefill * replica["peak"] / (2 * model.parameters * prompt) - 1) < 1e-9, (
    "it takes at least"
)
assert prefill > 5 * step, "still for as long"
assert abs(feeders - most * prefill) < 1e-9, "replicas that do nothing"
assert both < most and abs(1 / both - prefill - 1 / most) < 1e-9, "itself, and of its {{answer}} steps one part in"

# %% [markdown]
# ## Try it
#
# What limits the batch, the budget or the memory? Change the hardware, then the context.

# %%
from lightspeed_course.explorers.queueing import explore_serving

explore_serving()

# %% [markdown]
# ## Decide

# %%
ask("serving.what_limits_it", seed="chapter")

# %%
ask("serving.answers_per_second", seed="chapter")

# %%
ask("serving.slots_in_memory", seed="chapter")

# %% [markdown]
# ## Whom do you believe?
#
# **Neither.** The first engineer divided the budget by the step of a lone user. But most of that step
# reads weights, and nobody has to read them twice for two. The second divided the memory, which is
# only one of two limits. Between them lies the step: {{allowed}} users share it within
# {{si(job.BUDGET, "s")}}.
#
# **What would you buy for more?** Here the promise is the limit, so more memory alone brings nothing.
# A longer budget does, and so do faster memory, shorter contexts and caches in fewer bytes
# ([lesson 5](05_precision.ipynb)). Work out both limits before you buy anything, because it's only
# worth raising the lower one.

# %% tags=["holds"]
assert job.BUDGET // whole[0] < allowed < slots, "Between them lies the step"
assert batch_within(2 * job.BUDGET, **replica) > allowed and all(
    batch_within(job.BUDGET, **replica | change) > allowed
    for change in ({"bandwidth": 2 * replica["bandwidth"]}, {"kv_bytes": kv / 2})
), "A longer budget does, and so do faster memory, shorter contexts and caches in fewer bytes"
assert min(allowed, batch_that_fits(2 * memory, job.weights(), kv)) == allowed, (
    "so more memory alone brings nothing"
)

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - A step reads the weights once for all and a cache for each: until the caches together outweigh the
#   weights, users share most of it.
# - A replica's batch is limited by a promise or by memory; find out which before you buy.
# - The batch, divided by the time that an answer stays, is the most requests a second that anybody may
#   promise, while a step gives each user one token.

# %% tags=["holds"]
assert all(
    (decode_step(n, **replica).kv < decode_step(n, **replica).time / 2) == (n * kv < job.weights())
    for n in range(1, 200)
), "until the caches together outweigh the weights, users share most of it"
assert all(
    abs(concurrency(request_rate(n, answer, t := decode_step(n, **replica).time), answer * t) - n) < 1e-9
    for n in (1, 50, allowed)
), "The batch, divided by the time that an answer stays, is the most"

# %% [markdown] tags=["card"]
# | formula | what it says | unit | for the job |
# |---|---|---|---|
# | $2\,n\,h\,d\,e$ | cache that a token leaves in $n$ layers with $h$ KV heads, $d$ wide, in $e$ bytes a number | byte | {{si(per_token, "byte")}} |
# | $t(B) = B \cdot \frac{\text{cache} }{\text{bandwidth} } + \max\left(\frac{\text{weights} }{\text{bandwidth} }, \frac{2PB}{\text{peak} }\right)$ | a decode step | s | {{si(step, "s")}} for {{allowed}} |
# | $\min(\text{weights} / \text{cache}, B_\text{crit})$ | the knee; $B_\text{crit}$ is the critical batch of lesson 2 | request | {{knee}} |
# | $B / (\text{tokens} \times t(B))$ | requests a second | request/s | at most {{most:.1f}} |

# %% [markdown]
# ## In your own engine
#
# When vLLM starts, it prints for how many requests of the longest length its cache has room, as
# *maximum concurrency*: that is the second engineer's number. Its `--max-num-seqs` is the batch that
# you allow. Set it by the first limit, not by the second.
#
# ## Exercises, and on
#
# [The exercises](../exercises/04_littles_law.ipynb) have a replica to size, and these questions with
# other numbers. Next: what if the texts are long? [What a request keeps, and what a step
# reads](04_littles_law_2_attention.ipynb).
#
# ## Further reading
#
# - Yu and others, *Orca* (OSDI 2022): batches that requests join and leave between steps.
# - Kwon and others, *PagedAttention* (SOSP 2023): how caches are kept in blocks.
# - Austin and others, *How to Scale Your Model* (2025), chapter 7: the same step on TPUs.
