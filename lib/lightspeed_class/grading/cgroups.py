"""A control group for a fork server and its sandboxes, where the kernel's second version of them
is at hand: there memory of every kind, processes and processor time are counted by the kernel.

Without one the doors to memory that no process owns are shut by seccomp and by the limits of the
file systems, which also stay shut where there is one.
"""

import atexit
import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT, MINE = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
CONTROLLERS = {"memory", "pids", "cpu"}
OWN = 256 << 20  # bytes of the server itself
PROCESSES = 8  # of bubblewrap's and the server's
PROCESSORS = 4
_made: list[Path] = []
_JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


@atexit.register
def _remove() -> None:  # registered before the fork servers' end is, so it comes after that
    for group in _made:
        with contextlib.suppress(OSError):
            group.rmdir()


@cache
def joined(total: int, processes: int) -> tuple[list[str], str]:
    """Return (command prefix that applies these limits, the mechanism), if available."""
    for words, name in (*_systemd(total, processes), *_delegated(total, processes)):
        try:
            trial = subprocess.run([*words, "/usr/bin/true"], capture_output=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if trial.returncode == 0:
            return words, f"cgroup v2 ({name})"
    return [], "no cgroup v2"


def _systemd(total: int, processes: int) -> Iterator[tuple[list[str], str]]:
    if not Path("/run/systemd/system").is_dir() or not shutil.which("systemd-run"):
        return
    if not (ROOT / "cgroup.controllers").exists():
        return
    words = ["systemd-run", "--scope", "--quiet", "--collect", "--no-ask-password"]
    words += ["--user"] * (os.geteuid() != 0)
    for what in (
        f"MemoryMax={total + OWN}", "MemorySwapMax=0", f"TasksMax={processes + PROCESSES}",
        f"CPUQuota={100 * PROCESSORS}%",
    ):  # fmt: skip
        words += ["-p", what]
    yield [*words, "--"], "systemd"


def _delegated(total: int, processes: int) -> Iterator[tuple[list[str], str]]:
    """A group below our own, if that is ours to divide."""
    try:
        above = ROOT / MINE.read_text().strip().rpartition("0::/")[2]
        if not set((above / "cgroup.controllers").read_text().split()) >= CONTROLLERS:
            return
        controllers = " ".join(f"+{name}" for name in sorted(CONTROLLERS))
        (above / "cgroup.subtree_control").write_text(controllers)
        group = above / f"lightspeed-{os.getpid()}"
        group.mkdir(exist_ok=True)
        _made.append(group)
        for name, value in (
            ("memory.max", total + OWN), ("memory.swap.max", 0),
            ("pids.max", processes + PROCESSES), ("cpu.max", f"{100_000 * PROCESSORS} 100000"),
        ):  # fmt: skip
            if name != "memory.swap.max" or (group / name).exists():
                (group / name).write_text(str(value))
    except OSError:
        return
    yield ["/bin/sh", "-c", _JOIN, str(group)], "delegated"
