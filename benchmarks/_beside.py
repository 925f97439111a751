"""The library that the benchmarks run beside ours: mlsysim from the package index, in an
environment of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

NAME, VERSION = "mlsysim", "0.3.0"
BENCH = Path(__file__).resolve().parents[1] / ".bench"
HOME = BENCH / f"{NAME}-{VERSION}"
PYTHON = HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def python():
    """The Python of that environment, made on first use."""
    uv = Path(sys.executable).with_name("uv")
    if not (HOME / "done").exists():
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, HOME], check=True
        )
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", PYTHON, f"{NAME}=={VERSION}"], check=True
        )
        (HOME / "done").touch()
    return PYTHON


def run(program, code):
    """What a fresh process prints. Both sides keep compiled files, whatever the surrounding
    shell says of that.
    """
    environment = os.environ | {
        "PYTHONPYCACHEPREFIX": str(BENCH / "pycache"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    done = subprocess.run(
        [program, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def show(title, rows):
    """A table of (what, number as text)."""
    width = max(len(what) for what, _ in rows)
    print(f"\n{title}")
    for what, number in rows:
        print(f"  {what:<{width}}  {number:>12}")
