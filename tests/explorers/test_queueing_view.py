"""The explorers of chapter 4: drawable everywhere, and their words turn where the law turns."""

import json

import pytest
from lightspeed.explorers.queueing import explore, explore_serving, limits, serving_view, view
from lightspeed.queueing import throughput


@pytest.mark.parametrize(("make", "each", "every"), [(explore, 3, 2), (explore_serving, 2, 23)])
def test_every_setting_can_be_drawn(make, each, every):
    e = make()
    facts = [label for label, _ in e.first.facts]
    for params in list(e.grid(each=each))[::every]:
        shown = e.view(**params)
        assert shown.verdict
        assert [label for label, _ in shown.facts] == facts
        json.dumps(shown.spec(), allow_nan=False)


@pytest.mark.parametrize("make", [explore, explore_serving])
def test_controls_redraw_without_an_error(make):
    e = make()
    for params in list(e.grid(each=2))[::29]:
        e.set(**params)
        assert e.error is None


def test_memory_caps_the_servers():
    limit = throughput(24, 0.05)
    assert "Memory is the limit" in view(limit * 0.9, 0.05, 32, 1e9, 24e9).verdict
    assert "The servers are the limit" in view(limit * 0.9, 0.05, 24, 1e9, 48e9).verdict


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
        ({"chips": 1}, "The weights take 141 GB and the memory is 80 GB"),
        ({"budget": 0.005}, "Reading the weights alone takes"),
        ({"chips": 2, "context": 131072}, "No cache fits beside the weights"),
        ({"arrival_rate": 100}, "Overload"),
        ({"arrival_rate": 0.1}, "Keeps up"),
    ],
)
def test_the_words_for_a_replica(changed, words):
    assert words in serving_view(**changed).verdict
