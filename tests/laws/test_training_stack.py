"""A training step's bound and expectation: closed forms, limits, and its fit."""

import itertools
import random
from dataclasses import fields, replace

import numpy as np
import pytest

from lightspeed.catalog import fitted
from lightspeed.errors import BadArgument
from lightspeed_models import stack_fit
from lightspeed_models import training_step as ts
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, machine
from lightspeed_models.stack import BOUND, Stack, stack

LLAMA = decoder("llama3_8b")
H100 = machine("h100_sxm", "infiniband_ndr")
NANOTRON = stack("nanotron_h100")
STATES = [
    (key, state)
    for key, table in fitted("stacks").items()
    for state in ("", *table.get("states", {}))
]


def plans(count, seed=0):
    """Plans of every kind, on up to 64 nodes."""
    draw = random.Random(seed)
    for _ in range(count):
        yield Plan(
            data=draw.choice([1, 2, 8, 64]), tensor=draw.choice([1, 2, 8, 16, 32]),
            pipeline=draw.choice([1, 2, 4, 16]), micro_batches=draw.choice([1, 4, 32]),
            micro_size=draw.choice([1, 4]), stage=draw.choice([0, 1, 2, 3]),
            recompute=draw.choice(["selective", "full"]),
        )  # fmt: skip


def test_no_stack_is_faster_than_the_bound():
    for plan, (key, state) in itertools.product(plans(15), STATES):
        one = stack(key, state)
        # The bound does not know of sequence parallelism, nor of exchanges behind products; a stack
        # that waits for its host is slower than even that.
        least = BOUND if one.host else replace(BOUND, split=one.split, overlap=one.overlap)
        bound = ts.step(LLAMA, 4096, plan, H100, least).time
        assert ts.step(LLAMA, 4096, plan, H100, one).time >= bound, (plan, key, state)


def test_the_expectation_ends_in_the_bound():
    """Each constant at its neutral value, one after the other, only ever takes time away."""
    for plan in plans(15, seed=1):
        now, took = NANOTRON, ts.step(LLAMA, 4096, plan, H100, NANOTRON).time
        for constant in fields(Stack):
            now = replace(now, **{constant.name: getattr(BOUND, constant.name)})
            less = ts.step(LLAMA, 4096, plan, H100, now).time
            # The bound does not know of sequence parallelism; and gradients hide behind a stage, so
            # that a shorter one may show more of them.
            if constant.name != "split" and (constant.name != "whole_layers" or plan.data == 1):
                assert less <= took * (1 + 1e-12), (plan, constant.name)
            took = less
        assert now == BOUND
        assert took == ts.step(LLAMA, 4096, plan, H100).time


def test_the_law_by_hand():
    """Llama 3 8B, tensor 8 in a node, two replicas, 4 sequences in 2 micro-batches of 2: work
    binds.
    With one sequence of 512 tokens the host does.
    """
    s, plan = NANOTRON, Plan(data=2, tensor=8, micro_batches=2, micro_size=2)
    tokens, h, layers, vocabulary = 2 * 4096, 4096, 32, 128256
    rate = H100.peak * s.share
    scores = 16 * h * 4096  # a backward pass that does the scores again, as FlashAttention does
    compute = (6 * LLAMA.matrices / layers + scores) * tokens / 8 / rate
    kept = 2 * (4 * h + 2 * 128 * (32 + 8) + 3 * 14336)
    memory = s.passes * kept * tokens / 8 / H100.memory
    tensor = 16 * tokens * h * 7 / 8 / (H100.link * s.inside)
    head = 6 * vocabulary * h * tokens / 8 / rate + 8 * 4 * tokens * vocabulary / 8 / H100.memory
    micro = layers * (compute + memory + tensor) + head
    held = LLAMA.parameters / 8
    sent = 8 * held * (1 / 2) / (H100.network * s.between)
    data = max(0, sent - micro * 2 / 3) + s.latency * 7 * layers * 2
    rest = 28 * held / H100.memory + s.fixed
    assert compute + memory + tensor > s.host
    step = ts.step(LLAMA, 4096, plan, H100, s)
    assert step.time == pytest.approx(2 * micro + data + rest)
    assert step.host == 0
    short = ts.step(LLAMA, 512, replace(plan, micro_size=1), H100, s)
    assert short.compute + short.memory + short.tensor + short.host == pytest.approx(
        2 * layers * s.host + 2 * head / 16, rel=1e-9
    )


def test_host_binds_as_a_maximum():
    """Twice the work of a layer that waits for launches takes no longer, up to a point."""

    def of(n):
        return ts.step(LLAMA, 512, Plan(tensor=8, micro_size=n), H100, NANOTRON)

    layers = [of(n).time - of(n).fixed - of(n).optimizer for n in (1, 2, 64, 128)]
    assert layers[1] < 1.05 * layers[0]
    assert layers[3] == pytest.approx(2 * layers[2], rel=0.01)
    assert of(64).host == 0 < of(1).host


def test_stages_of_whole_layers():
    """No cut of whole layers beats even shares, and every layer has one stage."""
    for key, stages in itertools.product(
        ("llama3_8b", "llama3_70b", "gpt3_175b"), (1, 2, 4, 8, 16)
    ):
        model = decoder(key)
        fullest, last = ts.whole_layers(model, stages)
        head = model.width * model.vocabulary * model.depth / model.matrices
        assert max(fullest, last + head) >= (model.depth + head) / stages * (1 - 1e-12)
        assert max(0, stages - 1) * fullest + last >= model.depth
    assert ts.whole_layers(LLAMA, 1) == (32, 32)


def test_a_pipeline_by_hand():
    """(m - 1) of the busiest stage, and each stage once."""
    s = replace(NANOTRON, fixed=0, latency=0, optimizer_bytes=0)
    plan = Plan(pipeline=4, micro_batches=8)
    w = ts.work(LLAMA, 4096, plan, H100, s)
    layer = max(w.compute / s.share + s.passes * w.pass_, s.host)
    head = w.head / s.share + w.logits
    fullest, last = ts.whole_layers(LLAMA, 4)
    stage = max(fullest * layer, last * layer + head)
    hops = 2 * 3 * w.hop / s.inside
    step = ts.step(LLAMA, 4096, plan, H100, s)
    assert step.time == pytest.approx(7 * stage + 32 * layer + head + hops)


def test_states_only_add():
    healthy, slow, stalled = (
        stack("nanotron_h100", s) for s in ("", "slow_collectives", "stalled")
    )
    plan = Plan(tensor=8, pipeline=4, micro_batches=16)
    took = [ts.step(LLAMA, 4096, plan, H100, s).time for s in (healthy, slow, stalled)]
    assert took == sorted(took)
    assert took[2] - took[1] == pytest.approx(stalled.stall * 19)
    with pytest.raises(BadArgument, match="slow_collectives"):
        stack("nanotron_h100", "slow_colectives")


def test_bad_constants_are_refused():
    for name, value in (("share", 0), ("share", 45), ("host", -1e-3), ("gradient_bytes", 16),
                        ("split", "x"), ("cut", "x"), ("optimizer_bytes", -1)):  # fmt: skip
        with pytest.raises(BadArgument, match=name):
            Stack(**{name: value})


def timed(truth, spread=0.0, seed=0, count=160):
    noise = np.random.default_rng(seed)
    drawn = [p for p in plans(4 * count, seed) if p.stage < 2 and p.gpus <= 512][:count]
    return [
        stack_fit.Timed(
            f"row {k}", LLAMA, 4096, plan, H100,
            ts.step(LLAMA, 4096, plan, H100, truth).time * float(np.exp(spread * noise.normal())),
        )
        for k, plan in enumerate(drawn)
    ]  # fmt: skip


@pytest.mark.slow
def test_a_fit_finds_what_made_the_rows():
    fit = stack_fit.fit_stack(timed(NANOTRON, spread=0.02), NANOTRON, resamples=10)
    for name in stack_fit.HEALTHY:
        true = getattr(NANOTRON, name)
        assert getattr(fit.stack, name) == pytest.approx(true, rel=0.25), name
    assert not set(fit.untold) - {"fixed"}, fit.untold
    within = [
        low * 0.97 <= getattr(NANOTRON, name) <= high * 1.03
        for name, (low, high) in fit.intervals.items()
    ]
    assert sum(within) >= len(within) - 2, fit.intervals
    assert np.median(fit.errors) < 0.05


def test_a_fit_says_what_the_rows_cannot_tell():
    """One node, data parallelism alone, long micro-batches: no ring over nodes, no host to see."""
    rows = [
        replace(row, plan=plan, time=ts.step(LLAMA, 4096, plan, H100, NANOTRON).time)
        for row, plan in zip(
            timed(NANOTRON, count=24),
            [
                Plan(data=8, micro_batches=m, micro_size=n, stage=1)
                for m in range(1, 9)
                for n in (2, 4, 8)
            ],
            strict=True,
        )
    ]
    fit = stack_fit.fit_stack(rows, NANOTRON, resamples=2)
    assert fit.untold["ring"] == fit.untold["between"] == "no row depends on it"
    assert "at most" in fit.untold["host"]
    assert (fit.stack.ring, fit.stack.host) == (0, 0)
    assert fit.stack.share == pytest.approx(NANOTRON.share, rel=0.02)


def test_a_row_below_its_bound_is_refused_by_name():
    rows = timed(NANOTRON, count=14)
    rows[7] = replace(rows[7], time=rows[7].time / 1000)  # milliseconds taken for seconds
    assert list(stack_fit.impossible(rows)) == ["row 7"]
    with pytest.raises(BadArgument, match="row 7 took"):
        stack_fit.fit_stack(rows, NANOTRON)
    with pytest.raises(BadArgument, match="at least 14 rows"):
        stack_fit.fit_stack(rows[:6], NANOTRON)
