"""After collecting: times that become known, choices that stand, a slip taken back."""

import os
import sqlite3
import time
from pathlib import Path

import pytest
from test_collect import NAME, archive, fill, folder, kept, notebook, taker

from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.gradebook.schema import MIGRATIONS
from lightspeed_class.intake.collect import collect
from lightspeed_class.intake.kept_files import put_aside
from lightspeed_class.intake.origins import remarks
from lightspeed_class.lateness import late
from lightspeed_class.reports.results import outcomes

DUE = time.mktime((2026, 6, 10, 14, 0, 0, 0, 0, -1))
MOODLE = "{}_assignsubmission_file_/{}"
ADA, BOB = "Ada King Lovelace_7101", "Bob Ross_7102"


@pytest.fixture
def book(course):
    with course.book() as book:
        fill(book)
        book.setting(f"due {NAME}", str(DUE))
        yield book


@pytest.fixture
def take(course, book, tmp_path):
    return taker(course, book, tmp_path)


@pytest.fixture
def say(say, course, book, monkeypatch):
    """Verbs in this class."""
    monkeypatch.chdir(course.root)
    (course.root / "class.toml").write_text("")
    return say


def worksheet(path, minutes=15):
    path.write_text(
        "Identifier,Full name,Email address,Status,Grade,Last modified (submission)\n"
        'Participant 7101,Ada,ada.l@example.org,Submitted,,"Wednesday, 10 June 2026,'
        f' 2:{minutes:02} PM"\n'
        'Participant 7102,Bob Ross,,Submitted,,"Tuesday, 9 June 2026, 2:14 PM"\n'
    )
    return path


def moodle(path, **more):
    return archive(
        path,
        [
            (MOODLE.format(ADA, "x.ipynb"), notebook(1)),
            (MOODLE.format(BOB, "x.ipynb"), notebook(2)),
            *more.items(),
        ],
        (2026, 6, 12, 9, 0, 0),
    )


def of(book, student):
    (found,) = book.submissions(NAME, student)
    return found


# Times


def test_a_worksheet_that_comes_later_gives_the_times(take, course, book, tmp_path):
    path, sheet = moodle(tmp_path / "a.zip"), worksheet(tmp_path / "Grades.csv")
    first = take(path)
    assert {r.verdict for r in first.rows} == {"new"} and first.untimed and first.timed == 0
    assert {s.id for s in book.submissions(NAME) if late(s.source, s.at, DUE)} == set()
    done = collect(course, book, NAME, [path, sheet])
    assert done.counts == {"same": 2} and done.timed == 2 and not done.untimed
    assert {r.student: r.note for r in done.rows} == {
        "ada": "By the worksheet it was handed in late.",
        "bob": "",
    }
    assert of(book, "ada").at == DUE + 900 and late(of(book, "ada").source, of(book, "ada").at, DUE)
    assert {o.result.student.id: o.late for o in outcomes(book, NAME) if o.late} == {
        "ada": "15 min late"
    }
    before = book.submissions(NAME)
    # the first that is known stays
    for paths in ([path, sheet], [path], [path, worksheet(tmp_path / "Later.csv", 55)]):
        again = collect(course, book, NAME, paths)
        assert again.counts == {"same": 2}
        assert (again.timed, again.untimed) == (0, False)
        assert book.submissions(NAME) == before
    with (
        sqlite3.connect(book.path) as file,
        pytest.raises(sqlite3.IntegrityError, match="only added"),
    ):
        file.execute("UPDATE times SET at = 0")


def test_the_worksheet_is_asked_for_only_where_a_time_is_missing(say, tmp_path):
    path, sheet = (
        moodle(tmp_path / "a.zip", **{MOODLE.format(BOB, "data.csv"): b"1,2"}),
        worksheet(tmp_path / "Grades.csv"),
    )
    assert "give it again with its grading worksheet" in say("collect", NAME, path)[1]
    assert "give it again with its grading worksheet" in say("collect", NAME, path)[1]
    status, out = say("collect", NAME, path, sheet)
    assert status == 0
    assert "grading worksheet" not in out
    assert "The worksheet told when 2 submissions that were there already came in." in out
    assert (
        "grading worksheet" not in (out := say("collect", NAME, path)[1])
        and "The worksheet told" not in out
    )


def test_two_files_with_one_time_are_not_called_older_than_each_other(course, book, tmp_path):
    path = moodle(tmp_path / "a.zip", **{MOODLE.format(ADA, "x (1).ipynb"): notebook(3)})
    for paths in ([path], [path, worksheet(tmp_path / "Grades.csv", 0)], [path]):
        done = collect(course, book, NAME, paths)
        assert [r.note for r in done.rows] == [""] * 3
    assert book.content(book.counting(NAME)["ada"].id) == notebook(3)


def test_a_time_from_elsewhere_is_not_replaced(take, course, book, tmp_path):
    take({"ada/x.ipynb": notebook(1)}, at=DUE - 5, under="mail")
    done = collect(
        course, book, NAME, [moodle(tmp_path / "a.zip"), worksheet(tmp_path / "Grades.csv")]
    )
    assert done.timed == 0 and of(book, "ada").at == DUE - 5


def test_a_gradebook_of_the_first_schema_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("lightspeed_class.gradebook.file.MIGRATIONS", MIGRATIONS[:1])
    with Gradebook(tmp_path / "book") as book:
        fill(book)
    with sqlite3.connect(tmp_path / "book") as file:
        for id in (1, 2):
            file.execute(
                "INSERT INTO submissions VALUES (?, 'ada', ?, ?, 'x', ?, '', NULL)",
                (id, NAME, id, id),
            )
        file.execute("INSERT INTO chosen (submission, at) VALUES (1, 0)")
    monkeypatch.undo()
    with Gradebook(tmp_path / "book") as book:
        assert book.counting(NAME)["ada"].id == 1
        book.set_time(1, 5.0, "known")
        assert [(s.id, s.at, s.source) for s in book.submissions(NAME)] == [
            (2, 2.0, "x"),
            (1, 5.0, "known"),
        ]


# Which one counts


def test_after_a_choice_a_later_one_says_that_it_does_not_count(take, book):
    def hand_in(mark, at, student="ada"):
        (row,) = take({f"{student}/x.ipynb": notebook(mark)}, at=at, under=str(at)).rows
        return row

    hand_in(1, 1000)
    hand_in(2, 2000)
    book.choose(1)
    row = hand_in(3, 3000)
    assert (
        row.note
        == "Submission 1 was chosen and goes on counting; to let this one count: lightspeed class"
        f" choose {NAME} ada 3"
    )
    assert hand_in(2, 4000).note == "It was handed in before; submission 1 was chosen and counts."
    assert "submission 1 was chosen" in hand_in(3, 5000).note and hand_in(1, 6000).note == ""
    hand_in(4, 7000, "bob")
    hand_in(5, 500)
    book.choose(5)
    assert hand_in(1, 8000).note == "It was handed in before; submission 5 was chosen and counts."


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (notebook(2)[:-40], "not valid JSON"),
        (b'{"cells": 1}', "no list of cells"),
        (b"\xff", "not a text in UTF-8"),
    ],
)
def test_one_that_cannot_be_read_never_counts_over_one_that_can(take, book, content, words):
    take({"ada/x.ipynb": notebook(1), "bob/x.ipynb": content}, at=1000, under="1")
    for _ in range(2):
        done = take({"ada/x.ipynb": content}, at=2000, under="2")
    assert done.counts == {"same": 1}
    assert book.content(book.counting(NAME)["ada"].id) == notebook(1)
    refused = book.submissions(NAME, "ada")[1]
    assert words in refused.refused and book.content(refused.id) == content
    assert words in book.counting(NAME)["bob"].refused
    assert book.content(book.counting(NAME)["bob"].id) == content
    later = take({"ada/x.ipynb": content + b" "}, at=3000, under="3")
    assert [r.verdict for r in later.rows] == ["refused"]
    assert later.rows[0].note.endswith("Another of theirs, which can be read, counts.")


def test_two_of_one_name_and_for_whom_it_was_made(take):
    (row,) = take([("ngdan_9999_1_x.ipynb", notebook(1, "dan2"))]).rows
    assert row.verdict == "unknown"
    assert "It could be from dan or dan2. It was made for dan2." in row.note


@pytest.mark.parametrize("way", ["folder", "zip", "canvas", "moodle"])
def test_the_last_act_counts(course, book, tmp_path, way):
    """A, then B by mistake, then A again."""
    name = {"canvas": "lovelaceadaking_1041_100_x.ipynb", "moodle": MOODLE.format(ADA, "x.ipynb")}
    for turn, mark in enumerate((1, 2, 1, 2, 1)):
        at, files = 1000.0 * turn, {name.get(way, "ada/x.ipynb"): notebook(mark)}
        if way == "folder":
            path = folder(tmp_path / str(turn), files, at)
        else:
            # Moodle's archive has the time of the first upload; the others' that of the download
            day = (2026, 6, 12 + (turn if way != "moodle" else mark), 9, 0, 0)
            path = archive(tmp_path / f"{turn}.zip", [*files.items(), ("n.txt", b"%d" % turn)], day)
            later = DUE + 1e6 + at
            os.utime(path, (later, later))
        for _ in range(2):  # the same once more changes nothing
            collect(course, book, NAME, [path])
            assert book.content(book.counting(NAME)["ada"].id) == notebook(mark), turn
    assert len(book.submissions(NAME)) == 2
    first = tmp_path / ("1" if way == "folder" else "1.zip")
    collect(course, book, NAME, [first])
    assert book.content(book.counting(NAME)["ada"].id) == notebook(1), "an old download again"


# Taking a slip back


def test_what_was_given_to_the_wrong_one_can_be_taken_back(say, course, book, tmp_path):
    path = folder(tmp_path / "in", {"x.ipynb": notebook(1)}, DUE - 60) / "x.ipynb"
    say("collect", NAME, path)
    assert put_aside(course, book, NAME)
    say("collect", NAME, path, "--as", "ada")
    status, out = say("choose", NAME, "ada", "--none")
    assert status == 0
    assert "None of these of ada counts; what comes after them does." in out
    assert "  out     " in out
    assert book.counting(NAME) == {} and remarks(book, NAME) == {}
    assert "1 from nobody known" in "".join(
        put_aside(course, book, NAME)
        or [say("collect", NAME, path)[1], *put_aside(course, book, NAME)]
    )
    (file,) = (course.collected(NAME) / "students/ada").iterdir()
    assert os.stat(file).st_mtime == DUE - 60
    status, out = say("collect", NAME, file, "--as", "bob")
    assert status == 0 and "same bytes" not in out and "1 new" in out
    assert {s: c.at for s, c in book.counting(NAME).items()} == {"bob": DUE - 60}
    assert remarks(book, NAME) == {}
    assert put_aside(course, book, NAME) == [] and len(book.submissions(NAME)) == 2
    assert "nothing from" in (out := say("status", NAME)[1]) and "ada (Ada King Lovelace)" in out


def test_none_is_of_what_is_there_and_a_choice_takes_it_back(say, course, book, tmp_path):
    say(
        "collect",
        NAME,
        folder(tmp_path / "1", {"ada/x.ipynb": notebook(1), "ada/y.ipynb": notebook(2)}, 1000),
    )
    say("choose", NAME, "ada", 1)
    say("choose", NAME, "ada", "--none")
    _, out = say("collect", NAME, folder(tmp_path / "2", {"ada/x.ipynb": notebook(2)}, 3000))
    assert (
        f"It was taken out of counting; to let it count: lightspeed class choose {NAME} ada 2"
        in out
    )
    assert "ada" not in book.counting(NAME)
    say("collect", NAME, folder(tmp_path / "3", {"ada/z.pdf": b"%PDF"}, 3500))
    assert book.counting(NAME)["ada"].refused
    say("collect", NAME, folder(tmp_path / "4", {"ada/x.ipynb": notebook(3)}, 500))
    assert book.content(book.counting(NAME)["ada"].id) == notebook(3)
    _, out = say("choose", NAME, "ada", 1)
    assert out.splitlines()[1].split()[3] == "counts" and book.counting(NAME)["ada"].id == 1
    status, out = say("choose", NAME, "ada", 1, "--none")
    assert status == 2 and "not both" in out
    assert say("choose", NAME, "bob", "--none") == (0, f"bob handed in nothing for {NAME}.\n")


# What it says


def test_whose_the_files_are_that_no_score_is_for(say, tmp_path):
    files = {f"ada/data{n:02}.csv": b"%d" % n for n in range(14)}
    _, out = say("collect", NAME, folder(tmp_path / "in", {"ada/x.ipynb": notebook(1), **files}))
    assert "beside: 14 files that no score is for" in out
    assert "    ada: in: ada/data00.csv: It is a file .csv, not a notebook" in out
    assert "ada/data11.csv" in out
    assert "ada/data12.csv" not in out
    assert "and 2 more in collected/" in out


def test_nothing_to_collect_says_why_and_fails(say, tmp_path):
    (tmp_path / "torn.zip").write_bytes(
        archive(tmp_path / "a.zip", [("ada/x.ipynb", notebook(1))]).read_bytes()[:90]
    )
    (tmp_path / "empty").mkdir()
    sheet = worksheet(tmp_path / "Grades.csv")
    for path, words in (
        (tmp_path / "torn.zip", "not a zip archive, or only a part of one"),
        (tmp_path / "empty", "There are no files in it"),
        (sheet, "a worksheet alone. Give the archive with it"),
    ):
        status, out = say("collect", NAME, path)
        assert status == 1
        assert f"{NAME}: nothing to collect.\n  left out: {path}: " in out
        assert words in out
    status, out = say("collect", NAME, tmp_path / "torn.zip", tmp_path / "a.zip")
    assert status == 1 and "1 new." in out and "torn.zip" in out
    status, out = say("collect", NAME, tmp_path / "empty", tmp_path / "a.zip")
    assert status == 0 and "no files in it" in out


def test_the_same_unknown_file_from_two_platforms_is_listed_once(say, course, book, tmp_path):
    path = archive(
        tmp_path / "a.zip",
        [
            ("strangerzed_9999_1_x.ipynb", notebook(1)),
            (MOODLE.format("Zed Stranger_7", "x.ipynb"), notebook(1)),
        ],
    )
    say("collect", NAME, path)
    first, line = put_aside(course, book, NAME)
    assert first.startswith("1 from nobody known")
    assert ", the same as " in line
    assert line.count("Stranger") + line.count("stranger") == 2
    assert len(kept(course)[notebook(1)]) == 1


def test_an_export_writes_over_nothing(say, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("my notes")
    status, out = say("export", NAME, "--into", mine)
    assert status == 2
    assert f"{mine} exists; choose another name, or delete it" in out
    assert mine.read_text() == "my notes"
    assert say("export", NAME, "--into", tmp_path / "new.csv")[0] == 0


def test_an_export_that_was_stopped_before_it_wrote_can_be_run_again(say, tmp_path, monkeypatch):
    """It has said what it is to write, and what an earlier one wrote is still there."""
    points = tmp_path / "points.csv"
    assert say("export", NAME, "--into", points)[0] == 0
    earlier = points.read_bytes()

    def stopped(path, content):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("lightspeed_class.class_folder.write_whole", stopped)
        status, out = say("export", NAME, "--into", points, "--missing-as-zero")
    assert status == 2 and f"{points}: No space left" in out and points.read_bytes() == earlier
    assert say("export", NAME, "--into", points, "--missing-as-zero")[0] == 0
    assert points.read_bytes() != earlier
    points.write_bytes(b"mine now")
    assert say("export", NAME, "--into", points)[0] == 2


@pytest.mark.parametrize("verb", ["new", "sample"])
def test_a_class_that_is_there_is_left_as_it_is(say, course, verb):
    (course.root / "roster.csv").write_text("id,name\neve,Eve\n")
    before = {
        p: p.read_bytes() for p in course.root.iterdir() if p.suffix in (".csv", ".toml", ".sqlite")
    }
    status, out = say(verb, ".")
    assert (status, out) == (0, f"{Path.cwd()} is already a class, and was left unchanged.\n")
    assert {
        p: p.read_bytes() for p in course.root.iterdir() if p.suffix in (".csv", ".toml", ".sqlite")
    } == before
