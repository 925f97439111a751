"""One of the processes of a collective: its backend, its buffers, its clock. Run as a module, it
measures as it is told.

Size S counts as nccl-tests does (see `lightspeed.collectives`): the whole buffer, so a gather's
shards are S / n. A call is timed as the OSU benchmarks do: a barrier, then the clock around one
call, on every rank; the time of a call is the mean over ranks, which both suites print by default.
Buffers are float32 and separate (out of place), except all_reduce in PyTorch, which works in place.
With NCCL calls are queued on the GPU, so a batch of them stands between two CUDA events, as in
nccl-tests.
"""

import os
import time
from typing import Any

from lightspeed_tools.measure.instruments.launch import INSTALL
from lightspeed_tools.measure.instruments.timing import FEWEST, Unavailable, seconds_of

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
PERIOD = 251  # of the test pattern; a prime, so that no shard looks like its neighbour
ELEMENT = 4
LONGEST = 8  # a size whose samples would take so many times its budget is left out


# ---------------------------------------------------------------- what is sent, and what must arriv


def _block(source, target, count):
    """What `source` sends to `target`: small whole numbers, so that every float32 sum is exact."""
    import numpy

    return numpy.resize(
        ((source * 101 + target * 17 + numpy.arange(PERIOD, dtype=float)) % PERIOD).astype(
            numpy.float32
        ),
        count,
    )


def sent(collective, rank, n, count):
    """The `count` elements (a gather: their share) that a rank sends, as float32."""
    import numpy

    if collective in ("reduce_scatter", "alltoall"):
        return numpy.concatenate([_block(rank, target, count // n) for target in range(n)])
    return _block(rank, 0, count // n if collective == "all_gather" else count)


def expected(collective, rank, n, count):
    """What must be in this rank's buffer afterwards, exactly.

    >>> expected("all_reduce", 0, 2, 3).tolist()  # 0 1 2 and 101 102 103
    [101.0, 103.0, 105.0]
    """
    import numpy

    if collective == "all_reduce":
        return numpy.resize(sum(_block(source, 0, PERIOD) for source in range(n)), count)
    if collective == "reduce_scatter":
        return numpy.resize(sum(_block(source, rank, PERIOD) for source in range(n)), count // n)
    if collective == "all_gather":
        return numpy.concatenate([_block(source, 0, count // n) for source in range(n)])
    if collective == "alltoall":
        return numpy.concatenate([_block(source, rank, count // n) for source in range(n)])
    return _block((rank - 1) % n, 0, count)


def elements(collective, size, n):
    """How many float32 fit into `size` bytes so that they divide among n ranks; 0 if none do."""
    count = size // ELEMENT
    return count if collective in ("all_reduce", "sendrecv") else count // n * n


# ---------------------------------------------------------------- backends


class Mpi:
    """MPI by mpi4py, on numpy arrays."""

    def __init__(self, here):
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise Unavailable(
                (
                    "mpi4py is not installed."
                    if error.name == "mpi4py"
                    else f"mpi4py finds no MPI: {error}"
                ),
                INSTALL,
            ) from error
        except RuntimeError as error:  # mpi4py without a libmpi
            raise Unavailable(f"mpi4py finds no MPI: {error}".splitlines()[0], INSTALL) from error
        self.MPI, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        if here and self.size != here.size:
            raise Unavailable(
                f"{here.launcher} started {here.size} processes, but MPI in them sees {self.size}:"
                " mpi4py uses another MPI than the launcher.",
                "Start them with the mpiexec of that MPI, under Slurm try srun --mpi=pmi2 or"
                " --mpi=pmix, or build mpi4py against the cluster's MPI.",
            )
        self.barrier = self.comm.Barrier
        self.node = MPI.Get_processor_name()

    def buffers(self, data, count):
        import numpy

        return data, numpy.full(count, numpy.nan, numpy.float32)

    def call(self, collective, send, recv):
        """A function of nothing that does it once."""
        comm, a, b = self.comm, [send, self.MPI.FLOAT], [recv, self.MPI.FLOAT]
        if collective == "all_reduce":
            return lambda: comm.Allreduce(a, b)
        if collective == "all_gather":
            return lambda: comm.Allgather(a, b)
        if collective == "reduce_scatter":
            return lambda: comm.Reduce_scatter_block(a, b)
        if collective == "alltoall":
            return lambda: comm.Alltoall(a, b)
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        return lambda: comm.Sendrecv(a, right, recvbuf=b, source=left)

    def timed(self: Any, call, loops):
        """Seconds of a call on this rank: the mean of `loops`, each after a barrier."""
        barrier, clock, total = self.barrier, time.perf_counter, 0.0
        for _ in range(loops):
            barrier()
            start = clock()
            call()
            total += clock() - start
        return total / loops

    def received(self, recv):
        return recv

    def collect(self, value):
        """The value of every rank, on every rank."""
        return self.comm.allgather(value)

    def alone(self):
        """A call that sends nothing: an all-reduce of eight bytes within this rank."""
        import numpy

        a, b = (
            [numpy.ones(2, numpy.float32), self.MPI.FLOAT],
            [numpy.ones(2, numpy.float32), self.MPI.FLOAT],
        )
        return lambda: self.MPI.COMM_SELF.Allreduce(a, b)

    def close(self):
        self.MPI.Finalize()


class Torch:
    """torch.distributed with gloo (on the CPU) or NCCL (a GPU each). The NCCL path has not been
    run by the authors on more than one GPU.
    """

    def __init__(self, here, backend):
        try:
            import torch
            import torch.distributed as dist
        except ImportError as error:
            raise Unavailable("PyTorch is not installed.", "pip install torch") from error
        if not here:
            raise Unavailable(
                "PyTorch's collectives need a launcher.",
                "torchrun --nproc-per-node 4 -m lightspeed_cli measure collectives",
            )
        if "MASTER_ADDR" not in os.environ:
            raise Unavailable(
                f"{here.launcher} does not tell PyTorch where rank 0 is.",
                "Set MASTER_ADDR (the host of rank 0) and MASTER_PORT, or use torchrun.",
            )
        if backend == "nccl" and not torch.cuda.is_available():
            raise Unavailable(
                "NCCL needs NVIDIA GPUs, and PyTorch sees none.", "Take --backend gloo, or mpi."
            )
        self.torch, self.dist, self.rank, self.size = torch, dist, here.rank, here.size
        self.gpu = backend == "nccl"
        self.device = (
            torch.device("cuda", here.local % torch.cuda.device_count())
            if self.gpu
            else torch.device("cpu")
        )
        if self.gpu:
            torch.cuda.set_device(self.device)
        os.environ.setdefault("MASTER_PORT", "29500")
        dist.init_process_group(backend, rank=self.rank, world_size=self.size)
        import platform

        self.node = platform.node()

    def barrier(self):
        self.dist.barrier()

    def buffers(self, data, count):
        return self.torch.tensor(data, device=self.device), self.torch.full(
            (count,), float("nan"), device=self.device
        )

    def call(self, collective, send, recv):
        dist = self.dist
        if collective == "all_reduce":
            recv.copy_(send)
            return lambda: dist.all_reduce(recv)
        if collective == "all_gather":
            return lambda: dist.all_gather_into_tensor(recv, send)
        if collective == "reduce_scatter":
            return lambda: dist.reduce_scatter_tensor(recv, send)
        if collective == "alltoall":
            return lambda: dist.all_to_all_single(recv, send)
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size

        def exchange():
            for work in dist.batch_isend_irecv(
                [dist.P2POp(dist.isend, send, right), dist.P2POp(dist.irecv, recv, left)]
            ):
                work.wait()

        return exchange

    def timed(self, call, loops):
        if not self.gpu:
            return Mpi.timed(self, call, loops)
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.barrier()
        self.torch.cuda.synchronize()
        start.record()
        for _ in range(loops):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / loops

    def received(self, recv):
        return recv.cpu().numpy()

    def collect(self, value):
        values = [None] * self.size
        self.dist.all_gather_object(values, value)
        return values

    def alone(self):
        one = self.dist.new_group([self.rank], use_local_synchronization=True)
        data = self.torch.ones(2, device=self.device)
        return lambda: self.dist.all_reduce(data, group=one)

    def close(self):
        self.dist.destroy_process_group()


def open_backend(name, here):
    """The backend of this name in this `World` (None: whatever MPI says). Raises Unavailable."""
    return Mpi(here) if name == "mpi" else Torch(here, name)


# ---------------------------------------------------------------- the clock


def sample(backend, call, budget, longest=LONGEST, repeat=15):
    """(samples, slowest): seconds of a call, mean over ranks and of the slowest, in about `budget`
    seconds: five samples at least, or empty if that takes far longer.
    """
    clock, tries = time.perf_counter, []
    for _ in range(3):  # barriers included: where ranks take turns, they are most of the time
        start = clock()
        backend.timed(call, 1)
        tries.append(clock() - start)
    once = max(backend.collect(min(tries)))
    if FEWEST * once > longest * budget:
        return [], []
    loops = max(1, min(1000, int(budget / repeat / once)))
    repeat = max(FEWEST, min(repeat, int(budget / loops / once)))
    mine, start = [], clock()
    while len(mine) < repeat:
        mine.append(backend.timed(call, loops))
        # All ranks must stop at the same sample, and one alone may have been held up.
        if len(mine) >= FEWEST and max(backend.collect(clock() - start)) > longest * budget:
            break
    every = list(zip(*backend.collect(mine), strict=True))
    return [sum(times) / len(times) for times in every], [max(times) for times in every]


def sweep(backend, collectives, sizes, budget, longest, say, watch):
    """Measure each collective at each size; `say` takes dictionaries, on every rank."""
    say(
        ranks=backend.size,
        nodes=[
            sorted(set(names)).index(name)
            for names in [backend.collect(backend.node)]
            for name in names
        ],
    )
    backend.barrier()
    say(collective="call", size=0, samples=seconds_of(backend.alone()))
    for collective in collectives:
        for size in sizes:
            count = elements(collective, size, backend.size)
            if not count:
                continue
            say(begin=collective, size=count * ELEMENT)
            watch.begin(f"{collective} of {count * ELEMENT:,} bytes over {backend.size} ranks")
            want = expected(collective, backend.rank, backend.size, count)
            send, recv = backend.buffers(
                sent(collective, backend.rank, backend.size, count), want.size
            )
            try:
                call = backend.call(collective, send, recv)
                call()
            # a backend that lacks this one
            except (RuntimeError, NotImplementedError, ValueError) as error:
                say(collective=collective, lacking=str(error).splitlines()[0][:200])
                break
            wrong = sum(backend.collect(int((backend.received(recv) != want).sum())))
            samples, slowest = sample(backend, call, budget, longest)
            say(
                collective=collective,
                size=count * ELEMENT,
                count=count,
                samples=samples,
                slowest=slowest,
                wrong=wrong,
            )
            if not samples:
                break  # larger ones take longer still
    watch.begin("the end")
    backend.barrier()
