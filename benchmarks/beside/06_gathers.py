import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=64, store=FakeStore())  # sends nothing
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
for layer in (*model, model):
    fully_shard(layer)
for micro_batches in (1, 3):
    with CommDebugMode() as seen:
        for _ in range(micro_batches):
            model(torch.randn(8, 256)).sum().backward()
    counts = {str(name): times for name, times in seen.get_comm_counts().items()}
    print(f"4 layers, {micro_batches} micro-batches: {counts}")
