"""What simulators did, written as PyTorch's profiler writes it: Kineto's JSON, a file a rank."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COMPUTE, NETWORK = 7, 13  # streams, as PyTorch numbers them
LAUNCH = 3_000  # ns of the host for a launch, where nothing is in its way
NCCL = "ncclDevKernel_{}_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class Recorder:
    """The events of one rank, with times in ns; a number ties each launch to what it starts."""

    def __init__(self, number: int):
        self.number, self.serial, self.clock = number, 0, 0
        self.events: list[dict[str, Any]] = []

    def record(self, category, name, start, duration, pid, tid, args) -> None:
        """Record an event of any kind."""
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
             "ts": start / 1000, "dur": duration / 1000, "args": args}
        )  # fmt: skip

    def of_host(self, category: str, name: str, start: int, duration: int, **args: Any) -> None:
        """Record an event on the rank's one host thread."""
        self.record(category, name, start, duration, 100 + self.number, 1, args)

    def called(self, name: str, start: int, duration: int, **args: Any) -> None:
        """Record a call of the runtime."""
        self.of_host("cuda_runtime", name, start, duration, **args)

    def tie(self) -> dict[str, int]:
        """Return the arguments that tie the next launch to what it starts."""
        self.serial += 1
        return {"External id": self.serial, "correlation": self.serial}

    def ran(self, name: str, stream: int, start: int, end: int, **args: Any) -> None:
        """Record an operation on the device."""
        args |= {"device": self.number, "stream": stream}
        self.record("kernel", name, start, end - start, self.number, stream, args)

    def launched(self, name: str, stream: int, start: int, end: int, **args: Any) -> None:
        """Record a device operation launched earlier by a host that is far ahead."""
        tie = self.tie()
        self.called("cudaLaunchKernel", self.clock, LAUNCH - 1_000, **tie)
        self.clock += LAUNCH
        self.ran(name, stream, start, end, **tie, **args)


def collective(name: str, size: float, group: Iterable[int], label: str) -> dict[str, Any]:
    """Return the arguments of NCCL's kernels for a collective on `size` bytes of bfloat16."""
    ranks = list(group)
    return {"Collective name": name, "In msg nelems": round(size / 2),
            "Out msg nelems": round(size / 2), "dtype": "BFloat16", "Group size": len(ranks),
            "Process Group Name": label, "Process Group Ranks": json.dumps(ranks)}  # fmt: skip


def about(
    rank: int, world: int, name: str, device: str = "NVIDIA H100 80GB HBM3", per_node: int = 1
) -> dict[str, Any]:
    """Return a file's metadata. `per_node` devices are named, as Kineto names the host's."""
    first = rank - rank % per_node
    return {
        "schemaVersion": 1,
        "deviceProperties": [
            {"id": number, "name": device} for number in range(first, first + per_node)
        ],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world},
        "traceName": f"made by the course: {name}",
    }


def save(
    ranks: Iterable[Recorder], world: int, folder: str | Path, name: str, packed: bool = False,
    **details: Any,
) -> list[Path]:  # fmt: skip
    """Save ranks to a folder as `rank0.json` (or .json.gz) and so on, without overwriting. Further
    `details` go to `about`.
    """
    paths = []
    for rank in ranks:
        head = about(rank.number, world, name, **details)
        path = Path(folder) / f"rank{rank.number}.json{'.gz' if packed else ''}"
        events = ",\n  ".join(map(json.dumps, rank.events))
        text = json.dumps(head)[:-1] + f',\n  "traceEvents": [\n  {events}\n  ]\n}}\n'
        with open(path, "xb") as file:
            file.write(gzip.compress(text.encode(), mtime=0) if packed else text.encode())
        paths.append(path)
    return paths
