"""beside: a lesson's law in plain torch, and what it printed where somebody ran it.

The scripts are benchmarks/beside/*.py; chapters/beside.toml has their text and what they printed,
so that no page needs torch. `lightspeed check` says which ones changed since.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib.util import find_spec
from pathlib import Path

from lightspeed_course.workspace import course_root
from lightspeed_show.host import here


def records() -> dict[str, dict[str, str]]:
    """Return script name -> code and, if recorded, output, device, torch and date."""
    return tomllib.loads((course_root() / "chapters" / "beside.toml").read_text("utf-8"))


def beside(name: str, run: bool = False) -> None:
    """Show the script `name`, such as "02_two_clocks", with its recorded output, or run it on this
    machine. Raises ValueError for an unknown name, or if it must run and torch is missing.
    """
    scripts = records()
    if name not in scripts:
        raise ValueError(f"beside: name = {name!r}: expected one of {', '.join(scripts)}")
    if run:
        print(output(scripts[name]["code"], f"{name}.py"), end="")
    else:
        text = markdown(name, scripts[name])
        here().display({"text/markdown": text, "text/plain": text})


def markdown(name: str, record: dict[str, str]) -> str:
    """Code, output and origin."""
    code = f"```python\n{record['code'].rstrip()}\n```"
    again = f'In the lab, `beside("{name}", run=True)` runs it on your machine, if torch is there.'
    if "output" not in record:
        return f"{code}\n\n*Not recorded yet.* {again}"
    where = f"{record['device']}, torch {record['torch']}, {record['date']}"
    return (
        f"{code}\n\nIt printed:\n\n```text\n{record['output'].rstrip()}\n```\n\n*{where}.* {again}"
    )


def output(code: str, file: str) -> str:
    """Run a script in its own processes, with torchrun if its first line says so, and return what
    it prints.

    Raises ValueError where torch is missing, RuntimeError with its last words if it fails.
    """
    if find_spec("torch") is None:
        raise ValueError("beside: run = True: torch is not installed here; `pip install torch`")
    match = re.match(r"# torchrun (.*) \S+\.py\n", code)
    by = ["-m", "torch.distributed.run", *match[1].split()] if match else []
    quiet = {"PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": str(os.cpu_count())}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, file)
        script.write_text(code, "utf-8")
        process = subprocess.run(
            [sys.executable, *by, str(script)],
            env=os.environ | quiet,
            capture_output=True,
            text=True,
            check=False,
        )
    if process.returncode:
        raise RuntimeError(f"{file}: {process.stderr.strip()[-500:]}")
    return process.stdout
