"""What the grader leaves out, because nothing comes of it, is what IPython does and nobody sees."""

import ast
import random
import sys
from pathlib import Path

import pytest
from cases import ASSIGNMENT, right
from IPython.core.async_helpers import _should_be_async
from IPython.core.inputtransformer2 import TransformerManager

from lightspeed_class.grading.grade import grade
from lightspeed_class.grading.inside.student_shell import ASYNC, Transformers
from lightspeed_class.hidden_inputs import hidden
from lightspeed_class.notebooks import code_cells
from lightspeed_course.practice.questions import bank
from lightspeed_course.practice.values import joined

sys.path.insert(0, str(Path(__file__).parent / "honest"))
from notebooks import NOTEBOOKS

# what a cell is warned of is not what is asked here
pytestmark = pytest.mark.filterwarnings("ignore")
FUNCTIONS = [q for q in bank("roofline") if q.kind == "function"]
PIECES = (
    "x", " = ", "%", "%%", "!", "!!", "?", "??", ",", ";", "/", "f", " a b", "(", ")", "\n",
    "\n    ", "'", '"""', "# ", "\\\n", "await g()", "async def h(): ", "time", "if x:", ">>> ",
    "In [1]: ", "é", "[", "]", ": ", "...", "\t", "\f", "\r", "\u2028",
)  # fmt: skip


def cells():
    """Those of the honest notebooks, and some that nobody would write."""
    yield from (source for content, _ in NOTEBOOKS.values() for _, source in code_cells(content))
    rng = random.Random(1)
    for _ in range(3000):
        yield "".join(rng.choices(PIECES, k=rng.randrange(1, 12)))


def transformed(manager, source):
    """As the shell does it: a cell that cannot be transformed is taken as it is."""
    try:
        return manager.transform_cell(source)
    except Exception:
        return source


def meant(manager, source):
    """What would be run; of a cell that is no Python only that it is none."""
    code = transformed(manager, source)
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return "no Python"
    return code


def test_a_cell_means_what_ipython_makes_of_it():
    ours, theirs = Transformers(), TransformerManager()
    wrong = [s for s in cells() if meant(ours, s) != meant(theirs, s)]
    assert not wrong, wrong[:5]


def test_a_transformer_that_a_cell_adds_sees_every_cell():
    class Seen(Exception):
        pass

    class Nosy:
        def find(tokens):
            raise Seen

    ours = Transformers()
    ours.token_transformers.append(Nosy)
    with pytest.raises(Seen):
        ours.transform_cell("x = 1")


def test_no_cell_awaits_without_the_word():
    codes = (transformed(TransformerManager(), source) for source in cells())
    asynchronous = [code for code in codes if _should_be_async(code)]
    assert asynchronous and all(map(ASYNC.search, asynchronous))


def test_the_results_of_hidden_inputs_are_the_library_s():
    for q in FUNCTIONS:
        variant = hidden(q.variant("ada"), "secret")
        found = joined(variant.result(q.expected, sample) for sample in variant.samples)
        assert len(variant.right) >= len(variant.samples) and variant.right == found, q.id


def test_answers_outlive_what_a_cell_does_to_a_module():
    """Those that are told without a guard need nothing that a cell can reach."""
    broken = (
        "import json, math, sys\n"
        "math.isfinite = json.dumps = json.JSONEncoder.encode = None\n"
        "class numpy:\n    generic = None\n"
        "kept, sys.modules['numpy'] = sys.modules['numpy'], numpy\n"
    )
    graded = grade(right(broken + "sys.modules['numpy'] = kept"), ASSIGNMENT)
    assert (graded.points, graded.status) == (4, "ok"), graded
