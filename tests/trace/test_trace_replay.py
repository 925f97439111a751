"""What the replay says of jobs whose truth is known."""

import json
from pathlib import Path

import pytest

from lightspeed.errors import BadArgument
from lightspeed_tools.trace.account import accounts
from lightspeed_tools.trace.diagnosis import diagnose
from lightspeed_tools.trace.made import FAULTS, Job, run, span, write
from lightspeed_tools.trace.pieces import TraceError
from lightspeed_tools.trace.reader import read
from lightspeed_tools.trace.rebuild import rebuild
from lightspeed_tools.trace.replay import CAUSES, replay
from lightspeed_tools.trace.report import as_data
from lightspeed_tools.trace.verdict import headline

# Fault -> its size, the cause that the replay takes away, and how far told over true gain may be.
CASES = {
    "loader": (4, "loader", 0.95, 1.05),
    "allocator": (2, "allocator", 0.95, 1.05),
    "slow_rank": (1.35, "rank", 0.95, 1.05),
    "slow_link": (5, "link", 0.88, 1.12),
    "launch_bound": (30, "launches", 1, 1.4),
    "small_products": (16, "products", 0.95, 1.1),
    "synchronize": (0.08, "synchronize", 0.95, 1.1),
    "no_overlap": (1, "overlap", 1, 1.2),
}


def diagnosed(job, folder):
    folder.mkdir()
    return diagnose([str(path) for path in write(job, folder)])


def test_every_fault_has_a_case():
    assert set(CASES) == set(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.holds("docs/your-own-question.md", 'It is "at most", since a wait')
def test_the_fault_comes_first_and_its_gain_is_the_truth(tmp_path, fault):
    size, cause, low, high = CASES[fault]
    job = Job(hidden=1024, layers=5, faults={fault: size})
    truth = span(run(job)) / span(run(job.without(fault)))
    found = diagnosed(job, tmp_path / "made")
    assert truth > 1.05 and abs(found.closure) < 0.001
    assert found.gains[0].cause == cause, found.gains
    assert low <= found.gains[0].gain / truth <= high


@pytest.mark.parametrize("pair", [("loader", "slow_rank"), ("slow_link", "small_products")])
def test_two_faults_are_among_the_first_three(tmp_path, pair):
    job = Job(hidden=1024, layers=5, faults={fault: CASES[fault][0] for fault in pair})
    found = diagnosed(job, tmp_path / "made")
    assert {CASES[fault][1] for fault in pair} <= {gain.cause for gain in found.gains[:3]}


def test_a_sound_job_is_said_to_be_healthy(tmp_path):
    found = diagnosed(Job(hidden=4096), tmp_path / "made")
    assert not found.worth and "Healthy" in headline(found)


def test_the_account_and_the_span_of_a_made_job_are_those_of_its_maker(tmp_path):
    job = Job(faults={"loader": 3})
    traces = [read(path) for path in write(job, tmp_path)]
    rebuilt = rebuild(traces, [accounts(trace)[0] for trace in traces])
    assert rebuilt.measured == span(run(job))
    assert len(rebuilt.meetings) == job.layers * job.steps


def test_replays_leave_no_trace_in_each_other(tmp_path):
    traces = [read(path) for path in write(Job(faults={"launch_bound": 9}), tmp_path)]
    rebuilt = rebuild(traces, [accounts(trace)[0] for trace in traces])
    alone = {cause: replay(rebuilt, [cause]) for cause in CAUSES}
    base = replay(rebuilt)
    for cause in reversed(CAUSES):
        assert replay(rebuilt, [cause]) == alone[cause]
    assert replay(rebuilt) == base


def test_clocks_that_differ_between_ranks_change_nothing(tmp_path):
    job = Job(hidden=1024, faults={"slow_rank": 1.4})
    paths = write(job, tmp_path)
    before = diagnose([str(path) for path in paths])
    whole = json.loads(paths[2].read_text())
    for event in whole["traceEvents"]:
        event["ts"] += 1000.5
    paths[2].write_text(json.dumps(whole))
    after = diagnose([str(path) for path in paths])
    gains = [{gain.cause: gain.gain for gain in found.gains} for found in (before, after)]
    assert gains[1] == pytest.approx(gains[0], abs=0.002)


def test_one_rank_of_four_says_what_it_can_not_tell(tmp_path):
    path = write(Job(faults={"slow_rank": 1.5}), tmp_path)[0]
    found = diagnose([str(path)])
    assert not {"rank", "link"} & {gain.cause for gain in found.gains}
    assert any("1 of 4 ranks" in note for note in found.notes)


@pytest.mark.holds("docs/your-own-question.md", "A replay that misses the measured span")
def test_waits_that_are_not_in_the_file_silence_the_replay(tmp_path):
    path = write(Job(), tmp_path)[0]
    whole = json.loads(path.read_text())
    kernels = [e for e in whole["traceEvents"] if e["cat"] == "kernel"]
    late = kernels[len(kernels) // 2]["ts"]
    for event in kernels:
        event["ts"] += 20_000 * (event["ts"] >= late)
    path.write_text(json.dumps(whole))
    found = diagnose([str(path)])
    assert not found.gains and "the file does not tell what this run waited for" in headline(found)
    assert as_data(found)["closure"] < -0.03


def test_ranks_of_different_jobs_are_refused(tmp_path):
    for name, job in (("a", Job()), ("b", Job(ranks=2)), ("c", Job(seed=1))):
        (tmp_path / name).mkdir()
        write(job, tmp_path / name)
    file = lambda name, rank: str(tmp_path / name / f"rank{rank}.json")  # noqa: E731
    with pytest.raises(TraceError, match="different jobs: how many ranks there are differs"):
        diagnose([file("a", 0), file("b", 1)])
    with pytest.raises(TraceError, match="both of rank 0"):
        diagnose([file("a", 0), file("c", 0)])
    later = Path(file("a", 1))
    whole = json.loads(later.read_text())
    for event in whole["traceEvents"]:
        event["ts"] += 1e9
    later.write_text(json.dumps(whole))
    with pytest.raises(TraceError, match="has ended before"):
        diagnose([file("a", 0), str(later)])


def test_several_devices_in_one_file_are_accounted_for_and_not_replayed(tmp_path):
    path = write(Job(), tmp_path)[0]
    whole = json.loads(path.read_text())
    for event in whole["traceEvents"][::3]:
        if event["cat"] == "kernel":
            event["args"]["device"] = 5
    path.write_text(json.dumps(whole))
    found = diagnose([str(path)])
    assert len(found.all_accounts) == 2 and not found.gains
    assert "several devices" in headline(found)


def test_an_unknown_fault_is_refused():
    with pytest.raises(BadArgument, match="expected one of loader"):
        Job(faults={"gremlins": 1})


def test_idle_time_without_a_launch_is_not_called_healthy(tmp_path):
    path = write(Job(), tmp_path)[0]
    whole = json.loads(path.read_text())
    kernels = [e for e in whole["traceEvents"] if e["cat"] == "kernel"]
    for event in kernels[len(kernels) // 2 :]:
        event["ts"] += 20_000
        event["args"]["correlation"] = 0
    path.write_text(json.dumps(whole))
    found = diagnose([str(path)])
    assert "Healthy" not in headline(found) and found.unknown > 0.3


def test_a_gain_is_of_the_profile_as_it_is(tmp_path):
    """Launches are worth more once the loader is gone; what is told is their gain today."""
    found = diagnosed(Job(hidden=1024, faults={"loader": 20, "launch_bound": 30}), tmp_path / "a")
    first, second = found.gains[:2]
    assert {first.cause, second.cause} == {"loader", "launches"}
    job = Job(hidden=1024, faults={"loader": 20, "launch_bound": 30})
    truth = span(run(job)) / span(run(job.without("launch_bound")))
    gain = next(gain.gain for gain in found.gains if gain.cause == "launches")
    assert 1 <= gain / truth <= 1.4


def test_a_kernel_of_a_collective_that_is_unknown_is_named(tmp_path):
    path = write(Job(), tmp_path)[0]
    whole = json.loads(path.read_text())
    kernel = next(e for e in whole["traceEvents"] if e["cat"] == "kernel")
    kernel["name"] = "a_ring_of_my_own"
    outer = kernel["args"]["External id"]
    whole["traceEvents"].append(
        {"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "ts": 0, "dur": 1,
         "args": {"External id": outer}}
    )  # fmt: skip
    path.write_text(json.dumps(whole))
    assert any("a_ring_of_my_own" in note for note in diagnose([str(path)]).notes)
