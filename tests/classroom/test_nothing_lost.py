"""What came in counts: long outputs, slow calls, equal answers, many cells, a second export."""

import errno
import json
import os
import sqlite3
import sys
import zipfile
from pathlib import Path

import pytest
from processes import finished
from test_kept_questions import Here

from lightspeed_class.class_folder import write_whole
from lightspeed_class.grading.batch import grade_all
from lightspeed_class.grading.grade import grade
from lightspeed_class.grading.sandbox import Limits
from lightspeed_class.intake import unpack
from lightspeed_class.intake.collect import collect
from lightspeed_class.intake.unpack import items
from lightspeed_class.notebooks import (
    LARGEST,
    MOST_CELLS,
    Assignment,
    Refused,
    code_cells,
    stripped,
)
from lightspeed_class.regrade_requests import requests_in
from lightspeed_cli.classroom.collect import alike, say_collected
from lightspeed_cli.main import main

WORD, CLAIM = "roofline.what_shortens_it", "roofline.claim_more_users"
ASSIGNMENT = Assignment("own", {"w": ((WORD, "answer"),), "c": ((CLAIM, "answer"),)}, {})


def notebook(*cells, outputs=()):
    shown = {"metadata": {}, "outputs": list(outputs), "execution_count": None}
    code = [{"cell_type": "code", "id": id, "source": source} | shown for id, source in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def right(id):
    from lightspeed_course.practice.questions import question

    return f"answer = {question(id).variant().right!r}"


def packed(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_long_printed_output_is_no_bomb(tmp_path, monkeypatch):
    line = {"output_type": "stream", "name": "stdout", "text": "step 1 of 1000000\n" * 400_000}
    long = notebook(("w", "answer = 1"), outputs=[line])
    assert 7 << 20 < len(long) < 16 << 20
    found, left = items(
        packed(tmp_path / "a.zip", {"ada/x.ipynb": long, "b/y.ipynb": b" " * len(long)})
    )
    assert found[0].read() == long and not left
    with pytest.raises(Refused, match="hundreds of times"):
        found[1].read()
    monkeypatch.setattr(unpack, "MOST_DENSE", 2 * len(long))
    many = {f"{n}.ipynb": long for n in range(4)}
    found, left = items(packed(tmp_path / "b.zip", many))
    assert (len(found), len(left)) == (2, 2) and "hundreds of times" in left[0]


def test_two_equal_answers_in_a_row_are_two(sandboxed):
    found = {}
    for second in ("answer = 'bandwidth'", "pass", "1 / 0\nanswer = 'bandwidth'",
                   "def f():\n    answer = 'bandwidth'"):  # fmt: skip
        graded = grade(notebook(("w", "answer = 'bandwidth'"), ("c", second)), ASSIGNMENT)
        found[second] = graded.scores[1].kind != "unanswered"
    assert list(found.values()) == [True, False, False, False]


@pytest.mark.slow
@pytest.mark.holds("docs/teach.md", "costs its own cell")
def test_a_call_that_cannot_be_stopped_costs_its_own_cell(sandboxed):
    """Two of them: the answer between them counts, and the one after them."""
    slow = ("a", "sum(range(10**13))"), ("w", right(WORD)), ("b", "max(range(10**13))")
    graded = grade(notebook(*slow, ("c", right(CLAIM))), ASSIGNMENT, limits=Limits(wall=4, cell=1))
    assert (graded.status, graded.points) == ("time", 2.0)
    assert [note[:32] for note in graded.notes[-2:]] == [
        f"Code cell {n} ran longer than it may"[:32] for n in (1, 3)
    ]
    assert not any("TimeoutError" in note for note in graded.notes), "which stood in its place"


def test_cells_beyond_the_limit_are_named(sandboxed):
    many = [("w", right(WORD)), *((f"x{n}", "1") for n in range(MOST_CELLS + 6))]
    graded = grade(notebook(*many), ASSIGNMENT)
    assert graded.points == 1 and graded.notes == ("Of 2,007 cells only the first 2,000 were run.",)


def test_an_environment_behind_a_link_grades(sandboxed, tmp_path):
    if sys.prefix == sys.base_prefix:
        pytest.skip("this interpreter has no environment of its own")
    link = tmp_path / "environment"
    link.symlink_to(sys.prefix)
    code = (
        "from test_nothing_lost import *\n"
        "print(grade(notebook(('w', right(WORD))), ASSIGNMENT).points)"
    )
    environment = os.environ | {
        "PYTHONPATH": f"{Path(__file__).parent}:{Path(__file__).parents[1]}"
    }
    done = finished([link / "bin/python", "-c", code], env=environment, timeout=100)
    assert done.stdout == "1.0\n", done.stderr


def test_a_full_disk_names_the_gradebook(course, capsys, monkeypatch):
    def fails(*_, **__):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(type(course), "book", fails)
    monkeypatch.chdir(course.root)
    assert main(["class", "status"]) == 2
    assert "gradebook.sqlite cannot be used: disk I/O error" in capsys.readouterr().err


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(tmp_path / "points.csv", b"1")
    assert caught.value.filename == str(tmp_path / "points.csv") and not list(tmp_path.iterdir())


def test_what_is_too_large_to_read_is_kept_too(course, tmp_path):
    large = b'{"cells": [' + b" " * LARGEST
    with course.book() as book:
        for student in ("ada", "bob"):
            book.add_student(student, student.title())
        book.add_assignment(ASSIGNMENT)
        for student in ("ada", "nobody"):
            file = tmp_path / "in" / student / "own.ipynb"
            file.parent.mkdir(parents=True)
            file.write_bytes(large)
        zipped = packed(tmp_path / "b.zip", {"bob/own.ipynb": large})
        done = collect(course, book, "own", [tmp_path / "in", zipped])
    assert {row.verdict for row in done.rows} == {"refused"}
    notes = {row.file: row.note for row in done.rows}
    for place, source in (("students/ada", "in: ada/own.ipynb"),
                          ("unknown", "in: nobody/own.ipynb"),
                          ("received", "b.zip: bob/own.ipynb")):  # fmt: skip
        (kept,) = (course.collected("own") / place).iterdir()
        assert "larger than" in notes[source] and place in notes[source]
        assert kept.suffix == ".zip" or kept.read_bytes() == large


def test_large_outputs_are_left_out_and_the_work_stays(tmp_path):
    picture = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"image/png": "A" * (5 << 20)},
    }
    small = {"output_type": "stream", "name": "stdout", "text": "small\n"}
    cells = [(f"c{n}", f"answer = {n}") for n in range(5)]
    large = notebook(*cells, outputs=[small, picture])
    assert len(large) > LARGEST
    for path in (tmp_path / "x.ipynb", packed(tmp_path / "a.zip", {"x.ipynb": large})):
        if path.suffix == ".ipynb":
            path.write_bytes(large)
        ((item,), left) = items(path)
        content = item.read()
        shown = [c["outputs"] for c in json.loads(content)["cells"]]
        assert not left and code_cells(content) == cells
        assert all(o[0] == small and "an output of 5 MB" in o[1]["text"] for o in shown)
    with pytest.raises(Refused, match="larger than 16 MiB"):
        stripped(notebook(("w", "#" * (LARGEST + 1))))


def test_an_archive_whose_comment_holds_an_end_is_read_and_overlaps_are_one_line(
    tmp_path, course, capsys
):
    path = packed(tmp_path / "a.zip", {"ada/x.ipynb": notebook(("w", "answer = 1"))})
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"PK\x05\x06" + b"\0" * 18
    ((item,), left) = items(path)
    assert item.read() == notebook(("w", "answer = 1")) and not left
    bomb = packed(tmp_path / "b.zip", {f"s{n}/x.ipynb": b"{}" for n in range(500)})
    content = bytearray(bomb.read_bytes())
    at = content.index(b"PK\x01\x02")
    while at >= 0:  # all of them begin where the first one does
        content[at + 42 : at + 46] = bytes(4)
        at = content.find(b"PK\x01\x02", at + 4)
    bomb.write_bytes(content)
    found, left = items(bomb)
    assert len(left) == 500 and not found
    assert list(alike([f"b.zip: {line}" for line in left]).values()) == [
        [f"s{n}/x.ipynb" for n in range(500)]
    ]
    with course.book() as book:
        book.add_student("ada", "Ada")
        book.add_assignment(ASSIGNMENT, seeded=False)
        say_collected(course, book, collect(course, book, "own", [bomb]))
    out = capsys.readouterr().out
    assert "s0/x.ipynb and 499 more" in out and len(out.splitlines()) == 2


def test_a_file_that_a_power_cut_left_empty_is_written_again(tmp_path, course):
    path = packed(tmp_path / "a.zip", {"ada/x.ipynb": notebook(("w", "answer = 1"))})
    with course.book() as book:
        book.add_student("ada", "Ada")
        book.add_assignment(ASSIGNMENT, seeded=False)
        collect(course, book, "own", [path])
        kept = [p for p in course.collected("own").rglob("*") if p.is_file()]
        before = {p: p.read_bytes() for p in kept}
        for p in kept:
            p.write_bytes(b"")
        collect(course, book, "own", [path])
    assert len(before) == 2 and {p: p.read_bytes() for p in kept} == before


def test_a_whole_hand_in_is_no_request_whatever_it_says_of_itself():
    content = json.loads(notebook(("w", "answer = 1")))
    content["metadata"] = {"lightspeed": {"regrade": True}}
    assert requests_in(json.dumps(content).encode(), ASSIGNMENT) is None
    content["cells"] = [{"cell_type": "markdown", "id": "regrade", "source": f"- `{WORD}`: it is"}]
    assert requests_in(json.dumps(content).encode(), ASSIGNMENT) == {WORD: "it is"}


def test_a_cell_that_stops_says_where_and_why(sandboxed):
    def told(source):
        (note,) = grade(notebook(("w", source)), ASSIGNMENT).notes
        return note.removeprefix("Code cell 1 stopped with ")

    assert told("x = 1\n1 / 0") == "ZeroDivisionError in line 2: division by zero"
    assert told("def f():\n    return missing\n\nf()") == (
        "NameError in line 4: name 'missing' is not defined"
    )
    assert told("a = 1 +").endswith("in line 1: invalid syntax")
    wild = told("raise ValueError('\\x1b[31m <b>' + 'x' * 5000 + chr(8238))")
    assert wild.startswith("ValueError in line 1: [31m <b>xxx") and len(wild) < 300


def test_a_class_that_cannot_be_written_and_a_terminal_of_ascii(course, tmp_path, sandboxed):
    with course.book() as book:
        book.add_student("ada", "Ädä Lovelace 王", seed="k1")
        book.add_assignment(ASSIGNMENT, seeded=False)
    lightspeed = [sys.executable, "-m", "lightspeed_cli", "class"]
    plain = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = finished([*lightspeed, "status", "--class", course.root], env=plain)
    assert done.returncode == 0 and "Traceback" not in done.stderr and "Lovelace" in done.stdout
    shut = ["bwrap", "--bind", "/", "/", "--ro-bind", course.root, course.root, "--dev", "/dev"]
    done = finished([*shut, *lightspeed, "collect", "own", tmp_path, "--class", course.root])
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "cannot be written" in done.stderr and str(course.root) in done.stderr


def test_files_beside_the_notebook_come_along_and_its_folder_is_importable(
    tmp_path, course, sandboxed
):
    source = (
        "import helper, pack.more\nfrom pathlib import Path\n"
        "assert Path('data.csv').read_text() == 'a,b' and not Path('theirs.csv').exists()\n"
        "answer = helper.WORD + pack.more.REST"
    )
    word = right(WORD).removeprefix("answer = ").strip("'")
    files = {
        "data.csv": "a,b", "helper.py": f"WORD = {word[:3]!r}",
        "pack/more.py": f"REST = {word[3:]!r}", "numpy.txt": "x",
    }  # fmt: skip
    with course.book() as book:
        for student in ("ada", "bob"):
            book.add_student(student, student.title())
        book.add_assignment(ASSIGNMENT, seeded=False)
        inside = {f"in/ada/{name}": content for name, content in files.items()}
        inside |= {"in/ada/x.ipynb": notebook(("w", source)), "in/bob/theirs.csv": "no"}
        inside |= {"in/bob/y.ipynb": notebook(("w", "import helper"))}
        collect(course, book, "own", [packed(tmp_path / "a.zip", inside)])
        submissions = {s.student: s for s in book.submissions("own")}
        assert book.beside(submissions["ada"].id).keys() == files.keys()
        grade_all(book, "own", submit=Here())
        results = {r.student.id: r for r in book.results("own")}
    assert results["ada"].scores[WORD].kind == "right", results["ada"].grading.graded.notes
    assert "No module named 'helper'" in results["bob"].grading.graded.notes[0]
