"""Whatever one part does, others are measured, and the record says what lacks, why."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import fakes
import pytest

from lightspeed_tools.measure import runner
from lightspeed_tools.measure.records import record


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """measure(*names) with parts of our own; `.said` are the lines of progress."""
    folder = tmp_path / "fakes"
    folder.mkdir()
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    )
    made = fakes.write(folder)

    def measure(*names, quick=True):
        measure.said = []
        return runner.measure(names, quick, measure.said.append, made)

    return measure


def reasons(shown):
    return {m.key: f"{m.why} {m.remedy}" for m in record.missing(shown)}


MISHAPS = {
    "unavailable": "no GPU was found. Plug one in.",
    "fails": "it failed: ZeroDivisionError",
    "exits": "it failed: SystemExit: enough",
    "uninstalled": "no_such_package_anywhere is not installed. pip install",
    "crashes": "its process ended without an answer (SIGSEGV)",
    "killed": "its process ended without an answer (SIGKILL)",
    "empty": "it measured nothing",
}


def test_every_mishap_is_named_and_the_rest_runs(fake):
    shown = fake(*MISHAPS, "good", "partly")
    assert [q.key for q in record.quantities(shown)] == ["good.time", "partly.time"]
    said = reasons(shown)
    assert set(said) == {*MISHAPS, "partly.more"}
    for name, words in MISHAPS.items():
        assert words in said[name]
    assert shown["complete"] and list(shown["seconds"]) == [*MISHAPS, "good", "partly"]
    assert "molly" not in record.dumps(shown)
    assert any("without crashes" in line for line in fake.said)


@pytest.mark.slow
@pytest.mark.holds("measure", "so it was stopped")
def test_one_that_hangs_is_stopped(fake, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE", 2)
    shown = fake("hangs", "good")
    assert "no answer after 2 s, so it was stopped" in reasons(shown)["hangs"]
    assert record.find(shown, "good.time").value == 1e-3


@pytest.mark.slow
def test_one_that_will_not_be_interrupted_is_killed(fake, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE", 2)
    monkeypatch.setattr(runner, "GRACE", 0.5)
    assert "stopped" in reasons(fake("stubborn"))["stubborn"]


def test_what_a_part_prints_does_not_disturb(fake):
    shown = fake("noisy", "looped")
    assert [q.key for q in record.quantities(shown)] == ["noisy.time", "looped.time"]


def test_nothing_that_a_part_started_stays_behind(fake):
    shown = fake("orphan")
    assert record.find(shown, "orphan.time")
    child = int(next(line for line in fake.said if line.strip().isdigit()))
    for _ in range(100):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
        try:
            with open(f"/proc/{child}/stat") as stat:
                gone = stat.read().split()[2] == "Z"
        except OSError:
            gone = True
        if gone:
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("a process of the part is still there")


def test_progress_says_which_part_and_how_long(fake):
    fake("good", "partly", quick=False)
    assert (
        fake.said[0]
        == "[1/2] good: a part that is good; about 2 s, 4 s with what follows; a busy machine takes"
        " longer"
    )
    assert "  working" in fake.said
    assert "  without partly.more: no such counter. Ask for it." in fake.said
    assert fake.said[-1].startswith("  1 quantities in ")


def test_quick_and_full_reach_the_part(fake):
    assert record.find(fake("good"), "good.time").parameters == {"quick": True}
    shown = fake("good", quick=False)
    assert record.find(shown, "good.time").parameters == {"quick": False}
    assert shown["effort"] == "full"


def test_an_interruption_keeps_what_was_measured(fake):
    timer = threading.Timer(0, lambda: None)

    def listen(line):
        if line.startswith("[2/3]"):
            nonlocal timer
            timer = threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT])
            timer.start()

    made = {name: fakes.Part(f"fake_{name}", name, 60, 60) for name in ("good", "hangs", "partly")}
    shown = runner.measure(tuple(made), True, listen, made)
    timer.cancel()
    assert [q.key for q in record.quantities(shown)] == ["good.time"] and shown["complete"] is False
    assert set(reasons(shown)) == {"hangs", "partly"} and "interrupted" in reasons(shown)["hangs"]


def test_the_record_has_the_machine_its_state_and_versions(fake):
    shown = fake("good")
    assert record.check(shown) is shown
    assert shown["machine"]["cores"] >= 1 and shown["name"]
    assert len(shown["environment"]) == 9
    assert {"check", "state", "words", "remedy"} == set(shown["environment"][0])
    assert shown["versions"]["numpy"]


def test_every_part_of_ours_is_there_and_estimated():
    assert {
        "host",
        "roofline",
        "collectives",
        "gpu",
    } <= set(runner.PARTS)
    for part in runner.PARTS.values():
        code = (
            f"import importlib; assert callable(importlib.import_module({part.module!r}).measure)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
        assert 0 < part.quick <= part.full <= 60
