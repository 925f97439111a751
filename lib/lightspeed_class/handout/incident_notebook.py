"""A notebook that asks an incident, ready to be released, alone or behind an exercise.

It holds cells like those of any exercise: an instructor may edit them, or put them into a notebook
of their own.
"""

from __future__ import annotations

import json

from lightspeed_class.class_folder import CourseError, write_whole
from lightspeed_class.handout.release import find
from lightspeed_course.practice.questions import INCIDENT

CELLS = (
    (
        "markdown",
        "incident-{kind}-about",
        """\
# What slows this job down?

The job below is slower than its plan, for one reason that nobody has told you. Buy measurements,
as few as you can, then name the cause and the fix. What you buy, you list: an entry stays once you
have seen what it shows.""",
    ),
    (
        "code",
        "incident-{kind}-ask",
        'from lightspeed_course import ask, check\n\nask("{id}")',
    ),
    (
        "code",
        "incident-{kind}",
        """\
answer = {{
    "bought": [],  # measurements in quotation marks, in order; run this cell to see what they show
    "cause": ...,
    "fix": ...,  # its number
}}
check("{id}", answer)""",
    ),
)


def write(course, kind, beside=None):
    """Write the notebook into the folder of the class, with the cells of an exercise before it if
    one is named, and give its path. Raises CourseError.
    """
    cells, metadata, name = [], {}, f"{INCIDENT}_{kind}"
    if beside:
        found = find(beside)
        notebook = json.loads(found.read_text("utf-8"))
        cells, metadata = notebook["cells"], notebook["metadata"]
        name = f"{found.stem}_{name}"
    path = course.root / f"{name}.ipynb"
    if path.exists():
        raise CourseError(f"{path} exists; delete it, or release it as it is")
    cells += [_cell(kind, *cell) for cell in CELLS]
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    write_whole(path, (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode())
    return path


def _cell(kind, type, id, source):
    words = {"kind": kind, "id": f"{INCIDENT}.{kind}"}
    empty = {"execution_count": None, "outputs": []} if type == "code" else {}
    return {
        "cell_type": type,
        "id": id.format(**words),
        "metadata": {},
        "source": source.format(**words),
        **empty,
    }
