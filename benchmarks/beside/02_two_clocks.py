import torch
from torch.utils.benchmark import Timer

device, kind = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
x, w = (torch.randn(4096, 4096, device=device, dtype=kind) for _ in range(2))


def seconds(code, **names):
    return min(Timer(code, globals=names).blocked_autorange(min_run_time=1).times)


print(f"relu: {2 * x.nbytes / seconds('x.relu_()', x=x) / 1e9:,.0f} GB/s")
for rows in (1, 64, 2048):
    rate = 2 * rows * w.numel() / seconds("x @ w", x=x[:rows], w=w)
    print(f"x @ w, {rows:>4} rows: {rate / 1e9:,.0f} GFLOP/s")
