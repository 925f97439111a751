"""Every plan of a `Space` held against the laws of time and memory: nothing is pruned, so the best
is the best.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lightspeed.elementwise import Result, any_of, maximum, where
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.plan import Machine, Plan
from lightspeed_models.stack_fit import expected_times
from lightspeed_models.step_memory import fullest_places, stage_memory
from lightspeed_models.training_step import work
from lightspeed_tools.plan.inputs import Setting
from lightspeed_tools.plan.space import Space

# Of the memory, what a plan may be predicted to take: from 0.82 on, first picks of the sweep fail.
ROOM = 0.8
BLOCK = 8192  # rows at once: what they need stays in a core's caches


@dataclass(frozen=True)
class Found:
    """What a search found. Of the plans that pass: `place` in the space, `seconds` of a step,
    `memory` (byte). `refused`: rule -> plans, which add up to the `total` with those that pass.
    `nearest` is the leanest of the plans that memory refused, and what it needs.
    """

    space: Space
    place: np.ndarray
    seconds: np.ndarray
    memory: np.ndarray
    refused: dict[str, int]
    nearest: tuple[int, float] | None

    @property
    def total(self) -> int:
        return self.space.total

    def __len__(self) -> int:
        return len(self.place)

    def column(self, name: str) -> np.ndarray:
        """Return a column of the valid plans."""
        row, stage, again = np.unravel_index(self.place, self.space.allowed.shape)
        if name in ("stage", "recompute"):
            return {"stage": stage, "recompute": again}[name]
        return self.space.rows[name][row]

    def best(self, mask: np.ndarray | None = None) -> int | None:
        """Return the index of the fastest valid plan (within a mask), the leaner of equals."""
        among = np.arange(len(self), dtype=np.intp) if mask is None else np.flatnonzero(mask)
        if not len(among):
            return None
        return int(among[np.lexsort((self.memory[among], self.seconds[among]))[0]])


def seconds_of(
    model: Decoder, sequence: int, plan: Plan, machine: Machine, setting: Setting
) -> Result:
    """Return the seconds of a step of one or many plans, in the middle of their class of runs."""
    amounts = work(model, sequence, plan, machine, setting.stack)
    seconds = setting.runs.centre * expected_times(amounts, setting.stack)
    alone = (plan.stage == 3) & (plan.pipeline == 1)
    if setting.sharded is None or not any_of(alone):
        return seconds
    return where(alone, seconds_of(model, sequence, plan, machine, setting.sharded), seconds)


def bytes_of(
    model: Decoder, sequence: int, plan: Plan, machine: Machine, setting: Setting
) -> Result:
    """Return the bytes on the fullest GPU: the total of `expected_memory`, without its parts."""
    split, holds = "tensor+sequence", setting.holds
    totals = (
        stage_memory(model, sequence, plan, machine, holds, place, split).total
        for place in fullest_places(plan, holds)
    )
    return functools.reduce(maximum, totals)


def _blocks(plans: Space) -> Iterator[tuple[np.ndarray, int, int]]:
    """(rows, their order of ranks, stages of ZeRO that one of them may have), a few at a time."""
    some, deep = plans.allowed.any(axis=(1, 2)), plans.allowed[:, 2:].any(axis=(1, 2))
    for order, wide in itertools.product((0, 1), (False, True)):
        own = np.flatnonzero(some & (plans.rows["order"] == order) & (deep == wide))
        for start in range(0, len(own), BLOCK):
            yield own[start : start + BLOCK], order, 4 if wide else 2


def search(
    model: Decoder, sequence: int, plans: Space, machine: Machine, setting: Setting,
    room: float = ROOM,
) -> Found:  # fmt: skip
    """Return time and memory of every plan of a `Space` that no rule forbids."""
    most = room * machine.capacity
    places = np.arange(plans.allowed.size, dtype=np.intp).reshape(plans.allowed.shape)
    passing: list[tuple[np.ndarray, ...]] = []
    nearest, too_large = None, 0
    for at, order, stages in _blocks(plans):
        allowed, flat = plans.allowed[at, :stages], places[at, :stages]
        many = plans.plans(at, order, stages)
        sizes = np.broadcast_to(bytes_of(model, sequence, many, machine, setting), allowed.shape)
        fits = allowed & (sizes <= most)
        too_large += int(allowed.sum() - fits.sum())
        over = np.where(allowed & ~fits, sizes, np.inf)
        leanest = int(np.argmin(over))
        if over.flat[leanest] < (nearest[1] if nearest else np.inf):
            nearest = (int(flat.flat[leanest]), float(over.flat[leanest]))
        own = fits.any(axis=(1, 2))
        if own.any():
            some, fits = plans.plans(at[own], order, stages), fits[own]
            times = seconds_of(model, sequence, some, machine, setting)
            times = np.broadcast_to(times, fits.shape)
            passing.append((flat[own][fits], times[fits], sizes[own][fits]))
    refused = plans.refused | {"memory": too_large}
    if not passing:
        empty = np.array([])
        return Found(plans, empty.astype(np.intp), empty, empty, refused, nearest)
    place, seconds, memory = (np.concatenate(column) for column in zip(*passing, strict=True))
    return Found(plans, place, seconds, memory, refused, nearest)
