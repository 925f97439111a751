"""What changes while a class is under way: numbers, points, roster. Nobody loses by it."""

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from scored import OUT_OF, Page, assignment_of, graded, right
from test_class_cli import ROSTER, AtOnce, answered

from lightspeed_class.class_folder import ClassError, ClassFolder
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading import batch
from lightspeed_class.reports.class_report import opening, statistics
from lightspeed_class.reports.export import Outdated, export_csv
from lightspeed_class.reports.feedback import write_feedback
from lightspeed_class.roster import add_roster

pytestmark = pytest.mark.slow

NAME = "02_roofline"


@pytest.fixture
def say(capsys):
    from lightspeed_cli import main

    def run(*words, status=0):
        assert main(["class", *map(str, words)]) == status, capsys.readouterr()
        out = capsys.readouterr()
        return out.out + out.err

    return run


@pytest.fixture
def folder(tmp_path, say, monkeypatch):
    say("new", tmp_path / "class")
    monkeypatch.chdir(tmp_path / "class")
    Path("roster.csv").write_text(ROSTER)
    say("roster")
    return tmp_path / "class"


def variants(folder, on):
    path = folder / "class.toml"
    path.write_text(re.sub("variants = \\w+", f"variants = {str(on).lower()}", path.read_text()))


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(batch, "_pool", AtOnce)


@pytest.mark.parametrize("first", [True, False])
def test_everybody_is_graded_by_the_numbers_that_they_were_given(folder, say, at_once, first):
    """ada answers the first version, bob the second, cy with a seed of either."""
    seen = {}
    for version, own in ((1, first), (2, not first)):
        variants(folder, own)
        say("release", "2")
        for student in ("ada", "bob"):
            seen[student, own] = (
                folder / f"released/{NAME}/v{version}" / (student if own else "") / f"{NAME}.ipynb"
            )
    with Gradebook("gradebook.sqlite") as book:
        seeds = {s.id: s.seed for s in book.students()}
    given = {"ada": first, "bob": not first}
    Path("in").mkdir()
    for student, own in given.items():
        Path(f"in/{student}.ipynb").write_bytes(
            answered(seen[student, own].read_bytes(), seeds[student] if own else None)
        )
    theirs = next(student for student, own in given.items() if own)
    Path("in/cy.ipynb").write_bytes(
        answered(seen[theirs, True].read_bytes(), seeds[theirs]).replace(b"\n", b"\n\n", 1)
    )
    out = say("collect", "2", "in")
    assert "3 new" in out
    assert f"It was made for {theirs}, but cy handed it in." in out
    assert out.count("not the notebook") == 0
    say("grade", "2")
    with Gradebook("gradebook.sqlite") as book:
        results = {r.student.id: r for r in book.results(NAME)}
        assert results["ada"].points == results["bob"].points == OUT_OF - 1
        assert results["cy"].points < 15
        assert {s: r.grading.graded.record["seed"] for s, r in results.items()} == {
            s: seeds[s] if given.get(s, True) else None for s in seeds
        }
        assert all(batch.replay(book, r.grading.id)[0] for r in results.values())
    say("feedback", "2")
    for student in given:
        assert "not the notebook that was released" not in Path(
            f"feedback/{NAME}/{student}.html"
        ).read_text("utf-8")


def test_what_was_graded_before_the_second_kind_came_is_graded_again(folder, say, at_once):
    variants(folder, True)
    say("release", "2")
    with Gradebook("gradebook.sqlite") as book:
        notebook = json.loads((folder / f"released/{NAME}/v1/ada/{NAME}.ipynb").read_text())
        # as the one for all will be
        notebook["cells"] = [c for c in notebook["cells"] if "LIGHTSPEED_SEED" not in c["source"]]
        book.add_submission("ada", NAME, answered(json.dumps(notebook), None), 1.0, "ada.ipynb")
        say("grade", "2")
        assert book.results(NAME)[0].points < 15
        variants(folder, False)
        say("release", "2")
        assert "1 graded again: 1 student changes." in say("regrade", "2")
        assert book.results(NAME)[0].points == OUT_OF - 1


# Points that changed


RIDGE, WORD = "roofline.ridge", "roofline.what_shortens_it"
ONE = assignment_of(RIDGE, WORD)
TRIPLED = replace(ONE, points={RIDGE: 3})


@pytest.fixture
def book(tmp_path):
    """ada has all right, and her points have changed since; bob was graded after that."""
    with Gradebook(tmp_path / "book") as book:
        for id in ("ada", "bob"):
            book.add_student(id, id.title(), seed="1", canvas_id=id)
        for id, assignment in (("ada", ONE), ("bob", TRIPLED)):
            book.add_assignment(assignment)
            key = book.add_submission(id, NAME, id.encode(), 1.0)
            book.add_grading(
                key,
                id,
                graded(
                    {RIDGE: right(RIDGE, "1"), WORD: right(WORD, "1")},
                    "1",
                    points=assignment.points,
                ),
            )
        yield book


def test_points_of_earlier_settings_are_never_mixed_with_a_maximum_of_now(book, tmp_path):
    assert [(r.points, r.out_of, r.outdated) for r in book.results(NAME)] == [
        (2, 2, True),
        (4, 4, False),
    ]
    for kind in ("canvas", "moodle"):
        with pytest.raises(
            Outdated,
            match=f"1 graded under other points than it has now: lightspeed class regrade {NAME}",
        ):
            export_csv(book, [NAME], tmp_path / "x.csv", kind)
    with open(
        export_csv(book, [NAME], tmp_path / "x.csv"), encoding="utf-8-sig", newline=""
    ) as file:
        assert [(r["points"], r["out of"]) for r in csv.DictReader(file)] == [
            ("2", "2"),
            ("4", "4"),
        ]
    data = statistics(book, NAME)
    assert [q["share"] for q in data["questions"]] == [1, 1]
    assert opening(data)[0].startswith("1 of 2 graded under other points")
    text = Page(write_feedback(book, NAME, tmp_path / "pages", "ada")[0].read_text("utf-8")).check()
    assert "2 of 2 points. 2 of 2 questions are right." in text.text
    assert "1 of 1 point" in text.sections["q1"]
    book.set_manual("ada", NAME, RIDGE, 3)
    assert [(r.points, r.out_of) for r in book.results(NAME)] == [(4, 4), (4, 4)]
    text = Page(write_feedback(book, NAME, tmp_path / "pages", "ada")[0].read_text("utf-8")).check()
    assert "3 of 3 points" in text.sections["q1"]
    assert "Automatic1 of 1 point." in text.sections["q1"]


def test_a_regrade_that_is_due_is_told_by_every_verb(folder, say, at_once, monkeypatch):
    say("release", "2")
    with Gradebook("gradebook.sqlite") as book:
        seed = book.student("ada").seed
        for student in ("ada", "bob"):
            content = answered(
                (folder / f"released/{NAME}/v1/{student}/{NAME}.ipynb").read_bytes(),
                book.student(student).seed,
            )
            book.add_submission(student, NAME, content, 1.0, f"{student}.ipynb")
    assert seed
    assert "graded under other points" not in say("grade", "2") + say("status") + say(
        "feedback", "2"
    ) + say("report", "2") + say("export")
    with open("class.toml", "a") as file:
        file.write(f'[points.{NAME}]\n"roofline.ridge" = 5\n')
    say("release", "2")
    warning = f"2 graded under other points than it has now: lightspeed class regrade {NAME}"
    for verb in (
        ["status"],
        ["feedback", "2"],
        ["report", "2"],
        ["export", "2", "--into", "x.csv"],
    ):
        assert warning in say(*verb)
    assert warning in say("export", "2", "--format", "canvas", status=2)
    id = re.search(r"^  ada .*grading (\d+)", say("status", "2"), re.M)[1]
    out = say("replay", id)
    assert f"the same result, {OUT_OF - 1} points then, {OUT_OF - 1} now" in out
    assert "The points in class.toml have changed since" in out
    honest = batch.repriced  # nothing runs again for other points
    done = []

    def killed(*arguments):
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return honest(*arguments)

    monkeypatch.setattr(batch, "repriced", killed)
    say("regrade", "2", "--workers", 2, status=130)
    out = say("status", "2")
    assert warning.replace("2", "1", 1) in out and "a regrade has not come to its end" in out
    reached = f"{OUT_OF + 3} of {OUT_OF + 4}"
    assert f"{OUT_OF - 1} of {OUT_OF}" in out and reached in out
    monkeypatch.setattr(batch, "repriced", honest)
    assert "2 graded again: 2 students change." in say("regrade", "2")
    assert (
        "graded under" not in (out := say("status", "2"))
        and "come to its end" not in out
        and out.count(reached) == 2
    )
    assert "have changed since" in say("replay", id)


# Who has left, and what has gone


def test_who_has_left_is_kept_and_not_counted(folder, say, at_once):
    say("release", "2")
    with Gradebook("gradebook.sqlite") as book:
        for student in ("ada", "bob"):
            book.add_submission(
                student,
                NAME,
                (folder / f"released/{NAME}/v1/{student}/{NAME}.ipynb").read_bytes(),
                1.0,
            )
        say("grade", "2")
        Path("left.csv").write_text(
            "id,name,left,canvas_id\nada,Ada Lovelace,,1\nbob,Bob Ross,yes,2\ncy,Cy Twombly,no,3\n"
        )
        say("roster", "left.csv")
        out = say("status", "2")
        assert "2 students (1 more left)" in out
        assert "handed in by 1 of 2 (1 submission, 0 late); graded 1" in out
        assert re.search(rf"^  bob  Bob Ross \(left\) +0 of {OUT_OF} ", out, re.M)
        assert re.search(rf"^  ada  Ada Lovelace +0 of {OUT_OF} ", out, re.M)
        rows = list(
            csv.reader(export_csv(book, [NAME], "x.csv", "canvas").read_text().splitlines())
        )
        assert [r[1] for r in rows[2:]] == ["1", "3"]
        rows = list(
            csv.DictReader(export_csv(book, [NAME], "y.csv").read_text("utf-8-sig").splitlines())
        )
        assert [(r["id"], r["status"]) for r in rows] == [
            ("ada", "ok"),
            ("bob", "ok (left)"),
            ("cy", "missing"),
        ]
        assert (statistics(book, NAME)["students"], statistics(book, NAME)["graded"]) == (2, 1)
        assert "2 pages" in say("feedback", "2")
        assert "1 page" in say("feedback", "2", "--student", "bob")
        assert f"bob: 0 of {OUT_OF} -> 1 of {OUT_OF}" in say("points", "2", "bob", "--points", 1)
        assert "bob had left, and is back" in say("roster", "roster.csv") + say(
            "roster", Path("left.csv").rename("z.csv")
        ) + say("roster", back("z.csv"))
        assert "handed in by 2 of 3" in say("status")


def back(path):
    """A roster in which nobody has left: the cells are blank."""
    Path(path).write_text(Path(path).read_text().replace("yes", "").replace("no,", ","))
    return path


def test_points_for_one_who_left_with_nothing(folder, say):
    say("release", "2")
    Path("left.csv").write_text("id,name,left\nbob,Bob Ross,Y\n")
    say("roster", "left.csv")
    assert f"bob: no points yet -> 1 of {OUT_OF}" in say("points", "2", "bob", "--points", 1)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("yes", True),
        ("Y", True),
        ("true", True),
        ("1", True),
        ("no", False),
        ("N", False),
        ("false", False),
        ("0", False),
        ("", False),
    ],
)
def test_what_left_may_say(tmp_path, said, left):
    with Gradebook(tmp_path / "book") as book:
        book.add_student("ada", "Ada", seed="1", left="" if left else "yes")
        (tmp_path / "r.csv").write_text(f"id,name,left\nada,Ada,{said}\n")
        add_roster(book, tmp_path / "r.csv")
        assert book.student("ada").left == left
        book.add_student("ada", "Ada", left="yes")
        (tmp_path / "r.csv").write_text("id,name\nada,Ada\n")
        add_roster(book, tmp_path / "r.csv")
        assert book.student("ada").left  # a file that has no such column does not say


def test_left_maybe_is_refused(tmp_path):
    with Gradebook(tmp_path / "book") as book:
        (tmp_path / "r.csv").write_text("id,name,left\nada,Ada,\nbob,Bob,maybe\n")
        with pytest.raises(
            ClassError, match="line 3: left is 'maybe' for Bob, which is neither yes nor no"
        ):
            add_roster(book, tmp_path / "r.csv")
        assert book.students() == []


def test_a_gradebook_that_has_gone_is_not_made_anew(folder, say):
    say("release", "2")
    shutil.move("gradebook.sqlite", "backup")
    for verb in (["status"], ["new", folder], ["grade", "2"]):
        out = say(*verb, status=2)
        assert "gradebook.sqlite is missing or empty, but there are files in released/" in out
        assert "Put it back from a backup" in out
        assert out.count("\n") == 1 + (verb[0] == "new") and not Path("gradebook.sqlite").exists()
    Path("gradebook.sqlite").touch()
    with pytest.raises(ClassError, match="missing or empty"):
        ClassFolder.find(folder).book()
    shutil.move("backup", "gradebook.sqlite")
    assert "3 students, 1 assignment" in say("status")
    Path("gradebook.sqlite").unlink()
    shutil.move("released", folder.parent / "away")
    assert "0 students" in say("status")
