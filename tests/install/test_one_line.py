"""The wheel and the sdist are ready for an index: one line runs a tool, and nothing is left out."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from processes import finished

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
MODEL = ["lightspeed", "model", "Qwen/Qwen3-32B"]
pytestmark = [
    pytest.mark.install,
    pytest.mark.skipif(not UV.exists(), reason="uv is not in this environment"),
]


def _build(what, source, folder):
    code = f"import sys; from hatchling.build import build_{what}; build_{what}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, folder], cwd=source, check=True, timeout=300)


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder with the sdist of the checkout, and the wheel that is built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    _build("sdist", ROOT, folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    _build("wheel", next((folder / "source").iterdir()), folder)
    return folder


def test_the_wheel_of_the_sdist_has_all_that_the_checkouts_has(dist, tmp_path):
    _build("wheel", ROOT, tmp_path)
    names, expected = (
        set(zipfile.ZipFile(next(folder.glob("*.whl"))).namelist()) for folder in (dist, tmp_path)
    )
    assert names == expected, sorted(names ^ expected)[:9]
    assert "lightspeed/py.typed" in names and any(name.endswith(".csv.gz") for name in names)


def test_one_line_runs_a_tool_and_the_sdist_installs(dist, tmp_path):
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    python = tmp_path / "env/bin/python"
    for command in (
        [UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "env"],
        [UV, "pip", "install", "--quiet", "--python", python, sdist],
    ):
        done = finished(command, cwd=tmp_path, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
    for command in (
        [UV, "tool", "run", "--from", wheel, *MODEL],
        [python, "-m", "lightspeed_cli", *MODEL[1:]],
    ):
        done = finished(command, cwd=tmp_path, timeout=300)
        assert done.returncode == 0 and done.stdout.startswith("Qwen3-32B\n"), done.stderr[-2000:]


def test_the_long_description_renders(dist):
    files = [*dist.glob("*.whl"), *dist.glob("*.tar.gz")]
    done = finished([UV, "tool", "run", "twine", "check", "--strict", *files], timeout=300)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout + done.stderr
