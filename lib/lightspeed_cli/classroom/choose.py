"""Which submission of a student counts."""

from datetime import datetime

from lightspeed_cli.argument_types import count
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.common import known, the_student
from lightspeed_cli.errors import UserError

WORDS = "say which submission of a student counts; without ID, list them"
ARGUMENTS = (
    option("student", metavar="STUDENT"),
    option("id", nargs="?", type=count, metavar="ID"),
    flag(
        "--none",
        "none of what is there counts, such as another's file taken in by mistake; what"
        " comes later does",
    ),
)


def run(options, course, book):
    name, student = known(book, options.name), the_student(book, options.student)
    team = book.teams(name)[student]
    theirs = [s for s in book.submissions(name) if s.student in team]
    ids = [s.id for s in theirs]
    if options.none and options.id:
        raise UserError("give an ID, which then counts, or --none, not both")
    if options.id:
        if options.id not in ids:
            raise UserError(
                f"{options.id} is not a submission of {student} for {name}; there are"
                f" {', '.join(map(str, ids)) or 'none'}"
            )
        book.choose(options.id)
    elif options.none and (own := [s.id for s in theirs if s.student == student]):
        book.choose(max(own), none=True)
        print(
            f"None of these of {student} counts; what comes after them does. The files stay in"
            f" {course.collected(name) / 'students' / student}"
        )
    if not ids:
        print(f"{student} handed in nothing for {name}.")
    (_, out), counting = book.choices(name), book.counting(name).get(student)
    for s in theirs:
        mark = "counts" if s == counting else "out" * (s.id in out)
        whose = f"{s.student}  " * (len(team) > 1)
        print(
            f"{s.id:>6}  {whose}{datetime.fromtimestamp(s.at):%Y-%m-%d %H:%M}  {mark:<6} "
            f" {s.source}{f': {s.refused}' if s.refused else ''}"
        )
