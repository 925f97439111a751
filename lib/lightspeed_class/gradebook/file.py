"""The file of a gradebook: opening it, its settings, and transactions."""

import contextlib
import secrets
import sqlite3
from pathlib import Path

from lightspeed_class.gradebook.schema import MIGRATIONS, Newer
from lightspeed_course.practice.store_file import statements

BUSY_SECONDS = 30
MOUNTS = Path("/proc/self/mountinfo")
NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "beegfs", "ceph", "fuse.ceph",
    "fuse.glusterfs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "virtiofs",
}  # fmt: skip


def on_network(path):
    """Whether a file is on a file system shared by several machines, where SQLite's write-ahead
    log, which uses shared memory, is unreliable.
    """
    location, deepest, kind = f"{Path(path).resolve()}", "", ""
    with contextlib.suppress(OSError):
        for line in MOUNTS.read_text("utf-8").splitlines():
            about, _, source = line.partition(" - ")
            place = about.split()[4].replace("\\040", " ").rstrip("/") + "/"
            if location.startswith(place) and len(place) >= len(deepest):
                deepest, kind = place, source.split()[0]
    return kind in NETWORK


class GradebookFile:
    """A gradebook file at `path`, created if missing, and its settings."""

    def __init__(self, path):
        self.path = Path(path)
        self._file = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            self._file.execute("PRAGMA foreign_keys = ON")
            self._file.execute("PRAGMA synchronous = FULL")
            if on_network(self.path):
                self._file.execute("PRAGMA journal_mode = DELETE")
            self._migrate()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._file.close()

    def copy_to(self, path):
        """Write a complete copy to a new file, readable by its owner only."""
        Path(path).touch(0o600, exist_ok=False)
        with contextlib.closing(sqlite3.connect(path)) as copy:
            self._file.backup(copy)

    @property
    def secret(self):
        """The secret of the class, which draws the hidden inputs."""
        return self.setting("secret")

    def setting(self, name, value=None):
        """Return the setting `name`, or None; set it first if `value` is given."""
        with self._transaction():
            if value is not None:
                self._file.execute(
                    "INSERT INTO settings VALUES (?, ?) ON CONFLICT DO UPDATE SET value ="
                    " excluded.value",
                    (name, value),
                )
            row = self._file.execute(
                "SELECT value FROM settings WHERE name = ?", (name,)
            ).fetchone()
        return row and row[0]

    @contextlib.contextmanager
    def _transaction(self):
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    def _migrate(self):
        if self._version() > len(MIGRATIONS):
            raise Newer(
                f"{self.path} was written by a newer version of the course. Update it to go on."
            )
        if self._version() == len(MIGRATIONS):
            return
        if not on_network(self.path):
            self._file.execute("PRAGMA journal_mode = WAL")
        with self._transaction():
            # asked again: another process may have been first
            for step in MIGRATIONS[self._version() :]:
                for statement in statements(step):
                    self._file.execute(statement)
            self._file.execute(
                "INSERT INTO settings VALUES ('secret', ?) ON CONFLICT DO NOTHING",
                (secrets.token_hex(16),),
            )
            self._file.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self):
        return self._file.execute("PRAGMA user_version").fetchone()[0]
