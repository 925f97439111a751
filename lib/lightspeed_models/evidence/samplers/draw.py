"""Draws the shipped samples from full sets: the same checkouts give the same bytes."""

import csv
import gzip
import io

import numpy as np

from lightspeed_models.evidence.sets import read_full, records
from lightspeed_models.evidence.word_column import Words, evenly

# Of a set with more rows than this, so many are drawn.
ROWS = {"gemm": 40_000, "decode_attention": 6_000, "prefill_attention": 6_000}
# Which columns divide a set into strata of one size.
STRATA = {
    "gemm": ("chip", "library", "format"),
    "decode_attention": ("chip", "library", "cache_format"),
    "prefill_attention": ("chip", "library", "cache_format"),
}
DIGITS = 6  # of a number, as the sources print them


def draw(name, data):
    """The bytes of `data/<name>.csv.gz`, from the checkouts in the folder `data`."""
    record = records()[name]
    columns = read_full(record, data)
    if name in ROWS:
        rows = strata(columns, STRATA[name], ROWS[name])
        columns = {column: values[rows] for column, values in columns.items()}
    return packed(record, columns)


def strata(columns, names, rows):
    """Row numbers, as many from each stratum, `rows` in all, at even steps of work, so that small
    and large ones are there as in the whole; extremes always.
    """
    keys = np.zeros(len(columns[names[0]]), np.int64)
    for name in names:
        keys = keys * len(columns[name].names) + columns[name].codes
    groups = np.unique(keys)
    each = rows // len(groups)
    sizes = [v for n, v in columns.items() if n != "latency" and not isinstance(v, Words)]
    size = np.prod(sizes, axis=0)
    picks = []
    for key in groups:
        own = np.flatnonzero(keys == key)
        own = own[np.argsort(size[own], kind="stable")]
        picks.append(evenly(own, each))
    return np.sort(np.concatenate(picks))


def packed(record, columns):
    """A table as a gzip file without a time in it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(record.columns)
    cells = [
        list(columns[name]) if unit == "word" else [printed(v) for v in columns[name].tolist()]
        for name, unit in record.columns.items()
    ]
    writer.writerows(zip(*cells, strict=True))
    return gzip.compress(text.getvalue().encode("utf-8"), mtime=0)


def printed(value):
    """A number as it stands in the file; nothing for one that the source does not give."""
    return "" if np.isnan(value) else f"{value:.{DIGITS}g}" if value % 1 else str(int(value))
