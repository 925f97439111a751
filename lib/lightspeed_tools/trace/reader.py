"""A profile of one rank in columns: what ran on its devices, the host's calls that started it, and
the few marks of the host that name a cause. Times are whole nanoseconds.

Columns of numbers, not objects: a file of half a gigabyte has two million events.
"""

from __future__ import annotations

import gc
import re
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lightspeed_tools.trace.links import link
from lightspeed_tools.trace.nsight import database_events, is_database
from lightspeed_tools.trace.operators import kind_of, packed
from lightspeed_tools.trace.pieces import TraceError, events, nanoseconds

COMPUTE, COMMUNICATION, COPY = range(3)
DEVICE = {"kernel": COMPUTE, "gpu_memcpy": COPY, "gpu_memset": COPY}
DEVICE |= {"memcpy": COPY, "memset": COPY, "concurrent_kernel": COMPUTE}
COMMUNICATES = re.compile(
    r"nccl|rccl|msccl|oneccl|multimem|cross_device_reduce|deep_?ep|\bep::(inter|intra)node|\bmori::"
    r"|pplx|nvshmem|rocshmem|symmetric_memory|userbuffers|quick_?reduce|moe_?a2a|a2a_(dispatch|combine)"
    r"|(one|two)_?shot_?(all_?)?reduce|(?<!sm)all_?reduce|reduce_?scatter|all_?gather|all_?to_?all",
    re.IGNORECASE,
)
# Inductor names a kernel by all operators that it fused, and none of its kernels communicates.
FUSED = re.compile(r"triton_[a-z]+_fused_")
# Calls of the runtime and what they are to the device. Others take time of the host, no more.
CALLS = (
    ("launch", re.compile(r"launch|memcpy|memset|graph_?exec", re.IGNORECASE)),
    ("synchronize", re.compile(r"(device|stream|event|ctx)synchronize$", re.IGNORECASE)),
    ("wait", re.compile(r"streamwaitevent", re.IGNORECASE)),
    ("allocate", re.compile(r"malloc|(cuda|hip|mem)free|memunmap|memcreate|memmap", re.IGNORECASE)),
)
LAUNCH, SYNCHRONIZE, WAIT, ALLOCATE, CAPTURES = range(5)
LATEST = 2.0**52  # µs: a century
LARGEST = 2**62  # of the numbers that a column holds
LOADER = re.compile(r"dataloader|data_?loading|get_batch|next_batch", re.IGNORECASE)
COMPILE = re.compile(
    r"compile_fx|_compile\.|dynamo_timed|\.codegen|async_compile|ptxas|nvrtc", re.IGNORECASE
)
LONG = 1000  # µs: what the host does for so long is kept, to say what it did in a gap
CAPTURE = re.compile(r"stream(begin|end)capture|graphinstantiate", re.IGNORECASE)
STEP = re.compile(
    r"ProfilerStep#?\d*$|^(iteration|train_?step|step)[_#\s:]*\d|^execute_(context|new)?_?\d|^step\[",
    re.IGNORECASE,
)
COLLECTIVE = re.compile(r"^c10d::|^nccl:|^record_param_comms$")
MARKS = (("collective", COLLECTIVE), ("step", STEP), ("loader", LOADER), ("compile", COMPILE))
NOTHING: dict[str, Any] = {}


@dataclass
class Columns:
    """Events of the device, or calls of the host; one row an event."""

    start: array = field(default_factory=lambda: array("q"))
    duration: array = field(default_factory=lambda: array("q"))
    name: array = field(default_factory=lambda: array("i"))
    kind: array = field(default_factory=lambda: array("b"))
    place: array = field(default_factory=lambda: array("i"))  # a lane, or a thread of the host
    correlation: array = field(default_factory=lambda: array("q"))  # -1: none
    outer: array = field(default_factory=lambda: array("q"))  # External id of the operator, or -1

    def __len__(self) -> int:
        return len(self.start)

    def add(self, start: int, duration: int, name: int, kind: int, place: int, args: dict) -> None:
        """Append one event."""
        self.start.append(start)
        self.duration.append(duration)
        self.name.append(name)
        self.kind.append(kind)
        self.place.append(place)
        correlation, outer = args.get("correlation"), args.get("External id")
        if type(correlation) is not int or abs(correlation) > LARGEST:
            correlation = _id(correlation)
        if type(outer) is not int or abs(outer) > LARGEST:
            outer = _id(args.get("external id") if outer is None else outer)
        self.correlation.append(correlation)
        self.outer.append(outer)


@dataclass
class Operators:
    """Operators of the host; one row each: start and duration (µs), name, thread, External id (-1:
    none), and what its shapes are in `Trace.arguments` (-1: not recorded, or without a law).
    """

    start: array = field(default_factory=lambda: array("d"))
    duration: array = field(default_factory=lambda: array("d"))
    name: array = field(default_factory=lambda: array("i"))
    place: array = field(default_factory=lambda: array("i"))
    outer: array = field(default_factory=lambda: array("q"))
    shape: array = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        return len(self.name)


class Mark(NamedTuple):
    """An annotation of the host: a step, with its name, or a cause."""

    kind: str
    start: int
    end: int
    thread: int
    name: str = ""


@dataclass(eq=False)
class Trace:
    """What one file has: `device`, `calls`, `operators` and `doings` (what the host did for a
    millisecond and more) in columns, `names` of all, `lanes` as (device, stream), `marks` of the
    host, `collectives` and `groups` (name and ranks of a process group, as written) by row of the
    device, and what the file says of itself. `operator` is the row of the operator that launched a
    row of the device (-1: not linked), `arguments` are (name, `operators.packed`).
    """

    path: str
    names: list[str] = field(default_factory=list)
    device: Columns = field(default_factory=Columns)
    calls: Columns = field(default_factory=Columns)
    lanes: list[tuple[int, str]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    operators: Operators = field(default_factory=Operators)
    doings: Columns = field(default_factory=Columns)
    operator: array = field(default_factory=lambda: array("i"))
    arguments: list[tuple[str, bytes]] = field(default_factory=list)
    shapes_recorded: bool = False
    hardware: str = ""  # the chip that the user states
    collectives: dict[int, tuple[str, float, int]] = field(default_factory=dict)
    groups: dict[int, tuple[str, str]] = field(default_factory=dict)
    collective_operators: dict[int, str] = field(default_factory=dict)  # by External id
    graph_rows: int = 0
    captures: int = 0  # of graphs
    left_out: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    seen: Counter = field(default_factory=Counter)

    @property
    def rank(self) -> int | None:
        """The rank named by the file, if any."""
        rank = _id(_mapping(self.about.get("distributedInfo")).get("rank"))
        return rank if rank >= 0 else None

    @property
    def world(self) -> int | None:
        """The ranks of the job, if the file states them."""
        world = _id(_mapping(self.about.get("distributedInfo")).get("world_size"))
        return world if world > 0 else None

    @property
    def devices(self) -> list[int]:
        """The numbers of the devices with activity."""
        used = {self.lanes[lane][0] for lane in set(self.device.place)}
        return sorted(used)

    def device_name(self, device: int) -> str:
        """Return a device's name, "" if neither the file nor the user gives one."""
        if self.hardware:
            return self.hardware
        devices = self.about.get("deviceProperties")
        entries = [p for p in devices if isinstance(p, dict)] if isinstance(devices, list) else []
        matches = [p for p in entries if p.get("id") == device] or entries
        return str(matches[0].get("name", "")) if matches else ""

    def arguments_of(self, row: int) -> tuple[str, bytes] | None:
        """Return what launched a device row, and its shapes; None if unknown."""
        operator = self.operator[row]
        shape = self.operators.shape[operator] if operator >= 0 else -1
        return self.arguments[shape] if shape >= 0 else None

    def steps(self) -> list[tuple[int, int]]:
        """The annotated steps of the host as (start, end), in order."""
        return [(mark.start, mark.end) for mark in self.step_marks()]

    def step_marks(self) -> list[Mark]:
        """The marks of steps, in order, without nested ones."""
        outer: list[Mark] = []
        for mark in sorted(
            (m for m in self.marks if m.kind == "step"), key=lambda m: (m.start, -m.end)
        ):
            if not outer or mark.end > outer[-1].end:
                outer.append(mark)
        return outer


def read(path: str | Path, heard: Callable[[int], None] = lambda done: None) -> Trace:
    """Read the `Trace` of a file. `heard` is called with the bytes read so far.

    Raises TraceError for a file of another format, without device events, or damaged (with the
    byte); OSError for one that can't be opened.
    """
    trace, places = Trace(str(path)), _Places()
    collecting = gc.isenabled()
    gc.disable()  # millions of small dicts, none in a circle
    try:
        source = database_events(path) if is_database(path) else events(path, heard)
        for piece in source:
            if isinstance(piece, dict):
                trace.about = piece
            else:
                _take(trace, piece, places)
    finally:
        if collecting:
            gc.enable()
    if not len(trace.device) and (trace.left_out or not len(trace.operators) or _foreign(trace)):
        raise TraceError(f"{path}: {_no_device(trace)}")
    _close(trace, places)
    return trace


def of_events(events: list[dict[str, Any]], about: dict[str, Any]) -> Trace:
    """Build the `Trace` of events in memory, such as a simulator's, with a file's metadata."""
    trace, places = Trace("made"), _Places()
    trace.about = about
    _take(trace, events, places)
    _close(trace, places)
    return trace


def _close(trace: Trace, places: _Places) -> None:
    """Once all events are in: the lists of names, and captures of graphs, which compile."""
    trace.lanes, trace.names = list(places.lanes), list(places.names)
    trace.arguments = list(places.shapes)
    link(trace)
    trace.captures = sum("begin" in name for _, _, _, name in places.captures)
    began: dict[int, int] = {}
    for thread, start, end, name in sorted(places.captures):
        if "begin" in name:
            began[thread] = start
        else:
            begin = began.pop(thread, start) if "end" in name else start
            trace.marks.append(Mark("compile", begin, end, thread))


@dataclass
class _Places:
    """Numbers for names, lanes and threads, and what a name of the host is."""

    names: dict[str, int] = field(default_factory=dict)
    lanes: dict[tuple[int, str], int] = field(default_factory=dict)
    threads: dict[tuple, int] = field(default_factory=dict)
    written: dict[tuple, int] = field(default_factory=dict)  # as numbers, for speed
    calls: dict[str, int | None] = field(default_factory=dict)
    marks: dict[str, str | None] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    operators: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    shapes: dict[tuple[str, bytes], int] = field(default_factory=dict)
    captures: list[tuple[int, int, int, str]] = field(default_factory=list)


def _take(trace: Trace, piece: list, places: _Places) -> None:
    """Add a piece's events to the trace."""
    counts, names, marks, calls = trace.seen, places.names, places.marks, places.calls
    for event in piece:
        if type(event) is not dict:
            continue
        phase = event.get("ph")
        if phase != "X":
            if phase == "M" and event.get("name") == "process_name":
                _process(counts, event)
            elif phase == "B":
                counts["in pairs"] += 1
            continue
        category, name = event.get("cat"), event.get("name")
        if type(name) is not str:
            name = event["name"] = str(name)
        # Most events are operators and calls that name no cause; what they are is known by name.
        if category == "cpu_op":
            _operator(trace, event, places)
            if marks.get(name, "") is not None:
                _mark(trace, event, places)
            continue
        if category == "cuda_runtime":
            if calls.get(name, 0) is not None:
                _call(trace, event, places)
            continue
        if category == "python_function" or category == "user_annotation":
            duration = event.get("dur")
            if type(duration) is str:  # "1000.125" and more
                if duration.find(".") > 3:
                    _doing(trace, event, places)
            elif duration and duration >= LONG:
                _doing(trace, event, places)
            if category == "user_annotation" and marks.get(name, "") is not None:
                _mark(trace, event, places)
            continue
        if not isinstance(category, str):
            counts["without category"] += category is None
            continue
        kind = DEVICE.get(category)
        if kind is None:
            lower = category.lower()
            kind = DEVICE.get(lower)
            if kind is None:
                if lower in ("operator", "cpu_op"):
                    _operator(trace, event, places)
                    _mark(trace, event, places)
                elif lower.endswith(("runtime", "_driver")):
                    _call(trace, event, places)
                else:
                    counts[category] += 1
                continue
        start, duration = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        args = event.get("args")
        if not isinstance(args, dict):
            args = {}
        if start is None or duration is None or duration < 0 or abs(start) + duration > LARGEST:
            trace.left_out += 1
            continue
        number = names.setdefault(name, len(names))
        if kind == COMPUTE:
            memo = places.kinds.get(name)
            if memo is None:
                sends = COMMUNICATES.search(name) and not FUSED.match(name)
                memo = COMMUNICATION if sends else COMPUTE
                places.kinds[name] = memo
            kind = memo
            if kind == COMMUNICATION and "Collective name" in args:
                trace.collectives[len(trace.device)] = _collective(args)
                label = args.get("Process Group Name"), args.get("Process Group Ranks")
                trace.groups[len(trace.device)] = (str(label[0]), str(label[1]))
        device = args.get("device", event.get("pid"))
        lane = (_id(device, 0), str(args.get("stream", event.get("tid", ""))))
        trace.graph_rows += bool(args.get("graph node id"))
        place = places.lanes.setdefault(lane, len(places.lanes))
        trace.device.add(start, duration, number, kind, place, args)


def _operator(trace: Trace, event: dict, places: _Places) -> None:
    """An operator of the host, with its shapes where they have a law."""
    name, operators = event["name"], trace.operators
    entry = places.operators.get(name)
    if entry is None:
        number = places.names.setdefault(name, len(places.names))
        entry = places.operators[name] = number, kind_of(name)
    try:
        start, duration = float(event["ts"]), float(event["dur"])
        where = places.written.get((event.get("pid"), event.get("tid")))
    except (KeyError, TypeError, ValueError):
        return
    if not (0 <= duration < LATEST and -LATEST < start < LATEST):
        return
    if duration >= LONG:
        _doing(trace, event, places)
    args = event.get("args")
    if type(args) is not dict:
        args = NOTHING
    outer, shape = args.get("External id"), -1
    if outer is None:
        outer = args.get("external id")
    if "Input Dims" in args:
        trace.shapes_recorded = True
        if entry[1] is not None:
            key = name, packed(args, entry[1])
            shape = places.shapes.setdefault(key, len(places.shapes))
    operators.start.append(start)
    operators.duration.append(duration)
    operators.name.append(entry[0])
    operators.place.append(_thread(event, places) if where is None else where)
    operators.outer.append(outer if type(outer) is int and abs(outer) < LARGEST else _id(outer))
    operators.shape.append(shape)


def _doing(trace: Trace, event: dict, places: _Places) -> None:
    """Something that the host did for long."""
    start, duration = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
    if start is None or duration is None or duration < 1000 * LONG:
        return
    if abs(start) + duration <= LARGEST:
        number = places.names.setdefault(event["name"], len(places.names))
        trace.doings.add(start, duration, number, 0, _thread(event, places), NOTHING)


def _call(trace: Trace, event: dict, places: _Places) -> None:
    """A call of the runtime, if it starts, awaits or allocates something."""
    name = event["name"]
    if name not in places.calls:
        indices = [at for at, (_, words) in enumerate(CALLS) if words.search(name)]
        places.calls[name] = CAPTURES if CAPTURE.search(name) else indices[0] if indices else None
    kind = places.calls[name]
    start, duration = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
    if kind is None or start is None or duration is None or duration < 0:
        return
    if abs(start) + duration > LARGEST:
        return
    args = event.get("args")
    place = _thread(event, places)
    if kind == CAPTURES:
        places.captures.append((place, start, start + duration, name.lower()))
        return
    if duration >= 1000 * LONG:
        _doing(trace, event, places)
    number = places.names.setdefault(name, len(places.names))
    trace.calls.add(start, duration, number, kind, place, args if isinstance(args, dict) else {})


def _thread(event: dict, places: _Places) -> int:
    ids = event.get("pid"), event.get("tid")
    thread = places.written.get(ids) if type(ids[0]) is type(ids[1]) is int else None
    if thread is None:
        key = (str(ids[0]), str(ids[1]))
        thread = places.threads.setdefault(key, len(places.threads))
        if type(ids[0]) is type(ids[1]) is int:
            places.written[ids] = thread
    return thread


def _mark(trace: Trace, event: dict, places: _Places) -> None:
    """An annotation that names a step, a collective or another cause."""
    name = event["name"]
    if name not in places.marks:
        places.marks[name] = next((kind for kind, words in MARKS if words.search(name)), None)
    kind = places.marks[name]
    if kind is None:
        return
    args = event.get("args")
    if (
        kind == "collective"
        and isinstance(args, dict)
        and (outer := _id(args.get("External id"))) > 0
    ):
        trace.collective_operators[outer] = name
    start, duration = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
    if start is not None and duration is not None and duration >= 0:
        thread = _thread(event, places)
        trace.marks.append(
            Mark(kind, start, start + duration, thread, name * (kind in ("step", "collective")))
        )


def _collective(args: dict) -> tuple[str, float, int]:
    """Name, bytes of the whole buffer (0: unknown) and ranks of a collective."""
    name = re.sub(r"[^a-z]", "", str(args.get("Collective name", "")).lower())
    wide = {"bfloat": 2, "half": 2, "float": 4, "double": 8, "int": 4, "long": 8, "byte": 1}
    wide |= {"bfloat16": 2, "float16": 2, "char": 1, "int8": 1, "uint8": 1, "short": 2}
    each = wide.get(str(args.get("dtype", "")).lower().removeprefix("c10::"), 0)
    counts = [args.get(f"{way} msg nelems") for way in ("In", "Out")]
    most = max((n for n in counts if isinstance(n, int)), default=0)
    group = args.get("Group size")
    return name, float(each * most), group if isinstance(group, int) else 0


def _process(counts: Counter, event: dict) -> None:
    args = event.get("args")
    name = str(args.get("name", "")) if isinstance(args, dict) else ""
    counts["of JAX"] += name.startswith(("/device:TPU", "/device:GPU", "/host:CPU"))


def _foreign(trace: Trace) -> Counter:
    """Categories of a device of another kind, by how many events they have."""
    host = ("Trace", "ac2g", "fwdbwd", "async_gpu", "overhead")
    return Counter({k: n for k, n in trace.seen.items() if " " not in k and k not in host})


def _no_device(trace: Trace) -> str:
    """Why a file without events of a device can't be judged."""
    others = _foreign(trace)
    if trace.left_out:
        return f"none of its {trace.left_out:,} device events has a start and a duration"
    if trace.seen["of JAX"]:
        return (
            "this is a trace of JAX's profiler (an XPlane turned into JSON), which does not say"
            " what the host launched; a JAX job under nsys is read: nsys export --type sqlite"
        )
    if trace.seen["in pairs"]:
        return (
            f"no complete events of a device; it has {trace.seen['in pairs']:,} that begin and end"
            " apart (B and E), which PyTorch's profiler does not write for a device"
        )
    if isinstance(trace.about.get("otherData"), dict):
        return "no device events of PyTorch's profiler; rocprof and others write JSON like this"
    if others:
        categories = ", ".join(f"{n:,} of '{k}'" for k, n in others.most_common(3))
        return f"no device events (kernel, gpu_memcpy, gpu_memset); it has {categories}"
    return (
        "no device events: the profile is of the host alone. Ask the profiler for"
        " ProfilerActivity.CUDA, and see that a GPU was used while it ran"
    )


def _mapping(value: Any) -> dict:
    return value if isinstance(value, dict) else {}


def _id(value: Any, missing: int = -1) -> int:
    """A number of the file as an int that fits a column."""
    if isinstance(value, str) and value.strip("-").isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST:
        return missing
    return value
