"""Who thinks that an answer was misjudged writes so into a notebook; it is read, shown to who marks
and answered, and stands in nothing's way.
"""

import json

import pytest
from scored import assignment_of, graded, right, wrong

from lightspeed_class.intake.collect import collect
from lightspeed_class.marking_desk import cards
from lightspeed_class.regrade_requests import request_notebook, requests_in, waiting
from lightspeed_cli import main

RIDGE, WORD = "roofline.ridge", "roofline.what_shortens_it"
ASSIGNMENT = assignment_of(RIDGE, WORD)
NAME = ASSIGNMENT.name


@pytest.fixture
def book(course):
    with course.book() as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        for student in ("ada", "bob"):
            book.add_student(student, student.title())
            id = book.add_submission(student, NAME, b'{"cells": []}', 1.0)
            book.add_grading(id, "key", graded({RIDGE: right(RIDGE), WORD: wrong(WORD)}))
        yield book


def filled(words, student="ada"):
    """What somebody hands in who wrote this behind the name of the ridge's question."""
    notebook = json.loads(request_notebook(NAME, student, ASSIGNMENT.points))
    (cell,) = notebook["cells"]
    cell["source"] = cell["source"].replace(f"`{RIDGE}`: ", f"`{RIDGE}`: {words}")
    return json.dumps(notebook).encode()


def test_it_is_read_shown_and_answered_once(course, book, tmp_path, capsys):
    main(["class", "feedback", NAME, "--requests", "--class", str(course.root)])
    given = course.root / "feedback" / NAME / "ada.ipynb"
    assert requests_in(given.read_bytes(), ASSIGNMENT) == {}, "who writes nothing asks for nothing"
    given.write_bytes(filled("The unit was *right*.\nSee $b_1$."))
    counting = book.counting(NAME)
    rows = [collect(course, book, NAME, [given]).rows[0] for _ in range(2)]
    assert [row.verdict for row in rows] == ["request"] * 2
    assert RIDGE in rows[0].note and "nothing that is not known" in rows[1].note
    assert book.counting(NAME) == counting, "it is no submission"
    asked = waiting(book, NAME)
    assert asked == {("ada", RIDGE): "The unit was *right*.\nSee $b_1$."}
    places = cards.queue(book.results(NAME), ASSIGNMENT, "question", asked)
    ridge = {p.student: p.state for p in places if p.question == RIDGE}
    assert ridge == {"ada": "to mark", "bob": "right"}
    main(["class", "status", NAME, "--class", str(course.root)])
    assert "asks for another look: ada" in capsys.readouterr().out
    book.set_manual("ada", NAME, RIDGE, None, "It was not.", "eve")
    assert not waiting(book, NAME), "a comment answers it"
    given.write_bytes(filled("But it was."))
    collect(course, book, NAME, [given])
    assert waiting(book, NAME) == {("ada", RIDGE): "But it was."}


@pytest.mark.parametrize("content", [
    b"", b"[]", b'{"metadata": {"lightspeed": {"regrade": 1}}}', b'{"metadata": 3, "cells": []}',
    b'{"metadata": {"lightspeed": {"regrade": true}}, "cells": [3]}', b"[" * 100_000,
])  # fmt: skip
def test_what_is_no_request_is_none(content):
    assert requests_in(content, ASSIGNMENT) is None


def test_only_what_was_asked_can_be_asked_about_and_a_reason_has_an_end():
    cell = {
        "cell_type": "markdown",
        "id": "regrade",
        "source": [f"{WORD}: a", "b" * 9999, "\nx.y: c"],
    }
    about = {"lightspeed": {"regrade": True}}
    found = requests_in(json.dumps({"metadata": about, "cells": [cell]}).encode(), ASSIGNMENT)
    assert list(found) == [WORD] and len(found[WORD]) == 2000
