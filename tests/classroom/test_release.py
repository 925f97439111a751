"""A release: everybody's own numbers, nothing that answers them, and nothing taken back."""

import csv
import json
import re
import sys
from pathlib import Path

import nbformat
import pytest
from scored import OUT_OF, ROOFLINE

from lightspeed_class import class_folder as courses
from lightspeed_class.class_folder import ClassError, ClassFolder
from lightspeed_class.handout import release as releases
from lightspeed_class.handout.release import ABOUT, REVEALING, SETUP, find, notebook_for, release
from lightspeed_class.notebooks import Assignment
from lightspeed_cli import main
from lightspeed_course.practice.questions import question
from lightspeed_course.workspace import course_root

NAME = "02_roofline"
EXERCISES = sorted((course_root() / "exercises").glob("[0-9]*.ipynb"))


@pytest.fixture
def book(course):
    with course.book() as book:
        book.add_student("ada", "Ada Lovelace", seed="seed of ada", email="ada@example.org")
        book.add_student("bob", "=Bob", seed="seed of bob")
        yield book


def cells(content):
    return {cell["id"]: cell for cell in json.loads(content)["cells"]}


def prompts(content):
    return [
        o["data"]["text/markdown"] for c in cells(content).values() for o in c.get("outputs", ())
    ]


def of(course, student, version=1, name="02_roofline"):
    return (course.released(name) / f"v{version}" / student / f"{name}.ipynb").read_bytes()


def run(content, answers, monkeypatch, tmp_path):
    """Run a released notebook as a kernel would, with answers for dots: what checks said."""
    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path / "data"))
    for name in ("LIGHTSPEED_SEED", "LIGHTSPEED_CLASS", "LIGHTSPEED_VERSION", "LIGHTSPEED_ASKED"):
        monkeypatch.setenv(name, "")  # so that what the notebook sets is undone
    namespace, said = {}, {}
    for cell in cells(content).values():
        if cell["cell_type"] == "code":
            source = cell["source"]
            if asked := re.search(r'check\("([\w.]+)"', source):
                if asked[1] not in answers:
                    continue
                source = f"said[{asked[1]!r}] = check({asked[1]!r}, {answers[asked[1]]!r})"
            exec(source, namespace | {"said": said} if asked else namespace)
    return said


@pytest.mark.parametrize("path", EXERCISES, ids=lambda p: p.stem)
def test_a_notebook_keeps_its_questions_and_shows_the_variant(path):
    content = notebook_for(path, "seed of ada", "ada")
    nbformat.validate(nbformat.reads(content.decode(), 4))
    assert content == notebook_for(path, "seed of ada", "ada")
    ours, theirs = cells(path.read_bytes()), cells(content)
    assert set(theirs) <= set(ours) | {ABOUT, SETUP}
    assert all(
        "".join(ours[id]["source"]) == cell["source"]
        for id, cell in theirs.items()
        if id not in (ABOUT, SETUP)
    )
    asked = [
        m
        for c in theirs.values()
        for m in re.findall(r'ask\("([\w.]+)"\)', c["source"])
        if c["cell_type"] == "code"
    ]
    assignment = Assignment.of(path)
    functions = assignment.functions({q: question(q).kind for q in assignment.points})
    assert prompts(content) == [question(id).variant("seed of ada").prompt for id in asked]
    for id, name in functions.items():
        assert id.startswith("puzzle.") or any(
            f"`{name}" in text
            for text in prompts(content)
            if text.startswith(question(id).variant().prompt)
        )
    for id in set(ours) - set(theirs):
        assert any(f"{word}(" in "".join(ours[id]["source"]) for word in REVEALING)


def test_the_same_assignment_in_all_of_them(tmp_path):
    for seed in ("a", "b"):
        (tmp_path / "02_roofline.ipynb").write_bytes(notebook_for(ROOFLINE, seed))
        assert Assignment.of(tmp_path / "02_roofline.ipynb") == Assignment.of(ROOFLINE)


@pytest.mark.holds("docs/teach.md", "with numbers of their own and no solutions")
def test_nothing_in_it_answers_a_question_or_is_about_others(course, book):
    release(course, book, "02_roofline")
    text = of(course, "ada").decode()
    for stranger in ("bob", "seed of bob", book.secret, "ada@example.org", str(course.root)):
        assert stranger not in text
    code = "\n".join(c["source"] for c in cells(text).values() if c["cell_type"] == "code")
    asked = [question(id).kind for id in book.assignment("02_roofline").points]
    assert "SOLUTION" not in code
    assert len(re.findall(r"^answer = \.\.\.", code, re.M)) == len(asked) - asked.count("function")
    assert not {c["execution_count"] for c in cells(text).values() if c["cell_type"] == "code"} - {
        None
    }


def test_students_have_different_numbers_and_check_knows_their_own(
    course, book, monkeypatch, tmp_path
):
    release(course, book, "02")
    assert prompts(of(course, "ada")) != prompts(of(course, "bob"))
    id = "roofline.int8_bytes"
    mine = question(id).variant("seed of ada")
    answers = {id: tuple(map(float, mine.right))}
    assert run(of(course, "ada"), answers, monkeypatch, tmp_path)[id].correct
    assert not run(of(course, "bob"), answers, monkeypatch, tmp_path)[id].correct


def test_format_alone_says_the_same_of_right_and_wrong(monkeypatch, tmp_path):
    content = notebook_for(ROOFLINE, "seed of ada", "ada", "format")
    ids = ("roofline.ridge", "roofline.int8_bytes", "roofline.what_shortens_it")
    ridge, both, word = (question(id).variant("seed of ada") for id in ids)
    other = next(key for key in word.options if key != word.right)
    right = {
        ids[0]: float(ridge.right[0]),
        ids[1]: tuple(map(float, both.right)),
        ids[2]: word.right,
    }
    wrong = {ids[0]: float(ridge.right[0]) * 8, ids[1]: (1.0, 2.0), ids[2]: other}
    for answers in (right, wrong):
        for id, verdict in run(content, answers, monkeypatch, tmp_path).items():
            assert (verdict.kind, verdict.correct, verdict.name, verdict.heading) == (
                "read",
                False,
                "",
                "Read.",
            )
            assert verdict.message.endswith("It is judged once it is handed in.")
            assert verdict.id == id
    assert "FLOP/byte" in run(content, right, monkeypatch, tmp_path)[ids[0]].message
    said = run(content, {ids[0]: "text", ids[1]: ..., ids[2]: "nonsense"}, monkeypatch, tmp_path)
    assert [said[id].kind for id in ids] == ["type", "unanswered", "type"]
    assert "not whether it is right" in content.decode()


def test_format_alone_runs_a_function_but_does_not_judge_it(monkeypatch):
    from lightspeed_course import check

    monkeypatch.setenv("LIGHTSPEED_CLASS", "format")
    id = "roofline.attainable"
    said = {
        repr(check(id, f))
        for f in (
            lambda intensity, peak, bandwidth: 1.0,
            lambda intensity, peak, bandwidth: min(peak, intensity * bandwidth),
        )
    }
    assert len(said) == 1 and "gives a number on all" in said.pop()
    assert check(id, lambda intensity, peak, bandwidth: 1 / 0).kind == "error"


def test_no_worked_solution_in_a_class(monkeypatch, tmp_path):
    from lightspeed_course import ask

    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path))
    assert ask("roofline.ridge").form.extra
    monkeypatch.setenv("LIGHTSPEED_CLASS", "full")
    assert not ask("roofline.ridge").form.extra


def test_a_release_again_gives_only_to_those_who_came_later(course, book):
    first = release(course, book, "02", due=1000.0)
    assert first.given == ("ada", "bob") and book.setting("due 02_roofline") == "1000.0"
    before = of(course, "ada")
    assert release(course, book, "02").given == ()
    book.add_student("cy", "Cy")  # without a seed
    again = release(course, book, "02")
    assert (again.given, again.version, again.students) == (("cy",), 1, 3)
    assert of(course, "ada") == before
    assert book.student("cy").seed
    assert book.setting("due 02_roofline") == "1000.0"
    rows = list(
        csv.DictReader(
            (course.released("02_roofline") / "handout.csv").read_text("utf-8-sig").splitlines()
        )
    )
    assert [(r["id"], r["version"]) for r in rows] == [("ada", "1"), ("bob", "1"), ("cy", "1")]
    assert rows[1]["name"] == "'=Bob"
    assert all((course.released("02_roofline") / r["file"]).is_file() for r in rows)


def test_another_assignment_is_another_version_and_takes_nothing_back(course, book, tmp_path):
    mine = tmp_path / "own.ipynb"
    mine.write_bytes(ROOFLINE.read_bytes())
    release(course, book, mine)
    before = of(course, "ada", 1, "own")
    shorter = json.loads(mine.read_text())
    shorter["cells"] = shorter["cells"][:6]
    mine.write_text(json.dumps(shorter))
    second = release(course, book, mine)
    assert (second.version, second.given) == (2, ("ada", "bob"))
    assert len(second.removed) == OUT_OF - 1
    assert not second.added
    assert of(course, "ada", 1, "own") == before and of(course, "ada", 2, "own") != before
    assert set(book.assignment("own").points) == {"roofline.ridge"}
    mine.write_bytes(ROOFLINE.read_bytes())
    third = release(course, book, mine)
    assert third.version == 1
    assert third.versions == {"ada": (2, 1), "bob": (2, 1)}
    assert third.given == ()
    assert (
        "bob,'=Bob,,1,v1/bob/own.ipynb,2"
        in (course.released("own") / "handout.csv").read_text("utf-8-sig").splitlines()
    )


def test_a_release_that_was_stopped_goes_on_where_it_was(course, book, monkeypatch):
    whole, made = releases.write_whole, []

    def stopping(path, content):
        if len(made) == 1:
            raise KeyboardInterrupt
        made.append(path)
        whole(path, content)

    monkeypatch.setattr(releases, "write_whole", stopping)
    with pytest.raises(KeyboardInterrupt):
        release(course, book, "02")
    before = of(course, "ada")
    monkeypatch.undo()
    assert release(course, book, "02").given == ("bob",)
    assert of(course, "ada") == before


def test_the_same_numbers_for_all_if_the_class_wants_it(course, book):
    (course.root / "class.toml").write_text(
        'variants = false\n[points.02_roofline]\n"roofline.ridge" = 2.5\n'
    )
    course = ClassFolder.find(course.root)
    release(course, book, "02")
    folder = course.released("02_roofline")
    assert [p.name for p in (folder / "v1").iterdir()] == ["02_roofline.ipynb"]
    content = (folder / "v1/02_roofline.ipynb").read_bytes()
    assert content == notebook_for(
        ROOFLINE, None, version="1", data=book.asked("02_roofline", "1", None)
    )
    assert "SEED" not in content.decode()
    assert "numbers of your own" not in content.decode()
    assert {
        row["file"]
        for row in csv.DictReader((folder / "handout.csv").read_text("utf-8-sig").splitlines())
    } == {"v1/02_roofline.ipynb"}
    assert (
        "All students get the same file: v1/02_roofline.ipynb."
        in (folder / "README.txt").read_text()
    )
    assert release(course, book, "02").given == ()
    book.add_student("cy", "Cy")
    assert release(course, book, "02").given == ("cy",)
    assert (folder / "v1/02_roofline.ipynb").read_bytes() == content
    assert book.seed("02_roofline", "ada") is None
    assert book.assignment("02_roofline").points["roofline.ridge"] == 2.5


@pytest.mark.parametrize(("name", "words"), [
    ("99", "there is no one assignment 99; there are 01_numbers_to_know"),
    ("0", "there is no one assignment 0"),
    ("nowhere.ipynb", "there is no notebook nowhere.ipynb; there are 01_numbers_to_know"),
    ("nowhere/02_roofline.ipynb", "there is no notebook"),
    (str(course_root() / "chapters" / "00_start_here.ipynb"), "asks nothing"),
    (str(course_root() / "README.md"), "there is no one assignment"),
])  # fmt: skip
def test_what_is_no_assignment(name, words):
    with pytest.raises(ClassError, match=re.escape(words)):
        find(name)


@pytest.mark.parametrize("name", ["2", "02", "02_roofline", "02_roofline.ipynb", str(ROOFLINE)])
def test_the_names_of_an_assignment(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find(name).samefile(ROOFLINE)


def test_solutions_are_not_released(tmp_path):
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "02.ipynb").write_bytes(ROOFLINE.read_bytes())
    with pytest.raises(ClassError, match="solutions"):
        find(str(tmp_path / "solutions" / "02.ipynb"))


def test_nobody_to_release_to(course):
    with course.book() as book, pytest.raises(ClassError, match="no students yet"):
        release(course, book, "02")


@pytest.mark.parametrize(("text", "words"), [
    ('feedback = "some"', 'feedback must be "full" or "format"'),
    ("variants = 1", "variants must be true or false"), ("nam = 'x'", "no setting nam"),
    ("name = ML", 'a text stands in quotation marks: name = "'),
    ("points = 3", "points must be tables"), ("name = ", "class.toml: "),
    ('[points.02_roofline]\n"roofline.rigde" = 1',
        "roofline.rigde, which 02_roofline does not ask; did you mean roofline.ridge?"),
])  # fmt: skip
def test_a_class_toml_with_a_mistake(course, book, text, words):
    (course.root / "class.toml").write_text(text)
    with pytest.raises(ClassError, match=re.escape(words)):
        release(ClassFolder.find(course.root), book, "02")


@pytest.mark.parametrize(("text", "words"), [
    ('[points.02_rooflin]\n"roofline.ridge" = 2',
        "[points.02_rooflin], which is not an assignment; did you mean 02_roofline?"),
    ('[points.own]\n"roofline.ridge" = 2',
        "[points.own], which is not an assignment; there are 01_numbers_to_know"),
    ('[points.02_roofline]\n"roofline.rigde" = 2', "did you mean roofline.ridge?"),
    ('[points.03_amdahl_gustafson]\n"roofline.ridge" = 2',
        "roofline.ridge, which 03_amdahl_gustafson does not ask"),
])  # fmt: skip
def test_points_that_would_be_for_nothing(course, book, text, words, tmp_path):
    (course.root / "class.toml").write_text(text)
    with pytest.raises(ClassError, match=re.escape(words)):
        ClassFolder.find(course.root).check_points(book)


def test_points_of_an_own_notebook(course, book, tmp_path):
    (tmp_path / "own.ipynb").write_bytes(ROOFLINE.read_bytes())
    (course.root / "class.toml").write_text('[points.own]\n"roofline.ridge" = 2')
    course = ClassFolder.find(course.root)
    course.check_points(book, releasing="own")
    release(course, book, tmp_path / "own.ipynb")
    course.check_points(book)
    assert not course.changed_points(book, "own")
    assert book.assignment("own").points["roofline.ridge"] == 2


def test_other_points_are_told_and_change_no_notebook(course, book):
    assert release(course, book, "02").repriced == ()
    before = of(course, "ada")
    (course.root / "class.toml").write_text('[points.02_roofline]\n"roofline.budget_batch" = 3')
    course = ClassFolder.find(course.root)
    assert course.changed_points(book, "02_roofline")
    done = release(course, book, "02")
    assert (done.points, done.repriced, done.version, done.given) == (
        (OUT_OF, OUT_OF + 2),
        (("roofline.budget_batch", 1, 3),),
        1,
        (),
    )
    assert of(course, "ada") == before and not course.changed_points(book, "02_roofline")


@pytest.mark.parametrize("path", EXERCISES, ids=lambda p: p.stem)
def test_the_text_of_a_notebook_promises_no_judgement_that_check_does_not_give(path):
    def text(feedback):
        return " ".join(
            c["source"]
            for c in cells(notebook_for(path, "s", "ada", feedback)).values()
            if c["cell_type"] == "markdown"
        ).split()

    assert "whether it is right and, if not, what may have happened" in " ".join(text("full"))
    told = " ".join(text("format"))
    assert "whether it is right" not in told
    assert "`check` says how your answer was read, and it is judged once you hand it in." in told


def test_the_first_cell_says_what_is_needed(course, book, monkeypatch):
    release(course, book, "02")
    first, *_ = json.loads(of(course, "ada"))["cells"]
    assert first["id"] == ABOUT
    assert "Made for `ada`" in first["source"]
    assert "make lab" in first["source"]
    assert "one file" in (course.released("02_roofline") / "README.txt").read_text()
    source = cells(of(course, "ada"))[SETUP]["source"]
    for name in ("LIGHTSPEED_SEED", "LIGHTSPEED_CLASS", "LIGHTSPEED_VERSION", "LIGHTSPEED_ASKED"):
        monkeypatch.setenv(name, "")
    monkeypatch.setitem(sys.modules, "lightspeed", None)
    with pytest.raises(ModuleNotFoundError, match="Install the course"):
        exec(source, {})


def test_a_new_class_leaves_other_folders_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ClassError, match="not empty"):
        courses.new(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    made = courses.new(tmp_path / 'a "quoted" name')
    with made.book() as book:
        secret = book.secret
    (made.root / "roster.csv").write_text("id,name\nada,Ada\n")
    again = courses.new(made.root)
    with again.book() as book:
        assert book.secret == secret and again.name == 'a "quoted" name'
    assert "ada" in (made.root / "roster.csv").read_text()
    assert (made.root.stat().st_mode & 0o077) == 0


def test_a_class_is_found_from_below(course, monkeypatch, tmp_path):
    (course.root / "released" / "x").mkdir(parents=True)
    monkeypatch.chdir(course.root / "released" / "x")
    assert ClassFolder.find().root == course.root
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ClassError, match="--class DIR"):
        ClassFolder.find()
    assert ClassFolder.find(Path("class")).root == course.root


def test_a_preview_is_what_the_release_gives_and_keeps_nothing(course, book, capsys):
    name = "02_roofline"
    preview = ["class", "preview", name, "--class", str(course.root)]
    before = list(book._file.iterdump())
    lines = []
    for student in ("ada", "ada", None):
        main(preview + (["--as", student] if student else []))
        lines.append(capsys.readouterr().out.splitlines()[1:])
    assert list(book._file.iterdump()) == before and not course.released(name).exists()
    assert lines[0] == lines[1] != lines[2], "the numbers of ada, and of somebody who is not there"
    main([*preview, "--as", "ada"])
    seen = json.loads((course.root / f"preview/{name}.ipynb").read_bytes())
    release(course, book, name)
    given = json.loads((course.released(name) / f"v1/ada/{name}.ipynb").read_bytes())
    shown = [[c.get("outputs") for c in n["cells"] if "ask(" in "".join(c["source"])]
             for n in (seen, given)]  # fmt: skip
    assert shown[0] == shown[1] and len(shown[0]) > 10


def test_a_roster_says_who_lacks_what_was_released_and_release_to_whom_it_went(
    course, book, say, monkeypatch
):
    monkeypatch.chdir(course.root)
    roster = Path("roster.csv")
    roster.write_text("id,name\nada,Ada\nbob,Bob\n")
    assert "was released" not in say("roster")[1]
    assert "2 students: 2 notebooks made now.\n" in say("release", NAME)[1]
    say("release", "03_amdahl_gustafson", "--one-notebook")
    roster.write_text("id,name\nada,Ada\nbob,Bob\nlate1,Zoe\nlate2,Yan\n")
    lacking = say("roster")[1]
    assert (
        f"{NAME} was released, and not to late1, late2: lightspeed class release {NAME} --for"
        " late1 --for late2\n" in lacking
    )
    assert "lightspeed class release 03_amdahl_gustafson --one-notebook\n" in lacking
    say("release", NAME, "--for", "late2")
    assert "1 notebook made now (late1)." in say("release", NAME)[1]
    assert NAME not in say("roster")[1]
