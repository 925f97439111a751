"""The explorer of chapter 9: drawable everywhere, and its law is what the simulator's steps do."""

import json

import pytest

from lightspeed_course.explorers.serving_steps import PROMISE, explore_serving_steps, run, waits


def test_every_setting_can_be_drawn():
    e = explore_serving_steps()
    facts = [label for label, _ in e.first.facts]
    for params in e.grid(each=2, most=40):
        shown = e.view(**params)
        assert shown.verdict
        assert [label for label, _ in shown.facts] == facts
        json.dumps(shown.spec(), allow_nan=False)


@pytest.mark.parametrize(("rate", "prompt", "budget"), [(0.25, 8000, 1024), (1.0, 4000, 2048)])
def test_time_spent_reading_is_that_of_the_steps(rate, prompt, budget):
    law = explore_serving_steps().at(rate=rate, prompt=prompt, budget=budget).formula
    steps = run(rate, prompt, budget, 0.0).steps
    reading = sum(step.end - step.start for step in steps if step.tokens)
    assert law.result[0] == pytest.approx(reading / steps[-1].end, rel=0.15)


def test_the_verdict_is_that_of_the_requests():
    e = explore_serving_steps()
    for rate in (0.25, 1.0, 2.0):
        between = waits(run(rate, 8000, 2048, 0.0))[1]
        late = sum(each > PROMISE for each in between)
        words = e.at(rate=rate).verdict
        assert words.startswith("Everyone") == (late == 0)
        assert words.startswith("Nobody") == (late == len(between))


@pytest.mark.holds("explorers", "More prompts come than can be read")
def test_where_prompts_pile_up_it_says_so():
    e = explore_serving_steps()
    assert "grows for as long as you look" in e.at(rate=e.controls["rate"].options[-1][1]).verdict
    assert e.at(rate=e.controls["rate"].options[-1][1]).formula is None
