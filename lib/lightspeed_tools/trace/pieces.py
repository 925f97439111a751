"""The events of a trace file, piece by piece, so that a file of any size fits a small memory.

Kineto writes one JSON object with a list `traceEvents`; other tools write the list alone. A piece
of the text ends where one event ends and the next begins. That place may lie inside a string or a
list of an event's arguments: such a piece is no JSON by itself, and is joined to the next.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

try:
    import msgspec
except ModuleNotFoundError:
    msgspec = None

PIECE = 1 << 19  # more does not fit the processor's caches, and is slower
LARGEST_HEAD = 64 << 20
DEEPEST = 5  # objects round the list of events
BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
LOOSE_END = re.compile(r"(\})\s*,\s*\](?=\s*[,}\]]|\s*$)")  # a comma after the last event
ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
# What a file is that is none of ours, by its first bytes or by the end of its name.
MAGIC = {
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it first",
}
ENDINGS = {
    ".nsys-rep": "a report of Nsight Systems; its export is read: nsys export --type sqlite FILE",
    ".qdrep": "a report of Nsight Systems; its export is read: nsys export --type sqlite FILE",
    ".ncu-rep": "a report of Nsight Compute, which times kernels one by one",
    ".xplane.pb": "an XPlane of JAX's or TensorFlow's profiler",
    ".pftrace": "a binary trace of Perfetto or rocprofv3",
    ".perfetto-trace": "a binary trace of Perfetto",
    ".et": "a Chakra execution trace",
    ".csv": "a table, as rocprof and nsys stats write",
}
EXPECTED = (
    "expected Kineto's JSON, as torch.profiler's export_chrome_trace writes, or what nsys export"
    " --type sqlite writes"
)


class TraceError(ValueError):
    """A file that is not a PyTorch profiler trace, or is damaged; the message names the file."""


def events(path: str | Path, heard: Callable[[int], None] = lambda done: None) -> Iterator[Any]:
    """Yield lists of events, and finally the file's metadata (a dict).

    `heard` is called with the bytes read so far. Raises TraceError for another format, by its name,
    and for a truncated or damaged file, with the byte of the text; OSError for a file that can't be
    opened.
    """
    refuse_by_name(path)
    with open(path, "rb") as raw:
        start = raw.read(16)
        raw.seek(0)
        for magic, what in MAGIC.items():
            if start.startswith(magic):
                raise TraceError(f"{path}: this is {what}; {EXPECTED}")
        file = gzip.GzipFile(fileobj=raw) if start.startswith(b"\x1f\x8b") else raw
        try:
            yield from _events(path, lambda: _read(file, raw, heard))
        except EOFError:
            raise TraceError(
                f"{path}: the file is cut off: its gzip stream ends at byte {raw.tell():,}"
            ) from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise TraceError(f"{path}: damaged near byte {raw.tell():,}: {error}") from None


def refuse_by_name(path: str | Path) -> None:
    """Raise TraceError for a file whose name says that another profiler wrote it."""
    name = str(path).lower().removesuffix(".gz")
    for ending, what in ENDINGS.items():
        if name.endswith(ending):
            raise TraceError(f"{path}: this is {what}; {EXPECTED}")


def _read(file: Any, raw: Any, heard: Callable[[int], None]) -> bytes:
    block: bytes = file.read(PIECE)
    heard(raw.tell())
    return block


def _events(path: str | Path, read_block: Callable[[], bytes]) -> Iterator[Any]:
    text = read_block()
    if text.startswith(b"\xef\xbb\xbf"):
        text = text[3:]
    if not text.strip():
        raise TraceError(f"{path}: the file is empty; {EXPECTED}")
    if text.lstrip()[:1] not in b"{[":
        raise TraceError(f"{path}: not JSON: it begins with {text[:12]!r}; {EXPECTED}")
    head: dict[str, Any] = {}
    depth = 1
    is_list = text.lstrip()[:1] == b"["
    if is_list:
        begin = text.index(b"[") + 1
    else:
        while not (match := EVENTS.search(text)) and len(text) < LARGEST_HEAD:
            block = read_block()
            text += block
            if not block:
                break
        if not match:
            raise TraceError(f"{path}: {_stranger(text)}; {EXPECTED}")
        begin, before = match.end(), text[: match.start()].rstrip().rstrip(b",")
        depth, head = _head(path, before)
    at, text = begin, text[begin:]
    decode = _decoder(text)
    while True:
        block, cut = read_block(), _last_between(text)
        listing = decode(b"[" + text[:cut].rstrip().rstrip(b",") + b"]") if cut else None
        if listing is not None:
            yield listing
            at, text = at + cut, text[cut:]
        elif ended := _last(text, decode):
            listing, rest = ended
            yield listing
            end = at + len(text)
            yield head | ({} if is_list else _trailer(path, rest + block, read_block, depth, end))
            return
        elif not block:
            # Chrome's format lets the last bracket of a bare list be missing.
            whole = decode(b"[" + text.strip().rstrip(b",") + b"]") if is_list else None
            if whole is None:
                raise _cut_off(path, text, at)
            yield whole
            yield head
            return
        elif cut:
            _refuse_damage(path, text[:cut], at)
        text += block


def _last_between(text: bytes) -> int:
    """Where the last event of a piece begins, or 0; the search runs over the end of it first."""
    for start in (max(0, len(text) - (1 << 12)), max(0, len(text) - (1 << 16)), 0):
        end = 0
        for match in BETWEEN.finditer(text, start):
            end = match.end()
        if end:
            return end
    return 0


def _decoder(text: bytes) -> Callable[[bytes], list[Any] | None]:
    """A function from the text of a list to the list, or to None where that is no JSON.

    Times in microseconds since 1970 have more digits than a float: in a file that has such, numbers
    with a point stay text.
    """
    exact = bool(re.search(rb'"ts"\s*:\s*"?\d{13,}\.\d', text[: 1 << 20]))
    plain = json.JSONDecoder(strict=False, parse_float=str if exact else None)

    def decode(piece: bytes) -> list[Any] | None:
        if msgspec and not exact:
            try:
                return msgspec.json.decode(piece)
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass
        words = piece.decode("utf-8", "replace")
        for attempt in (words, None):
            try:
                return plain.decode(ESCAPE.sub(_escaped, words) if attempt is None else attempt)
            except json.JSONDecodeError as error:
                if "escape" not in error.msg:  # a Windows path in a name: C:\Users
                    return None
            except RecursionError:
                return None
        return None

    return decode


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[1] else r"\\"


def _last(text: bytes, decode: Callable[[bytes], Any]) -> tuple[list[Any], bytes] | None:
    """The events up to the bracket that closes their list, and the text after it."""
    words = LOOSE_END.sub(r"\1]", "[" + text.decode("utf-8", "replace"), count=1)
    for attempt in (words, ESCAPE.sub(_escaped, words)):
        try:
            _, end = json.JSONDecoder(strict=False).raw_decode(attempt)
        except (json.JSONDecodeError, RecursionError):
            continue
        return decode(attempt[:end].encode()), attempt[end:].encode()
    return None


def _head(path: str | Path, before: bytes) -> tuple[int, dict[str, Any]]:
    """How many objects are open before the events, and what the file says of itself there."""
    for depth in range(1, DEEPEST):
        try:
            head = json.loads(before + b"}" * depth, strict=False)
        except ValueError:
            continue
        inner = head
        for _ in range(depth - 1):
            inner = inner.popitem()[1]
            head |= inner
        return depth, head
    return 1, _whole(path, before + b"}", 0)


def _trailer(
    path: str | Path, rest: bytes, read_block: Callable[[], bytes], depth: int, at: int
) -> dict[str, Any]:
    while len(rest) < LARGEST_HEAD and (block := read_block()):
        rest, at = rest + block, at + len(block)
    rest = rest.strip().lstrip(b",")
    if not rest.endswith(b"}"):
        raise TraceError(
            f"{path}: the file is cut off: what follows its events has no end at byte {at:,}"
        )
    data = _whole(path, b'{"": ' * (depth - 1) + b"{" + rest, 0)
    for _ in range(depth - 1):
        data |= data.pop("")
    return data


def _whole(path: str | Path, text: bytes, at: int) -> dict[str, Any]:
    words = text.decode("utf-8", "replace")
    for attempt in (words, ESCAPE.sub(_escaped, words)):
        try:
            data = json.JSONDecoder(strict=False).decode(attempt)
            return data if isinstance(data, dict) else {}
        except json.JSONDecodeError as error:
            problem = error
    raise TraceError(f"{path}: damaged at byte {at + problem.pos:,}: {problem.msg}")


def _refuse_damage(path: str | Path, piece: bytes, at: int) -> None:
    """Raise TraceError if a piece is no JSON for another reason than where it was cut."""
    words = "[" + piece.decode("utf-8", "replace").rstrip().rstrip(",") + "]"
    try:
        json.JSONDecoder(strict=False).decode(words)
    except json.JSONDecodeError as error:
        if len(words) - error.pos > (1 << 20) or len(words) > LARGEST_HEAD:
            byte = at + len(words[: error.pos].encode("utf-8", "replace")) - 1
            raise TraceError(f"{path}: damaged at byte {byte:,}: {error.msg}") from None


def _cut_off(path: str | Path, text: bytes, at: int) -> TraceError:
    """The error for a list of events without an end, or with something else in it."""
    words = "[" + text.decode("utf-8", "replace")
    try:
        json.JSONDecoder(strict=False).decode(words)
    except json.JSONDecodeError as error:
        if len(words) - error.pos > (1 << 12):
            byte = at + len(words[: error.pos].encode("utf-8", "replace")) - 1
            return TraceError(f"{path}: damaged at byte {byte:,}: {error.msg}")
    except RecursionError:
        pass
    return TraceError(
        f"{path}: the file is cut off: its list of events has no end at byte {at + len(text):,}"
    )


def _stranger(text: bytes) -> str:
    """What a JSON file without events is."""
    start = text[: 1 << 20]
    if b'"schema"' in start and b'"nodes"' in start:
        return "this is an execution trace (Chakra's input), which has no times of a device"
    if b"rocprofiler-sdk" in start:
        return "this is JSON of rocprofv3"
    if b'"planes"' in start:
        return "this is an XPlane of JAX's or TensorFlow's profiler"
    if b'"resourceSpans"' in start:
        return "this is a trace of OpenTelemetry"
    if text[-2:].strip()[-1:] not in (b"}", b"]"):
        return f"no list traceEvents in it, and its text is cut off at byte {len(text):,}"
    return "there is no list traceEvents in this JSON"


def nanoseconds(value: Any) -> int | None:
    """Convert a printed time in microseconds to whole nanoseconds; None if not a number.

    >>> nanoseconds(4458676522690.655), nanoseconds("1712195495519866.813"), nanoseconds(7)
    (4458676522690655, 1712195495519866813, 7000)
    """
    if isinstance(value, float):
        try:
            whole = int(value)
        except (OverflowError, ValueError):  # infinite, or no number
            return None
        return whole * 1000 + round((value - whole) * 1000)
    if isinstance(value, int):
        return None if isinstance(value, bool) else value * 1000
    if not isinstance(value, str):
        return None
    whole_text, _, fraction = value.partition(".")
    if len(fraction) <= 3 and whole_text.isdigit() and (fraction or "0").isdigit():
        return int(whole_text) * 1000 + int(f"{fraction:0<3}")
    try:
        return round(Decimal(value) * 1000)
    except (InvalidOperation, ValueError, OverflowError):
        return None
