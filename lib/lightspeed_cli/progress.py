"""`lightspeed progress`: what was answered and predicted so far, and its way to and from a file."""

import time
from pathlib import Path

from lightspeed_cli.errors import UserError


def add(parser):
    """A file to write or to take in; the web edition exports and imports the same."""
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--save", metavar="FILE", help="write all of it to a new file")
    way.add_argument("--take", metavar="FILE", help="add what such a file has and is not here yet")


def run(options):
    """Print a table of the chapters, or carry progress to or from a file."""
    from lightspeed_course.practice import store
    from lightspeed_course.practice.progress import COLUMNS, summary

    if options.save or options.take:
        _carry(store, options)
        return

    rows = [COLUMNS, *([str(row[column]) for column in COLUMNS] for row in summary(time.time()))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *counts in rows:
        print("  ".join([name.ljust(widths[0]), *map(str.rjust, counts, widths[1:])]))
    if notice := store.take_notice():
        print(notice)


def _carry(store, options):
    try:
        if options.save:
            with Path(options.save).open("x", encoding="utf-8") as file:
                file.write(store.dumps() + "\n")
            print(f"Your progress is in {options.save}.")
        else:
            count = store.loads(Path(options.take).read_text("utf-8"))
            print(f"{count} new event{'s' * (count != 1)} taken in.")
    except FileExistsError:
        raise UserError(f"{options.save} is there already, and stays: name a new file.") from None
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from None
    if notice := store.take_notice():
        print(notice)
