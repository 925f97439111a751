"""Two desks, each a process of its own, on one gradebook: both graders' marks are kept, and of two
that mark one card at once the second is told.
"""

import html
import http.client
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode, urlsplit

import pytest
from scored import assignment_of, graded, wrong
from test_marking_desk import NAME, code, notebook

from lightspeed_class.class_folder import new

RIDGE = "roofline.ridge"
STUDENTS = [f"s{n:02}" for n in range(12)]


class Grader:
    """A desk of one's own, and a browser that keeps its cookie."""

    def __init__(self, folder, who):
        command = [sys.executable, "-m", "lightspeed_cli", "class", "desk", NAME, "--by", who]
        self.who = who
        self.process = subprocess.Popen(
            [*command, "--class", str(folder)], stdout=subprocess.PIPE, text=True
        )

    def enter(self):
        self.process.stdout.readline()
        address = urlsplit(self.process.stdout.readline().split(": ", 1)[1].strip())
        self.host, self.cookie = address.netloc, ""
        answer, _ = self.send(f"/?{address.query}")
        self.cookie = answer.getheader("Set-Cookie").partition(";")[0]
        return self

    def send(self, path, body=None):
        connection = http.client.HTTPConnection(self.host, timeout=60)
        headers = {"Cookie": self.cookie, "Origin": f"http://{self.host}"}
        form = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        kind = "POST" if body else "GET"
        connection.request(kind, path, body and urlencode(body), headers | form)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def open(self, student):
        """The form of a card, as it is now."""
        place = {"student": student, "question": RIDGE, "by": "question"}
        _, text = self.send(f"/card?{urlencode(place)}")
        form = text[text.index('action="/card"') :]
        return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)[:6])

    def mark(self, form, points, comment):
        return self.send("/card", form | {"points": points, "comment": comment})


@pytest.fixture
def graders(tmp_path):
    course = new(tmp_path / "class")
    with course.book() as book:
        book.add_assignment(assignment_of(RIDGE), seeded=False)
        for student in STUDENTS:
            book.add_student(student)
            id = book.add_submission(student, NAME, notebook(code(f"answer = 1 # {student}")), 1.0)
            book.add_grading(id, "key", graded({RIDGE: wrong(RIDGE)}))
    desks = [Grader(course.root, who) for who in ("eve", "finn")]
    yield course, *(desk.enter() for desk in desks)
    for desk in desks:
        desk.process.send_signal(signal.SIGINT)
        desk.process.communicate(timeout=60)


@pytest.mark.slow
def test_both_are_kept_and_the_second_of_one_card_is_told(graders):
    course, eve, finn = graders

    def marks(grader):
        """Each its own half, then the other's, as fast as it goes."""
        half = STUDENTS[::2] if grader is eve else STUDENTS[1::2]
        return [grader.mark(grader.open(s), "0.5", f"of {grader.who}")[0].status for s in half]

    with ThreadPoolExecutor(2) as pool:
        assert [set(codes) for codes in pool.map(marks, (eve, finn))] == [{303}, {303}]
    with course.book() as book:
        assert sorted((m.student, m.by) for m in book.manual(NAME)) == sorted(
            (s, ("eve", "finn")[i % 2]) for i, s in enumerate(STUDENTS)
        )
    # both have a card open, and save at the same moment
    for student in STUDENTS[:4]:
        forms = [grader.open(student) for grader in (eve, finn)]
        assert forms[0]["version"] == forms[1]["version"] != "0"
        with ThreadPoolExecutor(2) as pool:
            answers = list(
                pool.map(
                    lambda job: job[0].mark(job[1], job[2], f"<now> of {job[0].who}"),
                    zip((eve, finn), forms, ("0.1", "0.2"), strict=True),
                )
            )
        assert sorted(answer.status for answer, _ in answers) == [303, 409]
        lost = next(
            g.who for g, (a, _) in zip((eve, finn), answers, strict=True) if a.status == 409
        )
        told = html.unescape(next(text for answer, text in answers if answer.status == 409))
        assert f"<now> of {lost}" in told and "what you typed is still in the form" in told
        with course.book() as book:
            entries = book.manual(NAME, student, RIDGE)
        assert len(entries) == 2 and entries[-1].by != lost  # one more, and it is the other's
