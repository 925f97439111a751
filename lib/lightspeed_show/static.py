"""The static renderer: charts as an SVG string drawn by matplotlib, the same bytes at every run."""

import importlib.util
import io
import math
import re
import textwrap
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from .chart import COLORS
from .label_placement import LABEL
from .layout import TICK, lay_out

WIDTH = 760
FACE = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans',"
    " sans-serif"
)
# Matplotlib's own defaults first: a reader's matplotlibrc must not change what the course shows.
STYLE: list[Any] = [
    "default",
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "speed-of-light",
        "font.family": "DejaVu Sans",
        "path.simplify": False,
    },
]
INK, SOFT, GRID = "#222222", "#595959", "#e4e4e4"
MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "X", "star": "*"}


def can_draw():
    """Whether matplotlib is available, as it is not in a browser."""
    return importlib.util.find_spec("matplotlib") is not None


def svg(charts, title, description, settings="", verdict="", notes=()):
    """One SVG of charts one above the other, with <title> and <desc>. For an explorer: `settings`
    and `verdict` above the charts as in the live view, `notes` below.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    specs = [lay_out(chart) for chart in charts]
    head = _lines(settings)
    body = _lines(verdict, 1.15)
    foot = [line for note in notes for line in (*_lines(note), "")]
    panel = (22 * len(body) + 12) if body else 0
    height = 20 * len(head) + panel + 8 * bool(body) + 17 * len(foot)
    height += sum(spec["height"] for spec in specs)
    with style.context(STYLE):
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, facecolor="white")
        top = height - 20 * len(head)
        for i, line in enumerate(head):
            figure.text(
                8 / WIDTH, (height - 20 * i - 14) / height, line, fontsize=LABEL, color=SOFT
            )
        if body:
            top -= panel + 8
            _panel(figure, 8 / WIDTH, top / height, 1 - 16 / WIDTH, panel / height)
            for i, line in enumerate(body):
                y = (top + panel - 22 * i - 22) / height
                figure.text(24 / WIDTH, y, line, fontsize=1.15 * LABEL, color=INK)
        for spec in specs:
            top -= spec["height"]
            _draw(figure, spec, top, height)
        for i, line in enumerate(foot):
            figure.text(8 / WIDTH, (top - 17 * (i + 1)) / height, line, fontsize=LABEL, color=SOFT)
        return svg_of(figure, title, description)


def _panel(figure, x, y, width, height):
    from matplotlib.patches import Rectangle

    figure.add_artist(Rectangle((x, y), width, height, facecolor="#f5f7f9", lw=0))
    figure.add_artist(Rectangle((x, y), 4 / WIDTH, height, facecolor=COLORS["blue"], lw=0))


def svg_of(figure, title, description):
    """A matplotlib figure as SVG: fixed salt, no date, text as text, title and description."""
    from matplotlib import style

    buffer = io.StringIO()
    with style.context(STYLE):
        figure.savefig(
            buffer,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    text = buffer.getvalue()
    text = re.sub(r'style="([^"]*)"', _as_attributes, text[text.index("<svg") :])
    # one rule, said at the root below
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.S)
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    text = re.sub(r'(?<= )(?:d|x|y|width|height|viewBox|transform)="[^"]*"', _placed, text)
    width, height = (f"{size * 72:g}" for size in figure.get_size_inches())
    text = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
        r'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        rf' viewBox="\1" width="{width}" height="{height}"'
        rf' role="img" font-family="{_literal(FACE, markup=False)}" stroke-linejoin="round"'
        r' stroke-linecap="butt">'
        rf"\n <title>{_literal(title)}</title>\n <desc>{_literal(description)}</desc>",
        text,
        count=1,
    )
    return text


def _as_attributes(style):
    """Presentation attributes, which sanitisers keep; measured in DejaVu Sans, shown in any."""
    pairs = [pair.split(":", 1) for pair in style[1].split(";") if pair.strip()]
    return " ".join(
        f'{name.strip()}="{value.strip()}"'
        for name, value in pairs
        if name.strip() != "font-family"
    )


def _placed(attribute):
    """An attribute with its places to a hundredth of a pixel, as far as no processor matters."""
    return re.sub(r"-?\d+\.\d{3,}", lambda place: _hundredths(float(place[0])), attribute[0])


def _hundredths(place):
    return f"{round(place, 2) + 0.0:.2f}".rstrip("0").rstrip(".")  # + 0.0: no "-0"


def image(svg, alt):
    """An SVG as HTML with its description: JupyterLab and nbconvert give a bare one no alt."""
    data = quote(svg, safe=" !$'()*+,-./:;=?@[]^_`{|}~")
    return f'<img alt="{escape(alt, {chr(34): "&quot;"})}" src="data:image/svg+xml,{data}">'


def _literal(text, markup=True):
    """Safe as the replacement of a regular expression, and as XML."""
    return (escape(text) if markup else text).replace("\\", r"\\")


def _lines(text, scale=1):
    return [
        line.replace("\u2007", " ")
        for line in textwrap.wrap(text, int((WIDTH - 40) / (0.56 * scale * LABEL)))
    ]


def joined(pairs):
    """ "B: 128 tokens · D: 4,096": pairs that no line break parts, by figure spaces."""
    return "\u2007· ".join(f"{name}: {value}".replace(" ", "\u2007") for name, value in pairs)


def _draw(figure, spec, bottom, height):
    """One chart into the strip of the figure that starts `bottom` pixels above its foot."""
    margin = spec["margin"]
    left, right = margin["left"], WIDTH - margin["right"]
    low, high = bottom + margin["bottom"], bottom + spec["height"] - margin["top"]
    axes = figure.add_axes(
        (left / WIDTH, low / height, (right - left) / WIDTH, (high - low) / height)
    )
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    axes.spines["bottom"].set_visible(not spec["bare"])
    _axis(axes.xaxis, axes.set_xscale, axes.set_xlim, spec["x"])
    _axis(axes.yaxis, axes.set_yscale, axes.set_ylim, spec["y"])
    for mark in spec["marks"]:
        _MARKS[mark["type"]](axes, mark)

    def write(x, y, text, **style):
        style = {"fontsize": LABEL, "color": INK} | style
        figure.text(x / WIDTH, y / height, text, va="center_baseline", **style)

    top = bottom + spec["height"]
    if spec["title"]:
        write(8, top - 14, spec["title"], fontsize=14, fontweight="bold")
    for entry in spec["key"]:
        y = top - spec["key_top"] - 20 * entry["row"] - 10
        figure.add_artist(_key_marker(entry, (16 + entry["x"]) / WIDTH, y / height))
        write(26 + entry["x"], y, entry["text"], color=COLORS[entry["color"]])
    if spec["y"]["label"]:
        write(8, high + (30 if spec["x_top"] else 17), spec["y"]["label"], color=SOFT)
    if spec["x"]["label"]:
        write(right, bottom + 11, spec["x"]["label"], color=SOFT, ha="right")
    if spec["x_top"]:
        write(right, high + 30, spec["x_top"]["label"], color=SOFT, ha="right")
        across = axes.get_xaxis_transform()
        beside = {"xycoords": across, "textcoords": "offset points"}
        look = {"fontsize": TICK, "color": SOFT, "ha": "center", "va": "center_baseline"}
        for value, text in spec["x_top"]["ticks"]:
            line = [value, value], [1, 1.012]
            axes.plot(*line, transform=across, color=SOFT, lw=1, clip_on=False)
            axes.annotate(text, (value, 1), (0, 11), **beside, **look)


def _axis(axis, set_scale, set_limits, spec):
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

    set_scale("log" if spec["log"] else "linear")
    set_limits(*spec["domain"])
    axis.set_major_locator(FixedLocator([value for value, _ in spec["ticks"]]))
    axis.set_major_formatter(FixedFormatter([text for _, text in spec["ticks"]]))
    axis.set_minor_locator(FixedLocator(spec["minor"]))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="major", length=0, labelsize=TICK, labelcolor=SOFT, pad=6)
    axis.set_tick_params(which="minor", length=0)
    if not spec["category"]:
        axis.grid(which="major", color=GRID, lw=1)


def _line(axes, mark):
    axes.plot(
        mark["x"],
        mark["y"],
        color=COLORS[mark["color"]],
        lw=mark["width"],
        ls=(0, (4, 3)) if mark["dash"] else "-",
        solid_joinstyle="round",
        scalex=False,
        scaley=False,
    )
    if mark.get("arrow"):
        (ax, ay), (bx, by) = ((mark["x"][i], mark["y"][i]) for i in (-2, -1))
        look = {"arrowstyle": "-|>", "lw": 0, "color": COLORS[mark["color"]], "mutation_scale": 13}
        look |= {"shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (bx, by), (ax, ay), arrowprops=look, annotation_clip=False)


def _area(axes, mark):
    axes.fill_between(
        mark["x"], mark["low"], mark["high"], color=COLORS[mark["color"]], alpha=0.15, lw=0
    )


def _rect(axes, mark):
    from matplotlib.patches import Rectangle

    look = {"alpha": 0.10, "lw": 0} if mark["shade"] else {"edgecolor": "white", "lw": 1}
    for x1, x2, y1, y2 in zip(mark["x1"], mark["x2"], mark["y1"], mark["y2"], strict=True):
        # Not add_patch: it works out anew what the axes must show, and that is set already.
        axes.add_artist(
            Rectangle((x1, y1), x2 - x1, y2 - y1, facecolor=COLORS[mark["color"]], **look)
        )


def _dot(axes, mark):
    axes.plot(
        mark["x"],
        mark["y"],
        MARKERS[mark["marker"]],
        color=COLORS[mark["color"]],
        ms=2 * mark["size"],
        mec="none" if mark["soft"] else "white",
        mew=1,
        alpha=0.45 if mark["soft"] else 1,
        clip_on=False,
        zorder=1.5 if mark["soft"] else 3,
        scalex=False,
        scaley=False,
    )


def _text(axes, mark):
    x, y, angle = mark["x"], mark["y"], 0.0
    dx, dy = mark["dx"], -mark["dy"]
    if "along" in mark:
        (ax, ay), (bx, by) = axes.transData.transform([mark["along"][:2], mark["along"][2:]])
        angle = math.degrees(math.atan2(by - ay, bx - ax))
        dx, dy = -dy * math.sin(math.radians(angle)), dy * math.cos(math.radians(angle))
    inside = mark["color"] == "inside"
    axes.annotate(
        mark["text"],
        (x, y),
        (dx, dy),
        textcoords="offset points",
        fontsize=LABEL,
        annotation_clip=False,
        zorder=4,
        color="white" if inside else COLORS[mark["color"]],
        fontweight="bold" if mark["bold"] else "normal",
        ha={"start": "left", "middle": "center", "end": "right"}[mark["anchor"]],
        va="center_baseline",
        rotation=round(angle, 1),
        rotation_mode="anchor",
        bbox=(
            None
            if inside or angle
            else {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1}
        ),
    )


def _key_marker(entry, x, y):
    from matplotlib.lines import Line2D

    return Line2D(
        [x], [y], marker=MARKERS[entry["marker"]], color=COLORS[entry["color"]], ms=9, ls="none"
    )


_MARKS = {"line": _line, "area": _area, "rect": _rect, "dot": _dot, "text": _text}
