"""The built site, once for all tests of this folder, served as a static host would."""

import shutil
import threading
from pathlib import Path

import pytest

from lightspeed_course.web.build import build
from lightspeed_course.web.serve import server

COURSE = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no Node.js: the site's Python comes from npm (apt-get install nodejs npm)")
    out = tmp_path_factory.mktemp("web") / "under" / "a path" / "site"
    out.parent.mkdir(parents=True)
    build(COURSE, out, report=lambda words: None)
    return out


@pytest.fixture(scope="session")
def address(site):
    """Where the site is served: not at the root of its host."""
    running = server(site.parents[1])
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}/a%20path/site/"
    running.shutdown()
