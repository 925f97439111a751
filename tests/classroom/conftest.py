import functools
import sys
from pathlib import Path

import pytest
from needs import lacks

from lightspeed_class import class_folder as courses
from lightspeed_class import roster
from lightspeed_class.grading import cluster, sandbox
from lightspeed_cli import main

sys.path.insert(0, str(Path(__file__).parent / "hostile"))  # where cases.py is


@pytest.fixture(autouse=True)
def few_late_joiners(monkeypatch):
    """Each release draws what late joiners will be asked: for ten, most of its time."""
    monkeypatch.setattr(roster, "SPARE", 2)


@pytest.fixture
def course(tmp_path):
    """The folder of a class that was just made; a file may have its own."""
    return courses.new(tmp_path / "class")


@pytest.fixture
def say(capsys):
    """Run a verb of `lightspeed class`: (status, all that it printed)."""

    def say(*words):
        status = main(["class", *map(str, words)])
        out = capsys.readouterr()
        return status, out.out + out.err

    return say


@pytest.fixture(scope="session")
def no_sandbox():
    """Whether submissions can't be isolated on this machine."""
    try:
        sandbox.available()
    except sandbox.NoSandbox:
        return True
    return False


@pytest.fixture(scope="session", autouse=True)
def skipped_without(no_sandbox):
    """Where there is no sandbox, a test that asks for one ends there, as skipped."""

    @functools.wraps(sandbox.available)
    def available():
        lacks("bubblewrap")

    with pytest.MonkeyPatch.context() as patch:
        for module in (sandbox, cluster) if no_sandbox else ():
            patch.setattr(module, "available", available)
        yield


@pytest.fixture
def sandboxed(no_sandbox):
    """For a test whose sandboxes are those of another process."""
    if no_sandbox:
        lacks("bubblewrap")
