"""The explorers of chapter 7: every setting can be drawn, and the words say what the laws say."""

import json

import pytest

from lightspeed import collectives
from lightspeed_course.explorers import nccl
from lightspeed_show import Bars

MACHINE = {"inside": 450e9, "network": 50e9, "hop": 3.4e-6, "alpha": 14e-6}
ADDS = 275e9


def test_every_setting_can_be_drawn():
    e = nccl.explore()
    facts = [label for label, _ in e.first.facts]
    for params in e.grid(each=3, most=300):
        shown = e.view(**params)
        assert shown.verdict
        assert [label for label, _ in shown.facts] == facts, params
        json.dumps(shown.spec(), allow_nan=False)


def test_moving_a_control_redraws_without_error():
    e = nccl.explore()
    for params in e.grid(each=2, most=8):
        e.set(**params)
        assert e.error is None
        assert e.shown == e.view(**params)


def test_it_opens_with_the_question():
    shown = nccl.explore().first
    facts = dict(shown.facts)
    assert facts["line rate"] == "400 GB/s"
    assert "Bandwidth-bound" in shown.verdict


def test_a_small_message_is_latency_bound():
    assert nccl.explore().at(size=1e4).verdict.startswith("Latency-bound")
    assert dict(nccl.explore().at(size=1e5).facts)["fastest"] == "doubling"


def test_the_switch_lifts_busbw_above_the_link_and_says_why():
    shown = nccl.explore().at(nodes=1, switch=True)
    assert "the switch adds" in shown.verdict
    measured = [475e9, 482.5e9]  # busbw of eight H100 and H200 whose switch adds, 8 GiB
    line = nccl.line_rates("nvlink4", "efa_p5")["inside"]
    ratio = float(dict(shown.facts)["busbw over line rate"].split()[0]) / 100
    assert measured[0] * 0.98 <= ratio * line <= measured[1] * 1.005
    assert dict(nccl.explore().at(nodes=1).facts)["busbw over line rate"] == "99.9 %"


def test_one_rank_sends_nothing():
    shown = nccl.explore().at(nodes=1, per_node=1)
    assert "nothing is sent" in shown.verdict
    bars = [mark for chart in shown.charts for mark in chart.marks if isinstance(mark, Bars)]
    assert bars
    assert all(
        end == start for mark in bars for start, end in zip(mark.start, mark.to, strict=True)
    )


def test_where_steps_and_bytes_take_half_each_both_matter():
    alone = nccl.algorithms("all_reduce", 8, 125, switch=0.0, **MACHINE)["double tree"](0.0)
    for size in (alone * 400e9 / 2, alone * 400e9 / 2 * 1.2, alone * 400e9 / 2 / 1.2):
        assert nccl.explore().at(size=size).verdict.startswith("Both matter")


def test_verdict_and_facts_show_the_same_digits():
    for params in ({}, {"size": 5e7}, {"nodes": 1}, {"nodes": 1, "switch": True}):
        shown = nccl.explore().at(**params)
        facts = dict(shown.facts)
        assert f"{facts['busbw over line rate']} of the line rate" in shown.verdict
        assert f"from {facts['half of peak from']} on" in shown.verdict


def test_an_alltoall_is_held_against_one_adapter():
    assert dict(nccl.explore().at(collective="alltoall", nodes=32).facts)["line rate"] == "50 GB/s"


@pytest.mark.parametrize("collective", nccl.COLLECTIVES)
@pytest.mark.parametrize(("per_node", "nodes"), [(8, 1), (1, 8), (8, 2), (8, 125), (4, 16)])
def test_no_algorithm_beats_the_bounds_that_hold_for_it(collective, per_node, nodes):
    n = per_node * nodes
    fastest_link = MACHINE["inside"] + (MACHINE["network"] if nodes > 1 else 0)  # a rank has both
    for name, time in nccl.algorithms(collective, per_node, nodes, switch=ADDS, **MACHINE).items():
        least = 1.0 if name == "switch" else collectives.busbw_factor(collective, n)
        for size in (0.0, 1e3, 1e6, 1e9, 1e11):
            assert time(size) >= least * size / fastest_link * (1 - 1e-12), name
            assert time(size) <= time(2 * size + 1), name


def test_half_of_the_peak_is_half_of_the_peak():
    times = nccl.algorithms("all_reduce", 8, 125, switch=0.0, **MACHINE)
    half = nccl.half_of_peak(times)
    best = max(1e15 / time(1e15) for time in times.values())
    assert max(half / time(half) for time in times.values()) == pytest.approx(best / 2, rel=1e-3)
