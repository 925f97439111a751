# %% [markdown]
# # Exercises 11: Reading a profile
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if
# not, what may have happened. Chapter 11 has what you need. A duration may have its unit, in
# quotation marks.

# %%
from lightspeed.catalog import accelerator
from lightspeed.collectives import algbw, busbw
from lightspeed.roofline import matmul_flops
from lightspeed_course import ask, check

# %% [markdown]
# ## The account

# %%
ask("profile.exposed")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
answer = 11 - 8
# END SOLUTION
check("profile.exposed", answer)

# %%
ask("profile.idle")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
answer = 15 - 11
# END SOLUTION
check("profile.idle", answer)

# %%
ask("profile.write_exposed")


# %%
def exposed(start, end, low, high):
    """How much of a collective from start to end no product from low to high hides."""
    # BEGIN SOLUTION
    # STUB: ...
    return end - start - max(0, min(end, high) - max(start, low))
    # END SOLUTION


check("profile.write_exposed", exposed)

# %% [markdown]
# ## What a profile does not say

# %%
ask("profile.rounded")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # µs
answer = 1000 * 1
# END SOLUTION
check("profile.rounded", answer)

# %%
ask("profile.busy_share")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
flops = matmul_flops(2048, 8192, 8192)
answer = 100 * flops / 1.2e-3 / accelerator("h100_sxm").bf16
# END SOLUTION
check("profile.busy_share", answer)

# %%
ask("profile.late_launch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # µs
answer = 112 - 80
# END SOLUTION
check("profile.late_launch", answer)

# %%
ask("profile.own_time")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
answer = 17.8 - (30.5 - 15)
# END SOLUTION
check("profile.own_time", answer)

# %%
ask("profile.under_graphs")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "nothing"
# END SOLUTION
check("profile.under_graphs", answer)

# %% [markdown]
# ## Several ranks

# %%
ask("profile.transfer")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
answer = 16 - 14
# END SOLUTION
check("profile.transfer", answer)

# %%
ask("profile.slow_rank")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a plain number
answer = (14 + 2) / (10 + 2)
# END SOLUTION
check("profile.slow_rank", answer)

# %%
ask("profile.busbw")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = busbw("all_reduce", 8, algbw(2 * 134217728, 1.6e-3)) / 1e9
# END SOLUTION
check("profile.busbw", answer)

# %% [markdown]
# ## What to do first

# %%
ask("profile.best_overlap")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a plain number
answer = (40 + 60 - 10) / 60
# END SOLUTION
check("profile.best_overlap", answer)

# %%
ask("profile.nothing_sent")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a plain number
answer = 17.1 / 3.54
# END SOLUTION
check("profile.nothing_sent", answer)

# %%
ask("profile.what_waits")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "synchronize"
# END SOLUTION
check("profile.what_waits", answer)

# %%
ask("profile.what_first")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "less"
# END SOLUTION
check("profile.what_first", answer)
