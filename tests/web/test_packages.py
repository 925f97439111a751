"""A package the site lacks: named with host and size, loaded when the reader agrees."""

import functools
import hashlib
import http.server
import json
import threading
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from site_reader import PATIENCE, alive, written

from lightspeed_authoring.site import build
from lightspeed_authoring.site.build_lite import small_wheel
from lightspeed_authoring.site.serve import Handler
from lightspeed_course.web import code, packages

ENTRY = {"name": "numpy", "version": "0", "install_dir": "site", "package_type": "package",
         "imports": ["numpy"], "depends": [], "unvendored_tests": False}  # fmt: skip


def listed(**entries):
    return {"place": "https://cdn.example/full/", "packages": {
        name: ENTRY | {"file_name": f"{name}.whl"} | more for name, more in entries.items()
    }}  # fmt: skip


def test_an_offer_names_what_comes_along_from_where_and_how_much():
    told = listed(
        numpy={"bytes": 3_000_000},
        skia={"imports": ["ski"], "depends": ["numpy"], "bytes": 1_500_000},
        odd={"imports": ["odd"], "depends": ["numpy"]},
    )
    offer = packages.offered("ski", told)
    assert set(offer["entries"]) == {"skia", "numpy"} and offer["host"] == "cdn.example"
    assert offer["entries"]["skia"]["file_name"] == "https://cdn.example/full/skia.whl"
    for words in ("ski is not part of this site", "from cdn.example", "4.5 MB", "with 1 package "):
        assert words in offer["words"]
    assert "tells no size" in packages.offered("odd", told)["words"]
    assert packages.offered("torch", told) is None


@pytest.mark.parametrize(
    "source, above, lacks",
    [
        ("import numpy_none", [], "numpy_none"),
        ("a_none.x", ["import b_none as b\nimport a_none.c as a_none"], "a_none"),
        ("y", ["import b_none as b", "y = b.z"], "b_none"),
        ("x = 1\n1 / 0", ["import b_none as b"], ""),
        ("1", ["import b_none as b"], ""),
    ],
)
def test_a_cell_asks_for_the_package_that_stopped_it(source, above, lacks):
    sheet = code.begun(source, above)
    sheet.perform(source)
    assert sheet.lacks == lacks


def test_sizes_are_of_files_that_the_list_names():
    sizes = json.loads((build.HERE / "sizes.json").read_text("utf-8"))
    assert all(len(key) == 64 and size > 0 for key, size in sizes.items())
    lock = {
        "info": {"version": "1.2"},
        "packages": {
            "numpy": {"sha256": next(iter(sizes))},
            "new": {"sha256": "0"},
            "numpy-tests": {"sha256": "1"},
        },
    }
    told = build.elsewhere(lock)
    assert told["place"].endswith("/v1.2/full/")
    assert told["packages"]["numpy"]["bytes"] == next(iter(sizes.values()))
    assert told["packages"]["new"]["bytes"] is None and "numpy-tests" not in told["packages"]


class Elsewhere(http.server.SimpleHTTPRequestHandler):
    """Another host: it lets any site ask, and notes who did."""

    asked: ClassVar[list] = []

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, *arguments):
        pass


@pytest.mark.slow
def test_a_reader_is_asked_before_another_host_is(chromium, site, tmp_path):
    wheel = small_wheel(tmp_path, "numpy", "def add_up(numbers): return sum(numbers)\n")
    place = served(Elsewhere, tmp_path)
    entry = ENTRY | {"file_name": wheel.name, "bytes": wheel.stat().st_size,
                     "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}  # fmt: skip
    told = json.dumps({"place": place, "packages": {"numpy": entry}}).encode()

    class Site(Handler):
        """The site, with a list of packages that names the other host of this test."""

        def do_GET(self):
            if not self.path.split("?")[0].endswith("/packages.json"):
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

    address = served(Site, site)
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    hosts = set()
    context.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    try:
        page = context.new_page()
        page.goto(address + "chapters/01_numbers_to_know.html")
        alive(page)
        cell = page.locator(".sol-cell:has(.sol-result):not(:has(details))").first
        cell.get_by_role("button", name="Edit and run").click()
        reply = cell.locator(".sol-reply")
        offer, lack = reply.locator(".sol-offer"), reply.get_by_text("numpy is not on this page")
        run = cell.get_by_role("button", name="Run", exact=True)

        written(cell).fill("import numpy as np\nnp.add_up([40, 2])")
        run.click()
        lack.wait_for()
        offer.wait_for()
        assert urlsplit(place).netloc in offer.inner_text(), offer.inner_text()
        assert not Elsewhere.asked, "not before the reader agrees"
        offer.get_by_role("button", name="No").click()
        written(cell).fill("1\nimport numpy as np\nnp.add_up([40, 2])")
        run.click()
        # of this run: what is missing is told at the line that uses it, which was the second
        reply.get_by_text("Line 3: numpy is not on this page").wait_for()
        assert not offer.count() and not Elsewhere.asked, "the page remembers a No"
        page.reload()
        alive(page)
        cell.get_by_role("button", name="Your version of this cell").click()
        run.click()
        offer.get_by_role("button", name="Load numpy").click()
        reply.locator(".sol-result").get_by_text("42").wait_for()
        assert Elsewhere.asked == [f"/{wheel.name}"]
        assert hosts - {""} == {urlsplit(address).netloc, urlsplit(place).netloc}
    finally:
        context.close()


def served(handler, folder):
    """The address at which a handler serves a folder until the tests end."""
    made = functools.partial(handler, directory=str(folder))
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), made)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{running.server_port}/"
