"""Lines of a log as nccl-tests printed them, and the rows and headers of its tables.

Whatever stands before a row is a tag of mpirun, Slurm, a container or a quotation: a row is found
by its two whole numbers and its type, so no tag has to be known. A row counts only if its time, its
size and its rates agree, which no row does that was cut, shifted or written into.
"""

import re
from dataclasses import dataclass, replace

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")
TYPES = {
    "int8": 1, "char": 1, "uint8": 1, "half": 2, "float16": 2, "bfloat16": 2, "int": 4, "int32": 4,
    "uint32": 4, "float": 4, "float32": 4, "int64": 8, "uint64": 8, "double": 8, "float64": 8,
    "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1,
}  # fmt: skip
ROW = re.compile(
    rf"(?:^|[\s:>|])(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<type>{'|'.join(TYPES)})\b(?P<rest>.*)$"
)
HEADER = re.compile(r"\b(?:size\s+count|bytes\s+N)\s+type\b.*")
VALUES = re.compile(r"^[\s\d.eE+*N/A-]+$")
MEASURE = ("time", "algbw", "busbw")
NAMES = {"cputime": "time", "bytes": "size", "N": "count", "op": "redop", "res": "error"}


@dataclass(frozen=True)
class Measured:
    """A printed measurement: `size` in bytes, `time` in s, rates in byte/s; `wrong` None if not
    validated; `half_digits`: half of each one's last digit.
    """

    line: int
    in_place: bool
    size: int
    count: int
    dtype: str
    redop: str
    root: int | None
    time: float
    algbw: float
    busbw: float
    wrong: float | None
    half_digits: tuple

    @property
    def width(self):
        """Bytes of an element."""
        return TYPES.get(self.dtype, 4)


@dataclass(frozen=True)
class Columns:
    """What a header names: what stands before the first measurement, the columns of one
    measurement, how often they come, whether a date follows, and the unit of time (s).
    """

    before: tuple
    group: tuple
    groups: int
    stamped: bool = False
    unit: float = 1e-6


class Unreadable(Exception):
    """A row that is incomplete or inconsistent; the text says why."""


def clean(line):
    """Return a line without colours, line ends, and what a progress bar overwrote."""
    return ESCAPES.sub("", line).rstrip("\r\n").rpartition("\r")[2].rstrip().replace("\ufeff", "")


def header_of(line):
    """Return the `Columns` of a header anywhere in a line; None without an intact header."""
    match = HEADER.search(line)
    if not match:
        return None
    names = [NAMES.get(n.lstrip("#"), n.lstrip("#")) for n in match[0].split()]
    starts = [i for i, name in enumerate(names) if name == "time"]
    stamped = names[-1] == "timestamp"
    body = names[starts[0] : len(names) - stamped] if starts else []
    group = body[: len(body) // len(starts)] if starts else []
    whole = set(MEASURE) <= set(group) and len(set(group)) == len(group)
    has_names = set(names[3 : starts[0]]) <= {"redop", "root"} if starts else False
    if not whole or not has_names or group * len(starts) != body or len(starts) > 2:
        return None
    unit = 1e-3 if match[0].startswith("bytes") else 1e-6  # the tests of 2017 printed ms
    return Columns(tuple(names[3 : starts[0]]), tuple(group), len(starts), stamped, unit)


def read_row(number, match, columns=None):
    """Return the `Measured` of a row matched by ROW, out of place first. Raises Unreadable."""
    words = match["rest"].split()
    before = 0
    while before < min(2, len(words)) and _names_no_rate(words, before, columns):
        before += 1
    if columns is None:
        columns = _columns_of(words[before:])
    values = words[before:]
    root = next((int(w) for w in words[:before] if w.lstrip("-").isdigit()), None)
    if root is None and "root" in columns.before:
        raise Unreadable("the header names a root, and this row has none")
    if columns.stamped:
        values = values[: columns.groups * len(columns.group)]
    if len(values) != columns.groups * len(columns.group):
        raise Unreadable(
            f"{len(words)} values follow the type, where the header has"
            f" {len(columns.before) + columns.groups * len(columns.group)} columns"
        )
    redop = next((w for w in words[:before] if not w.lstrip("-").isdigit()), "")
    width = len(columns.group)
    rows = []
    for which in range(columns.groups):
        by_name = dict(zip(columns.group, values[which * width :][:width], strict=True))
        time, algbw, busbw = (_number(by_name[name]) for name in MEASURE)
        rows.append(
            Measured(
                line=number,
                in_place=which == 1,
                size=int(match["size"]),
                count=int(match["count"]),
                dtype=match["type"],
                redop=redop,
                root=root,
                time=time[0] * columns.unit,
                algbw=algbw[0] * 1e9,
                busbw=busbw[0] * 1e9,
                wrong=_wrong(by_name.get("wrong", by_name.get("error", "N/A"))),
                half_digits=(time[1] * columns.unit, algbw[1] * 1e9, busbw[1] * 1e9),
            )
        )
    return rows


def _names_no_rate(words, at, columns):
    """Whether a word is a redop or a root: letters, or a whole number before the first time."""
    if re.fullmatch(r"[a-z]\w*", words[at]):
        return at == 0
    if at and not re.fullmatch(r"[a-z]\w*", words[0]):
        return False  # one root at most: what follows it is a time without decimals
    rooted = "root" in columns.before if columns else (len(words) - at) % 4 == 1
    return rooted and bool(re.fullmatch(r"-?\d+", words[at]))


def _columns_of(values):
    """The columns of a row whose header is missing: one or two times four."""
    if len(values) not in (4, 8):
        raise Unreadable(f"{len(values)} values follow the type, and no header tells what they are")
    return Columns((), (*MEASURE, "wrong"), len(values) // 4)


def _number(word):
    """(value, half of its last printed digit); refuses what nccl-tests never prints."""
    try:
        value = float(word)
    except ValueError:
        raise Unreadable(f"{word} is not a number") from None
    if not 0 <= value < float("inf"):
        raise Unreadable(f"{word} is neither a time nor a rate")
    mantissa, _, power = word.lower().partition("e")
    return value, 0.5 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


def _wrong(word):
    try:
        return float(word.rstrip("*"))
    except ValueError:
        if word in ("N/A", "N/", "N"):  # not validated; cut at the end of a file
            return None
        raise Unreadable(f"{word} is not a number of wrong results") from None


def agreeing(rows):
    """(the rows whose algbw is size over time, (row, why) of the others, whether they are old).

    The tests of before June 2020 print busbw as the algbw of all_gather and reduce_scatter, by
    which every row is n / (n - 1) too low; if each row is so, their algbw is put right.
    """
    good, bad = [], []
    for row in rows:
        low, high = _rates(row)
        (good if not row.time or low <= row.algbw <= high else bad).append(row)
    gathers = [row for row in bad if _is_old_gather(row)]
    if bad and len(gathers) == len(bad) and not any(row.algbw for row in good):
        return [_put_right(row) if row.time else row for row in rows], [], True
    why = "size, time and algbw do not agree"
    return good, [(row, why) for row in bad], False


def _put_right(row):
    rate, (half_time, _, half_busbw) = row.size / row.time, row.half_digits
    halves = (half_time, rate * half_time / (row.time - half_time), half_busbw)
    return replace(row, algbw=rate, half_digits=halves)


def _rates(row):
    half_time, half_algbw, _ = row.half_digits
    low = row.size / (row.time + half_time) - half_algbw if row.time else 0.0
    return low * (1 - 1e-9), (row.size / max(row.time - half_time, 1e-12) + half_algbw) * (1 + 1e-9)


def _is_old_gather(row):
    ranks = row.size / row.count / row.width if row.count else 0
    if row.algbw != row.busbw or ranks < 2 or ranks != round(ranks):
        return False
    scaled = replace(row, algbw=row.algbw * ranks / (ranks - 1))
    low, high = _rates(scaled)
    slack = row.half_digits[1] * (ranks / (ranks - 1))
    return low - slack <= scaled.algbw <= high + slack
