"""What runs where little is installed: the tools with two packages, and a hint where even those are
missing.
"""

import sys
import tomllib
from pathlib import Path

from processes import finished
from test_fit_stack import lines as measured_steps
from test_fit_stack import table

from lightspeed_cli.main import TOOLS
from lightspeed_tools.trace.made import Job, write

ROOT = Path(__file__).parents[2]
# Runs `lightspeed` for each line that follows, where only some packages can be imported.
RUN = """
import importlib.abc, sys
allowed, *lines = sys.argv[1:]
class Only(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        ours = top in sys.stdlib_module_names or top[0] == "_" or top.startswith("lightspeed")
        if not ours and top not in allowed.split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=top)
sys.meta_path.insert(0, Only())
from lightspeed_cli import main
for line in lines:
    print("#", line.split()[0], main(line.split()))
"""


def run(allowed, *lines):
    done = finished([sys.executable, "-c", RUN, " ".join(allowed), *lines])
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    return {line.split()[1]: line.split()[2] for line in done.stdout.splitlines()
            if line.startswith("# ")}, done.stderr  # fmt: skip


def test_the_tools_run_with_the_packages_of_their_extra(tmp_path):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = extras["optional-dependencies"]["tools"]
    assert tuple(name.partition(">")[0] for name in named) == TOOLS
    trace = " ".join(map(str, write(Job(hidden=1024), tmp_path)))
    log = ROOT / "tests/nccl/logs/01_h100_1node_nvls.log"
    sweep = table(tmp_path / "sweep.csv", measured_steps())
    lines = [
        "number H100.bf16", "law pipeline bubble", "model Qwen/Qwen3-32B",
        "plan llama3_8b --cluster h100_sxm:8 --batch 64k", "serve Qwen3-32B --hardware H100",
        f"nccl report {log}", f"trace {trace}",
        f"fit-stack {sweep} --like nanotron_h100",
    ]  # fmt: skip
    statuses, _ = run(TOOLS, *lines)
    assert len(statuses) == 8 and set(statuses.values()) <= {"0", "1"}, statuses
    assert statuses | {"plan": "1"} == dict.fromkeys(statuses, "0") | {"plan": "1"}


def test_a_plain_installation_says_what_to_install():
    statuses, said = run((), "model qwen3_32b", "plan llama3_8b --cluster h100_sxm:8 --batch 64k")
    assert statuses == {"model": "0", "plan": "2"}
    assert "numpy is not installed" in said and "pip install '.[tools]'" in said
