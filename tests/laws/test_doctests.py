"""Every public law has a doctest, and every doctest of the library is right."""

import doctest
import importlib
import pkgutil
from pathlib import Path

from laws import LAWS, each

import lightspeed

LIB = Path(lightspeed.__file__).parents[1]
PACKAGES = sorted(p.name for p in LIB.glob("lightspeed*") if p.name != "lightspeed_cli")
SCRIPTS = {"lightspeed_authoring.site.open_cells"}  # runs in the page's Python, on its files
MODULES = [
    m.name for p in PACKAGES for m in pkgutil.walk_packages([str(LIB / p)], f"{p}.")
    if m.name not in SCRIPTS
]  # fmt: skip


@each("name", MODULES)
def test_doctests(name):
    # Each test, an empty one too, looks up whether every file that Python read has changed since.
    wrong = doctest.testmod(importlib.import_module(name), exclude_empty=True).failed
    assert wrong == 0, f"{wrong} examples of {name} are wrong"


@each("f", LAWS)
def test_every_law_shows_an_example(f):
    assert doctest.DocTestFinder().find(LAWS[f])[0].examples, f"{f} has no doctest"
