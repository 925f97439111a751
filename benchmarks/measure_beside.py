"""Our bandwidths and peaks beside those of independent tools, run in turn on this machine.

    python benchmarks/measure_beside.py             # all of them
    python benchmarks/measure_beside.py c carm      # some

C is STREAM's copy and triad in a page of C, compiled with gcc -O3 -march=native -fopenmp, run in
turn with ours. HPCC (Debian: apt-get install hpcc libopenblas0-pthread) gives STREAM and DGEMM, in
compiled C under MPI, one process alone and one on every core at once. CARM (carm-roofline from the
package index, into an environment of its own) gives the bandwidth of the first cache and the FMA
peak, in assembly that it writes itself (x86 and ARM, needs gcc). Like STREAM, all report the best
of their samples here; vectors and matrices have the same sizes on both sides. Needs a quiet
machine. Fails if a ratio is off by more than 15 %, or if there was nothing to compare with.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import _beside
import numpy as np

from lightspeed_tools.measure.environment import usable_cores
from lightspeed_tools.measure.instruments import kernels, roofline

CARM, VERSION = "carm-roofline", "1.5.1"
HOME = _beside.BENCH / f"{CARM}-{VERSION}"
EXAMPLE = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
SIDE = 3600  # of HPCC's matrix for one core; its vectors take a third of that memory each
LENGTH = 8 * 2**20  # numbers in each vector of the C program, for each thread
ROUNDS, OFF = 3, 0.15
L1 = 24 * 1024  # bytes that CARM walks through in the first cache

STREAM = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

double *vector(long n) {  /* with huge pages, which numpy asks for, too */
    double *v = aligned_alloc(1 << 21, (8 * n + (1 << 21) - 1) >> 21 << 21);
    madvise(v, 8 * n, MADV_HUGEPAGE);
    return v;
}

int main(int words, char **word) {
    long n = atol(word[1]);
    int threads = atoi(word[2]);
    omp_set_num_threads(threads);
    double *a = vector(n), *b = vector(n), *c = vector(n), best[2] = {0, 0};
    #pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) { a[i] = 1; b[i] = 2; c[i] = 3; }
    for (int k = 0; k < 21; k++) {
        double start = omp_get_wtime();
        #pragma omp parallel for schedule(static)
        for (long i = 0; i < n; i++) a[i] = b[i];
        double middle = omp_get_wtime();
        #pragma omp parallel for schedule(static)
        for (long i = 0; i < n; i++) a[i] = b[i] + 0.5 * c[i];
        double end = omp_get_wtime();
        if (16.0 * n / (middle - start) > best[0]) best[0] = 16.0 * n / (middle - start);
        if (24.0 * n / (end - middle) > best[1]) best[1] = 24.0 * n / (end - middle);
    }
    fprintf(stderr, "%g\n", a[n / 2]);
    printf("%.6e %.6e\n", best[0], best[1]);
}
"""


def in_c(cores):
    """Rows of STREAM in C beside ours, on one thread and on all."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "stream.c"), Path(folder, "stream")
        source.write_text(STREAM)
        subprocess.run(
            ["gcc", "-O3", "-march=native", "-fopenmp", source, "-o", program], check=True
        )
        for threads in sorted({1, cores}):
            done = subprocess.run(
                [program, str(LENGTH * threads), str(threads)],
                capture_output=True,
                text=True,
                check=True,
                timeout=300,
            )
            for name, theirs in zip(
                ("copy", "triad"), map(float, done.stdout.split()), strict=True
            ):
                rows.append(
                    (f"{name}, {plural(threads)}, C", stream(name, threads, LENGTH), theirs)
                )
    return rows


def plural(cores):
    return f"{cores} core{'s' * (cores > 1)}"


def hpcc(cores):
    """HPCC's results: name -> number, GB/s and GFLOP/s."""
    settings = EXAMPLE.read_text().splitlines()
    settings[5] = f"{int(SIDE * cores**0.5)} Ns"
    settings[10], settings[11] = "1 Ps", f"{cores} Qs"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "hpccinf.txt").write_text("\n".join(settings) + "\n")
        # Huge pages by glibc's malloc: numpy asks the kernel for them, and a third of the bandwidth
        # can hang on that.
        environment = os.environ | {
            "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
            "OPENBLAS_NUM_THREADS": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        subprocess.run(
            ["mpirun", "-np", str(cores), "hpcc"],
            cwd=folder,
            env=environment,
            capture_output=True,
            check=True,
            timeout=900,
        )
        lines = (
            Path(folder, "hpccoutf.txt").read_text().partition("Begin of Summary")[2].splitlines()
        )
    return {
        name: float(value)
        for name, found, value in (line.partition("=") for line in lines)
        if found and value.strip().replace(".", "").isdigit()
    }


def carm(cores):
    """(bandwidth of the first cache in byte/s, FMA peak in FLOP/s in fp64), both on all cores."""
    if not (HOME / "done").exists():
        uv = Path(sys.executable).with_name("uv")
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, HOME], check=True
        )
        subprocess.run(
            [
                uv,
                "pip",
                "install",
                "--quiet",
                "--python",
                HOME / "bin/python",
                f"{CARM}=={VERSION}",
            ],
            check=True,
        )
        (HOME / "done").touch()
    with tempfile.TemporaryDirectory() as folder:
        options = [
            "--test",
            "roofline",
            "--test-time",
            "1",
            "-d",
            "f64",
            "--instruction",
            "fma",
            "--ld-st-ratio",
            "2:1",
            "--mem-target",
            "L1",
        ]
        command = [
            HOME / "bin/carm",
            "benchmark",
            *options,
            "--threads",
            str(cores),
            "--output-dir",
            folder,
            "--output-fmt",
            "jsonl",
            "--name",
            "m",
        ]
        subprocess.run(command, capture_output=True, check=True, timeout=900)
        rows = [
            json.loads(line) for line in Path(folder, "m/benchmarks.jsonl").read_text().splitlines()
        ]
    bandwidths = [row["bandwidth_gbps"] for row in rows if row["type"] == "memory"]
    return 1e9 * max(bandwidths), 1e9 * max(
        row["performance_gops"] for row in rows if row["type"] == "arithmetic"
    )


def stream(name, threads, length):
    seconds, counted = kernels.samples(
        name, threads, kernels.VECTORS[name] * 8 * length * threads, np.float64, 21
    )
    return counted["bytes"] / min(seconds)


def in_cache(threads):
    """The loop of two loads and a store in the first cache, as CARM runs it."""
    seconds, counted = kernels.samples("axpy", threads, L1 * threads, np.float64, 21)
    return counted["bytes"] / min(seconds)


def with_hpcc(cores):
    """Rows of HPCC's STREAM beside ours on one core, and of its DGEMM on one and on all."""
    theirs, rows = hpcc(cores), []
    length, n = int(theirs["STREAM_VectorSize"]), int(theirs["DGEMM_N"])
    # HPCC's STREAM on all cores adds up the best run of each process, and those need not be at the
    # same time: only one core is compared.
    for name in ("copy", "triad"):
        rows.append(
            (
                f"{name}, {plural(1)}, HPCC STREAM",
                stream(name, 1, length),
                1e9 * theirs[f"SingleSTREAM_{name.title()}"],
            )
        )
    ours = max(roofline.gemm("fp64", n).samples)
    name = f"fp64 product, n = {n}, {plural(cores)}, HPCC DGEMM"
    return [*rows, (name, ours, 1e9 * cores * theirs["StarDGEMM_Gflops"])]


def with_carm(cores):
    """Rows of CARM's first cache and FMA peak beside our loop and our product."""
    bandwidth, peak = carm(cores)
    return [
        ("two loads and a store in the first cache, CARM", in_cache(cores), bandwidth),
        ("fp64 product against the FMA peak, CARM", max(roofline.gemm("fp64", 1024).samples), peak),
    ]


TOOLS = {"c": (in_c, "gcc"), "hpcc": (with_hpcc, "hpcc"), "carm": (with_carm, "gcc")}


def main():
    kernels.load()  # says what to install
    shown, far = [], False
    for name in sys.argv[1:] or TOOLS:
        tool, needs = TOOLS[name]
        if not shutil.which(needs):
            print(f"{name}: not compared, for {needs} is not installed")
            continue
        for again in zip(*(tool(usable_cores()) for _ in range(ROUNDS)), strict=True):
            ours, theirs = max(row[1] for row in again), max(row[2] for row in again)
            far |= abs(ours / theirs - 1) > OFF
            shown.append(
                (again[0][0], f"{ours / 1e9:8.1f} / {theirs / 1e9:8.1f} = {ours / theirs:.2f}")
            )
    _beside.show(f"Ours over theirs, best of {ROUNDS} rounds, in 10^9 byte/s or FLOP/s", shown)
    return far or not shown


if __name__ == "__main__":
    sys.exit(main())
