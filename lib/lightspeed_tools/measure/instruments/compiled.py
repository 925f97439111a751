"""The kernels as machine code. Only `kernels.load` imports this file, for it needs numba.

Vectors are contiguous arrays of one floating-point type. Each kernel runs `repeat` times over its
arrays in one call, so that the way from Python into the kernel is paid once; all release the
interpreter lock, so that several threads run at once. Sums may be reordered (`fastmath`), as a C
compiler is allowed to with -Ofast: a sum in strict order waits for each addition and shows the
latency of the adder, not the bandwidth of the memory.
"""

import numba

# False where no folder can be written: then each process compiles anew
_keep = bool(vars(numba.config)["CACHE_DIR"])
_strict = numba.njit(cache=_keep, nogil=True)
_reordered = numba.njit(cache=_keep, nogil=True, fastmath=True)


@_strict
def chase(following, start, steps):
    """Follow `steps` links from `start` and return the end: each load depends on the last."""
    at = start
    for _ in range(steps):
        at = following[at]
    return at


@_strict
def copy(a, b, repeat):
    """Compute a = b, `repeat` times."""
    for _ in range(repeat):
        for i in range(a.size):
            a[i] = b[i]


@_strict
def triad(a, b, c, s, repeat):
    """a = b + s c."""
    for _ in range(repeat):
        for i in range(a.size):
            a[i] = b[i] + s * c[i]


@_reordered
def read(a, repeat):
    """The sum of a, `repeat` times."""
    total = a[0] - a[0]
    for _ in range(repeat):
        for i in range(a.size):
            total += a[i]
    return total


@_reordered
def dot(x, y, repeat):
    """The dot product of x and y, `repeat` times."""
    total = x[0] - x[0]
    for _ in range(repeat):
        for i in range(x.size):
            total += x[i] * y[i]
    return total


@_strict
def axpy(x, y, s, repeat):
    """y = s x + y."""
    for _ in range(repeat):
        for i in range(x.size):
            y[i] += s * x[i]


@_strict
def relu(x, y, repeat):
    """y = max(x, 0)."""
    zero = x[0] - x[0]
    for _ in range(repeat):
        for i in range(x.size):
            y[i] = x[i] if x[i] > zero else zero


@_strict
def fused(x, y, s, shift, repeat):
    """y = max(s x + shift, 0) in one pass."""
    zero = x[0] - x[0]
    for _ in range(repeat):
        for i in range(x.size):
            value = s * x[i] + shift
            y[i] = value if value > zero else zero


@_strict
def unfused(x, y, s, shift, repeat):
    """Compute `fused` in three passes, as three separate operators do."""
    zero = x[0] - x[0]
    for _ in range(repeat):
        for i in range(x.size):
            y[i] = s * x[i]
        for i in range(x.size):
            y[i] = y[i] + shift
        for i in range(x.size):
            y[i] = y[i] if y[i] > zero else zero
