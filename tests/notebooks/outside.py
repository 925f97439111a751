"""What words outside the pages claim, held as a page's are (lightspeed_authoring.claims):
each cell is named for a file or a room, and its anchors stand in that one's text.
"""

# %% README.md
from lightspeed.catalog import find, link
from lightspeed.networks import go_back_n, window_packets
from lightspeed.queueing import mm1

window = window_packets(link("infiniband_ndr").bandwidth, 16e-6, find("roce").mtu)
step = [0.3 + 0.1 / kept for kept in (1, go_back_n(0.01, window))]  # as in lesson 8

assert abs(mm1(1.2 * 0.8, 1).W / mm1(0.8, 1).W - 5) < 1e-9, "answers take five times as long"
assert abs(1 - step[0] / step[1] - 1 / 3) < 0.03, "a thousand GPUs a third of their speed"

# %% explorers
from lightspeed.catalog import accelerator
from lightspeed.collectives import busbw_factor, ring_steps
from lightspeed.precision import FORMATS
from lightspeed.roofline import attainable, matmul_intensity
from lightspeed.scaling import amdahl_speedup, gustafson_speedup, serial_on_n

h100, fp16 = accelerator("h100_sxm"), FORMATS["fp16"]
least = fp16.smallest_subnormal
reached = [
    attainable(matmul_intensity(2**k, 8192, 8192), h100.bf16, h100.hbm_bandwidth) for k in range(16)
]
normal = [v for v in FORMATS["fp8_e5m2"].values() if v >= FORMATS["fp8_e5m2"].smallest_normal]

assert busbw_factor("all_reduce", 1) == 0, "busbw is zero by definition"
assert all(
    2 * ring_steps("reduce_scatter", n) == ring_steps("all_reduce", n) for n in range(2, 99)
), "Half of the rounds"
assert reached == sorted(reached) and reached[0] < reached[-1] == h100.bf16, (
    "climbs the slope until it meets"
)
assert all(
    abs(gustafson_speedup(n, serial=serial_on_n(n, serial_on_one=s)) - amdahl_speedup(n, serial=s))
    < 1e-9 * n
    for n in (1, 8, 1000)
    for s in (0.01, 0.5)
), "so it meets Amdahl's curve there"
assert (
    fp16.round(0.49 * fp16.smallest_subnormal) == 0 < fp16.round(0.51 * fp16.smallest_subnormal)
), "What is nearer to it than half of"
assert fp16.round(2 * fp16.max) == float("inf"), "it stands for everything beyond"
assert all(
    sum(2.0**k <= v < 2.0 ** (k + 1) for v in normal) == sum(1 <= v < 2 for v in normal)
    for k in range(-14, 15)
), "every power of two before the last has as many"

# %% practice
from lightspeed.catalog import accelerator
from lightspeed.datasheet import round_trip

assert round_trip(1e3, 2e8) / 2 == 1e3 / 2e8, "half of the way there and back"
assert all(
    chip.bf16_sparse == 2 * chip.bf16
    for chip in map(accelerator, ("a100_80gb", "h100_sxm", "h200_sxm", "b200"))
), "sparse peak is twice the dense one"
