"""What nccl-tests writes with -J, and what `lightspeed nccl report` prints with --json."""

import io
import json

import pytest
from nccl_samples import measured, printed

from lightspeed_cli import main
from lightspeed_tools.nccl.data_log import parse_data
from lightspeed_tools.nccl.log import ReportError, parse
from lightspeed_tools.nccl.page import read_runs


def written(rows, n, gpus=1, collective="all_reduce", device="NVIDIA A100-SXM4-80GB"):
    """The document of nccl-tests 2.19 (src/util.cu): of each process it names one device."""
    factor = 2 * (n - 1) / n
    results = []
    for size, time in rows:
        rates = {"alg_bw": size / time / 1e9, "bus_bw": size / time / 1e9 * factor}
        group = {"time": time * 1e6, **rates, "nwrong": 0.0}
        results.append(
            {
                "size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "    -1",
                "out_of_place": group, "in_place": group, "actual_iterations": 20,
            }
        )  # fmt: skip
    mean = sum(r["out_of_place"]["bus_bw"] for r in results) / len(results)
    devices = [
        {"rank": i, "group": 0, "pid": 7, "hostname": "host", "device": i,
            "device_hex": "0000:4f:0",
         "device_info": device}
        for i in range(0, n, gpus)
    ]  # fmt: skip
    return {
        "version": 3,
        "args": [f"./build/{collective}_perf", "-J", "out.json"],
        "env": ["SECRET=hush"],
        "nccl_version": 22807,
        "config": {"nthreads": 1, "ngpus": gpus, "maximum_bytes": rows[-1][0], "devices": devices},
        "results": results,
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": mean, "okay": "unchecked"},
    }


@pytest.mark.parametrize("gpus", [1, 8])
def test_json_says_what_the_table_says(tmp_path, gpus):
    rows = measured("a100_sweep")
    path = tmp_path / "out.json"
    path.write_text(json.dumps(written(rows, 8, gpus)))
    (run,) = read_runs(path)
    (table,) = parse(printed(rows, 8, device="NVIDIA A100-SXM4-80GB"))
    assert (run.collective, run.n, run.nodes, run.level) == ("all_reduce", 8, 1, "normal")
    for ours, theirs in zip(run.report.rows[::2], table.rows[::2], strict=True):
        assert (ours.size, ours.count) == (theirs.size, theirs.count)
        assert ours.busbw == pytest.approx(theirs.busbw, abs=2 * theirs.half_digits[2], rel=1e-3)
    assert not run.findings


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda text: text[: len(text) // 2], "is not whole"),
        (lambda text: text.replace('"alg_bw"', '"algbw"'), "did not write this JSON"),
        (lambda text: json.dumps({**json.loads(text), "results": []}), "holds no result"),
    ],
)
def test_json_that_is_not_whole_is_told(spoil, why):
    with pytest.raises(ReportError, match=why):
        parse_data(spoil(json.dumps(written(measured("a100_sweep"), 8))))


def test_the_command_reads_a_pipe_and_prints_data(monkeypatch, capsys):
    text = printed(measured("p5_all_reduce", 4), 32, 4)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["nccl", "report", "-", "--nic", "8x400G", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["files"][0]["runs"][0]
    assert told["verdict"] == "normal"
    assert told["facts"]["nodes"] == {
        "value": 4,
        "how": "stated",
        "ground": "the list of devices",
    }
    assert told["share_of_line"] == pytest.approx(0.89, abs=0.01)


def test_what_a_user_set_in_the_environment_is_not_repeated(tmp_path, capsys):
    path = tmp_path / "out.json"
    path.write_text(json.dumps(written(measured("a100_sweep"), 8)))
    assert main(["nccl", "report", str(path), "--json"]) == 0
    assert "hush" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("least", "more", "status"),
    [
        ("75%", ["--hardware", "p5"], 0),
        ("0.75", ["--hardware", "p5"], 0),
        ("95%", ["--hardware", "p5"], 1),
        ("75%", [], 2),
    ],
)
def test_an_exit_status_for_ci(tmp_path, capsys, least, more, status):
    path = tmp_path / "run.log"
    path.write_text(printed(measured("p5_all_reduce", 4), 32, 4))
    assert main(["nccl", "report", str(path), "--at-least", least, *more]) == status
    said = capsys.readouterr()
    assert bool(said.err) == bool(status) and "busbw" in said.out


def test_a_share_that_is_none_is_refused(tmp_path, capsys):
    for wrong in ("90 GB/s", "-1", "0", "900%"):
        with pytest.raises(SystemExit):
            main(["nccl", "report", "x.log", f"--at-least={wrong}"])
        assert "expected 90% or 0.9" in capsys.readouterr().err
