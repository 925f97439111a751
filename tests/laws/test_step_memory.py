"""The memory of a GPU, stage by stage: closed forms, and what must fall as more GPUs share."""

from dataclasses import replace

import pytest

from lightspeed_models.llm import decoder, training_memory
from lightspeed_models.plan import Plan, machine
from lightspeed_models.step_memory import Footprint, expected_memory, footprint

LLAMA, H100 = decoder("llama3_8b"), machine("h100_sxm", "infiniband_ndr")
COUNTED = Footprint()


def of(plan, holds=COUNTED, model=LLAMA):
    return expected_memory(model, 4096, plan, H100, holds)


def test_one_stage_is_the_count():
    """Without fits it is `training_memory`, but for waste and norms that no layer owns."""
    for stage in (0, 1, 2):
        plan = Plan(data=8, tensor=2, micro_size=2, stage=stage)
        mine = of(plan)
        count = training_memory(
            LLAMA, H100.capacity, 4096, 2, 8, 2, stage=stage, split="tensor+sequence", waste=0.0
        )
        for part in ("weights", "gradients", "optimizer", "activations", "logits", "total"):
            assert getattr(mine, part) == pytest.approx(getattr(count, part), rel=1e-3), part


def test_zero_3_gathers_two_layers():
    plan = Plan(data=64, stage=3)
    layer = (LLAMA.parameters - LLAMA.embeddings) / 32
    weights = 2 * LLAMA.parameters / 64 + 2 * 2 * layer
    assert of(plan).weights == pytest.approx(weights)


def test_the_fuller_stage_is_answered():
    """Few micro-batches leave the first stage empty, and long ones fill the last with logits."""
    many, few = Plan(pipeline=4, micro_batches=32), Plan(pipeline=4, micro_size=8)
    assert of(many).logits == 0
    assert of(few, replace(COUNTED, logits_bytes=40)).logits == 40 * 8 * 4096 * LLAMA.vocabulary
    first = of(many).activations
    assert first == pytest.approx(of(Plan()).activations * 9 * 4 / 32)


def test_more_gpus_hold_less():
    holds = footprint("nanotron_h100")
    for less, more in (
        (Plan(tensor=2), Plan(tensor=4)),
        (Plan(data=8), Plan(data=8, stage=1)),
        (Plan(data=8, stage=1), Plan(data=8, stage=2)),
        (Plan(data=8, stage=2), Plan(data=8, stage=3)),
        (Plan(), Plan(context=2)),
    ):
        assert of(more, holds).total < of(less, holds).total, (less, more)
    mixtral = decoder("mixtral_8x7b")
    spread, whole = Plan(data=8, expert=8), Plan(data=8)
    assert of(spread, holds, mixtral).weights < 0.3 * of(whole, holds, mixtral).weights


def test_full_recomputation_keeps_a_part_of_each_input():
    """TorchTitan's Llama 3.1 70B on 256 H100: FSDP 32, TP 8 with sequence parallelism, sixteen
    sequences of 8,192 a micro-batch, everything recomputed: 67.6 GiB in all, 72.6 GB (torchtitan
    31a17bf, benchmarks/llama3_h100_202412_torchtitan.md, table 4). Undivided, the layers' inputs
    alone would be 171.8 GB.
    """
    llama, took = decoder("llama3_70b"), 67.6 * 2**30
    plan = Plan(data=32, tensor=8, micro_size=16, stage=3, recompute="full")
    use = expected_memory(llama, 8192, plan, H100, Footprint(logits_bytes=10))
    inputs = 80 * 2 * 8192 * 16 * 8192
    assert inputs == pytest.approx(171.8e9, rel=1e-3)
    assert use.activations == pytest.approx(inputs / 8)
    # What is counted is most of what was measured, and no more.
    assert 0.6 * took < use.total < took
    apart = expected_memory(llama, 8192, plan, H100, COUNTED, split="tensor")
    assert apart.activations == pytest.approx(inputs)
