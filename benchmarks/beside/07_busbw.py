# torchrun --nproc-per-node 4 07_busbw.py
import time

import torch
import torch.distributed as dist

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, n = dist.get_rank(), dist.get_world_size()
for size in (2**10, 2**18, 2**26):
    buffer = torch.ones(size // 4, device=f"cuda:{rank}" if torch.cuda.is_available() else "cpu")
    times = []
    for _ in range(20):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(buffer)
        buffer[0].item()  # a GPU answers once the sum is there
        times.append(time.perf_counter() - start)
    algbw = size / sorted(times)[10] / 1e9
    if rank == 0:
        print(f"{size:>10,} bytes: algbw {algbw:.3g}, busbw {2 * (n - 1) / n * algbw:.3g} GB/s")
dist.destroy_process_group()
