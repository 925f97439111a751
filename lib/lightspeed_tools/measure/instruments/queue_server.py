"""A real server on loopback and the one who loads it, each a process with an event loop of its own.

A request names a station, its own number and how long it wants to be served; it is answered when
one of the station's servers has waited so long for it, first come, first served. A wait stands for
a device at work, so that many stations run side by side and disturb each other little. Requests and
answers share one connection, as in HTTP/2.

An *open* load sends each request at its due time, whatever has become of the others. A *closed* one
waits for the answer before it sends the next. Event loops wait by `select`, which tells
microseconds; `epoll` rounds waits up to milliseconds.
"""

import asyncio
import contextlib
import gc
import random
import selectors
import struct
import threading
import time
from dataclasses import dataclass, field

REQUEST, ANSWER = struct.Struct("<HId"), struct.Struct("<HI")
BEGIN, END = 0xFFFE, 0xFFFF  # in place of a station: the time to watch starts, and ends
# s between looks at how many are inside, on average; at random, against rhythms
SAMPLING = 0.0025
TRIALS, TRIAL = 20, 0.005  # sleeps that show by how much timers are late, and their length in s
clock = time.perf_counter


@dataclass
class Station:
    """A line and its servers, and what was seen of them. Times in s by the server's own clock."""

    queue: asyncio.Queue
    inside: int = 0
    looks: list = field(default_factory=list)  # how many were inside, at random times
    trace: list = field(default_factory=list)  # (number, arrival, start, departure) of each request


def run(main):
    """Run a coroutine in an event loop whose timers are as fine as the system's."""
    gc.disable()  # no pause of ours in the middle of a measurement; these processes are short-lived
    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())
    ) as runner:
        return runner.run(main)


# ---------------------------------------------------------------- the server


def serve(pipe):
    """A process: takes servers by station; sends (port, timers' lateness); serves until told."""
    servers = pipe.recv()
    pipe.send(run(_serve(pipe, servers)))


async def _serve(pipe, servers):
    stations, tasks, finished = [Station(asyncio.Queue()) for _ in servers], [], asyncio.Event()
    connections: dict = {}

    async def connected(reader, writer):
        connections[asyncio.current_task()] = writer
        for number, count in enumerate(servers):
            tasks.extend(
                asyncio.create_task(_server(stations[number], number, writer)) for _ in range(count)
            )
        await _take(reader, stations, tasks)
        writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    pipe.send((listener.sockets[0].getsockname()[1], await timer_lateness()))
    loop = asyncio.get_running_loop()
    threading.Thread(target=_until_told, args=(pipe, loop, finished), daemon=True).start()
    await finished.wait()
    for task in tasks:
        task.cancel()
    listener.close()
    for writer in connections.values():
        writer.transport.abort()
    if connections:
        await asyncio.wait(connections, timeout=1)
    return [(station.looks, station.trace) for station in stations]


async def _take(reader, stations, tasks):
    """Put each request in its line as it comes."""
    while True:
        try:
            station, number, service = REQUEST.unpack(await reader.readexactly(REQUEST.size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        if station == BEGIN:
            watching = asyncio.create_task(_watch(stations))
            tasks.append(watching)
        elif station == END:
            watching.cancel()
        else:
            stations[station].inside += 1
            stations[station].queue.put_nowait((number, service, clock()))


async def _server(station, own, writer):
    """One server of a station: a request after the other."""
    while True:
        number, service, arrival = await station.queue.get()
        start = clock()
        await asyncio.sleep(service)
        writer.write(ANSWER.pack(own, number))
        station.inside -= 1
        station.trace.append((number, arrival, start, clock()))


async def _watch(stations):
    """Count those inside at random times: a third instrument, which knows nothing of arrivals or
    stays.
    """
    rng, due = random.Random(1961), clock()
    while True:
        due += rng.expovariate(1 / SAMPLING)
        await asyncio.sleep(max(0.0, due - clock()))
        for station in stations:
            station.looks.append(station.inside)


async def timer_lateness():
    """By how much sleeps of `TRIAL` last longer (s), for each of some."""
    late = []
    for _ in range(TRIALS):
        start = clock()
        await asyncio.sleep(TRIAL)
        late.append(clock() - start - TRIAL)
    return late


def _until_told(pipe, loop, finished):
    with contextlib.suppress(EOFError, OSError):
        pipe.recv()
    with contextlib.suppress(RuntimeError):  # the loop has ended by itself
        loop.call_soon_threadsafe(finished.set)


# ---------------------------------------------------------------- the load


@dataclass(frozen=True)
class Sent:
    """What became of one station's requests, by the sender's clock, in s from the beginning."""

    due: list
    sent: list
    done: list


def send(pipe):
    """A process: takes (port, plans) of (due times, services, closed?); sends (s, [Sent])."""
    port, plans = pipe.recv()
    pipe.send(run(_send(port, plans)))


async def _send(port, plans):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent, done = ([[0.0] * len(due) for due, _, _ in plans] for _ in range(2))
    answered = [asyncio.Event() for _ in plans]
    writer.write(REQUEST.pack(BEGIN, 0, 0.0))
    zero = clock()

    def put(station, number):
        sent[station][number] = clock() - zero
        writer.write(REQUEST.pack(station, number, plans[station][1][number]))

    async def at(due):
        if (wait := due - (clock() - zero)) > 0:
            await asyncio.sleep(wait)

    async def open_loads():
        agenda = sorted(
            (t, s, i)
            for s, (due, _, closed) in enumerate(plans)
            if not closed
            for i, t in enumerate(due)
        )
        for due, station, number in agenda:
            await at(due)
            put(station, number)

    async def closed_load(station):
        for number, due in enumerate(plans[station][0]):
            await at(due)
            answered[station].clear()
            put(station, number)
            await answered[station].wait()

    async def take():
        left, rest = sum(len(due) for due, _, _ in plans), b""
        while left:
            data = await reader.read(65536)
            if not data:
                raise RuntimeError("the server has closed the connection")
            now, rest = clock() - zero, rest + data
            whole = len(rest) // ANSWER.size * ANSWER.size
            for station, number in ANSWER.iter_unpack(rest[:whole]):
                done[station][number] = now
                answered[station].set()
                left -= 1
            rest = rest[whole:]

    await asyncio.gather(
        take(), open_loads(), *(closed_load(s) for s, plan in enumerate(plans) if plan[2])
    )
    seconds = clock() - zero
    writer.write(REQUEST.pack(END, 0, 0.0))
    await writer.drain()
    writer.close()
    return seconds, [Sent(due, sent[s], done[s]) for s, (due, _, _) in enumerate(plans)]
