"""The explorer of chapter 5: every kind of code in every format is drawn, and said rightly."""

import json
import math
import random
import statistics

import numpy as np
import pytest

from lightspeed.precision import FORMATS, Integer
from lightspeed_course.explorers import roundings
from lightspeed_course.explorers.precision import (
    NAMES,
    TOGGLES,
    Bit,
    bits_of,
    code_of,
    explore,
    number,
    view,
)
from lightspeed_show import Points
from lightspeed_show.layout import lay_out

BF16 = FORMATS["bf16"]
EDGE_BITS = [
    [0] * TOGGLES,
    [1] * TOGGLES,
    [0] * (TOGGLES - 1) + [1],
    [0] + [1] * (TOGGLES - 1),
    [1] + [0] * (TOGGLES - 1),
]


def patterns(drawn):
    rng = np.random.default_rng(0)
    for bits in [*EDGE_BITS, *rng.integers(0, 2, (drawn, TOGGLES)).tolist()]:
        yield dict(zip(NAMES, map(bool, bits), strict=True))


@pytest.mark.parametrize("drawn", [2, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FORMATS)
def test_every_kind_of_code_can_be_drawn(name, drawn):
    facts = [label for label, _ in explore().first.facts]
    for bits in patterns(drawn):
        for rest in (0, 1):
            shown = view(name, rest, **bits)
            assert shown.verdict
            assert [label for label, _ in shown.facts] == facts
            json.dumps(shown.spec(), allow_nan=False)


@pytest.mark.parametrize("codes", [50, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [n for n in FORMATS if FORMATS[n].bits <= TOGGLES])
def test_the_words_fit_the_code(name, codes):
    f = FORMATS[name]
    for code in np.unique(np.linspace(0, 2**f.bits - 1, codes).astype(int)):
        bits = bits_of(f, int(code))
        assert code_of(f, 0, bits) == code
        value, verdict = f.decode(int(code)), view(name, 0, **bits).verdict
        if isinstance(f, Integer):
            assert verdict.startswith(f"The integer {value:,.0f}")
        elif math.isnan(value):
            assert verdict.startswith("Not a number")
        elif math.isinf(value):
            assert verdict.startswith("Infinity")
        else:
            kind = (
                "Zero"
                if value == 0
                else "Subnormal"
                if abs(value) < f.smallest_normal
                else "Normal"
            )
            assert verdict.startswith(kind)


def test_the_first_bits_of_fp32_are_bf16():
    bits = bits_of(FORMATS["bf16"], FORMATS["bf16"].encode(math.pi))
    assert code_of(FORMATS["fp32"], 0, bits) == FORMATS["fp32"].encode(
        FORMATS["bf16"].round(math.pi)
    )


def test_neighbours_are_told_apart_in_wide_formats():
    for name in ("fp32", "fp64", "tf32"):
        bits = bits_of(FORMATS["bf16"], FORMATS["bf16"].encode(math.pi))
        facts = dict(view(name, 0, **bits).facts)
        assert len({facts["value"], facts["next below"], facts["next above"]}) == 3


def test_a_reader_sets_one_bit_and_changes_the_format():
    e = explore()
    assert "3.140625" in e.shown.verdict
    assert "-3.140625" in e.set(b1=True).verdict and e.error is None
    assert "fp16" in str(e.set(format="fp16").spec()) and e.error is None
    assert all(isinstance(e.controls[n], Bit) for n in NAMES)
    assert len(list(e.grid())) == 2 * len(FORMATS)


def test_numbers_as_written():
    assert [number(x) for x in (65504.0, 0.001953125, 5.960464477539063e-08, -0.0, math.inf,
            math.nan)] == [
        "65,504", "0.001953125", "5.96 × 10⁻⁸", "-0", "infinity", "none",
    ]  # fmt: skip


def at(name, value, rest=0):
    """The view of a value, which the toggles and `rest` must be able to set."""
    return view(name, rest, **bits_of(FORMATS[name], FORMATS[name].encode(value)))


def on_the_line(shown):
    """Place -> label of each labelled point of the neighbours, and the places of all points."""
    marks = [mark for mark in shown.charts[2].marks if isinstance(mark, Points)]
    return {
        x: text for mark in marks for x, text in zip(mark.x, mark.labels, strict=bool(mark.labels))
    }, {x for mark in marks for x in mark.x}


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp64", "fp8_e5m2"])
def test_next_to_infinity_stands_the_last_value(name):
    for sign, fact in ((1, "next below"), (-1, "next above")):
        shown = at(name, sign * math.inf)
        labels, places = on_the_line(shown)
        assert labels == {-sign: dict(shown.facts)[fact]}
        assert len(places) == 4 and all(place * sign < 0 for place in places)


def test_what_is_no_number_has_no_neighbours():
    for name in ("bf16", "fp64", "fp8_e4m3", "e8m0"):
        assert on_the_line(at(name, math.nan)) == ({}, set())


@pytest.mark.parametrize("name", FORMATS)
def test_facts_that_name_one_value_write_it_alike(name):
    f, facts = FORMATS[name], dict(view(name, 0).facts)
    if not isinstance(f, Integer) and not f.scale:  # all bits are zero: zero
        assert facts["next above"] == facts["smallest above zero"]
    assert dict(at(name, f.max, rest=1).facts)["value"] == facts["largest"]


def test_the_facts_tell_neighbours_apart():
    for name in ("bf16", "fp16", "fp32", "fp64"):
        f = FORMATS[name]
        for value in (f.max / 2, f.smallest_normal, 7 * f.smallest_subnormal, 1e-3, math.pi):
            facts = dict(at(name, value).facts)
            assert len({facts["value"], facts["next below"], facts["next above"]}) == 3, (
                name,
                value,
            )


def test_all_digits_of_a_short_value_are_shown():
    assert "3.140625 is 1.5703125 times" in explore().first.verdict
    assert dict(at("bf16", 1.5703125).facts)["value"] == "1.5703125"


def test_fp64_shows_its_bits_its_codes_and_its_ends():
    shown = at("fp64", math.pi)
    bits = dict(shown.facts)["bits"]
    assert bits.replace(" ", "").replace("|", "") == f"{int(dict(shown.facts)['code'], 16):064b}"
    assert bits.startswith("0 | 10000000000 | 1001 0010 ") or bits.startswith(
        "0 | 10000000000 | 1001 0000 "
    )
    assert dict(shown.facts)["codes"] == "2⁶⁴"
    spec = lay_out(shown.charts[1])["x"]
    assert [text for _, text in spec["ticks"]] == ["4.94 × 10⁻³²⁴", "1", "1.8 × 10³⁰⁸"]
    assert all(map(math.isfinite, spec["domain"]))


@pytest.mark.parametrize("rate", roundings.RATES)
def test_three_roundings_of_one_weight(rate):
    """To nearest stays where an update is below half a step, a wide copy is as near as bf16 can
    say, and a coin is right on average.
    """
    exact, found = roundings.runs(rate)
    half = BF16.spacing(roundings.FIRST) / 2
    assert (found["to nearest"][-1] == roundings.FIRST) == (rate < half)
    wide = found["with a copy in fp32"]
    assert all(abs(a - b) <= BF16.spacing(b) / 2 * 1.0001 for a, b in zip(wide, exact, strict=True))
    ends = []
    for seed in range(200):
        weight, coin = roundings.FIRST, random.Random(seed)
        for _ in range(20):
            weight = BF16.round(weight + rate, rng=coin)
        ends.append(weight - roundings.FIRST)
    assert statistics.fmean(ends) == pytest.approx(20 * rate, abs=6 * half * (20 / 200) ** 0.5)


def test_fewer_weights_stand_still_at_a_higher_rate():
    """Counted on draws by the size of a step, not by rounding."""
    weights = np.abs(np.random.default_rng(3).normal(0, 0.02, 20_000))
    for rate in roundings.RATES:
        step = 2.0 ** (np.floor(np.log2(weights)) - 7)
        lost = float(np.mean(rate < step / 2))
        assert roundings.standing_still(rate) == pytest.approx(lost, abs=0.02), rate
