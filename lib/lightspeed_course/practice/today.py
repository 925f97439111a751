"""today: the desk on a page: what is due and what comes next, and ten minutes of it."""

import time

from lightspeed_course.practice import desk
from lightspeed_course.practice.ask import SOLUTION, fields_of, read_answer
from lightspeed_course.practice.forms import Panel, as_html, unread
from lightspeed_course.practice.parse_answer import Unreadable

LEAVE = "Leave it for now"


def today(placement=False, clock=time.time):
    """The desk, as the last value of a cell: ten questions, of what is due and what comes next,
    with fresh numbers. `placement` asks ten others first, to find out what you know.
    """
    return Today(placement, clock)


class Today(Panel):
    """A question, its verdict, the next question. The second button shows the worked solution."""

    def __init__(self, placement, clock):
        self.clock, self.answered = clock, False
        self.sitting = desk.Sitting(clock, placement, cells=True)
        static = (
            "**Today.** Run this cell: it asks what is due and what comes next, with fresh numbers,"
            " in about ten minutes."
        )
        super().__init__("", [], self._step, extra=" ", on_extra=self._solve, static=static)
        self._draw()

    def _step(self, values):
        variant = self.sitting.variant
        if self.answered or variant is None:
            self.answered = False
            self.sitting.advance()
            self._draw()
            return "", "The next question." if self.sitting.variant else "Done for today.", "plain"
        if variant.question.kind == "function":
            return self._checked()
        try:
            verdict = self.sitting.answer(read_answer(variant.question, values))
        except Unreadable as problem:
            return unread(problem)
        if verdict.kind in ("unanswered", "type"):
            return verdict._repr_markdown_(), repr(verdict), "bad"
        self.answered = True
        self.form.action = "Next"
        self.form.extra_enabled = not self.sitting.placement
        again = "" if verdict.correct or self.sitting.placement else self._again(variant)
        look = "good" if verdict.correct else "bad"
        return f"{verdict._repr_markdown_()}{again}", repr(verdict), look

    def _checked(self):
        """What the cell that was written has been found to be."""
        right = self.sitting.checked()
        if right is None:
            return "**Not checked yet.** Run the cell that checks it.", "Not checked yet.", "bad"
        self.answered, self.form.action, self.form.extra = True, "Next", ""
        if right:
            return "**Right.**", "Right.", "good"
        return "**Not right yet.** It comes back another day.", "Not right yet.", "bad"

    def _again(self, variant):
        later = variant.question.id in self.sitting.queue
        return "\n\n*It comes again at the end, with other numbers.*" if later else ""

    def _solve(self):
        if self.form.extra == LEAVE:
            self.sitting.advance()
            self._draw()
            return "", "Left for another day.", "plain"
        self.sitting.shown()
        solution = self.sitting.variant.solution
        return f"**A worked solution**\n\n{solution}", "A worked solution is shown.", "plain"

    def _draw(self):
        heading, lines = desk.told(self.clock())
        variant, form = self.sitting.variant, self.form
        form.extra, form.extra_enabled = (SOLUTION if variant else ""), False
        bullets = "\n".join(f"- {line}" for line in lines)
        if variant is None:
            self.prompt.value = as_html(f"**Done for today.** {heading}\n\n{bullets}")
            form.fields, form.action = [], ""
            return
        q = variant.question
        prompt = variant.fill(q.prompt) if q.kind == "choice" else variant.prompt
        if q.kind == "function":
            prompt += f'\n\nWrite it in a cell, run `check("{q.id}", its_name)` there, then go on.'
            form.fields, form.action, form.extra, form.extra_enabled = [], "Go on", LEAVE, True
        else:
            form.fields, form.action = fields_of(variant), "Check"
        self.prompt.value = as_html(f"*{heading}*\n\n{bullets}\n\n**{q.title}.** {prompt}")
