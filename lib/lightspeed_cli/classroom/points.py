"""Points and comments by hand."""

import getpass

from lightspeed_cli.argument_types import number
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.common import known, some, the_student, total
from lightspeed_cli.errors import UserError

WORDS = "give points or a comment by hand, which no grading ever changes"
ARGUMENTS = (
    option("student", metavar="STUDENT"),
    option(
        "question",
        nargs="?",
        default="",
        metavar="QUESTION",
        help="default: the whole assignment, and points are added to it",
    ),
    option(
        "--points",
        type=number,
        metavar="X",
        help="what is not given, points or comment, stays as it was",
    ),
    option("--comment", metavar="TEXT"),
    flag("--remove", "take back what was given by hand"),
    option("--by", default="", metavar="WHO", help="default: your user name"),
)


def run(options, course, book):
    from lightspeed.errors import meant

    name = known(book, options.name)
    student = the_student(book, options.student)
    question = options.question
    worth = book.assignment(name).points
    before = _result(book, name, student)
    mark = before.manual.get(question)
    points, comment = (options.points, options.comment) if not options.remove else (None, "")
    if question and question not in worth:
        raise UserError(f"{name} does not ask {question}; {meant(question, worth)}")
    if options.remove == (options.points is not None or options.comment is not None):
        raise UserError("give --points X, --comment TEXT, or both; or --remove alone")
    if options.remove and not mark:
        raise UserError(f"{student} has no points by hand to remove for {question or 'the whole'}")
    if question and points is not None and not 0 <= points <= worth[question]:
        raise UserError(
            f"{question} takes 0 to {worth[question]:g} points; to add to the whole, or take off"
            " it, leave QUESTION out"
        )
    if mark and not options.remove:
        points = mark.override if points is None else points
        comment = mark.comment if comment is None else comment
    rubric = (mark.items, mark.base) if mark and not options.remove else ()
    by = options.by or getpass.getuser()
    book.set_manual(student, name, question, points, comment or "", by, *rubric)
    after = _result(book, name, student)
    print(
        f"{student}, {question or 'the whole'}: {_by_hand(mark)} ->"
        f" {_by_hand(after.manual.get(question))}"
    )
    print(f"{student}: {total(before)} -> {total(after)}")
    if after.points is not None and not 0 <= after.points <= after.out_of:
        print(
            f"  That is {'above the maximum' if after.points > 0 else 'below zero'};"
            " --remove takes it back."
        )


def _result(book, name, student):
    (result,) = book.results(name, student)
    return result


def _by_hand(manual):
    if not manual:
        return "nothing by hand"
    parts = [some(manual.points)] if manual.points is not None else []
    return ", ".join([*parts, f'"{manual.comment}"'] if manual.comment else parts)
