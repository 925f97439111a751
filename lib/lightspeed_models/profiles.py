"""Reading what was measured: a cProfile file, a JSON breakdown, the recorded scaling runs.

Each reader returns plain data (name -> seconds) for the laws of `lightspeed.scaling`.
"""

import functools
import json
import pstats
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lightspeed.catalog import measured
from lightspeed.errors import BadArgument

REST = "everything else"


def read_profile(path: str | Path, functions: Iterable[str]) -> dict[str, float]:
    """Seconds in each named function, callees included, and in `everything else`, from a pstats
    file. Raises BadArgument for a name missing, there twice, or called by another.
    """
    stats: Any = pstats.Stats(str(path))
    keys = {name: _key(stats.stats, name) for name in functions}
    for name, key in keys.items():
        for outer in keys.keys() & {key[2] for key in _callers(stats.stats, key)} - {name}:
            hint = f"Name only one of them: {outer} includes it."
            expected = f"functions of which none calls another ({outer} does)"
            raise BadArgument("read_profile", "functions", name, expected, hint)
    breakdown = {name: stats.stats[key][3] for name, key in keys.items()}
    return breakdown | {REST: max(stats.total_tt - sum(breakdown.values()), 0.0)}


def _key(stats: Mapping[Any, Any], name: str) -> Any:
    keys = [key for key in stats if key[2] == name]
    if len(keys) != 1:
        where = "; ".join(f"{file}:{line}" for file, line, _ in keys) or "none of that name"
        expected = f"one function of the profile (found {where})"
        raise BadArgument("read_profile", "functions", name, expected)
    return keys[0]


def _callers(stats: Mapping[Any, Any], key: Any) -> set[Any]:
    """Every function from which `key` is reached."""
    visits, todo = set(), [key]
    while todo:
        for caller in stats[todo.pop()][4]:
            if caller not in visits:
                visits.add(caller)
                todo.append(caller)
    return visits


def read_breakdown(path: str | Path) -> dict[str, float]:
    """A breakdown name -> seconds from a JSON file that holds one flat object."""
    with open(path, encoding="utf-8") as file:
        breakdown = json.load(file)
    if not isinstance(breakdown, dict):
        raise BadArgument("read_breakdown", "path", str(path), "a JSON object of name: seconds")
    return breakdown


@functools.cache
def scaling_runs() -> dict[str, Any]:
    """Measured scaling by key: this course's own runs and published ones."""
    return measured("scaling")
