"""An assignment that does not count for one student."""

from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import DECIDED, decider, known, the_student, total, undone

WORDS = "let an assignment not count for one student"
ARGUMENTS = (option("student", metavar="STUDENT"), *DECIDED)


def run(options, course, book):
    name, student = known(book, options.name), the_student(book, options.student)
    if options.undo:
        undone(book, options, "excused", student, name, "excuse")
    else:
        book.decide("excused", student, name, "yes", *decider(options))
    (result,) = book.results(name, student)
    print(f"{student}, {name}: {total(result)}")
