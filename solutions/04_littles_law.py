# %% [markdown]
# # Exercises 4: Little's law
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if not, what may have
# happened. A plain number is read in the unit that the question asks for; a
# quantity `Q(value, "GB")` brings its own. Chapter 4 has what you need, and you may use the
# functions of `lightspeed.queueing` and `lightspeed.serving`.

# %%
import math

from lightspeed.catalog import accelerator, find
from lightspeed_course import ask, check
from lightspeed.queueing import *
from lightspeed.scaling import gustafson_speedup
from lightspeed.serving import *
from lightspeed_models.llm import decoder
from lightspeed.units import Q

# %% [markdown]
# ## The law

# %%
ask("queueing.in_flight")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # requests
answer = concurrency(1000, 0.05)
# END SOLUTION
check("queueing.in_flight", answer)

# %%
ask("queueing.how_long")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # s
answer = latency(200, 40)
# END SOLUTION
check("queueing.how_long", answer)

# %%
ask("queueing.checkpoint_memory")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = concurrency(Q(500, "request/s"), Q(100, "ms")) * Q(2, "GB/request")
# END SOLUTION
check("queueing.checkpoint_memory", answer)

# %%
ask("queueing.capped_rate")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # requests per second
answer = throughput(24 // 1, 0.05)
# END SOLUTION
check("queueing.capped_rate", answer)

# %%
ask("serving.capped_rate_with_weights")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # requests per second
llama = find("llama3_8b")
answer = batch_that_fits(accelerator("a100_80gb").hbm_capacity, 2 * llama.parameters, 1e9) / 4
# END SOLUTION
check("serving.capped_rate_with_weights", answer)

# %%
ask("serving.capacity_function")


# %%
def most_requests(memory, weight_bytes, kv_bytes, latency):
    """Requests per second that memory allows."""
    # BEGIN SOLUTION
    # STUB: ...
    return max(0, (memory - weight_bytes) // kv_bytes) / latency
    # END SOLUTION


check("serving.capacity_function", most_requests)

# %% [markdown]
# ## Waiting

# %%
ask("queueing.slowdown_at_ninety")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = 1 / (1 - 0.9)
# END SOLUTION
check("queueing.slowdown_at_ninety", answer)

# %%
ask("queueing.a_little_more_traffic")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = (1 - 0.8) / (1 - 0.8 * 1.15)
# END SOLUTION
check("queueing.a_little_more_traffic", answer)

# %%
ask("queueing.tail_over_mean")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = math.log(100)
# END SOLUTION
check("queueing.tail_over_mean", answer)

# %%
ask("queueing.mm1_function")


# %%
def time_in_system(arrival_rate, service_rate):
    """The mean time in an M/M/1 queue, in seconds; infinity without a steady state."""
    # BEGIN SOLUTION
    # STUB: ...
    return 1 / (service_rate - arrival_rate) if arrival_rate < service_rate else math.inf
    # END SOLUTION


check("queueing.mm1_function", time_in_system)

# %%
ask("queueing.most_for_a_budget")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # requests per second
answer = 1 / 0.02 - 1 / 0.1
# END SOLUTION
check("queueing.most_for_a_budget", answer)

# %%
ask("queueing.mixed_lengths")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # s
answer = mg1(8, 1 / 0.1, service_variance=0.2**2).Wq
# END SOLUTION
check("queueing.mixed_lengths", answer)

# %%
ask("queueing.where_to_queue")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "fast"
# END SOLUTION
check("queueing.where_to_queue", answer)

# %%
ask("queueing.erlang_c_function")


# %%
def share_that_waits(load, servers):
    """Erlang C, for any number of servers."""
    # BEGIN SOLUTION
    # STUB: ...
    lost = 1.0
    for k in range(1, int(servers) + 1):
        lost = load * lost / (k + load * lost)
    rho = load / servers
    return lost / (1 - rho * (1 - lost))
    # END SOLUTION


check("queueing.erlang_c_function", share_that_waits)

# %%
ask("queueing.slots_for_a_promise")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # slots
answer = next(c for c in range(101, 200) if share_that_waits(50 * 2, c) <= 0.05)
# END SOLUTION
check("queueing.slots_for_a_promise", answer)

# %% [markdown]
# ## Overload

# %%
ask("queueing.least_to_shed")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (1 - 100 / 120)
# END SOLUTION
check("queueing.least_to_shed", answer)

# %%
ask("queueing.after_the_burst")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # minutes
answer = (120 - 100) * 5 / (100 - 90)
# END SOLUTION
check("queueing.after_the_burst", answer)

# %% [markdown]
# ## Serving a language model

# %%
ask("serving.slots_in_memory")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # requests
model, chip = decoder("llama3_70b"), accelerator("h100_sxm")
cache = kv_cache_bytes(model.depth, model.attention.kv_heads, model.attention.head_width, tokens=4096)
answer = batch_that_fits(8 * chip.hbm_capacity, 2 * model.parameters, cache)
# END SOLUTION
check("serving.slots_in_memory", answer)

# %%
ask("serving.batch_within_budget")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # requests
read_weights, read_cache = (
    size / (8 * chip.hbm_bandwidth) for size in (2 * model.parameters, cache)
)
answer = math.floor((12e-3 - read_weights) / read_cache)
# END SOLUTION
check("serving.batch_within_budget", answer)

# %%
ask("serving.answers_per_second")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # requests per second
answer = 96 / (400 * 0.02)
# END SOLUTION
check("serving.answers_per_second", answer)

# %%
ask("serving.knee")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # requests
answer = 2 * model.parameters / cache
# END SOLUTION
check("serving.knee", answer)

# %%
ask("serving.what_limits_it")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "budget"
# END SOLUTION
check("serving.what_limits_it", answer)

# %% [markdown]
# ## What a step reads, and what a batch of experts does
#
# Of lesson 4.2.

# %%
ask("serving.latent_cache")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # kB
answer = 61 * (512 + 64) * 2 / 1000
# END SOLUTION
check("serving.latent_cache", answer)

# %%
ask("serving.state_outgrown")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
answer = 64 * 128 * 128 * 4 / (2 * 2 * 256 * 2)
# END SOLUTION
check("serving.state_outgrown", answer)

# %%
ask("serving.index_pays")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
answer = 576 * 2 * 2048 / (576 * 2 - (128 + 4))
# END SOLUTION
check("serving.index_pays", answer)

# %%
ask("serving.rows_of_an_expert")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
answer = 64 * 8 / (256 * (1 - (1 - 8 / 256) ** 64))
# END SOLUTION
check("serving.rows_of_an_expert", answer)

# %% [markdown]
# ## From chapters 2 and 3

# %%
ask("queueing.checkpoint_hardware")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # (memory-bound, compute-bound)
answer = (1, 2)
# END SOLUTION
check("queueing.checkpoint_hardware", answer)

# %%
ask("queueing.checkpoint_scaling")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # (Amdahl's limit, Gustafson)
answer = (1 / 0.1, gustafson_speedup(256, serial=0.1))
# END SOLUTION
check("queueing.checkpoint_scaling", answer)

# %% [markdown]
# ## Judge these claims
#
# Work out what is free first: a share of the server, or slots.

# %%
ask("queueing.claim_a_tenth")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "steep"
# END SOLUTION
check("queueing.claim_a_tenth", answer)

# %%
ask("queueing.claim_spare_slots")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "small"
# END SOLUTION
check("queueing.claim_spare_slots", answer)
