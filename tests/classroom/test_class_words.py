"""What a class's verbs say: of points by hand, of a changed maximum, of what is missing."""

import json
import re
import time
from pathlib import Path

import pytest
from scored import OUT_OF, graded, right, wrong
from test_class_cli import ROSTER, AtOnce

from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading import batch
from lightspeed_class.lateness import late
from lightspeed_cli import main
from lightspeed_cli.argument_types import when

pytestmark = pytest.mark.slow

NAME = "02_roofline"
OUTDATED = f"class.toml gives other points than the release; run lightspeed class release {NAME}"
TRIPLED = f'[points.{NAME}]\n"roofline.budget_batch" = 3\n'


@pytest.fixture
def say(capsys):
    """Run a verb that works: what it printed."""

    def say(*words, status=0):
        assert main(["class", *map(str, words)]) == status
        out = capsys.readouterr()
        return out.err if status else out.out

    return say


@pytest.fixture
def folder(tmp_path, say, monkeypatch):
    monkeypatch.chdir(tmp_path)
    say("new", "ML Systeme")
    monkeypatch.chdir(tmp_path / "ML Systeme")
    Path("roster.csv").write_text(ROSTER)
    say("roster")
    return tmp_path / "ML Systeme"


@pytest.fixture
def released(folder, say):
    say("release", "2")
    with Gradebook("gradebook.sqlite") as book:
        yield book


def hand_in(book, student, content=b"1"):
    return book.add_submission(student, NAME, content, 1.0, f"{student}.ipynb")


@pytest.fixture
def grader(monkeypatch):
    """A grader that runs nothing: ada misses one, bob all; `.verdict` may be changed."""

    class Grader:
        stop_after, version = None, "first"

        def judge(self, content, assignment, *_):
            if self.stop_after == 0:
                raise KeyboardInterrupt
            self.stop_after = self.stop_after and self.stop_after - 1
            if content == b"broken":
                return batch.refused("It is broken.", assignment)
            all_right = content == b"right"
            answers = {
                q: right(q) if all_right and q != "roofline.budget_batch" else ...
                for q in assignment.points
            }
            if self.version == "second" and all_right:
                answers["roofline.ridge"] = wrong("roofline.ridge")
            return graded(answers, points=assignment.points)

    grader = Grader()
    monkeypatch.setattr(batch, "_pool", AtOnce)
    monkeypatch.setattr(batch, "ready", lambda _: "nothing")
    monkeypatch.setattr(batch, "job", lambda *arguments: grader.judge(*arguments))
    monkeypatch.setattr(batch, "grader", lambda: grader.version)
    monkeypatch.setattr(batch, "AHEAD", 1)
    return grader


def test_points_and_comment_stay_until_they_are_named(released, say):
    assert f'nothing by hand -> 2 points, "Gut"\nada: no points yet -> 2 of {OUT_OF}' in say(
        "points", "2", "ada", "--points", 2, "--comment", "Gut"
    )
    assert f'2 points, "Gut" -> 2 points, "Sehr gut"\nada: 2 of {OUT_OF} -> 2 of {OUT_OF}' in say(
        "points", "2", "ada", "--comment", "Sehr gut"
    )
    assert '2 points, "Sehr gut" -> 0 points, "Sehr gut"' in say(
        "points", "2", "ada", "--points", 0
    )
    assert "nothing by hand -> 1 point\n" in say(
        "points", "2", "ada", "roofline.ridge", "--points", 1
    )
    assert f'0 points, "Sehr gut" -> nothing by hand\nada: 1 of {OUT_OF} -> 1 of {OUT_OF}' in say(
        "points", "2", "ada", "--remove"
    )
    assert "by hand" not in say("feedback", "2")
    assert "ada" in say("points", "2", "ada", "roofline.ridge", "--remove")
    ada, *_ = released.results(NAME)
    assert ada.manual == {} and ada.points is None and len(released.manual(NAME)) == 6


def test_more_than_there_is_is_told(released, say):
    assert (
        f"{OUT_OF} of {OUT_OF}\n" in (out := say("points", "2", "ada", "--points", OUT_OF))
        and "more than" not in out
    )
    assert f"99 of {OUT_OF}\n  That is above the maximum; --remove takes it back." in say(
        "points", "2", "ada", "--points", 99
    )
    assert "below zero" in say("points", "2", "ada", "--points", "-1")


def test_points_of_class_toml_that_are_not_released_yet(released, say, grader):
    hand_in(released, "ada", b"right")
    assert OUTDATED not in say("grade", "2") + say("status") + say("regrade", "2")
    Path("class.toml").write_text(TRIPLED)
    for verb in (["grade", "2"], ["regrade", "2"], ["status"]):
        assert OUTDATED in say(*verb)
    out = say("release", "2")
    assert f"points: {OUT_OF} -> {OUT_OF + 2} (roofline.budget_batch 1 -> 3)" in out
    assert f"lightspeed class regrade {NAME}" in out
    assert "0 notebooks made now" in out
    assert OUTDATED not in say("status")
    out = say("regrade", "2")
    assert (
        "1 graded again: nobody's answers are judged otherwise.\n  roofline.budget_batch: out of 1"
        " -> 3\n" in out
    )
    assert "->" not in out.rpartition("-> 3")[2]
    assert "Nothing had to be graded again: all scores are up to date." in say("regrade", "2")


@pytest.mark.parametrize(
    "verb", ["status", "grade 2", "points 2 ada --points 1", "export", "release 2"]
)
def test_a_slip_in_class_toml_is_told_by_every_verb(released, say, verb):
    Path("class.toml").write_text(TRIPLED.replace("roofline]", "rooflin]"))
    assert "did you mean 02_roofline?" in say(*verb.split(), status=2)
    Path("class.toml").write_text(TRIPLED.replace("budget_batch", "budget_bach"))
    assert "did you mean roofline.budget_batch?" in say(*verb.split(), status=2)


def test_a_regrade_that_was_stopped_is_told_whole(released, say, grader):
    for student in ("ada", "bob", "cy"):
        hand_in(released, student, b"right")
    say("grade", "2", "--workers", 1)
    grader.version, grader.stop_after = "second", 2
    assert main(["class", "regrade", "2", "--workers", "1"]) == 130
    assert sorted(len(released.gradings(s.id)) for s in released.submissions()) == [1, 2, 2]
    grader.stop_after = None
    out = say("regrade", "2", "--workers", 1)
    assert f"{NAME}: 1 graded" in out and "3 graded again: 3 students change." in out
    assert re.findall(r"^  (\w+) roofline.ridge: 1 \(right\) -> 0 \(\w", out, re.M) == [
        "ada",
        "bob",
        "cy",
    ]
    assert "Nothing had to be graded again" in say("regrade", "2", "--workers", 1)


def test_how_many_could_not_be_read(released, say, grader):
    for student, content in (("ada", b"right"), ("bob", b"broken")):
        hand_in(released, student, content)
    out = say("grade", "2")
    assert "2 graded in" in out
    assert "of which 1 could not be read." in out
    assert "nothing from cy (Cy Twombly)" in out
    out = say("status", "2")
    assert "could not be read: bob (Bob Ross)" in out
    assert re.search(rf"^  ada  Ada Lovelace  {OUT_OF - 1} of {OUT_OF} ", out, re.M)


def test_feedback_before_grading(released, say, grader):
    assert "3 pages" in (out := say("feedback", "2")) and "nothing was handed in yet" in out
    hand_in(released, "ada", b"right")
    assert (
        "none of what was handed in is graded yet, as the pages say: lightspeed class grade"
        f" {NAME}" in say("feedback", "2")
    )
    say("grade", "2")
    assert "graded yet" not in say("feedback", "2")
    hand_in(released, "bob")
    assert "1 of 2 are not graded yet" in say("feedback", "2")


def test_small_words(folder, say, tmp_path, monkeypatch):
    assert "nothing to export" in say("export", status=2) and not (folder / "exports").exists()
    assert "All students get" not in say("release", "02_roofline.ipynb")
    assert say("choose", "2", "ada") == "ada handed in nothing for 02_roofline.\n"
    (folder / "class.toml").write_text("variants = false")
    assert (
        "one notebook for all, 3 of whom did not have it" in (out := say("release", "2"))
        and "v2/02_roofline.ipynb" in out
    )
    monkeypatch.chdir(tmp_path)
    assert "Next: cd 'ML 2026'; " in say("new", "ML 2026")
    assert "make one: lightspeed class new DIR" in say("status", status=2)


def test_a_date_is_the_end_of_that_day(folder, say):
    out = say("release", "2", "--due", "2124-12-24")
    assert "Due Sunday 2124-12-24 23:59 (" in out and "in the past" not in out
    with Gradebook("gradebook.sqlite") as book:
        due = float(book.setting(f"due {NAME}"))
    moment = time.mktime((2124, 12, 24, 23, 59, 30, 0, 0, -1))
    assert not late("", moment, due)
    assert late("", moment + 60, due)
    assert when("2124-12-24T12:00") < due
    assert "That is in the past: whatever is handed in now is late." in say(
        "release", "2", "--due", "2026-01-02"
    )


def test_one_notebook_for_all_comes_back_whose_it_is(folder, say, grader):
    (folder / "class.toml").write_text("variants = false")
    say("release", "2")
    content = json.loads((folder / f"released/{NAME}/v1/{NAME}.ipynb").read_text())
    Path("in").mkdir()
    for student in ("ada", "bob"):
        Path(f"in/{student}.ipynb").write_text(
            json.dumps({**content, "metadata": {**content["metadata"], "by": student}})
        )
    assert "2 new." in say("collect", "2", "in")
    with Gradebook("gradebook.sqlite") as book:
        assert [s.student for s in book.submissions(NAME)] == ["ada", "bob"]
