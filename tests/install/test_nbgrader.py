"""nbgrader itself takes an export through its whole course, to our grader's marks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import finished

from lightspeed_authoring.solved import solved
from lightspeed_class.grading.grade import grade
from lightspeed_class.handout.nbgrader import export_nbgrader
from lightspeed_class.notebooks import Assignment
from lightspeed_course.practice.questions import question

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
NAME = "02_roofline"
POINTS = {"roofline.ridge": 3, "roofline.relu_share": 0.5}
ASSIGNMENT = Assignment.of(ROOT / f"exercises/{NAME}.ipynb", POINTS)
SECRET = "of the test"
NEEDS = (
    "nbgrader==0.9.6", "numpy", "pint", "markdown-it-py", "platformdirs", "anywidget", "ipywidgets",
    "matplotlib",
)  # fmt: skip
MARKS = f"""
import json
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    marks = {{s.student.id: {{g.name: g.score for n in s.notebooks for g in n.grades}} for s in book.assignment_submissions("{NAME}")}}
print(json.dumps(marks))
"""
pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def nbgrader(tmp_path_factory):
    """A folder with the exported assignment, and a function that runs nbgrader's programs."""
    folder = tmp_path_factory.mktemp("course")
    home = tmp_path_factory.mktemp("environment")
    subprocess.run([UV, "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True)
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--python", home / "bin/python", *NEEDS], check=True
    )
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "lib"),
        "HOME": str(home),
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
    }

    def run(program, *arguments):
        done = finished(
            [home / "bin" / program, *arguments], cwd=folder, env=environment, timeout=600
        )
        assert done.returncode == 0, f"{arguments}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr

    export_nbgrader(solved(NAME), folder, POINTS, SECRET)
    run.folder = folder
    return run


def answers(notebook):
    return [cell for cell in notebook["cells"] if cell["metadata"]["nbgrader"]["solution"]]


def function_of_published_inputs():
    """Right on what the student can see, wrong elsewhere."""
    variant = question("roofline.attainable").variant()
    known = {
        tuple(variant.inputs(s).values()): float(r)
        for s, r in zip(variant.samples, variant.right, strict=True)
    }
    return (
        f"known = {known!r}\ndef roof(intensity, peak, bandwidth):\n    return"
        " known.get((intensity, peak, bandwidth), 0.0)"
    )


CHEAT = """
import lightspeed_course.practice.check, lightspeed_class.grading.grade
class Yes: correct = True
check = lightspeed_course.practice.check.diagnose = lambda *a: Yes
answer = 0
"""


def submissions(source, released):
    """Student -> notebook. All begin with what nbgrader released."""
    right = [cell["source"] for cell in answers(source)]
    stubs = [cell["source"] for cell in answers(released)]
    wrong = [
        "def roof(*inputs): return 1.0" if "def roof" in "".join(text) else "answer = 1e-12"
        for text in stubs
    ]
    half = [
        text if n % 2 else "undefined_name" if n % 4 else stub
        for n, (text, stub) in enumerate(zip(right, stubs, strict=True))
    ]
    half = [
        function_of_published_inputs() if "def roof" in "".join(text) else text for text in half
    ]
    half[-1] = right[-1]
    cheat = [CHEAT, *stubs[1:]]
    for student, texts in (
        ("right", right),
        ("wrong", wrong),
        ("half", half),
        ("stubs", stubs),
        ("cheat", cheat),
    ):
        texts = iter(texts)
        cells = [
            {**cell, "source": next(texts)} if cell["metadata"]["nbgrader"]["solution"] else cell
            for cell in released["cells"]
        ]
        yield student, {**released, "cells": cells}


def test_the_whole_course(nbgrader):
    folder = nbgrader.folder
    source = folder / f"source/{NAME}/{NAME}.ipynb"
    assert "Success" in nbgrader("nbgrader", "validate", str(source))
    nbgrader("nbgrader", "generate_assignment", NAME, "--create")
    released = folder / f"release/{NAME}/{NAME}.ipynb"
    text = released.read_text()
    assert "BEGIN SOLUTION" not in text
    assert "HIDDEN" not in text
    assert SECRET not in text
    assert text.count("# YOUR CODE HERE") == len(ASSIGNMENT.cells)
    assert f"FAILED ON {len(ASSIGNMENT.points)} CELL(S)" in nbgrader(
        "nbgrader", "validate", str(released)
    )
    handed_in = dict(submissions(json.loads(source.read_text()), json.loads(text)))
    for student, notebook in handed_in.items():
        place = folder / f"submitted/{student}/{NAME}"
        place.mkdir(parents=True)
        (place / f"{NAME}.ipynb").write_text(json.dumps(notebook))
    nbgrader("nbgrader", "autograde", NAME, "--create")
    theirs = json.loads(nbgrader("python", "-c", MARKS))
    ours = {}
    for student, notebook in handed_in.items():
        graded = grade(json.dumps(notebook).encode(), ASSIGNMENT, secret=SECRET)
        ours[student] = {score.question.replace(".", "-"): score.points for score in graded.scores}
        assert graded.notes == () or student != "right"
    total = sum(ASSIGNMENT.points.values())
    assert {
        student: sum(marks.values()) for student, marks in ours.items() if student != "half"
    } == {"right": total, "wrong": 0, "stubs": 0, "cheat": 0}
    assert 0 < sum(ours["half"].values()) < total and ours["half"]["roofline-attainable"] == 0
    for student in ("right", "wrong", "half", "stubs"):
        assert theirs[student] == ours[student], student
    assert sum(theirs["cheat"].values()) == total  # what the README says of it; ours gave nothing

    nbgrader("nbgrader", "generate_feedback", NAME)
    page = (folder / f"feedback/wrong/{NAME}/{NAME}.html").read_text()
    assert "Not yet. You have" in page and SECRET in page  # the latter, too, the README says
    nbgrader("nbgrader", "export", "--to", "grades.csv")
    header, *rows = [line.split(",") for line in (folder / "grades.csv").read_text().splitlines()]
    exported = {row[header.index("student_id")]: float(row[header.index("score")]) for row in rows}
    assert exported == {student: sum(marks.values()) for student, marks in theirs.items()}
