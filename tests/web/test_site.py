"""The built site in a real headless Chromium, under a path of its host, with nothing else to ask."""

import gzip
import json
import os
import re
import shutil
import threading

import pytest
from site_reader import ALL_LIVE, PATIENCE, serious, written

from lightspeed.catalog import accelerator
from lightspeed_authoring.site.serve import server
from lightspeed_course.practice.questions import question

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("reader")]


@pytest.fixture(scope="module")
def roofline(session_reader, address):
    page = session_reader.new_page()
    page.goto(f"{address}chapters/02_roofline.html#explore?hardware=b200&weights=int8")
    page.wait_for_function(ALL_LIVE)
    return page


def test_text_and_pictures_stand_before_anything_runs(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}chapters/02_roofline.html")
    assert page.locator(".sol-explore svg title").count() >= 1
    assert page.locator(".katex").count() > 5, "formulas were set when the site was built"
    assert "sol-math" not in page.content() and "jsdelivr" not in page.content()
    context.close()


def test_cards_print_on_two_pages_and_a_lesson_leads_to_its_exercises(chromium, address):
    page = chromium.new_page()
    page.goto(f"{address}formulas.html")
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) == 2
    page.goto(f"{address}chapters/02_roofline.html")
    assert page.locator(".sol-beside .sol-code").inner_text().startswith("import torch")
    page.get_by_role("link", name="The exercises").click()
    assert page.url.endswith("exercises/02_roofline.html")
    page.close()


@pytest.mark.parametrize("fault", ["damaged", "of another build", "none"])
def test_python_starts_from_an_image_or_from_nothing(chromium, site, tmp_path, fault):
    """An image of no use does not keep a page from living."""
    copy = tmp_path / "site"
    shutil.copytree(site, copy, copy_function=os.link)
    image = copy / "_static" / "live" / "image.bin"
    if fault == "damaged":
        pressed = bytearray(image.read_bytes())
        pressed[len(pressed) // 2] ^= 0xFF
    elif fault == "of another build":
        memory = bytearray(gzip.decompress(image.read_bytes()))
        memory[20] ^= 0xFF  # of the build of Pyodide
        pressed = gzip.compress(memory, 1)
    if fault != "none":
        image.unlink()  # it shares its bytes with the site's own
        image.write_bytes(pressed)
    running = server(copy)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    context = chromium.new_context(service_workers="block")
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"http://127.0.0.1:{running.server_port}/chapters/02_roofline.html")
        page.wait_for_function(ALL_LIVE)
        assert not page.locator(".sol-fault").count()
        marks = page.evaluate("performance.getEntriesByType('mark').map(({name}) => name)")
        assert ("sol-ready-warm" in marks) == (fault == "none"), marks
    finally:
        context.close()
        running.shutdown()


def test_a_link_opens_a_state_and_the_keyboard_moves_it(roofline):
    explorer = roofline.locator('[data-call*="roofline.explore"]')
    assert (
        explorer.locator("select").first.locator("option:checked").inner_text()
        == accelerator("b200").name
    )
    slider = explorer.locator("input[type=range]").first
    before = explorer.locator(".sol-verdict").inner_text()
    slider.focus()
    for _ in range(12):
        slider.press("ArrowRight")
    roofline.wait_for_function(
        "old => document.querySelector('[data-call*=\"roofline.explore\"] .sol-verdict').textContent !== old",
        arg=before,
    )
    explorer.get_by_role("button", name="Copy link").click()
    roofline.wait_for_function("location.hash.includes('batch=')")
    assert "hardware=b200&weights=int8" in roofline.url


def test_each_kind_of_answer_is_judged_and_kept(roofline):
    cell = roofline.locator('.sol-ask[data-call*="weight_only_batch"]')
    cell.locator("input").fill("3 s")
    cell.locator("input").press("Enter")
    cell.locator(".sol-reply").get_by_text("the question asks for").wait_for()
    cell.locator("input").fill("0.5")
    cell.get_by_role("button", name="Check").click()
    cell.locator(".sol-reply").get_by_text("Not yet.", exact=True).wait_for()
    more = cell.locator(".sol-form-buttons button").nth(1)  # hints, one a press, then the solution
    for _ in range(9):
        label = more.inner_text()
        more.click()
        if label == "Show a worked solution":
            break
        changed = "([button, label]) => button.textContent !== label"
        roofline.wait_for_function(changed, arg=[more.element_handle(), label])
    cell.locator(".sol-reply").get_by_text("A worked solution", exact=True).wait_for()
    cell.get_by_role("button", name="Try a smaller question").click()
    inner = cell.locator(".sol-practice .sol-practice")
    inner.get_by_text("What is the ridge point").wait_for()
    _, _, *seed = json.loads(cell.get_attribute("data-call"))  # of the page's own numbers
    inner.locator("input").fill(f"{question('roofline.ridge').variant(*seed).right[0]:.6g}")
    inner.locator("input").press("Enter")
    inner.locator(".sol-reply").get_by_text("Right.", exact=True).wait_for()
    guess = roofline.locator(".sol-predict").first
    guess.locator("input").fill("2")
    guess.locator("input").press("Enter")
    guess.locator(".sol-reply strong").wait_for()
    roofline.locator(".sol-reveal .sol-text").first.get_by_text("Your first guess was").wait_for()


def test_a_function_is_written_run_and_stopped(visit):
    page = visit("exercises/02_roofline.html")
    cell = page.locator(".sol-edit").first
    cell.get_by_role("button", name="Run").click()
    cell.get_by_text("Not answered.").wait_for()
    editor = written(cell)
    editor.fill("while True:\n    pass")
    editor.press("Control+Enter")
    cell.get_by_role("button", name="Stop").click()
    page.wait_for_function("!document.querySelector('.sol-edit').classList.contains('sol-is-live')")
    page.wait_for_function(ALL_LIVE)
    assert cell.locator("textarea").input_value().startswith("while"), "what was written stays"
    right = "def roof(intensity, peak, bandwidth):\n    return min(peak, intensity * bandwidth)"
    written(cell).fill(right + "\n\ncheck('roofline.attainable', roof)")
    cell.get_by_role("button", name="Run").click()
    cell.get_by_text("Right.", exact=True).wait_for()
    figure = """from lightspeed_course import Axis, Chart, Line, figure
chart = Chart(Axis("x"), Axis("y"), [Line([1, 2], [3, 4])])
figure(chart, caption="A line.", alt="It rises.")"""
    written(cell).fill(figure)
    cell.get_by_role("button", name="Run").click()
    cell.locator(".sol-reply svg").first.wait_for()


@pytest.mark.holds("docs/web.md", "and reads offline once it was visited")
def test_progress_and_reading_survive_a_reload_without_a_network(reader, roofline):
    first = roofline.locator(".sol-predict").first
    first.locator("input").fill("2")
    first.locator("input").press("Enter")
    first.locator(".sol-reply strong").get_by_text("Recorded:").or_(
        first.locator(".sol-reply strong").get_by_text("Your first guess stays:")
    ).wait_for()
    roofline.evaluate("navigator.serviceWorker.ready")
    roofline.reload()  # from now on the service worker answers
    roofline.wait_for_function(ALL_LIVE)
    roofline.wait_for_function(
        "async () => (await Promise.all((await caches.keys()).map(async name => "
        "(await (await caches.open(name)).keys()).map(({url}) => url)))).flat()"
        ".some(url => url.includes('python_stdlib.zip'))"
    )
    reader.set_offline(True)
    try:
        roofline.reload()
        roofline.wait_for_function(ALL_LIVE)
        cell = roofline.locator(".sol-cell:has(.sol-result):not(:has(details))").first
        cell.get_by_role("button", name="Edit and run").click()
        written(cell).fill("import colorsys\ncolorsys.rgb_to_hsv(1, 0, 0)")
        cell.get_by_role("button", name="Run", exact=True).click()
        cell.locator(".sol-reply").get_by_text("(0.0, 1.0, 1)").wait_for()
        guess = roofline.locator(".sol-predict").first
        guess.locator("input").fill("5")
        guess.locator("input").press("Enter")
        guess.locator(".sol-reply").get_by_text("Your first guess stays:").wait_for()
    finally:
        reader.set_offline(False)


def test_paper_has_nothing_to_press(roofline):
    pressed = ":is(.sol-link, .sol-form):visible"
    assert roofline.locator(pressed).count()
    roofline.emulate_media(media="print")
    assert not roofline.locator(pressed).count()
    roofline.emulate_media(media="screen")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_a_phone(roofline, scheme):
    roofline.emulate_media(color_scheme=scheme)
    light = "light => document.body.dataset.jpThemeLight === String(light)"
    roofline.wait_for_function(light, arg=scheme == "light")
    roofline.set_viewport_size({"width": 390, "height": 844})
    assert roofline.evaluate("document.documentElement.scrollWidth") == 390
    assert not (found := serious(roofline)), found
