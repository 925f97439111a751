"""What every practice widget is made of: a prompt, a form, and a reply in words, shown as one mime
bundle.

The live widget is for a running kernel; the same output carries the prompt in Markdown, for GitHub,
for a reader without a kernel, and for the comparison of committed notebooks.
"""

from __future__ import annotations

import html
import traceback
from functools import cache
from pathlib import Path

import anywidget
import ipywidgets as W
import traitlets as t

from lightspeed_course.practice.amounts import unit_words
from lightspeed_course.show.live import answer_while_cells_run

HERE = Path(__file__).parent


class Form(anywidget.AnyWidget):
    """Fields ({label, unit, placeholder} or {label, options: [key, text] pairs}), a button and a
    second one; see form.js.
    """

    _esm = HERE / "form.js"
    _css = HERE / "form.css"
    fields = t.List().tag(sync=True)
    action = t.Unicode("Check").tag(sync=True)
    extra = t.Unicode("").tag(sync=True)
    extra_enabled = t.Bool(False).tag(sync=True)
    status = t.Unicode("").tag(sync=True)


class Panel:
    """A form between a prompt and the replies. `submit(values)` and `extra()` return replies.

    A reply is (Markdown, plain text, look), with look "good", "bad" or "plain".
    """

    def __init__(
        self, prompt, fields, submit, action="Check", extra="", on_extra=None, static=None
    ):
        self.static = prompt if static is None else static
        self.error = None
        self.prompt = W.HTMLMath(as_html(prompt))
        self.form = Form(fields=fields, action=action, extra=extra)
        self.reply, self.after = _reply(), _reply()
        self.box = W.VBox([self.prompt, self.form, self.reply, self.after]).add_class(
            "sol-practice"
        )
        self._handlers = {"submit": (self.reply, submit), "extra": (self.after, on_extra)}
        self.form.on_msg(self._receive)
        answer_while_cells_run(self.form)

    def enter(self, *values):
        """Do what a reader does who fills in the fields and presses Enter."""
        self._receive(self.form, {"event": "submit", "values": list(values)}, [])

    def press_extra(self):
        """Do what a reader does who presses the second button."""
        self._receive(self.form, {"event": "extra"}, [])

    def _receive(self, _form, content, _buffers):
        place, handler = self._handlers[content["event"]]
        arguments = [content["values"]] if content["event"] == "submit" else []
        try:
            markdown, plain, look = handler(*arguments)
            self.error = None
        # a fault of the course: the reader must see it, and tests look at .error
        except Exception as error:
            self.error = error
            markdown = (
                "**A fault in the course, not in your"
                f" answer.**\n\n```\n{''.join(traceback.format_exception(error))}\n```"
            )
            plain, look = "A fault in the course, not in your answer.", "bad"
        show(place, markdown, look)
        self.form.status = plain

    def _repr_mimebundle_(self, **_):
        return {
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.box.model_id,
            },
            "text/markdown": self.static,
            "text/plain": self.static,
        }


class Words:
    """A result in words: Markdown where it can be drawn, the same as text elsewhere."""

    def __init__(self, markdown):
        self.markdown = markdown

    def _repr_markdown_(self):
        return self.markdown

    def __repr__(self):
        return self.markdown


def number_field(unit="", label="Your answer"):
    return {"label": label, "unit": unit_words(unit), "placeholder": "such as 1.5e6 or 2/3"}


def unread(problem):
    """The reply to something typed that cannot be judged (an Unreadable)."""
    heading = "Not answered." if problem.kind == "unanswered" else "Not read."
    return f"**{heading}** {problem.message}", f"{heading} {problem.message}", "bad"


def show(place, markdown, look):
    """Put a reply into its place; an empty one leaves no trace."""
    for name in ("good", "bad", "plain", "empty"):
        place.remove_class(f"sol-{name}")
    place.add_class(f"sol-{look if markdown else 'empty'}")
    place.value = as_html(markdown) if markdown else ""


def _reply():
    return W.HTMLMath().add_class("sol-reply").add_class("sol-empty")


@cache
def _markdown():
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def untouched(formula, options):
        mark = "$$" if options["display_mode"] else "$"
        return f"{mark}{html.escape(formula)}{mark}"

    return (
        MarkdownIt("commonmark", {"html": False})
        .enable("table")
        .use(dollarmath_plugin, double_inline=True, renderer=untouched)
    )


def as_html(markdown):
    """Markdown as HTML in the page's own typography; formulas are left for the page to typeset."""
    return f"<div class='jp-RenderedHTMLCommon'>{_markdown().render(markdown)}</div>"
