"""nbval runs the committed notebooks in the same command as the tests; here they get the
environment of the build.
"""

import os
import shutil
import tempfile
from unittest import mock

import pytest
from hypothesis import settings

# A deadline would make a test of truth one of speed on a busy machine.
settings.register_profile("course", deadline=None)
settings.load_profile("course")

STORE = pytest.StashKey[str]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    """A notebook's kernel, which starts with its first cell, gets an empty store of its own."""
    if item.path.suffix != ".ipynb":
        return (yield)
    page = item.parent
    if STORE not in page.stash:
        page.stash[STORE] = tempfile.mkdtemp(prefix="lightspeed-")
        item.config.add_cleanup(lambda: shutil.rmtree(page.stash[STORE], ignore_errors=True))
    store = page.stash[STORE]
    environment = {
        "LIGHTSPEED_DATA": f"{store}/data",
        "IPYTHONDIR": f"{store}/ipython",
        "PYTHONHASHSEED": "0",
    }
    with mock.patch.dict(os.environ, environment):
        return (yield)
