"""The stack of Megatron-Bridge: fitted again from its rows, and held to runs that had no part."""

from dataclasses import replace

import numpy as np
import pytest

from lightspeed.catalog import fitted
from lightspeed_models.evidence.pairings import attention, recipes
from lightspeed_models.evidence.residuals import weigh
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.stack import stack
from lightspeed_models.training_runs import training_runs
from lightspeed_tools.plan.answer import verdict
from lightspeed_tools.plan.check import checked_cases
from lightspeed_tools.plan.inputs import cluster_of, given_stack
from lightspeed_tools.plan.search import bytes_of


def sizes(model, sequence):
    """A dense model as `--check` reads a shape."""
    heads, mlp = model.attention, model.mlp
    return {
        "layers": model.depth, "width": model.width, "heads": heads.heads,
        "head_width": heads.head_width, "hidden": mlp.hidden, "vocabulary": model.vocabulary,
        "kv_heads": heads.kv_heads, "mlp_matrices": mlp.matrices_each,
        "tied_embeddings": model.tied_embeddings, "context": sequence * mlp.bias,
    }  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return dataset("dgx_cloud")


def test_the_catalog_has_what_the_rows_give(rows):
    dense = recipes.fitted(recipes.rows_that_fit(rows, False), False)
    sparse = recipes.fitted(recipes.rows_that_fit(rows, True), True, dense)
    for again, key in ((dense, "megatron_h100"), (sparse, "megatron_h100_experts")):
        shipped = stack(key)
        for name, row in fitted("stacks")[key]["fitted"].items():
            assert getattr(again, name) == pytest.approx(row["value"], rel=0.01), name
            assert row["low"] <= row["value"] <= row["high"]
        for name, value in vars(again).items():
            own = getattr(shipped, name)
            assert own == (value if isinstance(value, str) else pytest.approx(value, rel=0.01))


def test_the_error_of_a_model_left_out(rows):
    """Of models without experts those of both sets; of experts those that set the constant."""
    recipe, bridge = recipes.runs_of(rows)[1], list(recipes.bridge_runs())
    off = {}
    for experts, runs in ((False, recipe + bridge), (True, bridge)):
        own = [run for run in runs if bool(run.model.experts) == experts]
        times = np.array([run.time for run in own])
        off[experts] = np.median(np.abs(recipes.left_out(rows, own) / times - 1))
    for experts, key in ((False, "megatron_h100"), (True, "megatron_h100_experts")):
        assert off[experts] == pytest.approx(fitted("stacks")[key]["error"], abs=0.005)


def test_runs_that_had_no_part():
    """Grok-1, Nemotron-4 and GPT-3 set nothing; no constant of Llama has a part in its own row."""
    one = weigh("step-recipes")
    assert one.regime("no experts, bf16").median <= 0.04
    assert one.regime("no experts, bf16").p90 <= 0.08
    assert one.regime("no experts, fp8").median <= 0.08
    assert max(one.regime(f"experts, {kind}").median for kind in ("bf16", "fp8")) <= 0.05
    assert one.all.rows == 70 and len(one.judged.left) == 25


def test_a_model_has_no_part_in_its_own_steps(rows):
    runs = recipes.runs_of(rows)[1]
    twice = [replace(run, time=2 * run.time) if "70b" in run.name else run for run in runs]
    assert any(a.time != b.time for a, b in zip(runs, twice, strict=True))
    own = [run for run in runs if "70b" in run.name]
    slower = [run for run in twice if "70b" in run.name]
    assert (recipes.left_out(rows, own) == recipes.left_out(rows, slower)).all()


def test_the_launch_is_what_nccl_takes():
    nccl = dataset("nccl")
    own = (nccl["chip"] == "h100_sxm") & (nccl["operation"] == "all_gather") & (nccl["ranks"] == 8)
    smallest = nccl["latency"][own & (nccl["elements"] <= 512)]
    assert stack("megatron_h100").launch == pytest.approx(np.median(smallest), rel=0.01)


def test_what_ran_is_not_refused(rows):
    """Nothing of the footprint was fitted. It is counted: what it says of a plan that ran is that
    it has room, or that it can't tell.
    """
    runs = recipes.runs_of(rows)[1]
    setting, machine = given_stack("megatron_h100", cluster_of("h100_sxm:8"), runs[0].model)
    held = [float(bytes_of(run.model, run.sequence, run.plan, machine, setting)) for run in runs]
    told = [verdict(one, machine.capacity) for one in held]
    assert told.count("refused") == 0 and told.count("fits") > 0.8 * len(told)


def test_what_hides_is_not_free():
    """The constant that Megatron's rows don't tell is that of runs which gather all weights."""
    count, contention = recipes.fit_contention()
    assert count == 70
    assert stack("megatron_h100").contention == pytest.approx(contention, rel=0.03)


@pytest.mark.parametrize("chips", list(attention.CLASSES))
def test_causal_attention_is_as_fast_as_it_was_measured(chips):
    shipped = fitted("attention")[chips]
    count, share, ramp, narrow = attention.fit_scores(
        dataset("prefill_attention"), attention.CLASSES[chips]
    )
    assert shipped["rows"] == count and shipped["share"] == pytest.approx(share, rel=0.02)
    assert shipped["ramp"] == pytest.approx(ramp, rel=0.05)
    assert shipped["narrow"] == pytest.approx(narrow, rel=0.1)


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
                "model": sizes(run.model, run.sequence),
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
    assert np.median(np.abs(list(errors.values()))) <= 0.05, errors
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
