# %% [markdown]
# # Exercises 8: The network
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if
# not, what may have happened. A plain number is read in the unit that the question asks for; a
# quantity `Q(value, "MB")` brings its own. Below each heading stands where it is taught, in the lesson or
# on its proof page, and you may use the laws of `lightspeed.networks` and `lightspeed.fabrics`.

# %%
from lightspeed.collectives import hierarchical_time
from lightspeed.fabrics import *
from lightspeed.networks import *
from lightspeed.units import Q
from lightspeed_course import ask, check

# %% [markdown]
# ## A line that loses packets
#
# The lesson's [What does one lost packet cost?](../chapters/08_network.ipynb#What-does-one-lost-packet-cost?)

# %%
ask("network.window")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # packets
answer = window_packets(400e9 / 8, 10e-6, 4096)
# END SOLUTION
check("network.window", answer)

# %%
ask("network.goodput")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * go_back_n(0.01, 120)
# END SOLUTION
check("network.goodput", answer)

# %%
ask("network.cable")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (400 + 100) / (400 + 100 / go_back_n(0.005, 300))
# END SOLUTION
check("network.cable", answer)

# %%
ask("network.loss_budget")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * 0.05 / (0.05 + 0.95 * 125)
# END SOLUTION
check("network.loss_budget", answer)

# %%
ask("network.go_back_function")


# %%
def goodput(loss, window):
    """Share of the line that is goodput."""
    # BEGIN SOLUTION
    # STUB: ...
    return (1 - loss) / (1 - loss + loss * window)
    # END SOLUTION


check("network.go_back_function", goodput)

# %% [markdown]
# ## Many senders, one port
#
# The lesson's [What if many send to one?](../chapters/08_network.ipynb#What-if-many-send-to-one?) and, for headroom and the point
# from which a queue pauses, [Why not pause and be done?](../chapters/08_network.ipynb#Why-not-pause-and-be-done?). For the rule that
# raises a rate on a timer, the proof's [How DCQCN settles](../chapters/08_network_proof.ipynb#How-DCQCN-settles).

# %%
ask("network.queue_growth")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = 5 * 25 - 25
# END SOLUTION
check("network.queue_growth", answer)

# %%
ask("network.incast_queue")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # MB
answer = (8 - 1) * 1
# END SOLUTION
check("network.incast_queue", answer)

# %%
ask("network.incast_senders")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # senders
answer = incast_senders(16e6, 1e6)
# END SOLUTION
check("network.incast_senders", answer)

# %%
ask("network.headroom")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # kB
answer = Q(pfc_headroom(50e9, 1e-6, 4096), "byte")
# END SOLUTION
check("network.headroom", answer)

# %%
ask("network.pause_threshold")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # kB
answer = 12e3 / (32 * 8) - 20
# END SOLUTION
check("network.pause_threshold", answer)

# %%
ask("network.flows_in_step")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # flows
answer = 40e9 / 8 * 100e-6 / 1000
# END SOLUTION
check("network.flows_in_step", answer)

# %% [markdown]
# ## One slow among many
#
# The lesson's [Many wait for the last](../chapters/08_network.ipynb#Many-wait-for-the-last)

# %%
ask("network.both_in_time")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (1 - 0.1) ** 2
# END SOLUTION
check("network.both_in_time", answer)

# %%
ask("network.any_hit")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * any_hit(0.0005, 1024)
# END SOLUTION
check("network.any_hit", answer)

# %%
ask("network.quantile")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * 0.5 ** (1 / 64)
# END SOLUTION
check("network.quantile", answer)

# %% [markdown]
# ## Fabrics
#
# The lesson's [Where should a job sit?](../chapters/08_network.ipynb#Where-should-a-job-sit?), with what it says of size and of
# hashes below. For larger domains and switches that add, the proof's
# [Larger domains, and switches that add](../chapters/08_network_proof.ipynb#Larger-domains,-and-switches-that-add); for the price of a
# fabric, its [Design](../chapters/08_network_proof.ipynb#Design:-a-fabric-for-two-thousand-GPUs).

# %%
ask("network.ecmp_pair")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 / 8
# END SOLUTION
check("network.ecmp_pair", answer)

# %%
ask("network.ecmp_none")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (8 * 7 * 6 * 5) / 8**4
# END SOLUTION
check("network.ecmp_none", answer)

# %%
ask("network.ecmp_idle")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (15 / 16) ** 16
# END SOLUTION
check("network.ecmp_idle", answer)

# %%
ask("network.rail_mates")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GPUs
answer = 16 - 1
# END SOLUTION
check("network.rail_mates", answer)

# %%
ask("network.rail_spine")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (32 - 1) * (8 - 1) / (32 * 8 - 1)
# END SOLUTION
check("network.rail_spine", answer)

# %%
ask("network.across_rate")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB/s
answer = 50 / 4 / 0.75
# END SOLUTION
check("network.across_rate", answer)

# %%
ask("network.fat_tree")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # links
answer = fat_tree_hosts(64, 2)
# END SOLUTION
check("network.fat_tree", answer)

# %%
ask("network.budget")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # the key of an option
costs = {}
for ratio in (1, 2, 3):
    parts = leaf_spine(1024, 64, ratio)
    costs[f"r{ratio}"] = (parts.leaves + parts.spines) * 20_000 + parts.cables * 1000
answer = next((name for name, cost in costs.items() if cost <= 3_000_000), "none")
# END SOLUTION
check("network.budget", answer)

# %%
ask("network.domain")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # times
times = {d: hierarchical_time(1e9, d, 576 // d, 450e9, 50e9).across for d in (8, 72)}
answer = times[8] / times[72]
# END SOLUTION
check("network.domain", answer)

# %%
ask("network.sharp")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # ms
answer = Q(sharp_time(1e9, 8, 32, 450e9, 50e9).across, "s")
# END SOLUTION
check("network.sharp", answer)

# %%
ask("network.which_counter")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # the key of an option
answer = "gap"
# END SOLUTION
check("network.which_counter", answer)

# %%
ask("network.first_counter")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # the key of an option
answer = "loss"
# END SOLUTION
check("network.first_counter", answer)
