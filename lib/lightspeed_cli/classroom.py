"""`lightspeed class ...`: one verb for each thing an instructor does. What can be mended is told in one line."""

import argparse
import os

from lightspeed_course.argument_types import count, number, pair, when

from lightspeed_cli import class_start as start
from lightspeed_cli import class_verbs as do

DESCRIPTION = "release assignments, collect, grade and return them, for a class"
TOUR = """\
A class in nine lines:

  lightspeed class new ml-systems          a folder for it; go there
  lightspeed class roster students.csv     plain CSV (id,name,email), or an export of Canvas or Moodle
  lightspeed class release 02_roofline --due 2026-12-01T23:59
  lightspeed class collect 02_roofline submissions.zip
  lightspeed class grade 02_roofline
  lightspeed class feedback 02_roofline    a page for each student
  lightspeed class report 02_roofline      what was hard, and which misconceptions there are
  lightspeed class export 02_roofline --format canvas
  lightspeed class status                  where everything stands
"""


def add_verbs(parser, parser_class):
    """Put the verbs of a class under `lightspeed class`."""
    parser.epilog, parser.formatter_class = TOUR, argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=lambda _: parser.print_help())
    verbs = parser.add_subparsers(dest="task", metavar="COMMAND", parser_class=parser_class)

    def verb(task, text, *arguments, name=True):
        added = verbs.add_parser(task.__name__, help=text, description=text[0].upper() + text[1:] + ".")
        if name:
            added.add_argument("name", metavar="NAME", help="the assignment, such as 02_roofline")
        for flags, settings in arguments:
            added.add_argument(*flags.split(), **settings)
        if task not in (start.new, start.sample, do.nbgrader):
            added.add_argument("--class", dest="folder", metavar="DIR", help="the folder of the class (default: this one, or the nearest above)")
        added.set_defaults(run=_run, act=task, known=[w for flags, _ in arguments for w in flags.split() if w[:1] == "-"] + ["--class"])

    workers = ("--workers", {"type": count, "default": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2, "metavar": "N", "help": "processes at a time (default: %(default)s)"})
    free = ("--not-isolated", {"action": "store_true", "help": "grade without a sandbox: submissions can do all that you can do"})
    dask = ("--dask", {"metavar": "ADDRESS", "help": "grade on this Dask cluster, such as tcp://host:8786"})
    verb(start.new, "make the folder of a class", ("folder", {"metavar": "DIR"}), name=False)
    verb(do.roster, "read students from a CSV file: plain, or an export of Canvas or Moodle", ("file", {"nargs": "?", "metavar": "FILE"}), name=False)
    verb(
        do.release,
        "make a notebook for each student, with numbers of their own",
        ("--students", {"metavar": "FILE", "help": "read this roster first"}),
        ("--due", {"type": when, "metavar": "WHEN", "help": "such as 2026-12-01T23:59, in this machine's time zone unless it says another; a date is the end of that day"}),
    )
    verb(
        do.collect,
        "take in submissions: folders, notebooks, zip archives, downloads of Canvas or Moodle",
        ("paths", {"nargs": "+", "metavar": "PATH"}),
        ("--as", {"dest": "student", "metavar": "STUDENT", "help": "all of it is from this student"}),
    )
    verb(do.grade, "grade what has no score yet; after an interruption it goes on", workers, free, dask)
    verb(do.regrade, "grade again what a fix may have changed, and say who changes and why", workers, free, dask)
    verb(do.feedback, "write a page for each student", ("--student", {"metavar": "STUDENT", "help": "for this one alone"}))
    verb(
        do.export,
        "write the points as CSV",
        ("names", {"nargs": "*", "metavar": "NAME"}),
        ("--format", {"choices": ["plain", "canvas", "moodle"], "default": "plain"}),
        ("--into", {"metavar": "FILE", "help": "default: a new file in exports/"}),
        ("--missing-as-zero", {"action": "store_true", "help": "0 for those who handed in nothing; else their cell is empty"}),
        ("--title", {"type": pair, "action": "append", "default": [], "metavar": "NAME=HEADING", "help": "the column's heading on the platform, such as '02_roofline=Roofline (1234)'"}),
        name=False,
    )
    verb(do.report, "write a page on what was hard and what was misunderstood")
    verb(
        do.points,
        "give points or a comment by hand, which no grading ever changes",
        ("student", {"metavar": "STUDENT"}),
        ("question", {"nargs": "?", "default": "", "metavar": "QUESTION", "help": "default: the whole assignment, and points are added to it"}),
        ("--points", {"type": number, "metavar": "X", "help": "what is not given, points or comment, stays as it was"}),
        ("--comment", {"metavar": "TEXT"}),
        ("--remove", {"action": "store_true", "help": "take back what was given by hand"}),
        ("--by", {"default": "", "metavar": "WHO", "help": "default: your user name"}),
    )
    verb(
        do.choose,
        "say which submission of a student counts; without ID, list them",
        ("student", {"metavar": "STUDENT"}),
        ("id", {"nargs": "?", "type": count, "metavar": "ID"}),
        ("--none", {"action": "store_true", "help": "none of what is there counts, such as another's file taken in by mistake; what comes later does"}),
    )
    verb(do.replay, "grade once more what a score came from, and compare", ("id", {"type": count, "metavar": "ID", "help": "of a grading, as `status NAME` lists them"}), name=False)
    verb(do.status, "show where each assignment stands", ("name", {"nargs": "?", "metavar": "NAME"}), name=False)
    verb(do.nbgrader, "write an assignment for nbgrader", ("into", {"metavar": "DIR"}))
    verb(start.sample, "make a class of synthetic students with their submissions, to try things on", ("folder", {"metavar": "DIR"}), name=False)


def _run(options):
    import sqlite3

    from lightspeed_class.class_folder import Course, CourseError
    from lightspeed_class.gradebook import Newer
    from lightspeed_class.grading.cluster import NoCluster
    from lightspeed_class.grading.sandbox import NoSandbox
    from lightspeed_class.handout.release import find
    from lightspeed_class.reports.export import Incomplete

    from lightspeed_cli import UserError

    try:
        if options.act in (start.new, start.sample, do.nbgrader):
            return options.act(options)
        course = Course.find(options.folder)
        with course.book() as book:
            course.check_points(book, releasing=find(options.name).stem if options.act is do.release else "")
            return options.act(options, course, book)
    except (CourseError, Newer) as error:
        raise UserError(error) from error
    except NoSandbox as error:
        raise UserError(f"{error} To do so: --not-isolated") from error
    except (NoCluster, Incomplete) as error:
        raise UserError("; ".join(str(error).splitlines())) from error
    except sqlite3.Error as error:
        raise UserError(f"the gradebook cannot be used: {error}. Is the disk full, or another command at work?") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"{error.filename or 'a file'}: {error.strerror or error}") from error
