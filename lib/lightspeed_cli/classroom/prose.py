"""A question of prose as an assignment."""

import os

from lightspeed_cli.classroom.arguments import option

WORDS = "write a notebook that asks for prose, which people mark, to be released like an exercise"
ARGUMENTS = (
    option("question", metavar="NAME", help="what to call it, such as why_slower"),
    option("prompt", metavar="TEXT", help="what is asked, in Markdown"),
    option(
        "--with",
        dest="beside",
        metavar="NAME",
        help="put it behind the cells of this exercise or notebook",
    ),
)
NAMED = False


def run(options, course, book):
    from lightspeed_class.handout.prose_notebook import write

    path = os.path.relpath(write(course, options.question, options.prompt, options.beside))
    print(path)
    print(
        f'Points: "prose.{options.question}" in class.toml. The grader gives none, and export waits'
        f" until they are given: lightspeed class desk. Next: lightspeed class release {path}"
    )
