"""The loaded server and its conclusions; a real run is held to what must be so."""

import os
import random
import statistics
import subprocess
import sys
from bisect import bisect_right
from dataclasses import replace

import numpy as np
import pytest
from test_measured_workers import gone

from lightspeed.queueing import md1, mm1
from lightspeed_models.simulators.queue_simulation import Path, observed, simulate
from lightspeed_tools.measure.instruments import queueing, queueing_load, queueing_results
from lightspeed_tools.measure.instruments.queue_server import Sent
from lightspeed_tools.measure.instruments.timing import Missing
from lightspeed_tools.measure.records import record


@pytest.fixture(scope="module")
def real():
    """A short real run: three kinds of server at one load, and the closed loop."""
    said = []
    # What is tested holds however busy the machine is, and however long services have to last.
    run = queueing.observe(0.6, said.append, levels=(queueing_load.CLOSED,), slowest=float("inf"))
    assert len(said) == 1
    return run


def ideal(plan, lateness=0.0, trip=0.0):
    """What a perfect server and sender see of a plan: arguments of `queueing.quantities`."""
    paths = [simulate(*map(np.array, queueing_load.schedule(load)), load.servers) for load in plan]
    watched = max(p.departure.max() for p in paths)
    rng = random.Random(8)
    sent, seen = [], []
    for path in paths:
        arrivals, departures = sorted(path.arrival.tolist()), sorted(path.departure.tolist())
        looks = [
            bisect_right(arrivals, t) - bisect_right(departures, t)
            for t in (rng.random() * watched for _ in range(4000))
        ]
        sent.append(
            Sent(
                path.arrival.tolist(),
                (path.arrival + lateness).tolist(),
                (path.departure + lateness + trip).tolist(),
            )
        )
        seen.append(
            (
                looks,
                [
                    (i, a, s, d)
                    for i, (a, s, d) in enumerate(
                        zip(path.arrival, path.start, path.departure, strict=True)
                    )
                ],
            )
        )
    return plan, watched, sent, seen, [1e-4] * 20


# ---------------------------------------------------------------- the load


def test_a_schedule_is_the_same_every_time_and_for_every_law():
    plan = [x for x in queueing_load.loads(500, 0.01) if x.load == 0.8 and x.loop == "open"]
    dues = [queueing_load.schedule(load)[0] for load in plan]
    assert len(plan) == 3 and dues[0] == dues[1] == dues[2] == queueing_load.schedule(plan[0])[0]
    assert dues[0][-1] == pytest.approx(500, rel=0.03) and dues[0] == sorted(dues[0])


def test_services_are_those_of_the_law():
    services = {
        x.law: queueing_load.schedule(x)[1]
        for x in queueing_load.loads(500, 0.01, levels=(0.8,))
        if x.loop == "open"
    }
    assert set(services["M/D/1"]) == {0.01}
    assert np.mean(services["M/M/1"]) == pytest.approx(0.01, rel=0.03)
    assert np.std(services["M/M/1"]) == pytest.approx(0.01, rel=0.05)
    assert np.mean(services["M/M/4"]) == pytest.approx(0.04, rel=0.03)


def test_late_timers_lower_the_rate_so_that_the_load_is_kept():
    for load in queueing_load.loads(10, 0.01, late=0.002):
        assert load.rate * (load.service + 0.002) / load.servers == pytest.approx(load.load)


def test_the_closed_loop_sends_the_same_requests():
    plan = queueing_load.loads(5, 0.01)
    (closed,) = [x for x in plan if x.loop == "closed"]
    (opened,) = [x for x in plan if replace(closed, loop="open") == x]
    assert queueing_load.schedule(closed) == queueing_load.schedule(opened)


# ---------------------------------------------------------------- a real server


def test_every_request_is_answered_once_and_served_as_long_as_asked(real):
    plan, watched, sent, seen, _ = real
    for load, mine, (looks, trace) in zip(plan, sent, seen, strict=True):
        asked = queueing_load.schedule(load)[1]
        assert sorted(number for number, *_ in trace) == list(range(load.requests))
        assert all(end - start > 0.99 * asked[number] for number, _, start, end in trace)
        assert all(
            0 <= due <= s < d <= watched
            for due, s, d in zip(mine.due, mine.sent, mine.done, strict=True)
        )
        assert looks and min(looks) >= 0


def test_first_come_first_served_by_no_more_than_there_are(real):
    plan, _, _, seen, _ = real
    for load, (_, trace) in zip(plan, seen, strict=True):
        rows = sorted(trace, key=lambda row: row[1])
        starts = [start for _, _, start, _ in rows]
        assert starts == sorted(starts)
        ends = sorted(end for *_, end in rows)
        assert all(
            i + 1 - bisect_right(ends, start) <= load.servers for i, start in enumerate(starts)
        )


def test_littles_law_is_an_identity_of_the_trace(real):
    for _, trace in real[3]:
        arrival, start, departure = np.array(sorted(row[1:] for row in trace)).T
        zero = arrival[0]
        seen = observed(Path(arrival - zero, start - zero, departure - zero))
        assert seen.arrival_rate * seen.W == pytest.approx(seen.L, rel=1e-9)


def test_the_closed_loop_never_has_two_inside(real):
    (which,) = [i for i, load in enumerate(real[0]) if load.loop == "closed"]
    mine = real[2][which]
    assert all(sent >= done for sent, done in zip(mine.sent[1:], mine.done, strict=False))
    assert max(real[3][which][0]) <= 1


def test_a_real_run_becomes_quantities_and_conclusions(real):
    found = queueing.quantities(*real)
    assert len(queueing_results.little(found)) == len(queueing_results.latencies(found)) == 3
    assert isinstance(queueing_results.refusal(found), str)
    assert len(queueing_results.closed_loop(found)) == 3


def test_one_processor_is_said(real, monkeypatch):
    monkeypatch.setattr(queueing, "usable_cores", lambda: 1)
    (lacking,) = [m for m in queueing.quantities(*real) if isinstance(m, Missing)]
    assert "take turns" in lacking.why


def test_timers_that_are_too_coarse_are_refused(monkeypatch):
    monkeypatch.setattr(queueing, "FINE", 1e6)
    with pytest.raises(queueing.Unavailable, match="Timers of this machine"):
        queueing.observe(0.1, str)


# ---------------------------------------------------------------- conclusions, where the truth is k


def test_little_holds_for_an_ideal_server():
    rows = queueing_results.little(queueing.quantities(*ideal(queueing_load.loads(60, 0.01))))
    assert len(rows) == 15
    assert all(abs(row.L - row.rate * row.W) < 1.5 * row.error for row in rows)
    assert statistics.fmean(row.ratio for row in rows) == pytest.approx(1, abs=0.02)


def test_an_ideal_server_equals_its_replay_and_its_own_formula():
    found = queueing.quantities(
        *ideal(queueing_load.loads(100, 0.01, levels=(0.3, queueing_load.CLOSED)))
    )
    for row in queueing_results.latencies(found):
        assert row.measured["mean"] == pytest.approx(row.replay, abs=2e-5)
        assert row.interval[0] < row.measured["mean"] < row.interval[1]
        assert row.measured["mean"] == pytest.approx(row.steady["mean"], rel=0.2)
        assert row.falls_within() or row.load.load > 0.3


@pytest.mark.slow
def test_overheads_are_found_and_put_into_the_law():
    plan = queueing_load.loads(30, 0.01)
    found = queueing.quantities(*ideal(plan, trip=0.003))
    overshoot, trip = queueing_results.overheads(found)
    assert overshoot == pytest.approx(0, abs=1e-6) and trip == pytest.approx(0.003, abs=1e-6)
    assert all(
        row.measured["mean"] == pytest.approx(row.replay, abs=2e-5)
        for row in queueing_results.latencies(found)
    )


@pytest.mark.holds("measure", "Nothing is concluded.")
def test_a_late_sender_is_refused():
    plan = queueing_load.loads(5, 0.01)
    assert queueing_results.refusal(queueing.quantities(*ideal(plan, lateness=0.0005))) == ""
    said = queueing_results.refusal(queueing.quantities(*ideal(plan, lateness=0.003)))
    assert "30%" in said and "Nothing is concluded" in said


def test_the_formulas():
    one, fixed, four = (x for x in queueing_load.loads(5, 0.01, levels=(0.8,)) if x.loop == "open")
    assert queueing_results.steady(one, 0.001, 0.002)["mean"] == pytest.approx(
        mm1(80, 1 / 0.011).W + 0.002
    )
    assert queueing_results.steady(one)[0.99] == pytest.approx(mm1(80, 100).W * np.log(100))
    assert queueing_results.steady(fixed)["mean"] == pytest.approx(md1(80, 100).W)
    assert queueing_results.steady(fixed)[0.99] is None
    assert queueing_results.steady(four)["mean"] > 0.04


def test_an_overshoot_that_makes_an_overload_has_no_steady_state():
    one = next(x for x in queueing_load.loads(5, 0.01) if x.law == "M/M/1" and x.load == 0.9)
    assert set(queueing_results.steady(one, overshoot=0.002).values()) == {None}
    assert (
        queueing_results.replay(one, overshoot=0.002).mean() > queueing_results.replay(one).mean()
    )


def test_a_short_run_near_full_load_lies_below_the_steady_state():
    """From an empty start the queue has no time to grow; far from full load it has."""
    short = next(x for x in queueing_load.loads(3, 0.01) if x.law == "M/M/1" and x.load == 0.9)
    assert (
        np.median(queueing_results.simulated(short)[:, 0])
        < 0.7 * queueing_results.steady(short)["mean"]
    )
    long = next(x for x in queueing_load.loads(200, 0.01) if x.law == "M/M/1" and x.load == 0.3)
    assert queueing_results.simulated(long)[:, 0].mean() == pytest.approx(
        queueing_results.steady(long)["mean"], rel=0.01
    )


def test_the_closed_loop_hides_the_queue():
    plan = queueing_load.loads(20, 0.01)
    found = queueing.quantities(*closed_by_hand(ideal(plan)))
    ways = queueing_results.closed_loop(found)
    assert ways["closed, from the due time"] == pytest.approx(
        ways["open, from the due time"], rel=1e-3
    )
    assert ways["closed, from the sending"][0] == pytest.approx(
        statistics.fmean(queueing_load.schedule(plan[-1])[1]), rel=1e-2
    )


def closed_by_hand(run):
    """The last load sent as by a closed loop: a request waits outside instead of inside."""
    plan, watched, sent, seen, late = run
    starts = [start for _, _, start, _ in seen[-1][1]]
    return plan, watched, [*sent[:-1], Sent(sent[-1].due, starts, sent[-1].done)], seen, late


def test_slices_keep_everything_in_order():
    assert [x for part in queueing_load.slices(list(range(97))) for x in part] == list(range(97))


# ---------------------------------------------------------------- cleaning up


KILLED = """
import multiprocessing, sys
from lightspeed_tools.measure.instruments import queueing
if __name__ == "__main__":
    alive = multiprocessing.active_children
    queueing.observe(60, lambda text: print(*(p.pid for p in alive()), flush=True))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_server_and_sender_go_when_the_measurement_is_killed(tmp_path):
    (tmp_path / "script.py").write_text(KILLED)
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pids = [int(word) for word in parent.stdout.readline().split()]
    parent.kill()
    said = parent.communicate(timeout=60)[1]  # ends when the last of them has closed its end
    assert len(pids) == 2 and gone(pids) and "Traceback" not in said


@pytest.mark.slow
def test_a_short_run_near_full_load_mostly_lies_below_the_formula():
    for name in ("amd_epyc_2core", "intel_xeon_2core"):
        found = record.quantities(record.shipped()[name])
        for row in queueing_results.latencies(found):
            if row.load.load == max(queueing_load.LOADS):
                means = queueing_results.simulated(row.load, *queueing_results.overheads(found))[
                    :, 0
                ]
                assert (means < row.steady["mean"]).mean() > 0.5, f"{name}, {row.load.law}"


def test_a_closed_loop_hides_the_wait_from_its_own_sending_and_not_from_the_due_time():
    more = {}
    for name in ("amd_epyc_2core", "intel_xeon_2core"):
        found = record.quantities(record.shipped()[name])
        opened, due, sent = (mean for mean, _ in queueing_results.closed_loop(found).values())
        assert sent < 0.5 * opened < opened < due, name
        more[queueing_results.overheads(found)[1]] = due / opened
    assert more[max(more)] > more[min(more)]
