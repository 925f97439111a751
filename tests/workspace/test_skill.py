"""SKILL.md followed to the letter: each of its commands runs, and prints what the file says."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from lightspeed.catalog import accelerator
from lightspeed.roofline import critical_batch, ridge_point
from lightspeed_cli.main import main
from lightspeed_tools.trace.made import Job, write

ROOT = Path(__file__).parents[2]
SKILL = (ROOT / "SKILL.md").read_text("utf-8")


@pytest.mark.slow
def test_each_command_prints_what_the_file_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests/nccl/logs/20_oci_a100_2nodes.log", "all_reduce.log")
    shutil.copy(ROOT / "tests/serve/data/runs/vllm.json", "result.json")
    write(Job(ranks=2), ".")
    sections = re.findall(r"### ([^\n]+)\n+```sh\n(.+?)```\n+(.+?)(?=\n##|\Z)", SKILL, re.S)
    assert len(sections) >= 10, "a question, its command, and what it prints"
    for question, block, text in sections:
        answers = re.findall(r"`([^`]*)`", text)
        for command, answer in zip(block.strip().splitlines(), answers, strict=False):
            words = shlex.split(command)
            assert words[0] == "lightspeed" and main(words[1:]) == 0, command
            lines = capsys.readouterr().out.splitlines()
            if text.startswith("First line"):
                lines = lines[:1]
            assert any(answer in line for line in lines), (question, answer, lines[:3])
            others = re.findall(r"`(lightspeed [^`]*)`", text)
            assert all(main(shlex.split(other)[1:]) == 0 for other in others), others
            capsys.readouterr()


def test_its_critical_batch_is_the_law_s():
    h100 = accelerator("h100_sxm")
    batch = critical_batch(ridge_point(float(h100.bf16), float(h100.hbm_bandwidth)))
    assert f"is {batch:.0f} tokens a step" in SKILL


def test_each_tool_names_the_lesson_that_teaches_it(tmp_path, capsys):
    write(Job(ranks=1), tmp_path)
    log = ROOT / "tests/nccl/logs/20_oci_a100_2nodes.log"
    commands = {
        "model Qwen3-8B": "4.2",
        "plan llama3_8b --cluster h100_sxm:64 --batch 1M": "10",
        "serve Llama-3.1-8B --gpu 1xH100 --ttft 2s --tpot 40ms --in 1k --out 500": "9",
        f"nccl report {log}": "7",
        f"trace {tmp_path / 'rank0.json'}": "11",
    }
    for command, lesson in commands.items():
        assert main(shlex.split(command)) == 0, command
        assert re.search(rf"(?i)why:? +lesson {re.escape(lesson)}\b", capsys.readouterr().out), (
            command
        )
        if not command.startswith("trace"):
            main([*shlex.split(command), "--json"])
            json.loads(capsys.readouterr().out)


def test_its_head_is_what_an_agent_looks_for():
    head = re.match(r"---\nname: (.+)\ndescription: (.+)\n---\n", SKILL)
    assert re.fullmatch(r"[a-z0-9-]{1,64}", head[1]) and len(head[2]) <= 1024
    assert SKILL.count("\n") < 500
