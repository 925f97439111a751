"""After one visit a page reads and answers without a network; all pages do once they were kept."""

import pytest
from site_reader import PATIENCE, alive
from test_site_pages import MOVE, PAGES

pytestmark = pytest.mark.slow
KEPT = "performance.getEntriesByName('sol-kept').length > 0"


@pytest.fixture
def traveller(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    context.faults = []
    context.on("weberror", lambda e: context.faults.append(str(e.error)))
    context.on("console", lambda m: context.faults.append(m.text) if "Errno" in m.text else None)
    yield context
    context.close()


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


@pytest.mark.parametrize("name", PAGES)
def test_after_one_visit_a_page_answers_without_a_network(traveller, address, name):
    page = traveller.new_page()
    page.goto(address + name)
    alive(page)
    page.wait_for_function(KEPT)
    traveller.set_offline(True)
    page.reload()
    alive(page)
    tried(page)
    assert not traveller.faults, traveller.faults


def test_the_whole_course_is_kept_at_a_press_and_what_is_not_says_so(traveller, address):
    page = traveller.new_page()
    page.goto(address + "progress.html")
    page.wait_for_function(KEPT)
    traveller.set_offline(True)
    page.goto(address + "chapters/11_profile.html")
    page.get_by_text("This page was not kept").wait_for()
    page.get_by_role("link", name="progress").click()
    traveller.set_offline(False)
    page.get_by_role("button", name="Keep the whole course").click()
    page.get_by_text("The whole course is kept").wait_for()
    traveller.set_offline(True)
    page.goto(address + "chapters/11_profile.html")
    alive(page)
    tried(page)
