import torch
from torch.utils.benchmark import Timer

device = "cuda" if torch.cuda.is_available() else "cpu"
for size in (4, 10**9):
    here = torch.ones(size, dtype=torch.uint8, pin_memory=device == "cuda")
    there = torch.ones_like(here, device=device)
    timer = Timer("there.copy_(here)", globals={"here": here, "there": there})
    seconds = min(timer.blocked_autorange(min_run_time=1).times)
    print(f"{size:>13,} bytes: {1e6 * seconds:,.1f} µs, {size / seconds / 1e9:.3g} GB/s")
