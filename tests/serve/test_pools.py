"""Prefixes that are found, pools apart, and drafts, each against a plainer way to the same."""

import random

import pytest

from lightspeed.errors import BadArgument
from lightspeed.inference import drafted_tokens
from lightspeed_models.simulators.pools import apart, drafted_steps
from lightspeed_models.simulators.prefixes import found_tokens, shared
from lightspeed_models.simulators.serving import Cost, Scheduler, simulate


def drawn_chats(rng, many):
    """Prompts of chats: each goes on where the one before ended, or starts anew."""
    chats, prompts = [[] for _ in range(6)], []
    for _ in range(many):
        chat = rng.randrange(6)
        if rng.random() < 0.1:
            chats[chat] = []
        chats[chat] = chats[chat] + [rng.random() for _ in range(rng.randint(1, 4))]
        prompts.append(chats[chat])
    return prompts


def by_search(prompts, lengths, blocks, block):
    """A list of keys, the newest first, searched from the start for each."""
    kept, found = [], []
    for keys, length in zip(prompts, lengths, strict=True):
        many = 0
        while many < len(keys) and keys[many] in kept:
            many += 1
        found.append(min(length, many * block))
        kept = keys + [key for key in kept if key not in keys]
        kept = kept[: int(min(blocks, len(kept)))]
    return found


def test_what_is_found_is_what_a_search_finds():
    rng = random.Random(5)
    for blocks in (1, 3, 10, 40, float("inf")):
        prompts = drawn_chats(rng, 200)
        lengths = [16 * len(keys) - rng.randrange(16) for keys in prompts]
        found = found_tokens(prompts, lengths, blocks, 16)
        assert found == by_search(prompts, lengths, blocks, 16)


def test_a_larger_cache_never_finds_less():
    prompts = drawn_chats(random.Random(6), 500)
    lengths = [16 * len(keys) for keys in prompts]
    shares = [shared(found_tokens(prompts, lengths, n, 16), lengths) for n in (1, 8, 32, 128, 1e9)]
    assert shares == sorted(shares) and shares[0] < shares[-1] / 2


def drawn(seed):
    rng = random.Random(seed)
    n = rng.randint(1, 30)
    now, arrivals = 0.0, []
    for _ in range(n):
        now += rng.expovariate(0.3)
        arrivals.append(now)
    lengths = [rng.randint(1, 300) for _ in range(n)], [rng.randint(1, 40) for _ in range(n)]
    return *lengths, arrivals, rng


def test_one_at_a_time_each_takes_its_own_time():
    cost, far = Cost(1.0, 0.01, 0.1, 1e-3), [1e4 * i for i in range(5)]
    prompts, outputs = [100, 7, 300, 50, 1], [1, 2, 9, 30, 4]
    found = apart(prompts, outputs, cost, cost, far, 2, 3, 0.002)
    for came, p, o, first, last in zip(far, prompts, outputs, found.first, found.last, strict=True):
        assert first - came == pytest.approx(1 + 0.01 * p)
        if o == 1:
            assert last == first
            continue
        # The writer takes up the cache with one token, then each step holds one more.
        held = sum(range(p + 1, p + o - 1))
        steps = 1.0 + 0.01 + (o - 2) * 1.1 + 1e-3 * held
        assert last - first == pytest.approx(0.002 * p + steps)


def test_readers_never_wait_for_writers():
    for seed in range(50):
        prompts, outputs, arrivals, rng = drawn(seed)
        cost = Cost(1.0, 0.01, 0.1, 1e-3)
        alone = simulate(prompts, [1] * len(prompts), cost, arrivals=arrivals)
        moved = rng.choice((0.0, 0.05))
        found = apart(prompts, outputs, cost, Cost(2.0, 0.01, 0.1), arrivals, moved=moved)
        assert found.first == pytest.approx(alone.last)
        more = apart(prompts, outputs, cost, Cost(2.0, 0.01, 0.1), arrivals, moved=moved + 1)
        assert all(a <= b for a, b in zip(found.first, more.first, strict=True))
        for p, o, first, last in zip(prompts, outputs, found.first, found.last, strict=True):
            assert last - first >= (o > 1) * moved * p + 2.0 * (o - 1) - 1e-9


def test_drafts_take_as_many_steps_as_the_law_says():
    for chance, drafts in ((0.0, 3), (0.3, 2), (0.7, 3), (0.9, 5)):
        (steps,) = drafted_steps([200_001], chance, drafts)
        assert 200_000 / (steps - 1) == pytest.approx(drafted_tokens(chance, drafts), rel=0.02)


def test_slips_are_named():
    cost = Cost(1.0)
    for change in ({"readers": 0}, {"writers": 0.5}, {"moved": -1.0}):
        with pytest.raises(BadArgument, match=next(iter(change))):
            apart([1], [1], cost, cost, [0.0], **change)
    with pytest.raises(BadArgument, match="acceptance"):
        drafted_steps([1], 1.2, 3)
    with pytest.raises(BadArgument, match="blocks"):
        found_tokens([[1]], [1], 0, 16)
    assert apart([5], [1], cost, cost, [1.0], scheduler=Scheduler(8, 4)).last == [2.0]
