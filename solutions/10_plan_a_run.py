# %% [markdown]
# # Exercises 10: Plan a run
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if
# not, what may have happened. A plain number is read in the unit that the question asks for. Chapter
# 10 has what you need, and you may use the laws of `lightspeed.pipeline` and `lightspeed.reliability`.

# %%
from math import ceil, comb

from lightspeed.pipeline import bubble_over_total
from lightspeed.reliability import lost_share, young_interval
from lightspeed_course import ask, check

# %% [markdown]
# ## Read a plan

# %%
ask("planning.data_ways")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # replicas
answer = 512 / (8 * 4)
# END SOLUTION
check("planning.data_ways", answer)

# %%
ask("planning.read_the_plan")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # micro-batches
answer = 512 / 4 / 2
# END SOLUTION
check("planning.read_the_plan", answer)

# %%
ask("planning.largest_data")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # replicas
answer = 4194304 / 8192 / 2
# END SOLUTION
check("planning.largest_data", answer)

# %%
ask("planning.states")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = 70e9 / (2 * 8) * (2 + 4 + 12 / 4) / 1e9
# END SOLUTION
check("planning.states", answer)

# %%
ask("planning.bubble_of_a_plan")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * bubble_over_total(8, 32, 10)
# END SOLUTION
check("planning.bubble_of_a_plan", answer)

# %% [markdown]
# ## Choose one

# %%
ask("planning.micro_batch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # sequences
answer = ceil(9895 / 2048)
# END SOLUTION
check("planning.micro_batch", answer)

# %%
ask("planning.group")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # s
answer = 12.8 * (1 + 0.05)
# END SOLUTION
check("planning.group", answer)

# %%
ask("planning.buy_what")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a word
answer = "nvlink"
# END SOLUTION
check("planning.buy_what", answer)

# %%
ask("planning.front")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a letter
answer = "c"
# END SOLUTION
check("planning.front", answer)

# %%
ask("planning.days")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # days
answer = 3.6e10 / 1048576 * 13 / 86400
# END SOLUTION
check("planning.days", answer)

# %%
ask("planning.lost_to_failures")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * lost_share(young_interval(60, 3 * 3600), 60, 3 * 3600)
# END SOLUTION
check("planning.lost_to_failures", answer)

# %% [markdown]
# ## Count the plans

# %%
ask("planning.ways")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ways
answer = comb(10 + 2, 2)
# END SOLUTION
check("planning.ways", answer)
