"""Sets that are one table in a repository: CSV, JSON, or Markdown."""

import csv
import hashlib
import json
import re
from datetime import datetime

from lightspeed_models.evidence.sets import numbers
from lightspeed_models.evidence.word_column import Words


def training_sweep(folder):
    """Plans of the Ultra-Scale playbook, as a table of its hover texts."""
    words = {"model": "m"}
    values = {
        "nodes": "Nodes",
        "micro_batch": "MBS",
        "accumulation": "GradAcc",
        "batch": "GBS",
        "data": "DP",
        "pipeline": "PP",
        "tensor": "TP",
        "zero": "ZeRO",
        "mfu": "MFU",
        "rate": "tok/s/gpu",
        "memory": "GPU memory",
    }
    return _csv(folder, "*ultrascale*.csv", words, values)


def serving_refs(folder):
    """Served models: time to the first token and between tokens. Where prefill and decoding have
    GPUs of their own, the plan of each stands in columns with its name.
    """
    words = {
        "backend": "backend",
        "version": "backend_version",
        "model": "model_path",
        "system": "system",
        "precision": "precision",
        "mode": "mode",
    }
    values = {
        "input_tokens": "isl",
        "output_tokens": "osl",
        "batch": "batch_size",
        "tensor": "tp_size",
        "pipeline": "pp_size",
        "attention_data": "attention_dp_size",
        "expert_tensor": "moe_tp_size",
        "expert": "moe_ep_size",
        "prefill_workers": "prefill_num_workers",
        "prefill_tensor": "prefill_tp_size",
        "prefill_attention_data": "prefill_attention_dp_size",
        "decode_workers": "decode_num_workers",
        "decode_batch": "decode_batch_size",
        "decode_tensor": "decode_tp_size",
        "decode_attention_data": "decode_attention_dp_size",
        "first_token": "silicon_ttft_ms",
        "per_token": "silicon_tpot_ms",
    }
    return _csv(folder, "*silicon_refs*.csv", words, values)


def served_models(folder):
    """Served models under load, by the names of the source, without the rows that are held out for
    those who judge: curves by a hash of what they say, two models and a system.
    """
    with open(_only(folder, "silicon_sample*.csv"), newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if not _held_out(row)]
    for row in rows:
        told = re.search(r"silicon_concurrency=([\d.]+)", row["silicon_data_source"])
        row["concurrency"] = told[1] if told else ""
    words = ("backend", "backend_version", "model_path", "system", "precision", "mode")
    layout = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    values = ["isl", "osl", "concurrency", "batch_size", *layout]
    for own in ("prefill_", "decode_"):
        values += [f"{own}batch_size", f"{own}num_workers", *(own + one for one in layout)]
    times = {"silicon_ttft_ms": "silicon_ttft_ms", "silicon_tpot_ms": "silicon_tpot_ms"}
    return _columns(rows, {n: n for n in words}, {n: n for n in values} | times)


def open_loop(folder):
    """Requests of runs of vLLM, one by one: when each came, its first token and its last."""
    rows = []
    gpus = {"RTXPRO6000": "rtx_pro_6000", "RTX4090": "rtx_4090"}
    for path in sorted(folder.rglob("vllm/requests.jsonl")):
        meta = json.loads((path.parent / "meta.json").read_text("utf-8"))
        told = meta["engine_kwargs"]
        given = {
            "system": gpus[path.parents[2].name],
            "model": meta["model"],
            "version": meta["vllm_version"],
            "tensor": told["tensor_parallel_size"],
            "data": told["data_parallel_size"],
            "budget": told["max_num_batched_tokens"],
            "slots": told["max_num_seqs"],
            "blocks": meta.get("kv_cache", {}).get("num_gpu_blocks", ""),
        }
        requests = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        # Arrivals are told by another clock than what follows: the shortest way between them is
        # taken for none.
        offset = min(one["queued_ts"] - one["arrival_time"] for one in requests)
        start = min(one["arrival_time"] for one in requests) + offset
        for one in sorted(requests, key=lambda one: one["arrival_time"]):
            times = {
                "arrival": one["arrival_time"] + offset - start,
                "first": one["first_token_ts"] - start,
                "last": one["last_token_ts"] - start,
            }
            rows.append(given | {"in": one["input_toks"], "out": one["output_toks"]} | times)
    if not rows:
        raise FileNotFoundError(f"{folder} has no vllm/requests.jsonl")
    words = {n: n for n in ("system", "model", "version")}
    values = {n: n for n in ("tensor", "data", "budget", "slots", "blocks")}
    values |= {"input_tokens": "in", "output_tokens": "out"}
    return _columns(rows, words, values | {n: n for n in ("arrival", "first", "last")})


def _held_out(row):
    curve = ("model_path", "system", "backend", "precision", "mode", "tp_size", "isl", "osl")
    first = hashlib.sha256("|".join(row[name] for name in curve).encode()).digest()[0]
    model = row["model_path"].rpartition("/")[2]
    return first < 52 or row["system"] == "gb300" or "gpt-oss-120b" in model or "GLM-5" in model


def mlperf_inference(folder):
    """Results of MLPerf inference, as a table of their summaries."""
    words = {n: n for n in ("round", "submitter", "system", "benchmark", "scenario", "accelerator")}
    values = {
        "nodes": "nodes",
        "accelerators_per_node": "accels_per_node",
        "sample_rate": "samples_per_s",
        "token_rate": "tokens_per_s",
        "scheduled_rate": "sched_qps",
        "completed_rate": "completed_qps",
        "completed_token_rate": "completed_tok_s",
        "latency_mean": "lat_mean",
        "latency_median": "lat_p50",
        "latency_p99": "lat_p99",
    }
    return _csv(folder, "*mlperf_inference*.csv", words, values)


def serving_energy(folder):
    """Language models of ML.ENERGY: one batch size of one model on one kind of GPU."""
    words = {
        "model": "nickname",
        "architecture": "architecture",
        "chip": "gpu_model",
        "format": "weight_precision",
    }
    values = {
        "devices": "num_gpus",
        "tensor": "tensor_parallel",
        "expert": "expert_parallel",
        "data": "data_parallel",
        "parameters": "total_params_billions",
        "active": "activated_params_billions",
        "limit": "max_num_seqs",
        "batch": "avg_batch_size",
        "output_tokens": "avg_output_len",
        "latency_median": "median_itl_ms",
        "latency_p90": "p90_itl_ms",
        "latency_p99": "p99_itl_ms",
        "rate": "output_throughput_tokens_per_sec",
        "power": "avg_power_watts",
        "energy": "energy_per_token_joules",
    }
    rows = []
    for path in sorted(folder.rglob("tasks/*.json")):
        found = json.loads(path.read_text("utf-8"))["configurations"]
        # Images and films have no time between tokens.
        rows += [{**row, "task": path.stem} for row in found if "median_itl_ms" in row]
    if not rows:
        raise FileNotFoundError(f"{folder} has no tasks/*.json with times between tokens")
    return _columns(rows, {"task": "task", **words}, values)


def arrivals(folder):
    """When requests came, and their tokens: traces of Azure and of Mooncake in one folder."""
    rows = []
    for path in sorted(folder.rglob("AzureLLMInferenceTrace_*.csv")):
        with open(path, newline="", encoding="utf-8") as lines:
            read = list(csv.DictReader(lines))
        # Seven digits of a second; datetime reads six.
        times = [datetime.fromisoformat(row["TIMESTAMP"][:26]) for row in read]
        trace = "Azure " + path.stem.rpartition("_")[2]
        for row, time in zip(read, times, strict=True):
            rows.append(
                {
                    "trace": trace,
                    "time": (time - times[0]).total_seconds(),
                    "in": row["ContextTokens"],
                    "out": row["GeneratedTokens"],
                }
            )
    for path in sorted(folder.rglob("*_trace.jsonl")):
        trace = "Mooncake " + path.stem.removesuffix("_trace")
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            rows.append(
                {
                    "trace": trace,
                    "time": row["timestamp"] / 1e3,
                    "in": row["input_length"],
                    "out": row["output_length"],
                }
            )
    if not rows:
        raise FileNotFoundError(f"{folder} has no AzureLLMInferenceTrace_*.csv, *_trace.jsonl")
    return _columns(
        rows, {"trace": "trace"}, {"time": "time", "input_tokens": "in", "output_tokens": "out"}
    )


def fsdp(folder):
    """The tables of MPT's training benchmarks."""
    rows = _markdown(_only(folder, "benchmarking/README.md"), "GlobalBatchSize (T)")
    words = {
        "model": "Model",
        "chip": "GPU",
        "precision": "Precision",
        "sharding": "Sharding Strategy",
        "checkpointing": "Activation Checkpointing",
    }
    values = {
        "sequence": "SeqLen (T)",
        "devices": "# GPUs",
        "mfu": "MFU",
        "hfu": "HFU",
        "micro_batch": "MicroBatchSize",
        "accumulation": "GradAccum",
        "batch": "GlobalBatchSize",
        "rate": "Throughput (T/s)",
        "parameters": "NumParams",
    }
    return _columns(rows, words, values)


def megatron_bridge(folder):
    """The tables of Megatron-Bridge's performance pages, now and before."""
    rows = [
        row
        for path in sorted(folder.rglob("docs/performance-summary*.md"))
        for row in _markdown(path, "Tokens / sec / GPU")
    ]
    if not rows:
        raise FileNotFoundError(f"{folder} has no docs/performance-summary*.md")
    for row in rows:  # of two layouts: a table a model, or a table a system
        title = row["####"]
        row["Model"] = row.get("Model") or title
        row["System"] = row.get("System") or title.removeprefix("System:").strip()
        row["###"] = row["###"].removesuffix(" Performance")
    words = {
        "release": "##", "task": "###", "model": "Model", "system": "System",
        "precision": "Precision",
    }  # fmt: skip
    values = {
        "devices": "#-GPUs",
        "batch": "GBS",
        "micro_batch": "MBS",
        "sequence": "Sequence Length",
        "sharded": "FSDP",
        "tensor": "TP",
        "pipeline": "PP",
        "context": "CP",
        "interleave": "VP",
        "expert": "EP",
        "rate": "Tokens / sec / GPU",
        "model_rate": "Model TFLOP / sec / GPU",
    }
    return _columns(rows, words, values)


def dgx_cloud(folder):
    """Steps of the recipes of DGX Cloud: a README a model, a table a precision with a column for
    each number of GPUs. Models that were cut to fewer layers are left out.
    """
    rows = []
    for path in sorted(folder.rglob("README_*.md")):
        rows += _recipe(path.read_text("utf-8"))
    if not rows:
        raise FileNotFoundError(f"{folder} has no README_*.md")
    degrees = {
        "sharded": "FSDP", "tensor": "TP", "pipeline": "PP", "context": "CP", "interleave": "VP",
        "expert": "EP",
    }  # fmt: skip
    values = {"devices": "GPUs", "batch": "GBS", "micro_batch": "MBS", "sequence": "SeqLen"}
    words = {"model": "model", "precision": "kind"}
    return _columns(rows, words, values | degrees | {"time": "time"})


def _recipe(text):
    """The runs of one README: what a title says of all, a heading of its column, a line of each."""
    cells = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.strip().startswith("|")
    ]
    plans = {}  # a table of plans, where there is one: GPUs -> what each has
    if cells[0][0] == "GPUs":
        plans = {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells if row[0].isdigit()}
    length = re.search(r"sequence length = (\d+)", text)
    title = re.compile(r"(.*?) (?:[\d.]+ |Dev )?(BF16|FP8)(?: \((.*)\))?")
    runs, found = [], []
    for first, *rest in cells:
        if told := title.fullmatch(first):
            whole = dict(re.findall(r"(TP|PP|CP|VP|MBS)=(\d+)", told[3] or ""))
            whole |= {"FSDP": "1"} if "FSDP" in (told[3] or "") else {}
            whole |= {"model": told[1], "kind": told[2], "SeqLen": length[1] if length else ""}
            found = []
            for heading in filter(None, rest):
                gpus = re.findall(r"(\d+)x? H100", heading)[0]
                batch = dict(re.findall(r"(GBS)=(\d+)", heading))
                found.append(whole | {"GPUs": gpus} | plans.get(gpus, {}) | batch)
            runs += found
        elif first in ("Layers", "GBS", "PP", "VP") or first.startswith("Training step time"):
            name = first if len(first) < 7 else "time"
            for run, cell in zip(found, rest, strict=False):
                run[name] = "" if cell.lower() in ("n/a", "na") else cell
    depth = max((int(run.get("Layers", 0)) for run in runs), default=0)
    names = ("FSDP", "TP", "PP", "CP", "VP", "EP", "MBS", "SeqLen", "GBS", "time")
    return [
        dict.fromkeys(names, "") | {n: "" if c == "NA" else c for n, c in run.items()}
        for run in runs
        if int(run.get("Layers", depth)) == depth and "time" in run
    ]


def ironwood(folder):
    """The table of Google's recipes for training on TPU7x."""
    rows = [
        {name: cell.replace(",", "") for name, cell in row.items()}
        for row in _markdown(_only(folder, "training/ironwood/README.md"), "Step time (seconds)")
    ]
    first = next((name for name in rows[0] if "Model ID" in name), "Model ID") if rows else ""
    values = {
        "chips": "Number of chips",
        "batch": "GBS",
        "sequence": "Sequence length",
        "time": "Step time (seconds)",
        "model_rate": "TFLOPs/sec/chip",
        "rate": "Tokens/sec/chip",
    }
    return _columns(rows, {"model": first, "precision": "Precision"}, values)


def megascale(folder):
    """Steps of a model on up to 12,288 GPUs, as a table typed off the paper."""
    values = {"devices": "GPUs", "batch": "batch", "time": "iteration_s", "mfu": "MFU"}
    return _csv(folder, "*megascale*.csv", {"system": "system"}, values)


def _csv(folder, pattern, words, values):
    with open(_only(folder, pattern), newline="", encoding="utf-8") as lines:
        return _columns(list(csv.DictReader(lines)), words, values)


def _only(folder, pattern):
    """The one file of this pattern under a folder."""
    files = sorted(folder.rglob(pattern))
    if len(files) != 1:
        raise FileNotFoundError(f"{folder} has {len(files)} files {pattern}; expected one")
    return files[0]


def _columns(rows, words, values):
    wanted = {*words.values(), *values.values()}
    if rows and (missing := sorted(wanted - set().union(*rows))):
        raise ValueError(f"the table has no column {', '.join(missing)}")
    return {
        **{n: Words.of([str(row.get(source, "")) for row in rows]) for n, source in words.items()},
        **{n: numbers([row.get(source, "") for row in rows]) for n, source in values.items()},
    }


def _markdown(path, needed):
    """The rows of every table with a column `needed`, with the headings above it by their marks."""
    rows, head, headings = [], None, {}
    for line in path.read_text("utf-8").splitlines():
        if mark := re.match(r"(#+)\s*(.*)", line):
            headings[mark[1]], head = mark[2].removeprefix("Model:").strip(), None
        if not line.strip().startswith("|"):
            head = head if line.strip() else None
            continue
        cells = [
            re.sub(r"\[\^.*?\]", "", cell).strip() for cell in line.strip().strip("|").split("|")
        ]
        if needed in cells:
            head = cells
        elif head and not set(line) <= set("|-: "):
            # "n/a" and "1 (2)" are no numbers.
            unclear = re.compile(r"n/a|-|[\d.]+ \(.*\)", re.IGNORECASE)
            texts = ("" if unclear.fullmatch(cell) else cell for cell in cells)
            rows.append({**headings, **dict(zip(head, texts, strict=True))})
    return rows
