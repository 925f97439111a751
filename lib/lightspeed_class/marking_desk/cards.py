"""What the desk shows: the queue, and a card for each student and question.

All that comes out of a notebook is anybody's: it leaves here as text, or as the bytes of a picture.
"""

import base64
import binascii
import re
from dataclasses import dataclass

from lightspeed_class.notebooks import homes, text_of
from lightspeed_class.prose import written
from lightspeed_class.score import BY_HAND

ORDERS = ("question", "student")
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/svg+xml")
PLAIN = ("text/plain", "text/markdown", "text/latex")
MOST_OUTPUTS, LARGEST_PICTURE = 20, 4 << 20
OF_CELL = re.compile(r"Code cell (\d+) ")
TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Place:
    """A card's place in the queue. `state`: "by hand", "right", "not graded" or "to mark";
    `together`: other students who handed in the same notebook.
    """

    student: str
    question: str
    state: str
    together: tuple[str, ...] = ()


def queue(results, assignment, order, requests=()):
    """Return the places of students whose submission counts, ordered by question or student; one
    student stands for a group. `requests`: (student, question) pairs to be reviewed again.
    """
    notebooks = {}
    for r in results:
        if r.submission and not r.excused:
            notebooks.setdefault(r.submission.id, []).append(r)
    ids = dict.fromkeys([*assignment.points, *(q for rs in notebooks.values() for q in rs[0].now)])
    pairs = (
        [(rs, q) for q in ids for rs in notebooks.values()]
        if order == "question"
        else [(rs, q) for rs in notebooks.values() for q in ids]
    )
    return [_place(rs, q, requests) for rs, q in pairs if q in rs[0].now]


def _place(results, question, requests):
    ids = [r.student.id for r in results]
    states = [
        "to mark" if (r.student.id, question) in requests else state(r, question) for r in results
    ]
    worst = "to mark" if "to mark" in states else states[0]
    return Place(ids[0], question, worst, tuple(ids[1:]))


def state(result, question):
    score, manual = result.scores.get(question), result.manual.get(question)
    if manual and manual.points is not None:
        return "by hand"
    if not score:
        return "not graded"
    return "right" if score.kind == "right" else "to mark"


def mistake(result, question):
    """Return what equally wrong answers share, whatever the numbers: a kind and a name or, without
    a name, the answer as read; None if the grader did not mark it wrong.
    """
    score = result.scores.get(question)
    if not score or score.kind in ("right", "refused", BY_HAND):
        return None
    return score.kind, score.name or score.given, score.points


def mistakes(results, question):
    """Return mistake -> its unmarked results, the most common mistake first."""
    by_mistake = {}
    for result in results:
        waits = state(result, question) == "to mark" and not result.excused
        if waits and (key := mistake(result, question)):
            by_mistake.setdefault(key, []).append(result)
    return dict(sorted(by_mistake.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def around(places, student, question):
    """Return (number from 1, place before, place after, next place to mark); None where there is
    none. Raises KeyError for a place that is not in the queue.
    """
    here = [
        i
        for i, p in enumerate(places)
        if student in (p.student, *p.together) and p.question == question
    ]
    if not here:
        raise KeyError(question)
    at = here[0]
    later = places[at + 1 :] + places[:at]
    return (
        at + 1,
        places[at - 1] if at else None,
        places[at + 1] if at + 1 < len(places) else None,
        next((p for p in later if p.state == "to mark"), None),
    )


def work(cells, assignment=None, question=None):
    """Return [{kind, number, source, outputs}] of a question's cells and prose; or of all."""
    code = [i for i, cell in enumerate(cells) if cell.kind == "code"]
    places = [*range(len(cells))]
    if question and question in assignment.prose:
        places = written(cells, assignment.prose[question])
    elif question:
        at = [(cells[i].id, cells[i].source) for i in code]
        asking = [code[number] for number in homes(question, assignment, at)]
        places = sorted({near for i in asking for near in _beside(cells, i)})
    numbers = {i: number for number, i in enumerate(code, 1)}
    return [
        {
            "kind": cells[i].kind,
            "number": numbers.get(i),
            "source": cells[i].source,
            "outputs": _outputs(cells[i].outputs),
        }
        for i in places
    ]


def notes_of(result, cells):
    """Return (notes on the run as a whole or on these cells, number of notes on others)."""
    notes = result.grading.graded.notes if result.grading else ()
    numbers = {cell["number"] for cell in cells}
    at = [OF_CELL.match(note) for note in notes]
    here = [note for note, m in zip(notes, at, strict=True) if not m or int(m[1]) in numbers]
    return here, len(notes) - len(here)


def _beside(cells, at):
    """A cell and the prose that touches it."""
    first = last = at
    while first and cells[first - 1].kind == "markdown":
        first -= 1
    while last + 1 < len(cells) and cells[last + 1].kind == "markdown":
        last += 1
    return range(first, last + 1)


def _outputs(outs):
    """[{text}] or [{picture, type}] or [{text, html}] of outputs, which may be of any shape."""
    views = [view for one in outs[:MOST_OUTPUTS] if isinstance(one, dict) for view in _shown(one)]
    more = len(outs) - MOST_OUTPUTS
    return views + [{"text": f"… and {more} outputs more"}] * (more > 0)


def _shown(one):
    """What one output shows, in the first form of which there is something."""
    data = one.get("data") if isinstance(one.get("data"), dict) else {}
    for kind in PICTURES:
        if picture := _picture(kind, text_of(data.get(kind))):
            return [{"picture": picture, "type": kind}]
    lines = one.get("traceback")
    ends = [f"{line}\n" for line in lines] if isinstance(lines, list) else None
    texts = [text_of(value) for value in (one.get("text"), ends, *map(data.get, PLAIN))]
    views: list[dict] = [{"text": TERMINAL.sub("", text)} for text in texts if text][:1]
    if markup := text_of(data.get("text/html")):
        views.append({"text": markup, "html": True})
    return views


def _picture(kind, text):
    """The picture in base64, of characters that are nothing else; "" if it is none."""
    if not text or len(text) > LARGEST_PICTURE:
        return ""
    if kind == "image/svg+xml":
        return base64.b64encode(text.encode("utf-8", "replace")).decode()
    try:
        return base64.b64encode(base64.b64decode("".join(text.split()), validate=True)).decode()
    except (binascii.Error, ValueError):
        return ""
