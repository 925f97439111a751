"""The sample course of samples/, built once a session."""

import shutil
from pathlib import Path

import pytest

from lightspeed_authoring.build import build, sources

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    """A copy of the sample course with its notebooks."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(SAMPLES, root, dirs_exist_ok=True)
    assert build(sources(root=root), root) == []
    return root
