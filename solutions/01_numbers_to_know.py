# %% [markdown]
# # Exercises 1: numbers to know
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if not, what may have
# happened. Try the recall questions without looking anything up; each says how close is close enough. For the others, you
# may use the whole library.

# %%
from lightspeed import datasheet, roofline
from lightspeed.catalog import accelerator, find, link, memory
from lightspeed_course import ask, check
from lightspeed.units import Q

# %% [markdown]
# ## From memory

# %%
ask("numbers.training_bytes")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # bytes
answer = 2 + 2 + 4 + 4 + 4
# END SOLUTION
check("numbers.training_bytes", answer)

# %%
ask("numbers.country_round_trip")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # milliseconds
answer = memory("path_country").round_trip.quantity
# END SOLUTION
check("numbers.country_round_trip", answer)

# %%
ask("numbers.h100_peak")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # TFLOP/s
answer = accelerator("h100_sxm").bf16.quantity
# END SOLUTION
check("numbers.h100_peak", answer)

# %%
ask("numbers.h100_memory")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # TB/s
answer = accelerator("h100_sxm").hbm_bandwidth.quantity
# END SOLUTION
check("numbers.h100_memory", answer)

# %%
ask("numbers.nvlink_one_way")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = 18 * Q(25, "GB/s")
# END SOLUTION
check("numbers.nvlink_one_way", answer)

# %%
ask("numbers.infiniband_ndr")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = Q(400, "Gbit/s")
# END SOLUTION
check("numbers.infiniband_ndr", answer)

# %%
ask("numbers.pcie5")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = link("pcie5_x16").bandwidth.quantity
# END SOLUTION
check("numbers.pcie5", answer)

# %% [markdown]
# ## On paper

# %%
ask("numbers.inference_memory")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = 7e9 * 2 / 1e9
# END SOLUTION
check("numbers.inference_memory", answer)

# %%
ask("numbers.training_memory")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = 7e9 * 16 / 1e9
# END SOLUTION
check("numbers.training_memory", answer)

# %%
ask("numbers.training_flops")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # FLOP
answer = 6 * 7e9 * 1e12
# END SOLUTION
check("numbers.training_flops", answer)

# %%
ask("numbers.uses_of_a_word")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a number of multiply-adds
answer = find("horowitz_45nm").dram / find("horowitz_45nm").fp32_fma
# END SOLUTION
check("numbers.uses_of_a_word", answer)

# %%
ask("numbers.chain_of_loads")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # milliseconds
answer = 100_000 * memory("gpu_hbm").latency * 1e3
# END SOLUTION
check("numbers.chain_of_loads", answer)

# %%
ask("numbers.reach_of_a_ping")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # kilometres
answer = Q(20, "ms") / 2 * Q(200, "km/ms")
# END SOLUTION
check("numbers.reach_of_a_ping", answer)

# %%
ask("numbers.transfer_time")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # milliseconds
answer = roofline.transfer_time(Q(1, "GB"), Q(10, "Gbit/s"), Q(100, "ms"))
# END SOLUTION
check("numbers.transfer_time", answer)

# %%
ask("numbers.braking_distance")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # centimetres
answer = Q(100, "km/hour") * Q(10, "ms")
# END SOLUTION
check("numbers.braking_distance", answer)

# %%
ask("numbers.human_scale")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # hours
answer = datasheet.human_scale(300e-9, 0.3e-9, 10) / 3600
# END SOLUTION
check("numbers.human_scale", answer)

# %%
ask("numbers.peak_from_clock")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # TFLOP/s
answer = datasheet.peak_from_clock(1830e6, 2 * 512, 528) / 1e12
# END SOLUTION
check("numbers.peak_from_clock", answer)

# %%
ask("numbers.dense_peak")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # TFLOP/s
answer = 3958 / 2 / 2
# END SOLUTION
check("numbers.dense_peak", answer)

# %% [markdown]
# ## Functions

# %%
ask("numbers.crossover_size")


# %%
def equal_terms(latency, bandwidth):
    """The size, in bytes, at which waiting and moving take as long."""
    # BEGIN SOLUTION
    # STUB: ...
    return latency * bandwidth
    # END SOLUTION


check("numbers.crossover_size", equal_terms)

# %%
ask("numbers.iron_law")


# %%
def step_time(flops, size, peak, bandwidth, utilization, latency):
    """Seconds of a step whose parts do not overlap."""
    # BEGIN SOLUTION
    # STUB: ...
    return size / bandwidth + flops / (peak * utilization) + latency
    # END SOLUTION


check("numbers.iron_law", step_time)

# %% [markdown]
# ## Design

# %%
ask("numbers.what_helps")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "nearer"
# END SOLUTION
check("numbers.what_helps", answer)

# %%
ask("numbers.ping_and_iperf")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "ping"
# END SOLUTION
check("numbers.ping_and_iperf", answer)

# %%
ask("numbers.bytes_in_budget")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = accelerator("h100_sxm").hbm_bandwidth * 10e-3 / 1e9
# END SOLUTION
check("numbers.bytes_in_budget", answer)

# %%
ask("numbers.recompute_or_fetch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # FLOP
answer = 2 * accelerator("h100_sxm").bf16 / accelerator("h100_sxm").hbm_bandwidth
# END SOLUTION
check("numbers.recompute_or_fetch", answer)

# %%
ask("numbers.country_requests")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # seconds
answer = 1000 * memory("path_country").round_trip
# END SOLUTION
check("numbers.country_requests", answer)

# %%
ask("numbers.week")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "sparse"
# END SOLUTION
check("numbers.week", answer)

# %% [markdown]
# ## Judge these claims
#
# Two that sound plausible. Work out the numbers before you choose.

# %%
ask("numbers.claim_wider_link")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "latency"
# END SOLUTION
check("numbers.claim_wider_link", answer)

# %%
ask("numbers.claim_hbm_over_l1")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "mixed"
# END SOLUTION
check("numbers.claim_hbm_over_l1", answer)
