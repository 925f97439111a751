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
import os
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import lightspeed
import lightspeed_course
from lightspeed_class.grading import seccomp

LIBRARY = Path(lightspeed.__file__).resolve().parent  # laws and constants: no answers
COURSE = Path(lightspeed_course.__file__).resolve().parent
# of the course; practice/ and all else holds answers
EXPOSED = ("__init__.py", "lazy.py", "profiles.py", "show", "explorers")
PROGRAM = Path(__file__).with_name("student.py")
HINT = (
    "bubblewrap (the command bwrap) is needed to run submissions safely: apt install bubblewrap,"
    " dnf install bubblewrap. It exists for Linux only; elsewhere use a container or a virtual"
    " machine, or grade without isolation, which lets a submission do all that you can do."
)
# added to the process id: a user that nobody is, another one for each grader at work
FIRST_UID = 2_000_000_000


class NoSandbox(RuntimeError):
    """This machine cannot isolate submissions, or could not start one; the message says how to
    mend it.
    """


class Ended(Exception):
    """The program will say no more; `reason` is time, memory, output, protocol or exit."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Limits:
    """What one submission may use: seconds and bytes."""

    wall: float = 120  # all of it, from start to end
    cell: float = 30  # one cell; the next one still runs
    call: float = 5  # one call of a function
    memory: int = 1 << 30  # address space of one process
    total: int = 2 << 30  # resident memory of all of them
    disk: int = 64 << 20
    processes: int = 16  # threads count too
    output: int = 2 << 20  # what it may tell us


class Sandbox:
    """student.py in a sandbox of its own; use it in a `with`. `isolation` says in words what
    holds it.
    """

    def __init__(self, limits: Limits | None = None, isolated: bool = True):
        self.limits = limits or Limits()
        self._isolated = isolated
        self._deadline = time.monotonic() + self.limits.wall
        self._waiting, self._received, self._look = b"", 0, 0.0
        self.isolation = available() if isolated else "not isolated"

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            folder = (
                None
                if self._isolated
                else undo.enter_context(tempfile.TemporaryDirectory(prefix="lightspeed-student-"))
            )
            command, descriptors = (_confined if self._isolated else _free)(self.limits, undo)
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                cwd=folder or "/", env=_environment(folder or "/tmp"), pass_fds=descriptors,
                start_new_session=True,
            )  # fmt: skip
            self._undo = undo.pop_all()
        for pipe in (self._process.stdin, self._process.stdout):
            os.set_blocking(pipe.fileno(), False)
        with contextlib.suppress(Ended):  # the first receive() tells it
            self.send({"paths": _paths(), "limits": asdict(self.limits)})
        return self

    def __exit__(self, *_):
        self._kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._undo.close()

    def send(self, message):
        """Hand over a message. Raises Ended."""
        left, pipe = json.dumps(message).encode() + b"\n", self._process.stdin.fileno()
        while left:
            self._wait(pipe, select.POLLOUT, self._deadline)
            try:
                left = left[os.write(pipe, left) :]
            except BlockingIOError:
                pass
            except BrokenPipeError:
                raise Ended(self._why()) from None

    def receive(self, seconds=None):
        """The next message, or None if there is none within `seconds`. Raises Ended. The message
        is hostile.
        """
        until = (
            self._deadline if seconds is None else min(self._deadline, time.monotonic() + seconds)
        )
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._waiting:
            if not self._wait(pipe, select.POLLIN, until):
                return None
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(pipe, 1 << 16)
                if not chunk:
                    raise Ended(self._why())
                self._waiting += chunk
                self._received += len(chunk)
            if self._received > self.limits.output:
                raise Ended("output")
        line, _, self._waiting = self._waiting.partition(b"\n")
        try:
            message = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError):
            raise Ended("protocol") from None
        if type(message) is not dict:
            raise Ended("protocol")
        return message

    def _wait(self, pipe, event, until):
        """Whether the pipe got ready in time; looks at the memory meanwhile."""
        ready = select.poll()
        ready.register(pipe, event)
        while (now := time.monotonic()) < until:
            if self._isolated and now > self._look:  # however much it has to say
                if sum(map(_resident, _descendants(self._process.pid))) > self.limits.total:
                    raise Ended("memory")
                self._look = now + 0.05
            if ready.poll(min(1000 * (until - now), 50)):
                return True
        if until >= self._deadline:
            raise Ended("time")
        return False

    def _why(self):
        """The reason why the pipe was closed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(1)
            if status in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
                return "time"
        return "exit"

    def _kill(self):
        if not self._isolated:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            return
        # The first process of its namespace takes all others with it, and bwrap ends once they are
        # gone.
        for pid in _children(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()


@cache
def available():
    """How submissions are isolated here. Raises NoSandbox where they cannot be."""
    bwrap = shutil.which("bwrap")
    if sys.platform != "linux" or not bwrap:
        raise NoSandbox(HINT)
    with contextlib.ExitStack() as undo:
        command, descriptors = _confined(Limits(), undo)
        trial = [*command[: command.index("--") + 1], "/usr/bin/true"]
        done = subprocess.run(
            trial, pass_fds=descriptors, capture_output=True, text=True, timeout=30
        )
    if done.returncode:
        raise NoSandbox(f"bubblewrap does not work here: {done.stderr.strip()[:300]}. {HINT}")
    version = subprocess.run([bwrap, "--version"], capture_output=True, text=True).stdout.split()[
        -1
    ]
    return f"bubblewrap {version}" + ", seccomp" * bool(seccomp.program())


def _confined(limits, undo):
    """The command of the sandbox and the descriptors it needs."""
    command = [
        shutil.which("bwrap"),
        "--die-with-parent",
        "--new-session",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
    ]
    command += ["--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"]
    root = os.geteuid() == 0
    if root:
        command += [
            "--cap-drop",
            "ALL",
            "--cap-add",
            "CAP_SETUID",
            "--cap-add",
            "CAP_SETGID",
            "--cap-add",
            "CAP_SETPCAP",
        ]
    else:
        command += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    # Before the binds: a course that lies below /tmp would else be hidden by it.
    command += ["--size", str(limits.disk), "--perms", "1777", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    made = {"/", "/usr", "/tmp"}
    for folder in ("/usr", *_readable(), str(LIBRARY)):
        for parent in reversed(Path(folder).parents):
            if str(parent) not in made and not any(
                str(parent).startswith(f"{m}/") for m in ("/usr", *_readable())
            ):
                command += ["--perms", "0755", "--dir", str(parent)]
                made.add(str(parent))
        command += ["--ro-bind", folder, folder]
    for name in ("lib", "lib64", "bin"):
        if Path(f"/{name}").exists():
            command += ["--symlink", f"usr/{name}", f"/{name}"]
    # Of the course only what holds no answers, whether it is a checkout or lies among the packages.
    seen = any(COURSE.is_relative_to(folder) for folder in ("/usr", *_readable()))
    beside = COURSE.parent.glob("lightspeed*") if seen else ()
    hidden = [p for p in beside if p.is_dir() and p not in (LIBRARY, COURSE)]
    for folder in (COURSE, *sorted(hidden)):
        command += ["--perms", "0755", "--tmpfs", str(folder)]
    for name in EXPOSED:
        command += ["--ro-bind", str(COURSE / name), str(COURSE / name)]
    command += ["--ro-bind", str(PROGRAM), "/student.py", "--perms", "0755", "--dir", "/dev"]
    for device in ("/dev/null", "/dev/zero", "/dev/urandom"):
        command += ["--dev-bind", device, device]
    command += [
        *(word for f in (COURSE, *sorted(hidden)) for word in ("--remount-ro", str(f))),
        "--remount-ro",
        "/",
    ]
    descriptors = []
    if seccomp.program():
        # A pipe holds the few hundred bytes of it.
        reading, writing = os.pipe()
        os.write(writing, seccomp.program())
        os.close(writing)
        undo.callback(os.close, reading)
        descriptors.append(reading)
        command += ["--seccomp", str(reading)]
    command.append("--")
    if root:
        uid = str(FIRST_UID + os.getpid())
        command += [
            "/usr/bin/setpriv",
            f"--reuid={uid}",
            f"--regid={uid}",
            "--clear-groups",
            "--no-new-privs",
        ]
        command += ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--"]
    return [*command, *_python("/student.py")], descriptors


def _free(limits, undo):
    return _python(str(PROGRAM)), []


def _python(program):
    """No site, no user's packages, no current folder on the path; the real interpreter, not the
    link of an environment.
    """
    return [os.path.realpath(sys.executable), "-s", "-S", "-P", "-B", program]


@cache
def _readable():
    """Folders outside /usr that hold the interpreter and the packages."""
    paths = sysconfig.get_paths()
    folders = {sys.base_prefix, paths["stdlib"], paths["purelib"], paths["platlib"]}
    folders = {os.path.realpath(f) for f in folders}
    return sorted(
        f
        for f in folders
        if not any(f.startswith(f"{other}/") for other in folders | {"/usr"}) and f != "/usr"
    )


def _paths():
    """What student.py puts on the path for the packages and the course."""
    paths = sysconfig.get_paths()
    return list(dict.fromkeys([str(COURSE.parent), paths["purelib"], paths["platlib"]]))


def _environment(home):
    return {
        "HOME": home, "TMPDIR": home, "MPLCONFIGDIR": home, "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "MPLBACKEND": "agg",
        "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip


def _refuse(constant):
    raise ValueError(constant)


def _children(pid):
    found = []
    with contextlib.suppress(OSError):  # it may be gone
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def _descendants(pid):
    for child in _children(pid):
        yield child
        yield from _descendants(child)


def _resident(pid):
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
