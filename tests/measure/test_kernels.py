"""The timed loops compute and move what they say, without a folder, too."""

import json
import os
import sys
import threading

import numpy as np
import pytest
from processes import finished

from lightspeed import roofline as law
from lightspeed_tools.measure.instruments import kernels

N = 1000
VALUES = {
    "copy": lambda a, b: {0: b},
    "triad": lambda a, b, c, s: {0: b + s * c},
    "axpy": lambda x, y, s: {1: y + s * x},
    "relu": lambda x, y: {1: np.maximum(x, 0)},
    "fused": lambda x, y, s, shift: {1: np.maximum(s * x + shift, 0)},
    "unfused": lambda x, y, s, shift: {1: np.maximum(s * x + shift, 0)},
}


def arguments(name, dtype):
    rng = np.random.default_rng(7)
    scalars = [np.dtype(dtype).type(v) for v in kernels.SCALARS.get(name, ())]
    return [rng.standard_normal(N).astype(dtype) for _ in range(kernels.VECTORS[name])], scalars


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_agree_with_numpy(dtype):
    found = kernels.load()
    for name, expected in VALUES.items():
        vectors, scalars = arguments(name, dtype)
        want = expected(*[v.copy() for v in vectors], *scalars)
        getattr(found, name)(*vectors, *scalars, 1)
        for index, values in want.items():
            np.testing.assert_allclose(
                vectors[index], values, rtol=1e-6 if dtype is np.float32 else 1e-14, atol=1e-6
            )
            assert vectors[index].dtype == dtype
    (x, y), _ = arguments("dot", np.float64)
    assert found.dot(x, y, 1) == pytest.approx(float(x @ y), rel=1e-10)
    assert found.read(x, 1) == pytest.approx(float(x.sum()), rel=1e-10)


def test_a_kernel_runs_as_often_as_asked():
    x, y = np.ones(8), np.zeros(8)
    kernels.load().axpy(x, y, 1.0, 5)
    assert (y == 5).all() and kernels.load().read(x, 3) == 24


def test_the_compiled_chase_follows_the_links():
    following = kernels.one_cycle(500, np.random.default_rng(3))
    at = 0
    for _ in range(123):
        at = following[at]
    assert kernels.load().chase(following, 0, 123) == at
    assert kernels.load().chase(following, at, 500) == at


@pytest.mark.parametrize("width", [4, 8])
def test_counted_flops_and_bytes_are_those_of_the_laws(width):
    n = 2**20
    # FLOPs an element, vectors read, vectors written
    elementwise = {
        "triad": (2, 2, 1),
        "axpy": (2, 2, 1),
        "relu": (1, 1, 1),
        "fused": (3, 1, 1),
        "read": (1, 1, 0),
    }
    for name, (flops, reads, writes) in elementwise.items():
        counted = kernels.FLOPS[name] / (kernels.PASSES[name] * width)
        assert counted == law.elementwise_intensity(flops, reads, writes, width), name
    dot = law.dot_flops(n) / law.dot_bytes(n, width)
    assert kernels.FLOPS["dot"] / (kernels.PASSES["dot"] * width) == pytest.approx(dot, rel=1e-5)
    # Three passes, each of which reads a vector and writes one.
    assert kernels.PASSES["unfused"] == 3 * kernels.PASSES["relu"]
    assert kernels.FLOPS["unfused"] == kernels.FLOPS["fused"]


def test_samples_count_what_all_threads_do():
    seconds, counted = kernels.samples("triad", 2, 3 * 8 * 1000, np.float64, 5)
    assert len(seconds) == 5 and min(seconds) > 0
    assert counted["flops"] == 2 * 1000
    assert counted["bytes"] == kernels.bytes_moved("triad", 1000, 8)


def test_each_thread_keeps_its_part():
    with kernels.Team(3) as team:
        parts = team.vectors(2, 30, np.float32)
        assert [len(part) for part in parts] == [2, 2, 2]
        assert all(v.shape == (10,) and v.dtype == np.float32 for part in parts for v in part)
        assert all(v.ctypes.data % kernels.LINE == 0 for part in parts for v in part)
        barrier = threading.Barrier(3)  # nobody passes unless all three run at once

        def kernel(a, b, number):
            barrier.wait(10)
            return threading.get_ident(), a.ctypes.data, number

        first, second = team.run(kernel, parts, 9), team.run(kernel, parts, 9)
    assert first == second and len({ident for ident, _, _ in first}) == 3


def python(code, **environment):
    done = finished([sys.executable, "-c", code], env=os.environ | environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


WITHOUT = """
import json, sys
sys.modules["numba"] = None
from lightspeed_tools.measure.instruments import memory_and_io as host, roofline
from lightspeed_tools.measure.instruments.timing import Missing
host.storage = host.loopback = roofline.gemms = lambda quick: []
found = [*host.measure(), *roofline.measure()]
print(json.dumps({q.key: [q.why, q.remedy] for q in found if isinstance(q, Missing)}))
"""


@pytest.mark.slow
def test_without_numba_the_gaps_are_named():
    got = json.loads(python(WITHOUT))
    for key in ("host.latency", "host.bandwidth", "roofline.bandwidth", "roofline.kernel"):
        assert "numba" in got[key][0] and "pip install" in got[key][1]


KEEPING = """
import numba, numpy
from lightspeed_tools.measure.instruments import kernels
k = kernels.load()
x, y = numpy.ones(4), numpy.zeros(4)
k.copy(y, x, 1)
print(repr(numba.config.CACHE_DIR), y.sum())
"""


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="the cache folder is set by a variable of Linux desktops"
)
def test_compiled_code_is_kept_in_the_users_cache_folder_or_nowhere(tmp_path):
    pytest.importorskip("numba")
    kept = python(KEEPING, XDG_CACHE_HOME=str(tmp_path))
    assert str(tmp_path) in kept and list(tmp_path.rglob("*.nbc"))
    blocked = tmp_path / "file"
    blocked.write_text("no folder can be made below a file")
    assert python(KEEPING, XDG_CACHE_HOME=str(blocked)).split() == ["''", "4.0"]


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes to cores"
)
def test_one_core_means_one_thread():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from"
        " lightspeed_tools.measure.instruments import kernels; print(kernels.thread_counts())"
    )
    assert python(code).strip() == "[1]"
