"""How a law is drawn: charts as data, static figures, tables, explorers. Nothing heavy loads before it is used."""

import importlib

_HOMES = {
    "format": ("si", "human_time", "plain"),
    "chart": ("Axis", "Line", "Points", "Bars", "Area", "Span", "Rule", "Text", "Chart", "human_axis"),
    "roof": ("roof_chart",),
    "page": ("figure", "table"),
    "explore": ("View", "explorer", "Choice", "Slider", "LogSlider", "Toggle"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"lightspeed_course.show has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def __dir__():
    return __all__
