"""Where submissions can run: the cause is named with the line that mends it, and a container is the
second door. The engine here is a stand-in that does with bubblewrap what its options ask for.
"""

import itertools
import json
import os
import sys

import pytest
from cases import ASSIGNMENT, right

from lightspeed_class.grading import doors
from lightspeed_class.grading.grade import grade
from lightspeed_class.grading.sandbox import Limits, NoSandbox, door

ENGINE = """\
#!{python}
import json, os, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
if words[0] == "--version":
    print("podman version 4.9.3")
elif words[0] == "import":
    import io, tarfile
    names = tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read())).getnames()
    assert "usr" in names and words[1:] == ["-", "lightspeed-empty"]
elif words[0] == "run":
    image = words.index("lightspeed-empty")
    options, command = words[1:image], words[image + 1 :]
    alone = ("--interactive", "--rm", "--read-only")
    pairs = [w for w in options if w not in alone]
    pairs = list(zip(pairs[::2], pairs[1::2]))
    given = dict(pairs)
    assert set(alone) <= set(options) and given["--network"] == "none"
    bwrap = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"]
    for name in ("lib", "lib64", "bin"):
        bwrap += ["--symlink", "usr/" + name, "/" + name]
    places = [(v.split(":")[1], "--ro-bind", v.split(":")[0]) for k, v in pairs if k == "--volume"]
    places += [(v.split(":")[0], "--tmpfs", "") for k, v in pairs if k == "--tmpfs"]
    for there, how, here in sorted(places, key=lambda p: p[0].count("/")):
        bwrap += [word for word in (how, here, there) if word]
    for k, v in pairs:
        if k == "--env":
            bwrap += ["--setenv", *v.split("=", 1)]
    bwrap += ["--dir", "/dev", "--dev-bind", "/dev/null", "/dev/null", "--dev-bind",
              "/dev/urandom", "/dev/urandom", "--chdir", given["--workdir"]]
    os.execvp("bwrap", [*bwrap, "--", *command])
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A stand-in for podman on the path, and what it was called with."""
    path, log = tmp_path / "bin/podman", tmp_path / "log"
    path.parent.mkdir()
    path.write_text(ENGINE.format(python=sys.executable, log=str(log)))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    doors.available.cache_clear()
    yield lambda: [json.loads(line) for line in log.read_text().splitlines()]
    doors.available.cache_clear()


def test_a_container_grades_with_the_same_limits(engine, sandboxed):
    limits = Limits()
    graded = grade(right(), ASSIGNMENT, limits=limits, isolated="podman")
    assert (graded.status, graded.points) == ("ok", 4)
    assert graded.record["isolation"] == "podman version 4.9.3"
    assert door(graded.record["isolation"]) == "podman"
    run = next(words for words in engine() if words[0] == "run")
    given = dict(itertools.pairwise(run))
    assert given["--memory"] == given["--memory-swap"] == str(limits.total)
    assert given["--cap-drop"] == "ALL" and given["--security-opt"] == "no-new-privileges"
    assert given["--network"] == "none" and "--read-only" in run
    name = given["--name"]
    assert ["kill", name] in engine(), "whatever the program does, its container ends"
    assert not any("practice" in word or "gradebook" in word for word in run)


def test_an_attack_in_a_container_finds_no_answers(engine, sandboxed):
    spy = (
        "import os\nfor p in os.sys.path:\n    assert not os.path.exists(p + '/lightspeed_class')\n"
    )
    spy += "import lightspeed_course as c\nassert not os.path.exists(c.__path__[0] + '/practice')"
    assert grade(right(spy), ASSIGNMENT, isolated="podman").notes == ()
    asks = "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nl.memfd_create(b'x', 0)\n"
    asks += "assert ctypes.get_errno() == 38"
    assert grade(right(asks), ASSIGNMENT, isolated="podman").notes == ()
    slow = grade(right("while True: pass"), ASSIGNMENT, isolated="podman",
                 limits=Limits(wall=20, cell=1))  # fmt: skip
    assert slow.notes == ("Code cell 2 stopped with OutOfTime in line 1.",)


def test_an_engine_that_is_missing_or_fails_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    doors.available.cache_clear()
    with pytest.raises(NoSandbox, match="command docker not found: apt install docker"):
        grade(right(), ASSIGNMENT, isolated="docker")
    broken = tmp_path / "docker"
    broken.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(NoSandbox, match="docker --version does not work: Cannot connect"):
        grade(right(), ASSIGNMENT, isolated="docker")


def machine(folder, settings=(), files=()):
    for name, value in dict(settings).items():
        path = folder / "proc/sys" / name.replace(".", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


UID_MAP = "bwrap: setting up uid map: Permission denied\n"
NO_RIGHT = "bwrap: Creating new namespace failed: Operation not permitted"


@pytest.mark.parametrize(("settings", "files", "ordinary", "line"), [
    ({"kernel.apparmor_restrict_unprivileged_userns": 1}, (), True, "/etc/apparmor.d/bwrap"),
    ({"user.max_user_namespaces": 0}, (), True, "sudo sysctl -w user.max_user_namespaces=15000"),
    ({"kernel.unprivileged_userns_clone": 0}, (), True,
     "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
    ({"kernel.apparmor_restrict_unprivileged_userns": 1}, (".dockerenv",), False,
     "docker run --cap-add SYS_ADMIN"),
    ({}, ("run/.containerenv",), True, "docker run --cap-add SYS_ADMIN"),
    ({"kernel.apparmor_restrict_unprivileged_userns": 0}, (), True, "the kernel refuses"),
])  # fmt: skip
def test_the_cause_is_named_with_the_line_that_mends_it(tmp_path, settings, files, ordinary, line):
    said = doors.remedy(UID_MAP if ordinary else NO_RIGHT, root=machine(tmp_path, settings, files),
                        ordinary=ordinary)  # fmt: skip
    assert line in said and "apt install bubblewrap" not in said
    assert (
        "--container podman" in said and "bwrap: " in said and ".. " not in said.replace("...", "")
    )


def test_root_without_its_rights_is_in_a_container(tmp_path):
    status = tmp_path / "proc/self/status"
    status.parent.mkdir(parents=True)
    for held, words in (
        ("00000000a80425fb", "docker run --cap-add"),
        ("000001ffffffffff", "refuses"),
    ):
        status.write_text(f"Name:\tpython\nCapEff:\t{held}\n")
        assert words in doors.remedy(NO_RIGHT, root=tmp_path, ordinary=False)
