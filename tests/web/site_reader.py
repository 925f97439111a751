"""What tests that read the site have in common."""

from pathlib import Path

import pytest

COURSE = Path(__file__).parents[2]
PATIENCE = 90_000  # ms; a machine shared by many has been seen to take a minute
ALL_LIVE = (
    "[...document.querySelectorAll('.sol-live')].every(e => e.classList.contains('sol-is-live'))"
    " && performance.getEntriesByName('sol-settled').length > 0"
)


# Sets the first control of an explorer to another value, as a hand would.
MOVE = """cell => {
    const input = cell.querySelector('.sol-controls :is(input, select)')
        ?? cell.querySelector('input[type=range]');  // one that only plays
    if (input.type === 'checkbox') input.checked = !input.checked;
    else if (input.type === 'range')
        input.value = input.value === input.max ? input.min : input.max;
    else input.selectedIndex = (input.selectedIndex + 1) % input.length;
    history.replaceState(null, '', location.pathname);
    input.dispatchEvent(new Event('input', {bubbles: true}));
}"""


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


def tried(page):
    """Answers each box wrong, takes every hint to the worked solution, moves each explorer."""
    for cell in page.locator(".sol-ask:has(form)").all():
        if (choice := cell.locator("input[type=radio]")).count():
            choice.first.check()
        else:
            for box in cell.locator("input[type=text]").all():
                box.fill("12345")
        cell.get_by_role("button", name="Check").click()
        cell.locator(".sol-reply").get_by_text("Not yet.").or_(
            cell.locator(".sol-reply").get_by_text("Right.")
        ).first.wait_for()
        more = cell.locator(".sol-form-buttons button").nth(1)
        for _ in range(9):
            label = more.inner_text()
            if more.is_hidden() or more.is_disabled():
                break
            more.click()
            if label == "Show a worked solution":
                cell.get_by_text("A worked solution", exact=True).wait_for()
                break
            changed = "([button, label]) => button.textContent !== label"
            page.wait_for_function(changed, arg=[more.element_handle(), label])
    for cell in page.locator(".sol-explore").all():
        if (skip := cell.get_by_role("button", name="without a guess")).is_visible():
            skip.click()
        cell.evaluate(MOVE)
    assert not page.locator(".sol-fault").count(), page.locator(".sol-fault").all_inner_texts()
