"""What the web edition runs, on a Python without numpy, pint and all else that a browser lacks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lightspeed_course.practice.questions import bank, topics

BLOCKED = (
    "numpy", "pint", "sqlite3", "platformdirs", "scipy", "matplotlib", "networkx", "IPython",
    "ipywidgets", "anywidget", "markdown_it", "jinja2", "nbformat", "multiprocessing", "subprocess",
)  # fmt: skip


@pytest.mark.slow
def test_explorers_and_questions_run_on_a_bare_python():
    script = Path(__file__).with_name("bare.py")
    environment = os.environ | {"LIGHTSPEED_DATA": "/nowhere"}
    run = subprocess.run(
        [sys.executable, script, *BLOCKED], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert int(run.stdout) == sum(len(bank(topic)) for topic in topics())
