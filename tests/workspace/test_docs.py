"""README and docs/ keep their word: commands run, links lead on, README is a screen."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import finished

from lightspeed_tools.trace.made import Job, write

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# Blocks that need a whole machine, an index or a class, by the words they begin with: the test that
# runs them word for word, or as the command that they are.
ELSEWHERE = {
    "make lab": "tests/install/test_install.py",
    "make test": ".ci/run",
    "make env\n": "tests/classroom/test_tour.py",
    "cp rehearsal": "tests/classroom/test_tour.py",
    "python3 -m venv": "tests/install/test_install.py",
    "uv venv": "tests/install/test_install.py",
    "python3 -m venv .tools": "tests/install/test_two_clicks.py",
    "uvx --from": "tests/install/test_two_clicks.py",
    "make site\n": "tests/web/test_site.py",
    "make site ARGS=--lite": "tests/web/test_lite.py",
    "lightspeed measure all": "tests/measure/test_measure_command.py",
    ".venv/bin/python -m pytest": ".ci/run",
    "lightspeed today": "tests/desk/test_desk.py",
}


def blocks(page):
    return re.findall(r"```sh\n(.*?)```", page.read_text("utf-8"), re.S)


def shown(key):
    """The file that a page shows, by a key in it."""
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    return next(
        text for text in re.findall(r"```(?:json|csv)\n(.*?)```", pages, re.S) if key in text
    )


# The recipes of CONTRIBUTING are walked through by tests/notebooks/test_new.py.
LONG = {"evidence.md 1", "measure.md 1"}  # all of the evidence, a whole measurement
HERE = [
    pytest.param(
        block, id=(name := f"{page.name} {number}"), marks=pytest.mark.slow if name in LONG else ()
    )
    for page in PAGES
    if page.name != "CONTRIBUTING.md"
    for number, block in enumerate(blocks(page))
    if not block.startswith(tuple(ELSEWHERE))
]


@pytest.mark.parametrize("block", HERE)
def test_commands_run_word_for_word(block, tmp_path):
    """In a folder that has what the page says that you bring: a log, a config.json, a profile."""
    log = ROOT / "tests/nccl/logs/01_h100_1node_nvls.log"
    shutil.copy(log, tmp_path / "all_reduce.log")
    shutil.copy(ROOT / "tests/serve/data/runs/vllm.json", tmp_path / "result.json")
    write(Job(ranks=1), tmp_path)[0].rename(tmp_path / "profile.json")
    models = json.loads((ROOT / "tests/published/model_configs.json").read_text("utf-8"))
    config = models["Qwen3-30B-A3B"]["config"]
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    for name, key in (
        ("cluster.json", '"gpus_per_node"'),
        ("runs.json", '"cases"'),
        ("arrivals.csv", "seconds,prompt,output"),
    ):
        (tmp_path / name).write_text(shown(key), "utf-8")
    done = finished(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=tmp_path,
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LIGHTSPEED_DATA": str(tmp_path / "data"),
        },
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.strip()


def test_what_to_try_without_a_file_of_your_own_runs(tmp_path):
    text = (ROOT / "docs/your-own-question.md").read_text("utf-8")
    commands = re.findall(r"^\| .*? \| `((?:lightspeed|python) .*?)`", text, re.MULTILINE)
    assert len(commands) == 5
    for folder in ("lib", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "LIGHTSPEED_DATA": str(tmp_path / "data")},
        check=True,
    )
    assert {file.name for file in tmp_path.glob("*.json")} == {
        "config.json",
        "rank0.json",
        "rank1.json",
    }


def test_every_block_elsewhere_is_there_and_has_its_test():
    every = [block for page in PAGES for block in blocks(page)]
    for start, test in ELSEWHERE.items():
        assert any(block.startswith(start) for block in every), start
        assert (ROOT / test).exists(), test


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert (page.parent / target).exists(), target


def test_readme_is_one_screen():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 120 and max(map(len, lines)) <= 110
