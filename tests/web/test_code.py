"""Cells that are edited and run on a page."""

import json
import re

import pytest

from lightspeed_course.practice import store
from lightspeed_course.web import code, live
from lightspeed_course.web.code import needed, run
from lightspeed_show import host

ROOF = "def roof(i, p, b): return {}\ncheck('roofline.attainable', roof)"
CHECK = "from lightspeed_course import check"


@pytest.fixture(autouse=True)
def said(monkeypatch):
    """What a page is told."""
    monkeypatch.setattr(host, "_here", {})
    monkeypatch.setattr(store, "_host", {})
    messages = []
    live.begin(lambda text: messages.append(json.loads(text)), "[]", lambda rows: None)
    return messages


@pytest.mark.parametrize(
    "source, shown, problem",
    [
        (ROOF.format("min(p, i * b)"), ["**Right.**"], ""),
        (ROOF.format("p"), ["**Not yet.**"], ""),
        ("print(1)\n2 / 0", ["1\n"], "Line 2: ZeroDivisionError: division by zero"),
        ("x = (1", [], "Line 1: SyntaxError"),
        ("import numpy_that_is_not_here", [], "Line 1: numpy_that_is_not_here is not on this page, whose"),
        ("import lightspeed_course.not_here", [], "Line 1: lightspeed_course.not_here is not on this page, which"),
        ("raise SystemExit", [], "Line 1: SystemExit"),
        ("", [], ""),
        ("1 + 1", ["2"], ""),
        ("1 + 1;", [], ""),
        ("from lightspeed.roofline import ridge_point\nridge_point(1, -1)", [],
         "Line 2: BadArgument: ridge_point: bandwidth = -1"),
        ("print('a', end='')\ndisplay(3)\nprint('b')", ["a", "3", "b\n"], ""),
        ("undefined_here", [], "Line 1: NameError"),
    ],
)  # fmt: skip
def test_a_cell_is_run_as_the_lab_would(source, shown, problem, monkeypatch, tmp_path):
    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path))
    found, said = run(source, [CHECK])
    texts = [
        each.get("stream") or each.get("text/markdown") or each["text/plain"] for each in found
    ]
    assert len(texts) == len(shown), texts
    assert all(text.startswith(start) for text, start in zip(texts, shown, strict=True)), texts
    assert said.startswith(problem) and bool(said) == bool(problem), said


def test_a_run_begins_with_the_cells_above_that_it_needs():
    above = [
        "import math",
        "a = 1",
        "print('not this')",
        "b = {'x': a}",
        "b['x'] += 1",
        "c = 1 / 0",
    ]
    assert needed(above, "b['x']") == [above[1], above[3], above[4]]
    assert needed(above, "print(2)") == []
    rows = ["rows = []", "for n in (1, 2):\n    rows.append(n)"]
    assert run("rows", rows) == ([{"text/plain": "[1, 2]"}], "")
    assert needed(["from math import *", *above], "e") == ["from math import *"]
    assert run("b['x']", above) == ([{"text/plain": "2"}], "")
    shown, problem = run("c", above)
    assert not shown and "the cell above that makes c stopped" in problem
    assert "ZeroDivisionError" in problem
    half = ["total = 1", "total = 2\ntotal += undefined_here"]
    assert not run("total", half)[0], "what a cell left half done is no value"


def test_a_package_that_a_cell_above_imports_is_missed_where_it_is_used():
    above = ["import no_such_package as np\nfrom no_such_package import thing\nx = 3"]
    assert run("x", above) == ([{"text/plain": "3"}], "")
    for use in ("np.array(x)", "thing(x)"):
        shown, problem = run(f"\n{use}", above)
        assert not shown and problem.startswith("Line 2: no_such_package is not on this page")


def test_figures_tables_and_questions_of_a_cell_are_drawn_by_the_page(said):
    live.hear(json.dumps({"open": "c1", "call": ["code", "x"]}))
    editor = said[-1]["model"]
    source = """from lightspeed_course import Axis, Chart, Line, ask, figure, table
table([[1, 2.5]], ("a", "b"))
chart = Chart(Axis("x"), Axis("y"), [Line([1, 2], [3, 4])])
figure(chart, caption="A line.", alt="It rises.")
ask("roofline.ridge")"""
    live.hear(json.dumps({"to": editor, "content": {"source": source, "above": []}}))
    parts, problem = (
        [m["value"] for m in said if m.get("set") == editor and m["name"] == name][-1]
        for name in ("parts", "problem")
    )
    assert problem == ""
    kinds = {m["made"]: m["kind"] for m in said if "made" in m}
    drawn = [kinds.get(part.get("model"), part.get("html")) for part in parts]
    assert "<table>" in drawn[0] and "2.5" in drawn[0]
    assert drawn[1] == "chart" and "<em>A line.</em>" in drawn[2] and drawn[3] == "stack"
    live.hear(
        json.dumps({"to": editor, "content": {"source": "import matplotlib.none", "above": []}})
    )
    assert [m["value"] for m in said if m.get("name") == "problem"][-1].startswith(
        "Line 1: matplotlib"
    )


def test_an_error_names_the_line_that_called_and_a_cell_above():
    above = ["def f(x):\n    y = 2\n    return y / x"]
    assert run("def g(x):\n    return 1 / x\n\ng(0)")[1].startswith(
        "Line 2, called from line 4: Zero"
    )
    assert run("a = 1\nf(0)", above)[1].startswith("Line 2, in f of a cell above: ZeroDivision")
    assert run("a = 1\n1 / 0")[1].startswith("Line 2: ZeroDivision")


def test_a_page_has_no_keyboard_for_input_and_room_for_so_much():
    assert "write the value into the code" in run("input('Your name? ')")[1]
    for source in (
        "print('x' * 10**7)",
        "for _ in range(10**4):\n    print('x' * 999)",
        "'x' * 10**7",
    ):
        shown, problem = run(source)
        size = sum(len(text) for each in shown for text in each.values())
        assert not problem and size < code.MOST + 200, source
        assert re.search(r"… 9,\d{3},\d{3} characters more", str(shown)), source


def test_imports_run_and_a_cell_that_stops_keeps_what_it_had_finished():
    cell = "import no_such_package as np\nfrom math import pi\nD = 4\nx = np.zeros(D)\ny = 2"
    shown, problem = run("import no_such_package as np\nfrom math import pi")
    assert not problem and "Not on this page: np" in shown[0]["stream"]
    assert run("D + round(pi)", [cell]) == ([{"text/plain": "7"}], "")
    assert "no_such_package" in run("x", [cell])[1] and "no_such_package" in run("y", [cell])[1]
