"""The serving simulator against a server that is told the same rules and takes each step alone."""

import random
from math import inf, isinf

import pytest

from lightspeed.errors import BadArgument
from lightspeed_models.llm import decoder
from lightspeed_models.llm.step import engine, mixed_step, replica
from lightspeed_models.simulators.serving import Cost, Scheduler, cost_of, simulate


class Request:
    def __init__(self, prompt, output, came, cached):
        self.prompt, self.output, self.came, self.cached = prompt, output, came, cached
        self.written, self.held, self.blocks, self.reading = 0, 0, 0, False
        self.first = self.last = None
        self.put_off = self.resumed = 0

    @property
    def target(self):
        """Tokens that it reads before it writes on."""
        return self.prompt + self.resumed


def step_by_step(prompts, outputs, cost, rules, arrivals, concurrency, cached, patience=inf):
    """Every step by itself, every request asked in each: slow, and nothing is counted ahead."""
    total = len(prompts)
    every = [
        Request(p, o, None if arrivals is None else arrivals[i], cached[i])
        for i, (p, o) in enumerate(zip(prompts, outputs, strict=True))
    ]
    if arrivals is None:
        for one in every[:concurrency]:
            one.came = 0.0
    running, queue, joined = [], [], 0
    clock = planned = 0.0

    def blocks_of(tokens):
        return (tokens + rules.block - 1) // rules.block

    def free():
        return rules.blocks - sum(one.blocks for one in running)

    def put_off():
        one = running.pop()
        one.put_off += 1
        one.resumed, one.held, one.blocks, one.cached = one.written, 0, 0, 0
        queue.insert(0, one)

    while any(one.last is None for one in every):
        while joined < total and every[joined].came is not None and every[joined].came <= planned:
            queue.append(every[joined])
            joined += 1
        if not running and not queue:
            clock = planned = max(clock, every[joined].came)
            continue
        calm = True
        while True:
            decoding = [one for one in running if not one.reading]
            wanted = sum(blocks_of(one.held + 1) - one.blocks for one in decoding)
            if wanted <= free():
                break
            put_off()
            calm = False
        for one in decoding:
            one.blocks = blocks_of(one.held + 1)
        room, pieces = rules.budget - len(decoding), {}
        for one in running:
            if one.reading:
                piece = min(one.target - one.held, room)
                piece = min(piece, (one.blocks + free()) * rules.block - one.held)
                if piece > 0:
                    one.blocks = max(one.blocks, blocks_of(one.held + piece))
                    pieces[one] = piece
                    room -= piece
        while calm and queue and len(running) < rules.slots and room > 0:
            one = queue[0]
            if one.first is None and clock - one.came > patience:
                one.first = one.last = inf
                queue.pop(0)
                continue
            found = min(one.cached, one.target - 1)
            piece = one.target - found
            if rules.chunked:
                piece = min(piece, room)
            elif piece > room and pieces:
                break
            if blocks_of(found + piece) > free():
                break
            queue.pop(0)
            one.held, one.blocks, one.reading = found, blocks_of(found + piece), True
            running.append(one)
            pieces[one] = piece
            room -= piece
        if not pieces and not decoding:
            if running:
                put_off()
            else:
                planned = clock
            continue
        start = clock
        clock += (
            cost.base
            + cost.token * sum(pieces.values())
            + cost.row * len(decoding)
            + cost.held * sum(one.held for one in decoding)
        )
        planned = start if rules.ahead else clock
        for one in decoding:
            one.held += 1
            one.written += 1
        for one, piece in pieces.items():
            one.held += piece
            if one.held == one.target:
                one.reading = False
                one.written += 1
                one.first = clock if one.first is None else one.first
        for one in [one for one in running if one.written == one.output]:
            one.last = clock
            running.remove(one)
            if arrivals is None:
                following = next((other for other in every if other.came is None), None)
                if following:
                    following.came = clock
        assert sum(one.blocks for one in running) <= rules.blocks
    return every


def drawn(seed):
    rng = random.Random(seed)
    n = rng.randint(1, 25)
    prompts = [rng.choice((rng.randint(1, 40), rng.randint(1, 400))) for _ in range(n)]
    outputs = [rng.choice((1, rng.randint(1, 10), rng.randint(1, 120))) for _ in range(n)]
    block = rng.choice((1, 4, 16))
    least = max(-(-(p + o - 1) // block) for p, o in zip(prompts, outputs, strict=True))
    slots = rng.choice((1, 2, 5, 30))
    rules = Scheduler(
        budget=slots + rng.choice((1, 7, 64, 1000)),
        slots=slots,
        blocks=rng.choice((least, 2 * least, 10_000)),
        block=block,
        chunked=rng.random() < 0.7,
        ahead=rng.random() < 0.5,
    )
    cost = Cost(rng.uniform(0.5, 2), rng.uniform(0, 0.1), rng.uniform(0, 0.2), rng.random() / 1e3)
    cached = [rng.choice((0, 0, rng.randint(0, p))) for p in prompts]
    if rng.random() < 0.5:
        gap = rng.choice((0.5, 5, 50))
        arrivals, now = [], 0.0
        for _ in range(n):
            now += rng.expovariate(1 / gap)
            arrivals.append(now)
        return prompts, outputs, cost, rules, arrivals, 0, cached
    return prompts, outputs, cost, rules, None, rng.randint(1, n), cached


def test_equal_to_a_server_that_takes_each_step_alone():
    seen = {"put off": 0, "chunks": 0, "prefixes": 0, "closed": 0, "ahead": 0}
    for seed in range(600):
        case = drawn(seed)
        ours = simulate(*case, record=True)
        theirs = step_by_step(*case)
        for name in ("first", "last"):
            expected = [getattr(one, name) for one in theirs]
            assert getattr(ours, name) == pytest.approx(expected, rel=1e-9), (seed, name)
        assert ours.arrivals == pytest.approx([one.came for one in theirs], rel=1e-9), seed
        assert ours.put_off == [one.put_off for one in theirs], seed
        rules = case[3]
        seen["put off"] += sum(ours.put_off) > 0
        seen["chunks"] += rules.chunked and max(case[0]) > rules.budget
        seen["prefixes"] += sum(case[6]) > 0
        seen["closed"] += case[4] is None
        seen["ahead"] += rules.ahead
    assert all(many >= 60 for many in seen.values()), seen


def test_who_loses_patience_leaves_as_step_by_step():
    gone = 0
    for seed in range(600):
        case = drawn(seed)
        if case[4] is None:
            continue
        patience = random.Random(seed).choice((3.0, 20.0, 100.0))
        ours = simulate(*case, patience=patience)
        theirs = step_by_step(*case, patience)
        for name in ("first", "last"):
            expected = [getattr(one, name) for one in theirs]
            assert getattr(ours, name) == pytest.approx(expected, rel=1e-9), (seed, name)
        assert ours.put_off == [one.put_off for one in theirs], seed
        gone += sum(isinf(first) for first in ours.first)
    assert gone > 300


def test_patience_is_of_an_open_loop():
    with pytest.raises(BadArgument, match="patience"):
        simulate([1], [1], Cost(1.0), concurrency=1, patience=1.0)
    with pytest.raises(BadArgument, match="patience"):
        simulate([1], [1], Cost(1.0), arrivals=[0.0], patience=0.0)


def test_alone_a_request_takes_its_steps():
    cost = Cost(1.0, 0.01, 0.1, 0.001)
    found = simulate([100], [4], cost, arrivals=[7.0], record=True)
    first = 7 + 1 + 100 * 0.01
    assert found.first == [pytest.approx(first)]
    assert found.last == [pytest.approx(first + 3 * 1.1 + 0.001 * (100 + 101 + 102))]
    assert [(step.steps, step.tokens, step.rows) for step in found.steps] == [
        (1, 100, 0),
        (3, 0, 1),
    ]


def test_little_holds_in_a_closed_loop():
    rng = random.Random(1)
    n, concurrency = 4000, 32
    prompts = [rng.randint(50, 2000) for _ in range(n)]
    outputs = [rng.randint(1, 400) for _ in range(n)]
    cost = Cost(5e-3, 2e-5, 5e-5, 1e-8)
    found = simulate(prompts, outputs, cost, concurrency=concurrency)
    stays = sum(b - a for a, b in zip(found.arrivals, found.last, strict=True))
    assert stays / max(found.last) == pytest.approx(concurrency, rel=0.02)


def test_a_small_budget_makes_tokens_even_and_prompts_wait():
    n = 200
    args = [2000] * n, [100] * n, Cost(5e-3, 5e-5, 5e-5)
    arrivals = [0.15 * i for i in range(n)]
    small, large = (
        simulate(*args, Scheduler(budget, 64), arrivals, record=True) for budget in (256, 8192)
    )
    longest = [max((s.end - s.start) / s.steps for s in one.steps) for one in (small, large)]
    waits = [sum(one.first) - sum(one.arrivals) for one in (small, large)]
    assert longest[0] < longest[1] / 4 and waits[0] > waits[1]


def test_the_wall_of_the_cache():
    """Where a quarter fits at once, the last wait for three rounds of 200 steps of 10 ms; some are
    put off, since a place is given before it is known to last.
    """
    n = 64
    few, many = (
        simulate([1000] * n, [200] * n, Cost(1e-2, 1e-5), Scheduler(blocks=b), [0.0] * n)
        for b in (16 * 75, 64 * 75)
    )
    assert max(few.first) > 3 * 200 * 1e-2 > max(many.first)
    assert sum(few.put_off) > 0 == sum(many.put_off)


def test_a_cost_of_a_model_is_its_step_where_it_was_taken():
    model, gpus, one = decoder("Llama-3.1-8B"), replica("h100_sxm"), engine("vllm")
    cost = cost_of(model, gpus, 64, 2000, 2048, one)
    full = mixed_step(model, gpus, 0, 64, 2000, engine=one).time
    assert cost.writing(64, 64 * 2000)[0] == pytest.approx(full)
    for rows in (1, 7, 200):
        none = mixed_step(model, gpus, 0, rows, 0, engine=one).time
        assert cost.writing(rows, 0)[0] == pytest.approx(none)
    beside = mixed_step(model, gpus, 2048, 64, 2000, 1024, engine=one).time
    assert full + 2048 * cost.token == pytest.approx(beside)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"prompts": []}, "prompts"),
        ({"prompts": [0]}, "prompts"),
        ({"outputs": [1, 2]}, "outputs"),
        ({"outputs": [1.5]}, "outputs"),
        ({"arrivals": [float("nan")]}, "arrivals"),
        ({"arrivals": None}, "concurrency"),
        ({"concurrency": 3}, "concurrency"),
        ({"cached": [-1]}, "cached"),
        ({"scheduler": Scheduler(blocks=3)}, "scheduler"),
    ],
)
def test_bad_input_is_named(change, argument):
    given = {"prompts": [100], "outputs": [5], "cost": Cost(1.0), "arrivals": [0.0]} | change
    with pytest.raises(BadArgument) as error:
        simulate(**given)
    assert error.value.argument == argument


@pytest.mark.parametrize("wrong", [lambda: Scheduler(budget=256), lambda: Cost(0)])
def test_a_server_that_can_not_be_is_refused(wrong):
    with pytest.raises(BadArgument):
        wrong()


def test_a_server_that_holds_room_for_whole_answers_puts_nobody_off():
    """TensorRT-LLM's rule, where the others' puts requests off at the same load."""
    cost, half = Cost(1.0, 1e-3), [1000] * 8
    plain, whole = (
        simulate(half, half, cost, Scheduler(8192, 64, 500, whole=each), concurrency=8)
        for each in (False, True)
    )
    assert sum(plain.put_off) > 0 == sum(whole.put_off)
    assert sorted(whole.last)[3] == pytest.approx(max(whole.last) / 2, rel=0.01), "four at a time"
