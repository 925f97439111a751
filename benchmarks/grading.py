"""Submissions per minute of the chapter 2 assignment, isolated, beside nbgrader's autograde on the same notebooks.

Each submission has right answers to all questions, and both graders give it full marks. nbgrader comes from the package
index into an environment of its own; its test cells run in the student's kernel, one submission at a time, as it works.
Both rates leave the start of the program out: they come from the difference between a longer and a shorter run.

    python benchmarks/grading.py            # 30 and 200 submissions
    python benchmarks/grading.py 30 800
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import _beside
from lightspeed import pages
from lightspeed.classroom.batch import grade_all
from lightspeed.classroom.gradebook import Gradebook
from lightspeed.classroom.notebooks import Assignment

NAME, VERSION = "nbgrader", "0.9.6"
ROOT = Path(__file__).resolve().parents[1]
HOME = _beside.BENCH / f"{NAME}-{VERSION}"
ASSIGNMENT = Assignment.of(ROOT / "exercises/02_roofline.ipynb")
FULL = sum(ASSIGNMENT.points.values())
NEEDS = ("numpy", "pint", "platformdirs", "anywidget", "ipywidgets", "matplotlib")  # of the notebook itself
ROUNDS, SHORT, LONG = 3, 1, 4  # submissions in two runs of nbgrader


def solved():
    """The exercise of chapter 2 with the answers of its solution. Its cells keep the ids of the exercise."""
    script = ROOT / "solutions/02_roofline.py"
    notebook, exercise = pages.page(script), pages.page(script, stubs=True)
    given = [cell for cell in notebook.cells if "solution" not in cell.metadata.get("tags", [])]
    for cell, stub in zip(given, exercise.cells, strict=True):
        cell.id = stub.id
    notebook.cells = given
    return notebook


def submission(notebook, number):
    """Bytes of its own for each student."""
    return json.dumps({**notebook, "metadata": {**notebook["metadata"], "student": number}}).encode()


def ours(folder, notebook, count, workers=2):
    """Seconds for so many submissions, from the first to the last result, and the seconds at each."""
    times = []
    with Gradebook(folder / f"ours-{time.monotonic_ns()}.sqlite3") as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        for number in range(count):
            book.add_student(f"s{number:04}")
            book.add_submission(f"s{number:04}", ASSIGNMENT.name, submission(notebook, number), at=number)
        tally = grade_all(book, ASSIGNMENT.name, workers, progress=lambda *_: times.append(time.perf_counter()))
        points = {r.points for r in book.results(ASSIGNMENT.name)}
    if tally.failed or points != {FULL}:
        raise SystemExit(f"not all got full marks: {points} {tally.failed}")
    return times


def theirs(folder, notebook, count):
    """Seconds of `nbgrader autograde` for so many submissions."""
    course = folder / f"nbgrader-{time.monotonic_ns()}"
    graded = with_tests(notebook)
    for place in (course / "source/ps1", *(course / f"submitted/s{n:04}/ps1" for n in range(count))):
        place.mkdir(parents=True)
        (place / "ps1.ipynb").write_text(json.dumps(graded))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "lib"), "LIGHTSPEED_DATA": str(course / "data"), "HOME": str(course)}
    environment["PATH"] = f"{HOME / 'bin'}{os.pathsep}{environment['PATH']}"
    command = [HOME / "bin/nbgrader"]

    def run(*arguments):
        done = subprocess.run([*command, *arguments], cwd=course, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])

    run("generate_assignment", "ps1", "--create", "--ClearSolutions.enforce_metadata=False")
    start = time.perf_counter()
    run("autograde", "ps1", "--create")
    seconds = time.perf_counter() - start
    run("export", "--to", "grades.csv")
    rows = (course / "grades.csv").read_text().splitlines()
    column = rows[0].split(",").index("score")
    scores = [float(row.split(",")[column]) for row in rows[1:]]
    if scores != [FULL] * count:
        raise SystemExit(f"nbgrader gave {scores}")
    return seconds


def with_tests(notebook):
    """The same answers in nbgrader's form: after each a locked test cell, a point each."""
    cells = []
    for cell in notebook["cells"]:
        if "".join(cell["source"]).startswith("ask("):
            continue  # it shows the prompt with its widgets, for which nbgrader should not be made to wait
        pairs = ASSIGNMENT.cells.get(cell["id"], ())
        marked = {"nbgrader": {"schema_version": 3, "grade_id": f"a{cell['id']}", "solution": True, "grade": False, "locked": False, "task": False}}
        cells.append({**cell, "metadata": marked if pairs else {}})
        for question, variable in pairs:
            test = {"schema_version": 3, "grade_id": f"t{cell['id']}", "solution": False, "grade": True, "locked": True, "task": False, "points": 1}
            source = f"assert check({question!r}, {variable}).correct"
            cells.append({"cell_type": "code", "id": f"t{cell['id']}"[:64], "metadata": {"nbgrader": test}, "source": source, "outputs": [], "execution_count": None})
    return {**notebook, "cells": cells}


def environment_of_nbgrader():
    """Made on first use."""
    python, uv = HOME / "bin/python", Path(sys.executable).with_name("uv")
    if not (HOME / "done").exists():
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, HOME], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, f"{NAME}=={VERSION}", *NEEDS], check=True)
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


def main():
    small, large = map(int, sys.argv[1:3] or (30, 200))
    environment_of_nbgrader()
    notebook = solved()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        pairs = []
        for _ in range(ROUNDS):  # one after the other, so that both meet the same load of the machine
            nbgrader = (theirs(folder, notebook, LONG) - theirs(folder, notebook, SHORT)) / (LONG - SHORT)
            two, one = ours(folder, notebook, small), ours(folder, notebook, small // 2, workers=1)
            pairs.append((nbgrader, *((times[-1] - times[0]) / (len(times) - 1) for times in (two, one))))
            print("seconds a submission: nbgrader {:.2f}, ours with 2 workers {:.3f}, with one {:.3f}".format(*pairs[-1]), flush=True)
        with Memory() as memory:
            times = ours(folder, notebook, large)
    begun, ended = times[small - 1] - times[0], times[-1] - times[-small]
    nbgrader, two, one = (statistics.median(column) for column in zip(*pairs, strict=True))
    _beside.show(
        f"Grading chapter 2, {len(ASSIGNMENT.points)} questions, medians of {ROUNDS}",
        [
            (f"nbgrader {VERSION}, not isolated", f"{60 / nbgrader:.1f} /min"),
            ("ours, isolated, 1 worker", f"{60 / one:.1f} /min"),
            ("ours, isolated, 2 workers", f"{60 / two:.1f} /min"),
            ("ratio, 1 worker", f"{statistics.median(n / o for n, _, o in pairs):.1f}"),
            ("ratio, 2 workers", f"{statistics.median(n / t for n, t, _ in pairs):.1f}"),
            (f"{large} submissions, 2 workers", f"{times[-1] - times[0]:.0f} s"),
            (f"per submission, first {small}", f"{1000 * begun / (small - 1):.0f} ms"),
            (f"per submission, last {small}", f"{1000 * ended / (small - 1):.0f} ms"),
            ("memory of a worker", f"{memory.worker / 1e6:.0f} MB"),
            ("memory of a sandbox", f"{memory.sandbox / 1e6:.0f} MB"),
        ],
    )


if __name__ == "__main__":
    main()
