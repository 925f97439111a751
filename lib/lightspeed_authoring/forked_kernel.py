"""Kernels that start at once: forks of one process that has read what every page needs of others'
packages, and nothing of ours. Most of the time of a short page went into reading them again.
"""

import contextlib
import multiprocessing
import os
import sys
import time
from multiprocessing.context import ForkServerProcess
from types import ModuleType
from unittest import mock

from jupyter_client.provisioning import local_provisioner

PACKAGES = [
    "ipykernel.kernelapp", "ipykernel.ipkernel", "numpy", "scipy.optimize", "matplotlib.figure",
    "matplotlib.backends.backend_svg", "matplotlib.style", "ipywidgets", "anywidget",
]  # fmt: skip


def forked_kernels() -> contextlib.AbstractContextManager:
    """While this lasts, kernels are forked, where the system forks as Linux does."""
    if sys.platform != "linux":
        return contextlib.nullcontext()
    multiprocessing.set_forkserver_preload(PACKAGES)
    return mock.patch.object(local_provisioner, "launch_kernel", _launch)


class _Kernel:
    """A forked process as `subprocess.Popen` would show it."""

    stdin = stdout = stderr = None

    def __init__(self, process: ForkServerProcess):
        self.process, self.pid = process, process.pid or 0

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int | None:
        self.process.join()
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.process.kill()

    def terminate(self) -> None:
        self.process.terminate()


def _launch(cmd, env=None, cwd=None, **_):
    environment = dict(os.environ if env is None else env)
    # A hash seed and a backend are read once, as the process starts that all are forks of.
    backend = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    own = {"PYTHONHASHSEED": environment.get("PYTHONHASHSEED", "0"), **backend}
    # Else each fork would read pytest's own main module.
    with (
        mock.patch.dict(os.environ, own),
        mock.patch.dict(sys.modules, __main__=ModuleType("none")),
    ):
        fork = multiprocessing.get_context("forkserver").Process
        process = fork(target=_run, args=(cmd, environment, cwd or os.getcwd()), daemon=True)
        process.start()
    # Signals go to a kernel's group, which must not be that of pytest.
    while process.is_alive() and os.getpgid(process.pid or 0) != process.pid:
        time.sleep(0.001)
    return _Kernel(process)


def _run(cmd, environment, cwd):
    os.setsid()
    os.environ.clear()
    os.environ |= environment | {"JPY_PARENT_PID": str(os.getppid())}
    os.chdir(cwd)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    tests = os.path.join(os.path.dirname(__file__), "..", "..", "tests")
    sys.path[:] = [p for p in sys.path if not p.startswith(os.path.abspath(tests))]
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(cmd[cmd.index("-f") :])
