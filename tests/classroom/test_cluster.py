"""A Dask cluster grades as processes do; one that would not, or isn't there, is refused."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import pytest
from cases import ASSIGNMENT, QUESTIONS, code, idle, notebook, right

from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading import cluster
from lightspeed_class.grading.batch import grade_all
from lightspeed_class.grading.cluster import NoCluster, about, connected, unfit
from lightspeed_class.grading.sandbox import COURSE, FIRST_UID

BOMB = (
    "import pickle\nclass Bomb:\n    def __reduce__(self): return os.system, ('touch"
    " {marker}',)\ncheck('roofline.ridge', Bomb())\nfor n in range(1, 9):\n    try: os.write(n,"
    " pickle.dumps(Bomb()))\n    except OSError: pass"
)


def real(test):
    return pytest.mark.install(pytest.mark.usefixtures("dask")(test))


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    """Dask beside the course's environment: pint imports it wherever it is, for seconds."""
    site = str(tmp_path_factory.mktemp("dask"))
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [
            uv,
            "pip",
            "install",
            "--quiet",
            "--python",
            sys.executable,
            "--target",
            site,
            "distributed",
        ],
        check=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, site])
        patch.setenv("PYTHONPATH", site, prepend=os.pathsep)
        yield


@pytest.fixture
def programs(tmp_path):
    """Start a program of Dask in the background; all are gone afterwards."""
    with contextlib.ExitStack() as stack:

        def start(program, *arguments, **environment):
            command = [
                sys.executable,
                "-m",
                f"distributed.cli.dask_{program}",
                "--no-dashboard",
                *arguments,
            ]
            log = stack.enter_context(open(tmp_path / f"{program}.log", "a"))
            place = {"DASK_TEMPORARY_DIRECTORY": str(tmp_path), **environment}
            process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=tmp_path, env=os.environ | place
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield start


@pytest.fixture
def scheduler(programs, tmp_path):
    file = tmp_path / "scheduler.json"
    process = programs(
        "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)
    )
    until = time.monotonic() + 60
    while not file.exists() or not file.read_text().endswith("}"):
        assert time.monotonic() < until, (tmp_path / "scheduler.log").read_text()
        time.sleep(0.05)
    process.address = json.loads(file.read_text())["address"]
    return process


@pytest.fixture
def worker(programs, scheduler):
    """Start a worker without a nanny, so that it stays dead, and wait for the scheduler."""
    from distributed import Client

    def start(**environment):
        with Client(scheduler.address, set_as_default=False) as client:
            process = programs(
                "worker", scheduler.address, "--no-nanny", "--nthreads", "1", **environment
            )
            start.count += 1
            client.wait_for_workers(start.count, timeout=60)
        return process

    start.count = 0
    return start


def class_of(path, contents):
    book = Gradebook(path)
    book.setting("secret", "the same in both")
    book.add_assignment(ASSIGNMENT, seeded=False)
    for n, content in enumerate(contents):
        book.add_student(f"s{n:02}")
        book.add_submission(f"s{n:02}", "hostile", content, at=n)
    return contextlib.closing(book)


def outcome(book):
    return [
        (r.student.id, r.points, r.grading.key, r.grading.graded.digest, r.grading.graded.record)
        for r in book.results("hostile")
    ]


def sandboxed():
    """Processes of the users that submissions run as, whichever server forked them."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            status = (entry / "status").read_text() if entry.name.isdigit() else ""
            if any(int(uid) >= FIRST_UID for uid in re.findall(r"^Uid:\t(\d+)", status, re.M)):
                found.append(entry.name)
    return found


@real
def test_two_workers_one_of_them_killed(tmp_path, scheduler, worker):
    marker = tmp_path / "boom"
    words = ("bandwidth", "peak")
    contents = [
        right("time.sleep(0.2)", word=f'check("{QUESTIONS["word"]}", "{words[n % 2]}")')
        for n in range(12)
    ]
    contents += [
        idle(BOMB.format(marker=marker)),
        notebook([code("os._exit(0)")]),
        right("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"),
    ]
    workers = [worker(), worker()]
    killed = []

    def kill_one(done, *_):
        if done == 3:
            workers[0].send_signal(signal.SIGKILL)
            killed.append(workers[0].wait())

    with (
        class_of(tmp_path / "here.sqlite3", contents) as here,
        class_of(tmp_path / "there.sqlite3", contents) as there,
    ):
        assert grade_all(here, "hostile").failed == {}
        with connected(scheduler.address) as cluster:
            assert cluster.workers == 2
            tally = grade_all(
                there, "hostile", workers=cluster.workers, progress=kill_one, submit=cluster
            )
        assert killed == [-signal.SIGKILL] and (tally.failed, tally.graded) == ({}, len(contents))
        assert [len(there.gradings(s.id)) for s in there.submissions()] == [1] * len(contents)
        assert outcome(here) == outcome(there)
        assert {points for _, points, *_ in outcome(there)} >= {4.0, 3.0, 0.0}
    assert not marker.exists()  # nothing that a submission pickled was unpickled
    assert sandboxed() == []


@real
def test_unfit_workers_are_named_before_anything_is_graded(tmp_path, scheduler, worker):
    with pytest.raises(NoCluster, match="has no workers"), connected(scheduler.address):
        pass
    shutil.copytree(COURSE.parent, tmp_path / "other", ignore=shutil.ignore_patterns("__pycache__"))
    with open(tmp_path / "other/lightspeed_course/practice/check.py", "a") as file:
        file.write("\n# another version\n")
    worker()
    with (
        connected(scheduler.address) as fit,
        class_of(tmp_path / "book.sqlite3", [right() for _ in range(1)]) as book,
    ):
        # joins after the others were looked at
        worker(PYTHONPATH=os.pathsep.join([str(tmp_path / "other"), os.environ["PYTHONPATH"]]))
        jobs = [
            fit._client.submit(
                cluster.checked, fit._wanted, True, len, "abc", pure=False, workers=[w]
            )
            for w in fit._client.scheduler_info()["workers"]
        ]
        ends = [job.exception(timeout=60) for job in jobs]
        assert [type(e) for e in ends if e] == [NoCluster]
        assert "grader's code differs" in str(next(e for e in ends if e))
        assert book.results("hostile")[0].grading is None
    worker(PATH="/nowhere")
    with pytest.raises(NoCluster) as refusal, connected(scheduler.address):
        pass
    lines = str(refusal.value).splitlines()
    assert len(lines) == 2 and all(line.startswith("Worker tcp://127.0.0.1:") for line in lines)
    assert sorted("bubblewrap" in line for line in lines) == [False, True]
    with (
        pytest.raises(NoCluster, match="grader's code differs") as refusal,
        connected(scheduler.address, isolated=False),
    ):
        pass
    assert len(str(refusal.value).splitlines()) == 1


@real
def test_what_takes_too_many_workers_with_it_is_given_up_and_tried_again_later(
    tmp_path, programs, monkeypatch, request
):
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    scheduler, worker = request.getfixturevalue("scheduler"), request.getfixturevalue("worker")
    first = worker()

    def replace_it(done, *_):
        if done == 2:
            first.kill()
            first.wait()
            worker.count = 0
            worker()

    with (
        class_of(
            tmp_path / "book.sqlite3", [right("time.sleep(0.5)") + b" " * n for n in range(5)]
        ) as book,
        connected(scheduler.address) as cluster,
    ):
        tally = grade_all(book, "hostile", workers=1, progress=replace_it, submit=cluster)
        assert tally.graded == 4
        assert ["KilledWorker" in why for why in tally.failed.values()] == [True]
        assert grade_all(book, "hostile", workers=1, submit=cluster).graded == 1
        assert [len(book.gradings(s.id)) for s in book.submissions()] == [1] * 5


@real
def test_a_scheduler_that_goes_away_loses_nothing(tmp_path, scheduler, worker):
    worker()

    def end_it(done, *_):
        if done == 2:
            scheduler.kill()
            scheduler.wait()
            time.sleep(0.5)

    with class_of(tmp_path / "book.sqlite3", [right() + b" " * n for n in range(8)]) as book:
        with (
            pytest.raises(NoCluster, match="run the batch again"),
            connected(scheduler.address) as gone,
        ):
            grade_all(book, "hostile", workers=1, progress=end_it, submit=gone)
        kept = [len(book.gradings(s.id)) for s in book.submissions()]
        assert 2 <= sum(kept) < 8
        assert grade_all(book, "hostile").graded == 8 - sum(kept)
        assert [len(book.gradings(s.id)) for s in book.submissions()] == [1] * 8


@real
@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "no address", "http://127.0.0.1:1", "tcp://127.0.0.1:seven"]
)
def test_a_wrong_address(address, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(NoCluster, match="No Dask scheduler answers at"), connected(address):
        pass


def test_without_dask_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NoCluster, match="pip install distributed"), connected("tcp://127.0.0.1:1"):
        pass


def test_what_makes_a_worker_unfit():
    mine = about(True)
    assert unfit(mine, dict(mine)) == ""
    assert "bubblewrap" in unfit(mine, {**mine, "sandbox": "bubblewrap is needed"})
    assert "numpy is 1.0, here it is" in unfit(mine, {**mine, "numpy": "1.0"})
    assert "lightspeed is None" in unfit(mine, {k: v for k, v in mine.items() if k != "lightspeed"})
    assert "cannot import the course" in unfit(
        mine, ModuleNotFoundError("No module named 'lightspeed'")
    )
    assert "TimeoutError" in unfit(mine, TimeoutError())


def test_a_cancelled_job_is_an_error_and_not_a_crash():
    done, outcome = Future(), Future()
    done.cancel()
    done.set_running_or_notify_cancel()
    cluster._pass_on(done, outcome)
    assert isinstance(outcome.exception(), NoCluster)
