"""A grade's identity is that of the files that decide it, and of no others."""

import shutil
import sys
from pathlib import Path

import pytest
from processes import finished

from lightspeed_class.grading.closure import FOLDERS, deciding
from lightspeed_class.grading.grade import grader

LIB = Path(__file__).parents[2] / "lib"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    ignored = shutil.ignore_patterns("__pycache__", "shipped", "node_modules")
    return shutil.copytree(LIB, tmp_path_factory.mktemp("packages") / "lib", ignore=ignored)


@pytest.fixture(scope="module")
def before(home):
    return grader.__wrapped__(home)


@pytest.mark.parametrize(
    ("file", "decides"),
    {
        "lightspeed_course/explorers/roofline.py": False,
        "lightspeed_authoring/build.py": False,
        "lightspeed_course/practice/cards.py": False,
        "lightspeed_class/reports/feedback.py": False,
        "lightspeed_class/marking_desk/server.py": False,
        "lightspeed/roofline.py": True,
        "lightspeed/catalog/accelerators.toml": True,
        "lightspeed_course/practice/check.py": True,
        "lightspeed_course/practice/slips.py": True,
        "lightspeed_course/content/roofline.md": True,
        "lightspeed_course/incidents/score.py": True,
        "lightspeed_class/posed.py": True,
        "lightspeed_class/grading/student.py": True,
        "lightspeed_class/grading/inside/student_answers.py": True,
    }.items(),
)
def test_a_change_makes_another_grader_where_it_has_a_say(home, before, file, decides):
    text = (home / file).read_text("utf-8")
    try:
        (home / file).write_text(f"{text}\n# a comment\n", "utf-8")
        assert (grader.__wrapped__(home) != before) == decides
    finally:
        (home / file).write_text(text, "utf-8")


def test_files_as_they_were_make_the_grader_that_was(home, before):
    assert grader.__wrapped__(home) == before


def test_all_that_grading_loads_decides():
    """By Python's own account, in a process of its own."""
    code = (
        "import sys\n"
        "from lightspeed_class.grading.grade import grade\n"
        "from lightspeed_course.practice.check import diagnose\n"
        "from lightspeed_course.practice.questions import bank, question, topics\n"
        "for topic in topics():\n"
        "    for q in bank(topic):\n"
        "        v = q.variant()\n"
        "        diagnose(v, v.right if q.kind == 'choice' else -1.5), v.solution\n"
        "question('incident.training')\n"
        "for name, module in list(sys.modules.items()):\n"
        "    if name.startswith('lightspeed'): print(module.__file__)\n"
    )
    done = finished([sys.executable, "-c", code], check=True)
    loaded = {Path(line) for line in done.stdout.splitlines()}
    assert len(loaded) > 90 and not loaded - set(deciding(LIB))


def test_a_folder_that_has_moved_is_missed(home):
    folder = home / FOLDERS[1]
    folder.rename(folder.with_name("elsewhere"))
    try:
        with pytest.raises(FileNotFoundError, match="expected files that decide a grade"):
            deciding(home)
    finally:
        folder.with_name("elsewhere").rename(folder)
