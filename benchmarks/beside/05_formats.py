import torch

fp8 = torch.float8_e4m3fn
print("fp8: ", torch.tensor([149.3, 0.0009, 500.0]).to(fp8).tolist())
print("fp16:", torch.tensor(70000.0).half().item())
print("bf16:", torch.tensor(70000.0).bfloat16().item())
total = torch.zeros((), dtype=torch.bfloat16)
for _ in range(1000):
    total += 1
print("a loop of ones:", total.item())
print("sum() of ones: ", torch.ones(1000, dtype=torch.bfloat16).sum().item())
