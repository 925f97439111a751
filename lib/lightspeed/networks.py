"""A network that is not ideal: lost packets, incast, pauses, marks, and the slowest of many.
Derived in chapter 8.

`loss` is the share of packets that are lost, each by itself. `window` counts the packets that a
sender puts on the wire in one round trip, the lost one included. `bandwidth` (byte/s) is that of
one link in one direction, `packet` its payload in bytes. Fabrics of many links are
`lightspeed.fabrics`; what runs packet by packet is
`lightspeed_models.simulators.network_simulation`.

Sources: Bertsekas and Gallager, "Data Networks" (1992) for go back n; Guo et al., "RDMA over
Commodity Ethernet at Scale" (SIGCOMM 2016) for restarts; Zhu et al., "Congestion Control for
Large-Scale RDMA Deployments" (SIGCOMM 2015) for thresholds; Zhu et al., "ECN or Delay" (CoNEXT
2016) for the fixed point; Dean and Barroso, "The Tail at Scale" (CACM 56(2), 2013).
"""

from lightspeed.elementwise import Result, Value, divide, expm1, log1p, maximum, minimum, where
from lightspeed.law import Argument, count, fraction, law, nonnegative, positive
from lightspeed.roofline import BANDWIDTH

__all__ = (
    "any_hit", "dcqcn_flows", "dcqcn_marking", "ecn_threshold", "go_back_n", "go_back_zero",
    "incast_queue", "incast_senders", "incast_time", "marked_queue", "pause_spread",
    "pause_time", "pfc_headroom", "pfc_threshold", "quantile_of_one", "selective_repeat",
    "slowest_of", "window_packets", "wire_share",
)  # fmt: skip

LOSS = Argument(
    low=0.0, high=0.9, above=False, hint="A share, not per cent: one in a thousand is 0.001."
)
PACKET = positive("byte", hint="The payload of one packet: 1,024 or 4,096 bytes for RDMA.")
WINDOW = Argument(low=1.0, above=False, hint="Packets on the wire in a round trip, at least one.")
SENDERS = count(hint="Senders that share one receiver's link.")
PORTS, PRIORITIES = count(hint="Ports of the switch."), count(hint="Lossless classes, up to eight.")
BUFFER = positive("byte", hint="The shared buffer of the whole switch.")
HEADROOM = nonnegative("byte", hint="Kept free for one port and one class.")
LARGEST = 600.0  # expm1 of more leaves the range of a double; the goodput is zero long before


# ---------------------------------------------------------------- headers and windows


@law(payload=PACKET, headers=nonnegative("byte"))
def wire_share(payload: Value, headers: Value) -> Result:
    """Share of a link's bytes that are payload: payload / (payload + headers).

    >>> round(wire_share(4096, 82), 3)
    0.98
    """
    return payload / (payload + headers)


@law(bandwidth=BANDWIDTH, round_trip=positive("s"), packet=PACKET)
def window_packets(bandwidth: Value, round_trip: Value, packet: Value) -> Result:
    """Packets on the wire in one round trip: bandwidth x round trip / packet, at least one.

    >>> round(window_packets(50e9, 10e-6, 4000))
    125
    """
    return maximum(bandwidth * round_trip / packet, 1.0)


# ---------------------------------------------------------------- goodput against loss


@law(loss=LOSS)
def selective_repeat(loss: Value) -> Result:
    """Share of the line rate that is goodput if only lost packets are sent again.

    No transport that has to deliver every packet beats it.

    >>> selective_repeat(0.01)
    0.99
    """
    return 1 - loss


@law(loss=LOSS, window=WINDOW, timeout=nonnegative())
def go_back_n(loss: Value, window: Value, timeout: Value = 0.0) -> Result:
    """Go-back-N: share of the line rate that is goodput if a loss also discards everything sent
    after the lost packet.

    The first loss of a packet costs `window` packets. If the receiver asks once only, as RoCE
    cards do, a packet that is lost again costs `timeout` packets instead: the sender's timer.
    With `timeout` 0 it costs a window each time.

    >>> round(go_back_n(0.01, 125), 3), round(go_back_n(0.01, 125, 1e6), 3)
    (0.442, 0.01)
    """
    again = where(timeout > 0, timeout, window)
    return 1 / (1 + loss * window + loss * loss / (1 - loss) * again)


@law(loss=LOSS, packets=count(hint="Packets of one message."), window=WINDOW)
def go_back_zero(loss: Value, packets: Value, window: Value = 1.0) -> Result:
    """Go-back-0: share of the line rate that is goodput if a loss starts the whole message again.

    To see `packets` arrive in a row takes ((1 - loss)^-packets - 1) / loss sent ones, and after
    each failure window - 1 more are on the wire. As good as zero for a long message.

    >>> go_back_zero(0.0, 4096), go_back_zero(1 / 256, 4096) < 1e-5
    (1, True)
    """
    failures = expm1(minimum(-packets * log1p(-loss), LARGEST))
    # Without a loss the first term is 0 / 0, and its limit is the message itself.
    transmissions = where(loss > 0, failures / where(loss > 0, loss, 1.0), packets)
    return packets / (transmissions + failures * (window - 1))


# ---------------------------------------------------------------- the slowest of many


@law(probability=fraction(), n=count(hint="How many can be hit, each by itself."))
def any_hit(probability: Value, n: Value) -> Result:
    """Probability that at least one of `n` is hit, each with `probability`: 1 - (1 -
    probability)^n.

    >>> round(any_hit(0.01, 100), 2)
    0.63
    """
    return 1 - (1 - probability) ** n


@law(quantile=fraction(), n=count(hint="How many have to be done."))
def quantile_of_one(quantile: Value, n: Value) -> Result:
    """Quantile of one rank's time that corresponds to `quantile` of the slowest of `n`:
    quantile^(1/n).

    >>> round(quantile_of_one(0.5, 1000), 5)
    0.99931
    """
    return quantile ** (1 / n)


@law("s", base=nonnegative("s"), delay=nonnegative("s"), n=count())
def slowest_of(base: Value, delay: Value, n: Value) -> Result:
    """Mean seconds of the slowest of `n` ranks, each taking `base` plus an exponential delay of
    mean `delay`.

    The mean of the largest of n exponentials is the n-th harmonic number; here by its series,
    within 4e-4 of it.

    >>> slowest_of(0.0, 1.0, 1), round(slowest_of(1.0, 0.1, 1024), 2)
    (1 s, 1.75)
    """
    return base + delay * _harmonic(n)


def _harmonic(n: Value) -> Result:
    """1 + 1/2 + ... + 1/n, exact for 1 and within 4e-4 of it from 2 on."""
    series = log1p(n - 1.0) + 0.5772156649015329 + 1 / (2 * n) - 1 / (12 * n * n)
    return where(n > 1, series, n / n)


# ---------------------------------------------------------------- incast


@law(
    "byte",
    senders=SENDERS,
    burst=nonnegative("byte", hint="What each sender has to send."),
    bandwidth=BANDWIDTH,
    rate=BANDWIDTH,
)
def incast_queue(senders: Value, burst: Value, bandwidth: Value, rate: Value) -> Result:
    """Bytes that wait at the receiver's port once all `senders` have sent their burst at `rate`
    each; the port drains at `bandwidth`.

    >>> incast_queue(8, 1e6, 50e9, 50e9)
    7 MB
    """
    return senders * burst * (1 - minimum(bandwidth / (senders * rate), 1.0))


@law("s", senders=SENDERS, burst=nonnegative("byte"), bandwidth=BANDWIDTH)
def incast_time(senders: Value, burst: Value, bandwidth: Value) -> Result:
    """Seconds until the last byte of the bursts has passed the receiver's port, if none is lost.

    >>> incast_time(8, 1e6, 50e9)
    160 µs
    """
    return senders * burst / bandwidth


@law(buffer=BUFFER, burst=positive("byte"))
def incast_senders(buffer: Value, burst: Value) -> Result:
    """How many senders a port can take at once if their bursts come at full rate: one burst
    drains meanwhile.

    >>> incast_senders(64e6, 1e6)
    65
    """
    return buffer / burst + 1


# ---------------------------------------------------------------- pauses


@law(
    "byte",
    bandwidth=BANDWIDTH,
    delay=nonnegative("s", hint="One way along the cable, and the answer of the far end."),
    packet=PACKET,
)
def pfc_headroom(bandwidth: Value, delay: Value, packet: Value) -> Result:
    """Bytes that still arrive after a pause is decided: those of two one-way delays, and one packet
    already being sent at each end.

    >>> pfc_headroom(50e9, 1e-6, 4000)
    108 kB
    """
    return 2 * bandwidth * delay + 2 * packet


@law("byte", buffer=BUFFER, ports=PORTS, priorities=PRIORITIES, headroom=HEADROOM)
def pfc_threshold(buffer: Value, ports: Value, priorities: Value, headroom: Value) -> Result:
    """The longest queue of one port and class before it pauses its sender, if each gets an equal
    part of what the headrooms leave; zero if they leave nothing.

    >>> pfc_threshold(12e6, 32, 8, 22.4e3)
    24.5 kB
    """
    return maximum(buffer / (priorities * ports) - headroom, 0.0)


@law(
    "byte",
    buffer=BUFFER,
    ports=PORTS,
    priorities=PRIORITIES,
    headroom=HEADROOM,
    beta=positive(hint="How much of the free buffer one queue may take: the switch's setting."),
)
def ecn_threshold(
    buffer: Value, ports: Value, priorities: Value, headroom: Value, beta: Value
) -> Result:
    """The highest queue threshold at which marking surely begins before any port pauses, on a
    switch that shares its free buffer (`beta`).

    >>> ecn_threshold(12e6, 32, 8, 22.4e3, 8)
    21.8 kB
    """
    alone = pfc_threshold.__wrapped__(buffer, ports, priorities, headroom)
    return alone * beta / (beta + 1)


@law(
    "s",
    quanta=count(high=65535, hint="The field of a pause frame has 16 bits."),
    bandwidth=BANDWIDTH,
)
def pause_time(quanta: Value, bandwidth: Value) -> Result:
    """Seconds for which one pause frame stops a link: `quanta` of 512 bit times each.

    >>> pause_time(65535, 5e9)
    839 µs
    """
    return quanta * 64 / bandwidth


@law(
    "s",
    hops=count(hint="Switches between the port that is stopped and the sender."),
    room=nonnegative("byte", hint="What one queue may take before it pauses in its turn."),
    rate=BANDWIDTH,
    delay=nonnegative("s", hint="One way along one cable."),
)
def pause_spread(hops: Value, room: Value, rate: Value, delay: Value = 0.0) -> Result:
    """Seconds until a lasting pause reaches a sender `hops` switches away: each queue on the way
    fills at the `rate` (byte/s) of the traffic through it, then pauses the next.

    >>> pause_spread(3, 25e3, 50e9, 1e-6)
    4.5 µs
    """
    return hops * (room / rate + delay)


# ---------------------------------------------------------------- marks: ECN and DCQCN


@law(
    "byte",
    marking=fraction(),
    low=nonnegative("byte", hint="Kmin: below it no packet is marked."),
    high=positive("byte", hint="Kmax: above it every packet is marked."),
    most=Argument(high=1.0, hint="Pmax: the share that is marked just below Kmax."),
)
def marked_queue(marking: Value, low: Value, high: Value, most: Value) -> Result:
    """Bytes of queue at which a switch marks this share of the packets; Kmax if it is more than
    Pmax.

    >>> marked_queue(0.005, 5e3, 200e3, 0.01)
    103 kB
    """
    return minimum(low + marking / most * (high - low), high)


@law(
    flows=count(hint="Flows that share the link."),
    bandwidth=BANDWIDTH,
    packet=PACKET,
    increase=positive("byte/s", hint="R_AI: what a flow adds to its rate at each increase."),
    timer=positive("s", hint="Seconds between increases that the clock asks for."),
    counter=positive("byte", hint="Bytes between increases that the counter asks for."),
    update=positive("s", hint="Seconds between updates of alpha."),
)
def dcqcn_marking(
    flows: Value,
    bandwidth: Value,
    packet: Value,
    increase: Value = 5e6,
    timer: Value = 55e-6,
    counter: Value = 10e6,
    update: Value = 55e-6,
) -> Result:
    """Share of packets marked where DCQCN's fluid model rests, to first order, at most one.

    p = cube root of R_AI N^2 / (update C^2) (1 / counter + N / (timer C))^2, in packets. The
    defaults are those of its paper.

    >>> round(dcqcn_marking(10, 5e9, 1000), 5)
    0.00785
    """
    line = bandwidth / packet
    rarity = divide(packet, counter) + flows / (timer * line)
    cubed = (increase / packet) * flows**2 / (update * line**2) * rarity**2
    return minimum(cubed ** (1 / 3), 1.0)


@law(bandwidth=BANDWIDTH, packet=PACKET, timer=positive("s"))
def dcqcn_flows(bandwidth: Value, packet: Value, timer: Value = 55e-6) -> Result:
    """Number of flows on one link beyond which a fair share is less than a packet between two
    increases.

    From there on a flow raises its rate more often than it can be marked.

    >>> round(dcqcn_flows(5e9, 1000))
    275
    """
    return bandwidth * timer / packet
