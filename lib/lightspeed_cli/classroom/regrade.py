"""Grade again what a fix may have changed."""

import json

from lightspeed_cli.classroom import grade
from lightspeed_cli.classroom.common import known, left_mark, many

WORDS = "grade again what a fix may have changed, and say who changes and why"
ARGUMENTS = grade.ARGUMENTS


def run(options, course, book):
    name = known(book, options.name)
    # What stood before the first of several runs, so that what one did before it was stopped is
    # told of, too.
    begun = book.setting(f"regrade {name}") or book.setting(
        f"regrade {name}", json.dumps(book.latest(name))
    )
    before = {int(submission): grading for submission, grading in json.loads(begun).items()}
    status = grade.run(options, course, book, regrade=True)
    now = book.latest(name)
    again = [
        s for s in book.counting(name).values() if s.id in before and now[s.id] != before[s.id]
    ]
    changes = book.changes(name, before)
    told = [
        c for c in changes if (c.before.points, _why(c.before)) != (c.after.points, _why(c.after))
    ]
    manual = {
        (r.student.id, q)
        for r in book.results(name)
        for q, m in r.manual.items()
        if m.points is not None
    }
    change = len({c.student.id for c in told})
    what = (
        f"{many(change, 'student')} {'changes' if change == 1 else 'change'}"
        if change
        else "nobody's answers are judged otherwise"
    )
    print(
        f"{len(again)} graded again: {what}."
        if again
        else "Nothing had to be graded again: all scores are up to date."
    )
    for q, was, out_of in sorted(
        {
            (c.question, c.before.out_of, c.after.out_of)
            for c in changes
            if c.before.out_of != c.after.out_of
        }
    ):
        print(f"  {q}: out of {was:g} -> {out_of:g}")
    for c in told:
        note = "; points by hand stay" * ((c.student.id, c.question) in manual)
        print(
            f"  {c.student.id}{left_mark(c.student)} {c.question}: {c.before.points:g}"
            f" ({_why(c.before)}) -> {c.after.points:g} ({_why(c.after)}){note}"
        )
    book.setting(f"regrade {name}", "")
    return status


def _why(score):
    return f"{score.kind}: {score.name}" if score.name else score.kind
