"""What the work of a profile should take by the library's laws: matrix products on the roof of
their chip, collectives on the links of their node.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lightspeed.catalog import accelerator
from lightspeed.collectives import COLLECTIVES
from lightspeed.errors import BadArgument
from lightspeed.roofline import matmul_bytes, matmul_flops, time_bounds
from lightspeed_models.nccl_fit import FABRICS, predict
from lightspeed_models.products import kernel, product_time
from lightspeed_tools.measure.instruments.gpu import catalog_key
from lightspeed_tools.nccl.machine import KINDS
from lightspeed_tools.trace.account import Account
from lightspeed_tools.trace.reader import COMPUTE, Trace
from lightspeed_tools.trace.rebuild import Operation, Run

FORMATS = {"c10::BFloat16": "bf16", "BFloat16": "bf16", "c10::Half": "fp16", "Half": "fp16"}
FORMATS |= {"float": "tf32", "double": "fp64", "c10::Float8_e4m3fn": "fp8"}
WIDTHS = {"bf16": 2, "fp16": 2, "tf32": 4, "fp64": 8, "fp8": 1}
PIECES = 4  # so many like products in a row are one that was cut
NAMED = {c.replace("_", ""): c for c in COLLECTIVES} | {
    "allgatherbase": "all_gather", "allgatherintotensor": "all_gather",
    "reducescatterbase": "reduce_scatter", "reducescattertensor": "reduce_scatter",
    "alltoallbase": "alltoall", "alltoallsingle": "alltoall", "allreducecoalesced": "all_reduce",
}  # fmt: skip


@dataclass(frozen=True)
class Product:
    """Products of one shape: how often, seconds in all, and the seconds of the roof."""

    name: str
    shape: tuple[int, int, int, int]  # products in a batch, rows, depth, columns
    number_format: str
    count: int
    time: float
    roof: float | None
    compute_bound: bool

    @property
    def share(self) -> float | None:
        """Of the roof; above 1, a clock, a type or a shape is not what it seems."""
        return self.roof / self.time if self.roof and self.time else None


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


def products(trace: Trace, account: Account) -> tuple[list[Product], float]:
    """The products with known shapes, longest first, and the share of compute that they are."""
    device = trace.device
    spent: dict[tuple, list[float]] = {}
    operators: dict[tuple, set[int]] = {}
    compute = 0
    for row in account.rows:
        if device.kind[row] != COMPUTE:
            continue
        compute += device.duration[row]
        known = trace.products.get(device.outer[row])
        if known:
            spent.setdefault(known, []).append(device.duration[row])
            operators.setdefault(known, set()).add(device.outer[row])
    found: dict[tuple, list[float]] = {}
    for known, times in spent.items():
        shape = product_shape(*known[:3])
        if shape:
            entry = found.setdefault((known[0], *shape), [0, 0.0])
            entry[0] += len(operators[known])
            entry[1] += sum(times) * 1e-9
    listed = [
        Product(name, shape, form, int(n), time, *_roof(account.name, shape, form, int(n)))
        for (name, shape, form), (n, time) in found.items()
    ]
    covered = sum(p.time for p in listed)
    return sorted(listed, key=lambda p: -p.time), covered / (compute * 1e-9) if compute else 0.0


@dataclass(frozen=True)
class Attention:
    """Attention of one shape: how often, seconds in all, and the seconds of the roof."""

    shape: tuple[int, ...]  # requests, heads, queries, keys, width of a head
    causal: bool
    number_format: str
    count: int
    time: float
    roof: float | None

    @property
    def share(self) -> float | None:
        """Of the roof."""
        return self.roof / self.time if self.roof and self.time else None


def attentions(trace: Trace, account: Account) -> list[Attention]:
    """Forward passes of attention with known shapes, longest first. A causal one does half."""
    device, found = trace.device, {}
    for row in account.rows:
        known = trace.products.get(device.outer[row])
        if device.kind[row] == COMPUTE and known and len(known) == 4:
            entry = found.setdefault(known, [set(), 0.0])
            entry[0].add(device.outer[row])
            entry[1] += device.duration[row] * 1e-9
    listed = []
    for (name, dims, types, values), (operators, time) in found.items():
        try:
            shapes, kinds = ast.literal_eval(dims), ast.literal_eval(types)
            if name == "aten::_flash_attention_forward":  # queries stand before heads
                shapes = [(b, h, n, d) for b, n, h, d in shapes[:2]]
            (batch, heads, queries, width), (_, kv_heads, keys, _) = shapes[0], shapes[1]
        except (ValueError, SyntaxError, IndexError, TypeError):
            continue
        form, count = FORMATS.get(kinds[0], str(kinds[0])), len(operators)
        causal = "True" in values
        flops = count * attention_flops(batch, heads, queries, keys, width, causal)
        size = count * WIDTHS.get(form, 2) * 2 * batch * width * (heads * queries + kv_heads * keys)
        shape = (batch, heads, queries, keys, width)
        listed.append(Attention(shape, causal, form, count, time,
                                _bound(account.name, form, flops, size)[0]))  # fmt: skip
    return sorted(listed, key=lambda a: -a.time)


def attention_flops(
    batch: int, heads: int, queries: int, keys: int, width: int, causal: bool
) -> float:
    """FLOPs of scores and sums: four for each query, key and number of a head; a causal query sees
    those keys that are not behind it.

    >>> attention_flops(1, 1, 4, 4, 1, False), attention_flops(1, 1, 4, 4, 1, True)
    (64, 40.0)
    """
    rows = min(queries, keys)
    seen = rows * (keys - rows) + rows * (rows + 1) / 2 if causal else queries * keys
    return 4 * batch * heads * seen * width


@functools.cache
def product_shape(name: str, dims: str, types: str) -> tuple[tuple[int, int, int, int], str] | None:
    """(batch, rows, depth, columns) and number format of an operator, from its arguments."""
    try:
        shapes, kinds = ast.literal_eval(dims), ast.literal_eval(types or "[]")
        first = 1 if "addm" in name or "baddbmm" in name else 0
        left, right = shapes[first], shapes[first + 1]
        kind = kinds[first] if len(kinds) > first else ""
        batch = left[0] if len(left) == 3 else 1
        (rows, depth), (inner, columns) = left[-2:], right[-2:]
    except (ValueError, SyntaxError, IndexError, TypeError):
        return None
    whole = all(isinstance(n, int) and n > 0 for n in (batch, rows, depth, inner, columns))
    return (
        ((batch, rows, depth, columns), FORMATS.get(kind, str(kind)))
        if whole and depth == inner
        else None
    )


def _roof(device: str, shape: tuple[int, ...], form: str, count: int) -> tuple[float | None, bool]:
    """Seconds on the roof of a chip for all of them, and whether arithmetic is the longer."""
    batch, rows, depth, columns = shape
    width = WIDTHS.get(form, 2)
    out = 2 if form == "fp8" else width
    return _bound(
        device, form,
        count * batch * matmul_flops(rows, depth, columns),
        count * batch * matmul_bytes(rows, depth, columns, width, width, out),
    )  # fmt: skip


def _bound(device: str, form: str, flops: float, size: float) -> tuple[float | None, bool]:
    """Seconds of so many FLOPs and bytes on the roof of a chip, None where it isn't known."""
    key = catalog_key(device) if device else None
    chip = accelerator(key) if key else None
    peak = getattr(chip, form, None) if chip and form in WIDTHS else None
    if chip is None or peak is None:
        return None, False
    bounds = time_bounds(flops, size, peak, chip.hbm_bandwidth)
    return float(bounds.lower), bool(bounds.compute_bound)


def collectives(trace: Trace, account: Account) -> list[Collective]:
    """The collectives of which the file says kind and bytes, longest first."""
    found: dict[tuple[str, float, int, int | None], list[float]] = {}
    for row in account.rows:
        if row in trace.collectives:
            key = (*trace.collectives[row], nodes_of(trace, row))
            found.setdefault(key, []).append(trace.device.duration[row] * 1e-9)
    listed = [
        Collective(NAMED.get(name, name), size, n, len(times), sum(times), min(times),
                   expected_time(account.name, name, size, n, nodes), nodes)
        for (name, size, n, nodes), times in found.items()
    ]  # fmt: skip
    return sorted(listed, key=lambda c: -c.time)


def nodes_of(trace: Trace, row: int) -> int | None:
    """The nodes over which the group of a collective is spread, None where the file doesn't tell.
    Ranks are numbered node by node, with as many to a node as the host has devices.
    """
    ranks = [int(n) for n in re.findall(r"\d+", trace.groups.get(row, ("", ""))[1])]
    size = trace.collectives[row][2]
    listed = trace.about.get("deviceProperties")
    per_node = len(listed) if isinstance(listed, list) else 0
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
    """Tell the run what its collectives and its cut products should take."""
    for meeting in run.meetings:
        rank, op = next(iter(meeting.of.items()))
        trace = traces[rank]
        told = trace.collectives.get(op.row)
        time = expected_time(accounts[rank].name, *told, nodes_of(trace, op.row)) if told else None
        # a third above the law is within what was measured on sound machines
        if time is not None and meeting.transfer > 1.33e9 * time:
            meeting.expected = round(1e9 * time)
    for trace, account, found in zip(traces, accounts, run.operations, strict=True):
        for pieces, whole in _cut_products(trace, account, found):
            pieces[0].merged = whole
            for op in pieces[1:]:
                op.merged = 0
                if op.call:
                    op.call.merged = True


def _cut_products(
    trace: Trace, account: Account, found: list[Operation]
) -> Iterator[tuple[list[Operation], int]]:
    """Runs of like products, and the ns of one that does their work at once."""
    ordered = sorted((op for op in found if op.kind == COMPUTE), key=lambda op: op.start)
    group: list[Operation] = []
    last = None
    for op in [*ordered, None]:
        known = trace.products.get(trace.device.outer[op.row]) if op else None
        if known != last or known is None:
            if (
                last is not None
                and len(group) >= PIECES
                and (whole := _whole(account.name, last, group))
            ):
                yield group, whole
            group = []
        if op and known is not None:
            group.append(op)
        last = known


def _whole(device: str, known: tuple, group: list[Operation]) -> int | None:
    """ns of one product in place of a group: what the pieces took, scaled by the law."""
    shape = product_shape(*known[:3])
    key = catalog_key(device) if device else None
    if not shape or not key:
        return None
    (batch, rows, depth, columns), form = shape
    chip, peak = accelerator(key), getattr(accelerator(key), form, None)
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
    return math.ceil(took * min(1.0, ratio))
