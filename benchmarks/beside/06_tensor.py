import torch
import torch.distributed as dist
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())  # sends nothing
node, whole = dist.init_device_mesh("cpu", (8,)), Replicate()
first = {"up": ColwiseParallel(), "down": RowwiseParallel()}
other = {"up": RowwiseParallel(input_layouts=whole), "down": ColwiseParallel(output_layouts=whole)}
for name, cut in {"columns, then rows": first, "rows, then columns": other}.items():
    layer = {"up": torch.nn.Linear(64, 256, False), "down": torch.nn.Linear(256, 64, False)}
    mlp = parallelize_module(torch.nn.ModuleDict(layer), node, cut)
    with CommDebugMode() as calls:
        out = mlp["down"](mlp["up"](torch.ones(16, 64, requires_grad=True)).relu())
        out.sum().backward()
    print(name, {str(op).split(".")[-1]: n for op, n in calls.get_comm_counts().items()})
