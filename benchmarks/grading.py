"""Submissions per minute of the chapter 2 assignment, isolated, beside nbgrader's autograde on the
same notebooks.

Each submission has right answers to all questions, and both graders give it full marks. nbgrader
comes from the package index into an environment of its own; its test cells run in the student's
kernel, one submission at a time, as it works. Both rates leave the start of the program out: that
of nbgrader is the difference between a longer and a shorter run, ours counts from the first results
to the last. The ratio core for core is of processor time, counted by a control group that all of
it runs in, killed sandboxes too. Where the kernel gives no group, the whole machine's time is
counted, nothing else may run, and the table says so.

    python benchmarks/grading.py                  # classes of 30, 200 and 800; about ten minutes
    python benchmarks/grading.py --alone 10 20    # without nbgrader
"""

import argparse
import atexit
import contextlib
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import _beside
from _nbgrader_form import export_nbgrader

from lightspeed_authoring.solved import solved
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading.batch import grade_all
from lightspeed_class.notebooks import Assignment

NAME, VERSION = "nbgrader", "0.9.6"
ROOT = Path(__file__).resolve().parents[1]
HOME = _beside.BENCH / f"{NAME}-{VERSION}"
ASSIGNMENT = Assignment.of(ROOT / "exercises/02_roofline.ipynb")
FULL = sum(ASSIGNMENT.points.values())
# of the notebook itself
NEEDS = (
    *("numpy", "pint", "platformdirs", "anywidget", "ipywidgets", "matplotlib"),
    "markdown-it-py",
)
ROUNDS, SHORT, LONG = 3, 1, 4  # submissions in two runs of nbgrader


def submission(notebook, number):
    """Bytes of its own for each student."""
    return json.dumps(
        {**notebook, "metadata": {**notebook["metadata"], "student": number}}
    ).encode()


def ours(folder, notebook, count, workers=2):
    """The seconds that so many submissions take, from the first process to the last, and when
    each was done.
    """
    times = []
    with Gradebook(folder / f"ours-{time.monotonic_ns()}.sqlite3") as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        for number in range(count):
            book.add_student(f"s{number:04}")
            book.add_submission(
                f"s{number:04}", ASSIGNMENT.name, submission(notebook, number), at=number
            )
        tally = grade_all(
            book,
            ASSIGNMENT.name,
            workers,
            progress=lambda *_: times.append((time.perf_counter(), busy())),
        )
        points = {r.points for r in book.results(ASSIGNMENT.name)}
    if tally.failed or points != {FULL}:
        raise SystemExit(f"not all got full marks: {points} {tally.failed}")
    return tally.seconds, times


def rate(times, workers=2):
    """(seconds, processor seconds) for each submission but the first ones, which wait for the
    workers and their servers to start.
    """
    (begin, used), (end, used_then) = times[workers], times[-1]
    count = len(times) - 1 - workers
    return (end - begin) / count, (used_then - used) / count


def theirs(folder, count):
    """(seconds, processor seconds) of `nbgrader autograde` for so many submissions."""
    course = folder / f"nbgrader-{time.monotonic_ns()}"
    source = export_nbgrader(solved(ASSIGNMENT.name), course)
    for number in range(count):
        place = course / f"submitted/s{number:04}/{ASSIGNMENT.name}"
        place.mkdir(parents=True)
        shutil.copy(source, place)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "lib"), "HOME": str(course)}
    environment["PATH"] = f"{HOME / 'bin'}{os.pathsep}{environment['PATH']}"

    def run(*arguments):
        done = subprocess.run(
            [HOME / "bin/nbgrader", *arguments],
            cwd=course,
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])

    run("generate_assignment", ASSIGNMENT.name, "--create")
    start, before = time.perf_counter(), busy()
    run("autograde", ASSIGNMENT.name, "--create")
    seconds, processor = time.perf_counter() - start, busy() - before
    run("export", "--to", "grades.csv")
    rows = (course / "grades.csv").read_text().splitlines()
    column = rows[0].split(",").index("score")
    scores = [float(row.split(",")[column]) for row in rows[1:]]
    if scores != [FULL] * count:
        raise SystemExit(f"nbgrader gave {scores}")
    return seconds, processor


def environment_of_nbgrader():
    """Made on first use."""
    python, uv = HOME / "bin/python", Path(sys.executable).with_name("uv")
    if not (HOME / "done").exists():
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, HOME], check=True
        )
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", python, f"{NAME}=={VERSION}", *NEEDS],
            check=True,
        )
        (HOME / "done").touch()


class Memory:
    """The largest resident memory of a worker and of a sandbox, sampled while it is open."""

    def __enter__(self):
        self.worker = self.sandbox = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _watch(self):
        while not self._over.wait(0.03):
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    self._look(entry)

    def _look(self, entry):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            status = (entry / "status").read_text()
            resident = int((entry / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            return
        if b"/student.py" in words and b"bwrap" not in words[0]:
            self.sandbox = max(self.sandbox, resident)
        elif any(b"spawn_main" in w for w in words) and f"\nPPid:\t{os.getpid()}\n" in status:
            self.worker = max(self.worker, resident)


def join_group():
    """Move this process into a control group of its own, which counts its processor time and that
    of all it starts: a function that reads it in seconds, and how it was counted.
    """
    v1, v2 = Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup")
    for root, file, scale in ((v1, "cpuacct.usage", 1e9), (v2, "cpu.stat", 1e6)):
        group = root / f"grading-{os.getpid()}"
        try:
            group.mkdir()
            (group / "cgroup.procs").write_text(str(os.getpid()))
            _used(group / file, scale)
        except OSError:
            continue
        atexit.register(_leave, group, root)
        return functools.partial(_used, group / file, scale), "a cgroup"
    return _whole_machine, "the whole machine"


def _used(file, scale):
    """Seconds in a group's account: one number, or a first line such as `usage_usec 123`."""
    return int(file.read_text().splitlines()[0].split()[-1]) / scale


def _leave(group, root):
    with contextlib.suppress(OSError):
        (root / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def _whole_machine():
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


busy, COUNTED = _whole_machine, "the whole machine"


def beside(folder, notebook):
    """Rows of both graders, one after the other so that both meet the same load of the machine."""
    environment_of_nbgrader()
    rounds = []
    for _ in range(ROUNDS):
        long, short = theirs(folder, LONG), theirs(folder, SHORT)
        nbgrader, theirs_used = ((a - b) / (LONG - SHORT) for a, b in zip(long, short, strict=True))
        two, _ = rate(ours(folder, notebook, 60, 2)[1], 2)
        one, used = rate(ours(folder, notebook, 30, 1)[1], 1)
        rounds.append((nbgrader, theirs_used, two, one, used))
        print(
            f"seconds a submission: nbgrader {nbgrader:.2f} (processor {theirs_used:.2f}), ours"
            f" with 2 workers {two:.3f}, with one {one:.3f} (processor {used:.3f})",
            flush=True,
        )
    nbgrader, theirs_used, _, one, used = (
        statistics.median(column) for column in zip(*rounds, strict=True)
    )
    return [
        (f"nbgrader {VERSION}, not isolated", f"{60 / nbgrader:.1f} /min"),
        ("  processor time of each", f"{theirs_used:.2f} s"),
        ("ours, isolated, 1 worker", f"{60 / one:.1f} /min"),
        ("  processor time of each", f"{1000 * used:.0f} ms"),
        ("ratio of processor times", f"{statistics.median(r[1] / r[4] for r in rounds):.1f}"),
        ("ratio, 1 worker", f"{statistics.median(r[0] / r[3] for r in rounds):.1f}"),
        ("ratio, 2 workers", f"{statistics.median(r[0] / r[2] for r in rounds):.1f}"),
    ]


def growing(folder, notebook, counts):
    """Rows of ours alone, for classes of these sizes."""
    rows = []
    for count in counts:
        whole, times = ours(folder, notebook, count)
        each, processor = rate(times)
        print(f"{count} submissions in {whole:.0f} s", flush=True)
        rows += [
            (f"{count} submissions, isolated, 2 workers", f"{60 / each:.1f} /min"),
            ("  all of them, with the start of the workers", f"{whole:.0f} s"),
            ("  each, of two at a time", f"{1000 * each:.0f} ms"),
            ("  processor time of each", f"{1000 * processor:.0f} ms"),
        ]
    with Memory() as memory:  # in a run of its own, since it looks at every process
        ours(folder, notebook, 20)
    rows += [
        ("memory of a worker", f"{memory.worker / 1e6:.0f} MB"),
        ("memory of a sandbox", f"{memory.sandbox / 1e6:.0f} MB"),
    ]
    third = max(2, len(times) // 3)
    first, last = rate(times[:third])[0], rate(times[-third:])[0]
    return [*rows, (f"last third of {counts[-1]} / first third", f"{last / first:.2f}")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "counts", nargs="*", type=int, default=[30, 200, 800], help="sizes of class (30 200 800)"
    )
    parser.add_argument(
        "--alone", action="store_true", help="without nbgrader, which has to be installed"
    )
    options = parser.parse_args()
    global busy, COUNTED
    busy, COUNTED = join_group()
    # both keep compiled files, whatever the surrounding shell says
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # As nbgrader has it, with the right answers; the ids of its cells are those of the
        # exercise.
        notebook = json.loads(export_nbgrader(solved(ASSIGNMENT.name), folder).read_text())
        rows = [] if options.alone else beside(folder, notebook)
        rows += growing(folder, notebook, options.counts)
    rows.append(("processor time counted by", COUNTED))
    _beside.show(f"Grading chapter 2, {len(ASSIGNMENT.points)} questions", rows)


if __name__ == "__main__":
    main()
