"""`lightspeed check`: whether each derived file is what its source makes."""

import sys


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 02_roofline; all if none")


def run(options):
    """Print what differs; the exit status is 1 if anything does."""
    from lightspeed_authoring import new, statements
    from lightspeed_authoring.freshness import check_course

    # What is not written yet is found at once; comparing takes minutes and would find less.
    if left := [] if options.names else list(new.todos()):
        print("\n".join(left), file=sys.stderr)
        print("Fill these in; then the derived files are compared.", file=sys.stderr)
        return True
    found = check_course(options.names or None)
    if not options.names:
        print("\n".join(statements.counts(statements.of_course())))
    print(
        "\n".join(found) or "Every derived file is what its source makes.",
        file=sys.stderr if found else sys.stdout,
    )
    return bool(found)
