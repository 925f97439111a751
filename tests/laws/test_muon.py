"""Muon's orthogonalization: FLOPs by counting products, and its authors' overheads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed.training import newton_schulz_flops, training_flops


def orthogonal(gradient, iterations):
    """Newton-Schulz as Muon does it, and the FLOPs of its products."""
    x, flops = gradient / np.linalg.norm(gradient), 0
    transposed = x.shape[0] > x.shape[1]
    x = x.T if transposed else x
    for _ in range(iterations):
        a = x @ x.T
        b = -4.7750 * a + 2.0315 * a @ a
        x = 3.4445 * x + b @ x
        m, n = x.shape
        flops += 2 * m * n * m + 2 * m * m * m + 2 * m * m * n
    return (x.T if transposed else x), flops


@pytest.mark.parametrize("shape", [(8, 8), (6, 24), (24, 6)])
def test_the_products_are_counted_and_do_their_work(shape):
    x, flops = orthogonal(np.random.default_rng(0).normal(size=shape), 5)
    assert flops == newton_schulz_flops(*shape)
    # Muon's coefficients bring the singular values near one, not to it.
    assert np.linalg.svd(x, compute_uv=False) == pytest.approx(1, abs=0.4)


@pytest.mark.parametrize(
    ("width", "tokens", "printed"), [(768, 524288, 0.007), (16384, 16_000_000, 0.005)]
)
def test_overheads_of_two_runs_as_published(width, tokens, printed):
    """Jordan et al. (2024), second hand: 0.7 % of the NanoGPT speedrun, 0.5 % of Llama 405B."""
    overhead = newton_schulz_flops(width, width) / training_flops(width**2, tokens)
    assert round(overhead, 3) == printed


@given(m=st.integers(1, 4096), n=st.integers(1, 4096), tokens=st.integers(1, 10**7))
def test_no_matrix_costs_more_than_the_bound(m, n, tokens):
    overhead = newton_schulz_flops(m, n) / training_flops(m * n, tokens)
    assert overhead <= 5 * min(m, n) / tokens * (1 + 1e-12)
    assert newton_schulz_flops(m, n) == newton_schulz_flops(n, m)
