"""Every kind of question on a site's page, wrong and right, by the lab's answers."""

import html
import json
import re

import pytest
from site_reader import alive, written

from lightspeed_course.practice import incident_session as session
from lightspeed_course.practice.questions import bank, question

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def questions(site):
    """The page that asks most kinds of questions, and the first question of each kind there."""
    pages = {}
    for path in sorted(site.glob("[ce]*/*.html")):
        asked = pages.setdefault(path.relative_to(site).as_posix(), {})
        for told in re.findall(r'data-call="([^"]*)"', path.read_text("utf-8")):
            call = json.loads(html.unescape(told))
            if call[0] == "ask":
                asked.setdefault(question(call[1]).kind, question(call[1]).variant())
    return max(pages.items(), key=lambda page: len(page[1]))


def asked(page, kind, id):
    return page.locator(f'.sol-{kind}[data-call*="{id}"]').first


def says(cell, words):
    cell.locator(".sol-reply").get_by_text(words, exact=isinstance(words, str)).first.wait_for()


def test_a_number(visit, questions):
    name, variants = questions
    variant = variants["number"]
    cell = asked(visit(name), "ask", variant.question.id)
    for factor, verdict in ((3.7, "Not yet."), (1, "Right.")):
        cell.locator("input").fill(f"{variant.right[0] * factor:.6g}")
        cell.locator("input").press("Enter")
        says(cell, verdict)


def test_a_choice(visit, questions):
    name, variants = questions
    variant = variants["choice"]
    cell = asked(visit(name), "ask", variant.question.id)
    wrong = next(key for key in variant.options if key != variant.right)
    for key, verdict in ((wrong, "Not yet."), (variant.right, "Right.")):
        cell.locator(f'input[value="{key}"]').check()
        cell.get_by_role("button", name="Check").click()
        says(cell, verdict)


def test_several_numbers(visit, questions):
    name, variants = questions
    variant = variants["array"]
    cell = asked(visit(name), "ask", variant.question.id)
    for factor, verdict in ((3.7, "Not yet."), (1, "Right.")):
        for box, value in zip(cell.locator("input").all(), variant.right, strict=True):
            box.fill(f"{value * factor:.8g}")
        cell.get_by_role("button", name="Check").click()
        says(cell, verdict)


def test_a_guess_and_its_reveal(visit):
    page = visit("chapters/01_numbers_to_know.html")
    cell = page.locator(".sol-predict").first
    id = json.loads(cell.get_attribute("data-call"))[1]
    shown = asked(page, "reveal", id)
    assert not shown.get_by_text("Your first guess was").count(), "not told before a guess"
    for typed, reply in (("many", "Not read."), ("-1", "Not recorded."), ("2", "Recorded:")):
        cell.locator("input").fill(typed)
        cell.get_by_role("button", name="Commit my guess").click()
        says(cell, reply)
    shown.get_by_text("Your first guess was").wait_for()


def test_a_drill_of_cards(visit):
    page = visit("chapters/01_numbers_to_know.html")
    drill = page.locator(".sol-cards").first
    deck = [q.variant() for q in bank("numbers") if q.kind == "number" and q.level == "recall"]
    for variant, factor, verdict in zip(deck, (1000, 1), ("Not yet.", "Known."), strict=False):
        drill.locator("input").fill(f"{variant.right[0] * factor:.8g}")
        drill.locator("input").press("Enter")
        says(drill, verdict)
        drill.get_by_role("button", name="Next card").click()
        drill.get_by_role("button", name="Check").wait_for()


def test_a_cell_of_a_chapter_is_edited_run_kept_and_put_back(visit):
    page = visit("chapters/01_numbers_to_know.html")
    cell = page.locator(".sol-cell:has(.sol-result):not(:has(details))").first
    shown = cell.locator(":scope > .sol-result").first
    before = shown.inner_text()
    cell.get_by_role("button", name="Edit and run").click()
    editor, reply = written(cell), cell.locator(".sol-reply")
    field = cell.locator("textarea")  # what the page reads and keeps
    source = field.input_value()
    cell.get_by_role("button", name="Run", exact=True).click()
    reply.locator(".sol-result").first.wait_for()
    assert not cell.locator(".sol-problem").count() and not shown.is_visible()
    editor.fill("print(6 * 7)\nridge_pint")
    editor.press("Control+Enter")
    reply.get_by_text("42").wait_for()
    reply.get_by_text("Line 2: NameError: name 'ridge_pint' is not defined").wait_for()
    page.reload()
    alive(page)
    cell.get_by_role("button", name="Your version of this cell").click()
    assert field.input_value().startswith("print(6 * 7)"), "what was written stays"
    cell.get_by_role("button", name="Put back").click()
    assert field.input_value() == source and shown.inner_text() == before


def test_today_and_an_incident_live_on_the_page(visit):
    page = visit("chapters/00_start_here.html")
    today = page.locator(".sol-today")
    today.get_by_role("button", name="Check").click()
    says(today, re.compile("^Not answered"))
    room = page.locator(".sol-incident")
    seed = json.loads(room.get_attribute("data-call"))[1]
    case = session.opened(seed)
    bought = case.setting.ordered("measurements")[0]
    room.get_by_role("button", name="Buy", exact=True).click()
    says(room, "Not answered.")
    room.locator(f'input[value="{bought.id}"]').check()
    room.get_by_role("button", name="Buy", exact=True).click()
    room.get_by_text(f"Paid so far: {bought.minutes} min.").wait_for()
    room.get_by_role("button", name="I know the cause").click()
    for place in (0, 1):  # a cause and a fix, whose names in the page say nothing
        room.locator("fieldset").nth(place).locator("input").first.check()
    room.get_by_role("button", name="Name cause and fix").click()
    says(room, re.compile(r"\w"))
    page.reload()
    alive(page)
    assert page.locator(".sol-incident").get_by_role("button", name="Buy").count() == 0, "once"
