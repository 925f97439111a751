"""Sets that are tables in a repository: CSV, JSON, or Markdown. Each reader takes the folder of a
checkout and the `Record`, which says what the source calls the columns.
"""

import csv
import hashlib
import json
import re
from datetime import datetime

from lightspeed_models.evidence.sets import numbers
from lightspeed_models.evidence.word_column import Words


def table(folder, record):
    """One CSV file."""
    return columns_of(_csv(_only(folder, record.file)), record)


def served_models(folder, record):
    """Served models under load, by the names of the source, without the rows that are held out for
    those who judge: curves by a hash of what they say, two models and a system.
    """
    rows = [row for row in _csv(_only(folder, "silicon_sample*.csv")) if not _held_out(row)]
    for row in rows:
        match = re.search(r"silicon_concurrency=([\d.]+)", row["silicon_data_source"])
        row["concurrency"] = match[1] if match else ""
        own = row["silicon_data_source"].startswith("source_file=/")
        row["publisher"] = "nvidia" if own else "inferencex"
    return columns_of(rows, record)


def _held_out(row):
    curve = ("model_path", "system", "backend", "precision", "mode", "tp_size", "isl", "osl")
    first = hashlib.sha256("|".join(row[name] for name in curve).encode()).digest()[0]
    model = row["model_path"].rpartition("/")[2]
    return first < 52 or row["system"] == "gb300" or "gpt-oss-120b" in model or "GLM-5" in model


def open_loop(folder, record):
    """Requests of runs of vLLM, one by one: when each came, its first token and its last."""
    return columns_of(_rows(folder, "vllm/requests.jsonl", _requests), record)


def _requests(path):
    meta = json.loads((path.parent / "meta.json").read_text("utf-8"))
    engine = meta["engine_kwargs"]
    run = {
        "system": {"RTXPRO6000": "rtx_pro_6000", "RTX4090": "rtx_4090"}[path.parents[2].name],
        "model": meta["model"],
        "version": meta["vllm_version"],
        "tensor": engine["tensor_parallel_size"],
        "data": engine["data_parallel_size"],
        "budget": engine["max_num_batched_tokens"],
        "slots": engine["max_num_seqs"],
        "blocks": meta.get("kv_cache", {}).get("num_gpu_blocks", ""),
    }
    requests = sorted(_lines(path), key=lambda one: one["arrival_time"])
    # Arrivals are told by another clock than what follows: the shortest way between them is taken
    # for none.
    offset = min(one["queued_ts"] - one["arrival_time"] for one in requests)
    start = requests[0]["arrival_time"] + offset
    for one in requests:
        yield run | {
            "input_tokens": one["input_toks"],
            "output_tokens": one["output_toks"],
            "arrival": one["arrival_time"] + offset - start,
            "first": one["first_token_ts"] - start,
            "last": one["last_token_ts"] - start,
        }


def serving_energy(folder, record):
    """Language models of ML.ENERGY: one batch size of one model on one kind of GPU."""

    def runs(path):
        for row in json.loads(path.read_text("utf-8"))["configurations"]:
            if "median_itl_ms" in row:  # images and films have no time between tokens
                yield row | {"task": path.stem}

    what = " with times between tokens"
    return columns_of(_rows(folder, "tasks/*.json", runs, what), record)


def arrivals(folder, record):
    """When requests came, and their tokens: traces of Azure and of Mooncake in one folder."""
    rows = []
    for path in sorted(folder.rglob("AzureLLMInferenceTrace_*.csv")):
        requests = _csv(path)
        # Seven digits of a second; datetime reads six.
        times = [datetime.fromisoformat(row["TIMESTAMP"][:26]) for row in requests]
        trace = "Azure " + path.stem.rpartition("_")[2]
        rows += [
            (trace, (at - times[0]).total_seconds(), row["ContextTokens"], row["GeneratedTokens"])
            for row, at in zip(requests, times, strict=True)
        ]
    for path in sorted(folder.rglob("*_trace.jsonl")):
        trace = "Mooncake " + path.stem.removesuffix("_trace")
        rows += [
            (trace, row["timestamp"] / 1e3, row["input_length"], row["output_length"])
            for row in _lines(path)
        ]
    if not rows:
        raise FileNotFoundError(f"{folder} has no AzureLLMInferenceTrace_*.csv, *_trace.jsonl")
    return columns_of([dict(zip(record.columns, row, strict=True)) for row in rows], record)


def fsdp(folder, record):
    """The tables of MPT's training benchmarks."""
    rows = _markdown(_only(folder, "benchmarking/README.md"), "GlobalBatchSize (T)")
    return columns_of(rows, record)


def megatron_bridge(folder, record):
    """The tables of Megatron-Bridge's performance pages, now and before."""
    column = "Tokens / sec / GPU"
    rows = _rows(folder, "docs/performance-summary*.md", lambda path: _markdown(path, column))
    for row in rows:  # of two layouts: a table a model, or a table a system
        title = row["####"]
        row["Model"] = row.get("Model") or title
        row["System"] = row.get("System") or title.removeprefix("System:").strip()
        row["###"] = row["###"].removesuffix(" Performance")
    return columns_of(rows, record)


def dgx_cloud(folder, record):
    """Steps of the recipes of DGX Cloud: a README a model, a table a precision with a column for
    each number of GPUs. Models that were cut to fewer layers are left out.
    """
    blank = dict.fromkeys(record.sources.values(), "")
    return columns_of([blank | row for row in _rows(folder, "README_*.md", _recipe)], record)


def _recipe(path):
    """The runs of one README: what a title says of all, a heading of its column, a line of each."""
    text = path.read_text("utf-8")
    cells = [_cells(line) for line in text.splitlines() if line.strip().startswith("|")]
    plans = {}  # a table of plans, where there is one: GPUs -> what each has
    if cells[0][0] == "GPUs":
        plans = {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells if row[0].isdigit()}
    length = re.search(r"sequence length = (\d+)", text)
    title = re.compile(r"(.*?) (?:[\d.]+ |Dev )?(BF16|FP8)(?: \((.*)\))?")
    runs, columns = [], []
    for first, *rest in cells:
        if match := title.fullmatch(first):
            whole = dict(re.findall(r"(TP|PP|CP|VP|MBS)=(\d+)", match[3] or ""))
            whole |= {"FSDP": "1"} if "FSDP" in (match[3] or "") else {}
            whole |= {"model": match[1], "kind": match[2], "SeqLen": length[1] if length else ""}
            columns = []
            for heading in filter(None, rest):
                gpus = re.findall(r"(\d+)x? H100", heading)[0]
                batch = dict(re.findall(r"(GBS)=(\d+)", heading))
                columns.append(whole | {"GPUs": gpus} | plans.get(gpus, {}) | batch)
            runs += columns
        elif first in ("Layers", "GBS", "PP", "VP") or first.startswith("Training step time"):
            name = first if len(first) < 7 else "time"
            for run, cell in zip(columns, rest, strict=False):
                run[name] = "" if cell.lower() in ("n/a", "na") else cell
    depth = max((int(run.get("Layers", 0)) for run in runs), default=0)
    return [
        {name: "" if cell == "NA" else cell for name, cell in run.items()}
        for run in runs
        if int(run.get("Layers", depth)) == depth and "time" in run
    ]


def ironwood(folder, record):
    """The table of Google's recipes for training on TPU7x."""
    rows = _markdown(_only(folder, "training/ironwood/README.md"), "Step time (seconds)")
    plain = {"Model ID" if "Model ID" in name else name: name for name in (rows or [{}])[0]}
    rows = [{n: row[name].replace(",", "") for n, name in plain.items()} for row in rows]
    return columns_of(rows, record)


def columns_of(rows, record):
    """The columns of a set from rows by the source's names; a cell that a row lacks is empty."""
    if rows and (missing := sorted({*record.sources.values()}.difference(*rows))):
        raise ValueError(f"the table has no column {', '.join(missing)}")
    return {
        name: Words.of([str(row.get(source, "")) for row in rows])
        if record.columns[name] == "word"
        else numbers([row.get(source, "") for row in rows])
        for name, source in record.sources.items()
    }


def _csv(path):
    with open(path, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _lines(path):
    """The objects of a file that has one in each line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _rows(folder, pattern, parse, more=""):
    """What `parse` has of the files of this pattern under a folder, which must be something."""
    rows = [row for path in sorted(folder.rglob(pattern)) for row in parse(path)]
    if not rows:
        raise FileNotFoundError(f"{folder} has no {pattern}{more}")
    return rows


def _only(folder, pattern):
    """The one file of this pattern under a folder."""
    files = sorted(folder.rglob(pattern))
    if len(files) != 1:
        raise FileNotFoundError(f"{folder} has {len(files)} files {pattern}; expected one")
    return files[0]


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _markdown(path, column):
    """The rows of every table with a column `column`, with the headings above it by their marks."""
    rows, head, headings = [], None, {}
    # "n/a" and "1 (2)" are no numbers.
    unclear = re.compile(r"n/a|-|[\d.]+ \(.*\)", re.IGNORECASE)
    for line in path.read_text("utf-8").splitlines():
        if mark := re.match(r"(#+)\s*(.*)", line):
            headings[mark[1]], head = mark[2].removeprefix("Model:").strip(), None
        if not line.strip().startswith("|"):
            head = head if line.strip() else None
            continue
        cells = [re.sub(r"\[\^.*?\]", "", cell).strip() for cell in _cells(line)]
        if column in cells:
            head = cells
        elif head and not set(line) <= set("|-: "):
            texts = ("" if unclear.fullmatch(cell) else cell for cell in cells)
            rows.append(headings | dict(zip(head, texts, strict=True)))
    return rows
