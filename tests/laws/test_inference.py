"""A pass on several GPUs: closed forms, limits, and counts by brute force."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed.catalog import fitted, measured
from lightspeed.collectives import alltoall_time, bandwidth_bound
from lightspeed.errors import BadArgument
from lightspeed.inference import (
    burst_time,
    drafted_tokens,
    exchange_time,
    experts_read,
    interrupted_step,
    sharded_step,
)
from lightspeed.serving import decode_step, prefill_time
from lightspeed_models.llm import decoder
from lightspeed_models.llm.step import (
    Engine,
    Replica,
    engine,
    mixed_step,
    replica,
)

SIZES = st.floats(1e3, 1e12)


@given(batch=st.integers(1, 512), parameters=st.floats(1e8, 1e12), kv=SIZES)
def test_one_gpu_is_the_step_of_chapter_4(batch, parameters, kv):
    peak, bandwidth = 1e15, 3.35e12
    old = decode_step(batch, parameters, kv, peak, bandwidth)
    new = sharded_step(2 * parameters, batch * kv, 2 * parameters * batch, peak, bandwidth)
    for name in ("kv", "weights", "math", "time"):
        assert getattr(new, name) == pytest.approx(getattr(old, name), rel=1e-12)


def test_a_model_on_one_gpu_is_the_step_of_chapter_4():
    model, one = decoder("llama3_8b"), replica("h100_sxm")
    step = mixed_step(model, one, 0, 8, 1000)
    read = model.matrices + model.width * model.vocabulary
    cache = 1000 * model.kv_cache_bytes_per_token()
    old = decode_step(8, read, cache, one.peak, one.memory)
    assert (step.weights, step.kv) == pytest.approx((old.weights, old.kv))
    assert step.time == pytest.approx(old.time) and step.exchange == step.host == 0
    math = one.peak * mixed_step(model, one, 0, 8, 0.5).math / 8
    assert math == pytest.approx(model.flops_per_token(0.5, "decode"))
    prompt = mixed_step(model, one, 4096)
    assert prompt.math == pytest.approx(prefill_time(4096, model.matrices, one.peak), rel=2e-4)


@pytest.mark.parametrize(("experts", "active", "tokens"), [(4, 2, 3), (5, 1, 4), (3, 3, 2)])
def test_experts_read_by_brute_force(experts, active, tokens):
    choices = list(itertools.combinations(range(experts), active))
    hit = [len(set().union(*each)) for each in itertools.product(choices, repeat=tokens)]
    assert experts_read(tokens, experts, active) == pytest.approx(sum(hit) / len(hit))


def test_the_cache_splits_as_far_as_there_are_heads():
    llama, deepseek = decoder("llama3_70b"), decoder("deepseek_v3")
    for model, most in ((llama, 8), (deepseek, 1)):
        base = Replica(1e15, 3e12, 450e9)
        whole = mixed_step(model, base, 0, 4, 5000).kv
        for ways in (1, 2, 8, 16):
            split = mixed_step(model, replace(base, tensor=ways), 0, 4, 5000)
            assert split.kv == pytest.approx(whole / min(ways, most))


@given(tokens=st.integers(1, 10_000), n=st.integers(2, 64))
def test_exchanges_are_those_of_the_collectives(tokens, n):
    size, link = tokens * 4096 * 2, 450e9
    # Two all-reduces of each layer at their bound when a step is free; alpha counts 2 (n - 1) each.
    bound = 2 * 32 * bandwidth_bound("all_reduce", size, n, link)
    assert exchange_time(tokens, 4096, 32, n, link) == pytest.approx(bound)
    late = exchange_time(tokens, 4096, 32, n, link, 1e-6)
    assert late - bound == pytest.approx(2 * 32 * 2 * (n - 1) * 1e-6)
    # Attention not split: only the two all-to-alls, k copies of each token.
    sent = exchange_time(tokens, 4096, 32, 1, link, 1e-6, n, 8)
    assert sent == pytest.approx(32 * 2 * alltoall_time(8 * size, n, link, 1e-6))
    assert exchange_time(tokens, 4096, 32, 1, link, 1e-6) == 0


def test_without_exchange_work_divides_by_the_gpus():
    model = decoder("llama3_70b")
    free = Replica(1e15, 3e12, 1e30)
    one = mixed_step(model, free, 0, 16, 100)
    eight = mixed_step(model, replace(free, tensor=8), 0, 16, 100)
    assert eight.time == pytest.approx(one.time / 8)
    # Latency does not divide: beyond some ways more GPUs are slower.
    late = Engine(hop=5e-6)
    times = [mixed_step(model, replace(free, tensor=n), 0, 1, engine=late).time for n in (8, 64)]
    assert times[1] > times[0]


def test_experts_lie_over_all_gpus_and_attention_over_its_own():
    model = decoder("deepseek_v3")
    tensor, data = replica("h200_sxm", 8, 1, "fp8"), replica("h200_sxm", 1, 8, "fp8")
    many = 100_000  # all experts are chosen
    by_tensor, by_data = (mixed_step(model, r, 0, many) for r in (tensor, data))
    attended = 61 * model.attention.matrices + model.width * model.vocabulary
    more = (by_data.weights - by_tensor.weights) * float(tensor.memory)
    always = 58 * (3 * 2048 + 256) * model.width + 3 * 3 * model.width * 18432
    assert more == pytest.approx((attended + always) * 7 / 8)
    whole = attended + always + model.expert_parameters
    assert by_tensor.weights * float(tensor.memory) == pytest.approx(whole / 8, rel=1e-9)
    assert by_tensor.math == pytest.approx(by_data.math)


def test_what_a_prompt_costs_those_who_write():
    assert interrupted_step(0.02, 0.0, 64, 100) == 0.02
    # A replica of one request at a time reads its prompt once in its life.
    assert interrupted_step(0.02, 0.5, 1, 100) * 100 == pytest.approx(100 * 0.02 + 0.5)
    assert burst_time(7, 0.1) == pytest.approx(sum(0.1 * k for k in range(1, 8)) / 7)


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        (lambda: experts_read(4, 8, 9), "active_experts"),
        (lambda: sharded_step(-1.0, 0.0, 0.0, 1e15, 1e12), "weight_bytes"),
        (lambda: sharded_step(1.0, 0.0, 0.0, 1e15, 1e12, share=66), "share"),
        (lambda: replica("llama3_8b"), "gpu"),
        (lambda: replica("h100_sxm", number_format="fp4"), "number_format"),
        (lambda: replica("h100_sxm", number_format="int3"), "number_format"),
        (lambda: replica("h100_sxm", tensor=0), "tensor"),
        (lambda: Engine(hop=-1e-6), "hop"),
        (lambda: engine("serve"), "key"),
        (lambda: mixed_step(decoder("llama3_8b"), replica("h100_sxm")), "rows"),
        (lambda: mixed_step(decoder("llama3_8b"), replica("b200", 1, 8), 4), "replica"),
        (lambda: mixed_step(decoder("llama3_8b"), replica("b200"), math.nan), "tokens"),
    ],
)
def test_bad_input_is_named(wrong, argument):
    with pytest.raises(BadArgument) as error:
        wrong()
    assert error.value.argument == argument


def test_an_engine_stands_with_its_intervals():
    for key, table in fitted("engines").items():
        shipped = engine(key)
        for name, told in table["fitted"].items():
            assert told["low"] <= getattr(shipped, name) <= told["high"], (key, name)


def test_drafted_tokens_are_those_of_every_outcome():
    """Each of the guesses is kept or not; those before the first wrong one count, and one more."""
    for acceptance in (0.0, 0.3, 0.7, 1.0):
        for drafts in range(6):
            mean = 0.0
            for kept in itertools.product((True, False), repeat=drafts):
                chance = math.prod(acceptance if one else 1 - acceptance for one in kept)
                mean += chance * (1 + len(list(itertools.takewhile(bool, kept))))
            assert drafted_tokens(acceptance, drafts) == pytest.approx(mean, rel=1e-12)


def test_drafts_fade_as_in_public_curves():
    """Eleven curves of one to eight guesses: what the first says alone is told to 4 % in the median
    with the fading of the middle curve, 14 and 28 % too long at 5 and 8 without.
    """
    told = measured("serving")["acceptance"]
    curves = list(told["lengths"].values())
    assert len(curves) == 11
    for drafts, plain in ((3, 0.05), (5, 0.13), (8, 0.25)):
        off = {
            fading: [
                float(drafted_tokens(curve[0] - 1, drafts, fading)) / curve[drafts - 1] - 1
                for curve in curves
            ]
            for fading in (1.0, told["fading"])
        }
        assert sorted(off[1.0])[5] > plain
        assert sorted(map(abs, off[told["fading"]]))[5] < 0.04, drafts
    alone = drafted_tokens(0.8, 8, told["fading"])
    assert alone < drafted_tokens(0.8, 8) and drafted_tokens(0.8, 1, 0.5) == drafted_tokens(0.8, 1)
