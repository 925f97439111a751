"""The built site, served as a static host would, and a real headless Chromium that reads it. Its
tests wait for states, never for a time.
"""

import threading
from urllib.parse import urlsplit

import pytest
from site_reader import PATIENCE, alive

from lightspeed_authoring.site.serve import server


@pytest.fixture(scope="session")
def address(site):
    """Where the site is served: not at the root of its host."""
    running = server(site.parents[1])
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}/a%20path/site/"
    running.shutdown()


@pytest.fixture(scope="session")
def session_reader(chromium, address):
    """One reader's browser for the whole run: what it keeps, it keeps."""
    # Pictures that play by themselves stand still: each test sees the state that it asks for.
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    context.faults, context.hosts = [], set()
    context.on("weberror", lambda e: context.faults.append(str(e.error)))
    context.on("console", lambda m: context.faults.append(m.text) if m.type == "error" else None)
    context.on("request", lambda r: context.hosts.add(urlsplit(r.url).netloc))
    yield context
    context.close()


@pytest.fixture
def reader(session_reader, address):
    """The reader's browser, which logs no error and asks no other host for anything."""
    session_reader.faults.clear()
    yield session_reader
    assert not session_reader.faults, session_reader.faults
    strangers = session_reader.hosts - {"", urlsplit(address).netloc}
    assert not strangers, f"asked other hosts: {strangers}"


@pytest.fixture(scope="module")
def opened(session_reader, address):
    """Pages of the site that stay open for the tests of a file: name -> page."""
    pages = {}
    yield pages
    for page in pages.values():
        page.close()


@pytest.fixture
def visit(reader, address, opened):
    """Opens a page of the site, or the one that is open, and waits until all of it lives."""

    def visit(name):
        if name not in opened:
            opened[name] = reader.new_page()
            opened[name].goto(address + name)
            alive(opened[name])
        return opened[name]

    return visit
