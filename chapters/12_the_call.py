# %% [markdown]
# # 12. The call
#
# It is Tuesday, the job is below its plan, and it's your phone that rings. Half an hour from now
# somebody wants to know what it is and what it will cost. You know every law that you need; what is
# left is the order in which to use them.

# %% tags=["setup"]
from lightspeed_course import incident, job, si

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
# different suspects. If you would do the same whatever it says, don't buy it.
#
# **Stop when one is left.** A further reading that agrees feels good and costs as much as the
# others. Then say what the repair will gain, before you make it: that is the part that others
# remember.

# %% tags=["holds"]
alone = step.time - step.data
assert abs(alone / (step.compute + step.memory) - 1) < 1e-6, "if nothing were sent"
assert step.time > planned, "what you look for"

# %% [markdown]
# ## Three calls
#
# Each hides one of the causes that the lessons taught. The score sets your minutes beside those of
# the policy that is cheapest on average over all causes.

# %%
incident(1)

# %%
incident(2)

# %%
incident(3)

# %% [markdown]
# `incident(4)` is another one, and so on; `lightspeed incident` in a terminal sells the same
# measurements, some of them as trace files for your own viewer.
#
# ## What you can do now
#
# You can say what a model weighs and what a token costs, which of two clocks a kernel waits for,
# what more GPUs will give and what they will cost, how many users a replica can promise, what a
# narrower format buys, what must fit, be sent and wait, whether a measured collective is normal,
# and what one bad cable does to a thousand GPUs. You can say it in two minutes, with a pencil, to
# somebody who is about to spend money. That is rarer than it should be.
