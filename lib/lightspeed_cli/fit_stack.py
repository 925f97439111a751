"""What a stack of one's own reaches, from a table of measured steps."""

import argparse
import json
from pathlib import Path

from lightspeed.errors import BadArgument
from lightspeed_cli.errors import UserError
from lightspeed_models.plan import machine
from lightspeed_models.stack_fit import fit_stack, impossible
from lightspeed_show.new_file import write_new
from lightspeed_tools import fit_stack as engine


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.description = "Fit the constants of a training stack to measured steps."
    parser.epilog = engine.__doc__.partition("\n\n")[2]
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("sweep", metavar="SWEEP.csv", type=Path, help="one measured plan a row")
    parser.add_argument(
        "--gpu", default="h100_sxm", help="a key of the catalog (default %(default)s)"
    )
    parser.add_argument(
        "--network", default="infiniband_ndr", help="the link of each GPU (default %(default)s)"
    )
    parser.add_argument("--per-node", type=int, default=8, metavar="N", help="GPUs of a node")
    parser.add_argument(
        "--like", metavar="STACK", help="take what is counted from a shipped stack: nanotron_h100"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the fit to a new file")


def run(options):
    """Print the constants with their intervals, and what the rows can't tell."""
    try:
        cluster = machine(options.gpu, options.network, options.per_node)
        counts = engine.counts(options.like)
    except BadArgument as error:
        raise UserError(str(error)) from None
    if options.json and options.json.exists():
        raise UserError(f"{options.json} exists, and nothing is overwritten; choose another name")
    try:
        rows, faults = engine.read(options.sweep, cluster)
    except engine.TableError as error:
        raise UserError(str(error)) from error
    slips = impossible(rows) if rows else {}
    faults |= slips
    rows = [row for row in rows if row.name not in slips]
    for name, reason in faults.items():
        print(f"refused: {name}: {reason}")
    try:
        fit = fit_stack(rows, counts)
    except BadArgument as error:
        raise UserError(f"{options.sweep}: {error}") from None
    print(engine.report(fit, rows))
    if options.json:
        write_new(options.json, json.dumps(engine.as_data(fit, faults), indent=2) + "\n")
