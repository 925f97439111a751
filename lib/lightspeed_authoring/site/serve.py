"""A site here as a static host would serve it: compressed, and cached until it changes."""

import functools
import gzip
import http.server
from email.utils import parsedate_to_datetime
from pathlib import Path

PRESSED = (".html", ".js", ".mjs", ".css", ".json", ".wasm", ".svg")
TYPES = {".mjs": "text/javascript", ".wasm": "application/wasm"}


@functools.cache
def _pressed(path, stamp):
    return gzip.compress(Path(path).read_bytes(), 6, mtime=0)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serve a folder's files, compressed for clients that accept gzip."""

    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | TYPES
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() and self.path.endswith("/") else path
        takes = "gzip" in self.headers.get("Accept-Encoding", "")
        if not takes or path.suffix not in PRESSED or not path.is_file():
            super().do_GET()
            return
        stamp = path.stat().st_mtime
        since = self.headers.get("If-Modified-Since")
        if since and int(stamp) <= parsedate_to_datetime(since).timestamp():
            self.send_response(304)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = _pressed(str(path), stamp)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", self.date_time_string(stamp))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self):
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *arguments):
        """Print nothing: the reader looks at the browser."""


def server(folder, port=0):
    """A server of the folder on 127.0.0.1; port 0 takes any that is free."""
    handler = functools.partial(Handler, directory=str(folder))
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)


def serve(folder, port):
    """Serve until interrupted."""
    with server(folder, port) as running:
        print(f"http://127.0.0.1:{running.server_port}/   (Ctrl-C ends it)", flush=True)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print()
