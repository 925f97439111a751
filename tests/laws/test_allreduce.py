"""An all-reduce in rounds: each number added once and everywhere, as closed forms say."""

from itertools import pairwise

import pytest

from lightspeed import collectives as c
from lightspeed.errors import BadArgument
from lightspeed_models.simulators.allreduce import ALGORITHMS, rounds, states

EVERY = [(algorithm, n) for algorithm in ALGORITHMS for n in range(2, 18)]


def test_all_end_with_the_sum_of_all_and_nobody_is_added_twice():
    for algorithm, n in EVERY:
        found = states(algorithm, n)
        for before, after in pairwise(found):
            for s in after.arrived:
                mine, theirs = before.held[s.target][s.chunk], before.held[s.source][s.chunk]
                if s.adds and (algorithm, s.target) != ("switch", n):
                    assert not mine & theirs, (algorithm, n, s)
        assert all(len(cell) == n for row in found[-1].held[:n] for cell in row), (algorithm, n)
        # a switch adds what n GPUs send it, each of them once
        sources = [s.source for s in found[1].arrived]
        assert algorithm != "switch" or sources == list(range(n))


def test_a_node_sends_what_it_had_before_the_round():
    for algorithm, n in EVERY:
        for before, after in pairwise(states(algorithm, n)):
            for s in after.arrived:
                assert before.held[s.source][s.chunk] <= after.held[s.target][s.chunk]
                assert before.held[s.source][s.chunk], f"{algorithm}, {n}: {s} has nothing to send"


def test_rounds_take_the_time_of_the_law():
    """With alpha 1 and a buffer of n chunks at 1 chunk/s: each round costs alpha and one message"""
    for algorithm, n in EVERY:
        law = {"ring": c.ring_time, "tree": c.tree_time}.get(algorithm)
        message = 1 if algorithm == "ring" else n
        if law:
            took = len(rounds(algorithm, n)) * (1 + message)
            assert took == pytest.approx(law(float(n), n, 1.0, 1.0)), (algorithm, n)


def test_what_each_gpu_sends_is_the_factor_of_the_algorithm():
    for algorithm, n in EVERY:
        last = states(algorithm, n)[-1]
        levels = (n - 1).bit_length()
        most = {"ring": c.busbw_factor("all_reduce", n), "tree": levels, "switch": 1}[algorithm]
        sums = sum(last.sent), sum(last.received)
        assert max(last.sent) == pytest.approx(most), (algorithm, n)
        # All of them together send 2 (n - 1) buffers; a switch takes two of those upon itself.
        assert sums == pytest.approx((n, n) if algorithm == "switch" else 2 * (2 * (n - 1),))


@pytest.mark.parametrize(
    ("how", "words"), [(("star", 4), "ring, tree, switch"), (("ring", 1), "at least 2")]
)
def test_bad_input_is_named(how, words):
    with pytest.raises(BadArgument, match=words):
        rounds(*how)
