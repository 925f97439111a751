# %% [markdown]
# # Exercises 3: Amdahl and Gustafson
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if not, what may have
# happened. Chapter 3 has what you need, and you may use the functions of
# `lightspeed.scaling` and `lightspeed.training`. Name the shares that you give them: `serial=` or
# `parallel=`.

# %%
import math

import networkx as nx
import numpy as np

from lightspeed.catalog import accelerator
from lightspeed_course import ask, check
from lightspeed_models.fits import fit_usl
from lightspeed_models.profiles import scaling_runs
from lightspeed.scaling import *
from lightspeed.training import *

# %% [markdown]
# ## A fixed job

# %%
ask("scaling.limit")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a plain number
answer = amdahl_speedup(math.inf, serial=0.05)
# END SOLUTION
check("scaling.limit", answer)

# %%
ask("scaling.half_wasted")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a plain number
answer = 1 + 1 / 0.01
# END SOLUTION
check("scaling.half_wasted", answer)

# %%
ask("scaling.write_amdahl")


# %%
def amdahl(n, serial):
    """Speedup of a fixed job on n processors."""
    # BEGIN SOLUTION
    # STUB: ...
    return 1 / (serial + (1 - serial) / n)
    # END SOLUTION


check("scaling.write_amdahl", amdahl)

# %%
ask("scaling.price")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a plain number
answer = 64 / amdahl_speedup(64, serial=0.05)
# END SOLUTION
check("scaling.price", answer)

# %%
ask("scaling.deadline")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a whole number
wanted = 100 / 9
answer = math.ceil((1 - 0.05) / (1 / wanted - 0.05))
# END SOLUTION
check("scaling.deadline", answer)

# %%
ask("scaling.fast_or_many")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "fast" if amdahl_speedup(64, parallel=0.6) < 3 else "many"
# END SOLUTION
check("scaling.fast_or_many", answer)

# %% [markdown]
# ## A profile to act on

# %%
ask("scaling.profile")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a plain number
answer = profile_speedup({"setup": 0.12, "compute": 0.8, "finish": 0.08}, {"compute": 50})
# END SOLUTION
check("scaling.profile", answer)

# %%
ask("scaling.where_to_work")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "backward"
# END SOLUTION
check("scaling.where_to_work", answer)

# %%
ask("scaling.accumulation")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * 40 / (40 + 4 * 80)
# END SOLUTION
check("scaling.accumulation", answer)

# %%
ask("scaling.critical_path")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
graph = nx.DiGraph([("load", "left"), ("load", "right"), ("left", "reduce"), ("right", "reduce")])
nx.set_node_attributes(graph, {"load": 10, "left": 60, "right": 30, "reduce": 20}, "time")
answer = work_span(graph).span
# END SOLUTION
check("scaling.critical_path", answer)

# %% [markdown]
# ## A job that grows

# %%
ask("scaling.grown_job")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a plain number
answer = gustafson_speedup(1024, serial=0.05)
# END SOLUTION
check("scaling.grown_job", answer)

# %%
ask("scaling.affordable_share")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (1 / 0.8 - 1) / (1024 - 1)
# END SOLUTION
check("scaling.affordable_share", answer)

# %% [markdown]
# ## From measurements

# %%
ask("scaling.write_karp_flatt")


# %%
def serial_share(speedup, n):
    """The serial share that explains a speedup on n processors; negative if it is superlinear."""
    # BEGIN SOLUTION
    # STUB: ...
    return (1 / speedup - 1 / n) / (1 - 1 / n)
    # END SOLUTION


check("scaling.write_karp_flatt", serial_share)

# %%
ask("scaling.karp_flatt")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * serial_share(5, 8)
# END SOLUTION
check("scaling.karp_flatt", answer)

# %%
ask("scaling.diagnose")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
shares = serial_share(3.5, 4), serial_share(8.0, 16)
answer = "overhead" if shares[1] > 1.1 * shares[0] else "serial"
# END SOLUTION
check("scaling.diagnose", answer)

# %%
ask("scaling.write_usl")


# %%
def usl(n, serial, kappa):
    """Speedup with a serial share and a cost for each further processor."""
    # BEGIN SOLUTION
    # STUB: ...
    return n / (1 + serial * (n - 1) + kappa * n * (n - 1))
    # END SOLUTION


check("scaling.write_usl", usl)

# %%
ask("scaling.peak")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # a plain number
answer = usl_peak(serial=0.1, kappa=0.001)
# END SOLUTION
check("scaling.peak", answer)

# %% [markdown]
# ### A fit of your own
#
# Here are the threads and the throughput of the database of chapter 3. Use the points up to a dozen
# threads, as if you had not measured further, and fit again. Where is the peak now, and how sure is
# the fit of it? Your answer is not checked here: look at the interval, and decide how far you would
# trust a fit beyond its last point.

# %%
run = scaling_runs()["mysql_cisco"]
threads, rate = np.array(run["n"], float), np.array(run["values"], float)
few = threads <= 12

# %%
# BEGIN SOLUTION
# STUB: fit = ...  # fit_usl(...); then look at fit.peak and fit.peak_interval
fit = fit_usl(threads[few], rate[few] / rate[0])
print(f"peak {fit.peak:.0f}, from {fit.peak_interval[0]:.0f} to {fit.peak_interval[1]:.0f}")
# END SOLUTION

# %% [markdown] tags=["solution"]
# From a dozen threads the peak comes out at {{fit.peak:.0f}}, with an interval from
# {{fit.peak_interval[0]:.0f}} to {{fit.peak_interval[1]:.0f}}: it has no upper end, because κ may
# still be zero. All {{threads.size}} points together say
# {{fit_usl(threads, rate / rate[0]).peak:.0f}}. The interval is honest about the scatter of the
# points that the fit saw, not about what comes after them.

# %% tags=["holds"]
assert fit.kappa_interval[0] <= 0 and math.isinf(fit.peak_interval[1]), "has no upper end"

# %% [markdown]
# ## Training

# %%
ask("training.flops_per_parameter")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # FLOP
answer = training_flops(1, 1)
# END SOLUTION
check("training.flops_per_parameter", answer)

# %%
ask("training.days")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # days
h100 = accelerator("h100_sxm")
answer = training_time(training_flops(70e9, 15e12), 4096, h100.bf16, 0.4) / 86400
# END SOLUTION
check("training.days", answer)

# %%
ask("training.mfu")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
a100 = accelerator("a100_80gb")
answer = 100 * mfu(65e9, 380, 1, 1, a100.bf16)
# END SOLUTION
check("training.mfu", answer)

# %%
ask("training.mfu_from_hfu")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 52 * 6 / 8
# END SOLUTION
check("training.mfu_from_hfu", answer)

# %% [markdown]
# ## Judge these claims
#
# Ask of each share and each speedup what it is a share of, and a speedup over.

# %%
ask("scaling.claim_near_linear")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "fails"
# END SOLUTION
check("scaling.claim_near_linear", answer)

# %%
ask("scaling.claim_limit")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "baseline"
# END SOLUTION
check("scaling.claim_limit", answer)
