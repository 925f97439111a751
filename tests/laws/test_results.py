"""A result shows its unit and is otherwise the number that it always was."""

import copy
import csv
import io
import json
import pickle

import numpy as np
import pytest
from laws import LAWS, valid

from lightspeed.catalog import accelerator
from lightspeed.roofline import matmul_flops, ridge_point, time_bounds
from lightspeed.units import Q
from lightspeed.values import Amount, Whole

H100 = accelerator("h100_sxm")
TIME, FLOPS = Amount(1.0234e-3, "s"), Whole(2**60 + 1, "FLOP")


def test_a_cell_shows_the_unit():
    assert repr(ridge_point(H100.bf16, H100.hbm_bandwidth)) == "295 FLOP/byte"
    assert repr(TIME) == "1.02 ms"
    assert (
        repr([matmul_flops(1, 4096, 4096), Whole(24, "byte"), Amount(float("inf"), "s")])
        == "[33.6 MFLOP, 24 bytes, ∞ s]"
    )
    assert repr(Amount(float("nan"), "s")) == "nan s"
    assert "lower=1 ms, upper=2 ms" in repr(time_bounds(1e12, 1e9, 1e15, 1e12))


@pytest.mark.parametrize("number", [TIME, FLOPS])
def test_it_is_the_number_elsewhere(number):
    plain = int(number) if isinstance(number, int) else float(number)
    kind = type(plain)
    assert number == plain and hash(number) == hash(plain)
    assert str(number) == f"{number}" == format(number, "") == str(plain)
    assert f"{number:.2e}" == f"{plain:.2e}"
    assert "%s" % number == str(plain)  # noqa: UP031
    assert all(
        type(x) is kind for x in (number + number, 2 * number, -number, abs(number), number - 1)
    )
    assert type(number / 2) is float and type(sum([number, number])) is kind
    assert json.loads(json.dumps({"t": number})) == {"t": plain}
    file = io.StringIO()
    csv.writer(file).writerow([number])
    assert kind(file.getvalue()) == plain
    assert np.array([number]).dtype == np.array([plain]).dtype and np.array([number])[0] == plain
    assert type(np.float64(1) * number) is np.float64
    assert Q(number, number.unit) == Q(plain, number.unit)


def test_it_travels_with_its_unit():
    for number in (TIME, FLOPS, H100.bf16):
        for twin in (pickle.loads(pickle.dumps(number)), copy.copy(number), copy.deepcopy(number)):
            assert (type(twin), twin, twin.unit) == (type(number), number, number.unit)


def test_every_law_on_plain_numbers_knows_the_unit_that_it_declares():
    for f, law in LAWS.items():
        result = law(**{n: valid(s) for n, s in law.arguments.items()})
        units = law.returns if isinstance(law.returns, dict) else {"": law.returns}
        for name, unit in units.items():
            value = getattr(result, name) if name else result
            assert getattr(value, "unit", "") == unit, f"{f}: {name} {value!r}"


def test_arrays_and_quantities_stay_what_they_are():
    assert type(ridge_point(np.array([1.0]), np.array([2.0]))) is np.ndarray
    assert ridge_point(Q(1, "FLOP/s"), Q(2, "byte/s")).magnitude == 0.5
