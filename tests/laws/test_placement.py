"""Which ranks share a node: the closed forms against every group of every small cluster, and the
orders of a plan against every way to put ranks into nodes.
"""

import itertools
from dataclasses import replace
from fractions import Fraction
from math import prod

import pytest

from lightspeed.catalog import link
from lightspeed.errors import BadArgument
from lightspeed_models.llm import decoder
from lightspeed_models.plan import (
    AXES,
    Plan,
    expert_neighbours,
    machine,
    neighbours,
    spans,
)
from lightspeed_models.training_step import step, work

ORDERS = list(itertools.permutations(AXES))
SETS = [axes for n in (1, 2, 3) for axes in itertools.combinations(AXES, n)]


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def sizes_of(gpus):
    """Every split of so many GPUs over the four axes."""
    for a, b in itertools.product(divisors(gpus), repeat=2):
        for c in divisors(gpus):
            if gpus % (a * b * c) == 0:
                yield dict(zip(AXES, (a, b, c, gpus // (a * b * c)), strict=True))


def places(sizes, order):
    """Rank -> its place on each axis, the first of the order running fastest."""
    found = []
    for rank in range(prod(sizes.values())):
        place = {}
        for axis in order:
            rank, place[axis] = divmod(rank, sizes[axis])
        found.append(place)
    return found


def groups(ranks, axes):
    """The ranks of each group over these axes: they agree in their places on all the others."""
    found = {}
    for rank, place in enumerate(ranks):
        key = tuple(place[a] for a in AXES if a not in axes)
        found.setdefault(key, []).append(rank)
    return list(found.values())


@pytest.mark.parametrize(("gpus", "per_node"), [(8, 4), (12, 4), (16, 8), (24, 8), (18, 6), (6, 8)])
def test_groups_share_the_slots_of_a_node(gpus, per_node):
    """Of every split and order: whether any group leaves its node; where all sizes fit into each
    other, how many of it share one; and a ring's time, bytes that leave a node over its ports.
    """
    for sizes, order in itertools.product(sizes_of(gpus), ORDERS):
        plan, ranks = Plan(**sizes, placement=order), places(sizes, order)
        for axes in SETS:
            nodes = [[rank // per_node for rank in group] for group in groups(ranks, axes)]
            across = any(len(set(group)) > 1 for group in nodes)
            assert spans(plan, per_node, *axes) == across, (sizes, order, axes)
            near = neighbours(plan, per_node, *axes)
            blocks = list(itertools.accumulate((sizes[a] for a in order), lambda a, b: a * b))
            if all(per_node % b == 0 or b % per_node == 0 for b in blocks):
                together = {group.count(node) for group in nodes for node in group}
                assert together == {near}, (sizes, order, axes)
                if across:  # of each ring that has ranks in node 0, one leaves it
                    leave = sum(0 in group for group in nodes)
                    assert Fraction(leave, per_node) == Fraction(1, int(near))


@pytest.mark.parametrize(("gpus", "per_node"), [(8, 4), (9, 3), (12, 6), (12, 4)])
def test_no_way_to_fill_nodes_beats_every_order(gpus, per_node):
    """Of all ways to put ranks into nodes, none keeps a set of axes inside that no order does."""
    for sizes in sizes_of(gpus):
        ranks = places(sizes, AXES)
        by_order = {
            frozenset(a for a in AXES if not spans(Plan(**sizes, placement=order), per_node, a))
            for order in ORDERS
        }
        pairs = {
            a: [pair for g in groups(ranks, (a,)) for pair in itertools.pairwise(g)] for a in AXES
        }
        for node in fillings(tuple(range(gpus)), per_node):
            kept = {a for a in AXES if all(node[one] == node[two] for one, two in pairs[a])}
            assert any(kept <= inside for inside in by_order), (sizes, node)


def fillings(ranks, per_node, node=0):
    """Every way to put ranks into nodes alike: rank -> node."""
    if not ranks:
        yield {}
        return
    first, *rest = ranks
    for others in itertools.combinations(rest, per_node - 1):
        own = dict.fromkeys((first, *others), node)
        left = tuple(rank for rank in rest if rank not in own)
        for more in fillings(left, per_node, node + 1):
            yield own | more


def test_experts_over_the_ranks_of_a_stage():
    """Every expert once a copy, by hand: a stage's ranks, sharers side by side, by node."""
    for sizes in sizes_of(16):
        for order, experts in itertools.product(ORDERS, (1, 2, 4, 8, 16)):
            stage_ranks = sizes["tensor"] * sizes["context"] * sizes["data"]
            if stage_ranks % experts:
                continue
            plan = Plan(**sizes, expert=experts, placement=order)
            stage = [r for r, p in enumerate(places(sizes, order)) if p["pipeline"] == 0]
            ways = experts * plan.expert_tensor
            assert stage_ranks % ways == 0
            group = stage[:ways][:: plan.expert_tensor]
            near = [rank // 8 for rank in group].count(group[0] // 8)
            assert expert_neighbours(plan, 8) == near, (sizes, order, experts)


def test_a_way_that_is_placed_later_pays_for_it():
    """64 GPUs, data 8, pipeline 8: only one of them fits a node of eight, whichever."""
    llama, h100 = decoder("llama3_8b"), machine("h100_sxm", "infiniband_ndr")
    plan = Plan(data=8, pipeline=8, micro_batches=8)
    first = work(llama, 4096, plan, h100)
    assert (first.data_across, first.pipeline_across) == (False, True)
    swapped = Plan(
        data=8, pipeline=8, micro_batches=8, placement=("tensor", "context", "pipeline", "data")
    )
    second = work(llama, 4096, swapped, h100)
    assert (second.data_across, second.pipeline_across) == (True, False)
    assert second.synced / first.synced == pytest.approx(h100.link / h100.network)
    assert first.hop / second.hop == pytest.approx(h100.link / h100.network)
    assert step(llama, 4096, plan, h100).time != step(llama, 4096, swapped, h100).time


def test_no_ring_is_faster_over_nodes_than_inside():
    """An H800's link is slower than its node's eight ports together."""
    h100, llama = machine("h100_sxm", "infiniband_ndr"), decoder("llama3_8b")
    h800 = replace(h100, link=link("nvlink4_h800").bandwidth)
    inside, over = (work(llama, 4096, Plan(tensor=t), h800).tensor for t in (8, 16))
    assert over > inside


def test_bad_placements_are_refused():
    for bad in (("tensor", "data"), ("tensor", "tensor", "data", "pipeline"), ("expert", *AXES)):
        with pytest.raises(BadArgument, match="placement"):
            Plan(placement=bad)
