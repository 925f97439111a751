"""What the work of a profile should take by the library's laws: operators on the roof of their
chip, collectives on the links of their node.
"""

from __future__ import annotations

import functools
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from lightspeed.collectives import COLLECTIVES
from lightspeed.errors import BadArgument
from lightspeed.roofline import matmul_bytes, matmul_flops, time_bounds
from lightspeed_models.cards import chip_of
from lightspeed_models.nccl_fit import FABRICS, predict
from lightspeed_models.products import kernel, product_time
from lightspeed_tools.nccl.machine import KINDS
from lightspeed_tools.trace.account import Account
from lightspeed_tools.trace.operators import WIDTHS, Work, work_of
from lightspeed_tools.trace.reader import COMPUTE, Trace
from lightspeed_tools.trace.rebuild import Operation, Run

SMALL = 0.8  # of the pieces' time: where one product takes more, the pieces were not small
PIECES = 4  # so many like products in a row are one that was cut
NAMED = {c.replace("_", ""): c for c in COLLECTIVES} | {
    "allgatherbase": "all_gather", "allgatherintotensor": "all_gather",
    "reducescatterbase": "reduce_scatter", "reducescattertensor": "reduce_scatter",
    "alltoallbase": "alltoall", "alltoallsingle": "alltoall", "allreducecoalesced": "all_reduce",
}  # fmt: skip
# Why a kernel is held to no roof; `report` has a remedy for each.
NOT_RECORDED, NOT_LINKED, NO_LAW, NO_CHIP = (
    "shapes not recorded", "kernels not linked to operators", "operators without a law here",
    "chip unknown",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Calls of one operator and shape: number, total seconds, and seconds at the roof."""

    name: str
    work: Work
    count: int
    time: float
    roof: float | None
    compute_bound: bool

    @property
    def share(self) -> float | None:
        """The share of the roof reached; above 1, a clock, a type or a shape is wrong."""
        return self.roof / self.time if self.roof and self.time else None


@dataclass
class Compute:
    """A device's compute compared with its roofs: total seconds, rows longest first, and the
    seconds without a roof, by reason and by operator without a law.
    """

    whole: float = 0.0
    rows: list[Row] = field(default_factory=list)
    reasons: dict[str, float] = field(default_factory=dict)
    lawless: dict[str, float] = field(default_factory=dict)

    def of(self, kind: str) -> list[Row]:
        """Return the rows of a law."""
        return [row for row in self.rows if row.work.kind == kind]

    @property
    def covered(self) -> float:
        """The share of compute whose roof is known."""
        return sum(row.time for row in self.rows if row.roof) / self.whole if self.whole else 0.0

    @property
    def reached(self) -> float:
        """The share of its roofs that this part reaches; a kernel above its roof counts as at it,
        since caches hold what small kernels read.
        """
        roofed = [row for row in self.rows if row.roof]
        time = sum(row.time for row in roofed)
        return sum(min(row.roof or 0.0, row.time) for row in roofed) / time if time else 0.0


@dataclass(frozen=True)
class Collective:
    """Collectives of one kind and size: the ranks in them, how often, seconds in all (waiting for
    other ranks counted in), and the seconds by the law of chapter 7.
    """

    name: str
    size: float
    ranks: int
    count: int
    time: float
    shortest: float
    expected: float | None
    nodes: int | None


@functools.lru_cache(maxsize=64)
def compute_of(trace: Trace, account: Account) -> Compute:
    """The compute of a device against the roofs of its chip."""
    device, operators = trace.device, trace.operators
    times: dict[tuple[str, bytes], float] = defaultdict(float)
    calls: dict[tuple[str, bytes], set[int]] = defaultdict(set)
    compute, reasons, lawless = Compute(), defaultdict(float), defaultdict(float)
    for row in account.rows:
        if device.kind[row] != COMPUTE:
            continue
        time = device.duration[row] * 1e-9
        compute.whole += time
        operator = trace.operator[row]
        call = trace.arguments_of(row)
        if call:
            times[call] += time
            calls[call].add(operator)
        elif operator < 0:
            reasons[NOT_LINKED] += time
        elif not trace.shapes_recorded:
            reasons[NOT_RECORDED] += time
        else:
            reasons[NO_LAW] += time
            lawless[trace.names[operators.name[operator]]] += time
    for (name, arguments), time in times.items():
        work = work_of(name, arguments)
        if work is None:
            reasons[NO_LAW] += time
            lawless[name] += time
            continue
        count = len(calls[name, arguments])
        roof, compute_bound = bound(account.name, work, count)
        if roof is None:
            reasons[NO_CHIP] += time
        compute.rows.append(Row(name, work, count, time, roof, compute_bound))
    compute.rows.sort(key=lambda row: -row.time)
    compute.reasons = dict(sorted(reasons.items(), key=lambda item: -item[1]))
    compute.lawless = dict(sorted(lawless.items(), key=lambda item: -item[1]))
    return compute


def bound(device: str, work: Work, count: int = 1) -> tuple[float | None, bool]:
    """Seconds of so many calls on the roof of a chip (None where that isn't known), and whether
    arithmetic is the longer.
    """
    chip, form = chip_of(device), work.number_format or "bf16"
    peak = getattr(chip, form, None) if chip and form in WIDTHS else None
    if chip is None or peak is None:
        return None, False
    bounds = time_bounds(count * work.flops, count * work.size, peak, chip.hbm_bandwidth)
    return float(bounds.lower), bool(bounds.compute_bound)


def collectives(trace: Trace, account: Account) -> list[Collective]:
    """Return the collectives with known kind and bytes, longest first."""
    times_of: dict[tuple[str, float, int, int | None], list[float]] = {}
    for row in account.rows:
        if row in trace.collectives and trace.collectives[row][1]:
            key = (*trace.collectives[row], nodes_of(trace, row))
            times_of.setdefault(key, []).append(trace.device.duration[row] * 1e-9)
    entries = [
        Collective(NAMED.get(name, name), size, n, len(times), sum(times), min(times),
                   expected_time(account.name, name, size, n, nodes), nodes)
        for (name, size, n, nodes), times in times_of.items()
    ]  # fmt: skip
    return sorted(entries, key=lambda c: -c.time)


def nodes_of(trace: Trace, row: int) -> int | None:
    """Return how many nodes a collective's group spans, None if unknown. Ranks are numbered node by
    node, with as many per node as the host has devices.
    """
    ranks = [int(n) for n in re.findall(r"\d+", trace.groups.get(row, ("", ""))[1])]
    size = trace.collectives[row][2]
    devices = trace.about.get("deviceProperties")
    per_node = len(devices) if isinstance(devices, list) else 0
    if len(ranks) != size or (per_node < 2 and size > 1):
        whole = trace.world is not None and trace.world == size <= 8
        return 1 if whole else None
    return len({rank // per_node for rank in ranks})


@functools.cache
def expected_time(
    device: str, name: str, size: float, ranks: int, nodes: int | None
) -> float | None:
    """Seconds of a collective by the law fitted to NCCL's measurements; None where the bytes, the
    kind, the nodes or the link is not known. More than one node runs over its network, of which a
    profile says nothing.
    """
    fabric = next((k.fabric for k in KINDS if re.search(k.pattern, device)), "")
    if fabric not in FABRICS or name not in NAMED or size <= 0 or nodes != 1 or not 2 <= ranks <= 8:
        return None
    try:
        return predict(NAMED[name], size, ranks, 1, fabric).time
    except BadArgument:
        return None


def expect(run: Run, traces: list[Trace], accounts: list[Account]) -> None:
    """Give the run the expected times of its collectives and its cut products."""
    for meeting in run.meetings:
        rank, op = next(iter(meeting.of.items()))
        trace = traces[rank]
        collective = trace.collectives.get(op.row)
        time = (
            expected_time(accounts[rank].name, *collective, nodes_of(trace, op.row))
            if collective
            else None
        )
        # a third above the law is within what was measured on sound machines
        if time is not None and meeting.transfer > 1.33e9 * time:
            meeting.expected = round(1e9 * time)
    for trace, account, operations in zip(traces, accounts, run.operations, strict=True):
        for pieces, whole in _cut_products(trace, account, operations):
            pieces[0].merged = whole
            for op in pieces[1:]:
                op.merged = 0
                if op.call:
                    op.call.merged = True


def _cut_products(
    trace: Trace, account: Account, operations: list[Operation]
) -> Iterator[tuple[list[Operation], int]]:
    """Runs of like products, and the ns of one that does their work at once."""
    ordered = sorted((op for op in operations if op.kind == COMPUTE), key=lambda op: op.start)
    group: list[Operation] = []
    last = None
    for op in [*ordered, None]:
        call = trace.arguments_of(op.row) if op else None
        if call != last or call is None:
            if (
                last is not None
                and len(group) >= PIECES
                and (whole := _whole(account.name, last, group))
            ):
                yield group, whole
            group = []
        if op and call is not None:
            group.append(op)
        last = call


def _whole(device: str, call: tuple[str, bytes], group: list[Operation]) -> int | None:
    """ns of one product in place of a group: what the pieces took, scaled by the law."""
    work, chip = work_of(*call), chip_of(device)
    if work is None or work.kind != "product" or chip is None:
        return None
    (batch, rows, depth, columns), form = work.shape, work.number_format
    peak = getattr(chip, form, None)
    if peak is None or not hasattr(chip, "clock"):
        return None
    reached, width = vars(kernel("bfloat16")), WIDTHS[form]

    def time(n: int) -> float:
        return float(product_time(
            batch * matmul_flops(n, depth, columns),
            batch * matmul_bytes(n, depth, columns, width, width, width),
            depth, peak, chip.hbm_bandwidth, chip.clock, **reached,
        ))  # fmt: skip

    took = sum(op.duration for op in group)
    ratio = time(rows * len(group)) / (len(group) * time(rows))
    return math.ceil(took * ratio) if ratio < SMALL else None
