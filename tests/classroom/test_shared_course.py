"""Where classes run: a course that is installed once, to be read, and students with a home each."""

import json
import sys
from pathlib import Path

import pytest
from processes import finished

from lightspeed_class.handout.release import release
from lightspeed_class.roster import new_seed

NAME = "02_roofline"


@pytest.mark.slow
@pytest.mark.holds("docs/teach.md", "on a JupyterHub")
def test_a_notebook_runs_on_a_course_that_nobody_may_write(course, tmp_path, sandboxed):
    """As another user, without a network, with nothing to write to but a home, and without make."""
    home, programs = tmp_path / "home", Path(sys.executable).parent
    home.mkdir(mode=0o777)
    with course.book() as book:
        book.add_student("ada", "Ada", seed=new_seed())
        release(course, book, NAME)
    file = home / f"{NAME}.ipynb"
    file.write_bytes((course.released(NAME) / f"v1/ada/{NAME}.ipynb").read_bytes())
    file.chmod(0o666)
    student = [
        "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
        "--bind", home, home, "--unshare-user", "--uid", "1000", "--gid", "1000", "--unshare-net",
        "--clearenv", "--setenv", "HOME", home, "--setenv", "PATH", "/usr/bin:/bin",
        "--chdir", home,
    ]  # fmt: skip
    run = [programs / "jupyter", "execute", "--allow-errors", "--inplace", file.name]
    done = finished([*student, *run])
    assert done.returncode == 0, done.stderr[-2000:]
    cells = json.loads(file.read_text("utf-8"))["cells"]
    outputs = [o for cell in cells for o in cell.get("outputs", ())]
    assert outputs and not [o for o in outputs if o["output_type"] == "error"]
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")
    done = finished([*student, programs / "lightspeed", "where"])
    assert done.returncode == 0 and f"progress   {home}" in done.stdout
