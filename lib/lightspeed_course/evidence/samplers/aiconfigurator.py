"""Kernel and collective times of ai-dynamo/aiconfigurator: Parquet, or CSV with the same head."""

from __future__ import annotations

import numpy as np

from lightspeed_course.evidence.chips import DEVICES
from lightspeed_course.evidence.sets import numbers
from lightspeed_course.evidence.words import Words


def gemm(folder):
    """Every matrix product under a folder."""
    return _joined(
        folder,
        "gemm",
        {"chip": "device", "library": ("framework", "version"), "format": "gemm_dtype"},
        {name: name for name in ("m", "n", "k", "latency")},
    )


def _joined(folder, what, words, values):
    """The columns of every table of this kind, one after the other."""
    paths = sorted(p for e in ("parquet", "csv") for p in folder.rglob(f"*{what}*.{e}"))
    if not paths:
        raise FileNotFoundError(f"{folder} has no *{what}*.parquet or *{what}*.csv")
    parts = [_columns(path, words, values) for path in paths]
    return {
        **{n: Words.joined([part[n] for part in parts]) for n in words},
        **{n: np.concatenate([part[n] for part in parts]) for n in values},
    }


def _columns(path, words, values):
    wanted = {n for name in words.values() for n in ((name,) if isinstance(name, str) else name)}
    read = _parquet if path.suffix == ".parquet" else _csv
    table = read(path, wanted, set(values.values()))
    found = {name: table[source] for name, source in values.items()}
    for name, source in words.items():
        column = table[source] if isinstance(source, str) else _both(*(table[s] for s in source))
        found[name] = _chip(column) if name == "chip" else column
    return found


def _parquet(path, words, values):
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "pyarrow is not installed, which reads Parquet: pip install 'speed-of-light[evidence]'",
            name="pyarrow",
        ) from error
    # The few different words stay few: as indices into a dictionary, never as text.
    table = parquet.read_table(path, columns=[*words, *values], read_dictionary=[*words])
    table = table.combine_chunks()
    found = {name: table[name].to_numpy().astype(float) for name in values}
    for name in words:
        column = table[name].unify_dictionaries().chunk(0)
        found[name] = Words(
            tuple(map(str, column.dictionary.to_pylist())),
            column.indices.to_numpy(zero_copy_only=False).astype(np.int32),
        )
    return found


def _csv(path, words, values):
    import csv

    with open(path, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    if missing := (words | values) - set(rows[0] if rows else ()):
        raise ValueError(f"{path} has no column {', '.join(sorted(missing))}")
    return {
        **{name: Words.of([row[name] for row in rows]) for name in words},
        **{name: numbers([row[name] for row in rows]) for name in values},
    }


def _both(a, b):
    """One word of two, such as a library and its version."""
    names = [f"{one} {two}" for one in a.names for two in b.names]
    return Words(tuple(names), a.codes * np.int32(len(b.names)) + b.codes)


def _chip(devices):
    """The catalog's keys for what devices call themselves; an unknown one keeps its own name."""
    keys = [DEVICES.get(name, name) for name in devices.names]
    merged = sorted(set(keys))
    at = {name: merged.index(key) for name, key in zip(devices.names, keys, strict=True)}
    return Words(tuple(merged), devices.lookup(at, np.int32))
