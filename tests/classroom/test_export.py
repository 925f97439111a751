"""An export is complete, names its people, and is read by Canvas, Moodle and spreadsheets."""

import csv
import io

import pytest
from scored import assignment_of, graded, right, wrong

from lightspeed_class import class_folder
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.reports.export import KINDS, Incomplete, cell, export_csv, identifier
from lightspeed_class.sample_class import roster

ONE, TWO = (
    assignment_of("roofline.ridge", "roofline.what_shortens_it", name="one"),
    assignment_of("roofline.dot_intensity", name="two"),
)
NAMES = [
    "Ünï Cødé", 'Quote "Q" Quill', "Comma, Family", "Semi; Colon", "凪嶺", "a\nb",
    "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "  =1", "＝1", "'quoted",
]  # fmt: skip


@pytest.fixture
def book(tmp_path):
    """The sample's thirty, some with hard names; the last has handed nothing in."""
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(ONE)
        book.add_assignment(TWO)
        for i, row in enumerate(roster()):
            details = {k: v for k, v in row.items() if k not in ("id", "name")}
            book.add_student(
                row["id"], NAMES[i] if i < len(NAMES) else row["name"], seed="1", **details
            )
            if i < 29:
                id = book.add_submission(row["id"], "one", row["id"].encode(), 1.0)
                book.add_grading(
                    id,
                    "key",
                    graded(
                        {
                            "roofline.ridge": right("roofline.ridge", "1"),
                            "roofline.what_shortens_it": [
                                ...,
                                right("roofline.what_shortens_it", "1"),
                            ][i % 2],
                        },
                        "1",
                    ),
                )
        yield book


def table(path, encoding="utf-8"):
    with open(path, encoding=encoding, newline="") as file:
        return list(csv.reader(file, strict=True))


def export(book, tmp_path, kind, names=("one",), **options):
    return table(
        export_csv(book, list(names), str(tmp_path / f"{kind}.csv"), kind, **options),
        "utf-8-sig" if kind == "plain" else "utf-8",
    )


def test_the_plain_form_loses_nothing(book, tmp_path):
    book.setting("due one", repr(0.5))
    book.set_manual("s002", "one", "roofline.ridge", 0.25, 'Not "quite",\nbut nearly.', "Dr. No")
    book.set_manual("s002", "one", "", -0.5, "late")
    head, *rows = export(book, tmp_path, "plain")
    rows = [dict(zip(head, row, strict=True)) for row in rows]
    assert [r["id"] for r in rows] == [f"s{i:03}" for i in range(1, 31)]
    for row, student in zip(rows, book.students(), strict=True):
        shown = student.name.replace("\n", " ")
        assert row["name"] in (shown, f"'{shown.strip()}", f"'{shown}")
        assert row["email"] == f"{student.id}@example.org"
        assert row["name"].startswith("'") == (
            NAMES.index(student.name) > 5 if student.name in NAMES else False
        )
    first, second, last = rows[0], rows[1], rows[-1]
    assert (
        first["points"],
        first["out of"],
        first["roofline.ridge"],
        first["roofline.what_shortens_it"],
    ) == ("1", "2", "1", "0")
    assert (first["status"], first["late"], first["comments"]) == ("ok", "500 ms late", "")
    assert (second["points"], second["roofline.ridge"], second["added"]) == ("0.75", "0.25", "-0.5")
    assert second["comments"] == '[roofline.ridge] Not "quite", but nearly. (Dr. No) late'
    assert (last["status"], last["points"], last["late"], last["roofline.ridge"]) == (
        "missing",
        "",
        "",
        "",
    )


def test_several_assignments(book, tmp_path):
    id = book.add_submission("s001", "two", b"1", 1.0)
    book.add_grading(
        id, "key", graded({"roofline.dot_intensity": wrong("roofline.dot_intensity", 0, "1")}, "1")
    )
    head, *rows = export(book, tmp_path, "plain", ["one", "two"])
    assert [r[head.index("assignment")] for r in rows] == ["one"] * 30 + ["two"] * 30
    assert rows[30][head.index("roofline.dot_intensity")] == "0"
    assert rows[30][head.index("roofline.ridge")] == ""
    assert [len(r) for r in rows] == [len(head)] * 60
    head, possible, *rows = export(
        book, tmp_path, "canvas", ["one", "two"], titles={"two": "Week 2: dot (77)"}
    )
    assert head[5:] == ["one", "Week 2: dot (77)"]
    assert possible[5:] == ["2", "1"]
    assert rows[0][5:] == ["1", "0"]
    assert rows[1][5:] == ["2", ""]
    head, *rows = export(book, tmp_path, "moodle", ["one", "two"])
    assert head[2:] == ["one", "one (feedback)", "two", "two (feedback)"]
    assert rows[1][4:] == ["-", ""]


def test_what_canvas_asks_for(book, tmp_path):
    """GradebookImporter's checks: row_has_student_headers? to process_student."""
    head, possible, *rows = export(book, tmp_path, "canvas", titles={"one": "Exercises 1 (4711)"})
    assert "Student" in head[0]
    assert "ID" in head[1]
    assert head[2:5] == ["SIS User ID", "SIS Login ID", "Section"]
    assert head[5:] == ["Exercises 1 (4711)"]
    assert "Points Possible" in possible[0]
    assert possible == ["    Points Possible", "", "", "", "", "2"]
    assert len(rows) == 30 and {len(r) for r in rows} == {6}
    students = {s.details["canvas_id"]: s for s in book.students()}
    assert len(students) == 30
    assert all(students[row[1]].details["sis_user_id"] == row[2] for row in rows)
    assert [row[5] for row in rows] == [str(1 + i % 2) for i in range(29)] + [""]
    # It guesses the separator from the first three lines, so a value must not break a line.
    text = (tmp_path / "canvas.csv").read_text("utf-8").splitlines()
    assert len(text) == 32 and not text[0].startswith("\ufeff")


def test_what_moodle_asks_for(book, tmp_path):
    """load_data.php: a row without an identifier is the one's before; "-" is no grade."""
    book.set_manual("s001", "one", "", None, "Come and see me.", "Dr. No")
    head, *rows = export(book, tmp_path, "moodle")
    assert head == ["Email address", "Full name", "one", "one (feedback)"]
    assert [r[0] for r in rows] == [f"s{i:03}@example.org" for i in range(1, 31)]
    assert [r[2] for r in rows] == [str(1 + i % 2) for i in range(29)] + ["-"]
    assert rows[0][3] == "1 of 2 right. Come and see me. (Dr. No)" and rows[-1][3] == ""


@pytest.mark.parametrize(("kind", "needed", "details"), [
    ("canvas", "an ID, SIS User ID or SIS Login ID", {"canvas_id": "4001", "sis_user_id": "U00001"}),
    ("moodle", "an email", {"email": "S001@example.org"}),
])  # fmt: skip
def test_who_could_not_be_found_is_left_out_and_named(
    book, tmp_path, capsys, kind, needed, details
):
    """Without an identifier or with another's, the platform stops or errs."""
    before = len(export(book, tmp_path, kind))
    assert capsys.readouterr().err == ""
    book.add_student("s900", "No Address")
    assert len(export(book, tmp_path, kind)) == before
    said = capsys.readouterr().err
    assert said.startswith(
        f"LEFT OUT, without {needed} of their own: No Address (s900). To add it, read in"
        f" what {kind.title()}"
    )
    assert "lightspeed class roster FILE" in said
    book.add_student("s901", "Twin", **details)  # of s001
    if kind == "canvas":
        book.add_student("s001", "Ünï Cødé", **details)
    rows = export(book, tmp_path, kind)
    assert len(rows) == before - 1
    assert not {"s001", "4001", "U00001", "s001@example.org"} & {
        value for row in rows for value in row[:5]
    }
    assert "Ünï Cødé (s001), No Address (s900), Twin (s901)" in capsys.readouterr().err


@pytest.mark.holds("docs/teach.md", "the identifiers that its own export has")
def test_a_plain_roster_is_told_what_canvas_needs(tmp_path):
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(ONE)
        book.add_student("4711", "Ada", email="ada@example.org")
        with pytest.raises(
            Incomplete,
            match=r"no student has an ID.*Gradebook > Export.*lightspeed class roster FILE",
        ):
            export_csv(book, ["one"], tmp_path / "x.csv", "canvas")
        assert not (tmp_path / "x.csv").exists() and len(export(book, tmp_path, "moodle")) == 2


def test_namesakes_do_not_go_by_their_name(book, tmp_path):
    """Where Canvas does not know the ID, it takes the first student of that name."""
    book.add_student("s031", "Semi; Colon", canvas_id="9031")
    names = [row[0] for row in export(book, tmp_path, "canvas")]
    assert {"Semi; Colon (s004)", "Semi; Colon (s031)"} <= set(names) and "Semi; Colon" not in names


@pytest.mark.parametrize("kind", KINDS)
def test_who_has_left_is_in_the_plain_form_alone_and_only_with_something_to_tell(
    book, tmp_path, kind
):
    before = len(export(book, tmp_path, kind))
    for id in ("s029", "s030"):  # the last one has handed nothing in
        student = book.student(id)
        book.add_student(id, student.name, **student.details, left="yes")
    assert len(export(book, tmp_path, kind)) == before - (1 if kind == "plain" else 2)
    book.set_manual("s030", "one", "", 1.0, "orally")
    assert len(export(book, tmp_path, kind)) == before - (0 if kind == "plain" else 2)


def test_moodle_takes_the_first_identifier_that_all_have(book, tmp_path):
    for student in book.students():
        book.add_student(
            student.id,
            student.name,
            **{**student.details, "email": "same@example.org", "username": student.id},
        )
    head, *rows = export(book, tmp_path, "moodle")
    assert head[0] == "Username" and len({r[0] for r in rows}) == 30


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_handed_in_is_no_zero_unless_told(book, tmp_path, kind):
    nothing = "-" if kind == "moodle" else ""
    book.add_submission("s030", "two", b"waiting", 1.0)
    place = {"plain": 7, "canvas": 5, "moodle": 2}[kind]
    # who waits for a grading is not missing
    for names, plain, zero in ((["one"], nothing, "0"), (["two"], nothing, nothing)):
        assert [
            export(book, tmp_path, kind, names, missing_as_zero=flag)[-1][place]
            for flag in (False, True)
        ] == [plain, zero]


@pytest.mark.parametrize("kind", KINDS)
def test_no_cell_is_a_formula(book, tmp_path, kind):
    book.set_manual("s001", "one", "roofline.ridge", None, "=HYPERLINK(1)", "x")
    book.set_manual("s002", "one", "", None, "=HYPERLINK(1)")
    for row in export(book, tmp_path, kind, titles={"one": "=1+1"}):
        for value in row:
            assert (
                value == "-"
                or value.lstrip()[:1] not in tuple("=+-@\t\r\n＝＋－＠")
                or value.lstrip("+-").replace(".", "").isdigit()
            ), value


@pytest.mark.parametrize(
    "text, shown",
    [("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@x", "'@x"), ("\t=1", "'\t=1"), (" =1", "' =1"), ("＝1", "'＝1"), ("a=1", "a=1"), ("", ""), ("O'Neil", "O'Neil"), ("a\r\nb", "a b"), ("\r=1", "' =1"), ("\0=1", "'=1")],
)  # fmt: skip
def test_guarded_cells(text, shown):
    assert cell(text) == shown


@pytest.mark.parametrize(
    "text, same",
    [
        ("4001", True),
        ("u-1", True),
        ("+4912345", True),
        ("@handle", True),
        ("-7", True),
        ("a+b@example.org", True),
        ("=1", False),
        ("+1-1", False),
        ("@SUM(A1)", False),
        ("-cmd|x", False),
    ],
)
def test_identifiers_still_identify(text, same):
    assert (identifier(text) == text) == same and (same or identifier(text) == f"'{text}")


def test_it_is_whole_or_as_it_was(book, tmp_path, monkeypatch):
    path = export_csv(book, ["one"], tmp_path / "out.csv")
    before = path.read_bytes()
    assert before.startswith(b"\xef\xbb\xbfid,name")
    assert before.endswith(b"\r\n")
    assert csv.Sniffer().sniff(io.StringIO(before.decode("utf-8-sig")).readline()).delimiter == ","

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(class_folder.os, "fsync", full)
    with pytest.raises(OSError):
        export_csv(book, ["one", "two"], path)
    assert path.read_bytes() == before and not list(tmp_path.glob("*.unfinished"))


def test_bad_arguments(book, tmp_path):
    with pytest.raises(KeyError):
        export_csv(book, ["three"], tmp_path / "x.csv")
    with pytest.raises(ValueError, match="plain, canvas, moodle"):
        export_csv(book, ["one"], tmp_path / "x.csv", "excel")
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.holds("docs/teach.md", "to others their share")
def test_points_for_having_answered_right_or_wrong(book, tmp_path):
    head, *rows = export(book, tmp_path, "plain", ["one"])
    at, out_of = head.index("points"), head.index("out of")
    head, *practised = export(book, tmp_path, "plain", ["one"], practised=10)
    kinds = {r.student.id: [s.kind for s in r.scores.values()] for r in book.results("one")}
    assert len(practised) == len(rows) and any("unanswered" in each for each in kinds.values())
    for row in practised:
        mine = kinds[row[0].removeprefix("'")]
        answered = sum(kind not in ("unanswered", "refused") for kind in mine)
        assert row[out_of] == "10"
        assert row[at] == (f"{10 * answered / len(mine):.10g}" if mine else "")
    assert [row[at] for row in practised] != [row[at] for row in rows]
    _, possible, *_ = export(book, tmp_path, "canvas", ["one"], practised=10)
    assert possible[-1] == "10"
