"""Every plan of a model on so many GPUs: all divisors, none left out.

A row is what decides who holds what: degrees, chunks, schedule, micro-batch, order of ranks. Each
row stands for all ZeRO stages and recomputations, which are two further axes: laws are elementwise,
so what does not depend on an axis is worked out once for it. Rows that a rule forbids are counted
by that rule.

Sequence parallelism, overlaps and narrow formats never hurt in the law, so they are no axes: they
would multiply the count of plans and choose nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.plan import AXES, Plan, cuts

COLUMNS = (
    "data", "tensor", "pipeline", "context", "expert", "micro_size", "micro_batches", "chunks",
    "zero_bubble", "order",
)  # fmt: skip
# The two orders of ranks that Megatron offers: replicas next to each other, or stages.
ORDERS = (AXES, ("tensor", "context", "pipeline", "data"))
STAGES = np.arange(4, dtype=np.intp)
RECOMPUTE = np.array(["selective", "full"])
FILLED = "fills_pipeline"  # of what a stack can do: it asserts micro-batches for all stages but one
OF_PLAN = (*COLUMNS[:8], "stage", "recompute")
# Rule -> what it says, in the order in which they are asked.
SPOKEN = {"zero": "stage", "micro_batch": "micro_size"}  # as all tools call them -> the column
RULES = {
    "batch": "the batch is not a whole number of micro-batches for each replica",
    "layers": "more stages than layers",
    "heads": "more tensor ranks than attention heads",
    "sequence": "the sequence is not divided by context (twice, to balance it) times tensor",
    "schedule": "an interleaved pipeline needs micro-batches in multiples of its stages",
    "filled": "fewer micro-batches than stages, less one, which this stack's pipeline asserts",
    "zero": "ZeRO 2 and 3 do not go with a pipeline",
    "stack": "beyond what the stack can do",
    "limits": "not what --fix and --limit ask for",
    "memory": "does not fit in the memory",
}


def divisors(n: int) -> np.ndarray:
    """All divisors of a number, ascending.

    >>> divisors(12).tolist()
    [1, 2, 3, 4, 6, 12]
    """
    low = [k for k in range(1, int(n**0.5) + 1) if n % k == 0]
    return np.array(sorted({*low, *(n // k for k in low)}))


@dataclass(frozen=True)
class Space:
    """`rows`: column -> values. `allowed`: rows x stages x recomputations, False where a rule
    forbids it. `refused`: rule -> plans. `total`: all of them.
    """

    rows: dict[str, np.ndarray]
    allowed: np.ndarray
    refused: dict[str, int]
    total: int

    def __len__(self) -> int:
        return len(self.rows["data"])

    def plans(self, at: Any, order: int, stages: int) -> Plan:
        """Return the plans of the rows `at`, all of one order, in the first `stages` stages of
        ZeRO, as one `Plan` of arrays.
        """
        one: dict[str, Any] = {n: self.rows[n][at][:, None, None] for n in COLUMNS[:8]}
        one["schedule"] = np.where(self.rows["zero_bubble"][at], "zb_h1", "1f1b")[:, None, None]
        one |= {"stage": STAGES[None, :stages, None], "recompute": RECOMPUTE[None, None, :]}
        return Plan(**one, placement=ORDERS[order])

    def plan(self, flat: int) -> Plan:
        """Return one plan by its index among all."""
        row, stage, again = np.unravel_index(flat, self.allowed.shape)
        one = {n: int(self.rows[n][row]) for n in COLUMNS[:8]}
        return Plan(
            **one, stage=int(STAGES[stage]), recompute=str(RECOMPUTE[again]),
            schedule="zb_h1" if self.rows["zero_bubble"][row] else "1f1b",
            placement=ORDERS[int(self.rows["order"][row])],
        )  # fmt: skip


def space(
    model: Decoder, gpus: int, per_node: int, sequences: int, sequence: int,
    able: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None, limits: Mapping[str, int] | None = None,
) -> Space:  # fmt: skip
    """Return the `Space` of a model on `gpus` GPUs, with `sequences` per step. `able` is the most
    that a stack can do; `fixed` and `limits` are the user's constraints.
    """
    able = dict(able or {})
    fixed, limits = (
        {SPOKEN.get(name, name): value for name, value in dict(names or {}).items()}
        for names in (fixed, limits)
    )
    for law, names in (("--fix", fixed), ("--limit", limits)):
        for name in names:
            one_of("plan", law, name, OF_PLAN)
    for name, most in limits.items():
        checked("plan", f"--limit {name}", most, count(low=0 if name == "stage" else 1))
    degrees, sizes = _degrees(model, gpus), divisors(sequences)
    each, refused = len(STAGES) * len(RECOMPUTE), dict.fromkeys(RULES, 0)
    # Rows that each becomes: micro-batches that the batch is a whole number of, orders of ranks.
    sized = _sizes_of(degrees["data"], sizes, sequences)
    rows = sized * (1 + _ordered_anew(degrees, per_node))
    refused["batch"] = each * int(len(sized) * len(sizes) - sized.sum())
    total = each * int(rows.sum()) + refused["batch"]
    good = np.ones(len(rows), bool)
    for rule, broken in _broken_by_degrees(degrees, model, sequence).items():
        refused[rule] = each * int(rows[good & broken].sum())
        good &= ~broken
    degrees = {n: column[good & (sized > 0)] for n, column in degrees.items()}
    table = _with_orders(_with_sizes(degrees, sizes, sequences), per_node)
    allowed = np.ones((len(table["data"]), len(STAGES), len(RECOMPUTE)), bool)
    for rule, broken in _broken(table, able, fixed, limits).items():
        rest = allowed & ~broken
        refused[rule] = int(allowed.sum() - rest.sum())
        allowed = rest
    return Space(table, allowed, refused, total)


def _degrees(model: Decoder, gpus: int) -> dict[str, np.ndarray]:
    """Every data x tensor x pipeline x context of so many GPUs, with every number of expert ways
    that divides experts and ranks, and every number of chunks that the layers can be cut in.
    """
    each = divisors(gpus)
    cut = {int(p): cuts(model.depth, int(p)) for p in each}
    ways = divisors(model.experts) if model.experts else np.array([1], dtype=np.intp)
    blocks = []
    for tensor in each:
        for pipeline in divisors(gpus // tensor):
            rest = divisors(gpus // tensor // pipeline)  # context ranks
            stage = gpus // pipeline
            expert = ways[stage % ways == 0]
            schedules = [(1, 0), *((v, 0) for v in cut[int(pipeline)])]
            if pipeline > 1:
                schedules.append((1, 1))
            c, e, s = np.meshgrid(
                rest, expert, np.arange(len(schedules), dtype=np.intp), indexing="ij"
            )
            kinds = np.array(schedules)[s.ravel()]
            n = c.size
            blocks.append(
                np.column_stack(
                    [
                        stage // tensor // c.ravel(), np.full(n, tensor), np.full(n, pipeline),
                        c.ravel(), e.ravel(), kinds[:, 0], kinds[:, 1],
                    ]
                )
            )  # fmt: skip
    table = np.concatenate(blocks).astype(np.int32)
    names = ("data", "tensor", "pipeline", "context", "expert", "chunks", "zero_bubble")
    return dict(zip(names, table.T, strict=True))


def _sizes_of(data: np.ndarray, sizes: np.ndarray, sequences: int) -> np.ndarray:
    """How many of the micro-batches the batch is a whole number of, for each number of replicas."""
    each, where = np.unique(data, return_inverse=True)
    return (sequences % (each[:, None] * sizes) == 0).sum(axis=1)[where]


def _with_sizes(degrees: dict, sizes: np.ndarray, sequences: int) -> dict[str, np.ndarray]:
    """Each row with each micro-batch that the batch is a whole number of."""
    row, size = np.nonzero(sequences % (degrees["data"][:, None] * sizes[None, :]) == 0)
    rows = {n: column[row] for n, column in degrees.items()}
    rows["micro_size"] = sizes[size]
    rows["micro_batches"] = sequences // (rows["data"] * rows["micro_size"])
    rows["order"] = np.zeros(len(row), int)
    return rows


def _with_orders(rows: dict[str, np.ndarray], per_node: int) -> dict[str, np.ndarray]:
    """The rows again with stages next to each other, where the order of ranks changes who shares a
    node.
    """
    other = np.flatnonzero(_ordered_anew(rows, per_node))
    count = len(rows["data"])
    both = np.concatenate([np.arange(count, dtype=np.intp), other])
    return {n: c[both] for n, c in rows.items()} | {"order": np.repeat([0, 1], [count, len(other)])}


def _ordered_anew(rows: dict[str, np.ndarray], per_node: int) -> np.ndarray:
    near = rows["tensor"] * rows["context"]
    return (rows["pipeline"] > 1) & (rows["data"] > 1) & (near < per_node)


def _broken_by_degrees(rows, model, sequence) -> dict[str, np.ndarray]:
    """Rule -> the rows that break it, of those that ask for degrees alone."""
    ring = np.where(rows["context"] > 1, 2 * rows["context"], 1)
    return {
        "layers": rows["pipeline"] > model.depth,
        "heads": rows["tensor"] > model.heads,
        "sequence": sequence % (ring * rows["tensor"]) != 0,
    }


def _broken(rows, able, fixed, limits) -> dict[str, np.ndarray]:
    """Rule -> the rows (x stages x recomputations) that break it, of the other rules."""
    r = {n: column[:, None, None] for n, column in rows.items()}
    r |= {"stage": STAGES[None, :, None], "recompute": RECOMPUTE[None, None, :]}

    def beyond(most: Mapping[str, Any]) -> Any:
        out: Any = np.zeros((1, 1, 1), bool)
        for name, value in most.items():
            if name == FILLED:
                continue
            over = ~np.isin(r[name], value) if isinstance(value, list) else r[name] > value
            out = out | over
        return out

    other: Any = np.zeros((1, 1, 1), bool)
    for name, value in fixed.items():
        if name == "recompute":
            one_of("plan", "--fix recompute", value, tuple(RECOMPUTE.tolist()))
        other = other | (r[name] != value)
    unfilled = bool(able.get(FILLED)) & (r["micro_batches"] < r["pipeline"] - 1)
    return {
        "schedule": (r["chunks"] > 1) & (r["micro_batches"] % r["pipeline"] != 0),
        "filled": unfilled,
        "zero": (r["stage"] >= 2) & (r["pipeline"] > 1),
        "stack": beyond(able),
        "limits": other | beyond(limits),
    }


def rules_broken(model: Decoder, plan: Plan, sequence: int, able: Mapping[str, Any]) -> list[str]:
    """Return the rules that forbid this plan, in order."""
    rows = {n: np.array([getattr(plan, n)]) for n in COLUMNS[:8]}
    rows["zero_bubble"] = np.array([int(plan.schedule == "zb_h1")], dtype=np.intp)
    again = int(plan.recompute == "full")
    broken = _broken_by_degrees(rows, model, sequence) | _broken(rows, dict(able), {}, {})
    shape = (1, len(STAGES), len(RECOMPUTE))
    return [
        n
        for n, at in broken.items()
        if np.broadcast_to(at[:, None, None] if at.ndim == 1 else at, shape)[0, plan.stage, again]
    ]


def sequences_of(batch: int, sequence: int) -> int:
    """Return a batch's whole sequences; raises BadArgument with the nearest valid batch."""
    if batch % sequence or batch < sequence:
        near = max(1, round(batch / sequence)) * sequence
        hint = f"The nearest that is: {near:,} tokens, {near // sequence:,} sequences."
        raise BadArgument("plan", "batch", batch, f"whole sequences of {sequence:,} tokens", hint)
    return batch // sequence
