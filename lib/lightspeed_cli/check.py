"""`lightspeed check`: whether the sources hold together, and derived files are what they make."""

import sys
from contextlib import suppress

SHOWN = 20  # sentences to sign that the fast check lists


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 02_roofline; all if none")
    parser.add_argument(
        "--fast", action="store_true", help="the sources alone, in seconds: nothing is executed"
    )


def run(options):
    """Print the faults; the exit status is 1 if there are any."""
    from datetime import date

    from lightspeed_authoring import facts, signatures, statements
    from lightspeed_authoring.freshness import check_course, gates
    from lightspeed_authoring.notebooks import BuildError

    # Asked, and no fault: a fork of last year's course is as right as it was.
    for fact in facts.aged(date.today()):
        print(fact, file=sys.stderr)
    # What the sources lack is found at once; comparing takes minutes and would find less.
    faults, unread_pairs = gates(), []
    for path in signatures.files(options.names):
        with suppress(BuildError):  # among the faults, if the page can't be read
            unread_pairs += signatures.unsigned([path])
    if faults:
        print("\n".join(faults + unread_pairs[:SHOWN]), file=sys.stderr)
        if not options.fast:
            print("Fix these; the derived files are compared afterwards.", file=sys.stderr)
        return True
    if options.fast:
        print("".join(f"{line}\n" for line in unread_pairs[:SHOWN]), end="", file=sys.stderr)
        if (more := len(unread_pairs) - SHOWN) > 0:
            print(f"... and {more} more, for a second reader to sign", file=sys.stderr)
        print("The sources hold together; the derived files were not checked.")
        return False
    faults = unread_pairs + check_course(options.names or None)
    if not options.names:
        print("\n".join(statements.counts(statements.of_course())))
    print(
        "\n".join(faults) or "Every derived file is what its source makes.",
        file=sys.stderr if faults else sys.stdout,
    )
    return bool(faults)
