"""A notebook with cells of the instructor's own, ready to be released, alone or behind an exercise.

It holds cells like those of any exercise: an instructor may edit them, or put them into a notebook
of their own.
"""

import json

from lightspeed_class.class_folder import ClassError, write_whole
from lightspeed_class.handout.release import find


def write_notebook(course, name, cells, beside=None):
    """Write (kind, id, source, tags) cells as NAME.ipynb into the class folder, after the cells of
    the notebook `beside` if given, and return its path. Raises ClassError.
    """
    before, metadata = [], {}
    if beside:
        source_path = find(beside)
        notebook = json.loads(source_path.read_text("utf-8"))
        before, metadata = notebook["cells"], notebook["metadata"]
        name = f"{source_path.stem}_{name}"
    path = course.root / f"{name}.ipynb"
    if path.exists():
        raise ClassError(f"{path} exists; delete it, or release it as it is")
    if twice := {cell["id"] for cell in before} & {id for _, id, _, _ in cells}:
        raise ClassError(f"{beside} has the cells {', '.join(sorted(twice))} already")
    whole = {
        "cells": [*before, *(_cell(*cell) for cell in cells)],
        "metadata": metadata,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    write_whole(path, (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode())
    return path


def _cell(kind, id, source, tags):
    empty = {"execution_count": None, "outputs": []} if kind == "code" else {}
    metadata = {"tags": tags} if tags else {}
    return {"cell_type": kind, "id": id, "metadata": metadata, "source": source, **empty}
