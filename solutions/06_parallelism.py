# %% [markdown]
# # Exercises 6: parallelism
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if not, what may have
# happened. A plain number is read in the unit that the question asks for; a quantity `Q(value, "GB")` brings its own.
# Chapter 6 has what you need, and its laws are imported.

# %%
from lightspeed.catalog import accelerator, link, number
from lightspeed.energy import cost_of, energy_of
from lightspeed.memory import *
from lightspeed.parallel import *
from lightspeed.pipeline import *
from lightspeed_course import ask, check
from lightspeed.reliability import *
from lightspeed_models.plan import Plan, machine
from lightspeed_models.training_step import step
from lightspeed_models.llm import decoder, training_memory
from lightspeed.units import Q

h100, ndr = accelerator("h100_sxm"), link("infiniband_ndr")

# %% [markdown]
# ## Traffic, memory, schedules

# %%
ask("parallelism.gradient_bytes")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = Q(data_parallel_bytes(8e9, 8), "byte")
# END SOLUTION
check("parallelism.gradient_bytes", answer)

# %%
ask("parallelism.bubble_over_total")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * 7 / (32 + 7)
# END SOLUTION
check("parallelism.bubble_over_total", answer)

# %%
ask("parallelism.tensor_collectives")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # all-reduces
answer = 4 * 32 * 16
# END SOLUTION
check("parallelism.tensor_collectives", answer)

# %%
ask("parallelism.three_collectives")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # (all_reduce, all_gather, reduce_scatter), MB
shares = 7 / 8 * 1000
answer = (2 * shares, shares, shares)
# END SOLUTION
check("parallelism.three_collectives", answer)

# %%
ask("parallelism.zero3_bytes")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = 3 * 15 / 16 * 2 * 7
# END SOLUTION
check("parallelism.zero3_bytes", answer)

# %%
ask("parallelism.zero3_accumulated")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a factor
answer = 8 * (1 + 2) / 2
# END SOLUTION
check("parallelism.zero3_accumulated", answer)

# %%
ask("parallelism.zero_states")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = 13 * (2 + 14 / 8)
# END SOLUTION
check("parallelism.zero_states", answer)

# %%
ask("parallelism.expert_exchange")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # MB
answer = Q(4096 * 4096 * 2 * 2 * 7 / 8, "byte")
# END SOLUTION
check("parallelism.expert_exchange", answer)

# %%
ask("parallelism.hot_expert")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a factor
answer = 0.5 / (1 / 8)
# END SOLUTION
check("parallelism.hot_expert", answer)

# %%
ask("parallelism.critical_tokens")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
answer = h100.bf16 / ndr.bandwidth
# END SOLUTION
check("parallelism.critical_tokens", answer)

# %%
ask("parallelism.tensor_over_network")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
answer = Q(tensor_parallel_bytes(4096, 8192, 8) / ndr.bandwidth, "s")
# END SOLUTION
check("parallelism.tensor_over_network", answer)

# %%
ask("parallelism.straggler")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (1.5 - 1) * (1 - 0.999**1024)
# END SOLUTION
check("parallelism.straggler", answer)

# %%
ask("parallelism.batch_for_64")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
answer = 64 * h100.bf16 / ndr.bandwidth
# END SOLUTION
check("parallelism.batch_for_64", answer)

# %%
ask("parallelism.power_bill")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # dollars
energy = energy_of(h100.power, 60 * 86400, devices=50_000, pue=number("data_centre.pue"))
answer = cost_of(energy, number("data_centre.electricity_price"))
# END SOLUTION
check("parallelism.power_bill", answer)

# %%
ask("parallelism.attention_forward")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # MB
answer = Q(2 * 7 / 8 * 2048 * 8192 * 2, "byte")
# END SOLUTION
check("parallelism.attention_forward", answer)

# %%
ask("parallelism.pipeline_steps")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # steps
answer = 2 * (4 + 4 - 1)
# END SOLUTION
check("parallelism.pipeline_steps", answer)

# %%
ask("parallelism.mlp_backward")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # MB
answer = Q(2 * 7 / 8 * 2048 * 8192 * 2, "byte")
# END SOLUTION
check("parallelism.mlp_backward", answer)

# %% [markdown]
# ## The checklist before a large run

# %%
ask("parallelism.data_ranks")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # replicas
answer = 1024 // (8 * 16)
# END SOLUTION
check("parallelism.data_ranks", answer)

# %%
ask("parallelism.accumulation")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # micro-batches
answer = 2048 // (1024 // (8 * 4) * 4)
# END SOLUTION
check("parallelism.accumulation", answer)

# %%
ask("parallelism.activations")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = Q(activation_bytes(2048, 1, 6144, 64, 48, recompute="selective"), "byte")
# END SOLUTION
check("parallelism.activations", answer)

# %%
ask("parallelism.zero_stage")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
uses = [training_memory(decoder("llama2_13b"), h100.hbm_capacity, 4096, data=8, stage=s, recompute="full") for s in range(4)]
answer = ("ddp", "zero1", "zero2", "zero3")[[use.fits for use in uses].index(True)]
# END SOLUTION
check("parallelism.zero_stage", answer)

# %%
ask("parallelism.stage_in_flight")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # micro-batches
answer = 8 - 3 + 1
# END SOLUTION
check("parallelism.stage_in_flight", answer)

# %%
ask("parallelism.fewest_micro_batches")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # micro-batches
answer = 7 * 9
# END SOLUTION
check("parallelism.fewest_micro_batches", answer)

# %%
ask("parallelism.tensor_ways")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GPUs
answer = tensor_parallel_ways(28672, h100.bf16, h100.link_bandwidth)
# END SOLUTION
check("parallelism.tensor_ways", answer)

# %%
ask("parallelism.nic_time")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
answer = Q(2 * 15 / 16 * 2 * 7e9 / ndr.bandwidth, "s")
# END SOLUTION
check("parallelism.nic_time", answer)

# %%
ask("parallelism.which_benchmark")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "shards"
# END SOLUTION
check("parallelism.which_benchmark", answer)

# %%
ask("parallelism.cluster_mtbf")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # hours
answer = 54 * 24 / 419 * 16384 / 100_000
# END SOLUTION
check("parallelism.cluster_mtbf", answer)

# %%
ask("parallelism.checkpoint_write")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # s
answer = 14 * 175e9 / 50e9
# END SOLUTION
check("parallelism.checkpoint_write", answer)

# %%
ask("parallelism.checkpoint_interval")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # minutes
answer = Q(young_interval(30, 3 * 3600), "s")
# END SOLUTION
check("parallelism.checkpoint_interval", answer)

# %%
ask("parallelism.lost_share")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * ((2 * 30 / 10_800) ** 0.5 + 300 / 10_800)
# END SOLUTION
check("parallelism.lost_share", answer)

# %% [markdown]
# ## Design

# %%
ask("parallelism.what_first")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
plan = Plan(data=4, tensor=8, pipeline=16, micro_batches=16, recompute="selective")
answer = step(decoder("gpt3_175b"), 2048, plan, machine("a100_80gb", "infiniband_hdr")).largest_loss
# END SOLUTION
check("parallelism.what_first", answer)

# %%
ask("parallelism.step_span")


# %%
def step_span(p, m, forward, backward):
    """Seconds of a GPipe step."""
    # BEGIN SOLUTION
    # STUB: ...
    return (m + p - 1) * (forward + backward)
    # END SOLUTION


check("parallelism.step_span", step_span)

# %% [markdown]
# ## Judge these claims
#
# Count the bytes that a GPU sends, for each micro-batch.

# %%
ask("parallelism.claim_traffic_hides")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "tokens"
# END SOLUTION
check("parallelism.claim_traffic_hides", answer)

# %%
ask("parallelism.claim_half_more")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "more"
# END SOLUTION
check("parallelism.claim_half_more", answer)
