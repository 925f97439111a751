"""`lightspeed nccl report FILE` as a person types it."""

import pytest
from nccl_samples import printed

from lightspeed_cli import main


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "all_reduce.log"
    path.write_text(printed([(16_000_000_000, 16e9 / 156e9)], 1000, 125))
    return path


def test_the_question_of_chapter_7(log, capsys):
    assert (
        main(["nccl", "report", str(log), "--hardware", "p5", "--ranks", "1000", "--nodes", "125"])
        == 0
    )
    said = capsys.readouterr().out
    assert "78 % of the line" in said
    assert "normal" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nccl", "report", "nowhere.log"], "nowhere.log"),
        (["nccl", "report", "LOG", "--hardware", "p55"], "p5"),
        (["nccl", "raport", "LOG"], "report"),
    ],
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


BARE = """#  Rank  0 Group  0 Pid 2000 on node0 device 0 [0x10] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 2000 on node0 device 1 [0x11] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid 2000 on node0 device 2 [0x12] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid 2000 on node0 device 3 [0x13] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    80.00   13.11   19.66      0
    67108864      16777216     float     sum      -1   420.00  159.78  239.67      0
  1073741824     268435456     float     sum      -1   4562.0  235.37  353.05      0
# Avg bus bandwidth    : 204.127
"""  # no line of it names the program


@pytest.mark.parametrize(
    "name", ["all_reduce", "all_reduce_perf", "./build/all_reduce_perf_mpi", "AllReduce"]
)
def test_a_collective_may_be_stated_as_its_program(tmp_path, capsys, name):
    path = tmp_path / "bare.log"
    path.write_text(BARE)
    assert main(["nccl", "report", str(path), "--collective", name]) == 0
    assert "all_reduce, 4 GPUs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--collective", "foo"], "there is no collective 'foo'; there are all_reduce, all_gather"),
        (
            ["--collective", "all_reduce", "--ranks", "7"],
            "--ranks 7 contradicts the file, which lists 4 devices",
        ),
        (
            ["--collective", "all_reduce", "--nodes", "0"],
            "--nodes: '0' is not a whole number above 0",
        ),
        (
            ["--collective", "all_reduce", "--ranks", "0"],
            "--ranks: '0' is not a whole number above 0",
        ),
    ],
)
def test_what_is_stated_wrongly_is_told_in_one_line(tmp_path, capsys, words, told):
    path = tmp_path / "bare.log"
    path.write_text(BARE)
    try:
        status = main(["nccl", "report", str(path), *words])
    except SystemExit as stopped:
        status = stopped.code
    error = capsys.readouterr().err
    assert (status, error.count("\n")) == (2, 1) and told in error


def test_a_file_that_cannot_be_read_is_named_without_a_number(tmp_path, capsys):
    assert main(["nccl", "report", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"lightspeed nccl: {tmp_path}: is a directory\n"
    assert main(["nccl", "report", str(tmp_path / "none")]) == 2
    assert (
        capsys.readouterr().err == f"lightspeed nccl: {tmp_path}/none: no such file or directory\n"
    )


def test_headline_list_and_advice_say_one_thing(tmp_path, capsys):
    path = tmp_path / "bare.log"
    path.write_text(BARE)
    assert main(["nccl", "report", str(path), "--collective", "all_reduce"]) == 0
    told = capsys.readouterr().out
    assert (
        "Normal by the model at 1.07 GB, but slower than it should be at 2 of 3 sizes (1.05 MB,"
        " 67.1 MB)" in told
    )
    assert "Nothing to check" not in told and "Check first:\n  1. Look for other jobs" in told
