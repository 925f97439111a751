"""What a reader meets before Python is there: a box that takes words."""

import pytest
from site_reader import PATIENCE, alive

pytestmark = pytest.mark.slow


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
