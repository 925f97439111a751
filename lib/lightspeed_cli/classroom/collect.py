"""Take submissions in."""

import shlex

from lightspeed_class.listed import listed
from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import known, many, the_student

WORDS = "take in submissions: folders, notebooks, zips, downloads of Canvas, Moodle, Gradescope"
ARGUMENTS = (
    option("paths", nargs="+", metavar="PATH"),
    option("--as", dest="student", metavar="STUDENT", help="all of it is from this student"),
)


def run(options, course, book):
    from lightspeed_class.intake.collect import collect as take_in

    student = the_student(book, options.student) if options.student else None
    intake = take_in(course, book, known(book, options.name), options.paths, student)
    say_collected(course, book, intake, options.paths)
    return 1 if intake.failed else 0


def alike(reasons):
    """Return reason, with {} for the file -> the files, so that many files share one line."""
    files = {}
    for reason in reasons:
        *place, name, why = reason.replace("{", "(").replace("}", ")").split(": ", 2)
        files.setdefault(": ".join([*place, "{}", why]), []).append(name)
    return files


def say_collected(course, book, intake, paths=("FILE",)):
    """Print the result of a collection."""
    from lightspeed_class.intake.kept_files import beside

    order = ("new", "late", "older", "same", "beside", "request", "refused", "unknown", "foreign")
    counts = ", ".join(f"{intake.counts[v]} {v}" for v in order if intake.counts[v])
    print(f"{intake.name}: {counts or 'nothing to collect'}.")
    for row in intake.rows:
        if (row.note and row.verdict != "beside") or row.verdict in ("late", "refused", "unknown"):
            note = f"\n          {row.note}" if row.note else ""
            print(f"  {row.verdict:<8}{row.student or '?'}: {row.file}{note}")
    for reason, names in alike(intake.left).items():
        print(f"  left out: {reason.format(listed(names, 1))}")
    if intake.counts["beside"]:
        print(
            f"  beside: {many(intake.counts['beside'], 'file')} that no score is for, kept in"
            f" {course.collected(intake.name)}:"
        )
        print(*(f"  {line}" for line in beside(course, intake)), sep="\n")
    if intake.counts["foreign"]:
        print(
            "Collect files of another assignment for that one: lightspeed class collect"
            f" ASSIGNMENT {' '.join(map(shlex.quote, paths))}"
        )
    if older := [row.student for row in intake.rows if row.verdict == "older"]:
        print(f"older: {listed(older)} handed in a later one, which counts in its place.")
    if intake.counts["refused"]:
        print(
            "What cannot be read counts only if nothing else of its student can be: ask them for"
            " the notebook as JupyterLab saves it, and collect that."
        )
    if intake.counts["unknown"]:
        print(
            f"Assign an unknown file to a student: lightspeed class collect {intake.name} FILE --as"
            " STUDENT"
        )
    if intake.timed:
        print(
            f"The worksheet told when {many(intake.timed, 'submission')} that"
            f" {'was' if intake.timed == 1 else 'were'} there already came in."
        )
    if intake.untimed and book.setting(f"due {intake.name}"):
        print(
            "Moodle's archive does not tell when a file was handed in: give it again with its"
            " grading worksheet (.csv) in the same command."
        )
