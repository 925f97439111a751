"""The files of a folder that `tensorboard_trace_handler` wrote: one a worker and recording."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lightspeed_tools.trace.pieces import TraceError

NAMED = re.compile(r"(?P<worker>.+?)(?:\.(?P<time>\d+))?\.pt\.trace\.json(?:\.gz)?$")
ENDINGS = (".json", ".json.gz", ".sqlite")


def trace_files(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the files for paths that may be folders, and remarks on them: only the latest
    recording of each worker is used.

    Raises TraceError for a folder without a profile.
    """
    files, notes = [], []
    for path in paths:
        if not Path(path).is_dir():
            files.append(path)
            continue
        matches = [(NAMED.match(file.name), file) for file in sorted(Path(path).iterdir())]
        latest: dict[str, tuple[int, Path]] = {}
        for match, file in matches:
            if match:
                entry = int(match["time"] or 0), file
                latest[match["worker"]] = max(latest.get(match["worker"], entry), entry)
        files_here = [file for _, file in latest.values()]
        if not files_here:  # named by hand
            files_here = [
                file for _, file in matches if file.name.endswith(ENDINGS) and file.is_file()
            ]
        if not files_here:
            raise TraceError(
                f"{path}: no profile in this folder; expected files .pt.trace.json of"
                " tensorboard_trace_handler"
            )
        more = sum(match is not None for match, _ in matches) - len(latest)
        if more > 0:
            notes.append(f"{path}: {more} earlier recordings of the same workers are left out")
        files += map(str, files_here)
    return files, notes
