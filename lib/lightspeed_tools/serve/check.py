"""Published or measured rows of serving, held against the expectation."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from lightspeed_models.evidence.pairings.served import printed
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.inference_step import engine
from lightspeed_models.served import BEATEN, Measured, Served, measured_rows
from lightspeed_tools.serve.plan import Job

NEEDED = ("model_path", "system", "isl", "osl", "silicon_tpot_ms", "silicon_ttft_ms")


def read_rows(path: Path, job: Job | None, model: str) -> list[Mapping[str, Any]]:
    """The rows of a file: a table with the columns of `silicon_sample` (.csv, .csv.gz), or what
    `vllm bench serve` or SGLang's `bench_serving` wrote (JSON, or a JSON object a line).

    Raises ValueError for a file that is none of these.
    """
    data = path.read_bytes()
    try:
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        text = data.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read: {error}") from error
    if text.lstrip()[:1] in ("{", "["):
        return [of_benchmark(one, job, model) for one in _objects(path, text)]
    rows = list(csv.DictReader(io.StringIO(text)))
    missing = [name for name in NEEDED if not rows or name not in rows[0]]
    if missing:
        raise ValueError(f"{path} has no column {', '.join(missing)}, or no row")
    return list(rows)


def _objects(path: Path, text: str) -> list[Mapping[str, Any]]:
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        try:
            whole = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is no JSON: {error}") from error
    found = whole if isinstance(whole, list) else [whole]
    if not all(isinstance(one, Mapping) for one in found):
        raise ValueError(f"{path}: expected an object for each run of the benchmark")
    return found


def of_benchmark(one: Mapping[str, Any], job: Job | None, model: str) -> dict[str, Any]:
    """The row of a run of a benchmark: lengths, concurrency and times are its own; model, GPUs and
    format are told beside it, since it does not say them.
    """
    needed = (
        "completed", "total_input_tokens", "total_output_tokens", "max_concurrency",
        "mean_ttft_ms", "mean_tpot_ms",
    )  # fmt: skip
    if missing := [name for name in needed if not one.get(name)]:
        raise ValueError(f"the benchmark does not say {', '.join(missing)}")
    if job is None:
        raise ValueError("a benchmark does not name its GPUs: add --hardware and --gpus")
    each = one["completed"]
    return {
        "backend": job.engine,
        "model_path": model or one.get("model_id", ""),
        "system": job.hardware,
        "precision": job.number_format,
        "mode": "agg",
        "isl": max(1, round(one["total_input_tokens"] / each)),
        "osl": max(1, round(one["total_output_tokens"] / each)),
        "concurrency": one["max_concurrency"],
        "tp_size": job.gpus,
        "silicon_ttft_ms": one.get("median_ttft_ms") or one["mean_ttft_ms"],
        "silicon_tpot_ms": one.get("median_tpot_ms") or one["mean_tpot_ms"],
    }


@dataclass(frozen=True)
class Verdict:
    """Rows beside what was expected of them: those that were judged, with the ratios told over
    measured, and the reasons of the others.
    """

    rows: int
    judged: tuple[Measured, ...]
    per_token: Any
    first_token: Any
    refused: Mapping[str, int]

    def as_data(self) -> dict[str, Any]:
        """The figures, errors in per cent."""
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


def check(rows: Iterable[Mapping[str, Any]]) -> Verdict:
    """The `Verdict` of these rows, by the engines as shipped."""
    rows = list(rows)
    found, refused = measured_rows(rows)
    judged = tuple(found.values())
    told = np.array([expected(one) for one in judged]).reshape(-1, 2)
    measured = np.array([(one.per_token, one.first_token) for one in judged]).reshape(-1, 2)
    ratios = (told / measured).T
    reasons = dict(Counter(refused.values()).most_common())
    return Verdict(len(rows), judged, ratios[0], ratios[1], reasons)


def expected(one: Measured) -> tuple[float, float]:
    """(between tokens, to the first) that the engine of a row is expected to take."""
    constants = engine(one.engine)
    return one.run.between(constants), one.run.first(constants)


@functools.cache
def published() -> tuple[Measured, ...]:
    """The measured rows that ship."""
    return tuple(measured_rows(printed(dataset("served_models")))[0].values())


def nearest(run: Served, job: Job, many: int = 3) -> tuple[list[Measured], list[str]]:
    """(the nearest measured rows, what none of all rows shares with this run). Another model or
    chip is as far as a load of e times; another engine or format half of that.
    """
    rows = published()

    def far(row: Measured) -> float:
        other = row.run
        apart = 4 * (other.model.layers != run.model.layers)
        apart += 2 * (other.decode.memory != run.decode.memory)
        apart += (row.engine != job.engine) + (row.number_format != job.number_format)
        apart += 2 * (other.together != run.together)
        sizes = (
            (other.requests, run.requests),
            (other.prompt, run.prompt),
            (other.output, run.output),
            (other.decode.gpus, run.decode.gpus),
        )
        return apart + sum(abs(log(a / b)) for a, b in sizes)

    shared = {
        "this model": any(row.run.model.layers == run.model.layers for row in rows),
        "this GPU": any(row.run.decode.memory == run.decode.memory for row in rows),
        "this engine": any(row.engine == job.engine for row in rows),
        "this number format": any(row.number_format == job.number_format for row in rows),
    }
    return sorted(rows, key=far)[:many], [what for what, there in shared.items() if not there]
