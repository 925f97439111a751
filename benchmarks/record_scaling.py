"""Record the two multi-process runs that chapter 3 reads from catalog/measured_scaling.toml.

`cpu`: a known share of counting loops runs first in one process, the rest is split over n.
`server`: after a serial part, n workers each wait for 1/n of a fixed time (the wait stands for a
device at work) and then send an array to the parent, which receives and adds them one by one.
Prints TOML. Worker processes start before the clock; every sample is kept.

    python benchmarks/record_scaling.py > runs.toml
"""

import datetime
import multiprocessing
import os
import pathlib
import platform
import time

import numpy

CONTEXT = multiprocessing.get_context("fork")
SERIAL_LOOPS, PARALLEL_LOOPS = 4_000_000, 16_000_000  # cpu: a serial share of one fifth, by count
SERVER_SERIAL_LOOPS, WAIT, ELEMENTS = 2_000_000, 2.0, 4_000_000


def count(loops):
    total = 0
    for i in range(loops):
        total += i & 3
    return total


def cpu_worker(pipe, n):
    while pipe.recv():
        pipe.send(count(PARALLEL_LOOPS // n))


def server_worker(pipe, n):
    gradient = numpy.ones(ELEMENTS, "float32")
    while pipe.recv():
        time.sleep(WAIT / n)
        pipe.send_bytes(gradient)


def cpu_job(pipes):
    count(SERIAL_LOOPS)
    for pipe in pipes:
        pipe.send(True)
    sum(pipe.recv() for pipe in pipes)


def server_job(pipes):
    count(SERVER_SERIAL_LOOPS)
    for pipe in pipes:
        pipe.send(True)
    total = numpy.zeros(ELEMENTS, "float32")
    for pipe in pipes:
        total += numpy.frombuffer(pipe.recv_bytes(), "float32")


def samples(job, worker, n, repeats):
    pairs = [CONTEXT.Pipe() for _ in range(n)]
    workers = [CONTEXT.Process(target=worker, args=(theirs, n), daemon=True) for _, theirs in pairs]
    for process in workers:
        process.start()
    pipes = [ours for ours, _ in pairs]
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        job(pipes)
        times.append(time.perf_counter() - start)
    for pipe in pipes:
        pipe.send(False)
    for process in workers:
        process.join()
    return times[1:]  # the first one warms up


def serial_seconds(loops, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        count(loops)
        times.append(time.perf_counter() - start)
    return times


def shown(times):
    return "[" + ", ".join(f"{t:.5f}" for t in times) + "]"


def record(key, about, job, worker, processes, repeats, loops):
    print(f"[{key}]\n{about}")
    print(f'machine = "{machine()}"\ncores = {os.cpu_count()}\nsource = "course"')
    print(f"date = {datetime.date.today()}\nload_before = {os.getloadavg()[0]:.2f}")
    print(f"serial_samples = {shown(serial_seconds(loops, repeats))}\nn = {list(processes)}\nsamples = [")
    for n in processes:
        print(f"    {shown(samples(job, worker, n, repeats))},", flush=True)
    print("]\n")


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{os.cpu_count()} cores of an {model} in a virtual machine, Python {platform.python_version()}"


if __name__ == "__main__":
    share = SERIAL_LOOPS / (SERIAL_LOOPS + PARALLEL_LOOPS)
    about = 'name = "Counting loops split over processes"\nunit = "s"\n' + f"serial_by_count = {share}"
    record("own_cpu_run", about, cpu_job, cpu_worker, (1, 2, 3, 4), 12, SERIAL_LOOPS)
    about = f'name = "Workers that wait, one receiver"\nunit = "s"\nwait = {WAIT}\nmessage_bytes = {4 * ELEMENTS}'
    record(
        "own_server_run",
        about,
        server_job,
        server_worker,
        (1, 2, 3, 4, 6, 8, 12, 16, 24, 32),
        12,
        SERVER_SERIAL_LOOPS,
    )
