"""Floats, arrays and quantities give one answer, and that answer has the declared dimension."""

import contextlib
import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import LAWS

from lightspeed.law import Argument
from lightspeed.units import Q

PREFIXES = {
    "byte": "GiB",
    "byte/s": "Gbit/s",
    "FLOP": "TFLOP",
    "FLOP/s": "TFLOP/s",
    "s": "ms",
    "FLOP/byte": "FLOP/bit",
}


def draw_one(data, spec):
    if not isinstance(spec, Argument):
        return data.draw(st.sampled_from(spec))
    low, high = max(spec.low, 1e-6), min(spec.high, 1e6)
    if spec.whole:
        return data.draw(st.integers(max(1, math.ceil(spec.low)), int(min(high, 10**4))))
    return data.draw(st.floats(low, high, exclude_min=spec.low >= low))


def numbers_of(result):
    """The plain numbers of a result, whether one value or a dataclass of them."""
    if not dataclasses.is_dataclass(result):
        return [result]
    return [getattr(result, field.name) for field in dataclasses.fields(result)]


@pytest.mark.parametrize("examples", [2, pytest.param(25, marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", LAWS)
@pytest.mark.holds("docs/your-own-question.md", "gives one answer to all three")
def test_one_answer(f, examples):
    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def holds(data):
        one_answer(LAWS[f], data)

    holds()


def one_answer(law, data):
    arguments = {n: draw_one(data, s) for n, s in law.arguments.items()}
    try:
        plain = law(**arguments)
    # values that are each in range but not together, such as an overloaded queue
    except ValueError:
        return

    arrays = {n: v if isinstance(v, str) else np.array([v, v], float) for n, v in arguments.items()}
    for one, two in zip(numbers_of(plain), numbers_of(law(**arrays)), strict=True):
        np.testing.assert_allclose(np.broadcast_to(two, (2,)), one, rtol=1e-12)

    with_units = {n: as_quantity(v, law.arguments[n]) for n, v in arguments.items()}
    if not any(hasattr(v, "units") for v in with_units.values()):
        return
    for one, two, unit in zip(
        numbers_of(plain), numbers_of(law(**with_units)), units_of(law, plain), strict=True
    ):
        if isinstance(one, bool) and two != one:
            assert at_a_tie(law, arguments, plain)
            continue
        assert (two.to(unit).magnitude if unit else two) == pytest.approx(one, rel=1e-9)


def at_a_tie(law, arguments, plain):
    """Whether some argument's tenth digit changes a yes or no: rounding may, too."""
    for name, value in arguments.items():
        for factor in (1 - 1e-9, 1 + 1e-9):
            # not a number, or at the end of its range
            with contextlib.suppress(TypeError, ValueError):
                if [
                    v
                    for v in numbers_of(law(**arguments | {name: value * factor}))
                    if isinstance(v, bool)
                ] != [v for v in numbers_of(plain) if isinstance(v, bool)]:
                    return True
    return False


def as_quantity(value, spec):
    """The value in a unit other than SI, unless that would cost a whole number its wholeness."""
    if not getattr(spec, "unit", ""):
        return value
    return Q(value, spec.unit).to(
        PREFIXES.get(spec.unit, spec.unit) if not spec.whole else spec.unit
    )


def units_of(law, result):
    """The declared unit of each number of a result."""
    if not dataclasses.is_dataclass(result):
        return [law.returns]
    return [law.returns.get(field.name, "") for field in dataclasses.fields(result)]


def test_numpy_scalars_and_catalog_numbers_are_numbers():
    from lightspeed.roofline import compute_time, matmul_flops

    assert compute_time(np.float32(2), np.int64(4)) == 0.5
    assert isinstance(matmul_flops(np.int32(1 << 15), 1 << 15, 1 << 15), int)


def test_int32_arrays_do_not_overflow():
    from lightspeed.roofline import matmul_flops

    big = np.array([1 << 15], np.int32)
    assert matmul_flops(big, big, big)[0] == 2.0**46
