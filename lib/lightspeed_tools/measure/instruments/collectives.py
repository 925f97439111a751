"""All-reduce, all-gather, reduce-scatter, all-to-all and a shift to the neighbour, over processes
of this machine. Measured for chapter 7; how a call is timed: `ranks`.
"""

import importlib.util
import math
import statistics
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from lightspeed.collectives import (
    double_tree_time,
    halving_doubling_time,
    recursive_doubling_time,
    ring_time,
    tree_time,
)
from lightspeed_models.fits import fit_alpha_beta
from lightspeed_show import si
from lightspeed_tools.measure.environment import usable_cores
from lightspeed_tools.measure.instruments.ranks import COLLECTIVES, INSTALL, LONGEST, start, turns
from lightspeed_tools.measure.instruments.timing import (
    LIMIT,
    Missing,
    Quantity,
    Unavailable,
    spread,
)
from lightspeed_tools.measure.records import record

QUICK_SIZES = (*(8 * 8**k for k in range(8)), 2**26)  # 8 B to 16 MiB, and 64 MiB
FULL_SIZES = tuple(2**k for k in range(3, 27))
BUDGET = {True: 0.1, False: 0.5}  # s for each size, quick and full
PATIENCE = 120  # s until processes that do not answer are given up
SMALL, LARGE = 4096, 2**20  # bytes: up to here steps count, from here bytes do
ALGORITHMS: dict[str, Any] = {
    "ring": ring_time,
    "tree": tree_time,
    "two trees": double_tree_time,
    "recursive doubling": recursive_doubling_time,
    "halving and doubling": halving_doubling_time,
}


@dataclass
class Run:
    """A run of n ranks: `rows` as measured by rank 0, including sizes without a sample."""

    ranks: int
    rows: list = field(default_factory=list)


def run(n, sizes=QUICK_SIZES, collectives=COLLECTIVES, budget=0.1, longest=LONGEST):
    """Return the `Run` of n processes started here. `longest`: sizes that take more than this many
    budgets are skipped. Raises Unavailable if the processes cannot start, hang or die.
    """
    if importlib.util.find_spec("mpi4py") is None:
        raise Unavailable("mpi4py is not installed.", INSTALL)
    job = {"collectives": list(collectives), "sizes": list(sizes)}
    return Run(n, start(n, job | {"budget": budget, "longest": longest}, PATIENCE))


def quantities(run_of):
    """Return the `Quantity`s of a run; a size with a wrong result or no sample is a `Missing`."""
    n = run_of.ranks
    for row in run_of.rows:
        key, size = f"collectives.{row['collective']}", row["size"]
        if not row["samples"]:
            why = f"{size:,} bytes and more over {n} ranks take too long here."
            yield Missing(key, why, "Give it more time with --full.")
        elif row.get("wrong"):
            why = f"{row['wrong']} wrong elements at {size:,} bytes over {n} ranks."
            yield Missing(key, why, "Do not use this MPI.")
        else:
            which = {"size": size, "ranks": n} if size else {}
            which["backend"] = "mpi"
            yield Quantity(key, "s", tuple(row["samples"]), which, "lower", note=turns(n))


def measure(quick=True, report=None):
    """Measure collectives over MPI with two processes, and with one per core (at most four)."""
    counts = sorted({2, min(4, usable_cores())} - {1})
    rows = []
    for n in counts:
        if report:
            report(f"{n} processes. {turns(n)}".strip())
        sizes = QUICK_SIZES if quick else FULL_SIZES
        rows += quantities(run(n, sizes, budget=BUDGET[quick] / len(counts)))
    return rows


# ---------------------------------------------------------------- conclusions


@dataclass(frozen=True)
class Explanation:
    """An algorithm compared with the measured all-reduce, by the median factor of its error."""

    name: str
    small: float
    large: float


def neighbour_fit(rows):
    """The shift's `AlphaBeta` from (size, seconds): all ranks send at once, as ring steps do."""
    import numpy

    size, time = numpy.array(rows, float).T
    return fit_alpha_beta(size, time)


def explain(n, rows, fit):
    """Return `Explanation`s of all-reduce times (size, seconds), best first at large sizes: each
    algorithm predicted from the neighbour shift's `fit` alone.
    """
    explanations = []
    for name, law in ALGORITHMS.items():
        misses = [
            (size, abs(math.log(law(float(size), n, fit.bandwidth, fit.latency) / time)))
            for size, time in rows
        ]
        parts = ([m for s, m in misses if s <= SMALL], [m for s, m in misses if s >= LARGE])
        factors = (math.exp(statistics.median(part)) if part else math.nan for part in parts)
        explanations.append(Explanation(name, *factors))
    return sorted(explanations, key=lambda e: (math.isnan(e.large), e.large))


def conclusions(run_of):
    """Return sentences on a run: alpha and bandwidth of the neighbour shift, and what explains the
    all-reduce, from sizes whose samples agree, if there are enough.
    """
    steady = [r for r in run_of.rows if spread(r["samples"]) <= LIMIT]
    times = {
        c: [(r["size"], statistics.median(r["samples"])) for r in steady if r["collective"] == c]
        for c in (*COLLECTIVES, "call")
    }
    if len(times["sendrecv"]) < 3:
        return [
            "No conclusion on alpha, bandwidth and algorithm: fewer than three sizes of the shift"
            " to the neighbour (sendrecv) gave steady times."
        ]
    try:
        fit = neighbour_fit(times["sendrecv"])
    except ValueError as error:
        return [f"No line fits the shift to the neighbour: {error}"]
    worst = max(abs(r) for r in fit.residuals)
    lines = [
        f"A shift to the neighbour, all {run_of.ranks} ranks at once: alpha {si(fit.latency, 's')},"
        f" W {si(fit.bandwidth, 'byte/s')}; this line misses single sizes by up to {worst:.0%}."
    ]
    if times["call"]:
        lines.append(
            f"A call that sends nothing takes {si(times['call'][0][1], 's', 2)} of it: Python and"
            " the library."
        )
    if times["all_reduce"] and run_of.ranks > 2:
        ranked = explain(run_of.ranks, times["all_reduce"], fit)
        for what, column in (
            (f"up to {SMALL:,} bytes", attrgetter("small")),
            (f"from {LARGE:,} bytes", attrgetter("large")),
        ):
            lines += _nearest(what, [(column(e), e.name) for e in ranked])
    elif times["all_reduce"]:
        lines.append(
            "Ring and tree take the same two steps between two ranks; take three or more to tell"
            " them apart."
        )
    return lines


def _nearest(what, factors):
    ranked = sorted(pair for pair in factors if not math.isnan(pair[0]))
    if not ranked:
        return []
    names = ", ".join(f"{name} {factor:.2f}" for factor, name in ranked)
    rough = " None of them explains it: the line above is too rough here."
    verdict = "" if ranked[0][0] < 1.5 else rough
    return [
        f"All-reduce {what}, measured against each algorithm computed from that line, off by a"
        f" factor of: {names}.{verdict}"
    ]


def run_in(machine):
    """Return the `Run` with most ranks in a record. Raises NotMeasured (a LookupError) if none."""
    measured = [
        q for c in COLLECTIVES for q in record.all_of(machine, f"collectives.{c}") if q.samples
    ]
    if not measured:
        raise record.NotMeasured("this record has no samples of collectives")
    ranks = max(q.parameters["ranks"] for q in measured)
    calls = record.all_of(machine, "collectives.call")[:1]
    rows = [{"collective": "call", "size": 0, "samples": q.samples} for q in calls]
    rows += [
        {"collective": q.key.rpartition(".")[2], "size": q.parameters["size"], "samples": q.samples}
        for q in measured
        if q.parameters["ranks"] == ranks
    ]
    return Run(ranks, rows)
