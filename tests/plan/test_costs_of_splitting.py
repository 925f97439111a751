"""Context, expert and tensor parallelism cost what they cost: launches, and products at the shapes
of a rank.
"""

from dataclasses import replace

import numpy as np
import pytest

from lightspeed.errors import BadArgument
from lightspeed.parallel import hybrid_sharded_bytes
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, machine
from lightspeed_models.products import rates
from lightspeed_models.rank_products import layer_products, layer_scores
from lightspeed_models.stack import Stack
from lightspeed_models.stack import stack as stack_of
from lightspeed_models.training_step import layers_of_stage, seconds, whole_layers, work
from lightspeed_tools.plan import inputs
from lightspeed_tools.plan.answer import Job, cost, described

H100 = replace(machine("h100_sxm", "infiniband_ndr"), products=rates("h100_sxm"))
LLAMA, DEEPSEEK = decoder("llama3_70b"), decoder("deepseek_v3")


def test_products_of_one_rank_are_near_their_share_of_the_peak():
    """One GPU, large matrices: launches weigh nothing, and scores run at half their count, forward
    and backward 2.5 times at 0.85 of the rate, the slower the shorter the sequence.
    """
    rates, kernel = H100.products, H100.products.kernel
    time = layer_products(LLAMA, 8192, Plan(), H100, rates) + layer_scores(
        LLAMA, 8192, Plan(), rates
    )
    matrices = 6 * LLAMA.matrices / LLAMA.depth * 8192
    scores = (1 + 2.5 / 0.85) * 2 * 64 * 128 * 8192**2 * (1 + rates.ramp / 8192)
    least = matrices / (H100.peak * kernel.compute_share) + scores / rates.scores
    assert least < time < 1.03 * least


@pytest.mark.parametrize("axis", ["tensor", "context"])
def test_products_cut_in_n_take_more_than_an_nth(axis):
    whole = layer_products(LLAMA, 8192, Plan(), H100, H100.products)
    before = 1.0
    for n in (2, 4, 8, 16, 32):
        cut = layer_products(LLAMA, 8192, Plan(**{axis: n}), H100, H100.products)
        loss = cut * n / whole
        assert loss > before
        before = loss


def test_experts_that_are_few_tokens_each_are_slow():
    """The weights of an expert are read however few tokens come: spread wider, a rank has fewer
    experts and each has more tokens.
    """
    times = [
        layer_products(DEEPSEEK, 4096, Plan(data=256, expert=e), H100, H100.products)
        for e in (1, 8, 64, 256)
    ]
    assert times == sorted(times, reverse=True) and times[0] > 1.2 * times[-1]


@pytest.mark.parametrize(
    "axis, model, exchanges",
    [("context", LLAMA, 3 * 7), ("tensor", LLAMA, 8), ("expert", DEEPSEEK, 4 * 58 / 61)],
)
def test_each_exchange_costs_a_launch(axis, model, exchanges):
    more = {"data": 8} if axis == "expert" else {}
    plan = Plan(**{axis: 8}, **more, micro_batches=4)
    none, some = (
        seconds(work(model, 8192, plan, H100, stack), stack)
        for stack in (Stack(), Stack(launch=1e-5))
    )
    assert some[axis] - none[axis] == pytest.approx(4 * model.depth * exchanges * 1e-5)
    assert {n for n in none if none[n] != some[n]} <= {axis, "bubble", "data", "hidden"}


def test_what_hides_costs_its_part():
    """Each constant moves its own term alone, by what it says."""
    plan = Plan(data=16, tensor=4, pipeline=4, micro_batches=16, stage=1)
    counted = work(LLAMA, 8192, plan, H100, Stack())

    def terms(**constants):
        return seconds(counted, Stack(**constants))

    none = terms()
    half = terms(overlap=0.5)
    assert half["tensor"] == pytest.approx(none["tensor"] / 2)
    some = terms(contention=0.3)
    assert some["data"] - none["data"] == pytest.approx(0.3 * none["hidden"])
    steady = terms(exposed=1.0)
    fill = 3  # stages but one
    assert steady["pipeline"] == pytest.approx(none["pipeline"] * (fill + 16) / fill)
    # No product hides more than it takes; over nodes nothing hides.
    slow = replace(H100, link=1e9)
    tensor = seconds(work(LLAMA, 8192, plan, slow, Stack()), Stack(overlap=1.0))["tensor"]
    alone = work(LLAMA, 8192, plan, slow, Stack())
    assert tensor == pytest.approx(16 * 20 * (alone.tensor - alone.compute - alone.scores))
    wide = work(LLAMA, 8192, Plan(tensor=16), H100, Stack())
    assert seconds(wide, Stack(overlap=1.0))["tensor"] == seconds(wide, Stack())["tensor"]


def test_a_layer_of_experts_waits_for_its_host():
    plan = Plan(data=8, expert=8, micro_batches=4)
    none, some = (
        seconds(work(DEEPSEEK, 4096, plan, H100, Stack()), stack)
        for stack in (Stack(), Stack(sync=1e-3))
    )
    assert some["expert"] - none["expert"] == pytest.approx(4 * 58 * 1e-3)
    dense = work(LLAMA, 4096, Plan(micro_batches=4), H100, Stack())
    assert seconds(dense, Stack(sync=1e-3)) == seconds(dense, Stack())


def test_no_split_has_no_launch():
    one, other = (
        seconds(work(LLAMA, 8192, Plan(micro_batches=4), H100, stack), stack)
        for stack in (Stack(), Stack(launch=1.0))
    )
    assert one == other


def test_arrays_are_the_scalars():
    each = [
        Plan(8, t, p, e, c, 16, 2, recompute=r)
        for t, p, e, c, r in [
            (1, 1, 1, 1, "full"), (8, 4, 8, 2, "selective"), (4, 2, 64, 4, "full"),
            (16, 1, 128, 1, "selective"),
        ]
    ]  # fmt: skip
    names = ("data", "tensor", "pipeline", "expert", "context", "micro_batches", "micro_size")
    columns = {n: np.array([getattr(p, n) for p in each]) for n in names}
    many = Plan(**columns, recompute=np.array([p.recompute for p in each]))
    shipped = stack_of("megatron_h100"), stack_of("megatron_h100_experts")
    for stack in (Stack(launch=1e-5, whole_layers=True, cut="even"), Stack(), *shipped):
        together = seconds(work(DEEPSEEK, 4096, many, H100, stack), stack)
        for i, plan in enumerate(each):
            alone = seconds(work(DEEPSEEK, 4096, plan, H100, stack), stack)
            for name, value in alone.items():
                got = np.broadcast_to(together[name], len(each))[i]
                assert got == pytest.approx(value, rel=1e-12, abs=1e-15), name


@pytest.mark.parametrize("stages, chunks", [(1, 1), (8, 1), (16, 1), (8, 4), (18, 7), (50, 1)])
def test_an_even_cut_places_every_layer_once(stages, chunks):
    model = decoder("llama3_405b")
    cut = [layers_of_stage(model, stages, at, chunks, "even") for at in range(stages)]
    assert sum(cut) == 126 and min(cut) >= 0
    most = -(-126 // (stages * chunks)) * chunks
    assert max(cut) == most == whole_layers(model, stages, chunks, "even")[0]
    missing = most * stages - 126
    # The table stands in for a layer of the first stage, the logits for one of the last.
    assert cut[0] == most - (missing >= 2)


def test_what_a_router_and_a_format_save_of_the_exchanges():
    """At most four of eight nodes a token, fp8 on the way out, and another micro-batch's arithmetic
    before them, on the processors that don't send.
    """
    plan = Plan(data=128, pipeline=16, expert=64, micro_batches=120, stage=1)
    free = Stack()
    whole = work(DEEPSEEK, 4096, plan, H100, free)
    limited = work(DEEPSEEK, 4096, plan, H100, Stack(expert_nodes=4))
    assert limited.expert / whole.expert == pytest.approx(4 / 8 / (1 - (1 - 1 / 8) ** 8))
    assert work(DEEPSEEK, 4096, plan, H100, Stack(expert_nodes=64)).expert == whole.expert
    narrow = work(DEEPSEEK, 4096, plan, H100, Stack(token_bytes=1.5))
    assert narrow.expert == pytest.approx(0.75 * whole.expert)
    none, some = (seconds(whole, s) for s in (free, Stack(expert_overlap=1.0, sm_tax=20 / 132)))
    assert some["expert"] < none["expert"] and some["compute"] > none["compute"]
    each = 120 * DEEPSEEK.depth / 16
    hidden = each * (whole.compute + whole.scores) / (1 - 20 / 132)
    assert none["expert"] - some["expert"] == pytest.approx(min(none["expert"], hidden))


def test_deepseek_v3_in_days():
    """2,664,000 GPU-hours of H800 for 14.8T tokens, failures and growing batches among them, by a
    stack of which nothing was fitted to it (technical report, table 1 and section 4.2).
    """
    cluster = inputs.cluster_of("h800:2048", "fp8")
    setting, machine = inputs.given_stack("deepseek_v3", cluster, DEEPSEEK)
    job = Job("DeepSeek-V3", DEEPSEEK, 4096, 15360, cluster, machine, setting)
    plan = Plan(data=128, pipeline=16, expert=64, micro_batches=120, stage=1)
    one = described(plan, job)
    found = cost(job, one["step_seconds"], 14.8e12, one["range_seconds"])
    days = 2.664e6 / 2048 / 24
    assert found["days_with_failures"] == pytest.approx(days, rel=0.25)
    assert found["days_range"][0] < days < found["days_range"][1]


def test_what_hybrid_sharding_sends():
    """Gathers stay in a shard group, here a node; a shard of the gradients goes between them once.
    With ZeRO-2 PyTorch gathers for each micro-batch, others once.
    """
    plan = Plan(data=32, micro_batches=4, stage=3, shard=8)
    counted = work(LLAMA, 8192, plan, H100, Stack(drops_weights=True))
    sent = hybrid_sharded_bytes(LLAMA.parameters, 8, 4, 8, 4)
    assert counted.synced == pytest.approx(sent.inside / H100.link + sent.across / H100.network)
    assert (
        not counted.data_across
        and work(LLAMA, 8192, replace(plan, shard=0), H100, Stack()).data_across
    )
    whole, paper, torch = (
        work(LLAMA, 8192, replace(plan, stage=stage, shard=0), H100, Stack(drops_weights=on)).moved
        for stage, on in ((3, True), (2, False), (2, True))
    )
    assert paper < torch < whole and (whole - torch) / (torch - paper) == pytest.approx(4 / 3)
    with pytest.raises(BadArgument, match="shard"):
        Plan(data=32, stage=3, shard=5)
