"""Questions of an instructor's own: released, graded and diagnosed like ours, and in nobody's
installation; and what an instructor shows of answers: the key at the desk, solutions when it is
over.
"""

import json
import os
import re
import sys

import pytest

from lightspeed_class.reports.feedback import open_until, write_feedback
from lightspeed_course.practice import as_released, questions
from lightspeed_course.practice.check import check
from lightspeed_course.practice.questions import question

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "exercises"))
from test_question_files import COPY

pytestmark = pytest.mark.slow

ID = "mine.copy_time"


@pytest.fixture
def say(say, course, tmp_path, monkeypatch):
    """Verbs in a class of two, beside a notebook that asks a question of their teacher's own."""
    monkeypatch.setattr(questions, "_registry", dict(questions._registry))
    monkeypatch.setattr(questions, "_own", {})
    monkeypatch.chdir(course.root)
    (course.root / "roster.csv").write_text("id,name\nada,Ada\nbob,Bob\n")
    cells = [
        {"cell_type": "code", "id": "a", "source": f'from lightspeed_course import *\nask("{ID}")'},
        {"cell_type": "code", "id": "b", "source": f'time = ...\ncheck("{ID}", time)'},
    ]
    empty = {"metadata": {}, "outputs": [], "execution_count": None}
    whole = {
        "cells": [c | empty for c in cells],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (tmp_path / "own.ipynb").write_text(json.dumps(whole))
    (tmp_path / "mine.md").write_text(COPY)
    assert say("roster", "roster.csv")[0] == 0
    return say


def forget():
    """As in a process, or on a machine, that never saw the file."""
    for id in [id for id in questions._registry if id.startswith("mine.")]:
        del questions._registry[id]
    questions._own.clear()


def test_a_question_of_ones_own_from_release_to_feedback(say, course, tmp_path, sandboxed):
    own = tmp_path / "own.ipynb"
    status, out = say("release", own)
    assert status == 2 and "mine.copy_time" in out, "nobody has it yet"
    status, out = say("release", own, "--questions", tmp_path / "mine.md", "--due", "2020-01-01")
    assert status == 0, out
    with course.book() as book:
        right = {s.id: question(ID).variant(s.seed).right[0] for s in book.students()}
    forget()
    for student, answer in (("ada", right["ada"]), ("bob", right["bob"] * 0.5)):
        path = course.root / f"released/own/v1/{student}/own.ipynb"
        text = path.read_text()
        assert "A link of" in text and "missing" not in text and str(right[student]) not in text
        path = tmp_path / "in" / student / "own.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text.replace("time = ...", f"time = {answer!r}"))
    for words in (("collect", "own", tmp_path / "in"), ("grade", "own"), ("report", "own"),
                  ("regrade", "own"), ("feedback", "own", "--solutions")):  # fmt: skip
        status, out = say(*words)
        assert status == 0, (words, out)
    with course.book() as book:
        assert {r.student.id: r.points for r in book.results("own")} == {"ada": 1.0, "bob": 0.0}
    page = (course.root / "feedback/own/bob.html").read_text()
    assert "Solution" in page and "What is left of the rate" in page


@pytest.mark.holds("docs/teach.md", "only their prompts reach students")
def test_who_has_the_notebook_can_try_no_answer_by_it(say, course, tmp_path, monkeypatch):
    assert say("release", tmp_path / "own.ipynb", "--questions", tmp_path / "mine.md")[0] == 0
    with course.book() as book:
        seed = book.student("ada").seed
    packed = as_released.pack([question(ID).variant(seed)])
    monkeypatch.setenv(as_released.KEPT, packed)
    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path / "data"))
    forget()
    verdicts = {check(ID, answer).message for answer in (1.0, 80.0, "nonsense")}
    (said,) = verdicts
    assert "of your class alone" in said


def test_a_question_of_ones_own_is_corrected_by_its_file(say, course, tmp_path, sandboxed):
    mine = tmp_path / "mine.md"
    assert say("release", tmp_path / "own.ipynb", "--questions", mine)[0] == 0
    with course.book() as book:
        right = question(ID).variant(book.student("ada").seed).right[0]
    forget()
    path = tmp_path / "in/ada/own.ipynb"
    path.parent.mkdir(parents=True)
    text = (course.root / "released/own/v1/ada/own.ipynb").read_text()
    path.write_text(text.replace("time = ...", f"time = {right * 1.07!r}"))
    for words in (("collect", "own", tmp_path / "in"), ("grade", "own"), ("status",)):
        status, out = say(*words)
        assert status == 0 and "differently from the release" not in out, "no file is read here"
    assert "a file of your own" in say("regrade", "own", "--questions", "new")[1]
    mine.write_text(COPY.replace("tolerance: 5 %", "tolerance: 10 %"))
    status, out = say("regrade", "own", "--questions", mine)
    assert status == 0 and f"--questions {mine} --apply" in out and "1 student changes" in out
    assert say("regrade", "own", "--questions", mine, "--apply")[0] == 0
    with course.book() as book:
        assert {r.student.id: r.points for r in book.results("own")}["ada"] == 1.0


def test_a_file_with_a_mistake_names_it(say, tmp_path):
    (tmp_path / "mine.md").write_text(COPY.replace("unit: ms", "unit: parsec"))
    status, out = say("release", tmp_path / "own.ipynb", "--questions", tmp_path / "mine.md")
    assert status == 2 and "mine.md" in out


@pytest.mark.holds("docs/teach.md", "adds worked solutions once nobody")
def test_solutions_wait_until_nobody_has_time_left(say, course, tmp_path):
    assert say("release", "02")[0] == 0
    status, out = say("feedback", "02", "--solutions")
    assert status == 2 and "has no due time" in out
    assert say("release", "02", "--due", "2020-01-01")[0] == 0
    assert say("extend", "02", "bob", "2090-01-01", "--reason", "ill")[0] == 0
    status, out = say("feedback", "02", "--solutions")
    assert status == 2 and re.search(r"bob has time until 2090-01-01", out)
    with course.book() as book:
        assert open_until(book, "02_roofline")[1] == "bob"
        (page,) = write_feedback(book, "02_roofline", tmp_path / "pages", "ada")
        assert "<dt>Solution</dt>" not in page.read_text()
