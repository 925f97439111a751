"""Notebooks that are honest but unusual lose nothing: not a point, and no word about what was not
done; and what they ask of the kernel is what the filter admits. One fork server serves them all.
"""

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from cases import ASSIGNMENT, right
from needs import lacks

from lightspeed_class.grading import forkserver, sandbox, seccomp
from lightspeed_class.grading.grade import grade

sys.path.insert(0, str(Path(__file__).parent / "honest"))
from notebooks import NOTEBOOKS

pytestmark = pytest.mark.slow

# Asked for and not there, which nobody minds: the C library goes on with clone, other libraries
# without a say in where memory lies.
DONE_WITHOUT = {"clone3", "get_mempolicy", "mbind", "set_mempolicy"}
# Admitted, and called by no notebook with this C library, Python and processor: what others, of
# another age or for aarch64, call for the same, what the kernel itself calls after a signal, and
# clocks that this kernel reads without a call.
OTHERS = {
    "clock_getres", "dup", "dup3", "epoll_pwait", "faccessat", "fork", "gettimeofday", "lstat",
    "mknod", "nanosleep", "open", "pipe", "ppoll", "preadv", "pwritev", "restart_syscall",
    "select", "stat", "time", "timer_delete", "tkill", "utimes",
}  # fmt: skip


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """The names of all calls of the notebooks, each graded as it should be."""
    if not shutil.which("strace"):
        lacks("strace")
    forkserver.close_all()
    grade(right(), ASSIGNMENT)  # so that a server is there
    (server,) = forkserver.servers()
    log = tmp_path_factory.mktemp("trace") / "calls"
    inner = list(sandbox._descendants(server.pid))[-1]
    command = ["strace", "-f", "-qq", "-o", str(log), "-p", str(inner)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as tracer:
        while (
            not log.exists()
            or f"TracerPid:\t{tracer.pid}" not in Path(f"/proc/{inner}/status").read_text()
        ):
            assert tracer.poll() is None, tracer.stderr.read()
        for content, _ in NOTEBOOKS.values():
            grade(content, ASSIGNMENT, secret="of the test")
        tracer.terminate()
    calls = defaultdict(list)
    for pid, name in re.findall(r"^(\d+) +(?:<\.\.\. )?([a-z]\w+)[( ]", log.read_text(), re.M):
        calls[pid].append(name)
    names = set()
    for mine in calls.values():
        if "unshare" not in mine:  # the server and the first process of a sandbox run no notebook
            names |= set(
                mine[len(mine) - mine[::-1].index("capset") :] if "capset" in mine else mine
            )
    return names


def test_each_gets_full_marks_and_hears_what_was_not_run():
    assert len(NOTEBOOKS) >= 80
    lost = []
    for name, (content, notes) in NOTEBOOKS.items():
        graded = grade(content, ASSIGNMENT, secret="of the test")
        told = " ".join(graded.notes)
        strange = [n for n in graded.notes if not any(word in n for word in notes)]
        missing = [word for word in notes if word not in told]
        if graded.points != 4 or graded.status != "ok" or strange or missing:
            lost.append(f"{name}: {graded.points} points, {graded.status}, {told or 'no notes'}")
    assert not lost, "\n".join(lost)


@pytest.mark.holds("docs/teach.md", "A filter of system calls admits")
def test_the_filter_admits_what_they_call_and_little_else(called):
    admitted = set(seccomp.numbers())
    assert called - admitted <= DONE_WITHOUT
    assert admitted - called <= OTHERS
