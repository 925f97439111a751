"""Create .venv from a lock file: every file checked by hash, the course itself installed editable.

    python tools/env.py         what a learner or an instructor uses (requirements.lock)
    python tools/env.py dev     the same and what proves and builds the course
                                (requirements-dev.lock)

Needs nothing but Python 3.11 or newer. uv does the work: the one on the path, or one that is itself
checked by hash; pip does it where there is none. An environment that `uv venv` made is as good as
one made here. A stamp inside .venv remembers what was installed, so that a second call returns at
once.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {"lab": ROOT / "requirements.lock", "dev": ROOT / "requirements-dev.lock"}
VENV = ROOT / ".venv"
STAMP = VENV / "lightspeed.stamp"
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")
# pip asks its index for a newer pip at each run, and its notice means nothing to a reader of the
# course.
PIP = [PYTHON, "-m", "pip", "--disable-pip-version-check"]
# What a lab and a sandbox import as they start.
AT_ONCE = (
    (
        "jupyterlab.labapp, ipykernel.kernelapp, ipywidgets, anywidget, jupytext, nbclient,"
        " nbformat, numpy, pint"
    ),
    "matplotlib.backends.backend_svg, scipy.stats, ml_dtypes, networkx, numba, sqlite3",
)
# What a proof of the course imports in each of its processes.
PROOFS = ("pytest, xdist.plugin, nbval.plugin, nbval.kernel, hypothesis, nbconvert, playwright",)
# A company's own certificates are those of the system; pip uses them by itself. The second is uv's
# older name.
CERTIFICATES = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}


def main(kind="lab"):
    if sys.version_info < (3, 11):  # noqa: UP036  (this file runs before any installer can check)
        print(
            "The course needs Python 3.11 or newer; this is",
            sys.version.split()[0],
            file=sys.stderr,
        )
        sys.exit("If a newer one is installed, name it: make lab PYTHON=python3.12")
    there = STAMP.read_text() if STAMP.is_file() else ""
    # What the course is built with holds all that a learner uses.
    if there in {wanted(kind), wanted("dev")} and works(PYTHON):
        return
    kind = "dev" if there == wanted("dev") else kind
    start = time.monotonic()
    STAMP.unlink(missing_ok=True)
    if not works(PYTHON):
        say("1/3 Making the environment .venv")
        run([sys.executable, "-m", "venv", "--clear", VENV])
    lock = LOCKS[kind]
    packages = len(re.findall(r"^\S+==", lock.read_text(), re.MULTILINE))
    say(f"2/3 Installing {packages} packages (a minute or two on a slow line)")
    with tempfile.TemporaryDirectory() as scratch:
        uv = find_uv(Path(scratch))
        if not (uv and install_with_uv(uv, "--require-hashes", "--no-deps", "-r", lock)):
            say("    uv could not do it here; pip does the same, more slowly")
            uv = None
            if not (have_pip() and install_with_pip("--require-hashes", "--no-deps", "-r", lock)):
                sys.exit(
                    "The installation failed; the last lines above say why. Run the command again"
                    " to go on."
                )
        say("3/3 Installing the course")
        own = ("--quiet", "--no-deps", "--no-build-isolation", "-e", ROOT)
        if not (install_with_uv(uv, *own) if uv else install_with_pip(*own)):
            sys.exit("The course could not be installed; the last lines above say why.")
    # A sandbox reads the course and may write nothing, so it would compile the same modules for
    # every student; and the first lab would wait for seconds. Compiling all of the packages would
    # take 140 MB.
    run([PYTHON, "-m", "compileall", "-q", ROOT / "lib"], must=False)
    often = AT_ONCE + PROOFS * (kind == "dev")
    # Containers often forbid Python to keep what it compiled; here that is the purpose.
    run([PYTHON, "-c", f"import {', '.join(often)}"], must=False, PYTHONDONTWRITEBYTECODE="")
    STAMP.write_text(wanted(kind))
    say(f"Ready after {time.monotonic() - start:.0f} s.")


def find_uv(scratch):
    """The uv at hand, or one by the dev lock, put into `scratch`; None where this machine has no
    build of it.
    """
    own = SCRIPTS / ("uv.exe" if os.name == "nt" else "uv")
    if own.exists() or shutil.which("uv"):
        return own if own.exists() else shutil.which("uv")
    only_uv = scratch / "uv.lock.txt"
    lines = re.search(r"^uv==.*\n(?:[ \t]+--hash.*\n?)+", LOCKS["dev"].read_text(), re.MULTILINE)
    only_uv.write_text(lines[0])
    command = [
        *PIP,
        "--quiet",
        "install",
        "--require-hashes",
        "--no-deps",
        "--only-binary",
        ":all:",
    ]
    done = have_pip() and run([*command, "--target", scratch, "-r", only_uv], must=False)
    return scratch / "bin" / own.name if done else None


def have_pip():
    """Whether pip is in the environment; `uv venv` leaves it out."""
    return works(PYTHON, "import pip") or run(
        [PYTHON, "-m", "ensurepip", "--default-pip"], must=False
    )


def install_with_uv(uv, *words):
    return run([uv, "pip", "install", "--python", PYTHON, *words], must=False)


def install_with_pip(*words):
    return run([*PIP, "install", "--progress-bar", "on", *words], must=False)


def wanted(kind):
    """What an up-to-date environment was made from; a folder that was moved needs its scripts
    written anew.
    """
    parts = [
        LOCKS[kind].read_bytes(),
        (ROOT / "pyproject.toml").read_bytes(),
        str(ROOT).encode(),
        kind.encode(),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def works(python, code=""):
    try:
        return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def run(command, must=True, **settings):
    try:
        environment = CERTIFICATES | os.environ | settings
        done = (
            subprocess.run([str(part) for part in command], cwd=ROOT, env=environment).returncode
            == 0
        )
    except OSError:
        done = False
    if must and not done:
        sys.exit("This step failed; the last lines above say why. Run the command again to go on.")
    return done


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
