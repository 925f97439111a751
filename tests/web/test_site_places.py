"""Where a page stands, its first screen, its print, and what a stopped cell keeps."""

import re

import pytest
from site_reader import PATIENCE, alive, written

pytestmark = pytest.mark.slow
SIZES = [(1280, 900), (390, 844)]
EXPLORER = '[data-call="[&quot;roofline.explore&quot;]"]'
TOP = "cell => cell.getBoundingClientRect().top"


@pytest.fixture
def stranger(chromium):
    """Opens a page in a browser that has seen nothing yet; asked again, in that same browser."""
    contexts = {}

    def open(address, size, **asked):
        if size not in contexts:
            contexts[size] = chromium.new_context(
                viewport=dict(zip(("width", "height"), size, strict=True)), **asked
            )
            contexts[size].set_default_timeout(PATIENCE)
        page = contexts[size].new_page()
        page.goto(address)
        return page

    yield open
    for context in contexts.values():
        context.close()


@pytest.fixture(scope="module")
def explorer_id(site):
    text = (site / "chapters" / "02_roofline.html").read_text("utf-8")
    return re.search(r'id="(explore-\w+)" data-call="\[&quot;roofline.explore&quot;\]"', text)[1]


@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_a_link_with_a_state_leads_to_its_explorer(stranger, address, explorer_id, size):
    # The last is what a link said before; later visits find what the first has kept.
    for name in ("explore", explorer_id, "cell-28"):
        link = f"{address}chapters/02_roofline.html#{name}?hardware=b200&weights=int8"
        page = stranger(link, size)
        cell = page.locator(f"#{explorer_id}")
        soon = "id => document.getElementById(id).getBoundingClientRect().top < innerHeight"
        page.wait_for_function(soon, arg=explorer_id)
        alive(page)
        assert 0 <= cell.evaluate(TOP) < size[1] / 4, f"#{name} at {size[0]}: {cell.evaluate(TOP)}"
        assert cell.locator("select").nth(1).input_value() != "0", "and has its state"


def test_a_reader_who_has_moved_stays(stranger, address):
    page = stranger(f"{address}chapters/02_roofline.html#explore?hardware=b200", SIZES[0])
    page.mouse.wheel(0, -1500)
    page.wait_for_function("scrollY > 0")
    alive(page)
    explorer = page.locator('.sol-explore[data-call*="roofline.explore"]').first
    assert explorer.evaluate(TOP) > 900, "nobody is pulled back"


@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_the_first_screen_asks_the_questions_of_the_chapters(stranger, address, size):
    page = stranger(address + "index.html", size, reduced_motion="reduce")
    alive(page)
    questions = page.locator("article ol a").all()
    assert len(questions) >= 8 and all(q.inner_text().endswith("?") for q in questions)
    seen = [q for q in questions if q.bounding_box()["y"] + q.bounding_box()["height"] < size[1]]
    assert len(seen) >= (2 if size[0] > 1000 else 0)
    assert page.locator(".sol-first").bounding_box()["y"] < questions[0].bounding_box()["y"]
    for name in ("Learn to find out", "Take a call"):
        assert page.get_by_role("link", name=name).bounding_box()["y"] < size[1]
    drawn = page.locator(".sol-first .sol-charts svg").first
    share = drawn.evaluate("svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width")
    sizes = "all => all.map(text => Number(text.getAttribute('font-size')))"
    letters = drawn.locator("text").evaluate_all(sizes)
    assert share * min(letters) >= 8.5, "labels are read without a lens"
    wider = drawn.evaluate(
        "svg => svg.getBoundingClientRect().width > svg.parentElement.clientWidth + 1"
    )
    assert page.locator(".sol-first .sol-hint").is_visible() == wider, "the hint tells the truth"
    assert not page.locator(".sol-first .sol-facts").is_visible()
    assert "(measured)" not in page.locator(".sol-first .sol-verdict").inner_text()
    page.get_by_role("button", name="More controls and numbers").click()
    page.locator(".sol-first .sol-facts").wait_for()


def test_paper_is_white_from_the_dark_theme_and_has_no_buttons(stranger, address):
    page = stranger(address + "chapters/02_roofline.html", SIZES[0], color_scheme="dark")
    alive(page)
    ground = "view => getComputedStyle(view).getPropertyValue('--sol-ground').trim()"
    view = page.locator(".sol-view").first
    still = page.locator(".sol-result svg").first
    assert view.evaluate(ground) == "#111"
    assert "invert" in still.evaluate("svg => getComputedStyle(svg).filter"), "no white box"
    page.emulate_media(media="print", color_scheme="dark")
    assert view.evaluate(ground) == "#fff"
    assert still.evaluate("svg => getComputedStyle(svg).filter") == "none"
    assert page.locator(".content button:visible").all_inner_texts() == []


def named(page, found):
    """The first cell that this finds, by its id: what it holds changes when it is edited."""
    return page.locator(f"#{page.locator(found).first.get_attribute('id')}")


def test_cells_that_cannot_run_are_marked_and_import_cells_run(stranger, address):
    page = stranger(address + "chapters/02_roofline_proof.html", SIZES[0])
    alive(page)
    marked = page.locator(".sol-cell:has(.sol-lack)")
    assert 5 < marked.count() < page.locator(".sol-cell").count() * 0.7
    assert not page.locator(".sol-cell.sol-lab").get_by_role("button", name="Edit and run").count()
    page.locator("summary", has_text="Setup").first.click()
    first = named(page, ".sol-cell:has(.sol-code)")
    assert "import numpy" in first.locator(".sol-code").inner_text()
    first.get_by_role("button", name="Edit and run").click()
    first.get_by_role("button", name="Run", exact=True).click()
    first.get_by_text("Not on this page: np").wait_for()
    assert not first.locator(".sol-problem").count()


def test_stop_keeps_explorers_and_words_and_says_what_is_lost(stranger, address):
    page = stranger(address + "chapters/02_roofline.html", SIZES[0])
    alive(page)
    explorer = page.locator('.sol-explore[data-call*="roofline.explore"]').first
    slider = explorer.locator("input[type=range]").first
    said = explorer.locator(".sol-verdict").inner_text()
    slider.focus()
    for _ in range(9):
        slider.press("ArrowRight")
    changed = "([cell, old]) => cell.querySelector('.sol-verdict').textContent !== old"
    page.wait_for_function(changed, arg=[explorer.element_handle(), said])
    moved = slider.input_value()
    box = page.locator(".sol-ask .sol-form input[type=text]").first
    box.fill("about 12")
    cell = named(page, ".sol-cell:not(:has(.sol-lack, .sol-folded)):has(.sol-code)")
    cell.get_by_role("button", name="Edit and run").click()
    editor = written(cell)
    editor.fill("while True: pass")
    editor.press("Control+Enter")
    cell.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped. Explorers stand where you had left them").wait_for()
    page.wait_for_function(
        "([cell, at]) => cell.querySelector('input[type=range]')?.value === at",
        arg=[explorer.element_handle(), moved],
    )
    assert page.locator(".sol-ask .sol-form input[type=text]").first.input_value() == "about 12"


SMALLEST_LETTER = """() => Math.min(...[...document.querySelectorAll('.sol-result svg text')].map(text =>
    parseFloat(getComputedStyle(text).fontSize) * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b)))"""  # noqa: E501


def test_a_figure_opens_large_on_a_phone(stranger, address):
    page = stranger(address + "chapters/02_roofline.html", SIZES[1])
    alive(page)
    assert page.evaluate(SMALLEST_LETTER) >= 9, "px"
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES[1][0]
    figure = page.locator(".sol-result svg:has(+ .sol-enlarge)").first
    figure.scroll_into_view_if_needed()
    figure.click()
    large = page.locator("dialog.sol-large svg")
    large.wait_for()
    assert large.bounding_box()["width"] > 1.5 * figure.bounding_box()["width"]
    page.get_by_role("button", name="Close").click()
    assert not page.locator("dialog").count()


def test_progress_is_kept_for_good_and_its_table_is_the_reader_s(stranger, address):
    page = stranger(address + "chapters/00_start_here.html", SIZES[0])
    page.evaluate("navigator.storage.persist = async () => (window.asked = true)")
    alive(page)
    table = page.locator(".sol-tally")
    tried = """cell => [...cell.querySelectorAll('tbody tr')]
        .reduce((sum, row) => sum + Number(row.cells[2].textContent), 0)"""
    assert table.evaluate(tried) == 0
    ask = page.locator(".sol-ask").first
    if ask.locator("input[type=radio]").count():
        ask.locator("input[type=radio]").first.check()
    else:
        ask.locator("input[type=text]").first.fill("12345")
    ask.get_by_role("button", name="Check").click()
    page.wait_for_function(f"({tried})(document.querySelector('.sol-tally')) > 0")
    assert page.evaluate("window.asked")


def test_where_motion_is_unwanted_the_page_jumps(stranger, address):
    page = stranger(address + "index.html", SIZES[0], reduced_motion="reduce")
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


@pytest.mark.parametrize(
    "name", ["index.html", "search.html", "404.html", "chapters/02_roofline.html"]
)
@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_axe_finds_nothing_at_all_in_the_whole_page(stranger, address, name, size):
    """The theme's part of the page too; contrast is asked for elsewhere."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = stranger(address + name, size)
    alive(page)
    options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": False}}}
    found = axe.Axe().run(page, options=options).response["violations"]
    assert not found, [(v["id"], v["nodes"][0]["html"][:200]) for v in found]
