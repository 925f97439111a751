"""Packets, one by one: transports that lose some, and many senders into one port. Used in chapter 8
to check the closed forms of `lightspeed.networks` and to go where they end.

Chance comes from a `random.Random` that the caller seeds, so that a run can be repeated:

    simulate_transport("go_back_n", 100_000, 0.001, 125, random.Random(8)).goodput
    simulate_incast(Senders(32, 1e6), Port(50e9), random.Random(8)).longest_queue

Sources: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015) for DCQCN
and its constants; IEEE 802.1Qbb for pauses.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count as numbers
from random import Random

from lightspeed.elementwise import INF
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count, nonnegative, positive
from lightspeed.networks import LOSS, WINDOW

SCHEMES = ("selective_repeat", "go_back_n", "go_back_zero")


# ---------------------------------------------------------------- one sender, a lossy line


@dataclass(frozen=True)
class Transport:
    """What came of a message: packets to deliver, packets sent, and packet times that it took."""

    packets: int
    sent: int
    slots: int

    @property
    def goodput(self) -> float:
        """Share of the line rate."""
        return self.packets / self.slots


@dataclass(frozen=True)
class Sent:
    """One packet on its way: the packet time in which it left, its number, whether the line lost
    it, and whether the receiver kept it (it may throw away what comes early).
    """

    slot: int
    packet: int
    lost: bool
    kept: bool


def simulate_transport(
    scheme: str,
    packets: int,
    loss: float,
    window: int,
    rng: Random,
    timeout: int = 0,
) -> Transport:
    """The `Transport` of one message over a line that loses each packet with probability `loss`.

    Time is counted in packets. The receiver asks for a lost packet when the next one arrives, and
    the sender hears of it `window` packet times after it sent the lost one. `timeout` is that of
    go back n: the packet times until the sender's clock rings if the receiver asks once only.

    >>> simulate_transport("go_back_n", 1000, 0.0, 50, Random(1)).goodput
    1.0
    """
    law = "simulate_transport"
    loss = checked(law, "loss", loss, LOSS)
    count = slots = 0
    for each in transmissions(scheme, packets, lambda _: rng.random() < loss, window, timeout):
        count, slots = count + 1, each.slot + 1
    return Transport(packets, count, slots)


def transmissions(
    scheme: str, packets: int, loses: Callable[[int], bool], window: int, timeout: int = 0
) -> Iterator[Sent]:
    """Each `Sent` of a message in turn, over a line that loses the k-th of them if `loses(k)`;
    the rest is as in `simulate_transport`.

    >>> lost = {2}.__contains__
    >>> [each.packet for each in transmissions("go_back_n", 6, lost, 3)]
    [0, 1, 2, 3, 4, 2, 3, 4, 5]
    """
    law = "transmissions"
    one_of(law, "scheme", scheme, SCHEMES)
    packets = checked(law, "packets", packets, count())
    window = checked(law, "window", window, replace(WINDOW, whole=True))
    timeout = checked(law, "timeout", timeout, nonnegative(whole=True))
    if scheme == "selective_repeat":
        return _selective(packets, loses, window)
    return _in_order(packets, loses, window, timeout, restart=scheme == "go_back_zero")


def _selective(packets: int, loses: Callable[[int], bool], window: int) -> Iterator[Sent]:
    """The receiver keeps what comes early; the sender repeats what was asked for, then goes on."""
    requests: deque[tuple[int, int]] = deque()  # (when the sender hears of it, packet)
    fresh = received_count = transmissions = slot = 0
    while received_count < packets:
        if requests and requests[0][0] <= slot:
            _, packet = requests.popleft()
        elif fresh < packets:
            packet, fresh = fresh, fresh + 1
        else:  # nothing to send until it is asked for
            slot = requests[0][0]
            continue
        is_lost = loses(transmissions)
        if is_lost:
            requests.append((slot + window, packet))
        received_count += not is_lost
        yield Sent(slot, packet, is_lost, not is_lost)
        transmissions, slot = transmissions + 1, slot + 1


def _in_order(
    packets: int, loses: Callable[[int], bool], window: int, timeout: int, restart: bool
) -> Iterator[Sent]:
    """The receiver takes packets in order only, and asks once for the one that it lacks; the
    sender then goes back to it, or to the first of the message.
    """
    expected = following = slot = 0
    hears, restart_packet = (
        INF,
        -1,
    )  # when the sender hears of a gap; the packet that it went back to
    while expected < packets:
        if slot >= hears:
            following = restart_packet = 0 if restart else expected
            expected, hears = following, INF
        packet = min(following, packets - 1)  # at the end it idles, and the last one stands for it
        is_lost = loses(slot)
        is_new = packet == expected and not is_lost
        if is_new:
            expected, restart_packet = expected + 1, -1
        elif packet == expected and hears == INF:
            # Lost. Asked for a second time, it is answered by the clock if there is one.
            again = timeout if timeout and packet == restart_packet else window
            hears = slot + again
        yield Sent(slot, packet, is_lost, is_new)
        slot, following = slot + 1, following + 1


# ---------------------------------------------------------------- many senders, one port


@dataclass(frozen=True)
class DCQCN:
    """The constants of a sender that slows down when told of marks; rates in byte/s, times in s."""

    increase: float = 5e6
    timer: float = 55e-6
    counter: float = 10e6
    update: float = 55e-6
    between: float = 50e-6  # at most one notice to a flow in this time
    gain: float = 1 / 256
    rounds: int = 5  # of fast recovery
    least: float = 5e6  # a flow never falls below this rate


@dataclass(frozen=True)
class Port:
    """The receiver's port: drain, room, marks (Kmin, Kmax, Pmax) or None, `pause` (byte of queue)
    or None, and `delay` (s) one way to a sender.
    """

    bandwidth: float
    buffer: float = INF
    marks: tuple[float, float, float] | None = None
    pause: float | None = None
    delay: float = 2e-6
    packet: float = 1000.0


@dataclass(frozen=True)
class Senders:
    """`n` senders that begin together with `burst` bytes each, at line rate `rate` (that of the
    port if None), and slow down by `control` if there is one. `resend` says what a lost packet
    brings back: itself, or with "go_back_n" all that its sender sent after it, too. If nothing of
    the sender's comes after it, the receiver misses nothing, and only `timeout` (s) helps.
    """

    n: int
    burst: float
    rate: float | None = None
    control: DCQCN | None = None
    resend: str = "selective_repeat"
    timeout: float = 1e-3


@dataclass(frozen=True)
class Moment:
    """The port at a time: its queue (byte), packets lost and marked so far, whether it has stopped
    its senders, and how many of them have something to send and may.
    """

    time: float
    queue: float
    lost: int
    marked: int
    stopped: bool
    sending: int


@dataclass(frozen=True)
class Incast:
    """What the port saw: its `Moment`s from the first packet to the end, packets lost and marked,
    pauses and the share of time that senders stood still, when the last byte was through, each
    flow's bytes, and how often a sender's timer had to ring.
    """

    moments: tuple[Moment, ...]
    longest_queue: float
    sent: int
    lost: int
    marked: int
    pauses: int
    paused: float
    end: float
    delivered: tuple[float, ...]
    timeouts: int

    @property
    def samples(self) -> tuple[tuple[float, float], ...]:
        """(time, queue) of each moment."""
        return tuple((moment.time, moment.queue) for moment in self.moments)


@dataclass
class _Flow:
    left: int
    rate: float
    target: float
    line: float
    alpha: float = 1.0
    told: float = -INF  # when it was last told of a mark
    updated: float = 0.0  # when alpha last was
    by_time: int = 0
    by_bytes: int = 0
    since: float = 0.0  # bytes since the counter last asked for an increase
    epoch: int = 0  # timers of before a cut are void
    waiting: bool = False  # until the pause ends
    idle: bool = False
    missing: int = 0  # packets to be sent again: lost, or thrown away after a loss
    asked: bool = False  # for them
    turn: int = 0  # what was asked for in an earlier turn is void
    delivered: float = field(default=0.0)


def simulate_incast(
    senders: Senders, port: Port, rng: Random, until: float = INF, samples: int = 400
) -> Incast:
    """The `Incast` of these senders at this port, up to `until` (s) or to the last byte.

    A sender hears of a lost packet a round trip after it would have passed the queue.

    >>> run = simulate_incast(Senders(8, 1e5), Port(1e9), Random(1))
    >>> round(run.end * 1e6, -1), run.lost
    (800.0, 0)
    """
    _check(senders, port, until)
    return _Run(senders, port, rng, until, samples).go()


def _check(senders: Senders, port: Port, until: float) -> None:
    law = "simulate_incast"
    checked(law, "n", senders.n, count())
    one_of(law, "resend", senders.resend, SCHEMES[:2])
    checked(law, "burst", senders.burst, positive("byte", infinite=True))
    checked(law, "rate", senders.rate or port.bandwidth, positive("byte/s"))
    checked(law, "timeout", senders.timeout, positive("s"))
    for name in ("bandwidth", "packet", "delay"):
        checked(law, name, getattr(port, name), positive("s" if name == "delay" else "byte"))
    checked(law, "buffer", port.buffer, positive("byte", infinite=True))
    if port.marks and not 0 <= port.marks[0] < port.marks[1]:
        raise BadArgument(law, "marks", port.marks, "(Kmin, Kmax, Pmax) with Kmin below Kmax")
    if senders.burst == until == INF:
        raise BadArgument(law, "until", until, "a finite time for senders that never end")


class _Run:
    """One run. The port's queue is not a list: as it drains at a steady rate, the time at which it
    will be empty says how long it is.
    """

    def __init__(self, senders: Senders, port: Port, rng: Random, until: float, samples: int):
        line = senders.rate or port.bandwidth
        whole = 2**62 if senders.burst == INF else max(1, round(senders.burst / port.packet))
        self.flows = [_Flow(whole, line, line, line) for _ in range(senders.n)]
        self.port, self.rng, self.until = port, rng, until
        self.control, self.back = senders.control, senders.resend == "go_back_n"
        self.timeout, self.most = senders.timeout, 4 * samples
        self.events: list[tuple[float, int, str, int, int]] = []
        self.order = numbers()
        self.time = port.packet / port.bandwidth  # of one packet at the port
        expected = min(until, senders.n * whole * self.time)
        self.every, self.next_sample = expected / samples, 0.0
        self.seen: list[Moment] = []
        self.empty = 0.0  # when the queue will be empty
        self.stopped, self.stopped_at, self.still = False, 0.0, 0.0
        self.sent = self.lost = self.marked = self.pauses = self.timeouts = 0
        self.longest = self.end = 0.0

    def sample(self) -> None:
        """Look at the queue; if that was often enough, keep the longer of each two and look half as
        often: a run that waits for its timers is seen to its end.
        """
        self.seen.append(self.moment(self.next_sample, self.queue(self.next_sample)))
        self.next_sample += self.every
        if len(self.seen) == self.most:
            pairs = zip(self.seen[::2], self.seen[1::2], strict=True)
            self.seen = [max(pair, key=lambda moment: moment.queue) for pair in pairs]
            self.every *= 2

    def moment(self, time: float, queue: float) -> Moment:
        paused = self.stopped and time >= self.stopped_at
        sending = 0 if paused else sum(not flow.idle for flow in self.flows)
        return Moment(time, queue, self.lost, self.marked, paused, sending)

    def at(self, when: float, what: str, flow: int = 0, epoch: int = 0) -> None:
        heapq.heappush(self.events, (when, next(self.order), what, flow, epoch))

    def queue(self, now: float) -> float:
        return max(self.empty - now, 0.0) * self.port.bandwidth

    def go(self) -> Incast:
        port = self.port
        for i, flow in enumerate(self.flows):
            # Begun in one packet time, in no order: the same instant would be an artefact.
            self.at(port.delay + self.rng.random() * port.packet / flow.rate, "packet", i)
            if self.control:
                self.at(self.control.timer, "timer", i)
        remaining = sum(flow.left for flow in self.flows)
        do = {
            "timer": self.on_timer, "notice": self.on_notice,
            "again": self.on_again, "go": self.on_go, "drained": self.on_drained,
        }  # fmt: skip
        now = 0.0
        while self.events and remaining:
            when, _, what, i, epoch = heapq.heappop(self.events)
            if when > self.until:
                break
            now = when
            while self.next_sample <= now:
                self.sample()
            if what == "packet":
                remaining -= self.on_packet(now, i)
            else:
                do[what](now, i, epoch)
        stop = self.until if remaining else self.end
        if self.stopped:
            self.still += max(stop - self.stopped_at, 0.0)
        drained = [] if remaining else [self.moment(self.empty, 0.0)]
        return Incast(
            (*self.seen, *drained), self.longest, self.sent, self.lost, self.marked, self.pauses,
            self.still / stop if stop else 0.0, self.end,
            tuple(flow.delivered for flow in self.flows), self.timeouts,
        )  # fmt: skip

    # A packet reaches the port; one event a packet.
    def on_packet(self, now: float, i: int) -> int:
        flow, port = self.flows[i], self.port
        if self.stopped and now >= self.stopped_at:
            flow.waiting = True
            return 0
        self.sent += 1
        flow.left -= 1
        waiting, delivery = self.queue(now), 0
        if waiting + port.packet > port.buffer:
            self.lost += 1
            flow.missing += 1
        else:
            self.empty = max(self.empty, now) + self.time
            if flow.missing and not flow.asked:
                flow.asked = True
                self.at(self.empty + 2 * port.delay, "again", i, flow.turn)
            if self.back and flow.missing:
                flow.missing += 1
            else:
                flow.delivered += port.packet
                delivery, self.end = 1, self.empty + port.delay
            self.longest = max(self.longest, waiting + port.packet)
            if port.marks and self.is_marked(waiting):
                self.marked += 1
                notice = self.empty + 2 * port.delay
                if self.control and notice >= flow.told + self.control.between:
                    flow.told = notice
                    self.at(notice, "notice", i)
            if port.pause is not None and not self.stopped and waiting > port.pause:
                self.stopped, self.stopped_at = True, now + 2 * port.delay
                self.pauses += 1
                self.at(self.empty - (port.pause - 2 * port.packet) / port.bandwidth, "drained")
        if self.control:
            self.count_bytes(flow)
        if flow.left > 0:
            self.at(now + port.packet / flow.rate, "packet", i)
        else:
            flow.idle = True
            if flow.missing and not flow.asked:
                self.at(now + self.timeout, "again", i, flow.turn)
        return delivery

    def is_marked(self, waiting: float) -> bool:
        low, high, most = self.port.marks or (0.0, 0.0, 0.0)
        if waiting <= low:
            return False
        return waiting > high or self.rng.random() < most * (waiting - low) / (high - low)

    def on_again(self, now: float, i: int, turn: int) -> None:
        flow = self.flows[i]
        if turn != flow.turn:
            return
        self.timeouts += not flow.asked
        flow.left, flow.missing, flow.asked = flow.left + flow.missing, 0, False
        flow.turn += 1
        if flow.idle:
            flow.idle = False
            self.at(now, "packet", i)

    # Pauses
    def on_drained(self, now: float, _: int, __: int) -> None:
        """The queue should be short enough now; what came after the pause may have kept it long."""
        resume = (self.port.pause or 0.0) - 2 * self.port.packet
        if self.queue(now) > resume + 1e-6:
            self.at(self.empty - resume / self.port.bandwidth, "drained")
        else:
            self.at(max(now + 2 * self.port.delay, self.stopped_at), "go")

    def on_go(self, now: float, _: int, __: int) -> None:
        self.stopped, self.still = False, self.still + max(now - self.stopped_at, 0.0)
        for i, flow in enumerate(self.flows):
            if flow.waiting:
                flow.waiting = False
                self.at(now + self.rng.random() * self.port.packet / flow.rate, "packet", i)

    # DCQCN
    def on_notice(self, now: float, i: int, _: int) -> None:
        flow, control = self.flows[i], self.control or DCQCN()
        quiet = int((now - flow.updated) / control.update)  # updates without a notice
        flow.alpha, flow.updated = flow.alpha * (1 - control.gain) ** quiet, now
        flow.alpha += control.gain * (1 - flow.alpha)
        flow.target, flow.rate = flow.rate, max(flow.rate * (1 - flow.alpha / 2), control.least)
        flow.by_time, flow.by_bytes, flow.since = 0, 0, 0.0
        flow.epoch += 1
        self.at(now + control.timer, "timer", i, flow.epoch)

    def on_timer(self, now: float, i: int, epoch: int) -> None:
        flow, control = self.flows[i], self.control or DCQCN()
        if epoch == flow.epoch:
            flow.by_time += 1
            self.increase(flow)
            self.at(now + control.timer, "timer", i, epoch)

    def count_bytes(self, flow: _Flow) -> None:
        flow.since += self.port.packet
        if flow.since >= (self.control or DCQCN()).counter:
            flow.since, flow.by_bytes = 0.0, flow.by_bytes + 1
            self.increase(flow)

    def increase(self, flow: _Flow) -> None:
        """Half way to the target; past fast recovery, the target rises, too."""
        control = self.control or DCQCN()
        if max(flow.by_time, flow.by_bytes) > control.rounds:
            flow.target = min(flow.target + control.increase, flow.line)
        flow.rate = (flow.rate + flow.target) / 2
