"""An incident as a question: in an exercise, and in a notebook that a class was given.

    ask("incident.training")
    answer = {"bought": ["profile"], "cause": ..., "fix": ...}
    check("incident.training", answer)

The answer is plain: what was bought, in order, then the cause and the number of the fix. Running
`check` shows what was bought. In a notebook of a class there is no truth to be looked up: it holds
a sheet, which has the brief and what each measurement shows, and the grader alone knows what was
drawn (lightspeed_class/posed.py). Nothing can make a reader of the sheet pay, though: what a
notebook lists as bought is the word of its author.
"""

import base64
import hashlib
import json
import re
import textwrap
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from lightspeed.errors import nearest
from lightspeed_course.incidents import policy
from lightspeed_course.incidents.incident import CASES, incident_of
from lightspeed_course.incidents.score import WRONG, score
from lightspeed_course.incidents.setting import Setting, grid
from lightspeed_course.practice.typed import Unreadable

INCIDENT = "incident"  # whose questions practice/questions.py looks up here
SETTINGS = {setting.id: setting for setting, _ in CASES}
PARTS = ("bought", "cause", "fix")
EMPTY = '{"bought": [], "cause": ..., "fix": ...}'
ID = re.compile(rf"{INCIDENT}\.({'|'.join(SETTINGS)})(_[1-9]\d?)?")


@dataclass(frozen=True)
class Question:
    """`incident.training`, `.serving` or `.engine`; `incident.training_2` is another one of
    its kind. It has of a bank's question what an assignment asks of one.
    """

    id: str
    kind: str = INCIDENT
    level: str = ""  # not one that the desk repeats
    unit: str = ""
    names: tuple = ()
    smaller: str = ""
    why: str = ""

    @property
    def setting(self):
        return SETTINGS[ID.sub(r"\1", self.id)]

    def variant(self, seed=None):
        """The incident that a seed draws; the same for everybody without one."""
        rng = f"{self.id}\n{'' if seed is None else seed}"
        cause = _drawn(rng, self.setting.causes)
        case = incident_of(hashlib.sha256(rng.encode()).hexdigest(), self.setting, cause)
        sheet = Sheet(
            self.setting.id, policy.brief(case), {m.id: case.show(m.id) for m in _sold(case)}
        )
        return Variant(self, seed, sheet, case)


def _drawn(seed, options):
    return options[hashlib.sha256(f"cause\n{seed}".encode()).digest()[0] % len(options)]


def _sold(case):
    return case.setting.measurements


@dataclass(frozen=True)
class Sheet:
    """What a learner may see of an incident: its brief, and by measurement what it shows."""

    setting: str
    brief: str
    readings: Mapping[str, str]

    def sealed(self):
        """Encode the sheet as text for a cell."""
        data = zlib.compress(json.dumps(asdict(self), sort_keys=True).encode(), 9)
        return textwrap.fill(base64.b64encode(data).decode(), 96)

    @classmethod
    def unsealed(cls, text):
        """Decode a sealed sheet. Raises ValueError for any other text."""
        try:
            data = base64.b64decode("".join(text.split()), validate=True)
            return cls(**json.loads(zlib.decompress(data)))
        except (ValueError, TypeError, AttributeError, zlib.error):
            raise ValueError(
                "incident_sheet: this is not the text that the notebook was released with; expected"
                " the cell as it was. Copy it from the file that you were given."
            ) from None


sheets: dict[str, Sheet] = {}  # question id -> what the notebook that runs here was given


def incident_sheet(id, text):
    """Take the sheet that a released notebook holds; `ask` and `check` go by it from now on."""
    sheets[incident_question(id).id] = Sheet.unsealed(text)


@dataclass(frozen=True)
class Answer:
    """What was bought, in order and each once; cause and fix by id, "" if they are not named."""

    bought: tuple[str, ...]
    cause: str
    fix: str


@dataclass(frozen=True)
class Variant:
    """An incident that is asked. `case` is the hidden incident: None if only a sheet is known."""

    question: Question
    seed: str | None
    sheet: Sheet
    case: Any

    @property
    def setting(self) -> Setting:
        return SETTINGS[self.sheet.setting]

    @cached_property
    def prompt(self):
        setting = self.setting
        rows = [
            (f"`{m.id}`", m.price, m.name)
            for m in sorted(setting.ordered("measurements"), key=lambda m: m.price)
            if m.id in self.sheet.readings  # one that was released may be older than a measurement
        ]
        causes = "\n".join(f"- `{c.id}`: {c.name}" for c in setting.ordered("causes"))
        fixes = "\n".join(f"{n}. {c.fix}" for n, c in enumerate(setting.fixes, 1))
        return "\n\n".join(
            (
                self.sheet.brief,
                "**Measurements**, each for its minutes:",
                grid(("to buy", "min", "what it is"), rows),
                f"**Causes**\n\n{causes}",
                f"**Fixes**\n\n{fixes}",
                f"*Answer with `{EMPTY}`. Put what you buy into `bought`, one after the other, and"
                " run `check`: it shows what you bought. Then give a cause, in quotation marks, and"
                " the number of a fix. The cause counts most, then the fix, then how little you"
                " paid for knowing; a guess earns what a guess is worth.*",
            )
        )

    def read(self, answer):
        """The `Answer` that was given. Raises Unreadable, never in the author's (hostile) words."""
        if answer is None or answer is Ellipsis:
            raise Unreadable("unanswered", f"Put your answer in place of the dots: `{EMPTY}`.")
        if type(answer) is not dict or not set(answer) <= set(PARTS) or "bought" not in answer:
            raise Unreadable("type", f"Answer with a dict of three parts: `{EMPTY}`.")
        purchases = answer["bought"]
        if purchases is None or purchases is Ellipsis:
            purchases = []
        if type(purchases) not in (list, tuple) or len(purchases) > 64:
            raise Unreadable("type", '`bought` is a list of measurements, such as `["profile"]`.')
        ids = [m.id for m in self.setting.measurements if m.id in self.sheet.readings]
        purchases = [_one_of(ids, "measurement", id) for id in purchases]
        cause, fix = answer.get("cause"), answer.get("fix")
        causes = [c.id for c in self.setting.causes]
        cause = "" if cause in (None, ...) else _one_of(causes, "cause", cause)
        if fix in (None, ...):
            return Answer(tuple(dict.fromkeys(purchases)), cause, "")
        fixes = self.setting.fixes
        if type(fix) is float and fix.is_integer():
            fix = int(fix)
        if type(fix) is not int or not 1 <= fix <= len(fixes):
            raise Unreadable("type", f"`fix` is the number of a fix, from 1 to {len(fixes)}.")
        return Answer(tuple(dict.fromkeys(purchases)), cause, fixes[fix - 1].id)

    def words(self, answer):
        """Describe an `Answer` without grading it."""
        minutes = sum(self.setting.measurement(id).price for id in answer.bought)
        fix = [c.id for c in self.setting.fixes].index(answer.fix) + 1 if answer.fix else "none"
        purchases = ", ".join(answer.bought) or "nothing"
        return f"bought {purchases} ({minutes} min); cause {answer.cause or 'none'}; fix {fix}"

    def shown(self, answer):
        """What was bought, as `check` shows it."""
        parts = [
            f"**{self.setting.measurement(id).name}**\n\n{self.sheet.readings[id]}"
            for id in answer.bought
        ]
        minutes = sum(self.setting.measurement(id).price for id in answer.bought)
        return "\n\n".join([*parts, f"Paid so far: {minutes} min."])

    def judge(self, answer):
        """(cause and fix right?, share of the points, words), which name nothing unanswered."""
        other = next(c.id for c in self.setting.causes if c is not self.case.cause)
        s = score(self.case, answer.bought, answer.cause, answer.fix or other)
        if not s.cause:
            return False, 0.0, "The cause is another one. What would each measurement look like?"
        lines = ["The cause is right."]
        wrong = "The fix is another one." if answer.fix else "No fix is named."
        lines.append("The fix is right." if s.fix else wrong)
        lines.append(
            f"You paid {s.minutes} min; the policy that is cheapest on average over all causes pays"
            f" {s.best} here."
        )
        if not s.proved:
            lines.append("What you bought left another cause possible, so this was a guess.")
        if s.wrong and s.proved:
            lines.append(
                f"Nothing that was still possible would have shown anything else in"
                f" {', '.join(f'`{id}`' for id in s.wrong)}: {WRONG} points off each."
            )
        return s.fix, s.points / 100, f"{' '.join(lines)} {s.points} of 100."


def _one_of(options, what, value):
    if type(value) is not str:
        raise Unreadable("type", f"Name a {what} in quotation marks: {', '.join(options)}.")
    if value.strip() in options:
        return value.strip()
    near = nearest(value, options)
    hint = f"did you mean {near!r}?" if near else f"they are {', '.join(options)}."
    raise Unreadable("type", f"There is no such {what}; {hint}")


def incident_question(id):
    """Return the question with this id. Raises LookupError, listing the known ids."""
    if not isinstance(id, str) or not ID.fullmatch(id):
        kinds = " and ".join(f"{INCIDENT}.{name}" for name in SETTINGS)
        raise LookupError(f"there are {kinds}, and {INCIDENT}.training_2 for another one of a kind")
    return Question(id)


def here(id, seed=None):
    """The incident as the notebook that runs here has it: of its sheet, else the seed's."""
    q = incident_question(id)
    return Variant(q, seed, sheets[id], None) if id in sheets else q.variant(seed)
