"""An exercise with its solutions in the form of nbgrader 0.9.6, for the benchmark beside it.

The course itself has no such form: nbgrader runs tests in the student's own process, where one line
of a submission makes them all pass.
"""

import ast
import json
import re
from pathlib import Path

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lightspeed_class.notebooks import Assignment
from lightspeed_course.practice.questions import question

SCHEMA_VERSION = 3
CONFIG = """import os
c = get_config()
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE"}
c.Execute.timeout = 60
os.environ["LIGHTSPEED_DATA"] = os.path.abspath("progress")
os.environ.pop("LIGHTSPEED_SEED", None)
"""
_ASK = re.compile(r"""ask\(\s*["']([\w.]+)["']\s*\)\s*""")


def export_nbgrader(solved, folder):
    """Write an exercise (lightspeed_authoring.solved) as folder/source/name/name.ipynb."""
    assignment = Assignment.of(solved.exercise)
    metadata = json.loads(Path(solved.exercise).read_text("utf-8"))["metadata"]
    notebook = new_notebook(cells=list(_cells(solved, assignment)), metadata=metadata)
    target = Path(folder) / "source" / solved.name / f"{solved.name}.ipynb"
    target.parent.mkdir(parents=True)
    target.write_text(json.dumps(notebook), "utf-8")
    (Path(folder) / "nbgrader_config.py").write_text(CONFIG, "utf-8")
    return target


def _cells(solved, assignment):
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
                _test(id, variable),
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


def _test(id, variable):
    """A cell that raises nothing earns its points; a function is tried on more inputs."""
    test = f'assert (verdict := check("{id}", {variable})).correct is not False, verdict'
    if question(id).kind != "function":
        return test
    return f"""{test}
### BEGIN HIDDEN TESTS
from lightspeed_class.hidden_inputs import hidden
from lightspeed_course.practice.check import diagnose
from lightspeed_course.practice.questions import question
assert diagnose(hidden(question("{id}").variant(), "benchmark"), {variable}).correct
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
    body: list[str] | None = None  # a list inside a solution
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
