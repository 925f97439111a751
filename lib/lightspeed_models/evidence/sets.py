"""Public measurements as columns: what ships, or a full set from a folder of checkouts.

    rows = dataset("gemm")
    rows["latency"], rows["chip"] == "h100_sxm", len(rows)

Of a set that does not ship, only what was counted on all of its rows does (`residuals.counted`).
Columns are numpy arrays in SI units, or `Words`. Rows that cannot be true are refused: they are in
`.refused`, each with its name and the reason, and in no column.
"""

import csv
import functools
import gzip
import importlib
import io
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from lightspeed.catalog import UNITS
from lightspeed.errors import one_of
from lightspeed_models.evidence.checks import CHECKS
from lightspeed_models.evidence.word_column import Words

HERE = files(__package__)
BLOCK = 2**17  # rows


@dataclass(frozen=True)
class Record:
    """Where a set comes from, and what its rows and columns are. `columns`: name -> "word", or the
    unit in which the source prints the number; `sources`: name -> what the source calls it.
    """

    key: str
    title: str
    repository: str
    commit: str
    place: str
    licence: str
    attribution: str
    row: str
    full_rows: int
    sampler: str
    sample: str
    columns: Mapping[str, str]
    sources: Mapping[str, str]
    file: str = ""
    unverified: bool = False
    note: str = ""
    ships: bool = True


@dataclass(frozen=True)
class Refused:
    """A row that cannot be true: its place in the set, what it says of itself, and why not."""

    row: int
    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class Dataset:
    """The rows of a set that may be true, as columns, and those that were refused."""

    record: Record
    columns: Mapping[str, np.ndarray | Words]
    refused: tuple[Refused, ...] = ()
    full: bool = False

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, column):
        return self.columns[one_of("dataset", "column", column, tuple(self.columns))]

    def where(self, mask):
        """The rows of a mask."""
        return Dataset(
            self.record, {n: c[mask] for n, c in self.columns.items()}, self.refused, self.full
        )

    def name(self, row):
        """What a row says of itself, in one line, as its source prints it."""
        return described(self.record, self.columns, row)

    def reasons(self):
        """Reason -> how many rows were refused for it."""
        return Counter(refusal.reason for refusal in self.refused)


@functools.cache
def records():
    """Key -> `Record` of every set."""
    table = tomllib.loads((HERE / "sets.toml").read_text("utf-8"))
    return {key: _record(key, **entry) for key, entry in table.items()}


def _record(key, columns, **entry):
    parts = {name: f" {text}".partition(" as ") for name, text in columns.items()}
    units = {name: unit.strip() for name, (unit, _, _) in parts.items()}
    return Record(key, columns=units, sources={n: t[2] or n for n, t in parts.items()}, **entry)


def dataset(name, data=None):
    """The `Dataset` of this name: the shipped sample, or all rows under `data`. Raises BadArgument,
    or FileNotFoundError without its files or what it ships.
    """
    record = records()[one_of("dataset", "name", name, tuple(records()))]
    if data is None and not record.ships:
        raise FileNotFoundError(
            f"{name} does not ship with the course: check out {record.repository} and give its"
            " folder as --data DIR"
        )
    return _shipped(name) if data is None else checked(record, read_full(record, data), True)


@functools.cache
def _shipped(name):
    record = records()[name]
    return checked(record, read_csv(record, shipped(name)))


def shipped(name):
    """The text of the sample that ships, as CSV: every row, also those that are refused."""
    return gzip.decompress((HERE / "data" / f"{name}.csv.gz").read_bytes()).decode("utf-8")


def read_csv(record, text):
    """The columns of a table with these names in its first line, as printed."""
    head, *rows = csv.reader(io.StringIO(text))
    if missing := [name for name in record.columns if name not in head]:
        raise ValueError(f"{record.key}: the table has no column {', '.join(missing)}")
    cells = dict(zip(head, zip(*rows, strict=True), strict=True)) if rows else {}
    return {
        name: Words.of(cells.get(name, ())) if unit == "word" else numbers(cells.get(name, ()))
        for name, unit in record.columns.items()
    }


def numbers(cells):
    """Numbers of a column of text; an empty cell is NaN, for what the source does not say."""
    return np.array([np.nan if cell == "" else float(cell) for cell in cells])


def read_full(record, data):
    """The columns of every row of a set in the folder `data`, as printed."""
    module, _, function = record.sampler.partition(".")
    reader = getattr(
        importlib.import_module(f"lightspeed_models.evidence.samplers.{module}"), function
    )
    return reader(checkout(record, data), record)


def checkout(record, data):
    """The folder of a set's repository in `data`: itself, or one of the repository's name."""
    folder = Path(data)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    if ", " in record.repository:  # of several: they stand beside each other
        return folder
    owner, _, name = record.repository.rpartition("/")
    names = (name, f"{owner}/{name}", f"{owner}+{name}", f"{owner}_{name}")
    return next((folder / n for n in names if (folder / n).is_dir()), folder)


def checked(record, printed, full=False):
    """The `Dataset` of columns as printed: in SI, without the rows that cannot be true."""
    columns = {
        name: printed[name] if unit in ("word", "") else printed[name] * UNITS[unit][0]
        for name, unit in record.columns.items()
    }
    good, refusals = np.ones(len(next(iter(columns.values()))), bool), []
    # In blocks that stay in a cache: memory costs millions of rows more than sums.
    for start in range(0, len(good), BLOCK):
        places = np.arange(start, min(start + BLOCK, len(good)), dtype=np.intp)
        part = {name: values[start : start + BLOCK] for name, values in columns.items()}
        for reason, impossible in CHECKS.get(record.key, ()):
            # A row is refused once, for the first reason; later checks may rely on earlier ones.
            bad = impossible(part)
            if bad.any():
                refusals += [
                    Refused(int(row), described(record, columns, row), reason)
                    for row in places[bad]
                ]
                good[places[bad]] = False
                places, part = places[~bad], {n: c[~bad] for n, c in part.items()}
    if refusals:
        columns = {name: values[good] for name, values in columns.items()}
    return Dataset(record, columns, tuple(refusals), full)


def described(record, columns, row):
    """One row in a line: its words, then its numbers in the units of the source."""
    words = [c[row] for c in columns.values() if isinstance(c, Words) and c[row]]
    lines = [
        f"{name} {columns[name][row] / UNITS[unit][0]:.6g} {unit}".rstrip()
        for name, unit in record.columns.items()
        if unit != "word" and not np.isnan(columns[name][row])
    ]
    return ", ".join([*words, *lines])
