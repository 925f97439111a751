"""`lightspeed fit-stack` on tables: what it finds, and how it answers tables that are not right."""

import csv
import json
import math

import pytest

from lightspeed_cli.main import main
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, machine
from lightspeed_models.stack import stack
from lightspeed_models.training_step import step

NAMES = [
    "model", "sequence", "data", "tensor", "pipeline", "micro_batches", "micro_size", "stage",
    "seconds",
]  # fmt: skip
TRUTH = stack("nanotron_h100")


def lines():
    """One node, tensor parallel by 1 to 8, as the law has them."""
    model, cluster = decoder("llama3_8b"), machine("h100_sxm", "infiniband_ndr")
    for tensor in (1, 2, 4, 8):
        for m in (1, 2, 4, 8):
            for sequence in (512, 4096):
                plan = Plan(8 // tensor, tensor, micro_batches=m, stage=1)
                time = float(step(model, sequence, plan, cluster, TRUTH).time)
                yield ["llama3_8b", sequence, plan.data, tensor, 1, m, 1, 1, time]


def table(path, rows, names=NAMES):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return str(path)


def test_a_sweep_gives_its_constants(tmp_path, capsys):
    out = tmp_path / "fit.json"
    sweep = table(tmp_path / "sweep.csv", lines())
    assert main(["fit-stack", sweep, "--like", "nanotron_h100", "--json", str(out)]) == 0
    fit = json.loads(out.read_text("utf-8"))
    for name in ("share", "host", "inside"):
        assert fit["stack"][name] == pytest.approx(getattr(TRUTH, name), rel=0.1), name
    assert fit["untold"]["ring"] == fit["untold"]["between"] == "no row depends on it"
    assert not fit["refused"]
    assert "can't be told: no row depends on it" in capsys.readouterr().out
    before = out.read_bytes()
    assert main(["fit-stack", sweep, "--json", str(out)]) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
    assert out.read_bytes() == before


def test_bad_rows_are_refused_by_name(tmp_path, capsys):
    rows = list(lines())
    for row, (column, value) in enumerate(
        [("seconds", -3), ("sequence", 4096.5), ("seconds", 1e-5), ("seconds", math.nan),
         ("seconds", ""), ("model", "llama9"), ("tensor", "eight"), ("stage", 7), ("data", 0)]
    ):  # fmt: skip
        rows[row][NAMES.index(column)] = value
    assert main(["fit-stack", table(tmp_path / "s.csv", rows)]) == 0
    said = capsys.readouterr().out
    for line, word in enumerate(
        ("time = -3", "4096.5", "its bound is", "nan", "seconds is missing", "llama9", "'eight'",
         "stage", "data"), 2
    ):  # fmt: skip
        found = next(
            text for text in said.splitlines() if text.startswith(f"refused: line {line}:")
        )
        assert word in found
    assert "23 rows" in said


def test_chunks_that_do_not_divide_the_layers_are_refused(tmp_path, capsys):
    rows = [[*row, 1] for row in lines()]
    rows[3][-1] = 9
    assert main(["fit-stack", table(tmp_path / "s.csv", rows, [*NAMES, "chunks"])]) == 0
    said = capsys.readouterr().out
    assert "refused: line 5: Plan: chunks = 9: expected a number that cuts 32 layers" in said
    assert "31 rows" in said


@pytest.mark.parametrize(
    ("names", "rows", "words"),
    [
        (NAMES, 3, "at least 14 rows"),
        ([*NAMES[:-1], "time"], 30, "time"),
        (NAMES[:-1], 30, "lacks seconds"),
        (NAMES[1:], 30, "names no model"),
        ([*NAMES[:-1], "stage"], 30, "two columns"),
    ],
)
@pytest.mark.holds("docs/your-own-question.md", "at least fourteen of them")
def test_a_table_without_sense_is_answered(tmp_path, capsys, names, rows, words):
    cut = [row[-len(names) :] if names == NAMES[1:] else row[: len(names)] for row in lines()]
    assert main(["fit-stack", table(tmp_path / "s.csv", cut[:rows], names)]) == 2
    assert words in capsys.readouterr().err


def test_no_file_and_no_chip(tmp_path, capsys):
    assert main(["fit-stack", str(tmp_path / "none.csv")]) == 2
    assert "No such file" in capsys.readouterr().err
    sweep = table(tmp_path / "s.csv", lines())
    assert main(["fit-stack", sweep, "--gpu", "h100"]) == 2
    assert "h100_sxm" in capsys.readouterr().err
    assert main(["fit-stack", sweep, "--like", "nanotron"]) == 2
    assert "nanotron_h100" in capsys.readouterr().err
