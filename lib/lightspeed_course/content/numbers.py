"""What the formulas of numbers.md call."""

from lightspeed import roofline, training
from lightspeed.catalog import accelerator, find
from lightspeed_course import job
from lightspeed_course.practice.questions import Parameter
from lightspeed_show.format import si

h100, horowitz, adam = accelerator("h100_sxm"), find("horowitz_45nm"), find("adam_mixed_precision")

# GPU-hours of the job, with the peak that is asked for and with the one that is printed first.
llama = find(job.MODEL)
WORK = training.training_flops(llama.parameters, job.TOKENS)
PLANS = {
    name: training.training_time(WORK, 1, peak, job.UTILIZATION) / 3600
    for name, peak in (("sparse", h100.bf16_sparse), ("sound", h100.bf16))
}


def sourced(n, unit):
    """Format the number with its source."""
    return f"{si(n, unit)}, from {n.source.author or n.source.publisher}, {n.source.title}."


BILLIONS = Parameter(
    7 * 10**9, tuple(n * 10**9 for n in (1, 3, 7, 8, 13, 34, 70)), show=lambda n: si(n, "parameter")
)


def bytes_of(format):
    return {"bf16": 2, "int8": 1}[format]


def share_of_latency(size, bandwidth, latency):
    return latency / roofline.transfer_time(size, bandwidth, latency)


def recompute_limit(key):
    """FLOPs that take as long as reading two bytes."""
    return 2 * roofline.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth)


MEMORIES = {
    "cache_32kb": f"a cache of {si(32e3, 'byte')}",
    "cache_1mb": f"a cache of {si(1e6, 'byte')}",
    "dram": "DRAM",
}

SMALL_CACHE = 8e3  # bytes: the smallest of Horowitz's table
SECTOR = 32  # bytes: the least that an NVIDIA GPU reads from its memory at a time


def reading(memory):
    """Joules to read a word of four bytes."""
    return getattr(horowitz, memory)


def multiply_add(arithmetic):
    """Joules of a multiply-add."""
    return getattr(horowitz, f"{arithmetic}_fma")
