"""Queues: closed forms against limits, sums, simulation and two other packages."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lightspeed import queueing as q
from lightspeed import serving
from lightspeed.errors import BadArgument
from lightspeed.units import Q
from lightspeed_models.simulators.queue_simulation import (
    Path,
    batch_means,
    number_inside,
    observed,
    poisson_arrivals,
    simulate,
    simulate_decoding,
)

rates = st.floats(0.01, 1e4)
shares = st.floats(0.01, 0.999)  # busy share rho
few = st.integers(1, 12)


def numbers(result):
    return np.array(list(vars(result).values()), float)


# --- Little's law and its units ---------------------------------------------------------------


@given(rates, rates)
def test_littles_law_turns_round(rate, stay):
    inside = q.concurrency(rate, stay)
    assert q.throughput(inside, stay) == pytest.approx(rate)
    assert q.latency(inside, rate) == pytest.approx(stay)


@pytest.mark.parametrize("thing", ["request", "token", "byte"])
def test_littles_law_counts_anything(thing):
    inside = q.concurrency(Q(1000, f"{thing}/s"), Q(50, "ms"))
    assert inside.to(thing).magnitude == pytest.approx(50)
    assert q.throughput(inside, Q(50, "ms")).to(f"{thing}/min").magnitude == pytest.approx(60_000)
    assert q.latency(inside, Q(1, f"k{thing}/s")).to("ms").magnitude == pytest.approx(50)


def test_littles_law_refuses_to_mix_things():
    with pytest.raises(BadArgument, match="a quantity of request"):
        q.latency(Q(50, "token"), Q(1000, "request/s"))
    with pytest.raises(BadArgument, match="latency"):
        q.concurrency(Q(1000, "request/s"), Q(50, "m"))


@given(rates, shares, few, st.floats(0, 10))
def test_every_queue_obeys_littles_law(service_rate, rho, servers, variance):
    one, many = rho * service_rate, rho * service_rate * servers
    for rate, queue in (
        (one, q.mm1(one, service_rate)),
        (one, q.md1(one, service_rate)),
        (one, q.mg1(one, service_rate, variance)),
        (many, q.mmc(many, service_rate, servers)),
    ):
        assert pytest.approx(rate * queue.W) == queue.L
        assert queue.Lq == pytest.approx(rate * queue.Wq)
        assert pytest.approx(queue.Wq + 1 / service_rate) == queue.W
        assert queue.rho == pytest.approx(rho)


# --- closed forms, limits, brute force --------------------------------------------------------


@given(rates, shares)
def test_limits_meet(service_rate, rho):
    rate = rho * service_rate
    mm1 = numbers(q.mm1(rate, service_rate))
    np.testing.assert_allclose(numbers(q.mmc(rate, service_rate, 1)), mm1, rtol=1e-9)
    np.testing.assert_allclose(
        numbers(q.mg1(rate, service_rate, service_rate**-2.0)), mm1, rtol=1e-9
    )
    np.testing.assert_allclose(
        numbers(q.mg1(rate, service_rate, 0)), numbers(q.md1(rate, service_rate)), rtol=1e-9
    )
    assert q.md1(rate, service_rate).Wq == pytest.approx(q.mm1(rate, service_rate).Wq / 2)


def test_pollaczek_khinchine_keeps_rho_squared():
    # The formula without it, as a web calculator has it, does not give M/M/1 back.
    lacking = 2 / 3 + 4 * 1 / (2 * (1 - 2 / 3))
    assert pytest.approx(7 + 1 / 3) == q.mg1(2, 3, 1).L
    assert lacking == pytest.approx(6.67, rel=1e-3)
    assert q.mg1(2, 3, 1 / 9).L == pytest.approx(q.mm1(2, 3).L) == pytest.approx(2)


@given(few, shares)
def test_erlang_by_direct_sums(servers, rho):
    load = rho * servers
    terms = [load**k / math.factorial(k) for k in range(servers + 1)]
    tail = terms[-1] * servers / (servers - load)
    assert q.erlang_b(load, servers) == pytest.approx(terms[-1] / sum(terms))
    assert q.erlang_c(load, servers) == pytest.approx(tail / (sum(terms[:-1]) + tail))


@given(st.floats(0, 200), st.floats(1e-6, 0.99))
def test_servers_for_is_the_fewest(load, share):
    servers = q.servers_for(load, share)
    assert servers > load and q.erlang_c(load, servers) <= share
    assert servers - 1 <= load or q.erlang_c(load, servers - 1) > share


def test_erlang_of_a_hundred_thousand_servers():
    # Factorials overflow at 171 servers. Jagerman's asymptote of erlang_b at load = servers.
    n = 10**5
    assert q.erlang_b(n, n) == pytest.approx(math.sqrt(2 / (math.pi * n)), rel=1e-2)
    assert 0 < q.erlang_c(n - 300.0, n) < 1


@given(few, st.integers(0, 8), st.floats(0.05, 3))
def test_shedding_by_direct_sums(servers, room, rho):
    capacity, service_rate = servers + room, 2.0
    rate = rho * servers * service_rate
    weights = np.cumprod(
        [1.0] + [rate / (min(k, servers) * service_rate) for k in range(1, capacity + 1)]
    )
    p, inside = weights / weights.sum(), np.arange(capacity + 1)
    queue = q.mmck(rate, service_rate, servers, capacity)
    assert queue.shed == pytest.approx(p[-1])
    assert pytest.approx(p @ inside) == queue.L
    assert queue.Lq == pytest.approx(p @ np.maximum(inside - servers, 0), abs=1e-9)
    assert pytest.approx(queue.throughput * queue.W) == queue.L
    assert queue.rho <= 1


def test_shedding_limits():
    assert pytest.approx(q.mm1(5, 10).L) == q.mmck(5, 10, 1, 400).L
    assert q.mmck(30, 10, 4, 4).shed == pytest.approx(q.erlang_b(3.0, 4))
    swamped = q.mmck(1e6, 10, 2, 50)
    assert swamped.throughput == pytest.approx(20, rel=1e-4)
    assert pytest.approx(50, rel=1e-4) == swamped.L


@given(rates, shares, few, st.floats(0.02, 0.9999))
def test_percentiles_invert_their_distribution(service_rate, rho, servers, share):
    rate = rho * service_rate * servers
    wait = q.waiting_percentile(share, rate, service_rate, servers)
    assert q.service_level(wait, rate, service_rate, servers) >= share - 1e-9
    if wait:
        assert q.service_level(wait, rate, service_rate, servers) == pytest.approx(share)
    assert q.sojourn_percentile(share, rate, service_rate, servers) >= wait


@given(rates, shares, st.floats(0.02, 0.9999))
def test_sojourn_of_one_server_is_exponential(service_rate, rho, share):
    rate = rho * service_rate
    want = -math.log(1 - share) / (service_rate - rate)
    assert q.sojourn_percentile(share, rate, service_rate) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(("rate", "servers"), [(1, 2), (3.2, 4), (2, 3), (1, 50)])
def test_sojourn_percentiles_add_up_to_the_mean(rate, servers):
    # The mean is the area over the distribution, of all percentiles; (1, 2) has equal ones.
    shares = 0.01 + 0.9899 * (np.arange(20_000) + 0.5) / 20_000
    mean = q.sojourn_percentile(shares, rate, 1, servers).mean()
    assert mean == pytest.approx(q.mmc(rate, 1, servers).W, rel=0.01)


@given(rates, shares, few)
def test_more_load_waits_longer_and_pooling_shorter(service_rate, rho, servers):
    rate = rho * service_rate * servers
    busier = q.mmc(rate * (1 + (1 - rho) / 2), service_rate, servers)
    pooled = q.mmc(2 * rate, service_rate, 2 * servers)
    assert busier.Wq > q.mmc(rate, service_rate, servers).Wq > pooled.Wq


def test_variability_costs():
    waits = [q.mg1(0.8, 1, variance).Wq for variance in (0, 0.5, 1, 4)]
    assert waits == sorted(waits)


def test_drain_time():
    assert q.drain_time(120, 300, 90, 100) == pytest.approx(600)
    assert q.drain_time(80, 300, 50, 100) == 0
    with pytest.raises(q.Overload):
        q.drain_time(120, 300, 100, 100)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: q.mm1(12, 10),
            "12/s exceeds what 1 server can do, 10/s: the queue grows without limit",
        ),
        (lambda: q.mm1(10, 10), "10/s equals what 1 server can do"),
        (lambda: q.md1(12, 10), "exceeds"),
        (lambda: q.mg1(12, 10, 0.1), "exceeds"),
        (lambda: q.mmc(20, 10, 2), "2 servers can do, 20/s"),
        (
            lambda: q.mmc(np.array([1.0, 50]), 10, np.array([3, 4])),
            "50/s exceeds what 4 servers can do, 40/s",
        ),
        (lambda: q.mm1(Q(12, "request/s"), Q(600, "request/min")), "12/s exceeds"),
        (lambda: q.erlang_c(10, 10), "A load of 10 equals what 10 servers can do"),
        (lambda: q.service_level(1, 12, 10), "exceeds"),
        (lambda: q.waiting_percentile(0.9, 12, 10), "exceeds"),
        (lambda: q.sojourn_percentile(0.9, 12, 10), "exceeds"),
        (lambda: serving.serving_queue(99, 500, 8, 70e9, 1e9, 1e15, 3e12), "grows without limit"),
    ],
)
def test_overload_is_refused_in_words(call, message):
    with pytest.raises(q.Overload, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: q.mmck(1, 1, 4, 3), "capacity"),
        (lambda: q.mmck(1, 1, np.array([2, 4]), np.array([3, 3])), "capacity"),
        (lambda: q.waiting_percentile(99, 1, 2), "share"),
        (lambda: q.waiting_percentile(1, 1, 2), "share"),
        (lambda: simulate(np.array([2.0, 1.0]), np.ones(2)), "arrivals"),
        (lambda: simulate(np.ones((2, 2)), np.ones((2, 2))), "arrivals"),
        (lambda: simulate(1.0, 1.0), "arrivals"),
        (lambda: simulate(np.ones(2), np.ones(3)), "services"),
        (lambda: simulate(np.ones(2), -np.ones(2)), "services"),
        (lambda: simulate(np.ones(2), np.array([1, np.nan])), "services"),
        (lambda: simulate(np.ones(2), np.ones(2), servers=0), "servers"),
        (lambda: simulate(np.ones(2), np.ones(2), servers=3, capacity=2), "capacity"),
        (lambda: simulate_decoding(np.ones(2), np.array([1, 0]), 2, lambda n: 1.0), "tokens"),
        (lambda: simulate_decoding(np.ones(2), np.ones(2), 0, lambda n: 1.0), "slots"),
        (lambda: poisson_arrivals(0, 5, np.random.default_rng(0)), "rate"),
        (lambda: poisson_arrivals(1, 2.5, np.random.default_rng(0)), "n"),
        (lambda: batch_means(np.ones(5)), "values"),
        (lambda: batch_means(np.ones(50), confidence=95), "confidence"),
        (lambda: observed(simulate(np.ones(2), np.ones(2)), until=0.5), "until"),
        (lambda: serving.batch_that_fits(80e9, 140e9, 1e9), "weight_bytes"),
    ],
)
def test_bad_arguments(call, argument):
    with pytest.raises(BadArgument) as error:
        call()
    assert error.value.argument == argument


# --- simulation -------------------------------------------------------------------------------

N = 200_000
SERVICES = {
    "exponential": (lambda rng: rng.exponential(0.1, N), 0.01),
    "constant": (lambda rng: np.full(N, 0.1), 0.0),
    "uniform": (lambda rng: rng.uniform(0, 0.2, N), 0.04 / 12),
    "gamma": (lambda rng: rng.gamma(0.5, 0.2, N), 0.02),
}


def means_agree(path, want):
    """Whether the closed form lies in the intervals; yields them, each with its mean."""
    for values, mean in (
        (path.waiting, want.Wq),
        (path.sojourn, want.W),
        (path.waiting > 0, want.wait_probability),
    ):
        interval = batch_means(values.astype(float), confidence=0.999)
        assert interval.low < mean < interval.high
        yield interval, mean


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("rate", [3, 7])
def test_one_server_agrees_with_the_closed_form(name, rate):
    rng = np.random.default_rng(1961)
    draw, variance = SERVICES[name]
    path = simulate(poisson_arrivals(rate, N, rng), draw(rng))
    want = q.mg1(rate, 10, variance)
    # 99.9 %: the eight cases together stay within one false alarm in a hundred.
    for interval, mean in means_agree(path, want):
        assert interval.high - interval.low < 0.2 * mean


@pytest.mark.parametrize("servers", [2, 4, 16])
def test_many_servers_agree_with_erlang_c(servers):
    rng = np.random.default_rng(1917)
    rate = 0.8 * servers
    path = simulate(poisson_arrivals(rate, N, rng), rng.exponential(1, N), servers)
    want = q.mmc(rate, 1, servers)
    assert len(list(means_agree(path, want))) == 3
    for share in (0.5, 0.95, 0.99):
        below = path.sojourn <= q.sojourn_percentile(share, rate, 1, servers)
        interval = batch_means(below.astype(float), confidence=0.999)
        assert interval.low < share < interval.high


def test_shedding_agrees():
    rng = np.random.default_rng(3)
    path = simulate(poisson_arrivals(30, N, rng), rng.exponential(0.1, N), servers=2, capacity=6)
    want = q.mmck(30, 10, 2, 6)
    assert path.shed / N == pytest.approx(want.shed, rel=0.02)
    interval = batch_means(path.sojourn, confidence=0.999)
    assert interval.low < want.W < interval.high


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=30))
def test_array_and_event_loop_take_the_same_path(pairs):
    gaps, services = np.array(pairs).T
    arrivals = np.cumsum(gaps)
    fast, slow = simulate(arrivals, services), simulate(arrivals, services, capacity=10**6)
    np.testing.assert_allclose(fast.departure, slow.departure, atol=1e-9)
    assert (fast.waiting >= 0).all()
    assert (np.diff(fast.departure) >= -1e-9).all()


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0.01, 5)), min_size=1, max_size=30),
    st.integers(1, 3),
)
def test_littles_law_is_exact_on_every_path(pairs, servers):
    gaps, services = np.array(pairs).T
    path = simulate(np.cumsum(gaps), services, servers)
    seen = observed(path)
    assert pytest.approx(seen.arrival_rate * seen.W) == seen.L
    assert number_inside(path)[1][-1] == 0


def test_littles_law_holds_in_the_long_run():
    """In mid-flight the sides differ by those inside; a longer watch makes it less."""
    rng = np.random.default_rng(5)
    path = simulate(poisson_arrivals(9, N, rng), rng.exponential(0.1, N))
    gaps = [
        abs(1 - (s := observed(path, until)).L / (s.arrival_rate * s.W))
        for until in (10, 100, 1000, 10_000)
    ]
    assert gaps[-1] < 0.001
    assert gaps[0] > gaps[-1]


def test_batch_means_cover_the_truth():
    """Of 200 intervals at 90 %, nine tenths hold the mean; naive ones far fewer."""
    rng = np.random.default_rng(7)
    held = naive_held = 0
    for _ in range(200):
        path = simulate(poisson_arrivals(7, 20_000, rng), rng.exponential(0.1, 20_000))
        interval = batch_means(path.waiting, confidence=0.9)
        held += interval.low < q.mm1(7, 10).Wq < interval.high
        naive = 1.645 * path.waiting.std() / math.sqrt(path.waiting.size)
        naive_held += abs(path.waiting.mean() - q.mm1(7, 10).Wq) < naive
    assert 165 <= held <= 195
    assert naive_held < 100


# --- independent packages ---------------------------------------------------------------------


def simpy_waits(arrivals, services, servers):
    """The waits of the same requests, by simpy."""
    import simpy

    env = simpy.Environment()
    pool, waits = simpy.Resource(env, servers), np.empty(len(arrivals))

    def request(i):
        yield env.timeout(arrivals[i])
        with pool.request() as turn:
            yield turn
            waits[i] = env.now - arrivals[i]
            yield env.timeout(services[i])

    for i in range(len(arrivals)):
        env.process(request(i))
    env.run()
    return waits


@pytest.mark.parametrize("servers", [1, 3])
def test_same_path_as_simpy(servers):
    rng = np.random.default_rng(11)
    arrivals, services = poisson_arrivals(0.9 * servers, 5000, rng), rng.exponential(1, 5000)
    np.testing.assert_allclose(
        simulate(arrivals, services, servers).waiting,
        simpy_waits(arrivals, services, servers),
        atol=1e-8,
    )


@pytest.mark.parametrize(
    ("servers", "room"),
    [(2, 4), *(pytest.param(n, math.inf, marks=pytest.mark.slow) for n in (1, 3))],
)
def test_same_steady_state_as_ciw(servers, room):
    import ciw

    rate = 0.8 * servers if room == math.inf else 3.0 * servers
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[servers],
        queue_capacities=[room],
    )
    ciw.seed(13)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(20_000, method="Arrive")
    records = simulation.get_all_records()
    waits = np.array(
        [
            r.waiting_time
            for r in sorted(records, key=lambda r: r.arrival_date)
            if r.record_type == "service"
        ]
    )
    want = (
        q.mmc(rate, 1, servers).Wq
        if room == math.inf
        else q.mmck(rate, 1, servers, servers + room).Wq
    )
    interval = batch_means(waits, confidence=0.999)
    assert interval.low < want < interval.high


# --- serving ----------------------------------------------------------------------------------

CHIP = {"peak": 1e15, "bandwidth": 3.5e12}
MODEL = {"parameters": 70e9, "kv_bytes": 2.5e9, "parameter_bytes": 1}
sizes = st.floats(1e8, 1e12)
caches = st.one_of(st.just(0.0), st.floats(1e5, 1e11))


@given(sizes, caches, st.sampled_from([0.5, 1, 2]), st.floats(1e-3, 10))
def test_largest_batch_within_a_budget(parameters, kv_bytes, parameter_bytes, budget):
    model = {"parameters": parameters, "kv_bytes": kv_bytes, "parameter_bytes": parameter_bytes}
    batch = int(serving.batch_within(budget, **model, **CHIP))
    assert serving.decode_step(batch + 1, **model, **CHIP).time > budget * (1 - 1e-9)
    if batch:
        assert serving.decode_step(batch, **model, **CHIP).time <= budget * (1 + 1e-9)


@given(sizes, st.floats(1e5, 1e11), st.sampled_from([0.5, 1, 2]))
def test_the_knee_has_the_highest_power(parameters, kv_bytes, parameter_bytes):
    model = {"parameters": parameters, "kv_bytes": kv_bytes, "parameter_bytes": parameter_bytes}
    knee = serving.knee_batch(**model, **CHIP)
    assume(knee > 50)

    def power(batch):
        return batch / serving.decode_step(round(batch), **model, **CHIP).time ** 2

    assert power(knee) >= 0.99 * max(
        power(knee / 2), power(knee * 0.8), power(knee * 1.25), power(knee * 2)
    )


def test_the_roof_of_decoding_is_the_critical_batch():
    from lightspeed.roofline import critical_batch, ridge_point

    knee = serving.knee_batch(70e9, 0.0, 1e15, 3.5e12, parameter_bytes=1)
    assert knee == pytest.approx(critical_batch(ridge_point(1e15, 3.5e12), weight_bytes=1))
    below, above = (
        serving.decode_step(math.floor(knee) + more, 70e9, 0.0, **CHIP, parameter_bytes=1)
        for more in (0, 1)
    )
    assert not below.compute_bound and above.compute_bound


@given(sizes, caches, st.integers(1, 500))
def test_a_bigger_batch_gives_more_and_takes_longer(parameters, kv_bytes, batch):
    one, two = (
        serving.decode_step(b, parameters, kv_bytes, **CHIP).time for b in (batch, batch + 1)
    )
    assert two >= one
    assert (batch + 1) / two >= batch / one * (1 - 1e-12)


def test_batch_that_fits():
    # the weights take a sliver, and there are no fractions
    assert serving.batch_that_fits(24e9, 1e3, 1e9) == 23
    assert serving.batch_that_fits(640e9, 140e9, 2.5e9) == 200
    assert serving.batch_that_fits(80e9, 79.5e9, 1e9) == 0


@given(st.floats(0.05, 0.97), st.integers(1, 60))
def test_serving_queue_by_its_balance_equations(rho, slots):
    """The chain of states solved as linear equations, truncated far out."""
    tokens, full = 100, serving.decode_step(slots, **MODEL, **CHIP).time
    rate = rho * slots / (tokens * full)
    states = slots + int(30 / (1 - rho)) + 50
    weights = [1.0]
    for n in range(1, states):
        batch = min(n, slots)
        weights.append(
            weights[-1] * rate * tokens * serving.decode_step(batch, **MODEL, **CHIP).time / batch
        )
    p, inside = np.array(weights) / sum(weights), np.arange(states)
    queue = serving.serving_queue(rate, tokens, slots, **MODEL, **CHIP)
    assert queue.rho == pytest.approx(rho)
    assert pytest.approx(p @ inside, rel=1e-4) == queue.L
    assert queue.wait_probability == pytest.approx(p[inside >= slots].sum(), rel=1e-4)
    assert queue.Lq == pytest.approx(p @ np.maximum(inside - slots, 0), rel=1e-3, abs=1e-9)


def test_serving_queue_is_mmc_when_steps_do_not_slow():
    # No cache to read, little arithmetic: any batch's step takes as long, slots are servers.
    step = serving.decode_step(8, 1e9, 0.0, **CHIP).time
    queue = serving.serving_queue(3.0, 100, 8, 1e9, 0.0, **CHIP)
    np.testing.assert_allclose(numbers(queue), numbers(q.mmc(3.0, 1 / (100 * step), 8)), rtol=1e-9)


def test_serving_queue_agrees_with_decoding_step_by_step():
    rng = np.random.default_rng(17)
    slots, tokens, n = 24, 80, 60_000
    step = [0.0] + [serving.decode_step(b, **MODEL, **CHIP).time for b in range(1, slots + 1)]
    rate = 0.9 * slots / (tokens * step[slots])
    path = simulate_decoding(
        poisson_arrivals(rate, n, rng), rng.geometric(1 / tokens, n), slots, step.__getitem__
    )
    want = serving.serving_queue(rate, tokens, slots, **MODEL, **CHIP)
    interval = batch_means(path.sojourn, confidence=0.999)
    # An arrival waits for the step in progress, half a step on average, which the chain leaves out.
    assert interval.low < want.W + step[slots] / 2 < interval.high


def test_decoding_step_by_step_conserves_requests():
    rng = np.random.default_rng(19)
    tokens = rng.integers(1, 9, 500)
    path = simulate_decoding(
        poisson_arrivals(2, 500, rng), tokens, 4, lambda n: 0.1 + 0.02 * n, prefill=0.05
    )
    assert (path.waiting >= 0).all()
    assert (path.departure - path.start >= tokens * 0.12 + 0.05 - 1e-9).all()
    served = Path(path.start, path.start, path.departure)
    times, counts = number_inside(served)
    assert counts[:-1][np.diff(times) > 0].max() == 4


def test_no_published_run_beats_the_bound():
    """Nor does a batch that ran exceed the memory."""
    from lightspeed.catalog import accelerator
    from lightspeed_models.llm import decoder

    for run in serving.measured_runs()[1]:
        model, chip, n = decoder(run["model"]), accelerator(run["accelerator"]), run["gpus"]
        width = 1 if run["precision"] == "fp8" else 2
        token = model.kv_cache_bytes_per_token(width)
        shape = {
            "parameters": model.parameters,
            "peak": n * getattr(chip, run["precision"]),
            "bandwidth": n * chip.hbm_bandwidth,
            "parameter_bytes": width,
        }
        bound = serving.generation_time(
            run["batch"], run["input"], run["output"], kv_per_token=token, **shape
        )
        share = run["throughput"] * n / (run["batch"] * run["output"] / bound)
        assert (
            (0.7 if n == 1 and run["batch"] < 200 and run["output"] > 1000 else 0.15) < share < 0.9
        )
        fits = serving.batch_that_fits(
            n * chip.hbm_capacity, width * model.parameters, token * (run["input"] + run["output"])
        )
        assert run["batch"] <= fits
