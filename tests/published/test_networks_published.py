"""Papers' figures of networks and simulators beside chapter 8's laws, with errors."""

import math
import random

import pytest

from lightspeed import fabrics
from lightspeed import networks as net
from lightspeed.catalog import find, number
from lightspeed_models.simulators.network_simulation import DCQCN, Port, Senders, simulate_incast

DCQCN_PAPER, ROCE, HPCC, HPN = find("dcqcn"), find("roce"), find("hpcc"), find("hpn")
SWITCH = [DCQCN_PAPER.buffer, DCQCN_PAPER.ports, DCQCN_PAPER.priorities, DCQCN_PAPER.headroom]


def test_the_thresholds_of_the_dcqcn_paper():
    assert net.pfc_threshold(*SWITCH) == pytest.approx(DCQCN_PAPER.pfc_threshold, rel=3e-4)
    marks = net.ecn_threshold(*SWITCH, DCQCN_PAPER.beta)
    assert marks == pytest.approx(DCQCN_PAPER.ecn_threshold, rel=5e-4)
    # with a fixed threshold marks would have to begin within a packet: why beta is needed
    assert net.pfc_threshold(*SWITCH) / DCQCN_PAPER.ports < 1500


def test_the_constants_of_dcqcn_are_the_laws_defaults():
    names = ("increase", "timer", "counter", "update", "between", "rounds")
    assert {name: float(getattr(DCQCN_PAPER, name)) for name in names} == {
        name: float(getattr(DCQCN(), name)) for name in names
    }


def test_the_load_on_the_wire_of_hpcc():
    wire = HPCC.load / net.wire_share(HPCC.payload, HPCC.overhead)
    assert wire == pytest.approx(HPCC.load_on_wire, rel=1e-3)


def test_a_pod_of_hpn():
    # a leaf has a port for each node of its segment, and each spine of a plane one for each leaf
    leaf_ports = HPN.switch / HPN.port
    nodes = HPN.segment_gpus / HPN.rails
    uplinks = (leaf_ports - nodes) / 2  # 400 Gbit/s each
    assert uplinks == 64 and nodes == 128
    spine_ports = HPN.switch / (2 * HPN.port)
    segments = int(spine_ports // HPN.rails)  # each leaf of a plane takes a port, a rail each
    assert segments == 16
    assert HPN.segments == segments - 1  # what the other ports do, our notes lack
    assert HPN.segments * HPN.segment_gpus == pytest.approx(15_000, rel=0.03)


def test_metas_pod_adds_up():
    meta = find("meta_roce")
    assert meta.racks * meta.rack_gpus == meta.pod_gpus


def test_the_tail_at_scale():
    tail = find("tail")
    assert net.any_hit(tail.slow, tail.servers) == pytest.approx(tail.hit, abs=0.005)


def test_go_back_n_collapses_where_the_paper_says():
    # 'nearly zero' at 1 %: a packet that is lost again waits for a timer
    slots = ROCE.timeout / (ROCE.mtu_default / ROCE.line)
    for window in (20, 50, 100, 200):
        assert net.go_back_n(ROCE.loss_collapse, window, slots) < 0.01
    # the improved one asks again; its 60 % is a window of about 66 packets, 13 us at 40 Gbit/s
    window = (1 / ROCE.improved_share - 1) * (1 - ROCE.loss_collapse) / ROCE.loss_collapse
    assert window == pytest.approx(66, abs=1)
    assert 10e-6 < window * 1000 / ROCE.line < 20e-6
    # published: links of 40 Gbit/s and less than 10 us a hop


def test_more_connections_help_ecmp_by_as_much_as_meta_saw():
    # a rack's 16 flows over as many uplinks, whole or cut into 4 connections with paths of their
    # own
    whole = fabrics.ecmp_collisions(16, 16).fullest
    cut = fabrics.ecmp_collisions(64, 16).fullest / 4
    gain = whole / cut - 1
    # 'up to 40 %' of an all-reduce, of which a part does not cross a spine
    assert number("meta_roce.ecmp_gain") < gain < 0.8


@pytest.mark.slow
def test_dcqcn_fails_from_as_many_flows_as_in_its_authors_simulation():
    """Published: about 160 flows at 40 Gbit/s and 80 at 10 Gbit/s are no longer drained. Here the
    mean queue passes Kmax between half of that and that at 40 Gbit/s, and already below half of
    it at 10 Gbit/s. Why is not known; a lower floor of the senders' rate
    makes it longer, not shorter.
    """
    marks = (float(DCQCN_PAPER.kmin), float(DCQCN_PAPER.kmax), float(DCQCN_PAPER.pmax))

    def queue(line, flows, until):
        port = Port(float(line), marks=marks, pause=4.9e6)
        run = simulate_incast(
            Senders(flows, math.inf, control=DCQCN()), port, random.Random(1), until
        )
        late = [queue for time, queue in run.samples if time > 0.7 * until]
        return sum(late) / len(late)

    fails = int(DCQCN_PAPER.fails_from)
    assert (
        queue(DCQCN_PAPER.line, fails // 2, 0.03) < marks[1] < queue(DCQCN_PAPER.line, fails, 0.03)
    )
    slow = int(DCQCN_PAPER.fails_from_10g)
    assert marks[1] < queue(DCQCN_PAPER.line_10g, slow // 2, 0.06)
    # the rule of thumb: one packet between two increases. Off by 72 % and by 14 %.
    for line, said, off in ((DCQCN_PAPER.line, fails, 0.75), (DCQCN_PAPER.line_10g, slow, 0.15)):
        rule = net.dcqcn_flows(line, DCQCN_PAPER.packet, DCQCN_PAPER.timer)
        assert abs(rule / said - 1) < off
