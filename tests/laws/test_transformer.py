"""Parameters as published, FLOPs by closed form, caches, and what must fit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed import memory
from lightspeed.catalog import entries
from lightspeed.errors import BadArgument
from lightspeed.training import training_flops, transformer_training_flops
from lightspeed.transformer import Transformer, transformer

MODELS = [key for key, model in entries("models").items() if "layers" in model.about]
EXACT = [key for key in MODELS if key != "gpt3_175b"]


@pytest.mark.parametrize("key", EXACT)
def test_parameters_to_the_last_one(key):
    assert transformer(key).parameters == int(entries("models")[key].parameters)


def test_gpt3_is_what_its_shape_gives():
    assert transformer("gpt3_175b").parameters == 174604259328  # the paper rounds to 175.0e9


@pytest.mark.parametrize(
    ("key", "active"),
    [("mixtral_8x7b", 12.88e9), ("deepseek_v3", 37.55e9), ("llama3_8b", 8030261248)],
)
def test_active_parameters(key, active):
    assert transformer(key).active_parameters == pytest.approx(active, rel=1e-3)


@pytest.mark.parametrize("key", MODELS)
def test_the_parts_are_the_whole(key):
    model = transformer(key)
    everything = Transformer(**{**vars(model), "active_experts": model.experts})
    assert everything.active_parameters == model.parameters
    assert everything.block_matrices + model.embeddings + model.norms_and_biases == model.parameters
    assert model.active_parameters <= model.parameters


gpts = st.builds(
    lambda layers, heads, head_width, vocabulary: Transformer(layers, heads * head_width, heads,
        head_width, 4 * heads * head_width, vocabulary, mlp_matrices=2, tied_embeddings=True),
    st.integers(1, 200), st.integers(1, 64), st.integers(1, 256), st.integers(1, 300_000),
)  # fmt: skip


@given(
    model=gpts,
    sequence=st.integers(1, 10**6),
    tokens=st.floats(1, 1e15),
    recomputed=st.floats(0, 1),
)
def test_flops_of_a_gpt_are_the_closed_form(model, sequence, tokens, recomputed):
    """Narayanan et al. (2021): 72 (or 96) B s L h^2 (1 + s / 6h + V / 16 L h)."""
    closed = transformer_training_flops(
        tokens, model.layers, model.width, model.vocabulary, sequence, recomputed
    )
    assert model.training_flops(tokens, sequence, recomputed) == pytest.approx(closed)


@given(model=gpts)
def test_parameters_of_a_gpt_are_the_closed_form(model):
    """P = 12 L h^2 (1 + 13 / 12 h) + V h + 2 h, without positions."""
    layers, h = model.layers, model.width
    assert model.parameters == 12 * layers * h**2 + 13 * layers * h + model.vocabulary * h + 2 * h


@pytest.mark.parametrize("key", MODELS)
def test_six_p_d_is_what_is_left_without_scores(key):
    model = transformer(key)
    matrices = model.block_matrices + model.width * model.vocabulary
    assert model.training_flops(1e12) == pytest.approx(training_flops(matrices, 1e12))
    assert model.training_flops(1.0, 4096) == pytest.approx(3 * model.flops_per_token(4096))


def test_caches():
    assert transformer("llama3_70b").kv_cache_bytes_per_token() == 2 * 80 * 8 * 128 * 2
    assert transformer("gpt3_175b").kv_cache_bytes_per_token() == 2 * 96 * 96 * 128 * 2
    many = Transformer(**{**vars(transformer("llama3_70b")), "kv_heads": 64})
    assert (
        many.kv_cache_bytes_per_token() == 8 * transformer("llama3_70b").kv_cache_bytes_per_token()
    )
    # One compressed vector a token: a fifty-seventh of what its 128 heads would need.
    deepseek = transformer("deepseek_v3")
    assert deepseek.kv_cache_bytes_per_token() == 61 * (512 + 64) * 2
    assert 2 * 61 * 128 * 128 * 2 / deepseek.kv_cache_bytes_per_token() == pytest.approx(
        56.9, abs=0.05
    )


SHAPE = {"layers": 2, "width": 8, "heads": 4, "head_width": 2, "hidden": 16, "vocabulary": 10}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layers", 0),
        ("layers", 1.5),
        ("layers", True),
        ("layers", "2"),
        ("layers", math.nan),
        ("width", -8),
        ("kv_heads", 3),
        ("mlp_matrices", 4),
        ("active_experts", 2),
        ("experts", -1),
    ],
)
def test_no_such_shape(name, value):
    with pytest.raises(BadArgument) as error:
        Transformer(**{**SHAPE, name: value})
    assert error.value.argument == name


def test_bad_calls_say_what_was_wrong():
    model = Transformer(**SHAPE)
    for call, name in (
        (lambda: model.flops_per_token(-1), "context"),
        (lambda: model.training_flops(math.nan), "tokens"),
        (lambda: model.training_flops(1.0, 2, recomputed=2), "recomputed"),
        (lambda: model.training_flops(1.0, 2.5), "sequence"),
        (lambda: model.kv_cache_bytes_per_token(16), "element_bytes"),
        (lambda: transformer("llama3_70"), "key"),
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
    gpt3 = transformer("gpt3_175b")
    shape = (2048, 2, gpt3.width, gpt3.heads, gpt3.layers, 8, 8, 3)
    counted = memory.transformer_activation_bytes(gpt3, 2048, 2, 8, 8, 3, split, recompute)
    assert counted == pytest.approx(memory.activation_bytes(*shape, split, recompute))


@pytest.mark.parametrize("hidden", (4, 11, 32))
def test_megatrons_own_estimate(hidden):
    """theoretical_memory_usage.py: s b h (18 + 4 F / h) a layer, whatever the hidden width."""
    model = Transformer(3, 8, 4, 2, hidden, 10, mlp_matrices=2)
    kept = memory.transformer_activation_bytes(model, 16, 2, tensor=2, split="tensor+sequence")
    assert kept == pytest.approx(3 * 16 * 2 * 8 * (18 + 4 * hidden / 8) / 2)


def test_a_gated_layer_by_its_tensors():
    """Two bytes an element. Per token of Llama 3 70B: two norms in and out, Q and the heads'
    result, K and V, gate, up, product.
    """
    llama = transformer("llama3_70b")
    elements = 4 * 8192 + 2 * 64 * 128 + 2 * 8 * 128 + 3 * 28672
    assert memory.transformer_activation_bytes(llama, 100) == 80 * 100 * 2 * elements
    # No dropout: a score is kept once, in two bytes.
    with_scores = memory.transformer_activation_bytes(llama, 100, recompute="none")
    assert with_scores == 80 * 100 * 2 * (elements + 64 * 100)


def test_experts_keep_what_a_token_uses():
    mixtral = transformer("mixtral_8x7b")
    elements = 4 * 4096 + 2 * 32 * 128 + 2 * 8 * 128 + 2 * (3 * 14336 + 4096)
    assert sum(mixtral.kept_bytes_per_token()) == 2 * elements
    assert sum(transformer("deepseek_v3").kept_bytes_per_token()) > 0


def test_bad_activations():
    for bad in (
        {"sequence": 0},
        {"batch": 1.5},
        {"tensor": 0},
        {"split": "sequence"},
        {"recompute": "some"},
    ):
        with pytest.raises(BadArgument):
            memory.transformer_activation_bytes(
                **{"model": transformer("gpt2"), "sequence": 8} | bad
            )


def test_what_deepspeed_says_of_itself():
    """stage_1_and_2.py: 2 P + 18 P / n on a GPU, max(4 n, 16) P 1.5 on the host when offloaded."""
    for n in (4, 8, 64):
        alone, moved = (
            memory.deepspeed_zero2_bytes(1e9, n, min(n, 8), offload) for offload in ("none", "cpu")
        )
        assert alone.gpu == pytest.approx(1e9 * (2 + 18 / n))
        assert (moved.gpu, moved.cpu) == (2e9, 1.5e9 * max(4 * n, 16))


def test_does_it_fit():
    model = transformer("llama3_70b")
    alone = memory.training_memory(model, 80e9, 8192)
    assert not alone.fits
    assert alone.total > 16 * model.parameters
    split = memory.training_memory(
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
    assert memory.training_memory(model, 80e9, 8192, pipeline=2).logits == 0
    for bad in (
        {"capacity": -1.0},
        {"waste": -0.1},
        {"tensor": 1.5},
        {"stage": 4},
        {"recipe": "14"},
    ):
        with pytest.raises(BadArgument):
            memory.training_memory(**{"model": model, "capacity": 80e9, "sequence": 8192} | bad)
