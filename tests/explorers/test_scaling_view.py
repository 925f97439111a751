"""The explorer of chapter 3: drawable everywhere, and its words turn where the law turns."""

import json
import math

import pytest

from lightspeed.scaling import usl_peak
from lightspeed_course.explorers.scaling import explore, view
from lightspeed_show import Line, Points
from lightspeed_show.layout import lay_out


@pytest.mark.parametrize("each", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_every_setting_can_be_drawn(each):
    e = explore()
    facts = [label for label, _ in e.first.facts]
    for params in e.grid(each=each):
        shown = e.view(**params)
        assert shown.verdict
        assert [label for label, _ in shown.facts] == facts
        json.dumps(shown.spec(), allow_nan=False)
        e.set(**params)
        assert e.error is None


@pytest.mark.parametrize(("serial", "kappa"), [(0.05, 2e-4), (0.01, 1e-5)])
def test_the_verdict_turns_at_the_peak(serial, kappa):
    peak = usl_peak(serial=serial, kappa=kappa)
    assert "Past the peak" in view(round(peak * 1.1), serial, kappa).verdict
    assert "Past the peak" not in view(round(peak * 0.9), serial, kappa).verdict


def test_the_largest_part_of_the_time_is_named():
    assert "the divided work" in view(2, 0.01, 1e-6).verdict
    assert "the serial part" in view(1000, 0.1, 1e-7).verdict
    assert "the growing cost" in view(5000, 0.001, 1e-3).verdict


def test_one_processor_is_said_in_words():
    shown = explore().at(n=1)
    assert dict(shown.facts)["speedup"] == "none"
    assert "A second one would gain" in shown.verdict and "them" not in shown.verdict
    assert "Doubling them" in explore().at(n=2).verdict


def test_the_point_at_the_end_leaves_the_names_of_the_lines_free():
    for chart in explore().at(n=10_000).charts:
        spec = lay_out(chart)
        (dot,) = (mark for mark in spec["marks"] if mark["type"] == "dot")
        low, high = spec["x"]["domain"]
        inside = 560 - spec["margin"]["left"] - spec["margin"]["right"]
        assert inside * math.log(high / dot["x"][0]) / math.log(high / low) > dot["size"]
        assert all(line.x[-1] == 10_000 for line in chart.marks if isinstance(line, Line))
        assert any(isinstance(mark, Points) for mark in chart.marks)


def test_the_peak_is_a_whole_number_of_processors():
    assert "Past the peak: 69 processors" in explore().at(n=70).verdict
    assert "This is the peak: more or fewer would be slower" in explore().at(n=69).verdict
    assert "Going on to the peak at 69" in explore().at(n=68).verdict
