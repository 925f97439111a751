"""What a run was: collective, ranks, nodes, adapters; each with its ground.

What the file says in so many words is `stated`, what follows from several of its numbers is
`inferred`, what the reader of the report adds is `given`. Where grounds disagree, or allow more
than one answer, the fact is unknown: it is asked for, never guessed.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from lightspeed.collectives import COLLECTIVES, TWICE, busbw_factor
from lightspeed_tools.nccl.log import Report, ReportError

SHARED = ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter")  # count is of one rank
REDUCING = ("all_reduce", "reduce_scatter", "reduce", "sendrecv")  # these print a redop
ROOTED = ("broadcast", "reduce", "gather", "scatter")
UNCHECKED = ("alltoall", "sendrecv")  # in place, their results are not validated
MOST = 1 << 20  # ranks: more than any file has


@dataclass(frozen=True)
class Fact:
    """A value and its origin: stated, inferred, given or unknown. `ground` gives the evidence,
    `ask` how to state it.
    """

    value: Any
    how: str
    ground: str
    ask: str = ""

    @property
    def known(self):
        """Whether the value is known."""
        return self.how != "unknown"


@dataclass(frozen=True)
class Facts:
    """Facts about a run. `per_node` is the number of ranks on each node, if nodes are alike."""

    collective: Fact
    ranks: Fact
    nodes: Fact
    adapters: Fact

    @property
    def per_node(self):
        """Ranks per node; None if unknown or different between nodes."""
        if not (self.ranks.known and self.nodes.known) or self.ranks.value % self.nodes.value:
            return None
        return self.ranks.value // self.nodes.value

    @property
    def asks(self):
        """What is unknown and needed, each as one line."""
        needed = (self.collective, self.ranks, self.nodes)
        return tuple(fact.ask for fact in needed if not fact.known and fact.ask)


def facts_of(report, ranks=None, nodes=None):
    """Return the `Facts` of a report; `ranks` and `nodes` are stated by the reader. Raises
    ReportError for a statement that the file contradicts.
    """
    if _estranged(report):
        report = Report(
            report.line, report.collective, rows=report.rows, old_gather=report.old_gather
        )
    collective = _collective(report, ranks)
    fact = _ranks(report, collective.value, ranks)
    placed = _nodes(report, fact, nodes)
    if fact.known and placed.known and fact.value < placed.value:
        raise ReportError(
            report.line, f"{fact.value} ranks cannot be on {placed.value} nodes; see --nodes"
        )
    return Facts(collective, fact, placed, _adapters(report))


def _estranged(report):
    """Whether rows stand below the head of another test, as where files were cut and joined: its
    program does not print such rows, or its list is younger than they.
    """
    name = report.collective
    if report.given or not name or name == "hypercube":
        foreign = False
    else:
        foreign = not _fits(report, name, None) and bool(fitting_collectives(report))
    old = all(row.root is None for row in report.rows)
    return foreign or (old and any(device.grouped for device in report.devices))


# ---------------------------------------------------------------- what was run


def _collective(report, ranks):
    ask = f"State the collective with --collective, one of {', '.join(COLLECTIVES)}."
    name = report.collective
    if report.given:
        return Fact(name, "given", "--collective")
    if name and not any(row.count for row in report.rows):
        return Fact(name, "stated", "the file")  # results as data, whose rows have no count
    if name and (name == "hypercube" or _fits(report, name, None)):
        return Fact(name, "stated", "the name of the program")
    if name:
        return Fact(None, "unknown", f"the rows are not as {name}_perf prints them", ask)
    several = listed(report) if (listed(report) or 0) > 1 else None  # one may be what is left
    fitting = fitting_collectives(report, ranks or _said(report) or several)
    fitting = fitting or fitting_collectives(report)  # a list that lost lines fits none
    if len(fitting) == 1:
        which = [w for w, there in _signs(report).items() if there]
        if any(row.busbw != row.algbw for row in report.rows):
            which.append("busbw over algbw")
        return Fact(fitting[0], "inferred", f"no other prints such rows ({', '.join(which)})")
    hint = f" The rows fit {' and '.join(fitting)}." if 1 < len(fitting) < 4 else ""
    return Fact(None, "unknown", "no line names their program", ask + hint)


def fitting_collectives(report, ranks=None):
    """Return the collectives that can have printed these rows, on `ranks` ranks if known."""
    return [name for name in COLLECTIVES if _fits(report, name, ranks)]


def _signs(report):
    """What the rows show of the collective, besides their rates."""
    rows = report.rows
    inside = {row.wrong is not None for row in rows if row.in_place}  # both: a damaged table
    outside = any(row.wrong is not None for row in rows if not row.in_place)
    return {
        "a reduction": any(row.redop not in ("", "none") for row in rows),
        "a root": any(row.root is not None and row.root >= 0 for row in rows),
        "results not validated in place": outside and inside == {False},
        "results validated in place": inside == {True},
        "the count of one rank": any(
            row.count and row.size > row.count * row.width for row in rows
        ),
    }


def _fits(report, name, ranks):
    """Whether a collective can have printed these rows, on this many ranks if that is known."""
    signs = _signs(report)
    rows = [row for row in report.rows if row.count]
    old = all(row.root is None for row in rows)  # before 2022
    if name == "hypercube" or not rows:
        return False  # its algbw is not size over time
    low, high = ranks_of_rates(rows, name)
    if (low, high) == (1, 1) and name == report.collective:
        return True  # one rank: it sends nothing, whatever was run
    if report.old_gather and name not in ("all_gather", "reduce_scatter"):
        return False
    if signs["a reduction"] != (name in REDUCING) and name != "sendrecv":
        return False  # of a sendrecv some versions name it
    if signs["a root"] != (name in ROOTED):
        return False
    by_name = name in SHARED and name == report.collective
    if signs["results not validated in place"] and name not in UNCHECKED and not by_name:
        return False
    if signs["results validated in place"] and name in UNCHECKED and not old:
        return False
    if signs["the count of one rank"] != (name in SHARED) and not by_name:
        return False  # by name: others count the whole buffer
    if high < low or high < 2:
        return False
    share = _share(rows) if name in SHARED else None
    return all(low <= n <= high for n in (ranks, share) if n)


# ---------------------------------------------------------------- ranks


def ranks_of_rates(rows, collective):
    """Return (least, most) ranks for which every row's busbw follows from its algbw, within
    rounding; least > most if no number fits, (1, MOST) if the rates can't tell.
    """
    if collective not in COLLECTIVES:
        return 1, MOST
    low, high = _ratio(rows)
    tolerance = 1e-6
    if busbw_factor(collective, 2) == busbw_factor(collective, 4):  # 1, whatever the ranks
        return (1, MOST) if low <= 1 + tolerance and high >= 1 - tolerance else (2, 1)
    top = 2 if collective in TWICE else 1
    low, high = (low - tolerance) / top, (high + tolerance) / top
    if low >= 1:
        return 2, 1
    least = 1 if low <= 0 else math.ceil(1 / (1 - low) - 1e-9)
    most = MOST if high >= 1 else 1 if high <= 0 else math.floor(1 / (1 - high) + 1e-9)
    return least, most


def _ratio(rows):
    """(least, most) of busbw over algbw, by the rows that agree: nine of ten must."""
    spans = []
    for row in rows:
        _, half_algbw, half_busbw = row.half_digits
        if row.algbw > 4 * half_algbw:
            least = (row.busbw - half_busbw) / (row.algbw + half_algbw)
            spans.append((least, (row.busbw + half_busbw) / (row.algbw - half_algbw)))
    if not spans:
        return 0.0, math.inf
    agreeing = max(
        ([s for s in spans if s[0] <= point + 1e-9 and point - 1e-9 <= s[1]] for point, _ in spans),
        key=len,
    )
    if len(agreeing) < 0.9 * len(spans) and len(spans) - len(agreeing) > 1:
        return 2.0, 0.0
    return max(s[0] for s in agreeing), min(s[1] for s in agreeing)


def _share(rows):
    """Ranks of a collective whose rows count the elements of one rank; None if rows differ."""
    counts = {row.size / row.count / row.width for row in rows if row.count}
    one = counts.pop() if len(counts) == 1 else 0
    return int(one) if one == int(one) > 1 else None


def listed(report):
    """Return the number of ranks in the list of devices, if it appears complete."""
    ranks = sorted(device.rank for device in report.devices)
    whole = ranks == list(range(len(ranks))) and not report.elided
    group = (report.gpus or 1) * (report.threads or 1)
    return len(ranks) if ranks and whole and len(ranks) % group == 0 else None


def _confirmed(report, collective, by_rates):
    """Ranks in the list, if something else bears it out: a list may have lost its end."""
    n = listed(report)
    if not n or by_rates or (collective in SHARED and _share(report.rows)):
        return n
    sizes = Counter(device.host for device in report.devices).values()
    return n if n > 1 and len(set(sizes)) == 1 else None


def _said(report):
    return next(iter(report.said_ranks)) if len(report.said_ranks) == 1 else None


def _commanded(report):
    """Ranks by the command line: processes times what each of them drives."""
    processes = re.search(r"(?:^|\s)(?:-np|-n|--np|--ntasks|-c)[ =](\d+)\b", _launch(report))
    if not processes:
        return None
    each = re.findall(r"(?:^|\s)-(?:g|t)\s+(\d+)\b", _program(report))
    return int(processes[1]) * math.prod(map(int, each))


def _launch(report):
    """The part of the command line that belongs to mpirun or srun."""
    match = re.search(r"\b(?:mpirun|mpiexec|srun)\b(.*?)\S*_perf", report.command)
    return match[1].replace("\\", " ") if match else ""


def _program(report):
    return report.command.partition("_perf")[2]


def _ranks(report, collective, count):
    low, high = ranks_of_rates(report.rows, collective)
    ask = "State the number of GPUs with --ranks."
    if count:
        if not low <= count <= high and low <= high:
            fit = f"{low}" if low == high else f"{low} to {high}"
            listing = f", which lists {listed(report)} devices" if listed(report) else ""
            raise ReportError(
                report.line,
                f"--ranks {count} contradicts the file{listing}: its rates fit {fit}; leave it out",
            )
        if listed(report) and count != listed(report) and low < high:
            raise ReportError(
                report.line,
                f"--ranks {count} contradicts the file, which lists {listed(report)} devices;"
                " leave it out",
            )
        return Fact(count, "given", "--ranks")
    if low > high:
        return Fact(None, "unknown", "its rows do not fit one number of ranks", ask)
    at_least = max((d.rank + 1 for d in report.devices), default=1)
    grounds = (
        ("stated", _said(report), "NCCL's messages"),
        ("stated", _confirmed(report, collective, low == high), "the list of devices"),
        ("inferred", _share(report.rows) if collective in SHARED else None, "size over count"),
        ("inferred", low if low == high else None, "busbw over algbw"),
        ("inferred", _commanded(report), "the command line"),
    )
    low = max(low, at_least)
    fitting = [ground for ground in grounds if ground[1] and low <= ground[1] <= high]
    if collective in SHARED and _share(report.rows):
        fitting = [ground for ground in fitting if ground[1] == _share(report.rows)]
    if len({n for how, n, _ in fitting if how == "stated"}) > 1 or not fitting:
        return Fact(None, "unknown", "nothing in the file tells it without doubt", ask)
    how, n, ground = fitting[0]
    return Fact(n, how, ground)


# ---------------------------------------------------------------- nodes


def _nodes(report, ranks, count):
    if count:
        return Fact(count, "given", "--nodes")
    n = ranks.value
    hosts = set(report.hosts_of_ranks.values())
    complete = n and set(report.hosts_of_ranks) == set(range(n))
    grounds = [
        ("stated", _hostslisted(report, n), "the list of devices"),
        ("stated", _only(report.said_nodes), "NCCL's messages"),
        ("stated", len(hosts) if complete else None, "NCCL's messages"),
        ("inferred", _one_process(report, n), "one process drives all GPUs"),
        ("inferred", _shortened(report, n), "ranks and device numbers of the shortened list"),
        ("inferred", _launched(report, n), "the command line"),
    ]
    sure = [ground for ground in grounds if ground[1]]
    values = {value for _, value, _ in sure[:1]} | {v for how, v, _ in sure if how == "stated"}
    ask = f"State on how many nodes the {f'{n} ' if n else ''}GPUs are with --nodes."
    if len(values) == 1:
        how, value, ground = sure[0]
        return Fact(value, how, ground)
    why = "the grounds in the file disagree" if values else "nothing in the file tells it"
    return Fact(None, "unknown", why, ask)


def _only(values):
    return next(iter(values)) if len(values) == 1 else None


def _hostslisted(report, n):
    """Hosts of a list that names every rank, no device of a host twice."""
    places = [(d.host, d.index) for d in report.devices]
    ranks = sorted(d.rank for d in report.devices)
    if not n or report.elided or ranks != list(range(n)) or len(set(places)) < len(places):
        return None
    if not all(d.host for d in report.devices):
        return None
    return len(report.hosts)


def _one_process(report, n):
    return 1 if n and (report.gpus or 1) * (report.threads or 1) == n > 1 else None


def _shortened(report, n):
    """Nodes of a list with gaps, if they are alike: on a node, ranks go with device numbers."""
    if not n or not report.devices or not (report.elided or len(report.devices) < n):
        return None
    if not all(d.host for d in report.devices):
        return None
    if _consistent_with_one_host(report, n):
        return None
    fitting = {
        each
        for each in range(max(d.index for d in report.devices) + 1, n + 1)
        if n % each == 0 and all(d.rank % each == d.index for d in report.devices)
        if all(
            (a.rank // each == b.rank // each) == (a.host == b.host)
            for a in report.devices
            for b in report.devices
        )
    }
    return n // fitting.pop() if len(fitting) == 1 else None


def _consistent_with_one_host(report, n):
    return len(report.hosts) == 1 and n > len(report.devices) and not report.elided


def _launched(report, n):
    launch = _launch(report)
    each = re.search(r"(?:^|\s)(?:-N|-npernode|--npernode|--ntasks-per-node)[ =](\d+)\b", launch)
    each = each or re.search(r"\bppr:(\d+):node\b", launch)
    hosts = re.search(r"(?:^|\s)(?:-H|-host|--host)[ =](\S+)", launch)
    nodes = None
    if "srun" in report.command:
        words = re.search(r"(?:^|\s)(?:-N|--nodes)[ =](\d+)\b", launch)
        nodes = int(words[1]) if words else None
        each = re.search(r"--ntasks-per-node[ =](\d+)\b", launch)
    elif hosts:
        slots = [host.partition(":")[2] for host in hosts[1].split(",")]
        nodes = len(slots) if all(s.isdigit() for s in slots) else None
    per = int(each[1]) * _driven(report) if each else 0
    if nodes is None and n and per and n % per == 0:
        nodes = n // per
    return nodes if nodes and n and n % nodes == 0 else None


def _driven(report):
    return math.prod(map(int, re.findall(r"(?:^|\s)-(?:g|t)\s+(\d+)\b", _program(report))))


# ---------------------------------------------------------------- adapters


def _adapters(report):
    """How many adapters of a node NCCL uses; unknown if hosts differ."""
    counts = {len(names) for names in report.adapters.values()}
    if len(counts) == 1:
        return Fact(counts.pop(), "stated", "NCCL's messages (NET/IB : Using)")
    if report.efa_nics:
        return Fact(report.efa_nics, "stated", "NCCL's messages (EFA)")
    adapters = re.search(r"NCCL_IB_HCA=[\"']?=?([\w.:,-]+)", report.command)
    if adapters:
        names = [name for name in adapters[1].split(",") if re.search(r"\d", name)]
        if names and not adapters[1].startswith("^"):
            return Fact(len(names), "inferred", "NCCL_IB_HCA on the command line")
    return Fact(None, "unknown", "nothing in the file names the adapters")
