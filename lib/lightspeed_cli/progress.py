"""`lightspeed progress`: what was answered and predicted so far."""

import time


def add(parser):
    """The verb has no arguments."""


def run(options):
    """Print a table of the chapters."""
    from lightspeed_course.practice import store
    from lightspeed_course.practice.progress import COLUMNS, summary

    rows = [COLUMNS, *([str(row[column]) for column in COLUMNS] for row in summary(time.time()))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *counts in rows:
        print("  ".join([name.ljust(widths[0]), *map(str.rjust, counts, widths[1:])]))
    if notice := store.take_notice():
        print(notice)
