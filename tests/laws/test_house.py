"""The house stands: imports go one way, no file's in a circle, laws start at once."""

import ast
import functools
import graphlib
import itertools
import pkgutil
import re
import sys
import tomllib
from pathlib import Path

from processes import finished

import lightspeed
from lightspeed_authoring.site import build as site
from lightspeed_class.grading import sandbox

LIB = Path(lightspeed.__file__).parents[1]
# each may import those before it, and authoring and the class not each other
PACKAGES = (
    "lightspeed", "lightspeed_show", "lightspeed_models", "lightspeed_tools", "lightspeed_course",
    "lightspeed_authoring", "lightspeed_class", "lightspeed_cli",
)  # fmt: skip
APART = {"lightspeed_authoring", "lightspeed_class"}
FILES = sorted(path for package in PACKAGES for path in (LIB / package).rglob("*.py"))
LAWS_AT = LIB / "lightspeed"
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


def wrong_way(importer, name):
    here, there = importer.split(".")[0], name.split(".")[0]
    return PACKAGES.index(there) > PACKAGES.index(here) or {here, there} == APART


def test_packages_import_one_way():
    wrong = [
        f"{dotted(path)} imports {name}"
        for path in FILES
        for name in imported(path)
        if wrong_way(dotted(path), name)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_wrong_way_is_seen():
    for importer, name in (
        ("lightspeed.law", "lightspeed_show.chart"),
        ("lightspeed_course.practice.ask", "lightspeed_authoring.build"),
        ("lightspeed_class.roster", "lightspeed_authoring.build"),
        ("lightspeed_authoring.build", "lightspeed_class.roster"),
    ):
        assert wrong_way(importer, name) and not wrong_way("lightspeed_cli.main", name)


def test_models_and_simulators_rest_on_the_laws_alone():
    """A student's notebook imports them where there is no rest of the course: see sandbox.py."""
    wrong = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if name.startswith("lightspeed_models") and ".evidence" not in name
        for other in imported(path)
        if other.split(".")[0] not in ("lightspeed", "lightspeed_models") or ".evidence" in other
    ]
    assert not wrong, "\n".join(wrong)


def test_a_model_rests_on_the_laws_alone():
    """What is fitted or simulated takes a model; a model knows of none of it."""
    wrong = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if name.startswith("lightspeed_models.llm")
        for other in imported(path)
        if not (package(other) == "lightspeed" or other.startswith("lightspeed_models.llm"))
    ]
    assert not wrong, "\n".join(wrong)


def circle(files, room):
    """The imports that lead round in a circle of rooms, "" if none do. `files` is a module -> what
    it imports; `room` gives a module its room.
    """
    graph = {}
    for name, others in files.items():
        ways = {room(other): f"{name} imports {other}" for other in others}
        graph.setdefault(room(name), {}).update(ways)
    for here, ways in graph.items():
        ways.pop(here, None)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        steps = error.args[1][::-1]
        return ", ".join(graph[a][b] for a, b in itertools.pairwise(steps))
    return ""


def package(name):
    return name.split(".")[0]


def folder(name):
    """The folder, or the file, of a package that a module is in."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[1:] else f"{name}.__init__"


def test_no_circle_of_files_or_rooms():
    files = {name: imported(path) for name, path in MODULES.items()}
    for room in (str, folder, package):
        assert not (found := circle(files, room)), found


def test_a_circle_is_seen():
    files = {"a.x.one": ["a.y.one"], "a.y.two": ["a.x.two", "b.z"], "b.z": []}
    assert not circle(files, str) and not circle(files, package)
    assert circle(files, folder) in (
        "a.x.one imports a.y.one, a.y.two imports a.x.two",
        "a.y.two imports a.x.two, a.x.one imports a.y.one",
    )


def test_what_a_student_gets_has_no_authoring():
    """What the sandbox shows, what the browser loads."""
    for packed in (sandbox.WHOLE, site.PACKAGES):
        reached = {
            package(other)
            for name, path in MODULES.items()
            if package(name) in packed and ".evidence" not in name
            for other in imported(path)
        }
        assert reached <= set(packed) < set(PACKAGES) - {"lightspeed_authoring"}


def test_laws_load_nothing_heavy():
    heavy = ("pint", "scipy", "matplotlib", "ipywidgets", "sqlite3", "networkx")
    code = (
        f"import sys, {', '.join(f'lightspeed.{m}' for m in LAWS)}; print(*[m for m in {heavy} if m"
        " in sys.modules])"
    )
    loaded = finished([sys.executable, "-c", code], check=True).stdout.split()
    assert not loaded, f"importing the laws loads {loaded}"


def test_the_roofline_runs_without_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None; from lightspeed.roofline import time_bounds;"
        "print(time_bounds(2.0, 1.0, 1.0, 1.0).upper)"
    )
    run = finished([sys.executable, "-c", code], check=True)
    assert run.stdout.strip() == "3.0"


def test_the_library_is_an_afternoon_of_reading():
    """Models, what runs by events and what is fitted stand in lightspeed_models."""
    sizes = {p: len(p.read_text("utf-8").splitlines()) for p in FILES if p.is_relative_to(LAWS_AT)}
    assert sum(sizes.values()) <= 6800, "more than laws and constants? " + str(
        {p.name: n for p, n in sizes.items() if n > 300}
    )


def test_files_stay_one_room():
    lines = {dotted(p): len(p.read_text("utf-8").splitlines()) for p in FILES}
    long = {name: n for name, n in lines.items() if n > 600}
    assert not long, f"longer than 600 lines, so more than one thing: {long}"


PARTICIPLE_FUNCTIONS = 60  # that bind such a name
# What was done is no name for a thing. `left` beside `right` is a side.
PARTICIPLES = {
    "asked", "chosen", "counted", "drawn", "found", "given", "held", "judged", "kept", "known",
    "left", "listed", "made", "meant", "named", "read", "said", "seen", "shown", "stated", "taken",
    "told", "wanted", "written",
}  # fmt: skip


def bound(function):
    """The names that a function binds: arguments and locals, those of comprehensions included."""
    names, todo = set(), [*ast.iter_child_nodes(function)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo += ast.iter_child_nodes(node)
    return names - {"left"} if "right" in names else names


def test_names_are_nouns():
    """A ratchet: where it says a smaller number, write that here."""
    functions = [
        f"{dotted(path)}.{node.name}: {', '.join(sorted(words))}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (words := bound(node) & PARTICIPLES)
    ]
    assert len(functions) <= PARTICIPLE_FUNCTIONS, (
        f"{len(functions)}, more than {PARTICIPLE_FUNCTIONS}:\n" + "\n".join(functions)
    )


def test_the_changelog_the_citation_and_the_package_name_one_release():
    root = LIB.parent
    text = (root / "CHANGELOG.md").read_text()
    told = re.search(r"^## (\d\S*), (\d{4}-\d\d-\d\d)$", text, re.M)
    heads = re.findall(r"^##.*", text, re.M)
    assert [h for h in heads if h.startswith("## ")] == re.findall(r"^## \d\S*, 20\S+$", text, re.M)
    for release in text.split("\n## ")[1:-1]:  # the first release has nothing before it
        parts = re.findall(r"^### (.*)$", release, re.M)
        assert parts == ["Before you update", "Added", "Changed", "Fixed"], release[:20]
    cited = dict(
        re.findall(r"^(version|date-released): (.*)$", (root / "CITATION.cff").read_text(), re.M)
    )
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert told[1] == cited["version"] == version and told[2] == cited["date-released"]
