"""How far `lightspeed measure all` repeats itself: run it three times, and compare the medians of
each quantity.

    python benchmarks/measure_spread.py            # three times, four minutes on a quiet machine
    python benchmarks/measure_spread.py A B C ...  # records that are there already

Fails if the median coefficient of variation is above 10 %.
"""

import statistics
import sys
from collections import defaultdict

from _beside import show

from lightspeed_tools.measure import runner
from lightspeed_tools.measure.records import record

MOST = 0.10


def medians(measured):
    return {
        (q.key, tuple(sorted(q.parameters.items()))): q.value for q in record.quantities(measured)
    }


def variation(values):
    """Sample standard deviation over the mean; 0 where all are equal, such as rounding errors."""
    return statistics.stdev(values) / abs(statistics.mean(values)) if len(set(values)) > 1 else 0.0


def main(files):
    records = [record.load(f) for f in files] if files else [runner.measure() for _ in range(3)]
    runs = [medians(r) for r in records]
    found = defaultdict(list)
    for which in set.intersection(*map(set, runs)):
        found[which[0]].append(variation([run[which] for run in runs]))
    every = [v for values in found.values() for v in values]
    middle = statistics.median(every)
    rows = [
        (f"{key}, of {len(values)}", f"{statistics.median(values):.1%}  {max(values):.1%}")
        for key, values in sorted(found.items())
    ]
    show(
        f"Coefficient of variation over {len(runs)} runs: median and largest",
        [*rows, (f"all {len(every)} quantities", f"{middle:.1%}  {max(every):.1%}")],
    )
    return middle > MOST


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
