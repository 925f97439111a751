"""Read the roster."""

from lightspeed_class.listed import listed
from lightspeed_cli.classroom.arguments import option

WORDS = "read students from a CSV file: plain, or an export of Canvas or Moodle"
ARGUMENTS = (option("file", nargs="?", metavar="FILE"),)
NAMED = False


def run(options, course, book):
    from lightspeed_class.handout.release import gaps
    from lightspeed_class.roster import SPARE

    read_roster(book, options.file or course.root / "roster.csv")
    for name, one, students in gaps(course, book):
        who = "".join(f" --for {id}" for id in students) if len(students) <= SPARE else ""
        print(
            f"{name} was released, and not to {listed(students)}: lightspeed class release {name}"
            f"{' --one-notebook' if one else who}"
        )


def read_roster(book, file):
    from lightspeed_class.roster import add_roster

    diff = add_roster(book, file)
    print(
        f"{file}: {len(diff.added)} added, {len(diff.updated)} brought up to date, {len(diff.same)}"
        " as they were."
    )
    for line in diff.skipped:
        print(f"  skipped {line}")
    if diff.elsewhere:
        print(f"  not in the file, and kept: {listed(diff.elsewhere)}")
