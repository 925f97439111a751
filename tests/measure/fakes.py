"""Parts that behave as on machines we lack: each is a module for a child process."""

from lightspeed_tools.measure.runner import Part

HEAD = (
    "import os, signal, subprocess, sys, time\nfrom lightspeed_tools.measure.instruments.timing"
    " import Quantity, Missing, Unavailable\ndef measure(quick=True, report=None):\n    "
)
BODIES = {
    "good": (
        'report("working"); return [Quantity("good.time", "s", (1e-3,) * 5, {"quick": quick},'
        ' "lower")]'
    ),
    "partly": (
        'return [Quantity("partly.time", "s", (1.0,) * 5), Missing("partly.more", "no such'
        ' counter.", "Ask for it.")]'
    ),
    "unavailable": 'raise Unavailable("no GPU was found.", "Plug one in.")',
    "fails": 'raise ZeroDivisionError("in /home/molly/secret.py")',
    "exits": 'sys.exit("enough")',
    "uninstalled": "import no_such_package_anywhere",
    "crashes": "os.kill(os.getpid(), signal.SIGSEGV)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "hangs": "time.sleep(600)",
    "stubborn": "signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)",
    "empty": "return []",
    "noisy": (
        'print("on standard output"); os.write(1, b"from C\\n"); subprocess.run(["echo", "from a'
        ' child"]); return [Quantity("noisy.time", "s", (1.0,) * 5)]'
    ),
    "orphan": (
        'child = subprocess.Popen(["sleep", "600"]); report(str(child.pid)); return'
        ' [Quantity("orphan.time", "s", (1.0,) * 5)]'
    ),
    "looped": (
        "import asyncio; return asyncio.run(loop())\nasync def loop():\n    return"
        ' [Quantity("looped.time", "s", (1.0,) * 5)]'
    ),
}


def write(folder):
    """Write every fake into a folder; name -> Part."""
    for name, body in BODIES.items():
        (folder / f"fake_{name}.py").write_text(HEAD + body + "\n")
    return {
        name: Part(f"fake_{name}", f"a part that is {name}", quick=1, full=2) for name in BODIES
    }
