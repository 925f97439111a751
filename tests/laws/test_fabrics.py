"""Fabrics: parts counted by building them, collisions by throwing, loads flow by flow."""

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import each

from lightspeed import collectives, fabrics
from lightspeed.errors import BadArgument
from lightspeed_models.simulators.fabric_traffic import DESIGNS, TRAFFIC, Fabric, flows_of, load


def built_fat_tree(radix, levels):
    """(hosts, switches) of a tree built port by port: layers turn half of the ports down."""
    half = radix // 2
    hosts = radix * half ** (levels - 1)  # each port of each top switch, split level after level
    tops, links, switches = half ** (levels - 1), hosts, half ** (levels - 1)
    assert tops * radix == links
    for _ in range(levels - 1):  # a layer below: its switches turn `half` of their ports up
        layer = links // half
        switches, links = switches + layer, layer * half
    return links, switches


@each("radix, levels", [4, 8, 64], [1, 2, 3])
def test_a_fat_tree_is_what_is_built(radix, levels):
    hosts, switches = built_fat_tree(radix, levels)
    assert fabrics.fat_tree_hosts(radix, levels) == hosts
    assert fabrics.fat_tree_switches(radix, levels) == switches


@each("hosts, radix, ratio", [1, 100, 512, 513, 1024, 2048, 2049, 4096], [32, 64], [1, 2, 3])
def test_a_leaf_spine_has_a_port_for_each_cable(hosts, radix, ratio):
    widest = max(d for d in range(1, radix) if d <= ratio * (radix - d))
    if hosts > radix * widest:  # more leaves than a spine has ports
        with pytest.raises(BadArgument, match=f"at most {radix * widest}"):
            fabrics.leaf_spine(hosts, radix, ratio)
        return
    parts = fabrics.leaf_spine(hosts, radix, ratio)
    up = (parts.cables - hosts) / parts.leaves
    down = radix - up
    assert parts.leaves * down >= hosts > (parts.leaves - 1) * down
    assert parts.spines * radix >= parts.leaves * up > (parts.spines - 1) * radix
    # Wire it, cable by cable in turn: every spine has its ports, and `links` says if all are alike.
    wired = [[0] * int(parts.spines) for _ in range(int(parts.leaves))]
    for cable in range(int(parts.leaves * up)):
        wired[int(cable // up)][cable % int(parts.spines)] += 1
    assert max(map(sum, zip(*wired, strict=True))) <= radix
    assert (len({n for leaf in wired for n in leaf}) == 1) == (parts.links % 1 == 0)
    assert down / up <= ratio < (down + 1) / (up - 1 or 1e-9)


@each("flows, paths", [1, 2, 3, 5], [1, 2, 4])
def test_collisions_by_every_way_to_hash(flows, paths):
    ways = list(itertools.product(range(paths), repeat=flows))
    fullest = [max(way.count(path) for path in range(paths)) for way in ways]
    found = fabrics.ecmp_collisions(flows, paths)
    assert found.fullest == pytest.approx(sum(fullest) / len(ways))
    assert found.none == pytest.approx(sum(f == 1 for f in fullest) / len(ways))
    idle = sum(sum(path not in way for path in range(paths)) for way in ways)
    assert found.idle == pytest.approx(idle / len(ways) / paths)


def test_collisions_of_many_by_throwing():
    rng = random.Random(8)
    for flows, paths in ((64, 64), (256, 16)):
        thrown = []
        for _ in range(1500):
            counts = [0] * paths
            for _ in range(flows):
                counts[rng.randrange(paths)] += 1
            thrown.append(max(counts))
        assert fabrics.ecmp_collisions(flows, paths).fullest == pytest.approx(
            sum(thrown) / len(thrown), rel=0.03
        )


# ---------------------------------------------------------------- loads


def test_every_byte_of_a_load_is_somewhere():
    rng = random.Random(1)
    for design, traffic, routing in itertools.product(DESIGNS, TRAFFIC, ("hash", "spread")):
        fabric = Fabric(pods=3, pod_nodes=4, per_node=4, spines=4, design=design)
        nodes = rng.sample(range(fabric.nodes), 6)
        flows = flows_of(traffic, nodes, 4, 1.0)
        found = load(fabric, flows, routing, rng, parts=2)
        kinds = {
            kind: sum(b for link, b in found.bytes.items() if link[0] == kind)
            for kind in ("out", "in", "up", "down")
        }
        sent = sum(size for *_, size in flows)
        assert sent == pytest.approx(6 * 4), traffic  # each GPU sends one byte to other nodes
        assert found.inside + found.leaf + found.spine == pytest.approx(sent)
        assert kinds["out"] == pytest.approx(sent) and kinds["in"] == pytest.approx(sent)
        assert kinds["up"] == pytest.approx(found.spine) == pytest.approx(kinds["down"])
        assert found.time == max(found.seconds(link) for link in found.bytes)


@each("nodes, pod_nodes, per_node", [2, 3, 4, 5, 6, 8, 12], [2, 4], [2, 4])
def test_the_places_of_an_alltoall_are_those_of_its_flows(nodes, pod_nodes, per_node):
    """Nodes that fill their pods, and nodes that don't."""
    fabric = Fabric(math.ceil(nodes / pod_nodes), pod_nodes, per_node, design="rail")
    for route, traffic in (("direct", "alltoall"), ("pxn", "alltoall, PXN")):
        law = fabrics.alltoall_places(per_node, nodes, pod_nodes, route)
        found = load(fabric, flows_of(traffic, range(nodes), per_node), "spread")
        out = 1 - law.inside
        total = found.leaf + found.spine
        assert law.leaf == pytest.approx(out * found.leaf / total)
        assert law.spine == pytest.approx(out * found.spine / total, abs=1e-12)
        assert law.inside + law.leaf + law.spine == pytest.approx(1)


def test_a_ring_on_rails_within_a_pod_crosses_no_spine_and_a_crossed_one_does():
    fabric = Fabric(design="rail")
    straight = load(fabric, flows_of("ring", range(8), 8))
    crossed = load(fabric, flows_of("crossed ring", range(8), 8))
    assert straight.spine == 0 and crossed.leaf == 0
    rack = Fabric(design="rack")
    assert load(rack, flows_of("ring", range(8), 8)).leaf == 0


def test_random_places_leave_a_group_as_often_as_the_law_says():
    rng, fabric = random.Random(5), Fabric(pods=8, pod_nodes=8, per_node=1, design="rail")
    shares = []
    for _ in range(400):
        nodes = rng.sample(range(64), 64)
        found = load(fabric, flows_of("ring", nodes, 1), "spread")
        shares.append(found.spine / (found.spine + found.leaf))
    assert sum(shares) / 400 == pytest.approx((64 - 8) / (64 - 1), rel=0.01)


@given(ratio=st.floats(0.5, 16), leaving=st.floats(0.01, 1))
def test_an_oversubscribed_leaf_shares_its_uplinks(ratio, leaving):
    rate = fabrics.across_rate(50e9, ratio, leaving)
    assert rate == pytest.approx(min(50e9, 50e9 / (ratio * leaving)))


def test_an_even_load_takes_as_long_as_the_law_says():
    for ratio in (1, 2, 4):
        fabric = Fabric(pods=4, pod_nodes=4, per_node=4, spines=4, oversubscription=ratio)
        found = load(fabric, flows_of("alltoall, PXN", range(16), 4, 1e9), "spread")
        leaving = found.spine / (found.spine + found.leaf)
        assert 1e9 / found.time == pytest.approx(fabrics.across_rate(50e9, ratio, leaving))


def test_sharp_beats_the_ring_across_by_at_most_two():
    for nodes in (2, 4, 64, 1000):
        ring = collectives.hierarchical_time(8e9, 8, nodes, 450e9, 50e9)
        sharp = fabrics.sharp_time(8e9, 8, nodes, 450e9, 50e9)
        assert sharp.inside == pytest.approx(ring.inside)
        assert ring.across / sharp.across == pytest.approx(2 * (nodes - 1) / nodes)
    assert fabrics.sharp_time(8e9, 8, 1, 450e9, 50e9).across == 0


def test_slips_are_answered():
    with pytest.raises(BadArgument, match="rail"):
        Fabric(design="rial")
    with pytest.raises(BadArgument, match="nodes that differ"):
        flows_of("ring", [1, 1], 8)
    with pytest.raises(BadArgument, match="GPUs of 32 nodes"):
        load(Fabric(), flows_of("ring", [0, 40], 8))
    assert math.isfinite(load(Fabric(), []).time)
