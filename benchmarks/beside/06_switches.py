import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode


class Sent(TorchDispatchMode, list):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if "allgather" in str(op) or "reduce_scatter" in str(op):  # all but its own shard
            self.append(abs(args[0].nbytes - args[1].nbytes))
        elif "allreduce" in str(op):  # both halves
            ranks = dist.ProcessGroup.unbox(args[1]).size()
            self.append(2 * (ranks - 1) / ranks * args[0][0].nbytes)
        return op(*args, **(kwargs or {}))


def summed(_, bucket):  # as DDP does by itself, but the fake group's sum has no result
    dist.all_reduce(bucket.buffer())
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def count(name, before=lambda model, last: None, mesh=None, **how):
    layers = [torch.nn.Linear(1024, 1024, False, dtype=torch.bfloat16) for _ in range(4)]
    model, weights = torch.nn.Sequential(*layers), sum(one.weight.nbytes for one in layers)
    if how.pop("ddp", False):
        model = DistributedDataParallel(model)
        model.register_comm_hook(None, summed)
    else:
        for part in (*layers, model):
            fully_shard(part, mesh=mesh, **how)
    with Sent() as sent:
        for micro_batch in range(3):
            before(model, micro_batch == 2)
            loss = model(torch.ones(8, 1024, dtype=torch.bfloat16)).sum()
            whole = sum(getattr(p, "_local_tensor", p).nbytes for p in model.parameters())
            loss.backward()
    print(f"{name}: sends {sum(sent) / weights:.3f}, holds {whole / weights:.3f}")


def sync(model, last):
    model.require_backward_grad_sync = last  # what no_sync() sets


def gradients(model, last):
    model.set_requires_gradient_sync(last)


def weights(model, last):
    model.set_reshard_after_backward(last)


def both(model, last):
    weights(model, last), gradients(model, last)


def copies(model, last):
    model.set_requires_all_reduce(last)


dist.init_process_group("fake", rank=0, world_size=64, store=FakeStore())  # sends nothing
two = dist.init_device_mesh("cpu", (8, 8), mesh_dim_names=("copies", "shards"))
count("DDP", ddp=True)
count("no_sync", sync, ddp=True)
count("fully_shard")
count("reshard_after_forward=False", reshard_after_forward=False)
count("reshard_after_forward=8", reshard_after_forward=8)
count("set_requires_gradient_sync", gradients)
count("set_reshard_after_backward", weights, reshard_after_forward=False)
count("both", both, reshard_after_forward=False)
count("2-D mesh", mesh=two)
count("set_requires_all_reduce", copies, mesh=two)
count("reduce_dtype=float32", mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.float32))
