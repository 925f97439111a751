"""Experts over several GPUs: counts by brute force, limits, and what DeepEP prints of itself."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed.experts import copies_sent, exchanged_bytes, read_chance, rows_per_expert
from lightspeed.inference import experts_read


@pytest.mark.parametrize("chances", [(0.5, 0.25, 0.125), (0.4, 0.4, 0.9)])
@pytest.mark.parametrize("tokens", [1, 3])
def test_favourites_by_brute_force(chances, tokens):
    """Over all choices of all tokens, each with its probability."""
    read = 0.0
    for choice in itertools.product((False, True), repeat=tokens * len(chances)):
        weight, hit = 1.0, set()
        for at, chosen in enumerate(choice):
            expert = at % len(chances)
            weight *= chances[expert] if chosen else 1 - chances[expert]
            hit |= {expert} if chosen else set()
        read += weight * len(hit)
    assert sum(read_chance(tokens, p) for p in chances) == pytest.approx(read)


def test_favourites_leave_more_experts_unread():
    ranks = range(1, 257)
    whole = sum(1 / r for r in ranks)
    skewed = [min(1, 8 / r / whole) for r in ranks]
    for tokens in (4, 64, 512):
        assert sum(read_chance(tokens, p) for p in skewed) < experts_read(tokens, 256, 8)


@given(experts=st.integers(1, 512), tokens=st.integers(1, 4096), data=st.data())
def test_rows_add_up_to_what_the_tokens_chose(experts, tokens, data):
    active = data.draw(st.integers(1, experts))
    rows = rows_per_expert(tokens, experts, active)
    assert rows * experts_read(tokens, experts, active) == pytest.approx(tokens * active)
    assert rows >= max(1, tokens * active / experts) * (1 - 1e-9)


@pytest.mark.parametrize(("experts", "active", "ranks"), [(6, 2, 3), (8, 3, 2), (8, 4, 4)])
def test_copies_by_brute_force(experts, active, ranks):
    """Experts chosen together reach a few more ranks than one by one; one a token, as many."""
    each = experts // ranks
    afresh = [*itertools.product(range(experts), repeat=active)]
    mean = sum(len({e // each for e in choice}) for choice in afresh) / len(afresh)
    assert copies_sent(active, ranks) == pytest.approx(mean)
    together = [*itertools.combinations(range(experts), active)]
    assert mean <= sum(len({e // each for e in c}) for c in together) / len(together)
    assert copies_sent(1, ranks) == pytest.approx(1)


def test_with_256_experts_chosen_together_the_law_is_within_one_percent():
    rng = random.Random(7)
    drawn = [len({e // 32 for e in rng.sample(range(256), 8)}) for _ in range(40_000)]
    assert copies_sent(8, 8) == pytest.approx(sum(drawn) / len(drawn), rel=0.01)


def test_a_copy_of_a_token_as_deepep_counts_it():
    """DeepEP's internode_ll: 7168 fp8 bytes and 224 of scales, 14,336 in bf16; 16 of its own."""
    out, back = (exchanged_bytes(1, 7168, 2, 2, width) for width in (1 + 4 / 128, 2))
    assert (out, back) == (7168 + 224, 14336)


@given(tokens=st.integers(1, 10**5), ranks=st.integers(1, 512))
def test_who_has_all_experts_sends_nothing(tokens, ranks):
    sent = exchanged_bytes(tokens, 4096, copies_sent(8, ranks), ranks)
    assert (sent == 0) == (ranks == 1)
    assert sent <= exchanged_bytes(tokens, 4096, 8, ranks)
