"""What every practice widget is made of: a prompt, a form, and a reply in words, shown as one mime
bundle.

The live widget is for a running kernel; the same output carries the prompt in Markdown, for GitHub,
for a reader without a kernel, and for the comparison of committed notebooks.
"""

import html
import re
import traceback
from functools import cache

from lightspeed_course.practice.amounts import unit_words
from lightspeed_show.host import here, widget_view


class Panel:
    """A form between a prompt and replies, which `submit(values)`, `extra()` and `offer(label)`
    return: (Markdown or None to keep it, plain text, "good", "bad" or "plain").
    """

    def __init__(
        self,
        prompt,
        fields,
        submit,
        action="Check",
        extra="",
        on_extra=None,
        static=None,
        on_offer=None,
    ):
        self.static = prompt if static is None else static
        self.error = None
        host = here()
        self.prompt = host.text(as_html(prompt))
        self.form = host.form(self._receive, fields=fields, action=action, extra=extra)
        self.reply, self.after = _reply(host), _reply(host)
        self.box = host.stack([self.prompt, self.form, self.reply, self.after])
        self.box.add_class("sol-practice")
        self._handlers = {
            "submit": (self.reply, submit),
            "extra": (self.after, on_extra),
            "offer": (self.after, on_offer),
        }

    def enter(self, *values):
        """Submit the form, as pressing Enter does."""
        self._receive({"event": "submit", "values": list(values)})

    def press_extra(self):
        """Press the second button."""
        self._receive({"event": "extra"})

    def press_offer(self, label):
        """Press the button of an offer."""
        self._receive({"event": "offer", "label": label})

    def open(self, heading, content):
        """Open another panel, or words, below this one."""
        host = here()
        host.below(self.box, host.text(as_html(heading)))
        inner = content.box if hasattr(content, "box") else host.text(as_html(content.markdown))
        host.below(self.box, inner)

    def _receive(self, content):
        place, handler = self._handlers[content["event"]]
        arguments = [content[name] for name in ("values", "label") if name in content]
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
        if markdown is not None:
            show(place, markdown, look)
        self.form.status = plain

    def _repr_mimebundle_(self, **_):
        return {
            **widget_view(self.box.model_id),
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
    """Return the reply to input that cannot be graded (an Unreadable)."""
    heading = "Not answered." if problem.kind == "unanswered" else "Not read."
    return f"**{heading}** {problem.message}", f"{heading} {problem.message}", "bad"


def show(place, markdown, look):
    """Put a reply into its place; an empty one leaves no trace."""
    for name in ("good", "bad", "plain", "empty"):
        place.remove_class(f"sol-{name}")
    place.add_class(f"sol-{look if markdown else 'empty'}")
    place.value = as_html(markdown) if markdown else ""


def _reply(host):
    place = host.text()
    place.add_class("sol-reply")
    place.add_class("sol-empty")
    return place


@cache
def _markdown(own):
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def untouched(formula, options):
        mark = "$$" if options["display_mode"] else "$"
        return f"<span class='sol-math'>{mark}{html.escape(formula)}{mark}</span>"

    return (
        MarkdownIt("commonmark", {"html": own})
        .enable("table")
        .use(dollarmath_plugin, double_inline=True, renderer=untouched)
    )


def as_html(markdown, own=False):
    """Markdown as HTML in the page's typography; formulas are left to the page, a table's heading
    without words is none. HTML in it stands only if it is `own`.
    """
    markup = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", _markdown(own).render(markdown))
    return f"<div class='jp-RenderedHTMLCommon'>{markup}</div>"
