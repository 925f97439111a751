"""An exercise with its solutions, cell by cell: what is written in another form is made of it."""

from dataclasses import dataclass
from pathlib import Path

import nbformat

from lightspeed_authoring.build import sources
from lightspeed_authoring.notebooks import BuildError, page, read


@dataclass(frozen=True)
class SolvedCell:
    """A cell that an exercise has. `source` is its author's, with the marks round solutions;
    `built` is what the notebook of the solutions shows; `id` is that of the exercise.
    """

    kind: str
    source: str
    built: str
    id: str


@dataclass(frozen=True)
class Solved:
    """The exercise `name`, its notebook `exercise`, and its cells with their solutions."""

    name: str
    exercise: Path
    cells: tuple[SolvedCell, ...]


def solved(name: str) -> Solved:
    """The exercise of that name ("02_roofline"), by a checkout's solutions (BuildError)."""
    script, *further = sources([f"solutions/{name}"])  # a chapter's second exercise comes after it
    if not all(other.stem.startswith(script.stem) for other in further):
        raise BuildError(f"solutions/{name} is several: {', '.join(p.stem for p in further)}, too")
    name, course = script.stem, script.parents[1]
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    if [cell.id for cell in notebook.cells] != [cell.id for cell in page(script).cells]:
        raise BuildError(
            f"solutions/{name}.ipynb is not what its source makes: run `lightspeed build {name}`"
        )
    exercise = [cell for cell in read(script) if "solution" not in cell.metadata.tags]
    solutions = [cell for cell in notebook.cells if "solution" not in cell.metadata.get("tags", [])]
    stubs = page(script, stubs=True).cells
    cells = tuple(
        SolvedCell(cell.cell_type, cell.source, solution.source, stub.id)
        for cell, solution, stub in zip(exercise, solutions, stubs, strict=True)
    )
    return Solved(name, course / f"exercises/{name}.ipynb", cells)
