"""A class keeps its code as well as its questions: computed answers keep their marks in a term in
which data sheets are corrected, laws renamed and formulas mended.
"""

import csv
import dataclasses
import itertools
import json
import re
import shutil

import pytest
from test_kept_questions import Here

from lightspeed_authoring.solved import solved
from lightspeed_class import kept_library as library
from lightspeed_class.class_folder import ClassError
from lightspeed_class.grading import sandbox
from lightspeed_class.grading.batch import grade_all
from lightspeed_class.handout.release import release, release_to
from lightspeed_class.intake.collect import collect
from lightspeed_class.intake.origins import remarks
from lightspeed_class.kept_questions import KeptQuestions, correct
from lightspeed_class.reports.export import export_csv
from lightspeed_class.reports.feedback import write_feedback
from lightspeed_class.roster import new_seed, next_seed
from lightspeed_course.practice import questions
from lightspeed_course.workspace import course_root

NAME = "02_roofline"
CHAPTERS = sorted(path.stem for path in (course_root() / "exercises").glob("[0-9]*.ipynb"))


def sheet_corrected(home):
    for path in (home / "lightspeed/catalog").glob("*.toml"):
        text = re.sub(
            r'(?m)^(printed = ")([1-9])', lambda m: m[1] + str(10 - int(m[2])), path.read_text()
        )
        path.write_text(text)


def laws_renamed(home):
    names = set()
    for path in (home / "lightspeed").glob("*.py"):
        names |= set(
            re.findall(r"(?m)^@law[^\n]*(?:\n[^\n]*){0,8}?\ndef ([a-z]\w+)", path.read_text())
        )
    word = re.compile(rf"\b({'|'.join(sorted(names))})\b")
    for path in home.rglob("lightspeed*/*.py"):
        path.write_text(word.sub(r"\1_by_its_new_name", path.read_text()))


def formula_mended(home):
    for path in (home / "lightspeed").glob("*.py"):
        path.write_text(
            re.sub(r"(?m)^    return (\w+ [*/] )", r"    return 1.3 * \1", path.read_text())
        )


LATER = (sheet_corrected, laws_renamed, formula_mended)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a copy of the course; the function given makes another course of it."""
    home = tmp_path / "installed"
    for path in library._importable(sandbox.LIB):
        target = home / path.relative_to(sandbox.LIB)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module in (library, sandbox):
        monkeypatch.setattr(module, "LIB", home)
    monkeypatch.setattr(sandbox, "COURSE", home / "lightspeed_course")
    caches = (library.packed, library.unpacked, sandbox._command)
    for each in caches:
        each.cache_clear()

    def change(by):
        fresh = home.with_name(by.__name__)
        if not fresh.exists():
            shutil.copytree(home, fresh)
            by(fresh)
        for module in (library, sandbox):
            monkeypatch.setattr(module, "LIB", fresh)
        monkeypatch.setattr(sandbox, "COURSE", fresh / "lightspeed_course")
        library.packed.cache_clear()

    yield change
    for each in caches:
        each.cache_clear()


def hand_in(course, name, folder, where=""):
    """The worked solution of a chapter, in the notebook that was released."""
    path = course.released(name) / "v1" / where / f"{name}.ipynb"
    notebook, worked = json.loads(path.read_text()), {c.id: c.built for c in solved(name).cells}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = worked.get(cell["id"], cell["source"])
    out = folder / "ada" / f"{name}.ipynb"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(notebook))
    return folder


def marks(book, name):
    (result,) = book.results(name, "ada")
    return result.points, {q: s.kind for q, s in result.scores.items() if s.kind != "right"}


@pytest.mark.slow
def test_each_worked_solution_keeps_full_marks_under_three_later_courses(
    course, installed, tmp_path, sandboxed
):
    (course.root / "class.toml").write_text("variants = false")
    course = type(course).find(course.root)
    with course.book() as book:
        book.add_student("ada", "Ada", seed=new_seed())
        for name in CHAPTERS:
            release(course, book, name)
            collect(course, book, name, [hand_in(course, name, tmp_path / name)])
            grade_all(book, name, submit=Here())
        before = {name: marks(book, name) for name in CHAPTERS}
        assert all(not lost for _, lost in before.values()), before
        for later in LATER:
            installed(later)
            for name in CHAPTERS:
                grade_all(book, name, submit=Here(), regrade=True, label=later.__name__)
            assert {name: marks(book, name) for name in CHAPTERS} == before, later.__name__
            book._file.execute("DROP TRIGGER IF EXISTS imported_stays")
            book._file.execute("UPDATE imported SET assignment = '-' || assignment")
            grade_all(book, NAME, submit=Here(), regrade=True, label=f"{later.__name__} without")
            assert marks(book, NAME)[0] < before[NAME][0], f"{later.__name__} would cost points"
            book._file.execute("DELETE FROM imported WHERE assignment NOT LIKE '-%'")
            book._file.execute("UPDATE imported SET assignment = substr(assignment, 2)")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(len(LATER)))
def test_a_term_with_another_course_between_every_two_verbs(
    course, installed, tmp_path, sandboxed, first
):
    (course.root / "class.toml").write_text("variants = false")
    course = type(course).find(course.root)
    later = itertools.islice(itertools.cycle(LATER), first, None)
    pages, table = tmp_path / "pages", tmp_path / "points.csv"
    with course.book() as book:
        book.add_student("ada", "Ada", seed=new_seed())
        release(course, book, NAME)
        ours = hand_in(course, NAME, tmp_path / "mail")
        for verb in (
            lambda: collect(course, book, NAME, [ours]),
            lambda: grade_all(book, NAME, submit=Here()),
            lambda: write_feedback(book, NAME, pages, solutions=True),
            lambda: export_csv(book, [NAME], table),
            lambda: collect(course, book, NAME, [ours]),
            lambda: grade_all(book, NAME, submit=Here(), regrade=True, label="again"),
            lambda: write_feedback(book, NAME, pages, solutions=True),
            lambda: export_csv(book, [NAME], table),
        ):
            installed(next(later))
            verb()
        whole = float(len(book.assignment(NAME).points))
        assert marks(book, NAME) == (whole, {})
        (row,) = csv.DictReader(table.open(encoding="utf-8-sig"))
        assert str(whole) in row.values() or f"{whole:g}" in row.values(), row
        assert f"{whole:g} of {whole:g}" in " ".join((pages / "ada.html").read_text().split())


@pytest.fixture
def book(course):
    with course.book() as book:
        for student in ("ada", "bob"):
            book.add_student(student, student.title(), seed=new_seed())
        yield book


def listed(course):
    rows = csv.DictReader((course.released(NAME) / "handout.csv").open(encoding="utf-8-sig"))
    return {row["id"]: (row["version"], row["file"], row["earlier versions"]) for row in rows}


def named(course, version, student, folder, number=None):
    """A student's notebook of a version, handed in, perhaps with another number written into it."""
    text = (course.released(NAME) / f"v{version}" / student / f"{NAME}.ipynb").read_text()
    line = f'LIGHTSPEED_VERSION=\\"{version}\\"'
    assert line in text
    path = folder / student / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(line, line.replace(str(version), str(number or version))))
    return folder


def test_a_late_joiner_gets_the_numbers_of_then_and_renews_nobody(
    course, book, installed, tmp_path
):
    release(course, book, NAME)
    (course.root / "class.toml").write_text('feedback = "format"')
    second = type(course).find(course.root)
    release(second, book, NAME)
    version_1 = {
        s: (course.released(NAME) / f"v1/{s}/{NAME}.ipynb").read_bytes() for s in ("ada", "bob")
    }
    installed(sheet_corrected)
    book.add_student("eve", "Eve", seed=next_seed(book))
    kept = book.asked(NAME, "1", book.student("eve").seed)
    assert kept, "drawn at the release, by the course of then"
    path = release_to(second, book, NAME, "eve", 1)
    for data in kept.values():
        assert (
            json.dumps(data["prompt"])[1:-1] in path.read_text()
            or data["question"]["kind"] != "number"
        )
    assert listed(course) == {
        "ada": ("2", f"v2/ada/{NAME}.ipynb", "1"),
        "bob": ("2", f"v2/bob/{NAME}.ipynb", "1"),
        "eve": ("1", f"v1/eve/{NAME}.ipynb", ""),
    }
    for student, content in version_1.items():
        assert (course.released(NAME) / f"v1/{student}/{NAME}.ipynb").read_bytes() == content
    with pytest.raises(ClassError, match="has no version 3; expected one from 1 to 2"):
        release_to(second, book, NAME, "eve", 3)
    book.add_student("zoe", "Zoe", seed=new_seed())
    with pytest.raises(ClassError, match="its spare numbers are used up"):
        release_to(second, book, NAME, "zoe", 1)
    release_to(second, book, NAME, "ada", 1)
    assert listed(course)["ada"] == ("1", f"v1/ada/{NAME}.ipynb", "2")


def test_a_notebook_is_of_a_version_that_its_student_was_given(course, book, tmp_path):
    release(course, book, NAME)
    (course.root / "class.toml").write_text('feedback = "format"')
    second = type(course).find(course.root)
    book.add_student("eve", "Eve", seed=new_seed())
    release(second, book, NAME)
    asked = KeptQuestions(book, NAME)
    for student, version, number, wrong in (
        ("ada", 1, None, ""), ("bob", 2, 1, ""), ("eve", 2, 1, "1"), ("eve", 2, 7, "7"),
    ):  # fmt: skip
        collect(
            course,
            book,
            NAME,
            [named(course, version, student, tmp_path / f"{student}{number}", number)],
        )
        submission = book.counting(NAME)[student]
        assert asked.version(submission) == ("2" if wrong else str(number or version))
        told = remarks(book, NAME).get(student, [])
        assert [f"names version {wrong}, which eve was not given" in t for t in told] == [
            True
        ] * bool(wrong)


def test_a_correction_that_takes_no_points_runs_by_both_libraries(course, book, installed):
    release(course, book, NAME)
    first = book.libraries(NAME, "1")
    installed(formula_mended)
    KeptQuestions(book, NAME)
    assert book.libraries(NAME, "1") == first, "a change is chosen, never silent"
    q = questions.question("roofline.ridge")
    with pytest.MonkeyPatch.context() as patch:
        changed = {**questions._registry, q.id: dataclasses.replace(q, tolerance=0.3)}
        patch.setattr(questions, "_registry", changed)
        assert correct(book, NAME)[0] == []  # nobody handed in: nothing to judge
        book.add_submission("ada", NAME, b"{}", 1.0)
        assert correct(book, NAME)[0] == [q.id]
        assert book.libraries(NAME, "1") == (library.packed(), *first)
        assert correct(book, NAME)[0] == [], "once"
    data = KeptQuestions(book, NAME).data(None, book.student("ada").seed)
    assert len(data["libraries"]) == 2 and all(
        (library.unpacked(each) / "lightspeed/roofline.py").is_file() for each in data["libraries"]
    )


def test_a_library_that_a_power_cut_left_half_is_unpacked_again(installed):
    content = library.packed()
    place = library.unpacked(content)
    (place / "lightspeed/roofline.py").write_bytes(b"")
    library.unpacked.cache_clear()
    assert library.unpacked(content) == place
    assert (place / "lightspeed/roofline.py").read_bytes()
    modes = {path.stat().st_mode & 0o777 for path in (place, place / "lightspeed/units.py")}
    assert modes == {0o755, 0o644}
