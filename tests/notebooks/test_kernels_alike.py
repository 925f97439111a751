"""Pages that sum or fit show the same on other processors, and fits that leave rows out predict
the same: under the kernels that OpenBLAS and numpy would take there. What this processor can't run
is skipped by name, and so is its own kernel: nbval itself ran the pages with it.
"""

import functools
import json
import os
import platform
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from needs import lacks
from processes import finished

from lightspeed_authoring.build import ROOT, sources

SUMS = re.compile(
    r"\bnp\.|models\.evidence|weigh\(|fitted\(|expected_times|lightspeed_models\.(stack|fits|nccl_fit|served)"
)
PAGES = [path for path in sources(["chapters/"]) if SUMS.search(path.read_text("utf-8"))]
# A processor by OpenBLAS's name -> what it takes of this one to run its kernels, and which of
# numpy's features it has not.
PROCESSORS = {
    "Nehalem": ("sse4_2", r"AVX512|X86_V4|AVX2|X86_V3|FMA3"),
    "Haswell": ("avx2", r"AVX512|X86_V4"),
    "SkylakeX": ("avx512f", r"X^"),
}
KERNELS = """
import ctypes, glob, numpy, os
folder = os.path.join(os.path.dirname(numpy.__file__), "..", "numpy.libs")
(file,) = glob.glob(os.path.join(folder, "*openblas*"))
blas = ctypes.CDLL(file)
names = ("scipy_openblas_get_corename64_", "openblas_get_corename")
name = next(getattr(blas, n) for n in names if hasattr(blas, n))
name.restype = ctypes.c_char_p
features = __import__("numpy._core._multiarray_umath", fromlist=["*"]).__cpu_features__
off = os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split()
print(name().decode(), *(name for name in off if features[name]))
"""
# Predictions of each law of which a part was fitted, mostly with rows left out.
PREDICTIONS = """
import json
from lightspeed_models.evidence.pairing import pairings
from lightspeed_models.evidence.residuals import weigh
fits = [key for key, one in pairings().items() if one.fitted or one.left_out]
print(json.dumps({key: weigh(key).judged.predicted.tolist() for key in fits}))
"""


def kernels(**settings):
    """The kernel of OpenBLAS, then numpy's features that are on though the settings forbid them."""
    done = finished([sys.executable, "-c", KERNELS], env=os.environ | settings)
    return done.stdout.split() if done.returncode == 0 else lacks("OpenBLAS")


@functools.cache
def predictions(settings=()):
    """name of a law -> what it predicts of each row, where the environment has these settings."""
    command = [sys.executable, "-c", PREDICTIONS]
    done = finished(command, env=os.environ | dict(settings), check=True)
    return {name: np.array(rows, float) for name, rows in json.loads(done.stdout).items()}


@pytest.fixture(params=PROCESSORS)
def settings(request):
    """The settings for the kernels of another processor, once it was seen that they are taken."""
    feature, absent = PROCESSORS[request.param]
    told = Path("/proc/cpuinfo")
    flags = set()
    if platform.machine() == "x86_64" and told.exists():
        flags = set(re.search(r"^flags\s*:(.*)", told.read_text(), re.M)[1].split())
    if feature not in flags:
        lack = f"this processor ({platform.machine()}) has no {feature} to run it with"
        pytest.skip(f"{request.param}: {lack}")
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    off = " ".join(name for name in found if re.match(absent, name))
    if not off and kernels() == [request.param]:
        pytest.skip(f"{request.param}: this processor's own kernels, with which nbval runs")
    settings = {"OPENBLAS_CORETYPE": request.param, "NPY_DISABLE_CPU_FEATURES": off}
    assert kernels(**settings) == [request.param]
    return settings


@pytest.mark.slow
def test_pages_are_the_same_with_the_kernels_of_another_processor(settings):
    assert len(PAGES) > 12
    pages = [str(page.with_suffix(".ipynb")) for page in PAGES]
    command = [sys.executable, "-m", "pytest", "--color=no", *pages]
    done = finished(command, cwd=ROOT, env=os.environ | settings)
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.slow
def test_fits_predict_the_same_with_the_kernels_of_another_processor(settings):
    """To a tenth of the last digit that is shown of them, with and without the rows left out."""
    ours, theirs = predictions(), predictions(tuple(settings.items()))
    assert len(ours) > 30
    for name, values in ours.items():
        np.testing.assert_allclose(theirs[name], values, rtol=1e-4, err_msg=name)
