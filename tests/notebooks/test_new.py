"""`lightspeed new`: each skeleton fits where it is put, says what is missing, and writes nothing over."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lightspeed_course.authoring.new import new, todos
from lightspeed_course.authoring.notebooks import BuildError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def course(tmp_path):
    for folder in ("lib", "chapters", "solutions"):
        ignored = shutil.ignore_patterns("__pycache__", "*.ipynb", "shipped")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    return tmp_path


def run(course, code):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(course / "lib")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_is_left_to_do_in_the_course():
    assert list(todos(ROOT)) == []


def test_a_chip_is_in_the_catalog_at_once(course):
    (file,) = new("chip", "l40s", course)
    assert "l40s" in tomllib.loads(file.read_text())
    assert (
        run(course, "from lightspeed.catalog import accelerator; print(accelerator('l40s').kind)")
        == "gpu"
    )
    left = list(todos(course))
    assert any("dense peak" in line and "accelerators.toml:" in line for line in left)
    with pytest.raises(BuildError, match="has l40s already"):
        new("chip", "l40s", course)


def test_a_question_is_asked_and_answered_at_once(course):
    _, page = new("question", "roofline.sample_ridge", course)
    code = "from lightspeed_course.practice.questions import question as q; print(q('roofline.sample_ridge').expected(128))"
    assert run(course, code) == "128.0"
    assert page.name == "02_roofline.py" and 'ask("roofline.sample_ridge")' in page.read_text()
    assert (
        sum("a name" in line or "another" in line or "third" in line for line in todos(course)) == 3
    )


def test_a_law_is_checked_at_once(course):
    new("law", "roofline.sample_time", course)
    code = "from lightspeed import roofline as r; print(repr(r.sample_time(8e9, 2e9)))"
    assert run(course, code) == "4 s"
    assert any("the equation" in line for line in todos(course))


def test_a_chapter_has_the_anatomy(course):
    made = new("chapter", "08_sample", course)
    assert [file.relative_to(course).as_posix() for file in made] == [
        "chapters/08_sample.py",
        "solutions/08_sample.py",
    ]
    assert 'gallery("08")' in made[0].read_text()
    with pytest.raises(BuildError, match="not written over"):
        new("chapter", "08_sample", course)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("chip", "L40S!", "expected a key such as l40s"),
        ("question", "ridge", "expected topic.name"),
        ("question", "rooflin.ridge_of_it", "there is no topic 'rooflin'. Did you mean 'roofline'"),
        ("law", "roofline.ridge_point", "has roofline.ridge_point already"),
        ("chapter", "network", "expected number_name"),
    ],
)
def test_a_slip_is_told(course, kind, name, said):
    with pytest.raises(BuildError) as error:
        new(kind, name, course)
    assert said in str(error.value)
