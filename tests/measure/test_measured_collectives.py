"""Collectives between real processes: what they compute, what they say, and the pure parts of
what is concluded. No time is judged.
"""

import importlib.util
import os
import sys

import numpy as np
import pytest

from lightspeed.collectives import ring_time
from lightspeed_tools.measure.instruments import collectives, ranks
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, Unavailable
from lightspeed_tools.measure.records import record

HAS_MPI = bool(
    importlib.util.find_spec("mpi4py")
    and ranks.shutil.which(
        "mpiexec", path=f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', '')}"
    )
)
needs_mpi = pytest.mark.skipif(not HAS_MPI, reason="no mpi4py or mpiexec: pip install '.[measure]'")


def test_our_own_processes_inherit_no_launcher():
    left = ranks.clean({"PMI_RANK": "0", "SLURM_PROCID": "1", "PATH": "/bin"})
    assert set(left) == {"PATH", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}


# ---------------------------------------------------------------- what must arrive


def simulated(collective, n, count):
    """The collective by its definition, on the data of all ranks."""
    data = [ranks.sent(collective, rank, n, count) for rank in range(n)]
    parts = [np.split(d, n) if collective in ("reduce_scatter", "alltoall") else d for d in data]
    for rank in range(n):
        if collective == "all_reduce":
            yield np.sum(data, axis=0)
        elif collective == "all_gather":
            yield np.concatenate(data)
        elif collective == "reduce_scatter":
            yield np.sum([p[rank] for p in parts], axis=0)
        elif collective == "alltoall":
            yield np.concatenate([p[rank] for p in parts])
        else:
            yield data[(rank - 1) % n]


@pytest.mark.parametrize("collective", ranks.COLLECTIVES)
@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_what_is_expected_is_what_the_collective_means(collective, n):
    count = ranks.elements(collective, 4 * 1000, n)
    assert count and count <= 1000
    for rank, right in enumerate(simulated(collective, n, count)):
        np.testing.assert_array_equal(ranks.expected(collective, rank, n, count), right)


@pytest.mark.parametrize("collective", ["all_gather", "alltoall"])
def test_shards_that_change_places_are_seen(collective):
    right = ranks.expected(collective, 0, 4, 4 * 100)
    swapped = np.concatenate([right[100:200], right[:100], right[200:]])
    assert (swapped != right).any()


def test_too_small_a_buffer_has_no_shards():
    assert ranks.elements("all_gather", 8, 4) == 0
    assert ranks.elements("all_reduce", 8, 4) == 2


# ---------------------------------------------------------------- conclusions


def run_of(n, alpha, bandwidth, law, jitter=0.0):
    """A run whose shift obeys alpha and bandwidth and whose all-reduce obeys a law."""
    rng = np.random.default_rng(1)
    found = collectives.Run(n)

    def row(collective, size, time):
        return {
            "collective": collective,
            "size": size,
            "samples": list(time * (1 + jitter * rng.standard_normal(9))),
            "wrong": 0,
        }

    for size in collectives.QUICK_SIZES:
        found.rows.append(row("sendrecv", size, alpha + size / bandwidth))
        found.rows.append(row("all_reduce", size, law(float(size), n, bandwidth, alpha)))
    return found


def test_the_fit_recovers_alpha_and_bandwidth():
    found = run_of(4, 5e-6, 2e9, ring_time)
    fit = collectives.neighbour_fit(
        [(r["size"], r["samples"][0]) for r in found.rows if r["collective"] == "sendrecv"]
    )
    assert fit.latency == pytest.approx(5e-6) and fit.bandwidth == pytest.approx(2e9)


@pytest.mark.parametrize("name", collectives.ALGORITHMS)
@pytest.mark.parametrize("n", [4, 6])
def test_the_algorithm_that_ran_is_found(name, n):
    found = run_of(n, 5e-6, 2e9, collectives.ALGORITHMS[name])
    times = {
        c: [(r["size"], r["samples"][0]) for r in found.rows if r["collective"] == c]
        for c in ("sendrecv", "all_reduce")
    }
    explained = {
        e.name: e
        for e in collectives.explain(
            n, times["all_reduce"], collectives.neighbour_fit(times["sendrecv"])
        )
    }
    assert explained[name].small == pytest.approx(1) and explained[name].large == pytest.approx(1)
    assert all(
        e.small >= explained[name].small - 1e-9 and e.large >= explained[name].large - 1e-9
        for e in explained.values()
    )


def test_scattered_times_give_no_conclusion():
    steady, scattered = (
        " ".join(collectives.conclusions(run_of(4, 5e-6, 2e9, ring_time, j))) for j in (0.001, 0.4)
    )
    assert "alpha 5" in steady and "W 2" in steady and "All-reduce from 1,048,576 bytes" in steady
    assert "No conclusion" in scattered and "alpha 5" not in scattered


def test_two_ranks_cannot_tell_ring_from_tree():
    assert "take three or more" in collectives.conclusions(run_of(2, 5e-6, 2e9, ring_time))[-1]


def test_ranks_that_take_turns_are_warned_of():
    assert "4 ranks on 2 cores take turns" in ranks.turns(4, cores=2)
    assert "on 1 core " in ranks.turns(2, cores=1)
    assert ranks.turns(2, cores=2) == ""


def test_a_wrong_sum_is_no_time():
    row = {"collective": "all_reduce", "size": 8, "samples": [1e-6] * 5, "wrong": 3}
    found = collectives.Run(2, [row])
    (only,) = collectives.quantities(found)
    assert isinstance(only, Missing) and "3 wrong" in only.why


# ---------------------------------------------------------------- without MPI


def test_without_mpi4py_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"mpi4py is not installed\. pip install"):
        collectives.measure()


def test_without_mpiexec_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"No mpiexec.*pip install"):
        ranks.launcher(2)


# ---------------------------------------------------------------- real processes


@needs_mpi
def test_every_collective_is_right_between_real_processes():
    found = collectives.run(2, sizes=(8, 1000, 2**16), budget=0.01, longest=1e9)
    measured = {(r["collective"], r["size"]): r["wrong"] for r in found.rows if r["size"]}
    assert set(measured) == {(c, size) for c in ranks.COLLECTIVES for size in (8, 1000, 2**16)}
    assert not any(measured.values())
    kept = record.new(collectives.quantities(found))
    assert record.find(kept, "collectives.all_reduce", size=8, ranks=2, backend="mpi").samples
    assert all(isinstance(q, Quantity) for q in record.quantities(kept))


@pytest.mark.slow
@needs_mpi
def test_a_run_that_takes_too_long_or_fails_ends_in_words(monkeypatch):
    with pytest.raises(Unavailable, match="2 ranks gave no answer for 1 s"):
        job = {"collectives": ["alltoall"], "sizes": [1 << 24], "budget": 60, "longest": 99}
        ranks.start(2, job, 1)
    with pytest.raises(Unavailable, match="2 ranks failed: "):
        ranks.start(2, {"collectives": ["no such"], "sizes": [8], "budget": 1, "longest": 8}, 60)
