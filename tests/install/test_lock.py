"""The lock is complete, hashed and names no host; the wheel carries the notebooks; make env knows when it is done."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
VERSIONS = re.findall(r"^([a-z0-9._-]+)==([\w.+!]+)", LOCK, re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_line_is_a_pinned_package_with_hashes_and_nothing_else():
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert len(entries) > 100
    for entry in entries:
        first, *hashes = entry.splitlines()
        assert re.fullmatch(r"[a-z0-9._-]+==[\w.+!]+( ; [\w\s.'\"<>=!()]+)? \\", first), first
        assert hashes and all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes), first


@pytest.mark.parametrize("trace", ["://", "www.", "index", "find-links", "trusted-host", "file:", "@"])
def test_the_lock_names_no_host(trace):
    assert trace not in LOCK


def test_every_python_gets_the_same_versions():
    """What was computed on one is what is computed on all; a lock that forks is tested on one branch only."""
    names = [name for name, _ in VERSIONS]
    assert len(names) == len(set(names))


def test_the_lock_satisfies_what_the_project_asks_for():
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    for requirement in map(Requirement, asked):
        version = dict(VERSIONS).get(canonicalize_name(requirement.name))
        assert version and requirement.specifier.contains(version), f"{requirement} is locked at {version}: make lock"


def test_what_runs_is_what_is_locked():
    from importlib.metadata import version

    for name in ("numpy", "pint", "matplotlib", "ipywidgets", "anywidget", "jupyterlab", "ipykernel", "nbval"):
        assert version(name) == dict(VERSIONS)[name], f"{name}: make env"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, folder], cwd=ROOT, check=True, capture_output=True, timeout=120)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_notebooks_and_no_solution(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for folder in ("chapters", "exercises"):
        for path in (ROOT / folder).glob("[0-9]*.ipynb"):
            assert f"lightspeed/_course/{folder}/{path.name}" in names
    assert "lightspeed/cli/labconfig/custom/custom.css" in names
    assert not [name for name in names if "solutions/" in name or re.search(r"_course/.*\.py$", name)]


def test_an_installed_wheel_delivers_its_own_notebooks(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = """if True:
        import pathlib, sys
        from lightspeed_course import workspace
        home = pathlib.Path(sys.argv[1])
        print(workspace.course_root(), len(workspace.sync(home)))
    """
    isolated = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{code}"]
    done = subprocess.run([*isolated, tmp_path / "home"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    delivered = [path for folder in ("chapters", "exercises") for path in (ROOT / folder).glob("[0-9]*.ipynb")]
    assert done.stdout.split() == [str(tmp_path / "site/lightspeed/_course"), str(len(delivered))]
    for path in delivered:
        assert (tmp_path / "home" / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


def test_an_old_python_is_told_what_to_do():
    code = "import sys; sys.version_info = (3, 9, 1); sys.path.insert(0, 'tools'); import env; env.main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "make lab PYTHON=" in done.stderr and "Traceback" not in done.stderr


def test_every_target_of_the_makefile_is_in_its_help():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert targets == set(re.findall(r"^make ([a-z-]+)", shown, re.MULTILINE)) >= {"env", "lab", "test", "check", "build", "bench"}


def test_ci_is_a_valid_script():
    assert subprocess.run(["bash", "-n", ".ci/run"], cwd=ROOT).returncode == 0
