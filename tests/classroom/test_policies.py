"""More time, late rules, excuses, leaving: each can be undone and is told with the points."""

import csv
from pathlib import Path

import pytest
from scored import Page, assignment_of, graded, right

from lightspeed_class.class_folder import ClassError, ClassFolder, new
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.lateness import Lateness, Rule, late, settle
from lightspeed_class.reports.export import export_csv
from lightspeed_class.reports.feedback import write_feedback
from lightspeed_class.reports.results import outcomes

RIDGE, WORD, DOT = "roofline.ridge", "roofline.what_shortens_it", "roofline.dot_intensity"
ONE, TWO = assignment_of(RIDGE, WORD, name="one"), assignment_of(DOT, name="two")
DAY = 86_400.0
DUE = {"one": 10 * DAY, "two": 20 * DAY}


def hand_in(book, student, name, days_late, source="mail"):
    """A submission with every question right."""
    asked = book.assignment(name).points
    id = book.add_submission(
        student, name, f"{student} {name}".encode(), DUE[name] + days_late * DAY, source
    )
    book.add_grading(id, "key", graded({q: right(q, "1") for q in asked}, "1"))


@pytest.fixture
def book(tmp_path):
    new(tmp_path / "class")
    with Gradebook(tmp_path / "class" / "gradebook.sqlite") as book:
        for student in ("ada", "bob", "cy"):
            book.add_student(student, student.title(), seed="1", canvas_id=student)
        for assignment in (ONE, TWO):
            book.add_assignment(assignment)
            book.setting(f"due {assignment.name}", repr(DUE[assignment.name]))
        yield book


def of(book, name, student="ada"):
    return next(o for o in outcomes(book, name) if o.result.student.id == student)


def test_late_days_are_spent_first_and_a_day_that_has_begun_counts():
    """By hand: 3 free days; 0.5, 2.5 and 1.1 days late need 1, 3 and 2."""
    rule = Rule(points_per_day=2.0, late_days=3)
    found = settle(rule, [0.5 * DAY, 2.5 * DAY, None, 1.1 * DAY])
    assert [(one.spent, one.charge) for one in found] == [(1, 0), (2, 2.0), (0, 0), (0, 4.0)]
    assert settle(Rule(), [5 * DAY]) == [Lateness(5 * DAY)]
    assert settle(rule, [DAY])[0].spent == 1 and settle(rule, [DAY + 1])[0].spent == 2


def test_the_order_of_the_due_times_decides_who_gets_the_late_days(book):
    book.set_late_rule(Rule(points_per_day=0.25, late_days=1))
    hand_in(book, "ada", "two", 1.0)
    assert (of(book, "two").cost, of(book, "two").result.points) == ("1 late day used", 1.0)
    hand_in(book, "ada", "one", 0.5)  # due before it, though taken in after it
    assert (of(book, "one").cost, of(book, "one").result.points) == ("1 late day used", 2.0)
    assert (of(book, "two").cost, of(book, "two").result.points) == ("0.25 points off", 0.75)
    book.decide("excused", "ada", "one", "yes")  # what does not count spends nothing
    assert of(book, "two").cost == "1 late day used"


def test_lateness_takes_off_what_was_earned_and_never_more(book):
    hand_in(book, "ada", "one", 4.5)
    assert of(book, "one").result.points == 2.0  # without a rule, late is only marked
    book.set_late_rule(Rule(points_per_day=0.3))
    assert of(book, "one").result.points == 0.5
    book.set_late_rule(Rule(points_per_day=9.0))
    assert (of(book, "one").result.points, of(book, "one").cost) == (0.0, "2 points off")
    book.set_manual("ada", "one", "", 0.5, "for the plot")
    assert of(book, "one").result.points == 0.5  # what is added to the whole is added after it
    book.set_late_rule(Rule(points_per_day=9.0))
    assert len(book.decisions("late rule")) == 2  # the same again is no entry


@pytest.mark.holds("docs/teach.md", "What only Canvas calls late")
def test_what_nobody_can_tell_costs_nothing(book):
    book.set_late_rule(Rule(points_per_day=1.0))
    hand_in(book, "ada", "one", 3, "a.zip: ada_LATE_4001_90001_one.ipynb")
    one = of(book, "one")
    assert (one.late, one.cost, one.result.points) == ("late", "", 2.0)
    marked = "a.zip: ada_LATE_4001_90001_one.ipynb"
    assert late(marked, 5.0, 9.0) and not late(marked, 5.0, 9.0, extended=True)
    assert late(marked, 10.0, 9.0, extended=True)


def test_an_extension_is_of_one_student_and_undone(book):
    book.set_late_rule(Rule(points_per_day=1.0))
    for student in ("ada", "bob"):
        hand_in(book, student, "one", 1.0)
    book.decide("extended", "ada", "one", repr(DUE["one"] + DAY), "ill", "me")
    assert (of(book, "one").late, of(book, "one").result.points) == ("", 2.0)
    assert of(book, "one", "bob").result.points == 1.0
    book.setting("due one", repr(DUE["one"] + 5 * DAY))  # a later time for all is later for ada
    assert book.due("one", "ada") == (DUE["one"] + 5 * DAY, False)
    book.setting("due one", repr(DUE["one"]))
    book.decide("extended", "ada", "one")
    assert of(book, "one").result.points == 1.0 and len(book.decisions("extended", "one")) == 2


def test_marks_exports_and_feedback_tell_of_it(book, tmp_path):
    book.set_late_rule(Rule(points_per_day=0.5, late_days=1))
    for student in ("ada", "bob"):
        hand_in(book, student, "one", 2.0)
    book.decide("extended", "ada", "one", repr(DUE["one"] + DAY))
    book.decide("excused", "cy", "one", "yes")

    def rows(kind):
        path = export_csv(book, ["one"], tmp_path / kind, kind, missing_as_zero=True)
        with open(path, encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))

    columns = ("status", "late", "points", "late days used", "points off", "extended to")
    assert [tuple(row[c] for c in columns) for row in rows("plain")] == [
        ("ok", "1 day late", "2", "1", "", "1970-01-12 00:00 UTC"),
        ("ok", "2 days late", "1.5", "1", "0.5", ""),
        ("excused", "", "", "", "", ""),
    ]
    # Canvas reads EX as excused; a zero for who is excused would be a mark
    assert [row["one"] for row in rows("canvas")[1:]] == ["2", "1.5", "EX"]
    for student in ("ada", "bob", "cy"):
        book.add_student(student, student.title(), email=f"{student}@example.org")
    moodle = rows("moodle")
    assert [row["one"] for row in moodle] == ["2", "1.5", "-"]
    assert "2 days late, 1 late day used, 0.5 points off." in moodle[1]["one (feedback)"]
    pages = [Page(p.read_text()).text for p in write_feedback(book, "one", tmp_path / "pages")]
    assert "Your time was extended to 12 January 1970" in pages[0]
    assert "2 days late, 1 late day used, 0.5 points off" in pages[1]
    assert "Excused." in pages[2] and "Nothing was handed in" not in pages[2]


@pytest.mark.holds("docs/teach.md", "lists every such act")
def test_the_verbs_do_it_undo_it_and_keep_it(book, tmp_path, say, monkeypatch):
    monkeypatch.chdir(tmp_path / "class")
    with open("class.toml", "a") as file:
        file.write("[late]\npoints_per_day = 1\n")
    hand_in(book, "ada", "one", 1.0)

    assert "1 of 2" in say("status", "one")[1]
    assert say("extend", "one", "ada", "1970-02-01", "--reason", "ill", "--by", "me")[0] == 0
    assert "2 of 2" in say("status", "one")[1] and "more time for ada" in say("status", "one")[1]
    assert "as for all" in say("extend", "one", "ada", "--undo")[1]
    for words, told in (
        (("extend", "one", "ada", "--undo"), "no extension for one to take back"),
        (("extend", "one", "ada"), "give WHEN, or --undo alone"),
        (("extend", "one", "ada", "1970-01-02"), "not later than for all"),
        (("excuse", "one", "ada", "--undo"), "no excuse for one to take back"),
        (("left", "ada", "--undo"), "ada is in the class"),
    ):
        status, out = say(*words)
        assert status == 2 and told in out, (words, out)
    assert "excused" in say("excuse", "one", "ada")[1]
    assert "1 of 2" in say("excuse", "one", "ada", "--undo")[1]
    before = book.student("ada")
    assert "ada (Ada) (left)" in say("left", "ada")[1] and book.student("ada").left
    assert say("left", "ada", "--undo")[0] == 0
    after = book.student("ada")
    assert not after.left and (after.seed, after.name) == (before.seed, before.name)
    told = say("history", "ada")[1].splitlines()
    assert [line.partition("ada")[2].partition(" (")[0] for line in told] == [
        ", one: extended to 1970-02-01 23:59",
        ", one: extended: taken back",
        ", one: excused",
        ", one: excused: taken back",
        ": left",
        ": left: taken back",
    ]
    assert told[0].endswith('"ill" (me)') and "late rule" in say("history")[1]


def test_a_roster_that_takes_somebody_out_is_in_the_history_too(book):
    book.add_student("bob", "Bob", left="yes")
    book.add_student("bob", "Bob", left="yes")
    book.add_student("bob", "Bob", left="")
    assert [(d.student, d.value, d.reason) for d in book.decisions("left")] == [
        ("bob", "yes", "the roster"),
        ("bob", None, "the roster"),
    ]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("late = 3", "late must be a table"),
        ("[late]\npoints_per_dya = 1", "did you mean points_per_day?"),
        ("[late]\npoints_per_day = -1", "expected a number from 0"),
        ("[late]\npoints_per_day = nan", "expected a number from 0"),
        ("[late]\nlate_days = 1.5", "expected a whole number from 0"),
        ("[late]\nlate_days = true", "expected a whole number from 0"),
    ],
)
def test_a_slip_in_the_rule_is_told(tmp_path, lines, told):
    new(tmp_path / "class")
    Path(tmp_path / "class" / "class.toml").write_text(lines)
    with pytest.raises(ClassError, match=told.replace("?", r"\?")):
        ClassFolder.find(tmp_path / "class")
