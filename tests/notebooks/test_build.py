"""The build: what it writes and refuses; what `check` finds where it was not run."""

import json
import re
import shutil

import nbformat
import pytest

from lightspeed_authoring import freshness, proved
from lightspeed_authoring.build import build, build_course, sources
from lightspeed_authoring.freshness import _diff, check_course, differences, gates
from lightspeed_authoring.notebooks import BuildError, page
from lightspeed_cli import main

CHAPTER, SOLUTION = "chapters/01_sample.ipynb", "solutions/01_sample.ipynb"


def read(path):
    return nbformat.read(path, as_version=4)


@pytest.fixture(scope="session")
def cells(samples):
    return read(samples / CHAPTER).cells


def cell(cells, text):
    return next(cell for cell in cells if text in cell.source)


def test_same_source_same_bytes(samples, tmp_path):
    assert build(sources(["chapters/01"], samples), tmp_path, committed=samples) == []
    old, new = (read(root / CHAPTER) for root in (samples, tmp_path))
    cell(old.cells, "perf_counter").outputs = cell(new.cells, "perf_counter").outputs
    assert nbformat.writes(old) == nbformat.writes(new)


def test_prose_is_filled_in(cells):
    text = cell(cells, "The ridge of the").source
    assert "The ridge of the NVIDIA A100 SXM4 80 GB is 153 FLOP/byte" in text
    assert r"$I = \frac{ 312 }{ 2.039 }$" in text


def test_counts_are_positions(cells):
    counts = [cell.execution_count for cell in cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    result = cell(cells, 'print("before")').outputs[-1]
    assert (result.output_type, result.execution_count, result.data["text/plain"]) == (
        "execute_result",
        3,
        "'153.02'",
    )


def test_outputs_keep_their_order(cells):
    kinds = [
        output.get("text") or sorted(output.data)
        for output in cell(cells, 'print("before")').outputs
    ]
    assert kinds == ["before\n", ["text/html", "text/plain"], "after\n", ["text/plain"]]


def test_equal_cells_have_different_ids(cells):
    first, second = (cell.id for cell in cells if cell.source == "print(ridge > 1)")
    assert second == f"{first}-2"


def test_ids_do_not_depend_on_the_other_cells(samples, tmp_path):
    script = tmp_path / "chapters" / "01_sample.py"
    script.parent.mkdir()
    text = (samples / "chapters" / "01_sample.py").read_text()
    script.write_text("# %%\nprint('a cell before all others')\n\n" + text)
    assert build([script], tmp_path) == []
    old, new = ([cell.id for cell in read(root / CHAPTER).cells] for root in (samples, tmp_path))
    assert new[1:] == old


def test_widgets_leave_only_their_static_form(samples, cells):
    assert cell(cells, "IntSlider(value").outputs[0].data == {"text/plain": "batch = 3"}
    assert "widget" not in json.dumps(read(samples / CHAPTER).metadata)


def test_the_code_of_a_figure_is_folded_away(tmp_path):
    script = tmp_path / "chapters" / "01_figure.py"
    script.parent.mkdir()
    script.write_text('# %%\nx = 1\n\n# %% tags=["figure"]\nprint(x)\n')
    code, drawn = page(script).cells
    assert "jupyter" not in code.metadata
    assert drawn.metadata.jupyter == {"source_hidden": True} and drawn.metadata.tags == ["figure"]


def test_an_expected_error_is_its_message(cells):
    (error,) = cell(cells, "raise ValueError").outputs
    assert error.traceback == ["ValueError: expected FLOP/byte above 153"]


def test_of_a_cell_that_times_itself_only_the_words_are_compared(course, samples):
    timed = cell(read(samples / CHAPTER).cells, "perf_counter")
    assert timed.metadata.tags == ["timed"]
    edit(course / CHAPTER, timed.outputs[0].data["text/plain"], "12.5 ms")
    assert differences(course / CHAPTER, samples / CHAPTER) == []


def test_no_machine_in_the_file(samples):
    for path in samples.glob("*/*.ipynb"):
        assert not re.search(r"/(root|home|tmp|work|Users)/|3\.1\d\.\d+", path.read_text())


# --- pages that must not build ---

REFUSED = {
    "error": ("# %%\nprint(1)\n\n# %%\nprint(nothing)",
        ["chapters/error.py:5", "NameError", "'nothing'"]),
    "stderr": ("# %%\nimport sys\n_ = sys.stderr.write('careful')",
        ["chapters/stderr.py:2", "stderr: careful"]),
    "warning": ("# %%\nimport warnings\nwarnings.warn('old', DeprecationWarning)",
        ["DeprecationWarning: old"]),
    "expression": ("# %% [markdown]\n# Text.\n\n# %% [markdown]\n# It is {{missing:.1f}}.",
                   ["chapters/expression.py:5", "{{missing:.1f}}", "NameError", "missing"]),
    "format": ("# %%\nx = 'text'\n\n# %% [markdown]\n# It is {{x:.1f}}.",
        ["{{x:.1f}}", "ValueError"]),
    "later": ("# %% [markdown]\n# It is {{x}}.\n\n# %%\nx = 1", ["{{x}}", "NameError"]),
    "braces": ("# %% [markdown]\n# $\\frac{{a}{b}$",
        ["chapters/braces.py:2", "without its partner"]),
    "typed": ("# %% [markdown]\n# Prose.\n# The ridge is 153.",
        ["chapters/typed.py:3: typed number: 153", "; write an expression in {{ }}"]),
    "caption": ("# %%\nx = 1\nprint(\n    'at 8 GB'\n)",
        ["chapters/caption.py:4: typed number: 8 GB"]),
    "cleared": ("# %%\nfrom IPython.display import clear_output\nclear_output()",
        ["clear_output: nbval cannot follow"]),
    "updated": ("# %%\nfrom IPython.display import display\n"
        "h = display('a', display_id=True)\nh.update('b')",
                ["update_display_data: nbval cannot follow"]),
    "syntax": ("# %%\nx = 1\ny = = 2", ["chapters/syntax.py:3: invalid syntax"]),
    "headless": ("x = 1\n\n# %%\ny = 2", ["chapters/headless.py: every cell begins"]),
    "dead": ("# %%\nimport os\nos._exit(1)", ["chapters/dead.py:2", "Kernel died"]),
    "nested": ("# %%\n# BEGIN SOLUTION\n# BEGIN SOLUTION",
        ["chapters/nested.py:2", "inside a solution"]),
    "open": ("# %%\n# BEGIN SOLUTION\nx = 1", ["chapters/open.py:2", "without # END SOLUTION"]),
    "ended": ("# %%\n# END SOLUTION", ["chapters/ended.py:2", "without # BEGIN SOLUTION"]),
}  # fmt: skip


@pytest.fixture(scope="session")
def refusals(tmp_path_factory):
    root = tmp_path_factory.mktemp("refused")
    (root / "chapters").mkdir()
    for name, (source, _) in REFUSED.items():
        (root / "chapters" / f"{name}.py").write_text(source)
    with pytest.raises(BuildError) as caught:
        build_course(root=root)
    assert not list(root.glob("*/*.ipynb"))
    return re.split(r"\n(?=chapters/)", str(caught.value))


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name, refusals):
    (fault,) = [fault for fault in refusals if fault.startswith(f"chapters/{name}.py")]
    for words in REFUSED[name][1]:
        assert words in fault


# --- choosing pages ---


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (None, ["chapters/01_sample.py", "solutions/01_sample.py"]),
        (["01"], ["chapters/01_sample.py", "solutions/01_sample.py"]),
        (["1"], ["chapters/01_sample.py", "solutions/01_sample.py"]),
        (["solutions/1"], ["solutions/01_sample.py"]),
        (["chapters/01"], ["chapters/01_sample.py"]),
        (["chapters/01_sample.py"], ["chapters/01_sample.py"]),
        (["exercises/01_sample.ipynb"], ["solutions/01_sample.py"]),
    ],
)
def test_sources(names, chosen, samples):
    assert [str(path.relative_to(samples)) for path in sources(names, samples)] == chosen


def test_unknown_page_is_named(samples):
    with pytest.raises(BuildError, match=r"called 07; there are chapters/01_sample\.py"):
        sources(["07"], samples)


# --- check ---


@pytest.fixture
def course(samples, tmp_path):
    return shutil.copytree(samples, tmp_path / "course")


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.mark.slow
def test_a_fresh_course_passes_the_check(course, monkeypatch):
    # of the real course, which has its own test
    monkeypatch.setattr("lightspeed_authoring.freshness.unbound_in_library", list)
    assert gates(root=course) == check_course(root=course) == []


@pytest.mark.slow
def test_check_names_each_stale_file_and_cell(course, monkeypatch):
    monkeypatch.setattr("lightspeed_authoring.freshness.unbound_in_library", list)
    edit(course / CHAPTER, "is 153 FLOP/byte, in", "is 154 FLOP/byte, in")
    edit(course / "exercises/01_sample.ipynb", "raise NotImplementedError", "return 42")
    (course / SOLUTION).unlink()
    shutil.copy(course / CHAPTER, course / "chapters" / "09_stray.ipynb")
    (stray,) = gates(root=course)
    prose, exercise, missing = check_course(root=course)
    assert prose.startswith("chapters/01_sample.ipynb: cell 2 (")
    assert "154 FLOP/byte" in prose and "153 FLOP/byte" in prose
    assert exercise.startswith("exercises/01_sample.ipynb: cell 5 (") and "42" in exercise
    assert missing.startswith("solutions/01_sample.ipynb: missing")
    assert stray == "chapters/09_stray.ipynb: no source makes this notebook"


def test_faults_of_all_kinds_are_shown_at_once(monkeypatch, capsys, tmp_path):
    script = tmp_path / "chapters" / "01_page.py"
    script.parent.mkdir()
    script.write_text(
        "# %%\na, b = 1, 2  # 9 GB\n\n# %% [markdown]\n# So a is larger than b, by far.\n\n"
        '# %% tags=["holds"]\nassert a < b, "by far"\n'
    )
    (script.parent / "02_page.py").write_text("# %%\nx = = 1\n")
    scripts = sources(root=tmp_path)
    monkeypatch.setattr(freshness, "sources", lambda *_, **__: scripts)
    monkeypatch.setattr("lightspeed_authoring.build.sources", lambda *_, **__: scripts)
    monkeypatch.setattr(freshness, "unbound_in_library", lambda: ["content/x.md:1: typed"])
    monkeypatch.setattr(freshness, "bibliography", str)
    monkeypatch.setattr("lightspeed_authoring.signatures.files", lambda *_: scripts)
    monkeypatch.setattr(freshness, "tools", lambda: ["x.py:1: E501"])
    assert main(["check", "--fast"]) == 1
    told = capsys.readouterr().err
    for words in (
        *("typed number: 9 GB", "02_page.py:2: invalid syntax", "content/x.md:1", "no anchor has"),
        *("BIBLIOGRAPHY.md", "is new: “So a is larger", "E501"),
    ):
        assert words in told, words


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '"ridge 153.0 FLOP/byte\\n"',
            '"ridge 153.1 FLOP/byte\\n"',
            "cell 3 (.*): outputs: stdout: 153.1 became 153.0",
        ),
        ('"print(\\"after\\")\\n",', '"print(\\"later\\")\\n",', "cell 4 (.*): source"),
        (
            '"execution_count": 3,\n   "id"',
            '"execution_count": null,\n   "id"',
            "cell 4 (.*): execution_count",
        ),
        ('"nbformat_minor": 5\n}\n', '"nbformat_minor": 5\n}', "the layout of the file"),
    ],
)
def test_differences(course, samples, old, new, words):
    edit(course / CHAPTER, old, new)
    (found,) = differences(course / CHAPTER, samples / CHAPTER)
    assert re.match(f"{CHAPTER}: {words}", found), found


def test_what_nbval_has_proved_is_not_run_again(course, monkeypatch, tmp_path):
    monkeypatch.setattr(proved, "NOTES", tmp_path / "notes")
    edit(course / CHAPTER, '"ridge 153.0 FLOP/byte\\n"', '"ridge 153.1 FLOP/byte\\n"')
    assert not proved.proved(course / CHAPTER)
    proved.note_proof(course / CHAPTER)
    assert check_course(["chapters/01"], course) == [], "it was run"
    edit(course / CHAPTER, '"print(\\"after\\")\\n",', '"print(\\"later\\")\\n",')
    assert not proved.proved(course / CHAPTER), "another file has another proof"


def test_a_long_line_is_shown_where_it_differs():
    row = "<path d='" + " ".join(f"L {n} {n}" for n in range(100))
    shown = _diff(f"first\n{row} Z'>", f"first\n{row} M'>\nlast").splitlines()[1:]
    old, new, added = (line.strip() for line in shown)
    assert old.startswith("-…")
    assert old.endswith("Z'>")
    assert new.endswith("M'>")
    assert old[3:] != new[3:]
    assert len(old) < 60 and added == "+last"
    assert _diff("x" * 200, "x" * 200 + "y").endswith("xy")


def test_a_cell_too_many_and_one_too_few(course, samples):
    notebook = read(course / CHAPTER)
    gone = notebook.cells.pop(0)
    notebook.cells.append(nbformat.v4.new_markdown_cell("mine", id="mine"))
    nbformat.write(notebook, course / CHAPTER)
    missing, extra = differences(course / CHAPTER, samples / CHAPTER)
    assert f"({gone.id}) is missing: # A sample page" in missing
    assert "(mine) is not in the source: mine" in extra
