"""What was asked is what is marked: a term in which questions change between every two verbs."""

import dataclasses
import json
import random
import re
from collections import Counter
from concurrent.futures import Future

import pytest

from lightspeed_class.asked import Asked, Unkept, frozen
from lightspeed_class.grading.batch import grade_all, replay
from lightspeed_class.handout.release import release
from lightspeed_class.intake.collect import collect
from lightspeed_class.kept_questions import KeptQuestions, correct, correction
from lightspeed_class.reports.class_report import statistics
from lightspeed_class.reports.feedback import write_feedback
from lightspeed_class.roster import new_seed
from lightspeed_cli.main import main
from lightspeed_course import ask
from lightspeed_course.practice import as_released, questions
from lightspeed_course.practice.check import check, diagnose
from lightspeed_course.practice.questions import Parameter, question

WORD = {
    "roofline.ridge": "ridge",
    "roofline.what_shortens_it": "what",
    "roofline.attainable": "roof",
    "roofline.int8_bytes": "sizes",
}
ASKED = tuple(WORD)
NAME = "own"
ROOF = "def roof(intensity, peak, bandwidth):\n    return min(peak, intensity * bandwidth)"


class Here:
    """Grades in this process, whose questions the test changes."""

    def submit(self, function, *arguments):
        done = Future()
        done.set_result(function(*arguments))
        return done


@pytest.fixture
def bank(monkeypatch):
    """The questions, to be changed: `bank(id, prompt=...)`; without a change it is removed."""
    for id in ASKED:
        question(id)
    kept = dict(questions._registry)
    monkeypatch.setattr(questions, "_registry", kept)

    def change(id, **fields):
        q = kept.pop(id)
        if fields:
            kept[id] = dataclasses.replace(q, **fields)

    return change


@pytest.fixture
def book(course):
    with course.book() as book:
        for student in ("ada", "bob", "cy"):
            book.add_student(student, student.title(), seed=new_seed())
        yield book


def exercise(folder, ids=ASKED):
    cells = []
    for n, id in enumerate(ids):
        cells += [
            {"cell_type": "code", "id": f"ask{n}", "source": f'ask("{id}")'},
            {
                "cell_type": "code",
                "id": f"do{n}",
                "source": f'{WORD[id]} = ...\ncheck("{id}", {WORD[id]})',
            },
        ]
    imports = "from lightspeed_course import ask, check"
    first = {"cell_type": "code", "id": "first", "source": imports}
    empty = {"metadata": {}, "outputs": [], "execution_count": None}
    path = folder / f"{NAME}.ipynb"
    path.write_text(json.dumps({
        "cells": [cell | empty for cell in (first, *cells)],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    }))  # fmt: skip
    return path


def answers(book, student):
    """What is right of what a student was asked, as text; of ada all, of bob all but the ridge."""
    given = {}
    for id in ASKED:
        given[id] = solved(question(id).variant(book.student(student).seed))
    return given | ({"roofline.ridge": "12345.6"} if student == "bob" else {})


def solved(variant):
    """The right answer as a student writes it; the dots of a function stay."""
    right, kind = variant.right, variant.question.kind
    if kind == "function":
        return "..."
    return repr(right if kind == "choice" else right[0] if len(right) == 1 else list(right))


def hand_in(course, version, student, given, folder):
    """The released notebook with these answers in it."""
    path = course.released(NAME) / f"v{version}" / student / f"{NAME}.ipynb"
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        for id, answer in given.items():
            if f'check("{id}"' in cell["source"]:
                source = cell["source"].replace("= ...", f"= {answer}")
                if id == "roofline.attainable":
                    source = source.replace("roof = ...", ROOF)
                cell["source"] = source
    out = folder / student / f"{NAME}.ipynb"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(notebook))
    return out.parent.parent


def marks(book):
    return {r.student.id: (r.points, r.out_of) for r in book.results(NAME)}


def changes(bank):
    """What an update of the course may do to questions, one after the other."""
    ridge = question("roofline.ridge")
    first = next(iter(ridge.parameters))
    p = ridge.parameters[first]
    more = dataclasses.replace(p, choices=(p.canonical, *p.choices))
    yield lambda: bank("roofline.ridge", parameters={**ridge.parameters, first: more})
    yield lambda: bank("roofline.ridge", prompt="Something else.", tolerance=1e-9)
    yield lambda: bank("roofline.ridge", expected=lambda **_: 1.0, misconceptions=())
    yield lambda: bank("roofline.what_shortens_it", options={"other": "Another."},
                       expected=lambda **_: "other", misconceptions=())  # fmt: skip
    yield lambda: bank("roofline.attainable", expected=lambda **inputs: sum(inputs.values()))
    for id in ASKED:
        yield lambda id=id: bank(id)


@pytest.mark.holds("docs/teach.md", "whatever course is installed later")
def test_no_mark_moves_while_the_questions_change_between_every_two_verbs(
    course, book, bank, tmp_path
):
    release(course, book, exercise(tmp_path))
    given = {s: answers(book, s) for s in ("ada", "bob")}
    prompts = {s: frozen(question(ASKED[0]).variant(book.student(s).seed))["prompt"] for s in given}
    for student in given:
        inbox = hand_in(course, 1, student, given[student], tmp_path / "in")
    pages = tmp_path / "pages"
    told = {}

    def graded(again=False):
        grade_all(book, NAME, submit=Here(), regrade=again)

    def fed():
        write_feedback(book, NAME, pages)
        for student, prompt in prompts.items():
            text = (pages / f"{student}.html").read_text()
            plain = " ".join(re.sub(r"<[^>]+>", "", text).split())
            first = re.sub(r"[*`$]", "", prompt.partition("\n\n")[0]).split()
            assert " ".join(first[:6]) in plain, "asks what was asked"

    def replayed():
        for submission in book.submissions(NAME):
            for grading in book.gradings(submission.id):
                same, *_ = replay(book, grading.id)
                assert same

    verbs = [
        lambda: collect(course, book, NAME, [inbox]),
        graded,
        fed,
        lambda: graded(again=True),
        replayed,
        lambda: statistics(book, NAME),
        lambda: grade_all(book, NAME, submit=Here(), regrade=True, label="once more"),
        fed,
        replayed,
    ]
    steps = changes(bank)
    for verb in verbs:
        next(steps, lambda: None)()
        verb()
        if book.latest(NAME):
            told.setdefault("marks", marks(book))
            assert marks(book) == told["marks"]
    assert told["marks"] == {"ada": (4.0, 4.0), "bob": (3.0, 4.0), "cy": (None, 4.0)}


def test_another_release_asks_anew_and_leaves_the_first_as_it_was(course, book, bank, tmp_path):
    release(course, book, exercise(tmp_path))
    given = answers(book, "ada")
    inbox = hand_in(course, 1, "ada", given, tmp_path / "in")
    collect(course, book, NAME, [inbox])
    grade_all(book, NAME, submit=Here())
    before = marks(book)["ada"]
    bank("roofline.ridge")
    bank("roofline.int8_bytes", tolerance=1e-9, prompt="Other words.")
    done = release(course, book, exercise(tmp_path, ASKED[1:]))
    assert (done.version, done.removed) == (2, ("roofline.ridge",))
    grade_all(book, NAME, submit=Here(), regrade=True)
    assert marks(book)["ada"] == before == (4.0, 4.0)
    asked = KeptQuestions(book, NAME).asked(None, book.student("cy").seed)
    left = {id: solved(variant) for id, variant in asked.items()}
    late = hand_in(course, 2, "cy", left, tmp_path / "late")
    collect(course, book, NAME, [late])
    grade_all(book, NAME, submit=Here())
    assert marks(book)["cy"] == (3.0, 3.0)


def test_what_was_asked_comes_back_word_by_word_and_is_diagnosed_alike():
    rng = random.Random(1)
    for id in (*ASKED, "roofline.critical_batch_function", "nccl.ring_time", "numbers.iron_law"):
        now = question(id).variant("kada")
        then = Asked(json.loads(json.dumps(frozen(now))))
        assert (then.prompt, then.answer if now.question.kind != "function" else "") == (
            now.prompt, now.answer if now.question.kind != "function" else "",
        )  # fmt: skip
        tries = [m.wrong for m in now.question.misconceptions]
        if now.question.kind == "choice":
            tries = [*now.options, "nothing"]
        elif now.question.kind == "number":
            tries = [c.values[0] for c in (*now.causes, *now.further)]
            tries += [now.right[0] * rng.uniform(0.1, 3) for _ in range(20)]
        elif now.question.kind == "array":
            tries = [list(c.values) for c in (*now.causes, *now.further)]
        assert [diagnose(now, t) for t in tries] == [diagnose(then, t) for t in tries], id


def test_a_longer_list_redraws_only_those_who_get_what_is_new(bank):
    seeds, moved = [f"k{n}" for n in range(400)], 0
    q = question("roofline.what_shortens_it")
    q = dataclasses.replace(q, kind="number", options={}, expected=lambda n: n, misconceptions=(),
                            parameters={"n": Parameter(1.0, (1.0, 2.0, 3.0, 4.0))})  # fmt: skip
    longer = dataclasses.replace(q, parameters={"n": Parameter(1.0, (0.5, 1.0, 2.0, 3.0, 4.0))})
    for seed in seeds:
        before, after = (one.variant(seed).values["n"] for one in (q, longer))
        assert after in (before, 0.5)
        moved += before != after
    assert 0.1 < moved / len(seeds) < 0.3, "a fifth draw the new one"
    counts = Counter(q.variant(seed).values["n"] for seed in seeds)
    assert len(counts) == 4 and min(counts.values()) > 70


def test_in_a_course_of_another_version_nothing_is_diagnosed(monkeypatch, tmp_path, bank):
    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path))
    monkeypatch.setenv("LIGHTSPEED_SEED", "kada")
    variant = question("roofline.ridge").variant("kada")
    monkeypatch.setenv("LIGHTSPEED_ASKED", as_released.pack([variant]))
    right = variant.right[0]
    assert check("roofline.ridge", right).correct
    for change in (
        {"tolerance": 0.3},
        {"prompt": "Other words."},
        {"expected": lambda **_: 1.0},
        {},
    ):
        bank("roofline.ridge", **change)
        verdict = check("roofline.ridge", right)
        assert verdict.kind == "read" and "another version" in verdict.message
        assert variant.prompt in repr(ask("roofline.ridge"))


def test_a_class_of_an_earlier_course_says_what_differs_or_is_kept(course, book, bank, tmp_path):
    release(course, book, exercise(tmp_path))
    seeds, ridge = {s.seed for s in book.students()}, question("roofline.ridge")
    for statement in (
        "DROP TRIGGER asked_stays", "DROP TRIGGER asked_lasts", "DELETE FROM asked",
        "DELETE FROM released",
    ):  # fmt: skip
        book._file.execute(statement)
    bank("roofline.ridge", prompt="Other words.")
    with pytest.raises(Unkept, match=r"asks roofline\.ridge differently"):
        KeptQuestions(book, NAME)
    assert not book.asked_seeds(NAME, "")
    bank("roofline.ridge", prompt=ridge.prompt)
    kept = KeptQuestions(book, NAME)
    assert seeds < book.asked_seeds(NAME, "") and not kept.changed()
    bank("roofline.ridge", tolerance=0.4)
    assert kept.changed() == ["roofline.ridge"]


def test_status_and_grade_say_what_the_course_asks_otherwise(
    course, book, bank, tmp_path, monkeypatch, capsys
):
    release(course, book, exercise(tmp_path))
    kept = KeptQuestions(book, NAME)
    data = kept.data(None, book.student("ada").seed)["questions"]

    def fails(**_):
        raise NameError("half written")

    for change, why in (
        ({"unit": "GFLOP/byte"}, "GFLOP/byte"),
        ({"expected": fails, "unit": "FLOP/byte"}, "NameError"),
        ({}, "does not have it"),
    ):
        bank("roofline.ridge", **change)
        assert kept.changed() == ["roofline.ridge"]
        said, now = correction(data["roofline.ridge"], "k", book.secret)
        assert why in said and now is None, "kept as it was"
    monkeypatch.chdir(course.root)
    for verb in ("status", "grade"):
        main(["class", verb, *[NAME] * (verb == "grade")])
        assert "asks roofline.ridge differently" in capsys.readouterr().out


@pytest.mark.parametrize("worse_too", [False, True])
def test_a_correction_is_shown_then_chosen_and_keeps_the_better_mark(
    course, book, bank, tmp_path, worse_too
):
    release(course, book, exercise(tmp_path))
    for student in ("ada", "bob"):
        inbox = hand_in(course, 1, student, answers(book, student), tmp_path / "in")
    collect(course, book, NAME, [inbox])
    grade_all(book, NAME, submit=Here())
    assert marks(book)["ada"] == (4.0, 4.0) and marks(book)["bob"] == (3.0, 4.0)
    # What bob wrote is right now, and what ada wrote is not.
    bank("roofline.ridge", expected=lambda **_: 12345.6, misconceptions=(), valid=None)
    # Nobody gains by this one, which only says it otherwise.
    bank("roofline.attainable", expected=lambda **inputs: 1.0, misconceptions=(), valid=None)
    bank("roofline.int8_bytes")
    first = {s.id: book.gradings(s.id)[-1] for s in book.submissions(NAME)}
    changed, stuck = correct(book, NAME, keep_better=not worse_too)
    assert changed == ["roofline.attainable", "roofline.ridge"] and "int8" in "".join(stuck)
    assert marks(book)["ada"] == (4.0, 4.0), "until it is regraded"
    grade_all(book, NAME, submit=Here(), regrade=True)
    kept = marks(book)["ada"][0], marks(book)["bob"][0]
    assert kept == ((2.0, 3.0) if worse_too else (4.0, 4.0))
    for grading in first.values():
        same, *_ = replay(book, grading.id)
        assert same, "an earlier score by what stood then"
    grade_all(book, NAME, submit=Here(), regrade=True, label="again")
    assert (marks(book)["ada"][0], marks(book)["bob"][0]) == kept
