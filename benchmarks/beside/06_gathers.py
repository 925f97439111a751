from collections import Counter

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode, Counter):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.update(name for name in ("allgather", "reduce_scatter") if name in str(op))
        return op(*args, **(kwargs or {}))


dist.init_process_group("fake", rank=0, world_size=64, store=FakeStore())  # sends nothing
for again in (True, False):  # FULL_SHARD, SHARD_GRAD_OP
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
    for layer in (*model, model):
        fully_shard(layer, reshard_after_forward=again)
    for micro_batches in (1, 3):
        with Calls() as calls:
            for _ in range(micro_batches):
                model(torch.randn(8, 256)).sum().backward()
        print(f"reshard_after_forward={again}, {micro_batches} micro-batches: {dict(calls)}")
