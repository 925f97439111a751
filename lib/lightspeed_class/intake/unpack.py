"""What was handed in, as it came: files out of folders, single files and zip archives, none of
which is trusted.

Nothing is ever unpacked to a path that a name in an archive says: a file is read into memory, up to
a limit, and its name is only text. What cannot be taken is told with the reason, and the rest goes
on.
"""

import contextlib
import io
import itertools
import os
import re
import stat
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lightspeed_class.notebooks import LARGEST_FILE, TOO_LARGE, Refused, clean, stripped
from lightspeed_class.notebooks import read as read_file

MOST_FILES = 20_000
MOST_BYTES = 8 << 30  # of all files of an archive, unpacked
# A file that grows more than this from the archive is a bomb, unless it is small or a notebook (a
# loop that prints packs well); of those there may be so many bytes in an archive.
RATIO, ALLOWED, MOST_DENSE = 200, 1 << 20, 1 << 30
END = 22  # bytes of the record that ends an archive, without its comment
OVERLAPS = "it shares its bytes with another entry, which no honest archive does."
DENSE = "It unpacks to hundreds of times its size, which no notebook does."
# what browsers make of a notebook's name
NOTEBOOK = re.compile(r"\.ipynb(\.(json|txt))?$", re.IGNORECASE)
IGNORED = re.compile(
    r"(^|/)(__MACOSX|\.ipynb_checkpoints|\.git)/|(^|/)(\._[^/]*|\.DS_Store|Thumbs\.db|desktop\.ini)$"
)


@dataclass(frozen=True)
class Item:
    """A file: its relative path (with /), its creation time (seconds since 1970), and `read()` for
    its bytes. `noted`: remarks on its time (lateness.py); `file`: its path, if not in an archive;
    `since`: when its archive was made, or 0.

    `read` raises Refused, whose message is for the student.
    """

    container: str
    path: str
    at: float
    read: Callable
    noted: str = ""
    file: Path | None = None
    since: float = 0.0

    @property
    def source(self):
        return f"{self.container}: {self.path}" if self.container else self.path

    @property
    def is_notebook(self):
        return bool(NOTEBOOK.search(self.path))


def items(path):
    """Return ([Item], [why something was left out]) of a folder, zip or file. Raises Refused."""
    path = Path(path)
    if path.is_dir():
        files, notes = _walk(path)
        entries = [
            _on_disk(file, clean(path.resolve().name), file.relative_to(path).as_posix())
            for file in files
        ]
    elif path.is_file() and zipfile.is_zipfile(path) and not NOTEBOOK.search(path.name):
        entries, notes = _in_zip(path)
    elif path.suffix.lower() == ".zip":
        raise Refused("It is not a zip archive, or only a part of one. Download it again.")
    else:
        # Its folder may tell who it is from: submissions/ada/02_roofline.ipynb.
        entries, notes = [_on_disk(path, "", f"{path.absolute().parent.name}/{path.name}")], []
    return [item for item in entries if not IGNORED.search(item.path)], notes


def _walk(folder):
    """(every file below a folder, what of it is closed to us); a link is a file, not followed."""
    paths, errors = [], []
    for parent, folders, files in os.walk(folder, onerror=errors.append):
        paths += [
            Path(parent, name)
            for name in (*files, *folders)
            if name in files or Path(parent, name).is_symlink()
        ]
        if len(paths) > MOST_FILES:
            raise Refused(
                f"There are more than {MOST_FILES} files in it; collect them folder by folder."
            )
    return sorted(paths), [f"{error.filename}: {error.strerror}." for error in errors]


def _on_disk(file, container, name):
    at = 0.0
    with contextlib.suppress(OSError):
        at = file.lstat().st_mtime
    return Item(container, clean(name), at, lambda: _limited(read_file(file)), file=file)


def _in_zip(path):
    try:
        archive = _opened(path)
        infos = [info for info in archive.infolist() if not info.is_dir()]
    except Exception as error:  # whatever the bytes make the reader raise
        raise Refused(
            f"It cannot be opened as a zip archive: {str(error) or type(error).__name__}. Download"
            " it again."
        ) from None
    if len(infos) > MOST_FILES:
        raise Refused(f"There are {len(infos)} files in it; more than {MOST_FILES} are not taken.")
    entries, notes, total, dense = [], [], 0, 0
    overlapping = _overlapping(infos)
    for info in infos:
        name = _name(info)
        if why := OVERLAPS if info.header_offset in overlapping else _unsafe(info, name):
            notes.append(f"{clean(name)}: {why}")
            continue
        total += min(info.file_size, LARGEST_FILE)
        dense += min(info.file_size, LARGEST_FILE) * _is_dense(info)
        if dense > MOST_DENSE and _is_dense(info):
            notes.append(f"{clean(name)}: {DENSE} So do others of the archive.")
            continue
        if total > MOST_BYTES:
            notes.append(f"{clean(name)}: the archive unpacks to more than {MOST_BYTES >> 30} GiB.")
            continue
        entries.append(
            Item(
                clean(path.name),
                clean(name),
                _time(info),
                lambda info=info: _unpacked(archive, info),
                since=path.stat().st_mtime,
            )
        )
    return entries, notes


def _opened(path):
    """An archive, also where its comment holds what looks like the end of one, which is where
    Python's reader would look for its list of files.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - END - 0xFFFF))
        tail = file.read()
    for match in re.finditer(rb"PK\x05\x06", tail):
        at, record = match.start(), tail[match.start() : match.start() + END]
        if len(record) == END and at + END + int.from_bytes(record[20:], "little") == len(tail):
            if at + END == len(tail):
                break  # no comment: as usual
            whole = path.read_bytes()[: size - len(tail) + at]
            return zipfile.ZipFile(io.BytesIO(whole + record[:20] + b"\0\0"))
    return zipfile.ZipFile(path)


def _overlapping(infos):
    """Where entries begin that share bytes with another one, as in a bomb."""
    places = sorted((info.header_offset, info.compress_size) for info in infos)
    return {
        at
        for (start, size), (end, _) in itertools.pairwise(places)
        if start + size > end
        for at in (start, end)
    }


def _name(info):
    """The name in an archive. Canvas writes UTF-8 unsaid, which reads as a DOS code page."""
    if not info.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            return info.filename.encode("cp437").decode("utf-8")
    return info.filename


def _unsafe(info, name):
    """Why an entry is not even looked into."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    raw = name.replace("\\", "/")
    if raw.startswith("/") or re.match(r"[A-Za-z]:", raw):
        return "its path is absolute."
    if ".." in PurePosixPath(raw).parts:
        return "its path leads out of the archive."
    if kind == stat.S_IFLNK:
        return "it is a link, not a file."
    if kind not in (0, stat.S_IFREG):
        return "it is not a plain file."
    return ""


def _unpacked(archive, info):
    if info.flag_bits & 1:
        raise Refused("It is encrypted. Hand it in without a password.")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused(
            "It is packed in a way that platforms do not use. Hand in the notebook (.ipynb) itself."
        )
    if info.file_size > LARGEST_FILE:
        raise Refused(TOO_LARGE)
    try:
        with archive.open(info) as file:
            content = file.read(LARGEST_FILE + 1)
        if _is_dense(info) and not content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            raise Refused(DENSE)
        return _limited(content)
    except Refused:
        raise
    except Exception as error:  # whatever the bytes of an archive make its reader raise
        raise Refused(
            f"It is damaged in the archive: {str(error) or type(error).__name__}."
        ) from None


def _is_dense(info):
    return info.file_size > ALLOWED and info.file_size > RATIO * max(info.compress_size, 1)


def _limited(content):
    """A file that is not too large, or a notebook that is not without its large outputs."""
    if len(content) > LARGEST_FILE:
        raise Refused(TOO_LARGE)
    return stripped(content)


def _time(info):
    with contextlib.suppress(ValueError, OverflowError):
        return time.mktime((*info.date_time, 0, 0, -1))
    return 0.0
