"""The library and its catalogue as they were at a release: what the cells of a student import.

An answer that is computed calls laws and reads data sheets. Where it ran on those of today, a
corrected figure would take points from answers that were right when they were written. So a release
keeps all of ours that a cell can import, packed in the gradebook, and a sandbox gets that. What
judges, and what isolates, is always the course that is installed.
"""

import hashlib
import io
import os
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import lightspeed

LIB = Path(lightspeed.__file__).resolve().parents[1]
WHOLE = ("lightspeed", "lightspeed_show", "lightspeed_models")  # packages that hold no answers
# of the course; practice/ and all else holds answers
EXPOSED = ("__init__.py", "explorers", "library_calls.py", "puzzles")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files are the same bytes


@cache
def packed(home: Path | None = None) -> bytes:
    """Pack the importable parts of the course in `home` (default: the installed one)."""
    home, memory = home or LIB, io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in _importable(home):
            entry = zipfile.ZipInfo(path.relative_to(home).as_posix(), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return memory.getvalue()


def digest_of(content: bytes) -> str:
    """Hash a packed library: equal for equal files."""
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def unpacked(content: bytes) -> Path:
    """Unpack a library into the user's cache, once and whole; return the folder to import from."""
    import platformdirs

    cache_folder = Path(platformdirs.user_cache_dir("speed-of-light", appauthor=False))
    place = cache_folder / "libraries" / digest_of(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    if not _holds(place, files):  # a power cut may have left a part of it
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=place.parent))
        for name, text in files.items():
            target = aside / "new" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
        _readable_by_all(aside / "new")
        if place.exists():
            place.rename(aside / "old")
        try:
            (aside / "new").rename(place)
        except OSError:  # another process was first
            if not _holds(place, files):
                raise
    return place


def _importable(home: Path) -> list[Path]:
    roots = [home / name for name in WHOLE]
    roots += [home / "lightspeed_course" / name for name in EXPOSED]
    files = [path for root in roots for path in ([root] if root.is_file() else root.rglob("*"))]
    hidden = home / "lightspeed_models" / "evidence"
    return sorted(
        path
        for path in files
        if path.is_file() and "__pycache__" not in path.parts and hidden not in path.parents
    )


def _holds(place: Path, files: dict[str, bytes]) -> bool:
    try:
        return all((place / name).read_bytes() == content for name, content in files.items())
    except OSError:
        return False


def _readable_by_all(folder: Path) -> None:
    """Whatever the umask is: in a sandbox the student's cells run as a user that nobody is."""
    for parent, _, names in os.walk(folder):
        os.chmod(parent, 0o755)
        for name in names:
            os.chmod(Path(parent, name), 0o644)
