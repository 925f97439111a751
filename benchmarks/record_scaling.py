"""Record the two multi-process runs that chapter 3 reads from catalog/measured_scaling.toml.

`cpu`: a known share of counting loops runs first in one process, the rest is split over n.
`server`: after a serial part, n workers each wait for 1/n of a fixed time (the wait stands for a
device at work) and then send an array, which one process receives and adds. The machinery is that
of `lightspeed measure scaling`; only the sizes are larger. (In the runs of 2026-11 that the catalog
holds, the serial part ran in the process that receives.) Prints TOML, with every sample.

    python benchmarks/record_scaling.py > runs.toml
"""

import datetime

from lightspeed_tools.measure import environment
from lightspeed_tools.measure.instruments import scaling
from lightspeed_tools.measure.instruments.workers import crew

# serial, divided, bytes sent, n
CPU = (("count", 4_000_000), ("count", 16_000_000), 0, (1, 2, 3, 4))
SERVER = (("count", 2_000_000), ("wait", 2.0), 16_000_000, (1, 2, 3, 4, 6, 8, 12, 16, 24, 32))
ROUNDS = 12


def shown(times):
    return "[" + ", ".join(f"{t:.5f}" for t in times) + "]"


def record(pipes, key, about, serial, divided, size, processes):
    times = scaling.run(pipes, processes, serial, divided, size, ROUNDS)
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


if __name__ == "__main__":
    with crew(*[scaling.work] * max(SERVER[-1])) as pipes:
        share = CPU[0][1] / (CPU[0][1] + CPU[1][1])
        record(
            pipes,
            "own_cpu_run",
            f'name = "Counting loops split over processes"\nserial_by_count = {share}',
            *CPU,
        )
        about = (
            f'name = "Workers that wait, one receiver"\nwait = {SERVER[1][1]}\nmessage_bytes ='
            f" {SERVER[2]}"
        )
        record(pipes, "own_server_run", about, *SERVER)
