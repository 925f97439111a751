"""What a reader meets before Python is there: a page that holds still, a box that takes words."""

import pytest
from site_reader import PATIENCE, alive
from test_site_pages import PAGES

pytestmark = pytest.mark.slow
SIZES = [(1280, 900), (390, 844)]
SHIFTS = """new Promise((done) => {
    let sum = 0;
    new PerformanceObserver((list) => {
        for (const {value, hadRecentInput} of list.getEntries()) if (!hadRecentInput) sum += value;
    }).observe({type: 'layout-shift', buffered: true});
    setTimeout(() => done(sum), 300);
})"""


@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_no_page_jumps_while_it_comes_alive(chromium, address, size):
    context = chromium.new_context(viewport=dict(zip(("width", "height"), size, strict=True)))
    context.set_default_timeout(PATIENCE)
    jumps = {}
    for name in ("index.html", *PAGES):
        page = context.new_page()
        page.goto(address + name)
        alive(page)
        jumps[name] = page.evaluate(SHIFTS)
        page.close()
    context.close()
    assert not (high := {k: v for k, v in jumps.items() if v >= 0.05}), high


def test_an_answer_before_python_is_judged_when_it_is_there(chromium, address):
    context = chromium.new_context(service_workers="block")
    context.set_default_timeout(PATIENCE)
    waiting = []
    context.route("**/image.bin*", lambda route: waiting.append(route))
    page = context.new_page()
    page.goto(address + "chapters/02_roofline.html")
    cell = page.locator(".sol-ask:has(input[type=text])").first
    box = cell.locator("input[type=text]")
    box.fill("12345")
    box.press("Enter")
    slider = page.locator('[data-call*="roofline.explore"] input[type=range]').first
    slider.focus()
    slider.press("ArrowRight")
    place = slider.input_value()
    assert not page.locator(".sol-is-live").count() and waiting
    waiting[0].continue_()
    cell.locator(".sol-reply").get_by_text("Not yet.", exact=True).wait_for()
    assert box.input_value() == "12345", "what was typed stays"
    alive(page)
    assert slider.input_value() == place, "and what was moved"
    context.close()
