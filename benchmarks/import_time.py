"""How long `import lightspeed.roofline` takes, beside `import mlsysim`: median of 15 fresh
processes each, in turn.

Fails at 0.15 s or more, or at less than 20 times the speed of the other.
"""

import statistics
import sys

import _beside

MODULES = {"lightspeed.roofline": sys.executable, _beside.NAME: _beside.python()}
RUNS, MOST_SECONDS, LEAST_RATIO = 15, 0.15, 20


def seconds(module):
    code = (
        f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() -"
        " start)"
    )
    return float(_beside.run(MODULES[module], code))


def main():
    for module in MODULES:
        seconds(module)  # compiles what was never imported
    times = {module: [] for module in MODULES}
    for _ in range(RUNS):
        for module, taken in times.items():
            taken.append(seconds(module))
    ours, theirs = (statistics.median(taken) for taken in times.values())
    rows = [
        (
            f"import {module}",
            (
                f"{1000 * statistics.median(taken):.1f} ms ({1000 * min(taken):.1f} to"
                f" {1000 * max(taken):.1f})"
            ),
        )
        for module, taken in times.items()
    ]
    _beside.show(
        f"Import time, median of {RUNS} fresh processes", [*rows, ("ratio", f"{theirs / ours:.0f}")]
    )
    return ours >= MOST_SECONDS or theirs / ours < LEAST_RATIO


if __name__ == "__main__":
    sys.exit(main())
