"""Collectives between real processes: what they compute, what they say, and the pure parts of
what is concluded. No time is judged.
"""

import argparse
import importlib.util
import json
import os
import signal
import sys
import time

import numpy as np
import pytest
from processes import finished

from lightspeed.collectives import ring_time
from lightspeed_cli.argument_types import sizes_of
from lightspeed_tools.measure.instruments import collectives, launch, ranks
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, Unavailable
from lightspeed_tools.measure.records import record
from lightspeed_tools.nccl.consistency import check
from lightspeed_tools.nccl.facts import facts_of
from lightspeed_tools.nccl.log import parse

HAS_MPI = bool(
    importlib.util.find_spec("mpi4py")
    and launch.shutil.which(
        "mpiexec", path=f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', '')}"
    )
)
needs_mpi = pytest.mark.skipif(not HAS_MPI, reason="no mpi4py or mpiexec: pip install '.[measure]'")


# ---------------------------------------------------------------- who started us


@pytest.mark.parametrize(
    ("environ", "world"),
    [
        ({}, None),
        (
            {
                "OMPI_COMM_WORLD_RANK": "3",
                "OMPI_COMM_WORLD_SIZE": "8",
                "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            },
            ("Open MPI", 3, 8, 1),
        ),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, ("MPICH", 0, 2, 0)),
        (
            {
                "SLURM_PROCID": "5",
                "SLURM_NTASKS": "16",
                "SLURM_STEP_NUM_TASKS": "16",
                "SLURM_LOCALID": "1",
            },
            ("Slurm", 5, 16, 1),
        ),
        (
            {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1"},
            ("torchrun", 1, 4, 1),
        ),
        # the script of sbatch, before its srun
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "16"}, None),
        ({"RANK": "1", "WORLD_SIZE": "4"}, None),  # somebody's own variables
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),  # alone
        ({"PMI_RANK": "x", "PMI_SIZE": "2"}, None),
        # mpiexec inside a job of Slurm: the innermost counts
        (
            {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "PMI_RANK": "5", "PMI_SIZE": "8"},
            ("MPICH", 5, 8, 0),
        ),
    ],
)
def test_the_launcher_is_seen(environ, world):
    found = launch.world(environ)
    assert found == (world and launch.World(*world))


def test_our_own_processes_inherit_no_launcher():
    left = launch.clean(
        {
            "PMI_RANK": "0",
            "SLURM_PROCID": "1",
            "OMPI_COMM_WORLD_SIZE": "4",
            "RANK": "0",
            "MASTER_ADDR": "x",
            "WORLD_SIZE": "2",
            "PATH": "/bin",
        }
    )
    assert launch.world(left) is None
    assert left["PATH"] == "/bin" and left["OPENBLAS_NUM_THREADS"] == "1"


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
    found = collectives.Run("mpi", n, [0] * n)

    def row(collective, size, time):
        return {
            "collective": collective,
            "size": size,
            "count": size // 4,
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
    assert "4 ranks on 2 cores take turns" in launch.turns(4, cores=2)
    assert "on 1 core " in launch.turns(2, cores=1)
    assert launch.turns(2, cores=2) == ""


def test_a_wrong_sum_is_no_time():
    found = collectives.Run(
        "mpi",
        2,
        [0, 0],
        [{"collective": "all_reduce", "size": 8, "count": 2, "samples": [1e-6] * 5, "wrong": 3}],
    )
    (only,) = collectives.quantities(found)
    assert isinstance(only, Missing) and "3 wrong" in only.why


def test_the_table_is_one_that_nccl_report_reads():
    found = run_of(4, 5e-6, 2e9, ring_time)
    reports = {r.collective: r for r in parse("\n".join(collectives.report_lines(found)))}
    assert set(reports) == {"all_reduce", "sendrecv"}
    ours = reports["all_reduce"]
    facts = facts_of(ours)
    assert (facts.ranks.value, facts.nodes.value) == (4, 1)
    assert not ours.truncated and ours.out_of_bounds == 0
    assert [row.size for row in ours.rows] == list(collectives.QUICK_SIZES)
    large = ours.rows[-1]
    assert large.busbw == pytest.approx(
        1.5 * large.size / ring_time(float(large.size), 4, 2e9, 5e-6), rel=1e-3
    )
    assert not list(check(ours, 4))


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("8", (8,)), ("8,64K, 1MiB", (8, 65536, 2**20)), ("1g", (2**30,)), ("16B", (16,))],
)
def test_sizes_are_read(text, sizes):
    assert sizes_of(text) == sizes


@pytest.mark.parametrize("text", ["", "K", "-8", "1.5M", "8 apples", "2"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        sizes_of(text)


# ---------------------------------------------------------------- without MPI


def test_without_mpi4py_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"mpi4py is not installed\. pip install"):
        collectives.measure()


def test_without_mpiexec_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"No mpiexec.*pip install"):
        launch.launcher("mpi", 2)


# ---------------------------------------------------------------- real processes


@pytest.mark.holds("measure", "No answer for")
def test_a_silent_command_is_ended():
    start = time.monotonic()
    with pytest.raises(Unavailable, match="No answer for 1 s"):
        list(launch.answers([sys.executable, "-c", "import time; time.sleep(100)"], 1))
    assert time.monotonic() - start < 60


def test_a_failing_command_says_its_last_words():
    code = (
        f"import sys; print('noise'); print('{{\"a\": 1}}', flush=True); print('{launch.MARK}the"
        " reason', file=sys.stderr); print('rules ====', file=sys.stderr); sys.exit(4)"
    )
    said = []
    with pytest.raises(Unavailable, match=r"^the reason$"):
        for answer in launch.answers([sys.executable, "-c", code], 30):
            said.append(answer)
    assert said == [{"a": 1}]


@needs_mpi
def test_every_collective_is_right_between_real_processes():
    found = collectives.run(2, sizes=(8, 1000, 2**16), budget=0.01, longest=1e9)
    measured = {(r["collective"], r["size"]): r["wrong"] for r in found.rows if r["size"]}
    assert set(measured) == {(c, size) for c in ranks.COLLECTIVES for size in (8, 1000, 2**16)}
    assert not any(measured.values())
    assert found.nodes == [0, 0]
    kept = record.new(collectives.quantities(found))
    assert record.find(kept, "collectives.all_reduce", size=8, ranks=2, backend="mpi").samples
    assert all(isinstance(q, Quantity) for q in record.quantities(kept))


@pytest.mark.slow
@needs_mpi
def test_under_a_launcher_the_command_is_a_rank_and_one_speaks(tmp_path):
    command = [
        *launch.launcher("mpi", 2),
        "-m",
        "lightspeed_cli",
        "measure",
        "collectives",
        "--full",
        "--size",
        "8,4K",
        "--into",
        str(tmp_path),
    ]
    done = finished(command, env=launch.clean(), timeout=120)
    assert done.returncode == 0, done.stderr
    reports = parse(done.stdout)
    assert [r.collective for r in reports] == list(ranks.COLLECTIVES)
    assert all(facts_of(r).ranks.value == 2 for r in reports)
    assert all([row.size for row in r.rows] == [8, 4096] for r in reports)
    (kept,) = tmp_path.glob("*.json")
    assert (
        record.find(record.load(kept), "collectives.alltoall", size=4096).parameters["ranks"] == 2
    )


@needs_mpi
@pytest.mark.holds("measure", "but MPI in them sees")
def test_another_mpi_than_the_launchers_is_told():
    environ = {**launch.clean(), "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}
    done = finished(
        [sys.executable, "-m", "lightspeed_cli", "measure", "collectives", "--size", "8"],
        env=environ,
        timeout=120,
    )
    assert done.returncode == 2
    assert "Slurm started 4 processes, but MPI in them sees 1" in done.stderr
    assert "srun --mpi" in done.stderr


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize(
    ("sign", "words"),
    [(signal.SIGSTOP, "over 2 ranks did not end within 2 s"), (signal.SIGKILL, "mpiexec ended")],
)
def test_a_lost_rank_ends_in_words(tmp_path, sign, words):
    program = tmp_path / "lost.py"
    job = {
        "backend": "mpi",
        "collectives": ["all_reduce"] * 1000,
        "sizes": [2**20],
        "budget": 0.2,
        "longest": 1e9,
        "limit": 2,
    }
    program.write_text(
        "import os, threading\nfrom lightspeed_tools.measure.instruments import rank_worker\nif"
        " os.environ['PMI_RANK'] == '1':\n    threading.Timer(1, lambda: os.kill(os.getpid(),"
        f" {int(sign)})).start()\nrank_worker.main({job!r})\n"
    )
    with pytest.raises(Unavailable, match=words):
        for _ in launch.answers([*launch.launcher("mpi", 2), str(program)], 60, launch.clean()):
            pass


@pytest.mark.skipif(
    not importlib.util.find_spec("torch"), reason="PyTorch is not installed: pip install torch"
)
def test_gloo_is_right_between_real_processes():
    found = collectives.run(2, sizes=(8, 2**16), backend="gloo", budget=0.01, longest=1e9)
    measured = {(r["collective"], r["size"]): r["wrong"] for r in found.rows if r["size"]}
    assert measured and not any(measured.values())
    assert {c for c, _ in measured} | {
        m.key.removeprefix("collectives.") for m in found.lacking
    } == set(ranks.COLLECTIVES)


@needs_mpi
def test_the_job_is_json():
    done = finished(
        [
            sys.executable,
            "-m",
            "lightspeed_tools.measure.instruments.rank_worker",
            json.dumps({"backend": "gloo", "limit": 60}),
        ],
        env=launch.clean(),
        timeout=60,
    )
    assert done.returncode == 4 and launch.MARK in done.stderr
