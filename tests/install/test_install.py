"""The course installs from a clean clone with empty caches, in each way that README and
docs/learn.md describe.

Run by `make test-install`: these ask the package index for everything, and take a minute or two.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from processes import finished

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
pytestmark = pytest.mark.install


@pytest.fixture
def clone(tmp_path):
    """The checkout's files that git knows or would add, in a folder with a space."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    target = tmp_path / "a clone"
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
    return target


def bare(clone, **more):
    """An environment with nothing of this one: no caches, no virtual environment, no home."""
    unwanted = ("VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    keep = {name: value for name, value in os.environ.items() if name not in unwanted}
    home = clone.parent / "home"
    home.mkdir(exist_ok=True)
    folders = {
        "HOME": home,
        "UV_CACHE_DIR": clone.parent / "uv cache",
        "PIP_CACHE_DIR": clone.parent / "pip cache",
    }
    # Where pip is told of an index in the home folder, uv's hint is made from the same place.
    config = Path.home() / ".config/pip/pip.conf"
    if config.exists():
        folders["PIP_CONFIG_FILE"] = config
    return keep | {name: str(value) for name, value in folders.items()} | more


def run(command, clone, **more):
    done = finished(command, cwd=clone, env=bare(clone, **more), timeout=900)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


def opens(clone, command):
    """Start the lab, fetch the address it prints, stop it; the seconds from command to answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", "--port", str(port)]
    command = (
        [*command, "ARGS=" + " ".join(options)] if command[0] == "make" else [*command, *options]
    )
    start, log = time.monotonic(), clone.parent / "lab.log"
    with open(log, "w") as output:
        lab = subprocess.Popen(
            command,
            cwd=clone,
            env=bare(clone),
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        while time.monotonic() - start < 300 and lab.poll() is None:
            printed = re.search(r"http://\S+token=\w+", log.read_text())
            if printed:
                with urllib.request.urlopen(printed[0], timeout=30) as page:
                    assert page.status == 200 and b"jupyter-config-data" in page.read()
                return time.monotonic() - start
            time.sleep(0.1)
        pytest.fail(f"the lab did not open:\n{log.read_text()}")
    finally:
        os.killpg(lab.pid, signal.SIGTERM)
        lab.wait(30)


def test_make_lab_on_a_bare_machine(clone):
    """README's first command: by uv, from empty caches, in a folder with a space; twice."""
    cold = opens(clone, ["make", "lab"])
    warm = opens(clone, ["make", "lab"])
    print(f"\nmake lab: {cold:.0f} s from nothing, {warm:.1f} s the second time")
    assert "Installing" not in (clone.parent / "lab.log").read_text(), "nothing is done twice"
    workspace = clone.parent / "home" / "speed-of-light"
    assert (workspace / "chapters/00_start_here.ipynb").read_bytes() == (
        ROOT / "chapters/00_start_here.ipynb"
    ).read_bytes()
    assert run(["make", "env"], clone) == "", "an environment that is up to date is left alone"
    (clone / ".venv/lightspeed.stamp").unlink()
    assert "Ready" in run(["make", "env"], clone), "an installation that was cut short goes on"


def readme_commands(word):
    """The commands of the block in docs/learn.md that begins so, without the lab's."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/learn.md").read_text(), re.DOTALL)
    [block] = [block for block in blocks if block.startswith(word)]
    lines = block.strip().splitlines()
    assert lines[-1].endswith("lightspeed lab")
    return "\n".join(["set -e", *lines[:-1]])


@pytest.mark.parametrize("word", ["python3 -m venv", "uv venv"])
def test_the_ways_without_make(clone, word):
    path = f"{UV.parent}:{os.environ['PATH']}" if word.startswith("uv") else os.environ["PATH"]
    run(["bash", "-c", readme_commands(word)], clone, PATH=path)
    opens(clone, [".venv/bin/lightspeed", "lab"])


@pytest.fixture
def small(clone):
    """The clone with a lock of the few packages that it takes to install the course itself."""
    keep = ("hatchling", "packaging", "pathspec", "pluggy", "trove-classifiers", "six")
    entries = re.split(r"\n(?=\S)", (clone / "requirements.lock").read_text())
    few = [entry for entry in entries if entry.partition("==")[0] in keep]
    assert len(few) == len(keep)
    (clone / "requirements.lock").write_text("\n".join(few) + "\n")
    return clone


def test_an_environment_of_uv_is_taken_as_it_is(small):
    """`uv venv` makes one without pip, and `make env` goes on with it."""
    run([UV, "venv", "--quiet", "--python", sys.executable, ".venv"], small)
    (small / ".venv/kept").write_text("by uv")
    said = run(["make", "env"], small, PATH=f"{UV.parent}:{os.environ['PATH']}")
    assert "Ready" in said and "Making" not in said and (small / ".venv/kept").exists()
    assert run(["make", "env"], small) == ""


def test_where_uv_cannot_pip_does_it(small):
    """As on a machine for which the index has no build of uv."""
    script = (small / "tools/env.py").read_text()
    assert script.count("        uv = find_uv(") == 1
    (small / "tools/env.py").write_text(
        script.replace("        uv = find_uv(", "        uv = None and find_uv(")
    )
    said = run(["make", "env"], small)
    assert "pip does the same" in said and "Ready" in said
    assert run([".venv/bin/python", "-c", "import lightspeed.roofline, six"], small) == ""


def test_a_file_that_does_not_match_its_hash_is_refused(small):
    lock = small / "requirements.lock"
    spoilt = re.sub(
        r"(?m)^(six==.*\n)((?:[ \t]+--hash.*\n?)+)",
        rf"\1    --hash=sha256:{'0' * 64}\n",
        lock.read_text(),
    )
    assert spoilt != lock.read_text()
    lock.write_text(spoilt)
    done = finished(["make", "env"], cwd=small, env=bare(small), timeout=900)
    assert done.returncode != 0 and "hash" in (done.stdout + done.stderr).lower()
    assert not (small / ".venv/lightspeed.stamp").exists()
    assert (
        subprocess.run(
            [small / ".venv/bin/python", "-c", "import six"], capture_output=True
        ).returncode
        != 0
    )


PLATFORMS = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "macos",
    "windows",
]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_no_system_has_to_compile_anything(python, platform, tmp_path):
    """Each locked file exists ready-made for each system and Python that the README promises."""
    ask = [
        UV,
        "pip",
        "install",
        "--dry-run",
        "--python-version",
        python,
        "--python-platform",
        platform,
    ]
    ask += [
        "--only-binary",
        ":all:",
        "--no-deps",
        "--require-hashes",
        "--target",
        tmp_path,
        "-r",
        ROOT / "requirements-dev.lock",
    ]
    done = finished(ask, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
