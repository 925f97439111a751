"""Requests one by one: the same as the simulators of millions, Little's law to the last bit, and
each place holds one request at a time.
"""

import itertools
import random

import numpy as np
import pytest

from lightspeed.errors import BadArgument
from lightspeed_models.simulators import queue_simulation
from lightspeed_models.simulators.requests import decoded, drawn, served

RUNS = [
    (load, servers, seed) for load in (0.5, 0.9, 1.2) for servers in (1, 2, 5) for seed in range(6)
]


def one_at_a_time(visits):
    for place in {v.place for v in visits}:
        mine = sorted((v.starts, v.leaves) for v in visits if v.place == place)
        assert all(a[1] <= b[0] + 1e-12 for a, b in itertools.pairwise(mine)), place


def test_a_queue_is_that_of_the_simulator():
    for load, servers, seed in RUNS:
        arrivals, services = drawn(load, servers, 200, seed)
        visits = served(arrivals, services, servers)
        path = queue_simulation.simulate(np.array(arrivals), np.array(services), servers)
        assert [v.leaves for v in visits] == pytest.approx(path.departure.tolist())
        assert {v.place for v in visits} <= set(range(servers))
        one_at_a_time(visits)


def test_nobody_waits_while_a_server_is_free():
    for load, servers, seed in RUNS:
        visits = served(*drawn(load, servers, 100, seed), servers)
        for v in visits:
            if v.starts > v.arrives:
                busy = sum(w.starts <= v.arrives < w.leaves for w in visits)
                assert busy == servers, (load, servers, seed)


def test_littles_law_holds_from_empty_to_empty():
    for load, servers, seed in RUNS:
        visits = served(*drawn(load, servers, 100, seed), servers)
        end = max(v.leaves for v in visits)
        edges = sorted({0.0, end, *(v.arrives for v in visits), *(v.leaves for v in visits)})
        area = sum(
            (b - a) * sum(v.arrives <= a < v.leaves for v in visits)
            for a, b in itertools.pairwise(edges)
        )
        stays = [v.leaves - v.arrives for v in visits]
        assert area / end == pytest.approx(len(stays) / end * np.mean(stays))


def test_continuous_batching_is_that_of_the_simulator():
    for seed in range(20):
        rng = random.Random(seed)
        tokens = [rng.randint(1, 20) for _ in range(40)]
        for slots in (1, 3, 8):
            visits = decoded(tokens, slots)
            path = queue_simulation.simulate_decoding(
                np.zeros(40), np.array(tokens), slots, lambda n: 1.0
            )
            assert [v.leaves for v in visits] == path.departure.tolist()
            one_at_a_time(visits)


def test_static_batching_takes_the_longest_of_each_batch():
    for seed in range(20):
        rng = random.Random(seed)
        tokens = [rng.randint(1, 20) for _ in range(rng.randint(1, 40))]
        for slots in (1, 3, 8):
            visits = decoded(tokens, slots, continuous=False)
            batches = [tokens[i : i + slots] for i in range(0, len(tokens), slots)]
            assert max(v.leaves for v in visits) == sum(map(max, batches))
            assert [v.leaves - v.starts for v in visits] == tokens
            # Without gaps it is never slower, and of equal answers it is as fast.
            assert max(v.leaves for v in decoded(tokens, slots)) <= sum(map(max, batches))
            one_at_a_time(visits)


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
