"""The sample class holds every known mistake, as platforms give it, graded as planned."""

import csv
import json
import math
import re
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
from scored import OUT_OF, Page

from lightspeed.units import Q
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading.batch import grade_all
from lightspeed_class.grading.sandbox import Limits
from lightspeed_class.notebooks import Assignment, Refused, code_cells
from lightspeed_class.reports.class_report import opening, statistics
from lightspeed_class.reports.class_report_page import write_report
from lightspeed_class.reports.export import export_csv
from lightspeed_class.reports.feedback import write_feedback
from lightspeed_class.sample_class import (
    COLUMNS,
    DUE,
    HOSTILE,
    STORIES,
    make_roster,
    make_sample,
    roster,
)
from lightspeed_course.practice.check import diagnose
from lightspeed_course.practice.questions import question

pytestmark = pytest.mark.slow

EXERCISES = sorted((Path(__file__).parents[2] / "exercises").glob("[0-9]*.ipynb"))
ROOFLINE = next(path for path in EXERCISES if path.stem == "02_roofline")
LOOSE = ("slip", "magnitude")  # what a factor leads to may be a misconception in somebody's variant


def seeds(id):
    return f"seed of {id}"


def same(score, planned):
    kind, name = planned
    return (score.kind == kind and name in score.name) or (
        kind in LOOSE and score.kind in (*LOOSE, "misconception", "partial", "close")
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    return folder, make_sample(folder, ROOFLINE, seeds=seeds)


def test_the_same_call_writes_the_same_bytes(made, tmp_path):
    folder, people = made
    again = make_sample(tmp_path, ROOFLINE, seeds=seeds)
    files = sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert len(files) == 34
    assert all(
        (folder / f).read_bytes() == (tmp_path / f).read_bytes()
        and (folder / f).stat().st_mtime == (tmp_path / f).stat().st_mtime
        for f in files
        if f.parts[0] == "plain"
    )
    assert all((folder / f).read_bytes() == (tmp_path / f).read_bytes() for f in files)
    assert again == people


def test_the_roster(tmp_path):
    make_roster(str(tmp_path / "roster.csv"), 800)
    with open(tmp_path / "roster.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == roster(800) and list(rows[0]) == list(COLUMNS)
    for column in ("id", "name", "email", "canvas_id", "sis_user_id", "sis_login_id"):
        assert len({row[column] for row in rows}) == 800
    assert all(row["email"].endswith("@example.org") for row in rows)
    assert sum(not row["name"].isascii() for row in rows) > 400


def test_everybody_has_a_story(made):
    _, people = made
    assert len(people) == 30 and {p.story for p in people} == {*STORIES, "mistakes"}
    by_story = {p.story: p for p in people}
    assert by_story["missing"].files == []
    assert len(by_story["twice"].files) == 2
    assert by_story["twice"].files[0][0] < by_story["twice"].files[1][0] < DUE
    assert all((at > DUE) == (p.story == "late") for p in people for at, _ in p.files)
    kinds = {kind for p in people for kind, _ in p.kinds.values()}
    assert kinds == {
        "right",
        "misconception",
        "unanswered",
        "refused",
        "slip",
        "magnitude",
        "dimension",
    }
    with pytest.raises(Refused, match="not valid JSON"):
        code_cells(by_story["torn"].files[0][1])
    assert any(
        HOSTILE.split()[-1] in source for _, source in code_cells(by_story["hostile"].files[0][1])
    )
    assert [id for id, _ in code_cells(by_story["unlucky"].files[0][1])] == [None] * len(
        code_cells(by_story["unlucky"].files[0][1])
    )


@pytest.mark.parametrize("path", EXERCISES, ids=lambda p: p.stem)
@pytest.mark.holds("docs/teach.md", "wrong ones of every kind")
def test_every_misconception_is_somebodys_answer(path, tmp_path):
    """For every assignment; and what was dealt is what `diagnose` says of the notebook."""
    people = make_sample(tmp_path, path, students=30, seeds=seeds)
    assignment = Assignment.of(path)
    dealt = {
        (q, name) for p in people for q, (kind, name) in p.kinds.items() if kind == "misconception"
    }
    known = {
        (q, m.name)
        for q in assignment.points
        if not q.startswith("puzzle.")  # kernels are left to people
        for m in question(q).misconceptions
    }
    nowhere = {
        (q, name)
        for q, name in known - dealt
        if not any(leads_somewhere(question(q).variant(seeds(p.id)), name) for p in people)
    }
    assert dealt == known - nowhere and len(nowhere) < 3
    wrong = []
    for person in people:
        if person.story not in ("mistakes", "right", "rounded", "late"):
            continue
        found = run(person.files[-1][1], assignment)
        for q, planned in person.kinds.items():
            verdict = diagnose(question(q).variant(seeds(person.id)), found[q])
            expected = question(q).variant(seeds(person.id))
            if not same(verdict, planned) and not coincides(expected, planned[1]):
                wrong.append((person.id, q, planned, verdict.kind, verdict.name))
    assert wrong == []


def leads_somewhere(variant, name):
    """Some misconceptions have answers for some numbers only; a small class may lack them."""
    return variant.question.kind != "number" or all(
        math.isfinite(v)
        for m in variant.question.misconceptions
        if m.name == name
        for v in variant.wrong(m)
    )


def coincides(variant, name):
    """An option may be a misconception in one variant and right in another."""
    return variant.question.kind == "choice" and any(
        m.name == name and variant.wrong(m) == variant.right
        for m in variant.question.misconceptions
    )


def run(content, assignment):
    """The answers in a notebook of ours, no stranger's: cell by cell, without checks."""
    answers, world = {}, {"math": math, "Q": Q}
    for id, source in code_cells(content):
        for q, variable in assignment.cells.get(id, ()):
            exec(re.sub(r"^check\(.*", "", source, flags=re.MULTILINE), world)
            answers[q] = world[variable]
    return answers


def test_canvas_form(made):
    """<family, given>[_LATE]_<user>_<file>_<title>: Canvas' lib/content_zipper.rb."""
    folder, people = made
    numbers = {row["canvas_id"]: row for row in roster()}
    with zipfile.ZipFile(folder / "canvas.zip") as archive:
        names = archive.namelist()
        found = [
            re.fullmatch(r"([^\W_]+)(_LATE)?_(\d+)_(\d+)_02_roofline(-1)?\.ipynb", name)
            for name in names
        ]
        assert all(found) and len(names) == 30 and len({m[4] for m in found}) == 30
        assert all(m[1] == m[1].lower() for m in found)
        assert sum(bool(m[2]) for m in found) == sum(bool(m[5]) for m in found) == 1
        assert {m[3] for m in found} == numbers.keys() - {numbers_of(people, "missing")}
        files = {p.id: p.files for p in people}
        assert all(archive.read(m[0]) == files[numbers[m[3]]["id"]][bool(m[5])][1] for m in found)


def numbers_of(people, story):
    (person,) = (p for p in people if p.story == story)
    return next(row["canvas_id"] for row in roster() if row["id"] == person.id)


def test_moodle_form(made):
    """<name>_<participant>_assignsubmission_file/<title>: Moodle's downloader.php."""
    folder, people = made
    with open(folder / "moodle.csv", encoding="utf-8", newline="") as file:
        sheet = {
            row["Identifier"].removeprefix("Participant "): row for row in csv.DictReader(file)
        }
    assert len(sheet) == 30
    by_name = {p.name: p for p in people}
    with zipfile.ZipFile(folder / "moodle.zip") as archive:
        for name in archive.namelist():
            who, number, turn = re.fullmatch(
                r"([^_/]+)_(\d+)_assignsubmission_file/02_roofline( \(1\))?\.ipynb", name
            ).groups()
            assert sheet[number]["Full name"] == who
            assert archive.read(name) == by_name[who].files[bool(turn)][1]
        assert len(archive.namelist()) == 30
    for row in sheet.values():
        person = by_name[row["Full name"]]
        when = row["Last modified (submission)"]
        assert (
            when == "-"
            if not person.files
            else datetime.strptime(when + " +0000", "%A, %d %B %Y, %I:%M %p %z").timestamp()
            == person.files[-1][0]
        )


def test_plain_form(made):
    folder, people = made
    found = {
        p.id: sorted(
            (f.stat().st_mtime, f.read_bytes())
            for f in (folder / "plain" / p.id).glob("02_roofline*.ipynb")
        )
        for p in people
    }
    assert found == {p.id: p.files for p in people}


@pytest.fixture(scope="module")
def book(made, tmp_path_factory):
    """The sample, graded in the real sandbox; the endless loop costs less than by default."""
    _, people = made
    with Gradebook(tmp_path_factory.mktemp("book") / "book") as book:
        book.add_assignment(Assignment.of(ROOFLINE))
        book.setting("due 02_roofline", repr(DUE))
        for person, row in zip(people, roster(), strict=True):
            book.add_student(
                row["id"],
                row["name"],
                seed=seeds(row["id"]),
                **{k: v for k, v in row.items() if k not in ("id", "name")},
            )
            for at, content in person.files:
                book.add_submission(
                    person.id,
                    "02_roofline",
                    content,
                    at,
                    source=f"plain: {person.id}/02_roofline.ipynb",
                )
        tally = grade_all(book, "02_roofline", limits=Limits(cell=15))
        assert tally.graded == 30 and not tally.failed
        yield book


def test_it_is_graded_as_planned(made, book):
    _, people = made
    ends = {"hostile": "exit", "torn": "refused"}
    for person, result in zip(people, book.results("02_roofline"), strict=True):
        assert person.id == result.student.id
        if person.story == "missing":
            assert result.points is None
            continue
        graded = result.grading.graded
        assert graded.status == ends.get(person.story, "ok")
        assert [
            (q, s.kind, s.name) for q, s in result.scores.items() if not same(s, person.kinds[q])
        ] == [], person
        if person.story in ("right", "rounded", "unlucky"):
            assert (result.points, graded.notes) == (OUT_OF, ()), person.story
        stopped = {"crashed": "NameError", "endless": "OutOfTime"}.get(person.story)
        assert bool(graded.notes) == (person.story in ("crashed", "endless", "hostile", "torn"))
        assert not stopped or stopped in graded.notes[0]


def test_all_that_is_made_of_it(book, tmp_path):
    pages = write_feedback(book, "02_roofline", tmp_path / "feedback")
    assert len(pages) == 30 and all(Page(p.read_text("utf-8")).check() for p in pages)
    data = statistics(book, "02_roofline")
    assert (
        data["students"],
        data["graded"],
        data["read"],
        len(data["missing"]),
        len(data["late"]),
    ) == (30, 29, 28, 1, 1)
    assert len(opening(data)) == 3 and data["unexplained"] and len(data["mistakes"]) > 60
    Page(write_report(book, "02_roofline", tmp_path / "report.html").read_text("utf-8")).check()
    for kind in ("plain", "canvas", "moodle"):
        text = export_csv(book, ["02_roofline"], tmp_path / f"{kind}.csv", kind).read_text(
            "utf-8-sig"
        )
        assert len(text.splitlines()) == 31 + (kind == "canvas") and json.dumps(text)
