"""Reading profiles: a real cProfile file and a JSON breakdown; what is refused."""

import cProfile
import json
import time

import pytest
from lightspeed.checks import BadArgument
from lightspeed.profiles import REST, read_breakdown, read_profile


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def load():
    spin(0.02)


def compute():
    spin(0.09)


def step():
    load()
    compute()


@pytest.fixture
def profile(tmp_path):
    profiler = cProfile.Profile()
    profiler.runcall(step)
    profiler.dump_stats(tmp_path / "out.prof")
    return tmp_path / "out.prof"


def test_named_functions_and_the_rest_make_up_the_whole(profile):
    breakdown = read_profile(profile, ["load", "compute"])
    assert list(breakdown) == ["load", "compute", REST]
    assert breakdown["load"] == pytest.approx(0.02, rel=0.5)
    # callees are included: almost nothing is left over
    assert breakdown["compute"] / sum(breakdown.values()) == pytest.approx(9 / 11, abs=0.1)
    assert 0 <= breakdown[REST] < 0.02


@pytest.mark.parametrize("functions", [["loda"], ["step", "compute"], ["spin", "load"]])
def test_unknown_and_nested_functions_are_refused(profile, functions):
    with pytest.raises(BadArgument, match="functions"):
        read_profile(profile, functions)


def test_json_breakdown(tmp_path):
    path = tmp_path / "breakdown.json"
    path.write_text(json.dumps({"load": 0.1, "compute": 0.9}))
    assert read_breakdown(path) == {"load": 0.1, "compute": 0.9}
    path.write_text("[1, 2]")
    with pytest.raises(BadArgument, match="name: seconds"):
        read_breakdown(path)
