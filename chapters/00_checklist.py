# %% [markdown]
# # Before a large run
#
# A job on a thousand GPUs finds the faults that one on eight had hidden: those of the network, which
# a single node has no need of, and the rare ones, which eight GPUs hardly ever meet. An afternoon with
# this list is cheaper than the first night without it. Where the course has a law that makes an item
# a number, it stands there by name.
#
# ## The machine
#
# | check | how |
# |---|---|
# | topology of each node | `nvidia-smi topo -m`: the adapter of each GPU at its own root |
# | NVLink and NVSwitch | `nvidia-smi nvlink --status`: all up, at their rate |
# | driver, CUDA, NCCL, PyTorch | printed by the job, the same on every node |
# | each GPU alone | one product of matrices on each: the slow one stands out |
# | heat | the clock after ten minutes of load, not at the start |
#
# ## The plan
#
# | check | how |
# |---|---|
# | does it fit? | `training_memory`, with room to spare |
# | tensor groups | inside a node, or inside what NVLink joins |
# | pipeline stages | neighbours close together; `bubble_over_total` |
# | batch and accumulation | what a step is, in tokens, and in how many pieces it comes |
# | what can be hidden | `data_parallel_tokens`: the tokens that a gather needs to hide behind |
# | a step in seconds | written down before the run, with what it is made of |
#
# ## The network
#
# | check | how |
# |---|---|
# | rate of each adapter | `ibstat`, `ethtool`: as bought, on each port |
# | between two hosts | `ib_write_bw` reaches `wire_share` of the line |
# | the right adapter | `NCCL_DEBUG=INFO`, `NCCL_IB_HCA`, `NCCL_SOCKET_IFNAME`; no fall back to sockets |
# | MTU | the same from end to end |
# | PFC, ECN | one class from end to end: `pfc_threshold`, `ecn_threshold`; the watchdog is on |
# | rails | GPU i on leaf i in every node: compare what the neighbours say |
# | collectives at the job's sizes | nccl-tests on two nodes, on eight, on the whole; `lightspeed nccl report` |
# | counters | drops and marks of ports and switches, before and after |
#
# ## The run
#
# | check | how |
# |---|---|
# | MFU in the first hour | against the plan's, not against the peak |
# | spread of the step | a quantile over an hour, and the last rank in front of the first collective |
# | overlap | a profile of one step: what is exposed? |
# | checkpoints | `young_interval`; one written, and one restored, before you need it |
# | a bad node | how you'd find it: by halves, with `pairs` of nodes |

# %% tags=["holds"]
from lightspeed.networks import any_hit

assert all(any_hit(p, 8) < 0.01 and any_hit(p, 1000) > 50 * any_hit(p, 8) for p in (1e-3, 1e-4)), (
    "the rare ones, which eight GPUs hardly ever meet"
)
