"""Training results of MLPerf: logs and systems in mlcommons/training_results_v*."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

from lightspeed_course.evidence.sets import numbers
from lightspeed_course.evidence.words import Words

KEYS = ('"run_start"', '"run_stop"', '"global_batch_size"', '"eval_accuracy"', '"train_samples"')
LOG = re.compile(r":::MLLOG\s*(\{.*\})")


def training(folder):
    """One row for each system and benchmark: medians over its runs that met the target."""
    results = [
        row
        for checkout in sorted(Path(folder).glob("training_results_v*"))
        for row in _round(checkout)
    ]
    if not results:
        raise FileNotFoundError(f"{folder} has no training_results_v*/*/results")
    words = ("round", "submitter", "system", "benchmark", "accelerator")
    values = ("accelerators", "runs", "time", "spread", "batch", "samples")
    return {
        **{name: Words.of([row[name] for row in results]) for name in words},
        **{name: numbers([row[name] for row in results]) for name in values},
    }


def _round(checkout):
    """The rows of one round."""
    for benchmark in sorted(checkout.glob("*/results/*/*")):
        submitter, _, system = benchmark.relative_to(checkout).parts[:3]
        found = [_run(path) for path in sorted(benchmark.glob("result_*.txt"))]
        runs = [run for run in found if run]
        if not runs:
            continue
        times = [run["time"] for run in runs]
        about = _system(checkout / submitter / "systems" / f"{system}.json")
        yield {
            "round": checkout.name.rpartition("_v")[2],
            "submitter": submitter,
            "system": system,
            "benchmark": benchmark.name,
            "accelerator": about.get("accelerator_model_name", ""),
            "accelerators": _accelerators(about),
            "runs": len(runs),
            "time": statistics.median(times),
            "spread": statistics.stdev(times) / statistics.mean(times) if len(times) > 1 else "",
            "batch": _middle(runs, "batch"),
            "samples": _middle(runs, "samples"),
        }


def _run(path):
    """Time (s), batch and samples to the target of one log; nothing for a run that failed."""
    found, start, stop = {}, None, None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not any(key in line for key in KEYS) or not (said := LOG.search(line)):
                continue
            try:
                event = json.loads(said[1])
            except ValueError:
                continue
            key, about = event.get("key"), event.get("metadata") or {}
            if key == "run_start":
                start = event["time_ms"]
            elif key == "run_stop":
                stop = event["time_ms"] if about.get("status") == "success" else None
            elif key == "global_batch_size":
                found["batch"] = event["value"]
            elif key == "train_samples":
                found["of"] = event["value"]
            elif "samples_count" in about:
                found["samples"] = about["samples_count"]
            elif "epoch_num" in about:
                found["epochs"] = about["epoch_num"]
    if start is None or stop is None:
        return None
    if "samples" not in found and "of" in found and "epochs" in found:
        found["samples"] = found["of"] * found["epochs"]
    return {**found, "time": (stop - start) / 1e3}


def _system(path):
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}


def _accelerators(about):
    try:
        return int(about["number_of_nodes"]) * int(about["accelerators_per_node"]) or ""
    except (KeyError, TypeError, ValueError):
        return ""


def _middle(runs, name):
    values = [run[name] for run in runs if isinstance(run.get(name), int | float)]
    return statistics.median(values) if values else ""
