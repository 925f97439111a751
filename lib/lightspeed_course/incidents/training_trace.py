"""The profile that a training job of the room would leave: the terms of its step (training_job),
cut into micro-batches and quarters of the model, rank by rank.

A tensor-parallel group meets after each piece of work. The gradients of a data-parallel group are
summed in two buckets, one while the last backward pass runs and one after it. So the span of the
files is the job's own time.
"""

from pathlib import Path

from lightspeed.catalog import accelerator, link
from lightspeed_course.incidents.training_job import PER_NODE, Job, sound, terms
from lightspeed_tools.trace.writer import COMPUTE, NCCL, NETWORK, Recorder, collective, save

QUARTERS = 4
BEGIN = 12_000  # ns of the host before the device starts
TENSOR, DATA = NETWORK, NETWORK + 4


def passes(job: Job) -> tuple[str, ...]:
    """What each quarter of a micro-batch runs, a unit of arithmetic each."""
    again = ("forward again",) if job.recompute == "full" else ()
    return ("forward", *again, "backward", "backward")


def own_times(job: Job, rank: int) -> tuple[int, int, int]:
    """ns of products, of other kernels and of a tensor group's sums, in one unit on one rank."""
    s, units = terms(job), job.micro_batches * QUARTERS * len(passes(job))
    speed = job.speed(rank)
    return tuple(round(1e9 * t / units) for t in (s.compute / speed, s.memory / speed, s.tensor))  # type: ignore[return-value]


def ranks(job: Job) -> list[Recorder]:
    """What each rank of a step did."""
    s = terms(job)
    kernels: list[list[tuple]] = [[] for _ in range(job.ranks)]  # (start, end, name, stream, told)
    clock = [BEGIN] * job.nodes  # a tensor group is a node, and its ranks wait for each other
    order = [kind for _ in range(job.micro_batches) for kind in _micro_batch(job)]
    inside = _buffer(s.tensor / len(order) * accelerator(job.gpu).link_bandwidth, PER_NODE)
    for kind in order:
        for node in range(job.nodes):
            members = range(node * PER_NODE, (node + 1) * PER_NODE)
            ends = [_work(kernels[n], kind, clock[node], own_times(job, n)) for n in members]
            clock[node] = max(ends) + own_times(job, members[0])[2]
            details = collective("allreduce", inside, members, f"tensor_{node}")
            for n, end in zip(members, ends, strict=True):
                kernels[n].append((end, clock[node], NCCL.format("AllReduce_Sum"), TENSOR, details))
    hidden, exposed = round(1e9 * s.hidden), round(1e9 * s.data)
    begins = [clock[node] - round(hidden * _dilation(job, node)) for node in range(job.nodes)]
    early, last = max(begins) + hidden, max(clock) + exposed
    whole = terms(sound(job))
    across = _buffer((whole.data + whole.hidden) * link(job.network).bandwidth, job.nodes)
    recorders = []
    for n, rows in enumerate(kernels):
        node, group = n // PER_NODE, range(n % PER_NODE, job.ranks, PER_NODE)
        for begin, end, part in (
            (begins[node], early, hidden), (max(clock[node], early), last, exposed)
        ):  # fmt: skip
            # where all gradients are hidden, ranks still meet for their norm, in one number
            size = max(across * part / (hidden + exposed), 2)
            details = collective("allreduce", size, group, f"data_{n % PER_NODE}")
            if end > begin:
                rows.append((begin, end, NCCL.format("AllReduce_Sum"), DATA, details))
        rank = Recorder(n)
        pieces = [part for row in rows for part in _cut(row, begins[node])]
        for start, end, name, stream, args in sorted(pieces, key=lambda row: row[0]):
            rank.launched(name, stream, start, end, **args)
        rank.of_host("user_annotation", "ProfilerStep#0", 0, last)
        recorders.append(rank)
    return recorders


def _dilation(job: Job, node: int) -> float:
    """How many times longer a node's work takes than on a sound one."""
    *work, sums = own_times(job, 0)
    members = range(node * PER_NODE, (node + 1) * PER_NODE)
    slowest = max(sum(own_times(job, n)[:2]) for n in members)
    sound_work = sum(work) * job.speed(0)
    return (slowest + sums) / (sound_work + sums)


def _cut(row: tuple, at: int) -> list[tuple]:
    """Compute that runs as the gradients are ready, in two: what they waited for, and the rest."""
    start, end, *what = row
    if what[1] == COMPUTE and start < at < end:
        return [(start, at, *what), (at, end, *what)]
    return [row]


def _micro_batch(job: Job) -> list[str]:
    kinds = passes(job)
    return ["forward"] * QUARTERS + [*kinds[1:]] * QUARTERS


def _work(kernels: list[tuple], kind: str, start: int, times: tuple[int, int, int]) -> int:
    """The kernels of a unit, one after the other; when they end."""
    products, others, _ = times
    tag = kind.replace(" ", "_")
    middle, end = start + products, start + products + others
    kernels.append((start, middle, f"sm90_xmma_gemm_bf16bf16_{tag}", COMPUTE, {}))
    kernels.append((middle, end, f"elementwise_kernel_{tag}", COMPUTE, {}))
    return end


def _buffer(wire: float, n: int) -> float:
    """Bytes of the buffer of an all-reduce that puts so many on each wire of a ring."""
    return wire * n / (2 * (n - 1))


def write(job: Job, folder: str | Path, everyone: bool) -> list[Path]:
    """The packed files of rank 0, or of all ranks, in a folder; none is written over."""
    of = ranks(job)
    return save(of if everyone else of[:1], job.ranks, folder, "a job that is slower than its plan",
                packed=True, device=_NAMES[job.gpu], per_node=PER_NODE)  # fmt: skip


_NAMES = {"h100_sxm": "NVIDIA H100 80GB HBM3", "a100_80gb": "NVIDIA A100-SXM4-80GB"}
