"""Pictures in a real browser: they play, step, scrub and go by keyboard; where motion is unwanted
they stand still; nothing of them is out of reach for those who cannot see.
"""

from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe

from lightspeed_course.explorers import allreduce
from lightspeed_show import Axis, Bars, Chart, Play, Points, Slider, View, explorer

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
    """The ring of chapter 7, opened at its start, with a host that answers as a kernel does."""

    def from_start(**asked):
        whole = allreduce.explore_all_reduce()
        controls = [replace(c, value=0) if c.kind == "play" else c for c in whole.controls.values()]

        def view(**state):
            return replace(whole.view(**state), opens=0)

        ring = explorer(view, controls, caption=whole.caption, alt=whole.alt)
        return opened(ring, answers=True, **asked)

    return from_start


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


def small(moment):
    row = Bars(["a"], [moment + 1.0], [0.0], "steps", [str(moment)])
    chart = Chart(Axis("steps", domain=(0, 6)), Axis(scale="category", categories=("a",)), [row])
    return View(chart, f"Moment {moment}.", {}, 5, opens=2)


def opening(make=small, **more):
    return explorer(make, [Play("moment", "moment", 4)], caption="Steps.", alt="A bar.", **more)


def test_it_opens_in_its_middle_plays_once_and_stops_there_again(opened):
    page = opened(opening(), answers=True)
    says(page, "Moment 4.")
    says(page, "Moment 2.")
    page.wait_for_function("document.querySelector('[aria-label=play]')")
    assert page.locator(".sol-play input").input_value() == "2" and page.failures == []


def test_it_stands_where_it_opens_if_motion_is_unwanted(opened):
    page = opened(opening(), answers=True, reduced_motion="reduce")
    says(page, "Moment 2.")
    assert page.evaluate(DRAWN) <= 2  # what the one step on shows
    says(page, "Moment 3.")


def guessed(size, more):
    chart = Chart(
        Axis("size", domain=(0, 6)),
        Axis("height", domain=(0, 6)),
        [Points([size], [size + more], drop=True)],
    )
    return View(chart, f"Size {size}.", advice=f"Take {size + 1}.")


def test_an_explorer_asks_first_and_advises_when_asked(opened):
    controls = [Slider("size", "size", 1, 4, 1), Slider("more", "extra", 0, 1, 0)]
    words = "Where will the point be?"
    demo = explorer(guessed, controls, "A point.", "A point.", guess=words, later=["more"])
    page = opened(demo, answers=True)
    says(page, words)
    says(page, "Size 1.")
    assert not page.get_by_text("Take").is_visible()
    assert not page.get_by_label("extra").is_visible()
    page.get_by_text("more", exact=True).click()
    assert page.get_by_label("extra").is_visible()
    assert page.get_by_role("button", name="without a guess").is_visible()
    page.get_by_label("size", exact=True).focus()
    page.keyboard.press("ArrowRight")
    says(page, "The answer waits for your click")
    page.locator(".sol-charts svg").click()
    says(page, "Size 2.")
    assert page.locator(".sol-guess").count() == 1 and not page.get_by_text(words).is_visible()
    assert page.locator(".sol-ghost").get_by_text("before").count() == 1
    page.get_by_role("button", name="what to change first").click()
    says(page, "Take 3.")
    assert page.failures == []
