"""Training results of MLPerf: logs and systems in mlcommons/training_results_v*."""

import json
import re
import statistics
from pathlib import Path

from lightspeed_models.evidence.samplers.tables import columns_of

KEYS = ('"run_start"', '"run_stop"', '"global_batch_size"', '"eval_accuracy"', '"train_samples"')
LOG = re.compile(r":::MLLOG\s*(\{.*\})")
# Samples of an epoch where logs give another number, such as its steps: OpenImages, COCO, Criteo.
EPOCH = {"ssd": 1_170_301, "retinanet": 1_170_301, "maskrcnn": 117_266, "dlrm": 4_195_197_692}
COCO = 100_000  # samples, at least, of an epoch of ssd before it took OpenImages
# Nobody trains so many epochs: from here on `epoch_num` counts samples.
EPOCHS = 1e5
GPT3_TOKENS = 2048  # of a sample, where `epoch_num` counts tokens
DLRM_EVALUATIONS = 20  # an epoch, where `epoch_num` counts them


def training(folder, record):
    """One row for each system and benchmark: medians over its runs that met the target."""
    results = [
        row
        for checkout in sorted(Path(folder).glob("training_results_v*"))
        for row in _round(checkout)
    ]
    if not results:
        raise FileNotFoundError(f"{folder} has no training_results_v*/*/results")
    return columns_of(results, record)


def _round(checkout):
    """The rows of one round."""
    for benchmark in sorted(checkout.glob("*/results/*/*")):
        submitter, _, system = benchmark.relative_to(checkout).parts[:3]
        logs = sorted(benchmark.glob("result_*.txt"))
        results = [_run(path, benchmark.name) for path in logs]
        runs = [run for run in results if run]
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


def _run(path, benchmark):
    """Time (s), batch and samples to the target of one log; nothing for a run that failed."""
    values, start, stop = {}, None, None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not any(key in line for key in KEYS) or not (match := LOG.search(line)):
                continue
            try:
                event = json.loads(match[1])
            except ValueError:
                continue
            key, about = event.get("key"), event.get("metadata") or {}
            if key == "run_start":
                start = event["time_ms"]
            elif key == "run_stop":
                stop = event["time_ms"] if about.get("status") == "success" else None
            elif key == "global_batch_size":
                values["batch"] = event["value"]
            elif key == "train_samples":
                values["of"] = event["value"]
            elif key == "eval_accuracy":
                values.setdefault("first", about.get("epoch_num"))
                values |= {name: about[name] for name in SAID if name in about}
    if start is None or stop is None:
        return None
    return {**values, "samples": trained(benchmark, values), "time": (stop - start) / 1e3}


# What an evaluation says of how far training is.
SAID = ("samples_count", "train_samples_since_beginning", "train_samples", "epoch_num", "step_num")


def trained(benchmark, events):
    """Samples until the target, from what the last evaluation of a log says; "" if it does not.

    Logs count in samples, epochs, steps, tokens or evaluations, by benchmark and by submitter.
    """
    batch, of, epochs = events.get("batch"), events.get("of"), events.get("epoch_num")
    for name in ("samples_count", "train_samples"):
        if name in events:
            return events[name]
    if "train_samples_since_beginning" in events:
        return ""  # with those of the checkpoint that it began from
    if batch and "step_num" in events:
        return events["step_num"] * batch
    if epochs is None:
        return ""
    if epochs >= EPOCHS:
        return epochs / GPT3_TOKENS if benchmark == "gpt3" else epochs
    if benchmark == "bert":  # one stream: what was trained is `train_samples`, or steps are counted
        return of if epochs == 1 and of else epochs * batch if epochs > 100 and batch else ""
    if benchmark == "transformer" and (not batch or batch < 10_000):
        return ""  # a batch of packed sequences, where all others count tokens
    if benchmark == "dlrm" and events["first"] >= 1:
        # Some count from one, some count evaluations.
        epochs = epochs / DLRM_EVALUATIONS if epochs % 1 == 0 else epochs - 1
    size = EPOCH.get(benchmark, of)
    if benchmark == "ssd" and of and COCO < of < size:
        size = of
    return epochs * size if size else ""


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
