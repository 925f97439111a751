"""The inside of an emulated network: the process that holds it, and the nodes. Run by `network` in
fresh namespaces.

The holder (job as its argument) makes bridge, links and nodes, gives each node its orders on
standard input and prints what they answer. A node (its number and the number of all as arguments)
is connected to every other one.
"""

import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import time
from typing import Any

from lightspeed_tools.measure.instruments.launch import MARK, die_with_parent, module

PORT = 5201
# how long a packet may wait at a shaper: longer than any window, so that none is dropped
QUEUE = "400ms"


# ---------------------------------------------------------------- the holder


def hold(job):
    """Make the network, measure, and print a line of JSON for each all-reduce."""
    die_with_parent()
    count = max(job["nodes"])
    nodes = []
    try:
        _ip("link add switch type bridge forward_delay 0", "link set switch up")
        for number in range(count):
            # A node waits in its namespace until its link is there: standard input says so.
            command = ["unshare", "--net", "--", sys.executable, *module("nodes", number, count)]
            nodes.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        for number, node in enumerate(nodes):
            _answer(node)  # it is in its namespace now
            _ip(
                f"link add port{number} type veth peer name eth0 netns {node.pid}",
                f"link set port{number} master switch up",
            )
            _shape(f"port{number}", job["rate"])
        for node in nodes:
            _order(node, rate=job["rate"])
        for node in nodes:
            _answer(node)
        for n in job["nodes"]:
            for size in job["sizes"]:
                for algorithm in job["algorithms"]:
                    print(json.dumps(_one(nodes[:n], algorithm, size, job)), flush=True)
    finally:
        for node in nodes:
            node.kill()


def _one(nodes, algorithm, size, job):
    for node in nodes:
        _order(node, algorithm=algorithm, n=len(nodes), size=size, repeat=job["repeat"])
    answers = [_answer(node) for node in nodes]
    # Until the last one has the sum: a tree lets some go early, and the laws speak of the end.
    samples = [max(times) for times in zip(*(s["times"] for s in answers), strict=True)]
    per_node = {what: [s[what] for s in answers] for what in ("payload", "wire", "packets")}
    return {
        "algorithm": algorithm,
        "nodes": len(nodes),
        "size": size,
        "rate": job["rate"],
        "samples": samples,
        "wrong": sum(s["wrong"] for s in answers),
        **per_node,
    }


def _order(node, **what):
    print(json.dumps(what), file=node.stdin, flush=True)


def _answer(node):
    line = node.stdout.readline()
    if not line:
        raise SystemExit(f"a node ended with exit status {node.wait(5)}")
    return json.loads(line)


def _ip(*lines):
    _run(["ip", "-batch", "-"], "\n".join(lines))


def _shape(device, rate):
    """Let the device send `rate` byte/s, headers included, and no burst beyond a few packets."""
    bits = f"{int(rate * 8)}bit"
    shaper = f"tc qdisc add dev {device} root tbf rate {bits} burst 16kb latency {QUEUE}"
    _run(shaper.split())


def _run(command, text=None):
    program = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    done = subprocess.run([program, *command[1:]], input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:2])}: {done.stderr.strip().splitlines()[0]}")


# ---------------------------------------------------------------- a node


class Node:
    """One of the nodes: a socket to every other one, and what went through them."""

    def __init__(self, number, count):
        self.number, self.sent = number, 0
        server = socket.create_server((_address(number), PORT), backlog=count)
        self.peers = {}
        for other in range(number):
            self.peers[other] = _connect(other)
            self.peers[other].sendall(bytes([number]))
        while len(self.peers) < count - 1:
            peer, _ = server.accept()
            self.peers[peer.recv(1)[0]] = peer
        for peer in self.peers.values():
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.setblocking(False)

    def exchange(self, to, data, source, room):
        """Send `data` to one node while filling `room` from another; either may be None."""
        out, into = (
            memoryview(x).cast("B") if x is not None and len(x) else None for x in (data, room)
        )
        if out is not None:
            self.sent += len(out)
        with selectors.DefaultSelector() as waiting:
            while out is not None or into is not None:
                wanted = {}
                if out is not None:
                    wanted[self.peers[to]] = selectors.EVENT_WRITE
                if into is not None:
                    wanted[self.peers[source]] = (
                        wanted.get(self.peers[source], 0) | selectors.EVENT_READ
                    )
                for peer in [key.fileobj for key in waiting.get_map().values()]:
                    if peer not in wanted:
                        waiting.unregister(peer)
                for peer, events in wanted.items():
                    (waiting.modify if peer in waiting.get_map() else waiting.register)(
                        peer, events
                    )
                for key, events in waiting.select():
                    link: Any = key.fileobj
                    if events & selectors.EVENT_WRITE and out is not None:
                        done = link.send(out)
                        out = out[done:] if done < len(out) else None
                    if events & selectors.EVENT_READ and into is not None:
                        got = link.recv_into(into)
                        if not got:
                            raise SystemExit("a node has gone")
                        into = into[got:] if got < len(into) else None

    def barrier(self, n):
        """All of the first n nodes are here: a byte to node 0 and one back."""
        byte = bytearray(1)
        if self.number:
            self.exchange(0, b"!", 0, byte)
            return
        for other in range(1, n):
            self.exchange(None, None, other, byte)
        for other in range(1, n):
            self.exchange(other, b"!", None, None)

    def ring(self, data, n):
        """Sum of `data` over n nodes, in place: `simulators.ring`'s schedule, seen by a node."""
        import numpy

        chunks, room = numpy.array_split(data, n), numpy.empty(-(-len(data) // n), data.dtype)
        right, left = (self.number + 1) % n, (self.number - 1) % n
        for step in range(n - 1):
            mine, theirs = chunks[(self.number - step) % n], chunks[(self.number - step - 1) % n]
            self.exchange(right, mine, left, room[: len(theirs)])
            theirs += room[: len(theirs)]
        for step in range(n - 1):
            self.exchange(
                right, chunks[(self.number + 1 - step) % n], left, chunks[(self.number - step) % n]
            )

    def tree(self, data, n):
        """The same by a binomial tree: the whole message up to node 0 and down again."""
        import numpy

        room, distance = numpy.empty_like(data), 1
        while distance < n:  # up: every second one that is left hands in and waits
            if self.number % (2 * distance) == distance:
                self.exchange(self.number - distance, data, None, None)
                break
            if self.number + distance < n:
                self.exchange(None, None, self.number + distance, room)
                data += room
            distance *= 2
        if self.number:
            self.exchange(None, None, self.number - distance, data)
        while distance > 1:
            distance //= 2
            if self.number + distance < n:
                self.exchange(self.number + distance, data, None, None)

    def measure(self, algorithm, n, size, repeat):
        """Time `repeat` all-reduces after one that warms up, and check each sum."""
        import numpy

        own = numpy.arange(size // 4, dtype=numpy.float32) % 251 + self.number
        right = (numpy.arange(size // 4, dtype=float) % 251) * n + n * (n - 1) / 2
        step, times, wrong = getattr(self, algorithm), [], 0
        for _ in range(repeat + 1):
            data = own.copy()
            self.barrier(n)
            before, payload = _counters(), self.sent
            start = time.perf_counter()
            step(data, n)
            times.append(time.perf_counter() - start)
            payload = self.sent - payload
            self.barrier(n)  # now everything that was sent has arrived, and been counted on its way
            after = _counters()
            wrong += int((data != right).sum())
        return {
            "times": times[1:],
            "wrong": wrong,
            "payload": payload,
            "wire": after[0] - before[0],
            "packets": after[1] - before[1],
        }


def _counters():
    """Bytes and packets that the interface has sent, from this namespace's own table."""
    with open("/proc/self/net/dev", encoding="ascii") as table:
        fields = (
            next(line for line in table if line.strip().startswith("eth0:")).split(":")[1].split()
        )
    return int(fields[8]), int(fields[9])


def _address(number):
    return f"10.0.0.{number + 1}"


def _connect(other):
    for _ in range(500):  # until the other node listens
        try:
            return socket.create_connection((_address(other), PORT), timeout=5)
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"node {other} does not answer")


def be_node(number, count):
    """Wait for the link, join the others, then do what standard input says until it ends."""
    die_with_parent()
    print(json.dumps({"ready": number}), flush=True)
    rate = json.loads(sys.stdin.readline())["rate"]
    _ip("link set lo up", f"address add {_address(number)}/24 dev eth0", "link set eth0 up")
    _shape("eth0", rate)
    node = Node(number, count)
    print(json.dumps({"joined": number}), flush=True)
    for line in sys.stdin:
        print(json.dumps(node.measure(**json.loads(line))), flush=True)


if __name__ == "__main__":
    try:
        hold(json.loads(sys.argv[1])) if len(sys.argv) == 2 else be_node(*map(int, sys.argv[1:]))
    except SystemExit as problem:
        if isinstance(problem.code, str):
            print(f"{MARK}{problem}", file=sys.stderr, flush=True)
            os._exit(4)
        raise
