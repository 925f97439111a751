"""Processes that talk to each other: under a launcher that is already there, or started here with
one of our own.

Rank 0 answers in lines of JSON on standard output; everything else that it or a library prints is
passed over.
"""

import collections
import contextlib
import importlib.util
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lightspeed_tools.measure.environment import usable_cores
from lightspeed_tools.measure.instruments.timing import Unavailable

INSTALL = "pip install '.[measure]'"
# Name, and the variables of rank, size and rank on its node. The innermost launcher comes first:
# mpiexec inside a Slurm job leaves Slurm's variables in place. Slurm's count is that of the step:
# an sbatch script is no rank.
LAUNCHERS = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
)
LIMIT = 60  # s that one size may take before it counts as hung
INHERITED = ("PMI", "OMPI_", "PRTE_", "SLURM_", "HYD", "MPI_LOCAL", "TORCHELASTIC_")


@dataclass(frozen=True)
class World:
    """The processes that a launcher started, seen by one: `rank` of `size`, `local` on a node."""

    launcher: str
    rank: int
    size: int
    local: int


def world(environ=os.environ):
    """The `World` that a launcher put this process into, or None; one process alone is no world.

    >>> world({"PMI_RANK": "1", "PMI_SIZE": "4"})
    World(launcher='MPICH', rank=1, size=4, local=0)
    """
    for launcher, rank, size, local in LAUNCHERS:
        if launcher == "torchrun" and "MASTER_ADDR" not in environ:
            continue
        with contextlib.suppress(KeyError, ValueError):
            world_here = World(
                launcher, int(environ[rank]), int(environ[size]), int(environ.get(local, 0))
            )
            if world_here.size > 1:
                return world_here
    return None


def launcher(backend, ranks):
    """What starts Python on `ranks` ranks here, before its arguments. Raises Unavailable."""
    if backend == "mpi":
        beside = Path(sys.executable).with_name("mpiexec")
        path = str(beside) if beside.exists() else shutil.which("mpiexec")
        if not path:
            raise Unavailable("No mpiexec was found, in this environment or on the path.", INSTALL)
        return [path, "-n", str(ranks), sys.executable]
    run = [sys.executable, "-m", "torch.distributed.run"]
    return [*run, "--standalone", "--nproc-per-node", str(ranks)]


def module(name, *words):
    """The arguments with which Python runs a module of the instruments."""
    return ["-m", f"{__package__}.{name}", *map(str, words)]


def clean(environ=os.environ):
    """The environment without another launcher's: our processes are alone, with one thread each."""
    environment = {
        name: value
        for name, value in environ.items()
        if not name.startswith(INHERITED)
        and name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    }
    return {
        **environment,
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }


def answers(command, patience, environ=None):
    """The JSON objects that a command prints, a line each, as they come; it is gone when this ends.
    Raises Unavailable with its last words, or after `patience` seconds.
    """
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environ,
        )
    except OSError as error:
        raise Unavailable(f"{command[0]} could not be started: {error.strerror}.") from error
    lines, log = queue.Queue(), collections.deque(maxlen=30)
    threads = [
        threading.Thread(target=_pump, args=pair, daemon=True)
        for pair in ((child.stdout, lines.put), (child.stderr, log.append))
    ]
    for thread in threads:
        thread.start()
    try:
        while (line := lines.get(timeout=patience)) is not None:
            with contextlib.suppress(json.JSONDecodeError):
                answer = json.loads(line)
                if isinstance(answer, dict):
                    yield answer
        status = child.wait(timeout=patience)
        threads[1].join(1)
        if status:
            raise Unavailable(
                _last_words(log) or f"{Path(command[0]).name} ended with exit status {status}."
            )
    except (queue.Empty, subprocess.TimeoutExpired):
        raise Unavailable(f"No answer for {patience:.0f} s.") from None
    finally:
        _end(child)


def _pump(stream, put):
    with stream:
        for line in stream:
            put(line)
    put(None)


def _last_words(said):
    """The last line that says something: MPI frames its messages with rules and its own advice."""
    ours = [
        line.strip().removeprefix(MARK) for line in said if line and line.strip().startswith(MARK)
    ]
    plain = [line.strip() for line in said if line and any(c.isalpha() for c in line)]
    return " ".join((ours or plain)[-1:])


MARK = "lightspeed: "  # begins a line on standard error that is meant for the reader


def _end(child):
    for stop in (child.terminate, child.kill):  # mpiexec passes the first on to its ranks
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.01)
            return
        stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=3)
            return


class Watch:
    """Ends this process, in words, when something takes too long: a collective that waits for a
    lost rank never returns. Others than rank 0 wait longer, and speak if it can't.
    """

    def __init__(self, rank, limit):
        self.rank, self.limit, self.what = rank, limit, "the start"
        self.begin("the start")
        threading.Thread(target=self._look, daemon=True).start()

    def begin(self, what):
        """From here on `what` has `limit` seconds."""
        self.what, self.deadline = what, time.monotonic() + self.limit

    def _look(self):
        grace = 0 if self.rank == 0 else 2 + 0.1 * min(self.rank, 20)
        while time.monotonic() < self.deadline + grace:
            time.sleep(0.2)
        silent = "" if self.rank == 0 else f" Rank 0 itself is silent, says rank {self.rank}."
        print(
            f"{MARK}{self.what} did not end within {self.limit:.0f} s; a rank hangs, is lost, or"
            f" waits for its turn.{silent}",
            file=sys.stderr,
            flush=True,
        )
        os._exit(3)


def die_with_parent():
    """Have the kernel end this process when its parent ends, however that happens (Linux)."""
    import ctypes
    import signal

    parent = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(3)


def needs(module, remedy):
    """Raise Unavailable, with the remedy, where a module is not installed."""
    if importlib.util.find_spec(module) is None:
        raise Unavailable(f"{module} is not installed.", remedy)


def turns(ranks, cores=None):
    """A warning if ranks must take turns on the cores, else nothing."""
    cores = cores or usable_cores()
    if ranks <= cores:
        return ""
    return (
        f"{ranks} ranks on {cores} core{'s' if cores > 1 else ''} take turns: times then measure"
        " the scheduler, too."
    )
