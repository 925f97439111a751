"""Record the two multi-process runs that chapter 3 reads from catalog/measured_scaling.toml.

`cpu`: a known share of counting loops runs first in one process, the rest is split over n.
`server`: after a serial part, n workers each wait for 1/n of a fixed time (the wait stands for a
device at work) and then send an array, which one process receives and adds. (In the runs of 2026-11
that the catalog holds, the serial part ran in the process that receives.) Prints TOML, with every
sample.

    python benchmarks/record_scaling.py > runs.toml
"""

import datetime
import multiprocessing
import time

import numpy

from lightspeed_tools.measure import environment

# serial, divided, bytes sent, n
CPU = (("count", 4_000_000), ("count", 16_000_000), 0, (1, 2, 3, 4))
SERVER = (("count", 2_000_000), ("wait", 2.0), 16_000_000, (1, 2, 3, 4, 6, 8, 12, 16, 24, 32))
ROUNDS = 12


def work(pipe):
    """A worker: counts or waits as it is told, then sends so many bytes."""
    for kind, amount, size in iter(pipe.recv, None):
        if kind == "wait":
            time.sleep(amount)
        else:
            sum(i & 3 for i in range(amount))
        pipe.send(bytes(size))


def seconds(pipes, n, serial, divided, size):
    """(the serial part, all of it): the first worker alone, then n of them an equal part each."""
    total, begin = numpy.zeros(size // 4, "float32"), time.perf_counter()
    pipes[0].send((*serial, 0))
    pipes[0].recv()
    middle = time.perf_counter()
    kind, amount = divided
    for i, pipe in enumerate(pipes[:n]):
        part = amount / n if kind == "wait" else amount * (i + 1) // n - amount * i // n
        pipe.send((kind, part, size))
    for pipe in pipes[:n]:
        total += numpy.frombuffer(pipe.recv(), "float32")
    return middle - begin, time.perf_counter() - begin


def shown(times):
    return "[" + ", ".join(f"{t:.5f}" for t in times) + "]"


def record(pipes, key, about, serial, divided, size, processes):
    seconds(pipes, max(processes), serial, divided, size)  # touches every process and its memory
    times = {n: [] for n in processes}
    for _ in range(ROUNDS):
        for n in processes:
            times[n].append(seconds(pipes, n, serial, divided, size))
    print(
        f'[{key}]\n{about}\nquantity = "time"\nunit = "s"\nkind = "strong"\nadded ='
        f' "processes"\nmachine = "{environment.name_of(environment.describe())}"'
    )
    print(
        f'cores = {environment.usable_cores()}\nsource = "This course,'
        f' benchmarks/record_scaling.py"\ndate = {datetime.date.today()}'
    )
    print(
        f"serial_samples = {shown([alone for alone, _ in times[1]])}\nn ="
        f" {list(processes)}\nsamples = ["
    )
    for n in processes:
        print(f"    {shown([total for _, total in times[n]])},")
    print("]\n", flush=True)


def main():
    pipes = []
    for _ in range(max(SERVER[-1])):
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.Process(target=work, args=(theirs,), daemon=True).start()
        pipes.append(ours)
    share = CPU[0][1] / (CPU[0][1] + CPU[1][1])
    about = f'name = "Counting loops split over processes"\nserial_by_count = {share}'
    record(pipes, "own_cpu_run", about, *CPU)
    about = (
        f'name = "Workers that wait, one receiver"\nwait = {SERVER[1][1]}\nmessage_bytes ='
        f" {SERVER[2]}"
    )
    record(pipes, "own_server_run", about, *SERVER)


if __name__ == "__main__":
    main()
