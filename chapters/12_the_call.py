# %% [markdown]
# # 12. The call
#
# It is Tuesday, the job is below its plan, and it's your phone that rings. Half an hour from now
# somebody wants to know what it is and what it will cost. You know every law that you need; what is
# left is the order in which to use them.

# %% tags=["setup"]
from dataclasses import replace
from lightspeed_course import incident, job, si, table
from lightspeed_course.incidents import policy, training_job
from lightspeed_course.incidents.incident import incident_of
from lightspeed_course.incidents.week import PLANNED, WEEK

# %%
job.sheet()

# %% [markdown]
# That is the whole job, as the lessons worked it out. From the line "As it runs" on it rests on a
# model of a training step, so read it as "about": the [proof of chapter 6](06_parallelism.ipynb) says
# how far off it was on runs that others published.
#
# ## How to work
#
# **State the plan in seconds.** What should a step take, and what is that made of? A job is not
# "slow"; it takes five seconds where the plan says three, and the difference is what you look for.
#
# **List the suspects before you look.** Write down what could cost that much. Whatever can't is gone
# already, and you haven't bought anything.
#
# **Buy what splits them best.** A measurement is worth its minutes if its outcomes leave you with
# different suspects. If you would do the same whatever it says, don't buy it.
#
# **Stop when one is left.** A further reading that agrees feels good and costs as much as the others.
# And then say what the repair will gain, before you make it: that is the part which others remember.
#
# ## One call, from the phone to the repair

# %%
case = incident_of(7, WEEK)
planned, seen = training_job.terms(PLANNED), training_job.time(case.job)
missing = seen - planned.time
planned.time, seen

# %% [markdown]
# > {{case.brief}}
#
# **In seconds.** The tokens of a step over tokens a second: {{si(planned.time, "s")}} were promised,
# which is the line of your sheet, and a step takes {{si(seen, "s")}}. So {{si(missing, "s")}} are
# missing. The plan is made of {{si(planned.compute, "s")}} of products, {{si(planned.data, "s")}} in
# which gradients travel and nothing hides them, and smaller parts.

# %% tags=["holds"]
tokens = job.SEQUENCES * job.SEQUENCE
assert f"promised {tokens / planned.time:,.0f} tokens" in case.brief, "tokens of a step over"
assert planned.time == job.step("split", job.OFFERED).time, "which is the line of your sheet"
others = [t for name, t in planned.terms.items() if name not in ("compute", "data")]
assert max(others) < planned.data < planned.compute, "and smaller parts"

# %%
again = training_job.time(replace(PLANNED, recompute="full")) - planned.time
slow = (planned.compute + planned.memory) / (planned.compute + planned.memory + missing)
crawls = (planned.data + planned.hidden) / (planned.data + planned.hidden + missing)
again, slow, crawls

# %% [markdown]
# **Suspects.** The room has {{len(WEEK.causes)}} causes. The promise is that of your sheet, so nobody
# took a sparse peak or fp8 at its word. To recompute all activations costs {{si(again, "s")}}, which is not
# enough. A slow GPU would have to be down to {{slow:.0%}} of its speed, and a slow link to
# {{crawls:.0%}} of its rate; neither can be ruled out from a chair. But three suspects are gone, and
# you haven't paid a minute.

# %% tags=["holds"]
assert again < missing / 2, "which is not enough"
assert {"sparse_peak", "narrow_plan", "recompute"} < {c.id for c in WEEK.causes}, "three suspects are gone"

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
# **What to buy?** The profile first: it is cheap, and its terms are the suspects' own. Products take
# what they should, so what is late is the sum of gradients. But a profile of one GPU can't tell a
# slow network from a late colleague: both look like a collective that takes long. So you ask for
# everybody's time at work, and they are all alike; nobody is late, the wire is. Only now is it worth
# stopping {{job.OFFERED}} GPUs for an hour, to find out whether one node is slow or all of them. One
# is.
#
# It took {{case.minutes(bought)}} minutes. To test pairs of nodes at once would have ended it after
# {{ledger[-1][0].minutes}}, this time. With {{len(WEEK.causes) - 2}} of the {{len(WEEK.causes)}} causes
# the network is sound, and the hour would have been for nothing.
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
assert abs(case.gain - seen / planned.time) < 1e-9, "The missing seconds, all of them"
draws = {c.id: incident_of("sound", WEEK, c).findings["pairs"] for c in WEEK.causes}
assert {c for c, says in draws.items() if says != "no pair slow"} == {"slow_nic", "numa"}, (
    "causes the network is sound"
)

# %% [markdown]
# ## Your calls
#
# The same job, three times. Only the cause is drawn, and how bad it is. The score sets your minutes
# beside those of the cheapest policy, on average over all causes; a wrong answer leads you to the
# lesson that has what you missed.

# %%
incident(2, job="week")

# %%
incident(5, job="week")

# %%
incident(12, job="week")

# %% [markdown]
# And one that serves:

# %%
incident(4)

# %% [markdown]
# `incident(job="week")` is the next one of this job that you have not ended, and `incident()` may befall
# any. `lightspeed incident --job week` is the same in a terminal. Before your own job runs, spend an
# afternoon with the [checklist](00_checklist.ipynb): it finds most of these while they are cheap.
#
# ## What you can do now that you could not
#
# You can say what a model weighs and what a token costs, which of two clocks a kernel waits for, what
# more GPUs will give and what they will cost, how many users a replica can promise, what a narrower
# format buys, what must fit, be sent and wait, whether a measured collective is normal, and what one
# bad cable does to a thousand GPUs. You can say it in two minutes, with a pencil, to somebody who is
# about to spend money. That is rarer than it should be.
