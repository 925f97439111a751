"""Create .venv from requirements.lock: every file checked by hash, the course itself installed editable.

Needs nothing but Python 3.11 or newer. uv, itself checked by hash, does the work; pip does it where uv cannot.
A stamp inside .venv remembers what was installed, so that a second call returns at once.
"""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
STAMP = VENV / "lightspeed.stamp"
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")


def main():
    if sys.version_info < (3, 11):  # noqa: UP036  (this file runs before any installer can check)
        print("The course needs Python 3.11 or newer; this is", sys.version.split()[0], file=sys.stderr)
        sys.exit("If a newer one is installed, name it: make lab PYTHON=python3.12")
    if STAMP.is_file() and STAMP.read_text() == wanted() and works(PYTHON):
        return
    start = time.monotonic()
    STAMP.unlink(missing_ok=True)
    if not works(PYTHON, "import pip"):
        say("1/3 Making the environment .venv")
        run([sys.executable, "-m", "venv", "--clear", VENV])
    say("2/3 Installing what the course uses (some 150 packages; a minute or two on a slow line)")
    if not (install_uv() and install_with("uv")):
        say("    uv could not do it here; pip does the same, more slowly")
        if not install_with("pip"):
            sys.exit("The installation failed; the last lines above say why. Run the command again to go on.")
    say("3/3 Installing the course")
    run([PYTHON, "-m", "pip", *QUIET, "install", "--no-deps", "--no-build-isolation", "-e", ROOT])
    # A sandbox reads the course and may write nothing, so it would compile the same modules for every student.
    run([PYTHON, "-m", "compileall", "-q", ROOT / "lib" / "lightspeed"], must=False)
    STAMP.write_text(wanted())
    say(f"Ready after {time.monotonic() - start:.0f} s.")


# pip asks its index for a newer pip at each run, and its notice means nothing to a reader of the course.
QUIET = ["--disable-pip-version-check", "--quiet"]


def install_uv():
    """uv's own lines of the lock, installed by pip; False where this machine has no build of uv."""
    lines = re.search(r"^uv==.*\n(?:[ \t]+--hash.*\n)+", LOCK.read_text(), re.MULTILINE).group()
    only_uv = VENV / "uv.lock.txt"
    only_uv.write_text(lines)
    return run([PYTHON, "-m", "pip", *QUIET, "install", "--require-hashes", "--no-deps",
                "--only-binary", ":all:", "-r", only_uv], must=False)  # fmt: skip


def install_with(tool):
    arguments = ["--require-hashes", "--no-deps", "-r", LOCK]
    if tool == "uv":
        # Compiling now costs four seconds once, and saves one at every start until Python has done it by itself.
        command = [SCRIPTS / "uv", "pip", "install", "--compile-bytecode", "--python", PYTHON]
        return run([*command, *arguments], must=False)
    return run([PYTHON, "-m", "pip", QUIET[0], "install", "--progress-bar", "on", *arguments], must=False)


def wanted():
    """What an up-to-date environment was made from; a folder that was moved needs its scripts written anew."""
    parts = [LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), str(ROOT).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def works(python, code=""):
    try:
        return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def run(command, must=True):
    try:
        done = subprocess.run([str(part) for part in command], cwd=ROOT).returncode == 0
    except OSError:
        done = False
    if must and not done:
        sys.exit("This step failed; the last lines above say why. Run the command again to go on.")
    return done


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    main()
