"""Requests one by one: the same as the simulators of millions, Little's law to the last bit, and
each place holds one request at a time.
"""

import itertools
import random

import numpy as np
import pytest
from laws import each

from lightspeed.errors import BadArgument
from lightspeed_models.simulators import queue_simulation
from lightspeed_models.simulators.requests import decoded, drawn, served


def one_at_a_time(visits):
    for place in {v.place for v in visits}:
        mine = sorted((v.starts, v.leaves) for v in visits if v.place == place)
        assert all(a[1] <= b[0] + 1e-12 for a, b in itertools.pairwise(mine)), place


@each("load, servers, seed", (0.5, 0.9, 1.2), (1, 2, 5), range(6))
def test_a_queue_is_that_of_the_simulator_and_of_littles_law(load, servers, seed):
    arrivals, services = drawn(load, servers, 200, seed)
    visits = served(arrivals, services, servers)
    path = queue_simulation.simulate(np.array(arrivals), np.array(services), servers)
    leaves = [v.leaves for v in visits]
    assert leaves == pytest.approx(path.departure.tolist())
    assert {v.place for v in visits} <= set(range(servers))
    one_at_a_time(visits)
    for v in visits:  # nobody waits while a server is free
        if v.starts > v.arrives:
            assert sum(w.starts <= v.arrives < w.leaves for w in visits) == servers
    # From empty to empty: those inside, over time, against the stays.
    edges = sorted({0.0, *arrivals, *leaves})
    area = sum(
        (b - a) * sum(v.arrives <= a < v.leaves for v in visits)
        for a, b in itertools.pairwise(edges)
    )
    assert area == pytest.approx(sum(v.leaves - v.arrives for v in visits))


@each("seed, slots", range(20), (1, 3, 8))
def test_batching_is_that_of_the_simulator_and_of_the_longest_of_each_batch(seed, slots):
    rng = random.Random(seed)
    tokens = [rng.randint(1, 20) for _ in range(rng.randint(1, 40))]
    continuous, static = decoded(tokens, slots), decoded(tokens, slots, continuous=False)
    path = queue_simulation.simulate_decoding(
        np.zeros(len(tokens)), np.array(tokens), slots, lambda n: 1.0
    )
    assert [v.leaves for v in continuous] == path.departure.tolist()
    batches = [tokens[i : i + slots] for i in range(0, len(tokens), slots)]
    assert max(v.leaves for v in static) == sum(map(max, batches))
    assert [v.leaves - v.starts for v in static] == tokens
    # Without gaps it is never slower.
    assert max(v.leaves for v in continuous) <= sum(map(max, batches))
    one_at_a_time(continuous)
    one_at_a_time(static)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: served([1.0, 0.0], [1.0, 1.0]), "ascending"),
        (lambda: served([0.0], [1.0, 1.0]), "1 values"),
        (lambda: decoded([0], 1), "tokens"),
        (lambda: drawn(0.0, 1, 1, 1), "load"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(BadArgument, match=words):
        call()
