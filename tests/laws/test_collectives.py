"""Collectives: closed forms, bounds, duality, the ring on arrays, the fit, NCCL's tables."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import each

from lightspeed import collectives as c
from lightspeed.errors import BadArgument
from lightspeed.units import Q
from lightspeed_models import nccl_fit, nccl_tuner
from lightspeed_models.fits import fit_alpha_beta
from lightspeed_models.simulators import ring
from lightspeed_models.simulators.ring import ring_schedule, run_ring

ranks = st.integers(2, 4096)
sizes = st.floats(1.0, 1e12)
rates = st.floats(1e6, 1e12)
alphas = st.floats(1e-9, 1e-3)
ALL_REDUCES = (
    c.ring_time,
    c.tree_time,
    c.double_tree_time,
    c.recursive_doubling_time,
    c.halving_doubling_time,
)


# ---------------------------------------------------------------- algbw and busbw


@pytest.mark.parametrize(
    ("collective", "n", "factor"),
    [
        ("all_reduce", 2, 1.0),
        ("all_reduce", 4, 1.5),
        ("all_reduce", 1000, 1.998),
        ("all_gather", 8, 0.875),
        ("alltoall", 8, 0.875),
        ("broadcast", 8, 1.0),
        ("sendrecv", 8, 1.0),
        ("all_reduce", 1, 0.0),
    ],
)
def test_factors(collective, n, factor):
    assert c.busbw_factor(collective, n) == pytest.approx(factor, rel=1e-12)


@given(n=st.integers(2, 64))
def test_factors_count_what_ranks_must_send(n):
    """n shards: reduce_scatter sends all but its own, all_gather its own, all_reduce both."""
    shard = 1 / n
    sent = {
        "reduce_scatter": (n - 1) * shard,
        "all_gather": (n - 1) * shard,
        "alltoall": (n - 1) * shard,
    }
    sent["all_reduce"] = sent["reduce_scatter"] + sent["all_gather"]
    for collective, share in sent.items():
        assert c.busbw_factor(collective, n) == pytest.approx(share)


@given(size=sizes, time=st.floats(1e-6, 1e3), n=ranks, collective=st.sampled_from(c.COLLECTIVES))
def test_busbw_and_back(size, time, n, collective):
    rate = c.algbw(size, time)
    assert c.algbw_from_busbw(collective, n, c.busbw(collective, n, rate)) == pytest.approx(rate)
    # The busbw of a run is the bandwidth at which the bound would take as long.
    assert c.bandwidth_bound(collective, size, n, c.busbw(collective, n, rate)) == pytest.approx(
        time
    )


def test_busbw_is_not_twice_algbw():
    ratios = [c.busbw("all_reduce", n, 1.0) for n in (2, 4, 8, 16, 1000)]
    assert ratios == sorted(ratios)
    assert ratios[0] == 1
    assert max(ratios) < 2


# ---------------------------------------------------------------- algorithms and bounds


@given(size=sizes, n=ranks, bandwidth=rates, alpha=alphas)
def test_no_algorithm_beats_the_bounds(size, n, bandwidth, alpha):
    bound = max(c.bandwidth_bound("all_reduce", size, n, bandwidth), c.latency_bound(n, alpha))
    for algorithm in ALL_REDUCES:
        assert algorithm(size, n, bandwidth, alpha) >= bound * (1 - 1e-12), algorithm.__name__
    times = {"alltoall": c.alltoall_time(size, n, bandwidth, alpha)}
    for half in ("all_gather", "reduce_scatter"):
        times[half] = c.ring_time(size, n, bandwidth, alpha, half)
    for collective, time in times.items():
        assert time >= c.bandwidth_bound(collective, size, n, bandwidth) * (1 - 1e-12), collective


@given(power=st.integers(0, 12), size=sizes, bandwidth=rates, alpha=alphas)
def test_what_each_is_good_for(power, size, bandwidth, alpha):
    n = 2**power
    bound = c.bandwidth_bound("all_reduce", size, n, bandwidth)
    assert c.ring_time(size, n, bandwidth) == pytest.approx(bound)
    assert c.halving_doubling_time(size, n, bandwidth) == pytest.approx(bound)
    assert c.recursive_doubling_time(0.0, n, bandwidth, alpha) == pytest.approx(
        c.latency_bound(n, alpha)
    )
    assert c.double_tree_time(size, n, bandwidth) <= 2 * size / bandwidth
    assert c.double_tree_time(0.0, n, bandwidth, alpha) == pytest.approx(
        2 * c.latency_bound(n, alpha)
    )
    assert c.tree_time(size, n, bandwidth, alpha) == pytest.approx(
        2 * power * (alpha + size / bandwidth)
    )


@pytest.mark.parametrize("algorithm", [*ALL_REDUCES, c.alltoall_time])
def test_one_rank_has_nothing_to_do(algorithm):
    assert algorithm(1e9, 1, 1e9, 1e-6) == 0


@pytest.mark.parametrize("algorithm", [c.ring_time, c.tree_time, c.alltoall_time])
@given(size=sizes, n=st.integers(2, 1000), bandwidth=rates, alpha=alphas)
def test_monotone(algorithm, size, n, bandwidth, alpha):
    time = algorithm(size, n, bandwidth, alpha)
    assert algorithm(2 * size, n, bandwidth, alpha) > time
    assert algorithm(size, 2 * n, bandwidth, alpha) > time
    assert algorithm(size, n, 2 * bandwidth, alpha) < time


@given(size=sizes, n=ranks, bandwidth=rates, alpha=alphas)
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(size, n, bandwidth, alpha):
    halves = [
        c.ring_time(size, n, bandwidth, alpha, half) for half in ("reduce_scatter", "all_gather")
    ]
    assert c.ring_time(size, n, bandwidth, alpha) == pytest.approx(sum(halves))


@each("n", range(1, 70))
def test_logarithms_are_those_of_whole_numbers(n):
    assert c.latency_bound(n, 1.0) == (n - 1).bit_length()
    assert c.latency_bound(np.array([n]), 1.0)[0] == (n - 1).bit_length()
    extra = 0 if n & (n - 1) == 0 else 2
    assert c.recursive_doubling_time(0.0, n, 1.0, 1.0) == n.bit_length() - 1 + extra


@given(
    size=sizes, inside=rates, alpha=alphas, per_node=st.integers(1, 16), nodes=st.integers(1, 64)
)
def test_hierarchy(size, inside, alpha, per_node, nodes):
    """One level alone is a plain ring; levels of one rate move what one ring moves."""
    alone = c.hierarchical_time(size, per_node, 1, inside, inside, alpha, alpha)
    assert alone.upper == pytest.approx(c.ring_time(size, per_node, inside, alpha))
    flat = c.hierarchical_time(size, 1, nodes, inside, inside, alpha, alpha)
    assert flat.upper == pytest.approx(c.ring_time(size, nodes, inside, alpha))
    for collective in ("all_reduce", "all_gather", "reduce_scatter", "alltoall"):
        both = c.hierarchical_time(size, per_node, nodes, inside, inside, collective=collective)
        assert both.lower == max(both.inside, both.across) <= both.upper
        if collective != "alltoall":
            assert both.upper == pytest.approx(
                c.bandwidth_bound(collective, size, per_node * nodes, inside)
            )


@given(size=sizes, per_node=st.integers(2, 16), nodes=st.integers(2, 64), rate=rates)
def test_alltoall_crosses_with_all_but_its_own_node(size, per_node, nodes, rate):
    n = per_node * nodes
    levels = c.hierarchical_time(size, per_node, nodes, rate, rate, collective="alltoall")
    assert levels.across == pytest.approx(size * (n - per_node) / n / rate)
    assert levels.upper == pytest.approx(c.alltoall_time(size, n, rate))


def test_nvls_sends_all_of_its_buffer_and_its_part_of_the_sum():
    """Count bytes rank by rank: each head's read takes its part from every buffer, its store
    leaves once and arrives at all."""
    for n in (2, 3, 5, 8, 72):
        out, into = [0.0] * n, [0.0] * n
        for head in range(n):
            out = [sent + 1 / n for sent in out]
            into[head] += 1 / n
            out[head] += 1 / n
            into = [got + 1 / n for got in into]
        assert c.nvls_time(9e9, n, 1e9) == pytest.approx(9 * out[0]) == pytest.approx(9 * into[0])
        bus = c.busbw("all_reduce", n, c.algbw(1.0, c.nvls_time(1.0, n, 1.0)))
        assert bus == pytest.approx(2 * (n - 1) / (n + 1))
    assert c.nvls_time(9e9, 1, 1e9, 1e-6) == 0


def test_public_rows_of_nvls_rise_with_ranks_as_the_law_says():
    """algbw from five to eight H200 and from six to eight B200: a switch that took S alone would
    hold it still, and is twice as far off as the law."""
    for series in ("h200_nvls", "b200_nvls"):
        rows = [r for r in nccl_fit.measurements() if r.series == series]
        best = {r.n: r.size / r.time for r in rows if r.size == max(row.size for row in rows)}
        rise = best[8] / best[few := min(best)]
        law = c.nvls_time(1.0, few, 1.0) / c.nvls_time(1.0, 8, 1.0)
        assert 1.9 * abs(law / rise - 1) < abs(1 / rise - 1), (series, few, rise, law)


def tree_parent_and_children(n, rank):
    """A rank of NCCL's binary tree of n ranks (2.30.7, src/graph/trees.cc, ncclGetBtree)."""
    bit = next((1 << b for b in range(n.bit_length()) if rank >> b & 1), 1 << (n - 1).bit_length())
    if rank == 0:
        return [], [bit >> 1] if n > 1 else []
    up = (rank ^ bit) | (bit << 1)
    low = bit >> 1
    right = next((rank + (low >> k) for k in range(20) if low >> k and rank + (low >> k) < n), None)
    down = [rank - low] * (low > 0) + [right] * (right is not None)
    return [up if up < n else rank ^ bit], down


def test_the_busiest_rank_of_two_trees():
    """Half of the message in each tree; the other is its mirror, or shifted by one if n is odd."""
    for n in (*range(2, 20), 64, 100, 513):
        sends = [sum(map(len, tree_parent_and_children(n, rank))) / 2 for rank in range(n)]
        other = [sends[rank - 1] if n % 2 else sends[n - 1 - rank] for rank in range(n)]
        busiest = max(map(sum, zip(sends, other, strict=True)))
        assert sum(sends) + sum(other) == 2 * (n - 1)
        assert c.double_tree_time(1.0, n, 1.0) == busiest, n


def test_the_switch_breaks_the_bound_of_ranks():
    time = c.in_network_time(1e9, 450e9)
    assert time < c.bandwidth_bound("all_reduce", 1e9, 8, 450e9)
    bus = [c.busbw("all_reduce", n, c.algbw(1e9, time)) for n in (2, 4, 8)]
    assert bus[0] == pytest.approx(450e9)
    assert bus[2] > 450e9


def test_torus_waits_for_hops_or_bytes():
    assert c.torus_gather_time(0.0, 16, 90e9, 1e-6) == pytest.approx(8e-6)
    assert c.torus_gather_time(9e9, 4, 90e9, 1e-6) == pytest.approx(0.1)
    with pytest.raises(BadArgument, match="axes of the mesh"):
        c.replicas({"X": 2}, "I_Y")
    assert c.replicas({"X": 4, "Y": 8, "Z": 2}, "I_XY") == 2


def test_dimensions():
    assert c.ring_time(Q(1, "GB"), 8, Q(450, "GB/s"), Q(1, "us")).to(
        "ms"
    ).magnitude == pytest.approx(3.903, rel=1e-3)
    assert c.busbw("all_reduce", 8, Q(1600, "Gbit/s")).to("GB/s").magnitude == pytest.approx(350)
    with pytest.raises(BadArgument, match="byte"):
        c.algbw(Q(1, "s"), Q(1, "s"))
    with pytest.raises(BadArgument, match="Did you mean 'all_reduce'"):
        c.busbw_factor("allreduce", 8)
    with pytest.raises(BadArgument, match="GPUs"):
        c.busbw_factor("all_reduce", 12.5)


# ---------------------------------------------------------------- the ring, run


@pytest.mark.parametrize(
    ("n", "length"), [(1, 5), (2, 8), (3, 9), (4, 1), (5, 23), (8, 64), (8, 100)]
)
def test_ring_run_adds_up_and_moves_what_the_formula_says(n, length):
    rng = np.random.default_rng(7)
    arrays = [rng.integers(-1000, 1000, length) for _ in range(n)]
    run = run_ring(arrays)
    assert len(run.steps) == 2 * (n - 1) == c.ring_steps("all_reduce", n)
    for result in run.results:
        np.testing.assert_array_equal(result, sum(arrays))
    per_rank = arrays[0].nbytes * c.busbw_factor("all_reduce", n)
    assert sum(run.sent) == pytest.approx(n * per_rank)  # on average, when the chunks are uneven
    if length % n == 0:
        assert run.sent == (per_rank,) * n


def test_ring_steps_use_each_link_once_and_never_cross():
    for n in range(2, 9):
        for step in ring_schedule(n):
            assert [rank for rank, _ in step.sends] == list(range(n))
            assert sorted(chunk for _, chunk in step.sends) == list(range(n))


def test_ring_run_keeps_shape_and_leaves_its_input_alone():
    arrays = [np.full((2, 3), float(i)) for i in range(3)]
    run = run_ring(arrays)
    assert run.results[0].shape == (2, 3)
    assert arrays[1][0, 0] == 1
    with pytest.raises(BadArgument, match="one shape"):
        run_ring([np.zeros(2), np.zeros(3)])
    with pytest.raises(BadArgument, match="one array"):
        run_ring([])


@pytest.mark.parametrize("dropped", range(6))
def test_a_step_less_and_some_rank_lacks_some_sum(monkeypatch, dropped):
    steps = ring_schedule(4)
    monkeypatch.setattr(ring, "ring_schedule", lambda n: steps[:dropped] + steps[dropped + 1 :])
    arrays = [np.full(4, 10**rank) for rank in range(4)]
    assert not all((result == 1111).all() for result in run_ring(arrays).results)


# ---------------------------------------------------------------- overlap, half rate, fit


@given(latency=st.floats(1e-9, 1e3), transfer=st.floats(1e-9, 1e3), exponent=st.floats(0.5, 1.0))
def test_a_pipeline_lies_between_the_sum_and_twice_it(latency, transfer, exponent):
    time = c.overlapped_time(latency, transfer, exponent)
    assert (latency + transfer) * (1 - 1e-9) <= time <= 2 * (latency + transfer) * (1 + 1e-9)


@given(latency=alphas, bandwidth=rates, exponent=st.floats(0.5, 1.0))
def test_half_rate(latency, bandwidth, exponent):
    size = c.half_rate_size(latency, bandwidth, exponent)
    time = c.overlapped_time(latency, size / bandwidth, exponent)
    assert size / time == pytest.approx(bandwidth / 2)


def test_the_best_chunks_give_the_square_of_roots():
    """Brute force over the number of chunks k: (d - 1 + k)(alpha + t / k), d hops."""
    alpha, hops, transfer = 1e-6, 101, 1e-2
    best = min((hops - 1 + k) * (alpha + transfer / k) for k in range(1, 20000))
    assert best == pytest.approx(c.overlapped_time((hops - 1) * alpha, transfer), rel=1e-4)


@given(
    alpha=st.floats(1e-7, 1e-4),
    bandwidth=st.floats(1e9, 1e12),
    exponent=st.sampled_from([0.5, 0.6, 0.75, 1.0]),
)
def test_the_fit_finds_what_made_the_data(alpha, bandwidth, exponent):
    transfer, steps = np.meshgrid(np.geomspace(1e3, 1e10, 9), [2, 14, 254])
    time = c.overlapped_time(alpha * steps, transfer / bandwidth, exponent)
    fit = fit_alpha_beta(transfer, time, steps, exponent)
    assert fit.latency == pytest.approx(alpha, rel=1e-6)
    assert fit.bandwidth == pytest.approx(bandwidth, rel=1e-6)
    np.testing.assert_allclose(fit.residuals, 0, atol=1e-6)


def test_the_fit_never_goes_negative_and_reports_each_residual():
    transfer = np.array([1e6, 2e6, 4e6, 8e6])
    # superlinear: the best line would cross below zero
    fit = fit_alpha_beta(transfer, transfer**1.2 / 1e9)
    assert fit.latency == 0
    assert len(fit.residuals) == 4
    assert fit.residuals == pytest.approx(fit.time(transfer) / (transfer**1.2 / 1e9) - 1)


@pytest.mark.parametrize(
    ("transfer", "time", "name"),
    [
        ([1.0, 2.0], [1.0], "time"),
        ([1.0], [1.0], "time"),
        ([1.0, math.nan], [1.0, 2.0], "transfer"),
        ([1.0, 2.0], [0.0, 1.0], "time"),
    ],
)
def test_the_fit_refuses(transfer, time, name):
    with pytest.raises(BadArgument) as error:
        fit_alpha_beta(np.array(transfer), np.array(time))
    assert error.value.argument == name


# ---------------------------------------------------------------- NCCL's tuning model


def choice(algorithm, protocol, *job, **how):
    """What the tuner has for one algorithm and protocol."""
    return next(
        x
        for x in nccl_tuner.nccl_choices(*job, **how)
        if (x.algorithm, x.protocol) == (algorithm, protocol)
    )


@pytest.mark.parametrize("protocol", nccl_tuner.PROTOCOLS)
@pytest.mark.parametrize("n", [2, 4, 8])
def test_a_ring_inside_a_node_is_a_base_and_steps(protocol, n):
    which = nccl_tuner.PROTOCOLS.index(protocol)
    base, step = {"LL": (6.6, 0.6), "LL128": (14.0, 1.9), "Simple": (8.4, 3.4)}[protocol]
    known = nccl_tuner.tables()
    assert (known.base["Ring"][which], known.step["NVLINK"]["Ring"][which]) == (base, step)
    assert nccl_tuner.ring_latency(n, 1, protocol=protocol) * 1e6 == pytest.approx(
        base + 2 * (n - 1) * step
    )
    assert nccl_tuner.ring_latency(n, 1, "all_gather", protocol) * 1e6 == pytest.approx(
        base + (n - 1) * step
    )


def test_the_overhead_of_the_network_counts_only_with_several_nodes():
    one, two = (partial(nccl_tuner.ring_latency, 8 * k, k, protocol="LL") for k in (1, 2))
    assert one(net_overhead=1.0) == one()
    assert two(net_overhead=2e-6) > two()
    assert two(net_latency=1e-6) == pytest.approx(two() + 2e-6)


def test_a_simple_message_waits_for_the_network_twice():
    """Its flush reads across the network again, in a ring and in a tree."""
    ring, tree = (nccl_tuner.ring_latency(16, 2), nccl_tuner.tree_latency(16, 2))
    assert nccl_tuner.ring_latency(16, 2, net_latency=1e-6) == pytest.approx(ring + 2 * 2e-6)
    assert nccl_tuner.tree_latency(16, 2, net_latency=1e-6) == pytest.approx(tree + 2 * 2e-6)


def test_with_one_gpu_a_node_every_step_is_the_trees():
    for protocol, step in (("LL", 5.0), ("LL128", 8.5), ("Simple", 14.0)):
        base = nccl_tuner.tables().base["Ring"][nccl_tuner.PROTOCOLS.index(protocol)]
        assert nccl_tuner.ring_latency(4, 4, protocol=protocol) * 1e6 == pytest.approx(
            base + 6 * step
        )


def test_a_simple_step_bears_the_overhead_three_times():
    """AMD's 2 us are 6 us a step, more than NVLink's 3.4 us; Intel's 1 us does not count."""
    intel, amd = (
        nccl_tuner.ring_latency(16, 2, net_overhead=overhead) * 1e6 for overhead in (1e-6, 2e-6)
    )
    assert intel == pytest.approx(8.4 + 28 * 3.4 + 2 * 14)
    assert amd == pytest.approx(8.4 + 28 * 6 + 2 * 14)


@pytest.mark.parametrize(
    ("nodes", "algorithm", "protocol", "bus"),
    [
        (1, "Ring", "LL", 141.0),  # the cap, below half of 370.8
        (1, "Ring", "LL128", 0.92 * 370.8),
        (1, "Ring", "Simple", 370.8),
        (1, "Tree", "LL", 0.92 * 370.8 / 3.8 * 0.5),  # trees of 1 MiB keep half, 0.6 with LL128
        (1, "Tree", "LL128", 0.92 * 370.8 * 7 / 9 * 0.6),
        (1, "Tree", "Simple", 0.92 * 370.8 * 0.5),
        (2, "Ring", "LL", 39.0),  # by the CPU, Intel's, once there are several nodes
        (4, "Ring", "LL", 20.4),
        (4, "Tree", "LL128", 0.92 * 370.8 * 120 / 128 * 0.6),
    ],
)
def test_bandwidths_of_eight_hopper_gpus_a_node(nodes, algorithm, protocol, bus):
    n = 8 * nodes
    as_algbw = n / (2 * (n - 1)) if algorithm == "Ring" else 1 / 2
    found = choice(algorithm, protocol, 2.0**20, n, nodes).bandwidth
    assert found == pytest.approx(bus * 1e9 * as_algbw)


def test_several_nodes_are_capped_by_the_cpu_not_by_the_gpu():
    def capped(cpu, architecture):
        how = {"architecture": architecture, "links": 12, "cpu": cpu}
        return choice("Ring", "LL", 2.0**20, 32, 4, **how).bandwidth * 2 * 31 / 32 / 1e9

    for architecture in ("volta", "ampere", "hopper", "blackwell"):
        assert capped("intel", architecture) == capped("arm", architecture) == pytest.approx(20.4)
        assert capped("amd", architecture) == capped("mixed", architecture) == pytest.approx(19.0)


def test_channels_cap_a_tree():
    few = choice("Tree", "Simple", 2.0**30, 8, channels=2)
    assert few.bandwidth == pytest.approx(2 * 38.7e9 / 2)


def test_trees_grow_with_the_logarithm_rings_with_n():
    rings = [nccl_tuner.ring_latency(8 * nodes, nodes) for nodes in (16, 32)]
    trees = [nccl_tuner.tree_latency(8 * nodes, nodes) for nodes in (16, 32)]
    assert rings[1] / rings[0] == pytest.approx(2, rel=0.03)
    assert trees[1] - trees[0] == pytest.approx(2 * 14e-6)
    assert nccl_tuner.tree_latency(1000, 125) < nccl_tuner.ring_latency(1000, 125) / 10


def test_ranks_are_at_least_nodes():
    for latency in (nccl_tuner.ring_latency, nccl_tuner.tree_latency):
        with pytest.raises(BadArgument, match="at least one rank for each node"):
            latency(4, 8)
        with pytest.raises(BadArgument, match="at least one rank for each node"):
            latency(np.array([8, 4]), np.array([1, 8]))
    with pytest.raises(BadArgument, match="one number"):
        nccl_tuner.nccl_choices(np.array([1.0, 2.0]), 8)
    with pytest.raises(BadArgument, match="Did you mean 'hopper'"):
        nccl_tuner.nccl_choices(1e6, 8, architecture="hoper")


def test_nccl_goes_from_latency_to_bandwidth():
    choices = [nccl_tuner.nccl_choices(2.0**power, 8)[0] for power in range(9, 35)]
    assert (choices[0].algorithm, choices[0].protocol) == ("Ring", "LL")
    assert choices[-1].algorithm == "NVLS"
    assert all(a.time <= b.time for a, b in itertools.pairwise(choices))
    assert nccl_tuner.nccl_choices(2.0**33, 8, nvls=False)[0].algorithm == "Ring"
    assert {
        x.algorithm for x in nccl_tuner.nccl_choices(1e9, 8, architecture="ampere", links=12)
    } == {"Ring", "Tree"}
    assert nccl_tuner.nccl_choices(1e4, 256, 32)[0].algorithm == "Tree"


@pytest.mark.parametrize(
    ("architecture", "links", "measured"),
    [("ampere", 12, 234.9e9), ("hopper", 18, 367.6e9), ("blackwell", 18, 682.2e9)],
)
def test_links_times_the_speed_of_a_channel_is_the_ring_that_is_measured(
    architecture, links, measured
):
    simple = choice("Ring", "Simple", 2.0**34, 8, architecture=architecture, links=links)
    rate = c.busbw("all_reduce", 8, c.algbw(2.0**34, simple.time))
    assert rate == pytest.approx(measured, rel=0.07)


@given(size=st.floats(1.0, 1e11), n=st.integers(2, 8), nodes=st.integers(1, 64))
def test_every_choice_is_its_latency_and_bandwidth(size, n, nodes):
    choices = nccl_tuner.nccl_choices(size, n * nodes, nodes)
    assert (
        choices[0].time
        == min(x.time for x in choices)
        == nccl_tuner.nccl_time(size, n * nodes, nodes)
    )
    for choice in choices:
        assert choice.time == pytest.approx(choice.latency + size / choice.bandwidth)


# ---------------------------------------------------------------- the fitted model


@given(
    size=st.floats(1e3, 1e11),
    nodes=st.sampled_from([1, 2, 4, 32]),
    collective=st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "alltoall"]),
)
def test_predictions_hold_together(size, nodes, collective):
    p = nccl_fit.predict(collective, size, 8 * nodes, nodes, "p5")
    assert p.algbw == pytest.approx(size / p.time)
    assert p.busbw == pytest.approx(c.busbw(collective, 8 * nodes, p.algbw))
    assert max(p.latency, p.transfer) <= p.time <= 2 * (p.latency + p.transfer)
    assert nccl_fit.predict(collective, 2 * size, 8 * nodes, nodes, "p5").time > p.time


def test_measurements_are_whole():
    rows = nccl_fit.measurements()
    assert len(rows) > 150
    assert {row.fabric for row in rows} == set(nccl_fit.FABRICS)
    for row in rows:
        assert row.n % row.nodes == 0
        assert row.path in nccl_fit.PATHS
        # No row beats its line rate, but for the switch's own additions.
        fabric = nccl_fit.FABRICS[row.fabric]
        if row.path == "ring" and row.nodes != 2:
            assert row.size / row.time * c.busbw_factor(row.collective, row.n) < fabric.rate(
                row.nodes
            )
