"""Traces whose truth is known: a data-parallel training step from the library's own laws, with
faults in it, as Kineto's JSON of each rank.

A host launches products and other kernels on one stream; the sums of gradients run on a second one,
wait for what was launched before them, and end together on all ranks. This is a clock that runs
forward through the program; `replay` works the other way, from the events alone.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lightspeed.catalog import accelerator
from lightspeed.errors import BadArgument
from lightspeed.roofline import matmul_bytes, matmul_flops
from lightspeed_models.nccl_fit import predict
from lightspeed_models.products import kernel, product_time
from lightspeed_tools.trace.writer import COMPUTE, NCCL, NETWORK, Recorder, collective, save

FAULTS = (
    "loader", "allocator", "slow_rank", "slow_link", "launch_bound", "small_products",
    "synchronize", "no_overlap",
)  # fmt: skip
LATENCY, BETWEEN = 6_000, 1_000  # ns: from a launch to an idle stream; from kernel to kernel


@dataclass(frozen=True)
class Job:
    """A job of `ranks` GPUs; `faults` is a fault's name -> its size: a time in ms (loader,
    allocator, and synchronize: what the host does with what it read), a factor (slow_rank,
    slow_link, launch_bound), pieces (small_products), or 1 (no_overlap).
    """

    ranks: int = 4
    layers: int = 6
    hidden: int = 2048
    tokens: int = 4096
    steps: int = 2
    seed: int = 0
    faults: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.faults:
            if name not in FAULTS:
                raise BadArgument("Job", "faults", name, f"one of {', '.join(FAULTS)}")

    def without(self, *names: str) -> Job:
        """Return the same job without these faults."""
        return replace(self, faults={k: v for k, v in self.faults.items() if k not in names})


class _Rank(Recorder):
    """One rank's clocks and what was recorded; times in ns."""

    def __init__(self, job: Job, number: int):
        super().__init__(number)
        self.host = 0
        self.ready = {COMPUTE: 0, NETWORK: 0}
        self.random = random.Random(f"{job.seed} {number}")
        self.pace = job.faults.get("slow_rank", 1.0) if number == job.ranks // 2 else 1.0
        self.cost = 5_000 * job.faults.get("launch_bound", 1.0)

    def near(self, time: float, spread: float = 0.02) -> int:
        return max(1, round(time * self.random.uniform(1 - spread, 1 + spread)))

    def launch(self, shape: tuple[int, int, int] | None = None) -> tuple[int, dict[str, int]]:
        """The host launches something: when, and the arguments that tie its events together."""
        cost, begin, tie = self.near(self.cost, 0.1), self.host, self.tie()
        self.host += cost
        if shape:
            rows, depth, columns = shape
            dims: dict[str, Any] = {
                "Input Dims": [[rows, depth], [depth, columns]],
                "Input type": ["c10::BFloat16"] * 2,
            }
            outer = {"External id": self.serial}
            self.of_host("cpu_op", "aten::mm", begin, cost, **outer, **dims)
        self.called("cudaLaunchKernel", begin + cost // 2, cost // 3, **tie)
        return begin + cost // 2, tie

    def runs(self, name: str, stream: int, start: int, duration: int, **args: Any) -> None:
        """The device runs something."""
        self.ran(name, stream, start, start + duration, **args)
        self.ready[stream] = start + duration

    def start_of(self, launched: int, stream: int, *after: int) -> int:
        began, idle = launched + self.near(LATENCY, 0.3), self.near(BETWEEN, 0.3)
        return max(began, self.ready[stream] + idle, *(t + idle for t in after))


def run(job: Job) -> list[_Rank]:
    """Run a job and return its ranks with their events."""
    ranks = [_Rank(job, number) for number in range(job.ranks)]
    for step in range(job.steps):
        begins = [rank.host for rank in ranks]
        _step(job, ranks)
        for rank, begin in zip(ranks, begins, strict=True):
            rank.of_host("user_annotation", f"ProfilerStep#{step}", begin, rank.host - begin)
    return ranks


def span(ranks: Iterable[_Rank]) -> int:
    """Return the nanoseconds from the first start on any device to the last end."""
    times = [
        (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000))
        for rank in ranks
        for e in rank.events
        if e["cat"] == "kernel"
    ]
    return max(end for _, end in times) - min(start for start, _ in times)


def write(job: Job, folder: str | Path) -> list[Path]:
    """Write the files of a job's ranks, `rank0.json` and so on, without overwriting any."""
    return save(run(job), job.ranks, folder, str(dict(job.faults) or "healthy"))


def _step(job: Job, ranks: list[_Rank]) -> None:
    """One step of all ranks: they run the same program, so a line of it is run by all in turn."""
    h, t, faults = job.hidden, job.tokens, job.faults
    shapes = ((t, h, 3 * h), (t, h, h), (t, h, 4 * h), (t, 4 * h, h))
    for rank in ranks:
        loading = rank.near(60_000 + 1e6 * faults.get("loader", 0))
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        rank.of_host("user_annotation", name, rank.host, loading)
        rank.host += loading
    for layer in range(job.layers):
        for rank in ranks:
            for shape in shapes:
                _product(job, rank, shape)
            _pass(rank, "layer_norm_kernel", 4 * t * h)
            if layer % 3 == 2 and "allocator" in faults:
                _allocate(rank, faults["allocator"])
            if "synchronize" in faults:
                _synchronize(rank)
                rank.host += rank.near(1e6 * faults["synchronize"])
    late = "no_overlap" in faults
    for _ in range(job.layers):
        for rank in ranks:
            for rows, depth, columns in shapes:
                _product(job, rank, (rows, columns, depth))
                _product(job, rank, (depth, rows, columns))
            _pass(rank, "layer_norm_backward_kernel", 8 * t * h)
            if "synchronize" in faults:
                _synchronize(rank)
                rank.host += rank.near(1e6 * faults["synchronize"])
        if not late:
            _reduce(job, ranks)
    for _ in range(job.layers * late):
        _reduce(job, ranks)
    for rank in ranks:
        _wait(rank)
        arrived = rank.ready[NETWORK]
        for _ in range(4):  # Adam: reads and writes 16 bytes a parameter
            _pass(rank, "multi_tensor_apply_kernel", 3 * h * h * job.layers * 28, arrived)
        _synchronize(rank)


def _product(job: Job, rank: _Rank, shape: tuple[int, int, int]) -> None:
    cut = int(job.faults.get("small_products", 1))
    rows, depth, columns = shape
    for _ in range(cut):
        piece = (max(1, rows // cut), depth, columns)
        launched, tie = rank.launch(piece)
        duration = rank.near(_product_ns(piece) * rank.pace)
        rank.runs(
            "sm90_xmma_gemm_bf16bf16", COMPUTE, rank.start_of(launched, COMPUTE), duration, **tie
        )


def _pass(rank: _Rank, name: str, size: int, after: int = 0) -> None:
    """A kernel that reads and writes `size` bytes, once `after`."""
    launched, tie = rank.launch()
    duration = rank.near((3e-6 + size / (0.85 * _chip().hbm_bandwidth)) * 1e9 * rank.pace)
    rank.runs(name, COMPUTE, rank.start_of(launched, COMPUTE, after), duration, **tie)


def _reduce(job: Job, ranks: list[_Rank]) -> None:
    """The sum of a layer's gradients: it begins on each rank as it can, and ends on all at once."""
    size = 2 * 12 * job.hidden**2
    arrivals = []
    for rank in ranks:
        _wait(rank)
        launched, tie = rank.launch()
        arrivals.append((rank.start_of(launched, NETWORK, rank.ready[COMPUTE]), tie))
    seconds = predict("all_reduce", size, job.ranks, 1, "h100").time
    time = ranks[0].near(1e9 * seconds * job.faults.get("slow_link", 1.0))
    end = max(start for start, _ in arrivals) + time
    details = collective("allreduce", size, range(job.ranks), "default_pg")
    for rank, (start, tie) in zip(ranks, arrivals, strict=True):
        rank.runs(NCCL.format("AllReduce_Sum"), NETWORK, start, end - start, **tie, **details)


def _wait(rank: _Rank) -> None:
    """The host has one stream wait for the other."""
    rank.called("cudaEventRecord", rank.host, 500)
    rank.called("cudaStreamWaitEvent", rank.host + 600, 500)
    rank.host += 1_200


def _synchronize(rank: _Rank) -> None:
    end = max(rank.host + 1_000, max(rank.ready.values()) + 3_000)
    rank.called("cudaDeviceSynchronize", rank.host, end - rank.host)
    rank.host = end


def _allocate(rank: _Rank, ms: float) -> None:
    """The allocator gives memory back and asks for more: the first of them waits for the device."""
    end = max(rank.host, *rank.ready.values()) + rank.near(0.6e6 * ms)
    rank.called("cudaFree", rank.host, end - rank.host)
    time = rank.near(0.4e6 * ms)
    rank.called("cudaMalloc", end, time)
    rank.host = end + time


@functools.cache
def _chip() -> Any:
    return accelerator("h100_sxm")


@functools.cache
def _product_ns(shape: tuple[int, int, int]) -> float:
    rows, depth, columns = shape
    chip, reached = _chip(), kernel("bfloat16")
    return 1e9 * product_time(
        matmul_flops(rows, depth, columns), matmul_bytes(rows, depth, columns), depth,
        chip.bf16, chip.hbm_bandwidth, chip.clock, **vars(reached),
    )  # fmt: skip
