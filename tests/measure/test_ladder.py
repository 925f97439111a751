"""The latency ladder: what it walks along, and the levels that made-up ones show."""

import numpy as np
import pytest

from lightspeed_tools.measure.instruments import kernels, latency_levels
from lightspeed_tools.measure.instruments.timing import Quantity
from lightspeed_tools.measure.records import record

KIB, MIB = 2**10, 2**20


def machine(sizes, caches, memory, blur=0.15):
    """Latencies: below each capacity that cache's, past it a short climb to the next."""
    octave = np.log2(np.asarray(sizes, float))
    height = np.full(len(sizes), np.log(caches[0][1]))
    for (capacity, latency), (_, following) in zip(
        caches, [*caches[1:], (None, memory)], strict=True
    ):
        past = octave - np.log2(capacity)
        share = np.where(past > 0, 1 - np.exp(-np.maximum(past, 0) / blur), 0)
        height += share * np.log(following / latency)
    return np.exp(height)


LAPTOP = [(48 * KIB, 1.2e-9), (1.25 * MIB, 3.5e-9), (24 * MIB, 20e-9)]


@pytest.mark.parametrize("per_octave", [2, 3, 4])
@pytest.mark.parametrize("seed", range(12))
def test_three_caches_and_memory_are_found_through_noise(per_octave, seed):
    rng = np.random.default_rng(seed)
    sizes = latency_levels.sizes(512 * MIB, per_octave=per_octave)
    seen = machine(sizes, LAPTOP, 90e-9) * np.exp(rng.normal(0, 0.05, len(sizes)))
    seen[rng.integers(len(sizes), size=2)] *= 2.5  # other programs slow single points down
    found = latency_levels.levels(sizes, seen)
    assert [level.latency for level in found] == pytest.approx(
        [1.2e-9, 3.5e-9, 20e-9, 90e-9], rel=0.12
    )
    for (low, high), (capacity, _) in zip(latency_levels.steps(found), LAPTOP, strict=True):
        assert low / 1.5 <= capacity <= high * 1.5


@pytest.mark.holds("measure", "but no step is near")
def test_a_hidden_cache_is_not_made_up():
    sizes = latency_levels.sizes(256 * MIB)
    # an advertised third level shows nothing
    seen = machine(sizes, [(32 * KIB, 2e-9), (MIB, 5e-9)], 110e-9, blur=1.0)
    found = latency_levels.levels(sizes, seen)
    assert [level.latency for level in found] == pytest.approx([2e-9, 5e-9, 110e-9], rel=0.2)
    said = latency_levels.beside_advertised(found, {"L1": 32 * KIB, "L2": MIB, "L3": 48 * MIB})
    assert "48 MiB, but no step is near" in said[2] and "agrees" in said[0] and "agrees" in said[1]


@pytest.mark.parametrize("factor", [1.5, 2.0, 4.0])
@pytest.mark.holds("measure", "Latency climbs all the way")
def test_a_steady_climb_has_no_levels(factor):
    sizes = latency_levels.sizes(256 * MIB)
    climb = 1e-9 * factor ** np.log2(np.asarray(sizes) / sizes[0])
    assert latency_levels.levels(sizes, climb) == [] and latency_levels.steps([]) == []


@pytest.mark.parametrize("growth", [1.0, 1.05, 1.1])
def test_a_level_may_rise_slowly(growth):
    sizes = latency_levels.sizes(16 * MIB)
    found = latency_levels.levels(sizes, 1e-9 * growth ** np.log2(np.asarray(sizes) / sizes[0]))
    assert [(level.low, level.high) for level in found] == [(sizes[0], sizes[-1])]


def test_a_disturbed_stretch_is_no_level():
    sizes = latency_levels.sizes(256 * MIB)
    seen = np.where(np.asarray(sizes) <= MIB, 2e-9, 100e-9)
    seen[5:8] = 30e-9  # slower than what follows: the machine was busy then
    assert [level.latency for level in latency_levels.levels(sizes, seen)] == [2e-9, 100e-9]


@pytest.mark.holds("measure", "more than the largest working set", "is no advertised cache")
def test_each_cache_and_each_stray_step_gets_a_sentence():
    levels = [
        latency_levels.Level(4 * KIB, 32 * KIB, 1e-9),
        latency_levels.Level(64 * KIB, 256 * KIB, 4e-9),
        latency_levels.Level(8 * MIB, 64 * MIB, 1e-7),
    ]
    said = latency_levels.beside_advertised(
        levels, {"L1": 32 * KIB, "L2": 512 * KIB, "L3": 4 * MIB, "L4": 512 * MIB}
    )
    assert "L1: advertised 32 KiB, and a step between 32 KiB and 64 KiB agrees" in said[0]
    assert said[3] == "L4: advertised 512 MiB, more than the largest working set measured."
    assert "L2 and L3 share one step" in said[4]
    assert "no advertised cache" in latency_levels.beside_advertised(levels, {"L1": 32 * KIB})[-1]


@pytest.mark.holds("measure", "have too wide a spread, so nothing")
def test_a_noisy_ladder_is_not_concluded_from():
    sizes = latency_levels.sizes(MIB)
    steady = [Quantity("host.latency", "s", [1e-9] * 7, {"size": s}, "lower") for s in sizes]
    noisy = [Quantity("host.latency", "s", [1e-9, 9e-9] * 4, {"size": s}, "lower") for s in sizes]
    assert "nothing is concluded" in latency_levels.conclude(record.new(noisy))[0]
    assert "a load takes 1 ns" in latency_levels.conclude(record.new(steady))[0]
    assert "no latency ladder" in latency_levels.conclude(record.new([]))[0]


def test_advertised_takes_the_caches_that_hold_data():
    caches = [
        {"level": 1, "kind": "data", "size": 1},
        {"level": 1, "kind": "instruction", "size": 2},
        {"level": 2, "kind": "unified", "size": 3},
    ]
    assert latency_levels.advertised({"caches": caches}) == {"L1": 1, "L2": 3}
    assert latency_levels.advertised({}) == {}


def test_sizes_are_whole_lines_and_end_at_the_largest():
    sizes = latency_levels.sizes(MIB, per_octave=3)
    assert sizes[0] == 4096
    assert sizes[-1] == MIB
    assert sizes == sorted(set(sizes))
    assert not any(s % 64 for s in sizes)


@pytest.mark.parametrize("lines", [1, 2, 3, 64, 1000, 4096])
def test_the_chase_meets_every_line_once_and_comes_back(lines):
    following = kernels.one_cycle(lines, np.random.default_rng(lines))
    at, met = 0, []
    for _ in range(lines):
        met.append(at)
        at = following[at]
    # eight numbers of eight bytes are a line
    assert at == 0 and sorted(met) == [8 * k for k in range(lines)]


@pytest.mark.parametrize("seed", range(3))
def test_the_walk_does_not_follow_the_addresses(seed):
    following = kernels.one_cycle(4096, np.random.default_rng(seed))
    hops = np.abs(following[::8] - np.arange(0, len(following), 8)) // 8
    assert np.mean(hops == 1) < 0.01 and np.mean(hops) == pytest.approx(4096 / 3, rel=0.1)
