"""The grader on other platforms: the same scores as at home, in the form that they document, and no
secret of the class in what is handed to them.
"""

import ast
import json
import os
import subprocess
import sys
import zipfile

import pytest
import yaml
from cases import ANSWERS, ASSIGNMENT, QUESTIONS, STUBS, exercises, right
from cases import notebook as packed
from processes import finished

from lightspeed_class.class_folder import ClassError, new
from lightspeed_class.grading import autograder
from lightspeed_class.grading.grade import grade
from lightspeed_class.handout.autograder import github, gradescope
from lightspeed_class.notebooks import Assignment
from lightspeed_class.prose import Prose
from lightspeed_class.score import BY_HAND, Graded, Score

NAME = ASSIGNMENT.name
# gradescope-autograders.readthedocs.io/en/latest/specs, "Output format"
TOP = {
    "score", "execution_time", "output", "output_format", "test_output_format", "test_name_format",
    "visibility", "stdout_visibility", "extra_data", "tests", "leaderboard",
}  # fmt: skip
TEST = {
    "score", "max_score", "status", "name", "name_format", "number", "output", "output_format",
    "tags", "visibility", "extra_data",
}  # fmt: skip


@pytest.fixture
def book(tmp_path):
    course = new(tmp_path / "class")
    with course.book() as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        book.add_student("ada", "Ada", seed="adas", email="Ada@x.org")
        book.add_student("bob", "Bob", seed="bobs")
        yield book


def unpacked(path, root):
    """The folders as Gradescope lays them out."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(root / "source")
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
    (root / "submission").mkdir()
    return modes


def who(root, *mails):
    metadata = {"id": 1, "users": [{"email": mail, "id": 1, "name": "x"} for mail in mails]}
    (root / "submission_metadata.json").write_text(json.dumps(metadata))


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.slow
def test_run_autograder_gives_the_scores_of_grade(book, tmp_path):
    path, root = tmp_path / "auto.zip", tmp_path / "autograder"
    assert gradescope(book, NAME, path) == []
    modes = unpacked(path, root)
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    who(root, "ada@x.org")
    content = right(ridge="answer = 3\ncheck('roofline.ridge', answer)")
    (root / "submission/mine.ipynb").write_bytes(content)
    done = finished(
        ["bash", str(root / "source/run_autograder")],
        cwd=root,
        env=os.environ | {"AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((root / "results/results.json").read_text())
    assert set(results) <= TOP and all(set(test) <= TEST for test in results["tests"])
    home = grade(content, ASSIGNMENT)
    told = [(t["score"], t["max_score"]) for t in results["tests"]]
    assert told == [(s.points, s.out_of) for s in home.scores] and sum(s for s, _ in told) == 3
    assert results["extra_data"]["digest"] == home.digest, "the very same verdicts and words"
    assert results["extra_data"]["isolation"].startswith("bubblewrap")
    assert [autograder.earned(results, q) for q in ASSIGNMENT.points] == [s == 1 for s, _ in told]


@pytest.mark.holds("docs/teach.md", "The secret of the class is in neither")
def test_the_pack_holds_no_secret_and_every_module_that_it_needs(book, tmp_path):
    gradescope(book, NAME, tmp_path / "auto.zip")
    again = tmp_path / "again.zip"
    gradescope(book, NAME, again)
    assert again.read_bytes() == (tmp_path / "auto.zip").read_bytes()
    with zipfile.ZipFile(again) as archive:
        assert not any(book.secret.encode() in archive.read(name) for name in archive.namelist())
        assert {"setup.sh", "run_autograder"} <= set(archive.namelist())
        for name in ("setup.sh", "run_autograder"):
            subprocess.run(["bash", "-n"], input=archive.read(name), check=True)
        config = json.loads(archive.read("autograder.json"))
        assert config["secret"] and config["seeds"] == {}  # all have the same numbers
        assert b"numpy" in archive.read("requirements.txt")
        ast.parse(archive.read("course/lightspeed_class/grading/autograder.py"))
    book.add_assignment(ASSIGNMENT, seeded=True)
    assert gradescope(book, NAME, tmp_path / "own.zip") == ["bob"]  # nobody could find him there
    with zipfile.ZipFile(tmp_path / "own.zip") as archive:
        assert json.loads(archive.read("autograder.json"))["seeds"] == {"ada@x.org": "adas"}


CONFIG = {"seeded": True, "shared": False, "seeds": {"a@x": "one", "b@x": "two"}}


def test_whose_numbers_count():
    def copy(seed):
        return packed([{"cell_type": "code", "source": f"LIGHTSPEED_SEED='{seed}'"}])

    seed = autograder.the_seed
    assert seed(CONFIG, copy("one"), ["a@x"]) == seed(CONFIG, copy("two"), ["a@x"]) == "one"
    assert seed(CONFIG, copy("two"), ["a@x", "b@x"]) == "two"  # a group, with the copy of one
    assert seed(CONFIG | {"seeded": False}, copy("two"), ["c@x"]) is None
    assert seed(CONFIG | {"shared": True}, packed([]), ["a@x"]) is None
    for users, told in ((["c@x", "a@x"], "c@x is not on the roster"), ([], "does not say who")):
        with pytest.raises(autograder.CannotGrade, match=told):
            seed(CONFIG, copy("one"), users)


def test_who_is_unknown_gets_no_score_and_no_nought(book, tmp_path, capsys):
    book.add_assignment(ASSIGNMENT, seeded=True)
    gradescope(book, NAME, tmp_path / "auto.zip")
    unpacked(tmp_path / "auto.zip", tmp_path)
    who(tmp_path, "eve@x.org")
    (tmp_path / "submission/x.ipynb").write_bytes(right("seed = 'LIGHTSPEED_SEED'"))
    words = ["--source", "source", "--submission", "submission", "--results", "results.json",
             "--metadata", "submission_metadata.json"]  # fmt: skip
    words = [str(tmp_path / w) if not w.startswith("--") else w for w in words]
    assert autograder.main(words) == 1 and not (tmp_path / "results.json").exists()
    assert "eve@x.org is not on the roster" in capsys.readouterr().err


def test_which_notebook_and_what_is_none(tmp_path):
    config = {"assignment": {"name": NAME, "cells": dict(ASSIGNMENT.cells),
                             "points": {}, "prose": {}},
              "seeded": False, "shared": True, "seeds": {}, "secret": "s", "isolated": True,
              "visibility": "visible"}  # fmt: skip

    def told(**files):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        (folder / ".ipynb_checkpoints").mkdir(parents=True)
        (folder / ".ipynb_checkpoints/hostile.ipynb").write_bytes(right())
        for name, content in files.items():
            (folder / f"{name}.ipynb").write_bytes(content)
        results = autograder.judge(config, folder, [])
        return sum(t["score"] for t in results["tests"]), results["tests"][0]["output"]

    assert told() == (0.0, "There is no notebook (.ipynb) in it.")
    assert told(a=b"{", b=b"{")[1].startswith("There are 2 notebooks in it (a.ipynb, b.ipynb)")
    assert "not valid JSON" in told(a=b"{")[1]
    assert autograder.the_notebook(tmp_path / "1", "a").name == "a.ipynb"


def test_prose_is_no_part_of_what_an_autograder_says():
    prose = {"prose.why": Prose("prose.why", "Why?", "", "a", "b")}
    asked = Assignment(
        "x", {"a": (("prose.why", ""),), "c": (("roofline.ridge", "answer"),)}, {}, prose
    )
    scores = (Score("prose.why", 0, 1, BY_HAND), Score("roofline.ridge", 1.0, 1.0, "right"))
    told = autograder.told(Graded("ok", scores, (), {"isolation": "x"}), asked, 0.4)
    assert [(t["number"], t["output"]) for t in told["tests"]] == [("2", "Right.")]
    assert "1 of 1 points." in told["output"]
    assert "prose.why is marked by a person" in told["output"]


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.slow
def test_github_gets_a_workflow_that_calls_the_same_grader(book, tmp_path):
    released = tmp_path / "released.ipynb"
    released.write_bytes(packed(exercises(STUBS)))
    folder = tmp_path / "template"
    github(book, NAME, released, folder)
    workflow = yaml.safe_load((folder / ".github/workflows/classroom.yml").read_text())
    (job,) = workflow["jobs"].values()
    steps = {step.get("id", step["name"]): step for step in job["steps"]}
    asked = list(ASSIGNMENT.points)
    assert [steps[f"q{i}"]["with"]["test-name"] for i in range(1, 5)] == asked
    reporter = steps["Autograding Reporter"]
    assert reporter["with"]["runners"] == "q1,q2,q3,q4"
    assert reporter["env"]["Q2_RESULTS"] == "${{steps.q2.outputs.result}}"
    config = json.loads((folder / ".lightspeed/autograder.json").read_text())
    assert config["secret"] == "" and not config["seeds"]
    assert not any(book.secret.encode() in p.read_bytes() for p in folder.rglob("*") if p.is_file())
    # the commands of the workflow, as its shell runs them
    answers = ANSWERS | {"ridge": "answer = 3"}
    (folder / f"{NAME}.ipynb").write_bytes(packed(exercises(answers)))
    env = os.environ | {
        "RUNNER_TEMP": str(tmp_path),
        "PYTHONPATH": str(folder / ".lightspeed/course"),
    }
    run = steps["Grade"]["run"].split('"$(which python)"')[1]
    for words, status in (
        (run, 0), *((steps[f"q{i}"]["with"]["command"].removeprefix("python"),
                     int(q == QUESTIONS["ridge"]))
                    for i, q in enumerate(asked, 1)),
    ):  # fmt: skip
        done = subprocess.run(
            ["bash", "-c", f"{sys.executable} {words}"], cwd=folder, env=env, capture_output=True
        )
        assert done.returncode == status, (words, done.stderr)
    with pytest.raises(ClassError, match="is not empty"):
        github(book, NAME, released, folder)
    book.add_assignment(Assignment(NAME, ASSIGNMENT.cells, {asked[0]: 0.5}), seeded=False)
    with pytest.raises(ClassError, match="whole points"):
        github(book, NAME, released, tmp_path / "other")
    book.add_assignment(ASSIGNMENT, seeded=True)
    with pytest.raises(ClassError, match="variants = false"):
        github(book, NAME, released, tmp_path / "other")


@pytest.mark.slow
def test_what_cannot_be_packed_is_told(tmp_path, say, monkeypatch):
    course = new(tmp_path / "class")
    monkeypatch.chdir(course.root)
    (course.root / "roster.csv").write_text("id,name,email\nada,Ada,a@x.org\n")

    for words in (("roster",), ("incident", "training"), ("prose", "why", "Why?")):
        assert say(*words)[0] == 0
    for name, told in (
        ("incident_training", "secret of the class"),
        ("prose_why", "only for prose"),
    ):
        assert say("release", f"{name}.ipynb")[0] == 0
        status, out = say("gradescope", name, "x.zip")
        assert status == 2 and told in out and not (course.root / "x.zip").exists()
    assert say("release", "02")[0] == 0
    assert say("gradescope", "02", "x.zip", "--not-isolated")[0] == 0
    with zipfile.ZipFile("x.zip") as archive:
        assert b"NOT ISOLATED" in archive.read("README.txt")
        assert json.loads(archive.read("autograder.json"))["isolated"] is False
    assert "exists" in say("gradescope", "02", "x.zip")[1]
    assert "variants = false" in say("github", "02", "template")[1]
    settings = course.root / "class.toml"
    settings.write_text(settings.read_text().replace("variants = true", "variants = false"))
    settings.write_text(settings.read_text().replace('feedback = "full"', 'feedback = "format"'))
    assert say("release", "02")[0] == 0 and say("github", "02", "template")[0] == 0
    asked = Assignment.of(course.root / "template/02_roofline.ipynb").points
    workflow = (course.root / "template/.github/workflows/classroom.yml").read_text()
    assert all(f"--earned {question}\n" in workflow for question in asked)
    assert say("gradescope", "02", "y.zip")[0] == 0
    with zipfile.ZipFile("y.zip") as archive:  # `check` diagnoses nothing there, nor does this yet
        assert json.loads(archive.read("autograder.json"))["visibility"] == "after_published"
    (next(course.released("02_roofline").glob("v2/*.ipynb"))).unlink()
    assert "is gone" in say("github", "02", "other")[1]
