"""Each page of the site comes alive in a browser, shows what the lab's Python shows, and leaves
nobody out.
"""

import gzip
import json
import re

import pytest
from site_reader import COURSE, alive, serious

from lightspeed_course.web import live

pytestmark = pytest.mark.slow
PAGES = [
    f"{folder}/{path.stem}.html"
    for folder in ("chapters", "exercises")
    for path in sorted((COURSE / folder).glob("[0-9][0-9]_*.ipynb"))
]
# Sets the first control of an explorer to another value, as a hand would.
MOVE = """cell => {
    const input = cell.querySelector('.sol-controls :is(input, select)');
    if (input.type === 'checkbox') input.checked = !input.checked;
    else if (input.type === 'range') input.value = input.value === input.max ? input.min : input.max;
    else input.selectedIndex = (input.selectedIndex + 1) % input.length;
    history.replaceState(null, '', location.pathname);
    input.dispatchEvent(new Event('input', {bubbles: true}));
}"""
SAYS = "([cell, words]) => cell.querySelector('.sol-verdict').textContent === words"


@pytest.mark.parametrize("name", ["index.html", *PAGES])
def test_a_page_comes_alive_and_its_explorers_say_what_python_says(visit, opened, name):
    page = visit(name)
    cells = page.locator(".sol-explore").all()
    made = live.explorers() if cells else {}
    for cell in cells:
        call = json.loads(cell.get_attribute("data-call"))[0]
        explorer, node = made[call], cell.element_handle()
        page.wait_for_function(SAYS, arg=[node, explorer.first.verdict])
        cell.evaluate(MOVE)
        cell.get_by_role("button", name=re.compile("^Cop|^The address")).click()
        page.wait_for_function("location.hash.includes('?')")
        explorer.follow(page.evaluate("location.hash").partition("?")[2])
        assert explorer.params != {c.name: c.value for c in explorer.controls.values()}, call
        page.wait_for_function(SAYS, arg=[node, explorer.shown.verdict])
    if not name.startswith("exercises/") or name == PAGES[-1]:  # of one make
        assert not (found := serious(page)), f"{name}: {found}"
    opened.pop(name).close()


def test_the_keyboard_alone_reads_moves_and_answers(visit):
    """From the top of the page, with nothing but keys: an answer, and the explorer of the start
    page.
    """
    page = visit("chapters/00_start_here.html")
    box = page.locator(".sol-ask input").first.element_handle()
    tab_to(page, box)
    page.keyboard.type("295 FLOP")
    page.keyboard.press("Enter")
    page.locator(".sol-ask .sol-reply").first.get_by_text(re.compile("Not |Right")).wait_for()
    page.goto(page.url.replace("chapters/00_start_here", "index"))
    alive(page)
    slider = page.locator(".sol-explore input[type=range]").first.element_handle()
    before = page.locator(".sol-explore .sol-verdict").inner_text()
    tab_to(page, slider)
    page.keyboard.press("End")
    page.wait_for_function(
        "old => document.querySelector('.sol-explore .sol-verdict').textContent !== old", arg=before
    )


def tab_to(page, node):
    """Press Tab until `node` has the focus."""
    page.locator("body").focus()
    for _ in range(300):
        page.keyboard.press("Tab")
        if page.evaluate("node => document.activeElement === node", node):
            return
    pytest.fail(f"300 presses of Tab don't reach {node}")


# What a reader of chapter 2 waits for, compressed, in bytes: bytes are the same on each machine.
BEFORE, LIVE = 300_000, 8_000_000
LATER = ("/pyodide/", "course.zip", "worker.js")


def test_a_page_is_light(site, browser, address):
    """Until its text, pictures and scripts are there, and until it lives; as a host compresses."""
    context = browser.new_context(service_workers="block")
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}chapters/02_roofline.html")
    alive(page)
    context.close()
    early, late = 0, 0
    for path in {re.sub(r"[?#].*", "", url) for url in asked if url.startswith(address)}:
        size = len(gzip.compress((site / path.removeprefix(address)).read_bytes(), 6))
        if any(part in path for part in LATER):
            late += size
        else:
            early += size
    assert early <= BEFORE and late > 10 * early, f"{early} bytes before the worker starts"
    assert early + late <= LIVE, f"{early + late} bytes for a live chapter"
