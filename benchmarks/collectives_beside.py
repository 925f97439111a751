"""Our times of collectives beside an independent program that times them as the OSU benchmarks do,
run in turn.

    python benchmarks/collectives_beside.py

The program comes twice: in C (compiled by the mpicc of the same MPI) and in Python. Its loop is
osu_allreduce's: calls that warm up, then each call between two readings of MPI_Wtime with a barrier
after it; the mean over calls and ranks. It does so `BLOCKS` times over, and the median is taken, as
ours is, since a mean alone follows the one call that was held up. A call from Python costs more
than one from C, whoever times it, so small messages are judged by the Python twin, which shares the
binding and nothing else, and messages from `LARGE` bytes on by C, too.

Three things besides the messages made a factor of up to four, in either language, and are the same
for all programs here:
- Threads. Started for one thread, MPICH took two to three times as long from 256 KiB on; mpi4py
  asks for several.
- The allocator. MPICH's scratch buffers went back to the system after each call and were fetched
  again, page by page (reduce_scatter of 256 KiB: 356 us, and 86 us without); `ALLOCATOR` keeps
  them.
- Huge pages. numpy asks for them from 4 MiB on.

Debian has no package of the OSU benchmarks. Needs a quiet machine with two cores. Fails if the
median ratio of any row is off by more than 10 %.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import _beside

from lightspeed_tools.measure.instruments import collectives, ranks

RANKS, ROUNDS, OFF, LARGE = 2, 7, 0.10, 2**18
BLOCKS = 9
SIZES = (8, 512, 32768, 2**18, 2**21, 2**24)
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(2**27), "MALLOC_TRIM_THRESHOLD_": str(2**28)}
NAMES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")

C = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static float *buffer(long size) {
    if (size < 1 << 22) return malloc(size);
    long whole = (size + (1 << 21) - 1) >> 21 << 21;
    float *p = aligned_alloc(1 << 21, whole);
    madvise(p, whole, MADV_HUGEPAGE);
    return p;
}
int main(int argc, char **argv) {
    int rank, n, threads;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int a = 2; a < argc; a++) {
        long size = atol(argv[a]), count = size / 4, part = count / n;
        int warm = size > 8192 ? 10 : 200, calls = size > 8192 ? 10 : 200;
        float *s = buffer(size), *r = buffer(size);
        for (long i = 0; i < count; i++) s[i] = 1, r[i] = 0;
        double total = 0, sum;
        for (int i = 0; i < warm + BLOCKS * calls; i++) {
            if (i >= warm && (i - warm) % calls == 0) total = 0;
            double t = MPI_Wtime();
            if (!strcmp(argv[1], "all_reduce"))
                MPI_Allreduce(s, r, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            else if (!strcmp(argv[1], "all_gather"))
                MPI_Allgather(s, part, MPI_FLOAT, r, part, MPI_FLOAT, MPI_COMM_WORLD);
            else if (!strcmp(argv[1], "reduce_scatter"))
                MPI_Reduce_scatter_block(s, r, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            else MPI_Alltoall(s, part, MPI_FLOAT, r, part, MPI_FLOAT, MPI_COMM_WORLD);
            t = MPI_Wtime() - t;
            total += t;
            MPI_Barrier(MPI_COMM_WORLD);
            if (i < warm || (i - warm) % calls < calls - 1) continue;
            MPI_Reduce(&total, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
            if (!rank) printf("%ld %.9g\n", size, sum / calls / n), fflush(stdout);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        free(s), free(r);
    }
    MPI_Finalize();
}
"""

PYTHON = r"""
import sys, numpy
from mpi4py import MPI
comm = MPI.COMM_WORLD
for size in map(int, sys.argv[2:]):
    s, r = numpy.ones(size // 4, "f"), numpy.zeros(size // 4, "f")
    r[:] = 0
    part = size // 4 // comm.size
    whole, share = ([s, MPI.FLOAT], [r, MPI.FLOAT]), ([s, part, MPI.FLOAT], [r, part, MPI.FLOAT])
    sent, received = {
        "all_reduce": whole, "all_gather": (share[0], whole[1]),
        "reduce_scatter": (whole[0], share[1]), "alltoall": whole,
    }[sys.argv[1]]
    call = {
        "all_reduce": comm.Allreduce, "all_gather": comm.Allgather,
        "reduce_scatter": comm.Reduce_scatter_block, "alltoall": comm.Alltoall,
    }[sys.argv[1]]
    warm, calls = (10, 10) if size > 8192 else (200, 200)
    for block in range(-1, BLOCKS):
        total = 0.0
        for i in range(calls if block >= 0 else warm):
            start = MPI.Wtime()
            call(sent, received)
            end = MPI.Wtime()
            total += end - start
            comm.Barrier()
        total = comm.reduce(total)
        if block >= 0 and comm.rank == 0:
            print(size, total / calls / comm.size, flush=True)
        comm.Barrier()
"""


def other(command, name):
    """size -> seconds, the median of what the program prints."""
    *mpiexec, _ = ranks.launcher(RANKS)  # the last is our Python
    done = subprocess.run(
        [*mpiexec, *command, name, *map(str, SIZES)],
        env=ranks.clean(),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    printed = [(int(size), float(time)) for size, time in map(str.split, done.stdout.splitlines())]
    return {size: median(time for s, time in printed if s == size) for size in SIZES}


def ours(name):
    """size -> seconds, as we measure in full."""
    return {
        r["size"]: median(r["samples"])
        for r in collectives.run(RANKS, SIZES, [name], budget=0.5).rows
        if r["size"]
    }


def main():
    off, worst, judged = [], 0.0, 0
    os.environ.update(ALLOCATOR)
    with tempfile.TemporaryDirectory() as folder:
        source, twin, program = (Path(folder, name) for name in ("osu.c", "osu.py", "osu"))
        source.write_text(C.replace("BLOCKS", str(BLOCKS)))
        twin.write_text(PYTHON.replace("BLOCKS", str(BLOCKS)))
        subprocess.run(
            [Path(sys.executable).with_name("mpicc"), "-O2", source, "-o", program], check=True
        )
        for name in NAMES:
            rounds = [
                (ours(name), other([sys.executable, str(twin)], name), other([str(program)], name))
                for _ in range(ROUNDS)
            ]
            rows = []
            for size in SIZES:
                # Side by side in each round, so that what changes over time changes both.
                by = {
                    "Python": median(a[size] / b[size] for a, b, _ in rounds),
                    "C": median(a[size] / c[size] for a, _, c in rounds),
                }
                rows.append(
                    (
                        (
                            f"{size:>10,} bytes, ours"
                            f" {median(a[size] for a, _, _ in rounds) * 1e6:10.2f} us,"
                            " over OSU's loop in Python, in C"
                        ),
                        f"{by['Python']:.3f}  {by['C']:.3f}",
                    )
                )
                for language, ratio in by.items():
                    if language == "Python" or size >= LARGE:
                        judged += 1
                        worst = max(worst, abs(ratio - 1))
                        if abs(ratio - 1) > OFF:
                            off.append(f"{name} of {size:,} bytes over {language}: {ratio:.3f}")
            _beside.show(f"{name}, {RANKS} ranks", rows)
    print(
        f"\n{judged} ratios judged, largest difference {worst:.1%}"
        + (f"; off by more than {OFF:.0%}: {'; '.join(off)}" if off else "")
    )
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
