"""A record as hardware: what was measured on a machine, in the shape of an entry of the catalog.

So the laws and explorers that take an accelerator take "this machine" too. Its peaks are the
fastest matrix product of each type and its bandwidth the fastest stream through memory: what was
reached, not what is possible.
"""

import functools
from datetime import date, datetime
from types import MappingProxyType

from lightspeed.catalog import Entry, Number, Source, accelerator, entries
from lightspeed.errors import one_of
from lightspeed_show import si
from lightspeed_tools.measure import reached
from lightspeed_tools.measure.records import record

PEAK = "roofline.gemm"
# for a record that has no bandwidth over the working set
STREAMS = ("host.triad_bandwidth", "host.copy_bandwidth")
OWN, SHIPPED = "measured:own", "measured:"


def as_accelerator(shown, key=OWN, name=""):
    """The catalog `Entry` of a record: `fp32`, `fp64`, ... (FLOP/s), `hbm_bandwidth` (byte/s, of
    main memory), and where they are known `hbm_capacity` (byte), `memory_latency` (s) and
    `core_count`.

    What the record lacks the entry lacks too. Each Number's `.note` says how it was measured and
    whether to trust it.
    """
    peaks = record.all_of(shown, PEAK)
    streams = [q for s in STREAMS for q in record.all_of(shown, s)]
    far = record.all_of(shown, "host.latency")
    roof = reached.roof(shown)
    found = {}
    for dtype in roof.peaks:
        best = max((q for q in peaks if q.parameters["dtype"] == dtype), key=lambda q: q.value)
        found[dtype] = best.value, best.unit, f"{best.label}: {best.verdict}"
    if roof.bandwidths:
        found["hbm_bandwidth"] = (
            roof.memory,
            "byte/s",
            "the last level of bandwidth over the working set",
        )
    elif streams:
        best = max(streams, key=lambda q: q.value)
        found["hbm_bandwidth"] = best.value, best.unit, f"{best.label}: {best.verdict}"
    if far:
        last = max(far, key=lambda q: q.parameters["size"])
        found["memory_latency"] = last.value, last.unit, f"{last.label}: {last.verdict}"
    machine = shown["machine"]
    memory = min(filter(None, (machine.get("memory"), machine.get("memory_limit"))), default=None)
    for field, value, unit in (
        ("hbm_capacity", memory, "byte"),
        ("core_count", machine.get("usable_cores"), ""),
    ):
        if value:
            found[field] = value, unit, "as the system says"
    numbers = {field: _number(f"{key}.{field}", *told, shown) for field, told in found.items()}
    about = {"kind": "cpu", "year": datetime.fromisoformat(shown["when"]).year}
    return Entry(
        key,
        name or f"{shown['name']} (measured)",
        MappingProxyType(about),
        MappingProxyType(numbers),
    )


def hardware(key):
    """The catalog's accelerator, or the measured machine: "h100_sxm", "measured:own"."""
    if not key.startswith(SHIPPED):
        return accelerator(key)
    known = measured()
    return known[one_of("hardware", "key", key, (*known, *entries("accelerators")))]


def measured():
    """Return every measured machine, key -> `Entry`: this one as last saved, and the course's."""
    folder = record.folder()
    try:
        stamp = folder.stat().st_mtime_ns
    except OSError:
        stamp = None
    own = _own(folder, stamp)
    return ({OWN: own} if own else {}) | _shipped()


def paths():
    """Return measured machines' data paths: key -> (name, latency in s, bandwidth in byte/s)."""
    rows = {}
    for key, entry in measured().items():
        if "memory_latency" in entry and "hbm_bandwidth" in entry:
            rows[f"{key}.memory"] = (
                f"main memory of {entry.name}",
                entry.memory_latency,
                entry.hbm_bandwidth,
            )
    return rows


@functools.lru_cache(maxsize=4)
def _own(folder, stamp):
    # The folder's time is in the key so that a new record is seen; a slider must not read files at
    # every step.
    latest = record.latest(PEAK) or record.latest()
    return as_accelerator(latest, OWN, f"this machine ({latest['name']})") if latest else None


@functools.cache
def _shipped():
    return {
        f"{SHIPPED}{name}": as_accelerator(machine, f"{SHIPPED}{name}")
        for name, machine in record.shipped().items()
    }


def _number(key, value, unit, note, machine):
    day = date.fromisoformat(machine["when"][:10])
    source = Source(
        "measured", f"measured on {machine['name']}", publisher="lightspeed measure", date=str(day)
    )
    entry = {
        "printed": si(float(value), unit),
        "note": note,
        "density": "dense",
        "scope": "machine",
    }
    return Number(value, unit, key=key, sources=(source,), _read=day, **entry)
