"""An autograder for Gradescope."""

import os

from lightspeed_class.listed import listed
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.common import known
from lightspeed_cli.errors import UserError

WORDS = "pack the grader of an assignment as an autograder for Gradescope"
ARGUMENTS = (
    option("into", metavar="FILE", help="the zip to write"),
    flag(
        "--not-isolated",
        "for containers that allow no sandbox: a submission can do all that the autograder can",
    ),
)


def run(options, course, book):
    from pathlib import Path

    from lightspeed_class.handout.autograder import gradescope

    name = known(book, options.name)
    if os.path.lexists(options.into):
        raise UserError(f"{options.into} exists; choose another name, or delete it")
    path, isolated = Path(options.into).absolute(), not options.not_isolated
    left = gradescope(book, name, path, isolated, course.feedback)
    print(f"{options.into}: upload it to Gradescope; README.txt in it says what it keeps safe")
    if left:
        print(f"  no e-mail address, so their submissions cannot be judged there: {listed(left)}")
