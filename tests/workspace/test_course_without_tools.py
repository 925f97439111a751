"""The course stands without the tools: lessons, exercises and the class, but for profiles."""

import sys
from pathlib import Path

import pytest
from processes import finished

ROOT = Path(__file__).parents[2]
BLOCKED = """
import importlib.abc, importlib, pkgutil, sys
class NoTools(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "lightspeed_tools":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoTools())
"""
IMPORTS = """
import lightspeed_class, lightspeed_course
lacking = []
for package in (lightspeed_course, lightspeed_class):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:
            lacking.append(module.name)
print(*lacking)
from lightspeed_course import check, job
job.sheet(until="06.3")
print(check("roofline.ridge", 295))
"""
# Cell by cell, as some of them show an error.
PAGES = """
import contextlib, pathlib
for page in sys.argv[1:]:
    names = {}
    for cell in pathlib.Path(page).read_text("utf-8").split("\\n# %%"):
        shows = "raises-exception" in cell.partition("\\n")[0]
        with contextlib.suppress(Exception) if shows else contextlib.nullcontext():
            exec(compile("#" + cell, page, "exec"), names)
"""
# Profiles are read by the tool that reads a user's own.
PROFILES = [
    "lightspeed_course.explorers.profile", "lightspeed_course.incidents.training_trace",
]  # fmt: skip


def run(code, *arguments, folder=ROOT):
    done = finished([sys.executable, "-c", BLOCKED + code, *arguments], cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_all_but_profiles_imports_and_answers_are_checked():
    lacking, said = run(IMPORTS)[:2]
    assert lacking.split() == PROFILES and "295 FLOP/byte" in said


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["chapters", "solutions"])
def test_lessons_and_exercises_1_to_6_run(folder):
    pages = [page.name for page in sorted((ROOT / folder).glob("0[1-6]_*.py"))]
    lessons = [name for name in pages if not name.endswith("_proof.py")]
    assert len(lessons) >= 6
    run(PAGES, *lessons, folder=ROOT / folder)
