"""The lock is complete, hashed, names no host; the wheel has notebooks; make env ends."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import finished

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# What a learner uses, and what proves the course; the second holds all of the first.
EXTRAS = {
    "requirements.lock": ("lab", "measure"),
    "requirements-dev.lock": ("lab", "measure", "dev"),
}
LOCKS = {name: (ROOT / name).read_text() for name in EXTRAS}
VERSIONS = {
    name: re.findall(r"^([a-z0-9._-]+)==([\w.+!]+)", lock, re.MULTILINE)
    for name, lock in LOCKS.items()
}
both = pytest.mark.parametrize("name", LOCKS)


@both
def test_every_line_is_a_pinned_package_with_hashes_and_nothing_else(name):
    entries = re.split(r"\n(?=\S)", LOCKS[name].strip())
    assert len(entries) > 100
    for entry in entries:
        first, *hashes = entry.splitlines()
        assert re.fullmatch(r"[a-z0-9._-]+==[\w.+!]+( ; [\w\s.'\"<>=!()]+)? \\", first), first
        assert hashes and all(
            re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes
        ), first


@both
def test_the_lock_names_no_host(name):
    for trace in ("://", "www.", "index", "find-links", "trusted-host", "file:", "@"):
        assert trace not in LOCKS[name]


@both
def test_every_python_gets_the_same_versions(name):
    """What was computed on one is computed on all; of a forked lock one branch is tested."""
    names = [package for package, _ in VERSIONS[name]]
    assert len(names) == len(set(names))


def test_a_learner_gets_what_was_proven():
    assert set(VERSIONS["requirements.lock"]) < set(VERSIONS["requirements-dev.lock"]), "make lock"


@both
def test_the_lock_satisfies_what_the_project_asks_for(name):
    asked = [r for extra in EXTRAS[name] for r in PROJECT["optional-dependencies"][extra]]
    for requirement in map(Requirement, asked):
        if requirement.name == PROJECT["name"]:
            continue  # an extra that holds another one
        version = dict(VERSIONS[name]).get(canonicalize_name(requirement.name))
        assert version and requirement.specifier.contains(version), (
            f"{requirement} is locked at {version}: make lock"
        )


def test_the_library_asks_for_nothing():
    assert PROJECT["dependencies"] == []


def test_what_runs_is_what_is_locked():
    from importlib.metadata import version

    for name in (
        "numpy",
        "pint",
        "matplotlib",
        "ipywidgets",
        "anywidget",
        "jupyterlab",
        "ipykernel",
        "nbval",
    ):
        assert version(name) == dict(VERSIONS["requirements-dev.lock"])[name], f"{name}: make dev"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_notebooks_and_no_solution(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for folder in ("chapters", "exercises"):
        for path in (ROOT / folder).glob("[0-9]*.ipynb"):
            assert f"lightspeed_course/_delivered/{folder}/{path.name}" in names
    assert "lightspeed_cli/labconfig/custom/custom.css" in names
    assert not [
        name for name in names if "solutions/" in name or re.search(r"_delivered/.*\.py$", name)
    ]


def test_an_installed_wheel_delivers_its_own_notebooks(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = """if True:
        import pathlib, sys
        from lightspeed_course import workspace
        home = pathlib.Path(sys.argv[1])
        print(workspace.course_root(), len(workspace.sync(home)))
    """
    isolated = [
        sys.executable,
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{code}",
    ]
    done = finished([*isolated, tmp_path / "home"], timeout=60)
    assert done.returncode == 0, done.stderr
    delivered = [
        path
        for folder in ("chapters", "exercises")
        for path in (ROOT / folder).glob("[0-9]*.ipynb")
    ]
    assert done.stdout.split() == [
        str(tmp_path / "site/lightspeed_course/_delivered"),
        str(len(delivered)),
    ]
    for path in delivered:
        assert (tmp_path / "home" / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


def test_an_old_python_is_told_what_to_do():
    code = (
        "import sys; sys.version_info = (3, 9, 1); sys.path.insert(0, 'tools'); import env;"
        " env.main()"
    )
    done = finished([sys.executable, "-c", code], cwd=ROOT, timeout=60)
    assert done.returncode == 1
    assert "make lab PYTHON=" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_target_of_the_makefile_is_in_its_help():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = finished(["make", "help"], cwd=ROOT, check=True).stdout
    assert (
        targets
        == set(re.findall(r"^make ([a-z-]+)", shown, re.MULTILINE))
        >= {"env", "dev", "lab", "test", "check", "build", "bench"}
    )


def test_ci_is_a_valid_script():
    assert subprocess.run(["bash", "-n", ".ci/run"], cwd=ROOT).returncode == 0
