"""The learner's own folder of notebooks: filled from the course, kept up to date, never written
over.

A workspace holds copies of the course's chapters/*.ipynb and exercises/*.ipynb. What the learner
did to a copy is told by its cells: running a notebook changes outputs, counts and metadata, and an
empty cell at the end comes with Shift+Enter, so only the kind and text of the cells that are not
empty count as the learner's own work.

When the course brings a new version, a copy without such work is replaced (its outputs with it);
any other copy stays as it is, and the new version lands beside it under a name of its own. Every
file is written whole or not at all, and what was delivered is noted in .lightspeed/manifest.json
afterwards: a process that is killed anywhere leaves a folder from which the next call goes on, and
a lost manifest costs a needless second copy at worst.
"""

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lightspeed.errors import nearest

FOLDERS = ("chapters", "exercises")
START = "chapters/00_start_here.ipynb"
PRIVATE = ".lightspeed"
_TEMPORARY = ".lightspeed-unfinished-"


class WorkspaceError(Exception):
    """A fault and its remedy, in one line for the learner."""


@dataclass(frozen=True)
class Event:
    """What happened to one notebook: new, updated, restored, beside, left or retired."""

    kind: str
    name: str
    beside: str = ""


def course_root():
    """Return the folder with the delivered chapters: in an installed wheel, or the checkout."""
    package = Path(__file__).resolve().parent
    for root in (package / "_delivered", package.parent.parent):
        if (root / "chapters").is_dir():
            return root
    raise WorkspaceError("this installation holds no chapters; install the course again")


def workspace_root(choice=None):
    """The learner's folder: the one named, else $LIGHTSPEED_HOME, else ~/speed-of-light, unless a
    checkout of the course has that name.
    """
    choice_or_home = choice or os.environ.get("LIGHTSPEED_HOME")
    if choice_or_home:
        return Path(choice_or_home).expanduser().resolve()
    folder = (Path.home() / "speed-of-light").resolve()
    return folder.with_name("my-speed-of-light") if course_root().is_relative_to(folder) else folder


def workspace_meant(choice=None):
    """The workspace to act on: the one named, else the nearest around the current folder, else
    `workspace_root`. Raises WorkspaceError where no lab was opened.
    """
    here = Path.cwd()
    around = next((folder for folder in (here, *here.parents) if (folder / PRIVATE).is_dir()), None)
    folder = workspace_root(choice) if choice or not around else around
    if not (folder / PRIVATE).is_dir():
        raise WorkspaceError(
            f"{folder} is not a workspace of the course; go to yours, or name it with --dir FOLDER"
        )
    return folder


def sync(workspace, course=None, now=None):
    """Update every notebook of the course in the workspace; return the list of events.

    In the course's own folder there is nothing to bring: its authors open it as it is.
    """
    course = course or course_root()
    delivered = _delivered(course)
    if START not in delivered:
        raise WorkspaceError(f"{course} holds no {START}; in a checkout, 'make build' makes it")
    if _same(workspace, course):
        return []
    with _locked(workspace) as manifest:
        _sweep(workspace)
        entries = _read_manifest(manifest)
        events = [
            _deliver(workspace, name, data, entries.get(name), now)
            for name, data in delivered.items()
        ]
        events += [Event("retired", name) for name in entries if name not in delivered]
        happened = [event for event in events if event]
        blocked = {event.name for event in happened if event.kind == "left"}
        prints = {name: _print_of(data) for name, data in delivered.items() if name not in blocked}
        if prints != entries:
            _write(manifest, _manifest_text(prints))
        return happened


def reset(name, workspace, course=None, now=None):
    """Put back a delivered notebook; return its name and the backup's, if one was needed."""
    course = course or course_root()
    delivered = _delivered(course)
    name = _find(name, delivered)
    if _same(workspace, course):
        raise WorkspaceError(
            f"{workspace} is the course itself, not a workspace; restore its files with git"
        )
    path = workspace / name
    with _locked(workspace) as manifest:
        backup = None
        if os.path.lexists(path):
            if not path.is_file():
                raise WorkspaceError(f"{path} is not a file; move it away first")
            mine = path.read_bytes()
            if mine == delivered[name]:
                return name, None
            backup = _free_name(path, f"backup-{now or datetime.now():%Y-%m-%d-%H%M%S}")
            _write(backup, mine)
        _write(path, delivered[name])
        entries = _read_manifest(manifest) | {name: _print_of(delivered[name])}
        _write(manifest, _manifest_text(entries))
        return name, backup and backup.relative_to(workspace).as_posix()


def trust(workspace, course=None):
    """Sign notebooks as delivered, so that JupyterLab shows figures before they run."""
    import nbformat
    from nbformat.sign import NotebookNotary

    notary = NotebookNotary()
    for name, data in _delivered(course or course_root()).items():
        with contextlib.suppress(OSError):
            if (workspace / name).read_bytes() == data:
                notebook = nbformat.reads(data.decode(), as_version=4)
                if not notary.check_signature(notebook):
                    notary.sign(notebook)


def describe(events, workspace):
    """Return the events as plain sentences, one per line."""
    by_kind = {}
    for event in events:
        by_kind.setdefault(event.kind, []).append(event.name)
    lines = []
    for kind, sentence in _SENTENCES.items():
        names = by_kind.get(kind, [])
        if kind == "new" and len(names) > 3:
            lines.append(f"Copied {len(names)} notebooks to {workspace}")
        elif names:
            lines.append(f"{sentence}: {', '.join(names)}")
    for event in events:
        if event.kind == "beside":
            lines.append(
                f"You changed {event.name}, so it stays as it is; the new version is {event.beside}"
            )
    return lines


_SENTENCES = {
    "new": "New in the course",
    "updated": "Updated (you had not changed them)",
    "restored": "Missing, so brought back",
    "left": "Left alone, as something that is no file has its name",
    "retired": "No longer part of the course; your copy stays",
}


def _delivered(course):
    """Name in the workspace -> content, for each notebook that the course delivers."""
    return {
        f"{folder}/{path.name}": path.read_bytes()
        for folder in FOLDERS
        for path in sorted((course / folder).glob("[0-9]*.ipynb"))
        if "." not in path.stem
    }


def _deliver(workspace, name, new, entry, now):
    path = workspace / name
    if not os.path.lexists(path):
        _write(path, new)
        return Event("restored" if entry else "new", name)
    if not path.is_file():
        return Event("left", name)
    coming = _print_of(new)
    if entry == coming:
        return None
    try:
        mine = path.read_bytes()
    except PermissionError:
        mine = b""  # what cannot be read cannot be known to be unchanged
    if mine == new:
        return None
    unchanged = {coming["cells"], entry["cells"] if entry else coming["cells"]}
    # A file that was made read-only says "leave me alone" as clearly as an edit does.
    if _cells(mine) in unchanged and path.stat().st_mode & 0o222:
        _write(path, new)
        return Event("updated", name)
    if entry and entry["cells"] == coming["cells"]:
        return None
    return Event("beside", name, _put_beside(path, new, now).relative_to(workspace).as_posix())


def _put_beside(path, new, now):
    for there in path.parent.glob(f"{path.stem}.new-*.ipynb"):
        if there.is_file() and there.read_bytes() == new:
            return there
    beside = _free_name(path, f"new-{now or datetime.now():%Y-%m-%d}")
    _write(beside, new)
    return beside


def _free_name(path, label):
    candidate, turn = path.with_name(f"{path.stem}.{label}{path.suffix}"), 2
    while os.path.lexists(candidate):
        candidate, turn = path.with_name(f"{path.stem}.{label}-{turn}{path.suffix}"), turn + 1
    return candidate


def _print_of(data):
    return {"file": hashlib.sha256(data).hexdigest(), "cells": _cells(data)}


def _cells(data):
    """A hash of what a learner writes on purpose; None for what cannot be read as a notebook."""
    try:
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(data)["cells"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    texts = [(kind, text.replace("\r\n", "\n").rstrip()) for kind, text in cells if text.strip()]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def _find(name, delivered):
    """The notebook meant; a name without its folder that a chapter and its exercises share is
    the chapter's, and so is a bare number, such as 02; 00 is where one starts.
    """
    place = name.replace("\\", "/").removeprefix("./").removesuffix(".ipynb")
    for shortened in (False, True):
        for one in sorted(delivered, key=lambda one: one != START):
            folder, _, stem = one.removesuffix(".ipynb").rpartition("/")
            stem = stem.partition("_")[0] if shortened else stem
            if place in (f"{folder}/{stem}", stem):
                return one
    close = nearest(place, [part for one in delivered for part in (one[:-6], Path(one).stem)])
    hint = f"; did you mean {close}?" if close else f"; there are {', '.join(delivered)}"
    raise WorkspaceError(f"no notebook is called {name}{hint}")


def _same(workspace, course):
    return workspace.is_dir() and workspace.samefile(course)


@contextlib.contextmanager
def _locked(workspace):
    """Hold the workspace for one process, and give its manifest's path. The lock is an empty SQLite
    file: on every system let go of when the process dies.
    """
    import sqlite3  # the command starts without it

    try:
        (workspace / PRIVATE).mkdir(parents=True, exist_ok=True)
        lock = sqlite3.connect(
            workspace / PRIVATE / "lock.sqlite", timeout=60, isolation_level=None
        )
        try:
            lock.execute("BEGIN EXCLUSIVE")
            yield workspace / PRIVATE / "manifest.json"
        finally:
            lock.close()
    except (OSError, sqlite3.Error) as error:
        what = (
            f"{error.filename or workspace}: {error.strerror}"
            if isinstance(error, OSError)
            else error
        )
        raise WorkspaceError(
            f"cannot prepare the notebooks in {workspace} ({what}). Your own files are as they"
            " were. Another folder: lightspeed lab --dir FOLDER"
        ) from error


def _read_manifest(path):
    """What was delivered before; a manifest that is lost or spoilt counts as empty."""
    try:
        files = json.loads(path.read_bytes())["files"]
        return {
            name: {"file": entry["file"], "cells": entry["cells"]} for name, entry in files.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _manifest_text(entries):
    return json.dumps({"format": 1, "files": entries}, indent=1).encode()


def _write(path, data):
    """Write the whole file or leave it; a link keeps pointing where the learner had it."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{_TEMPORARY}{os.getpid()}")
    try:
        with open(unfinished, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _sweep(workspace):
    """Remove what a killed process left half written; the lock says that no other is at work."""
    for folder in (*FOLDERS, PRIVATE):
        for unfinished in (workspace / folder).glob(f"{_TEMPORARY}*"):
            unfinished.unlink(missing_ok=True)
