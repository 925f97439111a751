"""Pages that nbval has run as they stand: `lightspeed check` does not run them again."""

import functools
import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTES = ROOT / ".proved"


def proved(notebook: Path) -> bool:
    """Whether every cell of a committed notebook passed with this library and Python."""
    note = _note(notebook)
    return note.exists() and note.read_text("utf-8") == fingerprint(notebook)


def note_proof(notebook: Path) -> None:
    """Record that every cell passed."""
    NOTES.mkdir(exist_ok=True)
    _note(notebook).write_text(fingerprint(notebook), encoding="utf-8")


def _note(notebook: Path) -> Path:
    return NOTES / f"{notebook.parent.name}-{notebook.stem}"


def fingerprint(notebook: Path) -> str:
    """A digest of all that a page's outputs rest on: the page, its source, the library, Python."""
    digest = _library().copy()
    for path in (notebook, notebook.with_suffix(".py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def _library():
    digest = hashlib.sha256(repr(sys.version_info).encode())
    paths = [*(ROOT / "lib").rglob("*"), *(ROOT / "chapters").glob("*.toml")]
    paths += [ROOT / name for name in ("pyproject.toml", "requirements-dev.lock")]
    for path in sorted(paths):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest
