"""The card on which somebody marks an answer, and what can be done on it.

A form carries the number of the entry that it was made from, so that nobody writes over what they
have not seen: they get their words back, beside what came in between.
"""

import math
from datetime import datetime

from tornado.web import HTTPError

from lightspeed_class.gradebook.schema import Changed
from lightspeed_class.intake.origins import Origins
from lightspeed_class.kept_questions import KeptQuestions
from lightspeed_class.marking_desk import cards
from lightspeed_class.marking_desk.request import Page, link
from lightspeed_class.prose import answer
from lightspeed_class.reports.feedback import seed_of, stops, told_question
from lightspeed_class.reports.results import Outcome, said
from lightspeed_class.score import number

LONGEST, MOST_POINTS = 10_000, 1e6
_NOTHING = (None, [], "")


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
            message = "Nothing was kept: an item that you chose was withdrawn."
            return self.card(student, question, 409, message, typed)
        if len(typed["comment"]) > LONGEST:
            message = f"Nothing was kept: a comment has at most {LONGEST:,} characters."
            return self.card(student, question, 400, message, typed)
        was, new = _kept(result, question), (points, items, typed["comment"])
        others = {r.student.id: _kept(r, question) for r in self.together(result)}
        # who hands in with them and has marks of their own keeps these
        also = [id for id, entry in others.items() if entry in (_NOTHING, was)]
        if self.get_body_argument("alike", ""):
            alike = cards.mistakes(self.results(), question).get(
                cards.mistake(result, question), []
            )
            also += [r.student.id for r in alike if r.student.id not in (student, *also)]
        try:
            if self.whole("grading") != result.grading.id:
                raise Changed(question)
            if any(entry != new for entry in (was, *(others.get(id, _NOTHING) for id in also))):
                self.book.set_manual(
                    self.desk.real(student), self.name, question, points, typed["comment"],
                    self.current_user, items, score.points, self.whole("version"),
                    [*map(self.desk.real, also)],
                )  # fmt: skip
        except Changed:
            message = (
                "Nothing of yours was kept yet: somebody marked this, or it was graded, since you"
                " opened it. See what is there now; what you typed is still in the form."
            )
            return self.card(student, question, 409, message, typed)
        go = {"before": 1, "after": 2, "next": 3}.get(self.get_body_argument("then", ""))
        place = go and cards.around(self.places(), student, question)[go]
        self.redirect(link(place or cards.Place(student, question, ""), self.order), status=303)

    def places(self):
        results, assignment = self.results(), self.book.assignment(self.name)
        return cards.queue(results, assignment, self.order, self.desk.requests())

    def card(self, student, question, status=200, message="", typed=None):
        """Show a student's page; `message`: what went wrong, with `typed` as it was sent."""
        self.result(student)
        everybody, archive = self.desk.results(), KeptQuestions(self.book, self.name)
        results = [r for r in everybody if self.is_here(r)]
        requests = self.desk.requests()
        places = cards.queue(results, archive.assignment(), self.order, requests)
        try:
            at, before, after, following = cards.around(places, student, question)
        except KeyError:
            raise HTTPError(404, reason=f"{self.name} does not ask that of this student") from None
        student = places[at - 1].student
        result = next(r for r in results if r.student.id == student)
        together, mine = self.together(result, everybody), _kept(result, question)
        own = [r for r in together if _kept(r, question) not in (_NOTHING, mine)]
        same = cards.mistakes(results, question).get(cards.mistake(result, question), [])
        same = [r for r in same if r.student.id not in (student, *(t.student.id for t in together))]
        assignment = archive.assignment(result.submission)
        cells = self.desk.cells(result)
        excerpt = cards.work(cells, assignment, question)
        notes, elsewhere = cards.notes_of(result, excerpt)
        why = stops(assignment, result, cells).get(question, "")
        entries = self.book.manual(self.name, self.desk.real(student), question)
        manual, score = result.manual.get(question), result.scores.get(question)
        origins = Origins(self.book, self.name)
        seed = seed_of(self.book, Outcome(result), origins)
        variant = archive.asked(result.submission, seed)[question]
        i = list(assignment.points).index(question) + 1
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
            same=[r.student.name or r.student.id for r in same],
            people=[(r.student.id, r.student.name) for r in results],
            told=told_question(i, assignment, result, variant, why),
            key=getattr(variant, "answer", ""),
            prose=question in assignment.prose,
            blank=question in assignment.prose and not answer(cells, assignment.prose[question]),
            requests=[
                (r.student.name or r.student.id, requests[r.student.id, question])
                for r in (result, *together)
                if (r.student.id, question) in requests
            ],
            notes=notes,
            elsewhere=elsewhere,
            alike=self.desk.alike(student),
            cells=excerpt,
            before=before,
            after=after,
            following=following,
            out_of=number(result.asked.get(question, assignment.points[question])),
            moved=manual and manual.chosen and score and manual.base != score.points,
            base=number(manual.base) if manual else "",
            rubric=self.rubric(question, manual, results, typed),
            points=typed["points"] if typed else _override(manual),
            comment=typed["comment"] if typed else manual.comment if manual else "",
            version=entries[-1].number if entries else 0,
            grading=result.grading.id if result.grading else 0,
            history=[_told(entry) for entry in entries],
            undoable=any(not e.undoes for e in entries)
            and len([e for e in entries if not e.undoes]) > len([e for e in entries if e.undoes]),
            said=message,
            typed=bool(typed),
        )

    def rubric(self, question, manual, results, typed):
        """Return a question's items: their points, whether this card has them, and how many do."""
        marks = [mark for r in results if (mark := r.manual.get(question))]
        own = set(typed["items"] if typed else map(str, manual.items if manual else ()))
        return [
            {
                "item": item,
                "points": f"{item.points:+.10g}",
                "chosen": str(id) in own,
                "by": sum(id in mark.items for mark in marks),
            }
            for id, item in self.book.rubric(self.name).items()
            if item.question == question
        ]


class Undo(Card):
    def get(self):
        raise HTTPError(405, reason="Undo is a button of a card")

    def post(self):
        student, question = self.get_body_argument("student"), self.get_body_argument("question")
        self.result(student)
        # an act may have been for many: those with the same mistake, or who hand in together
        also = [self.desk.real(r.student.id) for r in self.desk.results()]
        also.remove(self.desk.real(student))
        try:
            self.book.undo_manual(
                self.desk.real(student),
                self.name,
                question,
                self.current_user,
                self.whole("version"),
                also,
            )
        except Changed:
            message = "Nothing was undone: somebody marked this since you opened it."
            return self.card(student, question, 409, message)
        except KeyError:
            return self.card(student, question, 409, "There is nothing to undo.")
        self.redirect(link(cards.Place(student, question, ""), self.order), status=303)


class Settle(Card):
    """Keep the automatic points for all answers marked wrong in a question; undo on any of these
    cards reverts all of them.
    """

    def get(self):
        raise HTTPError(405, reason="Settling is a button of the queue")

    def post(self):
        question, requests = self.get_body_argument("question"), self.desk.requests()
        groups = {}  # points of the machine -> whose
        for (_, _, points), alike in cards.mistakes(self.results(), question).items():
            ids = [r.student.id for r in alike if (r.student.id, question) not in requests]
            groups.setdefault(points, []).extend(map(self.desk.real, ids))
        for points, ids in groups.items():
            if ids:
                self.book.set_manual(
                    ids[0], self.name, question, points, "", self.current_user, also=ids[1:]
                )
        self.redirect(f"/?by={self.order}", status=303)


class Jump(Card):
    """Go to a student's card, given an id or a name, or its beginning."""

    def get(self):
        text = self.get_query_argument("to", "").strip().casefold()
        question = self.get_query_argument("question", "")
        places = [p for p in self.places() if p.question == question]
        names = {r.student.id: r.student.name.casefold() for r in self.results()}
        ways = (
            lambda id: text in (id.casefold(), names.get(id)),
            lambda id: f"{names.get(id)} {id.casefold()}".find(text) >= 0,
        )
        for way in ways:
            for place in places:
                if text and any(map(way, (place.student, *place.together))):
                    return self.redirect(link(place, self.order), status=303)
        raise HTTPError(404, reason="Nobody who handed in goes by that id or name")


class Item(Card):
    """A rubric item: create, change or withdraw it."""

    def get(self):
        raise HTTPError(405, reason="Items are changed on a card")

    def post(self):
        student, question = self.get_body_argument("student"), self.get_body_argument("question")
        words, text = self.get_body_argument("words", ""), self.get_body_argument("points", "")
        withdraw = self.get_body_argument("act", "") == "withdraw"
        id = self.whole("id") if self.get_body_argument("id", "") else None
        self.result(student)
        if question not in self.result(student).now:
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
            message = f"The item was changed by somebody else. You wrote: {text} {words}"
            return self.card(student, question, 409, message)
        self.redirect(link(cards.Place(student, question, ""), self.order), status=303)


def _grade(handler):
    return f"lightspeed class grade {handler.name}"


def _kept(result, question):
    """What somebody marked by hand, as a form has it."""
    entry = result.manual.get(question)
    return (entry.override, list(entry.items), entry.comment) if entry else _NOTHING


def _override(entry):
    """The points of one's own that a mark has, as a form has them."""
    return "" if entry is None or entry.override is None else number(entry.override)


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
