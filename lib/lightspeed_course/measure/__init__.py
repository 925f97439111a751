"""How reality is timed: this machine beside the laws. Nothing heavy loads before it is used.

    from lightspeed_course.measure import measure_here, row, show_recorded, compare_here

`timing` says what a measurement is, `record` what is kept of it, `parts` runs the parts (host, roofline, ...),
`environment` and `conditions` say on what and how far to trust it, `compare` and `report` show it.
"""

import importlib

_HOMES = {
    "timing": ("LIMIT", "Missing", "Quantity", "Unavailable", "seconds_of"),
    "record": ("NotMeasured", "RecordError", "all_of", "find", "latest", "load", "save", "shipped"),
    "parts": ("measure",),
    "machine": ("as_accelerator", "hardware", "own_choices"),
    "tables": ("compare_here", "measure_here", "row", "show_recorded"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"lightspeed_course.measure has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__():
    return __all__
