"""The house stands: packages import one way, no file imports round in a circle, and the laws
start at once.
"""

import ast
import functools
import graphlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import lightspeed

LIB = Path(lightspeed.__file__).parents[1]
# each may import those before it
PACKAGES = ("lightspeed", "lightspeed_course", "lightspeed_class", "lightspeed_cli")
FILES = sorted(path for package in PACKAGES for path in (LIB / package).rglob("*.py"))
LAWS = sorted(m.name for m in pkgutil.iter_modules(lightspeed.__path__) if not m.ispkg)


def dotted(path):
    parts = path.relative_to(LIB).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in FILES}


@functools.cache
def imported(path):
    """The modules of ours that a file imports anywhere, nested imports included."""
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
            base = ".".join([*above, *filter(None, [node.module])])
            names = [
                f"{base}.{a.name}" if f"{base}.{a.name}" in MODULES else base for a in node.names
            ]
        else:
            continue
        found += [name for name in names if name.split(".")[0] in PACKAGES]
    return found


def test_every_file_of_lib_belongs_to_a_package():
    strange = [
        p.relative_to(LIB)
        for p in LIB.rglob("*.py")
        if p not in FILES and "node_modules" not in p.parts
    ]
    assert not strange, (
        f"no package is known for {strange}: which one do they belong to? See PACKAGES"
    )


def test_packages_import_one_way():
    wrong = [
        f"{dotted(path)} imports {name}"
        for path in FILES
        for name in imported(path)
        if PACKAGES.index(name.split(".")[0]) > PACKAGES.index(dotted(path).split(".")[0])
    ]
    assert not wrong, "\n".join(wrong)


def test_models_and_simulators_rest_on_the_laws_alone():
    """A student's notebook imports them where there is no rest of the course: see sandbox.py."""
    rooms = ("lightspeed_models", "lightspeed_models.simulators")
    wrong = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if name.startswith(rooms)
        for other in imported(path)
        if other.split(".")[0] != "lightspeed" and not other.startswith(rooms)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_circle_of_files():
    graph = {name: {i for i in imported(path) if i != name} for name, path in MODULES.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_laws_load_nothing_heavy():
    heavy = ("pint", "scipy", "matplotlib", "ipywidgets", "sqlite3", "networkx")
    code = (
        f"import sys, {', '.join(f'lightspeed.{m}' for m in LAWS)}; print(*[m for m in {heavy} if m"
        " in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not loaded, f"importing the laws loads {loaded}"


def test_the_roofline_runs_without_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None; from lightspeed.roofline import time_bounds;"
        "print(time_bounds(2.0, 1.0, 1.0, 1.0).upper)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "3.0"


def test_the_library_is_an_afternoon_of_reading():
    """What runs event by event or is fitted stands in the course's `simulators` and `models`."""
    lines = sum(
        len(path.read_text("utf-8").splitlines())
        for name, path in MODULES.items()
        if name.split(".")[0] == "lightspeed"
    )
    assert lines <= 6000, f"{lines} lines: is all of it laws and constants?"


def test_files_stay_one_room():
    lines = {dotted(p): len(p.read_text("utf-8").splitlines()) for p in FILES}
    long = {name: n for name, n in lines.items() if n > 600}
    assert not long, f"longer than 600 lines, so more than one thing: {long}"
