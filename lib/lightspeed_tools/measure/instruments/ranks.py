"""Processes that MPI starts on this machine, and what they measure. Run as a module, this file is
one of them.

Size S counts as nccl-tests does (see `lightspeed.collectives`): the whole buffer, so a gather's
shards are S / n. A call is timed as the OSU benchmarks do: a barrier, then the clock around one
call, on every rank; the time of a call is the mean over ranks. Buffers are float32 and separate.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from lightspeed_tools.measure.environment import usable_cores
from lightspeed_tools.measure.instruments.timing import FEWEST, Unavailable, seconds_of

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
INSTALL = "pip install '.[measure]'"
PERIOD = 251  # of the test pattern; a prime, so that no shard looks like its neighbour
ELEMENT = 4
LONGEST = 8  # a size whose samples would take so many times its budget is left out
INHERITED = ("PMI", "OMPI_", "PRTE_", "SLURM_", "HYD", "MPI_LOCAL")


def launcher(ranks):
    """Return the command that starts Python on `ranks` ranks. Raises Unavailable."""
    beside = Path(sys.executable).with_name("mpiexec")
    path = str(beside) if beside.exists() else shutil.which("mpiexec")
    if not path:
        raise Unavailable("No mpiexec was found, in this environment or on the path.", INSTALL)
    return [path, "-n", str(ranks), sys.executable]


def clean(environ=os.environ):
    """Return the environment without another launcher's variables, with one thread per process."""
    own = {name: value for name, value in environ.items() if not name.startswith(INHERITED)}
    return own | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def start(ranks, job, limit):
    """Return the rows measured by rank 0 of `ranks` processes. Raises Unavailable if the processes
    can't start, end early, or take longer than `limit` seconds.
    """
    command = [*launcher(ranks), "-m", __name__, json.dumps(job)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean()
    )
    try:
        out, err = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{ranks} ranks gave no answer for {limit:.0f} s.") from None
    finally:
        child.terminate()  # mpiexec passes it on to its ranks
    lines = [line for line in err.splitlines() if any(c.isalpha() for c in line)]
    if child.returncode:
        last = lines[-1].strip() if lines else f"exit status {child.returncode}"
        raise Unavailable(f"{ranks} ranks failed: {last}")
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def turns(ranks, cores=None):
    """Return a warning if ranks must share cores, else nothing."""
    cores = cores or usable_cores()
    if ranks <= cores:
        return ""
    return (
        f"{ranks} ranks on {cores} core{'s' if cores > 1 else ''} take turns: times then measure"
        " the scheduler, too."
    )


# ---------------------------------------------------------------- what is sent and must arrive


def _block(source, target, count):
    """What `source` sends to `target`: small whole numbers, so that every float32 sum is exact."""
    pattern = (source * 101 + target * 17 + np.arange(PERIOD, dtype=float)) % PERIOD
    return np.resize(pattern.astype(np.float32), count)


def sent(collective, rank, n, count):
    """Return the `count` elements (a gather: its share) that a rank sends, as float32."""
    if collective in ("reduce_scatter", "alltoall"):
        return np.concatenate([_block(rank, target, count // n) for target in range(n)])
    return _block(rank, 0, count // n if collective == "all_gather" else count)


def expected(collective, rank, n, count):
    """Return the exact contents of this rank's buffer afterwards.

    >>> expected("all_reduce", 0, 2, 3).tolist()  # 0 1 2 and 101 102 103
    [101.0, 103.0, 105.0]
    """
    if collective == "all_reduce":
        return np.resize(sum(_block(source, 0, PERIOD) for source in range(n)), count)
    if collective == "reduce_scatter":
        return np.resize(sum(_block(source, rank, PERIOD) for source in range(n)), count // n)
    if collective == "all_gather":
        return np.concatenate([_block(source, 0, count // n) for source in range(n)])
    if collective == "alltoall":
        return np.concatenate([_block(source, rank, count // n) for source in range(n)])
    return _block((rank - 1) % n, 0, count)


def elements(collective, size, n):
    """Return how many float32 fit into `size` bytes and divide among n ranks; 0 if none."""
    count = size // ELEMENT
    return count if collective in ("all_reduce", "sendrecv") else count // n * n


# ---------------------------------------------------------------- a rank


def once(MPI, comm, collective, send, recv):
    """Return a function without arguments that performs the collective once."""
    a, b = [send, MPI.FLOAT], [recv, MPI.FLOAT]
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    return {
        "all_reduce": lambda: comm.Allreduce(a, b),
        "all_gather": lambda: comm.Allgather(a, b),
        "reduce_scatter": lambda: comm.Reduce_scatter_block(a, b),
        "alltoall": lambda: comm.Alltoall(a, b),
        "sendrecv": lambda: comm.Sendrecv(a, right, recvbuf=b, source=left),
    }[collective]


def timed(comm, call, loops):
    """Time a call on this rank, in seconds: the mean of `loops`, each after a barrier."""
    barrier, clock, total = comm.Barrier, time.perf_counter, 0.0
    for _ in range(loops):
        barrier()
        begin = clock()
        call()
        total += clock() - begin
    return total / loops


def sample(comm, call, budget, longest=LONGEST, repeat=15):
    """Time a call, averaged over ranks, within about `budget` seconds: at least five samples, or
    none if that would take far longer.
    """
    clock, tries = time.perf_counter, []
    for _ in range(3):  # barriers included: where ranks take turns, they are most of the time
        begin = clock()
        timed(comm, call, 1)
        tries.append(clock() - begin)
    one = max(comm.allgather(min(tries)))
    if FEWEST * one > longest * budget:
        return []
    loops = max(1, min(1000, int(budget / repeat / one)))
    repeat = max(FEWEST, min(repeat, int(budget / loops / one)))
    own, begin = [], clock()
    while len(own) < repeat:
        own.append(timed(comm, call, loops))
        # All ranks must stop at the same sample, and one alone may have been held up.
        if len(own) >= FEWEST and max(comm.allgather(clock() - begin)) > longest * budget:
            break
    return [sum(times) / len(times) for times in zip(*comm.allgather(own), strict=True)]


def sweep(MPI, collectives, sizes, budget, longest):
    """Measure each collective at each size; yields the same rows on every rank."""
    comm, alone = MPI.COMM_WORLD, MPI.COMM_SELF
    two = [[np.ones(2, np.float32), MPI.FLOAT] for _ in range(2)]
    yield {"collective": "call", "size": 0, "samples": seconds_of(lambda: alone.Allreduce(*two))}
    for collective in collectives:
        for size in sizes:
            count = elements(collective, size, comm.size)
            if not count:
                continue
            right = expected(collective, comm.rank, comm.size, count)
            recv = np.full(right.size, np.nan, np.float32)
            send = sent(collective, comm.rank, comm.size, count)
            call = once(MPI, comm, collective, send, recv)
            call()
            wrong = sum(comm.allgather(int((recv != right).sum())))
            samples = sample(comm, call, budget, longest)
            row = {"collective": collective, "size": count * ELEMENT, "samples": samples}
            yield row | {"wrong": wrong}
            if not samples:
                break  # larger ones take longer still


def main(job):
    """Measure as a rank; rank 0 prints one row per line."""
    from mpi4py import MPI

    for row in sweep(MPI, **job):
        if MPI.COMM_WORLD.rank == 0:
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
