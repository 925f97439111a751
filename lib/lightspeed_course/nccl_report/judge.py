"""Is this bandwidth normal? What `lightspeed nccl report` thinks of a run of nccl-tests.

A measured time is set beside `nccl_fit.predict` where a model was fitted to the hardware: "normal"
then means no further from it than nine of ten published rows that it was not fitted to. Where none
was, its share of the line is set beside the shares that published runs reached on other links.
Where no line is known, nothing is judged. Chapter 7 explains each number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lightspeed.collectives import algbw, busbw
from lightspeed.models.nccl_fit import FABRICS, Prediction, measurements, predict
from lightspeed_course.nccl_report.check import check
from lightspeed_course.nccl_report.facts import Facts, facts_of, listed
from lightspeed_course.nccl_report.log import ReportError
from lightspeed_course.nccl_report.machine import Machine, described, machine_of
from lightspeed_course.nccl_report.published import (
    LARGE,
    PER_NODE,
    kind,
    line_of,
    published_near,
    rate_of,
    shares_near,
    spread,
)

MANY = 5  # published runs nearby that are all faster: then that is no chance
BEYOND = 1.03  # a rate this far above what a link carries was not carried by it


@dataclass(frozen=True)
class Verdict:
    """One measured size and what to think of it. `level`: normal, slow, very slow, fast,
    unknown. Rates in byte/s, times in s.
    """

    size: float
    time: float
    algbw: float
    busbw: float
    line: float | None
    model: Prediction | None
    spread: float | None
    shares: tuple
    level: str
    regime: str

    @property
    def share(self):
        """busbw over the line rate, or None."""
        return self.busbw / self.line if self.line else None

    @property
    def ratio(self):
        """Measured over expected time, or None."""
        return self.time / self.model.time if self.model else None


def leaves_node(collective, rate, nodes, per_node):
    """byte/s that each node sends, or one receives, at least, whatever the algorithm; `rate` is
    the algbw. Even a switch that adds needs every node's contribution once.

    >>> leaves_node("all_reduce", 118.87e9, 2, 8), leaves_node("alltoall", 100e9, 2, 8)
    (118870000000.0, 400000000000.0)
    """
    if nodes == 1:
        return 0.0
    if collective == "alltoall":
        return rate * per_node * (nodes - 1) / nodes
    if collective in ("all_gather", "reduce_scatter", "gather", "scatter"):
        return rate * (nodes - 1) / nodes
    return rate


def judge(collective, size, time, n, nodes=1, machine=None):
    """The `Verdict` on `size` bytes in `time` seconds over n ranks on `nodes` nodes of a `Machine`.

    >>> from lightspeed_course.nccl_report.machine import described
    >>> verdict = judge("all_reduce", 16e9, 16e9 / 156e9, 1000, 125, described("p5"))
    >>> verdict.level, round(verdict.busbw / 1e9, 1), round(verdict.share, 2)
    ('normal', 311.7, 0.78)
    """
    rate = algbw(size, time)
    bus = busbw(collective, n, rate)
    line, whole = _line(collective, n, nodes, machine)
    if not line:
        return Verdict(size, time, rate, bus, None, None, None, (), "unknown", "unknown")
    joined = 1 if machine.joins(n, nodes) else nodes
    message, where = kind(size, joined)
    if machine.fabric and whole:
        model = predict(collective, size, n, joined, machine.fabric)
        tested = any(row.collective == collective for row in measurements())
        factor = spread(message if tested else "middle", where)
        level = _level(time / model.time, factor)
        return Verdict(size, time, rate, bus, line, model, factor, (), level, _regime(model))
    shares = tuple(shares_near(collective, size, joined)) if whole else ()
    factor = spread(message, where)
    level = "unknown"
    if shares and "PCIe" not in machine.name and message == "large":
        level = _level(shares[0] / (bus / line), factor, fastest=float("inf"))
    return Verdict(size, time, rate, bus, line, None, factor, shares, level, "unknown")


def _line(collective, n, nodes, machine):
    """(the line of a run or None, whether all GPUs of its nodes take part)."""
    if machine is None:
        return None, False
    if machine.joins(n, nodes):
        return machine.inside, True
    if not machine.network:
        return None, False
    gpus = machine.gpus or PER_NODE
    used = min(1.0, n / nodes / gpus)
    whole = used == 1
    per_node = min(gpus, n / nodes) if whole else gpus
    line = line_of(collective, n, nodes, machine.inside, machine.network, per_node)
    shared = collective in ("alltoall", "gather", "scatter", "sendrecv")
    return line * (1 if shared else used), whole


def _level(ratio, factor, fastest=None):
    if ratio > 2 * factor:
        return "very slow"
    fastest = fastest or factor
    return "slow" if ratio > factor else "fast" if ratio < 1 / fastest else "normal"


def _regime(model):
    if model.latency > model.transfer:
        return "latency-bound"
    return "bandwidth-bound" if model.transfer > 5 * model.latency else "in between"


# ---------------------------------------------------------------- a whole report


@dataclass(frozen=True)
class Judged:
    """A run with what it was, its machine (None if not known), its verdicts by size, and what is
    to be told of the file. `dropped` is a machine that the rates rule out.
    """

    report: object
    facts: Facts
    machine: Machine | None
    dropped: Machine | None
    verdicts: tuple
    findings: tuple

    @property
    def n(self):
        """Ranks, or None."""
        return self.facts.ranks.value

    @property
    def nodes(self):
        """Nodes, or None."""
        return self.facts.nodes.value

    @property
    def collective(self):
        """What was run, or None."""
        return self.facts.collective.value

    @property
    def fabric(self):
        """The key of FABRICS whose model judges this, or None."""
        return self.machine.fabric or None if self.machine else None

    @property
    def main(self):
        """The verdict on the largest message, out of place if there is one; None if the file does
        not tell what was run.
        """
        return max(self.verdicts, key=lambda verdict: verdict.size, default=None)

    @property
    def slow(self):
        """The verdicts on sizes that are slower than they should be."""
        return tuple(v for v in self.verdicts if v.level in ("slow", "very slow"))

    @property
    def above(self):
        """How many published runs nearby there are, if every one is faster than the largest
        message here; else 0.
        """
        if not self.fabric or self.main.level != "normal":
            return 0
        rows = published_near(self.collective, self.main.size, self.nodes, self.fabric, self.n)
        rows = [r for r in rows if 0.5 <= r.nodes / self.nodes <= 2]
        faster = [r for r in rows if rate_of(r) > self.main.busbw]
        return len(rows) if len(faster) == len(rows) >= MANY else 0

    @property
    def wrong(self):
        """Whether the test says that its results are wrong."""
        rows = any(row.wrong and row.wrong >= 1 for row in self.report.rows)
        return bool(self.report.out_of_bounds or rows)

    @property
    def level(self):
        """The verdict on the run: that on the largest message, but "mixed" if that is normal and
        other sizes or all published runs speak against it, and "invalid" if its rates mean nothing.
        """
        if self.wrong or self.report.apart or self.n == 1:
            return "invalid"
        if self.main is None:
            return "unknown"
        mixed = self.main.level == "normal" and (self.slow or self.above)
        return "mixed" if mixed else self.main.level

    @property
    def confidence(self):
        """How sure the level is: high if all it rests on is stated or given and its model was
        fitted to this link; None if nothing is judged.
        """
        if self.level in ("unknown", "invalid"):
            return None
        hows = {self.facts.ranks.how, self.facts.nodes.how, self.machine.how}
        if not self.main.model or self.machine.hosts_joined:
            return "low" if "inferred" in hows else "medium"
        return "medium" if "inferred" in hows else "high"


def judge_report(report, machine=None, ranks=None, nodes=None):
    """The `Judged` of one parsed run; `machine`, `ranks` and `nodes` are what the reader states.
    Raises ReportError for a statement that the file contradicts.
    """
    facts = facts_of(report, ranks, nodes)
    found = machine_of(report, facts, machine)
    known = facts.collective.known and facts.ranks.known and facts.nodes.known
    told = report.apart or (facts.ranks.value or 2) < 2
    if not known or told:
        n = facts.ranks.value or listed(report)
        return Judged(report, facts, found, None, (), check(report, n))
    n, nodes, collective = facts.ranks.value, facts.nodes.value, facts.collective.value
    if found and found.fabric and nodes > 1 and not FABRICS[found.fabric].network:
        raise ReportError(
            report.line,
            f"hardware {found.fabric} is one node, the run has {nodes}; there are"
            f" {', '.join(k for k, f in FABRICS.items() if f.network)}",
        )
    rows = _by_size(report.rows)
    dropped = None
    if found and _beyond(found, collective, rows, n, nodes):
        found, dropped = None, found

    def judged(machine):
        return tuple(judge(collective, row.size, row.time, n, nodes, machine) for row in rows)

    verdicts = judged(found)
    taken_as_joined = nodes > 1 and found and found.hosts_joined and found.how == "inferred"
    if taken_as_joined and verdicts[-1].level in ("slow", "very slow"):  # they need not be
        found = replace(found, hosts_joined=False)
        verdicts = judged(found)
    return Judged(report, facts, found, dropped, verdicts, check(report, n))


def usual(judged):
    """(name, level, share of the line) on each usual network that could have carried a run whose
    network is not known: as many adapters as NCCL names, else one for each GPU, and four of 200
    Gbit/s for eight.
    """
    main, each = judged.main, judged.facts.per_node
    named = judged.machine.network if judged.machine else None
    if not main or main.line or named or judged.nodes == 1 or not each or main.size < LARGE:
        return
    adapters = judged.facts.adapters
    rates = (
        (800, 400, 200, 100) if any("B300" in n for n in judged.report.names) else (400, 200, 100)
    )
    networks = [(adapters.value or each, rate) for rate in rates]
    networks += [(4, 200)] * (each == PER_NODE and not adapters.known)
    for count, rate in networks:
        machine = described(nic=f"{count}x{rate}G")
        row = (judged.collective, main.size, main.time, judged.n, judged.nodes)
        least = leaves_node(judged.collective, main.algbw, judged.nodes, each)
        if judged.collective == "all_reduce":  # by ranks alone: few have switches that add
            least *= 2 * (judged.nodes - 1) / judged.nodes
        if least > BEYOND * machine.network:
            continue
        verdict = judge(*row, replace(machine, gpus=each))
        if verdict.shares and verdict.share > verdict.spread * max(1, verdict.shares[-1]):
            continue  # nobody reached such a share of any network
        if verdict.level != "unknown":
            yield f"{count} x {rate}G a node", verdict.level, verdict.share


def _by_size(rows):
    """The row that speaks for each size: out of place if there is one."""
    found = {}
    for row in rows:
        if row.size and row.time and (row.size not in found or not row.in_place):
            found.setdefault((row.size, row.in_place), row)
    sizes = sorted({size for size, _ in found})
    return [found.get((size, False)) or found[size, True] for size in sizes]


def _beyond(machine, collective, rows, n, nodes):
    """Whether a row was faster than the links of a machine can be, whatever the algorithm."""
    rates = [row.size / row.time for row in rows]
    if machine.joins(n, nodes):  # with adders in the switch, a GPU sends its buffer once
        least = max(r if collective == "all_reduce" else busbw(collective, n, r) for r in rates)
        return bool(machine.inside) and least > BEYOND * machine.inside
    least = max(leaves_node(collective, rate, nodes, n / nodes) for rate in rates)
    return bool(machine.network) and least > BEYOND * machine.network
