"""Kinds of attention: published sizes, counts by brute force, both sides of break-evens."""

import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed.attention import (
    absorption_break_even,
    attention_bytes,
    attention_flops,
    index_break_even,
    index_bytes,
    recurrence_flops,
    state_break_even,
    state_bytes,
)
from lightspeed.serving import kv_cache_bytes
from lightspeed_models.llm.config import read_config
from lightspeed_models.llm.mixers import (
    Attention,
    DeltaNet,
    LatentAttention,
    LightningAttention,
    Mamba,
)

CONFIGS = json.loads((Path(__file__).parents[1] / "published/model_configs.json").read_text())
LATENT = LatentAttention(7168, 128, 512, 64, 128, 128, 1536)
INDEXED = LatentAttention(7168, 128, 512, 64, 128, 128, 1536, 64, 128, 2048)
WIDTHS = st.integers(1, 512)


def test_caches_a_token_as_deepseek_publishes_them():
    """Table 1 of "Insights into DeepSeek-V3" (ISCA 2025), in bf16."""
    latent, gqa_70b, gqa_405b = 70.272e3, 327.680e3, 516.096e3
    assert 61 * attention_bytes(1, 1, 512 + 64, 0) == latent
    assert 80 * attention_bytes(1, 8, 128, 128) == gqa_70b
    assert 126 * attention_bytes(1, 8, 128, 128) == gqa_405b


def test_latent_attention_caches_as_much_as_two_and_a_quarter_groups():
    """Section 2.1.4 of DeepSeek-V2 (2024)."""
    assert attention_bytes(1, 1, 576, 0) == 2.25 * attention_bytes(1, 1, 128, 128)


@given(context=st.integers(1, 10**7), heads=WIDTHS, width=WIDTHS)
def test_shared_heads_are_the_cache_of_chapter_4(context, heads, width):
    assert attention_bytes(context, heads, width, width) == kv_cache_bytes(1, heads, width, context)


@given(context=st.integers(0, 10**6), window=st.integers(1, 10**6))
def test_a_window_reads_what_is_in_it(context, window):
    seen = len(range(max(0, context - window), context))
    assert attention_bytes(context, 2, 64, 64, most=window) == 512 * seen
    assert attention_flops(context, 2, 64, 64, window) == 512 * seen


def latent_flops(new, cached, absorbed):
    """FLOPs of scores and results of `new` tokens over `cached`, product by product."""
    total = 0
    for _ in range(128):  # heads
        if absorbed:
            total += new * 2 * 128 * 512  # the query through the matrix of keys
            total += new * cached * 2 * (512 + 64) + new * cached * 2 * 512
            total += new * 2 * 512 * 128  # the result through the matrix of values
        else:
            total += (cached + new) * 2 * 512 * (128 + 128)
            total += new * cached * 2 * (128 + 64) + new * cached * 2 * 128
    return total


def test_beyond_the_break_even_it_pays_to_expand():
    new, cached = absorption_break_even(512, 128, 128), 10**6
    below, above = math.floor(new), math.ceil(new)
    assert latent_flops(below, cached, True) < latent_flops(below, cached, False)
    assert latent_flops(above, cached, True) > latent_flops(above, cached, False)
    assert absorption_break_even(128, 128, 128) == math.inf  # the vector is as short as a head


@given(top=st.integers(1, 10**5), width=st.integers(1, 256))
def test_an_index_reads_less_beyond_its_break_even(top, width):
    mixer = LatentAttention(7168, 128, 512, 64, 128, 128, 1536, 64, width, top)
    even = index_break_even(1152, index_bytes(1, width), top)
    assert even > top
    for context in (even * 0.99, even * 1.01):
        assert (mixer.read_bytes(context, 2) < LATENT.read_bytes(context, 2)) == (context > even)
    assert index_break_even(64, index_bytes(1, 128), top) == math.inf


def test_a_state_is_outgrown_at_its_break_even():
    delta = DeltaNet(4096, 16, 64, 128, 128, 4)
    full = Attention(4096, 32, 2, 256)
    even = state_break_even(delta.state(2), full.growth(2))
    assert full.read_bytes(even, 2) == pytest.approx(delta.state(2))
    assert even > state_break_even(state_bytes(64, 128, 128), full.growth(2)) == 2048


def chunked(q, k, v, chunk):
    """Linear attention of one head, chunk by chunk, and the FLOPs that it took."""
    state, out, flops = np.zeros((k.shape[1], v.shape[1])), [], 0
    for start in range(0, len(q), chunk):
        qs, ks, vs = (x[start : start + chunk] for x in (q, k, v))
        for i in range(len(qs)):
            scores = ks[: i + 1] @ qs[i]
            out.append(qs[i] @ state + scores @ vs[: i + 1])
            flops += 2 * state.size + 2 * ks[: i + 1].size + 2 * vs[: i + 1].size
        state = state + ks.T @ vs
        flops += 2 * len(ks) * state.size
    return np.array(out), flops


@pytest.mark.parametrize("chunk", [1, 4, 8, 16])
def test_chunks_give_the_same_and_cost_what_the_law_says(chunk):
    q, k, v = np.random.default_rng(1).normal(size=(3, 16, 8))
    v = v[:, :5]
    out, flops = chunked(q, k, v, chunk)
    assert out == pytest.approx(np.tril(q @ k.T) @ v)
    assert flops == 16 * recurrence_flops(1, 8, 5, chunk)


@pytest.mark.parametrize(
    ("mixer", "heads", "keys", "values"),
    [
        (DeltaNet(64, 2, 4, 16, 32, 1), 4, 16, 32),
        (Mamba(64, 4, 32, 16, 1, 1), 4, 16, 32),
        (LightningAttention(64, 4, 16), 4, 16, 16),
    ],
)
def test_a_recurrence_remembers_a_matrix_a_head(mixer, heads, keys, values):
    assert mixer.state(2) == np.zeros((heads, keys, values), np.float32).nbytes
    assert mixer.growth(2) == 0


def test_whole_models_take_arrays_of_contexts():
    """Every architecture that is known, each kind of attention among them."""
    contexts = np.array([0, 1.5, 1000, 131072])
    for name, entry in CONFIGS.items():
        if name == "_about":
            continue
        decoder = read_config(entry["config"])
        decoded = functools.partial(decoder.flops_per_token, phase="decode")
        for law in (decoder.read_bytes, decoder.request_bytes, decoded):
            assert law(contexts) == pytest.approx([law(c) for c in contexts]), (name, law)


def test_what_each_layer_of_a_sparse_model_reads_stops_at_its_pick():
    far, near = INDEXED.read_bytes(10**6, 2), LATENT.read_bytes(10**6, 2)
    assert far == 2048 * 1152 + 10**6 * 132 and near == 10**6 * 1152
