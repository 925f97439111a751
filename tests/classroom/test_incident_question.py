"""An incident in an assignment: each student has a truth that only the class can draw, the answer
is a plain cell, and the room's own scorer gives the points.
"""

import json

import pytest
from scored import Page

from lightspeed_class.class_folder import ClassFolder, new
from lightspeed_class.grading.batch import grade_all
from lightspeed_class.grading.grade import grade, repriced
from lightspeed_class.handout.release import notebook_for
from lightspeed_class.notebooks import Assignment
from lightspeed_class.posed import posed
from lightspeed_class.reports.class_report import statistics
from lightspeed_class.reports.feedback import write_feedback
from lightspeed_cli.main import main
from lightspeed_course import check
from lightspeed_course.incidents import policy
from lightspeed_course.incidents.score import score
from lightspeed_course.practice import incident_question as exercise
from lightspeed_course.practice.questions import UnknownQuestion, question

ID, SECRET = "incident.training", "of the class"
NAME = "incident_training"


@pytest.fixture(autouse=True)
def no_sheets(monkeypatch):
    monkeypatch.setattr(exercise, "sheets", {})


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("incident") / "class"
    made = new(folder)
    (folder / "roster.csv").write_text("id,name,email\nada,Ada,a@x.org\nbob,Bob,b@x.org\n")
    for words in (["roster", str(folder / "roster.csv")], ["incident", "training"]):
        assert main(["class", *words, "--class", str(folder)]) == 0
    return made


@pytest.fixture(scope="module")
def path(course):
    return course.root / f"{NAME}.ipynb"


def solved(variant):
    """The best answer there is, as a student writes it."""
    bought, cause = policy.solve(variant.case)
    return {"bought": bought, "cause": cause, "fix": number(variant, cause)}


def number(variant, cause):
    return 1 + [c.id for c in variant.setting.fixes].index(cause)


def handed_in(path, seed, answer, before=""):
    """The released notebook with this source in place of its answer."""
    book = json.loads(notebook_for(path, seed, seed, secret=SECRET))
    (cell,) = [c for c in book["cells"] if c["id"] == "incident-training"]
    written = answer if isinstance(answer, str) else repr(answer)
    cell["source"] = f'{before}\nanswer = {written}\ncheck("{ID}", answer)'
    return json.dumps(book).encode()


@pytest.mark.holds("docs/teach.md", "and is in no notebook")
def test_a_notebook_has_no_truth_in_it(path):
    seeds, guessed, truths = [f"s{n}" for n in range(60)], 0, set()
    for seed in seeds:
        truth = posed(ID, seed, SECRET)
        sheet = exercise.Sheet.unsealed(truth.sheet.sealed())
        assert set(vars(sheet)) == {"setting", "brief", "readings"}
        assert all(
            c.name not in str(sheet) and c.fix not in str(sheet) for c in truth.setting.causes
        )
        guessed += truth.case.cause.id == question(ID).variant(seed).case.cause.id
        truths.add(truth.case.cause.id)
    assert len(truths) == len(exercise.SETTINGS["training"].causes), "drawn per student"
    assert guessed <= 0.3 * len(seeds), "the seed in the notebook draws another cause"
    content = notebook_for(path, "s1", "ada", secret=SECRET).decode()
    assert content == notebook_for(path, "s1", "ada", secret=SECRET).decode()
    assert content != notebook_for(path, "s1", "ada", secret="another class").decode()
    assert SECRET not in content and posed(ID, "s1", SECRET).seed not in content
    assert posed(ID, "s1", SECRET).sheet.brief.split("**")[2][:40] in content


def test_check_opens_what_is_bought_and_judges_nothing(path):
    """The cells of a released notebook, in the student's own kernel."""
    cells = {c["id"]: c["source"] for c in json.loads(notebook_for(path, "s1", "ada"))["cells"]}
    truth = posed(ID, "s1", "")
    exec(cells["class-incidents"], {})
    said = check(ID, {"bought": ["profile"], "cause": ..., "fix": ...})
    assert said.kind == "unanswered" and truth.case.show("profile") in said.message
    assert truth.case.show("ranks") not in said.message and "Paid so far: 20 min" in said.message
    right, wrong = solved(truth), {"bought": [], "cause": "numa", "fix": 1}
    kinds = {check(ID, answer).kind for answer in (right, wrong)}
    assert kinds == {"read"}, "right and wrong look alike"
    with pytest.raises(ValueError, match="not the text that the notebook was released with"):
        exec(cells["class-incidents"].replace("eN", "xx", 1), {})


def test_a_slip_is_told_and_costs_nothing():
    slips = {
        "a dict of three parts": [["numa"], 3, {"bought": [], "couse": "numa"}, {}],
        "is a list": [{"bought": "profile"}, {"bought": 3}],
        "did you mean 'profile'": [{"bought": ["profil"]}],
        "did you mean 'slow_nic'": [{"bought": [], "cause": "slow nic"}],
        "from 1 to 11": [{"bought": [], "cause": "numa", "fix": fix} for fix in (0, 12, True, "1")],
        "in quotation marks": [{"bought": [check]}, {"bought": [], "cause": 3}],
    }
    for words, answers in slips.items():
        for answer in answers:
            verdict = check(ID, answer)
            assert verdict.kind == "type" and words in verdict.message, (answer, verdict)
    assert check(ID, ...).kind == check(ID, {"bought": []}).kind == "unanswered"
    with pytest.raises(UnknownQuestion, match=r"incident\.training and incident\.serving"):
        question("incident.trainig")


def test_in_self_study_check_judges_at_once():
    for id in ("incident.training", "incident.serving", "incident.serving_2"):
        variant = question(id).variant()
        assert check(id, solved(variant)).correct
        other = next(c.id for c in variant.setting.causes if c is not variant.case.cause)
        assert not check(id, solved(variant) | {"cause": other}).correct
    assert question("incident.serving_2").variant().sheet != question(id[:-2]).variant().sheet


def test_the_grader_gives_the_points_of_the_room(path):
    assignment = Assignment.of(path, {ID: 10})
    truth = posed(ID, "ada", SECRET)
    best, setting = solved(truth), truth.setting
    other = next(c.id for c in setting.causes if c is not truth.case.cause)
    everything = [m.id for m in setting.measurements]
    cases = {
        "right": best,
        "spendthrift": best | {"bought": everything},
        "guessed": best | {"bought": []},
        "another fix": best | {"fix": number(truth, other)},
        "no fix": best | {"fix": ...},
        "wrong": best | {"cause": other},
        "bought only": {"bought": best["bought"], "cause": ..., "fix": ...},
        # hostile: nothing of it is an answer, and none of it is told again
        "lies about itself": 'type("D", (dict,), {"__eq__": lambda *_: True})(bought=[])',
        "every cause": {"bought": [], "cause": [c.id for c in setting.causes], "fix": 1},
        "markup": {"bought": ["<img src=x onerror=alert(1)>"], "cause": "numa", "fix": 1},
        "endless": "dict(bought=['profile'] * 10**6, cause='numa', fix=1)",
        "nested": "dict(bought=[[[[['profile']]]]], cause={}, fix=float('nan'))",
    }
    found = {
        name: grade(handed_in(path, "ada", answer), assignment, "ada", SECRET)
        for name, answer in cases.items()
    }
    points = {name: graded.points for name, graded in found.items()}
    assert points["right"] == 10 and found["right"].scores[0].kind == "right"
    room = score(truth.case, everything, best["cause"], best["cause"])
    assert points["spendthrift"] == pytest.approx(room.points / 10)
    assert 7 <= points["spendthrift"] < 10
    assert 0 < points["guessed"] <= 2.5 and (points["another fix"], points["no fix"]) == (8, 8)
    worthless = set(cases) - {"right", "spendthrift", "guessed", "another fix", "no fix"}
    assert not any(points[name] for name in worthless), points
    for name, graded in found.items():
        (one,) = graded.scores
        assert "img" not in one.message, name
        if name in worthless:
            cause = truth.case.cause
            assert cause.name not in one.message and cause.fix not in one.message, name
    half = Assignment.of(path, {ID: 4})
    assert repriced(found["another fix"], half).points == pytest.approx(3.2)
    again = repriced(repriced(found["no fix"], Assignment.of(path, {ID: 0})), half)
    assert again.points == pytest.approx(3.2), "a share outlives a question without points"


def test_the_student_cannot_reach_the_truth_from_inside(path):
    """The answer is made by code that draws from all that a sandbox has."""
    spy = """\
import sys, importlib
found = []
for name in ("incidents.incident", "practice.incident_question", "practice.questions"):
    try:
        found.append(importlib.import_module(f"lightspeed_course.{name}"))
    except ImportError:
        pass
assert not found, "Breach"
"""
    truth = posed(ID, "ada", SECRET)
    graded = grade(handed_in(path, "ada", solved(truth), spy), Assignment.of(path), "ada", SECRET)
    assert graded.points == 1 and not graded.notes, graded.notes


@pytest.mark.slow
def test_from_release_to_feedback(course, path):
    folder = course.root
    assert main(["class", "release", str(path), "--class", str(folder)]) == 0
    with ClassFolder.find(folder).book() as book:
        for student, seed in ((s.id, s.seed) for s in book.students()):
            truth = posed(ID, seed, book.secret)
            file = folder / "released" / NAME / "v1" / student / f"{NAME}.ipynb"
            given = json.loads(file.read_text("utf-8"))
            answer = solved(truth) if student == "ada" else solved(truth) | {"cause": "numa"}
            if student == "bob" and truth.case.cause.id == "numa":
                answer["cause"] = "padding"
            given["cells"][-1]["source"] = f'answer = {answer!r}\ncheck("{ID}", answer)'
            book.add_submission(student, NAME, json.dumps(given).encode(), 1.0)
        assert not grade_all(book, NAME, workers=1).failed
        assert {r.student.id: r.points for r in book.results(NAME)} == {"ada": 1.0, "bob": 0.0}
        pages = {p.stem: p.read_text() for p in write_feedback(book, NAME, folder / "feedback")}
        for student in ("ada", "bob"):
            truth = posed(ID, book.student(student).seed, book.secret)
            text = Page(pages[student]).check().text
            assert truth.sheet.brief.split("Why?")[0].split("**")[2].strip()[:60] in text
        assert "The cause is another one." in Page(pages["bob"]).text
        told = Page(pages["bob"]).sections["q1"].partition("Diagnosis")[2]
        assert truth.case.cause.name not in told
        assert statistics(book, NAME)["questions"][0]["right"] == 1
