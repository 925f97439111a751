"""`lightspeed measure collectives`: started here, or as one of the processes of a launcher."""

import argparse
import functools
import sys

from lightspeed_cli.argument_types import count, seconds, sizes_of
from lightspeed_tools.measure import conditions, environment
from lightspeed_tools.measure.instruments import collectives, ranks
from lightspeed_tools.measure.instruments.launch import LIMIT, Watch, needs, turns, world
from lightspeed_tools.measure.instruments.timing import Unavailable
from lightspeed_tools.measure.records import record


def main(words):
    """`measure collectives` with these words; the exit status. Only rank 0 of a world speaks."""
    parser = argparse.ArgumentParser(
        prog="lightspeed measure collectives",
        description=(
            "Collectives over processes: times, bandwidths, and which algorithm explains them."
        ),
    )
    parser.add_argument(
        "-n",
        type=count,
        default=0,
        metavar="N",
        help="processes to start (default: 2); a launcher that is there already says it itself",
    )
    parser.add_argument(
        "--size",
        type=sizes_of,
        default=None,
        metavar="S[,S...]",
        help="such as 8,64K,64M (bytes; K, M, G are powers of two)",
    )
    parser.add_argument(
        "--backend",
        choices=("mpi", "gloo", "nccl"),
        help="default: mpi; under torchrun nccl, or gloo without GPUs",
    )
    parser.add_argument(
        "--limit", type=seconds, default=LIMIT, metavar="S", help="seconds that one size may take"
    )
    parser.add_argument(
        "--full", action="store_true", help="every power of two, and more time for each"
    )
    parser.add_argument("--into", metavar="DIR", help="also keep the record in this folder")
    options = parser.parse_args(words)
    here = world()
    if here and options.n not in (0, here.size):
        parser.error(
            f"{here.launcher} has started {here.size} processes already; leave out -n {options.n}"
        )
    if not here and options.n == 1:
        parser.error("a collective takes at least two processes")
    sizes = options.size or (collectives.FULL_SIZES if options.full else collectives.QUICK_SIZES)
    budget = collectives.BUDGET[not options.full]
    try:
        found = (
            _as_rank(here, options, sizes, budget)
            if here
            else collectives.run(
                options.n or 2,
                sizes,
                backend=options.backend or "mpi",
                budget=budget,
                limit=options.limit,
            )
        )
    except Unavailable as error:
        if not here or here.rank == 0:
            print(f"lightspeed measure collectives: {error}", file=sys.stderr, flush=True)
        return 2
    if found is None:
        return 0
    _show(found, here)
    if options.into:
        _keep(found, options.into)
    return 1 if any(r.get("wrong") for r in found.rows) else 0


def _as_rank(here, options, sizes, budget):
    """The `Run`, on rank 0; None on the others."""
    watch = Watch(here.rank, options.limit)
    backend = ranks.open_backend(options.backend or _default(here), here)
    found = collectives.Run(type(backend).__name__.lower(), backend.size)
    found.backend = options.backend or _default(here)
    note = functools.partial(collectives.note, found)
    ranks.sweep(
        backend, ranks.COLLECTIVES, sizes, budget, ranks.LONGEST, lambda **said: note(said), watch
    )
    backend.close()
    return found if here.rank == 0 else None


def _default(here):
    if here.launcher != "torchrun":
        return "mpi"
    needs("torch", "pip install torch")
    import torch

    return "nccl" if torch.cuda.is_available() else "gloo"


def _show(found, here):
    """Print the tables and what they say."""
    print("\n".join(collectives.report_lines(found)))
    place = "in place (all_reduce), else out of place" if found.backend != "mpi" else "out of place"
    clock = (
        "batches of calls between CUDA events"
        if found.backend == "nccl"
        else "each call after a barrier"
    )
    print(
        f"{found.ranks} ranks on {len(set(found.nodes))}"
        f" node{'s' if len(set(found.nodes)) > 1 else ''}, {found.backend}; {place}; {clock};"
        " median of samples, mean over ranks."
    )
    warning = turns(found.ranks) if not here or len(set(found.nodes)) == 1 else ""
    print(
        "\n".join(
            filter(None, [warning, *collectives.conclusions(found), *map(str, found.lacking)])
        )
    )


def _keep(found, folder):
    machine = environment.describe()
    now = conditions.snapshot()
    document = record.new(
        collectives.quantities(found),
        machine=machine,
        environment=conditions.checks(now, now, machine),
        versions=environment.versions(),
        name=environment.name_of(machine),
    )
    try:
        print(f"Record: {record.save(document, folder)}")
    except OSError as error:
        print(
            f"lightspeed measure collectives: no record in {folder}: {error.strerror}",
            file=sys.stderr,
        )
