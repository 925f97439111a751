"""The desk: marks by hand in a browser; none is lost, and no words become markup."""

import asyncio
import contextlib
import html
import json
import os
import re
import sqlite3
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from scored import Page, assignment_of, graded, right, wrong
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from lightspeed_class.class_folder import new
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.gradebook.schema import Changed
from lightspeed_class.grading.grade import UNREACHED
from lightspeed_class.marking_desk import cards
from lightspeed_class.marking_desk.request import HERE, POLICY
from lightspeed_class.marking_desk.server import Desk
from lightspeed_class.reports.feedback import write_feedback
from lightspeed_class.score import Graded, Score
from lightspeed_cli import main

RIDGE, WORD = "roofline.ridge", "roofline.what_shortens_it"
ASSIGNMENT = assignment_of(RIDGE, WORD)
NAME = ASSIGNMENT.name
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</textarea></pre></bdi><svg onload=alert(1)>'\"><a href=javascript:alert(2)>x</a> \u202e"
)
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


def notebook(*cells):
    return json.dumps({"cells": list(cells), "nbformat": 4, "nbformat_minor": 5}).encode()


def code(source, id=None, outputs=()):
    return {"cell_type": "code", "id": id, "source": source, "outputs": list(outputs)}


def prose(source):
    return {"cell_type": "markdown", "source": source}


def hand_in(book, student, answers, *cells, seed=None):
    id = book.add_submission(student, NAME, notebook(*cells), 1.0, source="mail")
    book.add_grading(id, "key", graded(answers, seed))
    return id


@pytest.fixture
def book(tmp_path):
    with Gradebook(tmp_path / "book") as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        for student in ("ada", "bob", "cy"):
            book.add_student(student, student.title())
            hand_in(
                book,
                student,
                {RIDGE: wrong(RIDGE), WORD: right(WORD) if student == "cy" else ...},
                prose(f"I am {student} & I divide."),
                code(f"answer = 1  # by {student}", "cell0"),
                code("answer = ...", "cell1"),
            )
        book.add_student("dan", "Dan")
        yield book


class Browser:
    """What a browser sends and keeps: one grader's address, a cookie, the forms of the last page."""

    def __init__(self, desk, loop, client, address, who):
        self.desk, self.loop, self.client, self.address = desk, loop, client, address
        token = next(t for t, name in desk.graders.items() if name == who)
        answer = self.send(f"/?token={token}", cookie="")
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        assert answer.code == 302 and "HttpOnly" in answer.headers["Set-Cookie"]

    def send(self, path, body=None, cookie=None, **headers):
        cookie = self.cookie if cookie is None else cookie
        headers = {k.replace("_", "-"): v for k, v in headers.items()} | {"Cookie": cookie}

        async def fetch():
            return await self.client.fetch(
                self.address + path,
                method="GET" if body is None else "POST",
                body=None if body is None else urlencode(body, doseq=True),
                headers=headers,
                follow_redirects=False,
                raise_error=False,
            )

        return self.loop.run_until_complete(fetch())

    def open(self, student, question=RIDGE):
        self.at = {"student": student, "question": question, "by": "question"}
        answer = self.send(f"/card?{urlencode(self.at)}")
        self.text = answer.body.decode()
        assert answer.code == 200, self.text
        return self

    def post(self, path, form=None, **fields):
        """Send a form of the page with its hidden fields, as a browser does."""
        start = self.text.find(f'action="{path}"' if form is None else form)
        hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', self.text[start:])
        sent = {}
        for key, value in hidden:
            sent.setdefault(key, html.unescape(value))
        answer = self.send(path, sent | fields, Origin=self.address)
        if answer.body:
            self.text = answer.body.decode()
        return answer

    def mark(self, *items, points="", comment="", then=""):
        return self.post("/card", item=items, points=points, comment=comment, then=then).code


@pytest.fixture
def desk(book):
    """Two graders at one desk."""
    loop = asyncio.new_event_loop()
    desk, sockets = Desk(book, NAME, ["eve", "finn"]), bind_sockets(0, HERE)

    async def start():
        server = HTTPServer(desk.application())
        server.add_sockets(sockets)
        return server, AsyncHTTPClient(force_instance=True)

    server, client = loop.run_until_complete(start())
    address = f"http://{HERE}:{sockets[0].getsockname()[1]}"
    yield [Browser(desk, loop, client, address, who) for who in ("eve", "finn")]
    client.close()
    server.stop()
    loop.run_until_complete(server.close_all_connections())
    loop.close()


def points(book, student):
    (result,) = book.results(NAME, student)
    return result.points


def test_who_has_no_token_or_comes_from_elsewhere_gets_nothing(desk, book):
    eve, _ = desk
    body = {"student": "ada", "question": RIDGE, "version": 0, "grading": 1, "points": "1"}
    here, port = eve.address, eve.address.rpartition(":")[2]
    asked = {
        "no cookie": eve.send("/", cookie=""),
        "another token": eve.send("/?token=x", cookie=""),
        "another cookie": eve.send("/", cookie=f"lightspeed-desk-{port}=x"),
        "script": eve.send("/desk.js", cookie=""),
        "another name for this machine": eve.send("/", Host=f"evil.example:{port}"),
        "no origin": eve.send("/card", body),
        "foreign origin": eve.send("/card", body, Origin="http://evil.example"),
        "another port": eve.send("/card", body, Origin=f"http://{HERE}:1"),
        "null": eve.send("/card", body, Origin="null"),
        "a page of another site": eve.send("/card", body, Origin=here, Sec_Fetch_Site="same-site"),
    }
    assert {name: a.code for name, a in asked.items()} == dict.fromkeys(asked, 403)
    assert not any(b"ada" in a.body or b"Ada" in a.body for a in asked.values())
    assert book.manual(NAME) == []
    assert eve.send("/card", body, Origin=here, Sec_Fetch_Site="same-origin").code == 303
    page = eve.send("/")
    assert page.headers["Content-Security-Policy"] == f"{POLICY}; frame-ancestors 'none'"
    assert html.unescape(page.body.decode()).count(f'content="{POLICY}"') == 1
    assert "unsafe" not in POLICY.replace("style-src 'unsafe-inline'", "")


def test_the_queue_goes_by_question_or_student(book):
    results = book.results(NAME)
    by_question = cards.queue(results, ASSIGNMENT, "question")
    assert [(p.student, p.question, p.state) for p in by_question] == [
        ("ada", RIDGE, "to mark"), ("bob", RIDGE, "to mark"), ("cy", RIDGE, "to mark"),
        ("ada", WORD, "to mark"), ("bob", WORD, "to mark"), ("cy", WORD, "right"),
    ]  # fmt: skip
    by_student = cards.queue(results, ASSIGNMENT, "student")
    assert [(p.student, p.question) for p in by_student[:2]] == [("ada", RIDGE), ("ada", WORD)]
    at, before, after, following = cards.around(by_student, "bob", WORD)
    assert (at, before.question, after.student, following.student) == (4, RIDGE, "cy", "cy")
    assert cards.around(by_student, "cy", WORD)[3].student == "ada"  # it goes round
    with pytest.raises(KeyError):
        cards.around(by_student, "dan", WORD)  # who handed nothing in


def test_a_card_shows_work_beside_diagnosis(desk):
    text = Page(desk[0].open("ada").text).text
    for shown in ("I am ada & I divide.", "answer = 1  # by ada", "Not yet", "0 of 1 point"):
        assert shown in text
    assert "answer = ..." not in text  # the cell of another question
    assert "answer = ..." in desk[0].send("/notebook?student=ada").body.decode()
    for path in ("/card?student=dan&question=" + RIDGE, "/card?student=ada&question=x", "/no"):
        assert desk[0].send(path).code == 404


@pytest.mark.holds("docs/teach.md", "counts for all who have the item")
def test_changed_points_of_an_item_count_for_all_who_have_it(desk, book):
    eve, finn = desk
    eve.open("ada").post("/item", 'action="/item">', points="0.25", words="The right idea.")
    (item,) = book.rubric(NAME)
    for browser, student in ((eve, "ada"), (finn, "bob")):
        assert browser.open(student).mark(item) == 303
    assert (points(book, "ada"), points(book, "bob"), points(book, "cy")) == (0.25, 0.25, 1)
    eve.open("ada")
    form = f'name="id" value="{item}"'
    assert eve.post("/item", form, **eve.at, id=item, points="0.75", words="Right!").code == 303
    assert (points(book, "ada"), points(book, "bob")) == (0.75, 0.75)
    assert finn.open("bob").mark(item, points="0.5") == 303  # partial credit, in its place
    assert (points(book, "bob"), finn.open("bob").text.count("checked")) == (0.5, 1)
    eve.open("ada").post("/item", form, **eve.at, id=item, points="7", words="Right!")
    assert points(book, "ada") == 1  # no more than there is
    eve.open("ada").post("/item", form, **eve.at, id=item, words="Right!", act="withdraw")
    assert (points(book, "ada"), points(book, "bob")) == (0, 0.5)
    assert [(i.words, i.points, i.by) for i in book.rubric_history(NAME)] == [
        ("The right idea.", 0.25, "eve"), ("Right!", 0.75, "eve"),
        ("Right!", 7.0, "eve"), ("Right!", None, "eve"),
    ]  # fmt: skip


def test_two_graders_at_once_lose_nothing(desk, book):
    eve, finn = desk
    eve.open("ada")
    finn.open("ada")
    assert eve.mark(points="0.5", comment="Half.") == 303
    assert finn.mark(points="1", comment="All <of> it,\nI say.") == 409
    assert "somebody marked this" in finn.text and "All &lt;of&gt; it,\nI say." in finn.text
    assert points(book, "ada") == 0.5
    assert finn.mark(points="1", comment="All of it.") == 303  # having seen it
    assert [(m.points, m.by) for m in book.manual(NAME)] == [(0.5, "eve"), (1.0, "finn")]
    id = book.set_item(NAME, RIDGE, "a", 0.1, "eve")
    last = book.rubric(NAME)[id].number
    book.set_item(NAME, RIDGE, "b", 0.2, "eve", id, last)
    with pytest.raises(Changed):
        book.set_item(NAME, RIDGE, "c", 0.3, "finn", id, last)
    with pytest.raises(Changed):
        book.set_manual("ada", NAME, RIDGE, 0.1, expects=0)
    assert finn.open("bob").mark(comment="for bob") == 303  # of other cards nobody is told


def test_undo_goes_back_step_by_step_and_says_so(desk, book):
    eve, finn = desk
    for given in ("0.25", "0.5"):
        assert eve.open("ada").mark(points=given) == 303
    assert finn.open("ada").post("/undo").code == 303 and points(book, "ada") == 0.25
    assert eve.open("ada").post("/undo").code == 303 and points(book, "ada") == 0
    assert 'action="/undo"' not in eve.open("ada").text
    assert eve.mark(points="1") == 303
    assert finn.text and finn.post("/undo").code == 409  # finn has not seen that
    assert eve.open("ada").post("/undo").code == 303 and points(book, "ada") == 0
    entries = book.manual(NAME)
    assert [bool(m.undoes) for m in entries] == [False, False, True, True, False, True]
    assert [m.by for m in entries] == ["eve", "eve", "finn", "eve", "eve", "eve"]


def test_what_cannot_be_is_told_and_nothing_kept(desk, book):
    for sent in (
        *({"points": p} for p in ("2", "-0.1", "nan", "inf", "much", "0,5")),
        *({"items": [i]} for i in ("99", "x", "1" * 40)),
        {"comment": "x" * 10_001},
    ):
        eve, given = desk[0].open("ada"), {"points": "", "comment": "mine", "items": (), **sent}
        status = eve.mark(*given["items"], points=given["points"], comment=given["comment"])
        assert status in (400, 409) and "Nothing was kept" in eve.text, sent
        assert book.manual(NAME) == [] and given["comment"] in eve.text, sent


@pytest.mark.holds("docs/teach.md", "a grade by the machine moves no mark")
def test_a_regrade_keeps_marks_and_the_card_says_what_changed(desk, book):
    id = book.set_item(NAME, RIDGE, "The idea.", 0.5, "eve")
    assert desk[0].open("ada").mark(id) == 303
    desk[1].open("bob")
    for submission in book.submissions(NAME):
        book.add_grading(submission.id, "again", graded({RIDGE: right(RIDGE), WORD: ...}))
    assert (points(book, "ada"), points(book, "bob")) == (0.5, 1)
    assert "automatic points were 0 when" in desk[0].open("ada").text
    assert desk[1].mark(id) == 409  # it was graded in between
    assert desk[0].mark(id, comment="Right now.") == 303 and points(book, "ada") == 1


def test_saving_what_is_there_adds_no_entry_and_goes_on(desk, book):
    eve = desk[0].open("ada")
    answer = eve.post("/card", item=[], points="", comment="", then="next")
    assert answer.code == 303 and "student=bob" in answer.headers["Location"]
    assert book.manual(NAME) == []


def test_feedback_shows_code_items_and_comments(desk, book, tmp_path):
    id = book.set_item(NAME, RIDGE, "The <b>idea</b>.", 0.5, "eve")
    desk[0].open("ada").mark(id, comment="Well begun.")
    write_feedback(book, NAME, tmp_path, "ada")
    text = Page((tmp_path / "ada.html").read_text("utf-8")).check().sections["q1"]
    for shown in ("answer = 1  # by ada", "+0.5 The <b>idea</b>.", "Well begun.", "0.5 of 1 point"):
        assert shown in text


def test_what_stopped_a_notebook_is_told_once(book, tmp_path):
    """A program that ended, and cells that failed one after another."""
    unreached = Score(WORD, 0.0, 1.0, "unanswered", message=UNREACHED)
    ended = "The program ended itself. It was at code cell 1."
    fell = (
        "Code cell 1 stopped with ValueError.",
        *(f"Code cell {n} stopped with NameError." for n in (2, 3)),
    )
    cells = [code("import os"), code("answer = ...", "cell0"), code("answer = ...", "cell1")]
    for student, status, notes, scores in (
        ("ada", "exit", (ended,), (replace(unreached, question=RIDGE), unreached)),
        ("bob", "ok", fell, graded({RIDGE: ..., WORD: ...}).scores),
    ):
        id = book.add_submission(student, NAME, notebook(*cells), 2.0)
        book.add_grading(id, "key", Graded(status, scores, notes, graded({}).record))
    pages = [Page(p.read_text("utf-8")).check() for p in write_feedback(book, NAME, tmp_path)]
    assert f"Not reached. {ended}" in pages[0].sections["q1"]
    assert "Not reached. The program had ended by then: see question 1." in pages[0].sections["q2"]
    assert (
        "Not answered. Code cell 2, which asks it, stopped with NameError. Code cell 1 had"
        " stopped before, with ValueError." in pages[1].sections["q1"]
    )
    assert "Code cell 3 stopped with NameError: see question 1." in pages[1].sections["q2"]
    assert "Code cells 2 to 3 stopped with NameError." in pages[1].text


def test_history_and_points_know_the_desk(desk, book, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(new(tmp_path / "class").root)
    id = book.set_item(NAME, RIDGE, "The idea.", 0.5, "eve")
    desk[0].open("ada").mark(id)
    desk[0].open("ada").mark(id, points="0.25")
    desk[1].open("ada").post("/undo")
    with contextlib.closing(sqlite3.connect(book.path)) as kept:
        kept.execute(f"VACUUM INTO '{tmp_path / 'copy'}'")
    os.replace(tmp_path / "copy", "gradebook.sqlite")
    assert main(["class", "points", NAME, "ada", RIDGE, "--comment", "Well.", "--by", "me"]) == 0
    assert "0.5 points" in capsys.readouterr().out  # the item stays
    assert main(["class", "history"]) == 0
    lines = [line[18:] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        f'all, {NAME}: rubric item 1 of {RIDGE}, +0.5 points "The idea." (eve)',
        f"ada, {NAME}: {RIDGE}, 1 rubric item (eve)",
        f"ada, {NAME}: {RIDGE}, 0.25 points by hand (eve)",
        f"ada, {NAME}: {RIDGE}, the entry before undone (finn)",
        f'ada, {NAME}: {RIDGE}, 1 rubric item "Well." (me)',
    ]


@pytest.mark.holds("docs/teach.md", "its HTML only as text")
def test_nothing_of_a_student_becomes_markup(desk, book):
    outputs = [
        {"output_type": "stream", "text": HOSTILE},
        {"output_type": "display_data", "data": {"text/html": [HOSTILE], "text/plain": HOSTILE}},
        {"output_type": "display_data", "data": {"image/png": f'{PIXEL}"><script>'}},
        {"output_type": "display_data", "data": {"image/png": PIXEL}},
        {"output_type": "display_data", "data": {"image/svg+xml": f"<svg>{HOSTILE}</svg>"}},
        {"output_type": "error", "traceback": ["\x1b[31m" + HOSTILE]},
        *({"data": d} for d in (None, [], {"text/html": 5}, {"image/png": {}})),
        *({"traceback": t} for t in (5, [5, None], {})),
        None,
        "x",
    ]
    book.add_student("mal", HOSTILE)
    cells = (prose(HOSTILE), code(f"answer = '{HOSTILE}'", "cell0", outputs), prose(HOSTILE))
    hand_in(book, "mal", {RIDGE: HOSTILE, WORD: HOSTILE}, *cells)
    book.set_item(NAME, RIDGE, HOSTILE, 0.5, HOSTILE)
    book.set_manual("mal", NAME, RIDGE, 0.5, HOSTILE, HOSTILE)
    pages = [
        desk[0].open("mal").text,
        *(desk[0].send(p).body.decode() for p in ("/", "/?by=student", "/notebook?student=mal")),
    ]
    for text in pages:
        tags = Page(text).tags
        assert [a for tag, a in tags if tag == "script"] == [{"src": "/desk.js", "defer": None}]
        assert not {"iframe", "object", "base", "svg", "embed"} & {tag for tag, _ in tags}
        assert not any(name.startswith("on") for _, a in tags for name in a)
        sources = [a.get(name) for _, a in tags for name in ("src", "href") if name in a]
        assert all(s.startswith(("/", "#", "data:image/")) for s in sources), sources
        assert "\u202e" not in re.sub("<textarea.*?</textarea>", "", text, flags=re.DOTALL)
    pictures = [a["src"] for tag, a in Page(pages[0]).tags if tag == "img"]
    assert [p[:15] for p in pictures] == ["data:image/png;", "data:image/svg+"]
    assert pages[0].count("document.title") >= 8  # all of it is there to read


@pytest.mark.holds("docs/teach.md", "shows no names and no ids")
def test_nobody_is_known_at_an_anonymous_desk(desk, book):
    """Neither by a page nor by an address; marks and their undoing reach who they are for."""
    told = code("# made for ada", "class-setup"), code(f'check("{RIDGE}", 1)  # mine', "x")
    hand_in(book, "ada", {RIDGE: wrong(RIDGE), WORD: right(WORD)}, *told)
    eve = desk[0]
    eve.desk.anonymous = True
    queue = eve.send("/?by=student").body.decode()
    masks = sorted(set(re.findall(r"student=(\w+)", queue)))
    notebooks = {mask: eve.send(f"/notebook?student={mask}").body.decode() for mask in masks}
    cards = [eve.open(mask).text for mask in masks]
    assert len(masks) >= 3
    assert masks == [m for m in re.findall(r"Student (\w+)", queue) if m in masks]
    for text in (queue, *notebooks.values(), *cards):
        text = re.sub(r"(?s)<(pre|div class=prose).*?</(pre|div)>", "", text)  # their own words
        assert not re.search("|".join(rf"\b{s.id}\b|{s.name}" for s in book.students()), text)
    (ada,) = [mask for mask, page in notebooks.items() if "# mine" in page]
    assert eve.open(ada).mark(points="0.5") == 303 and points(book, "ada") == 1.5
    assert eve.open(ada).post("/undo").code == 303 and points(book, "ada") == 1
    assert eve.send(f"/card?student=ada&question={RIDGE}").code == 404


def test_notes_on_other_cells_are_told_once(desk, book):
    """Twenty cells that stop are twenty lines of the notebook's page, and none of this card."""
    notes = [f"Code cell {n} stopped with NameError." for n in (1, *range(5, 24))]
    id = book.add_submission("ada", NAME, notebook(code("x", "r")), 2.0, source="mail")
    book.add_grading(id, "key", graded({RIDGE: wrong(RIDGE), WORD: right(WORD)}, notes=notes))
    text = desk[0].open("ada").text
    assert text.count("NameError") < 3 and ">20 notes on other cells<" in text
    assert "Code cells 1 and 5 to 23 stopped" in desk[0].send("/notebook?student=ada").body.decode()


@pytest.mark.holds("docs/teach.md", "all that have the same mistake")
def test_equal_mistakes_are_one_card_settled_at_once_and_undone(desk, book):
    """Thirty wrong ridges, of five kinds, in five acts; then what the machine called wrong stands."""
    slips = range(4)
    for n in range(27):
        book.add_student(f"s{n:02}", f"Student {n}")
        answer = wrong(RIDGE, n % len(slips)) if n < 24 else ...
        hand_in(book, f"s{n:02}", {RIDGE: answer, WORD: ...}, code(f"answer = {n}", "cell0"))
    eve, finn = desk
    kinds = cards.mistakes(book.results(NAME), RIDGE)
    assert sum(map(len, kinds.values())) == 30
    acts = 0
    while waiting := cards.mistakes(book.results(NAME), RIDGE):
        first = next(iter(waiting.values()))[0]
        assert eve.open(first.student.id).post("/card", points="0.25", alike="yes").code == 303
        acts += 1
    assert acts == len(kinds) <= 5
    for student in ("ada", "s00", "s23", "s26"):
        assert points(book, student) == 0.25
    alike = next(ids for ids in kinds.values() if len(ids) > 5)
    assert finn.open(alike[-1].student.id).post("/undo").code == 303
    assert len(cards.mistakes(book.results(NAME), RIDGE)) == 1, "a whole act, and no other"
    text = finn.send("/").body.decode()
    assert f">{len(alike)}</td>" in text
    assert (
        finn.send("/settle", {"question": RIDGE, "by": "question"}, Origin=finn.address).code == 303
    )
    assert not cards.mistakes(book.results(NAME), RIDGE)
    assert {book.results(NAME, r.student.id)[0].manual[RIDGE].points for r in alike} == {0.0}
    assert finn.open(alike[0].student.id).post("/undo").code == 303
    assert sum(map(len, cards.mistakes(book.results(NAME), RIDGE).values())) == len(alike)


def test_a_jump_and_keys_that_can_be_off(desk):
    eve, _ = desk

    def jump(to):
        return eve.send(f"/jump?{urlencode({'to': to, 'question': RIDGE, 'by': 'student'})}")

    for text, student in (("bob", "bob"), ("CY", "cy"), (" ada ", "ada"), ("bo", "bob")):
        answer = jump(text)
        assert answer.code == 303 and f"student={student}&" in answer.headers["Location"]
    assert jump("dan").code == jump("").code == 404
    assert 'id="keys"' in eve.open("ada").text
    assert 'localStorage.getItem("keys") === "off") return' in eve.send("/desk.js").body.decode()
