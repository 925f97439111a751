"""A package's names without what is behind them: the first use imports the module."""

import importlib


def lazy(package, homes):
    """`__getattr__`, `__dir__` and `__all__` of a package whose names live in `homes` (module ->
    names; its own begin with a dot, and have no export's name).
    """
    home = {name: module for module, names in homes.items() for name in names}

    def getattr_(name):
        if name not in home:
            raise AttributeError(f"{package} has no {name!r}; it has {', '.join(sorted(home))}")
        return getattr(importlib.import_module(home[name], package), name)

    return getattr_, lambda: sorted(home), sorted(home)
