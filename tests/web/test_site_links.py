"""A link means one thing for ever: names instead of positions, headings at the top, old links."""

import json

import pytest
from site_reader import COURSE, PATIENCE, alive

from lightspeed_authoring.site import cells, reading

SIZES = [(1280, 900), (390, 844)]
TOP = "name => document.getElementById(name).getBoundingClientRect().top"


def test_what_was_ever_published_leads_somewhere():
    known, now = reading.moved(), reading.pages(COURSE)
    lost = reading.lost(now, known)
    assert not lost, f"say in site/moved.json where these went: {lost}"
    published = sum(len(places) for places in known.values())
    assert published > 900 and known["02_roofline"]["cell-28"] == "02_roofline#explore-roofline"


def test_a_cell_has_the_name_of_what_it_does_whatever_stands_before_it():
    path = COURSE / "chapters" / "02_roofline.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    before = list(cells.anchors(notebook).values())
    notebook["cells"].insert(1, {"cell_type": "markdown", "metadata": {}, "source": ["# New"]})
    assert list(cells.anchors(notebook).values()) == before
    assert len(set(before)) == len(before) and "explore-roofline" in before
    assert "ask-roofline-layer-of-the-job" in before


def headings(page):
    """Some headings of a page, from its middle to its end."""
    listed = [a for a in reading.pages(COURSE)[page] if not a.startswith(("explore", "ask-"))]
    plain = [a for a in listed if a.count("-") >= 1 and not a.startswith(("predict", "reveal"))]
    return plain[len(plain) // 2 :: 3][:3]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_a_link_to_a_heading_stands_at_the_top_once_the_page_has_settled(chromium, address, size):
    context = chromium.new_context(viewport=dict(zip(("width", "height"), size, strict=True)))
    context.set_default_timeout(PATIENCE)
    page, places = context.new_page(), {}
    for stem in ("02_roofline", "04_littles_law", "06_parallelism_2_sent", "08_network_proof"):
        for anchor in headings(stem):
            page.goto("about:blank")
            page.goto(f"{address}chapters/{stem}.html#{anchor}")
            alive(page)
            if page.evaluate("name => !document.getElementById(name)", anchor):
                continue  # a heading of a lesson's box, which the page shows under another name
            places[f"{stem}#{anchor}"] = page.evaluate(TOP, anchor)
    context.close()
    assert len(places) >= 8
    assert not (beside := {k: v for k, v in places.items() if not -1 <= v <= 200}), beside


@pytest.mark.slow
def test_links_of_the_last_release_lead_to_what_they_led_to(chromium, address):
    """Each explorer's old link, by its position, and `#explore` on each page that has one."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page, wrong = context.new_page(), []
    for stem, places in reading.moved().items():
        links = {a: p for a, p in places.items() if a.startswith("cell-") and "#explore" in p}
        for old, place in links.items():
            page.goto("about:blank")
            page.goto(f"{address}chapters/{stem}.html#{old}", wait_until="domcontentloaded")
            target, _, name = place.partition("#")
            try:
                page.wait_for_url(f"**/{target}.html#{name}", timeout=10_000)
                page.wait_for_function(f"({TOP})('{name}') < innerHeight", timeout=10_000)
            except Exception as error:
                wrong.append((stem, old, str(error).splitlines()[0]))
    context.close()
    assert not wrong, wrong
