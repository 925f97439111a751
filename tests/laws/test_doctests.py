"""Every public law has a doctest, and every doctest of the library is right."""

import doctest
import importlib
import pkgutil

import pytest
from laws import LAWS

import lightspeed
import lightspeed_class
import lightspeed_course

PACKAGES = (lightspeed, lightspeed_course, lightspeed_class)
MODULES = [m.name for p in PACKAGES for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.")]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("f", LAWS)
def test_every_law_shows_an_example(f):
    assert doctest.DocTestFinder().find(LAWS[f])[0].examples, f"{f} has no doctest"
