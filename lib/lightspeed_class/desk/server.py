"""The desk's pages on 127.0.0.1, for one assignment.

Who marks is known by the token in the address, which becomes a cookie: each grader has one. What
changes something must come from the desk's own pages. A form carries the number of the entry that
it was made from, so that nobody writes over what they have not seen: they get their words back,
beside what came in between.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import secrets
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from lightspeed_class.desk import cards
from lightspeed_class.gradebook_schema import Changed
from lightspeed_class.intake.origins import Origins
from lightspeed_class.intake.prose import answer
from lightspeed_class.intake.similarity import alike
from lightspeed_class.posed import posed
from lightspeed_class.reports.feedback import cells_of, seed_of, stops, told_notes, told_question
from lightspeed_class.reports.results import Outcome, number, said
from lightspeed_course.html import page

HERE = "127.0.0.1"
HOSTS = (HERE, "localhost")
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; img-src data:;"
    " form-action 'self'; base-uri 'none'"
)
LONGEST, MOST_POINTS = 10_000, 1e6
_NOTHING = (None, [], "")


class Desk:
    """What all pages share: the gradebook, the assignment, the section that is marked ("" for all)
    and token -> who marks with it.
    """

    def __init__(self, book, name, graders, section=""):
        self.book, self.name, self.section = book, name, section
        self.graders = {secrets.token_urlsafe(16): who for who in graders}
        self._alike = None, {}

    def alike(self, student):
        """A hint that somebody's code is like another's; "" for none. It is worked out again when
        other notebooks count.
        """
        counting = frozenset(s.id for s in self.book.counting(self.name).values())
        if self._alike[0] != counting:
            self._alike = counting, alike(self.book, self.name)
        return self._alike[1].get(student, "")

    def application(self):
        pages = {"/": Queue, "/card": Card, "/undo": Undo, "/item": Item, "/notebook": Notebook}
        routes = [(path, handler, {"desk": self}) for path, handler in pages.items()]
        return Application([*routes, ("/desk.js", Script, {"desk": self})])


def serve(desk, port=0, ready=print):
    """Serve until Ctrl+C. `ready` is called with {who: address}. Raises OSError for a port that is
    taken.
    """
    sockets = bind_sockets(port, HERE)
    port = sockets[0].getsockname()[1]

    async def run():
        server = HTTPServer(desk.application(), max_body_size=1 << 20)
        server.add_sockets(sockets)
        ready({w: f"http://{HERE}:{port}/?token={t}" for t, w in desk.graders.items()})
        await asyncio.Event().wait()

    asyncio.run(run())


class Page(RequestHandler):
    """Lets in who has a token, and says what is wrong in one line."""

    def initialize(self, desk):
        self.desk, self.book, self.name = desk, desk.book, desk.name

    def set_default_headers(self):
        self.set_header("Content-Security-Policy", f"{POLICY}; frame-ancestors 'none'")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "same-origin")
        self.set_header("Cache-Control", "no-store")
        self.clear_header("Server")

    def prepare(self):
        host = self.request.host
        if host.rpartition(":")[0] not in HOSTS:  # another name may lead here from a foreign page
            raise HTTPError(403, reason=f"The desk answers at {HERE} alone")
        if self.request.method == "POST" and not self._is_ours(host):
            raise HTTPError(403, reason="This did not come from a page of the desk")
        cookie = f"lightspeed-desk-{host.rpartition(':')[2]}"
        if token := self.get_query_argument("token", ""):
            self.current_user = self._grader(token)
            self.set_cookie(cookie, token, httponly=True, samesite="Strict")
            self.redirect("/")
        else:
            self.current_user = self._grader(self.get_cookie(cookie, ""))

    def _is_ours(self, host):
        headers = self.request.headers
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
        return (
            (origin or site)
            and origin in (None, f"http://{host}")
            and site
            in (
                None,
                "same-origin",
            )
        )

    def _grader(self, token):
        for known, who in self.desk.graders.items():
            if hmac.compare_digest(known.encode(), token.encode("utf-8", "replace")):
                return who
        raise HTTPError(
            403, reason="Open the desk by the address that `lightspeed class desk` shows"
        )

    def write_error(self, status_code, **_):
        self.finish(page("desk_error", title="Marking", said=self._reason, back="/"))

    def show(self, template, **data):
        self.finish(page(template, who=self.current_user, link=link, **data))

    @property
    def order(self):
        return "student" if self.get_argument("by", "") == "student" else "question"

    def results(self):
        return [r for r in self.book.results(self.name) if self.is_here(r)]

    def is_here(self, result):
        """Whether a result is of the section that is marked."""
        return result.student.is_in(self.desk.section)

    def together(self, result, everybody=None):
        """The others for whom the same notebook counts."""
        return [
            r
            for r in everybody or self.book.results(self.name)
            if r.submission == result.submission and not r.excused and r.student != result.student
        ]

    def result(self, student):
        """The one of a student who handed something in."""
        try:
            (found,) = self.book.results(self.name, student)
        except KeyError:
            raise HTTPError(404, reason="There is no such student") from None
        if not found.submission:
            raise HTTPError(404, reason="This student handed nothing in")
        return found

    def whole(self, key):
        """A number that a form of ours carries."""
        text = self.get_body_argument(key, "")
        if not text.isdecimal() or len(text) > 15:
            raise HTTPError(400, reason=f"The form lacks a number: {key}")
        return int(text)


class Queue(Page):
    def get(self):
        assignment = self.book.assignment(self.name)
        results = self.results()
        places = cards.queue(results, assignment, self.order)
        groups = {}
        for place in places:
            key = place.question if self.order == "question" else place.student
            groups.setdefault(key, []).append(place)
        names = {r.student.id: r.student.name or r.student.id for r in results}
        self.show(
            "desk_queue",
            title=f"Marking: {self.name}"
            + f", section {self.desk.section}" * bool(self.desk.section),
            by=self.order,
            rows=[
                {
                    "name": names.get(key, key),
                    "first": next((p for p in group if p.state == "to mark"), group[0]),
                    "counts": [
                        sum(p.state == kind for p in group)
                        for kind in ("to mark", "by hand", "right", "not graded")
                    ],
                }
                for key, group in groups.items()
            ],
            next=next((p for p in places if p.state == "to mark"), None),
        )


class Notebook(Page):
    def get(self):
        result = self.result(self.get_query_argument("student", ""))
        cells = cells_of(self.book.content(result.submission.id))
        self.show(
            "desk_notebook",
            title=f"Notebook: {self.name}",
            student=result.student,
            cells=cards.work(cells),
        )


class Card(Page):
    def get(self):
        self.card(self.get_query_argument("student", ""), self.get_query_argument("question", ""))

    def post(self):
        student, question = self.get_body_argument("student"), self.get_body_argument("question")
        result = self.result(student)
        typed = {
            "items": self.get_body_arguments("item"),
            "points": self.get_body_argument("points", "").strip(),
            "comment": self.get_body_argument("comment", "", strip=False).replace("\r\n", "\n"),
        }
        score, rubric = result.scores.get(question), self.book.rubric(self.name)
        if not score:
            return self.card(student, question, 409, f"It is not graded yet: {_grade(self)}", typed)
        try:
            points = _read_points(typed["points"], 0.0, result.now[question])
        except (ValueError, KeyError) as error:
            return self.card(student, question, 400, f"Nothing was kept: {error}.", typed)
        items = [i for i in map(_int, typed["items"]) if _fits(rubric.get(i), question)]
        if len(items) < len(typed["items"]):
            said = "Nothing was kept: an item that you chose was withdrawn."
            return self.card(student, question, 409, said, typed)
        if len(typed["comment"]) > LONGEST:
            said = f"Nothing was kept: a comment has at most {LONGEST:,} characters."
            return self.card(student, question, 400, said, typed)
        was, new = _kept(result, question), (points, items, typed["comment"])
        others = {r.student.id: _kept(r, question) for r in self.together(result)}
        # who hands in with them and has marks of their own keeps these
        also = [id for id, had in others.items() if had in (_NOTHING, was)]
        try:
            if self.whole("grading") != result.grading.id:
                raise Changed(question)
            if any(had != new for had in (was, *(others[id] for id in also))):
                self.book.set_manual(
                    student, self.name, question, points, typed["comment"], self.current_user,
                    items, score.points, self.whole("version"), also,
                )  # fmt: skip
        except Changed:
            said = (
                "Nothing of yours was kept yet: somebody marked this, or it was graded, since you"
                " opened it. See what is there now; what you typed is still in the form."
            )
            return self.card(student, question, 409, said, typed)
        go = {"before": 1, "after": 2, "next": 3}.get(self.get_body_argument("then", ""))
        place = go and cards.around(self.places(), student, question)[go]
        self.redirect(link(place or cards.Place(student, question, ""), self.order), status=303)

    def places(self):
        results, assignment = self.results(), self.book.assignment(self.name)
        return cards.queue(results, assignment, self.order)

    def card(self, student, question, status=200, said="", typed=None):
        """The page of one; `said`: what went wrong, with `typed` as it was sent."""
        self.result(student)
        everybody, assignment = self.book.results(self.name), self.book.assignment(self.name)
        results = [r for r in everybody if self.is_here(r)]
        places = cards.queue(results, assignment, self.order)
        try:
            at, before, after, following = cards.around(places, student, question)
        except KeyError:
            raise HTTPError(404, reason=f"{self.name} does not ask that of this student") from None
        student = places[at - 1].student
        result = next(r for r in results if r.student.id == student)
        together, kept = self.together(result, everybody), _kept(result, question)
        own = [r for r in together if _kept(r, question) not in (_NOTHING, kept)]
        cells = cells_of(self.book.content(result.submission.id))
        why = stops(assignment, result, cells).get(question, "")
        entries = self.book.manual(self.name, student, question)
        manual, score = result.manual.get(question), result.scores.get(question)
        origins = Origins(self.book, self.name)
        seed = seed_of(self.book, Outcome(result), origins)
        i = list(assignment.points).index(question) + 1
        had = {r.student.id: r.manual.get(question) for r in results}
        self.set_status(status)
        self.show(
            "desk_card",
            title=f"Marking: {self.name}",
            student=result.student,
            question=question,
            by=self.order,
            at=at,
            count=len(places),
            state=places[at - 1].state,
            together=[r.student.name or r.student.id for r in together],
            own=[r.student.name or r.student.id for r in own],
            told=told_question(
                i, assignment, result, posed(question, seed, self.book.secret, assignment), why
            ),
            prose=question in assignment.prose,
            blank=question in assignment.prose and not answer(cells, assignment.prose[question]),
            notes=told_notes(result),
            alike=self.desk.alike(student),
            cells=cards.work(cells, assignment, question),
            before=before,
            after=after,
            following=following,
            out_of=number(result.asked.get(question, assignment.points[question])),
            moved=manual and manual.chosen and score and manual.base != score.points,
            base=number(manual.base) if manual else "",
            rubric=[
                {
                    "item": item,
                    "points": f"{item.points:+.10g}",
                    "chosen": str(id) in typed["items"]
                    if typed
                    else bool(manual and id in manual.items),
                    "by": sum(bool(m and id in m.items) for m in had.values()),
                }
                for id, item in self.book.rubric(self.name).items()
                if item.question == question
            ],
            points=typed["points"]
            if typed
            else number(manual.override)
            if manual and manual.override is not None
            else "",
            comment=typed["comment"] if typed else manual.comment if manual else "",
            version=entries[-1].number if entries else 0,
            grading=result.grading.id if result.grading else 0,
            history=[_told(entry) for entry in entries],
            undoable=any(not e.undoes for e in entries)
            and len([e for e in entries if not e.undoes]) > len([e for e in entries if e.undoes]),
            said=said,
            typed=bool(typed),
        )


class Undo(Card):
    def get(self):
        raise HTTPError(405, reason="Undo is a button of a card")

    def post(self):
        student, question = self.get_body_argument("student"), self.get_body_argument("question")
        also = [r.student.id for r in self.together(self.result(student))]
        try:
            self.book.undo_manual(
                student, self.name, question, self.current_user, self.whole("version"), also
            )
        except Changed:
            said = "Nothing was undone: somebody marked this since you opened it."
            return self.card(student, question, 409, said)
        except KeyError:
            return self.card(student, question, 409, "There is nothing to undo.")
        self.redirect(link(cards.Place(student, question, ""), self.order), status=303)


class Item(Card):
    """A rubric item: a new one, another version of one, or none any more."""

    def get(self):
        raise HTTPError(405, reason="Items are changed on a card")

    def post(self):
        student, question = self.get_body_argument("student"), self.get_body_argument("question")
        words, text = self.get_body_argument("words", ""), self.get_body_argument("points", "")
        withdraw = self.get_body_argument("act", "") == "withdraw"
        id = self.whole("id") if self.get_body_argument("id", "") else None
        self.result(student)
        if question not in self.book.assignment(self.name).points:
            raise HTTPError(404, reason=f"{self.name} does not ask that")
        try:
            points = None if withdraw else _read_points(text, -MOST_POINTS, MOST_POINTS)
            if not words.strip() or len(words) > 500 or (points is None and not withdraw):
                raise ValueError("an item has words, at most 500 characters, and points, as -0.5")
            version = self.whole("version") if id is not None else None
            if id is not None and not _fits(self.book.rubric(self.name).get(id), question):
                raise Changed(words)
            self.book.set_item(
                self.name, question, words.strip(), points, self.current_user, id, version
            )
        except ValueError as error:
            return self.card(student, question, 400, f"The item was not kept: {error}.")
        except Changed:
            said = f"The item was changed by somebody else. You wrote: {text} {words}"
            return self.card(student, question, 409, said)
        self.redirect(link(cards.Place(student, question, ""), self.order), status=303)


class Script(Page):
    def get(self):
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.finish(Path(__file__).with_name("desk.js").read_text("utf-8"))


def link(place, by):
    query = {"student": place.student, "question": place.question, "by": by}
    return f"/card?{urlencode(query)}"


def _grade(handler):
    return f"lightspeed class grade {handler.name}"


def _kept(result, question):
    """What somebody marked by hand, as a form has it."""
    entry = result.manual.get(question)
    return (entry.override, list(entry.items), entry.comment) if entry else _NOTHING


def _int(text):
    return int(text) if text.isdecimal() and len(text) < 16 else None


def _fits(item, question):
    return item is not None and item.question == question


def _read_points(text, least, most):
    """The points that somebody typed; None for nothing. Raises ValueError."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise ValueError(f"points = {text!r}; expected a number from {least:g} to {most:g}")
    return value


def _told(entry):
    """(when, who, what) of an entry."""
    when = f"{datetime.fromtimestamp(entry.at):%Y-%m-%d %H:%M}"
    return when, entry.by or "somebody", said(entry)
