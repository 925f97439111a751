"""The record of a learner: nothing lost or overwritten, whatever process or disk do."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from lightspeed_course import check
from lightspeed_course.practice import store, store_file

LIB = str(Path(store.__file__).parents[2])


def start(script, data, **kwargs):
    environment = os.environ | {"LIGHTSPEED_DATA": str(data), "PYTHONPATH": LIB}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        **kwargs,
    )


WRITER = """
    import sys
    from lightspeed_course.practice import store, store_file
    n = 0
    while n < {count}:
        store.record("try", "sample.transfer", {{"writer": "{name}", "n": n}})
        assert not store_file._waiting, store_file._notice
        print(n, flush=True)
        n += 1
"""


def test_a_killed_writer_loses_nothing_that_was_done(own_store):
    said = -1
    for round in range(4):
        writer = start(WRITER.format(count=10**6, name=f"round {round}"), own_store)
        for _ in range(10):
            said = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        said = max([said, *map(int, writer.stdout.read().split())])
        writer.wait()
        kept = [
            e.detail["n"] for e in store.events("try") if e.detail["writer"] == f"round {round}"
        ]
        assert kept == list(range(len(kept))), "in order, without a gap"
        assert said + 1 <= len(kept) <= said + 2, "one more may be done than was said"
        with sqlite3.connect(store_file.path()) as file:
            assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert check("sample.transfer", 640).note == "", "and the file goes on"


def test_two_processes_write_at_once(own_store):
    writers = [start(WRITER.format(count=60, name=name), own_store) for name in "ab"]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    for name in "ab":
        assert [e.detail["n"] for e in store.events() if e.detail["writer"] == name] == list(
            range(60)
        )
    with sqlite3.connect(store_file.path()) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_events_come_back_in_order_and_can_be_chosen():
    store.record("try", "a.b", {"n": 1}, at=5.0)
    store.record("guess", "a.b", {"n": 2}, at=4.0)
    store.record("try", "a.c", {"n": 3}, at=6.0)
    assert [e.detail["n"] for e in store.events()] == [1, 2, 3]
    assert [e.detail["n"] for e in store.events("try")] == [1, 3]
    assert [(e.at, e.kind) for e in store.events(question="a.b")] == [(5.0, "try"), (4.0, "guess")]


@pytest.mark.parametrize("statement", ["UPDATE events SET detail = '{}'", "DELETE FROM events"])
def test_what_is_written_stays(statement):
    store.record("try", "a.b", {"n": 1})
    with (
        pytest.raises(sqlite3.Error, match="only added"),
        sqlite3.connect(store_file.path()) as file,
    ):
        file.execute(statement)
    assert [e.detail for e in store.events()] == [{"n": 1}]


@pytest.mark.parametrize("columns", ["number, key", "number, 'another'", "99, key"])
def test_an_event_is_not_replaced(columns):
    store.record("try", "a.b", {"n": 1})
    with sqlite3.connect(store_file.path()) as file:
        file.execute(
            f"INSERT OR REPLACE INTO events SELECT {columns}, 0, kind, question, '{{}}' FROM events"
        )
    assert [e.detail for e in store.events()] == [{"n": 1}]


def once_and_in_memory(reason):
    """Practice goes on, says why once, and still knows what was done."""
    first, second = check("sample.transfer", 600), check("sample.transfer", 640)
    assert second.correct and first.name == "n minus one"
    assert reason in first.note and "not being saved" in first.note
    assert second.note == ""
    assert [e.detail["correct"] for e in store.events("try")[-2:]] == [False, True]


def test_a_place_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path / "file" / "data"))
    once_and_in_memory("LIGHTSPEED_DATA")


UNPRIVILEGED = """
    import os, sys, urllib.parse  # which pathlib loads when it is needed, since Python 3.13
    sys.path.insert(0, {tests!r})
    import sample_bank
    from lightspeed_course import check
    from lightspeed_course.practice.questions import question
    from lightspeed_course.practice import as_released, store, store_file
    assert question("sample.transfer").variant().answer  # loads what root alone may read
    if os.getuid() == 0:
        os.setgid(65534); os.setuid(65534)
    before = len(store.events())
    first, second = check("sample.transfer", 600), check("sample.transfer", 640)
    assert "not being saved" in first.note, first.note
    assert second.correct and not second.note
    print(before, len(store.events()))
"""


def test_a_read_only_home_still_shows_what_was_kept(own_store):
    check("sample.transfer", 600)
    parents = [*own_store.parents][:4]  # under xdist there is one folder more
    modes = [(p, p.stat().st_mode) for p in parents if p != Path("/tmp")]
    try:
        for folder, mode in modes:
            folder.chmod(mode | 0o055)
        own_store.chmod(0o555)
        store_file.path().chmod(0o444)
        reader = start(UNPRIVILEGED.format(tests=str(Path(__file__).parent)), own_store)
        out, _ = reader.communicate(timeout=60)
    finally:
        own_store.chmod(0o755)
        for folder, mode in modes:
            folder.chmod(mode)
    assert (reader.returncode, out.split()) == (0, ["1", "3"])
    assert len(store.events()) == 1


FULL = """
    import resource, signal, sys
    sys.path.insert(0, {tests!r})
    import sample_bank
    from lightspeed_course import check; from lightspeed_course.practice import store, store_file
    check("sample.transfer", 1.0)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    first, second = check("sample.transfer", 600), check("sample.transfer", 640)
    assert "not being saved" in first.note and not second.note, first.note
    assert len(store.events()) == 3
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    check("sample.transfer", 640)
    assert not store_file._waiting
"""


def test_a_full_disk_keeps_events_until_there_is_room_again(own_store):
    writer = start(FULL.format(tests=str(Path(__file__).parent)), own_store)
    writer.communicate(timeout=60)
    assert writer.returncode == 0
    assert [e.detail["given"] for e in store.events("try")] == ["1", "600", "640", "640"]


def test_a_file_that_is_no_database_is_left_alone(own_store):
    own_store.mkdir()
    store_file.path().write_text(
        "my shopping list, which is long enough to be taken for something else"
    )
    once_and_in_memory("Move the file away")
    assert store_file.path().read_text().startswith("my shopping list")


def test_a_file_of_a_newer_version_is_left_alone():
    store.record("try", "a.b")
    with sqlite3.connect(store_file.path()) as file:
        file.execute(f"PRAGMA user_version = {len(store_file.MIGRATIONS) + 1}")
    before = store_file.path().read_bytes()
    once_and_in_memory("newer version")
    assert store_file.path().read_bytes() == before


def test_an_older_file_is_brought_up_to_date_with_all_its_events(monkeypatch):
    store.record("try", "a.b", {"n": 1})
    monkeypatch.setattr(
        store_file,
        "MIGRATIONS",
        (*store_file.MIGRATIONS, "ALTER TABLE events ADD COLUMN course TEXT;"),
    )
    store.record("try", "a.b", {"n": 2})
    assert [e.detail["n"] for e in store.events()] == [1, 2]
    with sqlite3.connect(store_file.path()) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (2,)
        assert "course" in [row[1] for row in file.execute("PRAGMA table_info(events)")]


def test_a_migration_that_fails_changes_nothing(monkeypatch):
    store.record("try", "a.b", {"n": 1})
    monkeypatch.setattr(
        store_file,
        "MIGRATIONS",
        (
            *store_file.MIGRATIONS,
            "ALTER TABLE events ADD COLUMN course TEXT; SELECT no_such_function();",
        ),
    )
    store.record("try", "a.b", {"n": 2})
    with sqlite3.connect(store_file.path()) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (1,)
        assert "course" not in [row[1] for row in file.execute("PRAGMA table_info(events)")]
    assert [e.detail["n"] for e in store.events()] == [1, 2], "read as it stands, with what waits"


def test_the_file_is_in_the_user_s_data_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("LIGHTSPEED_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if sys.platform.startswith("linux"):
        assert store_file.path() == tmp_path / "speed-of-light" / "practice.sqlite3"
    assert store_file.path().name == "practice.sqlite3"


def test_a_locked_file_is_waited_for(own_store, monkeypatch):
    store.record("try", "a.b", {"n": 1})
    monkeypatch.setattr(store_file, "BUSY_SECONDS", 0.2)
    with sqlite3.connect(store_file.path(), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        store.record("try", "a.b", {"n": 2})
        assert time.monotonic() - began >= 0.15
        assert "locked" in store.take_notice()
        other.execute("ROLLBACK")
    other.close()
    store.record("try", "a.b", {"n": 3})
    assert [e.detail["n"] for e in store.events()] == [1, 2, 3] and not store_file._waiting


def test_progress_travels_as_a_file_and_is_never_taken_twice(own_store, monkeypatch):
    store.record("try", "a.b", {"n": 1}, at=5.0)
    store.record("guess", "a.c", {"value": 2.5}, at=6.0)
    told, here = store.dumps(), store.events()
    assert store.loads(told) == 0 and store.events() == here
    monkeypatch.setenv("LIGHTSPEED_DATA", str(own_store / "elsewhere"))
    assert store.events() == [] and store.loads(told) == 2
    assert store.events() == here and store.loads(told) == 0


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "speed-of-light progress", "version": 2, "events": []}',
             '{"format": "speed-of-light progress", "version": 1, "events": [{"key": "a"}]}'],
)  # fmt: skip
def test_a_file_that_is_no_progress_adds_nothing(text):
    with pytest.raises(ValueError, match="file of progress"):
        store.loads(text)
    assert store.events() == []
