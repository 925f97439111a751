"""The engines of served models, fitted to measured rows; read by `lightspeed_models.served`.

What GPUs reach (a share of bandwidth, a share of peak, hops, time a row) is common to the engines;
each has launches and a front of its own, held to what is common where its rows say little: few
models were served with each. Left out are the rows that `served.measured_rows` refuses, and rows
alike in all that they say whose times between tokens differ by more than a quarter. The bound and
this last rule were stated before any fit; that wide layouts and rows without a count of workers are
refused was decided after a look at fits, for reasons that need no error.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from lightspeed_models.llm.step import Bill, Engine
from lightspeed_models.served import ENGINES, Measured, between, first

__all__ = ("Table", "contradicted", "engines_of", "fit", "intervals", "left_out", "spread")

ALIKE = 1.25  # rows alike in all that they say may differ by this
# Names of the constants, where each starts, and how far (in logarithms) it may go from there; an
# engine's own from the common one.
COMMON = {
    "share": (0.75, 0.3), "math": (0.5, 0.3), "hop": (1e-6, 0.5), "row": (2e-5, 1.0),
    "host": (4e-5, 9.0), "expert_host": (7e-5, 9.0),
}  # fmt: skip
OWN = ("host", "expert_host")
NEAR = 0.1
FIRST = {"front": (0.02, 3.0), "ahead": (2.0, 3.0), "crowd": (0.1, 3.0), "reading": (2.0, 3.0)}
FIRST_OWN, FIRST_NEAR = ("front", "ahead", "crowd"), 1.2
STEP_OFF, FIRST_OFF = 0.1, 0.3  # beyond these (in logarithms) a row counts less


class Table:
    """Measured rows as columns: bills of their three steps, and what else their times need."""

    def __init__(self, rows: Sequence[Measured]) -> None:
        runs = [row.run for row in rows]
        self.rows = rows
        self.decoding, self.mixed, self.own = (
            stacked([getattr(run, name)() for run in runs])
            for name in ("decoding", "mixed", "own_chunk")
        )
        self.reads, self.prompt, self.crowd, self.waiting = (
            np.array([getattr(run, name) for run in runs], float)
            for name in ("reads", "prompt", "crowd", "waiting")
        )
        self.engine = np.array([ENGINES.index(row.engine) for row in rows])
        self.model = np.array([id_of(row) for row in rows])
        self.per_token = np.array([row.per_token for row in rows])
        self.first_token = np.array([row.first_token for row in rows])
        self.together = np.array([run.together for run in runs])

    def part(self, mask: Any) -> Table:
        """The rows of a mask."""
        found = object.__new__(Table)
        for name, value in vars(self).items():
            if isinstance(value, Bill):
                value = Bill(*(getattr(value, f.name)[mask] for f in fields(Bill)))
            elif isinstance(value, np.ndarray):
                value = value[mask]
            setattr(found, name, value)
        found.rows = [row for row, kept in zip(self.rows, mask, strict=True) if kept]
        return found

    def between(self, engine: Engine) -> Any:
        """Seconds between tokens, by an engine whose constants may be arrays."""
        decoding, mixed = self.decoding.step(engine).time, self.mixed.step(engine).time
        return between(self.reads, decoding, mixed)

    def first_by(self, steps: Engine) -> Callable[[Engine], Any]:
        """Engine -> seconds to the first token; what a step takes is computed once."""
        decoding, chunk = self.decoding.step(steps).time, self.own.step(steps).time
        wait = self.waiting * self.between(steps)
        return lambda engine: wait + first(self.prompt, self.crowd, decoding, chunk, engine)

    def times(self, engine: Engine) -> tuple[Any, Any]:
        """Seconds between tokens, and to the first."""
        return self.between(engine), self.first_by(engine)(engine)

    def engine_of(self, constants: Mapping[str, Any]) -> Engine:
        """The engine of each row, of constants that are one number or one for each engine."""
        each = {n: v[self.engine] if np.ndim(v) else v for n, v in constants.items()}
        return Engine(**each)


def id_of(row: Measured) -> str:
    """The model of a row, whoever quantised it: rows of one shape are left out together."""
    return str(row.run.model)


def stacked(bills: Sequence[Bill]) -> Bill:
    return Bill(*(np.array([getattr(b, f.name) for b in bills], float) for f in fields(Bill)))


def contradicted(rows: Sequence[Measured]) -> Any:
    """A mask of rows whose times between tokens are off those alike by more than `ALIKE`."""
    groups = defaultdict(list)
    for i, row in enumerate(rows):
        groups[row.run, row.system, row.engine, row.number_format].append(i)
    found = np.zeros(len(rows), bool)
    for own in groups.values():
        times = [rows[i].per_token for i in own]
        found[own] = max(times) > ALIKE * min(times)
    return found


def engines_of(constants: Mapping[str, Any]) -> dict[str, Engine]:
    """Engine by engine: each constant is one number, or one for each of `ENGINES`."""
    return {
        key: Engine(**{n: float(v[i]) if np.ndim(v) else float(v) for n, v in constants.items()})
        for i, key in enumerate(ENGINES)
    }


def fit(table: Table) -> dict[str, Any]:
    """The constants that fit the rows of a table, which holds only rows to be fitted."""
    steps = _fitted(table, table.between, table.per_token, COMMON, OWN, NEAR, STEP_OFF)
    prompt = table.part(table.waiting == 0)  # what those wait for, no front explains
    told = prompt.first_by(prompt.engine_of(steps))
    return steps | _fitted(
        prompt, told, prompt.first_token, FIRST, FIRST_OWN, FIRST_NEAR, FIRST_OFF
    )


def _fitted(
    table: Table, law: Callable[[Engine], Any], measured: Any,
    names: Mapping[str, tuple[float, float]], own: Sequence[str], near: float, off: float,
) -> dict[str, Any]:  # fmt: skip
    """Least squares in logarithms; outliers and the many rows of one model count less."""
    from scipy.optimize import least_squares

    start = np.log([value for value, _ in names.values()])
    wide = np.array([sigma for _, sigma in names.values()])
    zeros = np.zeros(len(own) * len(ENGINES))
    pairs = list(zip(table.model, table.engine, strict=True))
    many = Counter(pairs)
    weight = np.array([many[pair] ** -0.5 for pair in pairs])
    target = np.log(measured)

    def constants(logs: Any) -> dict[str, Any]:
        found: dict[str, Any] = dict(zip(names, np.exp(logs[: len(names)]), strict=True))
        for i, name in enumerate(own):
            each = logs[len(names) + i * len(ENGINES) :][: len(ENGINES)]
            found[name] = found[name] * np.exp(each)
        for name in {"share", "math"} & found.keys():
            found[name] = min(found[name], 1.0)
        return found

    def residuals(logs: Any) -> Any:
        far = (np.log(law(table.engine_of(constants(logs)))) - target) / off
        soft = np.sign(far) * np.sqrt(2 * (np.sqrt(1 + far**2) - 1))
        held = (logs - np.concatenate([start, zeros])) / np.concatenate([wide, zeros + near])
        return np.concatenate([weight * soft, held])

    # MINPACK: other methods take a decomposition of LAPACK, whose threads spin on a busy machine.
    return constants(least_squares(residuals, np.concatenate([start, zeros]), method="lm").x)


def left_out(table: Table) -> tuple[Any, Any]:
    """(between tokens, to the first) of each row, by constants fitted without its model."""
    learn = table.together & ~contradicted(table.rows)
    found = np.full((2, len(table.rows)), np.nan)
    for model in np.unique(table.model):
        others, its = learn & (table.model != model), table.model == model
        part = table.part(its)
        found[:, its] = part.times(part.engine_of(fit(table.part(others))))
    return found[0], found[1]


def intervals(table: Table, told: Any, measured: Any) -> tuple[Any, Any]:
    """For each row the ends of an 80 % interval, as parts of what was told: of the ratios measured
    over told of the other models, each of which counts alike, and its kind of layout.
    """
    low, high = np.ones(len(told)), np.ones(len(told))
    ratio = measured / told
    for model in np.unique(table.model):
        for together in (True, False):
            others = (table.model != model) & (table.together == together)
            its = (table.model == model) & (table.together == together)
            low[its], high[its] = spread(ratio[others], table.model[others])
    return low, high


def spread(ratio: Any, model: Any) -> tuple[float, float]:
    """The 10 and 90 % quantiles of ratios, each model's rows together weighing their root. Of n
    models, a tenth of a new one's rows lies beyond what n in n + 1 of a tenth of theirs does.
    """
    if not len(ratio):
        return 0.0, float("inf")
    many = Counter(model.tolist())
    tail = 0.1 * len(many) / (len(many) + 1)
    order = np.argsort(ratio)
    weight = np.cumsum([many[name] ** -0.5 for name in model[order].tolist()])
    ends = np.searchsorted(weight, [tail * weight[-1], (1 - tail) * weight[-1]])
    low, high = ratio[order][ends].tolist()
    return low, high
