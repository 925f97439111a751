"""What the formulas of kernels.md call."""

from lightspeed import kernels
from lightspeed.catalog import accelerator
from lightspeed.roofline import attainable
from lightspeed_course.practice.amounts import powers_of_two
from lightspeed_course.practice.questions import Parameter
from lightspeed_show.format import si

WIDTH, KEYS = 128, 64  # numbers of a head, and keys of a tile, in all these questions
THREADS, REGISTERS, BITS = 128, 255, 32  # of a program; of a thread at most, and how wide each is
SMS, TOGETHER = int(accelerator("h100_sxm").sm_count), 2  # processors, and programs on each at once
SECTOR, LINE = 32, 128  # bytes
ROWS, INNER, COLUMNS = 24576, 768, 2304  # of the product that a profile shows
TEXT = f"{2**13:,}"  # tokens of a request
DRAM = si(accelerator("h100_sxm").hbm_bandwidth, "byte/s")
LAUNCH, WAIT = 5e-6, 700e-9  # seconds, as these questions assume them: the host's, and memory's
HOST, LATENCY = si(LAUNCH, "s"), si(WAIT, "s")
BLOCKS = (32, 64, 128, 256)  # queries of a block to choose from
CROSSING = 2 * 2 / accelerator("h100_sxm").hbm_bandwidth  # seconds of a pair that is kept
L2 = si(accelerator("h100_sxm").l2_bandwidth_measured, "byte/s")


def tokens(canonical, low, high):
    """Return a parameter for a text's length: a power of two with separators."""
    return Parameter(canonical, powers_of_two(low, high), show="{:,}".format)


def head_flops(n):
    """FLOPs of one head's attention over n tokens, without a mask."""
    return 4 * n**2 * WIDTH


def naive_time(n, key):
    """Seconds of DRAM traffic for one head of attention in three launches, with its own keys."""
    size = kernels.naive_attention_bytes(1, 1, n, WIDTH)
    return size / accelerator(key).hbm_bandwidth


def math_time(n, key):
    """Seconds of one head's products at the peak."""
    return head_flops(n) / accelerator(key).bf16


def l2_rate(key):
    """Return the measured L2 rate of this chip."""
    return accelerator(key).l2_bandwidth_measured


def block_ceiling(block, key="h100_sxm", n=8192):
    """FLOP/s of online attention that L2 allows at this block of queries, or the peak."""
    intensity = head_flops(n) / kernels.query_block_bytes(1, n, WIDTH, block)
    return attainable(intensity, accelerator(key).bf16, l2_rate(key))


def largest_block(threads):
    """The largest of `BLOCKS` whose scores and results fit in the registers of so many threads."""
    return max(b for b in BLOCKS if b * (KEYS + WIDTH) / threads <= REGISTERS)


def need():
    """Bytes that an SM must have in flight so that memory never idles."""
    return accelerator("h100_sxm").hbm_bandwidth * WAIT / SMS
