"""What tests that read the site have in common."""

from pathlib import Path

import pytest

COURSE = Path(__file__).parents[2]
PATIENCE = 90_000  # ms; a machine shared by many has been seen to take a minute
ALL_LIVE = (
    "[...document.querySelectorAll('.sol-live')].every(e => e.classList.contains('sol-is-live'))"
    " && performance.getEntriesByName('sol-settled').length > 0"
)


def alive(page):
    """Wait until every live cell of the page lives."""
    page.wait_for_function(ALL_LIVE)
    assert not page.locator(".sol-fault").count(), page.locator(".sol-fault").all_inner_texts()


def written(cell):
    """The editor of a cell; it comes when its field is entered."""
    cell.locator("textarea").focus()
    return cell.locator(".cm-content")


DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def serious(page, contrast=True):
    """What axe finds serious or worse in a page: its rule and the first place. Contrast
    takes long, and the pages are of one make: two tests look at it, in both themes.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.evaluate(DRAWN)  # what became wider than its place is told to the keyboard with a frame
    options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": contrast}}}
    found = axe.Axe().run(page, context=".content", options=options).response["violations"]
    return [
        (v["id"], v["nodes"][0]["html"][:200])
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
