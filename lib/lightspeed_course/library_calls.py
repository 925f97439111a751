"""Which functions of the library a result came out of: a law that is called is not yet written.

A grader runs this beside a student's function, and `check` beside a learner's.
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import lightspeed

_HERE = os.path.dirname(lightspeed.__file__)
_LIBRARY = tuple(os.path.join(folder, "") for folder in (_HERE, f"{_HERE}_models"))
_LAW = os.path.join(_HERE, "law.py")  # what checks the arguments of each law
# what stands around laws, and is none
_AROUND = {_LAW, *(os.path.join(_HERE, f"{n}.py") for n in ("values", "elementwise", "errors"))}
MOST = 64  # results of a function that are kept, the last ones
SAMPLES = 5  # so many are looked at, since that takes many times as long
EVENTS = 200_000  # calls and returns after which nobody looks any more


class Calls:
    """The library functions called by others within this `with`, and their results; `laws` are the
    laws among them.
    """

    def __init__(self) -> None:
        self.given: dict[str, deque[Any]] = {}
        self.laws: set[str] = set()
        self._events = 0

    def __enter__(self) -> Calls:
        self._before = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.setprofile(self._before)

    def _see(self, frame: Any, event: str, result: Any) -> None:
        self._events += 1
        if self._events > EVENTS:
            sys.setprofile(None)
        if event != "return" or not _is_library(frame):
            return
        caller = frame.f_back
        while caller and _is_around(caller):
            caller = caller.f_back
        if caller and not _is_library(caller):
            name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"[:100]
            self.given.setdefault(name, deque(maxlen=MOST)).append(result)
            if frame.f_back.f_code.co_filename == _LAW:
                self.laws.add(name)

    def gave(self, value: Any) -> list[str]:
        """Return the calls that gave this value, or a result that contains it."""
        plain = _number(value)
        if plain is None:
            return []
        return sorted(
            name
            for name, results in self.given.items()
            if any(math.isclose(plain, part, rel_tol=1e-12) for r in results for part in _parts(r))
        )


def origin(function: Callable[..., Any], samples: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """`laws`: what a function calls; `gives`: functions of the library behind most results."""
    each = []
    for inputs in islice(samples, SAMPLES):
        with Calls() as calls:
            try:
                value = function(**inputs)
            except Exception:  # of this input nothing can be said
                value = None
        each.append((sorted(calls.laws), calls.gave(value)))
    return gathered(each)


def gathered(each: Iterable[tuple[list[str], list[str]]]) -> dict[str, list[str]]:
    """The same, of (laws called, what gave the result) for each sample."""
    pairs = list(each)
    laws = {name for names, _ in pairs for name in names}
    gave = Counter(name for _, names in pairs for name in names)
    return {
        "laws": sorted(laws),
        "gives": sorted(n for n, times in gave.items() if 2 * times > len(pairs)),
    }


def law_called(library_side: dict[str, list[str]], student_side: dict[str, list[str]]) -> str:
    """What of the library gives the answer that is asked for, if the one given has it from there,
    and calls all laws that it is put together of.
    """
    common = sorted(set(library_side["gives"]) & set(student_side["gives"]))
    return common[0] if common and set(library_side["laws"]) <= set(student_side["laws"]) else ""


def _is_library(frame: Any) -> bool:
    file: str = frame.f_code.co_filename
    return file.startswith(_LIBRARY) and not _is_around(frame)


def _is_around(frame: Any) -> bool:
    name: str = frame.f_code.co_name  # of a decorator, a lambda or a loop in one line
    return frame.f_code.co_filename in _AROUND or name == "wrapper" or name.startswith("<")


def _parts(result: Any) -> Iterable[float]:
    """The numbers of a result: itself, or its fields."""
    fields = dataclasses.fields(result) if dataclasses.is_dataclass(result) else ()
    whole = [getattr(result, field.name, None) for field in fields] or [result]
    return [number for part in whole if (number := _number(part)) is not None]


def _number(value: Any) -> float | None:
    """A plain number or a quantity as a float, in base units; None for what is neither."""
    try:
        base = getattr(value, "to_base_units", None)
        return float(base().magnitude if base else value)
    except Exception:
        return None
