"""Gradebooks without a sandbox: answers are judged by the same `diagnose` that the grader calls."""

import html.parser

from lightspeed_class.notebooks import Assignment
from lightspeed_class.score import Graded, Score
from lightspeed_course.practice.check import diagnose
from lightspeed_course.practice.questions import question
from lightspeed_course.workspace import course_root

RECORD = {
    "isolation": "bubblewrap 0.8.0",
    "submission": "f" * 64,
    "secret": "5ec7e7" * 10,
    "grader": "9" * 64,
}
ROOFLINE = course_root() / "exercises" / "02_roofline.ipynb"
OUT_OF = len(Assignment.of(ROOFLINE).points)  # one point a question
VOID = {"meta", "br", "wbr", "hr", "path", "use", "rect", "col", "input", "img"}


def assignment_of(*questions, name="02_roofline"):
    return Assignment(name, {f"cell{i}": ((q, "answer"),) for i, q in enumerate(questions)})


def right(id, seed=None):
    variant = question(id).variant(seed)
    return answer(variant, variant.right)


def wrong(id, number=0, seed=None):
    """What a misconception answers."""
    variant = question(id).variant(seed)
    misconception = variant.question.misconceptions[number % len(variant.question.misconceptions)]
    return answer(variant, variant.wrong(misconception))


def times(id, factor, seed=None):
    variant = question(id).variant(seed)
    return answer(variant, variant.right * factor)


def answer(variant, values):
    if variant.question.kind == "choice":
        return values
    if variant.question.kind == "function":
        known = {
            tuple(variant.inputs(s).values()): float(v)
            for s, v in zip(variant.samples, values, strict=True)
        }
        return lambda *inputs: known[inputs]
    return tuple(float(v) for v in values) if len(values) > 1 else float(values[0])


def score(id, given, seed=None, out_of=1.0):
    verdict = diagnose(question(id).variant(seed), given)
    return Score(
        id,
        out_of * verdict.correct,
        out_of,
        verdict.kind,
        verdict.name,
        verdict.message,
        verdict.given,
        "check" if given is not ... else "",
    )


def graded(answers, seed=None, status="ok", notes=(), points=None):
    """`answers`: question -> what was answered."""
    scores = tuple(
        score(id, given, seed, (points or {}).get(id, 1.0)) for id, given in answers.items()
    )
    return Graded(status, scores, tuple(notes), {**RECORD, "seed": seed})


class Page(html.parser.HTMLParser):
    """What a page holds: tags with attributes, what closes, text by section and in all."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.sections, self.text, self.here = [], [], {}, "", None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "section":
            self.here = dict(attributes)["id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"
        if tag == "section":
            self.here = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            return
        self.text += data
        if self.here:
            self.sections[self.here] = self.sections.get(self.here, "") + data

    def check(self):
        """Well formed, for screen readers too, and unable to fetch or to run anything."""
        assert not self.open
        names = [tag for tag, _ in self.tags]
        assert not {
            "script",
            "iframe",
            "object",
            "embed",
            "img",
            "link",
            "form",
            "base",
            "audio",
            "video",
        } & set(names)
        assert dict(self.tags)["html"]["lang"] == "en"
        assert names.count("h1") == 1
        assert names.count("title") >= 1
        for _, attributes in self.tags:
            assert not any(name.startswith("on") for name in attributes)
            assert all(
                attributes[name].startswith("#")
                for name in ("href", "src", "xlink:href")
                if name in attributes
            )
        policies = [
            a["content"]
            for tag, a in self.tags
            if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
        ]
        assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
        return self
