"""Samples, their spread and the clock, against closed forms, on a machine of any speed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed_tools.measure.instruments import timing
from lightspeed_tools.measure.instruments.timing import (
    FEWEST,
    LIMIT,
    Quantity,
    Unavailable,
    middle,
    seconds_of,
    spread,
)


def quantity(*samples, **more):
    return Quantity("host.latency", "s", samples, **more)


def test_the_spread_is_that_of_the_middle_eight_tenths():
    samples = [10, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert middle(samples) == [2, 3, 4, 5, 6, 7, 8, 9]
    # Of 2, 3, ..., 9 the mean is 5.5 and the sample variance (8² − 1) / 12 × 8 / 7 = 6.
    assert spread(samples) == pytest.approx(math.sqrt(6) / 5.5, rel=1e-12)


def test_one_wild_sample_in_ten_does_not_count():
    quiet = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.0, 1.01]
    assert spread([*quiet, 1e9]) < 0.02
    assert spread([*quiet[:8], 1e9, 1e9]) > 1


@given(st.lists(st.floats(0.1, 1e3), min_size=2, max_size=40), st.floats(1e-9, 1e9))
def test_the_spread_has_no_unit(samples, factor):
    assert spread([factor * x for x in samples]) == pytest.approx(
        spread(samples), rel=1e-6, abs=1e-9
    )


def test_spreads_at_the_edges():
    assert spread([2.0, 2.0]) == 0
    assert spread([0.0, 0.0]) == 0
    assert spread([-1.0, 1.0]) == math.inf
    assert math.isnan(spread([1.0]))
    assert spread([-1.0, -3.0]) == spread([1.0, 3.0])


def test_the_value_is_the_median():
    assert quantity(3, 1, 2).value == 2
    assert quantity(4, 1, 2, 3).value == 2.5


def test_what_is_trusted_and_in_what_words():
    sharp, wide, few = (
        quantity(*[1.0, 1.1] * 5),
        quantity(*[1.0, 2.0] * 5),
        quantity(*[1.0] * (FEWEST - 1)),
    )
    assert sharp.trusted and sharp.verdict.startswith("repeats: spread 5")
    assert not wide.trusted
    assert "nothing can be concluded" in wide.verdict
    assert "36 %" in wide.verdict
    assert not few.trusted and "only 4 samples" in few.verdict


@pytest.mark.parametrize("share, trusted", [(0.99, True), (1.01, False)])
def test_the_limit_is_the_limit(share, trusted):
    # Of n samples each at 1 - d and 1 + d the spread is d √(2n / (2n - 1)), none set aside.
    d = share * LIMIT * math.sqrt(7 / 8)
    assert quantity(*[1 - d, 1 + d] * 4).trusted is trusted


def test_what_varies_by_nature_is_not_judged_by_its_spread():
    waits = quantity(*range(1, 100), varies=True)
    assert waits.trusted and math.isnan(waits.spread) and "varies by nature" in waits.verdict
    assert not quantity(1, 9, varies=True).trusted


def test_a_stated_median_needs_no_samples():
    known = quantity(stated={"median": 2.0, "spread": 0.02})
    assert known.value == 2 and known.trusted and "samples not kept" in known.verdict
    assert not quantity(stated={"median": 2.0}).trusted
    assert not quantity(stated={"median": 2.0, "spread": 0.2}).trusted


@pytest.mark.parametrize(
    "samples, more, words",
    [
        ((), {}, "no samples"),
        ((1, math.nan), {}, "finite"),
        ((1, math.inf), {}, "finite"),
        ((1,), {"better": "faster"}, "expected higher or lower"),
    ],
)
def test_what_is_no_quantity_is_refused(samples, more, words):
    with pytest.raises(ValueError, match=words):
        quantity(*samples, **more)


def test_a_label_names_the_parameters():
    assert (
        quantity(1, parameters={"size": 64, "threads": 2}).label
        == "host.latency, size 64, threads 2"
    )


def test_unavailable_says_why_and_what_to_do():
    assert (
        str(Unavailable("numba is not installed.", "pip install numba"))
        == "numba is not installed. pip install numba"
    )


class Clock:
    """A clock that moves only when a call says so."""

    def __init__(self, monkeypatch):
        self.now, self.calls = 0.0, 0
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now)

    def call(self, seconds):
        def body():
            self.now += seconds
            self.calls += 1

        return body


@pytest.mark.parametrize("each", [1e-7, 3e-5, 0.004, 2.0])
def test_seconds_of_a_call_on_a_clock_of_our_own(each, monkeypatch):
    clock = Clock(monkeypatch)
    found = seconds_of(clock.call(each), repeat=7, warmup=3, least=0.005)
    assert found == pytest.approx([each] * 7, rel=1e-6)
    assert clock.calls > 3 + 7


def test_a_sample_lasts_long_enough_and_not_much_longer(monkeypatch):
    clock = Clock(monkeypatch)
    seconds_of(clock.call(1e-6), repeat=1, warmup=0, least=0.005)
    before = clock.now
    clock.calls = 0
    seconds_of(clock.call(1e-6), repeat=10, warmup=0, least=0.005)
    assert 10 * 0.005 <= clock.now - before < 10 * 0.005 * 3


def test_garbage_waits_while_samples_are_taken_and_not_longer():
    seen = []
    seconds_of(lambda: seen.append(timing.gc.isenabled()), repeat=2, warmup=0, least=1e-9)
    assert not any(seen) and timing.gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        seconds_of(lambda: 1 / 0, warmup=0)
    assert timing.gc.isenabled()
