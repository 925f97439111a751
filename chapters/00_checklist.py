# %% [markdown]
# # Before a large run
#
# A job on a thousand GPUs finds the faults that one on eight had hidden: those of the network, which
# a single node has no need of, and the rare ones, which eight GPUs hardly ever meet. An afternoon with
# this list is cheaper than the first night without it. Each row has a command (words in capitals
# are yours to fill in), and what to read in
# what it prints. Those that begin with `lightspeed` are the course's own tools, which answer on your
# machine; the others come with the driver, with `infiniband-diags`, `perftest`, nccl-tests and DCGM.

# %% tags=["holds"]
from lightspeed.networks import any_hit

assert all(any_hit(p, 8) < 0.01 and any_hit(p, 1000) > 50 * any_hit(p, 8) for p in (1e-3, 1e-4)), (
    "the rare ones, which eight GPUs hardly ever meet"
)

# %% tags=["setup"]
from lightspeed.catalog import find

xid, dcgm = find("xid"), find("dcgm")

# %% [markdown]
# ## First looks
#
# Somebody says that a node is bad. These take a minute, and the job need not stop for most of them.
#
# | look at | command | reading |
# |---|---|---|
# | **Xid** errors | `dmesg -T \| grep -i xid` | any of the last hour. {{xid.off_the_bus:.0f}}: the GPU fell off the bus, {{xid.nvlink:.0f}}: NVLink, {{xid.double_bit:.0f}}: double-bit **ECC** error; take the node out |
# | **ECC** errors | `nvidia-smi -q -d ECC` | uncorrectable errors (Xid {{xid.contained:.0f}} if contained, {{xid.uncontained:.0f}} if not) end a job; correctable ones that rise announce them |
# | **row remapping** | `nvidia-smi -q -d ROW_REMAPPER` | *pending: yes* (Xid {{xid.remap:.0f}}) asks for a reset, *failure: yes* (Xid {{xid.remap_failed:.0f}}) for another GPU |
# | clocks | `nvidia-smi -q -d CLOCK,PERFORMANCE` | an active slowdown is **thermal throttling** or the **power limit** (`power cap`): this GPU holds up all the others |
# | NVLink and its errors | `nvidia-smi nvlink --status`, then `nvidia-smi nvlink -e` | all links up at their rate; CRC and replay errors that stand still |
# | **link error counters** | `ibqueryerrors`, or `ethtool -S PORT \| grep -iE "err\|drop\|discard"` | read twice, a minute apart under load: symbol errors or drops that rise are a cable to change |
# | link flaps | `ibstat`, `dmesg -T \| grep -i "link down"` | a port that went down and came back, or runs at a lower rate than its neighbours |
# | **data loader** | `py-spy dump --pid PID`, or the profile's gaps | workers that wait for storage while GPUs idle: more workers, or faster files |
# | **storage** rate | `fio --name=read --rw=read --bs=BLOCK --size=SIZE --direct=1` | above what the data loader and a checkpoint's deadline need, on all nodes at once |
# | a GPU under load | `dcgmi diag -r 3` | {{dcgm.long / 60:.0f}} minutes on an idle node; a fail names the part. A **silent data corruption** shows only here, or in a sum computed twice |
#
# ## The machine
#
# | check | command | reading |
# |---|---|---|
# | topology of each node | `nvidia-smi topo -m` | the adapter of each GPU shows as `PIX` or `PXB`, never `SYS`: on its own **NUMA** node, so that **GPUDirect RDMA** works |
# | **NVSwitch** and the **NVLink domain** | `nvidia-smi nvlink --status`, `nvidia-smi -q \| grep -A3 Fabric` | state *completed*, and as many GPUs in a domain as were bought |
# | versions | `nvidia-smi --version`, `python -c "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.nccl.version())"` | the same on every node |
# | each GPU alone | `lightspeed measure gpu` | the slow one stands out: compare records with `lightspeed measure compare A B` |
# | heat | `nvidia-smi dmon -s pc` | the clock after ten minutes of load, not at the start |
# | processors | `lscpu \| grep NUMA`, `numactl --show` | a rank's processes sit on the socket of its GPU |
#
# ## The plan
#
# | check | command | reading |
# |---|---|---|
# | does it fit? | `lightspeed plan MODEL --cluster GPU:COUNT --batch TOKENS --explain "YOUR PLAN"` | memory part by part, and four fifths of the card as the line |
# | tensor groups | the same | tensor ways at most the GPUs that NVLink joins |
# | pipeline stages | `lightspeed law bubble_over_total` | the share that idles; neighbours close together |
# | batch and accumulation | the plan's first lines | a step in tokens (the **global batch**), and in how many micro-batches it comes |
# | sharding | `lightspeed law hybrid_sharded_bytes` | shards inside a pod (**HSDP**) if memory allows |
# | placement of experts | `lightspeed law alltoall_places` | a group of experts inside a node or a pod |
# | what can be hidden | `lightspeed law data_parallel_tokens` | the tokens that a gather needs to hide behind |
# | a step in seconds | the plan's answer with its range | written down before the run, with what it is made of |
#
# ## The network
#
# | check | command | reading |
# |---|---|---|
# | rate of each adapter | `ibstat`, `ethtool PORT` | the **line rate** as bought, on each port |
# | between two hosts | `ib_write_bw -d ADAPTER --report_gbits HOST` | `wire_share` of the line (`lightspeed law wire_share`) |
# | the right adapter | `NCCL_DEBUG=INFO` and a first step | `NET/IB` with the adapter of each GPU, and no `NET/Socket`; else set `NCCL_IB_HCA`, `NCCL_SOCKET_IFNAME` |
# | **MTU** | `ip link show`, `ibv_devinfo \| grep active_mtu` | the same from end to end |
# | PFC, ECN | `mlnx_qos -i PORT`, and the switch's | one class from end to end; thresholds as in `lightspeed law pfc_threshold` and `ecn_threshold`; the watchdog is on |
# | rails | `lldpcli show neighbors` | GPU i on leaf i in every node |
# | **cross-rail traffic** | counters of the uplinks while a ring runs | near none inside a pod |
# | collectives at the job's sizes | `all_reduce_perf -b MIN -e MAX -f 2 -g 1`, then `lightspeed nccl report LOG` | on two nodes, on eight, on the whole: normal, or what bounds it |
# | time of the **all-to-all** | `alltoall_perf -b MIN -e MAX -f 2 -g 1` | `lightspeed nccl report LOG`; once more with `NCCL_PXN_DISABLE=1` |
# | counters | `ethtool -S PORT` before and after | pauses, marks and drops of ports and of switches |
#
# ## The run
#
# | check | command | reading |
# |---|---|---|
# | MFU in the first hour | `lightspeed plan MODEL … --explain "YOUR PLAN" --measured TOKENS/s` | **tokens per second per GPU** against the plan's, not against the peak; leave out the **warm-up** |
# | spread of the step | the quantiles of the log over an hour | the last rank in front of the first collective is the **straggler** |
# | overlap | `lightspeed trace rank*.json` | what is exposed, and what to fix first |
# | checkpoints | `lightspeed law young_interval` | one written, and one restored, before you need it; **asynchronous checkpointing** shortens the stop |
# | a failure | pull one node out of a test run | the **restart time**, from the failure to the next step that counts, and whether a **hot spare** takes over |
# | **goodput of a run** | steps that count over the time since the start | also called *effective training time*; what is missing went into saves, restarts and work done twice |
# | a bad node | `sendrecv_perf -b MAX -e MAX -g 1` on pairs of nodes, then other pairs | the node that is slow with two partners |
#
# ## Serving
#
# | check | command | reading |
# |---|---|---|
# | what to expect | `lightspeed serve MODEL --gpu 8xH100 --ttft SECONDS --tpot SECONDS --in PROMPT --out ANSWER` | requests a second within the **SLO**, with their range, and the nearest measured rows |
# | a load test | `vllm bench serve --request-rate R --save-result`, then `lightspeed serve MODEL --gpu 8xH100 --check result.json` | an open loop; **TTFT**, **TPOT** and **end-to-end latency** as quantiles; normal, or what may be off |
# | the queue | `curl -s HOST/metrics \| grep num_requests` | requests that wait: at zero most of the time, or add a replica or **backpressure** |
# | the cache | the same, `kv_cache_usage_perc` and `num_preemptions` | near full with **preemption**: fewer at once, or a narrower cache |
# | **prefix cache hit rate** | the same, `prefix_cache_hits` over `prefix_cache_queries` | what you planned with; less after a change of the system prompt or of the router |
# | **cold start** | time from the start to the first answer | weights from local disk, graphs captured: what an autoscaler has to wait for |
# | **cost per token** | `lightspeed serve … --gpu-hour PRICE` | at the load that keeps the promise, not at full load |
