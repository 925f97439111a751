"""`lightspeed trace` from files to words, data and a page."""

import json

import pytest

from lightspeed_cli.main import main
from lightspeed_tools.trace.made import Job, write

FIELDS = {
    "span_us", "compute_us", "communication_us", "exposed_communication_us", "copy_us",
    "exposed_copy_us", "idle_us", "kernels",
}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    return [str(path) for path in write(Job(hidden=1024, faults={"loader": 4}), tmp_path)]


def test_the_first_line_says_what_to_fix_first(files, capsys):
    assert main(["trace", *files]) == 0
    out = capsys.readouterr().out
    first = out.splitlines()[0]
    assert "Fix first: the input pipeline, at most 1." in first and "idle" in first
    assert "of the roof" in out and "law of chapter 7" in out and "may show up" in out


def test_data_sum_to_the_span(files, capsys):
    assert main(["trace", *files, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"devices", "gains", "closure", "refused"} <= set(data)
    assert len(data["devices"]) == 4 and data["refused"] == []
    for device in data["devices"]:
        assert set(device) >= FIELDS
        parts = ("compute_us", "exposed_communication_us", "exposed_copy_us", "idle_us")
        assert sum(device[part] for part in parts) == pytest.approx(device["span_us"], abs=1e-6)
        assert sum(device["idle_by_cause_us"].values()) == pytest.approx(device["idle_us"])


def test_two_runs_are_compared(files, tmp_path, capsys):
    (tmp_path / "sound").mkdir()
    sound = [str(path) for path in write(Job(hidden=1024), tmp_path / "sound")]
    assert main(["trace", *sound, "--against", *files]) == 0
    assert "most of the change is in idle" in capsys.readouterr().out


def test_a_step_that_the_profiler_slowed_takes_the_hosts_gains_back(tmp_path, capsys):
    files = [str(p) for p in write(Job(hidden=1024, faults={"launch_bound": 30}), tmp_path)]
    assert main(["trace", *files]) == 0
    assert "Fix first: the host launching too late" in capsys.readouterr().out
    assert main(["trace", *files, "--step", "5ms"]) == 0
    out = capsys.readouterr().out
    assert "launching too late" not in out and "5 ms without the profiler" in out
    with pytest.raises(SystemExit):
        main(["trace", *files, "--step", "17.8"])


def test_a_page_is_written_once(files, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["trace", files[0], "--page", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "<svg" in text and "communication and copies" in text and "Fix first" in text
    assert main(["trace", files[0], "--page", str(page)]) == 2
    assert "exists" in capsys.readouterr().err and page.read_text("utf-8") == text


def test_mistakes_are_one_line(tmp_path, capsys):
    (tmp_path / "x.json").write_text('{"traceEvents": [{"ph": "X"')
    for arguments in (["nowhere.json"], [str(tmp_path / "x.json")], [str(tmp_path)]):
        assert main(["trace", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith("lightspeed trace: ") and error.count("\n") == 1
