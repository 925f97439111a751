"""The roofline against closed forms, limits and brute force."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lightspeed import datasheet
from lightspeed import roofline as r
from lightspeed.units import Q

sizes = st.integers(1, 1 << 16)
rates = st.floats(1e6, 1e18)
widths = st.sampled_from([0.5, 1, 2, 4, 8])


@given(st.floats(0, 1e24), st.floats(1e-3, 1e18), rates, rates)
def test_bounds_are_within_a_factor_of_two(flops, size, peak, bandwidth):
    t = r.time_bounds(flops, size, peak, bandwidth)
    assert t.lower <= t.upper <= 2 * t.lower
    assert t.compute_bound == (t.math >= t.comms)


@given(st.floats(1, 1e24), st.floats(1, 1e18), rates, rates)
def test_time_and_roof_are_the_same_statement(flops, size, peak, bandwidth):
    roof = r.attainable(r.arithmetic_intensity(flops, size), peak, bandwidth)
    assert flops / r.time_bounds(flops, size, peak, bandwidth).lower == pytest.approx(
        roof, rel=1e-9
    )


@given(rates, rates)
def test_the_ridge_is_where_both_roofs_meet(peak, bandwidth):
    ridge = r.ridge_point(peak, bandwidth)
    assert r.attainable(ridge, peak, bandwidth) == pytest.approx(peak)
    assert r.attainable(ridge / 2, peak, bandwidth) == pytest.approx(peak / 2)
    assert r.attainable(ridge * 2, peak, bandwidth) == peak


@given(st.floats(1e-3, 1e6), st.floats(1, 1e3), rates, rates)
def test_a_higher_intensity_is_never_slower(intensity, more, peak, bandwidth):
    assert r.attainable(intensity * more, peak, bandwidth) >= r.attainable(
        intensity, peak, bandwidth
    )


@pytest.mark.parametrize(("B", "D", "F"), [(1, 1, 1), (2, 3, 4), (5, 7, 3)])
def test_matmul_counts_by_brute_force(B, D, F):
    multiply_adds = sum(1 for _ in np.ndindex(B, D, F))
    assert r.matmul_flops(B, D, F) == 2 * multiply_adds
    x, y = np.zeros((B, D), np.int8), np.zeros((D, F), np.float32)
    z = np.zeros((B, F), np.float16)
    assert (
        r.matmul_bytes(B, D, F, y.itemsize, x.itemsize, z.itemsize)
        == x.nbytes + y.nbytes + z.nbytes
    )
    per_row = np.zeros((B, D, F), np.float32)
    assert r.batched_matmul_bytes(B, D, F, 4, 1, 2) == x.nbytes + per_row.nbytes + z.nbytes


@given(sizes, sizes, sizes, widths)
def test_matmul_intensity_is_symmetric_and_below_its_smallest_side(B, D, F, e):
    ai = r.matmul_intensity(B, D, F, e, e, e)
    assert ai == pytest.approx(r.matmul_intensity(F, B, D, e, e, e))
    assert ai <= 2 * min(B, D, F) / e


@given(
    st.integers(64, 1 << 14), st.integers(64, 1 << 14), st.floats(1, 1e3), widths, widths, widths
)
def test_exact_critical_batch_reaches_the_ridge(D, F, ridge, w, a, o):
    batch = r.critical_batch_exact(D, F, ridge, w, a, o)
    if math.isinf(batch):
        assert r.matmul_intensity(10**12, D, F, w, a, o) <= ridge * (1 + 1e-9)
        return
    assume(batch < 1e9)
    above, below = math.ceil(batch * 1.01) + 1, math.floor(batch * 0.99) - 1
    assert r.matmul_intensity(above, D, F, w, a, o) > ridge
    if below >= 1:
        assert r.matmul_intensity(below, D, F, w, a, o) < ridge


def test_exact_critical_batch_tends_to_the_simple_one():
    huge = 1 << 40
    assert r.critical_batch_exact(huge, huge, 240.0) == pytest.approx(r.critical_batch(240.0))
    assert r.critical_batch_exact(huge, huge, 240.0, 1, 2, 2) == pytest.approx(
        r.critical_batch(240.0, 1)
    )


def test_dot_product_tends_to_a_half():
    n = 1 << 30
    assert r.arithmetic_intensity(r.dot_flops(n), r.dot_bytes(n)) == pytest.approx(0.5)


@given(
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(1, 64),
    st.integers(1, 64),
)
def test_tiles_move_at_least_what_the_matmul_must(m, n, k, bm, bn):
    assert r.tiled_matmul_bytes(m, n, k, bm, bn) >= r.matmul_bytes(m, k, n)


def test_tiles_by_brute_force():
    m, n, k, bm, bn = 12, 8, 5, 4, 2
    moved = sum(bm * k + k * bn + bm * bn for _ in range(0, m, bm) for _ in range(0, n, bn))
    assert r.tiled_matmul_bytes(m, n, k, bm, bn, 1) == moved


def test_a_long_contraction_gives_the_tile_intensity():
    flops, size = (
        r.matmul_flops(256, 1 << 24, 256),
        r.tiled_matmul_bytes(256, 256, 1 << 24, 64, 128),
    )
    assert flops / size == pytest.approx(r.tile_intensity(64, 128), rel=1e-4)


@given(st.integers(1, 4096), st.integers(1, 1 << 17), st.integers(1, 64))
def test_attention_intensity_from_counts(T, S, G):
    K, H = 8, 128  # KV heads and head size cancel
    flops = 2 * (2 * T * S * G * K * H)
    size = 2 * (2 * T * G * K * H + 2 * S * K * H)
    assert r.attention_intensity(T, S, G) == pytest.approx(flops / size)


def test_attention_limits():
    assert r.attention_intensity(1, 10**9, 8) == pytest.approx(8)
    assert r.attention_intensity(4096, 4096, 8) == pytest.approx(4096 * 8 / 9)


def test_split_matmul_turns_at_the_critical_depth():
    peak, link = 197e12, 45e9
    D = r.critical_depth(peak, link)
    assert not r.split_matmul_bounds(128, math.floor(D), 4096, peak, link).compute_bound
    assert r.split_matmul_bounds(128, math.ceil(D), 4096, peak, link).compute_bound


@given(st.floats(1e-9, 1), rates)
def test_the_crossover_size_reaches_half_the_rate(latency, bandwidth):
    size = r.crossover_size(latency, bandwidth)
    assert size / r.transfer_time(size, bandwidth, latency) == pytest.approx(bandwidth / 2)


def test_iron_law_is_the_upper_bound_when_nothing_is_lost():
    assert r.iron_law(3e12, 1e9, 1e15, 1e12) == r.time_bounds(3e12, 1e9, 1e15, 1e12).upper


def test_achievable_time_without_losses_is_the_lower_bound():
    assert r.achievable_time(3e12, 1e9, 1e15, 1e12) == r.time_bounds(3e12, 1e9, 1e15, 1e12).lower


def test_bits_and_bytes_meet_in_quantities():
    assert r.transfer_time(Q(1, "GB"), Q(10, "Gbit/s"), Q(10, "ms")).to(
        "ms"
    ).magnitude == pytest.approx(810)


def test_clock_and_peak_invert():
    assert datasheet.clock_from_peak(
        datasheet.peak_from_clock(1.83e9, 1024, 528), 1024, 528
    ) == pytest.approx(1.83e9)


def test_light_needs_a_kilometre_in_five_microseconds():
    assert datasheet.round_trip(1e3, 200e6) / 2 == pytest.approx(5e-6)
