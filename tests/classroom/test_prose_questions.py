"""Prose questions: what a student wrote is found and shown, no program gives points for it, and
what nobody marked is never told as nought.
"""

import csv
import json

import pytest
from scored import RECORD, Page, right, score
from test_marking_desk import Browser, desk  # noqa: F401
from test_marking_desk import code as code_cell
from test_marking_desk import notebook as packed

from lightspeed_class.class_folder import ClassError, new
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading.grade import refused, repriced
from lightspeed_class.handout.prose_notebook import BLANK, write
from lightspeed_class.marking_desk import cards
from lightspeed_class.notebooks import Assignment, all_cells
from lightspeed_class.prose import answer
from lightspeed_class.reports.class_report import statistics
from lightspeed_class.reports.class_report_page import to_html
from lightspeed_class.reports.export import KINDS, Unmarked, export_csv
from lightspeed_class.reports.feedback import write_feedback
from lightspeed_class.reports.results import Outcome
from lightspeed_class.score import BY_HAND, Graded, Score

NAME, WHY, RIDGE = "02_roofline", "prose.why", "roofline.ridge"  # the desk's fixture has this name
MARK = '<script>alert("x")</script> & **memory** $b_1 < c_2$'
SHOWN = '<script>alert("x")</script> & memory b_1 < c_2'


def text(source, id=None, tags=()):
    return {"cell_type": "markdown", "id": id, "source": source, "metadata": {"tags": list(tags)}}


ASKS = [
    text("## Why is it slow?", "asks"),
    text(BLANK, "here", ["prose:why"]),
    code_cell(f'answer = ...\ncheck("{RIDGE}", answer)', "ridge") | {"metadata": {}},
]


def assignment(folder, *cells, points=None):
    path = folder / f"{NAME}.ipynb"
    path.write_bytes(packed(*cells))
    return Assignment.of(path, points)


@pytest.fixture
def book(tmp_path):
    """Ada wrote something, Bob nothing; both have the number right."""
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(assignment(tmp_path, *ASKS, points={WHY: 4}), seeded=False)
        for student, words in (("ada", MARK), ("bob", BLANK)):
            book.add_student(
                student, student.title(), email=f"{student}@x.org", sis_user_id=student
            )
            content = packed(ASKS[0], text(words, "here"), ASKS[2])
            id = book.add_submission(student, NAME, content, 1.0, source="mail")
            scores = (Score(WHY, 0.0, 4.0, BY_HAND), score(RIDGE, right(RIDGE)))
            book.add_grading(id, "key", Graded("ok", scores, (), RECORD))
        yield book


def result(book, student):
    return book.results(NAME, student)[0]


def test_an_answer_is_found_wherever_it_was_written(tmp_path):
    asked = assignment(tmp_path, *ASKS).prose[WHY]
    asks, _, ridge = ASKS
    for said, cells, found in (
        ("in the cell", [asks, text("Memory.", "here"), ridge], ["Memory."]),
        ("nowhere", [asks, text(BLANK, "here"), ridge], []),
        ("emptied", [asks, text(" \n", "here"), ridge], []),
        ("in two cells", [asks, text("A", "here"), text("B", "new"), ridge], ["A", "B"]),
        ("in a new cell", [asks, text("A", "new"), ridge], ["A"]),
        ("below the line that was there", [asks, text(f"{BLANK}\nA", "here")], [f"{BLANK}\nA"]),
        ("in the prompt", [text("Why? Memory.", "asks"), text(BLANK, "here"), ridge],
         ["Why? Memory.", BLANK]),
        ("round code", [asks, text("A", "here"), code_cell("1", "x"), text("B", "y"), ridge],
         ["A", "1", "B"]),
        ("cells moved", [ridge, asks, text("A", "here"), code_cell("2", "z")], ["A"]),
        ("released", [asks, text("A", "here"), code_cell("seed", "class-setup"), ridge], ["A"]),
        ("all ids gone", [text("## Why is it slow?"), text("A"), ridge], []),
        ("no cells", [], []),
    ):  # fmt: skip
        assert answer(all_cells(packed(*cells)), asked) == found, said


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([text("A", "a", ["prose:why"])], "needs a Markdown cell right before it"),
        ([ASKS[0], ASKS[1], text("B", "b", ["prose:also"])], "needs a Markdown cell right before"),
        ([*ASKS, *[c | {"id": c["id"] + "2"} for c in ASKS[:2]]], "two cells ask prose.why"),
        ([ASKS[0], text("A", "a", ["prose:Why So"])], "a word in lower case"),
        ([ASKS[0], text("A", "a", ["prose:a", "prose:b"])], "expected one tag"),
        (
            [ASKS[0], code_cell("", "c") | {"metadata": {"tags": ["prose:why"]}}],
            "on a cell of code",
        ),
    ],
)
def test_a_slip_of_the_instructor_is_told(course, tmp_path, cells, told):
    path = tmp_path / "own.ipynb"
    path.write_bytes(packed(*cells, ASKS[2]))
    with pytest.raises(ClassError, match=told):
        course.assignment(path)


@pytest.mark.holds("docs/teach.md", "Until then it has no points")
def test_what_nobody_marked_is_not_nought(book, tmp_path):
    assert book.assignment(NAME).prose[WHY].prompt == "Why is it slow?"  # kept and read again
    ada = result(book, "ada")
    assert (ada.points, ada.out_of, ada.unmarked, ada.outdated) == (1.0, 5.0, [WHY], False)
    assert Outcome(ada).points(WHY) is None
    for kind in KINDS:
        with pytest.raises(Unmarked, match="ada, bob is not marked yet"):
            export_csv(book, [NAME], tmp_path / kind, kind)
        assert not (tmp_path / kind).exists()
    book.set_manual("ada", NAME, WHY, 0.0, "", "eve")  # nought by a person is a mark
    assert result(book, "ada").unmarked == []

    def rows(kind):
        path = export_csv(book, [NAME], tmp_path / kind, kind, True, leave_unmarked=True)
        with open(path, encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))

    plain = [(r["status"], r["points"], r[WHY], r[RIDGE]) for r in rows("plain")]
    assert plain == [("ok", "1", "0", "1"), ("ok, not marked yet", "", "", "1")]
    assert [r[NAME] for r in rows("canvas")[1:]] == ["1", ""]
    moodle = rows("moodle")
    assert [r[NAME] for r in moodle] == ["1", "-"]
    assert moodle[1][f"{NAME} (feedback)"] == "1 of 1 right. 1 question not marked yet."
    book.decide("excused", "bob", NAME, "yes")
    assert [r[NAME] for r in rows("canvas")[1:]] == ["1", "EX"]


def test_pages_show_the_prose_and_what_people_said(book, tmp_path):
    item = book.set_item(NAME, WHY, "Names the bound", 3.0, "eve")
    book.set_manual("ada", NAME, WHY, None, "Which bytes?", "eve", [item])
    ada, bob = (Page(p.read_text()).check() for p in write_feedback(book, NAME, tmp_path))
    section = " ".join(ada.sections["q1"].split())
    for words in ("Your text", SHOWN, "3 of 4 points", "+3 Names the bound", "Which bytes?"):
        assert words in section, (words, section)
    assert "automatic" not in section.casefold() and "1 of 1 questions is right." in ada.text
    assert "1 of 5 points so far" in bob.text and "1 question not marked yet." in bob.text
    assert "Not marked yet" in bob.sections["q1"] and "Nothing was written" in bob.sections["q1"]
    told = statistics(book, NAME)
    assert told["points"] == [4.0] and told["by hand"] == [(WHY, 1, 1, 0.75)]
    assert [q["question"] for q in told["questions"] if q["students"]] == [RIDGE]
    report = " ".join(Page(to_html(told)).check().text.split())
    assert "1 answer in prose is not marked yet." in report
    assert "Half of those of whom all is marked have 4 of 5 points or more." in report
    book.undo_manual("ada", NAME, WHY, "eve")  # now there are no points to tell of
    assert "Half of those" not in to_html(statistics(book, NAME))


def test_the_desk_queues_prose_until_it_is_marked(book, desk):  # noqa: F811
    eve, finn = desk
    states = {
        (p.student, p.question): p.state
        for p in cards.queue(book.results(NAME), book.assignment(NAME), "question")
    }
    assert states == {
        ("ada", WHY): "to mark", ("bob", WHY): "to mark",
        ("ada", RIDGE): "right", ("bob", RIDGE): "right",
    }  # fmt: skip
    page = Page(eve.open("ada", WHY).text)
    assert SHOWN in page.text and "Not marked yet" in page.text and "from 0 points" in page.text
    assert "Nothing was written" in finn.open("bob", WHY).text
    assert finn.mark(points="0", comment="Nothing here.") == 303
    assert eve.mark(points="5") == 400 and eve.mark(points="3.5") == 303
    assert [result(book, s).points for s in ("ada", "bob")] == [4.5, 1.0]
    assert not any(r.unmarked for r in book.results(NAME))


def test_points_that_change_and_files_that_cannot_be_read(book, tmp_path):
    asked = assignment(tmp_path, *ASKS, points={WHY: 6})
    graded = repriced(result(book, "ada").grading.graded, asked)
    assert [s.out_of for s in graded.scores if s.kind == BY_HAND and not s.points] == [6.0]
    # of what cannot be read nobody can mark anything: that is no question that waits
    assert [s.kind for s in refused("No notebook.", asked).scores] == ["refused", "refused"]
    book.add_assignment(assignment(tmp_path, *ASKS, points={WHY: 0}), seeded=False)
    assert result(book, "ada").unmarked == []  # nothing to give


@pytest.mark.slow
def test_the_verb_writes_one_that_is_released_and_graded(tmp_path, say, monkeypatch):
    """The example of the README."""
    course = new(tmp_path / "class")
    monkeypatch.chdir(course.root)
    (course.root / "roster.csv").write_text("id,name,email\nada,Ada,a@x.org\n")
    asks = ("prose", "why_slower", "Why is a batch of one slow?")

    assert say("roster")[0] == say(*asks)[0] == 0
    assert "exists" in say(*asks)[1]
    assert say("prose", "Why So", "x")[0] == 2 and say("prose", "why", " ")[0] == 2
    with pytest.raises(ClassError, match="has the cells prose-why-slower"):
        write(course, "why_slower", "Again?", "prose_why_slower.ipynb")
    both = write(course, "and_then", "What then?", "prose_why_slower.ipynb")
    name = both.stem
    assert list(Assignment.of(both).points) == ["prose.why_slower", "prose.and_then"]
    assert say("release", str(both))[0] == 0
    path = course.released(name) / "v1" / "ada" / both.name
    handed_in = json.loads(path.read_text())
    (cell,) = [c for c in handed_in["cells"] if c["id"] == "prose-why-slower"]
    assert cell["metadata"]["tags"] == ["prose:why_slower"]
    cell["source"] = "Its weights are read for one token."
    (tmp_path / "ada.ipynb").write_text(json.dumps(handed_in))
    assert say("collect", name, str(tmp_path / "ada.ipynb"))[0] == 0
    assert say("grade", name, "--workers", "1")[0] == 0
    assert "0 of 2 so far, 2 questions not marked yet" in say("status", name)[1]
    assert "prose of 1 is not marked yet, as the pages say" in say("feedback", name)[1]
    status, told = say("export", name)
    assert status == 2 and "--leave-unmarked" in told
    for question in ("why_slower", "and_then"):
        assert say("points", name, "ada", f"prose.{question}", "--points", "1")[0] == 0
    assert say("export", name)[0] == 0 and "2 of 2" in say("status", name)[1]
    assert say("report", name)[0] == 0
