"""Canvas by its API."""

import time

from lightspeed_class.listed import listed
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.collect import say_collected
from lightspeed_cli.classroom.common import known, many
from lightspeed_cli.classroom.roster import read_roster
from lightspeed_cli.errors import UserError

WORDS = "Canvas by its API: roster and pull read from it, push sends grades and feedback"
ARGUMENTS = (
    option("what", choices=["roster", "pull", "push"]),
    option("name", nargs="?", metavar="NAME", help="the assignment, for pull and push"),
    flag("--dry-run", "push: say what would be sent, and send nothing"),
    flag("--grades-only", "push: no feedback pages"),
    flag("--replace", "push: also where Canvas has points that somebody gave"),
    flag("--leave-unmarked", "push: no points for those with prose not marked yet"),
)
NAMED = False


def run(options, course, book):
    from lightspeed_class.canvas.client import connect

    if (options.what == "roster") == bool(options.name):
        raise UserError(
            "canvas roster takes no assignment"
            if options.name
            else f"name the assignment: lightspeed class canvas {options.what} NAME"
        )
    name = known(book, options.name) if options.name else ""
    with connect(course) as canvas:
        return {"roster": _roster, "pull": _pull, "push": _push}[options.what](
            options, course, book, canvas, name
        )


def _roster(options, course, book, canvas, name):
    from lightspeed_class.canvas.pull import write_roster

    path = course.root / "canvas" / f"roster-{time.strftime('%Y%m%d-%H%M%S')}.csv"
    write_roster(canvas, path)
    read_roster(book, path)


def _pull(options, course, book, canvas, name):
    from lightspeed_class.canvas.pull import pull

    done = pull(canvas, course, book, name)
    say_collected(course, book, done.collected)
    if done.known:
        print(f"  {many(done.known, 'file')} there already")
    for line in done.told:
        print(f"  {line}")
    return 1 if done.collected.failed else 0


def _push(options, course, book, canvas, name):
    from lightspeed_class.canvas.push import alone

    with alone(book):
        return _push_alone(options, course, book, canvas, name)


def _push_alone(options, course, book, canvas, name):
    from lightspeed_class.canvas.push import plan, push
    from lightspeed_class.reports.feedback import file_name, write_feedback

    pages = {}
    if not options.grades_only:
        told = {file_name(s.id, ".html"): s.id for s in book.students()}
        folder = course.root / "feedback" / name
        pages = {told[page.name]: page for page in write_feedback(book, name, folder)}
    todo, lost = plan(canvas, book, name, pages, options.leave_unmarked, options.replace)
    send = [one for one in todo if one.grade or one.page]
    if options.dry_run:
        print(f"{name}: would be sent for {many(len(send), 'student')}:")
        for one in send:
            _say(one)
    else:
        push(canvas, book, name, todo, pages, _say)
        print(
            f"{name}: sent {many(sum(bool(o.grade) for o in todo), 'grade')} and"
            f" {many(sum(bool(o.page) for o in todo), 'feedback page')}; nothing new for"
            f" {len(todo) - len(send)}."
        )
    for one in todo:
        if one.kept:
            print(
                f"  KEPT: {one.student} has {one.kept} on Canvas, which was not sent from here;"
                " --replace writes over it"
            )
        if one.note:
            print(f"  {one.student}: {one.note}")
    if lost:
        print(
            f"  LEFT OUT, not among the assignment's students on Canvas: {listed(lost)}."
            " lightspeed class canvas roster finds their numbers"
        )
    return 1 if lost or any(one.kept for one in todo) else 0


def _say(one):
    parts = [f"{one.grade} points" if one.grade != "EX" else "excused"] * bool(one.grade)
    print(f"  {one.student}: {', '.join(parts + ['feedback'] * bool(one.page))}")
