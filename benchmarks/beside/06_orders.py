# torchrun --nproc-per-node 4 06_orders.py
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe


def order(kind):
    seen, layer = [], torch.nn.Linear(8, 8)
    layer.register_forward_hook(lambda *_: seen.append("F"))
    layer.weight.register_hook(lambda _: seen.append("B"))
    schedule = kind(PipelineStage(layer, rank, 4, torch.device("cpu")), 8, loss_fn=loss)
    for _ in range(2):  # the first step also finds out the shapes
        seen.clear()
        schedule.step(*[x] * (rank == 0), **({"target": x} if rank == 3 else {}))
    return "".join(seen)


dist.init_process_group("gloo")
rank, x, loss = dist.get_rank(), torch.randn(64, 8), torch.nn.functional.mse_loss
for kind in (ScheduleGPipe, Schedule1F1B):
    dist.all_gather_object(found := [""] * 4, order(kind))
    if rank == 0:
        print(kind.__name__, *found, sep="\n  ")
dist.destroy_process_group()
