"""Every hostile or unlucky submission earns what it should, stops nothing, reads nothing and leaves
nothing behind.

`.venv/bin/python -m pytest -v tests/classroom/test_hostile.py` prints the table of verdicts and
times.
"""

import contextlib
import os
import time
from pathlib import Path
from unittest import mock

import pytest
from cases import ASSIGNMENT, CASES, QUESTIONS, canary_case

from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading import forkserver, sandbox
from lightspeed_class.grading.grade import grade, refused
from lightspeed_class.grading.sandbox import FIRST_UID
from lightspeed_class.notebooks import Refused, read

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table(request):
    rows = []
    yield rows
    if request.config.get_verbosity() >= 0:  # -v, since pyproject.toml has a -q
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n\n{'submission':<45} {'points':>6}  {'earned':>6}  {'status':<9} {'s':>6}")
            for case, points, status, seconds in rows:
                wrong = (
                    ""
                    if (points, status) == (len(case.earns), case.status)
                    else "  NOT AS EXPECTED"
                )
                print(
                    f"{case.name:<45} {points:>6g}  {len(case.earns):>6}  {status:<9}"
                    f" {seconds:>6.2f}{wrong}"
                )
            print(f"{len(rows)} submissions, {sum(seconds for *_, seconds in rows):.0f} s")


@pytest.fixture(scope="module", autouse=True)
def scratch(tmp_path_factory):
    """Where the grader's own temporary files would lie."""
    folder = tmp_path_factory.mktemp("scratch")
    with mock.patch("tempfile.tempdir", str(folder)):
        yield folder


@pytest.fixture(scope="module", autouse=True)
def served():
    """A fork server that is there before descriptors are counted."""
    with sandbox.Sandbox():
        pass


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """Files no submission may read or change: gradebook, another submission, solutions."""
    folder = tmp_path_factory.mktemp("host")
    with Gradebook(folder / "gradebook.sqlite3") as book:
        book.add_student("ada", "Ada")
    (folder / "ada.ipynb").write_text("{}")
    (folder / "solutions.py").write_text("answer = 1")
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)
    return folder


def contents(folder):
    return {
        p.name: (p.read_bytes(), p.stat().st_mode, p.stat().st_mtime_ns)
        for p in sorted(folder.iterdir())
    }


def processes():
    """What is left of sandboxes, beside the fork servers, which stay: two of bwrap, the server."""
    return [
        pid
        for server in forkserver.servers()
        for pid in [*list(sandbox._descendants(server.pid))[2:], *users(FIRST_UID + server.pid)]
    ]


def users(uid):
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"\nUid:\t{uid}\t" in (entry / "status").read_text():
                found.append(entry.name)
    return found


def left_files():
    return [p for p in (Path("/tmp/boom"), Path("/tmp/stayed")) if p.exists()]


@pytest.mark.parametrize("case", [*CASES, canary_case], ids=lambda c: c.name)
@pytest.mark.holds("docs/teach.md", "Student code runs only in bubblewrap")
def test_verdict(case, tmp_path, host, table):
    before, descriptors = contents(host), len(os.listdir("/proc/self/fd"))
    start = time.monotonic()
    made = case.make(host if case is canary_case else tmp_path)
    try:
        graded = grade(
            made if isinstance(made, bytes) else read(made),
            ASSIGNMENT,
            secret="of the test",
            limits=case.limits,
        )
    except Refused as refusal:
        graded = refused(str(refusal), ASSIGNMENT)
    table.append((case, graded.points, graded.status, time.monotonic() - start))
    earned = {
        cell
        for cell, id in QUESTIONS.items()
        for s in graded.scores
        if s.question == id and s.points
    }
    assert (earned, graded.status) == (set(case.earns), case.status), graded
    assert not any("Breach" in note for note in graded.notes), graded.notes
    assert len(forkserver.servers()) <= 1 and processes() == []
    assert left_files() == []
    assert contents(host) == before
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_nothing_is_left_after_all(scratch):
    assert processes() == [] and left_files() == [] and list(scratch.iterdir()) == []


def test_there_are_enough_of_them():
    assert len({c.name for c in CASES}) == len(CASES) >= 45
