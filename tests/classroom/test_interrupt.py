"""Ctrl+C while a class is graded: a word, an end at once, and nothing that goes on running."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from cases import ASSIGNMENT, idle, right
from test_gradebook import children, command, wait_until_gone

from lightspeed_class.class_folder import new
from lightspeed_class.grading import batch

pytestmark = pytest.mark.slow

ENDLESS = idle("while True:\n    try: time.sleep(0.01)\n    except BaseException: pass")
# Workers that do not listen get far more time than this test, so what ends it is the second Ctrl+C.
STUBBORN = """
import sys
from lightspeed_class.grading import batch
from lightspeed_cli import main
if __name__ == "__main__":
    batch.GRACE = 600
    sys.exit(main(["class", *sys.argv[1:]]))
"""
SAID = "stopping; what is graded is kept, run it again"


@pytest.fixture
def course(tmp_path):
    course = new(tmp_path / "class")
    with course.book() as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        for n, content in enumerate([right(), *[ENDLESS + b" " * n for n in range(6)]]):
            book.add_student(f"s{n}")
            book.add_submission(f"s{n}", "hostile", content, at=n)
    return course


@pytest.fixture
def start(course):
    """Run a verb as a terminal does: Ctrl+C goes to all processes of the group."""
    runs = []

    def start(*words, program=("-m", "lightspeed_cli", "class")):
        command = [sys.executable, *program, *words, "--class", str(course.root), "--workers", "2"]
        runs.append(
            subprocess.Popen(
                command,
                stderr=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return runs[-1]

    yield start
    for run in runs:
        if run.poll() is None:  # a test that failed
            for pid in [*children(run.pid), run.pid]:
                os.kill(pid, signal.SIGKILL)
        run.communicate()


def running(run, what):
    """The processes of a run, once two of them have `what` in their command."""
    while True:
        assert run.poll() is None, run.stderr.read()
        pids = children(run.pid)
        if sum(what in command(pid) for pid in pids) >= 2:
            return pids
        time.sleep(0.02)


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    ("words", "student"),
    [
        (["grade"], "-B /student.py"),
        (["regrade"], "-B /student.py"),
        (["grade", "--not-isolated"], "grading/student.py"),
    ],
)
def test_it_stops_at_once_and_leaves_nothing(start, course, words, student):
    run = start(words[0], "hostile", *words[1:])
    assert run.stderr.readline().startswith("graded 1 of 7")
    had = running(run, student)
    os.killpg(run.pid, signal.SIGINT)
    _, told = run.communicate(timeout=60)  # each of the loops would take two minutes
    assert run.returncode == 130 and told.strip() == SAID
    wait_until_gone(had)
    with course.book() as book:
        assert [len(book.gradings(s.id)) for s in book.submissions()] == [1, 0, 0, 0, 0, 0, 0]


def test_an_interrupt_waits_though_another_thread_takes_it():
    """As numpy's threads do, which know nothing of the mask of the main one."""
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    done = []
    try:
        with pytest.raises(KeyboardInterrupt), batch._without_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)  # the other thread has it by now
            done.append("to the end")
    finally:
        over.set()
        other.join()
    assert done == ["to the end"]


@pytest.mark.usefixtures("sandboxed")
def test_while_the_workers_start(start):
    run = start("grade", "hostile")
    had = running(run, "spawn_main")
    os.killpg(run.pid, signal.SIGINT)
    _, told = run.communicate(timeout=60)
    assert run.returncode == 130 and SAID in told and "Traceback" not in told
    wait_until_gone(had)


@pytest.mark.usefixtures("sandboxed")
def test_a_second_one_does_not_wait(start):
    run = start("grade", "hostile", program=("-c", STUBBORN))
    assert run.stderr.readline().startswith("graded 1 of 7")
    running(run, "-B /student.py")
    had = running(run, "spawn_main")  # /proc may leave one out while others come and go
    workers = [pid for pid in had if "spawn_main" in command(pid)]
    # Each has begun when it has a sandbox of its own; until then it may outlive its parent.
    while not all(children(pid) for pid in workers):
        time.sleep(0.02)
    had = children(run.pid)
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)  # it hears nothing any more
    os.killpg(run.pid, signal.SIGINT)
    assert run.stderr.readline() == "\n" and run.stderr.readline().strip() == SAID
    assert run.poll() is None
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(60) == 130
    wait_until_gone(had)
