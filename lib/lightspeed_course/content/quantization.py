"""What the formulas of quantization.md call."""

from __future__ import annotations

from lightspeed import energy as e
from lightspeed import quantization as q
from lightspeed import roofline as r
from lightspeed.catalog import accelerator, energy

TABLE = energy("horowitz_45nm")

CHIPS = ("tpu_v5e", "tpu_v6e", "a100_80gb", "h100_sxm", "h200_sxm")


def code_of(x, amax, bits):
    return q.symmetric_code(x, q.symmetric_scale(amax, bits), 2 ** (bits - 1) - 1)


def zero_point(low, high, bits):
    return q.asymmetric_scale(low, high, bits)[1]


def clipped(code, bits):
    top = 2 ** (bits - 1) - 1
    return max(-top, min(top, code))


def decode_time(side, key, weight_bits, fixed=0.0):
    """A product of one token with a square matrix: memory-bound, plus a fixed cost."""
    moved = r.matmul_bytes(1, side, side, weight_bytes=weight_bits / 8)
    return r.transfer_time(moved, accelerator(key).hbm_bandwidth, latency=fixed)


def bound_after(batch, D, key, change):
    """The lower bound of a matmul after one change of precision."""
    device = accelerator(key)
    weight = 1 if change == "weights" else 2
    activation = 1 if change == "activations" else 2
    peak = device.int8 if change == "arithmetic" else device.bf16
    return r.time_bounds(
        r.matmul_flops(batch, D, D),
        r.matmul_bytes(batch, D, D, weight, activation, activation),
        peak,
        device.hbm_bandwidth,
    ).lower


def best_change(batch, D, key):
    return min(
        ("weights", "activations", "arithmetic"),
        key=lambda change: bound_after(batch, D, key, change),
    )


def other_change(batch, D, key):
    return "arithmetic" if best_change(batch, D, key) == "weights" else "weights"


def energy_of_weight(batch, width, per_operation):
    """Joules for one weight read from DRAM and used by a batch of tokens."""
    return e.operation_energy(batch, width, per_operation, TABLE.dram_per_byte)
