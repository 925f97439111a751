# %% [markdown]
# # 12. The call
#
# It is Tuesday, the job is below its plan, and it's your phone that rings. Before the day is over
# somebody wants to know what it is and what it will cost. You know every law that you need; what is
# left is the order in which to use them.

# %% tags=["setup"]
from collections import Counter
from dataclasses import replace
from lightspeed_course import ask, incident, job, si, table
from lightspeed_course.incidents import policy, training_job
from lightspeed_course.incidents.incident import incident_of
from lightspeed_course.incidents.week import PLANNED, WEEK

# %%
job.sheet()

# %% tags=["setup"]
step, planned = job.step(), job.planned() * job.SEQUENCES * job.SEQUENCE / job.TOKENS

# %% [markdown]
# That is the whole job, as the lessons worked it out. From the line "As it runs" on it rests on a
# model of a training step, so read it as "about": the
# [proof of chapter 6](06_parallelism_proof.ipynb#Check:-against-published-runs) says how far off it
# was on runs that others published.
#
# **First, one from lesson 11.** You'll read files like these today.

# %%
ask("profile.transfer", seed="again")

# %% [markdown]
# ## How to work
#
# **State the plan in seconds.** What should a step take, and what is that made of? A job is not
# "slow"; as it first ran, ours took {{si(step.time, "s")}} where the plan said
# {{si(planned, "s")}}, and the difference is what you look for.
#
# **List the suspects before you look.** Write down what could cost that much. Whatever can't is out
# before you have bought anything: if nothing were sent, the step above would still take
# {{si(step.compute + step.memory, "s")}}, so no repair of the network can bring it below that.
#
# **Buy what splits them best.** A measurement is worth its minutes if its outcomes leave you with
# different suspects. If you would do the same whatever it says, don't buy it. Else do a sum: say that four
# suspects are left, one as likely as the other. A reading of ten minutes leaves two of them, whichever they
# are, and another like it leaves one; that makes twenty minutes. One that stops the job for an hour and names
# the culprit costs three times as much. And one of five minutes that would clear or convict only one of the
# four spares you the twenty in one call of four, five minutes on average: just its price. So a reading is worth
# its minutes if the chance that it ends the search, times what you would buy without it, is more than they are.
#
# **Stop when one is left.** A further reading that agrees feels good and costs as much as the
# others. Then say what the repair will gain, before you make it: that is the part that others
# remember.

# %% tags=["holds"]
alone = step.time - step.data
assert abs(alone / (step.compute + step.memory) - 1) < 1e-6, "if nothing were sent"
assert step.time > planned, "what you look for"

# %% [markdown]
# ## One call, from the phone to the repair

# %% tags=["setup"]
case = incident_of(7, WEEK)
plan, seen = training_job.terms(PLANNED), training_job.time(case.job)
missing = seen - plan.time

# %% [markdown]
# > {{case.brief}}
#
# **In seconds.** You took the offer, with the split of lesson 6.3 on {{job.OFFERED}} GPUs. Divide
# the tokens of a step by the tokens of a second: {{si(plan.time, "s")}} were promised, which is the
# figure on your sheet, and a step takes {{si(seen, "s")}}. So {{si(missing, "s")}} are missing. The
# plan is made of {{si(plan.compute, "s")}} of products, {{si(plan.data, "s")}} in which gradients
# travel and nothing hides them, and smaller parts.

# %% tags=["holds"]
tokens = job.SEQUENCES * job.SEQUENCE
assert f"promised {tokens / plan.time:,.0f} tokens" in case.brief, "were promised"
assert plan.time == job.step("split", job.OFFERED).time, "figure on your sheet"
others = [t for name, t in plan.terms.items() if name not in ("compute", "data")]
assert max(others) < plan.data < plan.compute, "in which gradients travel and nothing hides them, and smaller parts"

# %% tags=["setup"]
again = training_job.time(replace(PLANNED, recompute="full")) - plan.time
slow = (plan.compute + plan.memory) / (plan.compute + plan.memory + missing)
crawls = (plan.data + plan.hidden) / (plan.data + plan.hidden + missing)

# %% [markdown]
# **Suspects.** The room has {{len(WEEK.causes)}} causes. The promise is that of your sheet, so
# nobody took a sparse peak or fp8 at its word. To recompute all activations costs
# {{si(again, "s")}}, which is not enough. A slow GPU would have to be down to {{slow:.0%}} of its
# speed, and a slow link to {{crawls:.0%}} of its rate; you can't rule out either from a chair. But
# `sparse_peak`, `narrow_plan` and `recompute` are gone, and you haven't paid a minute.

# %% tags=["holds"]
assert again < missing / 2, "which is not enough"
assert {"sparse_peak", "narrow_plan", "recompute"} < {c.id for c in WEEK.causes}, (
    "are gone, and you"
)

# %% tags=["figure"]
bought, _ = policy.solve(case)
known, ledger = {}, []
for id in bought:
    known[id] = case.findings[id]
    left = policy.causes("week", policy.consistent("week", frozenset(known.items())))
    ledger.append((WEEK.measurement(id), known[id], left))
table(
    [[m.name, m.minutes, finding, ", ".join(left)] for m, finding, left in ledger],
    ["bought", "minutes", "what it says", "who is left"],
    caption="The ledger of this call.",
)

# %% [markdown]
# **What to buy?** The profile first: it is cheap, and its terms are the suspects' own. Products
# take what they should, so what is late is the sum of gradients. But a profile of one GPU can't
# tell a slow network from a late colleague: both look like a collective that takes long. So you ask
# for everybody's time at work, and they are all alike; nobody is late, the wire is slow. Only now
# is it worth stopping {{job.OFFERED}} GPUs for an hour, to find out whether one node is slow or all
# of them. One is.
#
# It took {{case.minutes(bought)}} minutes. Had you tested pairs of nodes first, it would have been
# over after {{ledger[-1][0].minutes}}, this time. But with {{len(WEEK.causes) - 2}} of the
# {{len(WEEK.causes)}} causes each pair is as fast as it should be, and the hour would only have
# told you that.
#
# **What will it gain?** The missing seconds, all of them: the job gets {{case.gain:.2f}} times as
# fast. You can say so before anybody has touched the cable.

# %% tags=["holds"]
assert [m.id for m, *_ in ledger] == ["profile", "ranks", "pairs"], "The profile first"
assert ledger[0][1] == "gradient collectives take longer", "what is late is the sum of gradients"
assert {"straggler", "numa"} < {*ledger[0][2]}, "can't tell a slow network from a late colleague"
assert ledger[1][1] == "all ranks alike", "they are all alike"
assert [*ledger[-1][2]] == ["slow_nic"] and ledger[-1][1] == "one node is slow", "One is"
assert ledger[0][0].minutes <= 5 + min(m.minutes for m in WEEK.measurements), "it is cheap"
assert abs(case.gain - seen / plan.time) < 1e-9, "The missing seconds, all of them"
draws = {c.id: incident_of("sound", WEEK, c).findings["pairs"] for c in WEEK.causes}
assert {c for c, says in draws.items() if says != "no pair slow"} == {"slow_nic", "numa"}, (
    "each pair is as fast as it should be"
)

# %% [markdown]
# ## Your calls
#
# The same job, three times. Only the cause is drawn, and how bad it is. The score sets your minutes
# beside those of the policy that is cheapest on average over all causes. A wrong answer leads you
# to the lesson that has what you missed.

# %%
incident(2, job="week")

# %%
incident(5, job="week")

# %%
incident(12, job="week")

# %% [markdown]
# ## Which reading shows which suspect?
#
# Now that you have bought readings for their price, here is what each suspect would have changed. A
# reading is named where it would look different from a sound job's, the cheapest first; with the first
# one you can often stop:

# %% tags=["figure"]
says = {c: incident_of("card", WEEK, c).findings for c in WEEK.causes}
sound = {m.id: Counter(found[m.id] for found in says.values()).most_common(1)[0][0]
         for m in WEEK.measurements if m.id != "profile"} | {"profile": "every term as planned"}  # fmt: skip
shows = {
    c: [m for m in sorted(WEEK.measurements, key=lambda m: m.minutes) if found[m.id] != sound[m.id]]
    for c, found in says.items()
}
table(
    [[f"`{c.id}`", c.name, "; ".join(f"**{m.id}** ({m.minutes} min): {says[c][m.id]}" for m in ms)]
     for c, ms in shows.items()],
    ["suspect", "in words", "readings that it changes"],
    caption="The card for a call. Read a row to see how a suspect betrays itself, and look for a reading"
    " in many rows to see what can't tell them apart.",
)  # fmt: skip

# %% tags=["holds"]
assert all(shows.values()), "Read a row to see how"

# %% [markdown]
# Look at `profile`: it stands in {{sum("profile" in [m.id for m in ms] for ms in shows.values())}}
# of {{len(shows)}} rows, but it never says *which* node or *why*. On your own cluster these
# readings are `torch.profiler` with `lightspeed trace` (profile, ranks),
# `nvidia-smi -q -d CLOCK,PERFORMANCE` or DCGM (clocks), `lightspeed measure` (roofline), and
# nccl-tests with `lightspeed nccl` (inside, nccl, pairs). The habit behind the card works for any
# machine, and it is a doctor's, *differential diagnosis*, with a price on each test: list the causes
# that would look like this, buy the reading that tells most of them apart for its price, and cross
# off. (Gregg's USE method is its neighbour. It walks over the resources instead, and asks each for its
# utilization, its saturation and its errors.)

# %% tags=["holds"]
assert sum("profile" in [m.id for m in ms] for ms in shows.values()) > len(shows) / 2, (
    "Look at `profile`"
)
per = [says[c]["profile"] for c in shows]
assert len(set(per)) < len(per) / 2, "it never says"

# %% [markdown]
# And one that serves:

# %%
incident(4)

# %% [markdown]
# `incident(job="week")` is the next one of this job that you have not ended, and `incident()` may
# befall any. `lightspeed incident --job week` is the same in a terminal. Before your own job runs,
# spend an afternoon with the [checklist](00_checklist.ipynb), which looks for most of these while
# they are cheap.
#
# ## What you can do now that you could not
#
# You can say what a model weighs and what a token costs, which of two clocks a kernel waits for,
# what more GPUs will give and what they will cost, how many users a replica can promise, what a
# narrower format buys, what must fit, be sent and wait, whether a measured collective is normal,
# and what one bad cable does to a thousand GPUs. You can say it in two minutes, with a pencil, to
# somebody who is about to spend money. That is rarer than it should be.
