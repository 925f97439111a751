"""The host that Jupyter is: live things as widgets (see host.py)."""

from pathlib import Path

import anywidget
import ipywidgets as W
import traitlets as t

from lightspeed_show.layout import still
from lightspeed_show.live import ChartView, answer_while_cells_run

HERE = Path(__file__).parent


class Form(anywidget.AnyWidget):
    """Fields ({label, unit, placeholder} or {label, options: [key, text] pairs}), a button, a
    second one, and one for each of the labels in `offers`; see form.js.
    """

    _esm = HERE / "form.js"
    _css = HERE / "form.css"
    fields = t.List().tag(sync=True)
    action = t.Unicode("Check").tag(sync=True)
    extra = t.Unicode("").tag(sync=True)
    extra_enabled = t.Bool(False).tag(sync=True)
    offers = t.List().tag(sync=True)
    status = t.Unicode("").tag(sync=True)
    heard = t.Int(0).tag(sync=True)  # the last message that was answered


def chart(frame, content, receive):
    """Show controls above charts; `content` is replaced at each redraw."""
    return _heard(ChartView(frame=frame, content=content), receive)


def form(receive, **state):
    """Show a form with this state."""

    def heard(message):
        receive(message)
        instance.heard = message.get("turn", 0)

    instance = Form(**state)
    return _heard(instance, heard)


def _heard(widget, receive):
    widget.on_msg(lambda _widget, message, _buffers: receive(message))
    answer_while_cells_run(widget)
    return widget


def text(html=""):
    """A place for HTML and formulas, with `value` and classes."""
    return W.HTMLMath(html)


def stack(parts):
    """Stack the parts vertically."""
    return W.VBox(parts)


def below(stack, part):
    """One more part at the end of a stack."""
    stack.children = (*stack.children, part)


def display(bundle):
    """What does not change: mime type -> text."""
    from IPython.display import display

    display(bundle, raw=True)


def picture(charts, alt, svg):
    """A figure as SVG in HTML with its description; without matplotlib the same charts live."""
    from lightspeed_show import static

    if not charts or static.can_draw():
        display({"text/html": static.image(svg(), alt), "text/plain": alt})
        return
    frame, content = still(charts, alt)
    from IPython.display import display as show

    show(ChartView(frame=frame, content=content))
