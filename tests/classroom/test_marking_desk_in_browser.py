"""The desk in a real browser: two graders, the keyboard alone, axe, and hostile notebooks."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest
from scored import right, wrong
from test_marking_desk import ASSIGNMENT, HOSTILE, NAME, PIXEL, RIDGE, WORD, code, hand_in, prose

from lightspeed_class.class_folder import ClassFolder, new

PATIENCE = 60_000  # ms
DRAWN = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9' onload='alert(3)'><script>"
    "alert(4)</script><image href='http://evil.example/x.png'/><rect width='9' height='9'/></svg>"
)


@pytest.fixture
def folder(tmp_path):
    folder = new(tmp_path / "class").root
    outputs = [
        {"output_type": "stream", "text": HOSTILE},
        {"output_type": "display_data", "data": {"text/html": HOSTILE, "image/png": PIXEL}},
        {"output_type": "display_data", "data": {"text/html": HOSTILE, "text/plain": "plain"}},
        {"output_type": "display_data", "data": {"image/svg+xml": DRAWN}},
    ]  # fmt: skip
    with ClassFolder.find(folder).book() as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        for student, name in (("ada", "Ada"), ("mal", HOSTILE)):
            book.add_student(student, name)
            cells = (
                prose(name),
                code(f"answer = 1  # {name}", "cell0", outputs),
                code("answer = ...", "cell1"),
            )
            hand_in(book, student, {RIDGE: wrong(RIDGE), WORD: right(WORD)}, *cells)
    return folder


@contextlib.contextmanager
def at_the_desk(folder, chromium, *names):
    """Who marks -> their page, at a desk that the command opened; what a browser complains of."""
    command = [sys.executable, "-m", "lightspeed_cli", "class", "desk", NAME]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    options = [word for name in names for word in ("--by", name)]
    desk = subprocess.Popen(
        [*command, *options], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE
    )
    faults, pages = [], {}
    desk.stdout.readline()
    for _ in names:
        who, address = re.fullmatch(r"  (\w+): (http\S+)\n", desk.stdout.readline()).groups()
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE)
        context.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        context.on("dialog", lambda d: faults.append(d.message))
        pages[who] = context.new_page()
        pages[who].goto(address)
        assert "token" not in pages[who].url
    yield pages, faults
    for page in pages.values():
        page.context.close()
    desk.send_signal(signal.SIGINT)
    assert desk.wait(30) == 130 and desk.stdout.read() == ""


@pytest.fixture
def graders(folder, chromium):
    with at_the_desk(folder, chromium, "eve", "finn") as (pages, faults):
        yield pages
    conflicts = [f for f in faults if "409 (Conflict)" in f]  # the one that is asked for
    assert len(conflicts) == 1 and faults == conflicts, faults


def press(page, key):
    with page.expect_navigation():
        page.keyboard.press(key)


def follow(page, link):
    with page.expect_navigation():
        link.click()


@pytest.mark.slow
def test_two_graders_mark_by_keyboard_what_hostile_students_wrote(graders, folder):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    eve, finn = graders["eve"], graders["finn"]

    def looked_at(page):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found = axe.Axe().run(page).response["violations"]
            assert not found, [(v["id"], v["nodes"][0]["html"][:200]) for v in found]
        assert page.title().startswith("Marking") and page.evaluate("document.title !== 'owned'")

    looked_at(eve)
    press(eve, "n")
    assert "student=ada" in eve.url
    eve.get_by_text("Items of this question").click()
    eve.locator("[name=points]").last.fill("0.5")
    eve.locator("[name=words]").last.fill("The right idea.")
    with eve.expect_navigation():
        eve.get_by_text("Add an item").click()
    finn.goto(eve.url)
    eve.keyboard.press("1")
    press(eve, "s")
    assert "0.5 of 1 point" in eve.locator("dl").inner_text()
    finn.keyboard.press("c")
    finn.keyboard.type("jk <b>1</b>")  # in a field keys are letters
    finn.keyboard.press("Escape")
    press(finn, "s")
    assert "somebody marked this" in finn.get_by_role("alert").inner_text()
    assert finn.locator("textarea").input_value() == "jk <b>1</b>"
    finn.keyboard.press("1")
    press(finn, "s")
    press(finn, "u")
    assert finn.locator("textarea").input_value() == ""
    press(finn, "j")
    assert "student=mal" in finn.url
    finn.keyboard.press("1")
    press(finn, "k")  # saves, then goes
    assert "student=ada" in finn.url
    press(finn, "j")
    assert finn.locator("[name=item]").is_checked()
    assert finn.locator("img").evaluate_all("all => all.every(i => i.complete && i.naturalWidth)")
    looked_at(finn)
    finn.get_by_text("The whole notebook").click()
    finn.get_by_role("heading", name="Notebook").wait_for()
    assert finn.evaluate("document.title !== 'owned' && !document.querySelector('pre *')")
    with ClassFolder.find(folder).book() as book:
        kept = [(m.student, m.items, m.by, bool(m.undoes)) for m in book.manual(NAME)]
        assert {r.student.id: r.points for r in book.results(NAME)} == {"ada": 1.5, "mal": 1.5}
    assert kept == [
        ("ada", (1,), "eve", False), ("ada", (1,), "finn", False),
        ("ada", (), "finn", True), ("mal", (1,), "finn", False),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.holds("docs/teach.md", "all that have the same mistake")
def test_thirty_wrong_ridges_of_120_hand_ins_are_five_acts(tmp_path, chromium):
    """By keyboard: four mistakes on one card each, the last one settled; a whole act is undone."""
    folder = new(tmp_path / "class").root
    with ClassFolder.find(folder).book() as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        for n in range(120):
            book.add_student(f"s{n:03}", f"Student {n}")
            ridge = right(RIDGE) if n >= 30 else wrong(RIDGE, n % 4) if n < 24 else ...
            answers = {RIDGE: ridge, WORD: right(WORD)}
            hand_in(book, f"s{n:03}", answers, code(f"answer = {n}", "cell0"))
    with at_the_desk(folder, chromium, "eve") as (pages, faults):
        eve, waits = pages["eve"], lambda: int(eve.locator("td.number").first.inner_text())
        alike = eve.locator("h2:has-text('Alike') ~ .wide tbody tr")
        assert waits() == 30 and alike.count() == 5
        for _ in range(4):
            follow(eve, alike.first.get_by_role("link"))
            eve.keyboard.press("a")
            eve.keyboard.press("p")
            eve.keyboard.type("0.25")
            eve.keyboard.press("Escape")
            press(eve, "s")
            follow(eve, eve.get_by_role("link", name="Queue"))
        left = int(alike.first.locator(".number").inner_text())
        assert alike.count() == 1 and waits() == left
        follow(eve, eve.get_by_role("button", name="Settle"))
        assert waits() == 0 and alike.count() == 0
        with ClassFolder.find(folder).book() as book:
            marks = [m for m in book.manual(NAME) if m.question == RIDGE]
        assert len(marks) == len({m.student for m in marks}) == 30

        eve.goto(eve.url.partition("?")[0] + "?by=student")
        eve.keyboard.press("f")
        eve.keyboard.type("student 77")
        assert eve.locator("tbody tr:visible").count() == 1
        follow(eve, eve.locator("tbody tr:visible a"))
        eve.keyboard.press("g")
        eve.keyboard.type("s003")
        press(eve, "Enter")
        assert "student=s003" in eve.url
        press(eve, "u")
        follow(eve, eve.get_by_role("link", name="Queue"))
        assert alike.count() == 1, "a whole act is taken back, and no other"
        assert int(alike.first.locator(".number").inner_text()) > 1

        follow(eve, alike.first.get_by_role("link"))
        eve.get_by_label("Single letters do nothing").check()
        eve.locator("h2").first.click()  # the focus leaves the box
        here = eve.url
        for key in "jnsup":
            eve.keyboard.press(key)
        assert eve.url == here and eve.evaluate("document.activeElement === document.body")
    assert not faults, faults
