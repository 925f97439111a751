"""How many threads numpy's matrix products use, and how to change that while a program runs.

numpy from the package index brings its own OpenBLAS, whose number of threads can be set by a call
into that library. Another BLAS (Apple's Accelerate, MKL) has other ways or none; then it stays as
it is, and `threads` says so.
"""

import contextlib
import ctypes
import functools
from pathlib import Path

import numpy as np

from lightspeed_tools.measure.instruments.timing import Unavailable

NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)


@contextlib.contextmanager
def threads(count):
    """`count` threads in numpy's matrix products while inside; Unavailable if that fails."""
    get, put = _calls()
    before = get()
    put(count)
    try:
        if get() != count:
            raise Unavailable(
                f"numpy's BLAS does not use {count} threads, but {get()}.",
                "Set OPENBLAS_NUM_THREADS before Python starts.",
            )
        yield
    finally:
        put(before)


@functools.cache
def _calls():
    """The library's functions to get and to set the number of threads."""
    home = Path(np.__file__).parent
    for path in (
        p
        for folder in ("../numpy.libs", ".dylibs")
        for p in sorted((home / folder).glob("*openblas*"))
    ):
        # numpy has loaded it already; this is a second handle to it
        library = ctypes.CDLL(str(path.resolve()))
        for name in NAMES:
            if hasattr(library, name.format("get")) and hasattr(library, name.format("set")):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    raise Unavailable(
        "The threads of numpy's BLAS cannot be set from here: it is not the OpenBLAS of the package"
        " index.",
        "Set OPENBLAS_NUM_THREADS, or what your BLAS reads, before Python starts.",
    )
