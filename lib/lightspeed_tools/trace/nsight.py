"""What `nsys export --type sqlite` writes, as events of Kineto's form: kernels, copies, calls of
the runtime and NVTX ranges. Times there are nanoseconds since the recording began.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightspeed_tools.trace.pieces import EXPECTED, TraceError

if TYPE_CHECKING:
    import sqlite3

MAGIC = b"SQLite format 3\0"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = {"CUPTI_ACTIVITY_KIND_MEMCPY": "gpu_memcpy", "CUPTI_ACTIVITY_KIND_MEMSET": "gpu_memset"}
COPY_NAMES = {1: "Memcpy HtoD", 2: "Memcpy DtoH", 8: "Memcpy DtoD", 10: "Memcpy PtoP"}
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"  # one row a launch, by default
PIECE = 20_000  # events


def is_database(path: str | Path) -> bool:
    """Whether a file is an SQLite database."""
    with open(path, "rb") as file:
        return file.read(16) == MAGIC


def database_events(path: str | Path) -> Iterator[Any]:
    """Yield lists of events, and finally the file's metadata, as `pieces.events` does.

    Raises TraceError for a database of another tool, or without kernels.
    """
    import sqlite3  # a page of the web edition has none

    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        try:
            yield from _events(path, base)
        except sqlite3.DatabaseError as error:
            raise TraceError(f"{path}: the SQLite database can't be read: {error}") from None


def _events(path: str | Path, base: sqlite3.Connection) -> Iterator[Any]:
    tables = {row[0] for row in base.execute("SELECT name FROM sqlite_master")}
    if any(name.startswith("rocpd_") for name in tables):
        raise TraceError(f"{path}: this is a database of rocprofv3 (rocpd); {EXPECTED}")
    if KERNELS not in tables or "StringIds" not in tables:
        raise TraceError(
            f"{path}: this SQLite database has no kernels of Nsight Systems; record them with"
            " nsys profile --trace=cuda,nvtx"
        )
    parts = [_kernels(base), _calls(base, tables), _ranges(base, tables)]
    parts += [_copies(base, table) for table in COPIES if table in tables]
    parts += [_graphs(base)] if GRAPHS in tables else []
    for part in parts:
        piece: list[dict[str, Any]] = []
        for event in part:
            piece.append(event)
            if len(piece) == PIECE:
                yield piece
                piece = []
        yield piece
    devices = []
    if "TARGET_INFO_GPU" in tables:
        rows = base.execute("SELECT id, name FROM TARGET_INFO_GPU")
        devices = [{"id": number, "name": name} for number, name in rows]
    yield {"deviceProperties": devices}


def _event(category: str, name: Any, start: int, end: int, where: tuple, **args: Any) -> dict:
    # text keeps every digit: a float of microseconds would round nanoseconds
    ts, dur = (f"{time // 1000}.{time % 1000:03}" for time in (start, end - start))
    return {"ph": "X", "cat": category, "name": str(name), "pid": where[0], "tid": where[1],
            "ts": ts, "dur": dur, "args": args}  # fmt: skip


def _kernels(base: sqlite3.Connection) -> Iterator[dict]:
    columns = {row[1] for row in base.execute(f"PRAGMA table_info({KERNELS})")}
    name = "demangledName" if "demangledName" in columns else "shortName"
    node = "graphNodeId" if "graphNodeId" in columns else "NULL"
    rows = base.execute(
        f"SELECT start, end, deviceId, streamId, correlationId, value, {node} FROM {KERNELS}"
        f" JOIN StringIds ON StringIds.id = {name} ORDER BY start"
    )
    for start, end, device, stream, correlation, value, graph in rows:
        ids = {"device": device, "stream": stream, "correlation": correlation}
        ids |= {"graph node id": graph} if graph else {}
        yield _event("kernel", value, start, end, (device, stream), **ids)


def _graphs(base: sqlite3.Connection) -> Iterator[dict]:
    """CUDA graphs that were recorded whole: the device is busy, with what the file does not say."""
    rows = base.execute(
        f"SELECT start, end, deviceId, streamId, correlationId, graphId FROM {GRAPHS}"
    )
    for start, end, device, stream, correlation, graph in rows:
        yield _event("kernel", f"CUDA graph {graph}, recorded whole", start, end, (device, stream),
                     device=device, stream=stream, correlation=correlation,
                     **{"graph node id": graph})  # fmt: skip


def _copies(base: sqlite3.Connection, table: str) -> Iterator[dict]:
    kind = "copyKind" if COPIES[table] == "gpu_memcpy" else "NULL"
    rows = base.execute(
        f"SELECT start, end, deviceId, streamId, correlationId, {kind} FROM {table}"
    )
    for start, end, device, stream, correlation, way in rows:
        name = COPY_NAMES.get(way, "Memcpy") if kind == "copyKind" else "Memset"
        yield _event(COPIES[table], name, start, end, (device, stream), device=device,
                     stream=stream, correlation=correlation)  # fmt: skip


def _calls(base: sqlite3.Connection, tables: set[str]) -> Iterator[dict]:
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    if table not in tables:
        return
    rows = base.execute(
        f"SELECT start, end, globalTid, correlationId, value FROM {table}"
        " JOIN StringIds ON StringIds.id = nameId"
    )
    for start, end, thread, correlation, value in rows:
        name = re.sub(r"_v\d+$|_ptsz$", "", value)
        yield _event("cuda_runtime", name, start, end, (0, thread), correlation=correlation)


def _ranges(base: sqlite3.Connection, tables: set[str]) -> Iterator[dict]:
    """NVTX ranges that have an end, as annotations."""
    if "NVTX_EVENTS" not in tables:
        return
    rows = base.execute(
        "SELECT start, end, globalTid, COALESCE(text, value) FROM NVTX_EVENTS"
        " LEFT JOIN StringIds ON StringIds.id = textId WHERE end IS NOT NULL"
    )
    for start, end, thread, text in rows:
        if text:
            yield _event("user_annotation", text, start, end, (0, thread))
