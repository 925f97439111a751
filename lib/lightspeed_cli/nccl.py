"""`lightspeed nccl report`: what nccl-tests printed, judged."""

import argparse
import re
import sys

from lightspeed_cli.argument_types import count
from lightspeed_cli.errors import UserError, cause
from lightspeed_show.format import si


def share(text):
    """Parse a share of the line above 0, such as 90% or 0.9."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else 0
    if not 0 < value <= 2:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a share of the line; expected 90% or 0.9"
        )
    return value


def size(text):
    """Parse a message size as nccl-tests writes it, such as 64M, in bytes.

    >>> size("64M"), size("8")
    (67108864, 8)
    """
    match = re.fullmatch(r"(\d+)\s*([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; expected one such as 64M or 1G")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument("what", choices=["report"], metavar="report")
    parser.add_argument(
        "file",
        nargs="+",
        help="what all_reduce_perf or one of its sisters printed, or wrote with -J; - reads the"
        " standard input; of two files the runs are compared",
    )
    parser.add_argument(
        "--hardware", help="such as p5, h200, H20 or MI300X (default: by the names in the file)"
    )
    parser.add_argument("--nic", help="adapters of a node and their rate: 8x400G, 4xHDR, 8xNDR")
    parser.add_argument(
        "--domain", type=count, help="GPUs that NVLink joins, over hosts too: 72 for an NVL72"
    )
    parser.add_argument(
        "--machine", metavar="TOML", help="a file of name, nic, domain, inside or hardware"
    )
    parser.add_argument("--ranks", type=count, help="GPUs in all, where the file does not tell")
    parser.add_argument("--nodes", type=count, help="hosts, where the file does not tell")
    parser.add_argument("--collective", help="such as all_gather, where the file does not tell")
    parser.add_argument("--json", action="store_true", help="print data in place of sentences")
    parser.add_argument(
        "--at-least",
        type=share,
        metavar="SHARE",
        help="exit with 1 if the largest message of a run is below this share of the line, with 2"
        " if no line is known",
    )
    parser.add_argument(
        "--from",
        dest="smallest",
        type=size,
        metavar="SIZE",
        help="with --at-least: every message from this size on, in both halves, such as 64M",
    )


def run(options):
    """Print the verdict on one file, or on two side by side."""
    from lightspeed_tools.nccl import page

    o = options
    if len(o.file) > 2:
        raise UserError(f"{len(o.file)} files; expected one, or two to compare")
    labels = page.Stated(o.hardware, o.nic, o.domain, o.machine, o.ranks, o.nodes, o.collective)
    try:
        files = [page.read_runs(path, labels) for path in o.file]
        text = (
            page.to_json(o.file, files) if o.json else "\n".join(page.report_lines(o.file, files))
        )
    except (OSError, ValueError) as error:
        raise UserError(cause(error)) from error
    print(text if o.json else f"{text}\nWhy: lesson 7, and lesson 8 where a network is slow.")
    runs = [run for file in files for run in file]
    return _gate(runs, o.at_least, o.smallest) if o.at_least else 0


def _gate(runs, least, smallest=None):
    """The exit status for CI, with a line on stderr for each run that does not reach the share, or
    each of its messages from a smallest one on.
    """
    status = 0
    for run in runs:
        has_verdict = run.main and run.main.share and run.level != "invalid"
        messages = [run.main] if has_verdict else []
        if has_verdict and smallest is not None:
            every = (*run.verdicts, *run.in_place)
            messages = [verdict for verdict in every if verdict.size >= smallest]
        if not messages:
            print(
                "lightspeed nccl: --at-least: a run has no line to compare with; state what is"
                " asked for above" + (" or no message as large as --from" if has_verdict else ""),
                file=sys.stderr,
            )
            status = 2
        for verdict in messages:
            if verdict.share < least:
                at = "" if smallest is None else f" at {si(float(verdict.size), 'byte')}"
                place = " in place" * (verdict in run.in_place)
                print(
                    f"lightspeed nccl: {100 * verdict.share:.3g} % of the line{at}{place}, below"
                    f" {100 * least:.3g} %",
                    file=sys.stderr,
                )
                status = status or 1
    return status
