"""What people decided and gave, and when."""

from datetime import datetime

from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import the_student

WORDS = "list what people decided and gave by hand, oldest first"
ARGUMENTS = (option("student", nargs="?", metavar="STUDENT", help="of this one alone"),)
NAMED = False


def run(options, course, book):
    from lightspeed_class.reports.results import said

    student = the_student(book, options.student) if options.student else None
    rows = [(d.at, d.student, d.assignment, _decided(d), d.reason, d.by) for d in book.decisions()]
    for name in book.assignments():
        rows += [
            (m.at, m.student, name, f"{m.question or 'the whole'}, {said(m)}", m.comment, m.by)
            for m in book.manual(name)
        ]
        items = [i for i in book.rubric_history(name) if not student]
        rows += [(i.at, None, name, _item(i), i.words, i.by) for i in items]
        rows += [(at, whose, name, words, "", "") for at, whose, words in book.chosen(name)]
    for at, whose, name, words, reason, by in sorted(rows, key=lambda row: row[0]):
        if student in (None, whose):
            subject = ", ".join(filter(None, (whose or "all", name)))
            more = f' "{reason}"' * bool(reason) + f" ({by})" * bool(by)
            print(f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}  {subject}: {words}{more}")


def _decided(decision):
    if decision.value is None:
        return f"{decision.what}: taken back"
    if decision.what == "extended":
        until = datetime.fromtimestamp(float(decision.value)).astimezone()
        return f"extended to {until:%Y-%m-%d %H:%M (%Z)}"
    tells = decision.student is None or decision.what == "group"
    return decision.what + f" {decision.value}" * tells


def _item(item):
    points = "withdrawn" if item.points is None else f"{item.points:+.10g} points"
    return f"rubric item {item.id} of {item.question}, {points}"
