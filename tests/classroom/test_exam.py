"""What asks for understanding where the library answers all: papers for the room, an oral check."""

import functools
import itertools
import re

import pytest
from scored import Page, graded, right
from test_collect import notebook

from lightspeed_class.class_folder import ClassError, exercises
from lightspeed_class.exam import ON_PAPER, papers, write_exam
from lightspeed_class.handout.release import release
from lightspeed_class.intake.origins import Origins
from lightspeed_class.notebooks import Assignment
from lightspeed_class.oral import follow_ups
from lightspeed_class.roster import new_seed
from lightspeed_course.practice.questions import question

NAME = "02_roofline"
ASSIGNMENTS = [Assignment.of(path) for path in exercises()]


@functools.cache
def different(q):
    """How many right answers a question draws, of a few."""
    return len({str(q.variant(f"x{n}").right) for n in range(12)})


def test_papers_of_every_chapter_have_numbers_of_their_own_and_a_key_that_is_right(tmp_path):
    for assignment in ASSIGNMENTS:
        if not any(question(q).kind in ON_PAPER for q in assignment.judged):
            continue
        made, fixed = papers(assignment, 12, 8, "k1")
        again, _ = papers(assignment, 12, 8, "k1")
        assert [[t.right for t in p] for p in made] == [[t.right for t in p] for p in again]
        ids = [t.variant.question.id for t in made[0]]
        fit = {q for q in assignment.judged if question(q).kind in ON_PAPER} - {*fixed}
        assert len(ids) == min(8, len(fit)) and {*ids} <= fit
        assert all(
            len({t.right for p in papers(assignment, 4, 1, "k", [q])[0] for t in p}) == 1
            for q in fixed
            if question(q).kind != "choice"
        )
        assert all(different(question(q)) > 1 for q in ids)
        for here, beside in itertools.pairwise(made):
            assert [t.variant.question.id for t in beside] == ids
            for one, other in zip(here, beside, strict=True):
                q = one.variant.question
                if q.kind != "choice" and different(q) > 2:
                    assert list(one.variant.right) != list(other.variant.right), q.id
        for task in (t for p in made for t in p):
            q, v = task.variant.question, task.variant
            if q.kind == "choice":
                [text] = [text for letter, text in task.options if letter == task.right]
                assert text == v.options[v.right] and len(task.options) == len(v.options)
            assert all(answer != task.right for answer, _ in task.slips), q.id
        folder = tmp_path / assignment.name
        text = write_exam(folder, assignment.name, made, "k1").read_text("utf-8")
        key = Page((folder / "key.html").read_text("utf-8")).check().text
        alike = [
            a.right
            for p in itertools.pairwise(made)
            for b, a in zip(*p, strict=True)
            if a.right == b.right
        ]
        assert all(f"{answer} =" in key for answer in alike) and key.count(" =") >= len(alike)
        shown = Page(text).check().text
        assert len(list(folder.glob("paper-*.html"))) == 12 and shown.count("Name: ___") == 12
        for task in made[0]:
            if task.variant.question.kind != "choice":
                assert task.variant.solution not in shown


def test_a_question_that_cannot_be_put_on_paper_says_which_can():
    (assignment,) = [a for a in ASSIGNMENTS if a.name == NAME]
    with pytest.raises(
        ClassError, match=r"roofline\.attainable is not a paper question .* these can: roofl"
    ):
        papers(assignment, 2, 8, "k", ["roofline.attainable"])
    made, _ = papers(assignment, 2, 8, "k", ["roofline.ridge"])
    assert [[t.variant.question.id for t in p] for p in made] == [["roofline.ridge"]] * 2


def test_follow_ups_are_of_what_was_handed_in_and_their_keys_are_right(course, say, monkeypatch):
    ids = [
        "roofline.ridge",
        "roofline.int8_bytes",
        "roofline.what_shortens_it",
        "roofline.budget_batch",
    ]
    with course.book() as book:
        for student in ("ada", "bob", "cy"):
            book.add_student(student, student.title(), seed=new_seed())
        release(course, book, NAME)
        for student, answers in (
            ("ada", {id: right(id, book.student("ada").seed) for id in ids}),
            ("bob", {ids[0]: right(ids[0], book.student("bob").seed), ids[1]: ...}),
            ("cy", dict.fromkeys(ids, ...)),
        ):
            id = book.add_submission(student, NAME, notebook(student), 1.0)
            book.add_grading(id, "k", graded(answers, book.student(student).seed))
        origins = Origins(book, NAME)
        found = {r.student.id: follow_ups(book, NAME, r, origins) for r in book.results(NAME)}
        assert [len(found[s]) for s in ("ada", "bob", "cy")] == [3, 1, 0]
        assert found["ada"] == follow_ups(book, NAME, book.results(NAME, "ada")[0], origins)
        asked = " ".join(f["ask"] for f in found["ada"])
        assert "Let it be twice" in asked and "A fellow student" in asked
        (double,) = [f for f in found["ada"] if "Let it be twice" in f["ask"]]
        factor = float(re.search(r"a factor of ([\d.e+-]+)\.", double["key"])[1])
        assert factor > 0
    monkeypatch.chdir(course.root)
    status, out = say("oral", NAME)
    assert status == 0 and "4 follow-ups for 3 students" in out
    page = Page((course.root / f"oral/{NAME}.html").read_text("utf-8")).check()
    assert "Nothing of theirs can be asked about" in page.text
    status, out = say("exam", NAME, "--seed", "k7")  # as many as there are students
    assert status == 0 and "3 papers of 8 questions" in out
    assert "the answer is the same on all papers" in out and "roofline.budget_precision" in out
    assert (course.root / f"exams/{NAME}-k7/key.html").is_file()
