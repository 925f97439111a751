"""Notebooks as the grader reads them: an assignment, which is ours, and submissions, which are
anybody's.

Of a submission the grader uses only the source and the id of code cells, and does not even look at
outputs and metadata; people see outputs on the desk.
"""

import ast
import json
import math
import os
import stat
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lightspeed_class.prose import Prose, prose_at

LARGEST = 16 << 20  # bytes of a notebook without what is stripped
LARGEST_FILE = 256 << 20  # bytes of what is read at all: the outputs of a notebook may be large
LONGEST_OUTPUT = 1 << 20  # bytes of a picture or a text that are kept of a large notebook
MOST_CELLS = 2000
KINDS = {"code": "code", "markdown": "markdown", "raw": "markdown"}
TOO_LARGE = f"It is larger than {LARGEST >> 20} MiB. Clear the outputs and hand it in again."
STRIPPED = "(an output of {:.0f} MB, left out where the notebook was taken in)"

# what one notebook for all shows in place of a prompt
TO_COME = "*Run the cells from the top, and this question is shown with your numbers.*"


class Refused(Exception):
    """A submission that cannot be graded; the message is for its author."""


@dataclass(frozen=True)
class Assignment:
    """The questions of a notebook: `cells` maps an exercise cell's id to its (question, variable)
    pairs; `prose` has the questions that people mark, without a variable.
    """

    name: str
    cells: Mapping[str, tuple]
    points: Mapping[str, float] = field(default_factory=dict)
    prose: Mapping[str, Prose] = field(default_factory=dict)

    def __post_init__(self):
        ids = dict.fromkeys(q for pairs in self.cells.values() for q, _ in pairs)
        object.__setattr__(self, "points", {q: float(self.points.get(q, 1)) for q in ids})

    @classmethod
    def of(cls, path, points=None):
        """Read the assignment of a released notebook or an exercise: its calls check("id",
        variable), and its prose. Raises ValueError for malformed prose.
        """
        path, cells, prose = Path(path), {}, {}
        raw_cells = json.loads(path.read_text("utf-8"))["cells"]
        for at, cell in enumerate(raw_cells):
            if prose_here := prose_at(raw_cells, at):
                if prose_here.id in prose:
                    raise ValueError(f"two cells ask {prose_here.id}; give one another name")
                prose[prose_here.id] = prose_here
                cells[cell["id"]] = ((prose_here.id, ""),)
            pairs = tuple(checks("".join(cell["source"]))) if cell["cell_type"] == "code" else ()
            if pairs:
                cells[cell["id"]] = pairs
        return cls(path.stem, cells, points or {}, prose)

    @property
    def judged(self):
        """The questions that the grader checks."""
        return [q for q in self.points if q not in self.prose]

    def functions(self, kinds):
        """Return question -> name of the function to write; `kinds`: question -> its kind."""
        pairs = (pair for pairs in self.cells.values() for pair in pairs)
        return {q: name for q, name in pairs if kinds.get(q) == "function"}


@dataclass(frozen=True)
class Cell:
    """A submitted cell: "code" or, with raw text too, "markdown"; `outputs` are not parsed."""

    kind: str
    id: str | None
    source: str
    outputs: list = field(default_factory=list)


def homes(question, assignment, cells):
    """Return the numbers of the code cells, (id, source) each, that ask the question."""
    for number, (id, source) in enumerate(cells):
        if question in dict(assignment.cells.get(id, ())) or (
            question in source and f'"{question}"' in source.replace("'", '"')
        ):
            yield number


def sources(cells, assignment, question):
    """Return the code of the cells that ask a question."""
    code = code_of(cells)
    return [code[number][1] for number in homes(question, assignment, code)]


def asks(source):
    """Return the questions that a cell shows, in order."""
    calls = [
        n
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "ask"
    ]
    return [c.args[0].value for c in calls if c.args and isinstance(c.args[0], ast.Constant)]


def checks(source):
    """Return (question, variable) of each call of check() in one of our cells."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", None) == "check"
            and len(node.args) == 2
        ):
            id, answer = node.args
            if isinstance(id, ast.Constant) and isinstance(answer, ast.Name):
                yield id.value, answer.id


def read(path):
    """Read a submitted file's bytes. Raises Refused for a special or oversized file."""
    try:
        # Not through a link, and not waiting for a pipe that nobody writes to.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        linked = os.path.islink(path)
        raise Refused(
            "It is a link, not a file." if linked else f"It cannot be read: {error.strerror}."
        ) from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Refused("It is not a plain file.")
        with os.fdopen(file, "rb", closefd=False) as stream:
            return stream.read(LARGEST_FILE + 1)
    finally:
        os.close(file)


def code_cells(content):
    """Return (id or None, source) of each code cell of a notebook's bytes. Raises Refused."""
    return code_of(all_cells(content))


def stripped(content):
    """Return a notebook above the grader's size limit without its large outputs, or without any if
    necessary. Raises Refused if it stays too large.
    """
    if len(content) <= LARGEST:
        return content
    try:
        notebook = json.loads(content.decode("utf-8-sig"), parse_int=_whole)
        cells = [cell for cell in notebook["cells"] if isinstance(cell, dict)]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refused(TOO_LARGE) from None
    for most in (LONGEST_OUTPUT, 0):
        for cell in cells:
            outputs = cell.get("outputs")
            cell["outputs"] = [
                _small(output, most) for output in (outputs if isinstance(outputs, list) else ())
            ]
            cell.pop("attachments", None)
        if len(smaller := json.dumps(notebook, ensure_ascii=False).encode()) <= LARGEST:
            return smaller
    raise Refused(TOO_LARGE)


def _small(output, most):
    size = len(json.dumps(output))
    if size <= most:
        return output
    text = STRIPPED.format(size / 1e6)
    return {"output_type": "stream", "name": "stdout", "text": text}


def beyond(content):
    """Return by how many cells a readable notebook exceeds the grader's limit."""
    if content.count(b'"cell_type"') <= MOST_CELLS:
        return 0
    cells = json.loads(content.decode("utf-8-sig")).get("cells")
    return max(0, len(cells) - MOST_CELLS) if isinstance(cells, list) else 0


def code_of(cells):
    """(id, source) of each code cell."""
    return [(cell.id, cell.source) for cell in cells if cell.kind == "code"]


def all_cells(content):
    """Return the cells of a notebook's bytes. Raises Refused."""
    if len(content) > LARGEST:
        raise Refused(TOO_LARGE)
    try:
        notebook = json.loads(content.decode("utf-8-sig"), parse_int=_whole)
    except UnicodeDecodeError:
        words = "It is not a text in UTF-8. Save it from Jupyter and hand it in again."
        raise Refused(words) from None
    except (ValueError, RecursionError):
        words = "It is not valid JSON, so it is not a notebook, or only a part of one."
        raise Refused(words) from None
    notebook = notebook if isinstance(notebook, dict) else {}
    cells, sheets = notebook.get("cells"), notebook.get("worksheets")
    if cells is None and isinstance(sheets, list):  # nbformat 3; other tools still write it
        sheets = [sheet for sheet in sheets if isinstance(sheet, dict)]
        cells = [c for sheet in sheets for c in sheet.get("cells") or []]
    if not isinstance(cells, list):
        raise Refused("It has no list of cells, so it is not a notebook.")
    result = []
    for cell in cells[:MOST_CELLS]:
        if isinstance(cell, dict) and (kind := KINDS.get(str(cell.get("cell_type")).lower())):
            source = text_of(cell.get("source", cell.get("input", "")))
            if source is not None:
                id, outputs = cell.get("id"), cell.get("outputs")
                id = id if isinstance(id, str) else None
                outputs = outputs if isinstance(outputs, list) else []
                result.append(Cell(kind, id, source, outputs))
    return result


def _whole(digits):
    """An integer of JSON, of which Python reads no more than some thousand digits."""
    return int(digits) if len(digits) < 4000 else math.inf


def text_of(value):
    """Return a notebook's text, which may be a list of lines; None if it is not text."""
    if isinstance(value, list):
        value = "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else None


def clean(name):
    """Return a name in normalized Unicode, without invisible and direction-changing characters."""
    name = unicodedata.normalize("NFC", name.replace("\\", "/"))
    return "".join(c for c in name if unicodedata.category(c)[0] != "C")[:500]
