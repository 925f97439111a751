"""Models counted: parameters as published, FLOPs by closed form, caches, and what must fit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed import memory
from lightspeed.catalog import entries
from lightspeed.errors import BadArgument
from lightspeed.training import training_flops, transformer_training_flops
from lightspeed_models.llm import decoder, from_sizes, model_activation_bytes, training_memory
from lightspeed_models.llm.shipped import shape_of
from lightspeed_models.llm.training import kept_bytes_per_token

MODELS = [key for key in entries("models") if shape_of(key)]


def test_parameters_to_the_last_one():
    counted = {key: decoder(key).parameters for key in MODELS}
    printed = {key: int(entries("models")[key].parameters) for key in MODELS}
    # The paper rounds GPT-3 to 175.0e9.
    assert len(MODELS) == 14 and counted == printed | {"gpt3_175b": 174604259328}
    active = {"mixtral_8x7b": 12.88e9, "deepseek_v3": 37.55e9, "llama3_8b": 8030261248}
    for key, published in active.items():
        assert decoder(key).active_parameters == pytest.approx(published, rel=1e-3)


def test_one_count_a_phase():
    """Latent attention absorbs its expansion where it decodes; a prompt's tokens see half of it."""
    for key in MODELS:
        model = decoder(key)
        decode, prefill, training = (
            model.flops_per_token(1000, phase) for phase in ("decode", "prefill", "training")
        )
        assert prefill < training / 3 <= decode and (training / 3 < decode) == (
            key in ("deepseek_v3", "kimi_k2_5")
        )
        assert model.training_flops(1, 1000) == pytest.approx(float(training))
    v3 = decoder("deepseek_v3")
    assert round(v3.flops_per_token(1000, "training") / 3e9, 1) == 78.2
    assert round(v3.flops_per_token(1000, "decode") / 1e9, 1) == 90.2


gpts = st.builds(
    lambda layers, heads, head_width, vocabulary: from_sizes(
        layers, heads * head_width, heads, 4 * heads * head_width, vocabulary, mlp_matrices=2,
        tied_embeddings=True,
    ),
    st.integers(1, 200), st.integers(1, 64), st.integers(1, 256), st.integers(1, 300_000),
)  # fmt: skip


@given(
    model=gpts,
    sequence=st.integers(1, 10**6),
    tokens=st.floats(1, 1e15),
    recomputed=st.floats(0, 1),
)
def test_a_gpt_is_the_closed_form(model, sequence, tokens, recomputed):
    """Narayanan et al. (2021): 72 (or 96) B s L h^2 (1 + s / 6h + V / 16 L h) FLOPs, and
    P = 12 L h^2 (1 + 13 / 12 h) + V h + 2 h without positions.
    """
    layers, h = model.depth, model.width
    closed = transformer_training_flops(tokens, layers, h, model.vocabulary, sequence, recomputed)
    assert model.training_flops(tokens, sequence, recomputed) == pytest.approx(closed)
    assert model.parameters == 12 * layers * h**2 + 13 * layers * h + model.vocabulary * h + 2 * h


def test_six_p_d_is_what_is_left_without_scores():
    for key in MODELS:
        model = decoder(key)
        matrices = model.matrices + model.width * model.vocabulary
        assert model.training_flops(1e12) == pytest.approx(training_flops(matrices, 1e12))


def test_caches():
    assert decoder("llama3_70b").kv_cache_bytes_per_token() == 2 * 80 * 8 * 128 * 2
    assert decoder("gpt3_175b").kv_cache_bytes_per_token() == 2 * 96 * 96 * 128 * 2
    # One compressed vector a token: a fifty-seventh of what its 128 heads would need.
    deepseek = decoder("deepseek_v3")
    assert deepseek.kv_cache_bytes_per_token() == 61 * (512 + 64) * 2
    assert 2 * 61 * 128 * 128 * 2 / deepseek.kv_cache_bytes_per_token() == pytest.approx(
        56.9, abs=0.05
    )


def test_bad_calls_say_what_was_wrong():
    sizes, model = (2, 8, 4, 16, 10), decoder("gpt2")
    for call, name in (
        (lambda: from_sizes(0, *sizes[1:]), "layers"),
        (lambda: from_sizes(1.5, *sizes[1:]), "layers"),
        (lambda: from_sizes("2", *sizes[1:]), "layers"),
        (lambda: from_sizes(2, -8, *sizes[2:]), "width"),
        (lambda: from_sizes(*sizes, kv_heads=3), "kv_heads"),
        (lambda: from_sizes(*sizes, mlp_matrices=4), "mlp_matrices"),
        (lambda: from_sizes(*sizes, experts=1, active_experts=2), "active"),
        (lambda: from_sizes(*sizes, experts=4, active_experts=2, dense_layers=2), "sparse layers"),
        (lambda: model.flops_per_token(-1, "decode"), "context"),
        (lambda: model.flops_per_token(1, "decoding"), "phase"),
        (lambda: model.training_flops(math.nan), "tokens"),
        (lambda: model.training_flops(1.0, 2, recomputed=2), "recomputed"),
        (lambda: model.training_flops(1.0, -2), "sequence"),
        (lambda: model.kv_cache_bytes_per_token(16), "element_bytes"),
        (lambda: decoder("llama3_70"), "model"),
    ):
        with pytest.raises(BadArgument) as error:
            call()
        assert error.value.argument == name


# ---------------------------------------------------------------- memory


@given(
    parameters=st.floats(1, 1e13),
    n=st.integers(1, 10**5),
    recipe=st.sampled_from(sorted(memory.RECIPES)),
)
def test_zero_splits_more_at_each_stage(parameters, n, recipe):
    totals = [memory.training_state_bytes(parameters, recipe, n, stage).total for stage in range(4)]
    assert totals[0] == pytest.approx(int(recipe) * parameters)
    assert totals[3] == pytest.approx(totals[0] / n)
    assert totals == sorted(totals, reverse=True)
    if recipe == "16":
        for stage in range(4):
            assert memory.zero_bytes_per_device(parameters, n, stage) == pytest.approx(
                totals[stage]
            )


def test_what_each_stage_splits():
    for stage, (weights, gradients, optimizer) in enumerate(
        [(2, 4, 12), (2, 4, 1.5), (2, 0.5, 1.5), (0.25, 0.5, 1.5)]
    ):
        states = memory.training_state_bytes(1, "18", 8, stage)
        assert (states.weights, states.gradients, states.optimizer) == (
            weights,
            gradients,
            optimizer,
        )


def test_one_rank_splits_nothing():
    assert len({memory.training_state_bytes(1e9, "18", 1, stage).total for stage in range(4)}) == 1


@given(
    sequence=st.integers(1, 10**5),
    batch=st.integers(1, 64),
    width=st.integers(64, 20000),
    heads=st.integers(1, 128),
    tensor=st.integers(1, 64),
)
def test_activations_by_what_is_done_again(sequence, batch, width, heads, tensor):
    def kept(**choice):
        return memory.activation_bytes(sequence, batch, width, heads, tensor=tensor, **choice)

    unit = sequence * batch * width
    assert memory.activation_bytes(sequence, batch, width, heads) == pytest.approx(
        unit * (34 + 5 * heads * sequence / width)
    )
    assert kept(split="tensor+sequence") == pytest.approx(
        memory.activation_bytes(sequence, batch, width, heads) / tensor
    )
    assert kept(split="tensor+sequence") <= kept() * (1 + 1e-12)
    assert kept(recompute="selective") <= kept()
    assert kept(recompute="full") == 2 * unit < kept(recompute="selective")


def test_the_first_stage_holds_as_much_whatever_the_depth():
    shape = (2048, 1, 12288, 96, 96, 8)
    assert memory.activation_bytes(*shape, 8) == memory.activation_bytes(*shape, 1)
    assert memory.activation_bytes(*shape, 8, 3) == pytest.approx(
        memory.activation_bytes(*shape, 8) * (1 + 7 / 24)
    )


@pytest.mark.parametrize("recompute", memory.RECOMPUTE)
@pytest.mark.parametrize("split", memory.SPLITS)
def test_a_gpt_keeps_what_its_paper_says(split, recompute):
    """Counted tensor by tensor, and by the closed form of Korthikanti et al. (2022)."""
    gpt3 = decoder("gpt3_175b")
    shape = (2048, 2, gpt3.width, gpt3.attention.heads, gpt3.depth, 8, 8, 3)
    counted = model_activation_bytes(gpt3, 2048, 2, 8, 8, 3, split, recompute)
    assert counted == pytest.approx(memory.activation_bytes(*shape, split, recompute))


@pytest.mark.parametrize("hidden", (4, 11, 32))
def test_megatrons_own_estimate(hidden):
    """theoretical_memory_usage.py: s b h (18 + 4 F / h) a layer, whatever the hidden width."""
    model = from_sizes(3, 8, 4, hidden, 10, mlp_matrices=2)
    kept = model_activation_bytes(model, 16, 2, tensor=2, split="tensor+sequence")
    assert kept == pytest.approx(3 * 16 * 2 * 8 * (18 + 4 * hidden / 8) / 2)


def test_a_gated_layer_by_its_tensors():
    """Two bytes an element. Per token of Llama 3 70B: two norms in and out, Q and the heads'
    result, K and V, gate, up, product.
    """
    llama = decoder("llama3_70b")
    elements = 4 * 8192 + 2 * 64 * 128 + 2 * 8 * 128 + 3 * 28672
    assert model_activation_bytes(llama, 100) == 80 * 100 * 2 * elements
    # No dropout: a score is kept once, in two bytes.
    with_scores = model_activation_bytes(llama, 100, recompute="none")
    assert with_scores == 80 * 100 * 2 * (elements + 64 * 100)


def test_experts_keep_what_a_token_uses():
    mixtral = decoder("mixtral_8x7b")
    elements = 4 * 4096 + 2 * 32 * 128 + 2 * 8 * 128 + 2 * (3 * 14336 + 4096)
    assert sum(kept_bytes_per_token(mixtral.layers[0])) == 2 * elements


def test_bad_activations():
    for bad in (
        {"sequence": 0},
        {"batch": 1.5},
        {"tensor": 0},
        {"split": "sequence"},
        {"recompute": "some"},
    ):
        with pytest.raises(BadArgument):
            model_activation_bytes(**{"model": decoder("gpt2"), "sequence": 8} | bad)


def test_what_deepspeed_says_of_itself():
    """stage_1_and_2.py: 2 P + 18 P / n on a GPU, max(4 n, 16) P 1.5 on the host when offloaded."""
    for n in (4, 8, 64):
        alone, moved = (
            memory.deepspeed_zero2_bytes(1e9, n, min(n, 8), offload) for offload in ("none", "cpu")
        )
        assert alone.gpu == pytest.approx(1e9 * (2 + 18 / n))
        assert (moved.gpu, moved.cpu) == (2e9, 1.5e9 * max(4 * n, 16))


def test_does_it_fit():
    model = decoder("llama3_70b")
    alone = training_memory(model, 80e9, 8192)
    assert not alone.fits
    assert alone.total > 16 * model.parameters
    split = training_memory(
        model,
        80e9,
        8192,
        data=64,
        tensor=8,
        stage=3,
        split="tensor+sequence",
        recompute="selective",
    )
    assert split.fits
    assert split.largest == "activations"
    parts = (split.weights, split.gradients, split.optimizer, split.activations, split.logits)
    assert split.total == pytest.approx(1.1 * sum(parts))
    assert split.buffers == pytest.approx(0.1 * sum(parts))
    assert training_memory(model, 80e9, 8192, pipeline=2).logits == 0
    for bad in (
        {"capacity": -1.0},
        {"waste": -0.1},
        {"tensor": 1.5},
        {"stage": 4},
        {"recipe": "14"},
    ):
        with pytest.raises(BadArgument):
            training_memory(**{"model": model, "capacity": 80e9, "sequence": 8192} | bad)
