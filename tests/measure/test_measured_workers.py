"""Processes of a measurement answer, fail in words, and are gone, however they end."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from processes import finished

from lightspeed_tools.measure.instruments.timing import Unavailable
from lightspeed_tools.measure.instruments.workers import crew, receive


def echo(pipe):
    while True:
        pipe.send((os.getpid(), pipe.recv()))


def fail(pipe):
    pipe.recv()
    raise ValueError("no such thing")


def die(pipe):
    pipe.recv()
    os._exit(3)


def deaf(pipe):
    pipe.send(os.getpid())
    time.sleep(600)


def alive(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def gone(pids, seconds=20):
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(alive, pids))


def test_they_answer_and_are_gone():
    with crew(echo, echo) as pipes:
        for i, pipe in enumerate(pipes):
            pipe.send(i)
        pids, said = zip(*(receive(pipe, 20) for pipe in pipes), strict=True)
        assert said == (0, 1) and os.getpid() not in pids and all(map(alive, pids))
    assert gone(pids, 0) and not multiprocessing.active_children()


def test_an_error_in_the_block_ends_them_too():
    with pytest.raises(ZeroDivisionError), crew(deaf) as (pipe,):
        pid = receive(pipe, 20)
        1 / 0  # noqa: B018
    assert gone([pid], 0)


def test_a_failure_comes_as_words():
    with (
        crew(fail) as (pipe,),
        pytest.raises(Unavailable, match="failed: ValueError: no such thing"),
    ):
        pipe.send("go")
        receive(pipe, 20)


def test_one_that_dies_is_noticed():
    with crew(die) as (pipe,), pytest.raises(Unavailable, match="ended before it had answered"):
        pipe.send("go")
        receive(pipe, 20)


@pytest.mark.slow
@pytest.mark.holds("measure", "A process did not answer within")
def test_one_that_does_not_answer_is_given_up_and_ended():
    with crew(deaf) as (pipe,):
        pid = receive(pipe, 20)
        with pytest.raises(Unavailable, match="did not answer within"):
            receive(pipe, 0.1)
    assert gone([pid], 0)


SCRIPT = """
import sys, time
from test_measured_workers import deaf
from lightspeed_tools.measure.instruments.workers import crew, receive
if __name__ == "__main__":
    with crew(deaf, deaf) as pipes:
        print(*(receive(pipe, 20) for pipe in pipes), flush=True)
        time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_they_go_when_the_parent_does(tmp_path, how):
    """Ctrl+C lets the parent end them; if it is killed they see their pipe close."""
    (tmp_path / "script.py").write_text(
        SCRIPT.replace("deaf", "deaf" if how == signal.SIGINT else "echoing")
    )
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(map(alive, pids))
    os.kill(parent.pid, how)
    parent.communicate(timeout=30)
    assert parent.returncode != 0 and gone(pids)


def echoing(pipe):
    pipe.send(os.getpid())
    pipe.recv()


@pytest.mark.slow
def test_a_script_that_forgets_its_guard_is_told_so(tmp_path):
    (tmp_path / "script.py").write_text(
        "from lightspeed_tools.measure.instruments import scaling\nscaling.measure()\n"
    )
    run = finished([sys.executable, tmp_path / "script.py"], timeout=120)
    assert run.returncode != 0
    assert "Unavailable" in run.stderr
    assert '__name__ == "__main__"' in run.stderr
