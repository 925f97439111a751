"""Questions: data plus functions of the library, so that no answer is ever typed.

They are written as text, `content/<topic>.md`, which `question_text` reads;
`question("topic.name")` finds one by the prefix of its id. A learner meets a `Variant`: the
question with the canonical values of its parameters in self-study, with values drawn from a seed in
a class.
"""

import pkgutil
from functools import cache
from pathlib import Path

from lightspeed.errors import nearest
from lightspeed_course.practice.question_model import (
    INCIDENT,
    KINDS,
    LEVELS,
    Misconception,
    Parameter,
    Question,
)

__all__ = (
    "INCIDENT", "KINDS", "LEVELS", "Misconception", "Parameter", "Question", "UnknownQuestion",
    "bank", "is_ours", "load", "question", "register", "topics",
)  # fmt: skip

_registry: dict[str, Question] = {}
_own: dict[Path, list[str]] = {}  # files of one's own -> the questions that they gave


PUZZLE = "puzzle"  # the topic of kernels to write, of which the counting machine makes questions


class UnknownQuestion(LookupError):
    """No topic has a question with this id."""


def register(*questions):
    """Add questions to the registry."""
    for q in questions:
        if q.id in _registry:
            raise ValueError(f"question {q.id} is registered twice")
        _registry[q.id] = q


@cache
def _topics():
    folder = Path(__file__).parents[1] / "content"
    texts = {file.stem for file in folder.glob("*.md")}
    modules = (module.name for module in pkgutil.iter_modules([str(folder)]))
    return sorted(texts | {n.removesuffix("_questions") for n in modules if "_questions" in n})


def topics():
    """The course's topics, in the order of their first question's chapter."""
    return sorted(_topics(), key=lambda name: (min(q.chapter for q in bank(name)), name))


def is_ours(id):
    """Whether a question id belongs to the course's own topics, not to an instructor's file."""
    return id.partition(".")[0] in _topics()


@cache
def _of_course(topic):
    from lightspeed_course.practice.question_files import of_topic

    topic_questions = of_topic(topic)
    register(*topic_questions)
    return topic_questions


def bank(topic):
    """All questions of a topic, in the order of its file."""
    if topic in _topics():
        _of_course(topic)
    return [q for q in _registry.values() if q.id.partition(".")[0] == topic]


def load(path):
    """The questions of a file of one's own, from now on found by `question`; its Python is in the
    file of the same name that ends in .py, if there is one. Loaded again it takes the place of
    what it gave before. Raises QuestionError, which names file, line and what is expected, of all
    faults at once.
    """
    from lightspeed_course.practice.question_files import of_file
    from lightspeed_course.practice.question_proof import faults
    from lightspeed_course.practice.question_text import QuestionError

    file = Path(path).resolve()
    if not file.is_file():
        missing = "there is no such file; expected one such as energy.md"
        raise QuestionError(path, (1, missing))
    (pairs, wrong), mine = of_file(file), _own.get(file, ())
    for text, one in pairs:
        topic = one.id.partition(".")[0]
        if topic in topics():
            reason = "is a topic of the course; expected a name of your own before the dot"
            wrong.append((text.line, f"{topic} {reason}"))
        if one.id in _registry and one.id not in mine:
            wrong.append((text.line, f"another file has {one.id} already"))
        wrong += faults(text, one)
    wrong.refuse()
    for id in mine:
        del _registry[id]
    register(*(one for _, one in pairs))
    _own[file] = [one.id for _, one in pairs]
    return [one for _, one in pairs]


def question(id):
    """Return the question with this id. Raises UnknownQuestion, naming the nearest."""
    if str(id).partition(".")[0] == INCIDENT:  # of no text: a simulator makes them
        from lightspeed_course.practice.incident_question import incident_question

        try:
            return incident_question(id)
        except LookupError as error:
            raise UnknownQuestion(f"no question {id!r}: {error}") from None
    if str(id).partition(".")[0] == PUZZLE:
        from lightspeed_course.practice.puzzle_question import puzzle_question

        try:
            return puzzle_question(id)
        except LookupError as error:
            raise UnknownQuestion(f"no question {id!r}: {error}") from None
    if id in _registry:
        return _registry[id]
    by_id = {q.id: q for q in bank(str(id).partition(".")[0])}
    if id in by_id:
        return by_id[id]
    near = nearest(id, by_id)
    hint = f"did you mean {near!r}?" if near else f"topics are {', '.join(topics()) or 'none yet'}"
    raise UnknownQuestion(f"no question {id!r}: {hint}")
