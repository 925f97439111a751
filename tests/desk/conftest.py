import pytest


@pytest.fixture(autouse=True)
def _each_has_its_own(own_store):
    pass
