"""Each page holds still while it comes alive, shows what the lab shows, leaves nobody out, and after
that one visit answers without a network. Each is visited once, by a browser that has seen nothing.
"""

import gzip
import html
import json
import re
from importlib import import_module
from urllib.parse import urlsplit

import pytest
from site_reader import COURSE, MOVE, PATIENCE, alive, serious, tried

from lightspeed_course.web import live

pytestmark = pytest.mark.slow
PAGES = [
    f"{folder}/{path.stem}.html"
    for folder in ("chapters", "exercises")
    for path in sorted((COURSE / folder).glob("[0-9][0-9]_*.ipynb"))
]
# How far what stands on a page has moved since it was opened.
SHIFTS = """new Promise((done) => {
    let sum = 0;
    new PerformanceObserver((list) => {
        for (const {value, hadRecentInput} of list.getEntries()) if (!hadRecentInput) sum += value;
    }).observe({type: 'layout-shift', buffered: true});
    setTimeout(() => done(sum), 300);
})"""
KEPT = "performance.getEntriesByName('sol-kept').length > 0"
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
SAYS = "([cell, words]) => cell.querySelector('.sol-verdict').textContent === words"


def first_two(verdict):
    return ". ".join(verdict.split(". ")[:2]).rstrip(".") + "."


@pytest.fixture(scope="module", params=["index.html", *PAGES])
def visited(chromium, address, request):
    """A page that a reader opens at a desk; once it lives, all that it needs is kept."""
    # Pictures that play by themselves stand still: each test sees the state that it asks for.
    context = chromium.new_context(viewport=DESK, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    context.faults, context.hosts = [], set()
    context.on("weberror", lambda e: context.faults.append(str(e.error)))
    context.on("console", lambda m: context.faults.append(m.text) if m.type == "error" else None)
    context.on("request", lambda r: context.hosts.add(urlsplit(r.url).netloc))
    page = context.new_page()
    page.goto(address + request.param)
    alive(page)
    page.jumps = page.evaluate(SHIFTS)
    page.wait_for_function(KEPT)
    yield page
    context.close()


def test_a_page_comes_alive_and_its_explorers_say_what_python_says(visited, address):
    page, context = visited, visited.context
    assert page.jumps < 0.05, "it holds still while it comes alive"
    # A newcomer hears two sentences.
    said = first_two if page.url.endswith("index.html") else str
    for cell in page.locator(".sol-explore").all():
        call = json.loads(cell.get_attribute("data-call"))[0]
        module, _, make = call.partition(".")
        explorer = getattr(import_module(live.rooms.__name__ + "." + module), make)()
        node = cell.element_handle()
        page.wait_for_function(SAYS, arg=[node, said(explorer.first.verdict)])
        if (skip := cell.get_by_role("button", name="without a guess")).is_visible():
            skip.click()
        if (more := cell.get_by_role("button", name="More controls")).is_visible():
            more.click()  # the start page keeps the link behind it
        cell.evaluate(MOVE)
        cell.get_by_role("button", name=re.compile("^Cop|^The address")).click()
        page.wait_for_function("location.hash.includes('?')")
        explorer.follow(page.evaluate("location.hash").partition("?")[2])
        assert explorer.params != {c.name: c.value for c in explorer.controls.values()}, call
        page.wait_for_function(SAYS, arg=[node, said(explorer.shown.verdict)])
    assert not (found := serious(page, contrast=False)), found
    assert not context.faults
    assert context.hosts <= {"", urlsplit(address).netloc}, "it asks no other host"


def test_after_one_visit_a_page_answers_without_a_network(visited):
    """On a phone, whose reader sees pictures move; there it holds still, too."""
    page, context = visited, visited.context
    page.evaluate("history.replaceState(null, '', location.pathname)")  # no state of an explorer
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    context.faults.clear()
    context.set_offline(True)
    page.emulate_media(reduced_motion="no-preference")
    page.set_viewport_size(PHONE)
    page.reload()
    alive(page)
    assert page.evaluate(SHIFTS) < 0.05, "it holds still while it comes alive"
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size(DESK)
    tried(page)
    own = [words for words in context.faults if "net::ERR" not in words]
    assert not own, own


def test_the_whole_course_is_kept_at_a_press_and_what_is_not_says_so(chromium, address):
    context = chromium.new_context(viewport=DESK, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(address + "progress.html")
    page.wait_for_function(KEPT)
    context.set_offline(True)
    page.goto(address + "chapters/11_profile.html")
    page.get_by_text("This page was not kept").wait_for()
    page.get_by_role("link", name="progress").click()
    context.set_offline(False)
    page.get_by_role("button", name="Keep the whole course").click()
    page.get_by_text("The whole course is kept").wait_for()
    context.set_offline(True)
    page.goto(address + "chapters/11_profile.html")
    alive(page)
    tried(page)
    context.close()


# What a reader of chapter 2 waits for, compressed, in bytes: bytes are the same on each machine.
BEFORE, LIVE = 300_000, 8_000_000


def test_a_page_is_light(site):
    """Its text, pictures, styles and scripts; and what it takes until it lives."""
    site = site.resolve()
    page = site / "chapters" / "02_roofline.html"
    text = page.read_text("utf-8")
    named = re.findall(r'(?:href|src)="([^"?#]+\.(?:css|js))', text)
    live = site / "_static" / "live"
    early = {page, live / "view.js", live / "form.js"}
    early |= {(page.parent / name).resolve() for name in named if "://" not in name}
    names = ("worker.js", "image.bin", "soon.bin", "pyodide/pyodide.mjs", "pyodide/pyodide.asm.js",
             "pyodide/pyodide.asm.wasm", "pyodide/pyodide-lock.json")  # fmt: skip
    late = {live / name for name in names}
    calls = [json.loads(html.unescape(call)) for call in re.findall(r'data-call="([^"]*)"', text)]
    asks = {f"ask-{c[1].partition('.')[0]}" for c in calls if c[0] in ("ask", "predict", "reveal")}
    rooms = {kind.partition(".")[0] for kind, *_ in calls if ".explore" in kind}
    assert {"ask-roofline", "ask-numbers"} <= asks and {"roofline", "traffic"} <= rooms
    late |= {live / "bundles" / f"{name}.bin" for name in {"common", "bench"} | asks | rooms}
    before, after = (
        sum(len(gzip.compress(file.read_bytes(), 6)) for file in files) for files in (early, late)
    )
    assert live / "page.js" in early and len(early) > 8
    assert before <= BEFORE, f"{before} bytes before the worker starts"
    assert before + after <= LIVE, f"{before + after} bytes for a live chapter"
