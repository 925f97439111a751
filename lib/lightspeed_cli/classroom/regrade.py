"""Grade again what a fix may have changed."""

import json
import tempfile
from pathlib import Path

from lightspeed_class.listed import listed
from lightspeed_cli.classroom import grade
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.common import known, left_mark, many
from lightspeed_cli.classroom.release import load_questions
from lightspeed_cli.errors import UserError

WORDS = "grade again what a fix may have changed, and say who changes and why"
ARGUMENTS = (
    *grade.ARGUMENTS,
    option(
        "--questions",
        metavar="released|new|FILE",
        default="released",
        help="new: judge by the questions of the course that is installed, for the numbers"
        " that were asked; FILE: and by those of a file of your own; it shows who would change"
        " (default: as they were released)",
    ),
    flag("--apply", "with --questions new: let it count"),
    flag(
        "--worse-too",
        "with --questions new: also where it costs points; else the better mark stays",
    ),
)


def run(options, course, book):
    from lightspeed_class.kept_questions import correct

    name, new = known(book, options.name), options.questions != "released"
    if (options.apply or options.worse_too) and not new:
        raise UserError("--apply and --worse-too are for --questions new")
    if options.questions not in ("released", "new"):
        load_questions(options.questions)
    if new and not options.apply:
        return _tried(options, course, book, name)
    if new:
        _say_corrected(*correct(book, name, not options.worse_too))
    # What stood before the first of several runs, stopped ones included.
    start = book.setting(f"regrade {name}") or book.setting(
        f"regrade {name}", json.dumps(book.latest(name))
    )
    before = {int(submission): grading for submission, grading in json.loads(start).items()}
    status = grade.run(options, course, book, regrade=True)
    _say_changes(book, name, before)
    book.setting(f"regrade {name}", "")
    return status


def _tried(options, course, book, name):
    """The same on a copy of the gradebook, so that it is shown before it is done."""
    from lightspeed_class.gradebook.book import Gradebook
    from lightspeed_class.kept_questions import correct

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "gradebook.sqlite")
        book.copy_to(copy)
        with Gradebook(copy) as trial:
            before = trial.latest(name)
            changed, stuck = correct(trial, name, not options.worse_too)
            _say_corrected(changed, stuck)
            status = grade.run(options, course, trial, regrade=True) if changed else 0
            if changed:
                _say_changes(trial, name, before)
    again = " --worse-too" * options.worse_too
    print(
        "Nothing of this counts yet. To apply it: lightspeed class regrade"
        f" {name} --questions {options.questions} --apply{again}"
        if changed
        else "The questions grade as they did when they were released."
    )
    return status


def _say_corrected(changed, stuck):
    if changed:
        print(f"  graded as the course asks now: {listed(changed)}")
    for id, why in stuck.items():
        print(f"  {id} stays as it was released: {why}")


def _say_changes(book, name, before):
    """Who has other scores than `before`, and why."""
    now = book.latest(name)
    again = [
        s for s in book.counting(name).values() if s.id in before and now[s.id] != before[s.id]
    ]
    changes = book.changes(name, before)
    deltas = [
        c for c in changes if (c.before.points, _why(c.before)) != (c.after.points, _why(c.after))
    ]
    marks = [(r.student.id, q, m) for r in book.results(name) for q, m in r.manual.items()]
    manual = {(id, q) for id, q, mark in marks if mark.points is not None}
    what = "nobody's answers are judged otherwise"
    if change := len({c.student.id for c in deltas}):
        what = f"{many(change, 'student')} {'changes' if change == 1 else 'change'}"
    none = "Nothing had to be graded again: all scores are up to date."
    print(f"{len(again)} graded again: {what}." if again else none)
    maxima = {(c.question, c.before.out_of, c.after.out_of) for c in changes}
    for q, was, out_of in sorted(maxima):
        if was != out_of:
            print(f"  {q}: out of {was:g} -> {out_of:g}")
    for c in deltas:
        note = "; points by hand stay" * ((c.student.id, c.question) in manual)
        print(
            f"  {c.student.id}{left_mark(c.student)} {c.question}: {c.before.points:g}"
            f" ({_why(c.before)}) -> {c.after.points:g} ({_why(c.after)}){note}"
        )


def _why(score):
    return f"{score.kind}: {score.name}" if score.name else score.kind
