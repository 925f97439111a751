"""incident: the room on a page. Buy, read, buy again; then name cause and fix."""

import re

from lightspeed_course.incidents import policy
from lightspeed_course.practice import incident_session as session
from lightspeed_course.practice.forms import Panel, as_html, number_field

HOW = (
    "*Each measurement costs minutes, and more where the job stands still. Buy what tells you most,"
    " then name the cause and the fix."
    " You name them once. How many times better the fix makes the job is worth points, too.*"
)


def incident(seed=None, job=None):
    """An incident as a cell's last value: of this seed, or the first that you have not ended. With
    `job="week"` it befalls the course's own job. Raises ValueError for another job.
    """
    return Room(session.opened(seed, job))


class Room(Panel):
    """A form in two states, buying and naming; the second button changes between them."""

    def __init__(self, case):
        self.case, self.naming = case, False
        static = f"{policy.brief(case)}\n\n{HOW}"
        super().__init__("", [], self._submit, extra=" ", on_extra=self._turn, static=static)
        self._draw()

    def _submit(self, values):
        if "" in values[:2]:
            return "**Not answered.** Choose one of the options.", "Not answered.", "bad"
        if self.naming:
            gain = _number(values[2]) if len(values) > 2 and values[2] else None
            if gain is not None and not gain > 0:
                return "**Not a gain.** Expected a number such as 1.2.", "Not a gain.", "bad"
            fix = self.case.setting.fixes[int(values[1]) - 1].id
            words = session.name(self.case, values[0], fix, gain)
            self._draw()
            return words, re.sub(r"\]\([^)]*\)|[][*]", "", words), "plain"
        session.buy(self.case, values[0])
        self._draw()
        return "", f"Bought: {self.case.setting.measurement(values[0]).name}.", "plain"

    def _turn(self):
        self.naming = not self.naming
        self._draw()
        return "", "Name cause and fix." if self.naming else "Buy a measurement.", "plain"

    def _draw(self):
        """Prompt and form as the store has the incident: another lab may have gone on with it."""
        case, now, form = self.case, session.state(self.case), self.form
        minutes = case.minutes(now.bought)
        suspects = "\n".join(f"- {cause.name}" for cause in case.setting.ordered("causes"))
        parts = [policy.brief(case), HOW, f"**The suspects**\n\n{suspects}"]
        for id in now.bought:
            parts += [f"**{case.setting.measurement(id).name}**", case.show(id)]
        parts.append(f"**Paid so far: {minutes} min.**")
        self.prompt.value = as_html("\n\n".join(parts))
        form.extra_enabled = not now.named
        if now.named:
            form.fields, form.action, form.extra = [], "", ""
        elif self.naming:
            causes = [[c.id, c.name] for c in case.setting.ordered("causes")]
            fixes = [[str(n), c.fix] for n, c in enumerate(case.setting.fixes, 1)]
            form.fields = [
                {"label": "The cause", "options": causes},
                {"label": "The fix", "options": fixes},
                number_field(label=f"How many times {case.setting.paced}? It may stay empty"),
            ]
            form.action, form.extra = "Name cause and fix", "Buy more first"
        else:
            options = [
                [m.id, m.offer]
                for m in case.setting.ordered("measurements")
                if m.id not in {*now.bought, *policy.opening_findings(case)}
            ]
            form.fields = [{"label": "Measurements", "options": options}]
            form.action, form.extra = "Buy" if options else "", "I know the cause"


def _number(text):
    """A gain as it was typed; 0 for what is none."""
    try:
        return float(text.replace(",", ".").rstrip(" ×x"))
    except ValueError:
        return 0.0
