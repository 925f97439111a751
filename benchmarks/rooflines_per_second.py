"""Rooflines evaluated per second on arrays, beside `Engine.solve` of mlsysim, which takes one point
a call.

Both bound ResNet-50 on an A100, and must agree on one point before they are timed.
Fails under 10 million a second, or at less than 1000 times the other.
"""

import json
import sys
import time

import _beside
import numpy as np

from lightspeed.roofline import attainable, time_bounds

POINTS, ROUNDS, LEAST_PER_SECOND, LEAST_RATIO = 10**6, 7, 1e7, 1000

THEIRS = """
import json, time
from mlsysim import Engine, Hardware, Models

model, chip = Models.Vision.ResNet50, Hardware.Cloud.A100
solve = lambda batch: Engine.solve(model, chip, batch_size=batch, efficiency=1.0)
best = float("inf")
for _ in range(ROUNDS):
    start = time.perf_counter()
    for batch in range(1, 101):
        solve(batch)
    best = min(best, time.perf_counter() - start)
answer = solve(100)
print(json.dumps({
    "per_second": 100 / best,
    "peak": answer.peak_flops_actual.to("flop/s").m,
    "bandwidth": answer.peak_bw_actual.to("byte/s").m,
    "intensity": answer.arithmetic_intensity.to("flop/byte").m,
    "math": answer.latency_compute.to("s").m, "comms": answer.latency_memory.to("s").m,
}))
""".replace("ROUNDS", str(ROUNDS))


def per_second(function, *arguments):
    def once():
        start = time.perf_counter()
        function(*arguments)
        return time.perf_counter() - start

    return POINTS / min(once() for _ in range(ROUNDS))


def main():
    theirs = json.loads(_beside.run(_beside.python(), THEIRS))
    peak, bandwidth = theirs["peak"], theirs["bandwidth"]
    flops = theirs["math"] * peak
    same = time_bounds(flops, flops / theirs["intensity"], peak, bandwidth)
    if not np.allclose([same.math, same.comms], [theirs["math"], theirs["comms"]], rtol=1e-9):
        print(f"the two disagree: {same} and {theirs}")
        return 1
    work = flops * np.linspace(0.01, 1, POINTS)
    size = flops / theirs["intensity"] * np.linspace(1, 0.5, POINTS)
    ours = {
        "attainable(intensity, peak, bandwidth)": per_second(
            attainable, work / size, peak, bandwidth
        ),
        "time_bounds(flops, size, peak, bandwidth)": per_second(
            time_bounds, work, size, peak, bandwidth
        ),
    }
    slowest = min(ours.values())
    rows = [(name, f"{rate:,.0f}") for name, rate in ours.items()]
    rows += [
        ("mlsysim Engine.solve, a call each", f"{theirs['per_second']:,.0f}"),
        ("ratio of the slower", f"{slowest / theirs['per_second']:,.0f}"),
    ]
    _beside.show(f"Rooflines per second, arrays of {POINTS:,}, best of {ROUNDS}", rows)
    return slowest < LEAST_PER_SECOND or slowest / theirs["per_second"] < LEAST_RATIO


if __name__ == "__main__":
    sys.exit(main())
