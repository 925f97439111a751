"""This machine's numbers to know: latency, memory, storage, loopback, clock. Chapter 1."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, cast

import numpy as np

from lightspeed_tools.measure import environment
from lightspeed_tools.measure.instruments import kernels, latency_levels
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, Unavailable, seconds_of

MIB = 2**20
# links that one call of the chase follows: up to a MiB, and beyond
NEAR_STEPS, FAR_STEPS = 2**14, 2**12
# s of a sample of memory: most then fall between two turns of other programs on the core
SHORT = 5e-4
BLOCK = MIB  # bytes of one write
SMALL = 4096  # bytes of the smallest write that reaches a disk

# The other end of the loopback link, in a process of its own: takes a length and so many bytes,
# answers with one.
ANSWERING = """
import socket
with socket.create_server(("127.0.0.1", 0)) as listening:
    listening.settimeout(20)
    print(listening.getsockname()[1], flush=True)
    link, _ = listening.accept()
    link.settimeout(20)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = memoryview(bytearray(1 << 20))
    with link:
        while head := link.recv(8, socket.MSG_WAITALL):
            left = int.from_bytes(head, "little")
            while left:
                left -= link.recv_into(buffer[:min(left, len(buffer))]) or left
            link.sendall(b".")
"""


def measure(quick=True, report=None):
    """Measure every available quantity of the host: return a list of `Quantity` and `Missing`.

    `report` is called with a line of text before each step. Nothing is left behind on disk.
    """
    say = report or (lambda text: None)
    parts = [
        ("timer_resolution", "the clock itself", lambda: clock()),
        ("latency", "memory latency over the working set", lambda: latency(quick)),
        ("bandwidth", "memory bandwidth over the number of threads", lambda: bandwidth(quick)),
        ("storage", "storage", lambda: storage(quick)),
        ("loopback", "loopback network", lambda: loopback(quick)),
    ]
    quantities = []
    for key, name, part in parts:
        say(name)
        try:
            quantities += part()
        except Unavailable as reason:
            quantities.append(Missing(f"host.{key}", reason.why, reason.remedy))
    return quantities


def clock():
    """Measure the clock's resolution and the cost of reading it, in s."""

    def step():
        start = time.perf_counter_ns()
        while (now := time.perf_counter_ns()) == start:
            pass
        return (now - start) * 1e-9

    steps = [min(step() for _ in range(200)) for _ in range(11)]
    return [
        Quantity("host.timer_resolution", "s", steps, better="lower"),
        Quantity("host.timer_overhead", "s", seconds_of(time.perf_counter, 11), better="lower"),
    ]


def latency(quick=True):
    """Measure the ladder: seconds per load for each working set, up to 1/16 of the free memory."""
    chase = kernels.load().chase
    largest = _power_of_two_below(min((256 if quick else 1024) * MIB, _free_memory() / 16))
    rng, quantities = np.random.default_rng(0), []
    for size in latency_levels.sizes(largest, per_octave=2 if quick else 4):
        following = kernels.one_cycle(size // kernels.LINE, rng)
        # so that what fits into a cache is there
        at = chase(following, 0, min(size // kernels.LINE, 2**20))

        links = NEAR_STEPS if size <= MIB else FAR_STEPS

        def walk(following=following, links=links):
            # goes on from where the last call stopped: the same steps again would be cached
            nonlocal at
            at = chase(following, at, links)

        taken = seconds_of(walk, repeat=31 if quick else 61, warmup=1, least=SHORT)
        quantities.append(
            Quantity("host.latency", "s", [t / links for t in taken], {"size": size}, "lower")
        )
    return quantities


def bandwidth(quick=True):
    """Measure copy and triad (byte/s) with 1, 2, 4 ... threads, on vectors larger than any cache,
    counting as STREAM does what the loop reads and writes.
    """
    each, repeat, quantities = far_size(quick), 21 if quick else 51, []
    for name in ("copy", "triad"):
        key, size = f"host.{name}_bandwidth", kernels.VECTORS[name] * each
        for threads in kernels.thread_counts():
            taken, counted = kernels.samples(name, threads, size, np.float64, repeat)
            rates, which = [counted["bytes"] / t for t in taken], {"threads": threads}
            quantities.append(Quantity(key, "byte/s", rates, which, counted=counted, note="numba"))
    return quantities


def storage(quick=True):
    """Measure writing and reading a file (byte/s), and the seconds until a small write is safe."""
    folder, where = _folder()
    keys = ("host.storage_write", "host.storage_read", "host.storage_flush")
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="lightspeed-") as file:
            return _storage(file, quick, where)
    except OSError as error:
        why = f"A file in {where} could not be written ({error.strerror or type(error).__name__})."
        return [Missing(key, why, "Free some space there, or make it writable.") for key in keys]


def _storage(file, quick, where):
    data = os.urandom(BLOCK)  # noise, so that nothing on the way can shrink it

    def write(blocks):
        file.seek(0)
        file.truncate()
        start = time.perf_counter()
        for _ in range(blocks):
            file.write(data)
        _flush(file)
        return time.perf_counter() - start

    def read(blocks):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        start = time.perf_counter()
        while file.read(BLOCK):
            pass
        return blocks * BLOCK / (time.perf_counter() - start)

    room = shutil.disk_usage(Path(file.name).parent).free // 20 // BLOCK
    blocks = max(4, min(64 if quick else 512, room))
    first = max(write(4), 1e-6)  # a slow disk gets a smaller file
    blocks = max(4, min(blocks, int(4 * (0.3 if quick else 1.5) / first)))
    size, note = {"size": blocks * BLOCK}, f"in {where}"
    written, key = [blocks * BLOCK / write(blocks) for _ in range(7)], "host.storage_read"
    until = f"{note}, until fsync returned"
    quantities: list = [Quantity("host.storage_write", "byte/s", written, size, note=until)]
    if hasattr(os, "posix_fadvise"):
        forgotten = (
            f"{note}; the system was asked to forget the file first, a host or a drive below it"
            " was not"
        )
        rates = [read(blocks) for _ in range(7)]
        quantities.append(Quantity(key, "byte/s", rates, size, note=forgotten))
    else:
        why = "This system cannot be asked to forget a file, so it would be read from memory."
        quantities.append(Missing(key, why, "Measure on Linux."))

    def small():
        file.seek(0)
        file.write(data[:SMALL])
        _flush(file)

    taken = seconds_of(small, 15 if quick else 41, least=1e-9)
    return [*quantities, Quantity("host.storage_flush", "s", taken, {"size": SMALL}, "lower", note)]


def loopback(quick=True):
    """Measure TCP to another process here: seconds for a byte's round trip, byte/s one way."""
    keys = ("host.loopback_round_trip", "host.loopback_bandwidth")
    try:
        with _other_process() as link:

            def send(size, data=bytes(BLOCK)):
                link.sendall(size.to_bytes(8, "little") + data[: size % BLOCK])
                for _ in range(size // BLOCK):
                    link.sendall(data)
                if not link.recv(1):
                    raise ConnectionError("the other process ended")

            trips = seconds_of(lambda: send(1), 15 if quick else 41, warmup=200, least=0.02)
            size = 64 * BLOCK
            taken = seconds_of(lambda: send(size), 9 if quick else 21)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        why = f"No TCP connection to a process of this machine ({type(error).__name__})."
        return [Missing(key, why, "Allow programs to open ports on 127.0.0.1.") for key in keys]
    return [
        Quantity(keys[0], "s", trips, {"size": 1}, "lower"),
        Quantity(keys[1], "byte/s", [size / t for t in taken], {"size": size}),
    ]


@contextlib.contextmanager
def _other_process():
    child = subprocess.Popen([sys.executable, "-c", ANSWERING], stdout=subprocess.PIPE, text=True)
    with child, cast(IO[str], child.stdout) as output:
        try:
            port = int(output.readline())
            with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                yield link
        finally:
            child.kill()


def _flush(file):
    file.flush()
    os.fsync(file.fileno())


def _folder():
    """A folder on the user's disk, and its name: the cache folder, else the temporary one."""
    import platformdirs

    own = Path(platformdirs.user_cache_dir("speed-of-light", appauthor=False))
    try:
        own.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=own).close()
        return own, _named(own, "the cache folder")
    except OSError:
        folder = Path(tempfile.gettempdir())
        return folder, _named(folder, "the temporary folder")


def _named(folder, name):
    """The name, with a warning if the folder is in memory (Linux says so)."""
    with contextlib.suppress(OSError):
        mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
        held = [(len(at), kind) for at, kind in mounts if folder.resolve().is_relative_to(at)]
        if held and max(held)[1] in ("tmpfs", "ramfs"):
            return f"{name}, which is in memory and no disk"
    return name


def far_size(quick=True):
    """Return the bytes of a vector too large for any cache, within the free memory."""
    return _power_of_two_below(min((64 if quick else 256) * MIB, _free_memory() / 16))


def _free_memory():
    """Bytes of memory that this process can have, or 4 GiB where nobody tells."""
    psutil = environment.importable("psutil")
    free = psutil.virtual_memory().available if psutil else 4 * 1024 * MIB
    return min(free, environment.memory_limit("/") or free)


def _power_of_two_below(x):
    return 2 ** max(16, int(x).bit_length() - 1)
