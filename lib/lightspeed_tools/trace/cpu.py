"""A profile of a CPU: what PyTorch's operators took, without what they call. `recorded` is the one
that benchmarks/cpu_profile.py wrote.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lightspeed_tools.trace.reader import Trace

RECORDED = Path(__file__).parent / "recorded_cpu.json.gz"


def recorded() -> dict[str, Any]:
    """Return the recorded file: `traceEvents`, and `recorded` on the machine and its times."""
    return json.loads(gzip.decompress(RECORDED.read_bytes()))


def host_events(trace: Trace) -> Iterator[dict[str, Any]]:
    """The operators of a trace as events, times in µs."""
    operators = trace.operators
    columns = (operators.name, operators.place, operators.start, operators.duration)
    for name, thread, start, duration in zip(*columns, strict=True):
        where = trace.path, thread
        yield {"ph": "X", "cat": "cpu_op", "name": trace.names[name], "tid": where, "ts": start,
               "dur": duration}  # fmt: skip


def own_times(events: Iterable[dict[str, Any]]) -> dict[str, tuple[int, float]]:
    """Return operator -> (calls, its own seconds), longest first. Operators nested within it on the
    same thread are subtracted.

    >>> row = {"ph": "X", "cat": "cpu_op", "tid": 1}
    >>> outer = row | {"name": "a", "ts": 0, "dur": 8e6}
    >>> own_times([outer, row | {"name": "b", "ts": 2, "dur": 2e6}])
    {'a': (1, 6.0), 'b': (1, 2.0)}
    """
    threads = defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and event.get("cat") == "cpu_op":
            threads[event.get("tid")].append(event)
    calls: dict[str, int] = defaultdict(int)
    own: dict[str, float] = defaultdict(float)
    for rows in threads.values():
        inside: list[tuple[float, str]] = []
        for event in sorted(rows, key=lambda e: (e["ts"], -e["dur"])):
            while inside and inside[-1][0] <= event["ts"]:
                inside.pop()
            if inside:
                own[inside[-1][1]] -= event["dur"] * 1e-6
            calls[event["name"]] += 1
            own[event["name"]] += event["dur"] * 1e-6
            inside.append((event["ts"] + event["dur"], event["name"]))
    return {name: (calls[name], own[name]) for name in sorted(own, key=own.__getitem__)[::-1]}
