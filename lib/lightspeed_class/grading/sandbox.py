"""A process that may be hostile, confined by bubblewrap, and a line of JSON at a time to and from
it.

Inside there is no network, no /proc, no other process and no file but the interpreter, its packages
and those parts of the course that hold no answers, all read-only, and an empty /tmp of limited
size. The environment is ours, descriptors are closed, the user owns nothing, and limits hold for
processor time, wall time, memory, processes, files and output. What comes back is only ever parsed
as JSON. When the sandbox is closed, every process in it is dead.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from lightspeed_class.grading import cgroups, doors, forkserver, seccomp
from lightspeed_class.kept_library import EXPOSED, LIB, WHOLE

COURSE = LIB / "lightspeed_course"
EVIDENCE = LIB / "lightspeed_models" / "evidence"  # but for its data, which take long to read
PROGRAM = Path(__file__).with_name("student.py")
INSIDE = Path(__file__).with_name("inside")  # what it imports
# added to the process id of a fork server: a user that nobody is, another one for each at work
FIRST_UID = 2_000_000_000
NOT_STARTED = "The sandbox did not start. Is the machine out of memory or of processes?"
WAITING = 4  # times the limit of time, at most, on a machine that has no time for the student
START = 60  # seconds for the program to load what it needs, which are not the student's
STARVED = 1.0  # seconds without a processor, from which time of the clock is no measure
GONE_IN = 5  # seconds for the processes of a sandbox that was killed
SCRATCH = 16 << 20  # bytes that the packages may write while they are loaded
# Bytes of the kernel's: for a memory area, and for what the descriptors of a process lead to but
# local sockets, pipes above all, with 64 KiB for two of 64.
AREA, DESCRIPTORS = 512, 4 << 20


class NoSandbox(RuntimeError):
    """This machine cannot isolate a submission; the message says how to fix it."""


class Ended(Exception):
    """The program will send no more; `reason` is time, memory, output, protocol or exit. `waited`:
    wall time, part of which a busy machine may have used.
    """

    def __init__(self, reason: str, busy: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.waited = reason, busy


@dataclass(frozen=True)
class Limits:
    """The limits of one submission: seconds and bytes."""

    wall: float = 120  # all of it, from start to end, without what a busy machine takes
    processor: float = 240  # all of its processes
    cell: float = 30  # processor time of one cell; the next one still runs
    call: float = 5  # processor time of one call of a function
    memory: int = 1 << 30  # address space of one process
    total: int = 2 << 30  # memory of all of them, and what the kernel keeps for them
    disk: int = 64 << 20  # of /tmp, and again of /dev/shm
    files: int = 8192  # in each of them, links too
    processes: int = 16  # threads count too
    output: int = 2 << 20  # what it may tell us


class Sandbox:
    """student.py in a sandbox, for use in a `with`; its cells import the course from `library`.
    `isolation`: the mechanism, in words.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        isolated: bool | str = True,
        library: Path | None = None,
    ) -> None:
        self.limits, self._library = limits or Limits(), library or LIB
        self._isolated = isolated
        self._lines: deque[bytes] = deque()
        self._rest, self._received, self._look = b"", 0, 0.0
        self.isolation = ready(isolated)
        if isolated is True:
            self.isolation += f", {_group(self.limits)[1]}"

    def __enter__(self) -> Sandbox:
        self._home: _Confined | _Free | doors.Container
        if self._isolated is True:
            self._home = _Confined(self.limits, self._library)
        elif self._isolated:
            self._home = _contained(self._isolated, self.limits, self._library)
        else:
            self._home = _Free(self.limits, self._library)
        self._writable, self._readable = select.poll(), select.poll()
        self._writable.register(self._home.inbox, select.POLLOUT)
        self._readable.register(self._home.outbox, select.POLLIN)
        self._count(START)
        return self

    def begin(self) -> None:
        """Start counting the student's time."""
        self._count(self.limits.wall)
        self._at_first = self._before

    @property
    def starved(self) -> bool:
        """Whether the student had to wait for a busy machine; unknown in a container."""
        return isinstance(self._isolated, str) or self._home.waited() - self._at_first > STARVED

    def _count(self, seconds: float) -> None:
        self._seconds, self._before = seconds, self._home.waited()
        self._deadline = time.monotonic() + seconds
        self._last = self._deadline + (WAITING - 1) * seconds

    def __exit__(self, *_: Any) -> None:
        self._home.close()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises Ended."""
        rest, pipe = json.dumps(message).encode() + b"\n", self._home.inbox
        while rest:
            self._wait(self._writable, None)
            try:
                rest = rest[os.write(pipe, rest) :]
            except BlockingIOError:
                pass
            except BrokenPipeError:
                raise Ended(self._home.why()) from None

    def receive(self, seconds: float | None = None) -> dict[str, Any] | None:
        """Return the next (hostile) message, or None after `seconds`. Raises Ended."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self._lines:
            if not self._wait(self._readable, until):
                return None
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(self._home.outbox, 1 << 16)
                if not chunk:
                    raise Ended(self._home.why())
                self._received += len(chunk)
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                self._lines.extend(lines)
            if self._received > self.limits.output:
                raise Ended("output")
        try:
            message = _plain_json.decode(self._lines.popleft().decode())
        except (ValueError, RecursionError):
            raise Ended("protocol") from None
        if type(message) is not dict:
            raise Ended("protocol")
        return message

    def _wait(self, ready: select.poll, until: float | None) -> bool:
        """Whether the pipe got ready before `until`; looks at what is used meanwhile."""
        while (now := time.monotonic()) < (until or math.inf):
            if now > self._look:  # however much it has to say
                self._look_at_use(now)
                self._look = now + 0.05
            if ready.poll(50):
                return True
        return False

    def _look_at_use(self, now: float) -> None:
        """Time is the student's own: what a busy machine made them wait is theirs on top."""
        if now > self._deadline:
            waiting = self._home.waited() - self._before
            self._deadline = waiting + self._last - (WAITING - 1) * self._seconds
            if now > min(self._deadline, self._last):
                raise Ended("time", busy=True)
        pids = list(_descendants(self._home.pid)) if self._isolated else []
        if sum(map(_processor, pids)) > self.limits.processor:
            raise Ended("time")
        most = self.limits.total - (_in_sockets(self._home.pid) if self._isolated is True else 0)
        if sum(map(_memory, pids)) > most and sum(_memory(pid, True) for pid in pids) > most:
            raise Ended("memory")


class _Confined:
    """A sandbox that a fork server made."""

    def __init__(self, limits: Limits, library: Path) -> None:
        setup: dict[str, Any] = {"limits": asdict(limits)}
        setup["seccomp"] = seccomp.program().hex()
        # of the same user as the server, whose processes count too
        if os.geteuid() != 0:
            setup["limits"]["processes"] += 3
        command = [*_group(limits)[0], *_command(PROGRAM, library)]
        environment, paths = _environment("/tmp"), [_inside(p) for p in _paths(library)]
        for again in (True, False):
            self._server: Any = None
            try:
                self._server = forkserver.take(command, environment, paths)
                setup["uid"] = FIRST_UID + self._server.pid if os.geteuid() == 0 else None
                self._forked = self._server.fork(setup)
                break
            except forkserver.Odd as error:
                if self._server:
                    self._server.close()
                if not again:
                    raise NoSandbox(f"{NOT_STARTED} {error}") from None
            except BaseException:
                if self._server:
                    self._server.close()
                raise
        self.pid, self.inbox, self.outbox = (
            self._forked.pid, self._forked.inbox, self._forked.outbox,
        )  # fmt: skip
        self._status = None

    def why(self) -> str:
        """The reason why the pipe was closed."""
        with contextlib.suppress(forkserver.Odd):
            if self._status is None:
                self._status = self._server.ended(self._forked, 1)
        return "time" if self._status == 128 + signal.SIGXCPU else "exit"

    def waited(self) -> float:
        """Seconds that the notebook's process was ready to run and had no processor."""
        return sum(map(_delayed, forkserver.children(self.pid)))

    def close(self) -> None:
        self._forked.kill()
        try:
            if self._status is None and self._server.ended(self._forked, GONE_IN) is None:
                raise forkserver.Odd("Its sandbox does not end.")
        except BaseException as error:
            self._server.close()
            if not isinstance(error, forkserver.Odd):
                raise
        else:
            forkserver.give_back(self._server)
        finally:
            self._forked.close()


class _Free:
    """A process that is not confined at all."""

    def __init__(self, limits: Limits, library: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lightspeed-student-")
        home = self._folder.name
        self._process = subprocess.Popen(
            _python(str(PROGRAM)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd=home, env=_environment(home), start_new_session=True,
        )  # fmt: skip
        self.pid = self._process.pid
        self._pipes: list[Any] = [self._process.stdin, self._process.stdout]
        self.inbox, self.outbox = (pipe.fileno() for pipe in self._pipes)
        with contextlib.suppress(BrokenPipeError):  # the first receive() tells it
            setup = {"paths": _paths(library), "limits": asdict(limits)}
            os.write(self.inbox, json.dumps(setup).encode() + b"\n")
        os.set_blocking(self.inbox, False)
        os.set_blocking(self.outbox, False)

    def why(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._process.wait(1) == -signal.SIGXCPU:
                return "time"
        return "exit"

    def waited(self) -> float:
        return _delayed(self.pid)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in self._pipes:
            pipe.close()
        self._folder.cleanup()


def ready(isolated: bool | str) -> str:
    """Return how submissions will be isolated: by bubblewrap (True), in a container ("podman",
    "docker") or not at all (False). Raises NoSandbox if they cannot be.
    """
    if isolated is True:
        return available()
    try:
        return doors.available(str(isolated)) if isolated else "not isolated"
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise NoSandbox(f"{error}. {doors.LAST}") from None


def door(isolation: str) -> bool | str:
    """Return the argument of `ready` that a record's words describe."""
    engine = isolation.partition(" ")[0].lower()
    return engine if engine in doors.ENGINES else isolation != "not isolated"


@cache
def available() -> str:
    """Describe how submissions are isolated here. Raises NoSandbox if they cannot be."""
    bwrap = shutil.which("bwrap")
    if sys.platform != "linux" or not bwrap:
        raise NoSandbox(f"{doors.INSTALL} {doors.OTHERS}")
    if not seccomp.program():
        raise NoSandbox(
            f"No filter of system calls is known for {platform.machine()}. {doors.OTHERS}"
        )
    command = _command(PROGRAM, LIB)
    trial = [*command[: command.index("--") + 1], "/usr/bin/true"]
    process = subprocess.run(trial, capture_output=True, text=True, timeout=30)
    if process.returncode:
        raise NoSandbox(doors.remedy(process.stderr, bwrap))
    version = subprocess.run([bwrap, "--version"], capture_output=True, text=True).stdout.split()
    return f"bubblewrap {version[-1]}, seccomp"


def _contained(engine: str, limits: Limits, library: Path) -> doors.Container:
    binds = [(folder, folder) for folder in ("/usr", *_readable())]
    binds += [(path, path) for path in _of_course(library)]
    binds += [(str(INSIDE), "/inside"), (str(PROGRAM), "/student.py")]
    return doors.Container(
        engine, _python("/student.py"), _environment("/tmp"), asdict(limits),
        [_inside(p) for p in _paths(library)], [(here, _inside(there)) for here, there in binds],
        [_inside(p) for p in _hidden()],
    )  # fmt: skip


def _of_course(library: Path) -> list[str]:
    """What a sandbox gets of the course: the packages that hold no answers, or all of a library
    that was kept, which has only those.
    """
    if library != LIB:
        return [str(library)]
    return [*(str(LIB / name) for name in WHOLE), *(str(COURSE / name) for name in EXPOSED)]


def _hidden() -> list[Path]:
    """Folders of the course that hold answers, whether it is a checkout or lies among packages."""
    visible = any(LIB.is_relative_to(folder) for folder in ("/usr", *_readable()))
    beside = LIB.glob("lightspeed*") if visible else ()
    hidden = [p for p in beside if p.is_dir() and p.name not in WHOLE and p != COURSE]
    return [COURSE, EVIDENCE, *sorted(hidden)]


def _group(limits: Limits) -> tuple[list[str], str]:
    return cgroups.joined(limits.total, limits.processes)


@cache
def _command(program: str | Path, library: Path) -> list[str]:
    """The command of a fork server: bubblewrap gives it its files, and leave for sandboxes."""
    command = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--hostname", "sandbox", "--cap-drop", "ALL"]
    rights = ["CAP_SYS_ADMIN", "CAP_SETPCAP"]
    if os.geteuid() == 0:
        rights += ["CAP_SETUID", "CAP_SETGID"]
    else:
        command += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    command += [word for right in rights for word in ("--cap-add", right)]
    command += ["--size", str(SCRATCH), "--perms", "1777", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    folders = {"/", "/usr", "/tmp"}
    whole = ["/usr", *map(_inside, _readable())]
    ours = _of_course(library)
    below = [path for path in ours if Path(path).is_relative_to(COURSE)]  # bound once it is covered
    for folder in ("/usr", *_readable(), *(path for path in ours if path not in below)):
        for parent in map(str, reversed(Path(_inside(folder)).parents)):
            if parent not in folders and not any(parent.startswith(f"{m}/") for m in whole):
                command += ["--perms", "0755", "--dir", parent]
                folders.add(parent)
        command += ["--ro-bind", folder, _inside(folder)]
    for name in ("lib", "lib64", "bin"):
        if Path(f"/{name}").exists():
            command += ["--symlink", f"usr/{name}", f"/{name}"]
    hidden = _hidden()  # of the course only what holds no answers
    for covered in hidden:
        command += ["--perms", "0755", "--tmpfs", _inside(covered)]
    for path in below:
        command += ["--ro-bind", path, _inside(path)]
    command += ["--ro-bind", str(INSIDE), "/inside", "--ro-bind", str(program), "/student.py"]
    # No /dev/zero: what is mapped of it and shared is memory that no limit counts.
    command += ["--perms", "0755", "--dir", "/dev", "--perms", "1777", "--dir", "/dev/shm"]
    for device in ("/dev/null", "/dev/urandom"):
        command += ["--dev-bind", device, device]
    for folder in (*map(_inside, hidden), "/"):
        command += ["--remount-ro", folder]
    interpreter, *options = _python("/student.py")
    return [*command, "--", _inside(interpreter), *options, "serve"]


def _inside(path: str | Path) -> str:
    """Where a sandbox has what lies at a path here. Each notebook gets a /tmp and a /dev/shm of its
    own, which would hide a course or an interpreter below them.
    """
    path = str(path)
    return f"/elsewhere{path}" if path.startswith(("/tmp/", "/dev/shm/")) else path


def _python(program: str) -> list[str]:
    """No site, no user's packages, no current folder; the real interpreter, not a link."""
    return [os.path.realpath(sys.executable), "-s", "-S", "-P", "-B", program]


@cache
def _readable() -> list[str]:
    """Folders outside /usr that hold the interpreter and the packages."""
    paths = sysconfig.get_paths()
    folders = {sys.base_prefix, paths["stdlib"], paths["purelib"], paths["platlib"]}
    folders = {os.path.realpath(f) for f in folders}
    return sorted(
        f
        for f in folders
        if not any(f.startswith(f"{other}/") for other in folders | {"/usr"}) and f != "/usr"
    )


def _paths(library: Path) -> list[str]:
    """What student.py puts on the path for the packages and the course."""
    paths = sysconfig.get_paths()
    packages = (os.path.realpath(paths[name]) for name in ("purelib", "platlib"))
    return list(dict.fromkeys([str(library), *packages]))


def _environment(home: str) -> dict[str, str]:
    return {
        "HOME": home, "TMPDIR": home, "MPLCONFIGDIR": home, "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_plain_json = json.JSONDecoder(parse_constant=_refuse)  # NaN and its like are none


def _descendants(pid: int) -> Iterator[int]:
    for child in forkserver.children(pid):
        yield child
        yield from _descendants(child)


def _processor(pid: int) -> float:
    """Processor seconds of a process and of those of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0


def _delayed(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0


def _memory(pid: int, closely: bool = False) -> int:
    """Bytes that a process holds: its pages, wherever they are, and what the kernel keeps for it.
    `closely`: of pages that it shares its part, and each memory area by itself, which takes longer.
    """
    sizes = _sizes(pid, "status")
    pages = sizes.get("VmRSS", 0) + sizes.get("VmSwap", 0)
    areas = min(sizes.get("VmSize", 0) // os.sysconf("SC_PAGE_SIZE"), _most_areas())
    if closely:
        shared = _sizes(pid, "smaps_rollup")
        pages = shared["Pss"] + shared.get("SwapPss", 0) if "Pss" in shared else pages
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:
            areas = sum(chunk.count(b"\n") for chunk in iter(partial(file.read, 1 << 20), b""))
    return pages + sizes.get("VmPTE", 0) + areas * AREA + DESCRIPTORS


def _in_sockets(pid: int) -> int:
    """Bytes that may wait in all local sockets of the sandbox of this process."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        used = int(Path(f"/proc/{pid}/net/sockstat").read_text().split()[2])
        return used * 2 * int(Path("/proc/sys/net/core/wmem_default").read_text())
    return 0


@cache
def _most_areas() -> int:
    return int(Path("/proc/sys/vm/max_map_count").read_text())


def _sizes(pid: int, name: str) -> dict[str, int]:
    """The lines of a file of /proc that end in kB, in bytes."""
    sizes = {}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            if line.endswith(" kB"):
                key, size, _ = line.split()
                sizes[key[:-1]] = 1024 * int(size)
    return sizes
