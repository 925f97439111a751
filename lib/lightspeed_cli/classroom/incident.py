"""An incident as an assignment."""

import os

from lightspeed_cli.classroom.arguments import option

WORDS = "write a notebook that asks an incident, to be released like an exercise"
ARGUMENTS = (
    option(
        "kind", choices=["training", "serving", "engine"], help="which job it is that runs slow"
    ),
    option(
        "--with", dest="beside", metavar="NAME", help="put it behind the cells of this exercise"
    ),
)
NAMED = False


def run(options, course, book):
    from lightspeed_class.handout.incident_notebook import write

    path = os.path.relpath(write(course, options.kind, options.beside))
    print(path)
    print(
        "Each student gets a job of their own, and nobody's notebook says what is wrong with it."
        f" Next: lightspeed class release {path}"
    )
