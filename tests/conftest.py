import fcntl
import itertools
import os
import shutil
import signal
from pathlib import Path

import pytest
from needs import lacks, not_proved

from lightspeed_course.practice import store_file

# A shell's background ignores Ctrl+C, and so would programs that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Without these root gets no Chromium at all, and each start looks up its maker's hosts.
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# Of what is slow, by processor time; xdist gives each worker two files at once, so the third, which
# follows the longest, is short.
LONGEST = (
    *("test_site_pages", "test_lab", "test_site_first", "test_kernels_alike", "test_changed_laws"),
    *("test_proofs", "test_claims", "test_site"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """At each commit the chapters run; their solutions, whose answers test_banks holds, with what
    is slow. Who asks for solutions alone does not load this file, and gets them. Of what is slow
    the few long tests come first, so that no worker begins one when the other has ended.
    """
    for item in items:
        if item.path.suffix == ".ipynb" and item.path.parent.name == "solutions":
            item.add_marker(pytest.mark.slow)
    place = {stem: n for n, stem in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def pytest_terminal_summary(terminalreporter):
    """One line for all tests that this machine could not run; their names for LIGHTSPEED_REST."""
    skipped = terminalreporter.stats.get("skipped", ())
    if rest := os.environ.get("LIGHTSPEED_REST"):
        Path(rest).write_text("\n".join(sorted(report.nodeid for report in skipped)), "utf-8")
    if line := not_proved(skipped):
        terminalreporter.write_line(f"\n{line}", yellow=True)


@pytest.fixture(scope="session")
def nodejs():
    """Node.js with npm, from which the site's Python comes."""
    if not shutil.which("node") or not shutil.which("npm"):
        lacks("Node.js")


@pytest.fixture(scope="session")
def site(nodejs, tmp_path_factory):
    """The built site, once for all tests and all processes of a run; where LIGHTSPEED_SITE says, as
    by an author who has just built it, for several runs.
    """
    from lightspeed_authoring.build import ROOT
    from lightspeed_authoring.site.build import build

    folder = tmp_path_factory.getbasetemp()
    # Processes of one run (pytest-xdist) have folders of their own in one: there it is shared.
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    out = Path(os.environ.get("LIGHTSPEED_SITE") or folder / "web" / "under" / "a path" / "site")
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out.parents[1] / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first builds, and the others wait for it
        if not (out / "index.html").exists():
            build(ROOT, out, report=lambda words: None)
    return out


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium of the system, one for each test process: Playwright starts no second."""
    program = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if program is None:
        lacks("Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Folders for stores, none of which is made before something is kept there."""
    folder = tmp_path_factory.mktemp("stores")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture
def own_store(stores, monkeypatch):
    """A store for one test, and self-study's values; tests on practice use it in each."""
    data = next(stores)
    monkeypatch.setenv("LIGHTSPEED_DATA", str(data))
    monkeypatch.delenv("LIGHTSPEED_SEED", raising=False)
    monkeypatch.setattr(store_file, "_waiting", [])
    monkeypatch.setattr(store_file, "_notice", {"text": "", "told": False})
    return data
