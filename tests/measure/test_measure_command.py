"""`lightspeed measure` where this or that lacks: told clearly, the rest is measured."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import fakes
import pytest
from processes import finished

from lightspeed_cli import main
from lightspeed_tools.measure import runner
from lightspeed_tools.measure.instruments.timing import Quantity
from lightspeed_tools.measure.records import record

LIB = str(Path(runner.__file__).parents[2])
# The command with parts of our own, in a process of its own.
COMMAND = """
import sys
sys.path[:0] = {paths!r}
import fakes
from lightspeed_tools.measure import runner as parts
parts.PARTS = {{name: fakes.Part("fake_" + name, name, 1, 2) for name in {names!r}}}
from lightspeed_cli import main
sys.exit(main(["measure", *{words!r}]))
"""
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""


@pytest.fixture
def room():
    """A folder for other users, unlike pytest's, with fake parts and a place to stand in."""
    folder = Path(tempfile.mkdtemp(prefix="lightspeed-measure-"))
    for path in (folder, folder / "fakes", folder / "here", folder / "data"):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
    fakes.write(folder / "fakes")
    yield folder
    for path in (folder / "here", folder / "data"):
        path.chmod(0o755)
    shutil.rmtree(folder)


def measure(room, *words, names=("good", "fails", "partly"), **more):
    """Run the command in a process; standard input is empty, output and error apart."""
    paths = [str(room / "fakes"), str(Path(__file__).parent), LIB]
    code = COMMAND.format(paths=paths, names=names, words=words)
    environment = {
        **os.environ,
        "LIGHTSPEED_DATA": str(room / "data"),
        "PYTHONPATH": os.pathsep.join(paths),
        "HOME": str(room),
        **more.pop("env", {}),
    }
    return finished(
        [*more.pop("under", ()), sys.executable, "-c", code],
        timeout=120,
        cwd=room / "here",
        env=environment,
        **more,
    )


def saved(folder):
    (path,) = folder.glob("*.json")
    return record.load(path), path


def as_a_user():
    """What to run a command under, so that permissions hold even if tests run as root."""
    if os.geteuid():
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("takes setpriv, or a user who is not root")
    return "setpriv", "--bounding-set", "-dac_override,-dac_read_search"


def test_all_writes_a_record_and_a_page_that_agree(room):
    run = measure(room, "all")
    assert run.returncode == 0, run.stderr
    shown, path = saved(room / "data/records")
    assert [q.key for q in record.quantities(shown)] == ["good.time", "partly.time"]
    assert f"Record: {path}" in run.stdout and f"Page:   {path.with_suffix('.html')}" in run.stdout
    page = path.with_suffix(".html").read_text()
    for words in (
        "How far to trust it",
        "fails: it failed: ZeroDivisionError",
        "partly.more: no such counter. Ask for it.",
    ):
        assert words in run.stdout and words in page
    assert re.search(r"good\.time.* 1 ms +0 % +5", run.stdout)


def test_a_record_names_nobody(room):
    measure(room, "all")
    text = saved(room / "data/records")[1].read_text()
    for secret in (str(room), str(Path.home()), os.uname().nodename, "molly", sys.prefix):
        assert len(secret) < 3 or secret not in text


@pytest.mark.slow
def test_a_second_time_is_a_second_file_and_one_part_is_enough(room):
    assert measure(room, "good").returncode == 0
    assert measure(room, "good", "--into", str(room / "data/records"), "--full").returncode == 0
    found = sorted((room / "data/records").glob("*.json"))
    assert len(found) == 2
    assert {record.load(p)["effort"] for p in found} == {"quick", "full"}


def test_nothing_measured_is_nothing_kept(room):
    run = measure(room, "all", names=("fails", "unavailable"))
    assert run.returncode == 1
    assert "nothing is kept" in run.stderr
    assert "no GPU was found. Plug one in." in run.stdout
    assert not (room / "data/records").exists()


@pytest.mark.slow
def test_a_home_that_cannot_be_written(room):
    (room / "data").chmod(0o555)
    (room / "here").chmod(0o777)
    run = measure(room, "all", under=as_a_user())
    assert run.returncode == 0, run.stderr
    assert "could not be written" in run.stderr and "Permission denied" in run.stderr
    assert record.quantities(saved(room / "here")[0])


@pytest.mark.slow
def test_nowhere_to_write(room):
    for path in (room / "data", room / "here"):
        path.chmod(0o555)
    run = measure(room, "all", under=as_a_user())
    assert run.returncode == 1
    assert run.stderr.count("could not be written") == 2
    assert "--into" in run.stderr
    kept = record.check(json.loads(run.stdout[run.stdout.index('{\n  "schema"') :]))
    assert [q.key for q in record.quantities(kept)] == ["good.time", "partly.time"]


@pytest.mark.slow
def test_writes_that_fail_in_the_middle(room):
    import resource

    run = measure(
        room, "all", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
    )
    assert run.returncode == 1 and "File too large" in run.stderr
    assert not list((room / "data/records").iterdir()) and not list((room / "here").iterdir())
    assert record.check(json.loads(run.stdout[run.stdout.index('{\n  "schema"') :]))


@pytest.mark.slow
def test_a_full_disk(room):
    disk = room / "data"
    if (
        os.geteuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True
        ).returncode
    ):
        pytest.skip("takes the right to mount a small disk")
    try:
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        run = measure(room, "all")
        assert run.returncode == 0 and "No space left on device" in run.stderr
        assert record.quantities(saved(room / "here")[0])
        assert [p.name for p in disk.rglob("*") if p.is_file()] == ["filler"]
    finally:
        subprocess.run(["umount", disk], check=True)


def interrupted(room, names, until):
    """(exit status, output, errors) of a run that gets Ctrl+C after a line that begins so."""
    paths = [str(room / "fakes"), str(Path(__file__).parent), LIB]
    code = COMMAND.format(paths=paths, names=names, words=("all",))
    environment = {"LIGHTSPEED_DATA": str(room / "data"), "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=room / "here", env=os.environ | environment,
    ) as run:  # fmt: skip
        next(line for line in run.stdout if line.startswith(until))
        run.send_signal(signal.SIGINT)
        # It ends when nobody holds the other end of its pipes: a part that hangs has ended, too.
        out, err = run.communicate(timeout=60)
    assert "Traceback" not in err
    return run.returncode, out, err


def test_ctrl_c_keeps_what_was_measured(room):
    status, out, _ = interrupted(room, ("good", "hangs", "partly"), "[2/3]")
    shown, _ = saved(room / "data/records")
    assert [q.key for q in record.quantities(shown)] == ["good.time"] and shown["complete"] is False
    assert status == 130 and "It was interrupted, and is not complete." in out


def test_ctrl_c_before_any_result_is_brief(room):
    status, out, err = interrupted(room, ("hangs", "good"), "")
    assert status == 130 and "before anything was measured" in err
    assert "what was seen" not in out and not (room / "data/records").exists()


def test_a_page_is_written_where_it_was_asked_for(room):
    assert measure(room, "good", "--page", "mine.html").returncode == 0
    page = room / "here/mine.html"
    assert "good.time" in page.read_text()
    page.write_text("mine")
    run = measure(room, "good", "--page", "mine.html")
    assert run.returncode == 2
    assert run.stdout == ""
    assert "already exists" in run.stderr
    assert page.read_text() == "mine"


@pytest.mark.parametrize(
    "words",
    [
        ("--into", "/etc/passwd"),
        ("--into", "/etc/passwd/deeper"),
        ("--into", "locked"),
        ("--into", "locked/deeper"),
        ("--page", "nowhere/page.html"),
        ("--page", "locked/page.html"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_measured(room, words):
    (room / "here/locked").mkdir(mode=0o555)
    run = measure(room, "good", *words, under=as_a_user())
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
    assert words[0] in run.stderr


def test_a_folder_that_is_lost_while_measuring_does_not_lose_the_record(room, monkeypatch, capsys):
    from lightspeed_tools.measure import runner as of

    def measured(*words, **more):
        (room / "into").write_text("no folder")
        return record.new([Quantity("a.b", "s", (1.0,) * 5)])

    monkeypatch.chdir(room / "here")
    monkeypatch.setattr(of, "measure", measured)
    assert main(["measure", "host", "--into", str(room / "into")]) == 1
    assert record.quantities(saved(room / "here")[0])
    assert "could not be written" in capsys.readouterr().err


SLIPS = {
    "measure show .": ".: is a directory",
    "measure hots": "did you mean host?",
    "measure host roofline": "one word too many",
    "measure host --fulll": "did you mean --full?",
    "measure compare a.json": "compare takes two records",
    "measure compare a.json b.json": (
        "there is no file a.json; shipped are amd_epyc_2core, intel_xeon_2core, lossy_2core,"
        " notes_2core_48mib"
    ),
    "measure show a b": "show takes one record",
    "measure show": "nothing has been measured yet",
    "measure show amd_epyc_2core --page": "expected one argument",
}


@pytest.mark.parametrize("words", SLIPS)
def test_a_slip_is_one_line_and_status_2(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(words.split())
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2 and out == "" and SLIPS[words] in err and err.count("\n") == 1


def test_show_and_compare(capsys, tmp_path):
    a, b = (
        record.save(record.new([Quantity("a.b", "s", (t,) * 5, better="lower")], name=n), tmp_path)
        for t, n in ((1e-3, "one"), (2e-3, "two"))
    )
    assert main(["measure", "compare", str(a), str(b)]) == 0
    out = capsys.readouterr().out
    assert "A: one" in out
    assert "B is worse, 2 times" in out
    one = ["measure", "show", str(a), "--page", str(tmp_path / "one.html")]
    assert main(one) == 0
    assert "1 ms" in capsys.readouterr().out and "1 ms" in (tmp_path / "one.html").read_text()
    assert main(one) == 2
    assert "exists" in capsys.readouterr().err.lower()
    assert main(["measure", "compare", "amd_epyc_2core", str(a)]) == 0


def test_a_damaged_file_is_refused_in_one_line(capsys, tmp_path):
    (tmp_path / "a.json").write_text('{"schema": 7}')
    assert main(["measure", "show", str(tmp_path / "a.json")]) == 2
    assert "newer version of the course" in capsys.readouterr().err


def test_help_comes_at_once_and_names_every_part(capsys):
    with pytest.raises(SystemExit):
        main(["measure", "--help"])
    out = capsys.readouterr().out
    assert all(name in out for name in runner.PARTS)


# ---------------------------------------------------------------- the real parts on a poor machine


@pytest.mark.slow
def test_one_core_without_numba_mpi_and_torch(tmp_path):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(BLOCK.format(names=("numba", "mpi4py", "torch")))
    one = [sys.executable, "-m", "lightspeed_cli"]
    if hasattr(os, "sched_setaffinity"):
        one = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *one]
    environment = os.environ | {
        "PYTHONPATH": f"{blocked}{os.pathsep}{LIB}",
        "LIGHTSPEED_DATA": str(tmp_path / "data"),
    }
    run = finished([*one, "measure", "all"], env=environment, timeout=900)
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stdout + run.stderr and "it failed" not in run.stdout
    shown, _ = saved(tmp_path / "data/records")
    have, lacking = (
        {q.key.partition(".")[0] for q in record.quantities(shown)},
        {m.key: m for m in record.missing(shown)},
    )
    assert {"host", "roofline"} <= have
    for key, word in (("host.latency", "numba"), ("collectives", "mpi4py")):
        assert word in lacking[key].why and "pip install" in lacking[key].remedy
    assert all(m.why for m in lacking.values())
    assert shown["machine"]["usable_cores"] == 1
