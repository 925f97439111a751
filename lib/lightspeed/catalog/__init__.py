"""Sourced constants: every number carries its value as printed, its unit, source and date.

    >>> from lightspeed.catalog import accelerator
    >>> h100 = accelerator("h100_sxm")
    >>> h100.hbm_bandwidth, float(h100.hbm_bandwidth)
    (3.35 TB/s, 3350000000000.0)
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
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from types import MappingProxyType
from typing import Any, cast

from lightspeed.errors import did_you_mean, one_of
from lightspeed.values import Amount

__all__ = (
    "KINDS", "Entry", "Number", "Source", "accelerator", "energy", "entries", "find", "fitted",
    "link", "measured", "memory", "number", "source", "sources",
)  # fmt: skip

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
    **{f"{p}OPS": (10 ** (3 * n), "OP/s") for n, p in enumerate(("G", "T", "P"), 3)},
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
    """The origin of a number: author, title, publisher, date, address, when it was read and how."""

    key: str
    title: str
    author: str = ""
    publisher: str = ""
    date: str = ""
    address: str = ""
    read: datetime.date | None = None
    how: str = ""

    def __str__(self) -> str:
        parts = (self.author, f'"{self.title}"', self.publisher, self.date, self.address)
        return ", ".join(p for p in parts if p) + " (second hand)" * self.second_hand

    @property
    def second_hand(self) -> bool:
        """Whether the number was read in a text that cites this source."""
        return self.how.startswith("second hand")


class Number(Amount):
    """An `Amount` with its provenance; arithmetic on it gives plain floats."""

    __slots__ = (
        "_read", "density", "direction", "formula", "key", "note", "others", "precision",
        "printed", "rule", "scope", "sources",
    )  # fmt: skip

    key: str
    printed: str
    formula: str
    sources: tuple[Source, ...]
    others: tuple[Mapping[str, Any], ...]
    density: str
    direction: str
    scope: str
    precision: str
    note: str
    rule: str
    _read: datetime.date | None

    def __new__(cls, value: float, unit: str, **provenance: Any) -> Number:
        self = float.__new__(cls, value)
        empty = dict.fromkeys(cls.__slots__, "") | {"_read": None, "sources": (), "others": ()}
        for name, field in (empty | {"unit": unit} | provenance).items():
            object.__setattr__(self, name, field)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self.key} is a constant of the catalog")

    def __reduce__(self) -> tuple[Any, ...]:
        provenance = {name: getattr(self, name) for name in self.__slots__}
        return functools.partial(Number, **provenance), (float(self), self.unit)

    @property
    def source(self) -> Source:
        """The source of this number; for a derived number, that of its first term."""
        return self.sources[0]

    @property
    def read(self) -> datetime.date | None:
        """The date on which the source was read."""
        return self._read or self.source.read

    @property
    def quantity(self) -> Any:
        """This number as a pint quantity."""
        from lightspeed.units import Q

        return Q(self)


@dataclass(frozen=True, repr=False)
class Entry:
    """A device, link, memory or model: `.key`, `.name`, `.about`, and its Numbers as attributes."""

    key: str
    name: str
    about: Mapping[str, Any]
    numbers: Mapping[str, Number]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what Python and Jupyter ask of every object
            raise AttributeError(name)
        if name in self.numbers:
            return self.numbers[name]
        if name in self.about:
            return self.about[name]
        fields = " ".join(
            filter(None, (did_you_mean(name, dir(self)), f"It has {', '.join(self.numbers)}."))
        )
        raise AttributeError(f"{self.key} has no {name}. {fields}")

    def __dir__(self) -> list[str]:
        return [*self.numbers, *self.about, "key", "name", "about", "numbers"]

    def __repr__(self) -> str:
        width = max(map(len, self.numbers), default=0)
        rows = (f"  {name:{width}}  {number!r}" for name, number in self.numbers.items())
        return "\n".join([f"{self.name} ({self.key})", *rows])

    def __contains__(self, name: str) -> bool:
        return name in self.numbers

    def __reduce__(self) -> tuple[Any, ...]:
        return entry_of, (self.key, self.name, dict(self.about), dict(self.numbers))


def entry_of(key: str, name: str, about: Mapping[str, Any], numbers: Mapping[str, Number]) -> Entry:
    """Return an immutable `Entry` with this key, name, description and numbers."""
    return Entry(key, name, MappingProxyType(about), MappingProxyType(numbers))


def _toml(name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name}.toml: {error}") from None


@functools.cache
def sources() -> Mapping[str, Source]:
    """Every source of the catalog, by key."""
    return MappingProxyType({k: Source(k, **v) for k, v in _toml("sources").items()})


def source(key: str) -> Source:
    """Return the `Source` with this key."""
    return sources()[one_of("source", "key", key, tuple(sources()))]


def measured(name: str) -> dict[str, Any]:
    """Return the measurements table `name` (published or our own), as in its file.

    >>> measured("serving")["run"][0]["batch"]
    768
    """
    return _toml(f"measured_{one_of('measured', 'name', name, MEASURED)}")


def fitted(name: str) -> dict[str, Any]:
    """Return the fitted constants `name`, with the rows they were fitted to, as in their file.

    >>> sorted(fitted("stacks"))[0]
    'deepseek_v3'
    """
    return _toml(f"fitted_{one_of('fitted', 'name', name, FITTED)}")


MEASURED = ("kernels", "nccl", "scaling", "serving", "training")
FITTED = ("attention", "classes", "engines", "nccl", "products", "stacks")
KINDS = (
    "accelerators", "tested", "links", "memory", "energy", "budgets", "measured", "models",
    "networks", "software",
)  # fmt: skip


@functools.cache
def _tables(kind: str) -> dict[str, Any]:
    return _toml(kind)


@functools.cache
def entries(kind: str) -> Mapping[str, Entry]:
    """All entries of one kind (a name in KINDS), key -> `Entry`, in file order."""
    return MappingProxyType(
        {key: find(key) for key in _tables(one_of("entries", "kind", kind, KINDS))}
    )


@functools.cache
def _raw() -> dict[str, Any]:
    """Every entry as TOML has it, by key."""
    return {key: table for kind in KINDS for key, table in _tables(kind).items()}


@functools.cache
def find(key: str) -> Entry:
    """Return the entry with this key, whatever its kind."""
    table = _raw()[one_of("catalog", "key", key, tuple(_raw()))]
    about = {n: v for n, v in table.items() if not isinstance(v, dict)}
    numbers = {n: number(f"{key}.{n}") for n, v in table.items() if isinstance(v, dict)}
    return entry_of(key, about.pop("name", key), about, numbers)


@functools.cache
def number(key: str) -> Number:
    """The Number of a dotted key, such as "h100_sxm.hbm_bandwidth".

    Its TOML table has `printed` ("3.35 TB/s") and `source`, or a `formula` over numbers of the
    same entry and `other_entry.number`, and its `unit`.
    """
    entry, _, name = key.partition(".")
    raw = _raw()[one_of("catalog", "key", entry, tuple(_raw()))]
    if not isinstance(raw.get(name), dict):
        # raises AttributeError, naming what there is
        return cast(Number, getattr(find(entry), name))
    raw = dict(raw[name])
    formula, unit = raw.pop("formula", ""), raw.pop("unit", "")
    if raw.get("source", "course") not in sources():
        near = did_you_mean(raw["source"], sources())
        raise ValueError(f"{key}: sources.toml has no {raw['source']!r}; add it there. {near}")
    own: tuple[Source, ...] = (source(raw.pop("source")),) if "source" in raw else ()
    if formula:
        terms = re.findall(r"\b[a-z_]\w*(?:\.\w+)?", formula)
        keys = {t: t if "." in t else f"{entry}.{t}" for t in terms}
        for term in keys.values():
            owner, _, part = term.partition(".")
            if not isinstance(_raw().get(owner, {}).get(part), dict):
                raise ValueError(f"{key}: the formula {formula!r} needs {term}, which is not there")
        values = {t: number(term) for t, term in keys.items()}
        code = re.sub(r"\b([a-z_]\w*)\.(\w+)", r"\1__\2", formula)
        value = eval(
            code, {"__builtins__": {}}, {t.replace(".", "__"): n for t, n in values.items()}
        )
        own += tuple(s for n in values.values() for s in n.sources if s not in own)
    else:
        try:
            value, unit = parse(raw["printed"])
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    others = tuple({**o, "source": source(o["source"])} for o in raw.pop("others", ()))
    provenance_of = {
        n: raw.pop(n, "")
        for n in ("printed", "density", "direction", "scope", "precision", "note", "rule")
    }
    reader = raw.pop("read", None)
    if raw:
        raise ValueError(f"{key}: unknown field {', '.join(raw)}")
    return Number(
        value,
        unit,
        key=key,
        formula=formula,
        sources=own,
        others=others,
        _read=reader,
        **provenance_of,
    )


def parse(printed: str) -> tuple[float, str]:
    """Return (value in SI, SI unit) of a value as a source prints it, such as "3.35 TB/s"."""
    value, _, unit = printed.partition(" ")
    if unit not in UNITS:
        raise ValueError(
            f"{printed!r}: unknown unit {unit!r}; expected one of {', '.join(filter(None, UNITS))}"
        )
    if not re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", value):
        expected = 'expected a number without separators and its unit, such as "1344 GB/s"'
        raise ValueError(f"{printed!r}: {value!r} is not a number; {expected}")
    factor, si = UNITS[unit]
    # Decimal keeps the value as printed: 1.1 pJ is 1.1e-12, not 1.1000000000000002e-12.
    return float(Decimal(value) * Decimal(str(factor))), si


def _of_kind(kind: str, key: str) -> Entry:
    one_of(kind, "key", key, tuple(_tables(kind)))
    return find(key)


def accelerator(key: str) -> Entry:
    """The accelerator (or CPU) of this key, such as "h100_sxm"."""
    return _of_kind("accelerators", key)


def link(key: str) -> Entry:
    """The link of this key, such as "nvlink4"."""
    return _of_kind("links", key)


def memory(key: str) -> Entry:
    """The memory or storage level, or network path, of this key."""
    return _of_kind("memory", key)


def energy(key: str) -> Entry:
    """The energy table of this key."""
    return _of_kind("energy", key)
