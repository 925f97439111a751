import pytest
import sample_bank  # noqa: F401  (registers the questions of topic "sample")


@pytest.fixture(autouse=True)
def _each_has_its_own(own_store):
    pass
