"""From a chart to a drawing list: domains, ticks, margins, and labels placed so that they keep
clear of each other, of markers and of lines.

Done once, in Python, for both renderers. Positions stay in data units plus pixel offsets; the width
assumed here is the narrowest at which a chart is shown, because labels that are apart at this width
are apart at any greater one.
"""

import functools
import math
import textwrap
from dataclasses import replace

from .chart import Area, Bars, Boxes, Line, Points, Rule, Span
from .format import plural, prefixed, si
from .label_placement import Placer, Scale, labelled_in_margin, text_width
from .ticks import linear_ticks, log_ticks, tick_text

NARROWEST = 560
READINGS = 48  # steps of an axis that a pointer can tell apart
TICK = 11
HEAD = 24  # the row over the frame with the name of the y axis


def lay_out(chart):
    """The JSON-able specification of a chart (see `Chart.spec`)."""
    marks = [_resolved(mark, chart) for mark in chart.marks]
    x_domain, y_domain = _domain(chart.x, marks, "x"), _domain(chart.y, marks, "y")
    key = _key(marks)
    key_rows = max((entry["row"] + 1 for entry in key), default=0)
    key_top = 8 + 22 * bool(chart.title)
    top = (
        key_top + 20 * key_rows + HEAD * bool(chart.y.label or chart.x_top) + 18 * bool(chart.x_top)
    )
    y_ticks, y_minor = _ticks(chart.y, y_domain, room=(chart.height - top - 40) / 26)
    left = 12 + max(
        (max(text_width(part, TICK) for part in text.split("\n")) for _, text in y_ticks), default=0
    )
    x_ticks, x_minor = _ticks(chart.x, x_domain, pixels=NARROWEST - left - 40)
    if chart.bare:
        left, x_ticks, x_minor, y_ticks, y_minor = 12, [], [], [], []
    bottom = (
        8
        + 14 * max((text.count("\n") + 1 for _, text in x_ticks), default=1)
        + 18 * bool(chart.x.label)
    )
    if chart.bare:
        bottom = 8
    right = _right_margin(chart, marks, x_domain, x_ticks, left)
    x = Scale(x_domain, chart.x.scale == "log", left, NARROWEST - right)
    y = Scale(y_domain, chart.y.scale == "log", chart.height - bottom, top)
    placer = Placer(x, y)
    shapes = [shape for mark in marks for shape in _shapes(mark, chart, x, y)]
    for shape in shapes:
        placer.avoid(shape)
    return {
        "height": chart.height,
        "bare": chart.bare,
        "margin": {"left": _px(left), "right": _px(right), "top": top, "bottom": bottom},
        "title": chart.title,
        "key": key,
        "key_top": key_top,
        "x": _axis_spec(chart.x, x_domain, x_ticks, x_minor),
        "y": _axis_spec(chart.y, y_domain, y_ticks, y_minor),
        "x_top": chart.x_top and {"label": chart.x_top.label, "ticks": _top_ticks(chart.x_top, x)},
        "marks": shapes + placer.labels(marks),
    }


def _axis_spec(axis, domain, ticks, minor):
    unit = (
        ""
        if not axis.unit or prefixed(axis.unit) or axis.unit in ("%", "dollar")
        else f" ({plural(axis.unit)})"
    )
    return {
        "log": axis.scale == "log",
        "category": axis.scale == "category",
        "domain": [_g(v) for v in domain],
        "label": axis.label + unit,
        "ticks": [[_g(v), text] for v, text in ticks],
        "minor": [_g(v) for v in minor],
        "readings": readings(axis.unit, axis.scale, tuple(domain)) if ticks else [],
    }


@functools.lru_cache(maxsize=256)
def readings(unit, scale, domain):
    """What stands at equal steps along an axis, for a pointer that asks."""
    if scale == "category":
        return []
    low, high = domain
    along = [i / READINGS for i in range(READINGS + 1)]
    values = [low * (high / low) ** s if scale == "log" else low + s * (high - low) for s in along]
    return [si(v, unit, 2) for v in values]


def reading(axis, value):
    """A place on an axis, in words."""
    if axis.scale == "category":
        return axis.categories[round(value)]
    return si(value, axis.unit)


def _resolved(mark, chart):
    """The mark with names of categories replaced by their positions on the axis."""
    along = {"x": chart.x, "y": chart.y, "at": chart.y if chart.y.scale == "category" else chart.x}
    changes = {}
    for field, axis in along.items():
        own = getattr(mark, field, None)
        values = own if isinstance(own, tuple) else (own,)
        if any(isinstance(value, str) for value in values):
            positions = tuple(_position(value, axis, mark, field) for value in values)
            changes[field] = positions if values is own else positions[0]
    return replace(mark, **changes) if changes else mark


def _position(value, axis, mark, field):
    if not isinstance(value, str):
        return value
    if value not in axis.categories:
        categories = ", ".join(axis.categories) or "no categories"
        raise ValueError(
            f"{type(mark).__name__}: {field} = {value!r} is not on the axis, which has {categories}"
        )
    return float(axis.categories.index(value))


def _domain(axis, marks, name):
    if axis.scale == "category":
        ends = (-0.5, len(axis.categories) - 0.5)
        return ends[::-1] if name == "y" else ends  # the first name on top
    if axis.domain is not None:
        return axis.domain
    values = [v for mark in marks for v in _values(mark, name)]
    if not values:
        raise ValueError(
            f"Chart: nothing to take the domain of the {name} axis from; give Axis(domain=(low,"
            " high))"
        )
    low, high = min(values), max(values)
    bars = any(
        isinstance(mark, Bars) and mark.start is None for mark in marks if _values(mark, name)
    )
    # curves run from edge to edge
    tight = name == "x" and all(isinstance(mark, Line | Area | Rule | Span) for mark in marks)
    if axis.scale == "log":
        if low <= 0:
            raise ValueError(
                f"Chart: {low:g} on the {name} axis, which is logarithmic: expected values above 0"
            )
        pad = 0 if tight and high > low else max(0.04 * math.log10(high / low), 0.08)
        return (low * 10 ** -(0.5 if bars else pad), high * 10**pad)
    low, high = (min(low, 0), max(high, 0)) if bars else (low, high)
    if tight and high > low:
        return (low, high)
    pad = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return (low if low == 0 else low - pad, high if high == 0 else high + pad)


def _values(mark, name):
    """The values of a mark that the axis `name` has to reach."""
    if isinstance(mark, Area):
        return mark.x if name == "x" else (*mark.low, *mark.high)
    if isinstance(mark, Bars):
        return (*mark.to, *(mark.start or ()))  # on the category axis nobody asks
    if isinstance(mark, Boxes):
        return (*mark.x1, *mark.x2) if name == "x" else (*mark.y1, *mark.y2)
    values = getattr(mark, name)
    return tuple(v for v in (values if isinstance(values, tuple) else (values,)) if v is not None)


def _ticks(axis, domain, pixels=None, room=None):
    """[(value, text)], [minor values] with texts that fit `pixels`, or `room` one above another."""
    if axis.scale == "category":
        count = len(axis.categories)
        wide = pixels / count / (0.6 * TICK) if pixels else 40
        return [(float(i), _wrapped(name, wide)) for i, name in enumerate(axis.categories)], []
    if axis.ticks is not None:
        inside = [t if isinstance(t, tuple) else (t, tick_text(t, axis.unit)) for t in axis.ticks]
        return [t for t in inside if min(domain) <= t[0] <= max(domain)], []
    return (log_ticks if axis.scale == "log" else linear_ticks)(
        domain, axis.unit, pixels, room, TICK
    )


def _top_ticks(axis, x):
    """The ticks of the second reading that lie on the first one's domain and have room."""
    ticks, end = [], -math.inf
    for value, text in axis.ticks or ():
        at, half = x.px(value), text_width(text, TICK) / 2
        if x.inside(at) and at - half > end + 6:
            ticks.append([_g(value), text])
            end = at + half
    return ticks


def _wrapped(text, characters):
    return "\n".join(textwrap.wrap(text, max(int(characters), 8), break_long_words=False)) or text


def _key(marks):
    """Series without labels at their marks: [{text, color, marker, x, row}] above the chart."""
    entries, at, row = [], 0, 0
    for mark in marks:
        plain = isinstance(mark, Bars | Boxes) or (isinstance(mark, Points) and not mark.labels)
        if not plain or not mark.label or any(e["text"] == mark.label for e in entries):
            continue
        width = text_width(mark.label) + 34
        if entries and at + width > NARROWEST - 20:
            at, row = 0, row + 1
        marker = mark.marker if isinstance(mark, Points) else "square"
        entries.append(
            {"text": mark.label, "color": mark.color, "marker": marker, "x": _px(at), "row": row}
        )
        at += width
    return entries


def _right_margin(chart, marks, domain, ticks, left):
    """Room for the labels to the right of the frame and for what hangs over its edge."""
    x = Scale(domain, chart.x.scale == "log", 0, 1)
    need = [14]
    if ticks:
        value, text = ticks[-1]
        need.append(text_width(text, TICK) / 2 - (1 - x.px(value)) * (NARROWEST - left - 60) + 4)
    for mark in marks:
        if isinstance(mark, Line) and mark.label and labelled_in_margin(mark, x):
            need.append(text_width(mark.label) + 12)
        if (
            isinstance(mark, Bars)
            and mark.labels
            and mark.start is None
            and chart.y.scale == "category"
        ):
            for value, text in zip(mark.to, mark.labels, strict=True):
                end = min(max(x.px(value), 0.05), 1)
                need.append((text_width(text) + 10 - (1 - end) * (NARROWEST - left)) / end)
    return max(need)


def _shapes(mark, chart, x, y):
    """A mark's shapes: lines, areas, rects and dots in data units, labels apart."""
    if isinstance(mark, Line):
        line = _line(mark.x, mark.y, mark.color, mark.width, mark.dash)
        return [line | ({"arrow": True} if mark.arrow else {})]
    if isinstance(mark, Area):
        area = {"type": "area", "x": _gs(mark.x), "low": _gs(mark.low), "high": _gs(mark.high)}
        return [area | {"color": mark.color}]
    if isinstance(mark, Rule):
        upright = mark.y is None
        xs, ys = (mark.x, mark.x) if upright else x.domain, y.domain if upright else (mark.y,) * 2
        return [_line(xs, ys, mark.color, 1.25, mark.dash)]
    if isinstance(mark, Span):
        (x1, x2), (y1, y2) = _side(mark.x, x), _side(mark.y, y)
        return [_rect([x1], [x2], [y1], [y2], mark.color, shade=True)]
    if isinstance(mark, Bars):
        value_axis = x if chart.y.scale == "category" else y
        foot = mark.start or (value_axis.domain[0] if value_axis.log else 0.0,) * len(mark.at)
        low, high = [a - mark.width / 2 for a in mark.at], [a + mark.width / 2 for a in mark.at]
        lying = value_axis is x
        (x1, x2), (y1, y2) = ((foot, mark.to), (low, high))[:: 1 if lying else -1]
        return [_rect(x1, x2, y1, y2, mark.color, keys=mark.keys)]
    if isinstance(mark, Boxes):
        look = {"shade": mark.soft, "keys": mark.keys}
        return [_rect(mark.x1, mark.x2, mark.y1, mark.y2, mark.color, **look)]
    if isinstance(mark, Points) and mark.soft:
        return [_soft(mark)]
    if isinstance(mark, Points):
        keys, tips = (texts or ("",) * len(mark.x) for texts in (mark.keys, mark.tips))
        inside = [
            (u, v, key, tip)
            for u, v, key, tip in zip(mark.x, mark.y, keys, tips, strict=True)
            if x.inside(x.px(u)) and y.inside(y.px(v))
        ]
        drops = []
        for u, v, *_ in inside if mark.drop else ():
            drops += [
                _line((u, u), (v, y.domain[0]), mark.color, 1.25, True),
                _line((u, x.domain[0]), (v, v), mark.color, 1.25, True),
            ]
        dot = {"type": "dot", "x": _gs(u for u, *_ in inside), "y": _gs(v for _, v, *_ in inside)}
        dot["keys"] = [key for _, _, key, _ in inside] if mark.keys else []
        dot["tips"] = [
            tip or f"{reading(chart.x, u)}, {reading(chart.y, v)}" for u, v, _, tip in inside
        ]
        dot["drag"], dot["moves"], dot["soft"] = list(mark.drag), mark.drop, False
        return [*drops, dot | {"color": mark.color, "marker": mark.marker, "size": mark.size}]
    return []


@functools.lru_cache(maxsize=64)
def _soft(mark):
    """Dots that stay where they are while the rest moves: worked out once."""
    look = {"color": mark.color, "marker": mark.marker, "size": mark.size}
    still = {"keys": [], "drag": [None, None], "moves": False, "soft": True}
    return (
        {"type": "dot", "x": _gs(mark.x), "y": _gs(mark.y), "tips": list(mark.tips)} | still | look
    )


def _side(ends, scale):
    low, high = ends or (None, None)
    return (scale.domain[0] if low is None else low, scale.domain[1] if high is None else high)


def _line(xs, ys, color, width, dash):
    return {
        "type": "line",
        "x": _gs(xs),
        "y": _gs(ys),
        "color": color,
        "width": width,
        "dash": dash,
    }


def _rect(x1, x2, y1, y2, color, shade=False, keys=()):
    return {
        "keys": list(keys),
        "type": "rect",
        "x1": _gs(x1),
        "x2": _gs(x2),
        "y1": _gs(y1),
        "y2": _gs(y2),
        "color": color,
        "shade": shade,
    }


def _gs(values):
    return [_g(value) for value in values]


def _g(value):
    """Seven digits: below a pixel, and the same on every machine."""
    return float(f"{value:.7g}")


def _px(value):
    return math.ceil(value)


def still(charts, alt):
    """The frame and the content by which the live renderer draws charts without controls."""
    frame = {"controls": [], "presets": [], "caption": "", "alt": alt}
    return frame, content(charts) | {"turn": 0, "at": {}}


def content(charts, verdict="", facts=(), formula=(), moments=0, measured=""):
    """What the live renderer shows, as JSON."""
    return {
        "charts": [lay_out(chart) for chart in charts],
        "verdict": verdict,
        "facts": [list(fact) for fact in facts],
        "formula": list(formula),
        "moments": moments,
        "measured": measured,
        "error": "",
    }
