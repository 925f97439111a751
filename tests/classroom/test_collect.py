"""Collecting: nothing lost, nobody's work taken for another's, and archives that cannot do harm."""

import io
import json
import os
import random
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import cases
import pytest
from cases import code
from hypothesis import given, settings
from hypothesis import strategies as st

from lightspeed_class import class_folder as courses
from lightspeed_class.class_folder import ClassError
from lightspeed_class.handout.release import notebook_for
from lightspeed_class.intake import kept_files, unpack
from lightspeed_class.intake.collect import collect
from lightspeed_class.intake.kept_files import put_aside
from lightspeed_class.intake.origins import Origins, remarks, told_student
from lightspeed_class.lateness import late
from lightspeed_class.notebooks import LARGEST, Assignment
from lightspeed_class.reports.feedback import write_feedback

NAME = "02_roofline"
EXERCISE = Path(__file__).parents[2] / "exercises" / f"{NAME}.ipynb"
ROSTER = {
    "ada": (
        "Ada King Lovelace",
        {"email": "ada.l@example.org", "canvas_id": "1041", "sis_user_id": "U001"},
    ),
    "bob": ("Bob Ross", {"email": "bob@example.org", "canvas_id": "1042"}),
    "cy": ("Élodie O'Brien-Dost", {"email": "elodie@example.org", "participant": "7003"}),
    "dan": ("Dan Ng", {}),
    "dan2": ("Dan Ng", {}),
}


@pytest.fixture
def book(course):
    with course.book() as book:
        fill(book)
        yield book


@pytest.fixture
def take(course, book, tmp_path):
    return taker(course, book, tmp_path)


@pytest.fixture
def own(course):
    """A class in which each student was given numbers of their own."""
    with course.book() as book:
        fill(book, Assignment.of(EXERCISE), seeded=True)
        yield book


def fill(book, assignment=None, seeded=False):
    book.add_assignment(
        assignment or Assignment(NAME, {"cell": (("roofline.ridge", "answer"),)}), seeded=seeded
    )
    for id, (name, details) in ROSTER.items():
        book.add_student(id, name, seed=f"seed of {id}", **details)


def notebook(mark, student="", checks="roofline.ridge"):
    about = {"lightspeed": {"assignment": NAME, "student": student}} if student else {}
    cell = code(f'answer = 1  # {mark}\ncheck("{checks}", answer)', "x")
    return cases.notebook([cell], metadata=about)


def archive(path, members, when=(2026, 3, 1, 12, 0, 0)):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members:
            info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name, when)
            made.writestr(info, content, zipfile.ZIP_DEFLATED)
    return path


def folder(path, files, at=1000.0):
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
        os.utime(path / name, (at, at))
    return path


def taker(course, book, place):
    """Collects a path; or a folder with these files, or an archive with these members."""

    def take(source, *who, at=1000.0, under="in"):
        if isinstance(source, dict):
            source = folder(place / under, source, at)
        elif isinstance(source, list):
            source = archive(place / "a.zip", source)
        return collect(course, book, NAME, [source], *who)

    return take


def kept(course):
    """Every file that the class has as it came, by content."""
    found = {}
    for path in course.collected(NAME).rglob("*"):
        if path.is_file() and path.parent.name != "received":
            found.setdefault(path.read_bytes(), set()).add(path.parent.name)
    return found


def verdicts(done):
    return {
        row.file.rpartition("/")[2].rpartition(": ")[2]: (row.student, row.verdict)
        for row in done.rows
    }


def everything(book):
    return [(s.student, s.at, s.source, s.sha256, s.refused) for s in book.submissions(NAME)], {
        s: c.id for s, c in book.counting(NAME).items()
    }


# Whose it is


@pytest.mark.parametrize(("name", "student"), [
    ("lovelaceadaking_1041_88001_02_roofline.ipynb", "ada"),
    ("x_LATE_1041_88001_02_roofline-1.ipynb", "ada"),  # by the number, whatever she is called there
    ("rossbob_1042_88001_ada.ipynb", "bob"),  # the rest of the name is the student's
    # the roster does not know the number, but the name
    ("obriendostélodie_9999_88001_02_roofline.ipynb", "cy"),
    ("obriendoste\u0301lodie_9999_88001_a_1_2_b.ipynb", "cy"),
    ("rossbob_9999_88001_ada.ipynb", None),  # a namesake: his number is another
    ("ngdan_9999_88001_x.ipynb", None),  # two of this name
    ("strangerzed_9999_88001_ada.ipynb", None),
    ("anon_aB3dE_88001_ada.ipynb", None),
    ("LATE_anon_aB3dE_88001_ada.ipynb", None),
    ("Ada King Lovelace_7001_assignsubmission_file_/whatever.ipynb", "ada"),
    ("Ada King Lovelace_7001_assignsubmission_file/sub/bob.ipynb", "ada"),
    ("Lovelace Ada King_7001_assignsubmission_file_bob.ipynb", "ada"),
    # the worksheet knew the participant
    ("Somebody Else_7003_assignsubmission_file_/x.ipynb", "cy"),
    ("Élodie OBrien-Dost_7009_assignsubmission_file_/x.ipynb", "cy"),
    ("Zed Stranger_7009_assignsubmission_file_/ada.ipynb", None),
    ("Participant_7009_assignsubmission_file_/ada.ipynb", None),
    ("ada/02_roofline.ipynb", "ada"),
    ("week 2/ada.l@example.org/work/bob.ipynb", "ada"),
    ("ADA.L/02_roofline.ipynb", "ada"),
    ("u001/x.ipynb", "ada"),
    ("Ada King Lovelace.ipynb", "ada"),
    ("bob_02_roofline.ipynb", "bob"),
    ("02_roofline-bob.ipynb", "bob"),
    ("02_roofline (bob) (2).ipynb", "bob"),
    ("bob-1.ipynb", "bob"),
    ("02_roofline.ipynb", None),
    ("Dan Ng.ipynb", None),
    ("dan2/x.ipynb", "dan2"),
])  # fmt: skip
def test_whose_it_is(take, course, name, student):
    done = take([(name, notebook(name))])
    assert [(r.student, r.verdict in ("new", "late")) for r in done.rows] == [
        (student or "", student is not None)
    ]
    assert kept(course) == {notebook(name): {student or "unknown"}}


def test_the_same_names_in_a_folder(take, course, book, tmp_path):
    files = {
        "rossbob_1042_88001_x.ipynb": notebook(1),
        "Ada King Lovelace_7001_assignsubmission_file_/x.ipynb": notebook(2),
        "cy/x.ipynb": notebook(3),
    }
    take(files)
    assert kept(course) == {notebook(1): {"bob"}, notebook(2): {"ada"}, notebook(3): {"cy"}}
    take(folder(tmp_path / "dan", {"x.ipynb": notebook(4)}) / "x.ipynb")
    assert book.counting(NAME)["dan"].source == "dan/x.ipynb"


def test_a_name_that_canvas_wrote_without_saying_that_it_is_utf8(take, tmp_path):
    path = archive(tmp_path / "a.zip", [("obriendostélodie_9999_88001_x.ipynb", notebook(1))])
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset + 1] &= ~0x08  # the flag for UTF-8
    path.write_bytes(content)
    assert (
        "Ã©" in zipfile.ZipFile(path).namelist()[0] or "├⌐" in zipfile.ZipFile(path).namelist()[0]
    )
    assert [r.student for r in take(path).rows] == ["cy"]


def test_the_id_in_the_notebook_is_a_last_resort(take):
    done = take([("anon_aB3dE_88001_x.ipynb", notebook(1, "ada"))])
    assert [(r.student, r.verdict) for r in done.rows] == [("ada", "new")]
    assert "anybody could have written" in done.rows[0].note
    done = take({"x.ipynb": notebook(2, "bob"), "y.ipynb": notebook(3, "nobody")}, under="b")
    assert verdicts(done) == {
        "x.ipynb (by the id in it)": ("bob", "new"),
        "y.ipynb": ("", "unknown"),
    }


def test_the_platform_goes_before_the_notebook_and_says_so(take, book):
    members = [
        ("rossbob_1042_1_x.ipynb", notebook(1, "ada")),
        ("zedx_999_2_x.ipynb", notebook(2, "ada")),
        ("x.ipynb", notebook(3, "bob")),
    ]
    done = take(members)
    assert verdicts(done) == {
        "rossbob_1042_1_x.ipynb": ("bob", "new"),
        "zedx_999_2_x.ipynb": ("", "unknown"),
        "x.ipynb": ("", "unknown"),
    }
    assert "Was it copied?" in next(r.note for r in done.rows if r.student == "bob")
    assert book.counting(NAME).keys() == {"bob"}


def test_an_id_in_a_notebook_does_not_get_in_the_way_of_the_student(take, course, book, tmp_path):
    by_id = folder(
        tmp_path / "1", {"x.ipynb": notebook(1, "ada"), "y.ipynb": notebook(2, "bob")}, 1000
    )
    collect(course, book, NAME, [by_id / "x.ipynb", by_id / "y.ipynb"])
    again = folder(tmp_path / "2", {"x.ipynb": notebook(3, "ada")}, 2000)
    # there was no other way before either
    assert [r.verdict for r in take(again).rows] == ["new"]
    take(folder(tmp_path / "ada", {"z.ipynb": notebook(4)}, 1500) / "z.ipynb")
    take({"z.ipynb": notebook(5)}, "bob", at=1500, under="3")
    forged = folder(
        tmp_path / "4", {"x.ipynb": notebook(6, "ada"), "y.ipynb": notebook(7, "bob")}, 3000
    )
    done = take(forged)
    assert done.counts == {"unknown": 2} and "has others in already" in done.rows[0].note


def test_the_same_bytes_from_two(take, book):
    done = take({"ada/x.ipynb": notebook(1), "bob/x.ipynb": notebook(1)})
    assert [r.note for r in done.rows] == ["", "The same bytes came from ada."]
    assert len(book.submissions(NAME)) == 2


# Unknown, and then somebody's


@pytest.mark.holds("docs/teach.md", "Files that match nobody")
def test_what_is_unknown_is_kept_until_it_is_somebodys(take, course, book, tmp_path):
    path = archive(
        tmp_path / "a.zip",
        [("strangerzed_9999_1_x.ipynb", notebook(1)), ("sub/report.pdf", b"%PDF")],
    )
    done = take(path)
    assert done.counts == {"unknown": 2} and not book.submissions(NAME)
    aside = sorted((course.collected(NAME) / "unknown").iterdir())
    assert len(aside) == 2 and all(str(f) in "".join(r.note for r in done.rows) for f in aside)
    mine = next(f for f in aside if f.suffix == ".ipynb")
    assert verdicts(take(mine, "BOB@example.org")) == {mine.name: ("bob", "new")}
    assert book.content(book.counting(NAME)["bob"].id) == notebook(1)
    assert kept(course)[notebook(1)] == {"bob"}
    before = everything(book), kept(course)
    assert take(path).counts == {"same": 1, "unknown": 1}
    assert (everything(book), kept(course)) == before


def test_what_was_put_aside_is_settled_by_its_bytes_under_any_name(
    take, course, book, tmp_path, monkeypatch
):
    files = folder(
        tmp_path / "inbox", {"one/x.ipynb": notebook(1), "two/it is (2).ipynb": notebook(2)}
    )
    take(files)
    monkeypatch.chdir(course.root)
    first, *lines = put_aside(course, book, NAME)
    assert first.startswith("2 from nobody known")
    assert f"collect {NAME} FILE --as STUDENT" in first
    assert "delete it" in first
    listed = [shlex.split(line) for line in lines]  # as a shell reads them
    assert sorted(listed) == sorted([str(f)] for f in Path("collected", NAME, "unknown").iterdir())
    take(files / "one" / "x.ipynb", "bob")
    take([("ada/other name.ipynb", notebook(2))])
    assert put_aside(course, book, NAME) == []
    assert kept(course) == {notebook(1): {"bob"}, notebook(2): {"ada"}}
    again = take(files)
    assert again.counts == {"same": 2}
    assert "bob handed in the very same file, so nothing changes." in " ".join(
        r.note for r in again.rows
    )
    assert put_aside(course, book, NAME) == []


def test_many_that_are_nobodys_are_not_all_listed(take, course, book):
    take({f"{n}.ipynb": notebook(n) for n in range(20)})
    lines = put_aside(course, book, NAME)
    assert len(lines) == 14 and lines[-1].startswith("  and 8 more in ")


def test_the_roster_grows_and_the_unknown_are_found(take, course, book, tmp_path):
    path = archive(tmp_path / "a.zip", [("strangerzed_9999_1_x.ipynb", notebook(1))])
    take(path)
    book.add_student("zed", "Zed Stranger", canvas_id="9999")
    assert [(r.student, r.verdict) for r in take(path).rows] == [("zed", "new")]
    assert kept(course) == {notebook(1): {"zed"}}


@pytest.mark.parametrize(
    ("who", "words"), [("nobody", "is not on the roster"), ("Dan Ng", "could be dan or dan2")]
)
def test_as_somebody_who_is_not_one_person(take, who, words):
    with pytest.raises(ClassError, match=words):
        take({"x.ipynb": notebook(1)}, who)


def test_another_assignments_notebook_is_put_aside(take, course, book, tmp_path):
    wrong = notebook(1, checks="numbers.dram_over_fma")
    done = take({"ada/x.ipynb": wrong, "bob/x.ipynb": b"torn {"})
    assert {(r.student, r.verdict) for r in done.rows} == {("ada", "foreign"), ("bob", "refused")}
    assert next(r.note for r in done.rows if r.student == "ada").startswith(
        f"It answers numbers.dram_over_fma, not {NAME}. It is kept as "
    )
    assert kept(course)[wrong] == {"foreign"} and "ada" not in book.counting(NAME)
    assert done.failed  # and so the exit status says that not all was taken in
    assert [line.partition(";")[0] for line in put_aside(course, book, NAME)[:1]] == [
        "1 for another assignment"
    ]
    book.add_assignment(
        Assignment("01_numbers", {"cell": (("numbers.dram_over_fma", "answer"),)}), seeded=False
    )
    # a slip of the instructor's changes nothing
    (row,) = take(tmp_path / "in" / "ada", "bob").rows
    assert (row.student, row.verdict) == ("bob", "foreign")
    assert "numbers.dram_over_fma of 01_numbers" in row.note
    assert [
        r.verdict
        for r in collect(course, book, "01_numbers", [tmp_path / "in" / "ada"], "ada").rows
    ] == ["new"]
    assert put_aside(course, book, NAME) == []


def test_what_a_killed_run_left_half_written_is_cleared_and_nothing_else(take, course):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    own = course.collected(NAME) / "students" / "ada"
    own.mkdir(parents=True)
    here = {
        "left": own / f".{dead.pid}.unfinished",
        "at work": own / f".{os.getppid()}.unfinished",
        "a student's": own / "0123456789ab-my.unfinished",
        "no number": own / ".draft.unfinished",
    }
    for path in here.values():
        path.write_bytes(b"half")
    done = take({"ada/x.ipynb": notebook(1)})
    assert [row.verdict for row in done.rows] == ["new"] and not done.failed
    assert [name for name, path in here.items() if not path.exists()] == ["left"]


# A notebook that is not the student's own


def without_metadata(content):
    return json.dumps(json.loads(content) | {"metadata": {}}).encode()


def without_ids(content):
    whole = json.loads(content)
    for cell in whole["cells"]:
        del cell["id"]
    return json.dumps(whole).encode()


OWN, BOBS = (notebook_for(EXERCISE, f"seed of {id}", id) for id in ("ada", "bob"))


@pytest.mark.parametrize(("content", "words", "told"), [
    (OWN, "", False),
    (without_metadata(without_ids(OWN)), "", False),
    (OWN.replace(b'\\"seed of ada\\"', b"'seed of ada'"), "", False),
    (EXERCISE.read_bytes(), "It sets no seed: its first code cell is gone, or it is not the notebook released to ada but, say, the course's own", True),
    (OWN.replace(b"seed of ada", b"easier"), "its seed was changed", True),
    (BOBS, "It was made for bob, but ada handed it in. Was it copied?", True),
    (without_metadata(BOBS), "It was made for bob, but ada handed it in.", True),
])  # fmt: skip
def test_a_notebook_that_was_not_released_to_the_student(
    course, own, tmp_path, content, words, told
):
    book = own
    (row,) = collect(course, book, NAME, [folder(tmp_path / "in", {"ada/x.ipynb": content})]).rows
    assert (row.student, row.verdict) == ("ada", "new")
    assert words in row.note
    assert bool(row.note) == bool(words)
    assert remarks(book, NAME) == ({"ada": [row.note]} if words else {})
    assert (
        "it was judged with your numbers"
        in told_student(book, book.counting(NAME)["ada"], Origins(book, NAME))
    ) == told
    (page,) = write_feedback(book, NAME, tmp_path / "pages", "ada")
    assert ("it was judged with your numbers" in page.read_text("utf-8")) == told


def test_where_all_have_the_same_numbers_the_courses_own_is_as_good(take, book):
    book.add_assignment(Assignment.of(EXERCISE), seeded=False)
    (row,) = take({"ada/x.ipynb": EXERCISE.read_bytes()}).rows
    assert row.note == ""
    assert remarks(book, NAME) == {}
    assert told_student(book, book.counting(NAME)["ada"], Origins(book, NAME)) == ""


def test_a_doubtful_notebook_in_place_of_a_sound_one_is_told_with_the_way_back(
    course, own, tmp_path
):
    book = own
    for at, content in ((1000, OWN), (2000, EXERCISE.read_bytes())):
        (row,) = collect(
            course, book, NAME, [folder(tmp_path / str(at), {"ada/x.ipynb": content}, at)]
        ).rows
        assert (f"to let that one count: lightspeed class choose {NAME} ada" in row.note) == (
            at > 1000
        )
    assert row.verdict == "new"
    assert book.content(book.counting(NAME)["ada"].id) == EXERCISE.read_bytes()


def test_what_is_told_of_a_submission_besides(take, book):
    take(
        {
            "ada/x.ipynb": notebook(1),
            "bob/x.ipynb": notebook(1),
            "x.ipynb": notebook(2, "cy"),
            "dan/x.pdf": b"%PDF",
        }
    )
    assert remarks(book, NAME) == {
        "ada": ["The same bytes came from bob."], "bob": ["The same bytes came from ada."],
        "cy": ["Found by the id in the notebook alone, which anybody could have written there."],
    }  # fmt: skip


# Late, again, and in any order


def test_late_by_the_time_of_the_file_and_by_the_mark_of_canvas(take, book):
    book.setting(f"due {NAME}", str(time.mktime((2026, 3, 1, 0, 0, 0, 0, 0, -1))))
    members = [
        ("rossbob_LATE_1042_1_x.ipynb", notebook(1)),
        ("lovelaceadaking_1041_1_x.ipynb", notebook(2)),
        ("dan2/x.ipynb", notebook(3)),
    ]
    members += [("Élodie OBrien-Dost_7009_assignsubmission_file_/x.ipynb", notebook(4))]
    done = take(members)
    assert {r.student: r.verdict for r in done.rows} == {
        "bob": "late",
        "ada": "new",
        "dan2": "late",
        "cy": "new",
    }
    assert len(book.submissions(NAME)) == 4
    assert late("x/ada_LATE_1_2_x.ipynb", 0, None)
    assert not late("ada_1_2_x.ipynb", 9e9, 1.0)
    assert not late("ada/x.ipynb", 1.0, 1.0)


def test_moodles_worksheet_knows_who_and_when(course, book, tmp_path):
    book.setting(f"due {NAME}", str(time.mktime((2026, 6, 10, 12, 0, 0, 0, 0, -1))))
    sheet = tmp_path / "Grades.csv"
    sheet.write_text(
        "Identifier,Full name,Email address,Status,Grade,Last modified (submission)\nParticipant"
        ' 7101,Ada,ada.l@example.org,Submitted,,"Wednesday, 10 June 2026, 2:14 PM"\nParticipant'
        ' 7102,Bob Ross,,Submitted,,"Tuesday, June 9, 2026, 2:14 PM"\nParticipant 7103,Dan Ng,,No'
        " submission,,-\n"
    )
    members = [
        (f"Participant_{n}_assignsubmission_file_/x.ipynb", notebook(n)) for n in (7101, 7102, 7103)
    ]
    done = collect(course, book, NAME, [sheet, archive(tmp_path / "a.zip", members)])
    assert {(r.student, r.verdict) for r in done.rows} == {
        ("ada", "late"),
        ("bob", "new"),
        ("", "unknown"),
    }
    assert book.counting(NAME)["bob"].at == time.mktime((2026, 6, 9, 14, 14, 0, 0, 0, -1))


def test_a_later_one_counts_and_an_older_one_does_not(take, book, tmp_path):
    second = folder(tmp_path / "2", {"ada/x.ipynb": notebook(2)}, 2000)
    first = folder(tmp_path / "1", {"ada/x.ipynb": notebook(1)}, 1000)
    assert [r.verdict for p in (second, first, second) for r in take(p).rows] == [
        "new",
        "older",
        "same",
    ]
    third = folder(tmp_path / "3", {"ada/x.ipynb": notebook(1)}, 3000)
    (row,) = take(third).rows
    assert row.verdict == "same" and "handed in again after submission 1, and counts" in row.note
    assert book.content(book.counting(NAME)["ada"].id) == notebook(1)


def test_two_files_of_one_student_count_in_the_order_of_the_platform(take, book):
    members = [(f"lovelaceadaking_1041_{n}_x.ipynb", notebook(n)) for n in (100, 99, 1000)]
    take(members)
    assert book.content(book.counting(NAME)["ada"].id) == notebook(1000)
    take({"bob/x (1).ipynb": notebook(2), "bob/x.ipynb": notebook(1)})
    assert book.content(book.counting(NAME)["bob"].id) == notebook(2)


FILES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "ada/x.ipynb",
                "bob/x.ipynb",
                "rossbob_1042_5_x.ipynb",
                "x.ipynb",
                "zed_99_9_x.ipynb",
                "ada/notes.pdf",
                "cy/x.zip",
            ]
        ),
        st.integers(0, 4),
        st.integers(1, 3),
    ),
    max_size=12,
)


examples = pytest.mark.parametrize("examples", [20, pytest.param(100, marks=pytest.mark.slow)])


@examples
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_in_whatever_order_and_however_often_nothing_is_lost(examples):
    runs = settings(max_examples=examples, deadline=None)
    runs(given(FILES, st.integers(0, 3), st.randoms(use_true_random=False))(nothing_is_lost))()


def nothing_is_lost(files, cuts, shuffle):
    place = Path(tempfile.mkdtemp())
    try:
        course = courses.new(place / "class")
        parts = [files[i :: cuts + 1] for i in range(cuts + 1)]
        paths = [
            archive(place / f"{n}.zip", [(name, notebook(mark)) for name, mark, _ in part])
            for n, part in enumerate(parts)
        ]
        with course.book() as book:
            fill(book)
            done = collect(course, book, NAME, paths)
            assert len(done.rows) == len(files)
            assert len(done.left) == sum(not part for part in parts)
            assert set(kept(course)) == {notebook(mark) for _, mark, _ in files}
            readable = {
                (s.student, book.content(s.id)) for s in book.submissions(NAME) if not s.refused
            }
            wanted = {
                (name[:3].replace("ros", "bob"), notebook(mark))
                for name, mark, _ in files
                if name[:3] in ("ada", "bob", "ros") and "pdf" not in name
            }
            assert readable == wanted
            before, counted = (everything(book)[0], kept(course)), book.counting(NAME)
            shuffle.shuffle(paths)
            again = collect(course, book, NAME, paths + paths)
            assert set(again.counts) <= {"same", "unknown", "beside"}
            assert (everything(book)[0], kept(course)) == before and book.counting(NAME) == counted
            for student, submission in counted.items():
                assert not submission.refused or student not in {s for s, _ in readable}
    finally:
        shutil.rmtree(place)


def test_a_collection_that_was_killed_is_finished_by_the_next(
    take, course, book, tmp_path, monkeypatch
):
    path = archive(
        tmp_path / "a.zip",
        [(f"{s}/x.ipynb", notebook(s)) for s in ROSTER] + [("who.ipynb", notebook("who"))],
    )
    undisturbed = courses.new(tmp_path / "other")
    with undisturbed.book() as other:
        fill(other)
        collect(undisturbed, other, NAME, [path])
        wanted = everything(other)[0]
    whole, dice = kept_files.write_whole, random.Random(1)

    def dying(*arguments):
        if dice.random() < 0.5:
            raise KeyboardInterrupt
        whole(*arguments)
        if dice.random() < 0.3:
            raise KeyboardInterrupt

    monkeypatch.setattr(kept_files, "write_whole", dying)
    stopped = 0
    while True:
        try:
            take(path)
            break
        except KeyboardInterrupt:
            stopped += 1
    assert stopped > 3 and everything(book)[0] == wanted and len(kept(course)) == 6
    assert len(list((course.collected(NAME) / "received").iterdir())) == 1


# What is no notebook, and what is dangerous


def test_a_file_that_is_no_notebook_is_told_to_its_student(take, course, book, tmp_path):
    files = {
        "ada/essay.pdf": b"%PDF",
        "bob/x.ipynb": notebook(1),
        "bob/essay.docx": b"doc",
        "cy/essay": b"?",
    }
    done = take(files, at=9999)
    assert {(r.student, r.verdict) for r in done.rows} == {
        ("ada", "refused"),
        ("bob", "new"),
        ("bob", "beside"),
        ("cy", "refused"),
    }
    counting = book.counting(NAME)
    assert counting["ada"].refused == "It is a file .pdf, not a notebook (.ipynb)."
    assert not counting["bob"].refused
    assert kept(course) == {content: {name[:3].rstrip("/")} for name, content in files.items()}
    later = folder(tmp_path / "later", {"ada/x.ipynb": notebook(2)}, 10000)
    assert [r.verdict for r in take(later).rows] == ["new"]
    assert not book.counting(NAME)["ada"].refused


def link(name, target="/etc/passwd"):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, target.encode()


def nested():
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as inner:
        inner.writestr("x.ipynb", notebook(1))
    return memory.getvalue()


@pytest.mark.parametrize(("member", "verdict", "words"), [
    (("../../bob/x.ipynb", b"1"), "left", "leads out of the archive"),
    (("ada/../../x.ipynb", b"1"), "left", "leads out of the archive"),
    (("..\\..\\x.ipynb", b"1"), "left", "leads out of the archive"),
    (("/etc/cron.d/x.ipynb", b"1"), "left", "absolute"),
    (("C:\\x.ipynb", b"1"), "left", "absolute"),
    (link("ada/x.ipynb"), "left", "a link"),
    (("ada/x.ipynb", b" " * (4 << 20)), "refused", "hundreds of times"),
    (("ada/x.ipynb", random.Random(0).randbytes(1 << 20) * 17), "refused", "larger than 16 MiB"),
    (("ada/x.zip", nested()), "refused", "zip archive inside another"),
    (("ada/x.ipynb", nested()), "refused", "not a text in UTF-8"),
])  # fmt: skip
def test_a_dangerous_archive_does_no_harm_and_the_rest_goes_on(
    take, course, book, tmp_path, member, verdict, words
):
    before = {p for p in tmp_path.rglob("*") if course.root not in p.parents}
    path = archive(tmp_path / "a.zip", [member, ("bob/x.ipynb", notebook(1))])
    done = take(path)
    told = [(r.verdict, r.note) for r in done.rows if r.student != "bob"] + [
        ("left", reason) for reason in done.left
    ]
    assert len(told) == 1 and told[0][0] == verdict and words in told[0][1]
    assert ("bob", "new") in {(r.student, r.verdict) for r in done.rows}
    assert "bob" in book.counting(NAME)
    assert {p for p in tmp_path.rglob("*") if course.root not in p.parents} - before == {path}
    assert sorted(p.name[13:] for p in (course.collected(NAME) / "received").iterdir()) == ["a.zip"]


def test_an_encrypted_and_a_damaged_file_in_an_archive(take, book, tmp_path):
    path = archive(
        tmp_path / "a.zip",
        [("ada/x.ipynb", notebook(1)), ("bob/x.ipynb", notebook(2)), ("cy/x.ipynb", notebook(3))],
    )
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # the flag for encrypted, of the first
    content[content.index(b"bob/x.ipynb") + 20] ^= 0xFF
    path.write_bytes(content)
    done = take(path)
    notes = {r.student: r.note for r in done.rows}
    assert "encrypted" in notes["ada"] and "damaged" in notes["bob"] and notes["cy"] == ""
    assert [s.refused != "" for s in book.submissions(NAME)] == [False, True, True]


DAMAGE = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=6)


@examples
def test_no_damage_to_an_archive_gets_out_of_it(examples):
    runs = settings(max_examples=examples, deadline=None)
    runs(given(DAMAGE, st.integers(0, 3000))(stays_inside))()


def stays_inside(damage, cut):
    place = Path(tempfile.mkdtemp())
    try:
        path = archive(place / "a.zip", [(f"{s}/x.ipynb", notebook(s)) for s in ROSTER])
        content = bytearray(path.read_bytes())
        for at, byte in damage:
            content[at % len(content)] = byte
        path.write_bytes(content if cut > 100 else content[: len(content) - cut])
        course = courses.new(place / "class")
        with course.book() as book:
            fill(book)
            done = collect(course, book, NAME, [path])
            assert done.rows or done.left
            assert (
                all(
                    book.content(s.id) == notebook(s.student)
                    for s in book.submissions(NAME)
                    if not s.refused
                )
                or damage
            )
        assert {p.name for p in place.iterdir()} == {"a.zip", "class"}
    finally:
        shutil.rmtree(place)


def test_an_archive_packed_in_another_way(take, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as made:
        made.writestr("ada/x.ipynb", notebook(1))
    assert "packed in a way" in take(path).rows[0].note


def test_an_archive_that_lies_about_sizes(take, tmp_path):
    path = archive(tmp_path / "a.zip", [("ada/x.ipynb", b" " * (LARGEST + 9000))])
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = (1000).to_bytes(4, "little")
    path.write_bytes(content)
    assert [(r.student, r.verdict) for r in take(path).rows] == [("ada", "refused")]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "not a zip"), (b"PK\x03\x04" + b"x" * 100, "not a zip"), (None, "more than 3")],
)
def test_an_archive_that_is_none_or_has_too_much(
    course, book, tmp_path, monkeypatch, content, words
):
    monkeypatch.setattr(unpack, "MOST_FILES", 3)
    many = archive(tmp_path / "a.zip", [(f"ada/{n}.ipynb", b"{}") for n in range(4)])
    if content is not None:
        many.write_bytes(content)
    (tmp_path / "in").mkdir()
    done = collect(
        course, book, NAME, [many, folder(tmp_path / "in", {"bob/x.ipynb": notebook(1)})]
    )
    assert len(done.left) == 1 and words in done.left[0] and len(done.rows) == 1


def test_all_of_an_archive_has_a_limit_too(take, tmp_path, monkeypatch):
    monkeypatch.setattr(unpack, "MOST_BYTES", 3000)
    path = archive(tmp_path / "a.zip", [(f"{s}/x.ipynb", b"1" * 1000) for s in ROSTER])
    done = take(path)
    assert len(done.rows) == 3 and len(done.left) == 2 and "GiB" in done.left[0]


def test_names_that_turn_the_text_around(take, course, tmp_path):
    names = [
        "ada/\u202egnp.02.ipynb",
        "bob/a\x07b\u200f.ipynb",
        "cy/" + "凪" * 300 + ".ipynb",
        "dan2/x.IPYNB",
        "dan/.ipynb",
    ]
    done = take(archive(tmp_path / "\u202ea.zip", [(n, notebook(n)) for n in names]))
    assert {r.student for r in done.rows} == {"ada", "bob", "cy", "dan2", "dan"}
    assert all(r.file.isprintable() for r in done.rows)
    assert len(kept(course)) == 5
    assert all(
        p.name.isprintable() for p in course.collected(NAME).rglob("*") if "received" not in p.parts
    )


def test_two_files_of_the_same_name_in_an_archive(take, book, tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        path = archive(
            tmp_path / "a.zip", [("ada/x.ipynb", notebook(1)), ("ada/x.ipynb", notebook(2))]
        )
    take(path)
    assert {book.content(s.id) for s in book.submissions(NAME)} == {notebook(1), notebook(2)}


def test_what_is_no_file_in_a_folder(take, course, tmp_path):
    files = folder(
        tmp_path / "in",
        {
            "cy/x.ipynb": notebook(1),
            "cy/.ipynb_checkpoints/x.ipynb": notebook(9),
            "__MACOSX/ada/._x.ipynb": b"?",
        },
    )
    for student in ("ada", "bob", "dan"):
        (files / student).mkdir()
    (files / "ada" / "x.ipynb").symlink_to("/etc/passwd")
    (files / "bob" / "all").symlink_to("/etc")
    os.mkfifo(files / "dan" / "x.ipynb")
    done = take(files)
    assert {(r.student, r.verdict) for r in done.rows} == {
        ("cy", "new"),
        ("ada", "refused"),
        ("bob", "refused"),
        ("dan", "refused"),
    }
    assert kept(course) == {notebook(1): {"cy"}}


def test_what_cannot_be_collected_at_all(take, course, book, tmp_path):
    with pytest.raises(ClassError, match="there is no file or folder"):
        take(tmp_path / "nowhere")
    with pytest.raises(ClassError, match="was not released; there are 02_roofline"):
        collect(course, book, "03", [tmp_path])
    (tmp_path / "x.csv").write_text("a,b\n")
    with pytest.raises(ClassError, match="not a Moodle grading worksheet"):
        take(tmp_path / "x.csv")
