"""Files of load tests as their tools write them, read into one form: `LoadTest`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

WANTED = (
    "what `vllm bench serve` or SGLang's bench_serving wrote (JSON or the console), guidellm,"
    " GenAI-Perf or AIPerf, llmperf, InferenceX, or a table of published rows"
)


@dataclass(frozen=True)
class LoadTest:
    """A load test in the words of its file: the tool; tokens of a prompt and of an answer, means;
    requests in flight or a second, as asked for; both times (s), medians where there are some;
    requests that failed; tokens a step where drafts were taken; and, where the file says them,
    model, engine, card, GPUs and format.
    """

    tool: str
    prompt: float
    output: float
    first: float
    between: float
    concurrency: float = 0.0
    rate: float = 0.0
    served: float = 0.0
    median: bool = True
    failed: int = 0
    drafts: float = 0.0
    model: str = ""
    engine: str = ""
    card: str = ""
    gpus: int = 0
    number_format: str = ""

    @property
    def inside(self) -> float:
        """Requests in flight: as requested, or from the rate by Little's law."""
        flying = self.served * (self.first + self.between * max(0.0, self.output - 1))
        if self.rate or not self.concurrency:
            return min(self.concurrency or inf, flying or inf)
        return self.concurrency


def text_of(path: Path) -> str:
    """Return a file's text, zipped or not, in UTF-8 or UTF-16; ValueError if it is not text."""
    data = path.read_bytes()
    try:
        zipped = path.suffix == ".gz" or data.startswith(b"\x1f\x8b")
        data = gzip.decompress(data) if zipped else data
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        return data.decode("utf-16" if wide else "utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read: {error}") from error


def table_of(text: str) -> csv.DictReader[str]:
    """Return the rows of a table with a header, separated by commas, semicolons or tabs."""
    head = text.partition("\n")[0]
    return csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=head.count))


def objects_of(path: Path, text: str) -> list[Mapping[str, Any]]:
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        try:
            whole = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}: not JSON: {error}") from error
    objects = whole if isinstance(whole, list) else [whole]
    if not all(isinstance(one, Mapping) for one in objects):
        raise ValueError(f"{path}: expected an object for each run of the benchmark")
    return objects


def load_tests(path: Path, prompt: int = 0, output: int = 0) -> list[LoadTest] | None:
    """Return the load tests in a file; None for a table, which may hold published rows. Requests
    were `prompt` and `output` tokens long where the file does not count them.

    Raises ValueError for a file of another kind, with the tool's name where it is known.
    """
    text = text_of(path)
    if "Serving Benchmark Result" in text:
        return [_whole(path, _console(text), prompt, output)]
    if "MLPerf Results Summary" in text:
        raise ValueError(
            f"{path} is a summary of MLPerf's LoadGen, which says neither the lengths of prompts"
            " nor how many were in flight: run the same load with `vllm bench serve`"
        )
    if text.lstrip()[:1] not in ("{", "["):
        return None
    tests = [test for one in objects_of(path, text) for test in _read(path, one)]
    if not tests:
        raise ValueError(f"{path} holds no load test; expected {WANTED}")
    return [_whole(path, test, prompt, output) for test in tests]


def _read(path: Path, one: Mapping[str, Any]) -> list[LoadTest]:
    for mark, reader in READERS.items():
        if mark in one:
            try:
                tests = reader(one)
            except (KeyError, TypeError, ValueError, IndexError) as error:
                field = f"its {error.args[0]}" if isinstance(error, KeyError) else str(error)
                tool = TOOLS[mark]
                raise ValueError(f"{path} looks like {tool}, but {field} is missing") from None
            return tests
    names = ", ".join(list(one)[:6])
    raise ValueError(f"{path} has the fields {names} ...; expected {WANTED}")


def _whole(path: Path, test: LoadTest, prompt: int, output: int) -> LoadTest:
    """The load test with all that it takes to judge it, or ValueError."""
    test = replace(test, prompt=test.prompt or prompt, output=test.output or output)
    if not (test.prompt and test.output):
        raise ValueError(f"{path}: the file has no token counts: add --in 1k --out 1k")
    for name, words in (("first", "TTFT"), ("between", "TPOT")):
        value = getattr(test, name)
        if not (isfinite(value) and value > 0):
            raise ValueError(f"{path}, {test.tool}: {words} is {value}, expected a number above 0")
    if not isfinite(test.inside):
        raise ValueError(f"{path}, {test.tool}: neither a concurrency nor a rate that was reached")
    return test


def _number(value: Any) -> float:
    """A number above 0, else 0: None, NaN, "inf" and words say nothing."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if 0 < number < inf else 0.0


def _bench(one: Mapping[str, Any]) -> list[LoadTest]:
    """`vllm bench serve` and SGLang's bench_serving."""
    done = _number(one["completed"])
    if not done:
        raise ValueError("a request that completed")
    median = [_number(one.get(f"median_{name}_ms")) for name in ("ttft", "tpot")]
    mean = [_number(one.get(f"mean_{name}_ms")) for name in ("ttft", "tpot")]
    drafts = _number(one.get("spec_decode_acceptance_length")) or _number(one.get("accept_length"))
    sglang = "accept_length" in one or one.get("backend") == "sglang"
    seconds = _number(one.get("duration"))
    return [LoadTest(
        "SGLang's bench_serving" if sglang else "vllm bench serve",
        _number(one.get("total_input_tokens")) / done,
        _number(one.get("total_output_tokens")) / done,
        (median[0] or mean[0]) / 1e3,
        (median[1] or mean[1]) / 1e3,
        concurrency=_number(one.get("max_concurrency")) or _number(one.get("concurrency")),
        rate=_number(one.get("request_rate")),
        served=_number(one.get("request_throughput")) or (done / seconds if seconds else 0.0),
        median=all(median),
        failed=int(_number(one.get("failed")) or max(0.0, _number(one.get("num_prompts")) - done)),
        drafts=drafts if drafts > 1 else 0.0,
        model=str(one.get("model_id") or ""),
        engine=str(one.get("backend") or ""),
    )]  # fmt: skip


def _console(text: str) -> LoadTest:
    """The table that both print at the end."""
    rows = dict(
        re.findall(r"^([A-Z][^:\n]*?)(?:\s*\((?:ms|s|req/s|tok/s)\))?:\s+([\d.]+)\s*$", text, re.M)
    )
    one = {
        "completed": rows.get("Successful requests"), "failed": rows.get("Failed requests"),
        "total_input_tokens": rows.get("Total input tokens"),
        "total_output_tokens": rows.get("Total generated tokens"),
        "max_concurrency": rows.get("Maximum request concurrency")
        or rows.get("Max request concurrency"),
        "request_rate": rows.get("Request rate configured") or rows.get("Traffic request rate"),
        "request_throughput": rows.get("Request throughput"),
        "duration": rows.get("Benchmark duration"),
        "spec_decode_acceptance_length": rows.get("Acceptance length") or rows.get("Accept length"),
    }  # fmt: skip
    for name in ("ttft", "tpot"):
        for kind in ("mean", "median"):
            one[f"{kind}_{name}_ms"] = rows.get(f"{kind.title()} {name.upper()}")
    try:
        (test,) = _bench(one)
    except ValueError as error:
        raise ValueError(f"the console's table has no {error}") from None
    return LoadTest(**{**vars(test), "tool": "the console's table of bench serve"})


def _guidellm(one: Mapping[str, Any]) -> list[LoadTest]:
    tests = []
    for each in one["benchmarks"]:
        metrics = each["metrics"]

        def value(name: str, kind: str = "mean", metrics: Any = metrics) -> float:
            return _number((metrics.get(name, {}).get("successful") or {}).get(kind))

        config = each.get("config") or each.get("args") or {}
        plan = config.get("strategy") or {}
        first = value("time_to_first_token_ms", "median")
        gap = value("inter_token_latency_ms", "median") or value("inter_token_latency_ms")
        total = (each.get("run_stats") or {}).get("requests_made") or {}
        tests.append(LoadTest(
            "guidellm", value("prompt_token_count"), value("output_token_count"),
            (first or value("time_to_first_token_ms")) / 1e3,
            (gap or value("time_per_output_token_ms")) / 1e3,
            concurrency=_number(plan.get("streams")) or value("request_concurrency"),
            rate=_number(plan.get("rate")), served=value("requests_per_second"),
            median=bool(first), failed=int(_number(total.get("errored"))),
        ))  # fmt: skip
    return tests


def _llmperf(one: Mapping[str, Any]) -> list[LoadTest]:
    per_minute = _number(one.get("results_num_completed_requests_per_min"))
    return [LoadTest(
        "llmperf", _number(one["mean_input_tokens"]), _number(one["mean_output_tokens"]),
        _number(one.get("results_ttft_s_quantiles_p50") or one["results_ttft_s_mean"]),
        _number(one.get("results_inter_token_latency_s_quantiles_p50")
                or one["results_inter_token_latency_s_mean"]),
        concurrency=_number(one.get("num_concurrent_requests")), served=per_minute / 60,
        failed=int(_number(one.get("results_number_errors"))), model=str(one.get("model") or ""),
    )]  # fmt: skip


def _genai(one: Mapping[str, Any]) -> list[LoadTest]:
    """GenAI-Perf and AIPerf."""
    units = {"ms": 1e-3, "s": 1.0, "us": 1e-6, "ns": 1e-9}

    def value(name: str, kind: str = "avg") -> float:
        table = one[name]
        return _number(table.get(kind)) * units.get(str(table.get("unit")), 1.0)

    config = one.get("input_config") or {}
    text = json.dumps(config)
    flying = re.search(r'"concurrency": (\d+)', text)
    rate = re.search(r'"request_rate": ([\d.]+)', text)
    model = re.search(r'"model_names": \["([^"]+)"', text)
    return [LoadTest(
        "AIPerf" if "loadgen" in config or "aiperf" in text.lower() else "GenAI-Perf",
        value("input_sequence_length"), value("output_sequence_length"),
        value("time_to_first_token", "p50") or value("time_to_first_token"),
        value("inter_token_latency", "p50") or value("inter_token_latency"),
        concurrency=float(flying[1]) if flying else 0.0, rate=float(rate[1]) if rate else 0.0,
        served=value("request_throughput"), model=model[1] if model else "",
    )]  # fmt: skip


def _inferencex(one: Mapping[str, Any]) -> list[LoadTest]:
    if one.get("disagg"):
        raise ValueError("disaggregated: one layout of both halves")
    return [LoadTest(
        "InferenceX", 0.9 * _number(one["isl"]), 0.9 * _number(one["osl"]),
        _number(one["median_ttft"]), _number(one["median_tpot"]),
        concurrency=_number(one["conc"]), model=str(one.get("model") or ""),
        engine=str(one.get("framework") or ""), card=str(one.get("hw") or ""),
        gpus=int(_number(one.get("tp"))), number_format=str(one.get("precision") or ""),
        drafts=2.0 if one.get("spec_decoding") not in (None, "none", "") else 0.0,
    )]  # fmt: skip


# A field by which the file of a tool is known -> its reader, and its name.
READERS = {
    "benchmarks": _guidellm, "results_ttft_s_mean": _llmperf, "time_to_first_token": _genai,
    "median_ttft": _inferencex, "completed": _bench,
}  # fmt: skip
TOOLS = {
    "benchmarks": "guidellm's", "results_ttft_s_mean": "llmperf's",
    "time_to_first_token": "GenAI-Perf's or AIPerf's", "median_ttft": "InferenceX's",
    "completed": "that of `vllm bench serve`",
}  # fmt: skip
