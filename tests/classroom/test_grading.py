"""Grading finds answers by id, judges values alone, and its record says how a score came about."""

import dataclasses
import inspect
import json
import math
from pathlib import Path

import numpy as np
import pytest
from cases import ASSIGNMENT, QUESTIONS, exercises, notebook, right

from lightspeed.roofline import attainable
from lightspeed.units import Q
from lightspeed_class.asked import Asked, frozen
from lightspeed_class.grading import sandbox
from lightspeed_class.grading.decode import decode
from lightspeed_class.grading.grade import grade
from lightspeed_class.grading.sandbox import Limits, NoSandbox
from lightspeed_class.hidden_inputs import hidden
from lightspeed_class.notebooks import Assignment
from lightspeed_course.practice.check import diagnose
from lightspeed_course.practice.questions import bank, question, topics

ROOT = Path(__file__).parents[2]
FUNCTIONS = [q for topic in topics() for q in bank(topic) if q.kind == "function"]


def scores(graded):
    return {
        cell: next(s for s in graded.scores if s.question == id) for cell, id in QUESTIONS.items()
    }


@pytest.mark.slow
def test_each_student_has_a_variant():
    variant = question(QUESTIONS["bytes"]).variant("ada")
    mine = f'check("{QUESTIONS["bytes"]}", {tuple(map(float, variant.right))})'
    assert variant.values != question(QUESTIONS["bytes"]).variant().values
    for seed, earned in (("ada", 1), (None, 0)):
        assert scores(grade(right(bytes=mine), ASSIGNMENT, seed))["bytes"].points == earned


def test_a_score_carries_its_diagnosis():
    wrong = right(
        ridge='a = accelerator("a100_80gb")\ncheck("roofline.ridge", a.hbm_bandwidth / a.bf16)',
        word=None,
    )
    found = scores(grade(wrong, ASSIGNMENT))
    assert found["ridge"].kind in ("misconception", "slip")
    assert found["ridge"].name
    assert found["ridge"].given
    assert found["word"].kind == "unanswered" and QUESTIONS["word"] in found["word"].message
    assert found["roof"].found == "check"


def test_the_last_answer_counts_and_a_check_goes_before_a_variable():
    twice = right(
        word=(
            'check("roofline.what_shortens_it", "peak")\ncheck("roofline.what_shortens_it",'
            ' "bandwidth")\nanswer = "peak"'
        )
    )
    assert scores(grade(twice, ASSIGNMENT))["word"].points == 1
    cells = exercises(word='answer = "bandwidth"')
    assert scores(grade(notebook(cells), ASSIGNMENT))["word"].found == "cell"


def test_an_old_answer_is_not_that_of_the_next_cell():
    found = scores(grade(right(word="undefined_name\nanswer = 'bandwidth'"), ASSIGNMENT))
    assert found["word"].kind == "unanswered" and found["word"].points == 0


@pytest.mark.parametrize(
    "end, why",
    [("os._exit(0)", "exit"), ("x = []\nwhile True: x.append(bytearray(1 << 22))", None)],
)
def test_a_cell_that_was_not_reached_is_not_called_unanswered(end, why):
    graded = grade(right(bytes=end), ASSIGNMENT, limits=Limits(wall=20, cell=5))
    found = scores(graded)
    assert found["ridge"].points == 1
    if why:
        assert graded.status == why
        assert all(
            found[c].kind == "unanswered" and found[c].message.startswith("Not reached:")
            for c in ("bytes", "roof", "word")
        )
    else:  # out of memory, but alive: the next cells run
        assert found["bytes"].message.startswith("Not answered:") and found["word"].points == 1
    deleted = scores(grade(right("os._exit(0)", word=None), ASSIGNMENT))
    assert deleted["word"].message.startswith("Not answered:")
    assert deleted["roof"].message.startswith("Not reached:")


@pytest.mark.parametrize("answer, given", [
    ('"abc"', "the text “abc”"),
    ('"<b>\\x00" + "x" * 400', "the text “<b>\ufffd" + "x" * 75 + "…”"), ("float('nan')", "nan"),
    ("[1, 2, 3]", "3 values: 1, 2, 3"),
    ("Q(3, 'GB/s')", "3 GB/s"), ("Q(2, 'J')", "2 J"), ("Q([1, 2], 's')", "2 values: 1 s, 2 s"),
    ("list(range(60))", "60 values: 0, 1, 2, 3, 4, 5, 6, 7, …"),
    ("math.sqrt", "a function"), ("{}", "an object of type dict"), ("True", "True or False"),
    ("[]", "an empty list"),
])  # fmt: skip
def test_what_could_not_be_judged_is_kept_in_words(answer, given):
    found = scores(
        grade(
            right(ridge=f'from lightspeed.units import Q\ncheck("roofline.ridge", {answer})'),
            ASSIGNMENT,
        )
    )["ridge"]
    assert found.kind in ("type", "dimension") and found.given == given
    assert " bit" not in found.message and "g·m" not in found.message


def test_the_same_submission_gives_the_same_result_and_another_secret_other_inputs():
    one, two = (grade(right(), ASSIGNMENT, secret="a") for _ in range(2))
    assert one.digest == two.digest and one.record == two.record
    assert one.record["isolation"].startswith("bubblewrap")
    other = grade(right(), ASSIGNMENT, secret="b")
    assert other.points == one.points and other.record["secret"] != one.record["secret"]
    variant = question("roofline.attainable").variant()
    assert (
        hidden(variant, "a").samples == hidden(variant, "a").samples != hidden(variant, "b").samples
    )


@pytest.mark.parametrize("q", FUNCTIONS, ids=lambda q: q.id)
def test_hidden_inputs_tell_right_from_wrong(q):
    for seed, secret in ((None, "a"), ("ada", "b"), ("bob", "c"), (None, "d")):
        variant = hidden(q.variant(seed), secret)
        assert len(variant.samples) >= 15
        verdict = diagnose(variant, q.expected)
        assert verdict.correct or verdict.kind == "library"
        for m in q.misconceptions:
            assert not diagnose(variant, m.wrong).correct, m.name
        for name, p in q.parameters.items():
            met = {s[name] for s in variant.samples}
            assert q.valid or len(p.choices) < 2 or met >= set(p.choices), name


CALLED = {
    "roof = attainable": 0,
    "def roof(*numbers):\n    return float(attainable(*numbers)) * 1.0": 0,
    "import functools\nroof = functools.partial(attainable)": 0,
    # another law, on the way to the one that is asked for
    "def roof(intensity, peak, bandwidth):\n    below = intensity < ridge_point(peak, bandwidth)\n"
    "    return intensity * bandwidth if below else peak": 1,
}


@pytest.mark.holds("docs/teach.md", "the diagnosis names the law that was called")
@pytest.mark.parametrize("source", CALLED)
def test_the_law_of_the_library_is_named_where_it_is_to_be_written(source):
    content = right(roof=f'{source}\ncheck("roofline.attainable", roof)')
    score = scores(grade(content, ASSIGNMENT, secret="a"))["roof"]
    assert score.points == CALLED[source]
    if not score.points:
        assert (score.kind, score.name) == ("library", "lightspeed.roofline.attainable")
        assert score.name in score.message
    variant = question("roofline.attainable").variant()
    kept = json.loads(json.dumps(frozen(variant)))
    assert Asked(kept).library == variant.library
    del kept["library"]  # as a class has it that was released before this was looked at
    assert Asked(kept).library is None
    assert diagnose(Asked(kept), attainable).correct


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_cell_that_became_text_is_told(kind):
    cells = exercises()
    cells[-1] = {k: cells[-1][k] for k in ("id", "source", "metadata")} | {"cell_type": kind}
    word = scores(grade(notebook(cells), ASSIGNMENT))["word"]
    assert word.kind == "unanswered" and "is text, not code" in word.message


@pytest.mark.holds("docs/teach.md", "on inputs that nobody has seen")
def test_a_message_never_tells_a_hidden_input():
    known = question("roofline.attainable").variant()
    table = {
        tuple(known.inputs(s).values()): float(r)
        for s, r in zip(known.samples, known.right, strict=True)
    }
    learned = right(roof=f'known = {table!r}\ncheck("roofline.attainable", lambda *a: known[a])')
    score = scores(grade(learned, ASSIGNMENT, secret="a"))["roof"]
    assert (score.kind, score.points) == ("hidden", 0)
    assert not any(character.isdigit() for character in score.message)


def test_without_bubblewrap_it_refuses_with_a_hint(monkeypatch):
    monkeypatch.setattr(sandbox, "available", inspect.unwrap(sandbox.available))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoSandbox, match="apt install bubblewrap"):
        grade(right(), ASSIGNMENT)
    graded = grade(right(), ASSIGNMENT, isolated=False)
    assert graded.record["isolation"] == "not isolated" and graded.points == 4


def test_a_sandbox_that_does_not_start_costs_no_points(monkeypatch):
    monkeypatch.setattr(sandbox, "PROGRAM", sandbox.COURSE / "__init__.py")
    with pytest.raises(NoSandbox, match="did not start"):
        grade(right(), ASSIGNMENT)


def test_the_packages_of_the_course_fit_into_the_limits():
    heavy = right(
        "import scipy.optimize, scipy.stats, networkx, matplotlib.pyplot, ml_dtypes, numpy,"
        " pint\nfrom concurrent.futures import ThreadPoolExecutor\nassert"
        " sum(ThreadPoolExecutor(4).map(abs, range(9))) == 36"
    )
    graded = grade(heavy, ASSIGNMENT)
    assert (graded.points, graded.notes) == (4, ())


@pytest.mark.slow
def test_not_isolated_still_ends():
    endless = right("while True:\n    try: time.sleep(0.01)\n    except BaseException: pass")
    assert (
        grade(endless, ASSIGNMENT, limits=Limits(wall=3, cell=0.5), isolated=False).status == "time"
    )


@pytest.mark.parametrize(
    "value, meaning",
    [
        ({"kind": "number", "value": 3}, 3),
        ({"kind": "number", "value": "inf"}, math.inf),
        ({"kind": "number", "value": 10**400}, math.inf),
        ({"kind": "text", "value": "x" * 9999}, "x" * 500),
        ({"kind": "none"}, None),
        ({"kind": "list", "value": [{"kind": "bool"}]}, [True]),
        ({"kind": "quantity", "value": {"kind": "number", "value": 8e9},
                "units": {"bit": 1.0, "second": -1.0}}, Q(1, "GB/s")),
    ],
)  # fmt: skip
def test_decode(value, meaning):
    assert decode(json.loads(json.dumps(value))) == meaning


@pytest.mark.parametrize(
    "value",
    [
        None, 3, [], "none", {}, {"kind": []}, {"kind": "number"},
        {"kind": "number", "value": {"a": 1}}, {"kind": "number", "value": True},
        {"kind": "number", "value": "0x10"}, {"kind": "array", "value": {}},
        {"kind": "array", "value": [[1], "x", None, 10**400]},
        {"kind": "list", "value": 3},
        {"kind": "quantity", "value": {"kind": "text", "value": "x"}, "units": {}},
        {"kind": "quantity", "value": {"kind": "number", "value": 1}, "units": {"__import__": 1.0}},
        {"kind": "quantity", "value": {"kind": "number", "value": 1}, "units": {"bit": 1e300}},
        {"kind": "quantity", "value": {"kind": "number", "value": 1}, "units": {"bit": "1"}},
        {"kind": "other", "name": "x; import os"}, {"kind": "other", "name": "x" * 10_000},
        {"kind": "error", "name": 3},
    ],
)  # fmt: skip
def test_what_no_honest_program_says_is_worth_nothing(value):
    meaning = decode(value)
    for id in (*QUESTIONS.values(), "roofline.dot_intensity"):
        assert not diagnose(question(id).variant(), meaning).correct
    assert (
        not isinstance(meaning, (int, float, np.ndarray))
        or np.isnan(meaning).any()
        or np.isinf(meaning).any()
    )


def test_deep_lists_end():
    value = {"kind": "number", "value": 1}
    for _ in range(50):
        value = {"kind": "list", "value": [value]}
    assert not diagnose(question(QUESTIONS["bytes"]).variant(), decode(value)).correct


def test_an_assignment_is_read_from_an_exercise(tmp_path):
    cells = exercises()
    (tmp_path / "x.ipynb").write_bytes(
        notebook([{**c, "source": c["source"].splitlines(keepends=True)} for c in cells])
    )
    found = Assignment.of(tmp_path / "x.ipynb", points={QUESTIONS["word"]: 3})
    assert dict(found.cells) == dict(ASSIGNMENT.cells)
    assert found.points == {**ASSIGNMENT.points, QUESTIONS["word"]: 3.0}
    assert found.functions({q: question(q).kind for q in found.points}) == {
        "roofline.attainable": "roof"
    }
    assert dataclasses.replace(found, points={}).points == ASSIGNMENT.points


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "exercises").glob("*.ipynb")))
def test_every_solution_gets_all_its_points_and_no_remark(name):
    assignment = Assignment.of(ROOT / f"exercises/{name}.ipynb")
    graded = grade((ROOT / f"solutions/{name}.ipynb").read_bytes(), assignment)
    assert (graded.status, graded.notes, graded.points) == (
        "ok",
        (),
        sum(assignment.points.values()),
    )
