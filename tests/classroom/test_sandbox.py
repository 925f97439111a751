"""What holds a submission: control groups where there are some, an ordinary user as well as root,
and a fork server that is replaced when it is odd.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from cases import ASSIGNMENT, right
from processes import finished

from lightspeed_class.grading import cgroups, forkserver
from lightspeed_class.grading.grade import grade
from lightspeed_class.grading.sandbox import Sandbox, _descendants
from lightspeed_course.practice.questions import question

ROOT = Path(__file__).parents[2]
AS_ANOTHER = """
import os, sys
sys.path[:0] = [{cases!r}]
from cases import ASSIGNMENT, right
from lightspeed_class.grading.grade import grade
assert os.getuid() == 12345
for attack in ("", "for pid in (1, 3): os.kill(pid, 9)", "os.killpg(0, 0)\\nif os.getuid() == 0: raise Breach",
               "if os.fork() == 0:\\n    while True: pass"):
    graded = grade(right(attack), ASSIGNMENT)
    print(graded.points, graded.status, graded.notes)
print(graded.record["isolation"])
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_grades_too_wherever_the_interpreter_is():
    """In /root, here, which is opened for the test by mounts that nobody else sees."""
    home = Path(sys.base_prefix)
    beyond = [p for p in (home, ROOT) if p.is_relative_to("/root")]
    command = ["bwrap", "--dev-bind", "/", "/", "--perms", "0755", "--tmpfs", "/root"]
    for path in beyond:
        for parent in reversed(path.relative_to("/root").parents):
            command += ["--perms", "0755", "--dir", str("/root" / parent)]
        command += ["--ro-bind", str(path), str(path)]
    command += ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--"]
    program = AS_ANOTHER.format(cases=str(ROOT / "tests/classroom/hostile"))
    done = finished(
        [*command, sys.executable, "-c", program],
        env=os.environ | {"HOME": "/nowhere"},
        cwd="/",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *verdicts, isolation = done.stdout.splitlines()
    assert all(v.startswith("4.0 ok") and "Breach" not in v for v in verdicts), verdicts
    assert isolation.startswith("bubblewrap")


BELOW_TMP = """
import sys
sys.path[:0] = [{course!r}, {cases!r}]
import lightspeed_course
from cases import ASSIGNMENT, right
from lightspeed_class.grading.grade import grade
assert lightspeed_course.__file__.startswith({course!r})
graded = grade(right('import os\\nif os.listdir("/tmp"): raise Breach'), ASSIGNMENT)
print(graded.points, graded.notes)
"""


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.slow
def test_a_course_that_lies_below_tmp_is_not_hidden_by_the_sandboxs_own():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        course = shutil.copytree(
            ROOT / "lib", f"{folder}/lib", ignore=shutil.ignore_patterns("__pycache__")
        )
        program = BELOW_TMP.format(course=course, cases=str(ROOT / "tests/classroom/hostile"))
        done = finished([sys.executable, "-c", program], timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "4.0 ()"), done.stderr[-2000:]


def test_a_group_of_its_own_where_the_kernel_has_them(tmp_path, monkeypatch):
    mine = tmp_path / "user/grader"
    mine.mkdir(parents=True)
    (mine / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    (tmp_path / "self").write_text("1:name=systemd:/x\n0::/user/grader\n")
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "MINE", tmp_path / "self")
    cgroups.joined.cache_clear()
    words, told = cgroups.joined(1 << 30, 16)
    (group,) = (p for p in mine.iterdir() if p.is_dir())
    said = finished([*words, "/bin/sh", "-c", "echo $$"])
    # It joined the group before it began, so that nothing it starts is outside.
    assert (group / "cgroup.procs").read_text() == said.stdout
    assert told == "cgroup v2 (delegated)"
    assert int((group / "memory.max").read_text()) == (1 << 30) + cgroups.OWN
    assert int((group / "pids.max").read_text()) == 16 + cgroups.PROCESSES
    assert {"+cpu", "+memory", "+pids"} == set(
        (mine / "cgroup.subtree_control").read_text().split()
    )
    (mine / "cgroup.controllers").write_text("cpu")
    cgroups.joined.cache_clear()
    assert cgroups.joined(1 << 30, 16) == ([], "no cgroup v2")
    cgroups.joined.cache_clear()
    shutil.rmtree(group)


@pytest.mark.slow
def test_a_server_is_used_again_and_replaced_when_it_is_odd():
    with Sandbox() as box:
        first = box._home._server
    with Sandbox() as box:
        assert box._home._server is first
    os.kill(list(_descendants(first.pid))[-1], signal.SIGKILL)
    first._process.wait(10)
    assert grade(right(), ASSIGNMENT).points == 4
    assert first not in forkserver.servers() and len(forkserver.servers()) >= 1


@pytest.mark.holds("docs/teach.md", "tells nothing that the program says after")
def test_hidden_inputs_come_last_and_nothing_is_told_after_them():
    """One that spells its inputs in its errors' names, and one that tells by how it ends."""
    published = len(question("roofline.attainable").variant().samples)
    for end in ("raise type(f'Seen_{int(i * 1e3)}', (Exception,), {})", "os._exit(3)"):
        spy = (
            f"seen = []\ndef roof(i, p, b):\n    seen.append((i, p, b))\n    if len(seen) > {published}:\n     "
            f"   {end}\n    return min(p, i * b)\ncheck('roofline.attainable', roof)"
        )
        graded = grade(right(roof=spy), ASSIGNMENT, secret="of the test")
        score = next(s for s in graded.scores if s.question == "roofline.attainable")
        if "raise" in end:
            assert "Seen" not in str(graded)
        assert (graded.status, graded.notes, score.kind, score.points) == ("ok", (), "hidden", 0)
        assert not any(character.isdigit() for character in score.message)
