# %% [markdown]
# # Exercises 7: NCCL bandwidth
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if not, what may have
# happened. A plain number is read in the unit that the question asks for; a quantity `Q(value, "GB/s")` brings its own.
# Chapter 7 has what you need, and you may use the laws of `lightspeed.collectives`.

# %%
from lightspeed.catalog import link
from lightspeed.collectives import *
from lightspeed_course import ask, check
from lightspeed.units import Q

# %% [markdown]
# ## Reading the columns

# %%
ask("nccl.algbw")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = Q(algbw(16e9, 0.1), "byte/s")
# END SOLUTION
check("nccl.algbw", answer)

# %%
ask("nccl.busbw")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = busbw("all_reduce", 2 * 4, 120)
# END SOLUTION
check("nccl.busbw", answer)

# %%
ask("nccl.bytes_sent")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = 1 * busbw_factor("all_reduce", 8)
# END SOLUTION
check("nccl.bytes_sent", answer)

# %%
ask("nccl.ranks_from_ratio")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ranks
answer = 2 / (2 - 1.875)
# END SOLUTION
check("nccl.ranks_from_ratio", answer)

# %% [markdown]
# ## Functions

# %%
ask("nccl.factor")


# %%
def factor(collective, n):
    """busbw over algbw."""
    # BEGIN SOLUTION
    # STUB: ...
    if collective == "broadcast":
        return 1
    return (2 if collective == "all_reduce" else 1) * (n - 1) / n
    # END SOLUTION


check("nccl.factor", factor)

# %%
ask("nccl.busbw_function")


# %%
def all_reduce_busbw(size, time, n):
    """What nccl-tests prints, in byte/s."""
    # BEGIN SOLUTION
    # STUB: ...
    return size / time * 2 * (n - 1) / n
    # END SOLUTION


check("nccl.busbw_function", all_reduce_busbw)

# %%
ask("nccl.ring_time")


# %%
def alpha_beta_ring(size, n, bandwidth, latency):
    """Seconds of a ring all-reduce."""
    # BEGIN SOLUTION
    # STUB: ...
    return 2 * (n - 1) * (latency + size / (n * bandwidth))
    # END SOLUTION


check("nccl.ring_time", alpha_beta_ring)

# %% [markdown]
# ## The link it is compared with

# %%
ask("nccl.rate_per_gpu")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = 32 * 100 / 8 / 8
# END SOLUTION
check("nccl.rate_per_gpu", answer)

# %%
ask("nccl.one_direction")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * 360 / (900 / 2)
# END SOLUTION
check("nccl.one_direction", answer)

# %%
ask("nccl.share_of_line")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * busbw("all_reduce", 32 * 8, 170e9) / link("efa_p5").bandwidth_per_node
# END SOLUTION
check("nccl.share_of_line", answer)

# %%
ask("nccl.possible_algbw")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = Q(algbw_from_busbw("all_reduce", 16, link("nvlink4").bandwidth), "byte/s")
# END SOLUTION
check("nccl.possible_algbw", answer)

# %%
ask("nccl.switch_busbw")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = busbw("all_reduce", 8, 270)
# END SOLUTION
check("nccl.switch_busbw", answer)

# %% [markdown]
# ## Time

# %%
ask("nccl.ring_steps")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # steps
answer = ring_steps("all_reduce", 125 * 8)
# END SOLUTION
check("nccl.ring_steps", answer)

# %%
ask("nccl.latency_share")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
across = ring_steps("all_reduce", 32)
latency = 1.4 * (8.4e-6 + across * 14e-6 + (ring_steps("all_reduce", 32 * 8) - across) * 6e-6)
answer = 100 * latency / (latency + bandwidth_bound("all_reduce", 2e9, 32 * 8, 370e9))
# END SOLUTION
check("nccl.latency_share", answer)

# %%
ask("nccl.half_size")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # kilobytes
answer = Q(8 * 5e-6 * 50e9, "byte")
# END SOLUTION
check("nccl.half_size", answer)

# %%
ask("nccl.gather_time")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # microseconds
answer = Q(bandwidth_bound("all_gather", 8 * 50e6, 8, 450e9), "s")
# END SOLUTION
check("nccl.gather_time", answer)

# %%
ask("nccl.two_levels")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # milliseconds
answer = Q(hierarchical_time(8e9, 8, 4, 450e9, 50e9).upper, "s")
# END SOLUTION
check("nccl.two_levels", answer)

# %%
ask("nccl.share_that_leaves")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (1 - 1 / 5)
# END SOLUTION
check("nccl.share_that_leaves", answer)

# %%
ask("nccl.alltoall_across")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # milliseconds
answer = Q(1e9 * (1 - 1 / 4) / 50e9, "s")
# END SOLUTION
check("nccl.alltoall_across", answer)

# %% [markdown]
# ## Choosing

# %%
ask("nccl.best_algorithm")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "doubling"
# END SOLUTION
check("nccl.best_algorithm", answer)

# %%
ask("nccl.fsdp_over_ddp")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # times
answer = 6 * 3 / 2
# END SOLUTION
check("nccl.fsdp_over_ddp", answer)

# %%
ask("nccl.collective_name")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "all_gather"
# END SOLUTION
check("nccl.collective_name", answer)

# %%
ask("nccl.which_test")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "gather_scatter"
# END SOLUTION
check("nccl.which_test", answer)

# %% [markdown]
# ## Judge these claims
#
# Count what a rank sends.

# %%
ask("nccl.claim_on_a_ring")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "busbw"
# END SOLUTION
check("nccl.claim_on_a_ring", answer)

# %%
ask("nccl.claim_faster_links")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "steps"
# END SOLUTION
check("nccl.claim_faster_links", answer)
