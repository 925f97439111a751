"""Every published case of the topics that the library covers, through one adapter.

A case of type `measured` is reality, not a prediction: a roofline must bound it from below,
and not by more than the widest gap that the field notes report.
"""

import ast
import json
import math
import statistics
from pathlib import Path

import pytest
from adapter import evaluate, exact

CASES = [c for c in json.loads(Path(__file__).with_name("published.json").read_text()) if exact(c)]
# The lowest share of the roofline in the measured matrix products: fp8 at 8192 cubed.
LOWEST_SHARE = 0.55


def same(got, want, tolerance):
    if isinstance(want, str) or want is None:
        return got == want
    if isinstance(want, list):
        return len(got) == len(want) and all(
            same(g, w, tolerance) for g, w in zip(got, want, strict=True)
        )
    # the last bits of a double
    relative = tolerance["value"] if tolerance["type"] in ("rel", "measured") else 1e-12
    absolute = tolerance["value"] if tolerance["type"] == "abs" else 0.0
    return math.isclose(got, want, rel_tol=relative, abs_tol=absolute)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_case(case):
    got = evaluate(case["topic"], case["inputs"])
    if case["topic"] == "gemm_measured":
        share = got["lower_us"] / case["expected"]["measured_us"]
        assert LOWEST_SHARE < share <= 1, f"{share:.2f} of the roofline"
        return
    for name, want in case["expected"].items():
        assert same(got[name], want, case["tolerance_suggestion"]), (
            f"{name}: {got[name]} is not {want}"
        )


def test_the_lowered_roof_estimates_measured_products():
    """Chapter 2's claim, without the H100 row that gave the memory share and can't err."""
    cases = [
        c for c in CASES if c["topic"] == "gemm_measured" and c["id"] != "gemm-h100-bfloat16-m1"
    ]
    errors = [
        evaluate(c["topic"], c["inputs"])["measured_us"] / c["expected"]["measured_us"] - 1
        for c in cases
    ]
    assert statistics.median(map(abs, errors)) < 0.15
    assert max(map(abs, errors)) < 0.30


def test_unknown_inputs_say_what_is_known():
    with pytest.raises(KeyError, match="peak_flops_per_s"):
        evaluate("roofline", {"horsepower": 3})


SCALES = (ast.Mult, ast.Div)  # units and counts


def computed(tree):
    """Lines that do more with numbers than scale them: sums, differences, powers."""
    for node in ast.walk(tree):
        # | joins dicts
        if not isinstance(node, ast.BinOp) or isinstance(node.op, (*SCALES, ast.BitOr)):
            continue
        if not any(isinstance(side, ast.Constant) for side in (node.left, node.right)):
            yield node.lineno, ast.unparse(node)


def test_the_adapter_computes_nothing():
    """It names inputs and calls the library: a model of its own would prove nothing."""
    source = Path(__file__).with_name("adapter.py").read_text()
    sums = [line for _, line in computed(ast.parse(source))]
    # NCCL's own model is such a sum, latency and bytes over bandwidth, of two of the library's
    # functions.
    assert [
        line for line in sums if "bandwidth_bound" not in line and "ring_time" not in line
    ] == []
    assert not any(
        word in source for word in ("polyfit", ".mean(", "median", "interp", "lstsq", "curve_fit")
    )
    assert len(list(computed(ast.parse("rate = constant + slope / width\nby = 2 * b**k")))) == 2
