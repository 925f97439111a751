"""A class releases puzzles of lesson 2.2 and grades them in its sandbox: a right kernel within its
bytes earns the point; one that is dear, and each cheat of the counting machine, does not.
"""

import inspect
import json
import sys
import textwrap
from pathlib import Path

import pytest

from lightspeed_course.puzzles import references

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
from wrong import an_element_a_program, three_passes

pytestmark = pytest.mark.slow

ASKED = ("strided_copy", "softmax", "matmul")
TOP = """from lightspeed_course import *
from lightspeed_models.simulators.kernels import tl
LOW = -1e30"""
CHEATS = {
    "strided_copy": """
        kept = {}
        def keep(x, y, n, stride, B):
            i = tl.program_id(0) * B + tl.arange(0, B)
            kept.setdefault("block", tl.load(x + i * stride, mask=i < n))
            tl.store(y + i, kept["block"], mask=i < n)
        def strided_copy(launch, x, y, n, stride):
            launch(keep, (tl.cdiv(n, 64),), x, y, n, stride, 64)""",
    "softmax": """
        import math
        def softmax(launch, x, y, M, N):
            for row in range(M):
                powers = [math.exp(v - 800) for v in x.values[row * N : (row + 1) * N]]
                y.values[row * N : (row + 1) * N] = [p / sum(powers) for p in powers]""",
    "matmul": """
        def giant(a, b, c, M, N, K):
            i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
            left = tl.load(a + i[:, None] * K + k[None, :])
            right = tl.load(b + k[:, None] * N + j[None, :])
            tl.store(c + i[:, None] * N + j[None, :], tl.dot(left, right))
        def matmul(launch, a, b, c, M, N, K):
            launch(giant, (1,), a, b, c, M, N, K)""",
}
OTHERS = {
    "strided_copy": """
        def strided_copy(launch, x, y, n, stride):
            def kernel(x):
                while True:
                    tl.load(x + 0)
            launch(kernel, (1,), x)""",
    "softmax": """
        def softmax(launch, x, y, M, N):
            launch(lambda x, y: tl.store(y + 0, x.values[0]), (1,), x, y)""",
}


def code(*functions):
    return textwrap.dedent("\n".join(map(inspect.getsource, functions)))


SUBMISSIONS = {
    "ada": {
        name: code(getattr(references, f"_{name}"), getattr(references, name)) for name in ASKED
    },
    "bob": {name: textwrap.dedent(source) for name, source in CHEATS.items()},
    "cyd": {
        "softmax": code(three_passes) + "softmax = three_passes",
        "matmul": code(an_element_a_program) + "matmul = an_element_a_program",
    },
    "dan": {name: textwrap.dedent(source) for name, source in OTHERS.items()},
}


def notebook(answers):
    cells = [("a", TOP)]
    for name in ASKED:
        cells.append(
            (name, f'{answers.get(name, f"{name} = ...")}\ncheck("puzzle.{name}", {name})')
        )
    empty = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    whole = [{"id": id, "source": source} | empty for id, source in cells]
    return json.dumps({"cells": whole, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_kernels_are_released_and_graded_and_cheats_earn_nothing(
    say, course, tmp_path, monkeypatch
):
    monkeypatch.chdir(course.root)
    Path("roster.csv").write_text("id,name\n" + "".join(f"{id},{id}\n" for id in SUBMISSIONS))
    (tmp_path / "own.ipynb").write_text(notebook({}))
    for id, answers in SUBMISSIONS.items():
        path = tmp_path / "in" / id / "own.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(notebook(answers))
    for words in (("roster", "roster.csv"), ("release", tmp_path / "own.ipynb"),
                  ("collect", "own", tmp_path / "in"), ("grade", "own"),
                  ("feedback", "own")):  # fmt: skip
        status, out = say(*words)
        assert status == 0, (words, out)
    with course.book() as book:
        points = {result.student.id: result.points for result in book.results("own")}
    assert points == {"ada": 3.0, "bob": 0.0, "cyd": 0.0, "dan": 0.0}
    page = Path("feedback/own/cyd.html").read_text()
    assert "Which array is read again" in page, "three passes move twice the bytes"
