"""`lightspeed measure`: every law against the reader's machine, a part or all, dated."""

import os
import sys
from pathlib import Path

from lightspeed.errors import meant
from lightspeed_cli.errors import UserError, cause
from lightspeed_show.new_file import write_new

VERBS = """verbs:
  all                 every part (the default); one that this machine cannot give is named and
                      passed over
  PART                one part: host, roofline, collectives, gpu
  compare A B         two records (files, or names of shipped ones) side by side
  show [FILE]         a record: yours of last time, or that of a file
"""


def add(parser):
    """Put the arguments of the verb on its parser."""
    import argparse

    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, VERBS
    parser.add_argument("what", nargs="?", default="all", metavar="VERB", help="see below")
    parser.add_argument("files", nargs="*", metavar="FILE", help="of compare and show")
    parser.add_argument(
        "--full",
        action="store_true",
        help="more sizes and more samples: about a minute for each part",
    )
    parser.add_argument(
        "--into", metavar="DIR", help="the folder for record and page (default: your data folder)"
    )
    parser.add_argument(
        "--page",
        metavar="FILE",
        help="write the HTML page here; a measurement keeps one beside its record, too",
    )


def run(options):
    """Measure, compare or show; return the exit status."""
    from lightspeed_tools.measure import runner

    if options.what == "compare":
        return _compare(options)
    if options.what == "show":
        return _show(options)
    if options.what not in ("all", *runner.PARTS):
        raise UserError(
            f"there is no '{options.what}';"
            f" {meant(options.what, ['all', *runner.PARTS, 'compare', 'show'])}"
        )
    if options.files:
        raise UserError(
            f"'{options.files[0]}' is one word too many; to measure all parts: `lightspeed"
            " measure all`"
        )
    _can_be_written(options)
    return _measure(tuple(runner.PARTS) if options.what == "all" else (options.what,), options)


def _can_be_written(options):
    """Refuse now what cannot be written later: nobody should measure for minutes first."""
    if options.into:
        folder = Path(options.into)
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent  # what is missing is made below the first that is there
        if not folder.is_dir():
            raise UserError(f"--into {options.into}: {folder} is not a folder")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(f"--into {options.into}: nothing can be written in {folder}")
    if options.page:
        page = Path(options.page)
        if page.exists():
            raise UserError(f"--page {page}: it already exists and is not overwritten")
        if not page.parent.is_dir() or not os.access(page.parent, os.W_OK | os.X_OK):
            raise UserError(f"--page {page}: {page.parent} is not a folder that can be written")


def _measure(names, options):
    from lightspeed_tools.measure import runner
    from lightspeed_tools.measure.pages import report

    result = runner.measure(names, not options.full, report=lambda line: print(line, flush=True))
    if not result["quantities"] and not result["complete"]:
        print("Interrupted before anything was measured, so nothing is kept.", file=sys.stderr)
        return 130
    print("\n" + "\n".join(report.in_words(result)))
    if not result["quantities"]:
        print("\nNothing was measured, so nothing is kept.", file=sys.stderr)
        return 1
    print()
    status = _keep(result, report, options)
    if options.page:
        try:
            _write(options.page, lambda: report.to_html(result))
        except UserError as failure:
            print(f"The page could not be written: {failure}", file=sys.stderr)
            status = 1
    return status or (0 if result["complete"] else 130)


def _keep(result, report, options):
    """Save record and page; where that fails, elsewhere, at last on the screen: nothing is lost."""
    from lightspeed_tools.measure.records import record

    first = Path(options.into) if options.into else record.folder()
    for folder in dict.fromkeys((first, Path.cwd())):
        try:
            path = record.save(result, folder)
        except OSError as failure:
            print(
                f"The record could not be written in {folder}: {failure.strerror or failure}.",
                file=sys.stderr,
            )
            continue
        print(f"Record: {path}")
        try:
            page = path.with_suffix(".html")
            write_new(page, report.to_html(result))
            print(f"Page:   {page}")
        except OSError as failure:
            print(
                f"Its page could not be written: {failure.strerror or failure}. Later:"
                f" lightspeed measure show {path} --page FILE",
                file=sys.stderr,
            )
        return 1 if options.into and folder != first else 0  # kept, but not where it was asked for
    print(
        "Here is the record; save it, or measure again with --into a folder that can be written:",
        file=sys.stderr,
    )
    print(record.dumps(result), end="")
    return 1


def _compare(options):
    from lightspeed_tools.measure.records import compare

    if len(options.files) != 2 or options.page:
        raise UserError(
            "compare takes two records and no --page: lightspeed measure compare A.json B.json"
        )
    a, b = (_load(name) for name in options.files)
    print("\n".join(compare.in_words(compare.compare(a, b))))


def _show(options):
    from lightspeed_tools.measure.pages import report
    from lightspeed_tools.measure.records import record

    if len(options.files) > 1:
        raise UserError("show takes one record; two are for `lightspeed measure compare`")
    result = _load(options.files[0]) if options.files else record.latest()
    if result is None:
        raise UserError(
            "nothing has been measured yet: `lightspeed measure all`; shipped are"
            f" {', '.join(record.shipped())}"
        )
    print("\n".join(report.in_words(result)))
    _write(options.page, lambda: report.to_html(result))


def _load(name):
    from lightspeed_tools.measure.records import compare, record

    try:
        return compare.load(name)
    except FileNotFoundError as failure:
        raise UserError(
            f"there is no file {name}; shipped are {', '.join(record.shipped())}"
        ) from failure
    except (OSError, ValueError) as failure:
        raise UserError(cause(failure)) from failure


def _write(path, make):
    if not path:
        return
    try:
        write_new(path, make())
    except OSError as failure:
        raise UserError(cause(failure)) from failure
    print(f"Page: {path}")
