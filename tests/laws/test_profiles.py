"""Reading profiles: a real cProfile file and a JSON breakdown; what is refused."""

import cProfile
import json

import pytest

from lightspeed.errors import BadArgument
from lightspeed_models.profiles import REST, read_breakdown, read_profile

clock = [0.0]  # the profiler's: what others do with the machine is not in it


def spin(seconds):
    clock[0] += seconds


def load():
    spin(0.02)


def compute():
    spin(0.09)


def step():
    load()
    compute()


@pytest.fixture
def profile(tmp_path):
    profiler = cProfile.Profile(lambda: clock[0])
    profiler.runcall(step)
    profiler.dump_stats(tmp_path / "out.prof")
    return tmp_path / "out.prof"


def test_named_functions_and_the_rest_make_up_the_whole(profile):
    breakdown = read_profile(profile, ["load", "compute"])
    assert list(breakdown) == ["load", "compute", REST]
    # callees are included: nothing is left over
    assert list(breakdown.values()) == pytest.approx([0.02, 0.09, 0])


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
