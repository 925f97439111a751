"""Plans as arrays: the same figures as one plan after the other, and what a plan may not be."""

import itertools
import random
from dataclasses import fields, replace

import numpy as np
import pytest

from lightspeed.errors import BadArgument
from lightspeed.memory import MemoryUse
from lightspeed.parallel import data_parallel_bytes
from lightspeed_models.llm import decoder, from_sizes
from lightspeed_models.plan import AXES, Plan, checked_for, machine
from lightspeed_models.simulators.schedules import simulate
from lightspeed_models.stack import BOUND, stack
from lightspeed_models.stack_fit import expected_times
from lightspeed_models.step_memory import (
    expected_memory,
    footprint,
    in_flight,
    stage_memory,
)
from lightspeed_models.training_step import Work, memory_use, seconds, step, work

H100 = machine("h100_sxm", "infiniband_ndr")
HOLDS = footprint("nanotron_h100")
DEGREES = ("data", "tensor", "pipeline", "expert", "context", "micro_batches", "micro_size")
FIELDS = (*DEGREES, "chunks", "stage", "recompute", "schedule")


def plans(model, placement, count=120):
    """Plans of every kind that this model may have."""
    draw = random.Random(repr(placement))
    while count:
        data, tensor, context = (
            draw.choice([1, 3, 8]),
            draw.choice([1, 2, 8, 16]),
            2 ** draw.randrange(3),
        )
        pipeline, chunks = draw.choice([1, 2, 4, 8]), draw.choice([1, 1, 2, 4])
        expert = draw.choice([1, 2, 4, 8]) if model.experts else 1
        schedule = "1f1b" if chunks > 1 else draw.choice(["1f1b", "gpipe", "zb_h1"])
        try:
            plan = Plan(
                data, tensor, pipeline, expert, context, draw.choice([1, 4, 32]),
                draw.choice([1, 4]), chunks, draw.randrange(4),
                draw.choice(["none", "selective", "full"]), schedule, placement,
            )  # fmt: skip
            checked_for(model, plan)
        except BadArgument:
            continue
        count -= 1
        yield plan


def together(each):
    """Many plans as one of arrays."""
    columns = {name: np.array([getattr(plan, name) for plan in each]) for name in FIELDS}
    return Plan(**columns, placement=each[0].placement)


@pytest.mark.parametrize("key", ["llama3_70b", "mixtral_8x7b", "deepseek_v3"])
@pytest.mark.parametrize("placement", [AXES, AXES[::-1], ("context", "pipeline", "tensor", "data")])
def test_arrays_are_the_scalars(key, placement):
    model = decoder(key)
    each = list(plans(model, placement))
    many = together(each)
    assert {plan.expert_tensor for plan in each} >= ({1, 2} if model.experts else {1})
    for stands in (BOUND, stack("nanotron_h100"), stack("nanotron_h100", "stalled")):
        works = work(model, 4096, many, H100, stands)
        terms = seconds(works, stands)
        for i, plan in enumerate(each):
            alone = work(model, 4096, plan, H100, stands)
            for f in fields(Work):
                ours = np.broadcast_to(getattr(works, f.name), len(each))[i]
                assert ours == pytest.approx(getattr(alone, f.name), rel=1e-12), (f.name, plan)
            for name, took in seconds(alone, stands).items():
                ours = np.broadcast_to(terms[name], len(each))[i]
                # A difference of two long times may keep fewer digits than either.
                slack = 1e-12 * float(expected_times(alone, stands))
                assert ours == pytest.approx(took, rel=1e-12, abs=slack), (name, plan)
        took = [step(model, 4096, plan, H100, stands).time for plan in each]
        assert expected_times(works, stands) == pytest.approx(took, rel=1e-12)
    for use, alone in (
        (memory_use(model, 4096, many, H100), memory_use),
        (expected_memory(model, 4096, many, H100, HOLDS), lambda *a: expected_memory(*a, HOLDS)),
    ):
        for f in fields(MemoryUse):
            one_by_one = [getattr(alone(model, 4096, plan, H100), f.name) for plan in each]
            ours = np.broadcast_to(getattr(use, f.name), len(each))
            assert ours == pytest.approx(one_by_one, rel=1e-12), f.name


@pytest.mark.parametrize("key", ["llama3_8b", "llama3_405b", "mixtral_8x7b"])
def test_no_stage_holds_more_than_the_fuller_end(key):
    model = decoder(key)
    for plan in plans(model, AXES, 60):
        every = [
            stage_memory(model, 4096, plan, H100, HOLDS, place).total
            for place in range(plan.pipeline)
        ]
        assert expected_memory(model, 4096, plan, H100, HOLDS).total == max(every), plan


def test_all_stages_hold_the_model():
    """Weights of all stages are those of the model, and a second table where words are tied."""
    for key in ("gpt2", "llama3_8b", "mixtral_8x7b"):
        model = decoder(key)
        for stages in (1, 2, 4):
            plan = Plan(pipeline=stages)
            held = [stage_memory(model, 1024, plan, H100, HOLDS, i).weights for i in range(stages)]
            tables = (2 if stages > 1 else 1) * model.vocabulary * model.width
            more = tables if model.tied_embeddings else max(tables, model.embeddings)
            counted = model.parameters - model.embeddings + more
            assert sum(held) == pytest.approx(2 * counted, rel=1e-9), (key, stages)


def test_in_flight_is_what_the_schedules_hold():
    for schedule, p, m in itertools.product(
        ("1f1b", "gpipe", "zb_h1", "interleaved"), (1, 2, 3, 8), (1, 2, 6, 8, 24)
    ):
        chunks = 3 if schedule == "interleaved" else 1
        if chunks > 1 and m % p:
            continue
        passes = {"backward": 2.0, "weight": 1.0} if schedule == "zb_h1" else {}
        held = simulate(schedule, p, m, chunks=chunks, **passes).peak_activations
        name = "1f1b" if chunks > 1 else schedule
        plan = Plan(pipeline=p, micro_batches=m, chunks=chunks, schedule=name)
        assert [in_flight(plan, place) for place in range(p)] == pytest.approx(list(held))


def test_gpipe_holds_all_micro_batches():
    model = decoder("llama3_70b")
    for m in (4, 32):
        plan = Plan(pipeline=4, micro_batches=m)
        usual, all_of_them = (
            memory_use(model, 4096, replace(plan, schedule=name), H100)
            for name in ("1f1b", "gpipe")
        )
        assert all_of_them.activations == pytest.approx(usual.activations * m / 4)
        assert all_of_them.total - usual.total == pytest.approx(
            1.1 * (all_of_them.activations - usual.activations)
        )


def test_a_zero_bubble_is_a_third_as_long():
    plan = Plan(pipeline=8, micro_batches=32)
    model = decoder("llama3_70b")
    usual, zero = (
        step(model, 4096, Plan(pipeline=8, micro_batches=32, schedule=s), H100)
        for s in ("1f1b", "zb_h1")
    )
    run = {
        s: simulate(s, 8, 32, 1.0, 2.0, 1.0 if s == "zb_h1" else None).bubble_over_ideal
        for s in ("1f1b", "zb_h1")
    }
    assert zero.bubble / usual.bubble == pytest.approx(run["zb_h1"] / run["1f1b"])
    assert step(model, 4096, plan, H100) == usual


def test_experts_over_tensor_and_context_ranks():
    """Grok-1 on 512 GPUs: eight experts, of which data parallelism has room for four."""
    grok = from_sizes(64, 6144, 48, 32768, 131072, kv_heads=8, experts=8, active_experts=2)
    folded = Plan(data=4, tensor=8, pipeline=16, expert=8)
    over_context = Plan(data=4, tensor=8, pipeline=8, context=2, expert=8)
    assert folded.gpus == over_context.gpus == 512
    assert (folded.expert_tensor, over_context.expert_tensor) == (1, 8)
    with pytest.raises(BadArgument, match="divisor of the 32 ranks of a stage"):
        Plan(data=4, tensor=8, pipeline=16, expert=24)
    # Whoever holds which part, all ranks of a stage hold each copy once.
    experts = grok.expert_parameters
    for plan in (folded, over_context):
        common = (grok.parameters - experts) / plan.tensor / plan.pipeline
        own = memory_use(grok, 4096, plan, H100).weights / 2 - common
        assert own * plan.expert * plan.expert_tensor * plan.pipeline == pytest.approx(experts)
        held = stage_memory(grok, 4096, replace(plan, stage=1), H100, HOLDS, 1)
        alone = stage_memory(grok, 4096, plan, H100, HOLDS, 1)
        of_experts = alone.optimizer - 12 * (grok.parameters - grok.embeddings - experts) / (
            plan.tensor * plan.pipeline
        )
        shared = (alone.optimizer - of_experts) / plan.ranks + of_experts / plan.expert_copies
        assert plan.expert_copies * plan.expert * plan.expert_tensor == plan.ranks * plan.tensor
        assert held.optimizer == pytest.approx(shared)
    with pytest.raises(BadArgument, match="at most the 8 experts"):
        step(grok, 4096, Plan(data=16, expert=16), H100)
    with pytest.raises(BadArgument, match="no experts"):
        step(decoder("llama3_8b"), 4096, Plan(data=16, expert=16), H100)
    with pytest.raises(BadArgument, match="expert"):
        Plan(data=np.array([4, 4]), tensor=8, expert=np.array([8, 24]))


def test_gradients_of_an_expert_go_to_its_copies():
    """Eight ranks of eight experts have nothing to tell each other of them; sixteen have, each to
    the one other that holds the same, in the next node.
    """
    mixtral = decoder("mixtral_8x7b")
    experts = 3 * 4096 * 14336 * 8 * 32
    assert mixtral.expert_parameters == experts
    common = mixtral.parameters - experts
    one = work(mixtral, 4096, Plan(data=8, expert=8), H100)
    assert one.synced == pytest.approx(data_parallel_bytes(common, 8) / H100.link)
    two = work(mixtral, 4096, Plan(data=16, expert=8), H100)
    ports = min(H100.link, 8 * H100.network)
    assert two.synced == pytest.approx(
        data_parallel_bytes(common, 16) / ports + data_parallel_bytes(experts / 8, 2) / H100.network
    )


def test_an_exchange_over_nodes_goes_through_its_own_port():
    """Sixteen ranks of sixteen experts, one a token: half of the tokens leave their node, each by
    its GPU's port. Of tokens with two, three quarters have one or both over there, and cross once.
    """
    small, larger = (
        from_sizes(16, 2048, 16, 4096, 32000, experts=16, active_experts=k) for k in (1, 2)
    )
    plan, tokens = Plan(data=16, expert=16), 1024
    copy = 4 * tokens * small.width * 2  # out and back, forward and backward
    one = work(small, tokens, plan, H100)
    assert one.expert == pytest.approx(copy / 2 / H100.network)
    two = work(larger, tokens, plan, H100)
    assert two.expert == pytest.approx(copy * (1 - 1 / 4) / H100.network)
    inside = work(small, tokens, Plan(data=8, expert=8), H100)
    assert inside.expert == pytest.approx(copy * 7 / 8 / H100.link)


def test_chunks_divide_the_layers():
    """126 layers, and up to three more for the table, the logits and a token more."""
    model = decoder("llama3_405b")
    for stages, chunks in ((7, 9), (16, 8), (3, 43)):  # 126, 128, 129
        step(model, 4096, Plan(pipeline=stages, chunks=chunks), H100)
    for stages, chunks in ((16, 3), (5, 26), (4, 33), (16, 5)):  # 144, 130, 132, 160
        plan = Plan(pipeline=stages, micro_batches=16, chunks=chunks)
        words = f"chunks = {chunks}: .*126 layers over {stages} stages"
        for ask in (step, memory_use, lambda *given: expected_memory(*given, HOLDS)):
            with pytest.raises(BadArgument, match=words):
                ask(model, 4096, plan, H100)
    many = Plan(pipeline=np.array([16, 16]), chunks=np.array([8, 5]))
    with pytest.raises(BadArgument, match="chunks = 5"):
        work(model, 4096, many, H100)
    with pytest.raises(BadArgument, match="schedule"):
        Plan(pipeline=4, chunks=2, schedule="gpipe")


def test_names_in_arrays_are_checked():
    with pytest.raises(BadArgument, match="recompute = 'some'"):
        Plan(data=np.array([1, 2]), recompute=np.array(["full", "some"]))
    with pytest.raises(BadArgument, match="tensor"):
        Plan(tensor=np.array([1, 0]))
