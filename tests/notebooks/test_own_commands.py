"""The command with which a lesson ends runs on a reader's own files and says what the page says."""

import json
import re
import shlex
from pathlib import Path

import nbformat
import pytest

from lightspeed.catalog import accelerator
from lightspeed_cli.main import main
from lightspeed_course import job
from lightspeed_models.llm import decoder
from lightspeed_tools.serve.plan import Job, plans

CHAPTERS = Path(__file__).parents[2] / "chapters"
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192,
    "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
    "num_key_value_heads": 8, "vocab_size": 128256,
}  # fmt: skip


def fences(name, language):
    notebook = nbformat.read(CHAPTERS / f"{name}.ipynb", 4)
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


def commands(name):
    lines = "".join(fences(name, "sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("lightspeed ")]


def best_rate():
    """Requests a second of the job's own eight GPUs, as the lesson's table has them."""
    asked = Job(
        decoder("Llama-3.1-70B"), accelerator("h100_sxm"), 8, prompt=job.LONG - job.ANSWER // 2,
        output=job.ANSWER, per_token=job.BUDGET,
    )  # fmt: skip
    return plans(asked)[0][0].rate


@pytest.mark.parametrize(
    "name, says",
    [
        ("09_serving", lambda: [f"{best_rate():.3g} requests/s at random"]),
        (
            "10_plan_a_run",
            lambda: [job.planned_anew()["best"]["plan"], f"Rank {job.explained()['rank']} of"],
        ),
    ],
)
def test_the_last_command_gives_the_jobs_own_numbers(name, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text(json.dumps(LLAMA), "utf-8")
    for text in fences(name, "json"):
        Path("cluster.json").write_text(text, "utf-8")
    asked, expected = commands(name), says()
    assert len(asked) == len(expected)
    for argv, words in zip(asked, expected, strict=True):
        assert not main(argv)
        assert words in capsys.readouterr().out
