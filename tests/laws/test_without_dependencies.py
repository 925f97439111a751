"""The library on a bare Python: every law module loads, and its examples run."""

import sys

import pytest
from laws import LIBRARY
from processes import finished

BLOCKED = ("numpy", "pint", "scipy", "networkx")
# Examples that are about arrays or quantities, or whose function fits them.
NEEDS_ARRAYS = {
    "quantization.BlockFormat.round", "quantization.crest_factor",
    "quantization.quantize_asymmetric", "quantization.quantize_symmetric", "quantization.sqnr",
    "simulators.queue_simulation.batch_means", "simulators.queue_simulation.number_inside",
    "simulators.queue_simulation.observed", "simulators.queue_simulation.poisson_arrivals",
    "simulators.queue_simulation.simulate", "simulators.queue_simulation.simulate_decoding",
    "simulators.ring.run_ring", "units",
}  # fmt: skip
RUN = """
import doctest, importlib, sys
blocked, names, needs_arrays = (text.split() for text in sys.argv[1:])
for name in blocked:
    sys.modules[name] = None
failed, skipped = [], set()
for module in map(importlib.import_module, names):
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        short = test.name.removeprefix("lightspeed.").removeprefix("lightspeed_models.")
        if short in needs_arrays:
            skipped.add(short)
        elif doctest.DocTestRunner().run(test).failed:
            failed.append(short)
missing = set(needs_arrays) - skipped
sys.exit(f"fail: {failed}, not found: {missing}" if failed or missing else 0)
"""


@pytest.mark.holds("docs/learn.md", "and needs Python and nothing else")
def test_every_example_on_scalars_runs_on_a_bare_python():
    texts = (" ".join(names) for names in (BLOCKED, LIBRARY, sorted(NEEDS_ARRAYS)))
    run = finished([sys.executable, "-c", RUN, *texts])
    assert run.returncode == 0, run.stdout + run.stderr
