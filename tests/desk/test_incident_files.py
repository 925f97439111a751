"""The files that the incident room sells say what its simulator did, and the reader finds it."""

from dataclasses import replace

import pytest

from lightspeed_cli.main import main
from lightspeed_course.incidents import policy, training, training_job, training_trace
from lightspeed_course.incidents.incident import incident_of
from lightspeed_course.incidents.score import COST, score
from lightspeed_course.practice import incident_session as session
from lightspeed_tools.trace.diagnosis import diagnose
from lightspeed_tools.trace.reader import read
from lightspeed_tools.trace.work import nodes_of

CAUSES = training.CAUSES


def small(case):
    """The job on fewer nodes, with its fault where one is left."""
    job = replace(case.job, nodes=4, micro_batches=2)
    (rank, share), (node, heat) = job.busy_gpu, job.hot_node
    busy = (8 + rank % 8, share) if share < 1 else (0, 1.0)
    hot = (1 + node % 3, heat) if heat < 1 else (0, 1.0)
    adapter = (1, job.adapter[1]) if job.adapter[1] < 1 else (0, 1.0)
    return replace(job, busy_gpu=busy, hot_node=hot, adapter=adapter)


@pytest.fixture(scope="module")
def read_of(tmp_path_factory):
    found = {}
    for cause in CAUSES:
        job = small(incident_of("files", training.TRAINING, cause))
        folder = tmp_path_factory.mktemp(cause.id)
        found[cause.id] = job, diagnose([str(p) for p in training_trace.write(job, folder, True)])
    return found


def test_the_span_of_the_files_is_the_jobs_own_time(read_of):
    for id, (job, found) in read_of.items():
        began = min(a.start for a in found.all_accounts)
        ended = max(a.end for a in found.all_accounts)
        assert (ended - began) * 1e-9 == pytest.approx(training_job.time(job), rel=1e-5), id


def test_the_account_of_rank_0_is_what_the_room_shows(read_of):
    for id, (job, found) in read_of.items():
        shown, account = training.read_file(job, None), found.all_accounts[0]
        work = shown["matrix products"] + shown["other kernels"]
        assert account.compute * 1e-9 == pytest.approx(work, rel=1e-5), id
        sums = shown["tensor-parallel collectives"] + shown["gradient collectives"]
        assert account.exposed_communication * 1e-9 == pytest.approx(sums, rel=1e-3), id


def test_the_reader_names_the_slow_ranks_and_their_gain(read_of):
    truth = {c.id: c for c in CAUSES}
    for id, slow in (("straggler", 1), ("throttling", 8)):
        job, found = read_of[id]
        assert abs(found.closure) < 0.01 and found.gains[0].cause == "rank"
        gain = training_job.pace(truth[id].mend(job)) / training_job.pace(job)
        assert found.gains[0].gain == pytest.approx(gain, rel=0.01)
        assert found.slow_rank.count(",") == slow - 1
        others = [g.cause for key, (_, f) in read_of.items() for g in f.gains if key != id]
        assert others.count("rank") == 1, "that of the other one alone"


def test_no_fault_of_the_network_or_of_the_plan_is_a_slow_rank(read_of):
    for id in {c.id for c in CAUSES} - {"straggler", "throttling"}:
        assert "rank" not in {g.cause for g in read_of[id][1].gains}, id


def test_the_nodes_of_a_group_are_told_by_its_ranks(read_of):
    trace = read_of["numa"][1].traces[0]
    nodes = {trace.groups[row][0].split("_")[0]: nodes_of(trace, row) for row in trace.collectives}
    assert nodes == {"tensor": 1, "data": 4}


def test_a_file_is_sold_before_it_is_written(tmp_path, capsys):
    number = next(n for n in range(1, 99) if incident_of(n).setting.id == "training")
    words = ["incident", str(number)]
    assert main([*words, "--files", str(tmp_path / "a")]) == 2
    assert "nothing that you bought" in capsys.readouterr().err
    assert main([*words, "--buy", "file", "--files", str(tmp_path / "a")]) == 0
    (path,) = (tmp_path / "a").iterdir()
    assert read(path).rank == 0 and read(path).world == incident_of(number).job.ranks
    assert main([*words, "--files", str(tmp_path / "a")]) == 2, "nothing is written over"


def test_a_gain_that_is_near_earns_back_what_purchases_lost():
    case = incident_of("gain", training.TRAINING, CAUSES[3])
    everything = [m.id for m in case.setting.measurements]
    silent = score(case, everything, case.cause.id, case.cause.id)
    near = score(case, everything, case.cause.id, case.cause.id, case.gain * 1.05)
    far = score(case, everything, case.cause.id, case.cause.id, case.gain * 1.3)
    assert case.gain > 1.05 and near.gain and not far.gain
    assert near.points > silent.points == far.points >= 70
    best, cause = policy.solve(case)
    assert score(case, best, cause, cause, case.gain).points == 70 + COST


def test_a_gain_is_kept_and_told(capsys):
    case = incident_of(7)
    fix = 1 + [c.id for c in case.setting.fixes].index(case.cause.id)
    words = ["incident", "7", "--cause", case.cause.id, "--fix", str(fix)]
    with pytest.raises(SystemExit):
        main([*words, "--gain", "much"])
    assert main([*words, "--gain", f"{case.gain:.3f}"]) == 0
    assert "which is near" in capsys.readouterr().out
    assert session.state(case).named[2] == pytest.approx(case.gain, abs=0.001)
