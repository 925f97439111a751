"""The bundle view.js alone in a page: it draws what the spec says, moves controls by keyboard,
and never has more than two changes on the way.
"""

import sys
from pathlib import Path

import pytest

import lightspeed_show as show
from lightspeed_show.layout import lay_out

sys.path.insert(0, str(Path(__file__).parents[1] / "explorers"))
from test_show import CHARTS, explorer

pytestmark = pytest.mark.slow


def drawn(charts):
    """An explorer of given charts, with a slider that changes nothing."""
    controls = [show.LogSlider("batch", "B", 1, 4096, 128, unit="token", whole=True)]
    return show.explorer(
        lambda batch: show.View(charts, "A verdict.", {"T_math": "1 ns"}),
        controls,
        caption="A caption.",
        alt="An alt text.",
    )


def texts(page):
    return page.locator("svg text").all_text_contents()


@pytest.mark.parametrize("name", CHARTS)
def test_all_of_the_spec_is_drawn(opened, name):
    chart = CHARTS[name]()
    spec = lay_out(chart)
    page = opened(drawn(chart))
    shown = texts(page)
    labels = [mark["text"] for mark in spec["marks"] if mark["type"] == "text"] + [
        entry["text"] for entry in spec["key"]
    ]
    ticks = [
        text
        for axis in (spec["x"], spec["y"], spec["x_top"] or {"ticks": []})
        for _, text in axis["ticks"]
    ]
    for text in [
        *labels,
        *ticks,
        *filter(None, (spec["title"], spec["x"]["label"], spec["y"]["label"])),
    ]:
        assert text in shown
    dots = sum(len(mark["x"]) for mark in spec["marks"] if mark["type"] == "dot") + len(spec["key"])
    assert page.locator("svg .sol-dot > *").count() == dots
    rects = sum(len(mark["x1"]) for mark in spec["marks"] if mark["type"] == "rect")
    assert page.locator("svg .sol-rect rect").count() == rects


@pytest.mark.parametrize("width", [355, 500, 700, 1000, 1400])
def test_no_text_is_clipped_or_overlaps(opened, width):
    page = opened(drawn([make() for make in CHARTS.values()]), width)
    page.evaluate("document.fonts.ready")
    clashes = page.evaluate("""() => [...document.querySelectorAll("svg")].flatMap((svg) => {
        const frame = svg.getBoundingClientRect(), found = [];
        const boxes = [...svg.querySelectorAll("text")].filter((t) => !/rotate/.test(t.getAttribute("transform") || "")).map((t) => [t.textContent, t.getBoundingClientRect()]);
        boxes.forEach(([text, a], i) => {
            if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1) found.push(`clipped: ${text}`);
            for (const [other, b] of boxes.slice(0, i))
                if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3) found.push(`${text} / ${other}`);
        });
        return found;
    })""")
    assert clashes == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_words_are_there_for_those_who_cannot_see(opened):
    page = opened(explorer())
    assert (
        page.locator(".sol-charts").get_attribute("aria-label") == "A point moves. H100: 128 tokens"
    )
    assert page.locator(".sol-charts").get_attribute("role") == "img"
    assert page.locator("[aria-live=polite]").inner_text() == "H100: 128 tokens"
    assert page.get_by_label("B", exact=True).get_attribute("aria-valuetext") == "128 tokens"
    assert page.locator("dt").all_inner_texts() == ["T_math"]
    assert page.locator("dd").all_inner_texts() == ["128 ns"]


def test_keyboard_reaches_every_control(opened):
    page = opened(explorer())
    reached = []
    for _ in range(3):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.labels[0].textContent"))
    assert reached == ["B", "accelerator", "break it"]
    page.keyboard.press("Space")
    page.get_by_label("accelerator").select_option("A100")
    at = page.evaluate("sent.at(-1).at")
    assert at["wrong"] == 1 and at["chip"] == 1


def test_two_changes_on_the_way_and_the_last_one_wins(opened):
    demo = explorer()
    page = opened(demo)
    start = demo.controls["batch"].index(128)
    page.get_by_label("B", exact=True).focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("sent.map((m) => [m.turn, m.at.batch])") == [
        [1, start + 1],
        [2, start + 2],
    ]
    demo.receive(page.evaluate("sent[0]"))
    page.evaluate("(content) => answer(content)", demo.chart.content)
    assert page.evaluate("sent.map((m) => [m.turn, m.at.batch])")[2:] == [[3, start + 5]]
    # an answer on its way does not pull the slider back
    assert page.get_by_label("B", exact=True).input_value() == str(start + 5)
    for message in page.evaluate("sent.slice(1)"):
        demo.receive(message)
        page.evaluate("(content) => answer(content)", demo.chart.content)
    shown = demo.controls["batch"].options[start + 5][0]
    assert page.locator(".sol-verdict").inner_text() == f"H100: {shown}"
    assert page.locator("output").inner_text() == shown
    demo.set(batch=1)  # from Python: the slider follows
    page.evaluate("(content) => answer(content)", demo.chart.content)
    assert page.get_by_label("B", exact=True).input_value() == "0"


def test_two_views_of_one_widget_agree(opened):
    """JupyterLab's "Create New View for Output": the second one asks, the first one follows."""
    demo = explorer()
    page = opened(demo)
    demo.receive({"turn": 9, "at": {"batch": 0, "chip": 1, "wrong": 0}})
    page.evaluate("(content) => answer(content)", demo.chart.content)
    assert page.locator("output").inner_text() == "1 token"
    assert page.locator("select").input_value() == "1"
    page.get_by_label("B", exact=True).press("ArrowRight")
    assert page.evaluate("sent.map((m) => m.turn)") == [10]


def test_a_redraw_leaves_no_moment_without_a_picture(opened):
    demo = explorer()
    page = opened(demo)
    demo.set(batch=1)
    before, during, after = page.evaluate(
        """(content) => {
            const charts = document.querySelector(".sol-charts"), old = charts.firstChild, height = charts.offsetHeight;
            answer(content);
            return [height, charts.firstChild !== old && charts.children.length, charts.offsetHeight];
        }""",
        demo.chart.content,
    )
    assert before == after == demo.shown.charts[0].height and during == 1


def test_an_error_is_shown_and_goes_away(opened):
    demo = explorer()
    page = opened(demo)
    for wrong, words in ((True, "ZeroDivisionError: the law broke"), (False, "H100: 128 tokens")):
        demo.set(wrong=wrong)
        page.evaluate("(content) => answer(content)", demo.chart.content)
        assert page.locator(".sol-verdict").inner_text() == words
        assert page.locator(".sol-failed").count() == wrong


def test_a_kernel_that_does_not_answer_is_reported(opened):
    demo = explorer()
    page = opened(demo)
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # else the time that the test itself takes is counted, too
    page.get_by_label("B", exact=True).press("ArrowRight")
    page.clock.run_for(3900)
    assert page.locator(".sol-verdict").inner_text() == "H100: 128 tokens"
    page.clock.run_for(200)
    assert "run this cell again" in page.locator(".sol-verdict").inner_text()
    demo.receive(page.evaluate("sent[0]"))
    page.evaluate("(content) => answer(content)", demo.chart.content)
    page.clock.run_for(5000)
    assert page.locator(".sol-verdict").inner_text() == demo.shown.verdict
    assert page.locator(".sol-failed").count() == 0


def test_lost_messages_do_not_end_it(opened):
    """Two changes never come back: the complaint outlives a new width, the third is answered."""
    demo = explorer()
    page = opened(demo)
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    slider, verdict = page.get_by_label("B", exact=True), page.locator(".sol-verdict")
    for _ in range(2):
        slider.press("ArrowRight")
    page.clock.run_for(4100)
    assert "No answer" in verdict.inner_text()
    before = page.locator("svg").get_attribute("width")
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function(
        "(before) => document.querySelector('svg').getAttribute('width') !== before", arg=before
    )
    assert "No answer" in verdict.inner_text() and page.locator(".sol-failed").count() == 1
    slider.press("ArrowRight")
    assert page.evaluate("sent.length") == 3
    demo.receive(page.evaluate("sent[2]"))
    page.evaluate("(content) => answer(content)", demo.chart.content)
    assert verdict.inner_text() == demo.shown.verdict and page.locator(".sol-failed").count() == 0
    page.clock.run_for(5000)
    assert verdict.inner_text() == demo.shown.verdict


def test_a_long_verdict_keeps_its_room(opened):
    """What is below the words must not jump while the reader drags; another width starts afresh."""
    long = (
        "so many words that they take more lines than were kept for them, and then more of them, "
        * 5
    )
    controls = [show.Toggle("wordy", "wordy")]

    def view(wordy):
        said = (long, long) if wordy else ("Short.", "short")
        return show.View(CHARTS["roofline"](), said[0], {"name": said[1]})

    demo = show.explorer(view, controls, caption="A caption.", alt="An alt text.")
    page = opened(demo)
    ends = (
        "() => ['.sol-charts', '.sol-caption'].map((name) =>"
        " document.querySelector(name).getBoundingClientRect().top)"
    )
    places = []
    for wordy in (False, True, False, True):
        demo.set(wordy=wordy)
        page.evaluate("(content) => answer(content)", demo.chart.content)
        places.append(page.evaluate(ends))
    assert places[0] < places[1] == places[2] == places[3]
    demo.set(wordy=False)
    page.evaluate("(content) => answer(content)", demo.chart.content)
    page.set_viewport_size({"width": 1010, "height": 900})
    page.wait_for_function(
        "(top) => document.querySelector('.sol-charts').getBoundingClientRect().top === top",
        arg=places[0][0],
    )


def test_what_changed_while_hidden_is_drawn_when_shown(opened):
    demo = explorer()
    page = opened(demo)
    hide = (
        "(hidden) => new Promise((done) => { document.querySelector('.sol-view').style.display ="
        " hidden ? 'none' : ''; requestAnimationFrame(() => setTimeout(done)); })"
    )
    page.evaluate(hide, True)
    demo.set(batch=1)
    page.evaluate("(content) => answer(content)", demo.chart.content)
    page.evaluate(hide, False)
    assert page.locator(".sol-verdict").inner_text() == demo.shown.verdict
    assert page.locator(".sol-verdict").bounding_box()["height"] >= 58


@pytest.mark.parametrize(("width", "drawn_at"), [(600, 586), (520, 506), (355, 448)])
def test_a_narrow_page_shrinks_a_chart_and_then_scrolls_it(opened, width, drawn_at):
    """The labels were placed for 560 pixels: with less room the whole drawing gets smaller, to
    0.8 of that, and the page never scrolls.
    """
    demo = drawn(CHARTS["roofline"]())
    page = opened(demo, width)
    svg = page.locator("svg").bounding_box()
    assert svg["width"] == pytest.approx(drawn_at, abs=1)
    assert svg["height"] == pytest.approx(380 * min(drawn_at / 560, 1), abs=1)
    assert page.locator(".sol-hint").is_visible() == (drawn_at > width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if drawn_at > width:
        assert (
            page.evaluate(
                "(() => { const box = document.querySelector('.sol-charts'); box.scrollLeft = 999;"
                " return box.scrollLeft; })()"
            )
            > 90
        )
        page.evaluate("(content) => answer(content)", demo.chart.content)
        # a redraw leaves the scroll where it was
        assert page.evaluate("document.querySelector('.sol-charts').scrollLeft") > 90


def test_dark_theme_keeps_texts_readable(opened):
    page = opened(explorer())
    contrast = """() => {
        const light = (color) => { const [r, g, b] = color.match(/[\\d.]+/g).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const ground = document.createElement("i"); ground.style.color = "var(--sol-ground)"; document.querySelector(".sol-view").append(ground);
        const base = light(getComputedStyle(ground).color);
        return [...document.querySelectorAll("svg text")].map((t) => { const ink = light(getComputedStyle(t).fill); return (Math.max(ink, base) + 0.05) / (Math.min(ink, base) + 0.05); });
    }"""
    for light in ("true", "false"):
        page.evaluate("(light) => (document.body.dataset.jpThemeLight = light)", light)
        assert min(page.evaluate(contrast)) >= 4.5


def test_a_kernel_that_jupyter_knows_to_be_gone_is_reported_at_once(opened):
    """Jupyter's own way to send then throws."""
    page = opened(drawn(next(iter(CHARTS.values()))()))
    page.evaluate("() => { sent.push = () => { throw new Error('Cannot send'); }; }")
    page.locator("input[type=range]").first.press("ArrowRight")
    page.get_by_text("If it was restarted, run this cell again").wait_for(timeout=2000)
    assert page.failures == []
