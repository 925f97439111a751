"""A record: all that was measured on one machine at one time, as a dictionary and as a JSON file.

    {"schema": 1, "kind": "samples", "name": "AMD EPYC, 2 cores", "when": "2026-11-21T08:00:00Z",
     "machine": {...}, "environment": [...], "versions": {...}, "quantities": [...],
     "missing": [...]}

`kind` is "samples", or "summary" for a record that has medians and spreads alone, whose `source`
says where they are from. Nothing in a record names a person or a host: `save` takes out host and
user names, paths and addresses. A file that is there is never written over.
"""

import contextlib
import copy
import dataclasses
import datetime
import functools
import getpass
import json
import os
import platform
import re
from importlib.resources import files
from pathlib import Path

from lightspeed_show.new_file import write_new
from lightspeed_tools.measure.instruments.timing import Missing, Quantity

SCHEMA = 1
FIELDS = {
    "schema": int,
    "kind": str,
    "name": str,
    "when": str,
    "machine": dict,
    "environment": list,
    "versions": dict,
    "quantities": list,
    "missing": list,
}
KINDS = ("samples", "summary")
DATED = len("measure-20261121T080000Z")


class RecordError(ValueError):
    """A file that is not a valid record: which, why, and what to do."""


class NotMeasured(LookupError):
    """A quantity that a record lacks, with the reason if the record has one."""


def new(quantities, missing=(), machine=None, environment=(), versions=None, name="", **more):
    """Create a record of what was just measured; `quantities` may include `Missing`s."""
    found = [q for q in quantities if isinstance(q, Quantity)]
    lacking = [*(m for m in quantities if isinstance(m, Missing)), *missing]
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    record = {
        "schema": SCHEMA,
        "kind": "samples",
        "name": name,
        "when": when,
        "machine": dict(machine or {}),
        "environment": list(environment),
        "versions": dict(versions or {}),
        "quantities": [as_row(q) for q in found],
        "missing": [dataclasses.asdict(m) for m in lacking],
        **more,
    }
    return without_names(record)


def find(record, key, **parameters):
    """Return the one `Quantity` with this key and these parameters (and perhaps others). Raises
    NotMeasured for none, with the record's reason, or for several.
    """
    fitting = all_of(record, key, **parameters)
    if len(fitting) == 1:
        return fitting[0]
    exact = [q for q in fitting if q.parameters == parameters]
    if exact:
        return exact[0]
    if fitting:
        raise NotMeasured(
            f"{key}: {len(fitting)} quantities fit; say which:"
            f" {'; '.join(q.label for q in fitting[:6])}"
        )
    reasons = [m for m in record["missing"] if key == m["key"] or key.startswith(m["key"] + ".")]
    if reasons:
        raise NotMeasured(
            f"{key} was not measured: {reasons[0]['why']} {reasons[0]['remedy']}".strip()
        )
    asked = ", ".join(f"{n} {v}" for n, v in parameters.items())
    raise NotMeasured(f"this record has no {key}" + (f" with {asked}" if asked else ""))


def all_of(record, key, **parameters):
    """Every `Quantity` of this key whose parameters include these, in the order measured."""
    rows = (row for row in record["quantities"] if row["key"] == key)
    return [
        _quantity(row) for row in rows if parameters.items() <= row.get("parameters", {}).items()
    ]


def quantities(record):
    """Every `Quantity` of a record, in the order measured."""
    return [_quantity(row) for row in record["quantities"]]


def missing(record):
    """Every `Missing` of a record."""
    return [Missing(**row) for row in record["missing"]]


def folder():
    """Where this user's records are kept: `records` in $LIGHTSPEED_DATA, or user data."""
    own = os.environ.get("LIGHTSPEED_DATA")
    if not own:
        import platformdirs

        own = platformdirs.user_data_dir("speed-of-light", appauthor=False)
    return Path(own) / "records"


def save(record, into=None):
    """Write a record as a new dated file in `into` (default: `folder()`), and return its path.
    Raises OSError, and then leaves no part of it.
    """
    into = Path(into) if into else folder()
    text = dumps(record)
    into.mkdir(parents=True, exist_ok=True)
    stem = "measure-" + re.sub(r"[-:]", "", record["when"])
    number = 1
    while True:
        path = into / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        try:
            write_new(path, text)
            return path
        except FileExistsError:
            number += 1


def dumps(record):
    """A record's JSON text: a line for each quantity, so that files can be compared."""
    parts = []
    for name, value in without_names(record).items():
        if isinstance(value, list) and value:
            rows = ",\n".join(
                "    " + json.dumps(row, ensure_ascii=False, allow_nan=False) for row in value
            )
            parts.append(f'  "{name}": [\n{rows}\n  ]')
        else:
            parts.append(f'  "{name}": {json.dumps(value, ensure_ascii=False, allow_nan=False)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def load(path):
    """Read a record. Raises RecordError if damaged, newer or not a record; OSError for a file."""
    try:
        document = json.loads(Path(path).read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(
            f"{path}: damaged, it is not JSON ({error}). Measure again, or take another copy."
        ) from error
    return check(document, path)


def check(record, name="record"):
    """Return the record if it is one, else raise RecordError."""
    if not isinstance(record, dict) or not isinstance(record.get("schema"), int):
        raise RecordError(
            f"{name}: this is not a record of `lightspeed measure`: it has no schema number."
        )
    if record["schema"] > SCHEMA:
        raise RecordError(
            f"{name}: written by a newer version of the course (schema {record['schema']}; this one"
            f" reads up to {SCHEMA}). Update the course to read it."
        )
    for field, kind in FIELDS.items():
        if not isinstance(record.get(field), kind):
            raise RecordError(
                f"{name}: damaged, its {field} is"
                f" {'missing' if field not in record else 'not a ' + kind.__name__}."
            )
    if record["kind"] not in KINDS:
        raise RecordError(
            f"{name}: damaged, kind = {record['kind']!r}: expected {' or '.join(KINDS)}."
        )
    try:
        datetime.datetime.fromisoformat(record["when"])
        found = quantities(record)
        missing(record)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise RecordError(f"{name}: damaged: {error}.") from error
    if record["kind"] == "samples" and not all(q.samples for q in found):
        raise RecordError(f"{name}: damaged, a quantity has no samples.")
    return record


def shipped():
    """The records that come with the course: name -> record."""
    return copy.deepcopy(_shipped())  # the reader may do with them what he likes


def recorded(part):
    """Return one part of the first shipped record with samples of it, as a record."""
    for one in shipped().values():
        own = [row for row in one["quantities"] if row["key"].partition(".")[0] == part]
        if own and one["kind"] == "samples":
            lacking = [row for row in one["missing"] if row["key"].partition(".")[0] == part]
            return one | {"quantities": own, "missing": lacking}
    raise NotMeasured(f"no shipped record has {part}; there are {', '.join(shipped())}")


@functools.cache
def _shipped():
    records = {}
    for file in sorted((files(__package__) / "shipped").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".json"):
            records[file.name.removesuffix(".json")] = check(
                json.loads(file.read_text("utf-8")), file.name
            )
    return records


def own():
    """This user's records, newest first (as `save` dated them), without unreadable ones."""
    # The date is a prefix of one length; a second record of the same second has a number after it.
    names = sorted(
        folder().glob("measure-*.json"),
        key=lambda path: (path.stem[:DATED], len(path.stem), path.stem),
        reverse=True,
    )
    for path in names:
        with contextlib.suppress(OSError, RecordError):
            yield load(path)


def latest(*keys):
    """This user's newest record that has all of `keys` (any record if none are given), or None."""
    for record in own():
        if set(keys) <= {row["key"] for row in record["quantities"]}:
            return record
    return None


def as_row(quantity):
    """Return a quantity as JSON: key, unit, samples (six digits), and non-default fields."""
    row = dataclasses.asdict(quantity)
    row["samples"] = [float(f"{x:.6g}") for x in quantity.samples]
    row["stated"] = {name: float(f"{x:.6g}") for name, x in quantity.stated.items()}
    usual = dataclasses.asdict(Quantity(quantity.key, quantity.unit, (0.0,)))
    return {
        name: value
        for name, value in row.items()
        if name in ("key", "unit") or (value != usual[name] and value != [])
    }


def _quantity(row):
    return Quantity(**row)


PATH = re.compile(
    r"(?<![\w/])(?:~|[A-Za-z]:)?[/\\](?!proc\b|sys\b)[\w.+-]+(?:[/\\][\w.+-]+)+[/\\]?"
)
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b")


def without_names(value):
    """Return plain data with host and user names, paths and network addresses removed."""
    words = {
        platform.node(): "(host)",
        platform.node().partition(".")[0]: "(host)",
        _user(): "(user)",
    }
    names = {w: r for w, r in words.items() if len(w) > 2 and w not in ("root", "localhost")}
    return _cleaned(value, names)


def _cleaned(value, names):
    if isinstance(value, dict):
        # Versions are kept as they are: one of four numbers looks like an address.
        return {
            key: item if key == "versions" else _cleaned(item, names) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_cleaned(item, names) for item in value]
    if not isinstance(value, str):
        return value
    value = ADDRESS.sub("(address)", PATH.sub("(path)", value))
    for word, instead in names.items():
        value = re.sub(rf"(?<![\w]){re.escape(word)}(?![\w])", instead, value)
    return value


def _user():
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no entry for this user id, as in many containers
        return ""
