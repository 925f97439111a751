"""A law over a range of one or two of its arguments, as a table or a chart with axes named by the
law itself.

    sweep(ridge_point, peak=[312e12, 990e12], bandwidth=2e12)
    sweep(decode_step, "time", batch=range(1, 257), parameters={"8B": 8e9, "70B": 70e9},
          kv_bytes=1e9, peak=1e15, bandwidth=3.5e12)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from lightspeed.errors import one_of
from lightspeed.law import Argument, with_unit
from lightspeed.values import Amount, Whole, plain, si

from .chart import COLORS, Axis, Chart, Line, Points

LONGEST_TABLE = 8
MOST_LINES = 6


@dataclass(frozen=True)
class Swept:
    """An argument that was varied: name, unit, texts and, if they are numbers, values."""

    name: str
    unit: str
    texts: tuple[str, ...]
    values: tuple[Any, ...]
    named: bool


@dataclass(frozen=True)
class Sweep:
    """A law's results along `x`, for each of `lines` if two arguments were varied."""

    law: str
    fixed: str
    x: Swept
    lines: tuple[str, ...]
    units: tuple[str, ...]
    results: tuple[tuple[Any, ...], ...]  # a row for each value of x, a column for each line

    def table(self) -> None:
        """Show the sweep as a table: a row for each value of the first argument."""
        from .page import table

        rows = [
            [text, *map(_text, row)] for text, row in zip(self.x.texts, self.results, strict=True)
        ]
        table(rows, [_words(self.x.name), *self.lines], self.caption)

    def chart(self) -> Chart:
        """Return the sweep as a `Chart`, lines over the first argument, without infinite values."""
        if self.x.named or len(self.lines) > MOST_LINES or len(set(self.units)) > 1:
            raise ValueError(
                "sweep: a chart needs numbers on one axis, one unit on the other and at most"
                f" {MOST_LINES} lines; this is a table"
            )
        marks: list[Any] = []
        everything = [value for row in self.results for value in row if _finite(value)]
        alone = len(self.lines) == 1
        for column, (label, color) in enumerate(zip(self.lines, COLORS, strict=False)):
            dots = [
                (x, row[column])
                for x, row in zip(self.x.values, self.results, strict=True)
                if _finite(row[column])
            ]
            xs, ys = zip(*dots, strict=True)
            mark = Line if len(dots) > 1 else Points
            marks.append(mark(xs, ys, "" if alone else label, color=color))
        axes = (
            Axis(_words(self.x.name), self.x.unit, _scale(self.x.values)),
            Axis(_words(self.law), self.units[0], _scale(everything)),
        )
        return Chart(*axes, tuple(marks))

    @property
    def caption(self) -> str:
        """Describe in one line what was computed."""
        return f"{_words(self.law)} over {_words(self.x.name)}" + (
            f"; {self.fixed}" if self.fixed else ""
        )

    @property
    def description(self) -> str:
        """The ends of each line in words, for who can't see them."""
        ends = (
            f"{label}: from {_text(first)} to {_text(last)}"
            for label, first, last in zip(
                self.lines, self.results[0], self.results[-1], strict=True
            )
        )
        return (
            f"{_words(self.x.name)} from {self.x.texts[0]} to {self.x.texts[-1]}. "
            + "; ".join(ends)
            + "."
        )

    def _ipython_display_(self) -> None:
        from .page import figure

        if (
            self.x.named
            or len(self.results) <= LONGEST_TABLE
            or len(self.lines) > MOST_LINES
            or len(set(self.units)) > 1
        ):
            self.table()
        else:
            figure(self.chart(), self.caption, self.description)


def sweep(law: Callable[..., Any], field: str = "", /, **arguments: Any) -> Sweep:
    """The `Sweep` of a law: arguments given as a list, range, array or dict (name -> value) are
    varied, the others held.

    With two of them the first runs along the axis and each value of the second is a line. Of a law
    with several answers `field` picks one; left out, and with one argument varied, all are shown.

    Raises TypeError for none or more than two ranges; what the law refuses, it refuses here.
    """
    ranges = {
        name: _swept(law, name, value) for name, value in arguments.items() if _is_range(value)
    }
    if len(ranges) not in (1, 2):
        raise TypeError(
            f"sweep: {len(ranges)} arguments of {law.__name__} are ranges: expected one or two,"
            " such as a list or a dict name -> value"
        )
    constants = {name: value for name, value in arguments.items() if name not in ranges}
    x, *second = ranges.values()
    across: list[tuple[str, dict[str, Any]]] = [("", {})]
    if second:
        across = [
            (f"{_words(second[0].name)} {text}", {second[0].name: value})
            for text, value in zip(second[0].texts, second[0].values, strict=True)
        ]
    rows = [
        [law(**constants, **more, **{x.name: value}) for _, more in across] for value in x.values
    ]
    lines = tuple(label or _words(law.__name__) for label, _ in across)
    units = (_unit(law, field),) * len(across)
    if is_dataclass(rows[0][0]):
        names = [f.name for f in fields(rows[0][0])]
        if field:
            one_of(law.__name__, "field", field, names)
            rows = [[getattr(result, field) for result in row] for row in rows]
        elif second:
            raise TypeError(
                f"sweep: {law.__name__} has several answers: say which, as sweep({law.__name__},"
                f" {names[0]!r}, ...)"
            )
        else:
            rows = [[getattr(row[0], name) for name in names] for row in rows]
            lines, units = tuple(map(_words, names)), tuple(_unit(law, name) for name in names)
    fixed = ", ".join(
        f"{_words(name)} {_argument_text(law, name, value)}" for name, value in constants.items()
    )
    name = f"{law.__name__}: {field}" if field else law.__name__
    return Sweep(name, fixed, x, lines, units, tuple(map(tuple, rows)))


def _is_range(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        or (isinstance(value, Sequence) and not isinstance(value, str))
        or getattr(value, "ndim", 0) == 1
    )


def _swept(law: Any, name: str, items: Any) -> Swept:
    has_names = isinstance(items, Mapping)
    values = tuple(
        items.values() if has_names else items.tolist() if hasattr(items, "tolist") else items
    )
    if not values:
        raise ValueError(f"sweep: {name} is an empty range")
    texts = (
        tuple(map(str, items))
        if has_names
        else tuple(_argument_text(law, name, value) for value in values)
    )
    spec = law.arguments.get(name)
    return Swept(
        name,
        spec.unit if isinstance(spec, Argument) else "",
        texts,
        values,
        has_names or isinstance(values[0], str),
    )


def _argument_text(law: Any, name: str, value: Any) -> str:
    spec = law.arguments.get(name)
    return (
        value
        if isinstance(value, str)
        else _text(with_unit(value, spec.unit) if isinstance(spec, Argument) else value)
    )


def _unit(law: Any, field: str) -> str:
    return law.returns.get(field, "") if isinstance(law.returns, dict) else str(law.returns)


def _text(value: Any) -> str:
    if isinstance(value, (Amount, Whole)):
        return si(value, value.unit)
    return str(value) if isinstance(value, (bool, str)) else plain(value)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _finite(value: Any) -> bool:
    return abs(value) != float("inf")


def _scale(values: Sequence[Any]) -> str:
    """Logarithmic where the values are above zero and span more than a factor of a hundred."""
    return "log" if min(values) > 0 and max(values) > 100 * min(values) else "linear"
