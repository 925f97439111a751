"""What students ask people to look at again: they write why into a cell of the notebook that their
feedback comes with, `collect` reads it, and the desk shows it until somebody has marked that card.
"""

import json
import re

from lightspeed_class.gradebook.records import standing
from lightspeed_class.notebooks import text_of

CELL = WHAT = "regrade"  # the id of the cell, and the first word of what the gradebook keeps
MOST = 2000  # characters of a reason
ASKS = """\
Was an answer misjudged? Write behind the name of its question why you think so, save, and hand in
this file. It replaces nothing that you handed in."""
LINE = re.compile(r"^[-* `]*([a-z]\w*\.\w+)`?[ \t]*:(.*)")


def request_notebook(name, student, questions, cells=()):
    """Return a notebook's bytes with these cells and a cell for the student's request."""
    source = "\n".join([ASKS, "", *(f"- `{question}`: " for question in questions)])
    cell = {"cell_type": "markdown", "id": CELL, "metadata": {}, "source": source}
    about = {"assignment": name, "student": student, WHAT: True}
    whole = {
        "cells": [*cells, cell], "metadata": {"lightspeed": about}, "nbformat": 4,
        "nbformat_minor": 5,
    }  # fmt: skip
    return (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode()


def requests_in(content, assignment):
    """Return question -> reason for review; None if the notebook is not a request."""
    try:
        notebook = json.loads(content.decode("utf-8-sig"))
        if notebook["metadata"]["lightspeed"].get(WHAT) is not True:
            return None
        if any(
            c["cell_type"] == "code" and c.get("id") in assignment.cells for c in notebook["cells"]
        ):
            return None  # a whole hand-in, whatever its metadata say
        cells = [c for c in notebook["cells"] if c["cell_type"] == "markdown"]
        text = "\n".join(text_of(c["source"]) or "" for c in cells if c.get("id") == CELL)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    reasons, question = {}, None
    for line in text.splitlines():
        if (match := LINE.match(line)) and match[1] in assignment.points:
            question, line = match[1], match[2]
        if question:
            reasons[question] = f"{reasons.get(question, '')}\n{line}".strip()[:MOST]
    return {question: words for question, words in reasons.items() if words}


def keep_requests(book, name, student, requests):
    """Save new requests; return their questions."""
    before = {(d.what, d.reason) for d in book.decisions(assignment=name) if d.student == student}
    new = {q: words for q, words in requests.items() if (f"{WHAT} {q}", words) not in before}
    for question, words in new.items():
        book.decide(f"{WHAT} {question}", student, name, "asked", words, student)
    return list(new)


def waiting(book, name):
    """Return (student, question) -> reason, for requests not yet marked or commented on."""
    times = {at: m.at for at, m in standing(book.manual(name)).items() if m.by != "release"}
    return {
        (d.student, question): d.reason
        for d in book.decisions(assignment=name)
        if (question := d.what.removeprefix(f"{WHAT} ")) != d.what
        and times.get((d.student, question), 0.0) < d.at
    }
