import torch
from torch.profiler import profile, record_function

model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(4)))
optimizer = torch.optim.AdamW(model.parameters())
with profile() as seen:
    for _ in range(10):
        with record_function("data"):
            x = torch.randn(512, 2048)
        with record_function("model"):
            model(x).square().mean().backward()
        with record_function("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
took = {one.key: one.cpu_time_total for one in seen.key_averages()}
parts = {name: took[name] for name in ("data", "model", "optimizer")}
for name, time in parts.items():
    print(f"{name}: {time / sum(parts.values()):.0%}")
