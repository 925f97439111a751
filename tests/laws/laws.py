"""Every law of the library, found by its signature: the tables below run over all of them."""

import importlib
import itertools
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import lightspeed
import lightspeed_models
from lightspeed.law import Argument

# The laws, and what is put together of them.
LIBRARY = [
    m.name
    for p in (lightspeed, lightspeed_models)
    for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.")
    if not m.ispkg and ".evidence." not in m.name
]


def short(name):
    """The name of a module or of a thing in it, without its package."""
    return name.removeprefix("lightspeed.").removeprefix("lightspeed_models.")


def every_law():
    """(name, function) of each function declared with @law, once, where it is defined."""
    found = {}
    for module in map(importlib.import_module, LIBRARY):
        for name, thing in vars(module).items():
            if (
                callable(thing)
                and hasattr(thing, "arguments")
                and thing.__module__ == module.__name__
            ):
                found[f"{short(module.__name__)}.{name}"] = thing
    return found


LAWS = every_law()


def valid(spec, scale=1):
    """A value that `spec` accepts (a whole one for counts)."""
    if not isinstance(spec, Argument):
        return spec[0]
    if spec.high < float("inf"):
        value = spec.low + (spec.high - spec.low) / 2
        return round(value) if spec.whole else value
    return max(spec.low, 0) + 3 * scale


def each(names: str, *cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """One test of many cases: all of them run, and those that fail are named together.

    Called as `pytest.mark.parametrize` is; several lists of cases are a grid, each list one name.
    """
    arguments = [name.strip() for name in names.split(",")]
    grid = [*cases[0]] if len(cases) == 1 else [*itertools.product(*cases)]

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        def of_each() -> None:
            assert grid, "no case to try"
            faults = []
            for case in grid:
                values = (case,) if len(arguments) == 1 else case
                try:
                    test(**dict(zip(arguments, values, strict=True)))
                except (Exception, pytest.fail.Exception) as fault:
                    faults.append(f"{case}: {type(fault).__name__}: {fault}")
            assert not faults, f"{len(faults)} of {len(grid)} fail\n" + "\n".join(faults)

        of_each.__name__, of_each.__doc__ = test.__name__, test.__doc__
        return of_each

    return decorate
