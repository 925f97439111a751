"""Prose questions: a Markdown cell that a student writes in, and that people mark.

In the notebook that is released, the cell has a tag `prose:NAME`. The question is `prose.NAME`, and
the Markdown cell before it asks it. No program judges what is written there: it has no points until
somebody gives some, not even none.
"""

import re
from dataclasses import dataclass

PROSE = "prose"  # the topic of these questions, and their kind
TAG = f"{PROSE}:"
NAME = re.compile(r"[a-z]\w{0,39}", re.ASCII)


@dataclass(frozen=True)
class Prose:
    """A prose question, the same for all students.

    `asks` is the cell that asks it; `cell`, `after`, `until`: ids of the cell to write in, the one
    before and the one after ("" for none). `blank` is its initial content.
    """

    id: str
    asks: str
    blank: str
    cell: str
    after: str
    until: str = ""
    kind: str = PROSE

    @property
    def question(self):
        return self

    @property
    def prompt(self):
        """The prompt without heading marks, to be shown within a page."""
        return re.sub(r"^#{1,6}\s+", "", self.asks, flags=re.MULTILINE)


def name_of(cell):
    """Return the NAME of a prose cell; None if the cell asks no prose. Raises ValueError for a
    malformed tag.
    """
    names = [t.removeprefix(TAG) for t in cell["metadata"].get("tags", []) if t.startswith(TAG)]
    if not names:
        return None
    if len(names) > 1 or not NAME.fullmatch(names[0]):
        raise ValueError(
            f"the tag {TAG}{names[-1]}: expected one tag {TAG}NAME, where NAME is a word in lower"
            " case, such as why_slower"
        )
    if cell["cell_type"] != "markdown":
        raise ValueError(
            f"the tag {TAG}{names[0]} is on a cell of code; students write in Markdown"
        )
    return names[0]


def prose_at(cells, at):
    """Return the question of the cell at this place, None if there is none. Raises ValueError."""
    if (name := name_of(cells[at])) is None:
        return None
    before = cells[at - 1] if at else None
    if not before or before["cell_type"] != "markdown" or name_of(before):
        raise ValueError(
            f"the cell {TAG}{name} needs a Markdown cell right before it, which asks the question"
        )
    until = cells[at + 1]["id"] if at + 1 < len(cells) else ""
    prompt, answer = ("".join(cell["source"]) for cell in (before, cells[at]))
    return Prose(f"{PROSE}.{name}", prompt, answer, cells[at]["id"], before["id"], until)


def written(cells, prose):
    """Return the indices of the cells that answer: from the cell to write in, or the prompt if that
    cell is gone, to our next cell; and the prompt if it was written in.
    """
    ids = [cell.id for cell in cells]
    prompt = ids.index(prose.after) if prose.after in ids else None
    if prose.cell in ids:
        start = ids.index(prose.cell)
    elif prompt is not None:
        start = prompt + 1
    else:
        return []
    code = [i for i in range(start, len(cells)) if cells[i].kind == "code"]
    end = code[0] if code and prose.until else len(cells)
    if prose.until in ids[start + 1 :]:
        end = ids.index(prose.until, start + 1)
    changed = prompt is not None and cells[prompt].source.strip() != prose.asks.strip()
    places = [i for i in range(start, end) if not (ids[i] or "").startswith("class-")]
    return [prompt] * (changed and prompt not in places) + places


def answer(cells, prose):
    """Return the texts of the cells that answer; empty if nothing was written."""
    texts = [cells[i].source for i in written(cells, prose) if cells[i].source.strip()]
    return [] if [t.strip() for t in texts] in ([], [prose.blank.strip()]) else texts
