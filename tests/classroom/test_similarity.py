"""Alike code is a hint: a renamed copy is seen, common code is not, no mark knows of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scored import assignment_of, graded, right
from test_marking_desk import NAME, Browser, code, desk, notebook  # noqa: F401

from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.intake.similarity import FEWEST, alike, statements
from lightspeed_class.reports.class_report import statistics
from lightspeed_class.sample_class import make_sample
from lightspeed_course.workspace import course_root

RIDGE = "roofline.ridge"
ORIGINAL = """\
sizes = [2 ** k for k in range(4, 12)]
best = {}
for size in sizes:
    moved = 2 * (size * 4096 + 4096 * 16384 + size * 16384)
    work = 2 * size * 4096 * 16384
    best[size] = min(work / peak, moved / bandwidth)
fastest = max(best, key=lambda size: size / best[size])
answer = work / moved * (fastest > 64)
"""
COPY = """\
# all my own work
N=[ 3**j for j in range( 1,9 ) ]
out={}
for n in N:
        b = 1*( n*512 + 512*2048 + n*2048 )

        w = 1*n*512*2048
        out[n]=min( w/peak,b/bandwidth )  # the slower
f=max(out, key=lambda m: m/out[m])
answer=w/b*(f>8)
"""
OTHERS = (
    "def intensity(batch):\n    flops = 2 * batch * 8 * 8\n    return flops / (2 * batch * 16 + 2 * 64)\n"
    "answer = intensity(4)",
    "total = sum(2 * b * 4096 for b in range(3))\nanswer = accelerator('h100').bf16 / total",
    "answer = 295",
)


@pytest.fixture
def book(tmp_path):
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(assignment_of(RIDGE), seeded=False)
        for student, source in zip("abcde", (ORIGINAL, COPY, *OTHERS), strict=True):
            hand_in(book, student, source)
        yield book


def hand_in(book, student, source, at=1.0):
    book.add_student(student, student.upper(), email=f"{student}@x.org")
    given = "from lightspeed.roofline import *\npeak, bandwidth = accelerator('x').bf16, 3.35e12"
    content = notebook(code(given), code(source, "cell0"))
    id = book.add_submission(student, NAME, content, at, "mail")
    book.add_grading(id, "key", graded({RIDGE: right(RIDGE)}))


@pytest.mark.holds("docs/teach.md", "whatever their names and numbers", "no mark rests on it")
def test_a_copy_with_other_names_is_a_hint_and_no_more(book):
    before = [r.points for r in book.results(NAME)]
    found = alike(book, NAME)
    assert found.keys() == {"a", "b"} and "as those of b but for names" in found["a"]
    assert int(found["a"].split()[0]) >= FEWEST
    looked = {row[0]: row[2] for row in statistics(book, NAME)["look"]}
    assert looked == found
    assert [r.points for r in book.results(NAME)] == before == [1.0] * 5


def test_what_a_third_has_too_or_a_group_shares_is_none(book):
    book.add_student("a", "A", email="a@x.org", group="one")
    book.add_student("b", "B", email="b@x.org", group="one")
    assert alike(book, NAME) == {}  # one notebook of two
    book.setting("alone", f'["{NAME}"]')
    assert alike(book, NAME).keys() == {"a", "b"}
    hand_in(book, "f", ORIGINAL.replace("size", "s"))
    assert alike(book, NAME) == {}  # from a lecture, or a friend of many: nobody can tell


def test_the_desk_shows_it(book, desk):  # noqa: F811
    eve, _ = desk
    assert "as those of a but" in eve.open("b").text and "Alike" not in eve.open("c").text
    hand_in(book, "b", "answer = 3", at=2.0)  # another notebook counts now
    assert "Alike" not in eve.open("a").text


def test_what_is_no_python_or_hostile_is_passed_over():
    deep = "x = " + "(" * 5000 + ")" * 5000
    for source in (
        "%%bash\nls |",
        deep,
        "x = '\\d'",
        "\0",
        "answer = " + "-" * 30_000 + "1",
        "é = ¿",
    ):
        statements(notebook(code(source)))
    assert statements(None) == statements(b"{") == set()
    assert (
        len(statements(notebook(code("%time y = a * b + c * d\nz = a.b(y, 1) + a.b(y, 2)")))) == 1
    )


@pytest.mark.slow
def test_thirty_students_who_did_not_copy_give_no_hint(tmp_path):
    """The sample class: the same exercise, solved and failed in every way."""
    from lightspeed_class.class_folder import new
    from lightspeed_class.intake.collect import collect
    from lightspeed_class.roster import add_roster
    from lightspeed_class.sample_class import make_roster

    course, path = new(tmp_path / "class"), course_root() / "exercises/02_roofline.ipynb"
    make_roster(course.root / "roster.csv")
    with course.book() as book:
        add_roster(book, course.root / "roster.csv")
        book.add_assignment(course.assignment(path))
        make_sample(tmp_path / "in", path, seeds=lambda id: book.student(id).seed)
        collect(course, book, path.stem, [tmp_path / "in/canvas.zip"])
        assert len(book.counting(path.stem)) >= 28
        assert alike(book, path.stem) == {}


@pytest.mark.install
def test_copydetect_finds_last_years_code_and_not_what_was_given(tmp_path):
    """The kept tool on what `lightspeed class code` writes, as its last line says."""
    from lightspeed_class.class_folder import new

    given = "from lightspeed.roofline import *\npeak, bandwidth = accelerator('x').bf16, 3.35e12"
    for year, students in {"last": (ORIGINAL, OTHERS[0]), "this": (COPY, OTHERS[1])}.items():
        course = new(tmp_path / year)
        with course.book() as book:
            book.add_assignment(assignment_of(RIDGE), seeded=False)
            for student, source in zip("ab", students, strict=True):
                hand_in(book, f"{year}_{student}", source)
        course.released(NAME).mkdir(parents=True)
        (course.released(NAME) / "all.ipynb").write_bytes(notebook(code(given)))
        written = subprocess.run(
            [sys.executable, "-m", "lightspeed_cli", "class", "code", NAME, "--class", course.root],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    command = written.splitlines()[-1].split()
    assert command[:2] == ["uvx", "copydetect"]
    command = [part.replace("LAST", str(tmp_path / "last")) for part in command[2:]]
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [uv, "tool", "run", "copydetect", *command, "-O", tmp_path / "report.html"],
        check=True, cwd=tmp_path, capture_output=True,
    )  # fmt: skip
    report = (tmp_path / "report.html").read_text("utf-8")
    pairs = re.findall(r"(?:Test|Reference) file: <i>\S*/(\w+)\.py</i> \(<b>([\d.]+)%", report)
    assert [name for name, _ in pairs[:2]] == ["this_a", "last_a"]
    # of the two who did not copy, a short one may look like a part of a long one: not both ways
    assert min(float(share) for _, share in pairs[:2]) > 40
    assert all(float(share) < 20 for _, share in pairs[3::2])
