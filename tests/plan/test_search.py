"""The search is exact: on small clusters every plan is tried by hand, one at a time."""

import itertools
import random

import numpy as np
import pytest

from lightspeed.errors import BadArgument
from lightspeed_models.llm import decoder, from_sizes
from lightspeed_models.plan import Plan, checked_for
from lightspeed_tools.plan.inputs import cluster_of, given_stack
from lightspeed_tools.plan.search import ROOM, bytes_of, search, seconds_of
from lightspeed_tools.plan.space import (
    ORDERS,
    RULES,
    divisors,
    rules_broken,
    sequences_of,
    space,
)

SEQUENCE = 1024


def shapes():
    """Twenty models that nobody trained, some with experts."""
    draw = random.Random(29)
    for _ in range(20):
        heads = draw.choice([4, 6, 8, 12, 16])
        experts = draw.choice([0, 0, 4, 6, 8])
        yield from_sizes(
            draw.choice([3, 5, 8, 12, 18]), 128 * heads, heads, draw.choice([2, 4]) * 512,
            draw.choice([1000, 32000]), kv_heads=draw.choice([0, heads // 2]),
            experts=experts, active_experts=min(2, experts), expert_hidden=512 * bool(experts),
        )  # fmt: skip


def plans_by_hand(model, gpus, sequences):
    """Every plan that the rules allow, found with loops."""
    few = [n for n in range(1, gpus + 1) if gpus % n == 0]
    for data, tensor, context in itertools.product(few, few, few):
        pipeline, rest = divmod(gpus, data * tensor * context)
        if rest or not pipeline:
            continue
        for size, chunks, zero_bubble in itertools.product(
            range(1, sequences + 1), range(1, model.depth + 1), (False, True)
        ):
            if sequences % (data * size) or chunks * pipeline > max(model.depth, pipeline):
                continue
            if (pipeline == 1 and (chunks > 1 or zero_bubble)) or (chunks > 1 and zero_bubble):
                continue
            if tensor > model.heads or pipeline > model.depth:
                continue
            micro_batches = sequences // (data * size)
            if chunks > 1 and micro_batches % pipeline:
                continue
            if SEQUENCE % (tensor * (2 * context if context > 1 else 1)):
                continue
            for expert in range(1, max(1, model.experts) + 1):
                if max(1, model.experts) % expert or data * tensor * context % expert:
                    continue
                for stage, again, order in itertools.product(
                    range(4), ("selective", "full"), ORDERS
                ):
                    if stage >= 2 and pipeline > 1:
                        continue
                    plan = Plan(
                        data, tensor, pipeline, expert, context, micro_batches, size, chunks,
                        stage, again, "zb_h1" if zero_bubble else "1f1b", order,
                    )  # fmt: skip
                    try:
                        checked_for(model, plan)
                    except BadArgument:
                        continue
                    yield plan


def by_hand(model, gpus, sequences, setting, machine):
    """Seconds of every plan that may stand and fits, one plan at a time."""
    for plan in plans_by_hand(model, gpus, sequences):
        if bytes_of(model, SEQUENCE, plan, machine, setting) <= ROOM * machine.capacity:
            yield seconds_of(model, SEQUENCE, plan, machine, setting)


def anew(plan):
    """Whether the order of ranks changes who shares a node of eight."""
    return plan.pipeline > 1 and plan.data > 1 and plan.tensor * plan.context < 8


@pytest.mark.parametrize("first", range(1, 65, 8))
@pytest.mark.holds("docs/your-own-question.md", "tries every plan")
def test_every_plan_of_every_number_of_gpus_is_there(first):
    models = list(shapes())
    for gpus in range(first, first + 8):
        model = models[gpus % len(models)]
        plans = space(model, gpus, 8, 12, SEQUENCE)
        found = [plans.plan(int(k)) for k in np.flatnonzero(plans.allowed.ravel())]
        wanted = {
            plan
            for plan in plans_by_hand(model, gpus, 12)
            if plan.placement == ORDERS[0] or anew(plan)
        }
        assert len(found) == len(set(found)) and set(found) == wanted, gpus


def found_on(model, gpus, sequences, key="megatron_h100", **asked):
    cluster = cluster_of(f"h100_sxm:{gpus}")
    setting, machine = given_stack(key, cluster, model)
    plans = space(model, gpus, 8, sequences, SEQUENCE, setting.able, **asked)
    return search(model, SEQUENCE, plans, machine, setting), setting, machine


LARGE = (6, 7, 10, 13, 17)  # their loops take seconds


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in range(20)]
)
def test_the_best_is_that_of_loops(number):
    model = list(shapes())[number]
    gpus = random.Random(number).choice([4, 6, 8, 12, 16])
    cluster = cluster_of(f"h100_sxm:{gpus}")
    setting, machine = given_stack("megatron_h100", cluster, model)
    setting.able.clear()  # also what Megatron can't do
    plans = space(model, gpus, 8, 8, SEQUENCE)
    found = search(model, SEQUENCE, plans, machine, setting)
    times = list(by_hand(model, gpus, 8, setting, machine))
    assert found.seconds[found.best()] == pytest.approx(min(times), rel=1e-12)
    # The second order of ranks is a plan of its own only where it changes who shares a node.
    assert {float(f"{t:.9g}") for t in found.seconds} == {float(f"{t:.9g}") for t in times}


@pytest.mark.parametrize("gpus", [24, 32, 48, 64])
def test_counts_add_up_and_each_plan_says_its_time(gpus):
    model = decoder("mixtral_8x7b")
    found, setting, machine = found_on(model, gpus, 48)
    assert sum(found.refused.values()) + len(found) == found.total
    assert found.refused.keys() == RULES.keys()
    for k in np.random.default_rng(gpus).choice(len(found), 40):
        plan = found.space.plan(int(found.place[k]))
        assert plan.gpus == gpus and plan.sequences == 48
        assert not rules_broken(model, plan, SEQUENCE, setting.able)
        one = seconds_of(model, SEQUENCE, plan, machine, setting)
        assert found.seconds[k] == pytest.approx(one, rel=1e-12)
        held = bytes_of(model, SEQUENCE, plan, machine, setting)
        assert found.memory[k] == pytest.approx(held, rel=1e-12)


def test_every_rule_forbids_something_and_says_what_it_says():
    model = decoder("llama3_8b")
    found, *_ = found_on(model, 4096, 2048)
    refused = found.refused
    assert all(refused[rule] for rule in RULES if rule not in ("limits", "filled"))
    with_limits, *_ = found_on(model, 4096, 2048, fixed={"tensor": 8}, limits={"context": 2})
    assert with_limits.refused["limits"] and len(with_limits) < len(found)
    assert set(with_limits.column("tensor")) == {8}
    assert with_limits.column("context").max() == 2
    kept = (found.column("tensor") == 8) & (found.column("context") <= 2)
    assert np.array_equal(np.sort(found.seconds[kept]), np.sort(with_limits.seconds))


def test_data_parallelism_beyond_the_batch_is_refused_by_the_batch():
    found, *_ = found_on(decoder("llama3_8b"), 64, 16)
    assert found.column("data").max() == 16
    assert found.refused["batch"]


def test_nothing_fits_and_the_nearest_says_by_how_much():
    found, setting, machine = found_on(decoder("llama3_405b"), 8, 8)
    assert not len(found) and found.best() is None
    place, held = found.nearest
    assert held > machine.capacity
    plan = found.space.plan(place)
    assert held == pytest.approx(bytes_of(decoder("llama3_405b"), SEQUENCE, plan, machine, setting))
    others = [
        bytes_of(decoder("llama3_405b"), SEQUENCE, found.space.plan(int(k)), machine, setting)
        for k in np.flatnonzero(found.space.allowed.ravel())
    ]
    assert held == pytest.approx(min(others))


@pytest.mark.parametrize("n", [1, 7, 12, 15120, 16128, 16384])
def test_divisors(n):
    assert divisors(n).tolist() == [k for k in range(1, n + 1) if n % k == 0]


def test_a_batch_that_is_no_whole_sequences():
    assert sequences_of(8192, 1024) == 8
    with pytest.raises(BadArgument, match="8,192 tokens, 8 sequences"):
        sequences_of(8000, 1024)
