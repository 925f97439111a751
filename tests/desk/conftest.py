import pytest

from lightspeed_course.practice import store_file


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    """Each test has a store of its own, and self-study's values."""
    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("LIGHTSPEED_SEED", raising=False)
    monkeypatch.setattr(store_file, "_waiting", [])
    monkeypatch.setattr(store_file, "_notice", {"text": "", "told": False})
    return tmp_path / "data"
