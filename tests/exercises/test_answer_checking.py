"""The verdict on an answer: what comes first, what is said, and that nothing breaks it."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_bank import step

from lightspeed.catalog import accelerator
from lightspeed.units import Q
from lightspeed_course import check, diagnose
from lightspeed_course.practice.questions import Misconception, Parameter, UnknownQuestion, question
from lightspeed_course.practice.slips import factors
from lightspeed_course.practice.store import events

TRANSFER, RIDGE, HOP = (question(f"sample.{name}") for name in ("transfer", "ridge", "hop"))
RIGHT = 640.0  # ms: 16 shards of 2 GB over 50 GB/s


def verdict(answer, q=TRANSFER):
    return diagnose(q.variant(), answer)


def test_the_right_answer():
    assert TRANSFER.variant().right[0] == pytest.approx(RIGHT)
    for answer in (
        640,
        640.0,
        652.7,
        627.3,
        Fraction(640),
        Decimal(640),
        np.float32(640),
        np.int16(640),
        np.array([640]),
    ):
        assert verdict(answer).correct, answer
    assert verdict(Q(0.64, "s")).correct
    assert not verdict(655).correct and not verdict(625).correct, "the tolerance is two percent"


ORDER = [
    (..., "unanswered", ""),
    (None, "unanswered", ""),
    (Q(640, "GB"), "dimension", ""),
    (Q(640, ""), "dimension", ""),
    (-640, "sign", ""),
    (600, "misconception", "n minus one"),
    (602, "misconception", "n minus one"),  # rounded on the way
    (640 / 3, "misconception", "wire both ways"),
    (640 * 8, "slip", "bits and bytes"),
    (640 / 8, "slip", "bits and bytes"),
    (1280, "slip", "both directions"),
    (640 / 1e6, "slip", "prefix"),
    (0.64, "slip", "unit"),  # seconds where milliseconds are asked
    (640 * 2**30 / 1e9, "slip", "binary prefix"),
    (640 / 2**40 * 1e12, "slip", "binary prefix"),
    (687, "slip", "binary prefix"),  # rounded on the way
    (5100, "slip", "bits and bytes"),
    (40, "slip", "one or all"),
    (1 / 640, "slip", "upside down"),
    (665, "close", ""),
    (1500, "magnitude", ""),
    (63000, "magnitude", ""),
    (0, "magnitude", ""),
]


@pytest.mark.parametrize("answer, kind, name", ORDER, ids=lambda v: str(v))
def test_the_kind_of_verdict(answer, kind, name):
    result = verdict(answer)
    assert (result.correct, result.kind, result.name) == (False, kind, name), result
    assert repr(result) == repr(verdict(answer)), "a verdict is the same each time"


def test_what_a_verdict_says():
    assert "at 50" not in repr(verdict(1500))
    assert "You have 1,500 ms" in verdict(1500).message and "too high" in verdict(1500).message
    assert "within a factor of three" in verdict(1500).message
    assert "about a hundred times too high" in verdict(63000).message
    assert "less than a factor of ten" in verdict(90.0).message
    assert "too low" in verdict(90.0).message
    assert "GB" in verdict(Q(640, "GB")).message and "ms" in verdict(Q(640, "GB")).message
    assert verdict(640)._repr_markdown_() == "**Right.** You have 640 ms."
    assert repr(verdict(640)) == "Right. You have 640 ms."


TIME_ONLY = {
    "parameters": {},
    "expected": lambda: 0.64,
    "solution": "A wait of that long, as it is known.",
    "misconceptions": (),
    "valid": None,
}


@pytest.mark.parametrize("factor", [8, 1.024, 1.024**3])
def test_bytes_are_not_brought_up_where_there_are_none(factor):
    told = diagnose(replace(TRANSFER, **TIME_ONLY).variant(), 640 * factor)
    assert told.kind != "slip" and "byte" not in told.message


def test_a_factor_of_two_has_the_reasons_of_its_dimensions():
    def told(**changes):
        variant = replace(TRANSFER, **{**TIME_ONLY, **changes}).variant()
        return " ".join(reason for _, factor, reason in factors(variant) if factor == 2)

    assert "multiply-add" not in told()
    assert "direction" not in told()
    assert "there and back" not in told()
    assert "there and back" in told(unit="km", expected=lambda: 640e3)
    assert "sparse" not in told(unit="km", expected=lambda: 640e3)
    assert "sparse" in told(unit="TFLOP/s", expected=lambda: 640e12)
    assert "direction" not in told(unit="TFLOP/s", expected=lambda: 640e12)
    assert "two directions" in told(unit="GB/s", expected=lambda: 640e9)
    assert "there and back" not in told(unit="GB/s", expected=lambda: 640e9)
    assert "multiply-add" not in told(unit="J", expected=lambda: 640)
    assert "there and back" not in told(unit="J", expected=lambda: 640)


def test_plain_numbers_have_no_prefix_to_lose():
    plain = replace(TRANSFER, **{**TIME_ONLY, "unit": "", "expected": lambda: 640})
    assert diagnose(plain.variant(), 640e3).kind == "magnitude"
    assert diagnose(plain.variant(), 64e3).kind == "magnitude", (
        "a hundred is the mark of per cent only where a share is asked"
    )


def test_a_misconception_rounded_to_three_digits_goes_before_a_slip():
    one_way = Misconception("one way", lambda: 0.3199, "There and back?")
    asked = replace(TRANSFER, **{**TIME_ONLY, "misconceptions": (one_way,)})
    assert diagnose(asked.variant(), 320).name == "one way"


def test_the_neighbour_of_an_exact_count_is_close():
    asked = replace(TRANSFER, **{**TIME_ONLY, "unit": "", "expected": lambda: 640, "tolerance": 0})
    above, below = (diagnose(asked.variant(), value) for value in (641, 639))
    assert above.name == below.name == "off by one"
    same = (v.message.partition(". ")[2] for v in (above, below))
    assert len(set(same)) == 1, "which side it is off to is for the learner to find"
    assert diagnose(asked.variant(), 643).kind == "magnitude"


def test_of_two_slips_that_fit_as_well_neither_is_told():
    eight = replace(TRANSFER, parameters={**TRANSFER.parameters, "gpus": Parameter(8)})
    verdict = diagnose(eight.variant(), eight.variant().right[0] * 8)
    assert verdict.kind == "magnitude" and "does not tell which" in verdict.message
    assert "bits" not in verdict.message and "gpus" not in verdict.message
    assert "bits" in diagnose(TRANSFER.variant(), TRANSFER.variant().right[0] * 8).message


def test_who_is_right_reads_why_it_matters_and_nobody_else():
    asked = replace(TRANSFER, why="It takes {{size}} to say so.")
    right, wrong = (diagnose(asked.variant(), value) for value in (640, 100))
    size = TRANSFER.parameters["size"].text(TRANSFER.parameters["size"].canonical)
    assert right.why == f"It takes {size} to say so." and wrong.why == ""
    assert f"\n\n{right.why}" in right._repr_markdown_() and right.why in repr(right)
    assert diagnose(TRANSFER.variant(), 640).why == ""


def test_a_written_diagnosis_stands_alone():
    right = TRANSFER.variant().right[0]
    written = Misconception(
        "eight links", lambda **p: 8 * right / 1000, "How many links are there?"
    )
    verdict = diagnose(replace(TRANSFER, misconceptions=(written,)).variant(), 8 * right)
    assert (verdict.kind, verdict.name) == ("misconception", "eight links")
    assert "bits" not in verdict.message


def test_a_sparse_peak_is_suspected_only_where_a_data_sheet_was_read():
    def suspected(shown):
        chip = Parameter("h100_sxm", show=lambda key: shown)
        asked = replace(
            RIDGE,
            parameters={"key": chip},
            expected=lambda key: 295.0,
            misconceptions=(),
            solution="",
        )
        return "a sparse peak" in {name for name, _, _ in factors(asked.variant())}

    assert suspected("an H100") and not suspected("an H100 (bf16 peak 989 TFLOP/s)")


def test_the_answer_in_the_library_s_own_unit_is_recognised():
    assert "read in µs" in verdict(1.5e-6, HOP).message


def test_a_catalog_number_carries_its_unit():
    chip = accelerator("a100_80gb")
    assert verdict(chip.hbm_bandwidth, RIDGE).kind == "dimension"
    q = replace(
        RIDGE,
        id="sample.bandwidth",
        expected=lambda peak, bandwidth: float(chip.hbm_bandwidth),
        unit="GB/s",
    )
    assert diagnose(q.variant(), chip.hbm_bandwidth).correct


def test_a_misconception_that_is_right_for_these_values_never_refuses_a_right_answer():
    same = Misconception("coincides", lambda **p: RIGHT / 1000, "Not shown.")
    near = Misconception("nearly", lambda **p: RIGHT / 1000 * 1.015, "Not shown.")
    q = replace(TRANSFER, misconceptions=(same, near))
    for answer in (RIGHT, RIGHT * 1.015, RIGHT * 0.985):
        assert diagnose(q.variant(), answer).correct


def test_two_misconceptions_with_one_value_are_both_told():
    twin = Misconception(
        "another reason",
        lambda size, link, gpus: (gpus - 1) * size / link,
        "Or you counted the links.",
    )
    result = diagnose(
        replace(TRANSFER, misconceptions=(*TRANSFER.misconceptions, twin)).variant(), 600
    )
    assert result.name == "n minus one or another reason"
    assert TRANSFER.misconceptions[2].hint in result.message and twin.hint in result.message


def test_of_two_near_misconceptions_the_nearer_is_told():
    close_by = Misconception(
        "close by", lambda size, link, gpus: (gpus - 0.85) * size / link, "Not this one."
    )
    q = replace(TRANSFER, misconceptions=(close_by, *TRANSFER.misconceptions))
    assert diagnose(q.variant(), 601).name == "n minus one"
    assert diagnose(q.variant(), 605).name == "close by"


class Liar:
    def __eq__(self, other):
        return True

    def __float__(self):
        return RIGHT

    __index__ = __int__ = __float__
    __hash__ = None


class Disguised:
    @property
    def __class__(self):
        return float

    def __float__(self):
        return RIGHT


class LyingFloat(float):
    def __float__(self):
        return RIGHT

    def __eq__(self, other):
        return True

    __sub__ = __rsub__ = __truediv__ = lambda self, other: 0.0
    __pos__ = __abs__ = lambda self: RIGHT
    __hash__ = float.__hash__


class LyingInt(int):
    def __float__(self):
        return RIGHT

    __index__ = __int__ = __pos__ = lambda self: 640
    bit_length = lambda self: 1  # noqa: E731


class LyingArray(np.ndarray):
    def astype(self, *a, **k):
        return np.array([RIGHT])

    __array__ = reshape = astype


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __len__ = __iter__ = __bool__ = __getattr__ = __repr__


class Exploding(float):
    def __pos__(self):
        raise RuntimeError("boom")

    __float__ = __eq__ = __pos__
    __hash__ = None


HOSTILE = {
    "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "numpy nan": np.float64("nan"),
    "quantity nan": Q(float("nan"), "ms"),
    "true": True, "numpy true": np.True_, "text": "some six hundred", "bytes": b"640",
    "complex": 640 + 0j, "numpy complex": np.complex64(640),
    "huge": 10**400, "huge negative": -(10**5000), "big": 10**300, "empty list": [],
    "list": [640.0], "nested": [[640.0]], "set": {640.0},
    "empty array": np.array([]), "two": np.array([640.0, 640.0]),
    "objects": np.array([Liar(), None], dtype=object)[:1], "texts": np.array(["640"]),
    "bools": np.array([True]), "dates": np.datetime64("2020-01-01"), "liar": Liar(),
    "liar's class": Liar, "disguised": Disguised(),
    "lying float": LyingFloat(1.0), "lying int": LyingInt(1),
    "lying array": np.array([1.0]).view(LyingArray), "unspeakable": Unspeakable(),
    "exploding": Exploding(1.0), "function": lambda: 640.0, "class": float, "module": np,
    "exception": ValueError(640), "dict": {"ms": 640},
    "generator": (x for x in [640.0]),
    "quantity of text": Q(1, "ms").__class__(Decimal("NaN"), "ms"), "range": range(640),
    "decimal nan": Decimal("NaN"), "decimal inf": Decimal("Infinity"),
    "not implemented": NotImplemented,
    "other registry": pint.UnitRegistry().Quantity(640, "ms"), "bits": Q(640, "bit/byte"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("q", ["transfer", "two_clocks", "step_limit", "crossover_size"])
def test_nothing_odd_is_right_or_raises(name, q):
    result = check(f"sample.{q}", HOSTILE[name])
    assert not result.correct
    assert len(result.message.split()) >= 5
    assert len(result.message) < 400


@pytest.mark.parametrize(
    "name, word",
    {"nan": "0/0", "inf": "infinity", "true": "True or False", "text": "text is not a number",
        "complex": "complex", "huge": "hundreds of digits",
     "function": "forget to call", "list": "a list", "two": "2 numbers", "liar": "a Liar",
     "other registry": "registry"}.items(),
)  # fmt: skip
def test_odd_answers_get_a_clear_message(name, word):
    assert word in verdict(HOSTILE[name]).message


scalars = (
    st.floats() | st.integers() | st.complex_numbers() | st.booleans() | st.text() | st.binary()
    | st.decimals() | st.fractions()
    | st.none() | st.just(...) | st.floats(width=32).map(np.float32)
)  # fmt: skip
units = st.sampled_from(["ms", "s", "GB", "FLOP/byte", "", "token", "bit/s", "%"])
answers = st.recursive(
    scalars
    | st.builds(Q, st.floats(), units)
    | st.lists(st.floats(), max_size=4).map(np.array)
    | st.sampled_from(sorted(HOSTILE)).map(lambda name: HOSTILE[name]),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner,
        inner) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    | inner.map(lambda value: lambda *a, **k: value),
    max_leaves=4,
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    answer=answers,
    name=st.sampled_from(
        ["transfer", "ridge", "two_clocks", "step_limit", "crossover_size", "hop"]
    ),
)
def test_check_never_raises_and_right_means_within_tolerance(answer, name):
    variant = question(f"sample.{name}").variant()
    result = diagnose(variant, answer)
    assert repr(result) and result._repr_markdown_()
    if result.correct and name in ("transfer", "ridge", "hop"):
        value = answer.to(variant.question.unit).magnitude if hasattr(answer, "to") else answer
        assert float(np.asarray(value, float).reshape(-1)[0]) == pytest.approx(
            variant.right[0], rel=variant.question.tolerance * 1.001
        )


@settings(max_examples=300, deadline=None)
@given(value=st.floats(min_value=-1e300, max_value=1e300))
def test_every_float_is_judged_by_its_value(value):
    assert verdict(value).correct == (abs(value - RIGHT) <= 0.02 * RIGHT * (1 + 1e-9))


@pytest.mark.holds("practice", "Your function agrees with the library")
def test_functions():
    def run(function):
        return verdict(function, question("sample.crossover_size"))

    assert run(lambda latency, bandwidth: latency * bandwidth).correct
    assert run(lambda a, b: a * b).correct, "other names are called in order"
    assert run(lambda bandwidth, latency: latency * bandwidth).correct, (
        "the right names are called by name"
    )
    assert run(lambda latency, bandwidth: Q(latency * bandwidth / 1000, "kB")).correct
    assert run(lambda latency, bandwidth: 8 * latency * bandwidth).name == "bits and bytes"
    assert (
        run(lambda latency, bandwidth: latency * bandwidth * (1.5 if latency > 1e-4 else 1)).kind
        == "partial"
    )
    # right at latency zero alone
    assert "on 1" in run(lambda latency, bandwidth: 1.5 * latency * bandwidth).message
    constant = run(lambda latency, bandwidth: 5.0).message
    assert "none of the" in constant
    assert "just where" not in constant
    assert "just where latency" in run(lambda latency, bandwidth: 1.5 * latency * bandwidth).message
    assert run(lambda latency, bandwidth: Q(1, "s")).kind == "dimension"
    assert run(1e-6 * 50e9).kind == "type"

    def raises(latency, bandwidth):
        raise SystemExit(0)

    assert "SystemExit" in run(raises).message and run(raises).kind == "error"
    assert "return" in run(lambda latency, bandwidth: None).message

    wrong = run(lambda latency, bandwidth: bandwidth / latency if latency else 0.0)
    assert not wrong.correct
    message = run(lambda latency, bandwidth: bandwidth / latency).message
    assert "for latency = 1 µs, bandwidth = 50 GB/s" in message and "Write the units" in message, (
        message
    )
    assert "50 kB" not in message, "the right result is not shown"


@pytest.mark.holds("practice", "Your function gives no number")
def test_what_is_said_of_a_function_that_gives_no_number():
    def run(function):
        return verdict(function, question("sample.crossover_size"))

    gap = run(lambda latency, bandwidth: latency * bandwidth if latency else None)
    assert gap.kind == "partial"
    assert "at latency = 0 s" in gap.message
    assert "which branch" in gap.message
    assert run(lambda latency, bandwidth: None).kind == "unanswered"
    assert "takes 1 argument; 2 are asked: latency, bandwidth." in run(lambda latency: 1.0).message
    assert "takes 3 arguments; 2 are asked" in run(lambda a, b, c: 1.0).message
    assert run(lambda a, b, c: 1.0).kind == "error"

    def told(error):
        def raises(latency, bandwidth):
            raise error

        return run(raises).message

    assert "ValueError (`oops`)" in told(ValueError("oops"))
    assert "`<b> 'x'`" in told(ValueError("<b>\n`x`")), (
        "words are code: one line, and nothing that ends it"
    )
    assert len(told(ValueError("long " * 1000))) < 400
    assert "NotImplementedError at" in told(NotImplementedError())


@pytest.mark.holds("practice", "in another order than asked")
def test_another_order_costs_the_grader_no_calls():
    """Its stand-in for the student's function takes any names; what it gave is compared."""
    roof, calls = question("roofline.attainable").variant(), []

    def replay(**inputs):
        calls.append(inputs)
        i, b, p = inputs.values()
        return min(p, i * b)

    assert diagnose(roof, replay).name == "another order" and len(calls) == len(roof.samples)


@pytest.mark.holds("practice", "nothing here is below zero")
def test_a_sign_and_two_values_that_are_no_list():
    assert "sign is wrong" in verdict(-640).message and "difference" not in verdict(-640).message
    assert (
        "2 numbers are asked, as a list or a tuple"
        in verdict({1, 2}, question("sample.two_clocks")).message
    )


def test_a_slight_misconception_is_no_mistake_within_the_tolerance():
    slight = Misconception(
        "slight",
        lambda size, link, gpus: gpus * size / link * (1 + 0.3 / gpus),
        "A share too many.",
        slight=True,
    )
    q = replace(
        TRANSFER,
        misconceptions=(*TRANSFER.misconceptions, slight),
        parameters={**TRANSFER.parameters, "gpus": Parameter(12)},
        tolerance=0.02,
    )
    many = replace(q, parameters={**TRANSFER.parameters, "gpus": Parameter(32)})
    assert diagnose(q.variant(), q.variant().right[0] * (1 + 0.3 / 12)).name.startswith("slight")
    assert many.variant().is_sound()
    assert diagnose(many.variant(), many.variant().right[0] * (1 + 0.3 / 32)).correct


def test_a_function_that_changes_its_mind_is_judged_on_each_call():
    calls = []

    def worn(latency, bandwidth):
        calls.append(1)
        return latency * bandwidth if len(calls) < 10 else 0.0

    assert not verdict(worn, question("sample.crossover_size")).correct


def test_arrays():
    clocks = question("sample.two_clocks")
    right = [step(64, "fast").math * 1e6, step(64, "fast").comms * 1e6]
    assert verdict(right, clocks).correct
    assert verdict([right[0], Q(right[1] / 1e6, "s")], clocks).correct
    half = verdict([right[0], right[1] * 1.4], clocks)
    assert half.kind == "partial"
    assert "1 of 2" in half.message
    assert "Look again: traffic is too high" in half.message
    both = verdict([right[0] * 0.7, right[1] * 1.4], clocks).message
    assert "0 of 2" in both and "arithmetic is too low" in both and "traffic is too high" in both
    assert verdict(right[:1], clocks).kind == verdict([*right, 1], clocks).kind == "type"
    assert verdict([right[0], ...], clocks).kind == "unanswered"
    assert verdict(right[::-1], clocks).name == "swapped"
    assert verdict(np.array(right) * 1000, clocks).name == "prefix"


def test_choices():
    limit = question("sample.step_limit")
    assert verdict("bandwidth", limit).correct
    assert verdict("clock", limit).name == "the host"
    assert verdict("peek", limit).kind == "type" and '"peak"' in verdict("peek", limit).message


def test_check_records_each_try_and_takes_its_seed_from_the_environment(monkeypatch):
    assert check("sample.transfer", 640).correct
    check("sample.transfer", ...)
    check("sample.transfer", 600)
    monkeypatch.setenv("LIGHTSPEED_SEED", "ada")
    theirs = TRANSFER.variant("ada").right[0]
    assert theirs != pytest.approx(RIGHT)
    assert check("sample.transfer", theirs).correct
    assert check("sample.transfer", TRANSFER.variant("bob").right[0], seed="bob").correct
    kept = [(e.detail["correct"], e.detail["kind"], e.detail["seed"]) for e in events("try")]
    assert kept == [
        (True, "right", None),
        (False, "misconception", None),
        (True, "right", "ada"),
        (True, "right", "bob"),
    ]


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(UnknownQuestion, match=r"did you mean 'sample\.transfer'"):
        check("sample.transfr", 1)
    with pytest.raises(UnknownQuestion, match="topics are"):
        check("nothing", 1)
