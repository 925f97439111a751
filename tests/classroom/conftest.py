import sys
from pathlib import Path

import pytest

from lightspeed_class import class_folder as courses

sys.path.insert(0, str(Path(__file__).parent / "hostile"))  # where cases.py is


@pytest.fixture
def course(tmp_path):
    """The folder of a class that was just made; a file may have its own."""
    return courses.new(tmp_path / "class")
