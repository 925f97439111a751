"""Every law of the library, found by its signature: the tables below run over all of them."""

import importlib
import pkgutil

import lightspeed
from lightspeed.law import Argument

LIBRARY = [m.name for m in pkgutil.walk_packages(lightspeed.__path__, "lightspeed.") if not m.ispkg]


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
                found[f"{module.__name__.removeprefix('lightspeed.')}.{name}"] = thing
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
