# %% [markdown]
# # Exercises 9: Serving
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if
# not, what may have happened. A plain number is read in the unit that the question asks for; a
# quantity `Q(value, "ms")` brings its own. Chapter 9 has what you need, and you may use the laws of
# `lightspeed.inference`.

# %%
from math import ceil, floor

from lightspeed.inference import *
from lightspeed_course import ask, check

# %% [markdown]
# ## A step that all share

# %%
ask("inference.lone_step")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
answer = 141e9 / 8 / (3.35e12 * 0.76) * 1e3 + 80 * 42e-3
# END SOLUTION
check("inference.lone_step", answer)

# %%
ask("inference.tokens_to_read")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # token/s
answer = 2 * 8000 * (1 - 0.6)
# END SOLUTION
check("inference.tokens_to_read", answer)

# %%
ask("inference.reading_share")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * 1 * 8000 / 2000 * 90e-3
# END SOLUTION
check("inference.reading_share", answer)

# %%
ask("inference.interrupted")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
answer = 1e3 * interrupted_step(20e-3, 300e-3, 40, 500)
# END SOLUTION
check("inference.interrupted", answer)

# %%
ask("inference.burst")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # s
answer = burst_time(32, 0.25)
# END SOLUTION
check("inference.burst", answer)

# %% [markdown]
# ## Places

# %%
ask("inference.blocks")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # requests
answer = floor(5000 / ceil(1000 / 16))
# END SOLUTION
check("inference.blocks", answer)

# %%
ask("inference.read_the_log")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a word
answer = "places"
# END SOLUTION
check("inference.read_the_log", answer)

# %%
ask("inference.experts_of_a_batch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # experts
answer = experts_read(64, 256, 8)
# END SOLUTION
check("inference.experts_of_a_batch", answer)

# %% [markdown]
# ## More than one token, more than one pool

# %%
ask("inference.drafted")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
answer = drafted_tokens(0.7, 3)
# END SOLUTION
check("inference.drafted", answer)

# %%
ask("inference.drafts_function")


# %%
def tokens(acceptance, drafts):
    """Tokens of a step that checks so many guesses in a row."""
    # BEGIN SOLUTION
    # STUB: ...
    return sum(acceptance**i for i in range(drafts + 1))
    # END SOLUTION


check("inference.drafts_function", tokens)

# %%
ask("inference.readers")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # replicas
answer = max(range(1, 8), key=lambda n: min(n / 1, (8 - n) * 0.5))
# END SOLUTION
check("inference.readers", answer)

# %%
ask("inference.drafts_at_night")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a word
answer = "both"
# END SOLUTION
check("inference.drafts_at_night", answer)
