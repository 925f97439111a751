import torch
from torch import nn

tokens, width = 512, 1024
model = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
optimizer = torch.optim.AdamW(model.parameters())
kept = {}  # what autograd saves, each tensor once
with torch.autograd.graph.saved_tensors_hooks(
    lambda t: kept.update({t.data_ptr(): t}) or t, lambda t: t
):
    loss = model(torch.randn(tokens, width)).square().mean()
loss.backward()
optimizer.step()

one = model[0].weight
moments = [t for t in optimizer.state[one].values() if t.dim()]
for name, parts in {"weight": [one], "gradient": [one.grad], "moments": moments}.items():
    print(f"{name}: {sum(t.nbytes for t in parts) // one.numel()} bytes")
own = {parameter.data_ptr() for parameter in model.parameters()}
activations = sum(t.nbytes for place, t in kept.items() if place not in own)
print(f"kept for the backward pass: {activations // tokens // width} x width bytes a token")
