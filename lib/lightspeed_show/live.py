"""The live renderer: one anywidget that holds controls and charts. The law stays in Python; the
browser draws what it is sent.

The controls are part of the widget instead of ipywidgets beside it: ipywidgets sends one change and
waits until the kernel is idle again before the next, which in a stock Jupyter server (no
TCP_NODELAY on its sockets) means 10 redraws a second. See view.js, and server.py.
"""

from pathlib import Path

import anywidget
import traitlets

_HERE = Path(__file__).parent


class ChartView(anywidget.AnyWidget):
    """`frame` (controls, caption, alt) is sent once; `content` is a message and a redraw each."""

    _esm = (_HERE / "view.js").read_text("utf-8")
    _css = (_HERE / "view.css").read_text("utf-8")
    frame = traitlets.Dict().tag(sync=True)
    content = traitlets.Dict().tag(sync=True)


def answer_while_cells_run(widget):
    """Let this widget hear the browser while a cell is busy (subshells): ipykernel answers where it
    spoke last, which is at first the shell that runs cells.
    """
    if widget.comm is not None:
        widget.comm._reply_subshell_for = None
