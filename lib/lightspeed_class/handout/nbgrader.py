"""An assignment in the form of nbgrader, for schools that run it.

What nbgrader cannot give: its tests run in the student's own process, as whoever starts it. One
line of a submission can make every test pass, or read the hidden tests, the solutions and the
gradebook; a school that grades for credit should confine the kernels, or collect and grade the same
notebooks with `lightspeed class`, in a class without variants. All students get the same values,
and the feedback pages show the hidden tests. The exported README says so too.
"""

import ast
import re
import secrets
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lightspeed_class.notebooks import Assignment
from lightspeed_course.practice.questions import question

SCHEMA_VERSION = 3  # nbgrader 0.6 to 0.9.6 at least
_ASK = re.compile(r"""ask\(\s*["']([\w.]+)["']\s*\)\s*""")


def export_nbgrader(solved, folder, points=None, secret=None):
    """Write an exercise with its solutions (lightspeed_authoring.solved) to
    folder/source/name/name.ipynb, and give that path.

    `points`: question -> points, 1 where none are given. `secret` draws the hidden inputs of
    functions, afresh for each export if it is None; submissions can read it, so it is never that of
    a class. What is in the folder already is never written over (FileExistsError for the notebook).
    """
    assignment = Assignment.of(solved.exercise, points)
    notebook = new_notebook(
        cells=list(_cells(solved, assignment, secret or secrets.token_hex(16))),
        metadata=nbformat.read(solved.exercise, as_version=4).metadata,
    )
    nbformat.validate(notebook)
    target = Path(folder) / "source" / solved.name / f"{solved.name}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "x", encoding="utf-8") as file:
        file.write(nbformat.writes(notebook) + "\n")
    for name, text in (("nbgrader_config.py", CONFIG), ("README.md", README)):
        if not (beside := Path(folder) / name).exists():
            beside.write_text(text, encoding="utf-8")
    return target


def _cells(solved, assignment, secret):
    for cell in solved.cells:
        pairs = assignment.cells.get(cell.id, ())
        if cell.kind == "markdown":
            yield _cell(new_markdown_cell, cell.built, cell.id, f"text_{cell.id}", locked=True)
        elif asked := _ASK.fullmatch(cell.source):
            # The prompt as text: no widget to wait for, and nothing there that shows a solution.
            yield _cell(
                new_markdown_cell,
                question(asked[1]).variant().prompt,
                cell.id,
                f"ask_{cell.id}",
                locked=True,
            )
        elif "# BEGIN SOLUTION" in cell.source:
            yield _cell(
                new_code_cell,
                _regions(_without_checks(cell.source)),
                cell.id,
                f"answer_{cell.id}",
                solution=True,
            )
        else:
            yield _cell(
                new_code_cell, _without_checks(cell.source), cell.id, f"code_{cell.id}", locked=True
            )
        for id, variable in pairs:
            grade_id = id.replace(".", "-")
            out_of = assignment.points[id]
            out_of = int(out_of) if out_of.is_integer() else out_of
            yield _cell(
                new_code_cell,
                _test(id, variable, secret),
                f"test-{grade_id}"[:64],
                grade_id,
                locked=True,
                points=out_of,
            )


def _cell(new, source, id, grade_id, solution=False, locked=False, points=None):
    mark = {
        "schema_version": SCHEMA_VERSION,
        "grade_id": grade_id,
        "grade": points is not None,
        "solution": solution,
        "locked": locked,
        "task": False,
    }
    if points is not None:
        mark["points"] = points
    return new(source, id=id, metadata={"nbgrader": mark})


def _test(id, variable, secret):
    """nbgrader's points are for a cell that raises nothing: a function is tried on more inputs."""
    # Not False: our sandbox's check() knows no verdict, and this is to run there.
    test = f'assert (verdict := check("{id}", {variable})).correct is not False, verdict'
    if question(id).kind != "function":
        return test
    return f"""{test}
### BEGIN HIDDEN TESTS
from lightspeed_class.hidden_inputs import hidden
from lightspeed_course.practice.check import diagnose
from lightspeed_course.practice.questions import question
elsewhere = hidden(question("{id}").variant(), "{secret}")
told = "It agrees with the library on the published inputs, but not on others."
assert diagnose(elsewhere, {variable}).correct, told
### END HIDDEN TESTS"""


def _without_checks(source):
    """The cell without its calls of check(), which get cells of their own."""
    lines, gone = source.splitlines(), set()
    for node in ast.parse(source).body:
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and getattr(node.value.func, "id", None) == "check"
        ):
            gone |= {*range(node.lineno - 1, node.end_lineno or node.lineno)}
    return "\n".join(line for n, line in enumerate(lines) if n not in gone).rstrip()


def _regions(source):
    """For each solution the stub, then the solution between the marks that nbgrader looks for."""
    lines: list[str] = []
    stub: list[str] = []
    body: Any = None  # a list inside a solution
    for line in source.splitlines():
        indent, mark = line[: len(line) - len(line.lstrip())], line.strip()
        if mark == "# BEGIN SOLUTION":
            stub, body = [], []
        elif mark == "# END SOLUTION":
            stub = stub or [f"{indent}..."]
            lines += [*stub, f"{indent}### BEGIN SOLUTION", *body, f"{indent}### END SOLUTION"]
            body = None
        elif mark.startswith("# STUB:"):
            stub.append(indent + mark.removeprefix("# STUB:").removeprefix(" "))
        else:
            (lines if body is None else body).append(line)
    return "\n".join(lines)


CONFIG = '''"""Made by Lightspeed's export of an assignment.

Yours to change: another export does not write over it.
"""

import atexit
import os
import shutil
import tempfile

c = get_config()  # noqa: F821
# The stub of an answer stands above it already.
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE"}
c.Execute.timeout = 60  # seconds a cell

# check() keeps tries for the learner's own progress, without submissions' among them.
os.environ["LIGHTSPEED_DATA"] = tempfile.mkdtemp(prefix="lightspeed-nbgrader-")
atexit.register(shutil.rmtree, os.environ["LIGHTSPEED_DATA"], ignore_errors=True)
os.environ.pop("LIGHTSPEED_SEED", None)
'''

README = """# Assignments of Speed of Light for nbgrader

`source/` holds assignments as nbgrader wants them: prose and prompts locked, one cell for each
answer, and below it a locked test cell that calls `check` and carries the points. Where a function
is asked, hidden tests try other inputs. Checked with nbgrader 0.9.6. Install this course
(`lightspeed`) where students work and where you grade; then, here:

    nbgrader validate source/NAME/NAME.ipynb
    nbgrader generate_assignment NAME --create
    nbgrader autograde NAME        # once the notebooks are in submitted/STUDENT/NAME/
    nbgrader generate_feedback NAME
    nbgrader export

## What this way of grading cannot give

- **No isolation.** nbgrader runs a submission as you, in one process with the tests. One line of a
  student's code can make `check` say yes to everything, which earns full marks, or read hidden
  tests, solutions and the gradebook. Its documentation says how to run kernels in containers; that
  guards your files, not the marks.
- **No variants.** All students get the same values.
- **Hidden tests are not hidden for long.** The feedback pages show them.
- **Time is the only limit**, one for each cell: nothing caps memory, processes, disk, network or
  output.
- A test cell that writes to stderr, if only a warning, gets no points; a deleted one gets none
  either.

The course's own grader, `lightspeed class`, has none of these limits. It grades these notebooks,
too: in a class without variants (`variants = false` in its class.toml), release NAME, then
`lightspeed class collect NAME submitted`.
"""
