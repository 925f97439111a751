"""A step of prompts and decoding rows together: closed forms and limits."""

import numpy as np
import pytest

from lightspeed.errors import BadArgument
from lightspeed.inference import sharded_step
from lightspeed_models.llm import decoder
from lightspeed_models.llm.decoder import Decoder, Experts, Layer, Mlp
from lightspeed_models.llm.mixers import Attention, LightningAttention
from lightspeed_models.llm.step import (
    IDEAL,
    Engine,
    Replica,
    mixed_step,
    replica,
    step_bill,
)

H100 = Replica(989e12, 3.35e12, 450e9)
WIDTH, VOCABULARY = 1024, 32_000


def of_one_layer(mixer, mlp=None):
    mlp = mlp or Mlp(WIDTH, 4096)
    return Decoder(WIDTH, VOCABULARY, False, (Layer(mixer, mlp, 0, 1),), 0)


PLAIN = of_one_layer(Attention(WIDTH, 8, 2, 128))


def test_one_layer_by_hand():
    rows, held = 5, 1000
    attention, mlp = 1024 * (8 + 2 + 2 + 8) * 128, 3 * 1024 * 4096
    logits = WIDTH * VOCABULARY
    weights = 2 * (attention + mlp + logits)
    kv = rows * held * 2 * 2 * 128 * 2
    flops = rows * (2 * (attention + mlp + logits) + 2 * 8 * 256 * held)
    assert mixed_step(PLAIN, H100, 0, rows, held) == sharded_step(
        float(weights), float(kv), float(flops), H100.peak, H100.memory
    )


@pytest.mark.parametrize("name", ["DeepSeek-V3", "MiniMax-M2.5"])
def test_of_experts_those_that_all_tokens_choose_are_read(name):
    model, gpus = decoder(name), replica("b200", 8, 1, "fp8")
    alone = step_bill(model, gpus, 0, 1, 1000).weight_bytes
    many = step_bill(model, gpus, 0, 1e5, 1000).weight_bytes
    outside = 0 if model.tied_embeddings else model.width * model.vocabulary
    norms = 0.001 * model.parameters
    assert many == pytest.approx((model.parameters - outside) / 8, abs=norms)
    assert alone == pytest.approx((model.active_parameters - outside) / 8, rel=0.02)


def test_together_is_shorter_than_apart_by_the_weights_read_once():
    held = {"contexts": 500, "seen": 100}
    both = step_bill(PLAIN, H100, 64, 8, **held)
    prompt, rows = step_bill(PLAIN, H100, 64, 0, **held), step_bill(PLAIN, H100, 0, 8, **held)
    assert both.weight_bytes == prompt.weight_bytes == rows.weight_bytes
    for name in ("kv_bytes", "flops"):
        apart = getattr(prompt, name) + getattr(rows, name)
        assert getattr(both, name) == pytest.approx(apart, rel=1e-12)


def test_each_kind_of_attention_reads_what_it_keeps():
    def kv(mixer, held):
        return step_bill(of_one_layer(mixer), H100, 0, 1, held).kv_bytes

    window = Attention(WIDTH, 8, 2, 128, window=512)
    assert kv(window, 100_000) == kv(window, 512) < kv(Attention(WIDTH, 8, 2, 128), 513)
    state = LightningAttention(WIDTH, 8, 128)
    assert kv(state, 1) == kv(state, 100_000) == 8 * 128**2 * 4


def test_arrays_are_the_numbers_one_by_one():
    tokens, rows = np.array([0.0, 512.0, 8192.0]), np.array([3.0, 0.0, 200.0])
    for name in ("Qwen3.5-397B-A17B", "GLM-5", "gpt-oss-120b"):
        model, gpus = decoder(name), replica("b200", 1, 8)
        engine = Engine(0.7, 3e-5, 1e-6, math=0.5, expert_host=9e-5, row=1e-5)
        found = mixed_step(model, gpus, tokens, rows, 3000.0, 700.0, engine=engine).time
        each = [
            mixed_step(model, gpus, t, r, 3000.0, 700.0, engine=engine).time
            for t, r in zip(tokens.tolist(), rows.tolist(), strict=True)
        ]
        assert found == pytest.approx(each, rel=1e-12), name


def test_what_an_engine_adds():
    model = of_one_layer(Attention(WIDTH, 8, 2, 128), Experts(WIDTH, 512, 8, 2))
    base = mixed_step(model, H100, 0, 8, 100)
    slow = mixed_step(model, H100, 0, 8, 100, engine=Engine(expert_host=1e-3, row=1e-4, host=5.0))
    assert slow.host == pytest.approx(1e-3 + 8e-4) and base.host == 0  # no layer without experts
    half = mixed_step(model, H100, 0, 8, 100, engine=Engine(share=0.5))
    assert (half.weights, half.math) == (2 * base.weights, 2 * base.math)
    assert mixed_step(model, H100, 0, 8, 100, engine=Engine(math=0.5)).math == 2 * base.math


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        (lambda: mixed_step(PLAIN, H100), "rows"),
        (lambda: mixed_step(PLAIN, H100, -1, 2), "tokens"),
        (lambda: mixed_step(PLAIN, H100, 0, float("nan")), "rows"),
        (lambda: mixed_step(PLAIN, Replica(1.0, 1.0, 1.0, 1, 2), 0, 2), "replica"),
        (lambda: Engine(math=1.5), "math"),
        (lambda: Engine(reading=-1.0), "reading"),
    ],
)
def test_bad_input_is_named(wrong, argument):
    with pytest.raises(BadArgument) as error:
        wrong()
    assert error.value.argument == argument


def test_nothing_is_faster_than_the_ideal():
    for name in ("Llama-3.1-8B", "DeepSeek-V3"):
        args = decoder(name), replica("h200_sxm", 8), 256, 32, 4000
        assert mixed_step(*args, engine=IDEAL).time < mixed_step(*args, engine=Engine(0.9)).time
