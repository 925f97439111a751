"""What the formulas of quantization.md call."""

from lightspeed import energy as e
from lightspeed import quantization as q
from lightspeed import roofline as r
from lightspeed import serving
from lightspeed.catalog import accelerator, energy
from lightspeed_course.practice.derivation import step
from lightspeed_models.llm import decoder

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
    traffic = r.matmul_bytes(1, side, side, weight_bytes=weight_bits / 8)
    return r.transfer_time(traffic, accelerator(key).hbm_bandwidth, latency=fixed)


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


def weight_only_speedup_steps(side, key, bits, fixed):
    return [
        step(
            f"The time with weights in {format}: they and two vectors of bf16 are moved, beside"
            " the fixed cost.",
            "fixed + (side**2 * width + 2 * side * 2[byte]) / bandwidth",
            (float(decode_time(side, key, width, fixed)), "s"),
            fixed=(fixed, "s"),
            side=side,
            width=(width / 8, "byte"),
            bandwidth=(accelerator(key).hbm_bandwidth, "byte/s"),
        )
        for format, width in (("bf16", 16), (f"int{bits}", bits))
    ]


def which_int8_steps(batch, D, key):
    return [
        step(
            f"The longer clock {words}.",
            "max(flops / peak, traffic / bandwidth)",
            (float(bound_after(batch, D, key, change)), "s"),
            flops=(r.matmul_flops(batch, D, D), "FLOP"),
            peak=(
                accelerator(key).int8 if change == "arithmetic" else accelerator(key).bf16,
                "FLOP/s",
            ),
            traffic=(
                D * D * (1 if change == "weights" else 2)
                + 2 * batch * D * (1 if change == "activations" else 2),
                "byte",
            ),
            bandwidth=(accelerator(key).hbm_bandwidth, "byte/s"),
        )
        for change, words in (
            (None, "as it is"),
            ("weights", "with int8 weights"),
            ("activations", "with int8 activations"),
            ("arithmetic", "with int8 arithmetic"),
        )
    ]


def narrowed(change, context):
    """Arguments of `serving` for Llama 3 70B on eight H100, changed; `room`: what fits."""
    model, chip = decoder("llama3_70b"), accelerator("h100_sxm")
    width, cached = (1 if change == name else 2 for name in ("weights", "caches"))
    heads = model.attention
    kv = serving.kv_cache_bytes(model.depth, heads.kv_heads, heads.head_width, context, cached)
    memory = 8 * chip.hbm_capacity * (2 if change == "memory" else 1)
    return serving.batch_that_fits(memory, width * model.parameters, kv), {
        "parameters": model.parameters,
        "kv_bytes": kv,
        "peak": 8 * (chip.fp8 if change == "peak" else chip.bf16),
        "bandwidth": 8 * chip.hbm_bandwidth,
        "parameter_bytes": width,
    }


def served(change, context, budget):
    """Tokens a second of the largest batch that keeps the budget and fits, after one change."""
    room, replica = narrowed(change, context)
    batch = min(room, serving.batch_within(budget, **replica))
    return batch / serving.decode_step(batch, **replica).time if batch else 0.0


def after_narrowing(context, budget):
    changes = ("weights", "caches", "peak", "memory")
    return {change: served(change, context, budget) for change in changes}


def best_narrowing(context, budget):
    rates = after_narrowing(context, budget)
    return max(rates, key=rates.__getitem__)


def clear_narrowing(context, budget):
    """Whether the budget is met before the memory, and weights or caches gain most by far."""
    *_, second, most = sorted(after_narrowing(context, budget).values())
    room, replica = narrowed(None, context)
    return (
        0 < serving.batch_within(budget, **replica) < room
        and best_narrowing(context, budget) in ("weights", "caches")
        and most > 1.1 * second
    )


def narrowing_steps(context, budget):
    steps = []
    for change, words in (
        (None, "as it is"),
        ("weights", "with weights in one byte"),
        ("caches", "with caches in one byte"),
    ):
        _, replica = narrowed(change, context)
        one = serving.decode_step(1, **replica)
        steps.append(
            step(
                f"What the budget leaves for caches {words}, over the time of one; a batch so large"
                " that its arithmetic takes longer than the weights fills the budget with both.",
                "floor(min((budget - weights) / cache, budget / (cache + arithmetic)))",
                (float(serving.batch_within(budget, **replica)), ""),
                budget=(budget, "s"),
                weights=(float(one.weights), "s"),
                cache=(float(one.kv), "s"),
                arithmetic=(float(one.math), "s"),
            )
        )
    return steps


def int8_energy_steps(batch):
    return [
        step(
            f"In {format} a weight is read, and then takes part in a multiply-add for each token.",
            "width * per_byte + tokens * multiply_add",
            (float(energy_of_weight(batch, width, fma)), "J"),
            width=(width, "byte"),
            per_byte=(float(TABLE.dram_per_byte), "J/byte"),
            tokens=batch,
            multiply_add=(float(fma), "J"),
        )
        for format, width, fma in (("fp32", 4, TABLE.fp32_fma), ("int8", 1, TABLE.int8_fma))
    ]
