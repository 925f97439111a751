"""What people decided and gave, and when."""

from datetime import datetime

from lightspeed_cli.classroom.common import the_student

WORDS = "list what people decided and gave by hand, oldest first"
ARGUMENTS = (("student", {"nargs": "?", "metavar": "STUDENT", "help": "of this one alone"}),)
NAMED = False


def run(options, course, book):
    student = the_student(book, options.student) if options.student else None
    found = [(d.at, d.student, d.assignment, _decided(d), d.reason, d.by) for d in book.decisions()]
    for name in book.assignments():
        found += [(m.at, m.student, name, _given(m), m.comment, m.by) for m in book.manual(name)]
        found += [(at, whose, name, words, "", "") for at, whose, words in book.chosen(name)]
    for at, whose, name, words, reason, by in sorted(found, key=lambda row: row[0]):
        if student in (None, whose):
            subject = ", ".join(filter(None, (whose or "all", name)))
            said = f' "{reason}"' * bool(reason) + f" ({by})" * bool(by)
            print(f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}  {subject}: {words}{said}")


def _decided(decision):
    if decision.value is None:
        return f"{decision.what}: taken back"
    if decision.what == "extended":
        until = datetime.fromtimestamp(float(decision.value)).astimezone()
        return f"extended to {until:%Y-%m-%d %H:%M (%Z)}"
    return decision.what + f" {decision.value}" * (decision.student is None)


def _given(manual):
    where = manual.question or "the whole"
    if manual.points is not None:
        return f"{where}, {manual.points:g} points by hand"
    return f"{where}, {'a comment' if manual.comment.strip() else 'by hand: taken back'}"
