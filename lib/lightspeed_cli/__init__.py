"""The `lightspeed` command: one verb for each thing a reader or an author does.

Every verb imports what it needs when it runs, so that help and errors come at once. A mistake in the command line,
or a state of things that the reader can mend, is one line on standard error and exit status 2.
"""

import argparse
import difflib
import os
import re
import sys

from lightspeed_course import argument_types

from lightspeed_cli import measure as measure_verb

DESCRIPTION = "Speed of Light: an executable course on the performance of ML systems."


class UserError(Exception):
    """A mistake that the reader can mend, told in one line."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, with the likely word where there is one."""

    def error(self, message):
        wrong = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if wrong:
            choices = re.findall(r"[\w-]+", wrong[2])
            message = f"there is no '{wrong[1]}'; {_nearest(wrong[1], choices)}"
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(2)


def main(argv=None):
    """Run one command; the exit status is 0, 1 for a check that failed, 2 for a mistake."""
    argv = list(sys.argv[1:] if argv is None else argv)
    # What follows "--" is for Jupyter; argparse would take its options for ours.
    ours, theirs = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    options, unknown = _parser().parse_known_args(ours)
    if options.verb is None:
        _parser().print_help()
        return 0
    try:
        options.jupyter = _jupyter_options(options, unknown) + theirs
        return options.run(options) or 0
    except UserError as error:
        print(f"lightspeed {options.verb}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader closed the pager
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _parser():
    parser = Parser(prog="lightspeed", description=DESCRIPTION)
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", parser_class=Parser)

    def verb(name, run, text):
        added = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        added.set_defaults(run=run)
        return added

    lab = verb("lab", _lab, "open the course in JupyterLab, in a folder of your own")
    lab.add_argument("--port", type=int, metavar="N", help="the port to serve at (default: the first free from 8888)")
    lab.add_argument("--no-browser", action="store_true", help="print the address, open no browser")
    lab.epilog = "Jupyter's own options may follow, such as --ServerApp.ip=0.0.0.0, or anything after --."
    reset = verb("reset", _reset, "restore a notebook as delivered; your version is kept as a backup")
    reset.add_argument("name", help="such as chapters/02_roofline")
    lab.add_argument("--dir", help="your folder (default: $LIGHTSPEED_HOME or ~/speed-of-light)")
    reset.add_argument("--dir", help="your folder (default: the one you are in, else as for lab)")
    number = verb("number", _number, "show a constant: value, source, date, and who uses it")
    what = number.add_mutually_exclusive_group(required=True)
    what.add_argument("key", nargs="?", help="such as h100_sxm.hbm_bandwidth, or h100_sxm for all of it")
    what.add_argument("--list", action="store_true", help="every constant of the catalog")
    what.add_argument("--search", metavar="WORD", help="constants with this word in key, name, note or source")
    nccl = verb("nccl", _nccl, "judge what nccl-tests printed: whether it is normal, and what bounds it")
    nccl.add_argument("what", choices=["report"], metavar="report")
    nccl.add_argument("file", help="what all_reduce_perf or one of its sisters printed")
    nccl.add_argument("--hardware", help="such as p5 or h200 (default: guessed, and said so)")
    nccl.add_argument("--ranks", type=argument_types.count, help="GPUs in all, where the file does not tell")
    nccl.add_argument("--nodes", type=argument_types.count, help="hosts")
    nccl.add_argument("--collective", help="such as all_gather, where the file does not tell")
    nccl.add_argument("--page", metavar="FILE", help="write an HTML page with plots here")
    measure_verb.add_to(verb("measure", _measure, measure_verb.WORDS))
    verb("progress", _progress, "show what you have answered and predicted so far")
    for name, run, text in (
        ("build", _build, "execute chapters and derive exercises (for authors)"),
        ("check", _check, "fail if a derived file is not what its source makes (for authors)"),
    ):
        verb(name, run, text).add_argument("names", nargs="*", metavar="NAME", help="such as 02_roofline; all if none")
    _add_classroom(verb)
    verb("where", _where, "show folders and versions, for a report of a bug")
    return parser


def _add_classroom(verb):
    from lightspeed_cli import classroom

    classroom.add_verbs(verb("class", None, classroom.DESCRIPTION), Parser)


def _jupyter_options(options, unknown):
    """Options with a dot in their name are Jupyter's; any other that is unknown is a slip."""
    for word in unknown:
        if options.verb != "lab" or not re.match(r"--\w+\.", word):
            known = ["--dir", "--port", "--no-browser", "--list", "--search", "--help"]
            known += ["--hardware", "--ranks", "--nodes", "--collective", "--page"]
            known = getattr(options, "known", known)
            after = "; Jupyter's own options go after --" if options.verb == "lab" else ""
            raise UserError(f"there is no '{word}'; {_nearest(word, known)}{after}")
    return unknown


def _nearest(word, choices, likeness=0.6):
    close = difflib.get_close_matches(word, choices, 1, likeness)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(choices)}"


def _lab(options):
    from lightspeed_course import workspace

    try:
        folder = workspace.workspace_root(options.dir)
        for line in workspace.describe(workspace.sync(folder), folder):
            print(line)
    except workspace.WorkspaceError as error:
        raise UserError(error) from error
    print(f"Opening {folder} ...", flush=True)
    from lightspeed_cli.lab import open_lab

    open_lab(folder, options.port, not options.no_browser, options.jupyter)


def _reset(options):
    from lightspeed_course import workspace

    try:
        folder = workspace.workspace_meant(options.dir)
        name, backup = workspace.reset(options.name, folder)
    except workspace.WorkspaceError as error:
        raise UserError(error) from error
    print(f"{name} in {folder} is as delivered." + (f" Your version is kept: {backup}" if backup else ""))


def _number(options):
    from lightspeed_cli import lookup

    if not options.key:
        found = lookup.search(options.search or "")
        if not found:
            raise UserError(f"no constant has '{options.search}' in its key, name, note or source")
        print("\n".join(found))
    elif options.key in lookup.constants():
        print(lookup.describe(options.key))
    elif found := lookup.of_entry(options.key):
        print("\n".join(found))
    else:
        # Keys of one entry are alike already in their first half.
        raise UserError(f"there is no '{options.key}'; {_nearest(options.key, lookup.nearby(options.key), 0.8)}")


def _nccl(options):
    from lightspeed_course.nccl_report.page import report_file

    o = options
    try:
        print("\n".join(report_file(o.file, o.hardware, o.ranks, o.nodes, o.collective, o.page)))
    except (OSError, ValueError) as error:
        raise UserError(argument_types.cause(error)) from error


def _measure(options):
    return measure_verb.run(options, UserError)


def _progress(options):
    import time

    from lightspeed_course.practice import store
    from lightspeed_course.practice.progress import COLUMNS, summary

    rows = [COLUMNS, *([str(row[column]) for column in COLUMNS] for row in summary(time.time()))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *counts in rows:
        print("  ".join([name.ljust(widths[0]), *map(str.rjust, counts, widths[1:])]))
    if notice := store.take_notice():
        print(notice)


def _build(options):
    from lightspeed_course.authoring.build import BuildError, build_course

    try:
        build_course(options.names or None)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1


def _check(options):
    from lightspeed_course.authoring.build import check_course

    found = check_course(options.names or None)
    print("\n".join(found) or "Every derived file is what its source makes.", file=sys.stderr if found else sys.stdout)
    return bool(found)


def _where(options):
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import platformdirs
    from lightspeed_course import workspace

    print(f"workspace  {workspace.workspace_root()}")
    print(f"progress   {os.environ.get('LIGHTSPEED_DATA') or platformdirs.user_data_dir('speed-of-light')}")
    print(f"course     {workspace.course_root()}")
    print(f"python     {platform.python_version()} at {sys.executable}")
    print(f"system     {platform.platform()}")
    for package in ("speed-of-light", "jupyterlab", "ipywidgets", "anywidget", "numpy", "pint", "matplotlib"):
        try:
            print(f"{package:<15}{version(package)}")
        except PackageNotFoundError:
            print(f"{package:<15}not installed")
