"""Is this bandwidth normal? What `lightspeed nccl report` says of a run of nccl-tests, in words.
Chapter 7 explains each sentence.

A measured time is set beside `nccl_fit.predict` and beside published rows near it. "Normal" means:
no further from the model than nine of ten published rows that the model was not fitted to, of the
same kind.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from lightspeed.collectives import COLLECTIVES, algbw, busbw, busbw_factor
from lightspeed.errors import one_of
from lightspeed.models.nccl_fit import FABRICS, Prediction, measurements, predict, residuals
from lightspeed_course.nccl_report.log import ReportError, check, infer_ranks
from lightspeed_course.show.format import si

LARGE, SMALL = 64e6, 1e6  # bytes: where the regimes of messages begin and end
LEAST_SPREAD = 1.1  # no model of a network is better than this
# What a device name says of the machine: alone, and with others. p5 stands in for any eight H100
# with 400 GB/s a node.
FAMILIES = {
    "A100": ("a100", "p4d"),
    "H100": ("h100", "p5"),
    "H200": ("h200", "p5"),
    "B200": ("b200", "p6"),
}
MANY = 5  # published runs nearby that are all faster: then that is no chance
PER_NODE = 8  # GPUs of a node, in every published run across nodes
SOCKETS = 12.5e9  # byte/s: what TCP over one fast port gives at best


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
    level: str
    regime: str
    words: tuple
    checks: tuple

    @property
    def share(self):
        """busbw over the line rate, or None."""
        return self.busbw / self.line if self.line else None

    @property
    def ratio(self):
        """Measured over expected time, or None."""
        return self.time / self.model.time if self.model else None


def kind(size, nodes):
    """The regime of messages that a row belongs to, as the tests of the model divide them."""
    message = "large" if size >= LARGE else "small" if size < SMALL else "middle"
    return message, "one node" if nodes == 1 else "several nodes"


@functools.cache
def spread(message, where):
    """The factor within which nine of ten published rows of this kind lie from the model, fitted
    rows left out.
    """
    errors = [
        abs(math.log1p(error))
        for row, error in residuals(fitted=False)
        if kind(row.size, row.nodes) == (message, where)
    ]
    if len(errors) < 5:  # small messages across nodes: nobody publishes them
        return spread("middle", where)
    return max(math.exp(sorted(errors)[math.ceil(0.9 * len(errors)) - 1]), LEAST_SPREAD)


def published_near(collective, size, nodes, fabric):
    """Published rows on the same link, from half to twice the size and the nodes; else the
    nearest in nodes at that size.
    """
    link = FABRICS[fabric].link(nodes)
    alike = [
        r
        for r in measurements()
        if r.collective == collective
        and FABRICS[r.fabric].link(r.nodes) == link
        and (r.nodes > 1) == (nodes > 1)
    ]
    alike = [r for r in alike if 0.5 <= r.size / size <= 2]
    near = [r for r in alike if 0.5 <= r.nodes / nodes <= 2]
    if near or not alike:
        return near
    closest = min(abs(math.log(r.nodes / nodes)) for r in alike)
    return [r for r in alike if abs(math.log(r.nodes / nodes)) == closest]


def hardware_of(report):
    """The key of FABRICS that the device names suggest, or None."""
    for family, (alone, joined) in FAMILIES.items():
        if report.devices and all(
            family in d and f"G{family}" not in d and "PCI" not in d.upper() for d in report.devices
        ):
            return joined if (report.nodes or 1) > 1 else alone
    return None


def judge(collective, size, time, n, nodes=1, fabric=None, hints=()):
    """The `Verdict` on `size` bytes in `time` seconds over n ranks on `nodes` nodes; `fabric` is a
    key of FABRICS or None.

    >>> verdict = judge("all_reduce", 16e9, 16e9 / 156e9, 1000, 125, "p5")
    >>> verdict.level, round(verdict.busbw / 1e9, 1), round(verdict.share, 2)
    ('normal', 311.7, 0.78)
    """
    rate = algbw(size, time)
    bus = busbw(collective, n, rate)
    per = f"{n:,} GPUs" + (f" on {nodes:,} nodes" if nodes > 1 else " of one node")
    first = (
        f"{collective} of {si(float(size), 'byte')} over {per}: {si(time, 's')}, algbw"
        f" {si(rate, 'byte/s')}, busbw {si(bus, 'byte/s')}."
    )
    if not fabric:
        words = (
            first,
            (
                "The hardware is not known, so there is no line rate to compare with and no model."
                " State it with --hardware."
            ),
        )
        return Verdict(size, time, rate, bus, None, None, None, "unknown", "unknown", words, ())
    line = FABRICS[fabric].rate(
        nodes, "alltoall" if collective == "alltoall" and nodes == 1 else "ring"
    )
    if collective == "alltoall" and nodes > 1:
        line /= PER_NODE  # each GPU has its own adapters for itself
    if nodes > 1 and n < PER_NODE * nodes:
        line *= 1 if collective == "alltoall" else n / nodes / PER_NODE
        words = (
            first,
            (
                f"Only {n / nodes:.3g} of {PER_NODE} GPUs of a node take part, with"
                f" {si(line, 'byte/s')} of adapters in one direction. Busbw is"
                f" {si(bus / line, '%', 2)} of that."
            ),
        )
        words += (
            (
                "No published run leaves GPUs out, so there is no model to judge by. Run the test"
                " on all GPUs."
            ),
        )
        return Verdict(size, time, rate, bus, line, None, None, "unknown", "unknown", words, ())
    model = predict(collective, size, n, nodes, fabric)
    message, where = kind(size, nodes)
    tested = any(row.collective == collective for row in measurements())
    factor = spread(message if tested else "middle", where)
    ratio = time / model.time
    level = _level(ratio, factor)
    regime = _regime(model)
    words = (
        first,
        _against_line(collective, bus, line, nodes, model, level),
        _against_model(ratio, factor, model, level, tested),
        _bound(regime, model, size, level),
    )
    words += _published(collective, size, nodes, fabric)
    return Verdict(
        size,
        time,
        rate,
        bus,
        line,
        model,
        factor,
        level,
        regime,
        words,
        _checks(collective, bus, line, nodes, level, regime, hints),
    )


def _level(ratio, factor):
    if ratio > 2 * factor:
        return "very slow"
    return "slow" if ratio > factor else "fast" if ratio < 1 / factor else "normal"


def _regime(model):
    if model.latency > model.transfer:
        return "latency-bound"
    return "bandwidth-bound" if model.transfer > 5 * model.latency else "in between"


def _against_line(collective, bus, line, nodes, model, level):
    whose = (
        "a GPU's NVLink or xGMI"
        if nodes == 1
        else (
            "one GPU's share of the network"
            if collective == "alltoall"
            else "all adapters of a node"
        )
    )
    said = (
        f"Busbw is {si(bus / line, '%', 3 if bus > line else 2)} of the line, {si(line, 'byte/s')}"
        f" in one direction for {whose}."
    )
    if level == "fast":
        return said
    if bus > line and collective == "all_reduce":
        why = (
            "the NVLink switches add"
            if model.path == "in_network"
            else "the algorithm sends less than a ring"
        )
        return (
            said
            + f" Above the line nothing is broken: {why}, and busbw still counts a ring's traffic."
        )
    if bus > line and collective == "alltoall":
        return said + " A part of the traffic stays inside the node."
    return said


def _against_model(ratio, factor, model, level, tested):
    told = {
        "normal": "That is normal",
        "slow": "That is slower than it should be",
        "very slow": "That is far too slow",
        "fast": (
            "That is faster than anything published: doubt the number of ranks, the unit or the"
            " size before you rejoice"
        ),
    }[level]
    if ratio >= 1.5:
        how = f"{ratio:.1f} times the time"
    else:
        how = f"{si(abs(ratio - 1), '%', 2)} {'more' if ratio > 1 else 'less'} time than"
    doubt = (
        ""
        if tested
        else " No published rows of this collective were at hand: the model is not tested on it."
    )
    expects = "that the model expects" if ratio >= 1.5 else "the model expects"
    return (
        f"{told}: {how} {expects}, {si(model.time, 's')}; nine of ten published runs of this kind"
        f" lie within a factor of {factor:.2f} of the model.{doubt}"
    )


def _bound(regime, model, size, level):
    steps = (
        f"alone, all steps would take {si(model.latency, 's', 2)} and all bytes"
        f" {si(model.transfer, 's', 2)}"
    )
    if regime == "latency-bound":
        return (
            f"Steps bound it, not links: {steps}. A larger message would show a higher rate on the"
            " same machine."
        )
    if regime == "in between":
        return f"Steps and bytes both count: {steps}. The rate still rises with the message."
    return f"The link bounds it: {steps}." + (
        " Fewer steps would change little." if level == "normal" else ""
    )


def _published(collective, size, nodes, fabric):
    rows = published_near(collective, size, nodes, fabric)
    if not rows:
        return ("No published measurement is near this size on this link.",)
    rates = sorted(row.size / row.time * busbw_factor(row.collective, row.n) for row in rows)
    where = sorted({row.nodes for row in rows})
    at = (
        "one node"
        if where == [1]
        else f"{where[0]} nodes"
        if len(where) == 1
        else f"{where[0]} to {where[-1]} nodes"
    )
    span = (
        si(rates[0], "byte/s")
        if len(rates) == 1
        else f"{si(rates[0], 'byte/s')} to {si(rates[-1], 'byte/s')}"
    )
    return (
        (
            f"Published nearby ({at}, half to twice the size): busbw {span}, {len(rows)}"
            f" row{'s' * (len(rows) > 1)}."
        ),
    )


def _checks(collective, bus, line, nodes, level, regime, hints):
    """What to look at, most likely first."""
    found = []
    if "sockets" in hints and nodes > 1:
        found.append(
            "The log says NET/Socket: NCCL fell back to TCP. Look for the network plugin"
            " (aws-ofi-nccl, libibverbs) in the log of NCCL_DEBUG=INFO, and set NCCL_NET so that a"
            " fallback is an error."
        )
    if "shared memory" in hints and nodes == 1:
        found.append(
            "The log says SHM: GPUs talk through the host's memory. Look at nvidia-smi topo -m, at"
            " NCCL_P2P_DISABLE, and at PCIe ACS settings."
        )
    if "InfiniBand" in hints and "GPUDirect RDMA" not in hints and nodes > 1 and level != "normal":
        found.append(
            "The log names InfiniBand but no GDRDMA: data may go through host memory. Is the peer"
            " memory module loaded?"
        )
    if level in ("slow", "very slow") and regime != "latency-bound":
        found += _slow_links(bus, line, nodes, hints)
    if regime == "latency-bound":
        found.append(
            "The message is small for this many ranks. Compare at the size that your job sends, and"
            " use -e 8G to see the plateau."
        )
    if bus > line and collective == "all_reduce":
        found.append(
            "To read a rate of the wire, run again with NCCL_ALGO=Ring (or NCCL_NVLS_ENABLE=0"
            " inside a node)."
        )
    if level == "fast":
        found.append(
            "Check that ranks and nodes are what the log says, and that the test validated its"
            " results (-c 1)."
        )
    return tuple(found)


def _slow_links(bus, line, nodes, hints):
    if nodes == 1:
        if bus < 0.15 * line:
            yield (
                "This is a rate of PCIe, not of the scale-up links. Is NVLink up (nvidia-smi nvlink"
                " -s), and is P2P allowed?"
            )
        yield (
            "Look for other jobs on the node, for throttled clocks, and for a GPU with fewer active"
            " links than the others."
        )
        return
    if "sockets" in hints:
        pass  # said already
    elif bus <= SOCKETS:
        yield (
            "This is what TCP sockets give. Look for NET/Socket in the log of NCCL_DEBUG=INFO: the"
            " transport may have fallen back."
        )
    elif bus < 0.2 * line:
        yield (
            "This is about what one of the node's adapters carries. Check NCCL_IB_HCA or FI_EFA"
            " settings, and that every GPU is near its own adapter (nvidia-smi topo -m)."
        )
    yield (
        "Look for one slow node: run the test on halves of the nodes, and again on halves of the"
        " slow half."
    )
    yield (
        "Check that GPUDirect RDMA is on, that adapters run at full width and speed, and that no"
        " other job shares the fabric."
    )


# ---------------------------------------------------------------- a whole report


@dataclass(frozen=True)
class Judged:
    """A run with its hardware, its verdicts by size, and the size that speaks for it. `fabric`
    is None if not known.
    """

    report: object
    fabric: str | None
    n: int
    nodes: int
    guessed: bool
    verdicts: tuple
    findings: tuple

    @property
    def main(self):
        """The verdict on the largest message, out of place if there is one."""
        return max(self.verdicts, key=lambda verdict: verdict.size)

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
        rows = published_near(self.report.collective, self.main.size, self.nodes, self.fabric)
        rows = [r for r in rows if 0.5 <= r.nodes / self.nodes <= 2]
        faster = [
            r for r in rows if r.size / r.time * busbw_factor(r.collective, r.n) > self.main.busbw
        ]
        return len(rows) if len(faster) == len(rows) >= MANY else 0

    @property
    def level(self):
        """The verdict on the run: that on the largest message, but "mixed" if that is normal and
        other sizes or all published runs speak against it.
        """
        return (
            "mixed"
            if self.main.level == "normal" and (self.slow or self.above)
            else self.main.level
        )

    @property
    def checks(self):
        """What to look at, most likely first: what the largest message asks for, then what
        speaks against it.
        """
        found = list(self.main.checks)
        if self.level == "mixed" and self.slow:
            found += max(self.slow, key=lambda v: v.size).checks
        elif self.level == "mixed":
            found += _slow_links(self.main.busbw, self.main.line, self.nodes, self.report.hints)
        return tuple(dict.fromkeys(found))


def judge_report(report, hardware=None, ranks=None, nodes=None):
    """The `Judged` of one parsed run; what it does not say must be stated. Raises ReportError if
    too little is known.
    """
    n = ranks or report.ranks or infer_ranks(report)
    if report.collective not in COLLECTIVES:
        raise ReportError(
            report.line,
            "the output does not name its collective; state it with --collective, one of"
            f" {', '.join(COLLECTIVES)}",
        )
    if not n:
        raise ReportError(
            report.line, "the list of devices is missing; state the number of GPUs with --ranks"
        )
    nodes = nodes or report.nodes or (1 if n <= 8 else None)
    if not nodes:
        raise ReportError(
            report.line,
            f"the list of devices is missing; state on how many nodes the {n} GPUs are with"
            " --nodes",
        )
    if n < 2:
        raise ReportError(
            report.line,
            "one rank: nothing is sent, so there is nothing to judge. Was the test built with"
            " MPI=1?",
        )
    if n < nodes:
        raise ReportError(report.line, f"{n} ranks cannot be on {nodes} nodes")
    if ranks and report.ranks and ranks != report.ranks and ranks != infer_ranks(report):
        raise ReportError(
            report.line,
            f"--ranks {ranks} contradicts the file, which lists {report.ranks} devices; leave"
            " it out",
        )
    fabric = (
        one_of("report", "hardware", hardware, tuple(FABRICS)) if hardware else hardware_of(report)
    )
    if fabric and nodes > 1 and not FABRICS[fabric].network:
        raise ReportError(
            report.line,
            f"hardware {fabric} is one node, the run has {nodes}; there are"
            f" {', '.join(k for k, f in FABRICS.items() if f.network)}",
        )
    rows = {}
    for row in report.rows:
        if row.size and row.time and (row.size not in rows or not row.in_place):
            rows[row.size] = row
    if not rows:
        raise ReportError(report.line, "no row has a size and a time above 0")
    verdicts = tuple(
        judge(report.collective, row.size, row.time, n, nodes, fabric, report.hints)
        for row in rows.values()
    )
    return Judged(
        report, fabric, n, nodes, bool(fabric and not hardware), verdicts, check(report, ranks)
    )


def headline(judged):
    """What was run, where."""
    where = FABRICS[judged.fabric].name if judged.fabric else "hardware not stated"
    return (
        f"{judged.report.collective}, {judged.n:,} GPUs on {judged.nodes:,}"
        f" node{'s' * (judged.nodes > 1)}, {where}"
    )


def summary(judged):
    """The verdict on the run in one sentence; what stands under it says no other."""
    main, slow = judged.main, judged.slow
    at = si(float(main.size), "byte")
    rate = f"busbw {si(main.busbw, 'byte/s')} at {at}"
    if main.level == "unknown":
        return f"Not judged: {rate}."
    facts = f"{rate}, {si(main.share, '%', 2)} of the line, {main.regime}."
    if judged.level != "mixed":
        return f"{main.level.capitalize()}: {facts}"
    against = []
    if slow:
        sizes = [si(float(v.size), "byte") for v in slow[:3]] + ["..."] * (len(slow) > 3)
        against.append(
            f"slower than it should be at {len(slow)} of {len(judged.verdicts)} sizes"
            f" ({', '.join(sizes)})"
        )
    against += [f"below all {judged.above} published runs nearby"] if judged.above else []
    return f"Normal by the model at {at}, but {' and '.join(against)}: {facts}"


def sentences(judged):
    """The verdict on the largest message, and what has to be said beside it."""
    found = [*judged.main.words]
    if judged.guessed:
        network = " and taken to have that network" * (judged.nodes > 1)
        found.append(
            f"The hardware is guessed from the names of the devices{network}. If it is other, state"
            " it with --hardware."
        )
    if judged.report.truncated:
        found.append("The file ends before the run does: its last sizes are missing.")
    return tuple(found)


def contradictions(judged, most=10):
    """What is wrong with the file itself, as lines."""
    found = [f"line {f.line}: {f.text}" if f.line else f.text for f in judged.findings]
    return tuple(found[:most]) + ((f"and {len(found) - most} more",) if len(found) > most else ())


def in_words(judged):
    """The lines that the command prints: what was run, the verdict, what to check, and what is
    wrong with the file.
    """
    lines = [
        headline(judged),
        *(f"  {sentence}" for sentence in (summary(judged), *sentences(judged))),
    ]
    if judged.checks:
        lines += ["Check first:", *(f"  {i}. {what}" for i, what in enumerate(judged.checks, 1))]
    elif judged.level == "normal":
        lines.append("Nothing to check.")
    if judged.findings:
        lines += ["The file contradicts itself:", *(f"  {line}" for line in contradictions(judged))]
    return lines
