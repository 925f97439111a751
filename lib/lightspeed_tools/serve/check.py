"""Published or measured rows of serving, held against the expectation."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite, log
from pathlib import Path
from typing import Any

import numpy as np

from lightspeed_models.evidence.pairings.served import printed
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.inference_step import engine
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.served import BEATEN, DRAFTS, ENGINES, Measured, Served, measured_rows
from lightspeed_tools.serve.plan import Job

NEEDED = ("model_path", "system", "isl", "osl", "silicon_tpot_ms", "silicon_ttft_ms")


def read_rows(path: Path, job: Job | None, model: str) -> list[Mapping[str, Any]]:
    """The rows of a file: a table with the columns of `silicon_sample` (.csv, .csv.gz), or what
    `vllm bench serve` or SGLang's `bench_serving` wrote (JSON, or a JSON object a line).

    Raises ValueError for a file that is none of these.
    """
    text = text_of(path)
    if text.lstrip()[:1] in ("{", "["):
        return [of_benchmark(one, job, model) for one in objects_of(path, text)]
    table = table_of(text)
    try:
        rows = list(table)
    except csv.Error as error:
        raise ValueError(f"{path} is no table: {error}") from error
    if missing := [name for name in NEEDED if name not in (table.fieldnames or ())]:
        raise ValueError(f"{path} has no column {', '.join(missing)}")
    if not rows:
        raise ValueError(f"{path} has the names of columns, and no row")
    return list(rows)


def text_of(path: Path) -> str:
    """The text of a file, zipped or not, in UTF-8 or 16; ValueError for one that has none."""
    data = path.read_bytes()
    try:
        zipped = path.suffix == ".gz" or data.startswith(b"\x1f\x8b")
        data = gzip.decompress(data) if zipped else data
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        return data.decode("utf-16" if wide else "utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read: {error}") from error


def table_of(text: str) -> csv.DictReader[str]:
    """The rows of a table whose first line has the names, parted by commas, semicolons or tabs."""
    head = text.partition("\n")[0]
    return csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=head.count))


def objects_of(path: Path, text: str) -> list[Mapping[str, Any]]:
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
    """The row of a run of a benchmark: lengths, load and times are its own; GPUs and format are
    told beside it, since it does not say them, and the model where its name says too little.

    Raises ValueError for an object that is no such run, or where nothing is told. A field that is
    no number stays as it is: the row is refused by its name later.
    """
    needed = (
        "completed",
        "total_input_tokens",
        "total_output_tokens",
        "mean_ttft_ms",
        "mean_tpot_ms",
    )
    if missing := [name for name in needed if name not in one]:
        raise ValueError(f"the benchmark does not say {', '.join(missing)}")
    if job is None:
        raise ValueError("a benchmark does not name its GPUs: add --hardware and --gpus")

    def number(name: str) -> float:
        value = one.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return 0.0
        return float(value) if 0 < value < inf else 0.0

    each = number("completed") or inf
    prompt, output = (round(number(f"total_{way}_tokens") / each) for way in ("input", "output"))
    first, token = (
        number(f"median_{name}_ms") or one[f"mean_{name}_ms"] for name in ("ttft", "tpot")
    )
    means = number("mean_ttft_ms") + number("mean_tpot_ms") * max(0, output - 1)
    flying = number("request_throughput") * means / 1e3  # Little's law
    most = number("max_concurrency")
    if not most or number("request_rate"):  # the rate sets the load, not the places
        most = min(most or inf, flying or number("concurrency") or inf)
    own = str(one.get("backend") or "").lower()
    drafts = number("accept_length") > 1.0
    return {
        "backend": own if own in ENGINES else job.engine,
        "model_path": model or one.get("model_id", ""),
        "system": job.hardware,
        "precision": job.number_format,
        "mode": DRAFTS if drafts else "agg",
        "isl": prompt,
        "osl": output,
        "concurrency": max(1, round(most)) if isfinite(most) else "",
        "tp_size": job.gpus,
        "silicon_ttft_ms": first,
        "silicon_tpot_ms": token,
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


def check(rows: Iterable[Mapping[str, Any]], other: Decoder | None = None) -> Verdict:
    """The `Verdict` of these rows, by the engines as shipped; `other` is the model of rows whose
    model is not known by its name.
    """
    rows = list(rows)
    found, refused = measured_rows(rows, other)
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
