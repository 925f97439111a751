"""Scaling laws: closed forms, limits, duality, bad input, the fit, work and span."""

import inspect
import itertools
import json
import math

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed import scaling as s
from lightspeed import training as t
from lightspeed.errors import BadArgument
from lightspeed.units import Q
from lightspeed_models.fits import fit_usl
from lightspeed_models.profiles import scaling_runs

INF, NAN = math.inf, math.nan
shares = st.floats(0, 1)
inner = st.floats(1e-6, 1 - 1e-6)
processors = st.floats(1, 1e6)


# ---------------------------------------------------------------- closed forms and limits


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (s.amdahl_speedup(100, parallel=0.9), 9.174311926605505),
        (s.amdahl_speedup(100, parallel=9 / 11), 5.2631578947368425),  # the source prints 5.34
        # a comment in the source says about 7.5
        (s.amdahl_speedup(8, serial=0.05), 5.925925925925926),
        (s.gustafson_speedup(1000, parallel=0.95), 950.05),
        (s.gustafson_speedup(256, serial=0.1), 230.5),
        (s.processors_at_efficiency(0.5, parallel=0.95), 21.0),
        (s.run_cost(4, 2.0, 3600.0, 1e-3), 7.2),
        (t.training_time(t.training_flops(1e9, 20e9), 1, 312e12, 0.4) / 86400, 11.128917378917379),
        # Megatron-LM README: 138 TFLOP/s a GPU at 32 s a batch, recomputation counted
        (
            t.transformer_training_flops(1536 * 2048, 96, 12288, 51200, 2048, 1) / (32 * 1024),
            138e12,
        ),
    ],
)
def test_published_values(got, want):
    assert got == pytest.approx(want, rel=0.01 if want == 138e12 else 1e-12)


@given(serial=inner)
def test_amdahl_ends_at_one_over_the_serial_share(serial):
    assert s.amdahl_speedup(1, serial=serial) == pytest.approx(1)
    assert s.amdahl_speedup(INF, serial=serial) == pytest.approx(1 / serial)


def test_no_serial_part_has_no_limit():
    assert s.amdahl_speedup(INF, serial=0) == INF
    assert s.amdahl_speedup(64, serial=0) == s.gustafson_speedup(64, serial=0) == 64
    assert s.processors_at_efficiency(0.5, serial=0) == INF
    assert s.usl_peak(serial=0.1, kappa=0) == INF
    # All serial: the speedup is 1 everywhere, first of all on one.
    assert s.usl_peak(serial=1, kappa=0) == 1 == s.usl_speedup(1e6, serial=1, kappa=0)


@given(n=processors, serial=shares)
def test_duality_one_law_two_baselines(n, serial):
    """The two laws give one speedup once each has the serial share of its own run."""
    on_n = s.serial_on_n(n, serial_on_one=serial)
    assert s.gustafson_speedup(n, serial=on_n) == pytest.approx(s.amdahl_speedup(n, serial=serial))
    assert s.serial_on_one(n, serial_on_n=on_n) == pytest.approx(serial)
    assert on_n >= serial * (1 - 1e-12)


@given(n=processors, more=st.floats(1, 10), serial=shares)
def test_amdahl_never_falls_and_never_beats_n(n, more, serial):
    assert s.amdahl_speedup(n * more, serial=serial) >= s.amdahl_speedup(n, serial=serial) * (
        1 - 1e-12
    )
    assert s.amdahl_speedup(n, serial=serial) <= n * (1 + 1e-12)


@given(n=st.floats(1.001, 1e4), serial=shares)
def test_karp_flatt_inverts_amdahl(n, serial):
    assert s.karp_flatt(s.amdahl_speedup(n, serial=serial), n) == pytest.approx(serial, abs=1e-9)


@given(serial=inner, efficiency=st.floats(0.01, 0.99))
def test_processors_at_efficiency_inverts_efficiency(serial, efficiency):
    n = s.processors_at_efficiency(efficiency, serial=serial)
    assert s.efficiency(s.amdahl_speedup(n, serial=serial), n) == pytest.approx(efficiency)


@given(n=processors, serial=shares, kappa=st.floats(0, 1))
def test_usl_is_amdahl_with_a_linear_third_term(n, serial, kappa):
    with_term = s.communication_speedup(n, serial=serial, overhead=kappa * (n - 1))
    assert s.usl_speedup(n, serial=serial, kappa=kappa) == pytest.approx(with_term)
    assert s.usl_speedup(n, serial=serial, kappa=0) == pytest.approx(
        s.amdahl_speedup(n, serial=serial)
    )


@pytest.mark.parametrize(
    ("serial", "kappa"), [*itertools.product([0, 0.01, 0.3, 0.9], [1e-4, 0.003, 0.05, 1])]
)
def test_usl_peak_by_brute_force(serial, kappa):
    n = np.linspace(1, 150, 1_490_001)
    best = n[np.argmax(s.usl_speedup(n, serial=serial, kappa=kappa))]
    assert best == pytest.approx(s.usl_peak(serial=serial, kappa=kappa), abs=1e-3)


@given(
    params=st.floats(1e6, 1e12),
    tokens=st.floats(1e6, 1e13),
    time=st.floats(1, 1e7),
    n=st.integers(1, 10**5),
)
def test_hfu_is_mfu_with_the_repeated_work(params, tokens, time, n):
    run = (params, tokens, time, n, 1e15)
    assert t.hfu(*run, recomputed=0) == pytest.approx(t.mfu(*run))
    assert t.hfu(*run) / t.mfu(*run) == pytest.approx(4 / 3)
    if t.mfu(*run) <= 1:
        again = t.training_time(t.training_flops(params, tokens), n, 1e15, t.mfu(*run))
        assert again == pytest.approx(time)


def test_one_run_has_three_mfus_and_each_says_its_count():
    """Scores by counting pairs of tokens; the published case where the three differ most: Llama 3
    70B on 512 H100, sequences of 131,072."""
    layers, width, sequence = 3, 64, 50
    pairs = {"6PD": 0, "causal": sum(range(sequence)) + sequence / 2, "square": sequence**2}
    for counting, each in pairs.items():  # two products of 2 FLOPs, forward and twice backward
        flops = t.score_flops(layers, width, sequence, counting) * sequence
        assert flops == pytest.approx(3 * 2 * 2 * layers * width * each), counting
    whole = t.transformer_training_flops(1.0, layers, width, 100, sequence)
    alone = 6 * layers * 12 * width**2 + 6 * width * 100
    assert whole - alone == pytest.approx(t.score_flops(layers, width, sequence, "square"))
    run = 70.55e9, 16 * 2**20, 1.0, 512, 989.4e12
    scores = {how: t.score_flops(80, 8192, 131072, how) for how in t.COUNTS}
    by = {how: t.mfu(*run, scores=each) for how, each in scores.items()}
    assert [round(19 * by[how] / by["6PD"]) for how in t.COUNTS] == [19, 42, 65]
    assert t.hfu(*run, scores=scores["square"]) == pytest.approx(4 / 3 * by["square"])


def test_transformer_flops_close_to_six_p_d():
    """GPT-3: attention and logits add a few per cent to 6 P D over the non-embedding parameters."""
    blocks = 12 * 96 * 12288**2
    ratio = t.transformer_training_flops(1.0, 96, 12288, 51200, 2048) / t.training_flops(
        blocks, 1.0
    )
    assert ratio == pytest.approx(1 + 2048 / (6 * 12288) + 51200 / (12 * 96 * 12288))


# ---------------------------------------------------------------- units and bad input (the general


def test_units_are_enforced_and_converted():
    days = t.training_time(Q(6.3e24, "FLOP"), 4096, Q(990, "TFLOP/s"), 0.45).to("day").magnitude
    assert days == pytest.approx(39.96, abs=0.01)
    with pytest.raises(BadArgument, match="peak"):
        t.training_time(Q(6.3e24, "FLOP"), 4096, Q(990, "GB/s"), 0.45)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: s.amdahl_speedup(8, serial=5), "serial"),  # 5 for 5 %
        (lambda: s.amdahl_speedup(8), "serial"),
        (lambda: s.amdahl_speedup(8, serial=0.1, parallel=0.8), "parallel"),
        (lambda: s.amdahl_speedup(8, serial=0.1, parallel=np.array([0.9, 0.8])), "parallel"),
        (lambda: s.greedy_bounds(1.0, 2.0, 4), "span"),
        (lambda: fit_usl(np.array([0.5, 2, 4, 8]), np.array([1.0, 1.9, 3.5, 6])), "n"),
        (lambda: fit_usl([1, 2, 4, 8], np.array([1.0, 1.9, 3.5, 6])), "n"),
        (lambda: s.amdahl_speedup(0.5, serial=0.1), "n"),
        (lambda: s.gustafson_speedup(INF, serial=0.1), "n"),
        (lambda: s.karp_flatt(1.0, 1), "n"),
        (lambda: s.processors_at_efficiency(0, serial=0.1), "efficiency"),
        (lambda: t.training_time(1e20, 8.5, 1e15, 0.4), "n"),
        (lambda: t.training_time(1e20, 8, 1e15, 40), "utilization"),  # 40 for 40 %
        (lambda: fit_usl(np.array([2.0, 4, 8]), np.array([1.9, 3.5, 6])), "n"),
        (lambda: fit_usl(np.array([2.0, 2, 4, 4]), np.array([1.9, 1.9, 3.5, 3.5])), "n"),
        (lambda: fit_usl(np.array([1.0, 2, 4, 8]), np.array([1.9, 3.5])), "speedup"),
        (lambda: s.parallel_fraction({"a": 1.0}, ["b"]), "parallel"),
        (lambda: s.parallel_fraction({"a": -1.0}, ["a"]), "breakdown['a']"),
        (lambda: s.parallel_fraction({}, []), "breakdown"),
        (lambda: s.parallel_fraction({"a": 0.0}, ["a"]), "breakdown"),
        (lambda: s.profile_speedup({"a": 1.0}, {"b": 2}), "factors"),
        (lambda: s.profile_speedup({"a": 1.0}, {"a": 0}), "factors['a']"),
        (lambda: s.work_span(networkx.DiGraph()), "graph"),
        (lambda: s.work_span(networkx.DiGraph([(1, 2), (2, 1)])), "graph"),
        (lambda: s.work_span(networkx.DiGraph([("a", "b")])), "time of 'a'"),
    ],
)
def test_refusals_name_the_argument(call, argument):
    with pytest.raises(BadArgument) as error:
        call()
    assert error.value.argument == argument


def test_shares_are_never_positional():
    for law in (law for law in vars(s).values() if hasattr(law, "arguments")):
        for name, parameter in inspect.signature(law).parameters.items():
            if name.startswith(("serial", "parallel", "kappa")):
                assert parameter.kind is parameter.KEYWORD_ONLY
    with pytest.raises(TypeError):
        s.amdahl_speedup(8, 0.05)


# ---------------------------------------------------------------- the fit


@given(serial=st.floats(0, 0.5), kappa=st.floats(1e-4, 0.05), baseline=st.floats(0.8, 1.2))
def test_fit_recovers_exact_data(serial, kappa, baseline):
    n = np.array([1.0, 2, 4, 8, 16, 32])
    fit = fit_usl(n, baseline * s.usl_speedup(n, serial=serial, kappa=kappa))
    assert (fit.serial, fit.kappa, fit.baseline) == pytest.approx(
        (serial, kappa, baseline), abs=1e-8
    )
    assert fit.peak == pytest.approx(s.usl_peak(serial=serial, kappa=kappa), rel=1e-4)


@pytest.mark.parametrize(
    ("serial", "kappa", "noise"), [(0.05, 0.003, 0.03), (0.0, 0.001, 0.02), (0.2, 0.0, 0.05)]
)
def test_intervals_are_honest(serial, kappa, noise):
    """A 95 % interval holds the truth in 95 % of 1000 noisy runs, within 3 sigma."""
    rng, n = np.random.default_rng(7), np.array([1.0, 2, 3, 4, 6, 8, 12, 16, 24, 32])
    truth = s.usl_speedup(n, serial=serial, kappa=kappa)
    fits = [fit_usl(n, truth * (1 + noise * rng.standard_normal(n.size))) for _ in range(1000)]
    for interval, value in (("serial_interval", serial), ("kappa_interval", kappa)):
        inside = np.mean(
            [getattr(f, interval)[0] <= value <= getattr(f, interval)[1] for f in fits]
        )
        assert abs(inside - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 1000)
    if kappa:
        peak = s.usl_peak(serial=serial, kappa=kappa)
        assert np.mean([f.peak_interval[0] <= peak <= f.peak_interval[1] for f in fits]) > 0.93
    else:
        assert np.mean([f.peak_interval[1] == INF for f in fits]) > 0.93


def test_fit_agrees_with_scipy_and_with_the_published_fit():
    """MySQL on a Cisco server. Errors relative: SciPy's iteration finds what ours finds. Errors
    absolute: it finds the three numbers that Schwartz published; the difference between the two is
    the choice of weights alone."""
    from scipy.optimize import curve_fit

    run = scaling_runs()["mysql_cisco"]
    n, rate = np.array(run["n"], float), np.array(run["values"])

    def model(n, serial, kappa, baseline):
        return baseline * n / (1 + serial * (n - 1) + kappa * n * (n - 1))

    # Our residual is relative to the model, SciPy's to the data: equal to first order.
    relative, _ = curve_fit(model, n, rate, p0=(0.02, 1e-3, 1000), sigma=rate)
    fit = fit_usl(n, rate / rate[0])
    assert relative[0] == pytest.approx(fit.serial, abs=fit.serial_error / 3)
    assert relative[1] == pytest.approx(fit.kappa, abs=fit.kappa_error / 3)
    absolute, _ = curve_fit(model, n, rate, p0=(0.02, 1e-3, 1000))
    published = (run["published_serial"], run["published_kappa"], run["published_baseline"])
    assert absolute == pytest.approx(published, rel=2e-4)


# ---------------------------------------------------------------- profiles, work and span


def test_profile_of_the_source():
    parts = {"serial_setup": 0.1, "parallel_compute": 0.9, "serial_finalize": 0.1}
    p = s.parallel_fraction(parts, ["parallel_compute"])
    assert p == pytest.approx(9 / 11)  # 81.8 %, not 90 %
    for n in (1, 8, 100, INF):
        assert s.profile_speedup(parts, {"parallel_compute": n}) == pytest.approx(
            s.amdahl_speedup(n, parallel=p)
        )


@given(times=st.lists(st.floats(0.01, 10), min_size=1, max_size=6), factor=st.floats(0.1, 100))
def test_one_factor_for_all_parts_is_the_speedup(times, factor):
    parts = {str(i): time for i, time in enumerate(times)}
    assert s.profile_speedup(parts, dict.fromkeys(parts, factor)) == pytest.approx(factor)


def random_dag(rng, size):
    graph = networkx.DiGraph()
    for i in range(size):
        graph.add_node(i, time=float(rng.integers(1, 10)))
    graph.add_edges_from(
        (i, j) for i in range(size) for j in range(i + 1, size) if rng.random() < 0.3
    )
    return graph


def longest_by_brute_force(graph):
    def longest(node):
        return graph.nodes[node]["time"] + max(
            (longest(after) for after in graph.successors(node)), default=0.0
        )

    return max(longest(node) for node in graph)


def greedy_schedule(graph, n):
    """Time of the schedule that starts any ready node on any free processor."""
    left = {node: graph.in_degree(node) for node in graph}
    ready, running, now = [node for node in graph if not left[node]], [], 0.0
    while ready or running:
        while ready and len(running) < n:
            node = ready.pop()
            running.append((now + graph.nodes[node]["time"], node))
        now, node = min(running)
        running.remove((now, node))
        for after in graph.successors(node):
            left[after] -= 1
            if not left[after]:
                ready.append(after)
    return now


@pytest.mark.parametrize("seed", range(20))
def test_work_span_and_greedy_bounds_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    graph = random_dag(rng, int(rng.integers(1, 12)))
    result = s.work_span(graph)
    assert result.span == longest_by_brute_force(graph)
    assert result.work == sum(nx_time for _, nx_time in graph.nodes(data="time"))
    assert sum(graph.nodes[node]["time"] for node in result.path) == result.span
    assert all(graph.has_edge(a, b) for a, b in itertools.pairwise(result.path))
    for n in (1, 2, 3, 16):
        bounds = s.greedy_bounds(result.work, result.span, n)
        assert bounds.lower <= greedy_schedule(graph, n) <= bounds.upper + 1e-9


def test_a_chain_has_no_parallelism():
    graph = networkx.path_graph(5, create_using=networkx.DiGraph)
    networkx.set_node_attributes(graph, 2.0, "time")
    assert s.work_span(graph) == s.WorkSpan(10.0, 10.0, (0, 1, 2, 3, 4), 1.0)


# ---------------------------------------------------------------- recorded data


def test_recorded_runs_are_complete():
    runs = scaling_runs()
    for key in ("own_cpu_run", "own_server_run"):
        samples = np.array(runs[key]["samples"])
        assert samples.shape == (len(runs[key]["n"]), len(runs[key]["serial_samples"]))
        assert (samples > 0).all()
    for run in runs.values():
        assert run["name"] and run["source"]
        if "values" in run:
            assert len(run["n"]) == len(run["values"])
    assert json.dumps(list(runs))  # plain data: dates aside, nothing but numbers, text and lists
