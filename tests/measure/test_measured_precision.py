"""Measured errors of sums and products against chapter 5's laws; speed has no part."""

from fractions import Fraction

import numpy as np
import pytest

from lightspeed.errors import BadArgument
from lightspeed.precision import FORMATS
from lightspeed_models.simulators.sums import accumulate
from lightspeed_tools.measure import all_of, find, shipped
from lightspeed_tools.measure.instruments import precision as measured
from lightspeed_tools.measure.instruments.timing import Missing


@pytest.fixture(scope="module")
def sums():
    return {(q.key, q.parameters["dtype"], q.parameters["order"]): q for q in measured.sums()}


@pytest.fixture(scope="module")
def products():
    found = [q for q in measured.matmuls() if not isinstance(q, Missing)]
    return {(q.key, q.parameters["dtype"]): q for q in found}


@pytest.mark.parametrize("dtype", ["fp64", "fp32", "fp16", "bf16"])
@pytest.mark.parametrize("seed", range(5))
def test_a_running_sum_in_the_machine_is_the_chapters_to_the_bit(dtype, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 10.0 ** rng.integers(-3, 3), (20, 700))
    stored = FORMATS[dtype].round(values)
    got = measured.summed(stored.astype(measured.types()[dtype]), "running").astype(np.float64)
    np.testing.assert_array_equal(got, accumulate(stored, FORMATS[dtype]))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["fp64", "fp32", "fp16", "bf16"])
def test_the_running_error_is_predicted_exactly(sums, dtype):
    assert sums["precision.sum_error", dtype, "running"].value == measured.predicted_sum_error(
        dtype
    )


@pytest.mark.slow
def test_no_sum_passes_its_bound(sums):
    for (key, dtype, order), q in sums.items():
        if key == "precision.sum_error":
            assert max(q.samples) <= measured.sum_bound(
                dtype, accumulator="fp32" if order == "fp32" else None
            )
    assert measured.sum_bound("fp16") == np.inf and measured.sum_bound("fp16", 100) < 0.06


@pytest.mark.slow
def test_a_wide_accumulator_mends_the_narrow_sums(sums):
    for dtype in ("fp16", "bf16"):
        assert (
            sums["precision.sum_error", dtype, "fp32"].value
            < FORMATS[dtype].eps / 2
            < sums["precision.sum_error", dtype, "running"].value
        )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["fp16", "int8"])
def test_the_noise_of_a_product_is_that_of_storing(products, dtype):
    assert products["precision.matmul_error", dtype].value == pytest.approx(
        measured.predicted_matmul_error(dtype), rel=0.05
    )


@pytest.mark.slow
def test_wide_products_show_their_accumulator(products):
    for dtype in ("fp32", "fp64"):
        error = products["precision.matmul_error", dtype].value
        assert measured.predicted_matmul_error(dtype) < error < measured.SIDE * FORMATS[dtype].eps


@pytest.mark.slow
def test_speeds_are_counted(sums, products):
    q = sums["precision.sum", "bf16", "running"]
    assert q.counted == {
        "flops": measured.TIMED * measured.SUMMED,
        "bytes": 2 * measured.TIMED * measured.SUMMED,
    }
    assert q.unit == "FLOP/s"
    assert products["precision.matmul", "int8"].unit == "OP/s"
    assert products["precision.matmul", "fp32"].counted == {"flops": 2 * measured.SIDE**3}
    assert all(q.value > 0 for q in (*sums.values(), *products.values()))


def test_the_exact_error_is_exact():
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(2, 12, 12)) * 10.0 ** rng.integers(-8, 8, (2, 12, 12))
    got = x @ w
    exact = [
        sum(Fraction(a) * Fraction(b) for a, b in zip(x[k].tolist(), w[:, k].tolist(), strict=True))
        for k in range(12)
    ]
    off = sum((Fraction(float(got[k, k])) - exact[k]) ** 2 for k in range(12))
    assert measured.exact_error(x, w, got) == pytest.approx(
        float(off / sum(e**2 for e in exact)) ** 0.5, rel=1e-12
    )
    assert measured.relative_error(got, got) == 0
    assert measured.relative_error(1.5 * got, got) == pytest.approx(0.5)


def test_without_torch_bf16_is_missing_and_int8_is_numpys(monkeypatch):
    monkeypatch.setattr(measured, "importable", lambda package: None)
    x, w = np.random.default_rng(0).normal(size=(2, 8, 8))
    missing = measured.prepared("bf16", x, w)
    assert isinstance(missing, Missing) and "torch" in missing.why and missing.remedy
    library, multiply, finish = measured.prepared("int8", x, w)
    assert library == "numpy"
    assert multiply().dtype == np.int32
    assert measured.relative_error(finish(multiply()), x @ w) < 0.03


def test_an_unknown_order_is_refused():
    with pytest.raises(BadArgument, match="order"):
        measured.summed(np.ones(3), "sideways")


def recorded(key, **parameters):
    """Machine -> the recorded quantity, of the two machines that chapter 5 shows."""
    return {
        name: find(record, f"precision.{key}", **parameters).value
        for name, record in shipped().items()
        if all_of(record, "precision.sum")
    }


@pytest.mark.parametrize("key", ["sum_error", "matmul_error"])
def test_recorded_machines_agree_in_their_errors(key):
    """In the digits that the chapter's tables show."""
    first, *others = (
        [(sorted(map(str, q.parameters.items())), f"{q.value:.2e}") for q in all_of(record,
                f"precision.{key}")]
        for record in shipped().values() if all_of(record, f"precision.{key}")
    )  # fmt: skip
    assert others and all(other == first for other in others)


def test_recorded_machines_do_not_agree_in_what_is_fast():
    """fp16 without units is slower than fp32, at half the bytes; bf16 wins with a unit."""
    sums = {n: recorded("sum", dtype=n, order="library") for n in ("fp16", "fp32")}
    assert len(sums["fp16"]) == 2
    assert all(sums["fp16"][name] < sums["fp32"][name] for name in sums["fp16"])
    products = {n: recorded("matmul", dtype=n) for n in ("bf16", "fp32")}
    gains = [products["bf16"][name] / products["fp32"][name] for name in products["bf16"]]
    assert max(gains) > 2 and min(gains) < 1
