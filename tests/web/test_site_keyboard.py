"""A chapter by the keyboard alone: every stop of the Tab key is seen, and an explorer, a question,
the search and the next chapter need no mouse.
"""

import json
import re

import pytest
from site_reader import alive

from lightspeed_course.practice.questions import question

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("reader")]

# What has the focus: what it is, the live cell around it, whether it stands in the window, and the
# ways in which it, or what frames it, looks other than without.
STOP = """() => {
    const node = document.activeElement, cell = node.closest('.sol-live');
    if (node === document.body) return null;
    const looks = (each) => { const s = getComputedStyle(each); return [s.outlineStyle, s.outlineWidth, s.outlineColor, s.boxShadow, s.borderColor,
        s.backgroundColor, s.color, s.textDecorationLine, s.opacity].join(' ') };
    const around = [node, node.parentElement, ...(node.labels ?? []), ...node.querySelectorAll(':scope > *')];
    const box = node.getBoundingClientRect(), seen = around.map(looks);
    const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && box.width > 0;
    return {
        what: `${node.tagName} ${node.type ?? ''} ${node.className} ${node.textContent.slice(0, 40)}`, tag: node.tagName, type: node.type ?? '',
        call: cell?.dataset.call ?? '', inside, rel: node.className + ' ' + (node.rel ?? ''), shown: seen,
        blurred: (node.blur(), around.map(looks)), again: node.focus({preventScroll: true, focusVisible: true}),
    };
}"""
MOST = 900  # stops; a chapter has some hundreds


@pytest.fixture(scope="module")
def page(session_reader, address):
    page = session_reader.new_page()
    page.goto(address + "chapters/02_roofline.html")
    alive(page)
    page.add_style_tag(
        content="*, html { scroll-behavior: auto !important; transition: none !important; }"
    )
    yield page
    page.close()


def walk(page, key="Tab"):
    """Every stop of the Tab key, from the top of the page to its end; of Shift+Tab, from its end."""
    page.evaluate(
        "(document.activeElement.blur(), getSelection().removeAllRanges(), scrollTo(0, 0))"
    )
    for _ in range(MOST):
        page.keyboard.press(key)
        stop = page.evaluate(STOP)
        if stop is None:
            return
        yield stop
    pytest.fail(f"after {MOST} stops the Tab key has not come through the page: {stop['what']}")


def until(page, reached, what, key="Tab"):
    """Press the key until a stop is reached."""
    for stop in walk(page, key):
        if reached(stop):
            return stop
    pytest.fail(f"the Tab key does not come to {what}")


def test_every_stop_of_the_tab_key_is_seen(page):
    stops = list(walk(page))
    assert len(stops) > 50
    lost = [stop["what"] for stop in stops if not stop["inside"]]
    assert not lost, f"the focus is out of sight: {lost}"
    blind = [stop["what"] for stop in stops if stop["shown"] == stop["blurred"]]
    assert not blind, f"nobody sees that these have the focus: {blind}"


def test_an_explorer_and_a_question_answer_to_the_keys(page):
    def of(call, *types):
        return lambda stop: stop["call"] == json.dumps(call) and stop["type"] in types

    explorer = page.locator('[data-call*="roofline.explore\\""]').first
    said = explorer.locator(".sol-verdict").inner_text()
    until(page, of(["roofline.explore"], "range"), "a slider of the explorer")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "([cell, old]) => cell.querySelector('.sol-verdict').textContent !== old",
        arg=[explorer.element_handle(), said],
    )
    variant = question("roofline.weight_only_batch").variant("chapter")
    call = ["ask", variant.question.id, "chapter"]
    reply = page.locator('.sol-ask[data-call*="weight_only_batch"] .sol-reply')
    until(page, of(call, "text"), "the box of the question")
    for factor, verdict in ((3.7, "Not yet."), (1, "Right.")):
        page.keyboard.press("Control+a")
        page.keyboard.type(f"{variant.right[0] * factor:.6g}")
        page.keyboard.press("Enter")
        reply.get_by_text(verdict, exact=True).wait_for()
    assert page.url.endswith("02_roofline.html"), "no key has turned the page"


def test_a_cell_is_edited_and_left(page):
    first = page.locator(".sol-cell:not(:has(details)):has(.sol-code)").first
    cell = page.locator(f"#{first.get_attribute('id')}")
    # In this reader's browser another test may have changed the same cell.
    cell.get_by_role("button", name=re.compile("^(Edit and run|Your version)")).focus()
    page.keyboard.press("Enter")
    editor = cell.locator(".cm-content")
    editor.wait_for()
    page.wait_for_function("document.activeElement.matches('.cm-content')")
    page.keyboard.press("Control+a")
    page.keyboard.type("for n in (6, 7):\nprint(n / 2)")
    assert editor.inner_text().rstrip() == "for n in (6, 7):\n    print(n / 2)"
    colors = editor.locator("span").evaluate_all(
        "all => all.map(each => getComputedStyle(each).color)"
    )
    assert len(set(colors)) > 1, "keywords and numbers have the colours of the page"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Control+Enter")
    cell.get_by_text("3.0\n3.5").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('.cm-content')"), "Tab indents"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    page.wait_for_function("document.activeElement.textContent === 'Run'")
    assert cell.locator("textarea").input_value().startswith("for n"), "what is kept follows"


def test_the_search_and_the_next_chapter_are_found(page):
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    page.wait_for_function("document.activeElement.matches('input.sidebar-search')")
    page.keyboard.type("straggler")
    page.keyboard.press("Enter")
    page.locator("#search-results a").first.wait_for()
    page.go_back()
    start = page.url
    until(page, lambda stop: "next-page" in stop["rel"], "the next chapter", "Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/chapters/02_roofline_2_*.html")
    until(page, lambda stop: "prev-page" in stop["rel"], "the chapter before", "Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(start)
