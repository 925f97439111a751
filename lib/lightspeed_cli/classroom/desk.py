"""Marking by hand, in a browser."""

import getpass

from lightspeed_cli.argument_types import port
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.common import SECTION, known, the_section
from lightspeed_cli.errors import UserError

WORDS = "mark by hand in a browser: code, answer and diagnosis beside rubric, points and comments"
ARGUMENTS = (
    option(
        "--by",
        action="append",
        default=[],
        metavar="WHO",
        help="who marks, once for each; default: your user name",
    ),
    option("--port", type=port, default=0, metavar="N", help="default: one that is free"),
    flag("--anonymous", "show no names and no ids, and nothing that tells them"),
    SECTION,
)


def run(options, course, book):
    from lightspeed_class.marking_desk.server import Desk, serve

    name, graders = known(book, options.name), list(dict.fromkeys(options.by))
    if not all(who.strip() for who in graders):
        raise UserError("--by is empty; give a name")
    section = the_section(book, options.section)
    desk = Desk(book, name, graders or [getpass.getuser()], section, options.anonymous)
    try:
        serve(desk, options.port, _say)
    except OSError as error:
        raise UserError(f"--port {options.port}: {error.strerror or error}") from error


def _say(addresses):
    print("Open in a browser on this machine; anyone with the address can mark. Ctrl+C ends it.")
    for who, address in addresses.items():
        print(f"  {who}: {address}", flush=True)
