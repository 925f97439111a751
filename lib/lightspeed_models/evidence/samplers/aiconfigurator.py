"""Kernel and collective times of ai-dynamo/aiconfigurator: Parquet, or CSV with the same head."""

import csv

import numpy as np

from lightspeed_models.evidence.chips import DEVICES
from lightspeed_models.evidence.sets import numbers
from lightspeed_models.evidence.word_column import Words

COMMON = ("chip", "library", "latency")
# A folder of the repository -> the chip, where rows do not name their device.
SYSTEMS = {
    "a100_sxm": "a100_80gb",
    "b200_sxm": "b200",
    "b300_sxm": "b300",
    "b60": "arc_b60",
    "rtx_pro_6000_server": "rtx_pro_6000",
}


def kernels(folder, record):
    """Every row of one kind of table under a folder."""
    return joined(found(folder, record.file), *named(record))


def named(record):
    """(words, numbers) of a set, our name -> the source's, without those that all tables have."""
    ours = {n: source for n, source in record.sources.items() if n not in COMMON}
    words = {n: source for n, source in ours.items() if record.columns[n] == "word"}
    return words, {n: source for n, source in ours.items() if n not in words}


def found(folder, pattern):
    """The tables under a folder with such a name, Parquet or CSV."""
    ends = [f"{pattern}.parquet", f"{pattern}.csv"]
    paths = sorted({path for end in ends for path in folder.rglob(end)})
    if not paths:
        raise FileNotFoundError(f"{folder} has no {' or '.join(ends)}")
    return paths


def joined(paths, words, values, latency="latency"):
    """The columns of these tables, one after the other: chip, library and latency, and those that
    `words` and `values` name (our name -> the source's).
    """
    values = {**values, "latency": latency}
    parts = [_columns(path, words, values) for path in paths]
    return {
        **{n: Words.joined([part[n] for part in parts]) for n in ("chip", "library", *words)},
        **{n: np.concatenate([part[n] for part in parts]) for n in values},
    }


def _columns(path, words, values):
    columns = {"device", "framework", "version", *words.values()}
    table = (_parquet if path.suffix == ".parquet" else _csv)(path, columns, set(values.values()))
    length = len(table[values["latency"]])
    # Early tables name neither device nor version, and no window where attention has none.
    system = next((p for p in path.parts[::-1] if p in SYSTEMS or p.endswith("_sxm")), "")
    table = {
        "device": Words.of_all(SYSTEMS.get(system, system), length),
        "framework": Words.of_all("", length),
        "version": Words.of_all(path.parent.name, length),
        "window_size": np.zeros(length),
    } | table
    # NCCL's own tables name no framework.
    library = table["version"]
    if "operation" not in words:
        library = _both(table["framework"], library)
    return {
        "chip": _chip(table["device"]),
        "library": library,
        **{name: table[source] for name, source in (words | values).items()},
    }


def _parquet(path, words, values):
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "pyarrow is not installed, which reads Parquet: pip install '.[evidence]'",
            name="pyarrow",
        ) from error
    there = set(parquet.read_schema(path).names)
    words, values = words & there, values & there
    # The few different words stay few: as indices into a dictionary, never as text.
    table = parquet.read_table(path, columns=[*words, *values], read_dictionary=[*words])
    table = table.combine_chunks()
    columns = {name: table[name].to_numpy().astype(float) for name in values}
    for name in words:
        column = table[name].unify_dictionaries().chunk(0)
        columns[name] = Words(
            tuple(map(str, column.dictionary.to_pylist())),
            column.indices.to_numpy(zero_copy_only=False).astype(np.int32),
        )
    return columns


def _csv(path, words, values):
    with open(path, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    there = set(rows[0]) if rows else set()
    if missing := values - there - {"window_size"}:
        raise ValueError(f"{path} has no column {', '.join(sorted(missing))}")
    if "sys" in there:  # what an excerpt of several systems calls its folder
        rows = [{**row, "device": SYSTEMS.get(row["sys"], row["sys"])} for row in rows]
    return {
        **{n: Words.of([row[n] for row in rows]) for n in words if rows and n in rows[0]},
        **{n: numbers([row[n] for row in rows]) for n in values & there},
    }


def _both(a, b):
    """One word of two, such as a library and its version."""
    names = [f"{one} {two}" for one in a.names for two in b.names]
    return Words(tuple(names), a.codes * np.int32(len(b.names)) + b.codes)


def _chip(devices):
    """The catalog's keys for what devices call themselves; an unknown one keeps its own name."""
    keys = [DEVICES.get(name, name) for name in devices.names]
    names = sorted(set(keys))
    at = {name: names.index(key) for name, key in zip(devices.names, keys, strict=True)}
    return Words(tuple(names), devices.lookup(at, np.int32))
