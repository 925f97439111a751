"""The loops that the other parts time, compiled by numba: several threads run them at once, and no
pass over memory is left out of the count.
"""

import functools
import math
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from lightspeed_tools.measure.environment import importable, usable_cores
from lightspeed_tools.measure.instruments.timing import Unavailable, seconds_of

# bytes that memory delivers at once on x86 and most ARM servers; Apple's cores take two of them
LINE = 64
WITHOUT_NUMBA = "numba is not installed, so there are no compiled loops: nothing to time."
CALL = 0.002  # s that a call takes at least: starting the threads takes some tens of microseconds
INSTALL = "Install it with: pip install '.[measure]'"

# Arrays read or written per element, by count: not what hardware adds.
PASSES = {
    "copy": 2, "read": 1, "triad": 3, "dot": 2, "axpy": 3, "relu": 2, "fused": 2, "unfused": 6,
}  # fmt: skip
VECTORS = {
    "copy": 2, "read": 1, "triad": 3, "dot": 2, "axpy": 2, "relu": 2, "fused": 2, "unfused": 2,
}  # fmt: skip
# Scalars after a kernel's vectors, which keep ones finite however often it is repeated.
SCALARS = {"triad": (0.5,), "axpy": (1e-9,), "fused": (0.5, 0.25), "unfused": (0.5, 0.25)}
FLOPS = {"copy": 0, "read": 1, "triad": 2, "dot": 2, "axpy": 2, "relu": 1, "fused": 3, "unfused": 3}


@functools.cache
def load():
    """Return the compiled kernels, cached in the user's cache folder if it is writable.

    Raises Unavailable without numba.
    """
    numba = importable("numba")
    if not numba:
        raise Unavailable(WITHOUT_NUMBA, INSTALL)
    if not numba.config.CACHE_DIR:
        numba.config.CACHE_DIR = _cache_folder()
    from lightspeed_tools.measure.instruments import compiled

    return compiled


def bytes_moved(kernel, elements, element_bytes):
    """Count the bytes that a kernel reads and writes for `elements` elements."""
    return PASSES[kernel] * elements * element_bytes


def one_cycle(lines, rng):
    """A random single cycle over `lines` cache lines: following[i] is where to go from element i.

    Every line is met once before the first is met again, in an order that no prefetcher guesses.
    Elements other than the first of each line are not used. Shape (lines * LINE / 8,), int64.
    """
    stride = LINE // 8
    order = rng.permutation(lines)
    following = np.zeros(lines * stride, np.int64)
    following[order * stride] = np.roll(order, -1) * stride
    return following


class Team:
    """`count` threads that each keep their own part of every vector and write it first.

    Threads that keep their part also keep it near: a machine with several memories places a page
    where it is first written. The kernels release the interpreter lock, so the threads do run at
    once.
    """

    def __init__(self, count):
        self.count = count
        self._threads = [ThreadPoolExecutor(1) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        for thread in self._threads:
            thread.shutdown()

    def vectors(self, number, length, dtype):
        """`number` vectors of about `length` elements in all: for each thread its parts."""
        share = max(1, length // self.count)
        return self._each(
            [lambda: [_aligned_ones(share, dtype) for _ in range(number)]] * self.count
        )

    def run(self, kernel, parts, *rest):
        """Run `kernel(*part, *rest)` on all parts at once; return each thread's result."""
        return self._each([functools.partial(kernel, *part, *rest) for part in parts])

    def _each(self, calls):
        waiting = [thread.submit(call) for thread, call in zip(self._threads, calls, strict=True)]
        return [w.result() for w in waiting]


def samples(name, threads, size, dtype, repeat):
    """Time a kernel over vectors of `size` bytes in total: return (seconds per pass, counted bytes
    and FLOPs). Raises Unavailable without numba.
    """
    kernel = getattr(load(), name)
    scalars = [np.dtype(dtype).type(v) for v in SCALARS.get(name, ())]
    width = np.dtype(dtype).itemsize
    with Team(threads) as team:
        parts = team.vectors(VECTORS[name], size // width // VECTORS[name], dtype)
        elements = sum(part[0].size for part in parts)
        passes = _passes(lambda passes: team.run(kernel, parts, *scalars, passes))
        taken = seconds_of(
            lambda: team.run(kernel, parts, *scalars, passes), repeat, warmup=1, least=0
        )
    counted = {"flops": FLOPS[name] * elements, "bytes": bytes_moved(name, elements, width)}
    return [t / passes for t in taken], counted


def _passes(run):
    """How many passes make a call of `run(passes)` last as long as CALL."""

    def seconds(passes):
        start = time.perf_counter()
        run(passes)
        return time.perf_counter() - start

    run(1)  # compiles it, if need be
    passes = 1
    # The best of three: a call that another program interrupted says nothing of how long it takes.
    while (taken := min(seconds(passes) for _ in range(3))) < CALL:
        passes = max(2 * passes, math.ceil(1.2 * passes * CALL / max(taken, 1e-6)))
    return passes


def thread_counts():
    """Return 1, 2, 4 ... up to the cores available to this process, and all of them."""
    most = usable_cores()
    return sorted({2**p for p in range(most.bit_length()) if 2**p <= most} | {most})


def _aligned_ones(length, dtype):
    """A vector of ones from a cache line on, as loads across two lines take twice as long."""
    size = np.dtype(dtype).itemsize
    room = np.empty(length * size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    vector = room[begin : begin + length * size].view(dtype)
    vector[:] = 1
    return vector


def _cache_folder():
    """Where compiled code may be kept, or "" where nothing can be written."""
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("speed-of-light", appauthor=False)) / "numba"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return ""
    return str(folder)
