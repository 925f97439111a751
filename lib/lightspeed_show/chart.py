"""A chart is data: frozen dataclasses that two renderers draw alike (static.py with matplotlib,
view.js in the browser).

    Chart(x=Axis("arithmetic intensity", "FLOP/byte", "log"), y=Axis("attainable", "FLOP/s", "log"),
          marks=[Line(intensities, rates, "H100 roof"), Points([295], [989e12], labels=["ridge"])])

Values are plain numbers in SI base units; the axis' unit decides how they are written. NaN and
infinity are refused here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

# After Okabe and Ito, darkened so that text keeps a contrast above 4.5 on white.
COLORS = {
    "blue": "#0072b2",
    "orange": "#c04e00",
    "green": "#00775a",
    "purple": "#a3487f",
    "sky": "#2b7cab",
    "amber": "#8a6100",
    "grey": "#666666",
    "black": "#222222",
}
MARKERS = ("circle", "square", "triangle", "diamond", "cross", "star")


@dataclass(frozen=True)
class Axis:
    """One axis. `scale` is "linear", "log" or "category" (then `categories` are the names, the
    first on top or at the left).

    `unit` ("s", "byte/s", "FLOP/byte", "token", "" ...) decides how ticks are written; units with
    SI prefixes are written at each tick (1 µs, 10 GB/s), other units once, after the label.
    `domain` is (low, high), by default that of the data. `ticks`: values, or (value, text) pairs,
    to have other ticks than the usual ones.
    """

    label: str = ""
    unit: str = ""
    scale: str = "linear"
    domain: Sequence | None = None
    ticks: Sequence | None = None
    categories: Sequence = ()

    def __post_init__(self):
        _one_of(self, "scale", ("linear", "log", "category"))
        if (self.scale == "category") != bool(self.categories):
            raise ValueError("Axis: categories go with scale='category', and only with it")
        _set(self, "categories", tuple(str(name) for name in self.categories))
        if self.domain is not None:
            low, high = _numbers(self, "domain", self.domain)
            if low == high or (self.scale == "log" and min(low, high) <= 0):
                raise ValueError(
                    f"Axis: domain = {self.domain}: expected two different numbers"
                    + (" above 0" * (self.scale == "log"))
                )
            _set(self, "domain", (low, high))
        if self.ticks is not None:
            _set(
                self,
                "ticks",
                tuple(
                    (float(t[0]), str(t[1])) if isinstance(t, tuple | list) else float(t)
                    for t in self.ticks
                ),
            )


@dataclass(frozen=True)
class Line:
    """A line through (x, y). `label_at`: "end" (beside its last point), "along" (parallel to it,
    on a slope) or "above" (over its right end). `arrow`: a head at its last point.
    """

    x: Sequence
    y: Sequence
    label: str = ""
    color: str = "blue"
    dash: bool = False
    width: float = 2
    label_at: str = "end"
    arrow: bool = False

    def __post_init__(self):
        _check(self, "x", "y")
        _one_of(self, "label_at", ("end", "along", "above"))


@dataclass(frozen=True)
class Points:
    """Markers at (x, y). `labels` names each point; `label` the series. `drop` draws dashed lines
    to both axes: the point that moves. `keys` name each point: one that the next picture has too
    is seen to move there. `drag` names the controls of an explorer that move the first point along
    x and along y, None where none does: it can then be pulled. `tips` says what a pointer reads at
    each, in place of its coordinates. `soft` ones are faint, and labels do not keep clear of them;
    they have tips and lie on the axes. Other points outside an axis' `domain` are not drawn."""

    x: Sequence
    y: Sequence
    label: str = ""
    labels: Sequence = ()
    color: str = "orange"
    marker: str = "circle"
    size: float = 5
    drop: bool = False
    keys: Sequence = ()
    drag: Sequence = (None, None)
    tips: Sequence = ()
    soft: bool = False

    def __post_init__(self):
        _check(self, "x", "y", texts=("labels", "keys", "tips"))
        _one_of(self, "marker", MARKERS)


@dataclass(frozen=True)
class Bars:
    """Bars at categories (names) or numbers, reaching `to`, from `start` (default: the axis' foot).
    On the axis that is a category axis; rows of a Gantt chart, segments of a stack and ranges are
    Bars with `start`. `labels` are written inside each bar that has `start` (left out where the
    room is too small) and after the end of other bars; `label` names the series in the key above
    the chart. `width` is a share of the room for one category. `keys`: see Points."""

    at: Sequence
    to: Sequence
    start: Sequence | None = None
    label: str = ""
    labels: Sequence = ()
    color: str = "blue"
    width: float = 0.7
    keys: Sequence = ()

    def __post_init__(self):
        numbers = ("at", "to") if self.start is None else ("at", "to", "start")
        _check(self, *numbers, texts=("labels", "keys"))


@dataclass(frozen=True)
class Boxes:
    """Rectangles from (x1, y1) to (x2, y2), for pictures of things. `labels` are written inside,
    where they have room; `label` names them all in the key above the chart. `soft` ones are a tint
    behind what stands in them, with their labels at the top. `keys`: see Points."""

    x1: Sequence
    x2: Sequence
    y1: Sequence
    y2: Sequence
    label: str = ""
    labels: Sequence = ()
    color: str = "blue"
    soft: bool = False
    keys: Sequence = ()

    def __post_init__(self):
        _check(self, "x1", "x2", "y1", "y2", texts=("labels", "keys"))


@dataclass(frozen=True)
class Area:
    """The band between two curves `low` and `high` over `x`."""

    x: Sequence
    low: Sequence
    high: Sequence
    label: str = ""
    color: str = "sky"

    def __post_init__(self):
        _check(self, "x", "low", "high")


@dataclass(frozen=True)
class Span:
    """A shaded range: `x=(low, high)`, `y=(low, high)` or both; None reaches to the edge."""

    x: Sequence | None = None
    y: Sequence | None = None
    label: str = ""
    color: str = "grey"

    def __post_init__(self):
        if self.x is None and self.y is None:
            raise ValueError("Span: expected x=(low, high) or y=(low, high)")
        for name in ("x", "y"):
            if getattr(self, name) is not None:
                low, high = getattr(self, name)
                _set(
                    self,
                    name,
                    tuple(end if end is None else _number(self, name, end) for end in (low, high)),
                )
        _one_of(self, "color", tuple(COLORS))


@dataclass(frozen=True)
class Rule:
    """A line across the chart at `x=` or `y=`, as y=1 in residuals, or the ridge point."""

    x: float | None = None
    y: float | None = None
    label: str = ""
    color: str = "grey"
    dash: bool = True

    def __post_init__(self):
        if (self.x is None) == (self.y is None):
            raise ValueError("Rule: expected x=value or y=value, one of them")
        name = "x" if self.y is None else "y"
        _set(self, name, _number(self, name, getattr(self, name)))
        _one_of(self, "color", tuple(COLORS))


@dataclass(frozen=True)
class Text:
    """A note at (x, y), for what no mark's own label says."""

    x: float
    y: float
    text: str
    color: str = "black"
    anchor: str = "middle"

    def __post_init__(self):
        for name in ("x", "y"):
            _set(self, name, _number(self, name, getattr(self, name)))
        _one_of(self, "anchor", ("start", "middle", "end"))
        _one_of(self, "color", tuple(COLORS))


@dataclass(frozen=True)
class Chart:
    """Axes, marks and a height in pixels; the width is the reader's. `x_top` is a second reading
    of x (see `human_axis`). A `bare` chart is a picture: its axes place the marks and are not
    drawn.
    """

    x: Axis
    y: Axis
    marks: Sequence
    title: str = ""
    x_top: Axis | None = None
    height: int = 380
    bare: bool = False

    def __post_init__(self):
        _set(self, "marks", tuple(self.marks))
        for mark in self.marks:
            if not isinstance(mark, Line | Points | Bars | Boxes | Area | Span | Rule | Text):
                raise TypeError(
                    f"Chart: marks has {mark!r}: expected Line, Points, Bars, Boxes, Area, Span,"
                    " Rule or Text"
                )
            if isinstance(mark, Bars) and (self.x.scale == "category") == (
                self.y.scale == "category"
            ):
                raise ValueError(f"{_name(mark)}: bars need one category axis, on x or on y")


def human_axis(factor, label="if one nanosecond were one second"):
    """An axis for `Chart.x_top` of human time: factor 1e9 turns 1 ns into 1 s."""
    minute, hour, day, year = 60, 3600, 86400, 365.25 * 86400
    times = (
        (1e-3, "1 ms"),
        (1, "1 s"),
        (minute, "1 min"),
        (hour, "1 h"),
        (day, "1 day"),
        (30 * day, "1 month"),
        (year, "1 year"),
        (10 * year, "10 years"),
        (100 * year, "100 years"),
        (1000 * year, "1,000 years"),
    )
    return Axis(
        label, scale="log", ticks=tuple((seconds / factor, text) for seconds, text in times)
    )


def _check(mark, *names, texts=()):
    """Make a mark's sequences tuples of finite floats or categories, and check its colour."""
    lengths = {}
    for name in names:
        _set(mark, name, _numbers(mark, name, getattr(mark, name)))
        lengths[name] = len(getattr(mark, name))
    for name in texts:
        if getattr(mark, name):
            _set(mark, name, tuple(str(text) for text in getattr(mark, name)))
            lengths[name] = len(getattr(mark, name))
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ValueError(
            f"{_name(mark)}: expected sequences of one length, and not empty; got {lengths}"
        )
    _one_of(mark, "color", tuple(COLORS))


def _numbers(mark, name, values):
    try:
        values = tuple(values)
        if all(isinstance(value, float) and math.isfinite(value) for value in values):
            return tuple(map(float, values))  # nearly always so, and quicker
        return tuple(_number(mark, f"{name}[{i}]", value) for i, value in enumerate(values))
    except TypeError as error:
        raise TypeError(
            f"{_name(mark)}: {name} = {values!r}: expected a sequence of numbers"
        ) from error


def _number(mark, name, value):
    if isinstance(value, str):
        return value  # the name of a category; lay_out() looks it up
    if not isinstance(value, Real):
        raise TypeError(
            f"{_name(mark)}: {name} = {value!r}: expected a plain number in SI base units"
        )
    if not math.isfinite(value):
        raise ValueError(
            f"{_name(mark)}: {name} = {value}: a chart holds finite numbers only; leave this"
            " one out"
        )
    return float(value)


def _one_of(mark, name, choices):
    if getattr(mark, name) not in choices:
        raise ValueError(
            f"{_name(mark)}: {name} = {getattr(mark, name)!r}: expected one of {', '.join(choices)}"
        )


def _name(mark):
    label = getattr(mark, "label", "")
    return f"{type(mark).__name__} {label!r}" if label else type(mark).__name__


def _set(mark, name, value):
    object.__setattr__(mark, name, value)
