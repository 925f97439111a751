"""What the web edition runs, on a Python without numpy, pint and all else that a browser lacks."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from processes import finished

from lightspeed_authoring.site.build import zip_course
from lightspeed_course.practice.questions import bank, topics

BLOCKED = (
    "numpy", "pint", "sqlite3", "platformdirs", "scipy", "matplotlib", "networkx", "IPython",
    "ipywidgets", "anywidget", "markdown_it", "jinja2", "nbformat", "multiprocessing", "subprocess",
)  # fmt: skip


@pytest.mark.slow
def test_explorers_and_questions_run_on_a_bare_python(tmp_path):
    """As the site has the course: its texts are read and compiled when it is built."""
    script = Path(__file__).with_name("bare.py")
    zip_course(tmp_path / "course.zip")
    shutil.unpack_archive(tmp_path / "course.zip", tmp_path / "course")
    environment = os.environ | {"LIGHTSPEED_DATA": "/nowhere"}
    environment |= {"PYTHONPATH": str(tmp_path / "course")}
    run = finished([sys.executable, script, *BLOCKED], env=environment)
    assert run.returncode == 0, run.stderr[-3000:]
    assert int(run.stdout) == sum(len(bank(topic)) for topic in topics())
