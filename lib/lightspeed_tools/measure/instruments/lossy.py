"""A line that loses packets: go back n and selective repeat over real sockets, for chapter 8.

Sender, cable and receiver are three UDP sockets of this machine. The cable is a few lines of this
file: it takes a packet in each packet time, holds it for the delay, and drops those that a seeded
generator picks. Kernels have such a cable, too (`netem`), but many are built without it, and it
takes the rights of root; this one runs everywhere. Times are those of a clock on the wall, so a
busy machine lengthens the round trip, and with it the price of a loss.
"""

import heapq
import random
import select
import socket
import struct
import time
from dataclasses import dataclass

from lightspeed import networks
from lightspeed_tools.measure.instruments.timing import Quantity, Unavailable
from lightspeed_tools.measure.records.record import NotMeasured, all_of

SLOT = 1e-3  # s, one packet time: long beside the time it takes to be woken
DELAY = 15e-3  # s, one way
WINDOW = round(2 * DELAY / SLOT) + 1  # packets sent until a loss is known: the next one shows it
LOSSES = (0.0, 0.01, 0.03, 0.06)
SCHEMES = ("selective_repeat", "go_back_n")
PACKETS = 400
PATIENCE = 60  # s for one message
HEAD = struct.Struct("!III")  # number of the sending, of the packet, of the turn
PAYLOAD = bytes(1000)


@dataclass(frozen=True)
class Sent:
    """One message: seconds, packets sent and lost."""

    time: float
    sent: int
    lost: int


def measure(quick=True, report=None):
    """Times of one message by scheme and loss. Raises Unavailable where sockets cannot be had."""
    quantities = []
    for loss in LOSSES:
        for scheme in SCHEMES:
            runs = [transfer(scheme, loss) for _ in range(5 if quick else 9)]
            quantities.append(
                Quantity(
                    f"lossy.{scheme}",
                    "s",
                    tuple(r.time for r in runs),
                    {"loss": loss, "packets": PACKETS, "window": WINDOW, "slot": SLOT},
                    better="lower",
                    counted={"sent": runs[0].sent, "lost": runs[0].lost},
                )
            )
        if report:
            report(f"a line that loses {loss:.0%}")
    return quantities


def transfer(scheme, loss, packets=PACKETS, slot=SLOT, delay=DELAY, seed=8):
    """Send one message over the cable; the same seed drops the same sendings. A `Sent`."""
    try:
        ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        for end in ends:
            end.bind(("127.0.0.1", 0))
            end.setblocking(False)
    except OSError as error:
        raise Unavailable(f"No socket could be had: {error}.") from error
    try:
        return _Line(ends[0], ends[1], ends[2], scheme, loss, slot, delay, seed).send(packets)
    finally:
        for end in ends:
            end.close()


class _Line:
    """The three of them and a clock. What waits for a time is in one heap."""

    def __init__(self, sender, cable, receiver, scheme, loss, slot, delay, seed):
        self.sender, self.cable, self.receiver = sender, cable, receiver
        self.back, self.loss, self.slot, self.delay = scheme == "go_back_n", loss, slot, delay
        self.rng = random.Random(seed)
        self.held, self.order = [], 0  # (when, order, socket, where to, data)
        self.sent = self.lost = 0
        # the sender
        self.next, self.turn, self.again, self.number_of = 0, 0, [], {}
        # the receiver
        self.arrived, self.expected, self.asked, self.newest = set(), 0, -1, -1

    def send(self, packets):
        begun = time.perf_counter()
        while len(self.arrived) < packets:
            now = time.perf_counter() - begun
            if now > PATIENCE:
                raise Unavailable(f"A message was not through after {PATIENCE} s.")
            while self.sent * self.slot <= now and len(self.arrived) < packets:
                self.put_one(packets)
            while self.held and self.held[0][0] <= now:
                _, _, to, data = heapq.heappop(self.held)
                self.cable.sendto(data, to)
            due = min(self.sent * self.slot, self.held[0][0] if self.held else now + 1)
            ready, *_ = select.select(
                [self.cable, self.receiver, self.sender], [], [], max(0.0, due - now)
            )
            for end in ready:
                self.take(end, time.perf_counter() - begun)
        return Sent(time.perf_counter() - begun, self.sent, self.lost)

    def put_one(self, packets):
        """A packet a packet time: what was asked for, then the next; at the end the last one stands
        for it, so that a gap before it is seen.
        """
        if self.again:
            number = self.again.pop(0)
        else:
            number = min(self.next, packets - 1)
            self.next += 1
        self.number_of[self.sent] = number
        data = HEAD.pack(self.sent, number, self.turn) + PAYLOAD
        self.sender.sendto(data, self.cable.getsockname())
        self.sent += 1

    def take(self, end, now):
        data, origin = end.recvfrom(2048)
        if end is self.cable:  # towards whoever did not send it, after the delay
            forward = origin == self.sender.getsockname()
            if forward and self.rng.random() < self.loss:
                self.lost += 1
                return
            to = (self.receiver if forward else self.sender).getsockname()
            self.order += 1
            heapq.heappush(self.held, (now + self.delay, self.order, to, data))
        elif end is self.receiver:
            self.receive(*HEAD.unpack(data[: HEAD.size]))
        else:
            self.hear(*HEAD.unpack(data[: HEAD.size]))

    def receive(self, sending, number, turn):
        if self.back:
            if number == self.expected:
                self.arrived.add(number)
                self.expected += 1
            elif number > self.expected and turn > self.asked:
                self.asked = turn  # once a turn, as adapters do
                self.ask(0, self.expected, turn)
            return
        for missing in range(self.newest + 1, sending):
            self.ask(missing, 0, 0)
        self.newest = max(self.newest, sending)
        self.arrived.add(number)

    def ask(self, sending, number, turn):
        self.receiver.sendto(HEAD.pack(sending, number, turn), self.cable.getsockname())

    def hear(self, sending, number, turn):
        if not self.back:
            self.again.append(self.number_of[sending])
        elif turn == self.turn:
            self.next, self.turn = number, turn + 1


@dataclass(frozen=True)
class Row:
    """One loss: goodput as a share of the line, measured and by the law at the share that was
    counted, and whether the times are steady.
    """

    scheme: str
    loss: float
    counted: float
    measured: float
    law: float
    steady: bool


def rows(record):
    """The `Row`s of a record. Raises NotMeasured if it has none."""
    found = []
    for scheme in SCHEMES:
        for q in all_of(record, f"lossy.{scheme}"):
            p = q.parameters
            lost = q.counted["lost"] / q.counted["sent"]
            law = (
                networks.go_back_n(lost, p["window"])
                if scheme == "go_back_n"
                else networks.selective_repeat(lost)
            )
            # until the last packet is there, its delay goes by
            alone = p["packets"] * p["slot"]
            measured = alone / (q.value - (p["window"] - 1) / 2 * p["slot"])
            found.append(Row(scheme, p["loss"], lost, measured, float(law), q.trusted))
    if not found:
        raise NotMeasured("this record has no lossy line")
    return found
