"""Pages that sum or fit show the same on other processors: nbval runs them on the kernels that
OpenBLAS and numpy would take there. What this processor can't run is skipped by name.
"""

import os
import platform
import re
import sys
from pathlib import Path

import pytest
from needs import lacks
from processes import finished

from lightspeed_authoring.build import ROOT, sources

SUMS = re.compile(
    r"\bnp\.|models\.evidence|weigh\(|fitted\(|expected_times|lightspeed_models\.(stack|fits|nccl_fit|served)"
)
PAGES = [path for path in sources(["chapters/"]) if SUMS.search(path.read_text("utf-8"))]
# OpenBLAS's kernels by the processor that they are for, and what that one needs of ours.
CORES = {"Nehalem": "sse4_2", "Haswell": "avx2", "SkylakeX": "avx512f"}
WITHOUT = {
    "AVX-512": ("avx512f", r"AVX512|X86_V4"),
    "AVX2": ("avx2", r"AVX512|X86_V4|AVX2|X86_V3|FMA3"),
}


def processor():
    """What this processor can do, in /proc/cpuinfo's words; nothing where that is not x86-64."""
    told = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not told.exists():
        return set()
    return set(re.search(r"^flags\s*:(.*)", told.read_text(), re.M)[1].split())


def emulated(what, feature, python, **settings):
    """The environment for a kernel, once `python` has shown under it that it is taken."""
    if feature not in processor():
        pytest.skip(
            f"{what}: this processor ({platform.machine()}) has no {feature} to run it with"
        )
    environment = os.environ | settings
    done = finished([sys.executable, "-c", python], env=environment)
    if done.returncode:
        lacks("OpenBLAS")
    return environment


def run_pages(environment):
    assert len(PAGES) > 12
    done = finished(
        [
            sys.executable,
            "-m",
            "pytest",
            "--color=no",
            *(str(page.with_suffix(".ipynb")) for page in PAGES),
        ],
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
def test_pages_are_the_same_with_the_products_of_another_processor(core):
    shows = (
        "import ctypes, glob, numpy, os\n"
        "folder = os.path.join(os.path.dirname(numpy.__file__), '..', 'numpy.libs')\n"
        "(file,) = glob.glob(os.path.join(folder, '*openblas*'))\n"
        "blas = ctypes.CDLL(file)\n"
        "names = ('scipy_openblas_get_corename64_', 'openblas_get_corename')\n"
        "name = next(getattr(blas, n) for n in names if hasattr(blas, n))\n"
        "name.restype = ctypes.c_char_p\n"
        f"assert name() == b'{core}', name()"
    )
    run_pages(emulated(core, CORES[core], shows, OPENBLAS_CORETYPE=core))


@pytest.mark.slow
@pytest.mark.parametrize("absent", WITHOUT)
def test_pages_are_the_same_with_the_sums_of_another_processor(absent):
    feature, names = WITHOUT[absent]
    from numpy import show_config

    found = show_config(mode="dicts")["SIMD Extensions"]["found"]
    off = " ".join(name for name in found if re.match(names, name))
    shows = (
        "import numpy\n"
        "features = __import__('numpy._core._multiarray_umath', fromlist=['*']).__cpu_features__\n"
        f"assert not any(features[name] for name in '{off}'.split())"
    )
    run_pages(emulated(f"without {absent}", feature, shows, NPY_DISABLE_CPU_FEATURES=off))
