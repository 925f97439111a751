"""Each page comes alive in a browser, shows what the lab shows, leaves nobody out."""

import gzip
import html
import json
import re
from importlib import import_module

import pytest
from site_reader import COURSE, serious

from lightspeed_course.web import live

pytestmark = pytest.mark.slow
PAGES = [
    f"{folder}/{path.stem}.html"
    for folder in ("chapters", "exercises")
    for path in sorted((COURSE / folder).glob("[0-9][0-9]_*.ipynb"))
]
# Sets the first control of an explorer to another value, as a hand would.
MOVE = """cell => {
    const input = cell.querySelector('.sol-controls :is(input, select)')
        ?? cell.querySelector('input[type=range]');  // one that only plays
    if (input.type === 'checkbox') input.checked = !input.checked;
    else if (input.type === 'range') input.value = input.value === input.max ? input.min : input.max;
    else input.selectedIndex = (input.selectedIndex + 1) % input.length;
    history.replaceState(null, '', location.pathname);
    input.dispatchEvent(new Event('input', {bubbles: true}));
}"""
SAYS = "([cell, words]) => cell.querySelector('.sol-verdict').textContent === words"


def first_two(verdict):
    return ". ".join(verdict.split(". ")[:2]).rstrip(".") + "."


@pytest.mark.parametrize("name", ["index.html", *PAGES])
def test_a_page_comes_alive_and_its_explorers_say_what_python_says(visit, opened, name):
    page = visit(name)
    cells = page.locator(".sol-explore").all()
    # A newcomer hears two sentences.
    said = first_two if name == "index.html" else str
    for cell in cells:
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
    assert not (found := serious(page, contrast=False)), f"{name}: {found}"
    opened.pop(name).close()


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
