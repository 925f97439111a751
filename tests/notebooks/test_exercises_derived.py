"""Exercises are derived from solutions, and nothing of a solution is left in them."""

import ast

import nbformat
import pytest

from lightspeed_authoring.build import ROOT, sources
from lightspeed_authoring.notebooks import BuildError, exercise, page, read

SOLUTIONS = sources(["solutions/"])


def text_of(path):
    return path.read_text(encoding="utf-8")


def test_the_sample_exercise(samples):
    cells = nbformat.read(samples / "exercises/01_sample.ipynb", as_version=4).cells
    ask, answer, prose, function, call, without_stub = cells[2:8]
    assert (
        ask.outputs[0].text == "Question ridge: what is the ridge of a chip of 3.12e+14 FLOP/s?\n"
    )
    assert answer.source == 'answer = ...  # FLOP/byte\nprint("checked", answer)'
    assert prose.source == "## Write a function\nAt 2.04e+12 byte/s."
    assert function.source.endswith('reaches."""\n    raise NotImplementedError')
    assert without_stub.source == "..."
    assert len(cells) == 8
    assert all(
        cell.outputs == [] and cell.execution_count is None
        for cell in (answer, function, call, without_stub)
    )


def test_no_canary_leaks(samples):
    """Everything in a solution is called canary_...: in lines, explanations, outputs."""
    assert text_of(samples / "solutions/01_sample.ipynb").count("canary_") >= 6
    exercise = text_of(samples / "exercises/01_sample.ipynb")
    for leak in ("canary", "153", "2.039e+12\\n", "SOLUTION", "STUB"):
        assert leak not in exercise


def test_the_solution_page_has_no_markers(samples):
    solution = text_of(samples / "solutions/01_sample.ipynb")
    assert "SOLUTION" not in solution
    assert "STUB" not in solution
    assert "NotImplemented" not in solution


LEAKS = {
    "directly": (
        "# %%\n# BEGIN SOLUTION\nx = 1\n# END SOLUTION\n\n# %% [markdown]\n# So it is {{x}}."
    ),
    "over a cell": (
        "# %%\n# BEGIN SOLUTION\nx = 1\n# END SOLUTION\n\n# %%\ny = x + 1\n\n# %% [markdown]\n# So"
        " it is {{y}}."
    ),
    "by a function": (
        "# %%\ndef f():\n    # BEGIN SOLUTION\n    return 1\n    # END SOLUTION\n\n# %%"
        " [markdown]\n# {{f()}}"
    ),
    "in a dictionary": (
        "# %%\nd = {}\n\n# %%\n# BEGIN SOLUTION\nd['a'] = 1\n# END SOLUTION\n\n# %% [markdown]\n#"
        " {{d['a']}}"
    ),
    "from a dropped cell": '# %% tags=["solution"]\nx = 1\n\n# %% [markdown]\n# So it is {{x}}.',
}


@pytest.mark.parametrize("way", LEAKS)
def test_prose_must_not_give_a_solution_away(way, tmp_path):
    script = tmp_path / "solutions" / "leak.py"
    script.parent.mkdir()
    script.write_text(LEAKS[way])
    with pytest.raises(BuildError, match=r"solutions/leak\.py:\d+: .* gives a solution away"):
        exercise(script, page(script))


def test_prose_may_use_what_is_given(tmp_path):
    script = tmp_path / "given.py"
    script.write_text(
        "# %%\nx = 1\n\n# %%\n# BEGIN SOLUTION\ny = x\n# END SOLUTION\n\n# %% [markdown]\n#"
        ' {{x}}\n\n# %% [markdown] tags=["solution"]\n# {{y}}'
    )
    assert [cell.source for cell in exercise(script, page(script)).cells] == [
        "x = 1",
        "...",
        "{{x}}",
    ]


# --- the exercises of the course ---


def solution_lines(path):
    """Every line that only a solution has: between markers, or in a cell tagged `solution`."""
    kept = {
        line.strip() for cell in page(path, stubs=True).cells for line in cell.source.splitlines()
    }
    for cell in read(path):
        inside = "solution" in cell.metadata.tags
        for line in cell.source.splitlines():
            line = line.strip()
            if line == "# BEGIN SOLUTION":
                inside = True
            elif line == "# END SOLUTION":
                inside = False
            elif inside and len(line) >= 12 and not line.startswith("# STUB:") and line not in kept:
                yield line


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_no_line_of_a_solution_is_in_its_exercise(path):
    lines = list(solution_lines(path))
    assert len(lines) >= 12, "a page of at least twelve questions has as many lines of solution"
    cells = nbformat.read(ROOT / "exercises" / f"{path.stem}.ipynb", as_version=4).cells
    shown = "\n".join(
        [cell.source for cell in cells] + [str(cell.get("outputs", "")) for cell in cells]
    )
    assert [line for line in lines if line in shown] == []


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_no_worked_solution_of_the_bank_is_in_the_exercise(path):
    from lightspeed_course.practice.questions import question

    cells = nbformat.read(ROOT / "exercises" / f"{path.stem}.ipynb", as_version=4).cells
    shown = "\n".join(
        [cell.source for cell in cells] + [str(cell.get("outputs", "")) for cell in cells]
    )
    asked = {
        node.args[0].value
        for cell in page(path).cells
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ("ask", "check")
    }
    assert asked
    for name in asked:
        paragraphs = [
            text for text in question(name).variant(None).solution.split("\n\n") if len(text) >= 20
        ]
        assert [text for text in paragraphs if text in shown] == []
