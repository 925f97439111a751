"""What simulators write, read again: a pipeline's bubble and a server's steps."""

import pytest

from lightspeed_models.simulators import schedules, serving
from lightspeed_tools.trace.account import accounts
from lightspeed_tools.trace.diagnosis import diagnose
from lightspeed_tools.trace.reader import read
from lightspeed_tools.trace.simulated import of_schedule, of_serving
from lightspeed_tools.trace.writer import save

MS = 1_000_000


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zb_h1"])
def test_a_bubble_is_seen_as_communication(tmp_path, schedule):
    ran = schedules.simulate(schedule, 4, 8, forward=1e-3, backward=2e-3, transfer=1e-5)
    gradients = 1e-3
    for path in save(of_schedule(ran, gradients), 4, tmp_path, schedule):
        trace = read(path)
        (found,) = accounts(trace)
        assert found.compute == pytest.approx(1e9 * ran.busy[trace.rank], abs=100)
        waits = ran.span + gradients - ran.busy[trace.rank]
        assert found.exposed_communication == pytest.approx(1e9 * waits, abs=100)
        assert found.idle == 0


def test_receives_are_not_matched_as_if_all_ranks_met(tmp_path):
    ran = schedules.simulate("1f1b", 2, 4, forward=1e-3, backward=2e-3)
    found = diagnose([str(p) for p in save(of_schedule(ran), 2, tmp_path, "1f1b")])
    assert abs(found.closure) < 0.001
    assert any("send and receive" in note for note in found.notes)


def test_a_servers_scheduler_is_seen_as_idle_time(tmp_path):
    cost = serving.Cost(10e-3, token=5e-6)
    ran = serving.simulate([512] * 8, [5] * 8, cost, concurrency=4, record=True)
    for host in (0.0, 4e-3):
        folder = tmp_path / str(host)
        folder.mkdir()
        (path,) = save([of_serving(ran, host)], 1, folder, "served")
        trace = read(path)
        (found,) = accounts(trace)
        steps = sum(group.steps for group in ran.steps)
        assert len(trace.steps()) == found.kernels == steps
        idle = (steps - 1) * max(1e9 * host, 3_000)
        assert found.idle == pytest.approx(idle, rel=0.01, abs=50_000)
