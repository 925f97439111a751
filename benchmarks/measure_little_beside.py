"""The loaded server of `lightspeed measure queueing`, loaded by a second client and set beside a
second simulator.

    python benchmarks/measure_little_beside.py

The second client shares nothing with the first but the bytes on the wire: two threads on a blocking
socket, its own random numbers, its own clock. ciw simulates runs of the same length. Fails if
Little's law does not hold to 5 % between the server's count and the client's clock, or if the
client's mean latency is outside the range of ciw's runs.
"""

import random
import socket
import statistics
import threading
import time

import ciw

from lightspeed_tools.measure.instruments.queue_server import ANSWER, BEGIN, END, REQUEST, serve
from lightspeed_tools.measure.instruments.workers import crew, receive

SERVICE, SECONDS, RUNS = 0.010, 15.0, 60
CASES = {"M/M/1": (0.5, 1), "M/M/1, busier": (0.8, 1), "M/M/4": (0.8, 4)}  # load, servers


def drive(port, station, rate, service, rng):
    """(requests, seconds, latencies from the due times, and from the sending) of an open loop on
    a thread.
    """
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    gaps = [rng.expovariate(rate) for _ in range(round(rate * SECONDS))]
    due, sent, done = [], [], [0.0] * len(gaps)

    def send():
        at = start
        for number, gap in enumerate(gaps):
            at += gap
            due.append(at)
            time.sleep(max(0.0, at - time.monotonic()))
            sent.append(time.monotonic())
            link.sendall(REQUEST.pack(station, number, rng.expovariate(1 / service)))

    link.sendall(REQUEST.pack(BEGIN, 0, 0.0))
    start = time.monotonic()
    sender = threading.Thread(target=send)
    sender.start()
    for _ in gaps:
        _, number = ANSWER.unpack(link.recv(ANSWER.size, socket.MSG_WAITALL))
        done[number] = time.monotonic()
    seconds = time.monotonic() - start
    link.sendall(REQUEST.pack(END, 0, 0.0))
    sender.join()
    link.close()
    return (
        len(gaps),
        seconds,
        *([b - a for a, b in zip(since, done, strict=True)] for since in (due, sent)),
    )


def with_ciw(rate, service, servers, requests, seed):
    """The mean time in the system of a run of so many requests, by ciw."""
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate)],
        service_distributions=[ciw.dists.Exponential(1 / service)],
        number_of_servers=[servers],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(requests, method="Finish")
    return statistics.fmean(
        row.exit_date - row.arrival_date for row in simulation.get_all_records()
    )


def main():
    rng, wrong = random.Random(11), []
    print(
        f"{'':16}{'load':>6}{'L, server':>11}{'rate x W':>10}{'ratio':>8}{'W, client':>12}"
        f"{'ciw, range of ' + str(RUNS) + ' runs':>24}"
    )
    for name, (load, servers) in CASES.items():
        with crew(serve) as (server,):
            server.send([servers])
            port, late = receive(server, 30)
            each = SERVICE * servers
            rate = load * servers / (each + statistics.median(late))
            requests, seconds, stays, inside_stays = drive(port, 0, rate, each, rng)
            server.send("stop")
            ((looks, trace),) = receive(server, 30)
        inside, W = statistics.fmean(looks), statistics.fmean(stays)
        served = statistics.fmean(end - start for *_, start, end in trace)
        product = requests / seconds * statistics.fmean(inside_stays)
        ratio = inside / product
        runs = sorted(with_ciw(rate, served, servers, requests, seed) for seed in range(RUNS))
        print(
            f"{name:16}{load:6.0%}{inside:11.2f}{product:10.2f}{ratio:8.3f}{W * 1e3:9.1f}"
            f" ms{runs[0] * 1e3:14.1f} to {runs[-1] * 1e3:.1f} ms"
        )
        if abs(ratio - 1) > 0.05 or not runs[0] <= W <= runs[-1]:
            wrong.append(name)
    assert not wrong, f"does not agree: {wrong}"


if __name__ == "__main__":
    main()
