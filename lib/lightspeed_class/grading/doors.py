"""Where submissions can run: why bubblewrap does not work on a machine, with the line to mend it,
and a container of podman's or docker's in its place.

The container has no network, no rights, no file of its own, and of the machine's what a sandbox of
bubblewrap's has, read-only: its image is empty but for the links /lib, /lib64 and /bin.
"""

import contextlib
import io
import json
import os
import secrets
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from lightspeed_class.grading import seccomp

ENGINES = ("podman", "docker")
IMAGE = "lightspeed-empty"
CAP_SYS_ADMIN = 1 << 21
PATIENCE = 120  # seconds for an engine to answer
INSTALL = (
    "bubblewrap (the command bwrap) is needed to run submissions safely: apt install bubblewrap,"
    " dnf install bubblewrap. It exists for Linux only; elsewhere use a virtual machine."
)
LAST = "Or grade without isolation, which lets a submission do all that you can do."
OTHERS = f"Or grade in a container of podman or docker: --container podman. {LAST}"
APPARMOR = (
    "AppArmor keeps ordinary users from making namespaces"
    " (kernel.apparmor_restrict_unprivileged_userns = 1, as Ubuntu has it since 24.04). Allow it to"
    " bubblewrap alone: printf 'abi <abi/4.0>,\\nprofile bwrap {bwrap} flags=(unconfined)"
    " {{ userns, }}\\n' | sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r"
    " /etc/apparmor.d/bwrap"
)
CONTAINER = (
    "This is a container that may not make namespaces. Start it with the right: docker run"
    " --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    " ... (podman takes the same options)"
)
NONE = (
    "This kernel gives no user namespaces ({name} = 0). Allow them: sudo sysctl -w {name}={value}"
)
UNKNOWN = "It is installed, and the kernel refuses what it needs."


def remedy(
    error: str, bwrap: str = "/usr/bin/bwrap", root: Path = Path("/"), ordinary: bool | None = None
) -> str:
    """Return why bubblewrap failed, and the command that fixes it; `error` is its message.
    `ordinary`: whether the user is not root (default: this process).
    """
    ordinary = os.geteuid() != 0 if ordinary is None else ordinary

    def setting(name: str) -> str:
        with contextlib.suppress(OSError):
            return (root / "proc/sys" / name.replace(".", "/")).read_text().strip()
        return ""

    inside = any((root / name).exists() for name in (".dockerenv", "run/.containerenv"))
    # under Kubernetes there is no such file; root without its rights is in a container, too
    inside |= not ordinary and not _may_mount(root)
    if ordinary and setting("user.max_user_namespaces") == "0":
        cause = NONE.format(name="user.max_user_namespaces", value=15000)
    elif ordinary and setting("kernel.unprivileged_userns_clone") == "0":
        cause = NONE.format(name="kernel.unprivileged_userns_clone", value=1)
    elif inside:
        cause = CONTAINER
    elif ordinary and setting("kernel.apparmor_restrict_unprivileged_userns") == "1":
        cause = APPARMOR.format(bwrap=bwrap)
    else:
        cause = UNKNOWN
    error, cause = error.strip()[:300].rstrip("."), cause.rstrip(".")
    return f"bubblewrap does not work here: {error}. {cause}. {OTHERS}"


def _may_mount(root: Path) -> bool:
    """Whether this process has CAP_SYS_ADMIN, as far as the kernel says."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = (root / "proc/self/status").read_text().splitlines()
        capabilities = next(line for line in lines if line.startswith("CapEff:"))
        return bool(int(capabilities.split()[1], 16) & CAP_SYS_ADMIN)
    return True


class Container:
    """student.py in its own container. `binds`: (path here, path in the container); `hidden`:
    folders that are empty there except for binds below them.
    """

    def __init__(
        self,
        engine: str,
        command: list[str],
        environment: dict[str, str],
        limits: dict[str, Any],
        paths: list[str],
        binds: list[tuple[str, str]],
        hidden: list[str],
    ) -> None:
        self._engine = shutil.which(engine) or engine
        self._name = f"lightspeed-{secrets.token_hex(8)}"
        self._process = subprocess.Popen(
            [self._engine, *_run(self._name, environment, limits, binds, hidden), *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self.pid = self._process.pid
        assert self._process.stdin and self._process.stdout
        self._pipes = (self._process.stdin, self._process.stdout)
        self.inbox, self.outbox = (pipe.fileno() for pipe in self._pipes)
        with contextlib.suppress(BrokenPipeError):  # the first receive() tells it
            setup = {"paths": paths, "limits": limits, "seccomp": seccomp.program().hex()}
            os.write(self.inbox, json.dumps(setup).encode() + b"\n")
        os.set_blocking(self.inbox, False)
        os.set_blocking(self.outbox, False)

    def why(self) -> str:
        """Return why the pipe was closed."""
        return "exit"

    def waited(self) -> float:
        """Return 0: a container does not report how long it waited for the machine."""
        return 0.0

    def close(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [self._engine, "kill", self._name], capture_output=True, timeout=PATIENCE
            )
        self._process.kill()
        self._process.wait()
        for pipe in self._pipes:
            pipe.close()


@cache
def available(engine: str) -> str:
    """Describe the engine, after creating its empty image. Raises OSError or ValueError."""
    if engine not in ENGINES:
        raise ValueError(f"--container {engine}: expected {' or '.join(ENGINES)}")
    path = shutil.which(engine)
    if not path:
        raise ValueError(f"command {engine} not found: apt install {engine}")
    version = _said([path, "--version"])
    _said([path, "import", "-", IMAGE], _empty_image())
    return version.strip().splitlines()[0]


def _said(command: list[str], content: bytes = b"") -> str:
    process = subprocess.run(command, input=content, capture_output=True, timeout=PATIENCE)
    if process.returncode:
        message = process.stderr.decode(errors="replace").strip()[:300]
        raise ValueError(f"{' '.join(command[:2])} does not work: {message}")
    return process.stdout.decode(errors="replace")


def _empty_image() -> bytes:
    """A tar of a system without files, whose programs are those that are bound into /usr."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as tar:
        for name in ("usr", "tmp", "dev"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name in ("lib", "lib64", "bin"):
            if Path("/", name).exists():
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
                tar.addfile(entry)
    return memory.getvalue()


def _run(
    name: str,
    environment: dict[str, str],
    limits: dict[str, Any],
    binds: list[tuple[str, str]],
    hidden: list[str],
) -> list[str]:
    """The options of `run`: the limits of a sandbox, as an engine takes them."""
    small = f"size={limits['disk']},nr_inodes={limits['files']},mode=1777,nosuid,nodev"
    wall = int(limits["wall"])
    options = {
        "--name": name, "--hostname": "sandbox", "--network": "none", "--user": "65534:65534",
        "--cap-drop": "ALL", "--security-opt": "no-new-privileges", "--ipc": "private",
        "--memory": limits["total"], "--memory-swap": limits["total"],
        "--pids-limit": limits["processes"] + 3,
        "--cpus": f"{max(1, min(limits['processor'] / wall, os.cpu_count() or 1)):g}",
        "--workdir": "/tmp", "--tmpfs": f"/tmp:{small}", "--shm-size": limits["disk"],
        "--ulimit": f"cpu={wall + 30}",
    }  # fmt: skip
    words = ["run", "--interactive", "--rm", "--read-only"]
    words += [word for pair in options.items() for word in map(str, pair)]
    for key, value in environment.items():
        words += ["--env", f"{key}={value}"]
    for here, there in binds:
        words += ["--volume", f"{here}:{there}:ro"]
    for folder in hidden:
        words += ["--tmpfs", f"{folder}:size=64k,nr_inodes=64,mode=755,nosuid,nodev,noexec"]
    return [*words, IMAGE]
