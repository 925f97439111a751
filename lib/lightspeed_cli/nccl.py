"""`lightspeed nccl report`: what nccl-tests printed, judged."""

from lightspeed_cli.argument_types import count
from lightspeed_cli.errors import UserError, cause


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument("what", choices=["report"], metavar="report")
    parser.add_argument("file", help="what all_reduce_perf or one of its sisters printed")
    parser.add_argument("--hardware", help="such as p5 or h200 (default: guessed, and said so)")
    parser.add_argument("--ranks", type=count, help="GPUs in all, where the file does not tell")
    parser.add_argument("--nodes", type=count, help="hosts")
    parser.add_argument("--collective", help="such as all_gather, where the file does not tell")
    parser.add_argument("--page", metavar="FILE", help="write an HTML page with plots here")


def run(options):
    """Print the verdict on one file."""
    from lightspeed_course.nccl_report.page import report_file

    o = options
    try:
        print("\n".join(report_file(o.file, o.hardware, o.ranks, o.nodes, o.collective, o.page)))
    except (OSError, ValueError) as error:
        raise UserError(cause(error)) from error
