"""What nccl-tests prints, read back: all_reduce_perf and its sisters, from 2017 to today, and
rccl-tests. Used in chapter 7.

One file may hold several runs, Markdown, tags of mpirun and Slurm, and NCCL's own messages between
rows. What is no part of a test is searched only for what it says of hosts, ranks and adapters. A
line that cannot be read is left out and said so; a file without any row is an error.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lightspeed.collectives import COLLECTIVES
from lightspeed_tools.nccl.rows import (
    ROW,
    VALUES,
    Unreadable,
    agreeing,
    clean,
    header_of,
    read_row,
)

PROGRAM = re.compile(r"(?:^|[\s/`'\"])(?P<name>[a-z]\w*?)_perf(?:_mpi)?\b")
START = re.compile(r"Collective test starting: \S*")
SETTINGS = re.compile(r"\bnThread (?P<threads>\d+) nGpus (?P<gpus>\d+) minBytes \d+ maxBytes (\d+)")
RANK = re.compile(
    r"\bRank\s+(?P<rank>\d+)\s+(?P<group>Group\s+\d+\s+)?(?:Pid\s+\d+\s+)?"
    r"(?:on\s+(?P<host>\S+)\s+)?device\s+"  # who shows a log to others may cut out the hosts
    r"(?P<device>\d+)\s+\[(?P<bus>[^]]*)\]\s*(?P<name>.*)"
)
TAG = re.compile(r"\s*(\[[\d,]+\](?:<std\w+>:?)?)")  # in a row again wherever the test flushed
FOOTER = re.compile(r"\b(?P<what>Out of bounds values|Avg bus bandwidth)\s*:\s*(?P<value>\S+)")
COMMAND = re.compile(r"_perf(?:_mpi)?[`'\"]?\s+-\w")
LAUNCH = re.compile(r"\b(?:mpirun|mpiexec|srun)\s")
FAILURE = re.compile(
    r"Test (?:NCCL|CUDA|HIP)? ?failure\b.*|unhandled (?:cuda|system) error.*|Segmentation fault.*"
    r"|(?:slurmstepd|srun): error:.*(?:CANCELLED|Killed|Exited|Aborted|fault).*"
    r"|noticed that process rank.*|MPI_ABORT was invoked.*|exited on signal \d.*"
    r"|process terminated with signal.*|NCCL WARN .*(?:timed? ?out|error:).*",
    re.IGNORECASE,
)
VERSION = re.compile(r"(?P<tests>\w*ccl-tests version \S+)|(?P<nccl>\b[NR]CCL version ?:? ?\d\S*)")
SAID = re.compile(
    r"(?:^|[\s>:])(?P<host>[\w.-]+):\d+:\d+ \[\d+\] (?:NCCL|RCCL) (?:INFO|WARN)\s+(?P<text>.*)"
)
JOINED = re.compile(r"\brank (?P<rank>\d+) nranks (?P<ranks>\d+)\b", re.IGNORECASE)
NODES = re.compile(r"\bnNodes (\d+) localRanks (\d+)\b")
ADAPTER = re.compile(r"\[\d+\](?P<name>[\w.-]+):\d+/(?P<kind>IB|RoCE)")
SOCKET = re.compile(r"NET/Socket\s*: Using (?P<names>\[.*)")
PROVIDER = re.compile(r"Selected [Pp]rovider is efa.*?found (?P<nics>\d+) nics")
# What NCCL says that it does, most telling first. That it opened a socket says nothing: it always
# does, to meet.
HINTS = {
    "sockets": re.compile(r"Using network Socket|via NET/Socket"),
    "EFA": re.compile(r"Selected [Pp]rovider is efa|Using network AWS Libfabric|NET/AWS Libfabric"),
    "InfiniBand": re.compile(r"NET/IB : Using \[|via NET/IB|Using network IB"),
    "GPUDirect RDMA": re.compile(r"/GDRDMA"),
    "no GPUDirect RDMA": re.compile(r"GPU Direct RDMA Disabled"),
    "shared memory": re.compile(r"via SHM"),
}


class ReportError(ValueError):
    """A file that cannot be read as nccl-tests output; `.line` is where (0: nowhere)."""

    def __init__(self, line, why, text=""):
        self.line, self.why = line, why
        super().__init__(
            (f"line {line}: " if line else "") + why + (f": {text.strip()!r}" if text else "")
        )


@dataclass(frozen=True)
class Device:
    """A line of the list of devices; `host` is empty if it was removed."""

    rank: int
    host: str
    index: int
    bus: str
    name: str
    grouped: bool = True  # as the tests print it since September 2022


@dataclass(frozen=True)
class Finding:
    """A finding in a report: where, and what."""

    line: int
    text: str


@dataclass
class Report:
    """One run of a test: its rows, and what the file around them says. What it does not say is
    None or empty; what follows from it is for `facts`.
    """

    line: int
    collective: str | None = None
    given: bool = False  # the collective, by the reader of the report
    rows: list = field(default_factory=list)
    devices: list = field(default_factory=list)
    elided: bool = False
    tables: int = 0
    lists: int = 0
    threads: int | None = None
    gpus: int | None = None
    max_bytes: int | None = None
    command: str = ""
    said_ranks: set = field(default_factory=set)
    said_nodes: set = field(default_factory=set)
    hosts_of_ranks: dict = field(default_factory=dict)
    adapters: dict = field(default_factory=dict)
    efa_nics: int | None = None
    interfaces: tuple = ()  # of NET/Socket
    versions: tuple = ()
    hints: tuple = ()
    failures: list = field(default_factory=list)
    left_out: list = field(default_factory=list)
    out_of_bounds: int | None = None
    average_busbw: float | None = None
    old_gather: bool = False  # a table of before June 2020, its algbw put right

    @property
    def truncated(self):
        """Whether the closing lines of the test are missing."""
        return self.average_busbw is None

    @property
    def aborted(self):
        """Whether something failed and the test's closing lines are missing."""
        return bool(self.failures) and self.truncated

    @property
    def hosts(self):
        """The hosts that the list of devices names, in order."""
        return tuple(dict.fromkeys(d.host for d in self.devices if d.host))

    @property
    def shared(self):
        """(host, device) of GPUs that are listed for several ranks."""
        places = Counter((d.host, d.index, d.bus) for d in self.devices if d.host)
        return tuple((host, index) for (host, index, _), n in places.items() if n > 1)

    @property
    def names(self):
        """The kinds of devices, in order."""
        return tuple(dict.fromkeys(d.name for d in self.devices if d.name))

    @property
    def apart(self):
        """Whether several processes wrote into one file, each its own list, table and rows."""
        rows = [(r.size, r.dtype, r.redop, r.root, r.in_place) for r in self.rows if r.size]
        return self.tables > 1 and self.lists > 1 and 3 * len(set(rows)) < 2 * len(rows)


def collective_named(text):
    """Return the collective with this name or test program. Raises ReportError, listing the names.

    >>> collective_named("all_reduce_perf"), collective_named("AllGather")
    ('all_reduce', 'all_gather')
    """
    plain = re.sub(r"_perf(_mpi)?$", "", text.strip().rpartition("/")[2].lower())
    matches = [name for name in COLLECTIVES if re.sub(r"[_-]", "", plain) == name.replace("_", "")]
    if not matches:
        raise ReportError(0, f"there is no collective {text!r}; there are {', '.join(COLLECTIVES)}")
    return matches[0]


def parse(text, collective=None):
    """Parse the `Report`s in the output of one or several runs of nccl-tests.

    `collective` is for output that does not name its own. Raises ReportError, with the line, for a
    test that failed before its first row, and for text without any result.

    >>> report, = parse('''# Collective test starting: all_reduce_perf
    ... #       size         count      type   redop    root     time   algbw   busbw #wrong
    ...   1073741824     268435456     float     sum      -1   4027.3  266.61  466.57      0
    ... ''')
    >>> report.collective, round(report.rows[0].busbw / 1e9, 2), report.truncated
    ('all_reduce', 466.57, True)
    """
    reader = _Reader(collective)
    for number, line in enumerate(text.split("\n"), 1):
        reader.feed(number, clean(line))
    return reader.finish()


class _Reader:
    """Goes through the lines; a run begins at its announcement, list or table, once rows came."""

    def __init__(self, collective):
        self.given, self.reports, self.columns = collective, [], None
        self.pending: Any = None
        self.half = self.program = None
        self.command, self.opened = "", set()
        self.neuron = 0  # line of a header of nccom-test, which AWS Neuron has
        self.listed = Counter()  # rank -> lines of a list that name it
        self.fenced = False  # whether the list of devices ended with its block of Markdown

    def feed(self, number, line):
        row = ROW.search(line)
        if row and (tag := TAG.match(line)) and tag[1] in row["rest"]:
            row = ROW.search(line[tag.end() :].replace(tag[1], " "))
        if row and (self.columns or len(row["rest"].split()) >= 4):
            self._row(number, row, line)
        elif self.half and VALUES.match(line) and line.strip():
            start, half = self.half
            self._row(start, ROW.search(f"{half} {line}"), line)
        elif device := RANK.search(line):
            self._device(number, device)
        elif columns := header_of(line):
            self._table(number, columns)
        else:
            self._other(number, line)

    def _report(self, number):
        if self.pending is None:
            self.pending = Report(number)
            self.pending.command = self.command
            self.pending.collective = self.program
            self.reports.append(self.pending)
            self.command, self.program = "", None
            self.opened = set()
        return self.pending

    def _new_run(self, number, opening=None):
        """The run that an opening belongs to: a new one, if that before got rows or the same."""
        before = self.pending
        if before and (before.rows or before.failures or not before.truncated):
            self._close()
        elif before and (before.tables or opening in self.opened):
            self._close()  # without a row: it is of a process beside this one, or was cut off
            report = self._report(number)
            report.tables, report.lists = before.tables, before.lists
        report = self._report(number)
        if opening:
            self.opened.add(opening)
        return report

    def _device(self, number, match):
        report, self.fenced = self._new_run(number), False
        rank = int(match["rank"])
        self.listed[rank] += 1
        if not report.devices or rank in {d.rank for d in report.devices}:
            report.devices.clear()
            report.lists += 1
        report.devices.append(
            Device(
                rank,
                match["host"] or "",
                int(match["device"]),
                match["bus"],
                match["name"].strip(),
                bool(match["group"]),
            )
        )

    def _table(self, number, columns):
        ended = self.pending is not None and (self.pending.rows or not self.pending.truncated)
        report = self._new_run(number) if ended else self._report(number)
        report.tables += 1
        self.columns = columns

    def _other(self, number, line):
        if start := START.search(line):
            report = self._new_run(number, "start")
            report.collective = self._named(start[0])
        elif settings := SETTINGS.search(line):
            report = self._new_run(number, "settings")
            report.devices.clear()
            report.threads, report.gpus = int(settings["threads"]), int(settings["gpus"])
            report.max_bytes = int(settings[3])
        elif footer := FOOTER.search(line):
            self._footer(number, footer)
        elif line.strip(" #>") in ("...", "\u2026", "[...]") and self.pending:
            self.pending.elided = self.pending.elided or bool(self.pending.devices)
        elif "size(B)" in line and "busbw(GB/s)" in line:
            self.neuron = number
        elif line.lstrip().startswith("```"):
            self.fenced = True
        elif COMMAND.search(line) and self._named(line):
            self._called(line)
        else:
            self._said(number, line)

    def _called(self, line):
        """A command line: of the run after it, or of the list above, where a page has blocks."""
        report = self.pending
        if report and self.fenced and report.devices and not (report.tables or report.failures):
            report.collective, report.command = self._named(line), line.strip()
            return
        if report is not None:
            self._close()
        self.program = self._named(line)
        self.command = f"{'' if LAUNCH.search(line) else self.command} {line}".strip()

    def _said(self, number, line):
        if LAUNCH.search(line):
            self.command = line.strip()
        elif self.command.endswith("\\"):
            self.command = f"{self.command} {line}".strip()
        elif self.pending is None and (name := self._named(line)):
            self.program = name
        if failure := FAILURE.search(line):
            self._report(number).failures.append(Finding(number, failure[0].strip()))
        for version in VERSION.finditer(line):
            report = self._report(number)
            report.versions = tuple(dict.fromkeys((*report.versions, version[0])))
        match = SAID.search(line)
        if match:
            self._heard(self._report(number), match["host"], match["text"])

    def _heard(self, report, host, text):
        """What NCCL says of itself."""
        starting = not report.rows  # later, it is of the run after this one, or its end
        if starting and (joined := JOINED.search(text)):
            report.said_ranks.add(int(joined["ranks"]))
            report.hosts_of_ranks[int(joined["rank"])] = host
        if starting and (nodes := NODES.search(text)):
            report.said_nodes.add(int(nodes[1]))
        if adapters := {a["name"] for a in ADAPTER.finditer(text)}:
            report.adapters.setdefault(host, set()).update(adapters)
        if socket := SOCKET.search(text):
            names = re.findall(r"\[\d+\]([\w.-]+)", socket["names"])
            report.interfaces = tuple(dict.fromkeys((*report.interfaces, *names)))
        if provider := PROVIDER.search(text):
            report.efa_nics = int(provider["nics"])
        hints = {name for name, pattern in HINTS.items() if pattern.search(text)}
        report.hints = tuple(name for name in HINTS if name in {*report.hints, *hints})

    def _footer(self, number, match):
        report = self._report(number)
        try:
            if match["what"].startswith("Out"):
                report.out_of_bounds = int(match["value"])
            else:
                report.average_busbw = float(match["value"]) * 1e9
        except ValueError:
            report.left_out.append(Finding(number, f"{match['what']} is not a number"))

    @staticmethod
    def _named(line):
        names = [match["name"] for match in PROGRAM.finditer(line)]
        return next((name for name in names if name in COLLECTIVES), None)

    def _row(self, number, match, line):
        report = self._report(number)
        if not report.truncated:  # rows after a footer, without any line between: another run
            report = self._new_run(number)
        self.half = None
        if failure := FAILURE.search(line):
            report.failures.append(Finding(number, f"in the middle of a row: {failure[0].strip()}"))
            return
        try:
            report.rows.extend(read_row(number, match, self.columns))
        except Unreadable as problem:
            if number not in (f.line for f in report.left_out):
                report.left_out.append(Finding(number, str(problem)))
                words = match["rest"].split()
                start = f"{match['size']} {match['count']} {match['type']}"
                self.half = (number, " ".join([start, *_before_noise(words)]))
            return
        report.left_out = [f for f in report.left_out if f.line != number]

    def _close(self):
        report, self.pending, self.columns, self.half = self.pending, None, None, None
        report.collective, report.given = self.given or report.collective, bool(self.given)
        report.rows, bad, report.old_gather = agreeing(report.rows)
        report.left_out += [Finding(row.line, why) for row, why in bad]

    def finish(self):
        if self.pending is not None:
            self._close()
        reports = tuple(report for report in self.reports if report.rows)
        if reports:
            return reports
        apart = ""
        if self.listed[0] > 1 and len(self.listed) == 1:
            apart = (
                f"; {self.listed[0]} processes list themselves as rank 0 and none as another, so"
                " each tests by itself: build nccl-tests with make MPI=1 and start it with mpirun"
                " or srun"
            )
        failed = next((f for report in self.reports for f in report.failures), None)
        if failed:
            raise ReportError(
                failed.line, f"the test failed before it measured anything{apart}", failed.text
            )
        if self.neuron:
            raise ReportError(
                self.neuron,
                "this is a table of nccom-test, whose GB are GiB; only those of nccl-tests and"
                " rccl-tests are read",
            )
        unread = next((f for report in self.reports for f in report.left_out), None)
        if unread:
            raise ReportError(unread.line, f"no row can be read; {unread.text}{apart}")
        raise ReportError(
            0,
            "no table of nccl-tests found: a line '# size count type ... time algbw busbw' and"
            f" rows below it{apart}",
        )


def _before_noise(words):
    """The redop and the root of a row into which another process wrote."""
    before = []
    for word in words[:2]:
        if not re.fullmatch(r"[a-z]+|-?\d+", word):
            break
        before.append(word)
    return before
