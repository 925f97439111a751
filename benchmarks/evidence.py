"""The roofline over every matrix product of a full set: 7.8 million rows in 15 s and 4 GB.

    python benchmarks/evidence.py FOLDER        # checkouts, as for lightspeed evidence --data

Without a folder there is nothing to measure. The time is that of a fresh process, from its start
to the printed table, reading included; the limit is processor time, which a busy machine does not
stretch. Needs the extra `evidence` (pyarrow).
"""

import resource
import subprocess
import sys

ROWS, SECONDS, BYTES = 7_000_000, 15, 4e9


def main(arguments):
    if not arguments:
        print("evidence: no folder of checkouts was given, nothing is measured")
        return 0
    command = ["-m", "lightspeed_cli", "evidence", "roofline-gemm", "--data", arguments[0]]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = int(done.stdout.split("rows")[1].split()[0].replace(",", ""))
    seconds, size = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    print(done.stdout)
    print(f"{rows:,} rows, {seconds:.1f} s of processor time, {size / 1e9:.2f} GB")
    return int(rows < ROWS or seconds > SECONDS or size > BYTES)


sys.exit(main(sys.argv[1:]))
