"""The page's Python shows what the lab's shows: every explorer over its grid, every question."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
def test_pyodide_and_cpython_show_the_same(site):
    script = HERE / "states.py"
    live = site / "_static" / "live"
    page = subprocess.run(
        ["node", HERE / "compare.mjs", live, script], capture_output=True, text=True
    )
    assert page.returncode == 0, page.stderr[-2000:]
    lab = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True,
        env=os.environ | {"LIGHTSPEED_DATA": "/nowhere"},
    )  # fmt: skip
    here, there = (run.stdout.splitlines() for run in (lab, page))
    assert len(here) == len(there) > 300
    apart = [
        (
            json.loads(a)[:2],
            next((x, y) for x, y in zip(a.split(), b.split(), strict=False) if x != y),
        )
        for a, b in zip(here, there, strict=True)
        if a != b
    ]
    assert not apart, f"{len(apart)} of {len(here)} differ, first {apart[:3]}"
