"""A report's statistics against closed forms and scipy; its sentences against the class."""

import dataclasses
import math
import random
import re
from pathlib import Path

import pytest
from scored import Page, answer, assignment_of, graded, right, times, wrong

from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading.grade import refused
from lightspeed_class.handout.release import notebook_for
from lightspeed_class.notebooks import Assignment
from lightspeed_class.reports.class_report import (
    FEWEST,
    Answer,
    _findings,
    discrimination,
    histogram,
    items,
    mistakes,
    opening,
    ratios,
    statistics,
    told,
    unexplained,
)
from lightspeed_class.reports.class_report_page import to_html, write_report
from lightspeed_course.practice.questions import question

pytestmark = pytest.mark.slow

DOT, OPS, WORD, ROOF = (
    "roofline.dot_intensity",
    "roofline.int8_ops",
    "roofline.what_shortens_it",
    "roofline.attainable",
)
ASSIGNMENT = assignment_of(DOT, OPS, WORD, ROOF)
ODD = 1.7


def a(student, question, share, kind="", name="", message="", given="", ratio=()):
    return Answer(
        student,
        question,
        share,
        kind or ("right" if share == 1 else "magnitude"),
        name,
        message,
        given,
        ratio,
    )


# Numbers


def test_discrimination_is_what_scipy_says():
    from scipy.stats import pearsonr

    rng = random.Random(4)
    for n in (FEWEST, 11, 30, 800):
        for _ in range(20):
            skill = [rng.random() for _ in range(n)]
            pairs = [(float(s + rng.random() > 1), round(10 * s + rng.random(), 2)) for s in skill]
            expected = pearsonr(*zip(*pairs, strict=True))
            interval = expected.confidence_interval(0.95)
            assert discrimination(pairs) == pytest.approx(
                (expected.statistic, interval.low, interval.high, n)
            )


@pytest.mark.parametrize("n", [FEWEST, 50])
def test_discrimination_where_it_is_known(n):
    rest = [float(i) for i in range(n)]
    assert discrimination([(v, v) for v in rest]) == pytest.approx((1, 1, 1, n))
    assert discrimination([(-v, v) for v in rest]) == pytest.approx((-1, -1, -1, n))
    half = [(float(i % 2), float(i // 2 % 2)) for i in range(4 * n)]  # every pair as often
    r, low, high, _ = discrimination(half)
    assert r == pytest.approx(0, abs=1e-12)
    assert low == pytest.approx(-high)
    assert high == pytest.approx(math.tanh(1.959964 / math.sqrt(4 * n - 3)))


def test_discrimination_is_refused_where_there_is_nothing_to_tell():
    few = [(float(i), float(i)) for i in range(FEWEST - 1)]
    assert discrimination(few) is None and discrimination([]) is None
    assert discrimination([(1.0, float(i)) for i in range(30)]) is None  # all have it right
    # the same but for rounding
    assert discrimination([(float(i % 2), 0.1 + 0.2 if i % 3 else 0.3) for i in range(30)]) is None


def test_the_question_itself_is_left_out():
    """A question that is a coin toss, and the rest: the toss must not seem to tell anything."""
    answers = [
        x
        for i in range(40)
        for x in (a(f"s{i}", "q", float(i % 2)), a(f"s{i}", "r", float(i // 2 % 2)))
    ]
    q, r = items(answers, {"q": 5.0, "r": 1.0})
    assert q["discrimination"][0] == pytest.approx(0, abs=1e-12) == r["discrimination"][0]
    assert q["discrimination"][3] == 40


def test_items_count_and_average():
    kinds = ["right"] * 3 + ["misconception", "unanswered"]
    answers = [
        dataclasses.replace(a(f"s{i}", "q", float(i < 3)), kind=k) for i, k in enumerate(kinds)
    ]
    answers[3] = dataclasses.replace(answers[3], share=0.5)
    (q,) = items(answers, {"q": 2.0})
    assert q == {
        "question": "q",
        "students": 5,
        "share": pytest.approx(0.7),
        "right": 3,
        "wrong": 1,
        "unanswered": 1,
        "discrimination": None,
    }
    assert items([], {"q": 1.0})[0]["share"] is None


def test_histogram():
    assert histogram([0, 1, 9.99, 10, 10], 10) == [
        (float(i), i + 1.0, {0: 1, 1: 1, 9: 3}.get(i, 0)) for i in range(10)
    ]
    points = [random.Random(1).random() * 20 for _ in range(999)]
    assert sum(c for _, _, c in histogram(points, 20)) == 999
    # 0.7000000000000001 and 0.6000000000000001
    assert [c for _, _, c in histogram([7 * 0.1, 6 * 0.1], 1)] == [0, 0, 0, 0, 0, 0, 1, 1, 0, 0]
    # as points by hand may be: they leave the others in their place
    beyond = histogram([-5, -1, 20, 21, 1000], 20)
    assert beyond[0] == (-5, 0, 2)
    assert beyond[-1] == (20, 1000, 2)
    assert beyond[1:-1] == histogram([20], 20)
    assert histogram([], 0) == [] and sum(c for _, _, c in histogram([0.0], 0.0)) == 0


def test_mistakes_are_counted_by_question_kind_and_name():
    answers = [
        a(f"s{i}", "q", 0.0, "misconception", "m", f"You have {i}.5 B. Think.") for i in range(3)
    ]
    answers += [
        a("x", "q", 0.0, "slip", "m", "You have 1. Slip."),
        a("y", "r", 0.0, "misconception", "m", "You have 1. Other."),
        a("z", "q", 1.0),
        a("z", "r", 0.0, "magnitude"),
    ]
    found = mistakes(answers)
    assert [(m["question"], m["kind"], m["students"], m["message"]) for m in found] == [
        ("q", "misconception", ["s0", "s1", "s2"], "Think."), ("q", "slip", ["x"], "Slip."),
        ("r", "misconception", ["y"], "Other."),
    ]  # fmt: skip


def test_what_they_read_is_what_most_read():
    assert (
        told(
            [
                a("", "q", 0, message=m)
                for m in (
                    "You have 1. That. Is it.",
                    "You have 2. That. Is it.",
                    "You have 3. Else.",
                )
            ]
        )
        == "That. Is it."
    )
    assert told([a("", "q", 0, message="No full stop")]) == "No full stop"


def test_equal_answers_without_a_reason():
    def off(student, *ratio, given=""):
        return a(student, "q", 0.0, given=given or student, ratio=ratio)

    found = unexplained(
        [
            off("a", 1.7),
            off("b", 1.7001),
            off("c", 1.72),
            off("d", 3.0),
            off("e", 0.5, 2.0),
            off("f", 0.5, 2.0),
            off("g", 0.5, 2.1),
        ]
    )
    assert [c["students"] for c in found] == [["a", "b"], ["e", "f"]]
    assert found[0]["ratio"] == (pytest.approx(1.70005),)
    same = unexplained(
        [
            off("a", 1.7, given="1000"),
            off("b", 2.9, given="1000"),
            a("c", "q", 0.0, given="cpu"),
            a("d", "q", 0.0, given="cpu"),
            a("e", "q", 0.0, "unanswered"),
            a("f", "q", 0.0, "misconception", given="cpu"),
        ]
    )
    assert [(c["students"], c["given"][0], c["ratio"]) for c in same] == [
        (["a", "b"], "1000", ()),
        (["c", "d"], "cpu", ()),
    ]


def test_ratios_compare_each_with_what_is_right_there():
    for seed in (None, "a", "b"):
        given = question(DOT).variant(seed).right * ODD
        assert ratios(
            question(DOT).variant(seed), " ".join(f"{v:.6g}" for v in given)
        ) == pytest.approx((ODD,), rel=1e-5)
        assert ratios(question("roofline.int8_bytes").variant(seed), "1 2") == pytest.approx(
            tuple(
                g / r
                for g, r in zip(
                    (1, 2), question("roofline.int8_bytes").variant(seed).right, strict=True
                )
            )
        )
    assert all(
        ratios(question(id).variant(), given) == ()
        for id, given in ((WORD, "capacity"), (DOT, ""), (ROOF, "nan 1"))
    )


# A class


@pytest.fixture
def book(tmp_path):
    """Forty with numbers of their own: 12 fall for one misconception, 5 are off by one factor,
    one stops, one is unreadable, one is missing.
    """
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(ASSIGNMENT)
        for i in range(40):
            seed, student = f"seed{i}", f"s{i:02}"
            book.add_student(student, "<b>Ünï\u202e" if i == 0 else f"Name {i}", seed=seed)
            answers = {q: right(q, seed) for q in ASSIGNMENT.points}
            if i < 12:
                answers[ROOF] = wrong(ROOF, 1, seed)
            if i < 20:
                answers[OPS] = (
                    times(OPS, ODD, seed)
                    if i < 5
                    else times(OPS, 1.3 + i / 7, seed)
                    if i < 15
                    else ...
                )
            if i == 39:
                continue
            id = book.add_submission(
                student,
                ASSIGNMENT.name,
                student.encode(),
                1.0,
                source="canvas.zip: ünï_LATE_4001_90001_x.ipynb" if i == 7 else "",
            )
            if i == 38:
                book.add_grading(id, "key", refused("It is not valid JSON.", ASSIGNMENT))
            elif i != 37:
                book.add_grading(
                    id,
                    "key",
                    graded(
                        answers,
                        seed,
                        "time" if i == 6 else "ok",
                        ["It ran longer than it may."] if i == 6 else (),
                    ),
                )
        yield book


def test_a_class_is_described(book):
    data = statistics(book, ASSIGNMENT.name)
    assert (data["students"], data["graded"], data["read"], len(data["points"])) == (40, 38, 37, 37)
    dot, ops, word, roof = data["questions"]
    assert (dot["share"], word["share"]) == (1, 1) and dot["discrimination"] is None
    assert ops["share"] == pytest.approx(17 / 37)
    assert (ops["right"], ops["wrong"], ops["unanswered"]) == (17, 15, 5)
    assert roof["share"] == pytest.approx(25 / 37) and roof["discrimination"][3] == 37
    assert next((m["question"], m["name"], len(m["students"])) for m in data["mistakes"]) == (
        ROOF,
        question(ROOF).misconceptions[1].name,
        12,
    )
    slip = question(ROOF).misconceptions[1]
    assert data["mistakes"][0]["message"] == f"Likely: {slip.name}. {slip.hint}"
    assert next((c["question"], c["students"]) for c in data["unexplained"]) == (
        OPS,
        [f"s{i:02}" for i in range(5)],
    )
    assert [row[0] for row in data["stopped"]] == ["s06", "s38"]
    assert data["stopped"][0][2:] == ("time", "It ran longer than it may.")
    assert data["late"] == [("s07", "Name 7", "late")]
    assert data["missing"] == [("s39", "Name 39")]
    assert data["waiting"] == [("s37", "Name 37")]


def test_the_key_has_what_is_right_for_each_one_s_numbers(book):
    key = dict(statistics(book, ASSIGNMENT.name)["key"])
    asked = {id for ids in key[DOT].values() for id in ids}
    assert len(asked) == 37, "all who are graded"
    for right_answer, ids in key[DOT].items():
        assert {question(DOT).variant(f"seed{int(id[1:])}").answer for id in ids} == {right_answer}
    assert len(key[DOT]) > 1


def test_points_by_hand_count_and_a_diagnosis_stays(book):
    for i in range(12):
        book.set_manual(f"s{i:02}", ASSIGNMENT.name, ROOF, 1.0)
    data = statistics(book, ASSIGNMENT.name)
    assert data["questions"][3]["share"] == 1 and len(data["mistakes"][0]["students"]) == 12


def test_points_beyond_the_maximum_do_not_move_the_mean(book):
    said = Page(to_html(statistics(book, ASSIGNMENT.name))).check().text
    (mean,) = re.findall(r"the mean ([\d.]+)", said)
    whole, *_ = [o for o in statistics(book, ASSIGNMENT.name)["points"]]
    book.set_manual("s36", ASSIGNMENT.name, "", 1000.0)  # one of full marks
    said = Page(to_html(statistics(book, ASSIGNMENT.name))).check().text
    (after,) = re.findall(r"the mean ([\d.]+)", said)
    assert float(mean) - 0.1 < float(after) <= float(mean) and whole >= 0
    assert "Points by hand lead 1 of them below 0 or above 4; the mean leaves these out." in said
    assert "4–1000" in said.replace("1,000", "1000").replace("1004", "1000")


def test_a_notebook_that_is_not_the_students_own_is_shown_first(tmp_path):
    """What collect says of it is still there when the report is written."""
    path = Path(__file__).parents[2] / "exercises" / "02_roofline.ipynb"
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(Assignment.of(path))
        for id in ("ada", "bob", "cy", "dan"):
            book.add_student(id, id.title(), seed=f"seed of {id}")
        for id, content in {
            "ada": notebook_for(path, "seed of ada", "ada"),
            "bob": notebook_for(path, "seed of ada", "ada"),
            "cy": path.read_bytes(),
        }.items():
            book.add_submission(id, "02_roofline", content, 1.0)
        data = statistics(book, "02_roofline")
        assert [row[:2] for row in data["look"]] == [("ada", "Ada"), ("bob", "Bob"), ("cy", "Cy")]
        assert "The same bytes came from bob." in data["look"][0][2]
        assert "Was it copied?" in data["look"][1][2]
        assert "the course's own" in data["look"][2][2]
        assert any(
            "3 of 4 students handed in a notebook that you should look at" in s
            for s in _findings(data)
        )
        text = Page(to_html(data)).check().text
        assert text.index("Look at these") < text.index("Was it copied?") < text.index("Marks")
        assert "`" not in text and "<code>check</code> in it went by other numbers" in to_html(data)


def test_who_has_left_is_not_missed(book):
    student = book.student("s39")
    book.add_student("s39", student.name, left="yes")
    data = statistics(book, ASSIGNMENT.name)
    assert data["missing"] == [] and data["students"] == 39


def test_it_opens_with_what_to_talk_about(book):
    one, two, three = opening(statistics(book, ASSIGNMENT.name))
    slip = question(ROOF).misconceptions[1]
    assert (
        one == f"Talk first about “{question(ROOF).misconceptions[1].name}” in {ROOF}: 12 of 37"
        f" students answered that way and read “Likely: {slip.name}. {slip.hint}”"
    )
    assert (
        two == f"The hardest question besides it is {OPS}: 17 of 37 have it right, 15 answered"
        " something else and 5 nothing."
    )
    assert three.startswith(
        f"5 of 37 students gave the same wrong answer to {OPS}, 1.7 times the right answer, and no"
        " known misconception"
    )


@pytest.mark.parametrize(
    "answers, words",
    [
        ([], ["No submission has been read", "3 of 3 students handed in nothing."]),
        (
            [right] * 12,
            [
                "Half of those whose notebooks could be read have 2 of 2 points or more.",
                "There is no need to go through",
                "Everybody on the roster handed something in.",
            ],
        ),
        (
            [lambda q, s: times(q, 8, s)] * 3 + [right] * 9,
            [
                "The hardest question of all is",
                "3 of 12 students slipped on a unit",
                "Half of those",
            ],
        ),
    ],
)
def test_it_opens_with_what_the_data_bear_out(tmp_path, answers, words):
    assignment = assignment_of("roofline.int8_critical_batch", "roofline.ridge")
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(assignment)
        for i, given in enumerate(answers or [None] * 3):
            book.add_student(f"s{i:02}", seed=f"{i}")
            if not answers:
                continue
            id = book.add_submission(f"s{i:02}", assignment.name, str(i).encode(), 1.0)
            book.add_grading(
                id, "key", graded({q: given(q, f"{i}") for q in assignment.points}, f"{i}")
            )
        said = opening(statistics(book, assignment.name))
        Page(to_html(statistics(book, assignment.name))).check()
    assert len(said) == len(words) and all(
        s.startswith(w) for s, w in zip(said, words, strict=True)
    ), said


def test_a_question_that_the_weaker_get_right_is_named():
    answers = [
        x
        for i in range(40)
        for x in (
            a(f"s{i:02}", "q", float(i < 20)),
            a(f"s{i:02}", "r", float(i >= 20)),
            a(f"s{i:02}", "t", float(i >= 22)),
        )
    ]
    data = {
        "read": 40,
        "questions": items(answers, {"q": 1.0, "r": 1.0, "t": 1.0}),
        "mistakes": [],
        "unexplained": [],
        "look": [],
        "stopped": [],
        "points": [1.0],
        "out of": 3.0,
        "missing": [],
        "waiting": [],
        "students": 40,
        "graded": 40,
    }
    assert (
        "In q those who did worse elsewhere did better: read the question again before you"
        " discuss it." in opening(data)
    )


def test_the_page(book, tmp_path):
    path = write_report(book, ASSIGNMENT.name, str(tmp_path / "reports" / "r.html"))
    text = path.read_text("utf-8")
    page = Page(text).check()
    assert text == to_html(statistics(book, ASSIGNMENT.name))
    assert (
        page.text.index("Talk first about")
        < page.text.index("Marks")
        < page.text.index("Questions")
        < page.text.index("Mistakes with a name")
    )
    drawn = [a for tag, a in page.tags if a.get("role") == "img"]
    assert len(drawn) == 3 == text.count("<figcaption>")
    assert all(len(a["aria-label"]) > 40 for a in drawn)
    assert "<svg" not in text
    widths = [float(w) for w in re.findall(r"<span class=bar [^>]*width: ([\d.]+)%", text)]
    # of the marks, and of the questions
    assert len(widths) == 10 + 4
    assert max(widths) == 100
    assert widths[-1] == pytest.approx(100 * 25 / 37, rel=1e-3)
    assert "how late" in page.text and "not known: marked late by the platform" in page.text
    assert "<b>" not in text and "\u202e" not in text and "&lt;b&gt;Ünï" in text
    for heading in (
        "Mistakes without a name",
        "Notebooks that stopped or could not be read",
        "Late",
        "Not graded yet",
        "Nothing handed in",
    ):
        assert heading in page.text
    assert "out of time" in page.text
    assert "could not be read" in page.text
    assert "1.7 times the right answer" in page.text
    # what heads the numbers on a phone
    labels = [a["data-label"] for tag, a in page.tags if tag == "td" and "data-label" in a]
    assert labels == 4 * ["right", "wrong", "unanswered", "mean share", "discrimination"]
    with pytest.raises(KeyError):
        write_report(book, "other", tmp_path / "no.html")


def test_answers_of_another_kind_are_told_in_words(tmp_path):
    """And two questions that nobody was graded for, as those that a release has just added."""
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(ASSIGNMENT)
        book.add_student("ada", "Ada", seed="a")
        id = book.add_submission("ada", ASSIGNMENT.name, b"1", 1.0)
        book.add_grading(id, "key", graded({DOT: "no idea", OPS: wrong(OPS, 0, "a")}, "a"))
        text = Page(to_html(statistics(book, ASSIGNMENT.name))).check().text
    assert "an answer of another kind: a text" in text
    assert "type" not in text
    assert re.search(rf"{question(OPS).misconceptions[0].name}[\w ]*\s*misconception", text)


def test_the_fixture_is_what_it_says():
    assert answer(question(DOT).variant("a"), question(DOT).variant("a").right) == right(DOT, "a")
    assert graded({ROOF: wrong(ROOF, 1)}).scores[0].name == question(ROOF).misconceptions[1].name
