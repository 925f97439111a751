"""`lightspeed progress`: what was answered and predicted so far, and its way to and from a file."""

import time
from pathlib import Path

from lightspeed_cli.errors import UserError, cause, tell_of_the_store


def add(parser):
    """Add the file to write or to read; the web edition uses the same format."""
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--save", metavar="FILE", help="write all of it to a new file")
    way.add_argument("--take", metavar="FILE", help="add what such a file has and is not here yet")


def run(options):
    """Print a table of the chapters, or carry progress to or from a file."""
    from lightspeed_course.practice import desk, store
    from lightspeed_course.practice.progress import COLUMNS, summary

    if options.save or options.take:
        _carry(store, options)
        return

    rows = [COLUMNS, *([str(row[column]) for column in COLUMNS] for row in summary(time.time()))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *counts in rows:
        print("  ".join([name.ljust(widths[0]), *map(str.rjust, counts, widths[1:])]))
    if placement := desk.read().placement:
        print(placement)
    tell_of_the_store(store)


def _carry(store, options):
    name = options.save or options.take
    try:
        if options.save:
            _save(Path(name), store.dumps() + "\n")
            print(f"Your progress is in {name}.")
        else:
            count = store.loads(Path(name).read_bytes().decode("utf-8", "replace"))
            tell_of_the_store(store)
            print(f"{count} new event{'s' * (count != 1)} taken in.")
    except FileExistsError:
        raise UserError(f"{name} exists and is not overwritten: name a new file.") from None
    except OSError as error:
        raise UserError(cause(error)) from None
    except ValueError as error:
        raise UserError(f"{name}: {error}") from None
    tell_of_the_store(store)


def _save(path, text):
    """A new file with this text, or none."""
    with path.open("x", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
        except OSError:
            path.unlink()
            raise
