"""An export has nbgrader's form; tests/install/test_nbgrader.py asks nbgrader itself."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest

from lightspeed_authoring.notebooks import BuildError
from lightspeed_authoring.solved import solved
from lightspeed_class.handout.nbgrader import export_nbgrader
from lightspeed_class.notebooks import Assignment
from lightspeed_course.practice.questions import question

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in ROOT.glob("solutions/*.py"))


def broken_rules(notebook):
    """What nbgraderformat's v3.json and v3.py (0.9.6, BSD-3-Clause) refuse, in order."""
    seen = set()
    for cell in notebook["cells"]:
        mark = cell["metadata"]["nbgrader"]
        if (
            not {"schema_version", "grade", "locked", "solution"}
            <= set(mark)
            <= {"schema_version", "grade", "locked", "solution", "task", "grade_id", "points"}
        ):
            yield "keys", mark
        if mark["schema_version"] != 3 or any(
            type(mark[name]) is not bool for name in ("grade", "locked", "solution", "task")
        ):
            yield "types", mark
        if not re.fullmatch(r"[a-zA-Z0-9_\-]+", mark["grade_id"]):
            yield "grade_id", mark
        if mark["grade_id"] in seen:
            yield "duplicate", mark
        seen.add(mark["grade_id"])
        if mark["grade"] != ("points" in mark) or mark.get("points", 0) < 0:
            yield "points", mark
        if cell["cell_type"] == "markdown" and mark["grade"] != mark["solution"]:
            yield "markdown", mark
        for what, marked in (("SOLUTION", mark["solution"]), ("HIDDEN TESTS", mark["grade"])):
            ends = re.findall(rf"### (BEGIN|END) {what}", "".join(cell["source"]))
            if ends != ["BEGIN", "END"] * (len(ends) // 2) or (ends and not marked):
                yield what, mark


@pytest.mark.parametrize("name", NAMES)
def test_the_form(name, tmp_path):
    path = export_nbgrader(solved(name), tmp_path)
    notebook = json.loads(path.read_text())
    nbformat.validate(notebook)
    assert path == tmp_path / f"source/{name}/{name}.ipynb" and list(broken_rules(notebook)) == []
    assignment = Assignment.of(path)
    assert {
        cell["metadata"]["nbgrader"]["grade_id"]: cell["metadata"]["nbgrader"]["points"]
        for cell in notebook["cells"]
        if cell["metadata"]["nbgrader"]["grade"]
    } == {id.replace(".", "-"): 1 for id in assignment.points}
    for cell in notebook["cells"]:
        source, mark = "".join(cell["source"]), cell["metadata"]["nbgrader"]
        assert mark["locked"] != mark["solution"]
        if mark["solution"]:
            left = re.sub(
                r"### BEGIN SOLUTION.*?### END SOLUTION",
                "# YOUR CODE HERE",
                source,
                flags=re.DOTALL,
            )
            ast.parse(left)
            assert "..." in left and "check(" not in source
        assert ("HIDDEN" in source) == (
            mark["grade"] and question(mark["grade_id"].replace("-", ".", 1)).kind == "function"
        )
        assert mark["solution"] or "BEGIN SOLUTION" not in source


def test_the_rules_are_not_vacuous(tmp_path):
    notebook = json.loads(export_nbgrader(solved("02_roofline"), tmp_path).read_text())
    graded = next(cell for cell in notebook["cells"] if cell["metadata"]["nbgrader"]["grade"])
    for rule, change in (
        ("points", {"points": -1}),
        ("grade_id", {"grade_id": "a.b"}),
        ("types", {"schema_version": 2}),
        ("keys", {"extra": 1}),
    ):
        spoilt = {**graded, "metadata": {"nbgrader": {**graded["metadata"]["nbgrader"], **change}}}
        assert rule in [found for found, _ in broken_rules({"cells": [spoilt]})]
    assert [rule for rule, _ in broken_rules({"cells": [graded, graded]})] == ["duplicate"]


def test_it_asks_what_the_exercise_asks(tmp_path):
    points = {"roofline.ridge": 3, "roofline.relu_share": 0.5}
    exported = Assignment.of(export_nbgrader(solved("02"), tmp_path, points), points)
    exercise = Assignment.of(ROOT / "exercises/02_roofline.ipynb", points)
    assert exported.points == exercise.points
    kinds = {q: question(q).kind for q in exercise.points}
    assert exported.functions(kinds) == exercise.functions(kinds)


def test_hidden_inputs_are_drawn_afresh_or_as_asked(tmp_path):
    texts = [
        export_nbgrader(solved("02_roofline"), tmp_path / str(n), secret=secret).read_text()
        for n, secret in enumerate((None, None, "mine", "mine"))
    ]
    assert texts[0] != texts[1] and texts[2] == texts[3] and '\\"mine\\"' in texts[2]


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("# mine")
    path = export_nbgrader(solved("02_roofline"), tmp_path)
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        export_nbgrader(solved("02_roofline"), tmp_path)
    export_nbgrader(solved("03"), tmp_path)
    assert path.read_text() == "mine" and (tmp_path / "nbgrader_config.py").read_text() == "# mine"
    with pytest.raises(BuildError, match=r"there are .*02_roofline"):
        export_nbgrader(solved("nothing"), tmp_path)
