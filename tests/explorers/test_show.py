"""Charts are checked data, drawn alike by both renderers, the same bytes at every run."""

import ast
import json
import math
import re
import sys
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import numpy as np
import pytest
from processes import finished

import lightspeed_show as show
from lightspeed_show import static
from lightspeed_show.chart import COLORS
from lightspeed_show.label_placement import text_width
from lightspeed_show.layout import NARROWEST, lay_out


def drawing(html):
    """The SVG in an image of HTML."""
    return unquote(re.search(r'src="data:image/svg\+xml,([^"]*)"', html)[1])


SVG = "{http://www.w3.org/2000/svg}"


def roofline(batch=120):
    intensity = np.logspace(-1, 4, 60)
    return show.Chart(
        show.Axis("arithmetic intensity", "FLOP/byte", "log", domain=(0.1, 1e4)),
        show.Axis("attainable", "FLOP/s", "log", domain=(1e11, 5e15)),
        [
            show.Span(x=(None, 300), label="memory-bound", color="blue"),
            show.Line(intensity, np.minimum(1e15, 3.3e12 * intensity), "1 PFLOP/s"),
            show.Line(
                intensity,
                np.minimum(2e15, 3.3e12 * intensity),
                "2 PFLOP/s",
                color="purple",
                dash=True,
            ),
            show.Line([0.1, 300], [3.3e11, 1e15], "3.3 TB/s", label_at="along"),
            show.Points([batch], [3.3e12 * batch], labels=[f"B = {batch}"], drop=True),
            show.Points(
                [1, 2, 300],
                [2e12, 4e12, 8e14],
                labels=["ReLU", "softmax", "matmul"],
                marker="diamond",
            ),
            show.Rule(x=300, label="ridge"),
        ],
        title="A roofline & its <points>",
    )


def ladder():
    names, times = ["register", "DRAM", "cross-Pacific round trip"], [3e-10, 1e-7, 0.15]
    return show.Chart(
        show.Axis("latency", "s", "log"),
        show.Axis(scale="category", categories=names),
        [show.Bars(names, times, labels=[show.si(t, "s") for t in times])],
        x_top=show.human_axis(1e9),
    )


def stack():
    names = ["4 kB", "1 GB"]
    return show.Chart(
        show.Axis("time", "s"),
        show.Axis(scale="category", categories=names),
        [
            show.Bars(
                names, [1e-3, 1e-3], [0, 0], label="latency", labels=["1 ms", "1 ms"], color="amber"
            ),
            show.Bars(
                names, [1.01e-3, 9e-3], [1e-3, 1e-3], label="bandwidth", labels=["10 µs", "8 ms"]
            ),
        ],
    )


def residuals():
    names = ["A100", "H100", "v5e"]
    return show.Chart(
        show.Axis(scale="category", categories=names),
        show.Axis("measured / predicted"),
        [
            show.Points(names, [0.9, 0.8, 1.05], label="fp16", color="blue"),
            show.Rule(y=1, label="the model is right"),
            show.Area([0, 1, 2], [0.8, 0.8, 0.8], [1.2, 1.2, 1.2], "within a fifth"),
            show.Text(1, 1.1, "a note"),
        ],
    )


def curves():
    """Curves close together at the chart's foot, that end just short of its edge."""
    load = np.linspace(0, 0.98, 50)
    return show.Chart(
        show.Axis("load", "%", domain=(0, 1)),
        show.Axis("time in system", "s", domain=(0, 10)),
        [
            show.Line(load, 0.05 / (1 - load), "99th percentile", color="purple"),
            show.Line(load, 0.01 / (1 - load), "median of all requests", color="green", dash=True),
            show.Line(load, 9 * load, "in between", color="amber", label_at="above"),
            show.Span(y=(8, None), label="too slow", color="orange"),
        ],
        height=240,
    )


CHARTS = {
    "curves": curves,
    "roofline": roofline,
    "ladder": ladder,
    "stack": stack,
    "residuals": residuals,
}


@pytest.fixture(params=CHARTS)
def chart(request):
    return CHARTS[request.param]()


# --- Quantities


@pytest.mark.parametrize(
    "value, unit, digits, text",
    [
        (1e-9, "s", 3, "1 ns"),
        (3.5e-6, "s", 3, "3.5 µs"),
        (0.99996e-3, "s", 3, "1 ms"),
        (1234.0, "s", 3, "1,230 s"),
        (0, "s", 3, "0 s"),
        (2.039e12, "byte/s", 3, "2.04 TB/s"),
        (999.96e9, "byte/s", 3, "1 TB/s"),
        (50e9, "byte/s", 3, "50 GB/s"),
        (64, "byte", 3, "64 bytes"),
        (1, "byte", 3, "1 byte"),
        (400e9, "bit/s", 3, "400 Gbit/s"),
        (989.5e12, "FLOP/s", 3, "990 TFLOP/s"),
        (0.5, "FLOP", 3, "0.5 FLOP"),
        (153.02, "FLOP/byte", 3, "153 FLOP/byte"),
        (8755.0, "FLOP/byte", 4, "8,755 FLOP/byte"),
        (640e-12, "J", 3, "640 pJ"),
        (700, "W", 3, "700 W"),
        (5e-12, "J/byte", 3, "5 pJ/byte"),
        (4096, "token", 3, "4,096 tokens"),
        (1, "token", 3, "1 token"),
        (243.4, "token", 3, "243 tokens"),
        (7e10, "parameter", 3, "70 billion parameters"),
        (999_999.9, "token", 3, "1 million tokens"),
        (0.284, "%", 2, "28 %"),
        (1, "%", 3, "100 %"),
        (3.2e6, "dollar", 2, "$3.2 million"),
        (-12.5, "dollar", 3, "-$12.5"),
        (4.148e6, "m", 4, "4,148 km"),
        (2.04e8, "m/s", 3, "204,000 km/s"),
        (2.7, "hour", 3, "2.7 hours"),
        (-3e-9, "s", 3, "-3 ns"),
        (math.inf, "token", 3, "∞ tokens"),
        (1.25, "", 3, "1.25"),
        (0.625, "%", 2, "63 %"),
        (0.125, "%", 2, "13 %"),
        (2.5, "", 1, "3"),
        (-2.5, "", 1, "-3"),
        (0.045, "", 1, "0.05"),
        (2e-7, "", 3, "2 × 10⁻⁷"),
        (np.float64(3.35e12), "byte/s", 3, "3.35 TB/s"),
        (np.int64(512), "token", 3, "512 tokens"),
    ],
)
def test_si(value, unit, digits, text):
    assert show.si(value, unit, digits) == text


@pytest.mark.parametrize(
    "seconds, text",
    [
        (3.5e-6, "3.5 µs"),
        (1, "1 s"),
        (59.99, "1 min"),
        (90, "1.5 min"),
        (3600, "1 h"),
        (1e4, "2.8 h"),
        (86400, "1 day"),
        (3.4e6, "39 days"),
        (365.25 * 86400, "1 year"),
        (1e11, "3,200 years"),
        (4.4e17, "14 billion years"),
    ],
)
def test_human_time(seconds, text):
    assert show.human_time(seconds) == text


def test_si_refuses_nan():
    with pytest.raises(ValueError, match="si: value = nan s"):
        show.si(math.nan, "s")


@pytest.mark.parametrize(
    "axis, expected",
    [
        (
            show.Axis(unit="s", scale="log", domain=(1e-12, 1)),
            ["1 ps", "1 ns", "1 µs", "1 ms", "1 s"],
        ),
        (
            show.Axis(unit="byte/s", scale="log", domain=(9e9, 2e12)),
            ["10 GB/s", "100 GB/s", "1 TB/s"],
        ),
        (
            show.Axis(unit="FLOP/byte", scale="log", domain=(0.1, 1e3)),
            ["0.1", "1", "10", "100", "1,000"],
        ),
        (
            show.Axis(unit="FLOP/byte", scale="log", domain=(100, 1000)),
            ["100", "200", "500", "1,000"],
        ),
        (
            show.Axis(unit="byte/s", domain=(0, 1e12)),
            ["0", "200 GB/s", "400 GB/s", "600 GB/s", "800 GB/s", "1 TB/s"],
        ),
        (show.Axis(unit="%", domain=(0, 1)), ["0", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        (
            show.Axis(
                unit="byte",
                scale="log",
                domain=(1e3, 1e7),
                ticks=[(4096, "4 KiB"), (1e6, "1 MB"), (1e9, "outside")],
            ),
            ["4 KiB", "1 MB"],
        ),
        (show.Axis(unit="byte", domain=(0, 1), ticks=[0.5]), ["0.5 bytes"]),
    ],
)
def test_ticks_read_in_real_units(axis, expected):
    spec = lay_out(show.Chart(axis, show.Axis(domain=(0, 1)), [show.Rule(y=0.5)]))
    assert [text for _, text in spec["x"]["ticks"]] == expected


def test_the_second_axis_reads_human_time():
    ticks = dict((text, value) for value, text in lay_out(ladder())["x_top"]["ticks"])
    assert ticks["1 s"] == 1e-9 and ticks["1 day"] == 86400e-9


# --- The data of a chart


def test_spec_is_finite_json_and_the_same_each_time(chart):
    text = json.dumps(lay_out(chart), allow_nan=False)
    assert text == json.dumps(lay_out(type(chart)(**vars(chart))), allow_nan=False)
    assert len(text) < 20_000  # it travels at each step of a slider


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: show.Line([1, 2], [1, math.nan], "HBM"), r"Line 'HBM': y\[1\] = nan"),
        (lambda: show.Points([math.inf], [1]), r"Points: x\[0\] = inf"),
        (lambda: show.Rule(x=math.nan), "Rule: x = nan"),
        (lambda: show.Span(x=(1, math.inf)), "Span: x = inf"),
        (lambda: show.Text(1, math.nan, "note"), "Text: y = nan"),
        (lambda: show.Bars(["a"], [math.nan]), r"Bars: to\[0\] = nan"),
        (lambda: show.Area([1], [1], [math.inf]), r"Area: high\[0\] = inf"),
        (lambda: show.Line([1, 2], [1]), "one length"),
        (lambda: show.Line([], []), "not empty"),
        (lambda: show.Points([1, 2], [1, 2], labels=["one"]), "one length"),
        (lambda: show.Line([1], [1], color="red"), "color = 'red': expected one of blue"),
        (lambda: show.Points([1], [1], marker="dot"), "marker = 'dot'"),
        (lambda: show.Line([1], [1], label_at="top"), "label_at = 'top'"),
        (lambda: show.Span(), r"expected x=\(low, high\)"),
        (lambda: show.Rule(x=1, y=1), "one of them"),
        (lambda: show.Axis(scale="logarithmic"), "scale = 'logarithmic'"),
        (lambda: show.Axis(scale="log", domain=(0, 1)), "above 0"),
        (lambda: show.Axis(scale="category"), "categories go with"),
        (
            lambda: show.Chart(show.Axis(), show.Axis(), [show.Bars([1], [1])]),
            "bars need one category axis",
        ),
        (
            lambda: lay_out(show.Chart(show.Axis(), show.Axis(), [show.Points(["A100"], [1])])),
            "'A100' is not on the axis",
        ),
        (
            lambda: lay_out(
                show.Chart(show.Axis(scale="log"), show.Axis(), [show.Points([0], [1])])
            ),
            "0 on the x axis",
        ),
        (
            lambda: lay_out(
                show.Chart(
                    show.Axis(scale="log", domain=(1, 9)), show.Axis(), [show.Points([-1], [1])]
                )
            ),
            "-1 on a logarithmic axis",
        ),
        (lambda: lay_out(show.Chart(show.Axis(), show.Axis(), [])), "nothing to take the domain"),
    ],
)
def test_bad_data_is_refused_by_name(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: show.Line([1], ["1 ms", None]),
        lambda: show.Line(1, 2),
        lambda: show.Rule(x=[1, 2]),
        lambda: show.Chart(show.Axis(), show.Axis(), ["line"]),
    ],
)
def test_wrong_types_are_refused(build):
    with pytest.raises(TypeError, match="expected"):
        build()


def test_unknown_arguments_and_names_are_refused():
    with pytest.raises(TypeError, match="colour"):
        show.Line([1], [1], colour="blue")
    with pytest.raises(AttributeError, match="no 'plot'; it has Area"):
        _ = show.plot


def test_colours_keep_their_contrast_on_white():
    for name, color in COLORS.items():
        channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        luminance = sum(
            weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
        )
        assert 1.05 / (luminance + 0.05) >= 4.5, name


def test_labels_keep_clear_of_each_other():
    """At the narrowest width no two texts of the roofline share a pixel, as placed."""
    spec = lay_out(roofline())
    x, y = spec["x"]["domain"], spec["y"]["domain"]
    margin, width, height = spec["margin"], NARROWEST, spec["height"]
    boxes = []
    for mark in spec["marks"]:
        if mark["type"] == "text" and "along" not in mark:
            px = (
                margin["left"]
                + math.log(mark["x"] / x[0])
                / math.log(x[1] / x[0])
                * (width - margin["left"] - margin["right"])
                + mark["dx"]
            )
            py = (
                height
                - margin["bottom"]
                - math.log(mark["y"] / y[0])
                / math.log(y[1] / y[0])
                * (height - margin["top"] - margin["bottom"])
                + mark["dy"]
            )
            wide = text_width(mark["text"])
            left = px - {"start": 0, "middle": wide / 2, "end": wide}[mark["anchor"]]
            boxes.append((left, py - 7, left + wide, py + 7, mark["text"]))
    # two ceilings, the point that moves, three kernels, the ridge, the region
    assert len(boxes) == 8
    for i, a in enumerate(boxes):
        assert a[0] >= 0 and a[2] <= width, a
        for b in boxes[:i]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)


def test_points_outside_a_given_domain_are_left_out():
    axis = show.Axis("n", domain=(0, 10))
    spec = lay_out(
        show.Chart(axis, axis, [show.Points([5, 11], [5, 5], labels=["in", "out"], drop=True)])
    )
    dot, texts = (
        next(m for m in spec["marks"] if m["type"] == "dot"),
        [m["text"] for m in spec["marks"] if m["type"] == "text"],
    )
    assert dot["x"] == [5]
    assert texts == ["in"]
    assert sum(m["type"] == "line" for m in spec["marks"]) == 2


# --- The static renderer


@pytest.mark.slow
def test_svg_is_the_same_in_two_processes(tmp_path):
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}; import test_show as"
        " t; from lightspeed_show import static\nsys.stdout.write(static.svg([make() for"
        " make in t.CHARTS.values()], 'a', 'b', 'c: d', 'e', ['f']))"
    )
    first, second = (
        finished(
            [sys.executable, "-c", program],
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
        )
        for seed in ("1", "2")
    )
    assert first.stdout == second.stdout and first.stderr == ""
    assert first.stdout.startswith("<svg") and "20" + "26" not in first.stdout.partition("<path")[0]


def test_svg_holds_every_text_of_the_spec_as_text(chart):
    spec = lay_out(chart)
    root = ET.fromstring(static.svg([chart], "the caption", "the description"))
    assert root.find(f"{SVG}title").text == "the caption"
    assert root.find(f"{SVG}desc").text == "the description"
    drawn = " ".join("".join(node.itertext()) for node in root.iter(f"{SVG}text"))
    ticks = [text for axis in ("x", "y") for _, text in spec[axis]["ticks"]]
    labels = [mark["text"] for mark in spec["marks"] if mark["type"] == "text"] + [
        entry["text"] for entry in spec["key"]
    ]
    for text in [*ticks, *labels, spec["title"], spec["x"]["label"], spec["y"]["label"]]:
        assert text in drawn


def test_texts_stay_inside_the_picture(chart):
    """Left and right ends of all unrotated texts, by the widths of the widest face."""
    root = ET.fromstring(static.svg([chart], "caption", "description"))
    for node in root.iter(f"{SVG}text"):
        text, anchor = "".join(node.itertext()), node.get("text-anchor", "start")
        size = float(re.search(r"([\d.]+)px", node.get("font-size") or node.get("font"))[1])
        if "rotate(-0 " in node.get("transform", "rotate(-0 "):
            left = (
                float(node.get("x"))
                - text_width(text, size) * {"start": 0, "middle": 0.5, "end": 1}[anchor]
            )
            assert left >= 0 and left + text_width(text, size) <= static.WIDTH, text


def test_a_matplotlib_figure_is_taken_too():
    from matplotlib.figure import Figure

    plot = Figure(figsize=(4, 2))
    plot.add_subplot().plot([1, 2], [1, 4])
    assert static.svg_of(plot, "a < b", "words") == static.svg_of(plot, "a < b", "words")
    assert "<title>a &lt; b</title>" in static.svg_of(plot, "a < b", "words")


# --- What a chapter shows


@pytest.fixture
def displayed(monkeypatch):
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda bundle, raw: shown.append(bundle))
    return shown


def test_figure_shows_svg_then_its_words(displayed):
    show.figure(ladder(), caption="A **ladder**.", alt="Three bars < four.")
    picture, below = displayed
    assert set(picture) == {"text/html", "text/plain"}
    assert picture["text/plain"] == "Three bars < four."
    assert picture["text/html"].startswith(
        '<img alt="Three bars &lt; four." src="data:image/svg+xml,'
    )
    assert ET.fromstring(drawing(picture["text/html"]))
    assert below["text/markdown"].startswith("*A **ladder**.*")
    assert "<details>" in below["text/markdown"]
    assert "bars &lt; four" in below["text/markdown"]


@pytest.mark.parametrize(
    "words",
    [{"caption": "", "alt": "a"}, {"caption": "c", "alt": "  "}, {"caption": None, "alt": "a"}],
)
def test_a_figure_without_words_is_refused(displayed, words):
    with pytest.raises(ValueError, match="expected words"):
        show.figure(ladder(), **words)
    assert displayed == []


def test_a_figure_of_something_else_is_refused():
    with pytest.raises(TypeError, match="expected a Chart"):
        show.figure([1, 2], caption="c", alt="a")


def test_table(displayed):
    show.table(
        [["L1", show.si(1e-9, "s"), 4096], {"level": "a|b", "latency": "100 ns", "n": 2.5}],
        ["level", "latency", "n"],
        caption="Levels.",
    )
    assert (
        displayed[0]["text/markdown"]
        == "| level | latency | n |\n| :--- | ---: | ---: |\n| L1 | 1 ns | 4,096 |\n| a\\|b | 100"
        " ns | 2.5 |\n\n*Levels.*"
    )
    with pytest.raises(ValueError, match="a row has 1 cells"):
        show.table([["L1"]], ["level", "latency"])


# --- Explorers


def view(batch, chip="H100", wrong=False):
    if wrong:
        raise ZeroDivisionError("the law broke")
    if batch > 1000:
        raise ValueError(f"batch = {batch}: too much")
    return show.View(
        roofline(batch),
        f"{chip}: {show.si(batch, 'token')}",
        {"T_math": show.si(batch * 1e-9, "s")},
    )


def explorer(**changes):
    controls = [
        show.LogSlider("batch", "B", 1, 4096, 128, unit="token", whole=True),
        show.Choice("chip", "accelerator", ["H100", "A100"]),
        show.Toggle("wrong", "break it"),
    ]
    return show.explorer(
        **(
            {"view": view, "controls": controls, "caption": "Drag B.", "alt": "A point moves."}
            | changes
        )
    )


def test_explorer_shows_one_bundle():
    demo = explorer()
    bundle = demo._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert bundle["text/plain"] == "H100: 128 tokens"
    drawn = " ".join(
        "".join(node.itertext())
        for node in ET.fromstring(drawing(bundle["text/html"])).iter(f"{SVG}text")
    )
    for text in (
        "B: 128 tokens",
        "accelerator: H100",
        "break it: no",
        "H100: 128 tokens",
        "T_math: 128 ns",
        "Drag B.",
    ):
        assert text in drawn
    demo.set(batch=1)
    # the static form is that of the first state
    assert demo._repr_mimebundle_()["text/html"] == bundle["text/html"]


def test_static_and_live_draw_the_same_data():
    demo = explorer()
    demo._repr_mimebundle_()
    live = demo.chart.content["charts"][0]
    assert live == lay_out(view(128).charts[0]) == json.loads(json.dumps(live))


def test_a_change_is_one_update_of_one_trait():
    demo = explorer()
    demo._repr_mimebundle_()
    updates = []
    demo.chart.observe(lambda change: updates.append(change["name"]))
    message = {"turn": 7, "at": {"batch": 0, "chip": 1, "wrong": 0}}
    demo.chart._handle_custom_msg(message, [])
    assert updates == ["content"]
    assert demo.params == {"batch": 1, "chip": "A100", "wrong": False}
    assert demo.chart.content["turn"] == 7
    assert demo.chart.content["verdict"] == "A100: 1 token"
    assert demo.chart.content["at"] == message["at"]


@pytest.mark.parametrize(
    "change, text, kind",
    [
        ({"wrong": True}, "ZeroDivisionError: the law broke", ZeroDivisionError),
        ({"batch": 4096}, "batch = 4096: too much", ValueError),
    ],
)
def test_an_error_is_shown_kept_and_passes(change, text, kind, capsys):
    demo = explorer()
    demo._repr_mimebundle_()
    demo.set(**change)
    assert isinstance(demo.error, kind) and demo.chart.content["error"] == text
    demo.set(batch=128, wrong=False)
    assert demo.error is None and demo.chart.content["error"] == ""
    assert capsys.readouterr() == ("", "")


def test_a_chart_that_cannot_be_drawn_is_an_error_too():
    def broken(n):
        return show.View(
            show.Chart(show.Axis(scale="log"), show.Axis(), [show.Points([2 - n], [1])]), "fine"
        )

    demo = show.explorer(broken, [show.Slider("n", "n", 0, 3, 1)], caption="c", alt="a")
    demo._repr_mimebundle_()
    demo.set(n=2)
    assert "0 on the x axis" in demo.chart.content["error"] and demo.error is not None
    with pytest.raises(ValueError, match="0 on the x axis"):
        show.explorer(broken, [show.Slider("n", "n", 0, 3, 2)], caption="c", alt="a")


def test_an_error_at_first_stops_the_cell():
    with pytest.raises(ValueError, match="too much"):
        explorer(controls=[show.LogSlider("batch", "B", 1, 4096, 4096, whole=True)])


def test_grid_covers_the_controls():
    states = list(explorer().grid(each=4))
    assert len(states) == 4 * 2 * 2
    assert {s["batch"] for s in states} >= {1, 4096}
    assert {s["chip"] for s in states} == {"H100", "A100"}


@pytest.mark.parametrize("most", [5, 7, 8])
def test_a_sample_of_the_grid_changes_every_control(most):
    whole, some = (list(explorer().grid(each=4, most=m)) for m in (None, most))
    assert 3 <= len(some) <= 8 and all(state in whole for state in some)
    for name in whole[0]:
        assert len({state[name] for state in some}) > 1, name


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: explorer(caption=" "), "caption"),
        (lambda: explorer(alt=""), "alt"),
        (lambda: explorer().set(bach=1), "no control 'bach'; there are batch"),
        (lambda: explorer().set(chip="H1000"), "chip = 'H1000': expected one of H100, A100"),
        (
            lambda: explorer(controls=[show.Toggle("batch", "a"), show.Toggle("batch", "b")]),
            "two controls of one name",
        ),
        (lambda: show.Choice("chip", "c", ["H100"]), "at least two"),
        (lambda: show.Choice("chip", "c", ["H100", "A100"], "B200"), "value = 'B200'"),
        (lambda: show.LogSlider("batch", "B", 0, 10, 1), "low = 0"),
        (lambda: show.View(roofline(), " "), "verdict"),
    ],
)
def test_explorers_refuse_what_cannot_work(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_controls_read_as_quantities():
    slider = show.LogSlider("batch", "B", 1, 100, 8, unit="token", whole=True, include=[37])
    values = [value for _, value in slider.options]
    assert values == sorted(set(values))
    assert {1, 8, 37, 100} <= set(values)
    assert slider.text(37) == "37 tokens"
    assert slider.text(1) == "1 token"
    assert [
        text for text, _ in show.LogSlider("d", "D", 256, 2048, 512, base=2, whole=True).options
    ] == ["256", "512", "1,024", "2,048"]
    assert [
        text for text, _ in show.Slider("p", "parallel", 0.8, 1, 0.9, step=0.05, unit="%").options
    ] == ["80 %", "85 %", "90 %", "95 %", "100 %"]
    assert show.Slider("n", "n", 0, 10, 3, step=2).value in (2, 4)


# --- The floor


def test_importing_show_loads_nothing_heavy():
    program = (
        "import sys, lightspeed_show as s; s.Chart, s.si; print([m for m in ('matplotlib',"
        " 'ipywidgets', 'anywidget', 'numpy', 'IPython') if m in sys.modules])"
    )
    assert ast.literal_eval(finished([sys.executable, "-c", program], check=True).stdout) == []


@pytest.mark.slow
def test_drawing_leaves_pyplot_and_its_settings_alone():
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}; import test_show as"
        " t, matplotlib as m\nm.rcParams['lines.linewidth'] = 9; odd = t.static.svg([t.ladder()],"
        " 'a', 'b')\nprint('matplotlib.pyplot' in sys.modules, m.rcParams['lines.linewidth'],"
        " m.rcParams['svg.fonttype'])\nm.rcdefaults(); print(odd == t.static.svg([t.ladder()],"
        " 'a', 'b'))"
    )
    done = finished([sys.executable, "-c", program], check=True)
    assert done.stdout.split() == ["False", "9.0", "path", "True"]
