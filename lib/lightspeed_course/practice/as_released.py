"""Whether a question is asked here as it was in the notebook that a class released.

The course may have changed since, on the student's machine or on the instructor's. The notebook
holds of each question a fingerprint and the prompt (of one notebook for all, in which numbers are
drawn by an id, a fingerprint of what they are drawn from). Where these differ from what would be
asked here, nothing is diagnosed: it would be by other numbers than those that count.
"""

import json
import os
import textwrap

from lightspeed_course.practice.questions import is_ours

KEPT = "LIGHTSPEED_ASKED"
OWN = "own"


def course_version():
    """The version of the course that is installed."""
    from importlib.metadata import PackageNotFoundError, version  # a page would load e-mail for it

    try:
        return version("speed-of-light")
    except PackageNotFoundError:  # run from its files alone, as in the web edition
        return "unknown"


def pack(items):
    """As text for a notebook: variants, or the questions that they will be drawn from. Of an
    instructor's own questions there is no fingerprint: whoever has one could try answers by it.
    """
    import base64
    import zlib

    entries = {}
    for one in items:
        id = getattr(one, "question", one).id
        entries[id] = [fingerprint(one) if is_ours(id) else OWN, _prompt(one)]
    text = json.dumps({"course": course_version(), "asked": entries}).encode()
    return textwrap.fill(base64.b64encode(zlib.compress(text, 9)).decode(), 96)


def fingerprint(item):
    """Return equal hashes for what is graded alike: a variant, or a question with its draws."""
    if not hasattr(item, "question"):
        choices = {name: list(map(str, p.choices)) for name, p in item.parameters.items()}
        return _hash([fingerprint(item.variant()), choices])
    q, right = item.question, item.right
    right = right if q.kind == "choice" else [f"{value:.6g}" for value in right]
    return _hash([q.kind, item.prompt, q.unit, f"{q.tolerance:g}", sorted(item.options), right])


def otherwise(id, variant):
    """(prompt as released, what to know) if the notebook that runs here was released with another
    question; None if not, or if it was not released. `variant` draws what would be asked here, and
    raises LookupError where the course has no such question.
    """
    if not os.environ.get(KEPT):
        return None
    import base64  # for who is in a class alone: a page would load it for nothing
    import zlib

    release = json.loads(zlib.decompress(base64.b64decode(os.environ[KEPT])))
    if id not in release["asked"]:
        return None
    mark, prompt = release["asked"][id]
    if mark == OWN:
        return prompt, "This question is of your class alone: it is judged once it is handed in."
    try:
        here = variant()
        if mark == fingerprint(here if prompt else here.question):
            return None
    except (LookupError, ValueError):
        pass
    return prompt, (
        f"This notebook was released with another version of this question (course"
        f" {release['course']}; here is {course_version()}), and is judged by that one. So nothing"
        " is diagnosed here: your answer is judged once it is handed in."
    )


def _prompt(item):
    return item.prompt if hasattr(item, "question") else ""


def _hash(value):
    import hashlib

    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
