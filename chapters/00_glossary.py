# %% [markdown]
# # Glossary
#
# The words of the course, each with the chapter that explains it. One word for one thing: if you meet
# another in the wild, look it up by its meaning.
#
# ## Rates and clocks
#
# | term | meaning | where |
# |---|---|---|
# | FLOP, FLOP/s | an operation on floating-point numbers; how many of them a second | [chapter 1](01_numbers_to_know.ipynb) |
# | bandwidth, latency | bytes a second once they flow; the wait before the first arrives | [chapter 1](01_numbers_to_know.ipynb) |
# | HBM | the large memory of an accelerator, beside its chip | [chapter 1](01_numbers_to_know.ipynb) |
# | tensor cores, vector units | the parts of a GPU that multiply matrices, and those that do all else | [chapter 2](02_roofline.ipynb) |
# | arithmetic intensity | FLOPs that a kernel does for each byte that it moves | [chapter 2](02_roofline.ipynb) |
# | ridge point | FLOPs that a machine could do while one byte arrives | [chapter 2](02_roofline.ipynb) |
# | compute-bound, memory-bound, communication-bound | limited by arithmetic; by memory; by a link | [chapter 2](02_roofline.ipynb) |
# | critical batch | the tokens at which a product of matrices becomes compute-bound | [chapter 2](02_roofline.ipynb) |
# | tile, fusion | a part of a result that is worked on at once; two kernels made into one | [chapter 2](02_roofline.ipynb) |
# | MFU, HFU | FLOPs that the model needs, or that the hardware did, over the peak; say which peak, and how the scores of attention are counted | [chapter 3](03_amdahl_gustafson.ipynb) |
# | share that does not shrink | the part of the work that more processors leave as it is | [chapter 3](03_amdahl_gustafson.ipynb) |
#
# ## Models and serving
#
# | term | meaning | where |
# |---|---|---|
# | parameters, weights | the numbers that a model has learned; the same, as bytes | [chapter 1](01_numbers_to_know.ipynb) |
# | token | a piece of a word; what a model reads and writes one by one | [chapter 1](01_numbers_to_know.ipynb) |
# | prefill, decode | reading a prompt, all tokens together; writing an answer, token by token | [chapter 2](02_roofline.ipynb) |
# | KV cache | keys and values of a sequence's earlier tokens, kept so that they are not computed again | [chapter 2](02_roofline.ipynb) |
# | KV head | a head whose keys and values several query heads share | [chapter 2](02_roofline.ipynb) |
# | concurrency | requests inside at once: rate times the time that each stays | [chapter 4](04_littles_law.ipynb) |
# | knee | the batch at which the throughput for each second of waiting is greatest | [chapter 4](04_littles_law.ipynb) |
# | slot | room for one request's cache in a replica | [chapter 4](04_littles_law.ipynb) |
# | replica | one whole copy of a model, on as many GPUs as it needs | [chapter 4](04_littles_law.ipynb) |
# | MoE, expert | a layer that uses few of many matrices for each token; one of those | [chapter 6](06_parallelism.ipynb) |
# | format, scale | how a number is stored; the factor that brings it into the format's range | [chapter 5](05_precision.ipynb) |
# | overflow, underflow | too large for a format; too near zero for it | [chapter 5](05_precision.ipynb) |
#
# ## Training on many GPUs
#
# | term | meaning | where |
# |---|---|---|
# | activations | what the forward pass computes and the backward pass needs | [chapter 6](06_parallelism.ipynb) |
# | optimizer states | what the optimizer keeps for each parameter beside the weight | [chapter 6](06_parallelism.ipynb) |
# | recomputation | activations thrown away and computed again, of a part of a layer or of all | [chapter 6](06_parallelism.ipynb) |
# | data parallelism | each GPU takes different samples, and gradients are summed | [chapter 6](06_parallelism.ipynb) |
# | ZeRO, FSDP | data parallelism without copies of optimizer, gradients, weights; PyTorch's | [chapter 6](06_parallelism.ipynb) |
# | tensor parallelism | products of matrices cut up inside a layer | [chapter 6](06_parallelism.ipynb) |
# | micro-batch | the part of a batch that goes through the model at a time | [chapter 6](06_parallelism.ipynb) |
# | pipeline, bubble | layers in stages, one behind the other; idle time while they fill and drain | [chapter 6](06_parallelism.ipynb) |
# | straggler | the rank that the others wait for | [chapter 6](06_parallelism.ipynb) |
# | checkpoint | the states written to disk, to go on from after a failure | [chapter 6](06_parallelism.ipynb) |
#
# ## Collectives and networks
#
# | term | meaning | where |
# |---|---|---|
# | rank | one process of a job, as a rule with one GPU | [chapter 6](06_parallelism.ipynb) |
# | all-reduce | each rank gets the sum | [chapter 7](07_nccl_bandwidth.ipynb) |
# | reduce-scatter, all-gather | each rank gets its own share of the sum; the shares of the others | [chapter 7](07_nccl_bandwidth.ipynb) |
# | all-to-all | each rank sends something else to each other rank | [chapter 7](07_nccl_bandwidth.ipynb) |
# | algbw, busbw | the buffer over the time; what a wire carries meanwhile | [chapter 7](07_nccl_bandwidth.ipynb) |
# | NVLink, NVSwitch | the links between the GPUs of a node, and the switch that joins them | [chapter 7](07_nccl_bandwidth.ipynb) |
# | SHARP, NVLS | switches that add, of InfiniBand and of NVLink | [chapter 7](07_nccl_bandwidth.ipynb) |
# | RDMA, RoCE | access to another host's memory without its CPU; the same over Ethernet | [chapter 8](08_network.ipynb) |
# | goodput | what arrives and counts, without what had to be sent again | [chapter 8](08_network.ipynb) |
# | go back n, selective repeat | after a loss also what followed is sent again, or the packet alone | [chapter 8](08_network.ipynb) |
# | incast | many senders, one receiver | [chapter 8](08_network.ipynb) |
# | PFC, ECN, DCQCN | pauses for a class; marks for losses; the rule by which senders obey marks | [chapter 8](08_network.ipynb) |
# | rail | the GPUs of one place in each node, and the switch that joins them | [chapter 8](08_network.ipynb) |
# | ECMP | one of several like ways, picked by a hash | [chapter 8](08_network.ipynb) |
