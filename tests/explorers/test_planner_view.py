"""The explorer of chapter 10: its dots are the planner's own, and its words are what they say."""

import json

import numpy as np
import pytest

from lightspeed_course import job
from lightspeed_course.explorers.planner import ROOM, every, explore_planner, front, split

CARD = 85.5e9


def test_every_setting_can_be_drawn():
    e = explore_planner()
    facts = [label for label, _ in e.first.facts]
    for params in e.grid(each=2, most=40):
        shown = e.view(**params)
        assert shown.verdict
        assert [label for label, _ in shown.facts] == facts
        json.dumps(shown.spec(), allow_nan=False)


@pytest.mark.parametrize("network", ["ethernet_100g", "infiniband_ndr"])
def test_the_fastest_dot_is_the_fastest_of_all_plans(network):
    """The command searches every plan on arrays; the picture a part of them, one by one."""
    found = job.planning(network).found()
    alone = (found.column("context") == 1) & np.isin(found.column("micro_size"), (1, 2, 4))
    best = found.seconds[found.best(alone)]
    dots = [s for s in every(network, job.SEQUENCES, CARD) if s.held <= ROOM * CARD]
    assert min(s.time for s in dots) == pytest.approx(best, rel=1e-9)


@pytest.mark.holds("explorers", "nothing is both leaner and faster")
def test_the_front_is_beaten_by_none():
    splits = every(job.NETWORK, job.SEQUENCES, CARD)
    line = front(splits)
    for one in line:
        assert not any(s.held < one.held and s.time < one.time for s in splits)
    assert min(splits, key=lambda s: s.time) in line


@pytest.mark.holds("explorers", "of which a plan may take")
def test_what_cannot_be_shows_no_results():
    e = explore_planner()
    for state in ({"tensor": 16, "pipeline": 16}, {"tensor": 2, "pipeline": 2, "stage": 3}):
        assert split(job.NETWORK, 512, state["tensor"], state["pipeline"], 3, CARD) is None
        shown = e.at(**{"stage": 3} | state)
        assert shown.verdict.startswith("Not possible") and {v for _, v in shown.facts} == {"–"}
    shown = e.at(tensor=1, pipeline=1, stage=0)
    assert shown.verdict.startswith("Does not fit") and dict(shown.facts)["a step"] == "–"
