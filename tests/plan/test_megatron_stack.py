"""The stack of Megatron-Bridge: fitted again from its rows, and held to runs that had no part."""

import numpy as np
import pytest

from lightspeed.catalog import fitted
from lightspeed_models.evidence.pairings import megatron
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.stack import stack
from lightspeed_models.training_runs import training_runs
from lightspeed_tools.plan.check import checked_cases
from lightspeed_tools.plan.inputs import cluster_of, given_stack
from lightspeed_tools.plan.search import bytes_of

SHAPE = (
    "layers", "width", "heads", "head_width", "hidden", "vocabulary", "kv_heads", "mlp_matrices",
    "tied_embeddings", "context",
)  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return dataset("megatron_bridge")


@pytest.mark.parametrize("experts", [False, True])
def test_the_catalog_has_what_the_rows_give(rows, experts):
    key = "megatron_h100_experts" if experts else "megatron_h100"
    _, runs = megatron.runs_on_h100(rows, experts)
    again, shipped = megatron.fit_on_h100(runs, experts), stack(key)
    assert len(runs) == 11
    for name, row in fitted("stacks")[key]["fitted"].items():
        assert getattr(again, name) == pytest.approx(row["value"], rel=0.01), name
        assert row["low"] <= row["value"] <= row["high"]
    assert shipped.launch == again.launch and shipped.passes == again.passes


@pytest.mark.parametrize("experts", [False, True])
def test_the_error_of_a_model_left_out(rows, experts):
    key = "megatron_h100_experts" if experts else "megatron_h100"
    off = np.abs(megatron.left_out_on_h100(rows, experts) - 1)
    assert np.median(off) == pytest.approx(fitted("stacks")[key]["error"], abs=0.005)


def test_the_launch_is_what_nccl_takes():
    nccl = dataset("nccl")
    own = (nccl["chip"] == "h100_sxm") & (nccl["operation"] == "all_gather") & (nccl["ranks"] == 8)
    smallest = nccl["latency"][own & (nccl["elements"] <= 512)]
    assert stack("megatron_h100").launch == pytest.approx(np.median(smallest), rel=0.01)


def test_what_ran_is_not_refused(rows):
    """Nothing of the footprint was fitted. It is counted: what it says of a plan that ran is that
    it has room.
    """
    for experts in (False, True):
        names, runs = megatron.runs_on_h100(rows, experts)
        setting, machine = given_stack("megatron_h100", cluster_of("h100_sxm:8"), runs[0].model)
        held = [
            float(bytes_of(run.model, run.sequence, run.plan, machine, setting)) for run in runs
        ]
        full = np.array(held) / machine.capacity
        # Rows do not say what they recompute; the largest are said to, and are not told here.
        assert (full <= 1).mean() >= 0.5, dict(zip(names, full, strict=True))


def published(keys):
    """Published runs as cases for `--check`."""
    cases = []
    for key, run in training_runs().items():
        if not key.startswith(keys):
            continue
        plan = {n: getattr(run.plan, n) for n in ("tensor", "pipeline", "context", "data")}
        plan |= {"recompute": run.plan.recompute, "micro_size": run.plan.micro_size}
        cases.append(
            {
                "name": key,
                "model": {n: getattr(run.model, n) for n in SHAPE},
                "cluster": {"gpu": run.gpu, "network": run.network, "gpus": run.plan.gpus},
                "batch_sequences": run.plan.sequences,
                "sequence": run.sequence,
                "plan": plan,
                "measured": {"step_seconds": run.time},
            }
        )
    return {"cases": cases}


def test_published_runs_of_megatron_on_h100():
    """bf16 runs of GPTs; the constants come from fp8 runs of Llamas by another team's recipes."""
    found = checked_cases(published("megatron_h100"))
    assert not any(row["refused"] for row in found)
    errors = {row["name"]: row["error"] for row in found}
    assert np.median(np.abs(list(errors.values()))) == pytest.approx(0.10, abs=0.02), errors
    assert all(row["memory"]["verdict"] == "fits" for row in found)
    assert sum(row["rank"] <= 25 for row in found) == 4, [row["rank"] for row in found]


def test_older_runs_take_longer_by_one_factor():
    """On A100 in 2021 everything takes longer. With the factor of the other five runs, each is
    near.
    """
    found = checked_cases(published("megatron_a100"))
    ratio = np.array([row["measured_seconds"] / row["predicted_seconds"] for row in found])
    assert (ratio > 1).all()
    others = [np.median(np.delete(ratio, i)) for i in range(len(ratio))]
    assert np.median(np.abs(others / ratio - 1)) <= 0.08
