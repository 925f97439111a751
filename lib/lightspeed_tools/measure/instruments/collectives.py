"""All-reduce, all-gather, reduce-scatter, all-to-all and a shift to the neighbour, over processes.
Measured for chapter 7.

`lightspeed measure collectives -n 4` starts four processes with the mpiexec of this environment;
under mpirun, Slurm or torchrun the same command is one of the processes, and rank 0 speaks. How a
call is timed: `ranks`.
"""

import json
import math
import statistics
from dataclasses import dataclass, field
from typing import Any

from lightspeed.collectives import (
    algbw,
    busbw,
    double_tree_time,
    halving_doubling_time,
    recursive_doubling_time,
    ring_time,
    tree_time,
)
from lightspeed_models.fits import fit_alpha_beta
from lightspeed_show import si
from lightspeed_tools.measure.environment import usable_cores
from lightspeed_tools.measure.instruments.launch import (
    INSTALL,
    LIMIT,
    answers,
    clean,
    launcher,
    module,
    needs,
    turns,
)
from lightspeed_tools.measure.instruments.ranks import COLLECTIVES, LONGEST
from lightspeed_tools.measure.instruments.timing import LIMIT as LIMIT_OF_SPREAD
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, Unavailable, spread
from lightspeed_tools.measure.records import record

QUICK_SIZES = (*(8 * 8**k for k in range(8)), 2**26)  # 8 B to 16 MiB, and 64 MiB
FULL_SIZES = tuple(2**k for k in range(3, 27))
BUDGET = {True: 0.1, False: 0.5}  # s for each size, quick and full
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
    """A run of n ranks: `rows` as rank 0 said them, `nodes` of ranks, `lacking` what could not."""

    backend: str
    ranks: int
    nodes: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    lacking: list = field(default_factory=list)


# ---------------------------------------------------------------- running


def run(
    n,
    sizes=QUICK_SIZES,
    collectives=COLLECTIVES,
    backend="mpi",
    budget=0.1,
    limit=LIMIT,
    report=None,
    longest=LONGEST,
):
    """The `Run` of n processes started here. `longest`: a size that takes so many budgets is
    left out. Raises Unavailable, in words, if they cannot start, hang or die.
    """
    if backend == "mpi":
        needs("mpi4py", INSTALL)
    else:
        needs("torch", "pip install torch")
    job = {
        "backend": backend,
        "collectives": list(collectives),
        "sizes": list(sizes),
        "budget": budget,
        "longest": longest,
        "limit": limit,
    }
    command = [*launcher(backend, n), *module("rank_worker", json.dumps(job))]
    found, now = Run(backend, n), f"the start of {n} ranks"
    try:
        for said in answers(command, limit + 10, clean()):
            if "begin" in said:
                now = f"{said['begin']} of {said['size']:,} bytes over {n} ranks"
                if report and said["size"] in (min(sizes), max(sizes)):
                    report(now)
            note(found, said)
    except Unavailable as error:
        at = "" if now in error.why else f"{now}: "
        raise Unavailable(f"{at}{error.why}", error.remedy) from error
    return found


def note(found, said):
    """Put what rank 0 said into the `Run`."""
    if "nodes" in said:
        found.nodes = said["nodes"]
    elif "lacking" in said:
        found.lacking.append(
            Missing(
                f"collectives.{said['collective']}", f"{found.backend} cannot: {said['lacking']}"
            )
        )
    elif "samples" in said and not said["samples"]:
        found.lacking.append(
            Missing(
                f"collectives.{said['collective']}",
                f"{said['size']:,} bytes and more over {found.ranks} ranks take too long here.",
                "Give it more time with --full, or fewer ranks.",
            )
        )
    elif "samples" in said:
        found.rows.append(said)


def quantities(found):
    """The `Quantity`s of a run; a size with a wrong result is none, but a `Missing`."""
    for row in found.rows:
        parameters = (
            {"size": row["size"], "ranks": found.ranks, "backend": found.backend}
            if row["size"]
            else {"backend": found.backend}
        )
        key = f"collectives.{row['collective']}"
        if row.get("wrong"):
            yield Missing(
                key,
                f"{row['wrong']} wrong elements at {row['size']:,} bytes over {found.ranks} ranks.",
                "Do not use this MPI.",
            )
        else:
            yield Quantity(
                key, "s", tuple(row["samples"]), parameters, better="lower", note=turns(found.ranks)
            )
    yield from found.lacking


def measure(quick=True, report=None):
    """Quantities of collectives over MPI: two processes, and one a core (four at most)."""
    cores = usable_cores()
    counts = sorted({2, min(4, cores)} - {1})
    found = []
    for n in counts:
        if report:
            report(f"{n} processes. {turns(n)}".strip())
        budget = BUDGET[quick] / len(counts)
        found += quantities(
            run(
                n,
                QUICK_SIZES if quick else FULL_SIZES,
                budget=budget,
                report=None if quick else report,
            )
        )
    return found


# ---------------------------------------------------------------- conclusions


@dataclass(frozen=True)
class Explanation:
    """An algorithm beside the measured all-reduce: median factors by which it misses."""

    name: str
    small: float
    large: float


def neighbour_fit(rows):
    """The shift's `AlphaBeta` from (size, seconds): all ranks send at once, as ring steps do."""
    import numpy

    size, time = numpy.array(rows, float).T
    return fit_alpha_beta(size, time)


def explain(n, rows, fit):
    """`Explanation`s of all-reduce times (size, seconds), nearest first among large sizes: each
    algorithm by the `fit` of the neighbour's shift alone.
    """
    explanations = []
    for name, law in ALGORITHMS.items():
        misses = {
            size: abs(math.log(law(float(size), n, fit.bandwidth, fit.latency) / time))
            for size, time in rows
        }
        small, large = (
            [m for s, m in misses.items() if inside(s)]
            for inside in (lambda s: s <= SMALL, lambda s: s >= LARGE)
        )
        explanations.append(
            Explanation(
                name,
                *(
                    math.exp(statistics.median(part)) if part else math.nan
                    for part in (small, large)
                ),
            )
        )
    return sorted(explanations, key=lambda e: (math.isnan(e.large), e.large))


def conclusions(found):
    """Sentences on a run: alpha and bandwidth of the neighbour's shift, and what explains the
    all-reduce, by sizes whose samples agree, if they are enough.
    """
    steady = [r for r in found.rows if spread(r["samples"]) <= LIMIT_OF_SPREAD]
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
        f"A shift to the neighbour, all {found.ranks} ranks at once: alpha {si(fit.latency, 's')},"
        f" W {si(fit.bandwidth, 'byte/s')}; this line misses single sizes by up to {worst:.0%}."
    ]
    if times["call"]:
        lines.append(
            f"A call that sends nothing takes {si(times['call'][0][1], 's', 2)} of it: Python and"
            " the library."
        )
    if times["all_reduce"] and found.ranks > 2:
        ranked = explain(found.ranks, times["all_reduce"], fit)
        for what, column in (
            (f"up to {SMALL:,} bytes", "small"),
            (f"from {LARGE:,} bytes", "large"),
        ):
            lines += _nearest(
                what,
                sorted(
                    (e for e in ranked if not math.isnan(getattr(e, column))),
                    key=lambda e: getattr(e, column),
                ),
                column,
            )
    elif times["all_reduce"]:
        lines.append(
            "Ring and tree take the same two steps between two ranks; take three or more to tell"
            " them apart."
        )
    return lines


def _nearest(what, ranked, column):
    if not ranked:
        return []
    listed = ", ".join(f"{e.name} {getattr(e, column):.2f}" for e in ranked)
    verdict = (
        ""
        if getattr(ranked[0], column) < 1.5
        else " None of them explains it: the line above is too rough here."
    )
    return [
        f"All-reduce {what}, measured against each algorithm computed from that line, off by a"
        f" factor of: {listed}.{verdict}"
    ]


def run_in(kept, backend="mpi"):
    """The `Run` of most ranks in a record. Raises NotMeasured (a LookupError) if it has none."""
    found = [
        q
        for c in COLLECTIVES
        for q in record.all_of(kept, f"collectives.{c}", backend=backend)
        if q.samples
    ]
    if not found:
        raise record.NotMeasured("this record has no samples of collectives")
    ranks = max(q.parameters["ranks"] for q in found)
    call = [
        {"collective": "call", "size": 0, "samples": q.samples}
        for q in record.all_of(kept, "collectives.call", backend=backend)[:1]
    ]
    rows = [
        {"collective": q.key.rpartition(".")[2], "size": q.parameters["size"], "samples": q.samples}
        for q in found
        if q.parameters["ranks"] == ranks
    ]
    return Run(backend, ranks, rows=call + rows)


# ---------------------------------------------------------------- the table of nccl-tests


def report_lines(found):
    """What nccl-tests would print for this run; `lightspeed nccl report` reads it."""
    lines = []
    for collective in dict.fromkeys(r["collective"] for r in found.rows if r["size"]):
        rows = [r for r in found.rows if r["collective"] == collective]
        redop = "sum" if collective in ("all_reduce", "reduce_scatter") else "none"
        lines += [f"# Collective test starting: {collective}_perf", *_ranks(found)]
        lines += [
            f"# {'size':>12} {'count':>12} {'type':>8} {'redop':>6} {'root':>5} {'time':>10}"
            f" {'algbw':>8} {'busbw':>8} {'#wrong':>7}"
        ]
        lines += [
            f"# {'(B)':>12} {'(elements)':>12} {'':>8} {'':>6} {'':>5} {'(us)':>10} {'(GB/s)':>8}"
            f" {'(GB/s)':>8} {'':>7}"
        ]
        rates = []
        for r in rows:
            time = statistics.median(r["samples"])
            rate = algbw(float(r["size"]), time)
            rates.append(busbw(collective, found.ranks, rate))
            lines.append(
                f"  {r['size']:>12} {r['count']:>12} {'float':>8} {redop:>6} {-1:>5}"
                f" {time * 1e6:>10.2f} {rate / 1e9:>8.4f} {rates[-1] / 1e9:>8.4f} {r['wrong']:>7}"
            )
        wrong = sum(r["wrong"] for r in rows)
        lines += [
            f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}",
            f"# Avg bus bandwidth    : {statistics.fmean(rates) / 1e9:.6g}",
            "#",
            "",
        ]
    return lines


def _ranks(found):
    return [
        f"#  Rank {rank:>3} on node{node} device {rank:>3} [{found.backend}] process"
        for rank, node in enumerate(found.nodes)
    ]
