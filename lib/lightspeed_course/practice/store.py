"""What a learner did, kept: events that are only ever added, and never lost.

Who keeps them is the host's affair: in the lab one SQLite file (store_file.py), in the web edition
the browser. A keeper has `add(rows)`, `rows()` and `take_notice()`; a row is (key, at, kind,
question, detail as JSON). The same rows travel between them as a file.
"""

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

FORMAT = "speed-of-light progress"
ROW: dict[str, Any] = {"key": str, "at": (int, float), "kind": str, "question": str, "detail": dict}


@dataclass(frozen=True)
class Event:
    """A learner's action: time (seconds since 1970), kind, question, and details."""

    at: float
    kind: str
    question: str
    detail: dict


_host = {}


def use(keeper):
    """Use this keeper for the events of this process."""
    _host["keeper"] = keeper


def _keeper():
    if "keeper" not in _host:
        from lightspeed_course.practice import store_file

        _host["keeper"] = store_file
    return _host["keeper"]


def record(kind, question, detail=None, at=None):
    """Record one event, with details for JSON. Never raises if the keeper cannot write."""
    at = time.time() if at is None else at
    _keeper().add([(uuid.uuid4().hex, at, kind, question, json.dumps(detail or {}))])


def events(kind=None, question=None):
    """Return all events, or those of a kind or question, oldest first."""
    all_events = [Event(at, k, q, json.loads(detail)) for _, at, k, q, detail in _keeper().rows()]
    return [e for e in all_events if kind in (None, e.kind) and question in (None, e.question)]


def take_notice():
    """Return why events are not kept, on the first call only; else an empty text."""
    return _keeper().take_notice()


# --- between keepers ----------------------------------------------------------------------------


def dumps():
    """All events as the text of a file that `loads` takes, here or elsewhere."""
    rows = [dict(zip(ROW, (*row[:4], json.loads(row[4])), strict=True)) for row in _keeper().rows()]
    return json.dumps({"format": FORMAT, "version": 1, "events": rows}, indent=1)


def loads(text):
    """Add the new events of such a file, and return their number.

    Raises ValueError, and adds nothing, for a text that is not such a file.
    """
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(
            "This is not a file of progress: expected one that `lightspeed progress --save FILE`,"
            " or the export of the web edition, has written."
        )
    if data.get("version") != 1 or not isinstance(data.get("events"), list):
        raise ValueError("This file of progress is of another version: update the course.")
    for number, event in enumerate(data["events"], 1):
        right = isinstance(event, dict) and event.keys() == ROW.keys()
        if not right or not all(isinstance(event[n], kind) for n, kind in ROW.items()):
            raise ValueError(f"Event {number} of this file of progress is damaged.")
    here = {row[0] for row in _keeper().rows()}
    rows = [
        (*(event[name] for name in list(ROW)[:4]), json.dumps(event["detail"]))
        for event in data["events"]
    ]
    new = list({row[0]: row for row in rows if row[0] not in here}.values())
    _keeper().add(new)
    return len(new)
