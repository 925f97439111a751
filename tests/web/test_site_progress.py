"""Progress in a reader's browser: out as a file, in again, over two tabs, after a clearing."""

import json

import pytest
from site_reader import PATIENCE, alive

from lightspeed_course.practice.questions import question

pytestmark = pytest.mark.slow
LESSON, PROGRESS = "chapters/02_roofline.html", "progress.html"
BOX = '.sol-ask[data-call*="roofline."]:has(input[type=text])'  # of the lesson's own questions
SOLVED = """name => [...document.querySelectorAll('.sol-tally tr')].some(
    ({cells}) => cells[0].textContent.includes(name) && cells[3].textContent === '1')"""


@pytest.fixture
def profile(chromium):
    """Makes readers whose browsers have seen nothing yet."""
    contexts = []

    def fresh(**more):
        contexts.append(chromium.new_context(viewport={"width": 1280, "height": 900}, **more))
        contexts[-1].set_default_timeout(PATIENCE)
        return contexts[-1]

    yield fresh
    for context in contexts:
        context.close()


def exported(page, path):
    """The events of the file that the first click on the button gives."""
    with page.expect_download() as coming:
        page.get_by_role("button", name="Export as a file").click()
    coming.value.save_as(path)
    return json.loads(path.read_text("utf-8"))["events"]


def test_progress_moves_to_a_second_profile_by_the_first_click(profile, address, tmp_path):
    progress = tmp_path / "progress.json"
    first = profile().new_page()
    first.goto(address + PROGRESS)
    assert exported(first, tmp_path / "empty.json") == [], "before anything else was touched"
    first.goto(address + LESSON)
    alive(first)
    cell = first.locator(BOX).first
    name = cell.get_attribute("id")
    answer(cell)
    first.goto(address + PROGRESS)
    alive(first)
    assert len(exported(first, progress)) == 1
    second = profile().new_page()
    second.goto(address + PROGRESS)
    second.set_input_files("#sol-import", progress)
    second.get_by_text("1 new event taken in.").wait_for()
    second.wait_for_function(SOLVED, arg="The roofline")
    assert second.locator(".sol-tally td a").first.inner_text() == "1. Numbers to know"
    tick = second.locator(".sidebar-tree a[href*='02_roofline.html'] .sol-tick")
    tick.wait_for()
    assert "solved" in tick.get_attribute("title")
    second.set_input_files("#sol-import", progress)  # the same file can be chosen again
    second.get_by_text("0 new events taken in.").wait_for()
    second.goto(address + LESSON)
    alive(second)
    second.locator(f"#{name}").get_by_text("Solved.").wait_for()


def answer(cell):
    """Answer the question of a cell right."""
    _, name, *seed = json.loads(cell.get_attribute("data-call"))
    right = question(name).variant(*seed).right[0]
    cell.locator("input[type=text]").fill(f"{right:.6g}")
    cell.locator("input[type=text]").press("Enter")
    cell.locator(".sol-reply").get_by_text("Right.", exact=True).wait_for()


def test_two_tabs_know_one_another_and_cleared_data_are_written_again(profile, address, tmp_path):
    context = profile()
    lesson, table = context.new_page(), context.new_page()
    lesson.goto(address + LESSON)
    table.goto(address + PROGRESS)
    alive(lesson)
    alive(table)
    first, second = lesson.locator(BOX).all()[:2]
    answer(first)
    table.wait_for_function(SOLVED, arg="The roofline")
    assert len(exported(table, tmp_path / "one.json")) == 1, "the other tab's answer is in it"
    table.close()
    lesson.evaluate("indexedDB.deleteDatabase('speed-of-light')")
    answer(second)
    lesson.get_by_text("has been written again").wait_for()
    lesson.goto(address + PROGRESS)
    alive(lesson)
    assert len(exported(lesson, tmp_path / "two.json")) == 2, "nothing is lost"


def test_a_browser_that_keeps_nothing_says_so_and_exports(profile, address, tmp_path):
    context = profile(service_workers="block")
    refused = "(() => { throw new Error('not here'); })()"
    context.route(
        "**/progress.js*",
        lambda route: route.fulfill(
            response=(answer := route.fetch()),
            body=answer.text().replace('indexedDB.open("speed-of-light", 1)', refused),
        ),
    )
    page = context.new_page()
    page.goto(address + LESSON)
    alive(page)
    answer(page.locator(BOX).first)
    page.get_by_text("This browser does not keep your progress").wait_for()
