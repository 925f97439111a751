"""Every public law has a doctest, and every doctest of the library is right."""

import doctest
import importlib
import pkgutil

import lightspeed
import pytest
from laws import LAWS

MODULES = [m.name for m in pkgutil.walk_packages(lightspeed.__path__, "lightspeed.")]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("f", LAWS)
def test_every_law_shows_an_example(f):
    assert doctest.DocTestFinder().find(LAWS[f])[0].examples, f"{f} has no doctest"
