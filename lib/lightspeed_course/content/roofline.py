"""What the formulas of roofline.md call."""

import math

from lightspeed import roofline as r
from lightspeed.catalog import accelerator, number
from lightspeed.roofline import WIDTH
from lightspeed_course.practice.amounts import powers_of_two
from lightspeed_course.practice.derivation import step
from lightspeed_course.practice.questions import Parameter
from lightspeed_models.llm import decoder
from lightspeed_show.format import si

GPUS = ("v100_sxm", "a100_80gb", "h100_sxm", "h200_sxm", "b200", "mi300x")


def size(canonical, low, high):
    """A matrix side or a batch: a power of two, written without separators."""
    return Parameter(canonical, powers_of_two(low, high), show=str)


def ridge(key, precision="bf16"):
    device = accelerator(key)
    return r.ridge_point(getattr(device, precision), device.hbm_bandwidth)


def vector_ridge(key):
    device = accelerator(key)
    return r.ridge_point(device.fp32_vector, device.hbm_bandwidth)


def vector_share(key):
    """Return the share of the vector units' peak that an elementwise operation reaches."""
    return r.elementwise_intensity() / vector_ridge(key)


SISTERS = {"a100_80gb": "a100_40gb", "h100_sxm": "h100_pcie", "h200_sxm": "h100_sxm"}


def sister_ridge(key, rounded=False):
    """The ridge with another version's memory, as the 40 GB A100's; rounded down as usual."""
    if key not in SISTERS:
        raise ValueError(f"{key} was sold with one memory only")
    bandwidth = accelerator(SISTERS[key]).hbm_bandwidth
    step = 10 ** (math.floor(math.log10(bandwidth)) - 1)
    return r.ridge_point(
        accelerator(key).bf16, math.floor(bandwidth / step) * step if rounded else bandwidth
    )


def ridge_step(key, precision="bf16"):
    """Return the line of a solution that computes a ridge."""
    device = accelerator(key)
    operation = "OP" if precision.startswith("int") else "FLOP"
    return step(
        "The ridge: what the chip can do while one byte arrives.",
        "peak / bandwidth",
        (ridge(key, precision), f"{operation}/byte"),
        peak=(getattr(device, precision), f"{operation}/s"),
        bandwidth=device.hbm_bandwidth,
    )


def clock_steps(B, D, F, key, t):
    """Return the lines that compute both times of a bf16 matmul."""
    shape = {"B": B, "D": D, "F": F}
    return (
        step(
            "The clock of the arithmetic.",
            "2[FLOP] * B * D * F / peak",
            t.math,
            **shape,
            peak=accelerator(key).bf16,
        ),
        step(
            "The clock of the bytes: three matrices, two bytes an element.",
            "(B * D + D * F + B * F) * 2[byte] / bandwidth",
            t.comms,
            **shape,
            bandwidth=accelerator(key).hbm_bandwidth,
        ),
    )


def wide(format):
    return WIDTH[format], "byte"


def bounds(key, precision, flops, size):
    device = accelerator(key)
    return r.time_bounds(flops, size, getattr(device, precision), device.hbm_bandwidth)


def precision_of(key):
    """The sixteen-bit format of the tensor cores: V100 has no bf16."""
    return "bf16" if "bf16" in accelerator(key) else "fp16"


def ridge_fp16(key):
    return ridge(key, precision_of(key))


def shortens(batch, D, key, what):
    """Whether doubling `what`, and not the other rate, shortens the lower bound."""
    device, t = accelerator(key), square(batch, D, key)
    work = r.matmul_flops(batch, D, D), r.matmul_bytes(batch, D, D)
    peak = r.time_bounds(*work, 2 * device.bf16, device.hbm_bandwidth).lower < t.lower
    bandwidth = r.time_bounds(*work, device.bf16, 2 * device.hbm_bandwidth).lower < t.lower
    return peak != bandwidth and {"peak": peak, "bandwidth": bandwidth}[what]


def square(batch, D, key):
    return bounds(key, "bf16", r.matmul_flops(batch, D, D), r.matmul_bytes(batch, D, D))


def job_parameters():
    return decoder("llama3_70b").parameters


def layer_parameters():
    """Parameters of one layer's matrices in the job's model."""
    model = decoder("llama3_70b")
    return model.matrices / model.depth


def layer_clocks(tokens, key):
    """Both times of one layer of the job's model, without activations."""
    weights = layer_parameters()
    return bounds(key, "bf16", 2 * weights * tokens, 2 * weights)


def step_of(params, key, batch, width):
    """One decode step without attention: every weight read once, two FLOPs a weight and token."""
    return bounds(key, "bf16", 2 * params * batch, params * width)


def largest_batch(params, key, budget, peak="bf16"):
    return math.floor(budget * getattr(accelerator(key), peak) / (2 * params))


def widest(params, key, budget):
    device = accelerator(key)
    for name in ("fp32", "bf16", "int8"):
        size = params * WIDTH[name]
        if size <= device.hbm_capacity and size / device.hbm_bandwidth <= budget:
            return name
    return "int4"


def bound_on_both(batch, D, old, new):
    """Return what bounds the matmul on both chips: "units", "memory", or "" if they differ."""
    bound = {square(batch, D, key).compute_bound for key in (old, new)}
    return "" if len(bound) > 1 else "units" if bound == {True} else "memory"


INT8_CHIPS = ("tpu_v5e", "tpu_v5p", "tpu_v6e", "a100_80gb", "h100_sxm")


def read_and_written(B, D, F, width=1):
    output = B * F * width
    return r.matmul_bytes(B, D, F, width, width, width) - output, output


def int8_clocks(B, D, F, key, width=1):
    return bounds(
        key, "int8", r.matmul_flops(B, D, F), r.matmul_bytes(B, D, F, width, width, width)
    )


def bf16_bounds(B, D, F, key):
    return both(bounds(key, "bf16", r.matmul_flops(B, D, F), r.matmul_bytes(B, D, F, 1, 1, 1)))


def both(t):
    return t.lower, t.upper


def ordered(t):
    return t.math, t.comms


def printed_sparse(key):
    """The chip, and the rate in large print on its data sheet."""
    device = accelerator(key)
    return f"{device.name} prints {device.bf16_sparse / 1e12:.0f} TFLOPS"


SEEN = ("a100_80gb", "h100_sxm", "h200_sxm")


def roof_share(key):
    return number(f"roof_share_bf16.{key}")


def share_on(key):
    return f"{si(roof_share(key), '%', 2)} of the roof on an {accelerator(key).name}"


def budget_precision_steps(params):
    return [
        step(
            f"In {format} the weights take",
            "parameters * width",
            parameters=(params, "parameter"),
            width=(WIDTH[format], "byte/parameter"),
        )
        for format in ("bf16", "int8", "int4")
    ]


def budget_precision_steps2(params, key):
    return [
        step(
            f"In {format} reading them takes",
            "weights / bandwidth",
            weights=(params * WIDTH[format], "byte"),
            bandwidth=accelerator(key).hbm_bandwidth,
        )
        for format in ("int8", "int4")
    ]


def left_out_chip_step():
    return step(
        "The three shares, in the mean.",
        "(first + second + third) / 3",
        **{
            name: (roof_share(key), "%")
            for name, key in zip(("first", "second", "third"), SEEN, strict=True)
        },
    )
