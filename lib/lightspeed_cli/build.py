"""`lightspeed build`: scripts into executed notebooks, and exercises from solutions."""

import sys


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 02_roofline; all if none")


def run(options):
    """Build the pages named; the exit status is 1 if one failed."""
    from lightspeed_authoring.build import BuildError, build_course

    try:
        build_course(options.names or None)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
