"""Proofs on a copy: a wrong constant, a wrong number, a touched file are caught."""

import os
import re
import shutil
import sys

import nbformat
import pytest
from processes import finished

from lightspeed_authoring.build import ROOT

NBVAL = [
    "--nbval",
    "--nbval-current-env",
    "--nbval-cell-timeout=60",
    "-p",
    "no:cacheprovider",
    "--color=no",
    "-q",
]
CHAPTER = "02_roofline.ipynb"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The library and the chapters, to be changed; what runs there imports the copy."""
    root = tmp_path_factory.mktemp("changed")
    skip = shutil.ignore_patterns("node_modules", "__pycache__", ".ipynb_checkpoints")
    for folder in ("lib", "chapters"):
        shutil.copytree(ROOT / folder, root / folder, ignore=skip)
    shutil.copy(ROOT / "conftest.py", root)
    return root


def in_copy(root, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(root / "lib")}
    return finished([sys.executable, *arguments], cwd=root, env=environment, timeout=300)


def replace_once(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name}: {text.count(old)} times {old!r}"
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.slow
def test_a_changed_constant_fails_nbval_and_names_the_cell(course):
    catalog = course / "lib/lightspeed/catalog/accelerators.toml"
    text = catalog.read_text(encoding="utf-8")
    h100 = re.compile(r'(\[h100_sxm\.hbm_bandwidth\]\nprinted = ")3\.35( TB/s")')
    assert len(h100.findall(text)) == 1
    catalog.write_text(h100.sub(r"\g<1>3.36\2", text), encoding="utf-8")
    try:
        result = in_copy(course, "-m", "pytest", *NBVAL, f"chapters/{CHAPTER}")
    finally:
        catalog.write_text(text, encoding="utf-8")
    assert result.returncode == 1, result.stdout + result.stderr
    failed = re.findall(rf"^FAILED chapters/{re.escape(CHAPTER)}::Cell \d+", result.stdout, re.M)
    assert failed and "Cell outputs differ" in result.stdout
    assert "3.36 TB/s" in result.stdout


@pytest.mark.slow
def test_check_names_the_cell_of_an_edited_number(course):
    """In prose, which nbval alone does not look at; our plugin has it evaluated beside the cells."""
    path = course / "chapters" / CHAPTER
    kept = path.read_bytes()
    notebook = nbformat.read(path, as_version=4)
    cell = next(
        cell
        for cell in notebook.cells
        if cell.cell_type == "markdown" and re.search(r" \d\d\d? ", cell.source)
    )
    cell.source = re.sub(r" \d\d\d? ", " 777 ", cell.source, count=1)
    nbformat.write(notebook, path)
    try:
        result = in_copy(
            course,
            "-c",
            "from lightspeed_authoring.freshness import check_course; print(*check_course(['chapters/02']),"
            " sep='\\n')",
        )
        by_nbval = in_copy(course, "-m", "pytest", *NBVAL, f"chapters/{CHAPTER}")
    finally:
        path.write_bytes(kept)
    assert by_nbval.returncode == 1 and "does not hold" in by_nbval.stdout
    assert re.search(r"“.* 777 .*” became “", by_nbval.stdout, re.S), by_nbval.stdout
    index = notebook.cells.index(cell)
    assert f"chapters/{CHAPTER}: cell {index} ({cell.id}): source\n    -" in result.stdout, result
    assert re.search(r"^    -.* 777 ", result.stdout, re.M)


# File of fitted constants -> the page that shows what they give; tests/plan tries each by itself.
FITTED = {
    "attention": "10_plan_a_run_proof",
    "classes": "10_plan_a_run",
    "engines": "09_serving",
    "nccl": "07_nccl_bandwidth_proof",
    "products": "10_plan_a_run_proof",
    "stacks": "10_plan_a_run_proof",
}
_CONSTANT = re.compile(
    r"\b((?:value|share|ramp|narrow|compute_share|memory_share|loop|latency|bandwidth|centre) = )"
    r"([\d.e+-]+)"
)


def failed_by_fits(course, names, change, pages):
    """The cells that fail where the constants of these files are all changed by so much."""
    kept = {}
    for name in names:
        path = course / f"lib/lightspeed/catalog/fitted_{name}.toml"
        kept[path] = path.read_text("utf-8")
        moved = _CONSTANT.sub(lambda m: f"{m[1]}{float(m[2]) * (1 + change)!r}", kept[path])
        assert moved != kept[path]
        path.write_text(moved, "utf-8")
    try:
        where = [f"chapters/{page}.ipynb" for page in sorted({*pages})]
        result = in_copy(course, "-m", "pytest", *NBVAL, *where)
    finally:
        for path, text in kept.items():
            path.write_text(text, "utf-8")
    return re.findall(r"^FAILED (chapters/\S+::Cell \d+)", result.stdout, re.M)


@pytest.mark.slow
def test_no_output_moves_with_the_last_digits_of_a_fit(course):
    assert failed_by_fits(course, FITTED, 1e-9, FITTED.values()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FITTED)
def test_an_output_fails_with_a_thousandth_of_a_fit(course, name):
    assert failed_by_fits(course, [name], 1e-3, [FITTED[name]])
