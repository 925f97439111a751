"""Who is no longer in the class."""

from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import DECIDED, decider, the_student, who
from lightspeed_cli.errors import UserError

WORDS = "say that a student left the class, or with --undo, is back; nothing is lost"
ARGUMENTS = (option("student", metavar="STUDENT"), *DECIDED)
NAMED = False


def run(options, course, book):
    student = the_student(book, options.student)
    if book.student(student).left != options.undo:
        raise UserError(f"{student} {'is in the class' if options.undo else 'has left already'}")
    book.set_left(student, not options.undo, *decider(options))
    back = " is in the class again, with all that was there" if options.undo else ""
    print(f"{who(book.student(student))}{back}")
