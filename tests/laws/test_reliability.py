"""Failures and checkpoints: closed forms, limits, and a job that is failed at random."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed import reliability as r

HOUR, DAY = 3600.0, 86400.0
writes, mtbfs = st.floats(1, 600), st.floats(HOUR, 30 * DAY)


def test_the_published_run():
    mtbf = r.observed_mtbf(54 * DAY, 419)
    assert mtbf / HOUR == pytest.approx(3.09, rel=0.01)
    assert r.device_mtbf(mtbf, 16384) / HOUR == pytest.approx(50_700, rel=0.01)


@given(own=st.floats(1e6, 1e9), n=st.integers(1, 10**6))
def test_cluster_and_device_are_inverse(own, n):
    assert r.device_mtbf(r.cluster_mtbf(own, n), n) == pytest.approx(own)


@given(a=st.floats(0, 1e6), b=st.floats(0, 1e6), mtbf=mtbfs)
def test_survival_forgets(a, b, mtbf):
    assert r.survival(a + b, mtbf) == pytest.approx(r.survival(a, mtbf) * r.survival(b, mtbf))


@given(write=writes, mtbf=mtbfs, off=st.floats(0.1, 10).filter(lambda x: abs(x - 1) > 0.01))
def test_young_minimizes_the_first_order_loss(write, mtbf, off):
    best = r.young_interval(write, mtbf)
    assert r.lost_share(best, write, mtbf) == pytest.approx(math.sqrt(2 * write / mtbf))
    assert r.lost_share(best * off, write, mtbf) > r.lost_share(best, write, mtbf)


@given(write=writes, mtbf=mtbfs)
def test_daly_is_nearer_to_the_exact_optimum_than_young(write, mtbf):
    intervals = np.geomspace(
        r.young_interval(write, mtbf) / 4, r.young_interval(write, mtbf) * 4, 4001
    )
    exact = intervals[np.argmin(r.stretch(intervals, write, mtbf))]
    daly, young = r.daly_interval(write, mtbf), r.young_interval(write, mtbf)
    assert abs(daly - exact) <= abs(young - exact) + exact * 1e-3
    assert daly == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize(("mtbf", "interval"), [(1440, 117), (15, 9.1)])
def test_dalys_own_figures(mtbf, interval):
    assert r.daly_interval(5 * 60, mtbf * 60) / 60 == pytest.approx(interval, rel=0.01)


def test_daly_beyond_its_range_and_at_its_edge():
    assert r.daly_interval(1000.0, 400.0) == 400.0
    # sqrt(4) (1 + 1/3 + 1/9) - 2 = 8/9 of the MTBF: the series meets the rule to within a ninth.
    assert r.daly_interval(2 - 1e-12, 1.0) == pytest.approx(8 / 9)
    assert r.daly_interval(2.0, 1.0) == 1.0


@given(interval=st.floats(60, HOUR), write=st.floats(1, 30), restart=st.floats(0, 60))
def test_the_first_order_is_the_exact_for_rare_failures(interval, write, restart):
    mtbf = 1e9
    assert r.stretch(interval, write, mtbf, restart) - 1 == pytest.approx(
        r.lost_share(interval, write, mtbf, restart), rel=1e-3
    )


def test_an_interval_that_never_succeeds():
    assert r.stretch(1e6, 1.0, 1.0) == math.inf
    assert r.stretch(np.array([1.0, 1e6]), 1.0, 1.0)[1] == math.inf


def failed_at_random(rng, interval, write, mtbf, restart, segments):
    """Seconds until so many intervals are written, failures striking at any time."""
    time = 0.0
    for _ in range(segments):
        need = interval + write
        while (life := rng.expovariate(1 / mtbf)) < need:
            time += life
            need = restart + interval + write
        time += need
    return time


def test_stretch_is_what_a_failed_job_takes():
    rng, interval, write, mtbf, restart = random.Random(6), 900.0, 60.0, 2400.0, 300.0
    segments = 40_000
    time = failed_at_random(rng, interval, write, mtbf, restart, segments)
    assert time / (segments * interval) == pytest.approx(
        r.stretch(interval, write, mtbf, restart), rel=0.02
    )


@given(ranks=st.integers(1, 2000), chance=st.floats(0, 0.1))
def test_stragglers_by_counting(ranks, chance):
    nobody = math.prod([1 - chance] * ranks)
    assert r.straggler_stretch(ranks, chance, 3.0) == pytest.approx(nobody * 1 + (1 - nobody) * 3)


def test_one_slow_rank_is_enough():
    assert r.straggler_stretch(1, 1.0, 2.0) == r.straggler_stretch(10_000, 1.0, 2.0) == 2.0
    assert r.straggler_stretch(10_000, 0.0, 2.0) == 1.0
