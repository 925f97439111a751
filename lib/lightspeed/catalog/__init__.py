"""Sourced constants: every number carries its value as printed, its unit, source and date.

    >>> from lightspeed.catalog import accelerator
    >>> h100 = accelerator("h100_sxm")
    >>> h100.hbm_bandwidth
    3350000000000.0
    >>> h100.hbm_bandwidth.printed
    '3.35 TB/s'

A `Number` is a float in the SI unit of `.unit` (byte, FLOP/s, s, W, ...), so it goes straight
into a law. Peaks are dense and per chip, link rates per direction, unless the name says
otherwise. A number derived from others has a `.formula` and is computed here, never typed.
The data are the TOML files beside this one; their format is described in `number`.
"""

from __future__ import annotations

import datetime
import functools
import re
import tomllib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.resources import files
from types import MappingProxyType

from lightspeed.law import one_of

# Unit as sources print it -> (factor, SI unit). A test holds each row to pint.
UNITS = {
    "": (1, ""),
    "1": (1, ""),
    "%": (0.01, ""),
    "cycles": (1, ""),
    "s": (1, "s"),
    "ms": (1e-3, "s"),
    "us": (1e-6, "s"),
    "ns": (1e-9, "s"),
    "ps": (1e-12, "s"),
    "h": (3600, "s"),
    "day": (86400, "s"),
    "Hz": (1, "Hz"),
    "MHz": (1e6, "Hz"),
    "GHz": (1e9, "Hz"),
    "m": (1, "m"),
    "km": (1e3, "m"),
    "m/s": (1, "m/s"),
    "km/s": (1e3, "m/s"),
    "km/h": (1e3 / 3600, "m/s"),
    "W": (1, "W"),
    "kW": (1e3, "W"),
    "MW": (1e6, "W"),
    "J": (1, "J"),
    "nJ": (1e-9, "J"),
    "pJ": (1e-12, "J"),
    "fJ": (1e-15, "J"),
    "kWh": (3.6e6, "J"),
    "bit": (0.125, "byte"),
    "byte": (1, "byte"),
    **{f"{p}B": (10 ** (3 * n), "byte") for n, p in enumerate(("K", "M", "G", "T"), 1)},
    **{f"{p}iB": (2 ** (10 * n), "byte") for n, p in enumerate(("K", "M", "G", "T"), 1)},
    "B/s": (1, "byte/s"),
    "B/cycle": (1, "byte"),
    **{f"{p}B/s": (10 ** (3 * n), "byte/s") for n, p in enumerate(("K", "M", "G", "T", "P"), 1)},
    **{f"{p}iB/s": (2 ** (10 * n), "byte/s") for n, p in enumerate(("K", "M", "G", "T"), 1)},
    **{f"{p}bit/s": (10 ** (3 * n) / 8, "byte/s") for n, p in enumerate(("M", "G", "T"), 2)},
    **{f"{p}T/s": (10 ** (3 * n), "1/s") for n, p in enumerate(("M", "G"), 2)},
    **{f"{p}FLOPS": (10 ** (3 * n), "FLOP/s") for n, p in enumerate(("G", "T", "P", "E"), 3)},
    **{f"{p}OPS": (10 ** (3 * n), "FLOP/s") for n, p in enumerate(("G", "T", "P"), 3)},
    "FLOP": (1, "FLOP"),
    "FLOP/s": (1, "FLOP/s"),
    "FLOP/byte": (1, "FLOP/byte"),
    "USD": (1, "dollar"),
    "USD/h": (1 / 3600, "dollar/s"),
    "USD/kWh": (1 / 3.6e6, "dollar/J"),
    "kg/kWh": (1 / 3.6e6, "kg/J"),
}


@dataclass(frozen=True)
class Source:
    """Who says so: author, title, publisher, date, address, when it was read and how."""

    key: str
    title: str
    author: str = ""
    publisher: str = ""
    date: str = ""
    address: str = ""
    read: datetime.date | None = None
    how: str = ""

    def __str__(self):
        parts = (self.author, f'"{self.title}"', self.publisher, self.date, self.address)
        return ", ".join(p for p in parts if p)


class Number(float):
    """A float in SI with its provenance; arithmetic on it gives plain floats."""

    __slots__ = (
        "_read", "density", "direction", "formula", "key", "note", "others", "precision", "printed", "rule", "scope", "sources", "unit",
    )  # fmt: skip

    def __setattr__(self, name, value):
        if hasattr(self, "unit"):
            raise AttributeError(f"{self.key} is a constant of the catalog")
        super().__setattr__(name, value)

    @property
    def source(self):
        """The source of this number; of the first number it is derived from, if derived."""
        return self.sources[0]

    @property
    def read(self):
        """The date on which the source was read."""
        return self._read or self.source.read

    @property
    def quantity(self):
        """The same as a pint quantity."""
        from lightspeed.units import Q

        return Q(float(self), self.unit)


# Asked for each number that is read from an entry, as f(entry, name, number), for the one to give in its place:
# so a wrong answer can be traced to another row of the table.
stand_in = ContextVar("stand_in", default=None)


@dataclass(frozen=True)
class Entry:
    """A device, link, memory level or model: `.key`, `.name`, `.about`, and its Numbers as attributes."""

    key: str
    name: str
    about: Mapping = field(repr=False)
    numbers: Mapping = field(repr=False)

    def __getattr__(self, name):
        if not name.startswith("_"):
            if name in self.numbers:
                instead = stand_in.get()
                return instead(self, name, self.numbers[name]) if instead else self.numbers[name]
            if name in self.about:
                return self.about[name]
        have = ", ".join(self.numbers)
        raise AttributeError(f"{self.key} has no {name}; it has {have}")

    def __contains__(self, name):
        return name in self.numbers


def _toml(name):
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


@functools.cache
def sources():
    """Every source of the catalog, by key."""
    return MappingProxyType({k: Source(k, **v) for k, v in _toml("sources").items()})


def source(key):
    """The `Source` of this key."""
    return sources()[one_of("source", "key", key, tuple(sources()))]


KINDS = ("accelerators", "links", "memory", "energy", "budgets", "measured", "models")


@functools.cache
def _tables(kind):
    return _toml(kind)


@functools.cache
def entries(kind):
    """All entries of one kind (a name in KINDS), key -> `Entry`, in file order."""
    return MappingProxyType({key: find(key) for key in _tables(one_of("entries", "kind", kind, KINDS))})


@functools.cache
def _raw():
    """Every entry as TOML has it, by key."""
    return {key: table for kind in KINDS for key, table in _tables(kind).items()}


@functools.cache
def find(key):
    """The entry of this key, of whatever kind."""
    table = _raw()[one_of("catalog", "key", key, tuple(_raw()))]
    about = {n: v for n, v in table.items() if not isinstance(v, dict)}
    numbers = {n: number(f"{key}.{n}") for n, v in table.items() if isinstance(v, dict)}
    return Entry(key, about.pop("name", key), MappingProxyType(about), MappingProxyType(numbers))


@functools.cache
def number(key):
    """The Number of a dotted key, such as "h100_sxm.hbm_bandwidth".

    Its TOML table has `printed` ("3.35 TB/s") and `source`, or a `formula` over numbers of the
    same entry and `other_entry.number`, and its `unit`.
    """
    entry, _, name = key.partition(".")
    raw = _raw()[one_of("catalog", "key", entry, tuple(_raw()))]
    if not isinstance(raw.get(name), dict):
        return getattr(find(entry), name)  # raises AttributeError, naming what there is
    raw = dict(raw[name])
    formula, unit = raw.pop("formula", ""), raw.pop("unit", "")
    own = (source(raw.pop("source")),) if "source" in raw else ()
    if formula:
        terms = re.findall(r"\b[a-z_]\w*(?:\.\w+)?", formula)
        values = {t: number(t if "." in t else f"{entry}.{t}") for t in terms}
        code = re.sub(r"\b([a-z_]\w*)\.(\w+)", r"\1__\2", formula)
        value = eval(code, {"__builtins__": {}}, {t.replace(".", "__"): n for t, n in values.items()})
        own += tuple(s for n in values.values() for s in n.sources if s not in own)
    else:
        value, unit = parse(raw["printed"])
    result = Number(value)
    result.key, result.formula, result.sources, result._read = key, formula, own, raw.pop("read", None)
    result.others = tuple({**o, "source": source(o["source"])} for o in raw.pop("others", ()))
    for field_name in ("printed", "density", "direction", "scope", "precision", "note", "rule"):
        setattr(result, field_name, raw.pop(field_name, ""))
    if raw:
        raise ValueError(f"{key}: unknown field {', '.join(raw)}")
    result.unit = unit
    return result


def parse(printed):
    """(value in SI, SI unit) of a value as a source prints it, such as "3.35 TB/s"."""
    value, _, unit = printed.partition(" ")
    if unit not in UNITS:
        raise ValueError(f"{printed!r}: unknown unit {unit!r}")
    factor, si = UNITS[unit]
    # Decimal keeps the value as printed: 1.1 pJ is 1.1e-12, not 1.1000000000000002e-12.
    return float(Decimal(value) * Decimal(str(factor))), si


def _of_kind(kind, key):
    one_of(kind, "key", key, tuple(_tables(kind)))
    return find(key)


def accelerator(key):
    """The accelerator (or CPU) of this key, such as "h100_sxm"."""
    return _of_kind("accelerators", key)


def link(key):
    """The link of this key, such as "nvlink4"."""
    return _of_kind("links", key)


def memory(key):
    """The memory or storage level, or network path, of this key."""
    return _of_kind("memory", key)


def energy(key):
    """The energy table of this key."""
    return _of_kind("energy", key)
