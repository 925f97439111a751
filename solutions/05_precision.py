# %% [markdown]
# # Exercises 5: precision
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if not, what may have
# happened. A plain number is read in the unit that the question asks for; a
# quantity `Q(value, "GB")` brings its own. Chapter 5 has all that you need, and
# `lightspeed.precision` and `lightspeed.quantization` are at your disposal.

# %%
import math

import numpy as np

from lightspeed.catalog import accelerator, energy
from lightspeed.energy import operation_energy
from lightspeed_course import ask, check
from lightspeed.precision import *
from lightspeed.quantization import *
from lightspeed.roofline import *
from lightspeed.units import Q

# %% [markdown]
# ## What a format can hold
#
# The first three are worth knowing by heart.

# %%
ask("precision.largest")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = FORMATS["fp8_e4m3"].max
# END SOLUTION
check("precision.largest", answer)

# %%
ask("precision.smallest")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = 2.0 ** (1 - 15 - 10)
# END SOLUTION
check("precision.smallest", answer)

# %%
ask("precision.sum_of_ones")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = 2 ** (7 + 1)
# END SOLUTION
check("precision.sum_of_ones", answer)

# %%
ask("precision.decode")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = (1 + 0b101 / 2**3) * 2.0 ** (0b1001 - 7)
# END SOLUTION
check("precision.decode", answer)

# %%
ask("precision.spacing")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = 2.0 ** (math.floor(math.log2(1000)) - 7)
# END SOLUTION
check("precision.spacing", answer)

# %% [markdown]
# ## Two functions
#
# A decoder and a rounding function, of the kind that emulators of narrow formats are made of.

# %%
ask("precision.decode_fp16")


# %%
def decode(sign, exponent, mantissa):
    """The value of an fp16 code."""
    # BEGIN SOLUTION
    # STUB: ...
    significand = mantissa / 2**10 + (exponent > 0)
    return (-1) ** sign * significand * 2.0 ** (max(exponent, 1) - 15)
    # END SOLUTION


check("precision.decode_fp16", decode)

# %%
ask("precision.round_to_bf16")


# %%
def round_to_bf16(x):
    """The nearest bf16 number, ties to the even one."""
    # BEGIN SOLUTION
    # STUB: ...
    step = 2.0 ** (math.frexp(x)[1] - 8)
    return round(x / step) * step
    # END SOLUTION




check("precision.round_to_bf16", round_to_bf16)

# %% [markdown]
# ## Small gradients

# %%
ask("precision.loss_scale")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = 2 ** math.ceil(math.log2(FORMATS["fp16"].smallest_normal / 1e-8))
# END SOLUTION
check("precision.loss_scale", answer)

# %%
ask("precision.scaler_log")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "leave"
# END SOLUTION
check("precision.scaler_log", answer)

# %%
ask("precision.tensor_scale")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
e4m3 = FORMATS["fp8_e4m3"]
answer = 3e-6 / e4m3.max * e4m3.smallest_subnormal / 2
# END SOLUTION
check("precision.tensor_scale", answer)

# %% [markdown]
# ## Integers with a scale

# %%
ask("quantization.symmetric_scale")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = 6.0 / (2**7 - 1)
# END SOLUTION
check("quantization.symmetric_scale", answer)

# %%
ask("quantization.zero_point")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = int(quantize_asymmetric(np.array([-1.0, 3.0])).zero_point)
# END SOLUTION
check("quantization.zero_point", answer)

# %%
ask("quantization.quantize")


# %%
def quantize(x, amax, bits):
    """The symmetric code of x."""
    # BEGIN SOLUTION
    # STUB: ...
    top = 2 ** (bits - 1) - 1
    return max(-top, min(top, round(x * top / amax)))
    # END SOLUTION


check("quantization.quantize", quantize)

# %% [markdown]
# ## Noise

# %%
ask("quantization.sqnr")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # decibels
answer = 10 * math.log10(3 / 2 * 4**8)
# END SOLUTION
check("quantization.sqnr", answer)

# %%
ask("quantization.outlier")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # bits
answer = math.log2(20)
# END SOLUTION
check("quantization.outlier", answer)

# %% [markdown]
# ## Bytes

# %%
ask("quantization.bits_per_weight")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # bits
answer = bits_per_weight(4, 8, 32)
# END SOLUTION
check("quantization.bits_per_weight", answer)

# %%
ask("quantization.model_bytes")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = Q(weight_bytes(70e9, BLOCK_FORMATS["mxfp4"].bits_per_weight), "byte")
# END SOLUTION
check("quantization.model_bytes", answer)

# %% [markdown]
# ## Time and energy

# %%
ask("quantization.int8_batch")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # tokens
h200 = accelerator("h200_sxm")
answer = critical_batch(ridge_point(h200.bf16, h200.hbm_bandwidth), weight_bytes=1)
# END SOLUTION
check("quantization.int8_batch", answer)

# %%
ask("quantization.weight_only_speedup")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
bf16_time, int8_time = (
    transfer_time(matmul_bytes(1, 8192, 8192, weight_bytes=w), h200.hbm_bandwidth, latency=8e-6)
    for w in (2, 1)
)
answer = bf16_time / int8_time
# END SOLUTION
check("quantization.weight_only_speedup", answer)

# %%
ask("quantization.which_int8")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "weights"
# END SOLUTION
check("quantization.which_int8", answer)

# %%
ask("quantization.weights_or_cache")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "caches"
# END SOLUTION
check("quantization.weights_or_cache", answer)

# %%
ask("quantization.questions_needed")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # questions
answer = questions_to_see(0.02, 0.06)
# END SOLUTION
check("quantization.questions_needed", answer)

# %%
ask("quantization.fewer_bits_moves")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
answer = 4 ** (6.6 - 4.1)
# END SOLUTION
check("quantization.fewer_bits_moves", answer)

# %%
ask("quantization.int8_energy")

# %%
# BEGIN SOLUTION
# STUB: answer = ...
table = energy("horowitz_45nm")
fp32 = operation_energy(64, 4, table.fp32_fma, table.dram_per_byte)
int8 = operation_energy(64, 1, table.int8_fma, table.dram_per_byte)
answer = fp32 / int8
# END SOLUTION
check("quantization.int8_energy", answer)

# %% [markdown]
# ## What to keep
#
# The cards come back until you know them.

# %%
from lightspeed_course import cards

cards("precision")

# %%
cards("quantization")

# %% [markdown]
# ## Judge these claims
#
# Look at the step of the format, and at the two clocks.

# %%
ask("precision.claim_exact_count")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "stalls"
# END SOLUTION
check("precision.claim_exact_count", answer)

# %%
ask("precision.claim_int8_arithmetic")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "memory"
# END SOLUTION
check("precision.claim_int8_arithmetic", answer)

# %%
ask("precision.claim_narrow_weights")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "lost"
# END SOLUTION
check("precision.claim_narrow_weights", answer)
