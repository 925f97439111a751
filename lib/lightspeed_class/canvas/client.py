"""The API of Canvas, as its documentation has it (doc/api of instructure/canvas-lms): pages by the
Link header, files in three steps, a quota that answers 403 or 429.

The token goes to the class's own Canvas alone, in a header, and over https; it is in no address, no
message and no file of the class.
"""

import contextlib
import os
import stat
from pathlib import Path
from time import sleep

import httpx

from lightspeed.errors import meant
from lightspeed_class.class_folder import SETTINGS, ClassError
from lightspeed_class.notebooks import LARGEST, TOO_LARGE, Refused

TOKEN = "LIGHTSPEED_CANVAS_TOKEN"
HERE = ("127.0.0.1", "::1")  # where plain http reaches nobody else
TRIES, LONGEST = 6, 60.0  # of a request; seconds between two
FEW_TRIES = 3  # where there is nobody to ask
MOST_PAGES = 10_000
SECONDS = 30.0  # until an answer must begin
KEYS = {"url": str, "course": int, "token_file": str, "assignments": dict}
ASKS_FOR = "lightspeed class canvas needs"


class Unsure(Exception):
    """Nobody can tell whether what was sent has arrived."""


class Canvas:
    """A course on a Canvas, for a `with`."""

    def __init__(self, settings, token):
        self.home, self.course = httpx.URL(settings["url"].rstrip("/")), settings["course"]
        self._assignments = settings.get("assignments", {})
        self._token = _Secret(token)
        # a proxy of the environment would get the token of plain http
        secure = self.home.scheme == "https"
        self._http = httpx.Client(
            timeout=SECONDS, headers={"User-Agent": "lightspeed"}, trust_env=secure
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._http.close()

    def assignment(self, name):
        """The path of an assignment. Raises ClassError where class.toml has no number for it."""
        if name not in self._assignments:
            raise ClassError(
                f"{SETTINGS} has no number of {name} on Canvas: under [canvas], write"
                f" assignments = {{ {name} = 5678 }}, as in the assignment's address"
            )
        return f"/api/v1/courses/{self.course}/assignments/{self._assignments[name]}"

    def place(self, name):
        """The address of an assignment, which says where something was sent."""
        return f"{self.home}{self.assignment(name)}"

    def get(self, path, **wanted):
        """What one request answers. Raises ClassError."""
        return _json(self._told(self._send("GET", self._url(path), params=wanted)))

    def pages(self, path, **wanted):
        """All that a list has, page by page. Raises ClassError."""
        answer = self._told(self._send("GET", self._url(path), params={"per_page": 100, **wanted}))
        for _ in range(MOST_PAGES):
            found = _json(answer)
            if not isinstance(found, list):
                raise ClassError(f"{self.home} answers {path} with no list: is that a Canvas?")
            yield from found
            following = answer.links.get("next", {}).get("url")
            if not following:
                return
            url = self.home.join(following)
            if not self._is_own(url):  # it would get the token
                raise ClassError(f"{self.home} sends to another host for the rest of {path}")
            answer = self._told(self._send("GET", url))
        raise ClassError(f"{self.home} has no end of pages for {path}")

    def put(self, path, fields, repeatable=True):
        """Change something. Raises ClassError, and Unsure if it is not to be tried twice."""
        return _json(self._told(self._send("PUT", self._url(path), repeatable, data=fields)))

    def upload(self, path, name, content, kind):
        """Upload a file in three steps, and give its number. Raises ClassError. A file that no
        comment has is shown to nobody, so all three can be tried again.
        """
        for turn in range(TRIES):
            if turn:
                sleep(_pause(turn))
            with contextlib.suppress(Unsure):
                if number := self._uploaded(path, name, content, kind):
                    return number
        raise ClassError(f"{self.home} did not take {name}, {TRIES} times in a row. {AGAIN}")

    def _uploaded(self, path, name, content, kind):
        fields = {"name": name, "size": str(len(content)), "content_type": kind}
        asked = _json(self._told(self._send("POST", self._url(path), data=fields)))
        if not isinstance(asked, dict) or not asked.get("upload_url"):
            raise ClassError(f"{self.home} names no place to upload {name} to")
        target = _safe(self.home.join(asked["upload_url"]))
        # signed by its own fields, as they are, the file last; never with the token
        fields = {key: str(value) for key, value in (asked.get("upload_params") or {}).items()}
        answer = self._send(
            "POST", target, False, own=False, data=fields, files={"file": (name, content, kind)}
        )
        if answer.status_code >= 400:
            return None
        if location := answer.headers.get("Location"):
            url = _safe(target.join(location))
            confirmed = self._send("GET", url, own=self._is_own(url))
            answer = confirmed if confirmed.status_code < 300 else answer
        told = _json(answer) if answer.status_code < 300 else {}
        return told.get("id") if isinstance(told, dict) else None

    def download(self, url):
        """The bytes of a file that was handed in. Raises Refused for one that is gone or too large,
        ClassError where Canvas does not answer.
        """
        url, content = _safe(self.home.join(url)), bytearray()
        for _ in range(5):  # Canvas sends on to where files are kept
            answer = self._send("GET", url, into=content)
            if not answer.has_redirect_location:
                break
            url = _safe(url.join(answer.headers["Location"]))
        if answer.status_code in (404, 410):
            raise Refused("Canvas does not have this file any more.")
        if answer.status_code != 200:
            raise ClassError(f"{self.home} gives no file: {_status(answer)}. {AGAIN}")
        return bytes(content)

    def _url(self, path):
        return httpx.URL(f"{self.home}{path}")

    def _is_own(self, url):
        return (url.scheme, url.host, url.port) == (
            self.home.scheme,
            self.home.host,
            self.home.port,
        )

    def _send(self, method, url, repeatable=True, own=True, into=None, **what):
        """An answer, whatever it says, after as many tries as it takes; its bytes `into`, up to
        those of a notebook. The token goes to the own Canvas alone.
        """
        if not what.get("params"):
            what.pop("params", None)  # an empty one would take the query of the address away
        signed = own and self._is_own(url)
        headers = {"Authorization": f"Bearer {self._token.text}"} if signed else {}
        why, pause = "", 0.0
        for turn in range(TRIES):
            if turn:
                sleep(pause)
            pause, sure = _pause(turn + 1), True
            try:
                answer, said = self._once(method, url, into, headers=headers, **what)
            except httpx.ConnectError as error:  # nothing has been sent
                why = _why(error)
                if turn + 1 < FEW_TRIES:
                    continue
                break
            except httpx.TransportError as error:
                why, sure = _why(error), False
            else:
                busy = _is_busy(answer, said)
                if not busy and answer.status_code < 500:
                    return answer
                why, sure = _status(answer), busy
                with contextlib.suppress(ValueError):
                    pause = min(max(float(answer.headers.get("Retry-After", 0)), pause), LONGEST)
            if not (sure or repeatable):
                raise Unsure(why)
        raise ClassError(f"{url.host} does not answer: {why}, {turn + 1} times. {AGAIN}")

    def _once(self, method, url, into, **what):
        if into is None:
            answer = self._http.request(method, url, **what)
            return answer, answer.content
        into.clear()
        with self._http.stream(method, url, **what) as answer:
            for part in answer.iter_bytes():
                into += part
                if len(into) > LARGEST:
                    raise Refused(TOO_LARGE)
        return answer, bytes(into)

    def _told(self, answer):
        """The answer, if it is one. Raises ClassError with what to do about any other."""
        code, said = answer.status_code, _said(answer)
        if code < 300:
            return answer
        if answer.has_redirect_location:
            raise ClassError(
                f"{self.home} sends on to {httpx.URL(answer.headers['Location']).host or 'another'}"
                f" page; is url under [canvas] of {SETTINGS} that of the Canvas itself?"
            )
        if code == 401 and "WWW-Authenticate" in answer.headers:
            raise ClassError(
                f"{self.home} does not know the token: it has expired, or is another Canvas's."
                " Make a new one there: Account > Settings > New access token"
            )
        if code in (401, 403):
            raise ClassError(
                f"the token's owner may not do this in course {self.course}: {said}. It takes a"
                " teacher of the course"
            )
        if code == 404:
            raise ClassError(
                f"{self.home} has no {answer.request.url.path}: are the numbers under [canvas] of"
                f" {SETTINGS} those of the course and the assignment?"
            )
        raise ClassError(f"{self.home} refuses {answer.request.url.path}: {said}")


AGAIN = "The same command goes on where it was"


class _Secret:
    """A text that no message shows by accident."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return "..."


def connect(course):
    """The Canvas of class.toml. Raises ClassError for what is missing or unsafe."""
    settings, path = course.canvas, course.root / SETTINGS
    if not settings:
        raise ClassError(f"{path} has no table [canvas]; the file says what stands in it")
    for key, value in settings.items():
        if key not in KEYS:
            raise ClassError(f"{path}: [canvas] has no {key}; {meant(key, KEYS)}")
        if type(value) is not KEYS[key]:
            raise ClassError(f"{path}: {key} under [canvas] is {value!r}; expected {_form(key)}")
    for key in ("url", "course"):
        if key not in settings:
            raise ClassError(f"{path}: [canvas] has no {key}; expected {_form(key)}")
    for name, number in settings.get("assignments", {}).items():
        if type(number) is not int:
            raise ClassError(
                f"{path}: the assignment {name} under [canvas] is {number!r}; expected its number"
            )
    with contextlib.suppress(httpx.InvalidURL):
        url = httpx.URL(settings["url"])
        if url.host and url.path == "/" and not url.query and not url.userinfo:
            _safe(url)
            return Canvas(settings, token_of(settings))
    raise ClassError(
        f"{path}: url under [canvas] is {settings['url']!r}; expected {_form('url')}, and nothing"
        " behind it"
    )


def token_of(settings):
    """The token, from the environment or a file that nobody else can read. Raises ClassError."""
    text, where = os.environ.get(TOKEN, ""), f"${TOKEN}"
    if not text and "token_file" in settings:
        where = settings["token_file"]
        path = Path(where).expanduser()
        try:
            with open(path, encoding="utf-8") as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode) or about.st_mode & 0o077:
                    raise ClassError(f"others can read the token in {where}: chmod 600 {where}")
                text = file.read(4096)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise ClassError(f"no token in {where}: {why}") from None
    text = text.strip()
    if not text:
        raise ClassError(
            f"{ASKS_FOR} a token (Canvas: Account > Settings > New access token), in ${TOKEN} or in"
            f" a file of your own: token_file under [canvas] of {SETTINGS}, mode 600"
        )
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ClassError(f"what stands in {where} is no token; expected one word")
    return text


def _form(key):
    return {
        "url": 'an address such as "https://canvas.example.edu"',
        "course": "a number, as in the address of the course",
        "token_file": 'a path such as "~/.canvas-token"',
        "assignments": "a table such as { 02_roofline = 5678 }",
    }[key]


def _safe(url):
    """An address that may be asked. Raises ClassError for one that others can listen to."""
    if url.host and (url.scheme == "https" or (url.scheme == "http" and url.host in HERE)):
        return url
    raise ClassError(f"{url.scheme}://{url.host} is not safe; expected an address with https://")


def _pause(turn):
    return min(2.0**turn / 2, LONGEST)


def _is_busy(answer, said):
    """Whether the quota is used up: nothing of the request was done."""
    return answer.status_code == 429 or (
        answer.status_code == 403 and b"rate limit exceeded" in said.lower()
    )


def _status(answer):
    return f"{answer.status_code} {answer.reason_phrase}".strip()


def _why(error):
    """Of a connection that failed; never the address, in which a file's own key may stand."""
    return str(error).split("http")[0].strip(" :'\"") or type(error).__name__


def _json(answer):
    try:
        return answer.json()
    except ValueError:
        raise ClassError(
            f"{answer.request.url.host} answers with no JSON: is url under [canvas] of {SETTINGS}"
            " that of the Canvas itself?"
        ) from None


def _said(answer):
    """What Canvas says of an error, as one line."""
    found = []
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        told = answer.json()
        errors = told.get("errors") or told.get("error") or told.get("message") or ""
        listed = errors if isinstance(errors, list) else [errors]
        found = [str(e.get("message", e) if isinstance(e, dict) else e) for e in listed if e]
    return " ".join(" ".join([_status(answer), *found]).split())[:200]
