"""A Canvas on 127.0.0.1 for tests, as the documentation of its API has it (doc/api, and comments
of submissions_api_controller.rb, users and assignments, in instructure/canvas-lms): small pages by
the Link header, files in three steps, a quota that answers 403 (Rate Limit Exceeded), files kept on
another host. It can be told to fail in the middle.
"""

import contextlib
import email
import email.policy
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TOKEN = "7~secretsecretsecret"
COURSE, ASSIGNMENT, LARGEST_PAGE = 1234, 5678, 2
HOME = f"/api/v1/courses/{COURSE}"


class FakeCanvas:
    """Its data are what a test makes them; `seen` lists (method, path, fields) of all requests, and
    `leaks` the requests that carried the token to where it must not go.
    """

    def __init__(self):
        self.sections = [{"id": 1, "name": "A"}, {"id": 2, "name": "B"}]
        self.users, self.submissions, self.overrides = [], {}, []
        self.about = {
            "id": ASSIGNMENT, "name": "Roofline", "due_at": None, "points_possible": 3.0,
            "grading_type": "points", "only_visible_to_overrides": False,
        }  # fmt: skip
        self.files, self.uploads, self.seen, self.leaks, self.faults = {}, {}, [], [], []
        self.token, self.done_first = TOKEN, False
        self.api = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(self._api))
        self.store = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(self._stored))
        for server in (self.api, self.store):
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.api.server_port}"

    @property
    def store_url(self):
        return f"http://127.0.0.1:{self.store.server_port}"

    def close(self):
        for server in (self.api, self.store):
            server.shutdown()
            server.server_close()

    def student(self, id, name, *files, section=1, **more):
        """Enrol somebody, with attempts: (submitted_at, file name, bytes) each."""
        enrolled = {
            "type": "StudentEnrollment", "course_section_id": section, "enrollment_state": "active",
        }  # fmt: skip
        user = {"id": id, "name": name, "sortable_name": name, "enrollments": [enrolled], **more}
        self.users.append(user)
        history = [
            {
                "attempt": n, "submitted_at": at, "submission_type": "online_upload",
                "user_id": id, "attachments": [self.attach(title, content)],
            }
            for n, (at, title, content) in enumerate(files, 1)
        ]  # fmt: skip
        nothing = {"attempt": None, "submitted_at": None, "submission_type": None, "user_id": id}
        self.submissions[id] = {
            **(history[-1] if history else nothing), "user": user, "score": None,
            "entered_score": None, "excused": False, "submission_comments": [],
            "submission_history": history or [nothing], "points_deducted": None,
        }  # fmt: skip

    def attach(self, title, content):
        id = 9000 + len(self.files)
        self.files[id] = content
        return {
            "id": id, "display_name": title, "filename": title, "size": len(content),
            "content-type": "application/octet-stream",
            "url": f"{self.url}/files/{id}/download?download_frd=1&verifier=v3r1f13r",
        }  # fmt: skip

    def changed(self):
        """The requests that changed something, as (method, end of the path)."""
        return [(m, path.rpartition(HOME)[2]) for m, path, _ in self.seen if m in ("PUT", "POST")]

    def _handler(self, answer):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_): ...

            def handle_one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with contextlib.suppress(Dropped):
                    status, told, headers = answer(self, urlsplit(self.path), body)
                    content = told if isinstance(told, bytes) else json.dumps(told).encode()
                    self.send_response(status)
                    for key, value in {"Content-Length": len(content), **headers}.items():
                        self.send_header(key, str(value))
                    self.end_headers()
                    self.wfile.write(content)
                    return
                self.close_connection = True

            do_GET = do_PUT = do_POST = handle_one

        return Handler

    def _api(self, request, url, body):
        method, path, auth = request.command, url.path, request.headers.get("Authorization")
        kind = request.headers.get("Content-Type", "")
        fields = parts(kind, body) if "multipart" in kind else parse_qs(body.decode())
        self.seen.append((method, path, fields))
        fault = next((f for f in self.faults if f[0] == method and re.search(f[1], path)), None)
        if fault:
            self.faults.remove(fault)
            if fault[2] == "after":  # it is done, and nobody hears of it
                self._route(method, path, parse_qs(url.query), fields)
                raise Dropped
            if fault[2] == "drop":
                raise Dropped
            text = "403 Forbidden (Rate Limit Exceeded)\n" if fault[2] == 403 else "{}"
            return fault[2], text.encode(), {}
        if path == "/upload":
            self.leaks += [path] * bool(auth)
        elif path.startswith("/api/") and auth != f"Bearer {self.token}":
            told = {"errors": [{"message": "Invalid access token."}]}
            return 401, told, {"WWW-Authenticate": 'Bearer realm="canvas-lms"'}
        return self._route(method, path, parse_qs(url.query), fields)

    def _route(self, method, path, query, fields):
        work = f"{HOME}/assignments/{ASSIGNMENT}"
        lists = {
            f"{HOME}/users": self.users, f"{HOME}/sections": self.sections,
            f"{work}/overrides": self.overrides,
            f"{work}/submissions": list(self.submissions.values()),
        }  # fmt: skip
        if method == "GET" and path in lists:
            return self._page(path, query, lists[path])
        if (method, path) == ("GET", work):
            return 200, self.about, {}
        if method == "GET" and (found := re.fullmatch(rf"{HOME}/sections/(\d+)", path)):
            inside = [u for u in self.users if self._is_in(u, int(found[1]))]
            return 200, {"id": int(found[1]), "students": inside}, {}
        if method == "GET" and (found := re.fullmatch(r"/files/(\d+)/download", path)):
            return 302, b"", {"Location": f"{self.store_url}/kept/{found[1]}?sig=s1gn4tur3"}
        one = re.fullmatch(rf"{work}/submissions/(\d+)(/comments/files)?", path)
        if one and int(one[1]) in self.submissions:
            row = self.submissions[int(one[1])]
            if method == "GET":
                return 200, row, {}
            if method == "PUT" and not one[2]:
                return self._grade(row, fields)
            if method == "POST" and one[2]:
                key = f"k{len(self.uploads)}"
                self.uploads[key] = {"name": fields["name"][0], "state": "pending"}
                params = {"key": key, "policy": "signed"}
                return 200, {"upload_url": f"{self.url}/upload", "upload_params": params}, {}
        if (method, path) == ("POST", "/upload"):
            order = list(fields)
            upload = self.uploads[fields["key"][0]]
            if order != ["key", "policy", "file"]:
                return 400, {"message": f"signed for other fields than {order}"}, {}
            upload |= {"content": fields["file"][0], "state": "sent"}
            where = f"{self.url}/api/v1/files/{fields['key'][0]}/create_success?uuid=1"
            return (201 if self.done_first else 301), b"", {"Location": where}
        if method == "GET" and (found := re.fullmatch(r"/api/v1/files/(k\d+)/\w+", path)):
            upload = self.uploads[found[1]]
            upload |= {"state": "there", "id": 700 + int(found[1][1:])}
            return 200, {"id": upload["id"], "display_name": upload["name"]}, {}
        told = {"errors": [{"message": "The specified resource does not exist."}]}
        return 404, told, {}

    def _grade(self, row, fields):
        if "submission[posted_grade]" in fields:
            row["score"] = row["entered_score"] = float(fields["submission[posted_grade]"][0])
            row["excused"] = False
        if "submission[excuse]" in fields:
            row |= {"excused": True, "score": None, "entered_score": None}
        if "comment[text_comment]" in fields:
            ready = {str(u.get("id")): u for u in self.uploads.values() if u["state"] == "there"}
            names = [ready[id]["name"] for id in fields.get("comment[file_ids][]", ())]
            files = [{"display_name": name, "filename": name} for name in names]
            comment = {"comment": fields["comment[text_comment]"][0], "attachments": files}
            row["submission_comments"].append(comment)
        return 200, row, {}

    def _page(self, path, query, rows):
        size = min(int(query["per_page"][0]), LARGEST_PAGE)
        number = int(query.get("page", ["1"])[0])
        here = rows[(number - 1) * size : number * size]
        links = [f'<{self.url}{path}?page=1&per_page={size}>; rel="first"']
        if number * size < len(rows):
            links.append(f'<{self.url}{path}?page={number + 1}&per_page={size}>; rel="next"')
        return 200, here, {"link": ",".join(links)}

    @staticmethod
    def _is_in(user, section):
        return any(e["course_section_id"] == section for e in user["enrollments"])

    def _stored(self, request, url, _):
        self.leaks += [url.path] * ("Authorization" in request.headers)
        content = self.files.get(int(url.path.rpartition("/")[2]))
        return (404, b"", {}) if content is None else (200, content, {})


class Dropped(Exception):
    """The connection ends without an answer."""


def parts(kind, body):
    """Name -> [values] of multipart/form-data, in its order."""
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    message = email.message_from_bytes(head + body, policy=email.policy.HTTP)
    return {
        part.get_param("name", header="content-disposition"): [
            part.get_payload(decode=True)
            if part.get_filename()
            else part.get_payload(decode=True).decode()
        ]
        for part in message.iter_parts()
    }
