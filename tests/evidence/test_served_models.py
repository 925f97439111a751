"""What is expected of served models that had no part in it, and what is not reached."""

from dataclasses import replace

import numpy as np
import pytest

from lightspeed_models.evidence.chips import of_buffers
from lightspeed_models.evidence.pairings import inference
from lightspeed_models.evidence.residuals import weigh
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.inference_step import engine


@pytest.fixture(scope="module")
def known():
    rows = inference.known(dataset("serving_refs"))
    return rows, np.array(inference.served(rows))


def test_every_row_of_a_known_model_is_told_once(known):
    rows, runs = known
    assert len(rows) == len(runs) == 32  # two of Qwen3.5, whose attention is linear; one twice
    left = set(dataset("serving_refs")["model"]) - set(rows["model"])
    assert left == {"Qwen/Qwen3.5-397B-A17B"}
    assert {run.decode.gpus for run in runs} == {1, 2, 4, 8, 16}


def test_time_between_tokens_of_a_model_left_out():
    """The target of the course is 25 % in the median."""
    found = weigh("inference-tokens")
    assert found.all.median <= 0.17
    bound = weigh("inference-bound").all
    assert found.all.median < bound.median / 3
    # Furthest off are those whose requests wait for a place: the rows don't say how many.
    rows, off = found.rows, np.abs(np.log(found.ratio))
    waits = inference.known(rows)["first_token"] > inference.QUEUED
    assert waits.sum() == 3 and off[waits].min() > np.quantile(off[~waits], 0.8)


@pytest.mark.holds(
    "evidence", "least in vLLM and most in SGLang", "Reading is the smallest part of the wait"
)
def test_time_to_the_first_token_is_not_reached(known):
    """Neither as a burst nor as a stream; what is left is what a server does before it reads."""
    burst, stream = weigh("inference-first"), weigh("inference-first-alone")
    assert 0.5 < burst.all.median < 1.0 and 0.5 < stream.all.median < burst.all.median
    # Of the GPUs that decode, a stream is right in the middle; of many requests, a burst is nearer.
    together, crowd = inference.REGIMES[0], inference.REGIMES[2]
    assert 0.9 < stream.regime(together).ratios[1] < 1.1 < burst.regime(together).ratios[1]
    assert stream.regime(crowd).ratios[1] < 0.2
    # Reading a prompt is a bound, and far below.
    bound = weigh("inference-first-bound").all
    assert bound.beaten == 0 and bound.ratios[1] < 0.1
    rows, runs = known
    served = replace(engine("served"), front=0.0)
    waits = rows["first_token"] - [run.alone(served) for run in runs]
    own = np.array([run.together for run in runs]) & (rows["first_token"] < inference.QUEUED)
    middle = {
        name: np.median(waits[own & (rows["backend"] == name)])
        for name in ("vllm", "trtllm", "sglang")
    }
    assert 2 * middle["vllm"] < middle["trtllm"] < middle["sglang"]


def test_the_shipped_engine_is_the_fit(known):
    rows, runs = known
    learnt = inference.fit(runs, rows["per_token"])
    soon = rows["first_token"] < inference.QUEUED
    learnt = inference.front(runs[soon], rows["first_token"][soon], learnt)
    for name, value in vars(learnt).items():
        assert getattr(engine("served"), name) == pytest.approx(value, rel=0.03), name


def test_a_hop_of_served_models_is_one_of_nccl():
    """Small all-reduces of another set, on eight GPUs."""
    nccl = dataset("nccl")
    small = (
        (nccl["operation"] == "all_reduce") & (nccl["ranks"] == 8) & (of_buffers(nccl)[0] <= 2**19)
    )
    hop = np.median(nccl["latency"][small]) / (2 * 7)
    assert engine("served").hop == pytest.approx(hop, rel=0.2)


@pytest.mark.holds("evidence", "take a third of the step")
def test_a_third_of_a_step_is_latency(known):
    served = engine("served")
    parts = [
        inference.inference_step(
            run.model, run.decode, run.requests, 1, run.prompt + run.output / 2, served
        )
        for run in known[1]
    ]
    late = np.median([(part.exchange + part.host) / part.time for part in parts])
    assert 0.28 < late < 0.45


def test_another_set_is_expected_by_the_same_engine():
    """No constant has seen a row of it. Where the law falls short, it falls short one way."""
    rows, bound = inference.steps_elsewhere(dataset("serving_energy"), inference.IDEAL)
    assert len(rows) == 235 and (bound < rows["latency_median"]).all()
    found = weigh("inference-elsewhere")
    assert found.all.median <= 0.35 < np.median(1 - bound / rows["latency_median"])
    assert np.mean(found.ratio < 1) > 0.75
