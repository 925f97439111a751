"""What a chapter shows: figures with a caption and a description in words, and tables."""

import html
from numbers import Real

from lightspeed.values import Amount, Whole

from .chart import Chart
from .format import plain, si
from .host import here


def figure(drawing, caption, alt):
    """Show a chart (several, or a matplotlib Figure) as SVG, with caption and description.
    `caption` says in a sentence (Markdown) what to see, `alt` what it shows.
    """
    caption, alt = words("figure", "caption", caption), words("figure", "alt", alt)
    here().picture(charts_of(drawing), alt, lambda: draw(drawing, caption, alt))
    here().display({"text/markdown": below(caption, alt), "text/plain": caption})


def draw(drawing, caption, alt):
    """The SVG of a chart, of several, or of a matplotlib Figure."""
    from . import static

    if charts := charts_of(drawing):
        return static.svg(charts, caption, alt)
    if hasattr(drawing, "savefig"):
        return static.svg_of(drawing, caption, alt)
    raise TypeError(
        f"figure: drawing = {drawing!r}: expected a Chart, a list of Charts or a matplotlib Figure"
    )


def charts_of(drawing):
    """The charts of a drawing: one, or several; none if it is something else."""
    drawing = (drawing,) if isinstance(drawing, Chart) else drawing
    several = isinstance(drawing, list | tuple) and all(isinstance(c, Chart) for c in drawing)
    return tuple(drawing) if several else ()


def below(caption, alt):
    """Caption and description as Markdown."""
    return (
        f"*{caption}*\n\n<details><summary>Description of the"
        f" figure</summary>{html.escape(alt)}</details>"
    )


def table(rows, columns, caption=""):
    """Show rows (as long as `columns`, or dicts) as a Markdown table. Strings stand as they are
    (`si`); numbers get three digits; columns of them are set right.
    """
    rows = [[row[name] for name in columns] if isinstance(row, dict) else list(row) for row in rows]
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(
                f"table: a row has {len(row)} cells, {row!r}: expected {len(columns)}, for"
                f" {', '.join(map(str, columns))}"
            )
    if not rows:
        raise ValueError("table: no rows")
    right = [all(_is_number(row[i]) for row in rows) for i in range(len(columns))]
    lines = [
        _row(columns),
        _row("---:" if flag else ":---" for flag in right),
        *(_row(map(_cell, row)) for row in rows),
    ]
    text = "\n".join(lines) + (f"\n\n*{words('table', 'caption', caption)}*" if caption else "")
    here().display({"text/markdown": text, "text/plain": text})


def words(function, name, text):
    """A required text: a string that says something."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(
            f"{function}: {name} = {text!r}: expected words; a figure without them is lost on some"
            " readers"
        )
    return text.strip()


def _is_number(cell):
    return isinstance(cell, Real) or (isinstance(cell, str) and cell[:1].isdigit())


def _cell(cell):
    if isinstance(cell, bool) or not isinstance(cell, Real):
        return str(cell)
    if isinstance(cell, Amount | Whole) and cell.unit:
        return si(cell, cell.unit)
    return f"{cell:,}" if isinstance(cell, int) else plain(float(cell))


def _row(cells):
    return (
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
    )
