"""The grader is killed ten times in a batch of 200; the end is an undisturbed run's."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import QUESTIONS, call, code, notebook
from test_gradebook import children, wait_until_gone

from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading.sandbox import FIRST_UID
from lightspeed_class.notebooks import Assignment

COUNT, KILLS = 200, 10
ASSIGNMENT = Assignment("short", {"word": ((QUESTIONS["word"], "answer"),)})
# Waits for a line after each submission, so that no machine is too fast to be killed in between.
GRADE = """
import sys
def told(*_):
    print("one", flush=True)
    sys.stdin.readline()
from lightspeed_class.grading.batch import grade_all
from lightspeed_class.gradebook.book import Gradebook
if __name__ == "__main__":
    with Gradebook(sys.argv[1]) as book:
        tally = grade_all(book, "short", progress=told)
        sys.exit(bool(tally.failed))
"""
KINDS = [  # of submissions: content, points, status
    (notebook([code('answer = "bandwidth"\n' + call("word"), "word")]), 1, "ok"),
    (notebook([code('answer = "peak"\n' + call("word"), "word")]), 0, "ok"),
    (notebook([code("1 / 0"), code('answer = "bandwidth"', "word")]), 1, "ok"),
    (
        notebook(
            [code(call("word").replace("answer", '"bandwidth"')), code("import os\nos._exit(1)")]
        ),
        1,
        "exit",
    ),
    (b"not a notebook", 0, "refused"),
    (None, 0, "refused"),
]


def gradebook(path):
    with Gradebook(path) as book:
        book.setting("secret", "the same in both")
        book.add_assignment(ASSIGNMENT, seeded=False)
        for n in range(COUNT):
            content = KINDS[n % len(KINDS)][0]
            book.add_student(f"s{n:03}")
            book.add_submission(
                f"s{n:03}",
                "short",
                content and content + b" " * n,
                at=n,
                reason="" if content else "It is a link.",
            )
        book.set_manual("s007", "short", "", 2.0, "by hand", "me")


def start(path, folder):
    return subprocess.Popen(
        [sys.executable, "-c", GRADE, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder)},
    )


def kill(run, rng):
    """Kill a run at some moment; the processes that it had."""
    for _ in range(rng.randrange(20)):
        run.stdout.readline()
        run.stdin.write(b"\n")
        run.stdin.flush()
    time.sleep(0.1 * rng.random())
    had = children(run.pid)
    assert run.poll() is None
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    run.stdin.close()
    return had


def state(path):
    with Gradebook(path) as book:
        gradings = [[(g.key, g.graded) for g in book.gradings(s.id)] for s in book.submissions()]
        results = [
            (
                r.student.id,
                r.points,
                r.out_of,
                r.manual and [m.points for m in r.manual.values()],
                r.grading.graded.digest,
            )
            for r in book.results("short")
        ]
        return gradings, results


def owners():
    """The users of all processes."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add(entry.stat().st_uid)
            except OSError:
                continue
    return found


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.slow
def test_killed_ten_times(tmp_path):
    rng, had = random.Random(2), []
    work = tmp_path / "work"
    work.mkdir()
    for name in ("disturbed", "undisturbed"):
        gradebook(tmp_path / f"{name}.sqlite3")
    for _ in range(KILLS):
        run = start(tmp_path / "disturbed.sqlite3", work)
        had += kill(run, rng)
        wait_until_gone(had)
    for name in ("disturbed", "undisturbed"):
        run = start(tmp_path / f"{name}.sqlite3", work)
        done = run.communicate(b"\n" * COUNT, timeout=300)[0].count(b"one")
        assert run.returncode == 0
        assert done == COUNT if name == "undisturbed" else 0 < done < COUNT
    disturbed, undisturbed = (
        state(tmp_path / "disturbed.sqlite3"),
        state(tmp_path / "undisturbed.sqlite3"),
    )
    assert [len(history) for history in disturbed[0]] == [1] * COUNT
    assert disturbed == undisturbed
    assert [
        (history[0][1].points, history[0][1].status) for history in undisturbed[0][: len(KINDS)]
    ] == [kind[1:] for kind in KINDS]
    assert len(had) > KILLS and not {FIRST_UID + pid for pid in had} & owners()
    assert list(work.iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "disturbed.sqlite3",
        "undisturbed.sqlite3",
        "work",
    ]
