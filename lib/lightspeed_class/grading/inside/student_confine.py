"""Serves sandboxes: a process that has the usual packages loaded forks one for each notebook, as
tight as bubblewrap's own, and never runs a line of a student's.

bubblewrap gave this process its view of the files, and no network. For each notebook come two
pipes. The first process that is forked is alone in namespaces of its own (processes, mounts,
network, messages) and mounts an empty /tmp and /dev/shm of limited size and number of files. The
second one takes limits, gives up its user and every right for good, is filtered by seccomp, looks
whether all that is so, and only then reads what it is to run.
"""

import ctypes
import fcntl
import gc
import os
import signal
import socket
from collections.abc import Callable, Sequence
from json import dumps, loads
from typing import Any, NoReturn

_NEW_PIDS = 0x20000000
_NEW_OTHERS = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x40000000  # NS, …, NET
_PRIVATE = 0x40000 | 0x4000  # MS_PRIVATE | MS_REC
_NOSUID_NODEV = 2 | 4
# of prctl
_DUMPABLE, _GET_SECCOMP, _SET_SECCOMP, _READ_BOUND, _DROP_BOUND = 4, 21, 22, 23, 24
_SET_NO_NEW_PRIVS, _GET_NO_NEW_PRIVS, _AMBIENT, _CLEAR_ALL, _FILTER = 38, 39, 47, 4, 2
_CAPABILITIES = 0x20080522  # version 3 of their layout
_MOST_CAPABILITIES, _MOST_DESCRIPTORS = 64, 1 << 30
UNFIT = 97  # exit status of a sandbox that is not as tight as it has to be
_libc = ctypes.CDLL(None, use_errno=True)


def serve(
    prepare: Callable[[list[str]], Any],
    limit: Callable[[dict[str, Any]], None],
    work: Callable[..., None],
) -> None:
    """Make the world of notebooks once, by `prepare(paths)`; then `work` in a sandbox for each
    pair of pipes that comes, until the other end of descriptor 0 is closed.
    """
    control = socket.socket(fileno=os.dup(0))
    world = prepare(loads(control.recv(1 << 16))["paths"])
    me, child = os.pidfd_open(os.getpid()), 0
    gc.collect()
    gc.freeze()  # a child's collector does not touch, and so copy, all of it
    control.send(b"ready")
    while True:
        message, pipes, *_ = socket.recv_fds(control, 1 << 16, 2)
        if not message:
            return
        if message == b"ended?":
            control.send(dumps(_status(os.waitpid(child, 0)[1])).encode())
            continue
        _must(_libc.unshare(_NEW_PIDS))
        child = os.fork()
        if child == 0:
            _first(loads(message), pipes, limit, lambda *a: work(world, *a))
        _must(_libc.setns(me, _NEW_PIDS))
        handle = os.pidfd_open(child)
        socket.send_fds(control, [b"forked"], [handle])
        for descriptor in (handle, *pipes):
            os.close(descriptor)


def _first(
    setup: dict[str, Any],
    pipes: Sequence[int],
    limit: Callable[[dict[str, Any]], None],
    work: Callable[..., None],
) -> NoReturn:
    """The first process of the new namespaces; when it ends, the kernel ends all others in them."""
    try:
        pipes = _only(pipes)
        _must(_libc.unshare(_NEW_OTHERS))
        _must(_libc.mount(b"none", b"/", None, _PRIVATE, None))
        room = f"mode=1777,size={setup['limits']['disk']},nr_inodes={setup['limits']['files']}"
        for place in (b"/tmp", b"/dev/shm"):
            _must(_libc.mount(b"tmpfs", place, b"tmpfs", _NOSUID_NODEV, room.encode()))
        os.chdir("/tmp")
        second = os.fork()
        if second == 0:
            _second(setup, pipes, limit, work)
        _only(())
        _powerless(None)
        _prctl(_DUMPABLE, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # with no handler, none from inside arrives
        while True:
            pid, status = os.wait()
            if pid == second:
                os._exit(_status(status))
    finally:
        os._exit(UNFIT)


def _second(
    setup: dict[str, Any],
    pipes: Sequence[int],
    limit: Callable[[dict[str, Any]], None],
    work: Callable[..., None],
) -> NoReturn:
    """The process that runs the notebook, once it can do no harm."""
    inbox, outbox = pipes
    status = UNFIT
    try:
        os.setsid()  # a signal to the group stays inside
        limit(setup["limits"])
        _powerless(setup["uid"])
        _prctl(_DUMPABLE, 1)  # a grader who is the same user sees how much it uses
        filtered(bytes.fromhex(setup["seccomp"]))
        _look(setup["uid"])
        status = 1
        work(os.fdopen(inbox, "rb"), outbox, setup["limits"])
        status = 0
    finally:
        os._exit(status)


def _only(pipes: Sequence[int]) -> list[int]:
    """Close every descriptor but these, which become 3 and 4; 0, 1 and 2 lead nowhere."""
    high = [fcntl.fcntl(p, fcntl.F_DUPFD_CLOEXEC, 100) for p in pipes]
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.closerange(3, 100)
    low = [os.dup2(p, 3 + n, inheritable=False) for n, p in enumerate(high)]
    os.closerange(3 + len(low), _MOST_DESCRIPTORS)
    return low


def _powerless(uid: int | None) -> None:
    """Give up every capability, for good; and with them one's user, for the one of this id."""
    _prctl(_AMBIENT, _CLEAR_ALL)
    for number in range(_MOST_CAPABILITIES):
        if _libc.prctl(_READ_BOUND, number, 0, 0, 0) == 1:
            _prctl(_DROP_BOUND, number)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    _must(_libc.capset(header, none))
    _prctl(_SET_NO_NEW_PRIVS, 1)


def filtered(code: bytes) -> None:
    """Restrict this process to the system calls that the filter admits."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]

    program = Program(len(code) // 8, code)
    _must(_libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0))


def _look(uid: int | None) -> None:
    """Trust nothing of the above: what does not hold now ends the sandbox before it is used."""
    header, capabilities = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    _must(_libc.capget(header, capabilities))
    bound = [n for n in range(_MOST_CAPABILITIES) if _libc.prctl(_READ_BOUND, n, 0, 0, 0) == 1]
    users = {*os.getresuid(), *os.getresgid()}
    fit = (
        not any(capabilities)
        and not bound
        and (users == {uid} if uid is not None else 0 not in users)
        and (uid is None or not os.getgroups())
        and _libc.prctl(_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
        and _libc.prctl(_GET_SECCOMP, 0, 0, 0, 0) == _FILTER
        and os.getpid() == 2
        and os.listdir("/tmp") == os.listdir("/dev/shm") == []
    )
    if not fit:
        os._exit(UNFIT)


def _status(status: int) -> int:
    """As a shell tells it: 128 and the number of the signal, or the exit status."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _prctl(what: int, value: int) -> None:
    _must(_libc.prctl(what, value, 0, 0, 0))


def _must(outcome: int) -> None:
    if outcome < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
