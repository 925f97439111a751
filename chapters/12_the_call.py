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

# %%
step, planned = job.step(), job.planned() * job.SEQUENCES * job.SEQUENCE / job.TOKENS
step.time, planned

# %% [markdown]
# That is the whole job, as the lessons worked it out. From the line "As it runs" on it rests on a
# model of a training step, so read it as "about": the [proof of chapter 6](06_parallelism.ipynb) says
# how far off it was on runs that others published.
#
# ## How to work
#
# **State the plan in seconds.** What should a step take, and what is that made of? A job is not
# "slow"; it takes {{si(step.time, "s")}} where the plan says {{si(planned, "s")}}, and the difference
# is what you look for.
#
# **List the suspects before you look.** Write down what could cost that much. Whatever can't is gone
# already, and you haven't bought anything: of the step above, {{step.data / step.time:.0%}} are
# traffic that no arithmetic hides, so a repair of the network can't give more than that.
#
# **Buy what splits them best.** A measurement is worth its minutes if its outcomes leave you with
# different suspects. If you would do the same whatever it says, don't buy it.
#
# **Stop when one is left.** A further reading that agrees feels good and costs as much as the others.
# And then say what the repair will gain, before you make it: that is the part which others remember.

# %% tags=["holds"]
assert 0.4 < step.data / step.time < 0.8, "traffic that no arithmetic hides"
assert step.time > planned, "what you look for"

# %% [markdown]
# ## Three calls
#
# Each hides one cause, of those that the lessons taught. The score sets your minutes beside those of
# the cheapest policy, on average over all causes.

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
# You can say what a model weighs and what a token costs, which of two clocks a kernel waits for, what
# more GPUs will give and what they will cost, how many users a replica can promise, what a narrower
# format buys, what must fit, be sent and wait, whether a measured collective is normal, and what one
# bad cable does to a thousand GPUs. You can say it in two minutes, with a pencil, to somebody who is
# about to spend money. That is rarer than it should be.
