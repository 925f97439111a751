"""The engines of served models, fitted to measured rows of three publishers; read by
`lightspeed_models.served`.

What GPUs reach (a share of bandwidth, shares of peak, hops, time a row) is common to the engines;
each has launches of its own, held to what is common where its rows say little: few models were
served with each. Both times are fitted at once, each row by its publisher's own protocol. Left out
are the rows that `served_rows.measured_rows` refuses, rows alike in all that they say whose times
between tokens differ by more than a quarter, and two sets of plainly untuned software: these last
from fits alone, never from intervals.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from lightspeed.catalog import find
from lightspeed_models.llm import Bill, Engine
from lightspeed_models.llm.shipped import shape_of
from lightspeed_models.served import ENGINES, SYSTEMS, pace_of
from lightspeed_models.served_law import Load, state
from lightspeed_models.served_ranges import kind_of, unseen
from lightspeed_models.served_rows import Measured

ALIKE = 1.25  # rows alike in all that they say may differ by this
FRONT = 0.03  # s: it trades with launches, so it is held
# Names of the constants, where each starts, and how far (in logarithms) it may go from there; an
# engine's own from the common one.
COMMON = {
    "share": (0.75, 0.3), "math": (0.5, 0.3), "experts": (0.13, 0.5), "hop": (1e-6, 0.5),
    "row": (2e-5, 1.0), "host": (4e-5, 9.0), "expert_host": (7e-5, 9.0), "reading": (6e-4, 3.0),
    "expert_reading": (1.2e-3, 3.0),
}  # fmt: skip
OWN = {"host": 0.1, "expert_host": 0.1, "reading": 0.7, "expert_reading": 0.7}
OFF = (0.1, 0.25)  # beyond these (in logarithms) a row counts less: between tokens, to the first
SLOW = (("Kimi-K2.5", "h200_sxm", "cookbook"), ("DeepSeek-V3", "mi300x", "cookbook"))


class Table:
    """Measured rows as columns: bills of their two steps, and what else their times need."""

    def __init__(self, rows: Sequence[Measured]) -> None:
        runs = [row.run for row in rows]
        self.rows = list(rows)
        self.decoding = stacked([run.decoding() for run in runs])
        self.reading = stacked([run.reading for run in runs])
        loads = [run.load() for run in runs]
        self.load = Load(*(np.array([getattr(x, f.name) for x in loads]) for f in fields(Load)))
        self.waiting = np.array([run.waiting for run in runs])
        self.waves = np.array([row.waves for row in rows])
        self.engine = np.array([ENGINES.index(row.engine) for row in rows])
        self.shape = np.array([shape_of(row.model) for row in rows])
        self.system = np.array([row.system for row in rows])
        self.publisher = np.array([row.publisher for row in rows])
        self.per_token = np.array([row.per_token for row in rows])
        self.first_token = np.array([row.first_token for row in rows])
        self.together = np.array([run.together for run in runs])
        self.slow = np.array([
            (shape_of(row.model), row.system, row.publisher) in SLOW for row in rows
        ])  # fmt: skip

    def part(self, mask: Any) -> Table:
        """The rows of a mask."""
        part = object.__new__(Table)
        for name, value in vars(self).items():
            if isinstance(value, (Bill, Load)):
                kind = type(value)
                value = kind(*(getattr(value, f.name)[mask] for f in fields(kind)))
            elif isinstance(value, np.ndarray):
                value = value[mask]
            setattr(part, name, value)
        part.rows = [row for row, is_in in zip(self.rows, mask, strict=True) if is_in]
        return part

    def times(self, engine: Engine) -> tuple[Any, Any]:
        """Seconds between tokens, and to the first in the protocol of each row."""
        answer = state(pace_of(self.decoding, self.reading, engine), self.load, engine.front)
        over = np.where(self.waves > 0, answer.over(np.maximum(self.waves, 1)), answer.first)
        return answer.between, over + self.waiting * answer.between

    def engine_of(self, constants: Mapping[str, Any]) -> Engine:
        """The engine of each row, of constants that are one number or one for each engine."""
        each = {n: v[self.engine] if np.ndim(v) else v for n, v in constants.items()}
        return Engine(**each)


def stacked(bills: Sequence[Bill]) -> Bill:
    return Bill(*(np.array([getattr(b, f.name) for b in bills], float) for f in fields(Bill)))


def contradicted(rows: Sequence[Measured]) -> Any:
    """A mask of rows whose times between tokens are off those alike by more than `ALIKE`."""
    groups = defaultdict(list)
    for i, row in enumerate(rows):
        groups[row.run, row.system, row.engine, row.number_format].append(i)
    mask = np.zeros(len(rows), bool)
    for own in groups.values():
        times = [rows[i].per_token for i in own]
        mask[own] = max(times) > ALIKE * min(times)
    return mask


def engines_of(constants: Mapping[str, Any]) -> dict[str, Engine]:
    """Engine by engine: each constant is one number, or one for each of `ENGINES`."""
    return {
        key: Engine(**{n: float(v[i]) if np.ndim(v) else float(v) for n, v in constants.items()})
        for i, key in enumerate(ENGINES)
    }


def fit(table: Table) -> dict[str, Any]:
    """The constants that fit the rows of a table, by least squares in logarithms; outliers and the
    many rows of one model, engine and publisher count less.
    """
    from scipy.optimize import least_squares

    start = np.log([value for value, _ in COMMON.values()])
    wide = np.array([sigma for _, sigma in COMMON.values()])
    near = np.repeat(list(OWN.values()), len(ENGINES))
    trios = list(zip(table.shape, table.engine, table.publisher, strict=True))
    many = Counter(trios)
    weight = np.array([many[trio] ** -0.5 for trio in trios])
    is_steady = table.waiting == 0  # what others wait for, no launch explains
    targets = np.log(table.per_token), np.log(table.first_token)

    def constants(logs: Any) -> dict[str, Any]:
        values: dict[str, Any] = dict(zip(COMMON, np.exp(logs[: len(COMMON)]), strict=True))
        for i, name in enumerate(OWN):
            each = logs[len(COMMON) + i * len(ENGINES) :][: len(ENGINES)]
            values[name] = values[name] * np.exp(each)
        for name in ("share", "math", "experts"):
            values[name] = min(values[name], 1.0)
        return values | {"front": FRONT}

    def residuals(logs: Any) -> Any:
        times = table.times(table.engine_of(constants(logs)))
        far = [(np.log(t) - x) / off for t, x, off in zip(times, targets, OFF, strict=True)]
        soft = [weight * np.sign(f) * np.sqrt(2 * (np.sqrt(1 + f**2) - 1)) for f in far]
        priors = (logs - np.concatenate([start, 0 * near])) / np.concatenate([wide, near])
        return np.concatenate([soft[0], soft[1][is_steady], priors])

    # MINPACK: other methods take a decomposition of LAPACK, whose threads spin on a busy machine.
    first = np.concatenate([start, 0 * near])
    return constants(least_squares(residuals, first, method="lm", max_nfev=1500).x)


def steady(table: Table) -> Any:
    """A mask of the rows that set constants."""
    return table.together & ~contradicted(table.rows) & ~table.slow


def left_out(table: Table) -> tuple[Any, Any]:
    """(between tokens, to the first) of each row, by constants that its publisher's rows had no
    part in.
    """
    learn, times = steady(table), np.full((2, len(table.rows)), np.nan)
    for publisher in np.unique(table.publisher):
        its = table.publisher == publisher
        constants = fit(table.part(learn & ~its))
        part, engines = table.part(its), engines_of(constants)
        own = np.array(part.times(part.engine_of(constants)))
        for i in np.flatnonzero(~part.together):  # other GPUs read their prompts
            own[:, i] = part.rows[i].told(engines[part.rows[i].engine])
        times[:, its] = own
    return times[0], times[1]


def ranges(table: Table, which: int) -> list[tuple[float, float]]:
    """Ends of the 80 % range of each row, as parts of what is told, by its kind among the rows of
    other publishers: between tokens (0) or to the first (1).
    """
    learn, kinds, result = steady(table), {}, []
    for row in table.rows:
        key = (row.publisher, row.run.model, row.system, row.engine, row.number_format)
        if key not in kinds:
            others = [o for o, good in zip(table.rows, learn, strict=True) if good]
            others = [other for other in others if other.publisher != row.publisher]
            chip = SYSTEMS.get(row.system, row.system)
            lacks = unseen(others, row.run.model, chip, row.engine, row.number_format)
            kinds[key] = kind_of(lacks, find(chip))
        result.append((kinds[key].between, kinds[key].first)[which])
    return result
