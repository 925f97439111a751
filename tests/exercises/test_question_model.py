"""Questions, parameters and variants as data; and that practice costs nothing before it is used."""

import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed_course.practice.amounts import (
    amount,
    close,
    nice,
    powers_of_two,
    si_factor,
    unit_words,
)
from lightspeed_course.practice.parse_answer import Unreadable, parse
from lightspeed_course.practice.questions import Parameter, question, register

TRANSFER = question("sample.transfer")


def test_parameters_are_shown_in_their_unit_and_computed_with_in_si():
    link, count, name = (
        Parameter(400, unit="Gbit/s"),
        Parameter(8192),
        Parameter("fast", show=str.upper),
    )
    assert (link.text(400), link.si(400)) == ("400 Gbit/s", 50e9)
    assert (count.text(8192), count.si(8192), type(count.si(8192))) == ("8,192", 8192, int)
    assert (name.text("fast"), name.si("fast")) == ("FAST", "fast")
    assert Parameter(40, unit="%").si(40) == pytest.approx(0.4)
    assert Parameter(40, unit="%").text(40) == "40 %"


@pytest.mark.parametrize(
    "unit, factor",
    [("", 1), ("s", 1), ("µs", 1e-6), ("byte", 1), ("bit", 1 / 8), ("GB", 1e9), ("GiB", 2**30),
        ("Gbit/s", 1.25e8), ("FLOP/byte", 1),
     ("TFLOP/s", 1e12), ("J", 1), ("pJ", 1e-12), ("W", 1), ("kWh", 3.6e6), ("token", 1),
     ("dollar", 1), ("%", 0.01), ("FLOP/J", 1)],
)  # fmt: skip
def test_factors_to_the_library_s_units(unit, factor):
    assert si_factor(unit) == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize(
    "value, unit, text",
    [(640, "ms", "640 ms"), (1.5e-6, "s", "1.5 µs"), (2.5e13, "", "2.5e13"), (0, "ms", "0 ms"),
        (4e12, "byte/s", "4 TB/s"),
     (1e300, "s", "1e300 s"), (3e-7, "FLOP/byte", "3e-7 FLOP/byte"), (12, "%", "12 %"),
     (5, "dollar", "$5"), (1, "token", "1 token")],
)  # fmt: skip
def test_amounts_in_words(value, unit, text):
    assert amount(value, unit) == text


def test_units_in_words():
    assert [unit_words(u) for u in ("token", "byte", "ms", "dollar", "", "FLOP/byte")] == [
        "tokens",
        "bytes",
        "ms",
        "dollars",
        "",
        "FLOP/byte",
    ]


def test_nice_numbers():
    assert nice(1, 10) == (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    assert nice(0.01, 0.02) == (0.01, 0.015, 0.02)
    assert powers_of_two(256, 2048) == (256, 512, 1024, 2048)


@given(st.floats(1e-9, 1e9), st.floats(1.0, 1e3))
def test_nice_numbers_stay_inside(low, ratio):
    assert all(low <= v <= low * ratio for v in nice(low, low * ratio))


def test_close():
    inf = float("inf")
    assert close(1.02, 1, 0.02) and not close(1.021, 1, 0.02)
    assert close([inf, 0], [inf, 0], 0.1)
    assert not close(inf, 1, 0.1)
    assert not close(1, inf, 0.1)
    assert not close(inf, -inf, 0.1)
    assert not close(float("nan"), 1, 0.1) and not close(float("nan"), float("nan"), 0.1)
    assert close(7, 7, 0) and not close(7.001, 7, 0)
    assert not close([1e-3, 1], [0, 1], 1e-4), "a zero is as exact as its neighbours"


def test_a_seed_draws_the_same_values_for_ever():
    # Grades are replayed from the seed: these values must never change.
    assert TRANSFER.variant("ada").values == {"size": 25, "link": 400, "gpus": 16}
    assert TRANSFER.variant(7).values == TRANSFER.variant("7").values
    assert TRANSFER.variant().values == {"size": 2, "link": 400, "gpus": 16}


def test_classmates_get_different_values_and_each_choice_is_drawn():
    drawn = [TRANSFER.variant(f"student {n}").values for n in range(200)]
    assert len({tuple(v.values()) for v in drawn}) > 80
    assert {v["gpus"] for v in drawn} == {12, 16, 24, 32}


def test_valid_refuses_draws_and_says_when_nothing_is_left():
    only = replace(TRANSFER, valid=lambda size, link, gpus: gpus == 12)
    assert {only.variant(n).values["gpus"] for n in range(20)} == {12}
    with pytest.raises(ValueError, match="no valid variant"):
        replace(TRANSFER, valid=lambda **p: False).variant(1)


def test_a_function_is_tried_on_inputs_of_the_seed_as_well():
    q = question("sample.crossover_size")
    own, ada, bob = (q.variant(seed).samples for seed in (None, "ada", "bob"))
    assert ada[: len(own) - 1] == own[:-1], (
        "the same inputs for all, but the edge, which comes last"
    )
    assert ada != bob and len(ada) == len(own) + 20


def test_valid_holds_for_the_inputs_of_a_function_too():
    q = replace(
        question("sample.crossover_size"), valid=lambda latency, bandwidth: latency > 1e-6, edges=()
    )
    samples = q.variant().samples
    assert len(samples) == 21 and all(s["latency"] > 1e-6 for s in samples[1:])


@pytest.mark.parametrize(
    "change, reason",
    [({"id": "Nothing"}, "topic.name"), ({"level": "hard"}, "level"), ({"kind": "essay"}, "kind"),
        ({"kind": "choice"}, "options"),
     ({"names": ("a", "b")}, "names"), ({"tolerance": -0.1}, "tolerance"),
     ({"tolerance": 2}, "tolerance")],
)  # fmt: skip
def test_what_is_no_question_is_refused(change, reason):
    with pytest.raises(ValueError, match=reason):
        replace(TRANSFER, **change)


def test_questions_cannot_be_changed_or_registered_twice():
    with pytest.raises(FrozenInstanceError):
        TRANSFER.tolerance = 1
    with pytest.raises(ValueError, match="twice"):
        register(TRANSFER)


def test_a_template_names_only_its_parameters():
    variant = TRANSFER.variant()
    assert variant.fill(r"{{ size }} of \frac{a}{b_{c}}") == r"2 GB of \frac{a}{b_{c}}"
    with pytest.raises(KeyError):
        variant.fill("{{sise}}")


@given(st.text(max_size=40) | st.text("0123456789.,eE+-*/^ µmsGBFLOP%$x", max_size=20))
def test_the_box_reads_a_number_or_says_why_not(text):
    try:
        value = parse(text)
    except Unreadable as problem:
        assert len(problem.message.split()) > 4
    else:
        assert float(getattr(value, "magnitude", value)) is not None


def test_the_course_loads_nothing_before_it_is_used():
    script = (
        "import sys, lightspeed_course as c; assert 'numpy' not in sys.modules\nassert dir(c) =="
        " c.__all__; from lightspeed_course import check, diagnose\nheavy = {'pint', 'sqlite3',"
        " 'IPython', 'ipywidgets', 'anywidget', 'matplotlib', 'traitlets'} &"
        " set(sys.modules)\nassert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_verb_is_there_whatever_was_imported_before():
    import importlib

    import lightspeed_course

    for module in (
        "lightspeed_course.practice.ask",
        "lightspeed_course.practice.cards",
        "lightspeed_course.practice.predict",
        "lightspeed_course.practice.progress",
        "lightspeed_course.practice.check",
        "lightspeed_tools.measure.runner",
    ):
        importlib.import_module(module)
    assert all(callable(getattr(lightspeed_course, name)) for name in lightspeed_course.__all__)
    with pytest.raises(AttributeError, match="it has"):
        lightspeed_course.nothing  # noqa: B018
