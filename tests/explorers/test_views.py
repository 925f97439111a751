"""Every explorer over its controls' grid: drawable, finite, with words and facts."""

import json
import math

import pytest

from lightspeed.catalog import accelerator, memory
from lightspeed_course.explorers import (
    attention,
    nccl,
    numbers,
    parallelism,
    precision,
    queueing,
    roofline,
    scaling,
)
from lightspeed_show import Points

EXPLORERS = {
    "roofline": roofline.explore,
    "transfer": numbers.explore,
    "generations": numbers.explore_generations,
}


@pytest.mark.parametrize("most", [100, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EXPLORERS)
def test_every_setting_can_be_drawn(name, most):
    e = EXPLORERS[name]()
    facts = [label for label, _ in e.first.facts]
    for params in e.grid(each=3, most=most):
        shown = e.view(**params)
        assert shown.verdict
        assert [label for label, _ in shown.facts] == facts, params
        json.dumps(shown.spec(), allow_nan=False)


WITH_POINTS = EXPLORERS | {
    "scaling": scaling.explore, "queue": queueing.explore, "serving": queueing.explore_serving,
    "precision": precision.explore, "attention": attention.explore_attention,
    "parallelism": parallelism.explore, "nccl": nccl.explore,
}  # fmt: skip


def inside(axis, values):
    """Whether all values can be seen on an axis; one that fits its data shows them all."""
    if axis.scale == "category" or axis.domain is None:
        return True
    low, high = sorted(axis.domain)
    return all(low <= value <= high for value in values)


@pytest.mark.parametrize("most", [60, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WITH_POINTS)
def test_the_point_stays_on_the_chart(name, most):
    e = WITH_POINTS[name]()
    for params in e.grid(each=2, most=most):
        for chart in e.view(**params).charts:
            for mark in (mark for mark in chart.marks if isinstance(mark, Points)):
                assert inside(chart.x, mark.x) and inside(chart.y, mark.y), (chart.title, params)


def test_the_lowest_intensity_of_the_roofline_is_on_the_chart():
    (chart,) = (
        roofline.explore()
        .at(batch=1, contraction=128, output=128, weights="fp32", activations="fp32")
        .charts
    )
    (point,) = (mark for mark in chart.marks if isinstance(mark, Points))
    assert point.x[0] < 1 and inside(chart.x, point.x) and inside(chart.y, point.y)


def test_verdict_and_fact_name_the_same_batch():
    shown = roofline.explore().first
    batch = dict(shown.facts)["batch at the ridge"]
    exact = roofline.roofline.critical_batch_exact(
        8192, 8192, accelerator("h100_sxm").bf16 / accelerator("h100_sxm").hbm_bandwidth
    )
    assert f"A batch of {batch} would reach the ridge" in shown.verdict
    assert batch == f"{math.ceil(exact)} tokens"


@pytest.mark.parametrize("name", EXPLORERS)
def test_moving_a_control_redraws_without_error(name):
    e = EXPLORERS[name]()
    for params in e.grid(each=2, most=8):
        e.set(**params)
        assert e.error is None
        assert e.params == params
        assert e.shown == e.view(**params)


def test_the_verdict_turns_at_the_exact_batch():
    h100 = accelerator("h100_sxm")
    b = math.ceil(
        roofline.roofline.critical_batch_exact(8192, 8192, h100.bf16 / h100.hbm_bandwidth)
    )
    assert roofline.explore().at(batch=b - 1).verdict.startswith("Memory-bound")
    assert roofline.explore().at(batch=b).verdict.startswith("Compute-bound")


def test_a_missing_peak_is_said_and_never_replaced():
    shown = roofline.explore().at(hardware="a100_80gb", compute="fp8")
    assert "no dense peak for fp8" in shown.verdict
    assert "PFLOP" not in str(shown.facts)


def test_near_the_crossover_both_terms_matter():
    _, latency, bandwidth, _ = numbers.paths()["pcie5_x16"]
    crossover = latency * bandwidth
    # of the larger term over the smaller, where the larger begins to decide
    ratio = numbers.DECIDES / (1 - numbers.DECIDES)
    for size, words in (
        (crossover * ratio * 1.01, "Bandwidth decides"), (crossover * ratio * 0.99, "Both matter"),
        (crossover / ratio * 1.01, "Both matter"), (crossover / ratio * 0.99, "Latency decides"),
    ):  # fmt: skip
        assert numbers.view("pcie5_x16", size).verdict.startswith(words)
    shown = numbers.view("pcie5_x16", crossover)
    assert "twice as wide saves 25 %, half the latency 25 %" in shown.verdict


def test_what_a_level_does_not_hold_is_not_moved_from_it():
    shown = numbers.view("cpu_l1", 4**8)
    assert "it holds 32.8 kB, and 65.5 kB must come from farther away" in shown.verdict
    assert not any(isinstance(mark, Points) for mark in shown.charts[0].marks)
    assert numbers.view("cpu_l1", 4**7).verdict.startswith("Bandwidth decides")
    l1 = numbers.paths()["cpu_l1"]
    # six cores, of which this is one
    assert l1.bandwidth * 6 == pytest.approx(memory("cpu_l1").bandwidth)


def test_a_machine_beside_itself_keeps_every_ratio():
    assert "Changed more: nothing" in numbers.generations_view("b200", "b200").verdict
