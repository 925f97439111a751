"""The memory of a GPU, stage by stage: closed forms, and what must fall as more GPUs share."""

from dataclasses import replace

import pytest

from lightspeed.memory import training_memory
from lightspeed.transformer import transformer
from lightspeed_models.plan import Plan, machine
from lightspeed_models.step_memory import Footprint, expected_memory, footprint

LLAMA, H100 = transformer("llama3_8b"), machine("h100_sxm", "infiniband_ndr")
COUNTED = Footprint()


def of(plan, holds=COUNTED, model=LLAMA):
    return expected_memory(model, 4096, plan, H100, holds)


def test_one_stage_is_the_count():
    """Without fitted constants it is `training_memory`, but for a waste that is not taken and a few
    norms that no layer owns.
    """
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
    mixtral = transformer("mixtral_8x7b")
    spread, whole = Plan(data=8, expert=8), Plan(data=8)
    assert of(spread, holds, mixtral).weights < 0.3 * of(whole, holds, mixtral).weights
