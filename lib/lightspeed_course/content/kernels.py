"""What the formulas of kernels.md call."""

from lightspeed import kernels
from lightspeed.catalog import accelerator
from lightspeed.roofline import attainable
from lightspeed_course.practice.amounts import powers_of_two
from lightspeed_course.practice.questions import Parameter

WIDTH = 128  # numbers of a head in all these questions
GIB = 2**30


def tokens(canonical, low, high):
    """A length of a text, a power of two with separators."""
    return Parameter(canonical, powers_of_two(low, high), show="{:,}".format)


def head_flops(n):
    """FLOPs of one head's attention over n tokens, without a mask."""
    return 4 * n**2 * WIDTH


def naive_time(n, key):
    """Seconds that DRAM needs for one head of attention in three launches, keys of its own."""
    size = kernels.naive_attention_bytes(1, 1, n, WIDTH)
    return size / accelerator(key).hbm_bandwidth


def math_time(n, key):
    """Seconds of its products at the peak."""
    return head_flops(n) / accelerator(key).bf16


def l2_rate(key):
    """What somebody measured of this chip's L2."""
    return accelerator(key).l2_bandwidth_measured


def block_ceiling(block, key="h100_sxm", n=8192):
    """FLOP/s of online attention that L2 allows at this block of queries, or the peak."""
    intensity = head_flops(n) / kernels.query_block_bytes(1, n, WIDTH, block)
    return attainable(intensity, accelerator(key).bf16, l2_rate(key))


def gemm_reads(rows, n, k, side):
    """GiB that a product in square tiles asks L2 for, its result not counted."""
    return (rows // side) * (n // side) * 2 * side * k * 2 / GIB
