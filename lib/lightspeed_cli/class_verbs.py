"""What each verb of `lightspeed class` does and says; cli/classroom.py has their arguments."""

import contextlib
import difflib
import getpass
import json
import os
import signal
import sys
import time
from datetime import datetime


def roster(options, course, book):
    _read_roster(book, options.file or course.root / "roster.csv")


def _read_roster(book, file):
    from lightspeed_class.roster import add_roster

    done = add_roster(book, file)
    print(f"{file}: {len(done.added)} added, {len(done.updated)} brought up to date, {len(done.same)} as they were.")
    for line in done.skipped:
        print(f"  skipped {line}")
    if done.elsewhere:
        print(f"  not in the file, and kept: {_listed(done.elsewhere)}")


def release(options, course, book):
    from lightspeed_class.handout.release import release as give_out

    if options.students:
        _read_roster(book, options.students)
    done = give_out(course, book, options.name, options.due)
    folder = done.folder / f"v{done.version}"
    made = _many(len(done.given), "notebook") if course.variants else f"one notebook for all, {len(done.given)} of whom did not have it"
    print(f"{done.name}, version {done.version}, for {_many(done.students, 'student')}: {made}{' made now' * course.variants}.")
    if earlier := [id for id, versions in done.versions.items() if len(versions) > 1]:
        print(f"  an earlier version, which they keep, went to {_listed(earlier)}")
    if done.added or done.removed:
        changes = [f"{word} {', '.join(ids)}" for word, ids in (("new:", done.added), ("gone:", done.removed)) if ids]
        print(f"  questions, compared with the version before: {'; '.join(changes)}")
    if done.repriced:
        each = ", ".join(f"{q} {before:g} -> {now:g}" for q, before, now in done.repriced)
        print(f"  points: {done.points[0]:g} -> {done.points[1]:g} ({each})")
        if book.latest(done.name):
            print(f"  what is graded already has the points before: lightspeed class regrade {done.name}")
    print(f"Each student gets one file of {folder}" if course.variants else f"All students get {folder / f'{done.name}.ipynb'}")
    print(f"Who gets which is in {done.folder / 'handout.csv'}, how to hand it out in README.txt beside it.")
    told = "diagnoses answers" if course.feedback == "full" else "only says how an answer was read"
    print(f"In these notebooks `check` {told} (feedback in class.toml).{_due(book, done.name)}")
    if options.due and options.due < time.time():
        print("  That is in the past: whatever is handed in now is late.")


def collect(options, course, book):
    from lightspeed_class.intake.collect import beside
    from lightspeed_class.intake.collect import collect as take_in

    student = _student(book, options.student) if options.student else None
    done = take_in(course, book, _known(book, options.name), options.paths, student)
    order = ("new", "late", "older", "same", "beside", "refused", "unknown", "foreign")
    print(f"{done.name}: " + (", ".join(f"{done.counts[v]} {v}" for v in order if done.counts[v]) or "nothing to collect") + ".")
    for row in done.rows:
        if (row.note and row.verdict != "beside") or row.verdict in ("late", "refused", "unknown"):
            print(f"  {row.verdict:<8}{row.student or '?'}: {row.file}" + (f"\n          {row.note}" if row.note else ""))
    for reason in done.left:
        print(f"  left out: {reason}")
    if done.counts["beside"]:
        print(f"  beside: {_many(done.counts['beside'], 'file')} that no score is for, kept in {course.collected(done.name) / 'students'}:")
        print(*(f"  {line}" for line in beside(course, done)), sep="\n")
    if done.counts["unknown"]:
        print(f"Give what is unknown to somebody: lightspeed class collect {done.name} FILE --as STUDENT")
    if done.timed:
        print(f"The worksheet told when {_many(done.timed, 'submission')} that {'was' if done.timed == 1 else 'were'} there already came in.")
    if done.untimed and book.setting(f"due {done.name}"):
        print("Moodle's archive does not tell when a file was handed in: give it again with its grading worksheet (.csv) in the same command.")
    return 1 if done.failed else 0


def grade(options, course, book, regrade=False):
    from lightspeed_class.grading.batch import grade_all, print_progress

    name = _known(book, options.name)
    _say_points(course, book, name)
    with contextlib.ExitStack() as stack:
        isolated, workers, cluster = not options.not_isolated, options.workers, None
        stack.enter_context(_stoppable())
        if options.dask:
            from lightspeed_class.grading.cluster import connected

            cluster = stack.enter_context(connected(options.dask, isolated))
            workers = cluster.workers
        done = grade_all(book, name, workers, isolated=isolated, progress=print_progress, regrade=regrade, submit=cluster)
    unreadable = f", of which {done.unreadable} could not be read" if done.unreadable else ""
    print(f"{name}: {done.graded} graded in {done.seconds:.1f} s{unreadable}" + ", NOT ISOLATED" * options.not_isolated + ".")
    if missing := [_who(r.student) for r in book.results(name) if not r.submission and not r.student.left]:
        print(f"  nothing from {_listed(missing)}")
    _say_outdated(book, name)
    students = {s.id: s.student for s in book.submissions(name)}
    for submission, why in done.failed.items():
        print(f"  not graded: submission {submission} of {students[submission]}: {why}; the next run tries it again", file=sys.stderr)
    return 1 if done.failed else 0


@contextlib.contextmanager
def _stoppable():
    """The first Ctrl+C stops the work and says so; a second one does not wait for that."""

    def stop(*_):
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        os.write(2, b"\nstopping; what is graded is kept, run it again\n")  # not print(), which may be at work
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is stop:
            signal.signal(signal.SIGINT, before)


def regrade(options, course, book):
    name = _known(book, options.name)
    # What stood before the first of several runs, so that what one did before it was stopped is told of, too.
    begun = book.setting(f"regrade {name}") or book.setting(f"regrade {name}", json.dumps(book.latest(name)))
    before = {int(submission): grading for submission, grading in json.loads(begun).items()}
    status = grade(options, course, book, regrade=True)
    now = book.latest(name)
    again = [s for s in book.counting(name).values() if s.id in before and now[s.id] != before[s.id]]
    changes = book.changes(name, before)
    told = [c for c in changes if (c.before.points, _why(c.before)) != (c.after.points, _why(c.after))]
    manual = {(r.student.id, q) for r in book.results(name) for q, m in r.manual.items() if m.points is not None}
    change = len({c.student.id for c in told})
    what = f"{_many(change, 'student')} {'changes' if change == 1 else 'change'}" if change else "nobody's answers are judged otherwise"
    print(f"{len(again)} graded again: {what}." if again else "Nothing had to be graded again: all scores are up to date.")
    for q, was, out_of in sorted({(c.question, c.before.out_of, c.after.out_of) for c in changes if c.before.out_of != c.after.out_of}):
        print(f"  {q}: out of {was:g} -> {out_of:g}")
    for c in told:
        kept = "; points by hand stay" * ((c.student.id, c.question) in manual)
        print(f"  {c.student.id}{_left(c.student)} {c.question}: {c.before.points:g} ({_why(c.before)}) -> {c.after.points:g} ({_why(c.after)}){kept}")
    book.setting(f"regrade {name}", "")
    return status


def _why(score):
    return f"{score.kind}: {score.name}" if score.name else score.kind


def feedback(options, course, book):
    from lightspeed_class.reports.feedback import write_feedback

    name = _known(book, options.name)
    student = _student(book, options.student) if options.student else None
    folder = course.root / "feedback" / name
    pages = write_feedback(book, name, folder, student)
    handed_in = [r for r in book.results(name) if r.submission and student in (None, r.student.id)]
    waiting = sum(not r.grading for r in handed_in)
    print(f"{_many(len(pages), 'page')} in {folder}")
    if not handed_in:
        print("  nothing was handed in yet, which is all that they say")
    elif waiting:
        who = "none of what was handed in is" if waiting == len(handed_in) else f"{waiting} of {len(handed_in)} are not"
        print(f"  {who} graded yet, and so the pages say: lightspeed class grade {name}")
    _say_outdated(book, name)


def export(options, course, book):
    from lightspeed_class.reports.export import export_csv

    from lightspeed_cli import UserError

    names = [_known(book, name) for name in options.names] or book.assignments()
    if not names:
        raise UserError("there is nothing to export: no assignment was released yet. lightspeed class release NAME")
    if options.into and os.path.lexists(options.into):
        raise UserError(f"{options.into} exists; choose another name, or delete it")
    made = course.root / "exports" / f"{'-'.join(names)[:80] or 'points'}-{options.format}-{time.strftime('%Y%m%d-%H%M%S')}.csv"
    made.parent.mkdir(exist_ok=True)
    titles = {_known(book, name): title for name, title in options.title}
    export_csv(book, names, options.into or made, options.format, options.missing_as_zero, titles)
    print(f"{options.into or made}")
    _say_outdated(book, *names, file=sys.stderr)


def report(options, course, book):
    from lightspeed_class.reports.class_report import write_report

    name = _known(book, options.name)
    (course.root / "reports").mkdir(exist_ok=True)
    print(write_report(book, name, course.root / "reports" / f"{name}.html"))
    _say_outdated(book, name)


def points(options, course, book):
    from lightspeed_class.class_folder import near

    from lightspeed_cli import UserError

    name, student, question = _known(book, options.name), _student(book, options.student), options.question
    asked = book.assignment(name).points
    before = _result(book, name, student)
    had = before.manual.get(question)
    given, comment = (options.points, options.comment) if not options.remove else (None, "")
    if question and question not in asked:
        raise UserError(f"{name} does not ask {question}; {near(question, asked)}")
    if options.remove == (options.points is not None or options.comment is not None):
        raise UserError("give --points X, --comment TEXT, or both; or --remove alone")
    if options.remove and not had:
        raise UserError(f"{student} has nothing by hand for {question or 'the whole'}")
    if question and given is not None and not 0 <= given <= asked[question]:
        raise UserError(f"{question} takes 0 to {asked[question]:g} points; to add to the whole, or take off it, leave QUESTION out")
    if had and not options.remove:
        given, comment = had.points if given is None else given, had.comment if comment is None else comment
    book.set_manual(student, name, question, given, comment or "", options.by or getpass.getuser())
    after = _result(book, name, student)
    print(f"{student}, {question or 'the whole'}: {_by_hand(had)} -> {_by_hand(after.manual.get(question))}")
    print(f"{student}: {_total(before)} -> {_total(after)}")
    if after.points is not None and not 0 <= after.points <= after.out_of:
        print(f"  That is {'more than there is' if after.points > 0 else 'less than nothing'}; --remove takes it back.")


def _result(book, name, student):
    (result,) = book.results(name, student)
    return result


def _by_hand(manual):
    if not manual:
        return "nothing by hand"
    said = [_some(manual.points)] if manual.points is not None else []
    return ", ".join([*said, f'"{manual.comment}"'] if manual.comment else said)


def _some(points):
    return f"{points:g} {'point' if points == 1 else 'points'}"


def _total(result):
    return "no points yet" if result.points is None else f"{result.points:g} of {result.out_of:g}"


def choose(options, course, book):
    from lightspeed_cli import UserError

    name, student = _known(book, options.name), _student(book, options.student)
    ids = [s.id for s in book.submissions(name, student)]
    if options.none and options.id:
        raise UserError("give an ID, which then counts, or --none, not both")
    if options.id:
        if options.id not in ids:
            raise UserError(f"{options.id} is no submission of {student} for {name}; there are {', '.join(map(str, ids)) or 'none'}")
        book.choose(options.id)
    elif options.none and ids:
        book.choose(max(ids), none=True)
        print(f"None of these of {student} counts; what comes after them does. The files stay in {course.collected(name) / 'students' / student}")
    if not ids:
        print(f"{student} handed in nothing for {name}.")
    (_, out), counting = book.choices(name), book.counting(name).get(student)
    for s in book.submissions(name, student):
        mark = "counts" if s == counting else "out" * (s.id in out)
        print(f"{s.id:>6}  {datetime.fromtimestamp(s.at):%Y-%m-%d %H:%M}  {mark:<6}  {s.source}{f': {s.refused}' if s.refused else ''}")


def replay(options, course, book):
    from lightspeed_class.grading.batch import replay as again

    from lightspeed_cli import UserError

    if not book.gradings(id=options.id):
        raise UserError(f"there is no grading {options.id}; `lightspeed class status NAME` shows the ids")
    same, before, after, differs = again(book, options.id)
    print(f"grading {options.id}: {'the same result' if same else 'ANOTHER RESULT'}, {_some(before.points)} then, {after.points:g} now.")
    (name,) = {s.assignment for s in book.submissions() for g in book.gradings(id=options.id) if s.id == g.submission}
    if {s.question: s.out_of for s in after.scores} != book.assignment(name).points:
        print(f"  The points in class.toml have changed since; this was by those of then. For those of now: lightspeed class regrade {name}")
    print(f"  digest {before.digest[:16]} then, {after.digest[:16]} now; other than then: {', '.join(differs) or 'nothing'}")
    return 0 if same else 1


def status(options, course, book):
    names = [_known(book, options.name)] if options.name else book.assignments()
    here = [s for s in book.students() if not s.left]
    left = f" ({len(book.students()) - len(here)} more left)" if len(here) < len(book.students()) else ""
    print(f"{course.name}: {_many(len(here), 'student')}{left}, {_many(len(names), 'assignment')}")
    for name in names:
        _show_status(course, book, name)
    if options.name:
        results = book.results(names[0])
        wide = [max(len(text) for text in column) for column in zip(*((r.student.id, r.student.name + _left(r.student)) for r in results), strict=True)] or [0, 0]
        for r in results:
            points = "" if r.points is None else _total(r)
            grading = f"grading {r.grading.id}, {r.grading.graded.status}" if r.grading else "not graded" if r.submission else "nothing handed in"
            print(f"  {r.student.id:<{wide[0]}}  {r.student.name + _left(r.student):<{wide[1]}}  {points:<12} {grading}" + ", points or a comment by hand" * bool(r.manual))


def _show_status(course, book, name):
    from lightspeed_class.intake.collect import put_aside
    from lightspeed_class.intake.match_submissions import late

    due, results = book.setting(f"due {name}"), [r for r in book.results(name) if not r.student.left]
    left = {s.id for s in book.students() if s.left}
    submissions = [s for s in book.submissions(name) if s.student not in left]
    handed_in = [r for r in results if r.submission]
    overdue = [s for s in submissions if late(s.source, s.at, due and float(due))]
    graded = [r for r in handed_in if r.grading]
    unread = [_who(r.student) for r in graded if r.grading.graded.status == "refused"]
    print(f"{name}: {_many(len(book.assignment(name).points), 'question')}.{_due(book, name)}")
    print(f"  handed in by {len(handed_in)} of {len(results)} ({_many(len(submissions), 'submission')}, {len(overdue)} late); graded {len(graded)}")
    for what, who in (
        ("nothing from", [_who(r.student) for r in results if not r.submission]),
        ("waits for grading:", [_who(r.student) for r in handed_in if not r.grading]),
        ("could not be read:", unread),
        ("ended early:", [_who(r.student) for r in graded if r.grading.graded.status not in ("ok", "refused")]),
    ):
        if who:
            print(f"  {what} {_listed(who)}")
    for line in put_aside(course, book, name):
        print(f"  {line}")
    _say_points(course, book, name)
    _say_outdated(book, name)
    if book.setting(f"regrade {name}"):
        print(f"  a regrade has not come to its end: lightspeed class regrade {name}")


def nbgrader(options):
    from lightspeed_class.handout.nbgrader import export_nbgrader
    from lightspeed_class.handout.release import find
    from lightspeed_course.authoring.notebooks import BuildError

    from lightspeed_cli import UserError

    try:
        print(export_nbgrader(find(options.name).stem, options.into))
    except BuildError as error:
        raise UserError(error) from error
    except FileExistsError as error:
        raise UserError(f"{error.filename} is there already, and is not written over: take it away, or name another folder") from error


def _known(book, name):
    """The released assignment of this name or number, or the only one that begins with it."""
    from lightspeed_class.class_folder import near
    from lightspeed_class.handout.release import spoken

    from lightspeed_cli import UserError

    names = book.assignments()
    found = [n for n in names if n == name] or [n for n in names if n == spoken(name)] or [n for n in names if n.startswith(spoken(name))]
    if len(found) != 1:
        hint = near(name, names) if names else f"none is yet: lightspeed class release {name}"
        raise UserError(f"there is no released assignment {name}; {hint}")
    return found[0]


def _student(book, text):
    """The id of the one student who goes by this."""
    from lightspeed_class.intake.match_submissions import People

    from lightspeed_cli import UserError

    students = book.students()
    found = sorted(People(students).named(text))
    if len(found) != 1:
        words = [[w.casefold() for w in (s.id, s.name, *s.name.split())] for s in students]
        alike = [_who(s) for s, own in zip(students, words, strict=True) if difflib.get_close_matches(text.casefold(), own, 1)]
        hint = f"did you mean {' or '.join(alike[:4])}?" if alike else "give an id as it is in the roster"
        raise UserError(f"{text} could be {' or '.join(found)}; give the id" if found else f"{text} is not on the roster; {hint}")
    return found[0]


def _who(student):
    return (f"{student.id} ({student.name})" if student.name else student.id) + _left(student)


def _left(student):
    return " (left)" * student.left


def _say_points(course, book, name):
    if course.changed_points(book, name):
        print(f"  class.toml gives other points than the release; run lightspeed class release {name}")


def _say_outdated(book, *names, file=None):
    from lightspeed_class.reports.results import outdated

    for line in outdated(book, *names):
        print(f"  {line}", file=file)


def _due(book, name):
    due = book.setting(f"due {name}")
    return f" Due {datetime.fromtimestamp(float(due)).astimezone():%A %Y-%m-%d %H:%M (%Z)}." if due else ""


def _many(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(names, most=12):
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
