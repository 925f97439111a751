"""Load tests and published rows of serving, held against what is expected of them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from lightspeed_models.llm import Decoder
from lightspeed_models.llm.shipped import shape_of
from lightspeed_models.llm.step import engine
from lightspeed_models.served import Served
from lightspeed_models.served_ranges import MOST_INSIDE, Kind
from lightspeed_models.served_rows import ALIASES, BEATEN, Measured, measured_rows
from lightspeed_tools.serve.files import LoadTest, table_of, text_of
from lightspeed_tools.serve.plan import Job, published

NEEDED = ("model_path", "system", "isl", "osl", "silicon_tpot_ms", "silicon_ttft_ms")


def read_rows(path: Path) -> list[Mapping[str, Any]]:
    """The rows of a table with the columns of `silicon_sample` (.csv, .csv.gz).

    Raises ValueError for a file that is none.
    """
    table = table_of(text_of(path))
    try:
        rows = list(table)
    except csv.Error as error:
        raise ValueError(f"{path} is not a table: {error}") from error
    if missing := [name for name in NEEDED if name not in (table.fieldnames or ())]:
        raise ValueError(f"{path} has no column {', '.join(missing)}")
    if not rows:
        raise ValueError(f"{path} has a header and no rows")
    return list(rows)


@dataclass(frozen=True)
class Verdict:
    """Rows compared with their predictions: the judged rows, with predicted over measured, and the
    reasons why others were not judged.
    """

    rows: int
    judged: tuple[Measured, ...]
    per_token: Any
    first_token: Any
    refused: Mapping[str, int]

    def as_data(self) -> dict[str, Any]:
        """Return the figures, errors in per cent."""
        return {
            "rows": self.rows,
            "judged": len(self.judged),
            "refused": dict(self.refused),
            "beats_bound": self.refused.get(BEATEN, 0),
            "tpot": _errors(self.per_token),
            "ttft": _errors(self.first_token),
        }


def _errors(ratio: Any) -> dict[str, float] | None:
    if not len(ratio):
        return None
    off = 100 * np.abs(ratio - 1)
    figures = np.median(off), off.mean(), np.quantile(off, 0.9)
    return dict(zip(("median", "mean", "p90"), (round(float(f), 2) for f in figures), strict=True))


def check(rows: Iterable[Mapping[str, Any]], other: Decoder | None = None) -> Verdict:
    """Return the `Verdict` on these rows, by the shipped engines; `other` is the model of rows
    whose model name is unknown.
    """
    rows = list(rows)
    by_number, refused = measured_rows(rows, other)
    readable = tuple(by_number.values())
    times = np.array([one.told(engine(one.engine)) for one in readable]).reshape(-1, 2)
    measured = np.array([(one.per_token, one.first_token) for one in readable]).reshape(-1, 2)
    ratios = (times / measured).T
    reasons = dict(Counter(refused.values()).most_common())
    return Verdict(len(rows), readable, ratios[0], ratios[1], reasons)


@dataclass(frozen=True)
class Judgement:
    """A load test beside the prediction for its layout and load: both times with their ranges."""

    test: LoadTest
    run: Served
    between: float
    first: float
    kind: Kind

    @property
    def levels(self) -> tuple[float, float]:
        """Measured over predicted: between tokens and to the first token."""
        return self.test.between / self.between, self.test.first / self.first

    def inside(self, which: int) -> bool:
        """Whether a time is within its range: between tokens (0) or to the first token (1)."""
        low, high = (self.kind.between, self.kind.first)[which]
        return low <= self.levels[which] <= high

    def doubts(self, job: Job, name: str) -> list[str]:
        """Return possible faults: those of the file first."""
        test, notes = self.test, []
        if test.drafts:
            notes.append(
                f"it drafted ahead: {test.drafts:.3g} tokens a step, which was told too, without"
                " what the drafts cost"
            )
        if test.failed:
            notes.append(f"{test.failed} requests failed: those that were served had more room")
        if test.model and name and (shape_of(test.model) or test.model) != (shape_of(name) or name):
            notes.append(f"the file is of {test.model}, you name {name}")
        if self.run.waiting:
            notes.append(f"memory holds {self.run.places():.0f} of them: the others wait")
        if self.run.inside > MOST_INSIDE:
            notes.append(f"over {MOST_INSIDE} in flight a first token is not promised")
        if not test.median:
            notes.append("the file has means, no medians")
        slow = [level for which, level in enumerate(self.levels) if not self.inside(which)]
        if any(level > 1 for level in slow):
            notes.append("slower than usual: eager mode, an old release, PCIe between the GPUs, "
                         "shared machines, or a burst in a short test")  # fmt: skip
        elif slow:
            notes.append("faster than usual: prefixes in the cache, narrower weights or caches than"
                         " said, drafts, or fewer in flight than asked")  # fmt: skip
        return notes


def judge(test: LoadTest, job: Job) -> Judgement:
    """Predict a load test from a job's layout, or from one group of its GPUs."""
    own = ALIASES.get(test.engine.lower().replace("_", "-"), job.engine)
    job = replace(
        job, engine=own, prompt=max(1, round(test.prompt)), output=max(2, round(test.output))
    )
    tensor, data = job.layout or (job.gpus, 1)
    workers = max(1, job.gpus // (tensor * data))
    run = replace(
        job.served(tensor, data, bool(test.rate)), requests=max(1.0, test.inside / workers)
    )
    constants = job.constants
    between, first = run.between(constants), run.first(constants)
    if test.drafts:  # a step checks the guesses and gives so many tokens
        between /= test.drafts
    return Judgement(test, run, between, first, job.kind)


def nearest(run: Served, job: Job, many: int = 3) -> list[Measured]:
    """The nearest measured rows. Another model or chip is as far as a load of e times; another
    engine or format half of that.
    """

    def far(row: Measured) -> float:
        other = row.run
        apart = 4 * (other.model.layers != run.model.layers)
        apart += 2 * (other.decode.memory != run.decode.memory)
        apart += (row.engine != job.engine) + (row.number_format != job.formats.products)
        apart += 2 * (other.together != run.together)
        sizes = (
            (other.requests, run.requests),
            (other.prompt, run.prompt),
            (other.output, run.output),
            (other.decode.gpus, run.decode.gpus),
        )
        return apart + sum(abs(log(a / b)) for a, b in sizes)

    return sorted(published(), key=far)[:many]
