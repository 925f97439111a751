"""Pipelines: the simulator against the closed forms and against what any schedule must obey."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import each

from lightspeed import pipeline as pl
from lightspeed.errors import BadArgument
from lightspeed_models.simulators import schedules

stages, micro = st.integers(1, 7), st.integers(1, 12)
seconds = st.floats(0.1, 10)
PLAIN = ("gpipe", "1f1b")


@each("schedule, p, m, backward", PLAIN, range(1, 9), (1, 2, 3, 4, 7, 8, 16, 33), (0.5, 1.0, 2.0))
def test_both_bubbles_equal_the_closed_forms(schedule, p, m, backward):
    """Backward passes of any length: they do not change the share."""
    run = schedules.simulate(schedule, p, m, backward=backward)
    assert run.bubble_over_total == pytest.approx(pl.bubble_over_total(p, m), abs=1e-12)
    assert run.bubble_over_ideal == pytest.approx(pl.bubble_over_ideal(p, m), abs=1e-12)
    assert run.span == pytest.approx((m + p - 1) * (1 + backward))


@each("p, groups, v, backward", range(1, 8), (1, 2, 3, 5), range(1, 6), (1.0, 2.0))
def test_interleaving_divides_the_bubble(p, groups, v, backward):
    run = schedules.simulate("interleaved", p, groups * p, backward=backward, chunks=v)
    assert run.bubble_over_ideal == pytest.approx(pl.bubble_over_ideal(p, groups * p, v), abs=1e-12)
    assert run.bubble_over_total == pytest.approx(pl.bubble_over_total(p, groups * p, v), abs=1e-12)


@each("p, m, v", range(1, 6), range(1, 13), (2, 3))
def test_laws_answer_where_a_schedule_exists_and_refuse_elsewhere(p, m, v):
    """Ragged counts, all of them: interleaved groups, and the gaps of a zero bubble."""
    if m % p:
        for law in (pl.bubble_over_total, pl.bubble_over_ideal):
            with pytest.raises(BadArgument, match=f"micro_batches = {m}: expected a multiple"):
                law(p, m, chunks=v)
    else:
        run = schedules.simulate("interleaved", p, m, chunks=v)
        assert run.bubble_over_total == pytest.approx(pl.bubble_over_total(p, m, v))
    run = schedules.simulate("zb_h1", p, m, forward=1, backward=2, weight=1)
    if m < p:
        with pytest.raises(BadArgument, match="at least the stages"):
            pl.zero_bubble_over_ideal(p, m, 1, 1, 1)
    else:
        law = pl.zero_bubble_over_ideal(p, m, 1, 1, 1)
        assert run.bubble_over_ideal == pytest.approx(law, abs=1e-12)


@given(p=stages, m=micro)
def test_the_two_denominators(p, m):
    total, ideal = pl.bubble_over_total(p, m), pl.bubble_over_ideal(p, m)
    assert total == pytest.approx(ideal / (1 + ideal))


@each("p, more", range(1, 9), (0, 1, 5, 20))
def test_zero_bubble_closed_forms(p, more):
    run = schedules.simulate("zb_h1", p, p + more, forward=1, backward=2, weight=1)
    assert run.bubble_over_ideal == pytest.approx(
        pl.zero_bubble_over_ideal(p, p + more, 1, 1, 1), abs=1e-12
    )
    # With twice the activations, no GPU waits between its own first and last pass.
    run = schedules.simulate("zb_h2", p, 2 * p - 1 + more, forward=1, backward=2, weight=1)
    assert run.window == pytest.approx(max(run.busy))
    assert max(run.peak_activations) == 2 * p - 1


@given(p=stages, m=micro)
def test_memory_is_bought_with_the_schedule(p, m):
    """GPipe holds all micro-batches, 1F1B a stage's rest, interleaving a little more."""
    assert schedules.simulate("gpipe", p, m).peak_activations == (m,) * p
    assert schedules.simulate("1f1b", p, m).peak_activations == tuple(
        min(m, p - i) for i in range(p)
    )
    assert max(schedules.simulate("zb_h1", p, m).peak_activations) <= p


@each("p, v", range(2, 7), (2, 3, 4))
def test_the_first_stage_of_an_interleaved_pipeline(p, v):
    """Korthikanti's factor 1 + (p - 1) / (p v) over the p micro-batches of 1F1B."""
    assert schedules.simulate("interleaved", p, 4 * p, chunks=v).peak_activations[
        0
    ] == pytest.approx(p * (1 + (p - 1) / (p * v)))


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    schedule=st.sampled_from(schedules.SCHEDULES),
    p=stages,
    k=st.integers(1, 4),
    transfer=st.floats(0, 2),
)
def test_what_every_run_obeys(data, schedule, p, k, transfer):
    """Each pass once, after its input, one at a time on a GPU; unequal stages, too."""
    m, v = (k * p, data.draw(st.integers(1, 3))) if schedule == "interleaved" else (k, 1)
    forward = [data.draw(seconds) for _ in range(p)]
    backward = [data.draw(seconds) for _ in range(p)]
    run = schedules.simulate(schedule, p, m, forward, backward, transfer=transfer, chunks=v)
    kinds = "FBW" if schedule in schedules.SPLIT else "FB"
    ended = {q.work: q for q in run.passes}
    assert len(ended) == len(run.passes) == len(kinds) * m * p * v
    for i in range(p):
        assert all(a.end <= b.start + 1e-9 for a, b in pairwise(run.of(i)))
    for work, q in ended.items():
        here = work.chunk * p + work.stage
        step = {"F": -1, "B": 1, "W": 0}[work.kind]
        there = here + step
        kind = "B" if work.kind == "W" else work.kind
        if work.kind == "B" and there == p * v:
            there, kind = here, "F"
        if there >= 0:
            before = ended[schedules.Work(kind, work.micro_batch, there % p, there // p)]
            assert q.start >= before.end + (transfer if there % p != work.stage else 0) - 1e-9
    # Bounds: the busiest GPU, and one micro-batch all the way there and back.
    assert run.span >= max(run.busy) - 1e-9
    there_and_back = (
        sum(forward)
        + sum(b / 2 if schedule in schedules.SPLIT else b for b in backward)
        + 2 * (p * v - 1) * transfer * (p > 1)
    )
    assert run.span >= there_and_back - 1e-6
    assert 0 <= run.bubble_over_total < 1


@given(p=st.integers(2, 6), m=st.integers(1, 10), slow=st.integers(0, 5))
def test_a_slow_stage_sets_the_pace(p, m, slow):
    times = [1.0] * p
    times[slow % p] = 3.0
    span = schedules.simulate("gpipe", p, m, times, times).span
    assert span == pytest.approx(2 * (3 * m + p - 1))
    # 1F1B may hide a part of the fill behind the slow stage, but not its work.
    assert 2 * 3 * m <= schedules.simulate("1f1b", p, m, times, times).span + 1e-9 <= span + 1e-6


@given(p=stages, m=micro, times=st.lists(seconds, min_size=1, max_size=1))
def test_utilization_adds_up_to_the_work(p, m, times):
    run = schedules.simulate("1f1b", p, m, times[0], 2 * times[0])
    step = run.span / 7
    assert sum(run.utilization(step)) * step * p == pytest.approx(sum(run.busy))


def test_the_ten_steps_of_the_source_and_the_fourteen_of_a_gpu():
    shared = pl.shared_slot_utilization(4, 4)
    assert [round(100 * u) for u in shared] == [25, 50, 75, 100, 75, 75, 100, 75, 50, 25]
    assert sum(shared) / len(shared) == pytest.approx(0.65)
    run = schedules.simulate("1f1b", 4, 4, backward=1.0)
    assert len(run.utilization(1.0)) == 14
    assert 1 - run.bubble_over_total == pytest.approx(4 / 7)
    # 26 of the 40 slots hold 32 passes: six hold two, which is what no GPU does.
    assert round(sum(shared) * 4) == 26 < len(run.passes) == 32


@given(p=stages, m=micro)
def test_the_shared_slots_by_brute_force(p, m):
    """Send each micro-batch down and back, one stage a step, starting in consecutive steps."""
    busy = {(k + abs(i), i if i >= 0 else -i) for k in range(m) for i in range(p)}
    busy |= {(k + p - 1 + (p - 1 - i), i) for k in range(m) for i in range(p)}
    steps = max(t for t, _ in busy) + 1
    assert pl.shared_slot_utilization(p, m) == tuple(
        sum(t == s for t, _ in busy) / p for s in range(steps)
    )


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        (("1f2b", 4, 4), "schedule"),
        (("gpipe", 0, 4), "stages"),
        (("gpipe", 4, 2.5), "micro_batches"),
        (("interleaved", 4, 6), "micro_batches"),
        (("gpipe", 4, 4, [1, 2]), "forward"),
        (("gpipe", 4, 4, -1.0), "forward"),
        (("gpipe", 4, 4, 1.0, float("nan")), "backward"),
        (("zb_h1", 4, 4, 1.0, 1.0, 1.0), "weight"),
        (("gpipe", 4, 4, 1.0, 1.0, None, -1), "transfer"),
        (("1f1b", 4, 4, 1.0, 1.0, None, 0, 2), "chunks"),
    ],
)
def test_bad_input_names_the_argument(arguments, argument):
    with pytest.raises(BadArgument) as error:
        schedules.simulate(*arguments)
    assert error.value.argument == argument
