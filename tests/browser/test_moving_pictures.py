"""Pictures in a real browser: they play, step, scrub and go by keyboard; where motion is unwanted
they stand still; nothing of them is out of reach for those who cannot see.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe

from lightspeed_course.explorers import allreduce

pytestmark = pytest.mark.slow

PLACES = "[...document.querySelectorAll('.sol-rect rect')].map((r) => r.getAttribute('x')).join()"
# Pictures of the next second that differ from each other.
DRAWN = f"""() => new Promise((done) => {{
    const seen = new Set(), end = performance.now() + 1000;
    const look = () => {{
        seen.add({PLACES});
        performance.now() < end ? requestAnimationFrame(look) : done(seen.size);
    }};
    document.querySelector("[title='one step on']").click();
    look();
}})"""


@pytest.fixture
def ring(opened):
    """The ring of chapter 7 in a page, with a host that answers as a kernel does."""
    return lambda **asked: opened(allreduce.explore_all_reduce(), answers=True, **asked)


def says(page, words):
    page.get_by_text(words).first.wait_for(timeout=15_000)


def test_it_plays_to_its_end_and_again_from_its_start(ring):
    page = ring()
    page.get_by_label("play", exact=True).click()
    assert page.get_by_label("pause", exact=True).is_visible()
    says(page, "Done in 6 rounds")
    page.get_by_label("play", exact=True).click()
    page.wait_for_function("document.querySelector('.sol-play input').value < 3")
    page.get_by_label("pause", exact=True).click()
    assert page.get_by_label("play", exact=True).is_visible()


def test_it_steps_and_goes_by_keyboard(ring):
    page = ring()
    page.get_by_label("one step on").click()
    page.get_by_label("one step on").click()
    says(page, "its neighbour, which adds its own")
    page.get_by_label("one step back").click()
    page.wait_for_function("document.querySelector('.sol-play output').textContent === '1'")
    page.get_by_label("round", exact=True).focus()
    page.keyboard.press("End")
    says(page, "Done in 6 rounds")
    page.keyboard.press("Home")
    says(page, "Press play, or step")
    page.keyboard.press("Space")
    says(page, "Half of the rounds")
    page.keyboard.press("Space")
    assert page.get_by_label("play", exact=True).is_visible()


def test_a_shorter_picture_moves_its_end(ring):
    page = ring()
    slider = page.get_by_label("round", exact=True)
    slider.focus()
    page.keyboard.press("End")
    says(page, "Done in 6 rounds")
    page.get_by_label("algorithm", exact=True).select_option(label="tree")
    says(page, "Done in 4 rounds")
    assert (slider.get_attribute("max"), slider.input_value()) == ("4", "4")


@pytest.mark.parametrize(("motion", "least", "most"), [("no-preference", 4, 99), ("reduce", 2, 2)])
def test_what_moves_is_seen_on_its_way_unless_motion_is_unwanted(ring, motion, least, most):
    page = ring(reduced_motion=motion)
    assert page.get_by_label("play", exact=True).is_visible() == (motion != "reduce")
    assert least <= page.evaluate(DRAWN) <= most


@pytest.mark.parametrize(("scheme", "ground"), [("true", "#fff"), ("false", "#111")])
def test_axe_finds_nothing(ring, scheme, ground):
    page = ring()
    page.evaluate("(light) => (document.body.dataset.jpThemeLight = light)", scheme)
    page.evaluate("(color) => (document.body.style.background = color)", ground)
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]})
    faults = [(v["id"], v["nodes"][0]["html"][:120]) for v in found.response["violations"]]
    assert faults == [] and found.response["passes"]
