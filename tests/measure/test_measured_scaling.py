"""The multi-process job: conclusions are tested on times whose law is known."""

import random

import pytest

from lightspeed.scaling import amdahl_speedup, usl_speedup
from lightspeed_tools.measure.instruments import scaling
from lightspeed_tools.measure.instruments.timing import Missing, Quantity
from lightspeed_tools.measure.instruments.workers import crew

N = (1, 2, 4, 8, 16)


def made_up(speedup, job="message", counts=N, cpus=2, noise=0.01, rounds=8, seed=1):
    """Quantities whose times follow a law, with a little noise."""
    rng = random.Random(seed)
    times = {n: [(0.05, rng.gauss(1, noise) / speedup(n)) for _ in range(rounds)] for n in counts}
    return scaling.quantities(job, counts, times, cpus)


def test_the_line_finds_the_share_exactly():
    assert scaling.line_share(N, [0.2 + 0.8 / n for n in N]) == pytest.approx(0.2, rel=1e-12)


def amdahl(n):
    return amdahl_speedup(n, serial=0.05)


def usl(n):
    return usl_speedup(n, serial=0.05, kappa=0.01)


@pytest.mark.holds("measure", "Nothing that grows with n")
def test_amdahls_law_is_recognised():
    found = scaling.analyse(made_up(amdahl, "wait"), "wait")
    assert found.counted == 0.05 and found.amdahl.mean == pytest.approx(0.05, abs=0.005)
    assert all(share.mean == pytest.approx(0.05, abs=0.02) for share in found.shares)
    assert "Nothing that grows" in scaling.findings(found)[-1]


@pytest.mark.holds("measure", "Something grows with n")
def test_a_growing_cost_is_recognised():
    found = scaling.analyse(made_up(usl), "message")
    assert found.usl.kappa == pytest.approx(0.01, rel=0.1)
    assert found.usl.peak == pytest.approx(9.7, rel=0.1)
    assert [share.mean for share in found.shares] == sorted(share.mean for share in found.shares)
    assert "grows with n" in scaling.findings(found)[-1]


def test_intervals_hold_the_truth_as_often_as_they_say():
    held = {"share": 0, "no kappa": 0, "kappa": 0}
    for seed in range(200):
        plain = scaling.analyse(made_up(amdahl, "wait", noise=0.02, rounds=5, seed=seed), "wait")
        growing = scaling.analyse(made_up(usl, noise=0.02, rounds=5, seed=seed), "message")
        held["share"] += plain.amdahl.holds(0.05)
        held["no kappa"] += plain.usl.kappa_interval[0] < 0 < plain.usl.kappa_interval[1]
        held["kappa"] += growing.usl.kappa_interval[0] < 0.01 < growing.usl.kappa_interval[1]
    assert all(180 <= times <= 199 for times in held.values()), held  # 95 % of 200 is 190


def test_processes_beyond_the_processors_are_in_no_fit():
    def four_cores(n):
        return amdahl_speedup(min(n, 4), serial=0.2)

    found = scaling.analyse(made_up(four_cores, "count", (1, 2, 3, 4, 6, 8), cpus=4), "count")
    assert found.amdahl.mean == pytest.approx(0.2, abs=0.01) and abs(found.usl.kappa) < 0.005
    assert found.predicted() == [four_cores(n) for n in found.n]
    assert max(found.shares, key=lambda s: s.mean) is found.shares[-1]


def test_two_processors_say_what_they_cannot_show():
    found = scaling.analyse(
        made_up(lambda n: amdahl_speedup(min(n, 2), serial=0.2), "count", (1, 2, 3, 4)), "count"
    )
    assert found.usl is None and found.amdahl.mean == pytest.approx(0.2, abs=0.02)
    assert "cannot be told from so few processors" in scaling.findings(found)[-1]


@pytest.mark.holds("measure", "With one processor the processes take turns")
def test_one_processor_says_what_it_cannot_show():
    found = scaling.analyse(made_up(lambda n: 1.0, "count", (1, 2), cpus=1), "count")
    assert found.amdahl is None and "take turns" in scaling.findings(found)[0]


def test_scatter_is_a_doubt_and_nothing_else_is_said():
    found = scaling.analyse(
        made_up(lambda n: amdahl_speedup(n, serial=0.05), "wait", noise=0.3), "wait"
    )
    said = scaling.findings(found)
    assert len(said) == 1 and "scatter too much" in said[0]


def test_a_job_that_is_not_there():
    with pytest.raises(LookupError, match="message"):
        scaling.analyse(made_up(lambda n: 1.0, "wait"), "message")


class Pipe:
    """One end that does nothing and remembers what it was told."""

    def __init__(self):
        self.told = []

    def send(self, order):
        self.told.append(order)

    def poll(self, limit):
        return True

    def recv(self):
        return bytes(self.told[-1][2])


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("order", [("count", 1000), ("wait", 0.6)])
def test_no_work_is_lost_in_the_split(n, order):
    pipes = [Pipe() for _ in range(8)]
    scaling._job(pipes, n, (order[0], 5), order, 40)
    assert pipes[0].told[0] == (order[0], 5, 0)
    split = [pipe.told[-1] for pipe in pipes[:n]]
    assert sum(amount for _, amount, _ in split) == pytest.approx(order[1])
    assert {size for *_, size in split} == {40}
    assert max(a for _, a, _ in split) - min(a for _, a, _ in split) <= 1
    assert not any(pipe.told for pipe in pipes[n:])


def test_counting_counts():
    assert scaling.count(8) == 12


def test_a_real_run_has_a_pair_of_times_for_each_round():
    with crew(scaling.work, scaling.work) as pipes:
        for serial, divided, size in (
            (("wait", 0.001), ("wait", 0.004), 4000),
            (("count", 1000), ("count", 4000), 0),
        ):
            times = scaling.run(pipes, (1, 2), serial, divided, size, rounds=3)
            assert {n: len(rows) for n, rows in times.items()} == {1: 3, 2: 3}
            assert all(0 < alone < total for rows in times.values() for alone, total in rows)


@pytest.mark.slow
def test_a_machine_with_one_processor(monkeypatch):
    monkeypatch.setattr(scaling, "usable_cores", lambda: 1)
    monkeypatch.setattr(scaling, "WAITERS", (1, 2, 3))
    lines = []
    found = scaling.measure(report=lines.append)
    (lacking,) = [q for q in found if isinstance(q, Missing)]
    assert "one processor" in lacking.why and lacking.remedy
    measured = [q for q in found if isinstance(q, Quantity)]
    assert {(q.parameters["job"],
            q.parameters.get("n")) for q in measured if q.key == "scaling.time"} == {
        *(("count", n) for n in (1, 2)),
        *((job, n) for job in ("wait", "message") for n in (1, 2, 3))
    }  # fmt: skip
    assert any("1 processor" in q.note for q in measured) and len(lines) == 4
    assert all(scaling.findings(scaling.analyse(measured, job)) for job in scaling.PARTS)
