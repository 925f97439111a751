"""`lightspeed nccl report FILE` as a person types it."""

import pytest
from lightspeed.cli import main
from nccl_samples import printed


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "all_reduce.log"
    path.write_text(printed([(16_000_000_000, 16e9 / 156e9)], 1000, 125))
    return path


def test_the_question_of_chapter_7(log, capsys):
    assert main(["nccl", "report", str(log), "--hardware", "p5", "--ranks", "1000", "--nodes", "125"]) == 0
    said = capsys.readouterr().out
    assert "78 % of the line" in said
    assert "normal" in said


def test_a_page_is_written_once_and_never_over_another(log, tmp_path, capsys):
    page = tmp_path / "report.html"
    arguments = ["nccl", "report", str(log), "--hardware", "p5", "--page", str(page)]
    assert main(arguments) == 0
    assert "<svg" in page.read_text()
    page.write_text("mine")
    assert main(arguments) == 2
    assert page.read_text() == "mine"
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nccl", "report", "nowhere.log"], "nowhere.log"), (["nccl", "report", "LOG", "--hardware", "p55"], "p5"), (["nccl", "raport", "LOG"], "report")],
)
def test_a_mistake_is_one_line(log, capsys, arguments, said):
    try:
        status = main([str(log) if a == "LOG" else a for a in arguments])
    except SystemExit as stopped:
        status = stopped.code
    error = capsys.readouterr().err
    assert (status, error.count("\n")) == (2, 1)
    assert said in error


def test_what_is_not_a_log_is_refused(tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    assert main(["nccl", "report", str(path)]) == 2
    assert "table" in capsys.readouterr().err
