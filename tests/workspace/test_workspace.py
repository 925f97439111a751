"""The workspace never loses work: any situation, moment of death, order of events."""

import contextlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightspeed_course import workspace as ws

NOW = datetime(2026, 11, 21, 15, 30, 12)
ROOFLINE = "chapters/02_roofline.ipynb"
BESIDE = "chapters/02_roofline.new-2026-11-21.ipynb"


def notebook(*sources, outputs=()):
    code = {"cell_type": "code", "outputs": list(outputs), "execution_count": None, "metadata": {}}
    cells = [
        {"id": f"cell-{number}", "source": source} | code for number, source in enumerate(sources)
    ]
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1
    ).encode()


OLD, NEW, MINE = notebook("old"), notebook("new"), notebook("old", "my own work")
RAN = notebook("old", "", outputs=[{"output_type": "stream", "name": "stdout", "text": "ran\n"}])
REFRESHED = notebook(
    "old", outputs=[{"output_type": "stream", "name": "stdout", "text": "rebuilt\n"}]
)
MINE_RAN = notebook(
    "old", "my own work", outputs=[{"output_type": "stream", "name": "stdout", "text": "x\n"}]
)


class World:
    """A course and a workspace in a temporary folder."""

    def __init__(self, folder):
        self.course, self.home = folder / "course", folder / "my course"
        self.deliver(
            {
                ws.START: notebook("start"),
                ROOFLINE: OLD,
                "exercises/02_roofline.ipynb": notebook("todo"),
            }
        )

    def deliver(self, files):
        for name, data in files.items():
            (self.course / name).parent.mkdir(parents=True, exist_ok=True)
            (self.course / name).write_bytes(data)

    def sync(self):
        return {
            event.name: (event.kind, event.beside) for event in ws.sync(self.home, self.course, NOW)
        }

    def read(self, name):
        return (self.home / name).read_bytes()

    def files(self):
        return sorted(path.relative_to(self.home).as_posix() for path in self.home.glob("*s/*"))


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.sync()
    return world


def test_first_time_everything_is_copied_and_the_second_time_nothing_happens(tmp_path):
    world = World(tmp_path)
    (world.course / "chapters/02_roofline.py").write_text("the authors' source")
    (world.course / "chapters/99_scratch.backup.ipynb").write_text("{}")
    assert {kind for kind, _ in world.sync().values()} == {"new"}
    assert world.files() == [ws.START, ROOFLINE, "exercises/02_roofline.ipynb"]
    assert world.read(ROOFLINE) == OLD
    assert world.sync() == {}


# What the learner has before `then`; what happens to the file; what is in it after.
SITUATIONS = {
    "untouched": (OLD, NEW, "updated", NEW),
    "only run": (RAN, NEW, "updated", NEW),
    "with CRLF line ends": (OLD.replace(b"\n", b"\r\n"), NEW, "updated", NEW),
    "with CRLF in the cells": (notebook("old\r\n"), NEW, "updated", NEW),
    "untouched, outputs rebuilt": (OLD, REFRESHED, "updated", REFRESHED),
    "changed": (MINE, NEW, "beside", MINE),
    "changed and run": (MINE_RAN, NEW, "beside", MINE_RAN),
    "changed, outputs rebuilt": (MINE, REFRESHED, None, MINE),
    "changed, nothing new": (MINE, OLD, None, MINE),
    "run, nothing new": (RAN, OLD, None, RAN),
    "already the new version": (NEW, NEW, None, NEW),
    "a cell deleted": (notebook(), NEW, "beside", notebook()),
    "a cell turned into text": (
        OLD.replace(b'"code"', b'"markdown"'),
        NEW,
        "beside",
        OLD.replace(b'"code"', b'"markdown"'),
    ),
    "not a notebook any more": (b"<<<<<<< HEAD", NEW, "beside", b"<<<<<<< HEAD"),
    "emptied": (b"", NEW, "beside", b""),
    "deleted": (None, NEW, "restored", NEW),
    "deleted, nothing new": (None, OLD, "restored", OLD),
}


@pytest.mark.parametrize("manifest", ["kept", "lost", "spoilt"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_situations(world, situation, manifest):
    mine, then, kind, after = SITUATIONS[situation]
    path = world.home / ROOFLINE
    path.unlink() if mine is None else path.write_bytes(mine)
    world.deliver({ROOFLINE: then})
    if manifest == "lost":
        (world.home / ws.PRIVATE / "manifest.json").unlink()
    elif manifest == "spoilt":
        (world.home / ws.PRIVATE / "manifest.json").write_text('{"files": {"chapters/02_roo')
    happened = world.sync()
    if manifest == "kept":
        assert happened == ({ROOFLINE: (kind, BESIDE if kind == "beside" else "")} if kind else {})
        assert world.read(ROOFLINE) == after
        assert (world.home / BESIDE).exists() == (kind == "beside")
    if mine in (MINE, MINE_RAN) or kind == "beside":
        assert world.read(ROOFLINE) == mine, (
            "whatever became of the manifest, the learner's work stays"
        )
    if kind == "beside":
        assert world.read(BESIDE) == then
    assert world.sync() == {}, "told once"


def test_each_new_version_gets_a_name_of_its_own(world):
    (world.home / ROOFLINE).write_bytes(MINE)
    world.deliver({ROOFLINE: NEW})
    world.sync()
    (world.home / BESIDE).write_bytes(notebook("new, and answered here"))
    world.deliver({ROOFLINE: notebook("newer")})
    assert world.sync() == {ROOFLINE: ("beside", "chapters/02_roofline.new-2026-11-21-2.ipynb")}
    assert world.read(BESIDE) == notebook("new, and answered here")


def test_a_learners_other_files_are_left_alone(world):
    extra = {
        "chapters/02_roofline_notes.ipynb": MINE,
        "chapters/data.csv": b"1,2",
        "exercises/00_mine.ipynb": b"?",
    }
    for name, data in extra.items():
        (world.home / name).write_bytes(data)
    world.deliver({ROOFLINE: NEW})
    world.sync()
    assert {name: world.read(name) for name in extra} == extra


def test_a_notebook_that_left_the_course_stays_and_is_named_once(world):
    (world.course / ROOFLINE).unlink()
    assert world.sync() == {ROOFLINE: ("retired", "")}
    assert world.sync() == {}
    assert world.read(ROOFLINE) == OLD


def test_a_read_only_file_is_not_replaced(world):
    (world.home / ROOFLINE).chmod(0o444)
    world.deliver({ROOFLINE: NEW})
    assert world.sync() == {ROOFLINE: ("beside", BESIDE)}
    assert world.read(ROOFLINE) == OLD


def test_read_only_course_files_give_writable_copies(tmp_path):
    world = World(tmp_path)
    (world.course / ROOFLINE).chmod(0o444)
    world.sync()
    assert (world.home / ROOFLINE).stat().st_mode & 0o200


def test_links_are_followed_and_kept(world, tmp_path):
    elsewhere = tmp_path / "elsewhere.ipynb"
    elsewhere.write_bytes(OLD)
    (world.home / ROOFLINE).unlink()
    (world.home / ROOFLINE).symlink_to(elsewhere)
    world.deliver({ROOFLINE: NEW})
    assert world.sync() == {ROOFLINE: ("updated", "")}
    assert (world.home / ROOFLINE).is_symlink() and elsewhere.read_bytes() == NEW


@pytest.mark.parametrize("obstacle", ["folder", "dangling link"])
def test_what_is_no_file_is_left_alone_and_the_rest_goes_on(world, obstacle):
    (world.home / ROOFLINE).unlink()
    if obstacle == "folder":
        (world.home / ROOFLINE).mkdir()
    else:
        (world.home / ROOFLINE).symlink_to("nowhere")
    world.deliver({ROOFLINE: NEW, "exercises/02_roofline.ipynb": NEW})
    assert world.sync() == {ROOFLINE: ("left", ""), "exercises/02_roofline.ipynb": ("updated", "")}
    assert os.path.lexists(world.home / ROOFLINE)


def test_a_workspace_inside_the_checkout_and_one_that_links_to_it(world):
    inside = world.course / "my notes"
    ws.sync(inside, world.course)
    assert (inside / ROOFLINE).read_bytes() == OLD
    linked = world.course / "linked"
    linked.mkdir()
    for folder in ws.FOLDERS:
        (linked / folder).symlink_to(world.course / folder)
    assert ws.sync(linked, world.course) == []
    world.deliver({ROOFLINE: NEW})
    ws.sync(linked, world.course)
    assert (world.course / ROOFLINE).read_bytes() == NEW
    assert not list((world.course / "chapters").glob("*.new-*"))


def test_the_course_itself_is_opened_as_it_is(world):
    before = sorted(world.course.rglob("*"))
    assert ws.sync(world.course, world.course) == []
    assert sorted(world.course.rglob("*")) == before
    with pytest.raises(ws.WorkspaceError, match="git"):
        ws.reset(ROOFLINE, world.course, world.course)


def test_the_default_folder_steps_aside_for_a_checkout_of_that_name(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LIGHTSPEED_HOME", raising=False)
    assert ws.workspace_root() == tmp_path / "speed-of-light"
    monkeypatch.setattr(ws, "course_root", lambda: tmp_path / "speed-of-light")
    assert ws.workspace_root() == tmp_path / "my-speed-of-light"
    monkeypatch.setenv("LIGHTSPEED_HOME", "~/other")
    assert ws.workspace_root() == tmp_path / "other"
    assert ws.workspace_root("~/named") == tmp_path / "named"


def test_a_course_that_was_never_built_says_so(tmp_path):
    with pytest.raises(ws.WorkspaceError, match="make build"):
        ws.sync(tmp_path / "home", tmp_path)


# ---------------------------------------------------------------- reset


def test_reset_restores_and_keeps_a_backup(world):
    (world.home / ROOFLINE).write_bytes(MINE)
    world.deliver({ROOFLINE: NEW})
    name, backup = ws.reset("chapters/02_roofline", world.home, world.course, NOW)
    assert (name, backup) == (ROOFLINE, "chapters/02_roofline.backup-2026-11-21-153012.ipynb")
    assert (world.read(ROOFLINE), world.read(backup)) == (NEW, MINE)
    assert world.sync() == {}, "after a reset the file counts as delivered"
    (world.home / ROOFLINE).write_bytes(RAN)
    _, second = ws.reset(ROOFLINE, world.home, world.course, NOW)
    assert second == "chapters/02_roofline.backup-2026-11-21-153012-2.ipynb"
    assert world.read(backup) == MINE


def test_reset_of_an_untouched_or_missing_file_needs_no_backup(world):
    assert ws.reset(ROOFLINE, world.home, world.course) == (ROOFLINE, None)
    (world.home / ROOFLINE).unlink()
    assert ws.reset(ROOFLINE, world.home, world.course) == (ROOFLINE, None)
    assert world.read(ROOFLINE) == OLD


@pytest.mark.parametrize(
    ("said", "meant"),
    {
        "02_roofline": ROOFLINE,
        "02_roofline.ipynb": ROOFLINE,
        "./chapters/02_roofline.ipynb": ROOFLINE,
        "exercises/02_roofline": "exercises/02_roofline.ipynb",
        "exercises\\02_roofline.ipynb": "exercises/02_roofline.ipynb",
        "00_start_here": ws.START,
    }.items(),
)
def test_reset_understands_the_name_in_any_form(world, said, meant):
    assert ws.reset(said, world.home, world.course)[0] == meant


def test_reset_of_an_unknown_name_suggests_the_likely_one(world):
    with pytest.raises(ws.WorkspaceError, match="did you mean 02_roofline"):
        ws.reset("02_rofline", world.home, world.course)


# ---------------------------------------------------------------- death, want and company


def in_child(work):
    """Run `work` in a forked process; its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except ws.WorkspaceError:
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def dies_at(step, work):
    """Run `work` in a process killed before, or for odd steps after, its n-th change."""

    def doomed():
        calls = 0

        def counting(function):
            def counted(*arguments, **named):
                nonlocal calls
                calls += 1
                if calls == step // 2:
                    if step % 2:
                        with contextlib.suppress(OSError):
                            function(*arguments, **named)
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **named)

            return counted

        for name in ("fsync", "replace", "mkdir"):
            setattr(os, name, counting(getattr(os, name)))
        ws.open = counting(open)
        work()

    return in_child(doomed)


# The moments are all met with what is slow; at each commit one in three.
@pytest.mark.parametrize("apart", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_moment_the_next_run_goes_on_and_nothing_is_lost(tmp_path, apart):
    kills = 0
    for step in range(2, 200, apart):
        world = World(tmp_path / str(step))
        world.sync()
        (world.home / ROOFLINE).write_bytes(MINE)
        world.deliver(
            {ROOFLINE: NEW, ws.START: notebook("start anew"), "exercises/03_new.ipynb": OLD}
        )
        (world.home / "exercises/02_roofline.ipynb").write_bytes(MINE)

        def work(world=world):
            world.sync()
            ws.reset("exercises/02_roofline", world.home, world.course, NOW)

        code = dies_at(step, work)
        assert code in (0, -signal.SIGKILL)
        for path in world.home.glob("*s/[0-9]*.ipynb"):
            json.loads(path.read_bytes())  # whole files only
        kept = [path.read_bytes() for path in world.home.glob("exercises/*.ipynb")]
        assert MINE in kept, "the learner's answers are in the file or in its backup"
        world.sync()
        assert world.read(ROOFLINE) == MINE and world.read(BESIDE) == NEW
        assert world.read(ws.START) == notebook("start anew")
        assert world.read("exercises/03_new.ipynb") == OLD
        assert len(list(world.home.glob("chapters/*.new-*"))) == 1
        assert not list(world.home.rglob("*unfinished*"))
        assert world.sync() == {}
        if code == 0:
            break
        kills += 1
    assert code == 0 and kills > 20 / apart


def test_a_full_disk_is_said_plainly_and_costs_nothing(world):
    big = notebook("x" * 50_000)
    (world.home / ROOFLINE).write_bytes(MINE)
    world.deliver({ROOFLINE: NEW, "exercises/02_roofline.ipynb": big})
    said = multiprocessing.get_context("fork").SimpleQueue()

    def work():
        # The kernel then refuses to write past this size, as it refuses when a disk is full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            world.sync()
        except ws.WorkspaceError as error:
            said.put(str(error))
            raise

    assert in_child(work) == 3
    message = said.get()
    assert "cannot prepare the notebooks" in message
    assert "File too large" in message
    assert "\n" not in message
    assert world.read(ROOFLINE) == MINE
    assert world.read("exercises/02_roofline.ipynb") == notebook("todo")
    assert not list(world.home.rglob("*unfinished*"))
    assert world.sync()["exercises/02_roofline.ipynb"] == ("updated", "")


def test_a_folder_that_cannot_be_written_is_said_plainly(tmp_path):
    world = World(tmp_path)
    world.home.write_text("a file where the folder should be")
    with pytest.raises(ws.WorkspaceError, match="--dir"):
        world.sync()


def test_a_folder_without_permission_is_said_plainly():
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.sync()
        world.deliver({ROOFLINE: NEW})
        os.chmod(folder, 0o755)
        closed = [world.home, *(path for path in world.home.rglob("*") if path.is_dir())]
        for path in closed:
            path.chmod(0o555)

        def as_an_ordinary_user():
            if os.geteuid() == 0:
                os.setuid(65534)
            world.sync()

        assert in_child(as_an_ordinary_user) == 3
        assert world.read(ROOFLINE) == OLD
        for path in closed:
            path.chmod(0o755)


def test_two_labs_at_once_deliver_once(world):
    (world.home / ROOFLINE).write_bytes(MINE)
    world.deliver(
        {ROOFLINE: NEW, ws.START: notebook("start anew")}
        | {f"chapters/{n:02}_x.ipynb": OLD for n in range(10, 40)}
    )
    processes = [multiprocessing.get_context("fork").Process(target=world.sync) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert world.read(ROOFLINE) == MINE
    assert [name for name in world.files() if ".new-" in name] == [BESIDE]
    assert world.sync() == {}


# ---------------------------------------------------------------- any order of events

ACTIONS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from([ROOFLINE, ws.START]), st.integers(0, 3)),
    st.tuples(st.just("run"), st.sampled_from([ROOFLINE, ws.START]), st.integers(0, 3)),
    st.tuples(
        st.just("course"),
        st.sampled_from([ROOFLINE, ws.START, "chapters/05_more.ipynb"]),
        st.integers(0, 3),
    ),
    st.tuples(st.just("reset"), st.sampled_from([ROOFLINE, ws.START]), st.none()),
    st.tuples(st.just("forget"), st.none(), st.none()),
    st.tuples(st.just("sync"), st.none(), st.none()),
)


@pytest.mark.parametrize("examples", [40, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.holds("docs/learn.md", "never touches a page that you changed")
def test_whatever_happens_in_whatever_order_nothing_the_learner_wrote_is_lost(examples):
    runs = settings(max_examples=examples, deadline=None)
    runs(given(st.lists(ACTIONS, max_size=12))(nothing_is_lost))()


def nothing_is_lost(actions):
    folder = Path(tempfile.mkdtemp())
    try:
        world, written = World(folder), set()
        world.sync()
        for count, (action, name, number) in enumerate(actions):
            if action == "write":
                own = f"mine {count}"
                # the learner replaces own work, as is their right
                written.discard(current_work(world, name))
                written.add(own)
                (world.home / name).write_bytes(notebook(own))
            elif action == "run":
                cells = json.loads(world.read(name))
                cells["cells"][0]["outputs"] = [
                    {"output_type": "stream", "name": "stdout", "text": str(number)}
                ]
                (world.home / name).write_text(json.dumps(cells))
            elif action == "course":
                world.deliver({name: notebook(f"course {number}")})
            elif action == "reset":
                ws.reset(name, world.home, world.course, NOW)
            elif action == "forget":
                (world.home / ws.PRIVATE / "manifest.json").unlink(missing_ok=True)
            else:
                world.sync()
        world.sync()
        kept = b"".join(path.read_bytes() for path in world.home.glob("chapters/*.ipynb")).decode()
        assert all(f'"{own}"' in kept for own in written)
        assert world.sync() == {}
    finally:
        shutil.rmtree(folder)


def current_work(world, name):
    return "".join(json.loads(world.read(name))["cells"][0]["source"])


# ---------------------------------------------------------------- words and trust


def test_events_are_told_in_plain_words(world):
    (world.home / ROOFLINE).write_bytes(MINE)
    world.deliver({ROOFLINE: NEW, ws.START: NEW, "exercises/07_new.ipynb": NEW})
    (world.home / "exercises/02_roofline.ipynb").unlink()
    assert ws.describe(ws.sync(world.home, world.course, NOW), world.home) == [
        "New in the course: exercises/07_new.ipynb",
        "Updated (you had not changed them): chapters/00_start_here.ipynb",
        "Missing, so brought back: exercises/02_roofline.ipynb",
        f"You changed {ROOFLINE}, so it stays as it is; the new version is {BESIDE}",
    ]


def test_delivered_notebooks_are_trusted_and_changed_ones_are_not(world, monkeypatch, tmp_path):
    import nbformat
    from nbformat.sign import NotebookNotary

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    (world.home / ROOFLINE).write_bytes(MINE)
    ws.trust(world.home, world.course)
    signed = {
        name: NotebookNotary().check_signature(nbformat.reads(world.read(name).decode(), 4))
        for name in world.files()
    }
    assert signed == {ws.START: True, ROOFLINE: False, "exercises/02_roofline.ipynb": True}
