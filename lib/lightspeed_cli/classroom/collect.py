"""Take submissions in."""

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
    done = take_in(course, book, known(book, options.name), options.paths, student)
    say_collected(course, book, done)
    return 1 if done.failed else 0


def alike(reasons):
    """Reason, with {} for the file -> the files: what holds for hundreds is one line."""
    found = {}
    for reason in reasons:
        *place, name, why = reason.replace("{", "(").replace("}", ")").split(": ", 2)
        found.setdefault(": ".join([*place, "{}", why]), []).append(name)
    return found


def say_collected(course, book, done):
    """What a collection did."""
    from lightspeed_class.intake.kept_files import beside

    order = ("new", "late", "older", "same", "beside", "request", "refused", "unknown", "foreign")
    print(
        f"{done.name}: "
        + (
            ", ".join(f"{done.counts[v]} {v}" for v in order if done.counts[v])
            or "nothing to collect"
        )
        + "."
    )
    for row in done.rows:
        if (row.note and row.verdict != "beside") or row.verdict in ("late", "refused", "unknown"):
            print(
                f"  {row.verdict:<8}{row.student or '?'}: {row.file}"
                + (f"\n          {row.note}" if row.note else "")
            )
    for reason, names in alike(done.left).items():
        print(f"  left out: {reason.format(listed(names, 1))}")
    if done.counts["beside"]:
        print(
            f"  beside: {many(done.counts['beside'], 'file')} that no score is for, kept in"
            f" {course.collected(done.name)}:"
        )
        print(*(f"  {line}" for line in beside(course, done)), sep="\n")
    if done.counts["foreign"]:
        print("What is for another assignment is collected for that one: lightspeed class collect")
    if done.counts["unknown"]:
        print(
            f"Give what is unknown to somebody: lightspeed class collect {done.name} FILE --as"
            " STUDENT"
        )
    if done.timed:
        print(
            f"The worksheet told when {many(done.timed, 'submission')} that"
            f" {'was' if done.timed == 1 else 'were'} there already came in."
        )
    if done.untimed and book.setting(f"due {done.name}"):
        print(
            "Moodle's archive does not tell when a file was handed in: give it again with its"
            " grading worksheet (.csv) in the same command."
        )
