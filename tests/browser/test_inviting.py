"""What an explorer invites to in a real browser: pull the dot, see where it was, read values, take
an example, guess before a move.
"""

import pytest

from lightspeed_course.explorers import roofline

pytestmark = pytest.mark.slow


@pytest.fixture
def page(opened):
    """The roofline of chapter 2 with a host that answers as a kernel does."""
    return opened(roofline.explore(), width=1280, answers=True)


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
    shown = roofline.view()
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


def test_it_fits_a_small_window(page):
    page.set_viewport_size({"width": 1280, "height": 780})
    page.wait_for_timeout(200)
    assert page.locator(".sol-view").bounding_box()["height"] <= 780
