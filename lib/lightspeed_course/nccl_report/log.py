"""What nccl-tests prints, read back: all_reduce_perf and its sisters, from 2019 to today. Used in
chapter 7.

The header names the columns, so their number may vary by version and option (root, timestamps,
per-iteration statistics). Prefixes of mpirun and srun are taken off; what is no row and no header
is log noise, searched only for hints of the transport. A row that cannot be read is an error with
its line number; a file that ends in the middle of a run is not: its rows are kept and the run is
marked truncated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import median

from lightspeed.collectives import COLLECTIVES, busbw_factor

PREFIX = re.compile(r"^(?:\[\d+,\d+\]<std(?:out|err)>: ?|\s{0,4}\d+:\s|> ?)")
PROGRAM = re.compile(r"(?:^|[\s/])(?P<name>\w+?)_perf(?:_mpi)?\b")
RANK = re.compile(
    r"^#\s+Rank\s+(?P<rank>\d+)\s.*?\bon\s+(?P<host>\S+)\s+device\s+\d+\s+\[[^]]*\]\s*(?P<device>.*)"
)
TYPES = re.compile(r"u?int(?:8|32|64)?|char|half|float(?:16)?|double|bfloat16|fp?8_?e[45]m[23]")
FOOTER = re.compile(r"^#\s*(?P<what>Out of bounds values|Avg bus bandwidth)\s*:\s*(?P<value>\S+)")
FAILURE = re.compile(
    r"Test (?:NCCL|CUDA)? ?failure\b.*|unhandled (?:cuda|system) error.*", re.IGNORECASE
)
VERSION = re.compile(
    r"(?:# (?P<tests>\w*ccl-tests version \S+))|(?:(?P<nccl>\w?CCL version ?:? ?\S+))"
)
# What a line of NCCL_DEBUG=INFO gives away, most telling first.
HINTS = {
    "sockets": re.compile(r"NET/Socket|Using network Socket"),
    "EFA": re.compile(r"NET/OFI.*efa|Using network AWS Libfabric|NET/AWS Libfabric"),
    "InfiniBand": re.compile(r"NET/IB|Using network IB"),
    "GPUDirect RDMA": re.compile(r"GDRDMA"),
    "shared memory": re.compile(r"via SHM"),
    "NVLS": re.compile(r"Algo NVLS|NVLS (?:multicast|Created)|nvls channels", re.IGNORECASE),
}
MEASURE = ("time", "algbw", "busbw")


class ReportError(ValueError):
    """A file that cannot be read as nccl-tests output; `.line` is where (0: nowhere in
    particular).
    """

    def __init__(self, line, why, text=""):
        self.line, self.why = line, why
        super().__init__(
            (f"line {line}: " if line else "") + why + (f": {text.strip()!r}" if text else "")
        )


@dataclass(frozen=True)
class Measured:
    """One printed measurement: `size` in bytes, `time` in s, rates in byte/s; `wrong` is None if
    not validated.

    `half_digits` are half of the last printed digit of time, algbw and busbw, in the same units.
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


@dataclass
class Report:
    """One run of a test: its rows, and what the log around them says. `ranks` is None if it does
    not say.
    """

    line: int
    collective: str | None = None
    rows: list = field(default_factory=list)
    hosts: tuple = ()
    devices: tuple = ()
    ranks: int | None = None
    versions: tuple = ()
    hints: tuple = ()
    failures: list = field(default_factory=list)
    out_of_bounds: int | None = None
    average_busbw: float | None = None
    truncated: bool = False

    @property
    def nodes(self):
        """The number of hosts that the device list names, or None."""
        return len(self.hosts) or None


@dataclass(frozen=True)
class Finding:
    """Something in a report that cannot be: where, and why."""

    line: int
    text: str


def collective_named(text):
    """The collective of this name, or of the program that tests it. Raises ReportError, with the
    names that there are.

    >>> collective_named("all_reduce_perf"), collective_named("AllGather")
    ('all_reduce', 'all_gather')
    """
    plain = re.sub(r"_perf(_mpi)?$", "", text.strip().rpartition("/")[2].lower())
    found = [name for name in COLLECTIVES if re.sub(r"[_-]", "", plain) == name.replace("_", "")]
    if not found:
        raise ReportError(0, f"there is no collective {text!r}; there are {', '.join(COLLECTIVES)}")
    return found[0]


def read_report(path, collective=None):
    """The `Report`s in a file; see `parse`."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return parse(file.read(), collective)


def parse(text, collective=None):
    """The `Report`s in the output of one or several runs of nccl-tests.

    `collective` is for output that does not name its own. Raises ReportError, with the line, for a
    row that cannot be read, for a failed test without rows, and for text without any result.

    >>> report, = parse('''# Collective test starting: all_reduce_perf
    ... #       size         count      type   redop    root     time   algbw   busbw #wrong
    ...   1073741824     268435456     float     sum      -1   4027.3  266.61  466.57      0
    ... ''')
    >>> report.collective, round(report.rows[0].busbw / 1e9, 2), report.truncated
    ('all_reduce', 466.57, True)
    """
    reader = _Reader(collective)
    for number, line in enumerate(text.splitlines(), 1):
        reader.feed(number, _strip(line))
    return reader.finish()


def _strip(line):
    previous = None
    while line != previous:
        previous, line = line, PREFIX.sub("", line, count=1)
    return line.rstrip()


class _Short(Exception):
    """A row with fewer values than the header has columns."""


class _Reader:
    """Goes through the lines; a new run begins at its announcement, or at a second table."""

    def __init__(self, collective):
        self.given, self.reports, self.columns = collective, [], None
        self.program = self.pending = self.short = None
        self.seen = set()

    def feed(self, number, line):
        if line.lstrip().startswith("#"):
            self._comment(number, line.lstrip())
        elif self.columns and _looks_like_a_row(line):
            self._row(number, line)
        else:
            self._noise(number, line)

    def _report(self, number):
        if self.pending is None:
            self.pending = Report(number)
            self.reports.append(self.pending)
        return self.pending

    def _new_run(self, number):
        if self.pending is not None and self.pending.rows:
            self._close()
        return self._report(number)

    def _comment(self, number, line):
        if line.startswith(("# Collective test starting", "# nThread")):
            report = self._new_run(number)
            self.program = self._program(line) or self.program
            report.collective = self.program
        elif rank := RANK.match(line):
            self._rank(number, self._new_run(number), rank)
        elif footer := FOOTER.match(line):
            self._footer(number, footer)
        elif {"size", "algbw", "busbw"} <= set(line.replace("#", " ").split()):
            report = self._new_run(number)
            report.collective = report.collective or self.program
            self.columns = _read_header(number, line)
        else:
            self._noise(number, line)

    def _rank(self, number, report, match):
        if match["rank"] in self.seen and not report.failures:
            report.failures.append(
                Finding(
                    number,
                    f"rank {match['rank']} appears twice: built without MPI=1, each process tests"
                    " alone",
                )
            )
        self.seen.add(match["rank"])
        report.ranks = max(report.ranks or 0, int(match["rank"]) + 1)
        report.hosts = tuple(dict.fromkeys((*report.hosts, match["host"])))
        report.devices = tuple(dict.fromkeys((*report.devices, match["device"].strip())))

    def _footer(self, number, match):
        self._nothing_short_before()
        report = self._report(number)
        value = match["value"]
        try:
            if match["what"].startswith("Out"):
                report.out_of_bounds = int(value)
            else:
                report.average_busbw = float(value) * 1e9
        except ValueError:
            raise ReportError(number, f"{match['what']} is no number", value) from None

    def _noise(self, number, line):
        if name := self._program(line):
            self.program = name
        if failure := FAILURE.search(line):
            self._report(number).failures.append(Finding(number, failure[0].strip()))
        if version := VERSION.search(line):
            report = self._report(number)
            report.versions = tuple(dict.fromkeys((*report.versions, version[0].lstrip("# "))))
        found = [name for name, pattern in HINTS.items() if pattern.search(line)]
        if found:
            report = self._report(number)
            report.hints = tuple(name for name in HINTS if name in (*report.hints, *found))

    def _program(self, line):
        names = [match["name"] for match in PROGRAM.finditer(line)]
        return next((name for name in names if name in COLLECTIVES), None)

    def _row(self, number, line):
        self._nothing_short_before()
        words = line.split()
        try:
            self._report(number).rows.extend(_read_row(number, words, self.columns))
        except _Short:
            self.short = (number, _too_few_or_many(words, self.columns), line)
        except ValueError as problem:
            raise ReportError(number, str(problem), line) from None

    def _nothing_short_before(self):
        """A row that ends early is where a run was cut off, unless the run goes on after it."""
        if self.short:
            raise ReportError(*self.short)

    def _close(self):
        report, self.pending, self.columns, self.short = self.pending, None, None, None
        self.seen.clear()
        report.collective = self.given or report.collective or self.program
        report.truncated = report.average_busbw is None

    def finish(self):
        short = self.short
        if self.pending is not None:
            self._close()
        failed = next((f for report in self.reports for f in report.failures), None)
        reports = tuple(report for report in self.reports if report.rows)
        if not reports and failed:
            raise ReportError(
                failed.line, "the test failed before it measured anything", failed.text
            )
        if not reports and short:
            raise ReportError(*short)
        if not reports:
            raise ReportError(
                0,
                "no table of nccl-tests found: a line '# size count type ... time algbw busbw' and"
                " rows below it",
            )
        return reports


def _looks_like_a_row(line):
    """Size and count, or a size alone at the end of what was cut."""
    words = line.split()
    return (
        bool(words)
        and words[0].isdigit()
        and all(w.isdigit() for w in words[1:2])
        and (len(words) < 3 or TYPES.fullmatch(words[2]) or words[2].isdigit())
    )


def _read_header(number, line):
    """The names of the columns: size, count and type, then one or two equal groups of
    measurements.
    """
    columns = ["time" if name == "cputime" else name for name in line.replace("#", " ").split()]
    starts = [i for i, name in enumerate(columns) if name == "time"]
    body = columns[starts[0] :] if starts else []
    body = body[:-1] if body[-1:] == ["timestamp"] else body
    group = body[: len(body) // len(starts)] if starts else []
    once = len(set(group)) == len(group) and set(MEASURE) <= set(group)
    before = columns[: starts[0]] if starts else []
    named = before[:3] == ["size", "count", "type"] and set(before[3:]) <= {"redop", "root"}
    if not named or group * len(starts) != body or not once or len(starts) > 2:
        raise ReportError(
            number,
            "a header other than 'size count type ... time algbw busbw ...', once or twice",
            line,
        )
    return columns


def _read_row(number, words, columns):
    """The out-of-place and the in-place `Measured` of a row; tables without a root may leave
    redop blank.
    """
    starts = [i for i, name in enumerate(columns) if name == "time"]
    stamp = columns[-1] == "timestamp"  # a date and a time of day under one name
    width = (len(columns) - stamp - starts[0]) // len(starts)
    missing = len(columns) + stamp - len(words)
    if missing > ("redop" in columns and "root" not in columns):
        raise _Short
    if missing < 0:
        raise ValueError(_too_few_or_many(words, columns))
    before = words[: starts[0] - missing]
    redop = next((w for w in before[3:] if not w.lstrip("-").isdigit()), "")
    root = next((int(w) for w in before[3:] if w.lstrip("-").isdigit()), None)
    for which in range(len(starts)):
        values = words[len(before) + which * width :][:width]
        named = dict(zip(columns[starts[which] : starts[which] + width], values, strict=True))
        time, algbw, busbw = (_number(named[name]) for name in MEASURE)
        wrong = named.get("wrong", named.get("error", "N/A"))
        yield Measured(
            line=number,
            in_place=which == 1,
            size=int(before[0]),
            count=int(before[1]),
            dtype=before[2],
            redop=redop,
            root=root,
            time=time[0] * 1e-6,
            algbw=algbw[0] * 1e9,
            busbw=busbw[0] * 1e9,
            wrong=None if wrong == "N/A" else float(wrong.rstrip("*")),
            half_digits=(time[1] * 1e-6, algbw[1] * 1e9, busbw[1] * 1e9),
        )


def _too_few_or_many(words, columns):
    return f"a row of {len(words)} values where the header has {len(columns)} columns"


def _number(word):
    """(value, half of its last printed digit); refuses what nccl-tests never prints."""
    value = float(word)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{word} is no time or rate")
    mantissa, _, power = word.lower().partition("e")
    return value, 0.5 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


# ---------------------------------------------------------------- does it agree with itself?


def infer_ranks(report):
    """The number of ranks behind busbw / algbw, for a report whose device list is missing; None if
    it cannot tell.

    Only sizes whose rates have three digits or more take part.
    """
    top = {"all_reduce": 2}.get(report.collective, 1)
    if report.collective not in COLLECTIVES or busbw_factor(report.collective, 2) == busbw_factor(
        report.collective, 4
    ):
        return None
    ratios = [
        row.busbw / row.algbw
        for row in report.rows
        if row.algbw > 100 * row.half_digits[1] and row.busbw
    ]
    if not ratios or not median(ratios) < top:
        return None
    return round(1 / (1 - median(ratios) / top))


def check(report, ranks=None):
    """`Finding`s: rates that do not follow from the size and the time, wrong results, a footer that
    does not match.

    Each comparison allows exactly what printing rounds away. `ranks` overrides those of the device
    list.
    """
    n = ranks or report.ranks or infer_ranks(report)
    findings = [*report.failures]
    for row in report.rows:
        findings += _check_row(row, report.collective, n)
    if report.out_of_bounds:
        findings.append(
            Finding(
                0,
                f"{report.out_of_bounds} values are out of bounds: the results are wrong, so the"
                " rates mean nothing",
            )
        )
    if report.average_busbw is not None and report.rows:
        mean = sum(row.busbw for row in report.rows) / len(report.rows)
        slack = max(row.half_digits[2] for row in report.rows) + 1e-5 * mean
        if abs(mean - report.average_busbw) > slack:
            findings.append(
                Finding(
                    0,
                    f"the average bus bandwidth is printed as {report.average_busbw / 1e9:g} GB/s,"
                    f" the rows give {mean / 1e9:g}: rows are missing or changed",
                )
            )
    return tuple(findings)


def _check_row(row, collective, n):
    place = "in place" if row.in_place else "out of place"
    half_time, half_algbw, half_busbw = row.half_digits
    low = row.size / (row.time + half_time) - half_algbw
    high = row.size / max(row.time - half_time, 1e-12) + half_algbw
    if not low * (1 - 1e-9) <= row.algbw <= high * (1 + 1e-9) and row.time:
        yield Finding(
            row.line,
            f"algbw {row.algbw / 1e9:g} GB/s {place}, but {row.size} bytes in {row.time * 1e6:g} µs"
            f" are {row.size / row.time / 1e9:.4g}",
        )
    if collective in COLLECTIVES and n:
        factor = busbw_factor(collective, n)
        if (
            abs(row.busbw - row.algbw * factor)
            > half_busbw + half_algbw * factor + 1e-6 * row.busbw
        ):
            yield Finding(
                row.line,
                f"busbw {row.busbw / 1e9:g} GB/s {place}, but algbw x {factor:.4g} ({collective},"
                f" {n} ranks) is {row.algbw * factor / 1e9:.4g}",
            )
    if row.wrong and row.wrong >= 1:
        yield Finding(row.line, f"{row.wrong:g} wrong results {place}")
