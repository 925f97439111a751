"""`lightspeed class ...`: a verb for each thing an instructor does; a slip is told in one line."""

import argparse
import io
import sys

from lightspeed_cli.classroom import (
    choose,
    code,
    collect,
    desk,
    exam,
    excuse,
    export,
    extend,
    feedback,
    grade,
    history,
    incident,
    left,
    new,
    oral,
    points,
    preview,
    prose,
    regrade,
    release,
    replay,
    report,
    roster,
    sample,
    status,
    vote,
)
from lightspeed_cli.errors import UserError

VERBS = {
    "new": new,
    "roster": roster,
    "incident": incident,
    "prose": prose,
    "preview": preview,
    "release": release,
    "collect": collect,
    "grade": grade,
    "regrade": regrade,
    "feedback": feedback,
    "export": export,
    "report": report,
    "exam": exam,
    "oral": oral,
    "points": points,
    "desk": desk,
    "choose": choose,
    "extend": extend,
    "excuse": excuse,
    "left": left,
    "history": history,
    "replay": replay,
    "status": status,
    "sample": sample,
    "vote": vote,
    "code": code,
}
WITHOUT_CLASS = (new, sample, vote)
TOUR = """\
A class in nine lines:

  lightspeed class new ml-systems          a folder for it; go there
  lightspeed class roster students.csv     plain CSV (id,name,email), or Canvas's or Moodle's export
  lightspeed class release 02_roofline --due 2026-12-01T23:59
  lightspeed class collect 02_roofline submissions.zip
  lightspeed class grade 02_roofline
  lightspeed class feedback 02_roofline    a page for each student
  lightspeed class report 02_roofline      what was hard, and which misconceptions there are
  lightspeed class export 02_roofline --format canvas
  lightspeed class status                  where everything stands
"""


def add(parser):
    """Add the verbs of a class under `lightspeed class`."""
    parser.epilog, parser.formatter_class = TOUR, argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(dest="task", metavar="COMMAND", parser_class=type(parser))
    for name, verb in VERBS.items():
        words = verb.WORDS
        command = verbs.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
        if getattr(verb, "NAMED", True):
            command.add_argument("name", metavar="NAME", help="the assignment, such as 02_roofline")
        for flags, settings in verb.ARGUMENTS:
            command.add_argument(flags, **settings)
        if verb not in WITHOUT_CLASS:
            there = "the folder of the class (default: this one, or the nearest above)"
            command.add_argument("--class", dest="folder", metavar="DIR", help=there)
        command.set_defaults(run=_run, act=verb, parser=command)


def run(options):
    """Print the verbs, as `lightspeed class` without one does."""
    options.parser.print_help()


def _run(options):
    import sqlite3

    from lightspeed_class.asked import Unkept
    from lightspeed_class.class_folder import BOOK, ClassError, ClassFolder
    from lightspeed_class.gradebook.schema import Newer
    from lightspeed_class.grading.cluster import NoCluster
    from lightspeed_class.grading.sandbox import NoSandbox
    from lightspeed_class.handout.release import find
    from lightspeed_class.reports.export import Incomplete

    for stream in (sys.stdout, sys.stderr):  # a terminal of ASCII shows names as it can
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    book_file = "the gradebook"
    try:
        if options.act in WITHOUT_CLASS:
            return options.act.run(options)
        course = ClassFolder.find(options.folder)
        book_file = course.root / BOOK
        with course.book() as book:
            course.check_points(
                book, releasing=find(options.name).stem if options.act in (release, preview) else ""
            )
            return options.act.run(options, course, book)
    except (ClassError, Newer, Unkept) as error:
        raise UserError(error) from error
    except NoSandbox as error:
        raise UserError(f"{error} To do so: --not-isolated") from error
    except (NoCluster, Incomplete) as error:
        raise UserError("; ".join(str(error).splitlines())) from error
    except sqlite3.Error as error:
        raise UserError(
            f"{book_file} cannot be used: {error}. Is the disk full, or another command at work?"
        ) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"{error.filename or 'a file'}: {error.strerror or error}") from error
