"""What every page of the desk shares: who may come in, and the results that it shows.

Who marks is known by the token in the address, which becomes a cookie: each grader has one. What
changes something must come from the desk's own pages.
"""

import hmac
from urllib.parse import urlencode

from tornado.web import HTTPError, RequestHandler

from lightspeed_show.html import page

HERE = "127.0.0.1"
HOSTS = (HERE, "localhost")
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; img-src data:;"
    " form-action 'self'; base-uri 'none'"
)


class Page(RequestHandler):
    """A page for users with a token; errors are shown in one line."""

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
            raise HTTPError(403, reason="This request did not come from a page of the desk")
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
            and site in (None, "same-origin")
        )

    def _grader(self, token):
        for secret, who in self.desk.graders.items():
            if hmac.compare_digest(secret.encode(), token.encode("utf-8", "replace")):
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
        return [r for r in self.desk.results() if self.is_here(r)]

    def is_here(self, result):
        """Whether a result belongs to the section being marked."""
        return result.student.is_in(self.desk.section)

    def together(self, result, everybody=None):
        """Return the other students for whom the same notebook counts."""
        return [
            r
            for r in everybody or self.desk.results()
            if r.submission == result.submission and not r.excused and r.student != result.student
        ]

    def result(self, student):
        """Return the result of a student who handed something in."""
        try:
            (result,) = self.desk.results(student)
        except KeyError:
            raise HTTPError(404, reason="There is no such student") from None
        if not result.submission:
            raise HTTPError(404, reason="This student handed nothing in")
        return result

    def whole(self, key):
        """Return a whole number from a field of our form."""
        text = self.get_body_argument(key, "")
        if not text.isdecimal() or len(text) > 15:
            raise HTTPError(400, reason=f"The form needs a number: {key}")
        return int(text)


def link(place, by):
    query = {"student": place.student, "question": place.question, "by": by}
    return f"/card?{urlencode(query)}"
