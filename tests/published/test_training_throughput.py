"""Published training rates: exact where a step time is given, and how near a guess comes where none is.

A case without a step time is a measurement. Its numbers must agree with each other to what the source
rounds away; a prediction of it from other runs is within the band stated here, no nearer.
"""

import json
from pathlib import Path
from statistics import median

import pytest
from adapter import evaluate

CASES = [c for c in json.loads(Path(__file__).with_name("published.json").read_text()) if c["topic"] == "training_throughput"]
TIMED = [c for c in CASES if "iter_s" in c["inputs"]]
GUESSED = [c for c in CASES if "peak_TF" in c["inputs"] and c not in TIMED]
MODELS = [c for c in CASES if "model" in c["inputs"]]


def error(case, name):
    return evaluate(case["topic"], case["inputs"])[name] / case["expected"][name] - 1


def test_each_case_is_in_one_group():
    assert len(TIMED) + len(GUESSED) + len(MODELS) == len(CASES) == 21


@pytest.mark.parametrize("case", TIMED, ids=lambda c: c["id"])
def test_a_step_time_gives_the_rate(case):
    for name in case["expected"]:
        assert abs(error(case, name)) <= case["tolerance_suggestion"]["value"]


@pytest.mark.parametrize("case", TIMED, ids=lambda c: c["id"])
def test_the_rate_counts_recomputation(case):
    """TRAP: with the model's own FLOPs, the factor 72, the same step is a quarter less."""
    from lightspeed.training import transformer_training_flops

    i = case["inputs"]
    needed = transformer_training_flops(i["batch"] * i["s"], i["L"], i["h"], i["V"], i["s"]) / (i["GPUs"] * i["iter_s"])
    assert needed / 1e12 == pytest.approx(0.75 * case["expected"]["TFLOPs_per_gpu"], rel=0.01)


@pytest.mark.parametrize("case", GUESSED, ids=lambda c: c["id"])
def test_a_measured_row_agrees_with_itself(case):
    expected, inputs = case["expected"], case["inputs"]
    share = expected.get("pct_peak", expected.get("MFU_pct"))
    assert 100 * expected["TFLOPs_per_gpu"] / inputs["peak_TF"] == pytest.approx(share, abs=0.6)  # whole percent
    if "aggregate_PFLOPs" in expected:
        assert expected["TFLOPs_per_gpu"] * inputs["GPUs"] / 1e3 == pytest.approx(expected["aggregate_PFLOPs"], rel=0.01)
    if "params_B" in expected:
        assert abs(error(case, "params_B")) <= case["tolerance_suggestion"]["value"]


def test_rates_guessed_from_other_runs():
    """The share of peak of runs on the chip: a tenth off in the middle, a fifth at worst. Llama's own run is among them."""
    errors = [abs(error(case, "TFLOPs_per_gpu")) for case in GUESSED]
    assert len(errors) == 12
    assert median(errors) <= 0.10
    assert max(errors) <= 0.20


@pytest.mark.parametrize("case", MODELS, ids=lambda c: c["id"])
def test_step_times_of_larger_models_from_smaller_ones(case):
    """22B and 175B set the two parameters; 530B and 1T are predicted, within the 9 % that Calculon's simulator needs."""
    for name in case["expected"]:
        assert abs(error(case, name)) <= 0.05, name
