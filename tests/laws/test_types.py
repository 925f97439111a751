"""What a type checker knows of a law's arguments: words, lists and None are mistakes before any
run; numbers, arrays and quantities are not.
"""

from __future__ import annotations

import re
from pathlib import Path

from mypy import api

RIGHT = """
import numpy as np

from lightspeed.memory import training_state_bytes
from lightspeed.queueing import mm1
from lightspeed.roofline import ridge_point, time_bounds, transfer_time
from lightspeed.units import Q
from lightspeed_models.fits import fit_alpha_beta

ridge_point(1e15, 3)
ridge_point(peak=np.array([1e15, 2e15]), bandwidth=np.float32(3e12))
ridge_point(Q(1, "PFLOP/s"), Q("3 TB/s"))
transfer_time(ridge_point(1e15, 3e12) * 1e9, 3e12)
time_bounds(1e12, 1e9, 1e15, 1e12).lower + 1
training_state_bytes(70e9, "18", 8, 3)
mm1(80, 100).W / 2
fit_alpha_beta([1e6, 2e6], (1e-3, 2e-3), steps=2)
fit_alpha_beta(np.array([1e6, 2e6]), np.array([1e-3, 2e-3]))
"""
WRONG = {
    'ridge_point("fast", [1, 2])': 2,
    "ridge_point(None, 3e12)": 1,
    "ridge_point(1e15, {1, 2})": 1,
    "ridge_point(1e15)": 1,
    "ridge_point(1e15, width=3e12)": 1,
    "time_bounds(1e12, 1e9, 1e15, 1e12).largest": 1,
    'mm1("80", 100)': 1,
    'fit_alpha_beta("1e6", [1e-3, 2e-3])': 1,
    "training_state_bytes(70e9, 18, 8, 3)": 1,
}


def test_a_type_checker_tells_right_calls_from_wrong_ones(tmp_path, monkeypatch):
    calls = RIGHT + "\n".join(WRONG) + "\n"
    (tmp_path / "calls.py").write_text(calls, encoding="utf-8")
    monkeypatch.chdir(Path(__file__).parents[2])  # where pyproject.toml says how
    report, broken, _ = api.run([str(tmp_path / "calls.py"), "--no-error-summary"])
    assert not broken, broken
    lines = [int(n) for n in re.findall(r"calls\.py:(\d+): error", report)]
    seen = {calls.splitlines()[n - 1]: lines.count(n) for n in lines}
    assert seen == WRONG, report
