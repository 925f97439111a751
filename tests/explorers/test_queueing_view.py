"""The explorers of chapter 4: drawable everywhere, and their words turn where the law turns."""

import json

import pytest

from lightspeed import serving
from lightspeed.queueing import throughput
from lightspeed_course.explorers.queueing import (
    QUEUED,
    explore,
    explore_serving,
    limits,
    replica,
    serving_view,
    view,
)
from lightspeed_show import Points, Rule, si


@pytest.mark.parametrize(("make", "each", "most"), [(explore, 3, 120), (explore_serving, 2, 60)])
def test_every_setting_can_be_drawn(make, each, most):
    e = make()
    facts = [label for label, _ in e.first.facts]
    for params in e.grid(each=each, most=most):
        shown = e.view(**params)
        assert shown.verdict
        assert [label for label, _ in shown.facts] == facts
        json.dumps(shown.spec(), allow_nan=False)


@pytest.mark.parametrize("make", [explore, explore_serving])
def test_controls_redraw_without_an_error(make):
    e = make()
    for params in e.grid(each=2, most=40):
        e.set(**params)
        assert e.error is None


def test_memory_caps_the_servers():
    limit = throughput(24, 0.05)
    assert (
        "Memory sets the capacity: it holds 24 of 32"
        in view(limit * 0.9, 0.05, 32, 1e9, 24e9).verdict
    )
    assert "The servers set the capacity" in view(limit * 0.9, 0.05, 24, 1e9, 48e9).verdict
    assert "Servers and memory set the same" in view(limit * 0.9, 0.05, 24, 1e9, 24e9).verdict


def test_overload_begins_at_full_load():
    limit = throughput(24, 0.05)
    assert view(limit * 0.99, 0.05, 32, 1e9, 24e9).verdict.startswith("Stable")
    assert "no room for chance" in view(limit, 0.05, 32, 1e9, 24e9).verdict
    assert "more arrive than leave" in view(limit * 1.01, 0.05, 32, 1e9, 24e9).verdict


def test_the_lower_cap_is_named():
    replica = ("h100_sxm", 8, "llama3_70b", "bf16", 8192)
    for budget, name in ((0.015, "the budget"), (0.1, "memory")):
        fit, allowed = limits(*replica, budget)
        assert ("the budget" if allowed <= fit else "memory") == name
        assert f"set by {name}" in serving_view(*replica, 512, budget, 1).verdict


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"chips": 1}, "The weights take 141 GB and the memory is 85.5 GB"),
        (
            {"budget": 0.005},
            "Reading the weights alone takes 5.27 ms a token, and the budget is 5 ms",
        ),
        (
            {"budget": 0.006, "context": 131072},
            "Reading the weights and a single cache takes 6.87 ms a token, and the budget is 6 ms",
        ),
        ({"context": 512, "output": 4096}, "leave none for a prompt"),
        ({"context": 512, "output": 1024}, "leave none for a prompt"),
        ({"context": 512, "output": 512}, "Keeps up"),
        ({"chips": 2, "context": 131072}, "No cache fits beside the weights"),
        ({"arrival_rate": 100}, "Overload"),
        ({"arrival_rate": 0.1}, "Keeps up"),
    ],
)
def test_the_words_for_a_replica(changed, words):
    assert words in explore_serving().at(**changed).verdict


SMALL = {"model": "gpt2", "weights": "int4", "context": 512, "output": 512}


def test_the_batch_is_what_memory_and_budget_allow_however_many():
    shown = explore_serving().at(**SMALL)
    facts = dict(shown.facts)
    fit, allowed = limits("h100_sxm", 8, "gpt2", "int4", 512, 0.03)
    assert facts["batch that fits"] == f"{fit:,}" and fit < allowed
    assert f"A batch of {fit:,}, set by memory" in shown.verdict
    args, _, _ = replica("h100_sxm", 8, "gpt2", "int4", 512)
    assert f"{si(fit / serving.decode_step(fit, **args).time, 'token')}/s" in shown.verdict


def test_more_slots_than_the_queue_counts_change_no_time():
    args, _, _ = replica("h100_sxm", 8, "gpt2", "int4", 512)
    times = [serving.serving_queue(2500, 512, slots, **args).W for slots in (QUEUED, 4 * QUEUED)]
    assert times[0] == pytest.approx(times[1], rel=1e-9)


def test_the_knee_is_on_the_chart_of_a_small_model():
    for params in (SMALL, SMALL | {"chips": 64, "hardware": "b200"}, {}):
        (chart,) = explore_serving().at(**params).charts
        assert {
            label for mark in chart.marks if isinstance(mark, Points) for label in mark.labels
        } == {"knee", "memory full"}
        assert ("small model" in chart.title) == bool(params)


def test_who_reads_the_prompts_is_said():
    alone, fed = explore_serving().at(arrival_rate=4.8), explore_serving().at(arrival_rate=4.9)
    assert "even if it reads the prompts itself" in alone.verdict
    assert "only if other replicas read the prompts" in fed.verdict
    assert "at most 4.85 requests/s" in fed.verdict
    assert dict(fed.facts)["most if it reads the prompts too"] == "4.85/s"


@pytest.mark.slow
def test_no_number_is_given_to_what_never_happens():
    shown = view(10, 0.001, 512, 1e7, 2e12)
    assert "of which less than 1 ns waiting" in shown.verdict
    assert dict(shown.facts)["have to wait"] == "practically none"
    for params in explore().grid(each=4):
        shown = explore().at(**params)
        assert "⁻" not in shown.verdict + dict(shown.facts)["have to wait"], params


def test_a_load_past_the_chart_is_marked_as_such():
    def you(load):
        return next(
            (mark.x, mark.label)
            for mark in explore()
            .at(arrival_rate=24 * load, service_time=1, servers=24)
            .charts[0]
            .marks
            if isinstance(mark, Rule) and mark.label.startswith("you")
        )

    assert you(1.4) == (pytest.approx(1.4), "you")
    assert you(1.5)[1] == "you"
    assert you(20)[0] < 1.5 and you(20)[1] == "you: 2,000 %, off the chart"
