"""Chapter 11's explorer: what is taken away was put in, what is drawn is the replay."""

import pytest

from lightspeed_course.explorers import profile
from lightspeed_tools.trace.replay import replay


@pytest.mark.parametrize("fault", profile.MENDS)
@pytest.mark.holds("explorers", "That was it: the step is")
def test_the_right_cause_gains_the_most_and_the_truth(fault):
    gains = {}
    for cause in filter(None, profile.CAUSES.values()):
        facts = dict(profile.view(fault, cause).facts)
        gains[cause] = float(facts["gain by replay"])
        assert (facts["in truth"] != "–") == (profile.MENDS[fault] == cause)
    truth = profile.read(fault)[2]
    assert gains[profile.MENDS[fault]] >= max(gains.values()) - 0.01
    assert 0.99 * truth <= gains[profile.MENDS[fault]] <= 1.1 * truth


def test_nothing_taken_away_is_the_step_as_recorded():
    for fault in profile.FAULTS.values():
        run = profile.read(fault)[0]
        facts = dict(profile.view(fault, "").facts)
        assert facts["step"] == facts["without it"] and facts["gain by replay"] == "1.00"
        assert replay(run) == pytest.approx(run.measured, rel=0.001)


def test_a_slow_gpu_does_not_show_on_itself():
    _, (fast, slow), truth = profile.read("slow_rank")
    assert profile.by_share(slow, "rank") < 1.1 < 1.3 < truth
    assert fast.exposed_communication > 3 * slow.exposed_communication


def test_tracks_end_with_the_step():
    shown = profile.view("loader", "loader")
    recorded, replayed = shown.charts
    ends = [max(max(bars.to) for bars in chart.marks) for chart in (recorded, replayed)]
    assert ends[1] < ends[0] and recorded.x.domain == replayed.x.domain
    assert ends[0] == pytest.approx(recorded.x.domain[1], rel=1e-6)
