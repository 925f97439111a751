"""Processes that have the usual packages loaded and fork a sandbox for each submission: this end of
inside/student_confine.py.

A server is used by one sandbox at a time and, once that is closed, by the next one. It is replaced
as soon as anything about it is odd, and after many sandboxes in any case.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

STARTS_IN = 120  # seconds; it takes one or two where the machine is not busy
ANSWERS_IN = 10
MOST_FORKS = 2000
_idle: list[Server] = []
_mine = threading.Lock()


class Odd(RuntimeError):
    """The server disobeyed a request, or has ended."""


@dataclass(frozen=True)
class Forked:
    """A sandbox: its first process, a handle to it, and our ends of its pipes."""

    pid: int
    handle: int
    inbox: int
    outbox: int

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def close(self) -> None:
        for descriptor in (self.handle, self.inbox, self.outbox):
            os.close(descriptor)


class Server:
    """A fork server, started by `command` and controlled through descriptor 0. Raises Odd."""

    def __init__(self, command: list[str], environment: dict[str, str], paths: list[str]) -> None:
        self.command, self.forks = command, 0
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, open(os.devnull, "r+b") as nothing:
            # A server dies with this process: the kernel watches the thread that started it.
            start = partial(
                subprocess.Popen, command, stdin=theirs, stdout=nothing, stderr=nothing,
                env=environment, cwd="/", start_new_session=True,
            )  # fmt: skip
            self._process = _starter().submit(start).result()
        try:
            self._tell(json.dumps({"paths": paths}).encode())
            self._hear(b"ready", STARTS_IN)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(self, setup: dict[str, Any]) -> Forked:
        """Create a new sandbox. Raises Odd."""
        self.forks += 1
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        try:
            try:
                message = json.dumps(setup).encode()
                socket.send_fds(self._control, [message], [theirs_in, theirs_out])
                self._wait(ANSWERS_IN)
                reply, handles, *_ = socket.recv_fds(self._control, 1 << 10, 1)
            except OSError as error:
                raise Odd(str(error)) from None
            finally:
                os.close(theirs_in)
                os.close(theirs_out)
            if reply != b"forked" or len(handles) != 1:
                raise Odd(reply)
            os.set_blocking(ours_in, False)
            os.set_blocking(ours_out, False)
            return Forked(_pid(handles[0]), handles[0], ours_in, ours_out)
        except BaseException:
            os.close(ours_in)
            os.close(ours_out)
            raise

    def ended(self, forked: Forked, seconds: float) -> int | None:
        """Return a sandbox's exit status as shells report it; None if running. Raises Odd."""
        if not _ready(forked.handle, seconds):
            return None
        self._tell(b"ended?")
        return int(self._hear(None, ANSWERS_IN))

    def close(self) -> None:
        """End the server and everything it has forked."""
        # The first process of a namespace takes all others with it, and then bwrap ends.
        for pid in children(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.wait()
        self._control.close()

    def fit(self) -> bool:
        """Whether the server can take another sandbox."""
        return self._process.poll() is None and self.forks < MOST_FORKS

    def _tell(self, message: bytes) -> None:
        try:
            self._control.send(message)
        except OSError as error:
            raise Odd(str(error)) from None

    def _hear(self, nonce: bytes | None, seconds: float) -> bytes:
        self._wait(seconds)
        try:
            reply = self._control.recv(1 << 10)
        except OSError as error:
            raise Odd(str(error)) from None
        if not reply or (nonce and reply != nonce):
            raise Odd(reply)
        return reply

    def _wait(self, seconds: float) -> None:
        if not _ready(self._control.fileno(), seconds):
            raise Odd("It does not answer.")


@cache
def _starter() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "lightspeed-forkserver")


def take(command: list[str], environment: dict[str, str], paths: list[str]) -> Server:
    """Return an idle server of this command, or a new one. Raises Odd."""
    with _mine:
        while fitting := [s for s in _idle if s.command == command]:
            _idle.remove(server := fitting[-1])
            if server.fit():
                return server
            server.close()
    return Server(command, environment, paths)


def give_back(server: Server) -> None:
    """Keep the server for the next sandbox."""
    if server.fit():
        with _mine:
            _idle.append(server)
    else:
        server.close()


def servers() -> tuple[Server, ...]:
    """Return the idle servers of this process."""
    return tuple(_idle)


@atexit.register
def close_all() -> None:
    """End every idle server."""
    while _idle:
        _idle.pop().close()


def _forget() -> None:
    """They belong to the process that started them."""
    _idle.clear()
    _starter.cache_clear()


os.register_at_fork(after_in_child=_forget)


def children(pid: int) -> list[int]:
    pids: list[int] = []
    with contextlib.suppress(OSError):  # it may be gone
        for task in os.listdir(f"/proc/{pid}/task"):
            pids += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return pids


def _ready(descriptor: int, seconds: float) -> bool:
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    return bool(ready.poll(1000 * seconds))


def _pid(handle: int) -> int:
    """The process behind a handle, as it is numbered here."""
    for line in Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines():
        if line.startswith("Pid:") and (pid := int(line.split()[1])) > 0:
            return pid
    raise Odd("Its sandbox ended at once.")
