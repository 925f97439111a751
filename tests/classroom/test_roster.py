"""The roster: what plain files, Canvas and Moodle write, and every mistake named with its line."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed_class.class_folder import ClassError
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.roster import add_roster, read_roster

PLAIN = "id,name,email\nada,Ada Lovelace,ada@example.org\nbob,Bob Ross,bob.r@example.org\n"
# As instructure/canvas-lms lib/gradebook_exporter.rb writes it, with its two rows that are no
# students, and its test student.
CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Roofline (4711),Current Score
,,,,,Manual Posting,
    Points Possible,,,,,20.00,(read only)
"Lovelace, Ada",1041,U001,ada,CS-1,18.00,90.00
"Ross, Bob",1042,U002,bob,CS-2,,
"Student, Test",1099,,7d3f0b1b8d1f7f0b1b8d1f7f0b1b8d1f7f0b1b8d,CS-1,,
"""
# As moodle/moodle grade/export/txt writes it.
MOODLE = """\
"First name","Last name","ID number",Institution,Department,"Email address","Assignment: Roofline (Real)","Last downloaded from this course"
Ada,Lovelace,U001,,,ada@example.org,18.00,1760000000
Bob,Ross,,,,bob.r@example.org,-,1760000000
"""
WORKSHEET = (
    "Identifier,Full name,Email address,Status\nParticipant 7001,Ada Lovelace,ada@example.org,No"
    " submission\n"
)


@pytest.fixture
def book(tmp_path):
    with Gradebook(tmp_path / "gradebook.sqlite") as book:
        yield book


@pytest.fixture
def file(tmp_path):
    def write(content, name="roster.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return write


def who(book):
    return {s.id: (s.name, s.details) for s in book.students()}


def test_a_plain_file(book, file):
    assert add_roster(book, file(PLAIN)).added == ("ada", "bob")
    assert who(book)["ada"] == ("Ada Lovelace", {"email": "ada@example.org"})


def test_canvas(book, file):
    done = add_roster(book, file(CANVAS))
    assert done.added == ("U001", "U002") and len(done.skipped) == 3
    assert who(book)["U001"] == (
        "Ada Lovelace",
        {"canvas_id": "1041", "sis_user_id": "U001", "sis_login_id": "ada", "section": "CS-1"},
    )
    two = (
        CANVAS.replace("Student,ID", "LastName,FirstName,ID")
        .replace('"Lovelace, Ada"', "Lovelace,Ada")
        .replace('"Ross, Bob"', "Ross,Bob")
    )
    two = (
        two.replace(",,,,,Manual", ",,,,,,Manual")
        .replace("Possible,,", "Possible,,,")
        .replace('"Student, Test"', "Student,Test")
    )
    assert set(add_roster(book, file(two)).same) == {"U001", "U002"}


def test_moodle(book, file):
    assert add_roster(book, file(MOODLE)).added == ("U001", "bob.r@example.org")
    assert who(book)["U001"] == (
        "Ada Lovelace",
        {"moodle_idnumber": "U001", "email": "ada@example.org"},
    )


def test_another_platform_adds_to_the_same_students(book, file):
    add_roster(book, file(PLAIN))
    seeds = {s.id: s.seed for s in book.students()}
    assert add_roster(book, file(CANVAS)).updated == ("ada", "bob")
    assert add_roster(book, file(WORKSHEET)).updated == ("ada",)
    assert add_roster(book, file(WORKSHEET.replace("7001", "7002"))).updated == ("ada",)
    ada = who(book)["ada"][1]
    assert (ada["email"], ada["canvas_id"], ada["participant"]) == (
        "ada@example.org",
        "1041",
        "7001 7002",
    )
    assert {s.id: s.seed for s in book.students()} == seeds and len(set(seeds.values())) == 2


def test_more_students_later_change_nobody(book, file):
    add_roster(book, file(PLAIN))
    before = book.students()
    done = add_roster(book, file("id,name\ncy,Cy Twombly\n"))
    assert done.added == ("cy",) and done.elsewhere == ("ada", "bob")
    assert [s for s in book.students() if s.id != "cy"] == before


@pytest.mark.parametrize("encoded", [
    codecs.BOM_UTF8 + PLAIN.encode(), PLAIN.encode("utf-16"), PLAIN.replace(",", ";").encode(),
    PLAIN.replace(",", "\t").encode(),
    PLAIN.replace("\n", "\r\n").encode(), b"\r\n" + PLAIN.encode() + b"\r\n,,\r\n",
    PLAIN.replace("id,", " ID ,").encode(),
])  # fmt: skip
def test_what_spreadsheets_make_of_it(book, file, encoded):
    assert add_roster(book, file(encoded)).added == ("ada", "bob")
    assert who(book)["bob"] == ("Bob Ross", {"email": "bob.r@example.org"})


@pytest.mark.parametrize(("text", "line", "words"), [
    (PLAIN + "ADA,Another,x@example.org\n", 4,
        "Another has ada, and so has Ada Lovelace in line 2. Only one student can"),
    (PLAIN + "cy,Cy,ADA@example.org\n", 4,
        "Cy has ada@example.org, and so has Ada Lovelace in line 2"),
    ("id,name,email\nolga,Olga,OLA@x.org\nola,Mary-Jane O'Brien,ola@x.org\n", 3,
        "Mary-Jane O'Brien has ola@x.org, and so has Olga in line 2"),
    ("id,name,canvas_id\na,A,7\nb,B,7\n", 3, "B has the Canvas ID 7, and so has A"),
    ("id,name,email\nada,Ada Lovelace,\nzed,Zed,ada@example.org\n", 3,
        "ada is the same student as in line 2"),
    (PLAIN + ",Nobody,nobody@example.org\n", 4, "Nobody has no id"),
    (PLAIN + ",Nobody,\n", 4, "Nobody has no id"),
    (PLAIN.replace("bob,", "../bob,"), 3, "cannot be an id"),
    (PLAIN.replace("bob,", "b\u202eob,"), 3, "cannot be an id"),
    (PLAIN.replace("Bob Ross", "Bob \u202eRoss"), 3, "cannot be seen"),
    (PLAIN.replace("Bob Ross", "Ross, Bob"), 3, "without quotation marks"),
    (PLAIN.replace("Bob Ross", '"Bob Ross'), 3, "Is a quotation mark missing"),
    (PLAIN.replace("Bob", "B\udcffb").encode("utf-8", "surrogateescape"), 3, "not UTF-8"),
    ("name,grade\nAda,1\n", 1, "no headings of a roster"),
    ("id,name,Name\nada,Ada,Ada\n", 1, "two columns"),
    ("", 1, "no headings"),
])  # fmt: skip
def test_a_mistake_names_its_line_and_changes_nothing(book, file, text, line, words):
    add_roster(book, file("id,name,email\nada,Ada Lovelace,ada@example.org\n", "old.csv"))
    before = who(book)
    with pytest.raises(ClassError, match=f"line {line}: ") as error:
        add_roster(book, file(text))
    assert words in str(error.value) and "\n" not in str(error.value)
    assert who(book) == before


def test_a_file_without_ids_says_what_stands_for_them(book, file, capsys):
    path = file("Matrikelnummer;Name;E-Mail;seed\n4711;Jürgen Ü;j@x.org;1\n4712;Ada;ada@x.org;2\n")
    assert add_roster(book, path).added == ("j@x.org", "ada@x.org")
    said = capsys.readouterr().err
    assert (
        f"{path}: there is no column id, so the ids are what stands under E-Mail, and kept as a"
        " detail is Matrikelnummer. They stay so" in said
    )
    assert "into a new class: lightspeed class new DIR" in said and said.count("\n") == 1
    add_roster(book, path)
    assert capsys.readouterr().err == ""  # nobody gets an id from it this time
    assert who(book)["j@x.org"] == ("Jürgen Ü", {"email": "j@x.org", "matrikelnummer": "4711"})
    add_roster(book, file("id,name\n4711,Ü Jürgen\n"))
    assert "line 2: 4711 is new and called as j@x.org is." in capsys.readouterr().err


@pytest.mark.parametrize("text", [PLAIN, CANVAS, MOODLE, WORKSHEET])
def test_a_file_as_it_should_be_leaves_nothing_to_say(book, file, capsys, text):
    add_roster(book, file(text))
    add_roster(book, file(text))
    assert capsys.readouterr().err == ""


def test_names_that_are_missing_or_others_are_told(book, file, capsys):
    add_roster(book, file(PLAIN))
    add_roster(
        book,
        file("id,name,email\ncy,,cy@example.org\nbobby,Bobby Tables,bob.r@example.org\nada,,\n"),
    )
    said = capsys.readouterr().err
    assert "line 2: cy has no name." in said
    assert "line 3: bob was Bob Ross before, and is Bobby Tables now." in said
    assert said.count("\n") == 2


@pytest.mark.holds("docs/teach.md", "takes a student out and loses nothing")
def test_who_has_left_keeps_everything(book, file):
    add_roster(book, file(PLAIN))
    seed = book.student("bob").seed
    assert add_roster(
        book, file("id,name,left\nbob,Bob Ross,yes\nada,Ada Lovelace,\n")
    ).updated == ("bob",)
    assert who(book)["bob"][1] == {"email": "bob.r@example.org", "left": "yes"}
    assert book.student("bob").seed == seed
    add_roster(book, file("id,name,left\nbob,Bob Ross,No\n"))
    assert not book.student("bob").details["left"]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"PK\x03\x04...", "a spreadsheet, not CSV"), (b"id,name\n", "no students")],
)
def test_a_file_that_is_no_roster(file, content, words):
    with pytest.raises(ClassError, match=words):
        read_roster(file(content))


def test_one_row_cannot_be_two_students(book, file):
    add_roster(book, file(PLAIN))
    with pytest.raises(ClassError, match=r"line 2: Ada has identifiers of two students: ada, bob"):
        add_roster(book, file("id,name,email\nada,Ada,bob.r@example.org\n"))


@given(st.binary(max_size=300))
def test_any_bytes_give_students_or_one_line(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "roster.csv"
    path.write_bytes(content)
    try:
        entries, _, _ = read_roster(path)
        assert entries and all(e.id for e in entries)
    except ClassError as error:
        assert "\n" not in str(error).replace(str(path), "")


def test_what_may_be_one_person_or_two_is_asked(book, file, capsys):
    def told(text):
        add_roster(book, file(text))
        return capsys.readouterr().err

    assert told("id,name,canvas_id\n007,Ada,1041\nbob,Bob Ross,1042\n") == ""
    err = told("id,name,canvas_id\n007,Ada,1041\nbob,Bob Ross,77\n")
    assert "line 3: bob had the number 1042 on Canvas, and has 77 now" in err
    assert "line 2: 7 is new beside 007" in told("id,name\n7,Ada L\n")
    err = told("id,name\nb1,Kim Li\nb2,Kim Li\n")
    assert "line 2: b1 is new and called as b2 is" in err and "b2 is new and called as b1" in err
