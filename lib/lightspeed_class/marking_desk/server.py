"""The desk's pages on 127.0.0.1: queue, notebook, what serves them and the cards."""

import asyncio
import hashlib
import secrets
from dataclasses import replace
from pathlib import Path

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from lightspeed_class.intake.similarity import alike
from lightspeed_class.marking_desk import cards
from lightspeed_class.marking_desk.marking import Card, Item, Jump, Settle, Undo
from lightspeed_class.marking_desk.request import HERE, Page
from lightspeed_class.regrade_requests import waiting
from lightspeed_class.reports.feedback import cells_of, told_notes


class Desk:
    """The state shared by all pages: the gradebook, the assignment, the section being marked (""
    for all) and token -> marker. `anonymous`: students get pseudonyms.
    """

    def __init__(self, book, name, graders, section="", anonymous=False):
        self.book, self.name, self.section, self.anonymous = book, name, section, anonymous
        self.graders = {secrets.token_urlsafe(16): who for who in graders}
        self._alike: tuple = None, {}

    def alike(self, student):
        """Return a hint that a student's code resembles another's, or ""."""
        if self.anonymous:
            return ""  # the hint names others
        counting = frozenset(s.id for s in self.book.counting(self.name).values())
        if self._alike[0] != counting:
            self._alike = counting, alike(self.book, self.name)
        return self._alike[1].get(student, "")

    def results(self, *student):
        """Return the assignment's results, or one student's, under the desk's names."""
        results = self.book.results(self.name, *map(self.real, student))
        if not self.anonymous:
            return results
        masks = ((r, self._mask(r.student.id)) for r in results)
        masked = [
            replace(r, student=replace(r.student, id=id, name=f"Student {id}")) for r, id in masks
        ]
        return sorted(masked, key=lambda r: r.student.id)

    def real(self, student):
        """Return the id of the student shown as `student`."""
        ids = (s.id for s in self.book.students() if self.anonymous)
        return next((id for id in ids if self._mask(id) == student), student)

    def requests(self):
        """Return (student, question) -> why a review is requested."""
        requests = waiting(self.book, self.name).items()
        return {(self._mask(s) if self.anonymous else s, q): words for (s, q), words in requests}

    def cells(self, result):
        """Return the notebook's cells; if anonymous, without ours, which name people."""
        cells = cells_of(self.book.content(result.submission.id))
        return [c for c in cells if not (self.anonymous and (c.id or "").startswith("class-"))]

    def _mask(self, id):
        whole = f"desk\n{self.book.secret}\n{self.name}\n{id}"
        return hashlib.sha256(whole.encode()).hexdigest()[:8]

    def application(self):
        pages = {"/": Queue, "/card": Card, "/undo": Undo, "/item": Item, "/notebook": Notebook,
                 "/settle": Settle, "/jump": Jump}  # fmt: skip
        routes = [(path, handler, {"desk": self}) for path, handler in pages.items()]
        return Application([*routes, ("/desk.js", Script, {"desk": self})])


def serve(desk, port=0, ready=print):
    """Serve until Ctrl+C; `ready` gets {marker: address}. Raises OSError if the port is taken."""
    sockets = bind_sockets(port, HERE)
    port = sockets[0].getsockname()[1]

    async def run():
        server = HTTPServer(desk.application(), max_body_size=1 << 20)
        server.add_sockets(sockets)
        ready({w: f"http://{HERE}:{port}/?token={t}" for t, w in desk.graders.items()})
        await asyncio.Event().wait()

    asyncio.run(run())


class Queue(Page):
    def get(self):
        assignment = self.book.assignment(self.name)
        results = self.results()
        places = cards.queue(results, assignment, self.order, self.desk.requests())
        groups = {}
        for place in places:
            key = place.question if self.order == "question" else place.student
            groups.setdefault(key, []).append(place)
        names, rows = {r.student.id: r.student.name or r.student.id for r in results}, []
        for key, group in groups.items():
            states = [place.state for place in group]
            counts = [states.count(s) for s in ("to mark", "by hand", "right", "not graded")]
            first = next((p for p in group if p.state == "to mark"), group[0])
            rows.append({"name": names.get(key, key), "first": first, "counts": counts})
        mistakes = []
        for question in assignment.points:
            for (kind, name, _), same in cards.mistakes(results, question).items():
                first = cards.Place(same[0].student.id, question, "to mark")
                about = {"question": question, "name": name or kind, "count": len(same)}
                mistakes.append(about | {"first": first})
        self.show(
            "desk_queue",
            title=f"Marking: {self.name}"
            + f", section {self.desk.section}" * bool(self.desk.section),
            by=self.order,
            rows=rows,
            next=next((p for p in places if p.state == "to mark"), None),
            mistakes=mistakes,
        )


class Notebook(Page):
    def get(self):
        result = self.result(self.get_query_argument("student", ""))
        self.show(
            "desk_notebook",
            title=f"Notebook: {self.name}",
            student=result.student,
            notes=told_notes(result),
            cells=cards.work(self.desk.cells(result)),
        )


class Script(Page):
    def get(self):
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.finish(Path(__file__).with_name("desk.js").read_text("utf-8"))
