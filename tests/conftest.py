import signal

import pytest

from lightspeed_course.practice import store_file

# What a shell starts in the background ignores Ctrl+C, and so would every program that a test
# interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def own_store(tmp_path, monkeypatch):
    """A store for one test, and self-study's values; folders of tests on practice use it in each."""
    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("LIGHTSPEED_SEED", raising=False)
    monkeypatch.setattr(store_file, "_waiting", [])
    monkeypatch.setattr(store_file, "_notice", {"text": "", "told": False})
    return tmp_path / "data"
