"""Canvas by its API, against a small server that answers as its documentation says: nothing twice,
nothing of anybody's written over, and the token nowhere but where it belongs.
"""

import json
from datetime import datetime

import cases
import pytest
from fake_canvas import ASSIGNMENT, COURSE, TOKEN, FakeCanvas
from scored import graded, right, wrong

from lightspeed_class.canvas import client
from lightspeed_class.canvas.client import connect
from lightspeed_class.canvas.pull import pull
from lightspeed_class.canvas.push import alone
from lightspeed_class.class_folder import ClassError, ClassFolder
from lightspeed_class.notebooks import Assignment
from lightspeed_class.reports.results import outcomes
from lightspeed_cli import main

pytestmark = pytest.mark.slow

NAME, RIDGE, BYTES, DOT = (
    "02_roofline",
    "roofline.ridge",
    "roofline.int8_bytes",
    "roofline.dot_intensity",
)
ASKED = Assignment(
    NAME, {"a": ((RIDGE, "answer"),), "b": ((BYTES, "answer"),), "c": ((DOT, "answer"),)}
)
DUE, LATE = "2026-03-01T12:00:00Z", "2026-03-02T12:30:00Z"
EARLY = "2026-02-28T08:00:00Z"


@pytest.fixture
def canvas(monkeypatch):
    fake = FakeCanvas()
    monkeypatch.setenv(client.TOKEN, TOKEN)
    fake.slept = []
    monkeypatch.setattr(client, "sleep", fake.slept.append)
    yield fake
    fake.close()


@pytest.fixture
def say(course, canvas, capsys, monkeypatch):
    """Run `lightspeed class canvas` in a class that names the server: (status, all it said)."""
    monkeypatch.chdir(course.root)
    with open(course.root / "class.toml", "a") as file:
        file.write(
            f'[canvas]\nurl = "{canvas.url}"\ncourse = {COURSE}\n'
            f"assignments = {{ {NAME} = {ASSIGNMENT} }}\n"
        )

    def run(*words):
        status = main(["class", "canvas", *words])
        out = capsys.readouterr()
        assert TOKEN not in out.out + out.err and "v3r1f13r" not in out.out + out.err
        return status, out.out + out.err

    return run


@pytest.fixture
def book(course):
    with course.book() as book:
        book.add_assignment(ASKED)
        yield book


def notebook(text):
    return cases.notebook([cases.code(f'check("{RIDGE}", 1) # {text}', "a")])


def people(canvas):
    canvas.student(
        11,
        "Lovelace, Ada",
        (EARLY, "a.ipynb", notebook("a1")),
        (DUE, "a.ipynb", notebook("a2")),
        sis_user_id="ada",
        login_id="ada@x.org",
    )
    canvas.student(
        12,
        "Ross, Bob",
        (LATE, "02_roofline (1).ipynb", notebook("b")),
        sis_user_id="bob",
        login_id="bob@x.org",
        section=2,
    )
    canvas.student(13, "Twombly, Cy", sis_user_id="cy", login_id="cy@x.org", email="cy@mail.org")
    canvas.student(
        14, "Doe, Dee", (EARLY, "essay.pdf", b"%PDF"), sis_user_id="dee", login_id="dee@x.org"
    )
    canvas.student(
        15, "Éluard, Eve", (LATE, "e_1_2.ipynb", notebook("e")), sis_user_id="eve", login_id=None
    )


def grade_all(book, answers=None):
    """What a grader would have found."""
    for student, submission in book.counting(NAME).items():
        given = (answers or {}).get(student, {RIDGE: right(RIDGE), BYTES: wrong(BYTES), DOT: ...})
        book.add_grading(submission.id, f"key {given}", graded(given))


@pytest.fixture
def pulled(say, canvas, book):
    """A class whose submissions were taken in from Canvas and graded."""
    people(canvas)
    say("roster")
    say("pull", NAME)
    grade_all(book)


def test_the_roster(say, canvas, book, course):
    people(canvas)
    canvas.users[1]["enrollments"].append(
        {**canvas.users[1]["enrollments"][0], "course_section_id": 1}
    )
    status, said = say("roster")
    assert status == 0 and "5 added" in said
    ada, bob, cy, *_ = book.students()
    assert (ada.id, ada.name, ada.details["canvas_id"]) == ("ada", "Ada Lovelace", "11")
    assert bob.sections == ["A and B", "A", "B"] and cy.details["email"] == "cy@mail.org"
    asked = [path for _, path, _ in canvas.seen]
    assert sum(path.endswith("/users") for path in asked) == 3, "page by page"
    status, said = say("roster")
    assert status == 0 and "5 as they were" in said
    assert len(list((course.root / "canvas").glob("roster-*.csv"))) >= 1


def test_submissions_come_with_their_times_and_the_same_again_changes_nothing(say, canvas, book):
    people(canvas)
    canvas.about["due_at"] = DUE
    canvas.overrides += [
        {"id": 1, "title": "ill", "student_ids": [15], "due_at": "2026-03-04T12:00:00Z"},
        {"id": 2, "title": "Section B", "course_section_id": 2, "due_at": "2026-03-02T12:00:00Z"},
        {"id": 3, "title": "Group 9", "group_id": 9, "due_at": LATE},
        {"id": 4, "title": "only locked later", "student_ids": [11], "lock_at": LATE},
    ]
    say("roster")
    status, said = say("pull", NAME)
    assert status == 0, said
    assert "1 late" in said
    kept = {(s.student, s.at) for s in book.submissions(NAME)}
    at = {text: datetime.fromisoformat(text).timestamp() for text in (EARLY, DUE, LATE)}
    assert kept == {
        ("ada", at[EARLY]),
        ("ada", at[DUE]),
        ("bob", at[LATE]),
        ("dee", at[EARLY]),
        ("eve", at[LATE]),
    }
    assert book.due(NAME) == (at[DUE], False) and book.due(NAME, "eve")[1]
    late = {o.result.student.id: o.late for o in outcomes(book, NAME)}
    assert late == {"ada": "", "bob": "30 min late", "cy": "", "dee": "", "eve": ""}
    assert "Group 9 is for a group" in said and "more time, until 2026-03-04" in said
    assert not canvas.leaks, "the token went to where files are kept"
    before = len(canvas.seen)
    status, said = say("pull", NAME)
    assert "5 files there already" in said and "more time" not in said
    assert not [path for _, path, _ in canvas.seen[before:] if path.startswith("/files/")]
    assert {(s.student, s.at) for s in book.submissions(NAME)} == kept


def test_what_came_by_the_archive_gets_its_time(say, canvas, book, course):
    """Canvas's download marks what is late, and does not say by how much."""
    people(canvas)
    say("roster")
    archived = course.root / "rossbob_LATE_12_9002_02_roofline-1.ipynb"
    archived.write_bytes(canvas.files[9002])
    assert main(["class", "collect", NAME, str(archived)]) == 0
    book.setting(f"due {NAME}", repr(datetime.fromisoformat(DUE).timestamp()))
    late = {o.result.student.id: o.late for o in outcomes(book, NAME)}
    assert late["bob"] == "late"
    assert "1 file there already" in say("pull", NAME)[1]
    say("pull", NAME)
    (submission,) = book.submissions(NAME, "bob")
    late = {o.result.student.id: o.late for o in outcomes(book, NAME)}
    assert late["bob"] == "1 day late" and submission.source.count("(") == 1


def test_what_was_decided_here_stays(say, canvas, book):
    people(canvas)
    say("roster")
    mine, more = (datetime.fromisoformat(t).timestamp() for t in (LATE, "2026-03-09T00:00:00Z"))
    book.setting(f"due {NAME}", repr(mine))
    book.decide("extended", "eve", NAME, repr(more), "ill", "me")
    canvas.about["due_at"] = DUE
    canvas.overrides += [
        {"id": 1, "title": "x", "student_ids": [15], "due_at": "2026-03-20T12:00:00Z"},
        {"id": 2, "title": "y", "student_ids": [11], "due_at": EARLY},
    ]
    canvas.submissions[13]["excused"] = True
    _, said = say("pull", NAME)
    assert book.due(NAME) == (mine, False) and book.due(NAME, "eve") == (more, True)
    for words in (
        "here it stays",
        "eve: Canvas gives until",
        "ada: Canvas has it due",
        "is excused on Canvas",
    ):
        assert words in said, words


def test_due_by_sections_alone(say, canvas, book):
    people(canvas)
    say("roster")
    canvas.about["only_visible_to_overrides"] = True
    canvas.overrides += [
        {"id": 1, "title": "A", "course_section_id": 1, "due_at": DUE},
        {"id": 2, "title": "B", "course_section_id": 2, "due_at": LATE},
    ]
    say("pull", NAME)
    first, second = (datetime.fromisoformat(text).timestamp() for text in (DUE, LATE))
    assert book.due(NAME, "ada") == (first, False) and book.due(NAME, "bob") == (second, True)


def test_an_id_that_is_not_the_senders_is_told_and_the_senders_numbers_count(say, canvas, course):
    sources = {
        "class-setup": 'STUDENT = "bob"\nNUMBERS = own_numbers(STUDENT, "")',
        "a": f'check("{RIDGE}", 1)',
    }
    cells = [
        {"cell_type": "code", "id": key, "metadata": {}, "source": source}
        for key, source in sources.items()
    ]
    sent = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}).encode()
    canvas.student(11, "Lovelace, Ada", (EARLY, "bob_12_77_x.ipynb", sent), sis_user_id="ada")
    canvas.student(12, "Ross, Bob", sis_user_id="bob")
    with course.book() as book:
        book.add_assignment(ASKED)
        say("roster")
        _, said = say("pull", NAME)
        assert {s.student for s in book.submissions(NAME)} == {"ada"}
        assert "STUDENT in its first cell is bob, but ada handed it in" in said


@pytest.mark.holds("docs/teach.md", "Nothing is sent twice")
def test_points_and_feedback_go_up_once(say, canvas, book, pulled):
    book.decide("excused", "dee", NAME, "yes", "", "me")
    canvas.seen.clear()
    status, said = say("push", NAME, "--dry-run")
    assert status == 0 and "would be sent for 4 students" in said and not canvas.changed()
    canvas.done_first = True  # 201 in place of a redirection
    status, said = say("push", NAME)
    assert status == 0 and "sent 4 grades and 4 feedback pages" in said
    rows = canvas.submissions
    assert {id: row["entered_score"] for id, row in rows.items()} == {
        11: 1,
        12: 1,
        13: None,
        14: None,
        15: 1,
    }
    assert rows[14]["excused"] and not rows[13]["submission_comments"]
    for id in (11, 12, 14, 15):
        (comment,) = rows[id]["submission_comments"]
        (file,) = comment["attachments"]
        (page,) = (
            u["content"] for u in canvas.uploads.values() if u["name"] == file["display_name"]
        )
        assert b"Feedback: 02_roofline" in page and "Open it in a browser" in comment["comment"]
    assert not canvas.leaks
    canvas.seen.clear()
    status, said = say("push", NAME)
    assert status == 0 and "sent 0 grades and 0 feedback pages; nothing new for 4" in said
    assert not canvas.changed()
    # other points: another grade and another page, for that student alone
    book.set_manual("ada", NAME, BYTES, 1.0, "On paper.", "me")
    _, said = say("push", NAME)
    assert "ada: 2 points, feedback" in said and "sent 1 grade and 1 feedback page" in said
    assert rows[11]["entered_score"] == 2 and len(rows[11]["submission_comments"]) == 2
    # a comment that a person deleted there stays deleted
    rows[12]["submission_comments"].clear()
    assert "sent 0 grades and 0" in say("push", NAME)[1]


def test_points_that_somebody_gave_on_canvas_stay(say, canvas, book, pulled):
    canvas.submissions[11] |= {"score": 2.5, "entered_score": 2.5}
    canvas.submissions[12] |= {"score": 0.5, "entered_score": 1.0, "points_deducted": 0.5}
    canvas.submissions[15]["submitted_at"] = "2026-03-05T00:00:00Z"
    status, said = say("push", NAME, "--grades-only")
    assert status == 1 and "KEPT: ada has 2.5 on Canvas" in said
    assert canvas.submissions[11]["entered_score"] == 2.5
    assert "bob: Canvas takes 0.5 off" in said and "eve: handed in again on Canvas since" in said
    assert [path for _, path in canvas.changed()] == [
        f"/assignments/{ASSIGNMENT}/submissions/{id}" for id in (14, 15)
    ]
    assert say("push", NAME, "--grades-only", "--replace")[0] == 0
    assert canvas.submissions[11]["entered_score"] == 1
    # what was sent from here may be changed from here
    book.set_manual("ada", NAME, BYTES, 1.0, "", "me")
    assert say("push", NAME, "--grades-only")[0] == 0
    assert canvas.submissions[11]["entered_score"] == 2


def test_failures_on_the_way_are_tried_again(say, canvas, book, pulled):
    canvas.faults += [
        ("PUT", r"/submissions/12$", "after"),  # the grade
        ("PUT", r"/submissions/12$", 403),
        ("PUT", r"/submissions/12$", 429),
        ("POST", r"/submissions/12/comments/files$", 500),
        ("POST", r"/upload$", "after"),
        ("POST", r"/upload$", 503),
        ("GET", r"create_success$", "drop"),
        ("GET", r"/submissions$", 502),
    ]
    status, said = say("push", NAME)
    assert status == 0, said
    assert not canvas.faults and len(canvas.slept) >= 6
    assert [len(canvas.submissions[id]["submission_comments"]) for id in (11, 12, 15)] == [1, 1, 1]
    assert canvas.submissions[12]["entered_score"] == 1


def test_a_comment_that_arrived_without_an_answer_is_not_sent_again(say, canvas, book, pulled):
    say("push", NAME, "--grades-only")
    canvas.faults.append(("PUT", r"/submissions/12$", "after"))
    assert say("push", NAME)[0] == 0
    assert len(canvas.submissions[12]["submission_comments"]) == 1


def test_a_push_that_was_stopped_goes_on(say, canvas, book, pulled, monkeypatch):
    """Stopped at each request that changes something, in turn; in the end all is there, once."""
    real, stops = client.Canvas._once, 0

    def once(self, method, url, into, **more):
        left[0] -= method in ("PUT", "POST")
        if left[0] == 0 and not left[1]:
            raise KeyboardInterrupt
        answer = real(self, method, url, into, **more)
        if left[0] == 0:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(client.Canvas, "_once", once)
    for turn in range(1, 50):
        left = [1 + turn // 2, turn % 2]  # requests until it is stopped, and whether after that one
        status, _ = say("push", NAME)
        if status == 0:
            break
        assert status == 130
        stops += 1
    assert stops > 4
    rows = canvas.submissions
    assert [len(rows[id]["submission_comments"]) for id in rows] == [1, 1, 0, 1, 1]
    assert [rows[id]["entered_score"] for id in (11, 12, 15)] == [1, 1, 1]
    assert "sent 0 grades and 0" in say("push", NAME)[1]


def test_it_gives_up_and_says_what_to_do(say, canvas, book):
    people(canvas)
    say("roster")
    canvas.faults += [("GET", r"/submissions$", 500)] * 6
    status, said = say("pull", NAME)
    assert status == 2 and "does not answer: 500" in said and "goes on where it was" in said
    assert len(canvas.slept) == 5 and canvas.slept == sorted(canvas.slept)
    canvas.token = "another"
    status, said = say("pull", NAME)
    assert status == 2 and "does not know the token" in said
    canvas.token, canvas.files = TOKEN, {}  # files that are gone: the rest is taken in
    status, said = say("pull", NAME)
    assert "Canvas does not have this file any more" in said
    canvas.close()
    status, said = say("pull", NAME)
    assert status == 2 and "does not answer" in said and "3 times" in said


def test_what_canvas_would_take_otherwise_is_refused_before_it_is_sent(say, canvas, book, pulled):
    canvas.seen.clear()
    for about, words in (
        ({"points_possible": 10}, "has 10 points on Canvas, and 02_roofline 3 here"),
        ({"grading_type": "pass_fail"}, "graded as pass_fail"),
    ):
        before = dict(canvas.about)
        canvas.about |= about
        status, said = say("push", NAME)
        assert status == 2 and words in said and not canvas.changed()
        canvas.about = before
    book.add_student("zoe", "Zoe")
    book.set_manual("zoe", NAME, RIDGE, 1.0, "", "me")
    status, said = say("push", NAME)
    assert status == 1 and "LEFT OUT" in said and "zoe" in said
    with alone(book):
        assert say("push", NAME)[0] == 2


def test_the_token_comes_from_the_environment_or_a_file_of_ones_own(course, canvas, monkeypatch):
    def settings(**more):
        return {"url": canvas.url, "course": COURSE, **more}

    def course_with(**kept):
        return ClassFolder(course.root, "c", True, "full", {}, canvas=kept)

    file = course.root / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    monkeypatch.delenv(client.TOKEN)
    with connect(course_with(**settings(token_file=str(file)))) as open_:
        assert open_.get(f"/api/v1/courses/{COURSE}/assignments/{ASSIGNMENT}")["name"] == "Roofline"
        assert TOKEN not in repr(vars(open_))
    file.chmod(0o644)
    for kept, words in (
        (settings(token_file=str(file)), "others can read the token"),
        (settings(token_file=str(file) + "x"), "No such file"),
        (settings(), "needs a token"),
        ({}, "no table"),
        ({"url": "http://canvas.example.edu", "course": 1}, "is not safe"),
        ({"url": "https://canvas.example.edu/courses/1", "course": 1}, "nothing behind it"),
        ({"url": "canvas.example.edu", "course": 1}, "nothing behind it"),
        (settings(course="1234"), "expected a number"),
        (settings(tokenfile="x"), "token_file"),
        ({"course": 1}, "has no url"),
        (settings(assignments={NAME: "x"}), "expected its number"),
    ):
        with pytest.raises(ClassError, match=words):
            connect(course_with(**kept))
    monkeypatch.setenv(client.TOKEN, "two words")
    with pytest.raises(ClassError, match="is no token") as told:
        connect(course_with(**settings()))
    assert "two words" not in str(told.value)


def test_a_list_does_not_lead_elsewhere(course, canvas):
    """A Link header is Canvas's; the token goes nowhere else, even where it says so."""
    kept = {"url": canvas.url, "course": COURSE}
    canvas._page = lambda *args: (200, [], {"Link": f'<{canvas.store_url}/kept/1>; rel="next"'})
    with connect(ClassFolder(course.root, "c", True, "full", {}, canvas=kept)) as open_:
        with pytest.raises(ClassError, match="another host"):
            list(open_.pages(f"/api/v1/courses/{COURSE}/users"))
        with pytest.raises(ClassError, match="no number of 03"):
            pull(open_, course, None, "03")
    assert not canvas.leaks
