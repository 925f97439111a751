"""Committed notebooks keep what nbval does not check, and the guards can fail."""

import copy
import functools
import re
from pathlib import Path

import nbformat
import pytest
from guards import bare_integers, faults, repeated_prose
from nbformat.v4 import new_output

from lightspeed_authoring.build import ROOT, sources, unbound
from lightspeed_authoring.freshness import unbound_in_library
from lightspeed_authoring.notebooks import page
from lightspeed_course.practice.question_text import QuestionError

EXECUTED = [path.with_suffix(".ipynb") for path in sources()]
EXERCISES = [ROOT / "exercises" / f"{path.stem}.ipynb" for path in sources(["solutions/"])]


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@functools.cache
def committed(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def read(path):
    """A notebook that is nobody else's: guards are tried on what is spoiled."""
    return copy.deepcopy(committed(path))


@pytest.mark.parametrize("path", EXECUTED, ids=name)
def test_executed_notebook_has_no_fault(path):
    assert faults(committed(path)) == []


@pytest.mark.parametrize("path", EXECUTED, ids=name)
def test_ids_come_from_the_source(path):
    assert [cell.id for cell in committed(path).cells] == [
        cell.id for cell in page(path.with_suffix(".py")).cells
    ]


@pytest.mark.parametrize("path", EXERCISES, ids=name)
def test_exercise_is_not_executed(path):
    cells = [cell for cell in committed(path).cells if cell.cell_type == "code"]
    assert all(cell.execution_count is None for cell in cells)
    assert any(cell.outputs for cell in cells), "no question can be read without running the page"


def test_every_chapter_and_solution_is_there():
    stems = {path.stem[:2] for path in sources(["chapters/"])}
    assert {"01", "02"} <= stems
    assert stems - {"00", "12"} == {path.stem[:2] for path in sources(["solutions/"])}


def test_prose_is_written_once():
    assert repeated_prose({path: committed(path) for path in EXECUTED}) == []


@pytest.mark.parametrize("path", sources(), ids=name)
def test_no_typed_number_in_a_page(path):
    assert unbound(path) == []


def test_no_typed_number_in_questions_explorers_and_gallery():
    assert unbound_in_library() == []


def test_a_fault_in_a_question_file_is_one_line(monkeypatch):
    def refuse(topic):
        raise QuestionError("roofline.md", (12, "no unit 'parsek'"))

    monkeypatch.setattr("lightspeed_course.practice.question_files.texts", refuse)
    found = unbound_in_library()
    assert set(found) == {"content/roofline.md:12: no unit 'parsek'"}


def test_no_array_of_bare_integers_in_a_page():
    found = [
        f"{name(path)}:{cell.metadata.line} {fault}"
        for path in sources()
        for cell in page(path).cells  # claims are left out: only the build runs them
        if cell.cell_type == "code"
        for fault in bare_integers(cell.source)
    ]
    assert found == [], "give a dtype, such as float: " + "; ".join(found)


# --- the guards themselves: each must fire on the defect it is for ---


def first_code(notebook):
    return next(cell for cell in notebook.cells if cell.cell_type == "code")


def cleared(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None


def without_outputs(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []


def showing(**output):
    return lambda notebook: first_code(notebook).outputs.append(new_output(**output))


def written(source):
    return lambda notebook: first_code(notebook).update(source=source)


def all_long(notebook):
    for cell in notebook.cells:
        cell.source = "\n".join(["x = 1"] * 6)


def swapped(notebook):
    notebook.cells[1], notebook.cells[3] = notebook.cells[3], notebook.cells[1]


def same_id(notebook):
    notebook.cells[1].id = notebook.cells[0].id


def data(**values):
    return showing(
        output_type="display_data",
        data={key.replace("_", "/"): value for key, value in values.items()},
    )


DEFECTS = {
    "cleared": (cleared, "execution count None"),
    "never printed anything": (without_outputs, "have an output"),
    "run out of order": (swapped, "was not run in this order"),
    "an error": (showing(output_type="error", ename="KeyError", evalue="x", traceback=[]),
        "error KeyError"),
    "stderr": (showing(output_type="stream", name="stderr", text="careful"), "stderr"),
    "a PNG": (data(image_png="iVBORw0KGgo="), "figure()"),
    "a JPEG beside words": (lambda nb: first_code(nb).outputs.append(
        new_output("display_data", data={"image/jpeg": "x", "text/html": "x"})), "figure()"),
    "an SVG that no page describes": (data(**{"image_svg+xml": "<svg/>"}), "figure()"),
    "an image without words": (data(text_html='<img src="data:image/svg+xml,x">'), "description"),
    "a widget": (lambda nb: first_code(nb).outputs.append(
        new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {}})),
        "widget"),
    "an address": (showing(output_type="stream", text="<function f at 0x7f3a2b1c9d00>"), "address"),
    "a repr": (data(text_plain="<lightspeed_show.explore.Explorer>"), "bare repr"),
    "a widget's repr": (data(text_plain="HBox(children=(IntSlider(value=3),))"), "bare repr"),
    "a semicolon": (written("f(x);  # hidden"), "semicolon"),
    "an empty cell": (written(""), "empty"),
    "a long cell": (written("\n".join(["x = 1"] * 31)), "31 lines"),
    "long cells": (all_long, "median"),
    "times in the metadata": (lambda nb: first_code(nb).metadata.update(execution={}), "metadata"),
    "code folded away": (lambda nb: first_code(nb).metadata.update(jupyter={"source_hidden": True}),
        "source_hidden"),
    "code folded away without a figure": (lambda nb: first_code(nb).metadata.update(
        tags=["figure"], jupyter={"source_hidden": True}), "draws neither"),
    "widget state": (lambda nb: nb.metadata.update(widgets={}), "more metadata"),
    "two cells of one id": (same_id, "is given to 2 cells"),
}  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS)
def test_guard_fires(defect, samples):
    spoil, words = DEFECTS[defect]
    notebook = read(samples / "chapters" / "01_sample.ipynb")
    assert faults(notebook) == []
    spoil(notebook)
    assert any(words in fault for fault in faults(notebook)), faults(notebook)


def test_repeated_prose_is_found(samples):
    path = samples / "chapters" / "01_sample.ipynb"
    again = read(path)
    found = repeated_prose({path: read(path), path.with_name("02_again.ipynb"): again})
    assert any(
        "01_sample.ipynb cell 0 and chapters/02_again.ipynb cell 0" in fault for fault in found
    )


def test_an_array_of_bare_integers_is_found():
    for good in (
        "np.array(x, float)",
        "np.array([1, 2.5])",
        "np.arange(1, 513)",
        "np.arange(1.0, 1e5)",
        "np.array(x, dtype=int)",
    ):
        assert list(bare_integers(good)) == [], good
    for bad in (
        "np.array(run['n'])",
        "hours = np.array([1_022_362]) * 3600",
        "np.arange(100_000)",
        "np.arange(len(x))",
    ):
        assert len(list(bare_integers(bad))) == 1, bad


@pytest.mark.slow
def test_nbconvert_keeps_the_words_of_a_figure():
    from nbconvert import HTMLExporter

    html, _ = HTMLExporter().from_filename(str(ROOT / "chapters/02_roofline.ipynb"))
    images = re.findall(r"<img\b[^>]*>", html)
    assert len(images) > 5 and "No description has been provided" not in html
    assert all(re.search(r'\balt="[^"]{20,}"', image) for image in images)
