"""Where live things are shown: as widgets in Jupyter, as parts of a page in the web edition.

A host makes four things, and each takes what is set on it to the reader's screen: `chart(frame,
content, receive)`, `form(receive, **state)`, `text(html)` and `stack(parts)`. `receive` is called
with each message of the reader's; `below(stack, part)` puts one more part at its end. Below the
cell that runs it shows what does not change:
`display(bundle)`, mime type -> text, and `picture(charts, alt, svg)`, where `svg()` draws what is
none of our charts too.
"""

WIDGET = "application/vnd.jupyter.widget-view+json"
_here = {}


def use(host):
    """Show live things through this host from now on."""
    _here["host"] = host


def here():
    """The host of this process: Jupyter, unless another was set."""
    if "host" not in _here:
        from lightspeed_show import jupyter

        _here["host"] = jupyter
    return _here["host"]


def widget_view(model_id):
    """The part of a bundle by which Jupyter shows a live widget."""
    return {WIDGET: {"version_major": 2, "version_minor": 0, "model_id": model_id}}
