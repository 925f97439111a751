"""`lightspeed new`: skeletons fit, say what is missing, and overwrite nothing."""

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from processes import finished

from lightspeed_authoring.new import KINDS, new, todos
from lightspeed_authoring.notebooks import BuildError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def course(tmp_path):
    for folder in ("lib", "chapters", "solutions"):
        ignored = shutil.ignore_patterns("__pycache__", "*.ipynb", "shipped")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    return tmp_path


def run(course, code):
    done = finished([sys.executable, "-c", code], env={"PYTHONPATH": str(course / "lib")})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_is_left_to_do_in_the_course():
    assert list(todos(ROOT)) == []


def test_a_chip_is_in_the_catalog_at_once(course):
    (file,) = new("chip", "mychip", course)
    assert "mychip" in tomllib.loads(file.read_text())
    assert (
        run(course, "from lightspeed.catalog import accelerator; print(accelerator('mychip').kind)")
        == "gpu"
    )
    left = list(todos(course))
    assert any("dense peak" in line and "accelerators.toml:" in line for line in left)
    with pytest.raises(BuildError, match=r"accelerators\.toml has mychip already"):
        new("chip", "mychip", course)


def test_a_key_of_another_file_of_the_catalog_is_taken(course):
    for key, file in (("l40s", "tested.toml has l40s already, as a chip"), ("nvlink4", "links.t")):
        with pytest.raises(BuildError, match=file):
            new("chip", key, course)
    assert list(todos(course)) == []


def test_the_commands_of_contributing_make_what_they_say(course):
    """Word for word, so no example of theirs is taken by what the course has by now."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    shown = re.findall(r"^lightspeed new (\w+) (\S+)", text, re.MULTILINE)
    assert {kind for kind, _ in shown} == set(KINDS)
    for kind, name in shown:
        made = new(kind, name, course)
        left = "\n".join(todos(course))
        assert all(f"{file.relative_to(course).as_posix()}:" in left for file in made), name


def test_a_law_is_found_by_its_common_name():
    """What CONTRIBUTING says of a law: one word of its name finds it."""
    lines = [
        f"{path.stem}: {line}".lower()
        for path in (ROOT / "lib/lightspeed").rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
    ]
    names = ("pipeline.bubble", "go.back.n", "go.back.0", "ridge.point", "critical.batch", "amdahl")
    lost = [name for name in names if not any(re.search(name, line) for line in lines)]
    assert not lost, f"no line of the library says {lost}"


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ('printed = "1 TB/s"\nsource = "sheet"', "sources.toml has no 'sheet'; add it there"),
        ('printed = "1 TB/fortnight"\nsource = "course"', "unknown unit 'TB/fortnight'"),
        ('printed = "1,344 GB/s"\nsource = "course"', "mychip.hbm_bandwidth: '1,344 GB/s'"),
        ("printed = 1 TB/s", "accelerators.toml: "),
        ('formula = "no_such / 2"\nunit = "byte/s"', "needs mychip.no_such"),
    ],
)
def test_an_unfinished_chip_is_told_in_a_line(course, numbers, said):
    (file,) = new("chip", "mychip", course)
    with file.open("a", encoding="utf-8") as more:
        more.write(f"[mychip.hbm_bandwidth]\n{numbers}\n")
    done = finished(
        [sys.executable, "-m", "lightspeed_cli", "number", "mychip"],
        env={"PYTHONPATH": str(course / "lib")},
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "the catalog is inconsistent" in done.stderr and said in done.stderr


def test_a_question_brings_its_solution(course):
    topics = ["precision", "nccl", "training", "quantization", "serving", "numbers"]
    for topic in topics:
        new("question", f"{topic}.sample", course)
    code = (
        "from lightspeed_course.practice.questions import question as q;"
        f" print(*(q(f'{{t}}.sample').variant().solution.count('TODO') for t in {topics}))"
    )
    assert run(course, code) == " ".join("1" for _ in topics)


def test_a_question_is_asked_and_answered_at_once(course):
    _, page = new("question", "roofline.sample_ridge", course)
    code = (
        "from lightspeed_course.practice.questions import question as q;"
        " print(q('roofline.sample_ridge').expected(128))"
    )
    assert run(course, code) == "256.0"
    assert page.name == "02_roofline.py" and 'ask("roofline.sample_ridge")' in page.read_text()
    assert (
        sum("a name" in line or "another" in line or "third" in line for line in todos(course)) == 3
    )


def test_a_law_is_checked_at_once(course):
    new("law", "roofline.sample_time", course)
    assert run(course, "from lightspeed.roofline import *; print(sample_time(8e9, 2e9))") == "4.0"
    code = "from lightspeed import roofline as r; print(repr(r.sample_time(8e9, 2e9)))"
    assert run(course, code) == "4 s"
    assert any("the equation" in line for line in todos(course))


def test_a_law_brings_the_words_of_its_table(course):
    """Into modules that have no other law, or none with such arguments."""
    modules = ["pipeline", "precision", "training", "codes"]
    exported = "import lightspeed.{0} as m; print(m.__all__.count('sample_time'), *m.__all__)"
    before = {module: run(course, exported.format(module)).split()[1:] for module in modules}
    for module in modules:
        new("law", f"{module}.sample_time", course)
    code = "".join(
        f"from lightspeed import {m}; print(float({m}.sample_time(8e9, 2e9)));" for m in modules
    )
    assert run(course, code).split() == ["4.0"] * len(modules)
    for module in modules:
        times, *names = run(course, exported.format(module)).split()
        assert times == "1" and [n for n in names if n != "sample_time"] == before[module]


def test_a_chapter_has_the_anatomy(course):
    made = new("chapter", "08_sample", course)
    assert [file.relative_to(course).as_posix() for file in made] == [
        "chapters/08_sample.py",
        "chapters/08_sample_proof.py",
        "solutions/08_sample.py",
    ]
    lesson, proof, _ = (file.read_text() for file in made)
    assert "](08_sample_proof.ipynb)" in lesson and 'job.sheet(until="08")' in lesson
    assert 'tags=["takeaway"]' in lesson and 'tags=["card"]' in lesson
    assert 'gallery("08")' in proof and proof.startswith("# %% [markdown]\n# # 8. TODO: name: the")
    with pytest.raises(BuildError, match="is not overwritten"):
        new("chapter", "08_sample", course)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("chip", "L40S!", "expected a key such as mychip"),
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
