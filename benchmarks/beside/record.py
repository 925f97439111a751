"""Run the scripts that stand beside the lessons, and write chapters/beside.toml.

    python benchmarks/beside/record.py [NAME ...]

They are plain torch, and no build needs it: a page shows what is written here. Where torch is not
installed, the code is written without an output, and the page says "not recorded". A Python that
has torch alone needs PYTHONPATH=lib.
"""

import datetime
import importlib.util
import json
import os
import sys
import tomllib
from pathlib import Path

from lightspeed_course.in_torch import output

FOLDER = Path(__file__).parent
RECORDS = FOLDER.parents[1] / "chapters" / "beside.toml"


def device():
    """What it ran on, in words, and the version of torch."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name(), torch.__version__
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    name = next((line.partition(": ")[2] for line in lines if "model name" in line), "a CPU")
    return f"{os.cpu_count()} cores of {name}", torch.__version__


def record(script):
    """The entry of a script: its code, and what it printed, where and when."""
    entry = {"code": script.read_text("utf-8")}
    if importlib.util.find_spec("torch") is None:
        return entry
    where, version = device()
    today = datetime.date.today().isoformat()
    return entry | {
        "output": output(entry["code"], script.name),
        "device": where,
        "torch": version,
        "date": today,
    }


def written(records):
    """The records as TOML, text in lines as it stands."""
    found = ["# What benchmarks/beside/record.py wrote; run it again when a script changed.\n"]
    for name, entry in sorted(records.items()):
        found.append(f'["{name}"]\n')
        for key, value in entry.items():
            plain = f"'''\n{value}'''" if "\n" in value else json.dumps(value, ensure_ascii=False)
            found.append(f"{key} = {plain}\n")
        found.append("\n")
    return "".join(found).rstrip() + "\n"


def main(names):
    known = tomllib.loads(RECORDS.read_text("utf-8")) if RECORDS.exists() else {}
    scripts = {script.stem: script for script in sorted(FOLDER.glob("[0-9]*.py"))}
    fresh = {name: record(script) for name, script in scripts.items() if name in (names or scripts)}
    kept = {name: entry for name, entry in known.items() if name in scripts}
    RECORDS.write_text(written(kept | fresh), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
