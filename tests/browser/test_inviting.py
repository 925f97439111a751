"""What an explorer invites to in a real browser: pull, see, read, take, guess."""

import pytest

from lightspeed.catalog import accelerator
from lightspeed_course.explorers import roofline
from lightspeed_course.web.live import explorers

pytestmark = pytest.mark.slow


@pytest.fixture
def page(opened):
    """The roofline of chapter 2 with a host that answers as a kernel does."""
    page = opened(roofline.explore(), width=1280, answers=True)
    page.get_by_role("button", name="without a guess").click()
    return page


DOT = ".sol-drag circle"


def middle(page, selector=DOT):
    box = page.locator(selector).first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def batch(page):
    return page.get_by_label("B", exact=True)


def test_the_dot_is_pulled_to_the_pointer_by_its_control(page):
    x, y = middle(page)
    start = int(batch(page).input_value())
    for far in (60, -150):
        page.mouse.move(*middle(page))
        page.mouse.down()
        page.mouse.move(x + far, y, steps=4)
        page.wait_for_function(
            "(x) => { const box = document.querySelector('.sol-drag circle')"
            ".getBoundingClientRect(); return Math.abs(box.x + box.width / 2 - x) < 14; }",
            arg=x + far,
        )
        page.mouse.up()
        assert (int(batch(page).input_value()) > start) == (far > 0)
    assert page.failures == []


def test_the_state_before_a_move_stays_as_a_ghost(page):
    x, _ = middle(page)
    assert page.locator(".sol-ghost").count() == 0
    batch(page).focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.sol-ghost circle')")
    assert middle(page, ".sol-ghost circle")[0] == pytest.approx(x, abs=1)
    page.wait_for_function(
        "(x) => document.querySelector('.sol-drag circle').getBoundingClientRect().x > x", arg=x + 5
    )


def test_values_are_read_under_the_pointer(page):
    page.mouse.move(*middle(page))
    page.wait_for_function("document.querySelector('.sol-hover')?.textContent.includes('FLOP')")
    shown = roofline.explore().first
    intensity = dict(shown.facts)["intensity"]
    assert page.locator(".sol-hover").text_content().startswith(f"{intensity}, ")
    x, y = middle(page)
    page.mouse.move(x + 80, y + 60)
    page.wait_for_function("document.querySelectorAll('.sol-hover line').length === 2")
    page.mouse.move(2, 2)
    page.wait_for_function("!document.querySelector('.sol-hover')")


def test_an_example_sets_its_controls(page):
    page.get_by_role("button", name="decode for one user").click()
    page.wait_for_function("document.querySelector('output').textContent === '1 token'")
    page.get_by_text("Memory-bound").first.wait_for()
    page.get_by_role("button", name="prefill").click()
    page.get_by_text("Compute-bound").first.wait_for()


def test_a_guess_is_made_before_the_move_is_seen(page):
    before = middle(page)
    verdict = page.locator(".sol-verdict")
    ask = page.get_by_role("button", name="guess first")
    ask.click()
    assert "waits for your click" in verdict.inner_text()
    page.get_by_role("button", name="prefill").click()
    page.wait_for_timeout(300)
    assert middle(page) == before and "bound" not in verdict.inner_text()
    x, y = before
    page.mouse.click(x + 120, y - 20)
    page.get_by_text("Compute-bound").first.wait_for()
    assert page.locator(".sol-guess text").text_content() == "your guess"
    assert middle(page)[0] > x + 50
    assert page.locator(".sol-ghost circle").count() == 1
    batch(page).press("ArrowLeft")  # the next move needs a new guess
    page.wait_for_function("!document.querySelector('.sol-guess')")


def row(page, name):
    """The kept and the present text of a row of the comparison."""
    return (
        page.locator(".sol-compared tr", has=page.get_by_text(name, exact=True))
        .locator("td")
        .all_inner_texts()
    )


def test_a_state_that_is_kept_stands_beside_the_next_ones(page):
    hold = page.get_by_role("button", name="keep this state")
    facts = dict(roofline.explore().first.facts)
    hold.focus()
    page.keyboard.press("Enter")
    assert hold.get_attribute("aria-pressed") == "true"
    assert page.locator(".sol-facts").is_hidden()
    assert row(page, "intensity") == [facts["intensity"]] * 2
    x, y = middle(page)
    for state in ({"batch": 1, "weights": "int4"}, {"batch": 8192, "weights": "bf16"}):
        name = "decode, int4 weights" if state["batch"] == 1 else "prefill"
        page.get_by_role("button", name=name, exact=True).click()
        after = dict(roofline.explore().at(**state).facts)
        page.wait_for_function(
            "text => [...document.querySelectorAll('.sol-compared td')]"
            ".some(d => d.textContent === text)",
            arg=after["lower bound"],
        )
        assert row(page, "lower bound") == [facts["lower bound"], after["lower bound"]]
        changed = ["128 tokens", "1 token" if state["batch"] == 1 else "8,192 tokens"]
        assert row(page, "B") == changed
        assert page.locator(".sol-compared").get_by_text("weights").count() == (state["batch"] == 1)
        page.wait_for_timeout(950)  # the next move begins after a pause, and has a ghost of its own
    kept = page.locator("svg .sol-kept circle")
    assert middle(page, "svg .sol-kept circle") == pytest.approx((x, y), abs=1)
    assert kept.count() == 1 and page.locator(".sol-ghost circle").count() == 1
    assert page.locator("svg .sol-kept text").text_content() == "kept"
    assert page.locator(".sol-view").bounding_box()["height"] <= 780
    hold.press(" ")
    assert hold.get_attribute("aria-pressed") == "false"
    assert page.locator(".sol-facts").is_visible() and page.locator(".sol-compared").is_hidden()
    assert page.locator("svg .sol-kept").count() == 0 and page.failures == []


def test_the_law_moves_with_its_numbers(page):
    law = page.locator(".sol-formula span")
    assert law.all_inner_texts() == roofline.explore().first.formula.lines()
    page.get_by_role("button", name="decode for one user").click()
    after = roofline.explore().at(**roofline.STORIES["decode for one user"]).formula.lines()
    page.wait_for_function(
        "text => document.querySelector('.sol-formula').lastChild.textContent === text",
        arg=after[1],
    )
    page.get_by_label("hardware").select_option(label=accelerator("a100_80gb").name)
    page.get_by_label("arithmetic").select_option(label="fp8")  # no such units: no roof, no law
    page.wait_for_function("document.querySelector('.sol-formula').hidden")


def test_a_measured_dot_says_what_was_measured_and_is_not_in_the_way(page):
    said = page.locator(".sol-measured").inner_text()
    assert said == roofline.explore().first.measured and "Source" in said
    dots = page.locator("svg .sol-dot circle").all()
    boxes = [d.bounding_box() for d in dots if d.get_attribute("stroke") == "none"]
    assert len(boxes) > 50
    far = max(boxes, key=lambda box: box["x"])  # right of the point, alone under the roof
    page.mouse.move(far["x"] + far["width"] / 2, far["y"] + far["height"] / 2)
    page.wait_for_function("document.querySelector('.sol-hover')?.textContent.includes('measured')")
    batch(page).press("End")  # among the dots, and still to be pulled
    page.wait_for_function("document.querySelector('output').textContent.startsWith('65,')")
    page.mouse.move(*middle(page))
    page.mouse.down()
    x, _ = middle(page)
    page.mouse.move(x - 150, middle(page)[1], steps=4)
    page.wait_for_function("!document.querySelector('output').textContent.startsWith('65,')")
    page.mouse.up()
    page.get_by_label("hardware").select_option(label=accelerator("mi300x").name)
    page.get_by_text("No measured rows for this state.").wait_for()
    assert page.locator("svg .sol-dot circle[stroke=none]").count() == 0


# What JupyterLab leaves for an output in a window of 1280 by 780, which is about the site's column,
# and as wide as an explorer gets.
WIDTHS = (848, 1170)


def test_every_explorer_fits_a_small_window(opened):
    """At first, with each example, and in states from all over its controls."""
    high = {}
    for name, demo in explorers().items():
        page = opened(demo, width=WIDTHS[0])
        states = [{}] + [
            {k: demo.controls[k].options[i][1] for k, i in at.items()} for _, at in demo.presets
        ]
        for state in [*states, *demo.grid(each=2, most=4)]:
            demo.set(**state)
            page.evaluate("content => answer(content)", demo.chart.content)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 780})
            page.wait_for_function(
                "w => Math.abs(document.querySelector('.sol-view').offsetWidth - w) < 2", arg=width
            )
            page.wait_for_timeout(60)
            high[name, width] = page.locator(".sol-view").bounding_box()["height"]
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[-1], name
        assert page.failures == []
        page.context.close()
    assert len(high) > 40
    assert not {key: height for key, height in high.items() if height > 780}, high
