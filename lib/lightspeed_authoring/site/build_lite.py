"""JupyterLite beside the pages: the notebooks themselves, with a kernel in the reader's browser.

It runs on the Pyodide that the pages run on. All else is pure Python from PyPI, pinned and hashed
by lite.lock, and served by the site: the kernel finds packages by the list that is written here,
its way to PyPI is closed, and no other host is asked for anything.
"""

import copy
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

from lightspeed_authoring.site.build import cache
from lightspeed_authoring.site.edition import CannotBuild

HERE = Path(__file__).parent
KERNEL = "@jupyterlite/pyodide-kernel-extension"
EXTENSIONS = ("jupyterlite_pyodide_kernel", "jupyterlab_widgets", "anywidget")
# What the kernel loads as it starts, under the names by which it asks. The wheel of micropip does
# not say that it needs packaging. Pyodide's core lacks ssl and sqlite3: the first stays empty, of
# the second IPython wants the names.
AT_START = ("packaging", "micropip", "piplite", "ssl", "sqlite3", "ipykernel", "comm",
            "pyodide_kernel", "jedi", "ipython")  # fmt: skip
NO_SQLITE = (
    "this browser has no SQLite; run: from lightspeed_course.web import lite; await lite.begin()"
)
STAND_INS = {"ssl": "", "sqlite3": f"""\
class Error(Exception): pass
class DatabaseError(Error): pass
class OperationalError(DatabaseError): pass
class IntegrityError(DatabaseError): pass
class Connection: pass
PARSE_DECLTYPES, PARSE_COLNAMES = 1, 2
def connect(*_, **__): raise OperationalError({NO_SQLITE!r})
"""}  # fmt: skip
COURSE = "speed-of-light"
# What the course's modules import in a notebook; its own metadata leave that to `lab`.
COURSE_NEEDS = ("anywidget", "ipywidgets", "markdown-it-py", "mdit-py-plugins", "platformdirs")
ON_DEMAND = ("pint", "networkx")  # loaded when a cell imports them
NOT_SERVED = ("widgetsnbextension", "jupyterlab-widgets")  # parts of other front ends
BROWSER = {"python_version": "3.12", "python_full_version": "3.12.7", "sys_platform": "emscripten",
           "platform_system": "Emscripten", "os_name": "posix", "extra": ""}  # fmt: skip
SETTINGS = {
    "jupyter-lite-schema-version": 0,
    "jupyter-config-data": {
        "appName": "Speed of Light",
        "exposeAppInBrowser": True,
        # It would let the kernel read the files of the browser's own drive. Each import would look
        # there first, a request at a time, and Python took minutes to start.
        "disabledExtensions": ["@jupyterlite/application-extension:service-worker-manager"],
        "litePluginSettings": {
            f"{KERNEL}:kernel": {
                "pyodideUrl": "./../_static/live/pyodide/pyodide.js",
                "disablePyPIFallback": True,
                "loadPyodideOptions": {
                    "lockFileURL": "pyodide-lock.json",
                    "stdLibURL": "python_stdlib.zip",
                    "packages": list(AT_START),
                },
            }
        },
    },
}
FIRST_CELL = """\
# This notebook runs in your browser: the course's Python comes from this site.
from lightspeed_course.web import lite

await lite.begin()"""


def build_lite(course, site, packages, report=print):
    """Write JupyterLite below the finished pages, from npm's `packages`. Raises CannotBuild."""
    tools, wheels = from_pypi(report)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        own = course_wheel(course, folder / "own", tools)
        for place in ("chapters", "exercises"):
            (folder / "content" / place).mkdir(parents=True)
            for path in sorted((course / place).glob("[0-9][0-9]_*.ipynb")):
                notebook = for_browser(json.loads(path.read_text("utf-8")))
                to = folder / "content" / place / path.name
                to.write_text(json.dumps(notebook, ensure_ascii=False, indent=1), "utf-8")
        (folder / "jupyter-lite.json").write_text(json.dumps(SETTINGS), "utf-8")
        settings = {
            "lite_dir": folder, "contents": [folder / "content"], "output_dir": site / "lite",
            "apps": ["lab", "tree"], "ignore_sys_prefix": True, "no_sourcemaps": True,
            "no_unused_shared_packages": True, "federated_extensions": [
                wheel for name in EXTENSIONS for wheel in wheels.glob(f"{name}-*.whl")
            ],
        }  # fmt: skip
        (folder / "jupyter_lite_config.json").write_text(
            json.dumps({"LiteBuildConfig": settings}, default=str), "utf-8"
        )
        fault = "JupyterLite could not be built"
        run_python(tools, "-m", "jupyterlite_core", "build", cwd=folder, fault=fault)
        serve_packages(site, packages, [own, *wheels.glob("*.whl")])


def from_pypi(report=print):
    """(the folder with all of lite.lock installed, that with its wheels), each checked by its
    hash."""
    lock = HERE / "lite.lock"
    folder = cache() / f"lite-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    tools, wheels = folder / "tools", folder / "wheels"
    if not (folder / ".done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        report("Fetching JupyterLite and the browser's packages from PyPI")
        pip = ("-m", "pip", "--disable-pip-version-check", "-q")
        pure = ("--only-binary=:all:", "--platform=any", "--python-version=3.12")
        checked = ("--require-hashes", "--no-deps", *pure, "-r", lock)
        fault = f"pip did not bring what {lock.name} names"
        run_python(tools, *pip, "download", *checked, "-d", wheels, fault=fault)
        # what the browser's Python alone takes is not run here
        locked = (
            "--no-index",
            "--find-links",
            wheels,
            "--target",
            tools,
            "--ignore-requires-python",
        )
        run_python(tools, *pip, "install", *locked, *checked, fault=fault)
        (folder / ".done").touch()
    return tools, wheels


def run_python(tools, *arguments, fault, cwd=None):
    """Run Python with these tools before its own packages."""
    words = [str(each) for each in (sys.executable, *arguments)]
    environment = os.environ | {"PYTHONPATH": str(tools)}
    run = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    if run.returncode:
        raise CannotBuild(f"{fault}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}".rstrip())


def course_wheel(course, folder, tools):
    """The course as pip would install it, without the notebooks, which are beside it."""
    fault = "The course's wheel could not be built"
    run_python(
        tools, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=course, fault=fault
    )
    (wheel,) = folder.glob("*.whl")
    light = folder / "light" / wheel.name
    light.parent.mkdir()
    with (
        zipfile.ZipFile(wheel) as source,
        zipfile.ZipFile(light, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for entry in source.infolist():
            if not entry.filename.endswith(".ipynb"):
                target.writestr(entry, source.read(entry))
    return light


def for_browser(notebook):
    """A notebook as it runs there: the kernel by its name, a first cell that brings the course, and
    cells that go on after one that lacks a package.
    """
    notebook = copy.deepcopy(notebook)
    notebook["metadata"]["kernelspec"] = {
        "name": "python", "display_name": "Python (Pyodide)", "language": "python",
    }  # fmt: skip
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", ()):
            output.update({key: _one(output[key]) for key in ("text", "data") if key in output})
        if cell["cell_type"] == "code":
            tags = cell["metadata"].setdefault("tags", [])
            tags += ["raises-exception"] * ("raises-exception" not in tags)
    first = {"cell_type": "code", "id": "in-the-browser", "metadata": {}, "source": FIRST_CELL,
             "outputs": [], "execution_count": None}  # fmt: skip
    notebook["cells"].insert(1, first)
    return notebook


def _one(text):
    """A text, or each of a bundle's, in one piece: JupyterLite does not join its lines."""
    if isinstance(text, dict):
        return {mime: _one(part) for mime, part in text.items()}
    lines = isinstance(text, list) and all(isinstance(line, str) for line in text)
    return "".join(text) if lines else text


# --- the packages that the kernel takes from the site ---------------------------------------------


def serve_packages(site, packages, wheels):
    """Put the wheels that the browser may ask for beside JupyterLite, with the list by which
    Pyodide finds them, and Python's library as Pyodide loads it.
    """
    lite = site / "lite"
    shipped = lite / "extensions" / KERNEL / "static" / "pypi"
    by_name = {name_of(wheel): wheel for wheel in [*wheels, *sorted(shipped.glob("*.whl"))]}
    entries, queue = {}, [*AT_START, COURSE, *ON_DEMAND]
    (lite / "wheels").mkdir()
    for name, source in STAND_INS.items():
        by_name[name] = small_wheel(lite / "wheels", name, source)
    while queue:
        name = normal(queue.pop())
        if name in entries or name in NOT_SERVED:
            continue
        if name not in by_name:
            raise CannotBuild(f"lite.lock has no {name}, which a notebook in the browser needs.")
        wheel = by_name[name]
        if not wheel.is_relative_to(lite):
            wheel = Path(shutil.copy(wheel, lite / "wheels"))
        entries[name] = entry(wheel, site)
        queue += entries[name]["depends"]
    info = json.loads((packages / "pyodide" / "pyodide-lock.json").read_text("utf-8"))["info"]
    text = json.dumps({"info": info, "packages": entries})
    (lite / "pyodide-lock.json").write_text(text, "utf-8")
    shutil.copy(packages / "pyodide" / "python_stdlib.zip", lite)
    shutil.copy(packages / "pyodide" / "pyodide.js", site / "_static" / "live" / "pyodide")


def normal(name):
    """Normalize a package name as indexes do."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(wheel):
    return normal(wheel.name.split("-")[0])


def entry(wheel, site):
    """Return a wheel's entry in Pyodide's list."""
    from packaging.requirements import Requirement

    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (path,) = (n for n in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        metadata = HeaderParser().parsestr(archive.read(path).decode())
    needs = map(Requirement, metadata.get_all("Requires-Dist", []))
    depends = {
        normal(need.name) for need in needs if not need.marker or need.marker.evaluate(BROWSER)
    }
    name = normal(metadata["Name"])
    depends |= set(COURSE_NEEDS) if name == COURSE else set()
    tops = {re.sub(r"\.py$", "", n.split("/")[0]) for n in names if n.endswith(".py")}
    return {
        "name": metadata["Name"],
        "version": metadata["Version"],
        # beside Pyodide, which is where it looks
        "file_name": "../../../" + wheel.relative_to(site).as_posix(),
        "install_dir": "site",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "package_type": "package",
        "imports": sorted(tops),
        "depends": sorted(depends - set(NOT_SERVED)),
        "unvendored_tests": False,
    }


def small_wheel(folder, name, source):
    """Build a wheel with one module, or an empty one."""
    wheel, info = folder / f"{name}-0-py3-none-any.whl", f"{name}-0.dist-info"
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in (files | ({f"{name}.py": source} if source else {})).items():
            archive.writestr(zipfile.ZipInfo(file, (1980, 1, 1, 0, 0, 0)), text)
    return wheel
