"""What came in, as files of the class: nothing that somebody sent is lost or written over.

collected/NAME/received/     archives, whole, as they came
collected/NAME/students/ID/  the files of a student, as they came
collected/NAME/unknown/      files that are nobody's until `collect NAME FILE --as STUDENT`
collected/NAME/foreign/      notebooks that answer another assignment
"""

import hashlib
import os
import re
import shlex
import shutil
import zipfile
from pathlib import Path

from lightspeed_class import class_folder
from lightspeed_class.class_folder import unfinished, write_whole

MOST_LISTED = 12
MOST_KEPT = 1 << 30  # bytes of a file that nobody reads


class KeptFiles:
    """The folder of an assignment's submissions."""

    def __init__(self, folder):
        self.folder = folder

    def sweep(self):
        """Delete half-written files of a killed run."""
        class_folder.sweep(self.folder)

    def archive(self, path):
        """Keep an unchanged copy of an archive; return True if it is new."""
        if (
            not path.is_file()
            or not zipfile.is_zipfile(path)
            or self.folder in path.resolve().parents
        ):
            return False
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        target = self.folder / "received" / f"{digest[:12]}-{_safe(path.name)}"
        if new := not target.exists() or target.stat().st_size != path.stat().st_size:
            with unfinished(target) as aside:
                shutil.copyfile(path, aside)
        return new

    def student(self, item, student, content, at):
        """Keep the file, with its time, for a student; it may turn out to be another's."""
        if content is not None:
            _put(
                self.folder
                / "students"
                / student
                / _file_name(content, item.path.rpartition("/")[2]),
                content,
                at,
            )

    def unread(self, item, folder):
        """Keep an unread file, such as one too large, below a folder; say where."""
        if item.file is None:
            archive = item.container.lower().endswith(".zip")
            return f"It is in the archive, in {shown(self.folder / 'received')}." * archive
        if item.file.is_symlink() or not item.file.is_file():
            return ""
        if item.file.stat().st_size > MOST_KEPT:
            return f"It is over {MOST_KEPT >> 20} MiB and was left where it is."
        with open(item.file, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        target = self.folder / folder / f"{digest[:12]}-{_safe(item.path.rpartition('/')[2])}"
        if not target.exists():
            with unfinished(target) as aside:
                shutil.copy2(item.file, aside)
        return f"It is kept as {shown(target)}."

    def settle(self, content):
        """Remove files set aside earlier that now belong to a student, whatever their names."""
        if content is not None:
            for kind in ("unknown", "foreign"):
                for aside in (self.folder / kind).glob(
                    f"{hashlib.sha256(content).hexdigest()[:12]}-*"
                ):
                    aside.unlink(missing_ok=True)

    def aside(self, kind, item, content):
        """Return the path of a file kept as unknown or foreign."""
        path = self.folder / kind / _file_name(content, item.path)
        _put(path, content, item.at)
        return path


def put_aside(course, book, name):
    """Return lines on files that belong to nobody or to another assignment, and what to do."""
    out = {id for assignment in book.assignments() for id in book.choices(assignment)[1]}
    have = {submission.sha256[:12] for submission in book.submissions() if submission.id not in out}
    lines = []
    for kind, words in (
        (
            "unknown",
            (
                f"from nobody known; to give one to somebody: lightspeed class collect {name} FILE"
                " --as STUDENT. To drop one, delete it"
            ),
        ),
        ("foreign", "for another assignment; collect them for that one, or delete them"),
    ):
        files = {}  # the same bytes under all their names
        for file in sorted((course.collected(name) / kind).glob("[!.]*")):
            if file.name[:12] not in have:
                files.setdefault(file.name[:12], []).append(file)
        if files:
            names = [", the same as ".join(map(shown, same)) for same in files.values()]
            lines += [f"{len(files)} {words}:", *_first(names, course.collected(name) / kind)]
    return lines


def beside(course, intake):
    """Return lines on files without a score: whose, what, and why."""
    files = [
        f"{row.student}: {row.file}: {row.note}" for row in intake.rows if row.verdict == "beside"
    ]
    return _first(files, course.collected(intake.name) / "students")


def _first(lines, folder):
    return [
        *(f"  {line}" for line in lines[:MOST_LISTED]),
        *[f"  and {len(lines) - MOST_LISTED} more in {shown(folder)}"] * (len(lines) > MOST_LISTED),
    ]


def _put(path, content, at):
    """A file of this content, with the earliest time that it came with."""
    if not path.exists() or path.stat().st_size != len(content):  # a power cut may leave 0 bytes
        write_whole(path, content)
    if path.stat().st_mtime > at:
        os.utime(path, (at, at))


def _file_name(content, name):
    """A name for bytes that came under a name: the same for the same."""
    return f"{hashlib.sha256(content).hexdigest()[:12]}-{_safe(name)}"


def _safe(name):
    """A name of a file from any text, its end kept: file systems allow 255 bytes."""
    plain = re.sub(r"[^\w.@+() -]", "~", name).lstrip(". ")
    return plain.encode()[-160:].decode(errors="ignore") or "unnamed"


def shown(path):
    """Return a path as it can be typed here."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if here in path.parents else path))
