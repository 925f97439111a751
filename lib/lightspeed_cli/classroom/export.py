"""Points as CSV."""

import hashlib
import os
import sys
import time
from pathlib import Path

from lightspeed_cli.argument_types import count, pair
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.common import SECTION, known, say_outdated, the_section
from lightspeed_cli.errors import UserError

WORDS = "write the points as CSV"
ARGUMENTS = (
    option("names", nargs="*", metavar="NAME"),
    option("--format", choices=["plain", "canvas", "moodle"], default="plain"),
    option("--into", metavar="FILE", help="default: a new file in exports/"),
    flag("--missing-as-zero", "0 for those who handed in nothing; else their cell is empty"),
    flag(
        "--leave-unmarked",
        "an empty cell for those with prose that nobody marked yet; else there is no"
        " export before that is done",
    ),
    option(
        "--title",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=HEADING",
        help="the column's heading on the platform, such as '02_roofline=Roofline (1234)'",
    ),
    option(
        "--practised",
        type=count,
        metavar="POINTS",
        help="these for having answered, right or wrong, and a share for a share of the questions",
    ),
    SECTION,
)
NAMED = False


def run(options, course, book):
    from lightspeed_class.class_folder import write_whole
    from lightspeed_class.reports.export import export_csv

    names = [known(book, name) for name in options.names] or book.assignments()
    if not names:
        raise UserError(
            "there is nothing to export: no assignment was released yet. lightspeed class release"
            " NAME"
        )
    key = f"exported {os.path.abspath(options.into or '')}"
    there = options.into and os.path.lexists(options.into)
    if there and _hash(options.into) not in (book.setting(key) or "").split():
        raise UserError(f"{options.into} exists; choose another name, or delete it")
    what, now = "-".join(names)[:80] or "points", time.strftime("%Y%m%d-%H%M%S")
    file = course.root / "exports" / f"{what}-{options.format}-{now}.csv"
    file.parent.mkdir(exist_ok=True)
    titles = {known(book, name): title for name, title in options.title}
    export_csv(
        book,
        names,
        file,
        options.format,
        options.missing_as_zero,
        titles,
        options.leave_unmarked,
        the_section(book, options.section),
        options.practised,
    )
    if options.into:  # what an export wrote there, and nobody changed, the next one may replace
        # with what is still there, should this one be stopped before it writes
        book.setting(key, f"{_hash(file)} {_hash(options.into) if there else ''}")
        write_whole(Path(options.into), file.read_bytes())
        file.unlink()
    print(f"{options.into or file}")
    say_outdated(book, *names, file=sys.stderr)


def _hash(path):
    """Of a plain file; "" for anything else."""
    plain = os.path.isfile(path) and not os.path.islink(path)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if plain else ""
