"""Kernels by the bytes that they ask for: softmax, attention, occupancy. Derived in chapter 2.2.

A *program* is one block of threads, as Triton counts them. Bytes are those that a kernel asks for,
which L2 or DRAM delivers; `lightspeed_models.simulators.kernels` counts them in kernels that run.

Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); Dao et al.,
"FlashAttention" (2022); Dao, "FlashAttention-2" (2023); CUDA C++ Programming Guide, "Occupancy".
"""

from lightspeed.elementwise import Result, Value, minimum
from lightspeed.law import ELEMENT_BYTES, count, law, nonnegative

__all__ = (
    "backward_attention_flops", "causal_block_bytes", "naive_attention_bytes", "partial_bytes",
    "programs_per_sm", "query_block_bytes", "rescaling_flops", "score_bytes", "softmax_bytes",
    "strided_bytes", "waves",
)  # fmt: skip

SECTOR = 32  # bytes that cross together
TOKENS = count(hint="Tokens of the sequence: queries, and keys as many.")
HEADS = count()
WIDTH = count(hint="Numbers of one head: 128, not heads x 128.")
BLOCK = count(hint="Rows of queries that one program holds: 64 or 128.")
LAYER = {
    "heads": HEADS, "kv_heads": HEADS, "tokens": TOKENS, "width": WIDTH,
    "element_bytes": ELEMENT_BYTES,
}  # fmt: skip


@law("byte", elements=count(), stride=count(), element_bytes=ELEMENT_BYTES)
def strided_bytes(elements: Value, stride: Value, element_bytes: Value = 4) -> Result:
    """Bytes transferred to read every `stride`-th element of an array: whole sectors of 32 bytes.

    The read is long, so its ends are not counted. Strides beyond a sector cost no more.

    >>> strided_bytes(1024, 1), strided_bytes(1024, 8), strided_bytes(1024, 32)
    (4,096 bytes, 32,768 bytes, 32,768 bytes)
    """
    return elements * minimum(stride * element_bytes, SECTOR)


@law("byte", rows=count(), columns=count(), passes=count(high=3), element_bytes=ELEMENT_BYTES)
def softmax_bytes(
    rows: Value, columns: Value, passes: Value = 1, element_bytes: Value = 4
) -> Result:
    """Bytes of a softmax over rows that reads its input in `passes` passes and writes once.

    Three passes find the maximum, the sum and the quotients; the online form finds the first two
    in one; a row that fits on the chip is read once.

    >>> softmax_bytes(1024, 1024, 3) / softmax_bytes(1024, 1024, 1)
    2.0
    """
    return (passes + 1) * rows * columns * element_bytes


@law("byte", heads=HEADS, tokens=TOKENS, element_bytes=ELEMENT_BYTES)
def score_bytes(heads: Value, tokens: Value, element_bytes: Value = 2) -> Result:
    """Bytes of attention's score matrices, all queries against all keys.

    >>> score_bytes(8, 8192)
    1.07 GB
    """
    return heads * tokens**2 * element_bytes


@law("byte", **LAYER, crossings=count(low=0))
def naive_attention_bytes(
    heads: Value,
    kv_heads: Value,
    tokens: Value,
    width: Value,
    element_bytes: Value = 2,
    crossings: Value = 4,
) -> Result:
    """Bytes of attention whose scores cross memory `crossings` times, and Q, K, V and O once each.

    Three launches write and read the scores and their softmax: four crossings. Nothing of the
    square crosses in online attention: none.

    >>> naive_attention_bytes(8, 1, 8192, 128), naive_attention_bytes(8, 1, 8192, 128, crossings=0)
    (4.33 GB, 37.7 MB)
    """
    square = crossings * heads * tokens**2
    return (square + 2 * (heads + kv_heads) * tokens * width) * element_bytes


@law("byte", heads=HEADS, tokens=TOKENS, width=WIDTH, block=BLOCK, element_bytes=ELEMENT_BYTES)
def query_block_bytes(
    heads: Value, tokens: Value, width: Value, block: Value, element_bytes: Value = 2
) -> Result:
    """Bytes that online attention requests without a mask: Q and O once, and all keys and values
    again for each block of queries, a partial last block included.

    >>> query_block_bytes(8, 8192, 128, 64), query_block_bytes(8, 8192, 128, 128)
    (4.33 GB, 2.18 GB)
    """
    return 2 * heads * width * tokens * (1 + -(-tokens // block)) * element_bytes


@law("byte", heads=HEADS, tokens=TOKENS, width=WIDTH, block=BLOCK, element_bytes=ELEMENT_BYTES)
def causal_block_bytes(
    heads: Value, tokens: Value, width: Value, block: Value, element_bytes: Value = 2
) -> Result:
    """Bytes that online attention requests under a causal mask: Q and O once, and for each block of
    queries the keys and values up to that block, n (n + 1) / 2 blocks in all; blocks count in full,
    as tokens are padded to whole blocks.

    >>> causal_block_bytes(8, 8192, 128, 64), causal_block_bytes(8, 8192, 128, 128)
    (2.2 GB, 1.12 GB)
    """
    blocks = -(-tokens // block)
    keys = block * blocks * (blocks + 1) / 2
    return 2 * heads * width * (block * blocks + keys) * element_bytes


@law("FLOP", heads=HEADS, tokens=TOKENS, width=WIDTH, products=count(low=4, high=5))
def backward_attention_flops(
    heads: Value, tokens: Value, width: Value, products: Value = 5
) -> Result:
    """FLOPs of attention's backward pass: four products of the square, and a fifth where the scores
    are computed again instead of kept.

    >>> backward_attention_flops(8, 8192, 128) / backward_attention_flops(8, 8192, 128, 4)
    1.25
    """
    return 2 * products * heads * tokens**2 * width


@law("FLOP", heads=HEADS, tokens=TOKENS, width=WIDTH, block=BLOCK)
def rescaling_flops(heads: Value, tokens: Value, width: Value, block: Value) -> Result:
    """FLOPs of online softmax beyond a plain one: for each block of keys the row's sum and its
    `width` results are multiplied by the shrunken maximum's factor.

    >>> rescaling_flops(8, 8192, 128, 128) / (4 * 8 * 8192**2 * 128)
    0.0019683837890625
    """
    return heads * tokens * -(-tokens // block) * (width + 1)


@law("byte", heads=HEADS, width=WIDTH, splits=count(), requests=count())
def partial_bytes(heads: Value, width: Value, splits: Value, requests: Value = 1) -> Result:
    """Bytes that decoding writes and reads to combine `splits` parts of a context: for each head a
    result, a maximum and a sum in fp32. One part needs none.

    >>> partial_bytes(8, 128, 1), partial_bytes(8, 128, 132)
    (0 bytes, 1.1 MB)
    """
    return 2 * 4 * requests * heads * splits * (width + 2) * (splits > 1)


@law(
    "",
    shared=nonnegative("byte", hint="Of one program, with all its stages."),
    registers=count(hint="Of 32 bits, a thread."),
    threads=count(low=32, hint="Of one program: its warps x 32."),
    sm_shared=count(hint="Bytes of shared memory of an SM."),
    sm_registers=count(),
    sm_threads=count(),
    sm_programs=count(),
)
def programs_per_sm(
    shared: Value,
    registers: Value,
    threads: Value,
    sm_shared: Value = 228 * 1024,
    sm_registers: Value = 65536,
    sm_threads: Value = 2048,
    sm_programs: Value = 32,
) -> Result:
    """Programs resident on an SM at once, limited by shared memory, registers, threads and slots.

    The SM's four sizes are an H100's unless said; 0 means that not even one fits. The system takes
    1 KiB of shared memory for each program; registers are handed out to warps in pieces of 256.

    >>> programs_per_sm(64 * 1024, 192, 128)
    2
    """
    warp = -(-registers * 32 // 256) * 256
    by_memory = sm_shared // (shared + 1024)
    by_registers = sm_registers // (warp * (threads // 32))
    return minimum(minimum(by_memory, by_registers), minimum(sm_threads // threads, sm_programs))


@law("", programs=count(), sms=count(), together=count(hint="Programs on one SM at once."))
def waves(programs: Value, sms: Value, together: Value = 1) -> Result:
    """Number of waves in which a launch fills the chip; the last one may be fractional.

    >>> waves(512, 132, 2)
    1.94
    """
    return programs / (sms * together)
