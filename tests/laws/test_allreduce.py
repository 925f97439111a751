"""An all-reduce in rounds: each number added once and everywhere, as closed forms say."""

from itertools import pairwise

import pytest
from laws import each

from lightspeed import collectives as c
from lightspeed.errors import BadArgument
from lightspeed_models.simulators.allreduce import ALGORITHMS, rounds, states


@each("algorithm, n", ALGORITHMS, range(2, 18))
def test_all_end_with_the_sum_of_all_by_what_was_sent(algorithm, n):
    """Nobody is added twice, a node sends what it had before the round, and a switch adds what n
    GPUs send it, each of them once.
    """
    every = states(algorithm, n)
    for before, after in pairwise(every):
        for s in after.arrived:
            mine, theirs = before.held[s.target][s.chunk], before.held[s.source][s.chunk]
            assert theirs and theirs <= after.held[s.target][s.chunk], s
            assert not s.adds or (algorithm, s.target) == ("switch", n) or not mine & theirs, s
    assert all(len(cell) == n for row in every[-1].held[:n] for cell in row)
    sources = [s.source for s in every[1].arrived]
    assert algorithm != "switch" or sources == list(range(n))


@each("algorithm, n", ALGORITHMS, range(2, 18))
def test_rounds_and_bytes_are_those_of_the_law(algorithm, n):
    """With alpha 1 and a buffer of n chunks at 1 chunk/s: each round costs alpha and one message.
    All GPUs together send 2 (n - 1) buffers; a switch takes two of those upon itself.
    """
    last, levels = states(algorithm, n)[-1], (n - 1).bit_length()
    most = {"ring": c.busbw_factor("all_reduce", n), "tree": levels, "switch": 1}[algorithm]
    assert max(last.sent) == pytest.approx(most)
    sums = sum(last.sent), sum(last.received)
    assert sums == pytest.approx((n, n) if algorithm == "switch" else 2 * (2 * (n - 1),))
    if law := {"ring": c.ring_time, "tree": c.tree_time}.get(algorithm):
        took = len(rounds(algorithm, n)) * (1 + (1 if algorithm == "ring" else n))
        assert took == pytest.approx(law(float(n), n, 1.0, 1.0))


@pytest.mark.parametrize(
    ("how", "words"), [(("star", 4), "ring, tree, switch"), (("ring", 1), "at least 2")]
)
def test_bad_input_is_named(how, words):
    with pytest.raises(BadArgument, match=words):
        rounds(*how)
