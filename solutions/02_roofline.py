# %% [markdown]
# # Exercises 2: the roofline
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if not, what may have
# happened. A plain number is read in the unit that the question asks for; a quantity `Q(value, "GB/s")` brings its own.
# Chapter 2 has what you need, and you may use `lightspeed.roofline`.

# %%
import math

from lightspeed.catalog import accelerator
from lightspeed_course import ask, check
from lightspeed.roofline import *
from lightspeed.units import Q

# %% [markdown]
# ## The two clocks

# %%
ask("roofline.ridge")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # FLOP/byte
a100 = accelerator("a100_80gb")
answer = ridge_point(a100.bf16, a100.hbm_bandwidth)
# END SOLUTION
check("roofline.ridge", answer)

# %%
ask("roofline.dot_intensity")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # FLOP/byte
answer = 2 / (2 + 2)
# END SOLUTION
check("roofline.dot_intensity", answer)

# %%
ask("roofline.relu_share")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * elementwise_intensity() / ridge_point(a100.bf16, a100.hbm_bandwidth)
# END SOLUTION
check("roofline.relu_share", answer)

# %%
ask("roofline.gemm_intensity")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # FLOP/byte
answer = 4096 / 3
# END SOLUTION
check("roofline.gemm_intensity", answer)

# %% [markdown]
# ## A function

# %%
ask("roofline.attainable")


# %%
def roof(intensity, peak, bandwidth):
    """The height of the roof, in FLOP/s."""
    # BEGIN SOLUTION
    # STUB: ...
    return min(peak, intensity * bandwidth)
    # END SOLUTION


check("roofline.attainable", roof)

# %%
ask("roofline.what_shortens_it")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "bandwidth"
# END SOLUTION
check("roofline.what_shortens_it", answer)

# %%
ask("roofline.profiler_roofs")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "bytes"
# END SOLUTION
check("roofline.profiler_roofs", answer)

# %% [markdown]
# ## The worked problems

# %%
ask("roofline.int8_bytes")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # (read, written), bytes
answer = (64 * 4096 + 4096 * 16384, 64 * 16384)
# END SOLUTION
check("roofline.int8_bytes", answer)

# %%
ask("roofline.int8_ops")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # OP
answer = 2 * 64 * 4096 * 16384
# END SOLUTION
check("roofline.int8_ops", answer)

# %%
ask("roofline.int8_critical_batch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
v5e = accelerator("tpu_v5e")
answer = ridge_point(v5e.int8, v5e.hbm_bandwidth) / 2
# END SOLUTION
check("roofline.int8_critical_batch", answer)

# %%
ask("roofline.int8_bounds")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # (lower, upper), microseconds
t = time_bounds(2 * 64 * 4096 * 16384, 64 * 4096 + 4096 * 16384 + 64 * 16384, v5e.int8, v5e.hbm_bandwidth)
answer = (Q(t.lower, "s"), Q(t.upper, "s"))
# END SOLUTION
check("roofline.int8_bounds", answer)

# %%
ask("roofline.weight_only_batch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
answer = ridge_point(v5e.bf16, v5e.hbm_bandwidth) / 2
# END SOLUTION
check("roofline.weight_only_batch", answer)

# %%
ask("roofline.exact_critical_batch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
answer = critical_batch_exact(1024, 1024, ridge_point(v5e.bf16, v5e.hbm_bandwidth), weight_bytes=1)
# END SOLUTION
check("roofline.exact_critical_batch", answer)

# %%
ask("roofline.matrix_per_row")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # FLOP/byte
answer = matmul_flops(256, 4096, 4096) / batched_matmul_bytes(256, 4096, 4096, 1, 1, 1)
# END SOLUTION
check("roofline.matrix_per_row", answer)

# %%
ask("roofline.h100_critical_batch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
h100 = accelerator("h100_sxm")
answer = h100.bf16_sparse / 2 / h100.hbm_bandwidth
# END SOLUTION
check("roofline.h100_critical_batch", answer)

# %% [markdown]
# ## Beyond one matmul from one memory

# %%
ask("roofline.critical_depth")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # elements
answer = 2 * v5e.bf16 / 45e9
# END SOLUTION
check("roofline.critical_depth", answer)

# %%
ask("roofline.decode_attention")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # FLOP/byte
answer = attention_intensity(1, 8192, 8)
# END SOLUTION
check("roofline.decode_attention", answer)

# %%
ask("roofline.tile_side")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # elements
answer = 2 * ridge_point(a100.bf16, a100.hbm_bandwidth)
# END SOLUTION
check("roofline.tile_side", answer)

# %% [markdown]
# ## Design: a latency budget

# %%
ask("roofline.budget_precision")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "int8"
# END SOLUTION
check("roofline.budget_precision", answer)

# %%
ask("roofline.budget_batch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
answer = math.floor(20e-3 * v5e.bf16 / (2 * 13e9))
# END SOLUTION
check("roofline.budget_batch", answer)

# %%
ask("roofline.critical_batch_function")


# %%
def turning_batch(D, F, ridge, weight_bytes, activation_bytes):
    """The batch at which a matmul reaches the ridge, or infinity."""
    # BEGIN SOLUTION
    # STUB: ...
    gained = 2 * D * F - ridge * (D + F) * activation_bytes
    return ridge * D * F * weight_bytes / gained if gained > 0 else math.inf
    # END SOLUTION


check("roofline.critical_batch_function", turning_batch)

# %% [markdown]
# ## Judge these claims
#
# Put each kernel on its roof first.

# %%
ask("roofline.claim_upgrade")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "memory"
# END SOLUTION
check("roofline.claim_upgrade", answer)

# %%
ask("roofline.claim_more_users")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "ridge"
# END SOLUTION
check("roofline.claim_more_users", answer)
