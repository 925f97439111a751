"""The small engine: its numbers, its rules beside the simulator's, and what it measures."""

import random

import numpy as np
import pytest

from lightspeed_models.simulators.serving import Cost, Scheduler, simulate
from lightspeed_tools.measure.instruments import serving
from lightspeed_tools.measure.records import record


def made(cost):
    """A clock that costs what the simulator is told."""

    def clock(decoder, pieces):
        rows = [piece for piece in pieces if piece[1] == 1]
        tokens = sum(piece[1] for piece in pieces) - len(rows)
        held = sum(piece[2] for piece in rows)
        return cost.base + cost.token * tokens + cost.row * len(rows) + cost.held * held

    return clock


def test_by_its_rules_it_is_the_simulator():
    """Prompts and budgets are even, so that no chunk is one token long and taken for a row."""
    for seed in range(100):
        rng = random.Random(seed)
        n, slots = rng.randint(1, 30), rng.choice((2, 4, 16))
        prompts = [2 * rng.randint(1, 150) for _ in range(n)]
        outputs = [rng.randint(1, 40) for _ in range(n)]
        arrivals = np.cumsum([rng.expovariate(1 / rng.choice((1, 30))) for _ in range(n)]).tolist()
        cost = Cost(rng.uniform(0.5, 2), 0.01, 0.0, 1e-4 * rng.random())
        rules = Scheduler(budget=1000 * slots, slots=slots)  # no chunk: a row is one token
        told = simulate(prompts, outputs, cost, rules, arrivals)
        first, last = serving.serve(None, prompts, outputs, arrivals, rules, made(cost))
        assert first == pytest.approx(told.first, rel=1e-9), seed
        assert last == pytest.approx(told.last, rel=1e-9), seed


def test_in_chunks_it_is_the_simulator():
    """A step's cost is the same for a token read and one written, so that chunks may be of one."""
    cost = Cost(1.0, 0.1, 0.1)

    def clock(decoder, pieces):
        return cost.base + cost.token * sum(piece[1] for piece in pieces)

    for seed in range(100):
        rng = random.Random(seed)
        n, slots = rng.randint(1, 30), rng.choice((1, 4, 16))
        prompts, outputs = ([rng.randint(1, most) for _ in range(n)] for most in (300, 40))
        arrivals = np.cumsum([rng.expovariate(1 / 20) for _ in range(n)]).tolist()
        rules = Scheduler(budget=slots + rng.choice((1, 7, 64)), slots=slots)
        told = simulate(prompts, outputs, cost, rules, arrivals)
        first, last = serving.serve(None, prompts, outputs, arrivals, rules, clock)
        assert first == pytest.approx(told.first, rel=1e-9), seed
        assert last == pytest.approx(told.last, rel=1e-9), seed


def test_chunks_and_company_change_no_number():
    """A prompt read at once gives the vectors that it gives in chunks beside another's."""
    X = np.random.default_rng(1).standard_normal((2, 40, serving.WIDTH)).astype(np.float32)
    whole = [serving.Decoder().step([(0, 40, 0)], one) for one in X]
    decoder, found = serving.Decoder(), ([], [])
    for start, end in ((0, 7), (7, 8), (8, 33), (33, 40)):
        size = end - start
        pieces = [(3, size, start), (5, size, start)]
        both = decoder.step(pieces, np.concatenate([X[0, start:end], X[1, start:end]]))
        found[0].append(both[:size])
        found[1].append(both[size:])
    for one, parts in zip(whole, found, strict=True):
        assert np.concatenate(parts) == pytest.approx(one, abs=1e-4)


def test_a_cost_is_found_again():
    cost = Cost(1e-3, 1e-5, 1e-4, 1e-7)
    found = serving.calibrate(None, made(cost))
    for name in ("base", "token", "row", "held"):
        assert getattr(found, name) == pytest.approx(getattr(cost, name), rel=1e-6)


def test_it_measures_and_the_record_sets_it_beside(monkeypatch):
    monkeypatch.setattr(serving, "processor", made(Cost(1e-3, 1e-5, 1e-4, 1e-7)))
    monkeypatch.setattr(serving.calibrate, "__defaults__", (serving.processor, 7))
    shown = record.new(serving.measure())
    found = serving.beside(shown)
    assert len(found) == len(serving.LOADS) * 4
    for one in found:  # a machine that obeys the cost is as the simulator says
        assert one.trusted
        assert one.measured == pytest.approx(one.simulated, rel=0.01)
    waits = [one.measured for one in found if (one.key, one.at) == ("first_token", "p90")]
    assert waits == sorted(waits)
