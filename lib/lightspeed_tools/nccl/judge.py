"""A whole run of nccl-tests, judged: its facts, its machine, the verdict on each size, and what it
would be on the machines that its file leaves open.
"""

from dataclasses import dataclass, replace
from typing import Any

from lightspeed.collectives import busbw, nvls_time
from lightspeed_tools.nccl.cases import Span, agreed, cases_of, span_of
from lightspeed_tools.nccl.consistency import check
from lightspeed_tools.nccl.facts import Facts, facts_of, listed
from lightspeed_tools.nccl.log import Report
from lightspeed_tools.nccl.machine import Machine, machine_of
from lightspeed_tools.nccl.published import (
    LARGE,
    PER_NODE,
    published_near,
    rate_of,
    standing,
)
from lightspeed_tools.nccl.shape import stalls_of
from lightspeed_tools.nccl.verdict import BEYOND, judge, leaves_node

OPEN = ("normal", "unknown", "depends")  # levels that stalls speak against
MANY = 5  # published runs nearby that are all faster: then that is no chance


@dataclass(frozen=True)
class Judged:
    """A run with what it was, its machine (None if not known), its verdicts by size, and what is
    to be told of the file. `dropped` is a machine that the rates rule out; `cases` are what the
    run would be on machines that the file leaves open, `span` where it would be normal.
    """

    report: Report
    facts: Facts
    machine: Any
    dropped: Machine | None
    verdicts: tuple
    findings: tuple
    cases: tuple = ()
    span: Span | None = None
    in_place: tuple = ()  # verdicts on the table's other half
    stalls: tuple = ()

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
        """The collective that was run, or None."""
        return self.facts.collective.value

    @property
    def fabric(self):
        """The key in FABRICS of the model that judges this run, or None."""
        return self.machine.fabric or None if self.machine else None

    @property
    def main(self):
        """The verdict on the largest message, out of place if possible; None without a verdict."""
        return max(self.verdicts, key=lambda verdict: verdict.size, default=None)

    @property
    def slow(self):
        """The verdicts on sizes that are slower than expected, out of place or in place."""
        both = (*self.verdicts, *self.in_place)
        return tuple(v for v in both if v.level in ("slow", "very slow"))

    @property
    def above(self):
        """The number of published runs nearby if all are faster than the largest message here; else
        0.
        """
        if not self.fabric or self.main.level != "normal":
            return 0
        rows = published_near(self.collective, self.main.size, self.nodes, self.fabric, self.n)
        rows = [r for r in rows if 0.5 <= r.nodes / self.nodes <= 2]
        faster = [r for r in rows if rate_of(r) > self.main.busbw]
        return len(rows) if len(faster) == len(rows) >= MANY else 0

    @property
    def wrong(self):
        """Whether the test reports wrong results."""
        rows = any(row.wrong and row.wrong >= 1 for row in self.report.rows)
        return bool(self.report.out_of_bounds or rows)

    @property
    def level(self):
        """The verdict on the run: that on the largest message, but "mixed" if that is normal and
        other sizes or all published runs speak against it, "aborted" if the test did not end,
        "invalid" if its rates mean nothing. Where the machine is not known: that on all machines
        that such GPUs are sold in, "depends" if those differ.
        """
        if self.wrong or self.report.apart or self.n == 1:
            return "invalid"
        if self.report.aborted:
            return "aborted"
        if self.main is None or self.main.level == "unknown":
            return "mixed" if self.stalls and self.agreed in OPEN else self.agreed
        mixed = self.main.level == "normal" and (self.slow or self.above or self.stalls)
        return "mixed" if mixed else self.main.level

    @property
    def agreed(self):
        """The level on which all candidate machines agree."""
        racks = self.machine is not None and self.machine.domain > PER_NODE
        return agreed(self.cases, self.facts.nodes.known, racks)

    @property
    def confidence(self):
        """How sure the level is: high if all it rests on is stated or given and its model was
        fitted to this link; None if nothing is judged.
        """
        if self.level in ("unknown", "invalid", "aborted", "depends"):
            return None
        if self.main is None:  # it is mixed by its own rows
            return None
        if self.main.level == "unknown":  # by what such nodes are sold with
            return "low"
        hows = {self.facts.ranks.how, self.facts.nodes.how, self.machine.how}
        if not self.main.model or self.machine.hosts_joined:
            return "low" if "inferred" in hows else "medium"
        return "medium" if "inferred" in hows else "high"


def judge_report(report, machine=None, ranks=None, nodes=None):
    """Return the `Judged` of one parsed run; `machine`, `ranks` and `nodes` are stated by the
    reader. Raises ReportError for a statement that the file contradicts.
    """
    facts = facts_of(report, ranks, nodes)
    hardware = machine_of(report, facts, machine)
    sure = facts.collective.known and facts.ranks.known and facts.nodes.known
    mixture = report.apart or (facts.ranks.value or 2) < 2
    rows = by_size(report.rows)
    largest = rows[-1] if rows else None
    if not sure or mixture:
        n = facts.ranks.value or listed(report)
        cases = () if mixture else cases_of(report, facts, hardware, largest)
        stalls = () if mixture else stalls_of(report.rows)
        return Judged(report, facts, hardware, None, (), check(report, n), cases, stalls=stalls)
    n, nodes, collective = facts.ranks.value, facts.nodes.value, facts.collective.value
    dropped = None
    if hardware and _beyond(hardware, collective, rows, n, nodes):
        hardware, dropped = None, hardware

    inside = [row for row in by_size(r for r in report.rows if r.in_place) if row not in rows]

    def judged_on(machine, rows=rows):
        return tuple(judge(collective, row.size, row.time, n, nodes, machine) for row in rows)

    verdicts = judged_on(hardware)
    taken_as_joined = (
        nodes > 1 and hardware and hardware.hosts_joined and hardware.how == "inferred"
    )
    if taken_as_joined and verdicts[-1].level in ("slow", "very slow"):  # they need not be
        hardware = replace(hardware, hosts_joined=False)
        verdicts = judged_on(hardware)
    run = Judged(report, facts, hardware, dropped, verdicts, check(report, n))
    run = replace(
        run, stalls=stalls_of(report.rows),
        verdicts=tuple(_as_peers(run, v) for v in verdicts),
        in_place=tuple(_as_peers(run, v) for v in judged_on(hardware, inside)),
    )  # fmt: skip
    if not verdicts or run.main.line or (hardware and hardware.network):
        return run
    cases = cases_of(report, facts, hardware, largest)
    return replace(run, cases=cases, span=span_of(facts, largest))


def _as_peers(run, verdict):
    """A verdict of "slow" by a model that was fitted to another number of GPUs: normal if measured
    peers of as many are no faster.
    """
    if verdict.level not in ("slow", "very slow") or not run.fabric or verdict.size < LARGE:
        return verdict
    of_as_many = (run.collective, verdict.size, run.nodes, run.fabric, run.n)
    place = standing(run, verdict)
    if published_near(*of_as_many) or not place or place[0].peers < 3:
        return verdict
    peers, own = place
    slower = peers.busbw[0] / own.busbw > verdict.spread
    return verdict if slower else replace(verdict, level="normal")


def by_size(rows):
    """Return one row for each size: out of place if available."""
    groups = {}
    for row in rows:
        if row.size and row.time and (row.size not in groups or not row.in_place):
            groups.setdefault((row.size, row.in_place), row)
    sizes = sorted({size for size, _ in groups})
    return [groups.get((size, False)) or groups[size, True] for size in sizes]


def _beyond(machine, collective, rows, n, nodes):
    """Whether a row was faster than the links of a machine can be, whatever the algorithm."""
    rates = [row.size / row.time for row in rows]
    if machine.joins(n, nodes):
        least = busbw(collective, n, max(rates))
        if collective == "all_reduce":  # the switch may add
            least = min(least, max(rates) * nvls_time(1.0, n, 1.0))
        return bool(machine.inside) and least > BEYOND * machine.inside
    least = max(leaves_node(collective, rate, nodes, n / nodes) for rate in rates)
    return bool(machine.network) and least > BEYOND * machine.network
