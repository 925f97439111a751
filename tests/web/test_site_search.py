"""The search of the site: field terms lead first to the section that teaches them."""

import html
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from docutils.nodes import make_id

from lightspeed_authoring.site.build import glossary_text
from lightspeed_authoring.site.glossary import PAGE, terms
from lightspeed_authoring.site.search import FILE

pytestmark = pytest.mark.slow
COURSE = Path(__file__).parents[2]
ROWS = terms(glossary_text(COURSE))
# Forty rows from the whole glossary, by their standard name and by their last synonym in turn.
ASKED = [(row.names[-(n % 2)], row) for n, row in enumerate(ROWS[:: len(ROWS) // 40][:40])]


@pytest.fixture
def hits(reader, address):
    """What the search page lists for a query: (address, text) of each hit, best first."""
    page = reader.new_page()

    def hits(query):
        page.goto(f"{address}search.html?q={quote(query)}")
        page.locator("#search-results > p").wait_for()
        return page.eval_on_selector_all(
            ".sol-hits li", "all => all.map(li => [li.querySelector('a').href, li.innerText])"
        )

    yield hits
    page.close()


def test_forty_field_terms_lead_to_the_section_that_teaches_them(hits, address):
    astray = []
    for words, row in ASKED:
        found = [place.removeprefix(f"{address}chapters/") for place, _ in hits(words.lower())]
        if not found or found[0] != f"{row.page}.html#{make_id(row.anchor)}":
            astray.append((words, found[:1]))
        assert f"{PAGE}.html#{row.id}" in found[:4], f"{words}: its row is not near the top"
    assert len(ASKED) == 40 and len(astray) <= 4, astray


def test_plurals_slips_and_questions_find_it_too(hits):
    for query, place in (
        ("stragglers", "06_parallelism_3_waits.html#"),
        ("littel law", "04_littles_law.html#"),
        ("how much memory does training take?", "06_parallelism.html"),
        ("ALL REDUCE", "06_parallelism_2_sent.html#"),
    ):
        assert any(place in address for address, _ in hits(query)[:3]), query
    assert not hits("qqqqqqqq")


def test_no_hit_has_code_or_labels_of_pictures(site):
    listed = json.loads((site / FILE).read_text("utf-8"))
    prose = " ".join(section["text"] for section in listed)
    for page in sorted((site / "chapters").glob("*.html")):
        text = page.read_text("utf-8")
        for code in re.findall(r'<pre class="sol-code".*?</pre>', text, re.S):
            lines = html.unescape(re.sub(r"<[^>]+>", "", code)).splitlines()
            assert not [line for line in lines if len(line) > 40 and line in prose], page.name
    assert "<" not in re.sub(r"<(?=[\s\d…=])", "", prose), "no markup"
    kinds = {section["kind"] for section in listed}
    assert kinds == {"lesson", "proof", "exercises", "docs", "glossary"}
    assert sum(section["kind"] == "glossary" for section in listed) == len(ROWS)
