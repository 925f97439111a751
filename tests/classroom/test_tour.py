"""The tour for instructors in docs/teach.md, word for word, from an empty folder."""

import csv
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from processes import finished

from lightspeed_class.gradebook.book import Gradebook

ROOT = Path(__file__).parents[2]
TOUR = "\n".join(re.findall(r"```sh\n(.*?)```", (ROOT / "docs/teach.md").read_text("utf-8"), re.S))


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.slow
def test_the_tour(tmp_path):
    course = tmp_path / "course"  # stands for a clone in which `make env` was run
    (course / ".venv/bin").mkdir(parents=True)
    (course / ".venv/bin/activate").write_text(f'PATH="{Path(sys.executable).parent}:$PATH"')
    (course / "Makefile").write_text("env:\n")
    done = finished(
        ["bash", "-euo", "pipefail", "-c", TOUR],
        cwd=course,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rehearsal, own = tmp_path / "rehearsal", tmp_path / "ml-systems"
    with Gradebook(rehearsal / "gradebook.sqlite") as book:
        results = book.results("02_roofline")
    assert len(results) == 30 and sum(r.grading is not None for r in results) == 29
    points = {r.student.id: r.points for r in results}
    assert points["s011"] == 1 and max(p for p in points.values()) == results[0].out_of
    assert {f.stem for f in (rehearsal / "feedback/02_roofline").glob("*.html")} == set(points)
    assert "Talk first about" in (rehearsal / "reports/02_roofline.html").read_text("utf-8")
    (exported,) = (rehearsal / "exports").glob("*.csv")
    with open(exported, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert {row[3]: float(row[-1]) for row in rows[2:]} == points
    assert len(list((own / "released/02_roofline/v1").glob("*/02_roofline.ipynb"))) == 30
    with Gradebook(own / "gradebook.sqlite") as book:
        assert len({s.seed for s in book.students()}) == 30
    assert shutil.which("bwrap")  # else the grading above would have refused
