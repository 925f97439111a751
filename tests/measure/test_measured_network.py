"""Nodes in namespaces: sums, and bytes counted on a wire; nothing stays behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from lightspeed.collectives import busbw_factor, ring_time, tree_time
from lightspeed_models.simulators.ring import run_ring
from lightspeed_tools.measure.instruments import network
from lightspeed_tools.measure.instruments.nodes import Node
from lightspeed_tools.measure.instruments.timing import Quantity, Unavailable
from lightspeed_tools.measure.records import record


class Wires:
    """Nodes joined by memory instead of sockets: the same schedules, run in threads."""

    def __init__(self, count):
        self.count, self.queues = count, {}

    def node(self, number):
        node = object.__new__(Node)
        node.number, node.sent = number, 0
        node.exchange = lambda to, data, source, room: self.exchange(node, to, data, source, room)
        return node

    def exchange(self, node, to, data, source, room):
        if data is not None:
            node.sent += memoryview(data).nbytes
            self.line(node.number, to).append(bytes(memoryview(data).cast("B")))
        if room is not None:
            line, into = self.line(source, node.number), memoryview(room).cast("B")
            while not line:
                time.sleep(0.0001)
            got = line.pop(0)
            assert len(got) == len(into)
            into[:] = got

    def line(self, source, target):
        return self.queues.setdefault((source, target), [])


@pytest.mark.parametrize("algorithm", ["ring", "tree"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("count", [1, 5, 12, 1000])
def test_the_schedules_sum_and_send_what_the_law_says(algorithm, n, count):
    wires, rng = Wires(n), np.random.default_rng(n)
    nodes = [wires.node(k) for k in range(n)]
    data = [rng.integers(0, 100, count).astype(np.float32) for _ in range(n)]
    want = np.sum(data, axis=0)
    mine = [d.copy() for d in data]
    workers = [
        threading.Thread(target=getattr(node, algorithm), args=(d, n), daemon=True)
        for node, d in zip(nodes, mine, strict=True)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    assert not any(worker.is_alive() for worker in workers), "a deadlock"
    for result in mine:
        np.testing.assert_array_equal(result, want)
    if algorithm == "ring":
        assert (
            [node.sent for node in nodes]
            == network.ring_payload(4 * count, n)
            == list(run_ring(data).sent)
        )
    # what any algorithm must send
    assert sum(node.sent for node in nodes) == 2 * (n - 1) * 4 * count


def measured_by(algorithm, times):
    """A record of times (nodes, size) of one algorithm."""
    return record.new(
        Quantity(
            f"network.{algorithm}", "s", times(n, float(s)), {"nodes": n, "size": s, "rate": 25e6}
        )
        for n in network.NODES
        for s in network.SIZES
    )


@pytest.mark.parametrize(("algorithm", "law"), [("ring", ring_time), ("tree", tree_time)])
def test_the_effect_of_nodes_is_recovered(algorithm, law):
    alpha, bandwidth = 2e-4, 24e6
    kept = measured_by(algorithm, lambda n, size: [law(size, n, bandwidth, alpha)] * 5)
    effect = network.node_effect(kept, algorithm)
    # a record keeps few digits
    assert effect.alpha == pytest.approx(alpha, rel=1e-4)
    assert effect.bandwidth == pytest.approx(bandwidth, rel=1e-4)
    assert all(time == pytest.approx(fitted, rel=1e-4) for _, _, time, fitted in effect.rows)


def test_scattered_times_give_no_effect():
    rng = np.random.default_rng(1)
    scattered = measured_by(
        "ring", lambda n, size: list(ring_time(size, n, 25e6, 2e-4) * rng.uniform(0.3, 3, 9))
    )
    with pytest.raises(LookupError, match="scatter too much"):
        network.node_effect(scattered)


def test_without_the_tools_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(network, "_tool", lambda name: None if name == "tc" else "/bin/true")
    with pytest.raises(Unavailable, match=r"No tc on this machine\..*apt-get install iproute2"):
        network.run()


def test_without_the_rights_the_message_says_so(monkeypatch, tmp_path):
    refusing = tmp_path / "unshare"
    refusing.write_text(
        "#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n"
    )
    refusing.chmod(0o755)
    monkeypatch.setattr(
        network, "_tool", lambda name: str(refusing) if name == "unshare" else "/bin/true"
    )
    with pytest.raises(
        Unavailable, match=r"Operation not permitted.*as root or allow user namespaces"
    ):
        network.run()


def test_a_wrong_sum_is_no_time():
    with pytest.raises(Unavailable, match="2 wrong sums"):
        network.quantities([{"algorithm": "ring", "nodes": 2, "size": 8, "wrong": 2}])


@pytest.fixture(scope="module")
def measured():
    try:
        return network.run(nodes=(2, 3, 4), sizes=(4096, 2**19), repeat=2)
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_real_nodes_get_the_sum(measured):
    assert len(measured) == 2 * 3 * 2
    assert not any(row["wrong"] for row in measured)


@pytest.mark.slow
def test_the_interfaces_count_the_bytes_of_the_ring(measured):
    for row in measured:
        if row["algorithm"] == "ring":
            n, size = row["nodes"], row["size"]
            assert row["payload"] == network.ring_payload(size, n)
            assert sum(row["payload"]) == pytest.approx(n * size * busbw_factor("all_reduce", n))
            # What the interface sent, less a header for each packet: the payload, the bytes of two
            # barriers, and what TCP may send twice.
            on_wire = [
                wire - network.HEADERS * packets
                for wire, packets in zip(row["wire"], row["packets"], strict=True)
            ]
            assert all(
                -2 * n <= wire - payload <= 0.05 * payload + 3000
                for wire, payload in zip(on_wire, row["payload"], strict=True)
            ), (on_wire, row["payload"])


def processes(word):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word in (folder / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_nothing_outlives_a_parent_that_is_killed(measured):
    mark = "77773"  # a rate that no other run uses
    code = (
        f"from lightspeed_tools.measure.instruments import network; network.run(rate={mark},"
        " sizes=(2**20,), repeat=50)"
    )
    before = set(Path("/sys/class/net").iterdir())
    parent = subprocess.Popen([sys.executable, "-c", code])
    holder = []
    while not holder and parent.poll() is None:
        holder = [p for p in processes(mark) if p != parent.pid]
        time.sleep(0.05)
    assert holder
    deadline = time.monotonic() + 30
    nodes = []
    while len(nodes) < max(network.NODES) and time.monotonic() < deadline:
        nodes = [
            p
            for p in processes("lightspeed_tools.measure.instruments.nodes")
            if parent_of(p) in holder
        ]
        time.sleep(0.05)
    assert len(nodes) == max(network.NODES)
    time.sleep(0.5)  # past the start, in which they ask the kernel for this
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 30
    while (
        alive := [
            p for p in (*holder, *nodes) if Path(f"/proc/{p}/cmdline").exists() and running(p)
        ]
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive
    assert set(Path("/sys/class/net").iterdir()) == before


def parent_of(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
