"""Groups and sections: one notebook counts for every member, and for nobody outside."""

import csv
import json
import time
import zipfile

import pytest
from scored import Page, assignment_of, graded, right, wrong
from test_marking_desk import NAME, Browser, code, desk, notebook  # noqa: F401

from lightspeed_class.class_folder import ClassError, ClassFolder, new
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.handout.release import notebook_for
from lightspeed_class.intake.collect import collect
from lightspeed_class.intake.origins import Origins, remarks
from lightspeed_class.marking_desk import cards
from lightspeed_class.reports.class_report import statistics
from lightspeed_class.reports.export import export_csv
from lightspeed_class.reports.feedback import write_feedback
from lightspeed_class.reports.moodle_feedback import write_moodle_zip
from lightspeed_class.roster import add_roster

RIDGE, WORD = "roofline.ridge", "roofline.what_shortens_it"
ASSIGNMENT = assignment_of(RIDGE, WORD)
DAY = 86_400.0
ROSTER = """\
id,name,email,section,group
ada,Ada Byron,ada@x.org,A,Red
bob,Bob Ross,bob@x.org,B, red
cy,Cy Twombly,cy@x.org,A,Blue
dan,Dan Flavin,dan@x.org,A and B,
"""


def hand_in(book, student, at, answer=right, refused=""):
    content = None if refused else notebook(code(f"answer = 1  # {student} {at}", "cell0"))
    id = book.add_submission(student, NAME, content, at, "mail", refused)
    book.add_grading(id, "key", graded({RIDGE: answer(RIDGE), WORD: ...}))
    return id


@pytest.fixture
def book(tmp_path):
    (tmp_path / "roster.csv").write_text(ROSTER)
    with Gradebook(tmp_path / "book") as book:
        add_roster(book, tmp_path / "roster.csv")
        book.add_assignment(ASSIGNMENT, seeded=False)
        yield book


def points(book):
    return {r.student.id: r.points for r in book.results(NAME)}


@pytest.mark.holds("docs/teach.md", "that can be read counts for all")
def test_one_notebook_counts_for_all_and_the_last_of_any_that_can_be_read(book):
    assert book.teams(NAME)["ada"] == ("ada", "bob") and book.teams(NAME)["dan"] == ("dan",)
    first = hand_in(book, "ada", 1.0, wrong)
    assert points(book) == {"ada": 0.0, "bob": 0.0, "cy": None, "dan": None}
    second = hand_in(book, "bob", 2.0)
    hand_in(book, "ada", 3.0, refused="It is a link, not a file.")  # in the way of nothing
    assert points(book)["ada"] == points(book)["bob"] == 1.0
    book.choose(first)
    assert {s: book.counting(NAME)[s].id for s in ("ada", "bob")} == {"ada": first, "bob": first}
    book.choose(second)
    assert points(book)["ada"] == 1.0
    book.choose(second, none=True)  # what bob handed in was another's; ada's goes on
    assert {s: book.counting(NAME)[s].id for s in ("ada", "bob")} == {"ada": first, "bob": first}
    book.setting("alone", json.dumps([NAME]))
    assert "bob" not in book.counting(NAME) and book.teams(NAME)["ada"] == ("ada",)


def test_time_is_each_members_own(book):
    book.setting(f"due {NAME}", repr(DAY))
    hand_in(book, "ada", 2 * DAY)
    book.decide("extended", "bob", NAME, repr(3 * DAY))
    book.decide("excused", "cy", NAME, "yes")
    late = {r.student.id: r.lateness.seconds for r in book.results(NAME) if r.submission}
    assert late == {"ada": DAY, "bob": 0.0}


def test_numbers_are_those_of_whose_copy_it_is(book):
    book.add_assignment(ASSIGNMENT, seeded=True)
    seeds = {s.id: s.seed for s in book.students()}

    def copy_of(seed, whose):
        cells = [code(f'os.environ.update(LIGHTSPEED_SEED="{seed}")')]
        told = {"lightspeed": {"student": whose}}
        return json.dumps({"cells": cells, "metadata": told, "nbformat": 4}).encode()

    origins = Origins(book, NAME)
    adas = copy_of(seeds["ada"], "ada")
    assert origins.seed("bob", adas) == origins.seed("ada", adas) == seeds["ada"]
    assert origins.doubt("bob", adas) == "" and "Was it copied?" in origins.doubt("cy", adas)
    assert origins.seed("cy", adas) == seeds["cy"]  # nobody outside gets other numbers
    neither = copy_of("0", "")
    assert origins.seed("bob", neither) == seeds["bob"]
    assert "changed" in origins.doubt("bob", neither)
    for student in ("ada", "bob", "cy"):
        book.add_submission(student, NAME, adas, 1.0)
    assert remarks(book, NAME).keys() == {"ada", "bob", "cy"}  # cy has it too
    assert "bob" not in " ".join(remarks(book, NAME)["ada"])


def test_pages_exports_and_report(book, tmp_path):
    hand_in(book, "bob", 1.0, wrong)
    hand_in(book, "cy", 1.0, wrong)
    pages = {p.stem: Page(p.read_text()).check() for p in write_feedback(book, NAME, tmp_path)}
    for student in ("ada", "bob"):
        assert "Handed in together: Bob Ross, Ada Byron." in " ".join(pages[student].text.split())
        assert "# bob 1.0" in pages[student].text
    assert "together" not in pages["cy"].text and "Nothing was handed in" in pages["dan"].text
    told = statistics(book, NAME)
    assert (told["students"], told["graded"], told["read"], told["together"]) == (4, 3, 2, 1)
    (ridge,) = [q for q in told["questions"] if q["question"] == RIDGE]
    assert ridge["wrong"] == 2  # two notebooks of three students

    def ids(section):
        path = export_csv(book, [NAME], tmp_path / "x.csv", section=section)
        with open(path, encoding="utf-8-sig", newline="") as file:
            return [(row["id"], row["points"]) for row in csv.DictReader(file)]

    assert ids("B") == [("bob", "0"), ("dan", "")]  # Canvas joins several sections in one text
    assert [id for id, _ in ids("A")] == ["ada", "cy", "dan"]
    assert statistics(book, NAME, "B")["students"] == 2


@pytest.mark.holds("docs/teach.md", "A mark at the desk counts for all")
def test_a_mark_counts_for_all_who_hand_in_together(book, desk):  # noqa: F811
    hand_in(book, "ada", 1.0)
    hand_in(book, "cy", 1.0)
    places = cards.queue(book.results(NAME), ASSIGNMENT, "student")
    assert [(p.student, p.together) for p in places[::2]] == [("ada", ("bob",)), ("cy", ())]
    eve, finn = desk
    assert "Handed in together with" in eve.open("ada", WORD).text
    assert eve.mark(points="0.5", comment="Nearly.") == 303
    assert points(book)["ada"] == points(book)["bob"] == 1.5
    # from a member's own address it is the same card, and undo is of all
    finn.open("bob", WORD)
    assert finn.post("/undo").code == 303
    assert points(book)["ada"] == points(book)["bob"] == 1.0
    # marks of one member alone stay, and say so
    book.set_manual("bob", NAME, WORD, 0.25, "less of the work", "eve")
    assert "Marks of their own" in Page(eve.open("ada", WORD).text).text
    assert eve.mark(points="1") == 303
    assert (points(book)["ada"], points(book)["bob"]) == (2.0, 1.25)
    # who joins later gets the marks when the card is saved again, changed or not
    book.add_student("eli", "Eli", email="eli@x.org", group="RED")
    assert next(p for p in cards.queue(book.results(NAME), ASSIGNMENT, "question")
                if p.question == WORD).state == "to mark"  # fmt: skip
    eve.open("ada", WORD)
    assert eve.mark(points="1") == 303 and points(book)["eli"] == 2.0
    assert [d.value for d in book.decisions("group")] == []


def test_collect_tells_whose_it_is_and_reads_moodles_groups(book, tmp_path, capsys):
    course = new(tmp_path / "class")
    (course.root / "roster.csv").write_text(ROSTER)
    with course.book() as book:
        add_roster(book, course.root / "roster.csv")
        assert "group Red is in the sections A and B" in capsys.readouterr().err
        path = course.root / f"{NAME}.ipynb"
        path.write_bytes(
            json.dumps(
                {"cells": [
                    code(f'answer = ...\ncheck("{RIDGE}", answer)', "cell0") | {"metadata": {}}
                 ],
                 "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
            ).encode()
        )  # fmt: skip
        book.add_assignment(course.assignment(path), seeded=True)
        seed = book.student("ada").seed
        content = notebook_for(path, seed, "ada")
        with zipfile.ZipFile(tmp_path / "moodle.zip", "w") as archive:
            # Red has a number of its own here, which is Cy's among the participants
            for who, number in (("Red", 7), ("Blue-Cy Twombly", 8), ("Blue-Dan Flavin", 9)):
                archive.writestr(f"{who}_{number}_assignsubmission_file_/{NAME}.ipynb", content)
        (tmp_path / "sheet.csv").write_text(
            "Identifier,Full name,Email address,Status,Last modified (submission)\n"
            + "".join(
                f'Participant {n},{who},{mail}@x.org,Submitted,"Monday, 2 March 2026, {n}:00 AM"\n'
                for n, who, mail in ((5, "Bob Ross", "bob"), (7, "Cy Twombly", "cy"))
            )
        )
        done = collect(course, book, NAME, [tmp_path / "moodle.zip", tmp_path / "sheet.csv"])
        rows = {row.file.split(": ")[1].split("_")[0]: row for row in done.rows}
        assert [(rows[w].student, rows[w].verdict) for w in ("Red", "Blue-Cy Twombly")] == [
            ("ada", "new"), ("cy", "new"),
        ]  # fmt: skip
        # Dan is in no group of that name, so this may be another Dan
        assert rows["Blue-Dan Flavin"].student != "dan"
        assert "It counts for bob too." in rows["Red"].note
        assert "Was it copied?" in rows["Blue-Cy Twombly"].note
        assert time.localtime(rows["Red"].at).tm_hour == 5  # Bob's, as it is the group's
        assert book.counting(NAME)["bob"] == book.counting(NAME)["ada"]
        page = tmp_path / "page.html"
        page.write_text("x")
        pages = dict.fromkeys(("ada", "bob", "cy"), page)
        assert write_moodle_zip(book, NAME, pages, tmp_path / "back.zip") == ["ada", "bob"]
        names = zipfile.ZipFile(tmp_path / "back.zip").namelist()
        assert [name.split("_")[1] for name in names] == ["8"]  # never the group's number


def test_verbs_and_slips(tmp_path, say, monkeypatch):
    course = new(tmp_path / "class")
    monkeypatch.chdir(course.root)
    (course.root / "roster.csv").write_text(ROSTER)

    assert say("roster")[0] == 0
    with course.book() as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        first, second = hand_in(book, "ada", 1.0, wrong), hand_in(book, "bob", 2.0)
    assert "section B: 2 students" in say("status", NAME, "--section", "b")[1]
    assert "cy" not in say("status", NAME, "--section", "B")[1]
    told = say("choose", NAME, "ada", str(second))[1].splitlines()
    assert [(line.split()[1], "counts" in line) for line in told] == [("ada", False), ("bob", True)]
    assert say("choose", NAME, "cy", str(first))[0] == 2
    status, told = say("export", NAME, "--section", "C")
    assert status == 2 and "no section C" in told
    assert say("report", NAME, "--section", "B")[0] == 0
    assert (course.root / "reports" / f"{NAME}-B.html").exists()
    (course.root / "roster.csv").write_text(ROSTER.replace("cy@x.org,A,Blue", "cy@x.org,A,Red"))
    say("roster")
    assert "cy: group Red" in say("history")[1]
    for lines, told in (
        ('alone = "x"', "alone must be a list of assignments"),
        ('alone = ["02_rooflin"]', "did you mean 02_roofline?"),
    ):
        (course.root / "class.toml").write_text(lines)
        status, out = say("status")
        assert status == 2 and told in out
    (course.root / "class.toml").write_text(f'alone = ["{NAME}"]')
    assert say("status")[0] == 0
    with ClassFolder.find(course.root).book() as book:
        assert book.teams(NAME)["ada"] == ("ada",)
    with pytest.raises(ClassError):
        (course.root / "class.toml").write_text("alone = [3]")
        ClassFolder.find(course.root)
