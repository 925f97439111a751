import torch
import torch.distributed as dist
from torch.distributed.tensor.experimental._context_parallel import _attention as ring
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if "all_to_all" in str(op) or "all_gather" in str(op):
            print(f"{op.__name__}: {args[0].nbytes} bytes")
        return op(*args, **(kwargs or {}))


dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())  # sends nothing
group, attend = dist.group.WORLD, torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
q, k, v = torch.zeros(3, 1, 8, 64, 16, dtype=torch.bfloat16)  # 64 tokens, 8 heads of 16
with Calls():
    out, sums, *_ = ring._templated_ring_attention(group, 2, attend, q, k, v, True)
    passes = (group, 2, lambda **x: (x["query"], x["key"], x["value"]), out, "grad_out")
    ring._templated_ring_attention_backward(*passes, q, k, v, out, sums, True)
