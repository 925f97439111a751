"""Feedback tells students what they need and nothing that they should find themselves."""

import re
import zipfile
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from scored import RECORD, Page, assignment_of, graded, right, wrong

from lightspeed_class import class_folder
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.grading.grade import refused
from lightspeed_class.hidden_inputs import hidden
from lightspeed_class.notebooks import Assignment
from lightspeed_class.reports.canvas_feedback import write_canvas_zip
from lightspeed_class.reports.feedback import to_html, write_feedback
from lightspeed_class.reports.moodle_feedback import write_moodle_zip
from lightspeed_class.reports.results import outcomes
from lightspeed_class.score import Score
from lightspeed_course.practice.amounts import amount
from lightspeed_course.practice.questions import question

EXERCISES = sorted((Path(__file__).parents[2] / "exercises").glob("[0-9]*.ipynb"))
RIDGE, WORD, ROOF, BYTES = (
    "roofline.ridge",
    "roofline.what_shortens_it",
    "roofline.attainable",
    "roofline.int8_bytes",
)
ASSIGNMENT = assignment_of(RIDGE, WORD, ROOF, BYTES)
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \"' &lt; \u202eevil\u2066"
    " \x00\x1b[31m\ud800 [x](javascript:alert(3))"
)


@pytest.fixture
def book(tmp_path):
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(ASSIGNMENT)
        book.add_student("ada", "Ada", seed="1")
        yield book


def hand_in(book, answers, student="ada", at=1.0, seed="1", **more):
    id = book.add_submission(
        student,
        ASSIGNMENT.name,
        str(answers).encode(),
        at,
        source=more.pop("source", "ada: 02_roofline.ipynb"),
    )
    book.add_grading(id, f"key {len(book.gradings(id))}", graded(answers, seed, **more))
    return id


def pages(book, tmp_path, **options):
    return [
        path.read_text("utf-8")
        for path in write_feedback(book, ASSIGNMENT.name, str(tmp_path / "pages"), **options)
    ]


def leaks(text, id, seed, own=""):
    """Ways to write a right answer that stand in a text, but not in prompt or own answer."""
    variant = question(id).variant(seed)
    if variant.question.kind == "choice":
        text = text.replace(variant.prompt, "").partition("Diagnosis")[2]
        others = [t for key, t in variant.options.items() if key != variant.right]
        others = " ".join(others + [m.hint for m in variant.question.misconceptions])

        def stands(words, place):
            return re.search(rf"(?<![\w]){re.escape(words)}(?![\w])", place)

        # a word that other options or the hints to mistakes have, too, tells nothing
        ways = (variant.right, variant.options[variant.right])
        return [words for words in ways if stands(words, text) and not stands(words, others)]
    forms = [
        form
        for v in variant.right
        for digits in range(3, 10)
        for form in (
            f"{v:.{digits}g}",
            f"{v:,.{digits}g}",
            amount(v, variant.question.unit, digits),
        )
    ]
    forms = {
        form
        for form in forms
        if len(re.sub(r"\D", "", form)) > 2 or not form.replace(".", "").isdigit()
    }
    known = variant.prompt + " " + own
    return [
        form
        for form in forms
        if (pattern := rf"(?<![\w.,]){re.escape(form)}(?![\w,]|\.\d)")
        and re.search(pattern, text)
        and not re.search(pattern, known)
    ]


@pytest.mark.parametrize("seed", [None, "ada"])
@pytest.mark.parametrize(
    "path",
    [EXERCISES[0], *(pytest.param(path, marks=pytest.mark.slow) for path in EXERCISES[1:])],
    ids=lambda p: p.stem,
)
def test_no_page_tells_a_right_answer(path, seed, tmp_path):
    """Each misconception of each question of the course, as somebody's answer."""
    assignment = Assignment.of(path)
    most = max(len(question(id).misconceptions) for id in assignment.points)
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(assignment)
        for number in range(most):
            book.add_student(f"s{number}", seed=seed)
            id = book.add_submission(f"s{number}", assignment.name, str(number).encode(), 1.0)
            book.add_grading(
                id, "key", graded({q: wrong(q, number, seed) for q in assignment.points}, seed)
            )
        for outcome in outcomes(book, assignment.name):
            page = Page(to_html(assignment, outcome, seed)).check()
            assert len(page.sections) == len(assignment.points)
            for i, q in enumerate(assignment.points, 1):
                score = outcome.result.scores[q]
                assert (
                    question(q).variant(seed).prompt.split()[0].strip("*`")
                    in page.sections[f"q{i}"]
                )
                # an option may be a misconception in one variant and right in another
                if score.kind == "right":
                    assert question(q).kind == "choice"
                    continue
                own = (
                    " ".join(
                        amount(float(v), question(q).unit, d)
                        for v in score.given.split()
                        for d in (4, 6)
                    )
                    if question(q).kind != "choice"
                    else ""
                )
                assert leaks(page.sections[f"q{i}"], q, seed, own) == []


@pytest.mark.parametrize("id", [RIDGE, WORD, BYTES])
def test_the_search_for_leaks_finds_one(id):
    variant = question(id).variant("ada")
    assert leaks(f"Diagnosis Not yet. It should have been {variant.answer}.", id, "ada")


def test_no_hidden_input_and_no_secret(book, tmp_path):
    told = Score(
        ROOF,
        0.0,
        1.0,
        "hidden",
        message="Right on the published inputs only.",
        given="1 2 3",
        found="check",
    )
    other = replace(graded({RIDGE: right(RIDGE, "1")}, "1"), scores=(told,))
    id = book.add_submission("ada", ASSIGNMENT.name, b"1", 1.0)
    book.add_grading(id, "key", other)
    book.setting("secret", "drawn once, for this test")
    (text,) = pages(book, tmp_path)
    variant = question(ROOF).variant("1")
    drawn = {
        p.text(s[n])
        for s in hidden(variant, book.secret).samples
        for n, p in variant.question.parameters.items()
        if s[n] not in (*p.choices, p.canonical)
    }
    assert len(drawn) > 10 and not [value for value in drawn if value in text]
    assert all(value not in text for value in (book.secret, RECORD["secret"], RECORD["grader"]))
    assert "Not yet: right on the published inputs only." in Page(text).check().sections["q3"]


def test_what_a_student_needs_is_there(book, tmp_path):
    book.setting(f"due {ASSIGNMENT.name}", repr(10.0))
    hand_in(
        book,
        {
            RIDGE: wrong(RIDGE, 0, "1"),
            WORD: right(WORD, "1"),
            ROOF: ...,
            BYTES: wrong(BYTES, 1, "1"),
        },
        at=10.0 + 2 * 86400,
        notes=["Code cell 3 stopped with NameError."],
    )
    book.set_manual("ada", ASSIGNMENT.name, RIDGE, 0.5, "The idea\nis right.", "Dr. No")
    book.set_manual("ada", ASSIGNMENT.name, WORD, None, "Well said.", "Dr. No")
    book.set_manual("ada", ASSIGNMENT.name, "", 1, "A fine plot.")
    (text,) = pages(book, tmp_path)
    page = Page(text).check()
    (outcome,) = outcomes(book, ASSIGNMENT.name)
    assert "2.5 of 4 points. 1 of 4 questions is right, 2 not yet, 1 not answered." in page.text
    assert "2 days late" in page.text
    assert "Code cell 3 stopped with NameError." in page.text
    assert "1 point for the assignment as a whole: A fine plot." in page.text
    first = page.sections["q1"]
    assert "NVIDIA" in first
    assert outcome.result.scores[RIDGE].message in first
    assert "0.5 of 1 point" in first
    # two lines, with a break between
    assert "Automatic0 of 1 point." in first and "by Dr. No: The ideais right." in first
    assert "Comment, by Dr. No: Well said." in page.sections["q2"] and "peak" in page.sections["q2"]
    assert "Not answered." in page.sections["q3"] and "None was found." in page.sections["q3"]
    given = [amount(float(v), "byte", 6) for v in outcome.result.scores[BYTES].given.split()]
    assert f"read: {given[0]}, written: {given[1]}" in page.sections["q4"]


def test_the_same_outcome_gives_the_same_bytes(book, tmp_path):
    hand_in(book, {RIDGE: right(RIDGE, "1")})
    assert pages(book, tmp_path) == pages(book, tmp_path)


@pytest.mark.parametrize(
    "place", ["name", "id", "comment", "by", "note", "message", "given", "source"]
)
def test_no_text_becomes_markup(book, tmp_path, place):
    # the gradebook itself takes no half characters there
    text = HOSTILE if place != "name" else HOSTILE.replace("\ud800", "")
    safe = text.encode("utf-8", "replace").decode()
    name, id = (safe if place == "name" else "Bob"), (safe if place == "id" else "bob")
    book.add_student(id, name, seed="1")
    key = book.add_submission(
        id, ASSIGNMENT.name, b"1", 1.0, source=safe if place == "source" else ""
    )
    score = Score(BYTES, 0.0, 1.0, "type", message=text if place == "message" else "x", given="")
    if place == "given":
        score = Score(WORD, 0.0, 1.0, "magnitude", message="x", given=text)
    notes = (text,) if place == "note" else ()
    book.add_grading(key, "key", replace(graded({}), scores=(score,), notes=notes))
    book.set_manual(
        id,
        ASSIGNMENT.name,
        BYTES,
        None,
        safe if place == "comment" else "x",
        safe if place == "by" else "x",
    )
    (written,) = write_feedback(book, ASSIGNMENT.name, tmp_path / "pages", student=id)
    assert written.parent == tmp_path / "pages"
    assert list((tmp_path / "pages").iterdir()) == [written]
    page = written.read_text("utf-8")
    Page(page).check()
    assert "<script" not in page and "<img" not in page and 'javascript:alert(3)"' not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", page)
    assert ("alert(1)" in page) == (place != "source")


@pytest.mark.parametrize("id", ["../../etc/x", "..", "a/b", "a%2Fb", "ä b", ".hidden", "CON\\x"])
def test_no_id_leads_elsewhere(book, tmp_path, id):
    book.add_student(id)
    (path,) = write_feedback(book, ASSIGNMENT.name, tmp_path / "pages", student=id)
    assert path.resolve().parent == tmp_path / "pages" and path.is_file()
    assert len({p.name for p in write_feedback(book, ASSIGNMENT.name, tmp_path / "pages")}) == 2


def test_nothing_handed_in_not_graded_and_unreadable(book, tmp_path):
    for student in ("bob", "eve"):
        book.add_student(student)
    book.add_submission("bob", ASSIGNMENT.name, b"1", 1.0)
    id = book.add_submission("eve", ASSIGNMENT.name, b"{", 1.0)
    book.add_grading(id, "key", refused("It is not valid JSON.", ASSIGNMENT))
    ada, bob, eve = (Page(text).check() for text in pages(book, tmp_path))
    assert "Nothing was handed in." in ada.text and not ada.sections
    assert "Not graded yet." in bob.text and not bob.sections
    assert "0 of 4 points." in eve.text
    assert "It is not valid JSON." in eve.text
    assert "could not be read" in eve.text
    assert not eve.sections
    book.set_manual("eve", ASSIGNMENT.name, BYTES, 0.5, "On paper.")
    eve = Page(pages(book, tmp_path, student="eve")[0]).check()
    assert list(eve.sections) == ["q4"]
    assert "Not graded." in eve.sections["q4"]
    assert "0.5 of 4 points." in eve.text
    book.set_manual("ada", ASSIGNMENT.name, RIDGE, 1, "Told me in person.")
    ada = Page(pages(book, tmp_path, student="ada")[0])
    assert "1 of 4 points. Nothing was handed in; these points were given by hand." in ada.text
    assert list(ada.sections) == ["q1"]
    with pytest.raises(KeyError):
        write_feedback(book, ASSIGNMENT.name, tmp_path, student="nobody")


@pytest.mark.parametrize(
    "source, words",
    [
        ("ada: 02_roofline.ipynb", "Handed in on 1 January 1970, 00:01 UTC: 50 s late."),
        ("canvas.zip: ada_LATE_4001_90001_02_roofline.ipynb", "Handed in late."),
        ("canvas.zip: ada_4001_90001_02_roofline.ipynb", ""),
        ("moodle.zip: Ada_7001_assignsubmission_file/02_roofline.ipynb", ""),
        (
            (
                "moodle.zip: Ada_7001_assignsubmission_file/02_roofline.ipynb (time from the"
                " worksheet)"
            ),
            "Handed in on 1 January 1970, 00:01 UTC: 50 s late.",
        ),
    ],
)
def test_no_time_is_told_that_nobody_knows(book, tmp_path, source, words):
    book.setting(f"due {ASSIGNMENT.name}", "10.0")
    hand_in(book, {RIDGE: right(RIDGE, "1")}, at=60.0, source=source)
    text = Page(pages(book, tmp_path)[0]).check().text
    assert words in text and ("Handed in" in text) == bool(words)


def test_an_answer_without_a_verdict_is_shown(book, tmp_path):
    key = book.add_submission("ada", ASSIGNMENT.name, b"1", 1.0)
    text = "the text “<b>12</b>”"
    came = [Score(RIDGE, 0.0, 1.0, "type", message="x", given=text, found="check"),
            Score(BYTES, 0.0, 1.0, "dimension", message="x", given="3 GB/s", found="cell"),
            Score(ROOF, 0.0, 1.0, "type", message="x", given="", found="check"),
            Score(WORD, 0.0, 1.0, "type", message="x", given="", found="check")]  # fmt: skip
    book.add_grading(key, "key", replace(graded({}), scores=tuple(came)))
    (text,) = pages(book, tmp_path)
    page = Page(text).check()
    assert "Your answerThe text “<b>12</b>”." in page.sections["q1"] and "<b>" not in text
    assert "Your answer3 GB/s. It is the value of the variable" in page.sections["q4"]
    assert "Your answerA function." in page.sections["q3"]
    assert "Your answerSomething that cannot be read" in page.sections["q2"]


@pytest.mark.parametrize("message, words", [
    ("Not answered: no `check` ran.", "Not answered. No check ran."),
    ("Not reached: the program ended.", "Not reached. The program ended."),
    ("Put your answer in place of the dots.", "Not answered. Put your answer"),
])  # fmt: skip
def test_no_word_is_said_twice(book, tmp_path, message, words):
    key = book.add_submission("ada", ASSIGNMENT.name, b"1", 1.0)
    book.add_grading(
        key,
        "key",
        replace(graded({}), scores=(Score(RIDGE, 0.0, 1.0, "unanswered", message=message),)),
    )
    assert f"Diagnosis{words}" in Page(pages(book, tmp_path)[0]).check().sections["q1"]


def test_a_regrade_is_told(book, tmp_path):
    id = hand_in(book, {RIDGE: wrong(RIDGE, 0, "1"), WORD: right(WORD, "1")})
    before = pages(book, tmp_path)[0]
    assert "Graded again" not in before
    book.add_grading(id, "later", graded({RIDGE: right(RIDGE, "1"), WORD: right(WORD, "1")}, "1"))
    after = Page(pages(book, tmp_path)[0]).check()
    assert "The automatic points were 1 of 2 and are 2 of 2 now." in after.text
    assert "Ridge: 0 before, 1 now" in after.text


def test_a_regrade_with_another_maximum_is_told(book, tmp_path):
    id = hand_in(book, {RIDGE: right(RIDGE, "1"), WORD: ...})
    book.add_grading(
        id, "later", graded({RIDGE: right(RIDGE, "1"), WORD: ...}, "1", points={RIDGE: 1, WORD: 3})
    )
    page = Page(pages(book, tmp_path)[0]).check()
    assert "The automatic points were 1 of 2 and are 1 of 4 now." in page.text
    assert "What shortens it: 0 of 1 before, 0 of 3 now" in page.text
    assert "No points changed" not in page.text
    book.add_grading(
        id,
        "last",
        graded({RIDGE: right(RIDGE, "1"), WORD: ...}, "1", "exit", points={RIDGE: 1, WORD: 3}),
    )
    assert "No points changed, only what is said about them." in Page(pages(book, tmp_path)[0]).text


def test_a_page_is_whole_or_as_it_was(book, tmp_path, monkeypatch):
    hand_in(book, {RIDGE: wrong(RIDGE, 0, "1")})
    (path,) = write_feedback(book, ASSIGNMENT.name, tmp_path / "pages")
    before = path.read_bytes()
    book.set_manual("ada", ASSIGNMENT.name, RIDGE, 1, "more")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(class_folder.os, "fsync", full)
    with pytest.raises(OSError):
        write_feedback(book, ASSIGNMENT.name, tmp_path / "pages")
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def moodle_reads(entry):
    """(participant, file) as Moodle's importziplib.php has them from a path, or None."""
    parts = entry.split("/")
    while parts:
        info = parts.pop(0).split("_", 4)
        if len(info) >= 4 and info[1].isdecimal() and info[2:4] == ["assignsubmission", "file"]:
            return int(info[1]), "/".join([*info[4:5], *parts])
    return None


def test_moodle_finds_everybody_in_the_zip_or_is_told_whom_it_cannot(tmp_path, book):
    folder = "Bob_B. O'Neil_7002_assignsubmission_file_"
    book.add_student("bob", "Bob_B. O'Neil/../", participant="7002")
    book.add_student("cy", "Cy", participant="7003")
    book.add_student("dee", "Dee", participant="7004 8004")
    book.add_student("eve", "Eve", participant="9005")
    hand_in(book, {RIDGE: ...}, "ada", source="a.zip: Ada_7001_assignsubmission_file_/x.ipynb")
    hand_in(book, {RIDGE: ...}, "bob", source=f"a.zip: {folder}/x.ipynb")
    # what somebody else sent for her, given by hand: its number is another's
    hand_in(book, {RIDGE: 1.0}, "eve", source="a.zip: Ada_7001_assignsubmission_file_/y.ipynb")
    written = {p.stem: p for p in write_feedback(book, ASSIGNMENT.name, tmp_path / "pages")}
    assert set(written) == {"ada", "bob", "cy", "dee", "eve"}
    path = tmp_path / "moodle.zip"
    left = write_moodle_zip(book, ASSIGNMENT.name, written, path)
    assert left == ["dee"], "which of her numbers is of this assignment, nobody can tell"
    with zipfile.ZipFile(path) as archive:
        found = {moodle_reads(name): archive.read(name) for name in archive.namelist()}
    numbers = {7001: "ada", 7002: "bob", 7003: "cy", 9005: "eve"}
    assert found == {
        (number, f"/{ASSIGNMENT.name}-feedback.html"): written[id].read_bytes()
        for number, id in numbers.items()
    }
    first = path.read_bytes()
    write_moodle_zip(book, ASSIGNMENT.name, written, path)
    assert path.read_bytes() == first


def canvas_reads(entry):
    """(student, file) as infer_comment_context_from_filename of Canvas takes them from a name:
    the first two parts that are numbers, or what follows "anon".
    """
    parts = [part for part in entry.rpartition("/")[2].split("_") if part != "LATE"]
    if parts[0] == "anon":
        return parts[1], parts[2]
    return tuple([part for part in parts if part.isdecimal()][:2])


@pytest.mark.holds("docs/teach.md", "names who has no file there")
def test_canvas_finds_everybody_in_the_zip_or_is_told_whom_it_cannot(tmp_path, book):
    for id, more in {
        "ada": {"canvas_id": "11"}, "bob": {"canvas_id": "12"}, "cy": {}, "dee": {}, "eve": {},
    }.items():  # fmt: skip
        book.add_student(id, id.capitalize() if id != "ada" else "Ada", seed="1", **more)
    sources = (
        ("ada", "c.zip: lovelaceada_11_500_02_roofline.ipynb"),
        ("ada", "c.zip: lovelaceada_LATE_11_501_02_roofline-1 (2).ipynb (by the id in it)"),
        ("bob", "Canvas: bob_12_502_2_3_4.ipynb (time from Canvas)"),
        ("cy", "c.zip: cy/02_roofline.ipynb"),
        ("dee", "c.zip: LATE_anon_XyZ12_504_02_roofline.ipynb"),
        # what somebody else sent for her, given by hand: its numbers are another's
        ("eve", "c.zip: bob_12_505_02_roofline.ipynb"),
    )
    for number, (id, source) in enumerate(sources):
        hand_in(book, {RIDGE: number}, id, at=float(number), source=source)
    written = {p.stem: p for p in write_feedback(book, ASSIGNMENT.name, tmp_path / "pages")}
    path = tmp_path / "canvas.zip"
    assert write_canvas_zip(book, ASSIGNMENT.name, written, path) == ["cy", "eve"]
    with zipfile.ZipFile(path) as archive:
        found = {canvas_reads(name): (name, archive.read(name)) for name in archive.namelist()}
    whose = {("11", "501"): "ada", ("12", "502"): "bob", ("XyZ12", "504"): "dee"}
    assert found.keys() == whose.keys()
    assert found["12", "502"][0] == "bob_12_502_2_3_4.ipynb", "the name of the download is kept"
    assert found["11", "501"][0] == "lovelaceada_LATE_11_501_02_roofline-1 (2).ipynb"
    for key, id in whose.items():
        notebook = nbformat.reads(found[key][1].decode(), 4)
        nbformat.validate(notebook)
        shown = notebook.cells[0].outputs[0].data
        assert shown["text/html"] in written[id].read_text("utf-8")
        assert "Feedback: 02_roofline" in shown["text/plain"] and "<" not in shown["text/plain"]
    first = path.read_bytes()
    write_canvas_zip(book, ASSIGNMENT.name, written, path)
    assert path.read_bytes() == first
