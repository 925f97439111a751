"""The lab's keeper of events: one SQLite file to which they are only ever added.

The file is `practice.sqlite3` in $LIGHTSPEED_DATA, else in the user's data directory. Each event is
one transaction, so a killed kernel loses nothing that was shown as done, and two open labs may
write at once. Where the file cannot be written, events wait in memory, the next call tries again,
and a notice says so once.
"""

import contextlib
import os
import sqlite3
from pathlib import Path

BUSY_SECONDS = 5
MEANWHILE = " Practice goes on, and is kept until you close this session."
ONLY_ADDED = "BEGIN SELECT RAISE(ABORT, 'events are only added'); END"
# One step per version of the schema; a step is never changed once it has been released.
MIGRATIONS = (
    f"""
    CREATE TABLE events (
        number INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        question TEXT NOT NULL,
        detail TEXT NOT NULL
    );
    CREATE TRIGGER events_stay BEFORE UPDATE ON events {ONLY_ADDED};
    CREATE TRIGGER events_last BEFORE DELETE ON events {ONLY_ADDED};
    CREATE TRIGGER events_once BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE key = NEW.key OR number = NEW.number)
        BEGIN SELECT RAISE(IGNORE); END;
    """,
)


class Newer(sqlite3.Error):
    """The file was written by a newer version of the course."""


_waiting: list[tuple] = []  # events that the file has not taken yet
_notice = {"text": "", "told": False}


def path():
    """Return where the file is, or will be."""
    folder = os.environ.get("LIGHTSPEED_DATA")
    if not folder:
        import platformdirs

        folder = platformdirs.user_data_dir("speed-of-light", appauthor=False)
    return Path(folder) / "practice.sqlite3"


def add(rows):
    """Keep events (key, at, kind, question, JSON detail). Never raises for an unwritable file."""
    _waiting.extend(rows)
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(_open()) as file:
            file.execute("BEGIN IMMEDIATE")
            # An event whose key is there already, from a commit that we took for failed, is passed
            # over by the trigger.
            file.executemany(
                "INSERT INTO events (key, at, kind, question, detail) VALUES (?, ?, ?, ?, ?)",
                _waiting,
            )
            file.execute("COMMIT")
        _waiting.clear()
    except (sqlite3.Error, OSError) as error:
        _explain(error)


def rows():
    """All events, in the order in which they happened."""
    all_rows = []
    try:
        if path().exists():
            all_rows = _read(_open)
    except (sqlite3.Error, OSError) as error:
        _explain(error)
        with contextlib.suppress(sqlite3.Error):
            all_rows = _read(_open_unwritable)
    ids = {row[0] for row in all_rows}
    return all_rows + [row for row in _waiting if row[0] not in ids]


def _read(opening):
    with contextlib.closing(opening()) as file:
        return file.execute(
            "SELECT key, at, kind, question, detail FROM events ORDER BY number"
        ).fetchall()


def unwritten():
    """Return how many events are not yet in the file."""
    return len(_waiting)


def take_notice():
    """Return why events are not kept on disk, on the first call only; else an empty text."""
    text = "" if _notice["told"] else _notice["text"]
    _notice["told"] = _notice["told"] or bool(text)
    return text


def _explain(error):
    if isinstance(error, Newer):
        reason = "it was written by a newer version of the course"
        cure = "Update the course to go on with it."
    elif isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.OperationalError
    ):
        reason, cure = str(error), "Move the file away to start a new one."
    else:
        reason = str(error)
        cure = "Free some room there, or set LIGHTSPEED_DATA to a folder that can be written."
    _notice["text"] = f"Your progress is not being saved in {path()}: {reason}. {cure}{MEANWHILE}"


def _open():
    file = sqlite3.connect(path(), timeout=BUSY_SECONDS, isolation_level=None)
    try:
        version = file.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            raise Newer(version)
        if version < len(MIGRATIONS):
            _migrate(file)
        file.execute("PRAGMA synchronous = FULL")
    except BaseException:
        file.close()
        raise
    return file


def _open_unwritable():
    """The file on a full or read-only disk, where no reader of a WAL can make its lock."""
    return sqlite3.connect(f"{path().absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def _migrate(file):
    with contextlib.suppress(sqlite3.OperationalError):
        # Refused while another process has it open; that one has set it then, and it stays set.
        file.execute("PRAGMA journal_mode = WAL")
    file.execute("BEGIN EXCLUSIVE")
    # again: another process may have been first
    version = file.execute("PRAGMA user_version").fetchone()[0]
    for step in MIGRATIONS[version:]:
        for statement in statements(step):
            file.execute(statement)
    file.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    file.execute("COMMIT")


def statements(script):
    """The statements of a script, one by one: executescript() would end our transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if statement.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
