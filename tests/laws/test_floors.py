"""The house stands: each module imports only from the floors below, and the laws start at once."""

import ast
import subprocess
import sys
from pathlib import Path

import lightspeed
import pytest

ROOT = Path(lightspeed.__file__).parent
FLOOR = {"arguments": 0, "units": 0, "checks": 0, "catalog": 0, "prose": 1, "show": 2, "measure": 3, "explorers": 4, "practice": 4, "workspace": 4, "classroom": 5, "build": 5, "pages": 5, "cli": 5}
TOP = 5
LAW = 1
FILES = sorted(ROOT.rglob("*.py"))


def floor(part):
    return FLOOR.get(part, LAW)


def imported(path):
    """Top-level parts of lightspeed that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lightspeed"):
            parts = node.module.split(".")[1:]
            yield from [parts[0]] if parts else [a.name for a in node.names]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("lightspeed."))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for part in imported(path):
        beside = floor(part) == floor(own) and floor(own) in (0, LAW, TOP)
        assert part == own or floor(part) < floor(own) or beside, f"{own} imports {part}"


@pytest.mark.parametrize("module", sorted(p.stem for p in ROOT.glob("*.py") if floor(p.stem) == LAW and p.stem != "__init__"))
def test_a_law_loads_nothing_heavy(module):
    code = f"import sys, lightspeed.{module}; print(' '.join(m for m in ('numpy', 'pint', 'scipy', 'matplotlib', 'ipywidgets', 'sqlite3', 'networkx') if m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded in ([], ["numpy"]), loaded


def test_the_roofline_runs_without_numpy():
    code = "import sys; sys.modules['numpy'] = None; from lightspeed.roofline import time_bounds; print(time_bounds(2.0, 1.0, 1.0, 1.0).upper)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "3.0"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_one_room(path):
    assert len(path.read_text("utf-8").splitlines()) <= 400
