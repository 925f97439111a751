"""`lightspeed trace`: where the time of a profile went, and what to fix first."""

import os
import sys

from lightspeed_cli import argument_types
from lightspeed_cli.errors import UserError, cause
from lightspeed_show.new_file import write_new


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument(
        "file", nargs="+",
        help="what torch.profiler's export_chrome_trace wrote, .json or .json.gz, a folder of"
        " tensorboard_trace_handler, or what nsys export --type sqlite wrote; several ranks of one"
        " job say more than one",
    )  # fmt: skip
    parser.add_argument(
        "--against", nargs="+", metavar="FILE", help="the profile of another run, to compare with"
    )
    parser.add_argument(
        "--step", type=argument_types.duration, metavar="TIME",
        help="how long a step takes without the profiler, such as 17.8ms",
    )  # fmt: skip
    parser.add_argument(
        "--model", metavar="MODEL",
        help="a model, such as Qwen3-32B, or its config.json: a server's steps are held to it",
    )  # fmt: skip
    parser.add_argument(
        "--hardware", metavar="CHIP", help="the chip, where the file names none: mi300x, H20"
    )
    parser.add_argument("--page", metavar="FILE", help="write an HTML page with two tracks here")
    parser.add_argument("--json", action="store_true", help="print data in place of sentences")


def run(options):
    """Print where the time went and what to fix first."""
    from lightspeed_models.cards import chip_of
    from lightspeed_models.llm import load
    from lightspeed_tools.trace import report
    from lightspeed_tools.trace.diagnosis import diagnose
    from lightspeed_tools.trace.folders import trace_files

    o, other = options, None
    try:
        model = load(o.model) if o.model else None
        if o.hardware and chip_of(o.hardware) is None:
            raise ValueError(
                f"--hardware {o.hardware!r}: expected a chip of the catalog, such as mi300x or H20"
            )
        paths, notes = trace_files(o.file)
        diagnosis = diagnose(paths, _progress(paths), o.step, o.hardware or "")
        diagnosis.notes += notes
        if o.against:
            paths, _ = trace_files(o.against)
            other = diagnose(paths, _progress(paths), hardware=o.hardware or "")
        if o.page:
            from lightspeed_tools.trace.page import to_html

            write_new(o.page, to_html(diagnosis))
        text = (
            report.to_json(diagnosis, other, model)
            if o.json
            else "\n".join(report.lines(diagnosis, model))
        )
    except (OSError, ValueError) as error:
        raise UserError(cause(error)) from error
    print(text)
    if other and not o.json:
        print("\n".join(["", *report.compared(diagnosis, other)]))


def _progress(paths):
    """A bar on a terminal's stderr while large files are read; silence elsewhere."""
    total = sum(os.path.getsize(path) for path in paths if os.path.exists(path))
    if not sys.stderr.isatty() or total < 20e6:
        return lambda bytes_read: None

    def show(position):
        cells = min(40, 40 * position // total)
        end = "\n" if position >= total else ""
        print(f"\r[{'#' * cells:<40}] {position / 1e6:,.0f} of {total / 1e6:,.0f} MB", end=end,
              file=sys.stderr, flush=True)  # fmt: skip

    return show
