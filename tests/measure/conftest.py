import pytest

from lightspeed_tools.measure import machine


@pytest.fixture(autouse=True)
def own_records(tmp_path, monkeypatch):
    """Each test has a data folder of its own, and what was read of another is forgotten."""
    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path / "data"))
    machine._own.cache_clear()
    return tmp_path / "data" / "records"
