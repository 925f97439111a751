"""Loss, incast, pauses, marks and tails: closed forms, limits, and packets simulated one by one."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import each

from lightspeed import networks as net
from lightspeed.errors import BadArgument
from lightspeed_models.simulators.congestion import dcqcn_fluid, dcqcn_resting
from lightspeed_models.simulators.network_simulation import (
    DCQCN,
    Port,
    Senders,
    simulate_incast,
    simulate_transport,
    transmissions,
)

losses = st.floats(1e-6, 0.5)
MARKS = (5e3, 200e3, 0.01)


# ---------------------------------------------------------------- goodput


@given(loss=losses, window=st.integers(1, 1000))
def test_the_transports_are_ordered(loss, window):
    # a longer message restarts more often; a window of one packet throws nothing away
    once = net.selective_repeat(loss)
    back = net.go_back_n(loss, window)
    assert net.go_back_zero(loss, 500, window) <= net.go_back_zero(loss, 50, window)
    assert net.go_back_zero(loss, 1, window) == pytest.approx(back)
    assert net.go_back_zero(loss, 50, window) <= back * (1 + 1e-9) <= once * (1 + 2e-9)
    assert net.go_back_n(loss, 1) == pytest.approx(once)
    assert net.go_back_n(loss, window, 10 * window) <= back


def test_without_a_loss_nothing_is_lost():
    assert net.selective_repeat(0.0) == net.go_back_n(0.0, 9) == net.go_back_zero(0.0, 9, 9) == 1.0


def test_a_message_that_starts_again_by_brute_force():
    # every pattern of losses of the next packets, weighed: the mean of all attempts
    loss, packets, window = 0.2, 4, 3
    reach = [(1 - loss) ** k for k in range(packets)]
    attempt = sum(reach)  # packets sent in an attempt, the lost one included
    works = (1 - loss) ** packets
    failures = (1 - works) / works
    slots = attempt / works + failures * (window - 1)
    assert net.go_back_zero(loss, packets, window) == pytest.approx(packets / slots)


@each("scheme, loss, timeout", ["selective_repeat", "go_back_n"], [0.001, 0.01, 0.05], [0, 4000])
def test_packets_one_by_one_agree(scheme, loss, timeout):
    window, packets = 60, 40_000
    run = simulate_transport(scheme, packets, loss, window, random.Random(8), timeout)
    law = (
        net.selective_repeat(loss)
        if scheme == "selective_repeat"
        else net.go_back_n(loss, window, timeout)
    )
    # Five standard errors: losses are a Poisson number, and each costs what it costs. A packet lost
    # again is rare and dear.
    again = packets * loss**2
    slack = 5 / math.sqrt(packets * loss) * (1 - law) + (
        5 * math.sqrt(again) * timeout / packets * law**2 if timeout else 0
    )
    assert run.goodput == pytest.approx(law, abs=slack)
    assert run.sent >= run.packets == packets


def test_a_message_that_starts_again_packet_by_packet():
    runs = [
        simulate_transport("go_back_zero", 200, 0.01, 40, random.Random(i)) for i in range(1500)
    ]
    found = sum(r.packets for r in runs) / sum(r.slots for r in runs)
    assert found == pytest.approx(net.go_back_zero(0.01, 200, 40), rel=0.12)


# ---------------------------------------------------------------- tails


def test_the_mean_of_the_slowest_is_a_harmonic_number():
    for n in (1, 2, 3, 10, 100, 10_000):
        exact = sum(1 / k for k in range(1, n + 1))
        assert net.slowest_of(0.0, 1.0, n) == pytest.approx(exact, rel=4e-4), n
    draws = np.random.default_rng(8).exponential(1, (4000, 64)).max(axis=1)
    assert net.slowest_of(2.0, 1.0, 64) - 2 == pytest.approx(draws.mean(), rel=0.03)


@given(quantile=st.floats(0.01, 0.99), n=st.integers(1, 10_000))
def test_the_quantile_of_one_and_the_slowest(quantile, n):
    one = net.quantile_of_one(quantile, n)
    assert one**n == pytest.approx(quantile)
    assert net.any_hit(1 - one, n) == pytest.approx(1 - quantile, abs=1e-9)


# ---------------------------------------------------------------- incast, pauses


@each("n, burst, ratio", [2, 8, 33], [2e4, 3e5], [1.0, 0.5])
def test_the_queue_of_an_incast(n, burst, ratio):
    port = Port(5e9, delay=1e-6)
    run = simulate_incast(Senders(n, burst, rate=ratio * port.bandwidth), port, random.Random(n))
    assert run.lost == run.pauses == 0 and run.sent * port.packet == n * burst
    queue = net.incast_queue(n, burst, port.bandwidth, ratio * port.bandwidth)
    # senders do not begin in the same packet time, and whole packets wait
    assert run.longest_queue == pytest.approx(queue, abs=2 * port.packet * n**0.5 + port.packet)
    time = net.incast_time(n, burst, port.bandwidth) + 2 * port.delay
    assert time <= run.end <= time + 2 * port.packet / port.bandwidth / ratio


def test_so_many_senders_fit_into_a_buffer():
    burst, buffer = 1e5, 1e6
    fit = int(net.incast_senders(buffer, burst))
    port = Port(5e9, buffer=buffer + 2e4)  # packets of the first instant are not in the fluid
    assert simulate_incast(Senders(fit, burst), port, random.Random(1)).lost == 0
    assert simulate_incast(Senders(fit + 1, burst), port, random.Random(1)).lost > 0


def test_lost_packets_are_sent_until_all_are_there():
    run = simulate_incast(Senders(16, 2e5), Port(5e9, buffer=2e5), random.Random(2))
    assert run.lost > 0 and run.sent == 16 * 200 + run.lost and set(run.delivered) == {2e5}


def test_go_back_n_sends_more_for_the_same_losses():
    port = Port(5e9, buffer=2e5)
    one = simulate_incast(Senders(16, 2e5), port, random.Random(2))
    back = simulate_incast(Senders(16, 2e5, resend="go_back_n"), port, random.Random(2))
    assert set(back.delivered) == {2e5} and back.sent > 16 * 200 + back.lost
    assert back.sent - back.lost > one.sent - one.lost == 16 * 200


def test_only_a_timer_shows_that_the_last_packet_of_a_burst_is_lost():
    fast, slow = (
        simulate_incast(Senders(8, 1e5, timeout=t), Port(5e9, buffer=2e5), random.Random(4))
        for t in (1e-3, 0.1)
    )
    ideal = net.incast_time(8, 1e5, 5e9)
    assert fast.timeouts > 0 and slow.timeouts > 0 and ideal < 1e-3
    assert fast.end > 1e-3 and 0.1 < slow.end < 0.1 * slow.timeouts + 20 * ideal


def test_a_pause_stops_the_loss_if_its_headroom_is_there():
    n, delay, pause = 16, 2e-6, 1e5
    # each sender goes on for a round trip; the port drains meanwhile
    headroom = net.pfc_headroom(5e9, delay, 1000) * n
    port = Port(5e9, buffer=pause + headroom, pause=pause, delay=delay)
    run = simulate_incast(Senders(n, 3e5), port, random.Random(3))
    assert run.lost == 0 and run.pauses > 1 and 0.5 < run.paused < 1
    # nothing is lost, so it takes as long as the port takes
    assert run.end == pytest.approx(net.incast_time(n, 3e5, 5e9), rel=0.02)
    small = Port(5e9, buffer=pause + headroom / 8, pause=pause, delay=delay)
    assert simulate_incast(Senders(n, 3e5), small, random.Random(3)).lost > 0


@each("hops, room, delay", [1, 3, 5], [2e4, 1e5], [0.0, 1e-6])
def test_a_pause_spreads_switch_by_switch(hops, room, delay):
    # a line of switches, the last of which is stopped from time 0: each in turn is filled by what
    # still comes, and stops the one before it a cable's delay later
    rate, step = 5e9, 1e-8
    queues, stopped_at = [0.0] * hops, [math.inf] * hops + [0.0]
    now = 0.0
    while stopped_at[0] > now:
        for i in range(hops):  # switch i takes bytes until it is stopped, and passes them on
            comes = rate if now < stopped_at[i] else 0.0
            leaves = rate if now < stopped_at[i + 1] else 0.0
            queues[i] = max(queues[i] + (comes - leaves) * step, 0.0)
            if queues[i] >= room and stopped_at[i] == math.inf:
                stopped_at[i] = now + delay
        now += step
    assert stopped_at[0] == pytest.approx(net.pause_spread(hops, room, rate, delay), rel=0.02)


# ---------------------------------------------------------------- marks


@each("flows", [8])
def test_the_fluid_comes_to_rest_where_the_equations_do(flows):
    port = Port(5e9, marks=MARKS)
    rest = dcqcn_resting(flows, port)
    fluid = dcqcn_fluid(flows, port, 0.1)
    tail = fluid.queue[-len(fluid.queue) // 10 :]
    assert sum(tail) / len(tail) == pytest.approx(rest.queue, rel=0.02)
    assert fluid.rate[-1] == pytest.approx(port.bandwidth / flows, rel=0.01)
    # the short form is of first order: it is above, by less than a third
    assert 1 <= net.dcqcn_marking(flows, 5e9, 1000) / rest.marking < 1.33


def test_marked_packets_keep_the_queue_near_where_the_fluid_rests():
    port = Port(5e9, marks=MARKS)
    rest = dcqcn_resting(8, port).queue
    run = simulate_incast(Senders(8, math.inf, control=DCQCN()), port, random.Random(1), until=0.02)
    late = [queue for time, queue in run.samples if time > 0.01]
    # The fluid has no chance in it: packets leave the queue a fifth shorter on average.
    assert 0.6 * rest < sum(late) / len(late) < 1.1 * rest
    assert sum(run.delivered) == pytest.approx(5e9 * 0.02, rel=0.2)
    wild = simulate_incast(
        Senders(8, math.inf), Port(5e9, buffer=1e7), random.Random(1), until=1e-2
    )
    assert wild.longest_queue == pytest.approx(1e7, rel=1e-3)


def test_a_sender_that_is_told_of_a_mark_halves_its_rate():
    # Two senders at line rate, every packet marked: told once, they send what the port drains, and
    # the queue stands still until they raise.
    port = Port(5e9, marks=(0, 1, 1.0))
    told = Senders(2, math.inf, control=DCQCN())
    run = simulate_incast(told, port, random.Random(1), until=60e-6)
    queue = dict(run.samples)
    still = [q for t, q in queue.items() if 10e-6 < t < DCQCN().between]
    assert max(still) - min(still) <= 2 * port.packet < min(still)
    before = [q for t, q in queue.items() if 3e-6 < t < 6e-6]
    assert (before[-1] - before[0]) / 3e-6 == pytest.approx(port.bandwidth, rel=0.1)


@given(marking=st.floats(0, 1))
def test_a_longer_queue_marks_more(marking):
    queue = net.marked_queue(marking, *MARKS)
    assert MARKS[0] <= queue <= MARKS[1]
    assert (queue == MARKS[1]) == (marking >= MARKS[2] * (1 - 1e-9))


# ---------------------------------------------------------------- bad input


@each(
    "call, says",
    [
        (lambda: net.go_back_n(1.5, 10), "one in a thousand is 0.001"),
        (lambda: net.pause_time(70_000, 5e9), "16 bits"),
        (lambda: simulate_transport("go_back_m", 10, 0.1, 5, random.Random(1)), "go_back_n"),
        (lambda: simulate_incast(Senders(2, math.inf), Port(1e9), random.Random(1)), "finite time"),
        (
            lambda: simulate_incast(Senders(2, 1e6), Port(1e9, marks=(9, 5, 1)), random.Random(1)),
            "Kmin below Kmax",
        ),
        (lambda: dcqcn_resting(2, Port(1e9)), "a port with marks"),
    ],
)
def test_a_slip_is_answered(call, says):
    with pytest.raises(BadArgument, match=says):
        call()


def test_the_queue_is_seen_to_the_end_of_a_run_that_waits_for_timers():
    """A lost last packet costs hundreds of times the link's need; the peak is kept."""
    sim = simulate_incast(
        Senders(32, 262144, resend="go_back_n", timeout=0.1), Port(50e9, 5e5), random.Random(8)
    )
    times, queues = zip(*sim.samples, strict=True)
    assert sim.timeouts and sim.end > 100 * 32 * 262144 / 50e9
    assert list(times) == sorted(times) and times[-1] == pytest.approx(sim.end, rel=0.01)
    assert len(times) <= 1601 and queues[-1] == 0
    assert max(queues) == pytest.approx(sim.longest_queue, rel=0.01)


def test_each_packet_is_kept_and_what_was_lost_is_sent_again():
    for scheme in ("selective_repeat", "go_back_n", "go_back_zero"):
        for lost in ({0}, {3}, {3, 4}, {3, 9}, {19}):
            sent = list(transmissions(scheme, 20, lost.__contains__, 6))
            assert {each.packet for each in sent if each.kept} == set(range(20)), (scheme, lost)
            assert [k for k, each in enumerate(sent) if each.lost] == sorted(lost)
            assert not any(each.kept and each.lost for each in sent)
            slots = [each.slot for each in sent]
            assert slots == sorted(set(slots)), "one packet at a time"
            if scheme == "go_back_n":
                kept = [each.packet for each in sent if each.kept]
                assert kept == sorted(kept), "in order"
